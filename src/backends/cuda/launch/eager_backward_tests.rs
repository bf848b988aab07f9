//! Eager's backward pass on this processor: its text, as NVRTC receives it, on the machine of `machine/hopper.h`,
//! compared with the f64 reference; and compiled by the real NVRTC for every architecture.
//!
//! Invariant: outputs and scratch are poisoned before a run, inputs are random. It does not test speed and GPU
//! behaviour that the machine does not emulate. Prints skipped without a C++ compiler, and without NVRTC.

use super::backward_tests::{half, judged, learned, scored, spec, taken, with_holes};
use super::eager_backward::{Places, Step, steps};
use super::hopper_tests::{MACHINE, housed, masked, quiet, ragged, scattered};
use crate::backends::cuda::choose::tests::{causal, make, window};
use crate::backends::cuda::device::tensors::arrange;
use crate::backends::cuda::emit::layout::capture_bytes;
use crate::backends::cuda::emit::run_tests::{PRELUDE, compiled};
use crate::backends::cuda::emit::tests::{nvrtc, soft_cap};
use crate::backends::cuda::launch::dense;
use crate::backends::cuda::launch::params::Params;
use crate::backends::cuda::toolchain::eager_backward::{EagerDraft, TILE};
use crate::backends::cuda::toolchain::ptxas;
use crate::backends::cuda::variant::arch::NAMES;
use crate::backends::cuda::variant::spec::MaskKind;
use crate::backends::gradients::{self, Gradients, Seeds};
use crate::backends::reference::{choose_rows, reference};
use crate::backends::{Inputs, inputs};
use crate::base::tensor::Data;
use crate::base::{Control, HostTensor, Layout};
use crate::ir::graph::{BinaryOp, Input, Mod, ModKind, UnaryOp};
use crate::problem::{Problem, ProblemSpec};
use maskloom_testing::needs;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

const MORE: &str = include_str!("../machine/backward.h");
const MAIN: &str = include_str!("../machine/eager_backward_main.h");
const ENTRIES: [&str; 6] =
    ["eager_products", "eager_rows", "eager_captures", "eager_captured", "eager_queries", "eager_keys"];

struct Ready {
    what: &'static str,
    problem: Problem,
    draft: EagerDraft,
    places: Places,
    inputs: Inputs,
    seeds: Seeds,
}

impl Ready {
    fn new(what: &'static str, spec: ProblemSpec, d_lse: bool, seed: u64) -> Ready {
        let problem = Problem::new(spec).expect("a valid problem");
        let draft = EagerDraft::new(&problem, d_lse).expect("a draft");
        let mut seeds = gradients::random(&problem, seed);
        if d_lse {
            let shape = [problem.batch, problem.heads, problem.q_len];
            let wave = (0..shape.iter().product::<usize>()).map(|i| ((i * 37 + 11) % 64) as f32 / 32.0 - 1.0);
            seeds.d_lse = Some(HostTensor::new(shape, Data::F32(wave.collect())).expect("a tensor"));
        }
        let places = Places::of(&problem, &draft).expect("counted");
        Ready { what, inputs: inputs::random(&problem, seed), seeds, places, problem, draft }
    }

    fn program(&self) -> String {
        let (head, _) = self.draft.text.split_once("#line 1 \"").expect("parts are marked");
        let mut text = format!("{head}#define ML_DQ_ORDER 0\n#define ML_DETERMINISTIC 1\n{PRELUDE}{MACHINE}{MORE}");
        text += &housed("text", &self.draft.text, &["ptx.cuh"]);
        text += "void point(text::Mods &m, const u8 *const *from) {\n";
        for i in 0..self.draft.mods.captures().len() {
            let _ = writeln!(text, "    m.c{i} = decltype(m.c{i})(from[{i}]);");
        }
        text + "}\n" + MAIN
    }

    /// The launches, as MAIN reads them: one unit at a time.
    fn file(&self) -> Vec<u8> {
        let (problem, draft) = (&self.problem, &self.draft);
        let forward =
            reference(problem, &self.inputs, choose_rows(problem, u32::MAX), &Control::new()).expect("forward");
        let mut file = Vec::new();
        let mut put = |bytes: Vec<u8>| {
            file.extend((bytes.len() as u64).to_le_bytes());
            file.extend(bytes);
        };
        let words = |values: &[u32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let mut params = Params::of_problem(problem);
        let bytes = match problem.mask.as_deref().filter(|_| draft.mask == MaskKind::Dense) {
            Some(mask) => {
                let (shape, width) = (problem.mask_shape(), dense::place(problem, TILE, &mut params));
                dense::on_host(problem, mask, (shape.batch, shape.heads), width)
            }
            None => Vec::new(),
        };
        put(params.bytes());
        let captures = draft.mods.captures();
        let tensors: Vec<&HostTensor> = captures.iter().map(|(_, tensor)| *tensor).collect();
        let layout = &draft.emitted.layout;
        assert!(!layout.by_pointer(), "mods that travel as a parameter");
        let addresses = vec![0; captures.len() + self.places.ids.len()];
        put(layout.fill(&addresses, &tensors, &draft.mods.ints, &draft.mods.floats));
        put(words(&[1, captures.len() as u32]));
        let all = steps(problem, 1, !self.places.ids.is_empty());
        let numbers = all.iter().flat_map(|Step { entry, blocks, threads, shared, .. }| {
            let number = ENTRIES.iter().position(|name| name == entry).expect("named");
            let few = if *entry == "eager_captured" { 3 } else { blocks.0 };
            [number as u32, few, blocks.1, blocks.2, *threads, *shared as u32]
        });
        put(words(&numbers.collect::<Vec<_>>()));
        for tensor in [&self.inputs.q, &self.inputs.k, &self.inputs.v, &self.seeds.d_out] {
            put(arrange(tensor, problem.layout).expect("16 bits").iter().flat_map(|v| v.to_le_bytes()).collect());
        }
        let floats = |values: Vec<f32>| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        put(floats(forward.lse.iter().map(|x| *x as f32).collect()));
        put(floats(self.seeds.d_lse.as_ref().map_or(Vec::new(), HostTensor::to_f32_vec)));
        put(bytes);
        put(words(&self.places.starts));
        for (name, tensor) in captures {
            put(capture_bytes(name, tensor).expect("a tensor"));
        }
        file
    }

    fn found(&self, mut left: &[u8]) -> Gradients {
        let problem = &self.problem;
        let [dq, dk, dv] = taken(problem, &mut left);
        let sums: Vec<f32> = left.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        Gradients { dq, dk, dv, captures: self.places.gradients(problem, &sums).expect("gradients") }
    }
}

/// Runs the taken cases in two orders of threads, which give the same bits.
fn check(cases: impl IntoIterator<Item = (&'static str, ProblemSpec, bool)>) {
    let mut programs: HashMap<String, (TempDir, PathBuf)> = HashMap::new();
    for (at, (what, spec, d_lse)) in needs::taken(cases).into_iter().enumerate() {
        let started = std::time::Instant::now();
        let ready = Ready::new(what, spec, d_lse, 5 + at as u64);
        let text = ready.program();
        if !programs.contains_key(&text) {
            let folder = tempfile::tempdir().expect("a folder");
            let Some(binary) = compiled(&text, folder.path(), &mut quiet("c++"), &["-O1"]) else { return };
            programs.insert(text.clone(), (folder, binary));
        }
        let (folder, binary) = &programs[&text];
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("in"), ready.file()).expect("written");
        let run = |seed: usize| {
            let ran = quiet(binary).arg(file("in")).arg(file("out")).arg(seed.to_string()).output().expect("runs");
            assert!(ran.status.success(), "{what}: {} {}", ran.status, String::from_utf8_lossy(&ran.stderr));
            std::fs::read(file("out")).expect("gradients")
        };
        let left = run(at);
        judged(what, &ready.problem, (&ready.inputs, &ready.seeds), &ready.found(&left))
            .unwrap_or_else(|why| panic!("{why}"));
        assert!(run(at + 5) == left, "{}: other bits", ready.what);
        println!("{what}: {} ({:.1} s)", ready.draft.name, started.elapsed().as_secs_f64());
    }
}

fn bshd(spec: ProblemSpec) -> ProblemSpec {
    ProblemSpec { layout: Layout::Bshd, ..spec }
}

/// `sin(q_idx - kv_idx) > 0.5`: the host's cells, because a device may round it otherwise.
fn inexact() -> Arc<Mod> {
    make(ModKind::Mask, |g| {
        let (q, kv) = (g.input(Input::QIdx), g.input(Input::KvIdx));
        let distance = g.binary(BinaryOp::Sub, q, kv);
        let single = g.unary(UnaryOp::ToFloat, distance);
        let (bent, least) = (g.unary(UnaryOp::Sin, single), g.float(0.5));
        g.binary(BinaryOp::Gt, bent, least)
    })
}

#[test]
fn eagers_backward_pass_gives_the_gradients() {
    check([
        ("d64 full", spec(70, 130, 64), true),
        ("d64 holes", masked(with_holes(), half(spec(150, 270, 64))), true),
        ("d128 causal", masked(causal(), bshd(ProblemSpec::plain(2, (4, 2), (65, 65), 128))), false),
        ("d20 window", masked(window(), half(spec(40, 100, 20))), false),
        ("d64/40 ragged", masked(ragged(60, 90), ProblemSpec { head_dim_v: 40, ..spec(60, 90, 64) }), false),
        ("d16 inexact", masked(inexact(), bshd(spec(80, 70, 16))), true),
        ("d256 soft cap", scored(soft_cap(2.0), masked(scattered(), spec(30, 40, 256))), false),
        ("d8 of one cell", spec(1, 1, 8), true),
    ]);
}

#[test]
fn eager_gives_captured_tensors_their_gradients_of_every_class() {
    let both = |q_len, kv_len, dim| bshd(ProblemSpec::plain(2, (2, 1), (q_len, kv_len), dim));
    let with = |gated, s: ProblemSpec| scored(learned(s.q_len, s.kv_len, gated), s);
    check([
        ("d64 adds", with(false, masked(with_holes(), both(80, 270, 64))), true),
        ("d32 gated", with(true, masked(scattered(), both(70, 100, 32))), false),
        ("d192 gated, f16", with(true, half(spec(50, 66, 192))), false),
    ]);
}

#[test]
fn eagers_backward_pass_compiles_for_every_architecture() {
    let Some(nvrtc) = nvrtc() else { return };
    for arch in NAMES {
        for (at, dim) in [64, 200].into_iter().enumerate() {
            let base = masked(causal(), spec(300, 300, dim));
            for (n, (name, spec)) in [
                ("plain", half(base.clone())),
                ("inexact", ProblemSpec { mask: Some(inexact()), ..base.clone() }),
                ("soft cap", scored(soft_cap(2.0), base.clone())),
                ("gated", scored(learned(300, 300, true), base)),
            ]
            .into_iter()
            .enumerate()
            {
                // architectures differ by the compiler alone
                if arch != "sm_90a" && !needs::is_one_of(3, n + at) {
                    continue;
                }
                let problem = Problem::new(spec).expect("a valid problem");
                let draft = EagerDraft::new(&problem, at == 0).expect("a draft");
                let code = draft.compile(arch, nvrtc, None).unwrap_or_else(|why| panic!("{arch} d{dim} {name}: {why}"));
                for entry in ENTRIES.iter().filter(|entry| name == "gated" || !entry.contains("capture")) {
                    let found = ptxas::resources(&code.log, entry);
                    // for these NVRTC 13.0 spills up to four words of addresses
                    let most = if ["sm_100", "sm_120"].contains(&arch) { 16 } else { 0 };
                    assert!(
                        found.registers > 0 && found.spill_bytes <= most,
                        "{arch} d{dim} {name} {entry}: {found:?}"
                    );
                }
            }
        }
    }
}
