//! What our kernels say of a problem on an architecture, where no GPU is needed.
//!
//! Invariant: the answer is that of the backend itself, whose choice of a kernel and whose refusals are asked. Nothing is
//! compiled and nothing runs. Must not know other libraries.

use super::choose;
use super::toolchain::backward::BackwardDraft;
use super::toolchain::eager_backward::EagerDraft;
use super::variant::backward::BackwardWays;
use super::variant::limits::Limits;
use crate::backends::gradients;
use crate::base::{BackendName, Diagnostic};
use crate::problem::Problem;

/// Whether a backend has a kernel for the problem's forward pass; the error is its refusal.
pub fn forward(problem: &Problem, name: BackendName) -> Result<(), Diagnostic> {
    choose::choose(problem, name).map(drop)
}

/// Whether a backend has kernels for the problem's gradients on an architecture such as `sm_90a`; the error is its refusal, or that
/// the architecture is unknown.
pub fn backward(problem: &Problem, name: BackendName, arch: &str) -> Result<(), Diagnostic> {
    let (limits, _) = Limits::named(arch)?;
    match name {
        BackendName::Flex => BackwardDraft::check(problem, &limits, BackwardWays::default()),
        BackendName::Eager => EagerDraft::check(problem),
        _ => Err(gradients::none(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Device;
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::{from_document, library};
    use crate::problem::random;

    /// The answer without lists and texts, and that of the written kernel.
    fn both(problem: &Problem, arch: &str, deterministic: bool) -> [Result<(), String>; 2] {
        let (limits, _) = Limits::named(arch).expect("known");
        let ways = BackwardWays { deterministic, d_lse: false };
        let code = |why: Diagnostic| format!("{}: {}", why.code, why.message);
        let written = BackwardDraft::new(problem, &limits, ways).map(drop).map_err(code);
        [BackwardDraft::check(problem, &limits, ways).map_err(code), written]
    }

    #[test]
    fn the_question_has_the_answer_of_the_written_kernel() {
        let mut refused = 0;
        // among those of a CPU are some in float32, which kernels refuse
        let devices = [Device::Cuda(0), Device::Cpu].into_iter().cycle();
        for (seed, device) in (0..80).zip(devices) {
            let problem = Problem::new(random::problem(seed, device)).expect("valid");
            for (arch, deterministic) in [("sm_90a", false), ("sm_90a", true), ("sm_80", false)] {
                let [asked, written] = both(&problem, arch, deterministic);
                assert_eq!(asked, written, "{seed} on {arch}");
                refused += usize::from(asked.is_err());
            }
        }
        assert!((20..160).contains(&refused), "{refused} were refused");
    }

    #[test]
    fn presets_get_the_answer_of_the_written_kernel() {
        for preset in library::presets().iter().step_by(6) {
            let document = preset.document().expect("loads");
            let Ok(problem) = from_document(&document, &compile(&document, &BuiltIn)) else { continue };
            let [asked, written] = both(&problem, "sm_90a", false);
            assert_eq!(asked, written, "{}", preset.name);
        }
    }

    #[test]
    fn a_question_counts_no_blocks() {
        let document = library::preset("wan_720p_radial").expect("a preset").document().expect("loads");
        let problem = from_document(&document, &compile(&document, &BuiltIn)).expect("a problem");
        let before = crate::analysis::block_mask::BlockMask::builds_here().len();
        backward(&problem, BackendName::Flex, "sm_90a").expect("there is one");
        assert_eq!(crate::analysis::block_mask::BlockMask::builds_here().len(), before);
    }
}
