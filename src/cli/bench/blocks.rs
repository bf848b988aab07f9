//! `maskloom bench blocks`: the time of a block mask from its traced graph, and the time of counting its cells.
//!
//! Invariant: the time covers full and partial lists and the tables over captured tensors; nothing is reused between
//! runs. Must not know how blocks are found.

use super::{Args, examples_at, measure_after, row};
use crate::analysis::block_mask::{BlockKind, BlockMask, MaskShape};
use crate::base::{BlockSize, Control, Diagnostic, Lengths};
use crate::cli::out::Failure;
use crate::ir::graph::Mod;
use serde_json::{Value, json};

/// Lengths with limits.
const LENGTHS: [usize; 2] = [131_072, 1 << 20];

/// Milliseconds for the lists at each of `LENGTHS`, on two cores.
fn bars(name: &str) -> [f64; 2] {
    match name {
        "causal" | "sliding_window" | "prefix_lm" => [1.0, 10.0],
        "documents" => [3.0, 30.0],
        _ => [50.0, 800.0],
    }
}

/// Milliseconds that PyTorch's compiled `create_block_mask` was recorded to take on an H200 for the same lists.
fn torch_on_h200(name: &str, tokens: usize) -> Option<f64> {
    match (name, tokens) {
        ("causal", 131_072) => Some(8.1),
        ("documents", 131_072) => Some(9.6),
        _ => None,
    }
}

/// The rows: the lists of every mask, then its kept cells.
pub(super) fn rows(args: &Args) -> Result<Vec<Value>, Failure> {
    let mut rows = Vec::new();
    for (lengths, name, mask) in examples_at(args, &LENGTHS)? {
        let build = || build(&mask, lengths);
        // the peak of a first build, before any table exists
        let before = memory::start();
        let found = build()?;
        let peak = memory::peak_above(before);
        let stored = found.memory();
        let (full, partial) = listed(&found);
        drop(found);
        let lists = measure_after(args.budget, || (), |()| build().is_ok());
        let tokens = lengths.q_len;
        let at = LENGTHS.iter().position(|n| *n == tokens);
        let bar = at.map(|at| bars(name)[at]);
        let torch = torch_on_h200(name, tokens).map(|torch| torch / lists.median_ms);
        let common = json!({ "tokens": tokens, "block_size": 128 });
        let with = |more: Value| merged(&common, more);
        rows.push(row(
            name,
            &lists,
            with(json!({
                "work": "lists", "full": full, "partial": partial, "kept_cells": Value::Null, "stored_bytes": stored,
                "peak_mib": peak, "bar_ms": bar, "holds": bar.map(|bar| lists.median_ms <= bar),
                "times_torch_h200": torch,
            })),
        ));
        let counts = measure_after(args.budget, build, |found| found.map(|f| f.stats()).is_ok());
        let kept = build()?.stats().kept_cells;
        rows.push(row(
            name,
            &counts,
            with(json!({
                "work": "kept cells", "full": Value::Null, "partial": Value::Null, "kept_cells": kept as u64,
                "stored_bytes": Value::Null, "peak_mib": Value::Null, "bar_ms": Value::Null, "holds": Value::Null,
                "times_torch_h200": Value::Null,
            })),
        ));
    }
    rows.extend(super::edits::rows(args, &LENGTHS)?);
    Ok(rows)
}

fn build(mask: &Mod, lengths: Lengths) -> Result<BlockMask, Diagnostic> {
    BlockMask::build(Some(mask), MaskShape::broadcast(lengths), BlockSize::DEFAULT, &Control::new())
}

fn merged(a: &Value, b: Value) -> Value {
    let mut out = a.clone();
    if let (Some(out), Value::Object(more)) = (out.as_object_mut(), b) {
        out.extend(more);
    }
    out
}

fn listed(mask: &BlockMask) -> (usize, usize) {
    let runs = (0..mask.grid().0).flat_map(|row| mask.runs(0, 0, row).collect::<Vec<_>>());
    runs.fold((0, 0), |(full, partial), run| match run.kind {
        BlockKind::Full => (full + run.end - run.start, partial),
        BlockKind::Partial => (full, partial + run.end - run.start),
    })
}

/// The largest resident memory of this process, if the system reports it.
mod memory {
    use std::fs;

    fn field(name: &str) -> Option<f64> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|l| l.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim().trim_end_matches(" kB").trim().parse::<f64>().ok()? / 1024.0)
    }

    /// Resets the peak. Returns the present size in MiB.
    pub(super) fn start() -> Option<f64> {
        fs::write("/proc/self/clear_refs", "5").ok()?;
        field("VmRSS")
    }

    /// The growth of the peak in MiB, to tenths, which is the precision of the system's count.
    pub(super) fn peak_above(before: Option<f64>) -> Option<f64> {
        let peak = field("VmHWM")? - before?;
        Some((peak.max(0.0) * 10.0).round() / 10.0)
    }
}
