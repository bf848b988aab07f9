//! Random problems and presets with learned tensors, forward and backward, on the machine of `backward_tests.rs`.

use super::backward_tests::on_the_machine;
use crate::base::Device;
use crate::document::compile::{BuiltIn, compile};
use crate::document::{from_document, library};
use crate::ir::passes::derive::derive;
use crate::problem::random::{describe, problem};
use crate::problem::{Problem, ProblemSpec};

/// Problems of the kind that GPUs get, small enough for the machine that stands in for one.
#[test]
fn random_gradients_on_the_emulated_machine_are_right() {
    let small = |s: &ProblemSpec| s.batch * s.heads * s.q_len * s.kv_len * s.head_dim < 20_000_000;
    // 5021 has two rows with few roundings, of which emulation finds mild ones
    let found = std::iter::once(5021).chain(1..).filter_map(|seed| {
        let spec = problem(seed, Device::Cuda(0));
        let (what, problem) = (describe(seed, &spec), small(&spec).then(|| Problem::new(spec).expect("valid"))?);
        let is_smooth = problem.score.as_deref().is_none_or(|score| derive(score, |_| true).is_ok());
        is_smooth.then_some((seed, what, problem))
    });
    for ((seed, what, problem), arch) in found.take(4).zip(["sm_90a", "sm_80"].into_iter().cycle()) {
        let Some(found) = on_the_machine(problem, arch, seed) else { return };
        println!("{what} on {arch}: {}", found.unwrap_or_else(|why| panic!("{what}: {why}")));
    }
}

/// Presets with several learned tensors, with fewer heads and tokens: their reads are those of the whole.
#[test]
fn presets_with_learned_tensors_are_right_on_the_emulated_machine() {
    for (name, tokens, arch) in
        [("graphormer", 256, "sm_90a"), ("swin_window", 64, "sm_90a"), ("deepseek_mla_rope", 80, "sm_80")]
    {
        let preset = library::presets().iter().find(|p| p.name == name).expect("a preset");
        let document = preset.document().expect("a preset loads");
        let whole = from_document(&document, &compile(&document, &BuiltIn)).expect("it is valid");
        let small =
            ProblemSpec { batch: 1, heads: 2, kv_heads: 2, q_len: tokens, kv_len: tokens, ..whole.spec().clone() };
        let Some(found) = on_the_machine(Problem::new(small).expect("valid"), arch, 3) else { return };
        println!("{name} on {arch}: {}", found.unwrap_or_else(|why| panic!("{name}: {why}")));
    }
}
