//! `maskloom bench edits`: the user's waiting time from an edited mod to its first output on the device.
//!
//! Invariant: fresh rows were compiled and the others were not, or the command fails. Must not know how kernels are
//! built.

use super::Args;
use crate::base::{BackendName, Device};
use crate::cli::out::{self, Failure};
use crate::cli::work::Worker;
use crate::cli::{race, workloads};
use crate::document::compile::{BuiltIn, compile};
use crate::document::from_document;
use crate::document::model::*;
use crate::problem::result::Outcome;
use crate::tasks::plan;
use serde_json::{Value, json};
use std::time::{Instant, SystemTime};

/// Steps of an edited score mod; `{0}` is a slider's constant.
const STEPS: [&str; 8] = [
    "score = score + {0} * (kv_idx - q_idx)",
    "score = 30.0 * torch.tanh(score / 30.0)",
    "score = torch.where(kv_idx < q_idx, score, score - {0})",
    "score = score * torch.exp(-{0} * (q_idx - kv_idx).abs())",
    "score = score + {0} * torch.cos(kv_idx * 0.01)",
    "score = torch.clamp(score, -40.0, 40.0 + {0})",
    "score = score - {0} * ((q_idx // 64) == (kv_idx // 64))",
    "score = score + torch.log2(1.0 + {0} * (q_idx - kv_idx).abs())",
];
/// Steps per edit: 8^5 texts, of which a run of the benchmark picks some at random.
const LENGTH: u32 = 5;
const EDITS: u64 = 20;

/// The text of one edit: a window and a score mod.
fn text(edit: u64, slider: f64) -> String {
    let step = |at: u32| STEPS[(edit / 8u64.pow(at) % 8) as usize].replace("{0}", &format!("{slider:?}"));
    let steps: String = (0..LENGTH).map(|at| format!("    {}\n", step(at))).collect();
    format!("import torch\n\ndef score_mod(score, b, h, q_idx, kv_idx):\n{steps}    return score\n")
}

fn document(edit: u64, slider: f64) -> Document {
    let window =
        format!("def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx - kv_idx).abs() < {}\n", 256 + edit % 4096);
    let code = |source: String, entry: &str| TextCode { source, entry: entry.into(), ..TextCode::default() };
    let layer = Layer {
        id: 1,
        name: "window".into(),
        enabled: true,
        combine: Combine::And,
        heads: None,
        content: MaskContent::Text(code(window, "mask_mod")),
    };
    let score = ScoreLayer {
        id: 2,
        name: "edited".into(),
        enabled: true,
        content: ScoreContent::Text(code(text(edit, slider), "score_mod")),
    };
    let settings = Settings { backends: vec![BackendName::Flex], ..Settings::new(16, 128) };
    let axes = Axes { q: Axis::tokens(8192), kv: None };
    Document { layers: vec![layer], scores: vec![score], ..Document::new(format!("edit {edit}"), axes, settings) }
}

/// Milliseconds from the text.
struct Waited {
    /// Until the first output.
    first: f64,
    /// Until the first output of the timed kernel.
    settled: f64,
    /// The compiler's share of it.
    compiler: f64,
    /// Whether that kernel existed already.
    cached: bool,
}

/// Runs a document for its first output.
fn first_output(worker: &mut Worker, device: Device, document: &Document) -> Result<Waited, Failure> {
    let began = Instant::now();
    let compiled = compile(document, &BuiltIn);
    let mut request = plan::run_request(&from_document(document, &compiled)?, &document.settings, device);
    let traced = began.elapsed().as_secs_f64() * 1e3;
    (request.options.rounds, request.options.reference_rows) = (0, 16);
    let (report, _) = worker.run(request)?;
    let done = report.backends.iter().find_map(|r| match &r.outcome {
        Outcome::Done { ready_ms: Some(ready), settled_ms, artefact: Some(artefact), .. }
            if race::succeeded(&report) =>
        {
            Some(Waited {
                first: traced + ready,
                settled: traced + settled_ms.unwrap_or(*ready),
                compiler: artefact.compile_ms,
                cached: artefact.cached,
            })
        }
        _ => None,
    });
    done.ok_or_else(|| {
        out::text(&race::render(&report)).ok();
        Failure::Reported(Vec::new())
    })
}

/// Fresh edits, the same again, and a moved slider; whether only the fresh ones were compiled.
pub(super) fn rows(args: &Args) -> Result<(Vec<Value>, bool), Failure> {
    let mut worker = Worker::connect(&args.at.target)?;
    let device = match args.at.device {
        Some(device) => device,
        None => workloads::gpu(&worker)?,
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64);
    let edit = |at: u64| now.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15)) % 8u64.pow(LENGTH);
    // opens the device and makes the inputs
    first_output(&mut worker, device, &document(edit(EDITS), 0.5))?;
    let mut right = true;
    let mut samples: [Vec<f64>; 5] = Default::default();
    for at in 0..EDITS {
        let fresh = first_output(&mut worker, device, &document(edit(at), 0.25))?;
        let again = first_output(&mut worker, device, &document(edit(at), 0.25))?;
        let moved = first_output(&mut worker, device, &document(edit(at), 0.125))?;
        right &= !fresh.cached && again.cached && moved.cached;
        [fresh.first, fresh.settled, fresh.compiler, again.first, moved.first]
            .into_iter()
            .zip(&mut samples)
            .for_each(|(ms, kind)| kind.push(ms));
    }
    let names = [
        "edited mod to first output",
        "edited mod to the output of its own kernel",
        "compiler's share of it",
        "the same mod again",
        "a moved slider",
    ];
    let row = |(name, samples)| super::row_with_late(name, samples, json!({}));
    Ok((names.into_iter().zip(samples).map(row).collect(), right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_mods_and_differ_in_structure() {
        for edit in [0, 1, 8, 4095, 32_767, 12_345] {
            let document = document(edit, 0.5);
            let compiled = compile(&document, &BuiltIn);
            let problem = from_document(&document, &compiled);
            assert!(problem.is_ok_and(|p| p.mask.is_some() && p.score.is_some()), "{edit}");
        }
        assert_ne!(text(3, 0.5), text(4, 0.5));
    }
}
