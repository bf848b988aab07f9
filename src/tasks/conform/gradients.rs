//! A case's gradients, computed by a worker, compared with PyTorch's; and random problems' compared with the float64
//! reference.
//!
//! Invariant: every listed gradient of a case is compared, or the case fails or is refused in words. Must not know
//! masks.

use super::cases::{Arrays, Case};
use super::{CaseReport, Runner, outputs};
use crate::base::{BackendName, Device, Diagnostic, HostTensor, Layout, Provenance};
use crate::problem::Problem;
use crate::problem::result::{GradientError, GradientOutcome, GradientReport};
use crate::worker::protocol::{GradientRequest, SeedSource};
use crate::worker::transport::Payload;
use std::path::Path;

/// For float32 gradients, relative to the array's largest value.
const CPU_ALLOWED: f64 = 1e-4;

/// A case's request; None if it lists no gradients.
pub(super) fn request(case: &Case, path: &Path) -> Option<GradientRequest> {
    case.grads.as_ref()?;
    let seeds = SeedSource::File {
        path: path.to_string_lossy().into_owned(),
        d_out: format!("{}.do", case.name),
        d_lse: case.dlse.then(|| format!("{}.dlse", case.name)),
        layout: Layout::Bhsd,
    };
    Some(GradientRequest { seeds, rounds: 0, keep: true, deterministic: false })
}

/// A random problem's request: the backward pass if the backend has one here and PyTorch differentiates the mod.
pub(super) fn random(seed: u64, problem: &Problem, backend: BackendName, device: Device) -> Option<GradientRequest> {
    let ours = match device {
        Device::Cpu => !backend.is_torch(),
        Device::Cuda(_) => backend == BackendName::Flex,
    };
    let smooth =
        problem.score.as_deref().is_none_or(|score| crate::ir::passes::derive::derive(score, |_| true).is_ok());
    (ours && smooth).then_some(GradientRequest {
        seeds: SeedSource::Random { seed },
        rounds: 0,
        keep: false,
        deterministic: false,
    })
}

/// The backend's own errors against the float64 reference.
pub(super) fn judge_own(found: &GradientReport, report: &mut CaseReport) {
    match &found.outcome {
        GradientOutcome::Done { errors, .. } => {
            for words in errors.iter().filter_map(GradientError::words) {
                report
                    .fail(Diagnostic::error("gradient-differs", format!("against {}: {words}", Provenance::Reference)));
            }
        }
        // the output is judged all the same; the reason stands below the table
        GradientOutcome::Refused { why } => report.why.push(why.clone()),
        GradientOutcome::Failed { why } => report.fail(why.clone()),
    }
}

/// The error of each gradient over its largest value, of those that were computed.
pub(super) fn measured(found: &GradientReport) -> Vec<(String, f64)> {
    let GradientOutcome::Done { errors, .. } = &found.outcome else { return Vec::new() };
    let relative = |e: &GradientError| if e.largest > 0.0 { e.max_abs / e.largest } else { e.max_abs };
    errors.iter().map(|e| (e.name.clone(), relative(e))).collect()
}

/// Compares every gradient of a case with PyTorch's; differences go into `wrong`. The inner error is a refusal.
pub(super) fn judge(
    case: &Case,
    problem: &Problem,
    arrays: &Arrays,
    runner: &Runner,
    found: Option<GradientReport>,
    payloads: &[Payload],
    wrong: &mut Vec<Diagnostic>,
) -> Result<Result<Vec<(String, f64)>, Diagnostic>, Diagnostic> {
    let mut own = Vec::new();
    match found.map(|f| f.outcome) {
        Some(GradientOutcome::Done { errors, .. }) => {
            for words in errors.iter().filter_map(GradientError::words) {
                let message = format!("against {}: {words}", Provenance::Reference);
                wrong.push(Diagnostic::error("gradient-differs", message));
            }
            own = errors;
        }
        Some(GradientOutcome::Refused { why }) => return Ok(Err(why)),
        Some(GradientOutcome::Failed { why }) => return Err(why),
        None => wrong.push(Diagnostic::error("gradient-missing", "the worker returned no gradients")),
    }
    let mut names: Vec<(String, String)> = ["dq", "dk", "dv"].map(|n| (n.to_string(), n.to_string())).into();
    let mut taken = Vec::new();
    for name in case.grads.iter().flatten() {
        let tensor = arrays.get(&format!("{}.cap.{name}", case.name))?;
        match read_as(problem, name, &tensor, &taken) {
            Some(read) => {
                names.push((format!("dcap.{name}"), format!("dcap.{read}")));
                taken.push(read);
            }
            None => wrong.push(not_read(name, &tensor)),
        }
    }
    let mut measured = Vec::new();
    for (theirs, ours) in names {
        let want = arrays.get(&format!("{}.{theirs}", case.name))?;
        let Some(got) = outputs::payload(payloads, runner.backend, &ours)? else {
            wrong.push(Diagnostic::error("gradient-missing", format!("{} returned no {theirs}", runner.backend)));
            continue;
        };
        let largest = (0..want.numel()).map(|i| want.float_at(i).abs()).filter(|x| x.is_finite()).fold(0.0, f64::max);
        let bar = match runner.device {
            // what vanishes is the sum of terms that do not: our own bar knows their sizes
            Device::Cpu => match own.iter().find(|e| e.name == ours && theirs.starts_with("dcap.")) {
                Some(error) => error.allowed.max(CPU_ALLOWED * largest),
                None => CPU_ALLOWED * largest,
            },
            Device::Cuda(_) => own.iter().find(|e| e.name == ours).map_or(CPU_ALLOWED * largest, |e| e.widest),
        };
        let difference = outputs::compare(&theirs, &got, &want, bar.max(1e-30), wrong);
        measured.push((theirs, if largest > 0.0 { difference / largest } else { difference }));
    }
    Ok(Ok(measured))
}

/// The reported name of a tensor's gradient: its own, or the name that the score mod reads. Two may be equal.
fn read_as(problem: &Problem, name: &str, tensor: &HostTensor, taken: &[String]) -> Option<String> {
    let score = problem.score.as_deref()?;
    let reported = crate::backends::learning(score).ok()?;
    let alike = || reported.iter().filter(|(other, t)| t == tensor && !taken.contains(other));
    alike().find(|(other, _)| other == name).or_else(|| alike().next()).map(|(other, _)| other.clone())
}

fn not_read(name: &str, tensor: &HostTensor) -> Diagnostic {
    if !tensor.dtype().is_float() {
        let message = format!("`{name}` holds {}, which has no gradient", tensor.dtype());
        return Diagnostic::error("gradient-of-integers", message)
            .hint(format!("make `{name}` a float tensor, or remove the name from the case's `grads`"));
    }
    let message =
        format!("the score_mod passes no gradient to `{name}`: it does not read it, or reads a detached copy");
    Diagnostic::error("gradient-of-computed", message)
        .hint(format!("read `{name}[...]` inside the mod, or remove the name from the case's `grads`"))
}
