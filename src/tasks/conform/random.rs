//! Random problems for a backend, compared with the float64 reference.
//!
//! Invariant: a seed names one problem on every machine: problem n of seed S is problem 0 of seed S + n, so that a failure
//! is reproduced by one line. Must not know reference cases.

use super::{CaseReport, Measured, Runner, Verdict};
use super::{gradients, outputs};
use crate::base::{BackendName, Diagnostic};
use crate::problem::Problem;
use crate::problem::random::{describe, problem};
use crate::problem::result::{Outcome, OutputName};
use crate::worker::protocol::InputSource;
use std::time::Instant;

/// Runs problem `seed` and judges it.
pub(super) fn check(seed: u64, runner: &mut Runner) -> CaseReport {
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
                kernel: kernel.words,
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
