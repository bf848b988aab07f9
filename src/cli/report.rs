//! `maskloom report`: a run file as Markdown, or two of them compared.
//!
//! Invariant: the report contains the file's data and nothing else. Must not know workers.

use super::out::{self, Failure};
use super::{picture, race, table};
use crate::base::Diagnostic;
use crate::problem::result::{BackendReport, GradientOutcome, GradientReport, Outcome, RunReport};
use crate::problem::verdict::what_ran;
use crate::service::files;
use crate::service::run_file::{self, Change, RunFile};
use serde_json::json;
use std::path::PathBuf;

/// Write a saved run as Markdown, or compare two runs
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Saved by `maskloom run --save-run` or by the window
    run: PathBuf,
    /// A later run for the comparison
    #[arg(long, value_name = "RUN")]
    compare: Option<PathBuf>,
    /// Write to a file instead of stdout
    #[arg(long, value_name = "F.md")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of Markdown
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn report(args: Args) -> Result<(), Failure> {
    let run = RunFile::open(&args.run)?;
    let other = args.compare.as_deref().map(RunFile::open).transpose()?;
    let text = match (&other, args.json) {
        (None, false) => markdown(&run),
        (None, true) => run.to_json()?,
        (Some(other), as_json) => {
            let (changes, differences) = run_file::compare(&run, other);
            if as_json {
                format!("{:#}\n", json!({ "changes": changes, "differences": differences }))
            } else {
                comparison(&changes, &differences)
            }
        }
    };
    match &args.out {
        Some(path) => Ok(files::save(path, text.as_bytes())?),
        None => out::text(&text),
    }
}

pub(super) fn markdown(run: &RunFile) -> String {
    let (d, r) = (&run.document, &run.report);
    let s = &d.settings;
    let mut out = format!("# {}\n\n", d.name);
    if !d.about.is_empty() {
        out.push_str(&format!("{}\n\n", d.about));
    }
    out.push_str(&format!(
        "On **{}**: batch {}, {} query heads, {} kv heads, `{}` x `{}`, head_dim {}, {}.\nThe mask keeps {} of the cells \
         ({}FLOP) and computes {} in {} blocks.\n\n",
        r.device_name,
        s.batch,
        s.heads,
        s.kv_heads,
        d.axes.q,
        d.axes.kv(),
        s.head_dim,
        s.dtype,
        table::percent(r.work.density),
        table::big(r.work.flop),
        table::percent(r.work.computed),
        s.block_size
    ));
    out.push_str(
        "| backend | what ran | median | spread | TFLOP/s | versus | largest error | allowed | kernel |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    r.backends.iter().for_each(|b| out.push_str(&line(b, r)));
    if !r.gradients.is_empty() {
        out.push_str("\n| backend | backward | forward + backward | worst gradient | error | allowed |\n|---|---|---|---|---|---|\n");
        r.gradients.iter().for_each(|g| out.push_str(&gradient_line(g, r)));
    }
    for thumbnail in &run.pictures {
        out.push_str(&format!("\n{}:\n\n```text\n", thumbnail.title));
        picture::lines(&thumbnail.pixels(), thumbnail.width)
            .iter()
            .for_each(|l| out.push_str(&format!("{}\n", l.trim_end())));
        out.push_str("```\n");
    }
    let how = &run.conditions.options;
    out.push_str("\nEnvironment:\n\n");
    r.environment.iter().for_each(|(k, v)| out.push_str(&format!("- {k}: {v}\n")));
    out.push_str(&format!(
        "\n{} rounds of {} passes after {} untimed, errors on at most {} rows.\n",
        how.rounds, how.passes, how.warmup, how.reference_rows
    ));
    out
}

/// A backward pass: its time, the sum with the forward time, its worst gradient, or the reason for its absence.
fn gradient_line(g: &GradientReport, run: &RunReport) -> String {
    match &g.outcome {
        GradientOutcome::Refused { why } => format!("| {} | refused: {} | | | | |\n", g.backend, why.message),
        GradientOutcome::Failed { why } => format!("| {} | failed: {} | | | | |\n", g.backend, why.message),
        GradientOutcome::Done { errors, timing, .. } => {
            let median = timing.as_ref().map(|t| t.median_ms);
            format!("| {} |\n", race::gradient_line(g.backend, errors, median, run).join(" | "))
        }
    }
}

fn line(b: &BackendReport, run: &RunReport) -> String {
    let refused = |word: &str, why: &Diagnostic| format!("| {} | {word} | | | | | | | {} |\n", b.backend, why.message);
    match &b.outcome {
        Outcome::Refused { why } => refused("refused", why),
        Outcome::Failed { why } => refused("failed", why),
        Outcome::Done { kernel, error, timings, .. } => {
            let [median, spread, tflops] = match timings.forward() {
                Some(t) => {
                    let tflops = table::digits(run.work.flop / t.median_ms / 1e9);
                    [table::milliseconds(t.median_ms), table::percent(t.spread), tflops]
                }
                None => ["-", "-", "-"].map(String::from),
            };
            let wrong = error.fault().map(|fault| format!(" **wrong**: {fault}")).unwrap_or_default();
            let base = run.baseline();
            let versus = match (&base, run.versus(b.backend)) {
                (Some(base), Some(versus)) => versus.words_of(&base.words),
                (Some(base), None) if base.backend == b.backend => "baseline".into(),
                _ => String::new(),
            };
            let ran = what_ran(b.backend, kernel);
            let (max, allowed) = (table::error(error.max_abs()), table::error(error.allowed()));
            format!(
                "| {} | {ran} | {median} | {spread} | {tflops} | {versus} | {max}{wrong} | {allowed} | {kernel} |\n",
                b.backend
            )
        }
    }
}

fn comparison(changes: &[Change], differences: &[String]) -> String {
    let mut out = String::from("| backend | before | after | speed-up | |\n|---|---|---|---|---|\n");
    let ms = |t: Option<f64>| t.map_or("-".into(), table::milliseconds);
    for c in changes {
        let ratio = c.speed_up.map_or("-".into(), |s| format!("{}x", table::digits(s)));
        let verdict = c.verdict.as_deref().unwrap_or_default();
        out.push_str(&format!("| {} | {} | {} | {ratio} | {verdict} |\n", c.backend, ms(c.before_ms), ms(c.after_ms)));
    }
    if !differences.is_empty() {
        out.push_str("\nThe runs differ in more than time:\n\n");
        differences.iter().for_each(|d| out.push_str(&format!("- {d}\n")));
    }
    out
}
