//! Races as tables: backends, times, errors and refusals.
//!
//! Invariant: every time is shown with its error; a wrong result shows no time and fails the command. Must not know how
//! a race runs.

use super::out::{self, line};
use super::table::{self, Cell, Table};
use crate::analysis::block_mask::sparsity_words;
use crate::base::{BackendName, Device, Diagnostic, Provenance, Severity};
use crate::problem::ProblemSpec;
use crate::problem::facts::KernelReport;
use crate::problem::result::{
    BackendReport, Clock, GradientError, GradientOutcome, GradientReport, HeadMaximum, Outcome, OutputName, RunReport,
    Timing, spread_words,
};
use crate::problem::verdict::{Ran, what_ran};
use crate::tasks::{origins, ratios};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What kept a run from success, a backend each: it failed, with the reason, or it was wrong; where none ran, the refusals.
pub(super) fn shortfalls(report: &RunReport) -> Vec<String> {
    let none_ran = !report.backends.iter().any(|r| matches!(r.outcome, Outcome::Done { .. }));
    let forward = report.backends.iter().filter_map(|r| match &r.outcome {
        Outcome::Failed { why } => Some(format!("{} failed: {}", r.backend, why.message)),
        Outcome::Refused { why } if none_ran => Some(format!("{} refused: {}", r.backend, why.message)),
        Outcome::Done { error, .. } if !error.passed() => Some(format!("{} was wrong", r.backend)),
        _ => None,
    });
    let backward = report.gradients.iter().filter_map(|r| match &r.outcome {
        GradientOutcome::Failed { why } => Some(format!("{} failed backward: {}", r.backend, why.message)),
        GradientOutcome::Done { errors, .. } if !errors.iter().all(GradientError::passed) => {
            Some(format!("{} computed wrong gradients", r.backend))
        }
        _ => None,
    });
    forward.chain(backward).collect()
}

/// Whether every backend was right or refused, and at least one ran.
pub(super) fn succeeded(report: &RunReport) -> bool {
    let fine = |r: &BackendReport| match &r.outcome {
        Outcome::Done { error, .. } => error.passed(),
        Outcome::Refused { .. } => true,
        Outcome::Failed { .. } => false,
    };
    let ran = |r: &BackendReport| matches!(r.outcome, Outcome::Done { .. });
    let fine_gradient = |r: &GradientReport| match &r.outcome {
        GradientOutcome::Done { errors, .. } => errors.iter().all(GradientError::passed),
        GradientOutcome::Refused { .. } => true,
        GradientOutcome::Failed { .. } => false,
    };
    report.backends.iter().all(fine) && report.backends.iter().any(ran) && report.gradients.iter().all(fine_gradient)
}

/// The raced problem, in two lines.
pub(super) fn title(name: &str, spec: &ProblemSpec, report: &RunReport) -> String {
    let (said, work) = (out::words(), &report.work);
    let dim_v = if spec.head_dim_v == spec.head_dim { String::new() } else { format!("/{}", spec.head_dim_v) };
    let shape = said.with(
        if spec.kv_heads == spec.heads { "line-race" } else { "line-race-kv" },
        &[
            ("name", name.into()),
            ("batch", spec.batch.to_string().into()),
            ("heads", spec.heads.to_string().into()),
            ("few", spec.kv_heads.to_string().into()),
            ("q", spec.q_len.to_string().into()),
            ("kv", spec.kv_len.to_string().into()),
            ("dim", format!("{}{dim_v}", spec.head_dim).into()),
            ("dtype", spec.dtype.to_string().into()),
            ("device", report.device_name.as_str().into()),
        ],
    );
    let kept = said.with(
        "line-kept",
        &[
            ("kept", table::percent(work.density).into()),
            ("flop", table::big(work.flop).into()),
            ("computed", table::percent(work.computed).into()),
            ("size", spec.block_size.to_string().into()),
            ("sparsity", said.phrase(&sparsity_words(work.sparsity, work.padded_sparsity)).into()),
        ],
    );
    format!("{shape}\n{kept}\n")
}

/// The race as a table, with refusals and failures below.
pub(super) fn render(report: &RunReport) -> String {
    render_against(report, None)
}

/// The same, with every time as a ratio to this backend's.
pub(super) fn render_against(report: &RunReport, wanted: Option<BackendName>) -> String {
    let rate = if report.device == Device::Cpu { "GFLOP/s" } else { "TFLOP/s" };
    let mut columns = vec![
        "column-backend",
        "column-ran",
        "column-median",
        "column-spread",
        rate,
        "",
        "column-memory",
        "column-error",
        "column-allowed",
        "lse",
        "column-kernel",
    ];
    let called = report.backends.iter().any(|r| r.outcome.forward().is_some_and(|t| t.calls.is_some()));
    if called {
        columns.insert(3, "column-call");
    }
    let versus = report.baseline_of(wanted).map_or_else(Cell::default, |base| {
        Cell::told(|said| said.with("column-vs", &[("base", ratios::ran(said, &base.ran).into())]))
    });
    let columns = columns.into_iter().map(|title| if title.is_empty() { versus.clone() } else { Cell::title(title) });
    let mut table = Table::new(&columns.collect::<Vec<_>>());
    report.backends.iter().filter_map(|r| row(r, report, wanted, called)).for_each(|cells| table.row(cells));
    let mut out = if table.is_empty() { String::new() } else { table.render() };
    out.push_str(&against(report, wanted));
    out.push_str(&hosts(report));
    for r in &report.backends {
        if let Outcome::Done { error, .. } = &r.outcome
            && let Some(fault) = error.fault()
        {
            out.push_str(&line("line-wrong", &[("backend", r.backend.to_string().into()), ("why", fault.into())]));
        }
    }
    for r in &report.backends {
        match &r.outcome {
            Outcome::Done { .. } => {}
            Outcome::Refused { why } => out.push_str(&without("line-refused", r.backend, why)),
            Outcome::Failed { why } => out.push_str(&without("line-failed", r.backend, why)),
        }
    }
    out.push_str(&checked(report));
    out
}

/// Why a backend has no time, and the way out. The English way out follows one that lacks its figures.
fn without(id: &str, backend: BackendName, why: &Diagnostic) -> String {
    let said = out::words();
    let reported = said.reported(&why.code, &why.message);
    let figures = [("backend", backend.to_string()), ("code", why.code.to_string()), ("why", reported)];
    let first = line(id, &figures.map(|(name, text)| (name, text.into())));
    let (own, english) = said.ways_out(&why.code, why.hint.as_deref());
    let ways = own.as_deref().into_iter().chain(english);
    ways.fold(first, |all, way| all + "  " + &line("line-help", &[("way", way.into())]))
}

/// Whose calls wait for their host, and how the GPU's part was told from it.
fn hosts(report: &RunReport) -> String {
    let forward = report.backends.iter().filter_map(|r| Some((r.backend, r.outcome.forward()?)));
    let mut by_clock: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let mut out = String::new();
    for (backend, timing) in forward {
        let Some(calls) = timing.calls else { continue };
        by_clock.entry(calls.clock).or_default().push(backend.to_string());
        if let Some(waits) = timing.launch_bound() {
            out.push_str(&format!("{backend}: {}\n", ratios::waits(out::words(), waits)));
        }
    }
    let said = out::words();
    let by = |(clock, who): (&Clock, &Vec<String>)| {
        let clock = ratios::clock(said, *clock).into();
        said.with("race-clock", &[("names", who.join(", ").into()), ("clock", clock)])
    };
    let clocks: Vec<String> = by_clock.iter().map(by).collect();
    if !clocks.is_empty() {
        out.push_str(&line("line-median", &[("clocks", clocks.join("; ").into())]));
    }
    out
}

/// What ratios to the chosen baseline are ratios of.
fn against(report: &RunReport, wanted: Option<BackendName>) -> String {
    use BackendName::{Eager, TorchEager};
    match (wanted, report.baseline_of(wanted)) {
        (Some(name), None) => line("line-no-time", &[("name", name.to_string().into())]),
        (Some(Eager | TorchEager), Some(_)) => line("line-versus-eager", &[]),
        _ => String::new(),
    }
}

fn row(r: &BackendReport, report: &RunReport, wanted: Option<BackendName>, called: bool) -> Option<Vec<Cell>> {
    let Outcome::Done { kernel, error, timings, .. } = &r.outcome else { return None };
    let mut cells = vec![r.backend.as_str().into(), ran(r.backend, kernel)];
    match timings.forward() {
        Some(t) => {
            let is_base = report.baseline_of(wanted).is_some_and(|base| base.backend == r.backend);
            let own = if is_base { Cell::text("row-baseline") } else { Cell::default() };
            let versus = report.versus_of(r.backend, wanted);
            let ratio = versus.map_or(own, |versus| Cell::told(|said| ratios::versus(said, &versus, None)));
            let unit = if report.device == Device::Cpu { 1e6 } else { 1e9 };
            let rate = table::digits(report.work.flop / t.median_ms / unit);
            cells.extend([table::milliseconds(t.median_ms).into(), t.spread_words().into(), rate.into(), ratio]);
        }
        None => cells.extend(["-", "-", "-", "-"].map(Cell::from)),
    }
    if called {
        let call = timings.forward().and_then(|t| t.calls).map(|calls| table::milliseconds(calls.median_ms));
        cells.insert(3, call.unwrap_or("-".into()).into());
    }
    let largest = table::error(error.max_abs());
    let wrong = |largest: &str| Cell::told(|said| said.with("row-error-wrong", &[("error", largest.into())]));
    let verdict = if error.passed() { largest.into() } else { wrong(&largest) };
    let lse = error.max_abs_of(&OutputName::Lse).map_or("-".into(), table::error);
    cells.extend([
        table::memory(r.outcome.memory()).into(),
        verdict,
        table::error(error.allowed()).into(),
        lse.into(),
        kernel.words.as_str().into(),
    ]);
    Some(cells)
}

/// Who ran, as a cell.
pub(super) fn ran(backend: BackendName, kernel: &KernelReport) -> Cell {
    let ran = Ran::of(backend, kernel);
    Cell::told(|said| ratios::ran(said, &ran))
}

/// The titles of [`gradient_line`].
pub(super) const GRADIENTS: [&str; 7] = [
    "column-backend",
    "column-backward",
    "column-both",
    "column-memory",
    "column-worst",
    "column-error",
    "column-allowed",
];

/// The backward passes as a table, with refusals and failures below; empty if none was requested.
pub(super) fn gradients(report: &RunReport) -> String {
    if report.gradients.is_empty() {
        return String::new();
    }
    let mut table = Table::told(&GRADIENTS);
    let mut below = String::new();
    for r in &report.gradients {
        match &r.outcome {
            GradientOutcome::Done { errors, timing, .. } => {
                if let Some((free, more)) = r.outcome.order_price() {
                    let figures = [("more", format!("{more:+.1}")), ("time", table::milliseconds(free))];
                    let [more, free] = figures.map(|(name, text)| (name, text.into()));
                    below.push_str(&line("line-order", &[("backend", r.backend.to_string().into()), more, free]));
                }
                if let Some(waits) = timing.as_ref().and_then(Timing::launch_bound) {
                    below.push_str(&format!("{}: {}\n", r.backend, ratios::waits(out::words(), waits)));
                }
                table.row(gradient_line(r, errors, timing.as_ref().map(|t| t.median_ms), report));
                let wrong = errors.iter().filter_map(GradientError::words);
                for why in wrong {
                    let figures = [("backend", r.backend.to_string().into()), ("why", why.into())];
                    below.push_str(&line("line-wrong", &figures));
                }
            }
            GradientOutcome::Refused { why } => below.push_str(&without("line-backward-refused", r.backend, why)),
            GradientOutcome::Failed { why } => below.push_str(&without("line-backward-failed", r.backend, why)),
        }
    }
    let table = if table.is_empty() { String::new() } else { table.render() };
    let reference = origins::whole(out::words(), &Provenance::Reference);
    format!("\n{}{table}{below}", line("line-gradients", &[("reference", reference.into())]))
}

/// A backward pass as cells: backend, time, sum with the forward time, memory of both, worst gradient, its error and limit.
pub(super) fn gradient_line(
    r: &GradientReport,
    errors: &[GradientError],
    median: Option<f64>,
    report: &RunReport,
) -> Vec<String> {
    let sum = median.zip(report.median_ms(r.backend)).map(|(a, b)| a + b);
    let time = |ms: Option<f64>| ms.map_or("-".into(), table::milliseconds);
    let worst = GradientError::worst(errors);
    let own = |f: fn(&GradientError) -> String| worst.map_or("-".into(), f);
    vec![
        r.backend.to_string(),
        time(median),
        time(sum),
        table::memory(r.outcome.memory()),
        own(|e| e.name.clone()),
        own(|e| table::error(e.max_abs)),
        own(|e| table::error(e.allowed)),
    ]
}

/// The largest score of each head, one column for each backend that returns it.
pub(super) fn max_scores(report: &RunReport) -> String {
    let given: Vec<_> = report.backends.iter().filter_map(largest).collect();
    let Some(heads) = given.iter().map(|(_, heads)| heads.len()).max() else {
        return format!("\n{}", line("line-no-largest", &[]));
    };
    let names: Vec<String> = given.iter().map(|(name, _)| name.to_string()).collect();
    let titles: Vec<&str> = ["column-head"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::told(&titles);
    for head in 0..heads {
        let cell = |heads: &[HeadMaximum]| heads.get(head).map_or(String::new(), |top| format!("{:.4}", top.0));
        table.row([head.to_string()].into_iter().chain(given.iter().map(|(_, heads)| cell(heads))));
    }
    format!("\n{}{}", line("line-largest", &[]), table.render())
}

fn largest(r: &BackendReport) -> Option<(BackendName, &[HeadMaximum])> {
    match &r.outcome {
        Outcome::Done { max_scores, .. } if !max_scores.is_empty() => Some((r.backend, max_scores)),
        _ => None,
    }
}

/// The compared part of each output and its reference.
fn checked(report: &RunReport) -> String {
    let first = report.backends.iter().find_map(|r| match &r.outcome {
        Outcome::Done { error, .. } => Some(error),
        _ => None,
    });
    let counted = report.backends.iter().any(|r| r.outcome.memory().is_some());
    let said = out::words();
    let memory = || line("line-memory", &[("what", ratios::memory(said).into())]);
    let memory = if counted { memory() } else { String::new() };
    first.map_or(String::new(), |e| {
        let rows = [("n", e.nan_rows.to_string().into()), ("all", e.rows_checked.to_string().into())];
        let nan = (e.nan_rows > 0).then(|| line("race-nan", &rows));
        let figures = [
            ("reference", origins::whole(said, &Provenance::Reference)),
            ("checked", e.rows_checked.to_string()),
            ("all", e.rows_total.to_string()),
            ("limit", said.phrase(e.allowed_from())),
        ];
        memory + &nan.unwrap_or_default() + &line("line-errors", &figures.map(|(name, text)| (name, text.into())))
    })
}

/// The whole report as JSON, without the kernels' texts.
pub(super) fn json(name: &str, spec: &ProblemSpec, report: &RunReport, wanted: Option<BackendName>) -> Value {
    let mut value = serde_json::to_value(report).unwrap_or(Value::Null);
    for (backend, r) in value["backends"].as_array_mut().into_iter().flatten().zip(&report.backends) {
        if let Outcome::Done { kernel, error, .. } = &r.outcome {
            backend["ran"] = json!(what_ran(r.backend, kernel));
            backend["fault"] = json!(error.fault());
        }
        if let Some(versus) = report.versus_of(r.backend, wanted) {
            backend["versus"] = json!(versus);
        }
        if let Some(artefact) = backend.get_mut("artefact").and_then(Value::as_object_mut) {
            ["source", "mods", "log"].into_iter().for_each(|k| drop(artefact.remove(k)));
        }
    }
    value["name"] = json!(name);
    value["problem"] = problem(spec);
    value["baseline"] =
        json!(report.baseline_of(wanted).map(|base| json!({ "backend": base.backend, "ran": base.words })));
    value["succeeded"] = json!(succeeded(report));
    value
}

/// Shapes and formats of a problem, without its graphs.
pub(super) fn problem(spec: &ProblemSpec) -> Value {
    json!({
        "batch": spec.batch, "heads": spec.heads, "kv_heads": spec.kv_heads, "q_len": spec.q_len, "kv_len": spec.kv_len,
        "head_dim": spec.head_dim, "head_dim_v": spec.head_dim_v, "dtype": spec.dtype, "layout": spec.layout,
        "scale": spec.scale, "block_size": spec.block_size, "mask": spec.mask.is_some(), "score": spec.score.is_some(),
    })
}

/// Rows of a benchmark: one for each timed backend.
pub(super) fn rows(name: &str, spec: &ProblemSpec, report: &RunReport) -> Vec<Value> {
    let row = |r: &BackendReport| {
        let Outcome::Done { kernel, error, timings, .. } = &r.outcome else { return None };
        let back = report.gradients.iter().find(|g| g.backend == r.backend);
        let t = match (timings.forward(), back) {
            (Some(t), _) => Some(t),
            // the backward pass alone
            (None, Some(_)) => None,
            (None, None) => return None,
        };
        let forward = t.map(|t| t.median_ms);
        let mut row = json!({
            "name": name, "backend": r.backend, "device": report.device_name, "q_len": spec.q_len, "kv_len": spec.kv_len,
            "batch": spec.batch, "heads": spec.heads, "kv_heads": spec.kv_heads, "head_dim": spec.head_dim,
            "dtype": spec.dtype, "density": report.work.density, "median_ms": forward, "spread": t.map(|t| t.spread),
            "tflops": forward.map(|ms| report.work.flop / ms / 1e9), "max_abs_error": error.max_abs(), "allowed": error.allowed(),
            "kernel": kernel.words, "kernel_facts": kernel.facts, "ran": what_ran(r.backend, kernel), "versus": report.versus(r.backend),
            "samples_ms": t.map(|t| &t.samples_ms), "memory_bytes": r.outcome.memory(),
        });
        if let Some(calls) = t.and_then(|t| t.calls) {
            (row["call_ms"], row["clock"]) = (json!(calls.median_ms), json!(calls.clock));
        }
        match back.map(|g| &g.outcome) {
            Some(GradientOutcome::Done { errors, timing, memory_bytes, .. }) => {
                row["both_memory_bytes"] = json!(memory_bytes);
                let ms = timing.as_ref().map(|t| t.median_ms);
                row["backward_ms"] = json!(ms);
                row["backward_samples_ms"] = json!(timing.as_ref().map(|t| &t.samples_ms));
                if let Some(calls) = timing.as_ref().and_then(|t| t.calls) {
                    (row["backward_call_ms"], row["backward_clock"]) = (json!(calls.median_ms), json!(calls.clock));
                }
                // five products; the forward pass has two
                row["backward_tflops"] = json!(ms.map(|ms| 2.5 * report.work.flop / ms / 1e9));
                row["both_ms"] = json!(ms.zip(forward).map(|(a, b)| a + b));
                row["worst_gradient"] =
                    json!(errors.iter().filter(|e| e.largest > 0.0).map(|e| e.max_abs / e.largest).fold(0.0, f64::max));
            }
            Some(GradientOutcome::Refused { why } | GradientOutcome::Failed { why }) => {
                row["backward_refused"] = json!(why.code);
            }
            None => {}
        }
        Some(row)
    };
    report.backends.iter().filter_map(row).collect()
}

/// The spread of a row of a benchmark, as a cell.
pub(super) fn spread(row: &Value) -> String {
    let samples = row["samples_ms"].as_array().map(|all| all.len() as u64).or(row["samples"].as_u64());
    row["spread"].as_f64().map_or("-".into(), |share| spread_words(samples.unwrap_or(0) as usize, share))
}

/// Remarks of a run that are printed on stderr.
pub(super) fn notes(report: &RunReport) {
    let reported: Vec<_> = report.notes.iter().filter(|d| d.severity >= Severity::Note).cloned().collect();
    out::diagnostics(&reported);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sample_has_no_spread() {
        let row = |samples: Vec<f64>| json!({ "samples_ms": samples, "spread": 0.0 });
        assert_eq!([spread(&row(vec![1.0])), spread(&row(vec![1.0, 1.0]))], ["-", "0%"]);
        assert_eq!(spread(&json!({ "samples": 1, "spread": 0.0 })), "-");
        assert_eq!(spread(&json!({ "samples": 3, "spread": 0.02 })), "2.0%");
        assert_eq!(spread(&json!({ "spread": null })), "-");
    }
}
