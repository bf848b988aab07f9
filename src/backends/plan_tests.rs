//! How often a run looks for a mask's blocks.
//!
//! Invariant: one build per mask and tile size, over counting, judging, choosing and every backend's lists. Must not need
//! a device.

use super::cpu;
use super::cuda::choose;
use super::cuda::lists::decode_plan::PackedLists;
use super::cuda::lists::of_problem;
use super::cuda::toolchain::backward::BackwardDraft;
use super::cuda::variant::backward::BackwardWays;
use super::cuda::variant::limits::Limits;
use super::race::{RaceOptions, race};
use super::testing::{modulo_rows, spec, with_mods};
use crate::analysis::block_mask::BlockMask;
use crate::base::{BackendName, Control, DType};
use crate::problem::{Problem, ProblemSpec};

/// The kernels' lists as choosing, exporting and launching each ask for them.
fn cuda_lists(problem: &Problem) {
    for arch in ["sm_80", "sm_90a"] {
        let limits = Limits::of_arch(arch).expect("known");
        for backend in [BackendName::Flex, BackendName::Sdpa] {
            let choice = choose::choose(problem, backend).expect("supported");
            for _ in 0..2 {
                let spec = choose::spec(problem, &choice, &limits);
                of_problem::plan(problem, &spec, &Control::new()).expect("listed");
                PackedLists::new(problem, &spec, &Control::new()).expect("listed");
            }
        }
        for _ in 0..2 {
            BackwardDraft::new(problem, &limits, BackwardWays::default()).expect("written");
        }
    }
}

#[test]
fn a_run_looks_for_the_blocks_of_a_tile_size_once() {
    let spec = ProblemSpec { dtype: DType::BF16, ..spec(1, 2, 2, 300, 300, 32) };
    let problem = with_mods(spec, Some(modulo_rows(5, 3)), None);
    let before = BlockMask::builds_here().len();
    let mut backends = cpu::backends();
    let options = RaceOptions { rounds: 0, ..RaceOptions::default() };
    let inputs = super::inputs::random(&problem, 1);
    race(&problem, &inputs, &mut backends, &options, &Control::new(), &mut |_| {}).expect("ran");
    cuda_lists(&problem);
    let builds = &BlockMask::builds_here()[before..];
    let sizes: Vec<_> = builds.iter().map(|(_, size)| size.to_string()).collect();
    // statistics and bars at BLOCK_SIZE; tiles that backends share with them or among each other; packed keys
    assert!(builds.len() >= 3, "{sizes:?}");
    assert!(builds.iter().any(|(_, size)| *size == problem.block_size), "{sizes:?}");
    for (at, build) in builds.iter().enumerate() {
        assert!(!builds[..at].contains(build), "built twice at {}: {sizes:?}", build.1);
    }
}
