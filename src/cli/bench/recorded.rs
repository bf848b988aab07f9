//! `maskloom bench recorded --from F.json`: a committed run as the table that the documentation shows.
//!
//! Invariant: every figure comes from the file's samples; nothing is typed. Must not know what was measured.

use super::super::out::Failure;
use crate::backends::stats;
use crate::base::{BackendName, Diagnostic};
use crate::problem::result::Outcome;
use crate::service::recorded::Collection;
use serde::Deserialize;
use std::fmt::Write as _;
use std::path::Path;

/// A committed run: where it ran, and every sample.
#[derive(Deserialize)]
struct Run {
    environment: Environment,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Environment {
    device: String,
    date: String,
    dtype: String,
    what: String,
}

#[derive(Deserialize)]
struct Row {
    workload: String,
    batch: usize,
    heads: usize,
    kv_heads: usize,
    seq: usize,
    head_dim: usize,
    kernel: String,
    tflops: f64,
    samples_ms: Vec<f64>,
}

impl Row {
    fn shape(&self) -> String {
        let grouped = if self.kv_heads == self.heads { String::new() } else { format!(" kv heads {}", self.kv_heads) };
        format!("{} B{} H{}{grouped} S{} D{}", self.workload, self.batch, self.heads, self.seq, self.head_dim)
    }
}

/// The file's table. Errors: the file cannot be read or is no run.
pub(super) fn table(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path).map_err(|why| {
        Diagnostic::error("cannot-read", format!("{}: {why}", path.display())).hint("give a run of docs/measurements")
    })?;
    if let Ok(collection) = serde_json::from_str::<Collection>(&text) {
        return Ok(of_presets(&collection));
    }
    Ok(markdown(&text).map_err(|why| {
        Diagnostic::error("no-run", format!("{} is no recorded run: {why}", path.display()))
            .hint("a run has an environment and rows with samples_ms, as the files in docs/measurements")
    })?)
}

/// The presets' runs on one card: flex beside what else ran there.
fn of_presets(collection: &Collection) -> String {
    let first = collection.runs.values().next();
    let said = |key: &str| first.and_then(|run| run.report.environment.get(key)).map_or("unknown", String::as_str);
    let (rounds, card) = (first.map_or(0, |run| run.conditions.options.rounds), said("gpu"));
    let mut out = format!("Forward pass of the presets; {card}, {}, median of {rounds} rounds.\n\n", said("date"));
    out.push_str("| preset | cells kept | flex ms | spread | TFLOP/s | sdpa ms | flash_attention_2 ms | eager ms |\n");
    out.push_str("|---|---|---|---|---|---|---|---|\n");
    for (name, run) in &collection.runs {
        let report = &run.report;
        let timing = |backend| {
            let row = report.backends.iter().find(|row| row.backend == backend)?;
            if let Outcome::Done { timings, .. } = &row.outcome { timings.forward() } else { None }
        };
        let Some(flex) = timing(BackendName::Flex) else { continue };
        let ms = |backend| timing(backend).map_or(String::new(), |t| format!("{:.3}", t.median_ms));
        let [sdpa, flash, eager] = [BackendName::Sdpa, BackendName::FlashAttention2, BackendName::Eager].map(ms);
        let (kept, spread) = (100.0 * report.work.density, 100.0 * flex.spread);
        let (median, tflops) = (flex.median_ms, report.work.flop / flex.median_ms / 1e9);
        let _ = writeln!(
            out,
            "| {name} | {kept:.1}% | {median:.3} | {spread:.1}% | {tflops:.0} | {sdpa} | {flash} | {eager} |"
        );
    }
    out
}

/// Rows in the file's order; a kernel's ratio is its time over that of the first kernel of the same shape in the same block.
fn markdown(text: &str) -> Result<String, serde_json::Error> {
    let run: Run = serde_json::from_str(text)?;
    let at = &run.environment;
    let mut out = format!("{}; {}, {}, {}.\n\n", at.what, at.device, at.dtype, at.date);
    out.push_str(
        "| workload | kernel | ms | spread (interquartile) | TFLOP/s | times the first |\n|---|---|---|---|---|---|\n",
    );
    let mut first: Option<(String, f64)> = None;
    for row in &run.rows {
        let Some(timing) = stats::timing(row.samples_ms.clone()) else { continue };
        let shape = row.shape();
        let ratio = match &first {
            Some((of, ms)) if *of == shape => format!("{:.2}", timing.median_ms / ms),
            _ => {
                first = Some((shape.clone(), timing.median_ms));
                String::new()
            }
        };
        let spread = timing.spread * 100.0;
        let _ = writeln!(
            out,
            "| {shape} | {} | {:.2} | {spread:.0}% | {:.0} | {ratio} |",
            row.kernel, timing.median_ms, row.tflops
        );
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_shows_what_the_files_say() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/kernels/measurements.md"));
        let run = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/measurements/h200-backward-2026-11-23.json"));
        let want = markdown(run).expect("a run");
        assert!(page.contains(&want), "print it anew: maskloom bench recorded --from docs/measurements/...\n{want}");
    }

    #[test]
    fn the_documentation_shows_the_presets_recorded_runs() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/kernels/recorded.md"));
        for file in ["nvidia_h200", "nvidia_h100"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("presets/recorded/{file}.json"));
            let Ok(want) = table(&path) else { panic!("{file} is a collection of runs") };
            assert!(page.contains(&want), "print it anew: maskloom bench recorded --from presets/recorded/{file}.json");
        }
    }

    #[test]
    fn a_file_that_is_no_run_is_refused_with_the_reason() {
        assert!(markdown("{\"rows\": []}").unwrap_err().to_string().contains("environment"));
    }
}
