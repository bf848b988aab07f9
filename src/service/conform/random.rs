//! Random problems for a backend, compared with the float64 reference.
//!
//! Invariant: a seed names one problem on every machine: problem n of seed S is problem 0 of seed S + n, so that a failure
//! is reproduced by one line. Must not know reference cases.

use super::{CaseReport, Measured, Runner, Verdict};
use super::{gradients, outputs};
use crate::base::{BackendName, BlockSize, DType, Device, Diagnostic, Layout};
use crate::ir::random::{self, Rng};
use crate::problem::result::{Outcome, OutputName};
use crate::problem::{Problem, ProblemSpec};
use crate::service::protocol::InputSource;
use std::sync::Arc;
use std::time::Instant;

/// Runs problem `seed` and judges it.
pub fn check(seed: u64, runner: &mut Runner) -> CaseReport {
    let start = Instant::now();
    let spec = problem(seed, runner.device);
    // PyTorch has that output in flex_attention; sdpa has none
    let owes_max_scores = spec.max_scores && matches!(runner.backend, BackendName::Flex | BackendName::Eager);
    let mut report = CaseReport::new(describe(seed, &spec));
    let ran = Problem::new(spec).and_then(|problem| {
        let mut request = outputs::request(&problem, InputSource::Random { seed }, runner, false);
        request.gradients = gradients::random(seed, &problem, runner.backend, runner.device);
        runner.run(request)
    });
    report.ms = start.elapsed().as_secs_f64() * 1e3;
    let ran = ran.map(|(own, found, _)| {
        found.iter().for_each(|found| gradients::judge_own(found, &mut report));
        (own.outcome, found.iter().flat_map(gradients::measured).collect())
    });
    match ran {
        Ok((Outcome::Done { kernel, error, .. }, gradients)) => {
            if let Some(fault) = error.fault() {
                report.fail(Diagnostic::error("output-differs", fault));
            }
            if owes_max_scores && error.output(&OutputName::MaxScores).is_none() {
                report.fail(Diagnostic::error("output-missing", format!("{} returned no max_scores", runner.backend)));
            }
            report.measured = Some(Measured {
                kernel,
                out: Some(error.max_abs()),
                lse: error.max_abs_of(&OutputName::Lse),
                max_scores: error.max_abs_of(&OutputName::MaxScores),
                allowed: error.allowed(),
                allowed_from: error.allowed_from().to_string(),
                gradients,
            });
        }
        Ok((Outcome::Refused { why }, _)) => {
            report.verdict = Verdict::Refused;
            report.why.push(why);
        }
        Ok((Outcome::Failed { why }, _)) => report.fail(why),
        Err(why) => why.into_iter().for_each(|d| report.fail(d)),
    }
    if report.verdict == Verdict::Fail {
        let again = format!(
            "maskloom conform --random 1 --seed {seed} --backend {} --device {}",
            runner.backend, runner.device
        );
        report.why.push(Diagnostic::note("reproduce", again));
    }
    report
}

fn describe(seed: u64, s: &ProblemSpec) -> String {
    let mods = match (&s.mask, &s.score) {
        (Some(_), Some(_)) => "mask+score",
        (Some(_), None) => "mask",
        (None, Some(_)) => "score",
        (None, None) => "plain",
    };
    let layout = if s.layout == Layout::Bhsd { "bhsd" } else { "bshd" };
    let aux = if s.max_scores { " max_scores" } else { "" };
    format!(
        "{seed}: {}x{}/{}x{}x{}x{}/{} {} {layout} {mods}{aux}",
        s.batch, s.heads, s.kv_heads, s.q_len, s.kv_len, s.head_dim, s.head_dim_v, s.dtype
    )
}

/// Problem `seed`. A GPU takes no float32.
fn problem(seed: u64, device: Device) -> ProblemSpec {
    let mut rng = Rng::new(seed);
    let kv_heads = 1 + rng.below(3);
    let heads = kv_heads * *rng.pick(&[1, 1, 2, 4]);
    let batch = 1 + rng.below(2);
    let (q_len, kv_len) = lengths(&mut rng);
    let head_dim = dim(&mut rng);
    let head_dim_v = if rng.chance(15) { dim(&mut rng) } else { head_dim };
    let dtype = match device {
        Device::Cpu => *rng.pick(&[DType::F32, DType::F32, DType::BF16, DType::F16]),
        Device::Cuda(_) => *rng.pick(&[DType::BF16, DType::BF16, DType::F16]),
    };
    let options = random::Options { batch, heads, q_len, kv_len, depth: 2 + rng.below(3) as u32, portable: true };
    let spec = ProblemSpec {
        batch,
        heads,
        kv_heads,
        q_len,
        kv_len,
        head_dim,
        head_dim_v,
        dtype,
        layout: *rng.pick(&[Layout::Bhsd, Layout::Bshd]),
        scale: if rng.chance(20) { Some(0.02 + 0.3 * rng.unit()) } else { None },
        block_size: *rng.pick(&[BlockSize::DEFAULT, BlockSize::square(64), BlockSize { q: 256, kv: 128 }]),
        mask: rng.chance(85).then(|| Arc::new(random::mask(seed, &options))),
        score: rng.chance(40).then(|| Arc::new(random::score(seed, &options))),
        // a GPU uses other kernels if they are requested, and the kernels without them must be tested too
        max_scores: device == Device::Cpu || rng.chance(50),
    };
    steep(spec, &mut rng)
}

/// Scores so far apart, now and then, that a row's largest rises by many powers of two from one tile of keys to the next.
fn steep(spec: ProblemSpec, rng: &mut Rng) -> ProblemSpec {
    let deviation = *rng.pick(&[4.0, 12.0, 40.0]);
    let wanted = rng.chance(30) && spec.score.is_none();
    let scale = if wanted { Some(deviation / (spec.head_dim as f64).sqrt()) } else { spec.scale };
    ProblemSpec { scale, ..spec }
}

/// Edges of tiles, single rows as in decoding, and anything between.
fn lengths(rng: &mut Rng) -> (usize, usize) {
    let mut one = || match rng.below(4) {
        0 => *rng.pick(&[1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257]),
        _ => 1 + rng.below(700),
    };
    let (q_len, kv_len) = (one(), one());
    if rng.chance(15) {
        // few rows over many keys
        return (*rng.pick(&[1, 1, 1, 2, 4, 7, 16, 33, 64]), 256 + rng.below(3000));
    }
    if rng.chance(40) { (q_len, q_len) } else { (q_len, kv_len) }
}

/// Sizes that models have, and any other.
fn dim(rng: &mut Rng) -> usize {
    if rng.chance(80) { *rng.pick(&[16, 32, 40, 64, 72, 80, 96, 128, 128, 192, 256]) } else { 1 + rng.below(256) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::cuda::launch::backward_tests::on_the_machine;
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::from_document;
    use crate::document::library;

    /// Problems of the kind that GPUs get, small enough for the machine that stands in for one.
    #[test]
    fn random_gradients_on_the_emulated_machine_are_right() {
        let small = |s: &ProblemSpec| s.batch * s.heads * s.q_len * s.kv_len * s.head_dim < 20_000_000;
        // 5021 has two rows with few roundings, of which emulation finds mild ones
        let found = std::iter::once(5021).chain(1..).filter_map(|seed| {
            let spec = problem(seed, Device::Cuda(0));
            let (what, problem) = (describe(seed, &spec), small(&spec).then(|| Problem::new(spec).expect("valid"))?);
            gradients::random(seed, &problem, BackendName::Flex, Device::Cuda(0)).map(|_| (seed, what, problem))
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

    #[test]
    fn every_seed_gives_one_valid_problem() {
        for seed in 0..60 {
            for device in [Device::Cpu, Device::Cuda(0)] {
                let spec = problem(seed, device);
                assert_eq!(spec, problem(seed, device));
                assert!(device == Device::Cpu || spec.dtype != DType::F32);
                assert!(device != Device::Cpu || spec.max_scores);
                Problem::new(spec).expect("valid");
            }
        }
        let asking = (0..60).filter(|seed| problem(*seed, Device::Cuda(0)).max_scores).count();
        assert!((15..45).contains(&asking), "{asking}");
    }
}
