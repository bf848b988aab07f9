//! Whether a backend's gradients of one design are right, mainly those of the user's own PyTorch, at the user's
//! lengths, dtype and strides.
//!
//! Invariant: every passed gradient was compared with float64; a wrong one is named. Must not know the command line.

use super::{Options, Runner, outputs};
use crate::backends::race::RaceOptions;
use crate::base::{BackendName, Diagnostic};
use crate::problem::Problem;
use crate::problem::result::{BackendReport, GradientError, GradientOutcome, GradientReport, Outcome};
use crate::worker::client;
use crate::worker::faults::{self, Known};
use crate::worker::protocol::{GradientRequest, InputSource, Reply, RequestBody, SeedSource};
use serde::Serialize;

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stack {
    /// The backend of the gradients.
    pub backend: BackendName,
    /// Where.
    pub device: String,
    /// PyTorch's version, if it is PyTorch.
    pub torch: Option<String>,
    /// A description of the kernel; empty if none ran.
    pub kernel: String,
    /// Every gradient's error against the float64 reference.
    pub gradients: Vec<GradientError>,
    /// The fault, or the reason why nothing ran.
    pub wrong: Vec<Diagnostic>,
    /// Known faults of PyTorch that look like it.
    pub known: Vec<Known>,
}

impl Stack {
    /// Whether all gradients were compared and are right.
    pub fn passed(&self) -> bool {
        self.wrong.is_empty() && !self.gradients.is_empty()
    }

    fn of(
        problem: &Problem,
        runner: &Runner,
        torch: Option<String>,
        own: BackendReport,
        back: Option<GradientReport>,
    ) -> Stack {
        let mut made = Stack {
            backend: runner.backend,
            device: runner.device_name.clone(),
            torch,
            kernel: String::new(),
            gradients: Vec::new(),
            wrong: Vec::new(),
            known: Vec::new(),
        };
        match own.outcome {
            Outcome::Done { error, .. } => {
                made.wrong.extend(
                    error.fault().map(|fault| Diagnostic::error("output-differs", format!("forward: {fault}"))),
                );
            }
            Outcome::Refused { why } | Outcome::Failed { why } => made.wrong.push(why),
        }
        match back.map(|b| b.outcome) {
            Some(GradientOutcome::Done { kernel, errors, .. }) => {
                let words = errors.iter().filter_map(GradientError::words);
                made.wrong.extend(words.map(|words| Diagnostic::error("gradient-differs", words)));
                (made.kernel, made.gradients) = (kernel.words, errors);
            }
            Some(GradientOutcome::Refused { why } | GradientOutcome::Failed { why }) => {
                // one reason is enough where neither pass can be run
                if !made.wrong.contains(&why) {
                    made.wrong.push(why);
                }
            }
            None => made.wrong.push(Diagnostic::error("gradient-missing", "the worker returned no gradients")),
        }
        if runner.backend.is_torch() && !made.wrong.is_empty() {
            let seen = faults::Seen {
                problem,
                on_gpu: runner.device != crate::base::Device::Cpu,
                torch: made.torch.as_deref(),
                gradients: &made.gradients,
                wrong: &made.wrong,
            };
            made.known = faults::known(&seen);
        }
        made
    }
}

/// Runs a problem forward and backward on random inputs, and compares every gradient. Errors: no worker starts, or the design has
/// no derivative.
pub fn check(problem: &Problem, seed: u64, options: &Options) -> Result<Stack, Vec<Diagnostic>> {
    let mut runner = Runner::start(options)?;
    let mut asked = outputs::request(problem, InputSource::Random { seed }, &runner, false);
    asked.options = RaceOptions { rounds: 0, warmup: 0, ..RaceOptions::USUAL };
    asked.gradients =
        Some(GradientRequest { seeds: SeedSource::Random { seed }, rounds: 0, keep: false, deterministic: false });
    match runner.worker.ask(RequestBody::Run(Box::new(asked)), &mut |_| {})?.reply {
        Reply::Run(report) => {
            let torch = runner.backend.is_torch().then(|| report.environment.get("torch").cloned()).flatten();
            let back = report.gradients.into_iter().find(|r| r.backend == runner.backend);
            let own = outputs::own(report.backends, runner.backend)?;
            Ok(Stack::of(problem, &runner, torch, own, back))
        }
        other => Err(vec![client::unexpected(&other)]),
    }
}
