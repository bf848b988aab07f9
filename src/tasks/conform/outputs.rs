//! A case's output and lse, computed by a worker, compared with PyTorch's float64 numbers.
//!
//! Invariant: NaN, poison or infinity instead of a number is a failure; only values that the backend wrote are
//! compared. Must not know masks.

use super::cases::{Arrays, Case};
use super::masks::Ours;
use super::{Measured, Runner, gradients};
use crate::backends::race::RaceOptions;
use crate::base::{BackendName, DType, Device, Diagnostic, HostTensor, Layout, Provenance};
use crate::ir::graph::Mod;
use crate::problem::result::{BackendReport, Outcome};
use crate::problem::{Problem, ProblemSpec};
use crate::worker::protocol::{InputSource, RunRequest};
use crate::worker::tensors;
use crate::worker::transport::Payload;
use std::sync::Arc;

/// For float32 outputs and lse on the CPU.
const CPU_ALLOWED: f64 = 1e-5;
/// For the lse on a GPU.
const GPU_LSE_ALLOWED: f64 = 1e-3;

/// The backend's result: Err is its refusal.
pub(super) type Computed = Result<(Measured, Ours), Diagnostic>;

/// Runs the case and compares; differences go into `wrong`. Errors: it cannot be run at all.
pub(super) fn check(
    case: &Case,
    mods: (Option<Mod>, Option<Mod>),
    arrays: &Arrays,
    runner: &mut Runner,
    wrong: &mut Vec<Diagnostic>,
) -> Result<Computed, Vec<Diagnostic>> {
    let problem = Problem::new(spec(case, mods, runner.device))?;
    let path = match problem.dtype {
        DType::F32 => arrays.float32_inputs().map_err(|d| vec![d])?,
        _ => &arrays.path,
    };
    let inputs = InputSource::File {
        path: path.to_string_lossy().into_owned(),
        names: case.input_names(),
        layout: Layout::Bhsd,
    };
    let mut asked = request(&problem, inputs, runner, true);
    asked.gradients = gradients::request(case, path);
    let (report, gradients_found, payloads) = runner.run(asked)?;
    let (kernel, error) = match report.outcome {
        Outcome::Done { kernel, error, .. } => (kernel.words, error),
        Outcome::Refused { why } => return Ok(Err(why)),
        Outcome::Failed { why } => return Err(vec![why]),
    };
    let (allowed, lse_allowed) = match runner.device {
        Device::Cpu => (CPU_ALLOWED, CPU_ALLOWED),
        Device::Cuda(_) => (error.allowed(), GPU_LSE_ALLOWED),
    };
    if let Some(fault) = error.fault() {
        wrong.push(Diagnostic::error("output-differs", format!("against {}: {fault}", Provenance::Reference)));
    }
    let mut measured =
        Measured { kernel, allowed, allowed_from: error.allowed_from().to_string(), ..Measured::default() };
    let mut ours = Vec::new();
    if case.grads.is_some() {
        let judged = gradients::judge(case, &problem, arrays, runner, gradients_found, &payloads, wrong);
        match judged.map_err(|d| vec![d])? {
            Ok(found) => measured.gradients = found,
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    for (field, bar) in [("out", allowed), ("lse", lse_allowed)] {
        let Some(got) = payload(&payloads, runner.backend, field).map_err(|d| vec![d])? else { continue };
        let name = format!("{}.{field}", case.name);
        let want = arrays.get(&name).map_err(|d| vec![d])?;
        let difference = compare(field, &got, &want, bar, wrong);
        match field {
            "out" => measured.out = Some(difference),
            _ => measured.lse = Some(difference),
        }
        ours.push((name, got));
    }
    if measured.out.is_none() {
        wrong.push(Diagnostic::error("output-missing", format!("{} returned no output", runner.backend)));
    }
    Ok(Ok((measured, ours)))
}

/// The case as a run request: float32 on the CPU, bfloat16 on a GPU.
pub(super) fn spec(case: &Case, (mask, score): (Option<Mod>, Option<Mod>), device: Device) -> ProblemSpec {
    ProblemSpec {
        dtype: if device == Device::Cpu { DType::F32 } else { DType::BF16 },
        scale: case.scale,
        mask: mask.map(Arc::new),
        score: score.map(Arc::new),
        ..ProblemSpec::plain(case.B, (case.H, case.Hkv), (case.q_len, case.kv_len), case.head_dim)
    }
}

/// One pass of the backend, compared with our own reference on every row on the way.
pub(super) fn request(problem: &Problem, inputs: InputSource, runner: &Runner, keep_outputs: bool) -> RunRequest {
    RunRequest {
        options: RaceOptions { rounds: 0, warmup: 0, reference_rows: u32::MAX, ..RaceOptions::USUAL },
        keep_outputs,
        python: runner.python.clone(),
        ..RunRequest::new(problem, inputs, vec![runner.backend], runner.device)
    }
}

pub(super) fn payload(
    payloads: &[Payload],
    backend: BackendName,
    field: &str,
) -> Result<Option<HostTensor>, Diagnostic> {
    let name = format!("{backend}.{field}");
    let Some((info, bytes)) = payloads.iter().find(|(info, _)| info.name == name) else { return Ok(None) };
    tensors::tensor(info.dtype, &info.shape, bytes).map(Some)
}

/// Largest absolute difference; elements beyond `bar`, or non-finite ones where PyTorch's are finite, are added to
/// `wrong`.
pub(super) fn compare(field: &str, got: &HostTensor, want: &HostTensor, bar: f64, wrong: &mut Vec<Diagnostic>) -> f64 {
    if got.shape() != want.shape() {
        let message = format!("{field} has shape {:?}, PyTorch's has {:?}", got.shape(), want.shape());
        wrong.push(Diagnostic::error("output-differs", message));
        return f64::INFINITY;
    }
    let (mut largest, mut broken, mut first_broken) = (0f64, 0usize, None);
    for flat in 0..got.numel() {
        let (g, w) = (got.float_at(flat), want.float_at(flat));
        if g.is_finite() && w.is_finite() {
            largest = largest.max((g - w).abs());
        } else if g != w && !(g.is_nan() && w.is_nan()) {
            broken += 1;
            first_broken.get_or_insert((flat, g, w));
        }
    }
    if let Some((flat, g, w)) = first_broken {
        let place = unravel(flat, got.shape());
        let message =
            format!("{broken} elements of {field} differ, such as {g} instead of PyTorch's {w}, first at {place:?}");
        wrong.push(Diagnostic::error("output-differs", message));
    }
    if largest > bar {
        let message = format!("{field} differs from PyTorch's by {largest:.3e}; the limit is {bar:.3e}");
        wrong.push(Diagnostic::error("output-differs", message));
    }
    largest
}

fn unravel(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut place: Vec<usize> = shape
        .iter()
        .rev()
        .map(|n| {
            let at = flat % n;
            flat /= n;
            at
        })
        .collect();
    place.reverse();
    place
}

/// The report of the runner's own backend.
pub(super) fn own(reports: Vec<BackendReport>, backend: BackendName) -> Result<BackendReport, Vec<Diagnostic>> {
    reports.into_iter().find(|r| r.backend == backend).ok_or_else(|| {
        vec![Diagnostic::error("protocol-answer", format!("the worker returned no report of {backend}"))]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::tensor::Data;

    fn check(got: [f32; 4], want: [f32; 4]) -> (f64, Vec<String>) {
        let tensor = |v: [f32; 4]| HostTensor::new([1, 2, 2], Data::F32(v.to_vec())).unwrap();
        let mut wrong = Vec::new();
        let largest = compare("lse", &tensor(got), &tensor(want), 1e-3, &mut wrong);
        (largest, wrong.into_iter().map(|d| d.message).collect())
    }

    #[test]
    fn numbers_are_compared_and_poison_is_never_right() {
        let inf = f32::NEG_INFINITY;
        assert_eq!(check([1.0, inf, 0.0, 2.0], [1.0, inf, 0.0, 2.0]), (0.0, vec![]));
        let (largest, wrong) = check([1.5, f32::NAN, 0.0, 2.0], [1.0, 3.0, 0.0, 2.0]);
        assert_eq!(largest, 0.5);
        assert_eq!(wrong[0], "1 elements of lse differ, such as NaN instead of PyTorch's 3, first at [0, 0, 1]");
        assert_eq!(wrong[1], "lse differs from PyTorch's by 5.000e-1; the limit is 1.000e-3");
    }
}
