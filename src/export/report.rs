//! A design on one page: picture, sparsity, timings and errors, as an HTML file that needs no other.
//!
//! Invariant: a time stands beside the error of the same kernel, and only where a run gave it. Must not know who ran it.

use super::ExportFile;
use crate::analysis::block_mask::BlockMask;
use crate::base::{Control, Diagnostic};
use crate::document::model::Document;
use crate::problem::Problem;
use crate::problem::result::{BackendReport, Outcome, RunReport};
use crate::problem::verdict::what_ran;
use base64::Engine;
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}\
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .8rem;text-align:left;border-bottom:1px solid #ddd}\
td.n{text-align:right;font-variant-numeric:tabular-nums}img{max-width:100%;image-rendering:pixelated;border:1px solid #ccc}\
.wrong{color:#a00;font-weight:bold}small,.weak{color:#555}";

/// The report of a design. `picture` is the PNG that goes into it; `run` the race, where there was one. Errors: cancelled.
pub fn report(
    name: &str,
    document: &Document,
    problem: &Problem,
    picture: &ExportFile,
    run: Option<&RunReport>,
    control: &Control,
) -> Result<ExportFile, Diagnostic> {
    let title = escaped(&document.name);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    );
    for paragraph in document.about.split("\n\n").filter(|p| !p.trim().is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", escaped(paragraph));
    }
    out.push_str(&shape(document, problem));
    out.push_str(&sparsity(problem, control)?);
    let png = base64::engine::general_purpose::STANDARD.encode(&picture.bytes);
    let _ = writeln!(
        out,
        "<p><img alt=\"the mask\" src=\"data:image/png;base64,{png}\"><br><small>{}</small></p>",
        escaped(&picture.what)
    );
    match run {
        Some(run) => out.push_str(&race(run)),
        None => out.push_str("<p class=\"weak\">No race was run: there are no timings.</p>\n"),
    }
    out.push_str("</body></html>\n");
    Ok(ExportFile::new(name, out, "the design on one page: picture, sparsity, timings and errors"))
}

fn rows(rows: &[(&str, String)]) -> String {
    let mut out = String::from("<table>\n");
    for (name, value) in rows {
        let _ = writeln!(out, "<tr><th>{name}</th><td>{}</td></tr>", escaped(value));
    }
    out + "</table>\n"
}

fn shape(document: &Document, problem: &Problem) -> String {
    let heads = match problem.heads == problem.kv_heads {
        true => format!("{} of {}", problem.heads, problem.head_dim),
        false => format!("{} query heads over {} kv heads, of {}", problem.heads, problem.kv_heads, problem.head_dim),
    };
    let mut all = vec![
        ("tokens", format!("{} x {}", problem.q_len, problem.kv_len)),
        ("query axis", document.axes.q.to_string()),
    ];
    if let Some(kv) = &document.axes.kv {
        all.push(("key axis", kv.to_string()));
    }
    all.extend([("batch", problem.batch.to_string()), ("heads", heads), ("format", problem.dtype.to_string())]);
    let names = |names: Vec<&str>| if names.is_empty() { "none".to_string() } else { names.join(", ") };
    let layers = document.layers.iter().filter(|l| l.enabled).map(|l| l.name.as_str()).collect();
    let scores = document.scores.iter().filter(|s| s.enabled).map(|s| s.name.as_str()).collect();
    all.extend([("mask", names(layers)), ("score mods", names(scores))]);
    rows(&all)
}

fn sparsity(problem: &Problem, control: &Control) -> Result<String, Diagnostic> {
    let shape = super::blocks::shape(problem);
    let mask = BlockMask::build(problem.mask.as_deref(), shape, problem.block_size, control)?;
    let Some(stats) = mask.stats_with(control) else {
        return Err(Diagnostic::error("cancelled", "the report was cancelled"));
    };
    let blocks =
        |n: u64| format!("{n} ({:.1}%)", 100.0 * n as f64 / (stats.full + stats.partial + stats.empty).max(1) as f64);
    Ok(rows(&[
        ("cells kept", format!("{:.2}%", 100.0 * stats.density)),
        ("sparsity of blocks", format!("{} at BLOCK_SIZE {}", stats.sparsity_words(), problem.block_size)),
        ("full blocks", blocks(stats.full)),
        ("partial blocks", blocks(stats.partial)),
        ("empty blocks", blocks(stats.empty)),
    ]))
}

fn race(run: &RunReport) -> String {
    let mut out = format!("<h2>Race on {}</h2>\n<table>\n<tr>", escaped(&run.device_name));
    for head in
        ["backend", "what ran", "median ms", "spread", "TFLOP/s", "versus", "largest error", "allowed", "kernel"]
    {
        let _ = write!(out, "<th>{head}</th>");
    }
    out.push_str("</tr>\n");
    run.backends.iter().for_each(|b| out.push_str(&line(b, run)));
    out.push_str("</table>\n<p class=\"weak\">Forward only. Errors are against a reference in f64.</p>\n");
    for note in &run.notes {
        let _ = writeln!(out, "<p>{}</p>", escaped(&note.message));
    }
    out.push_str("<table>\n");
    for (name, value) in &run.environment {
        let _ = writeln!(out, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value));
    }
    out + "</table>\n"
}

fn line(report: &BackendReport, run: &RunReport) -> String {
    let (word, why) = match &report.outcome {
        Outcome::Done { kernel, error, timing, .. } => {
            let cells = match timing {
                Some(t) => [
                    format!("{:.4}", t.median_ms),
                    format!("{:.1}%", 100.0 * t.spread),
                    format!("{:.1}", run.work.flop / t.median_ms / 1e9),
                    versus(report, run),
                ],
                None => ["-", "-", "-", "-"].map(String::from),
            };
            let wrong = if error.passed() { "" } else { " <span class=\"wrong\">wrong</span>" };
            let numbers: String = cells.iter().map(|c| format!("<td class=\"n\">{c}</td>")).collect();
            let errors =
                format!("<td class=\"n\">{:.1e}{wrong}</td><td class=\"n\">{:.1e}</td>", error.max_abs, error.allowed);
            let ran = escaped(&what_ran(report.backend, kernel));
            let kernel = escaped(kernel);
            return format!("<tr><td>{}</td><td>{ran}</td>{numbers}{errors}<td>{kernel}</td></tr>\n", report.backend);
        }
        Outcome::Refused { why } => ("refused", why),
        Outcome::Failed { why } => ("failed", why),
    };
    format!("<tr><td>{}</td><td colspan=\"8\">{word}: {}</td></tr>\n", report.backend, escaped(&why.message))
}

/// How it stands beside the baseline, and what that is.
fn versus(report: &BackendReport, run: &RunReport) -> String {
    match (run.baseline(), run.versus(report.backend)) {
        (Some(base), Some(versus)) => escaped(&versus.words_of(&base.words)),
        (Some(base), None) if base.backend == report.backend => "baseline".into(),
        _ => String::new(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{BackendName, Device};
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::library;
    use crate::problem::from_document;
    use crate::problem::result::{ErrorStats, Timing, WorkStats};

    #[test]
    fn a_report_is_one_page_and_text_of_the_user_stays_text() {
        let mut document = library::preset("sliding_window").expect("there").document().expect("loads");
        document.name = "<script>mine</script>".into();
        let problem = from_document(&document, &compile(&document, &BuiltIn)).expect("compiles");
        let picture = ExportFile::new("a.png", [1, 2, 3], "a picture");
        let error =
            ErrorStats { max_abs: 1e-3, allowed: 2e-3, rows_checked: 4, rows_total: 4, ..ErrorStats::default() };
        let timing = Timing { samples_ms: vec![2.0], median_ms: 2.0, spread: 0.01 };
        let done = |error: ErrorStats| Outcome::Done {
            kernel: "k<1>".into(),
            error,
            timing: Some(timing.clone()),
            artefact: None,
            ready_ms: None,
            settled_ms: None,
            max_scores: Vec::new(),
        };
        let wrong = ErrorStats { max_abs: 1.0, ..error.clone() };
        let refused = Outcome::Refused { why: Diagnostic::error("x", "it cannot") };
        let run = RunReport {
            device_name: "card".into(),
            device: Device::Cpu,
            environment: [("driver".to_string(), "1".to_string())].into(),
            work: WorkStats { flop: 4e9, ..WorkStats::default() },
            backends: [
                (BackendName::Flex, done(error)),
                (BackendName::Sdpa, done(wrong)),
                (BackendName::Eager, refused),
            ]
            .map(|(backend, outcome)| BackendReport { backend, outcome })
            .into(),
            notes: Vec::new(),
        };
        let made = report("r.html", &document, &problem, &picture, Some(&run), &Control::new()).expect("made");
        let text = std::str::from_utf8(&made.bytes).expect("text");
        assert!(!text.contains("<script>") && text.contains("&lt;script&gt;mine") && text.contains("base64,AQID"));
        assert!(
            text.contains("<td class=\"n\">2.0000</td><td class=\"n\">1.0%</td><td class=\"n\">2.0</td>"),
            "{text}"
        );
        assert_eq!(text.matches("class=\"wrong\"").count(), 1);
        assert!(text.contains("refused: it cannot") && text.contains("k&lt;1&gt;"));
        let without = report("r.html", &document, &problem, &picture, None, &Control::new()).expect("made");
        assert!(String::from_utf8_lossy(&without.bytes).contains("No race was run"));
    }
}
