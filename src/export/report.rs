//! A design on one page: axes and heads, layers, sparsity, use, timings and errors, as an HTML file without other
//! files.
//!
//! Invariant: a time comes with the error of the same kernel, and only from a run. Must not know who ran it.

use super::plate::plates;
use super::{ExportFile, ExportKind, about};
use crate::base::provenance::made_on;
use crate::base::words::memory;
use crate::base::{Control, Diagnostic, Provenance};
use crate::document::model::{Document, MaskContent, ScoreContent};
use crate::document::page::{Label, Text, Tongue, escaped};
use crate::problem::Problem;
use crate::problem::result::{BackendReport, GradientError, GradientOutcome, Outcome, RunReport};
use crate::problem::verdict::Ran;
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}\
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .8rem;text-align:left;border-bottom:1px solid #ddd}\
td.n{text-align:right;font-variant-numeric:tabular-nums}figure{margin:1rem 0}svg{max-width:46rem;width:100%;font:12px system-ui,sans-serif}\
image{image-rendering:pixelated}.frame{fill:none;stroke:#999}.border{stroke:#a05;stroke-width:1;stroke-dasharray:4 3}\
.title{text-anchor:middle;font-size:13px}figcaption{color:#555}pre{background:#f6f6f3;padding:.8rem;overflow:auto}\
.wrong{color:#a00;font-weight:bold}small,.weak{color:#555}";

/// The content of a report.
#[derive(Clone, Copy, Debug)]
pub struct ReportRequest<'a> {
    /// The file's name.
    pub name: &'a str,
    /// Stem of the exported module's name.
    pub stem: &'a str,
    /// The design.
    pub document: &'a Document,
    /// The same, compiled.
    pub problem: &'a Problem,
    /// The picture that the export has.
    pub picture: &'a ExportFile,
    /// The race, if there was one.
    pub run: Option<&'a RunReport>,
    /// Runs of exactly this design that ship with Maskloom.
    pub recorded: &'a [&'a RunReport],
    /// Day on which it is made; None: it is not said.
    pub date: Option<&'a str>,
}

/// The report of a design. Errors: cancelled.
pub fn report(request: &ReportRequest, control: &Control) -> Result<ExportFile, Diagnostic> {
    let (document, problem) = (request.document, request.problem);
    let title = escaped(&document.name);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    );
    let _ = writeln!(out, "<p class=\"weak\">{}</p>", escaped(&made_on(request.date)));
    for paragraph in about::description(document).unwrap_or_default().split("\n\n").filter(|p| !p.trim().is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", escaped(paragraph));
    }
    out.push_str(&rows(&shape(document, problem)));
    out.push_str(&layers(document));
    out.push_str(&rows(&counts(problem, control)?));
    out.push_str(&plates(document, problem, request.picture, control)?);
    out.push_str(&uses(request));
    match request.run {
        Some(run) => out.push_str(&race(run, &Provenance::Measured(run.place()), Tongue::ENGLISH)),
        None => out
            .push_str("<p class=\"weak\">No race was run here: the report contains no timings of this machine.</p>\n"),
    }
    for run in request.recorded {
        out.push_str(&race(run, &Provenance::Recorded(run.place()), Tongue::ENGLISH));
    }
    out.push_str("</body></html>\n");
    Ok(ExportFile::new(
        ExportKind::Page,
        request.name,
        out,
        "the design on one page: axes, heads, layers, sparsity, use, timings and errors",
    ))
}

/// Each layer with its arguments, and its text if it has one.
fn layers(document: &Document) -> String {
    let mut out = String::from("<h2>Layers</h2>\n<ul>\n");
    let lines = about::lines(document);
    let parts: Vec<&String> = lines.iter().filter(|l| l.starts_with("Mask: ") || l.starts_with("Score: ")).collect();
    if parts.is_empty() {
        out.push_str("<li>None: every cell is kept.</li>\n");
    }
    for line in parts {
        let _ = writeln!(out, "<li>{}</li>", escaped(line));
    }
    out.push_str("</ul>\n");
    for layer in document.layers.iter().filter(|l| l.enabled) {
        if let MaskContent::Text(code) = &layer.content {
            let _ = writeln!(out, "<p>{}</p>\n<pre>{}</pre>", escaped(&layer.name), escaped(code.source.trim()));
        }
    }
    for score in document.scores.iter().filter(|s| s.enabled) {
        if let ScoreContent::Text(code) = &score.content {
            let _ = writeln!(out, "<p>{}</p>\n<pre>{}</pre>", escaped(&score.name), escaped(code.source.trim()));
        }
    }
    out
}

/// The use of the other exported files.
fn uses(request: &ReportRequest) -> String {
    let stem = request.stem;
    let mut text = format!("import {stem}\nout = {stem}.attend(query, key, value)  # [B, H, S, D]\n\n");
    text.push_str(&format!(
        "import {stem}_diffusers\nhandle = {stem}_diffusers.use(pipe.transformer)\nprint(handle.verify(inputs))\n"
    ));
    text.push_str(&format!("\nimport {stem}_transformers\nhandle = {stem}_transformers.use(model)\n"));
    let shell =
        "export PYTHONPATH=EXPORT/sidecar:$PYTHONPATH\nexport MASKLOOM_SIDECAR=EXPORT\naccelerate launch train.py ...";
    format!(
        "<h2>Use</h2>\n<p>In Python, with the exported folder on the path:</p>\n<pre>{}</pre>\n<p>In an unchanged trainer:</p>\n<pre>{shell}</pre>\n",
        escaped(&text)
    )
}

fn rows(rows: &[Number]) -> String {
    let mut out = String::from("<table>\n");
    for (name, value) in rows {
        let _ = writeln!(out, "<tr><th>{}</th><td>{}</td></tr>", name.words(), escaped(&value.to_string()));
    }
    out + "</table>\n"
}

/// A number of a design.
pub(super) type Number = (Label, Text<'static>);

/// Axes, heads and format.
pub(super) fn shape(document: &Document, problem: &Problem) -> Vec<Number> {
    let heads = match problem.heads == problem.kv_heads {
        true => Text::Heads(problem.heads, problem.head_dim),
        false => Text::HeadsOver(problem.heads, problem.kv_heads, problem.head_dim),
    };
    let plain = |label: Label, value: String| (label, Text::Plain(value));
    let mut all = vec![
        plain(Label::Tokens, format!("{} x {}", problem.q_len, problem.kv_len)),
        plain(Label::QueryAxis, document.axes.q.to_string()),
    ];
    all.extend(document.axes.kv.iter().map(|kv| plain(Label::KeyAxis, kv.to_string())));
    all.extend([
        plain(Label::Batch, problem.batch.to_string()),
        (Label::Heads, heads),
        plain(Label::Format, problem.dtype.to_string()),
    ]);
    all
}

/// Kept cells, and blocks by kind. Errors: cancelled.
pub(super) fn counts(problem: &Problem, control: &Control) -> Result<Vec<Number>, Diagnostic> {
    let mask = problem.block_mask(problem.block_size, control)?;
    let Some(stats) = mask.stats_with(control) else {
        return Err(Diagnostic::error("cancelled", "the report was cancelled"));
    };
    let blocks =
        |n: u64| format!("{n} ({:.1}%)", 100.0 * n as f64 / (stats.full + stats.partial + stats.empty).max(1) as f64);
    Ok(vec![
        (Label::CellsKept, Text::Plain(format!("{:.2}%", 100.0 * stats.density))),
        (Label::Sparsity, Text::SparsityAt(stats.sparsity_words(), problem.block_size.to_string())),
        (Label::FullBlocks, Text::Plain(blocks(stats.full))),
        (Label::PartialBlocks, Text::Plain(blocks(stats.partial))),
        (Label::EmptyBlocks, Text::Plain(blocks(stats.empty))),
    ])
}

/// A run's tables, in a language.
pub(super) fn race(run: &RunReport, from: &Provenance, tongue: Tongue<'_>) -> String {
    let tell = |text: &Text<'_>| escaped(&(tongue.tell)(text));
    let mut out = format!("<h2>{}</h2>\n<table>\n<tr>", tell(&Text::Title(from)));
    for head in [
        Text::Label(Label::Backend),
        Text::Label(Label::Ran),
        Text::Label(Label::Median),
        Text::Label(Label::Spread),
        Text::Plain("TFLOP/s".into()),
        Text::Label(Label::Versus),
        Text::Label(Label::Memory),
        Text::Label(Label::LargestError),
        Text::Label(Label::Allowed),
        Text::Label(Label::Kernel),
    ] {
        let _ = write!(out, "<th>{}</th>", tell(&head));
    }
    out.push_str("</tr>\n");
    run.backends.iter().for_each(|b| out.push_str(&line(b, run, tongue)));
    out.push_str("</table>\n");
    let forward_only = || label(tongue, Label::ForwardOnly) + " ";
    let passes = if run.gradients.is_empty() { forward_only() } else { String::new() };
    let _ = writeln!(out, "<p class=\"weak\">{passes}{}</p>", tell(&Text::Measures));
    out.push_str(&backward(run, tongue));
    for note in &run.notes {
        let _ = writeln!(out, "<p>{}</p>", escaped(&note.message));
    }
    out.push_str("<table>\n");
    for (name, value) in run.conditions() {
        let _ = writeln!(out, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(&value));
    }
    let times = [Label::CardBefore, Label::CardAfter];
    for (when, state) in run.card.iter().flat_map(|card| times.into_iter().zip([card.start, card.end])) {
        let _ = writeln!(out, "<tr><th>{}</th><td>{state}</td></tr>", label(tongue, when));
    }
    out + "</table>\n"
}

/// A label as HTML.
fn label(tongue: Tongue<'_>, label: Label) -> String {
    escaped(&(tongue.tell)(&Text::Label(label)))
}

fn line(report: &BackendReport, run: &RunReport, tongue: Tongue<'_>) -> String {
    let (word, why) = match &report.outcome {
        Outcome::Done { kernel, error, timings, .. } => {
            let cells = match timings.forward() {
                Some(t) => [
                    format!("{:.4}", t.median_ms),
                    t.spread_words(),
                    format!("{:.1}", run.work.flop / t.median_ms / 1e9),
                    versus(report, run, tongue),
                ],
                None => ["-", "-", "-", "-"].map(String::from),
            };
            let wrong = if error.passed() { String::new() } else { marked(tongue) };
            let numbers: String = cells.iter().map(|c| format!("<td class=\"n\">{c}</td>")).collect();
            let errors = format!(
                "<td class=\"n\">{:.1e}{wrong}</td><td class=\"n\">{:.1e}</td>",
                error.max_abs(),
                error.allowed()
            );
            let memory = memory(report.outcome.memory());
            let ran = escaped(&(tongue.tell)(&Text::Ran(&Ran::of(report.backend, kernel))));
            let kernel = escaped(&kernel.words);
            return format!(
                "<tr><td>{}</td><td>{ran}</td>{numbers}<td class=\"n\">{memory}</td>{errors}<td>{kernel}</td></tr>\n",
                report.backend
            );
        }
        Outcome::Refused { why } => (Label::Refused, why),
        Outcome::Failed { why } => (Label::Failed, why),
    };
    let (word, why) = (label(tongue, word), escaped(&why.message));
    format!("<tr><td>{}</td><td colspan=\"9\">{word}: {why}</td></tr>\n", report.backend)
}

/// The word behind a wrong number.
fn marked(tongue: Tongue<'_>) -> String {
    format!(" <span class=\"wrong\">{}</span>", label(tongue, Label::Wrong))
}

/// The backward passes: times, memory, the worst gradient; nothing if none were requested.
fn backward(run: &RunReport, tongue: Tongue<'_>) -> String {
    if run.gradients.is_empty() {
        return String::new();
    }
    let mut out = format!("<h3>{}</h3>\n<table>\n<tr>", label(tongue, Label::Backward));
    for head in [
        Label::Backend,
        Label::BackwardTime,
        Label::BothTimes,
        Label::Memory,
        Label::Worst,
        Label::ItsError,
        Label::Allowed,
    ] {
        let _ = write!(out, "<th>{}</th>", label(tongue, head));
    }
    out.push_str("</tr>\n");
    for of in &run.gradients {
        let (word, why) = match &of.outcome {
            GradientOutcome::Done { errors, timing, .. } => {
                let median = timing.as_ref().map(|t| t.median_ms);
                let both = median.zip(run.median_ms(of.backend)).map(|(a, b)| a + b);
                let ms = |t: Option<f64>| t.map_or("-".into(), |t| format!("{t:.4}"));
                let mut cells = vec![ms(median), ms(both), memory(of.outcome.memory())];
                if let Some(worst) = GradientError::worst(errors) {
                    let wrong = if worst.passed() { String::new() } else { marked(tongue) };
                    cells.push(escaped(&worst.name) + &wrong);
                    cells.extend([worst.max_abs, worst.allowed].map(|e| format!("{e:.1e}")));
                }
                let cells: String = cells.iter().map(|c| format!("<td class=\"n\">{c}</td>")).collect();
                let _ = writeln!(out, "<tr><td>{}</td>{cells}</tr>", of.backend);
                continue;
            }
            GradientOutcome::Refused { why } => (Label::Refused, why),
            GradientOutcome::Failed { why } => (Label::Failed, why),
        };
        let (word, why) = (label(tongue, word), escaped(&why.message));
        let _ = writeln!(out, "<tr><td>{}</td><td colspan=\"6\">{word}: {why}</td></tr>", of.backend);
    }
    out + "</table>\n"
}

/// The comparison with the baseline, and its name.
fn versus(report: &BackendReport, run: &RunReport, tongue: Tongue<'_>) -> String {
    match (run.baseline(), run.versus(report.backend)) {
        (Some(base), Some(versus)) => escaped(&(tongue.tell)(&Text::Versus(&versus, &base.ran))),
        (Some(base), None) if base.backend == report.backend => label(tongue, Label::Baseline),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{BackendName, Device};
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::from_document;
    use crate::document::library;
    use crate::problem::result::{ErrorStats, GradientReport, OutputError, OutputName, Timing, Timings, WorkStats};

    #[test]
    fn a_report_is_one_page_and_text_of_the_user_stays_text() {
        let mut document = library::preset("sliding_window").expect("there").document().expect("loads");
        document.name = "<script>mine</script>".into();
        let problem = from_document(&document, &compile(&document, &BuiltIn)).expect("compiles");
        let picture = ExportFile::new(ExportKind::Page, "a.png", [1, 2, 3], "a picture");
        let error = |max_abs| ErrorStats {
            outputs: vec![OutputError::plain(OutputName::Out, max_abs, 2e-3)],
            nan_rows: 0,
            rows_checked: 4,
            rows_total: 4,
            worst: None,
        };
        let timing = Timing { samples_ms: vec![2.0, 2.02], median_ms: 2.0, spread: 0.01, calls: None };
        let done = |error: ErrorStats| Outcome::Done {
            kernel: "k<1>".into(),
            error,
            timings: Timings::forward_only(Some(timing.clone())),
            artefact: None,
            ready_ms: None,
            settled_ms: None,
            max_scores: Vec::new(),
            memory_bytes: None,
        };
        let refused = Outcome::Refused { why: Diagnostic::error("x", "it cannot") };
        let trained = |max_abs| GradientOutcome::Done {
            kernel: "k".into(),
            errors: vec![GradientError { name: "dk".into(), max_abs, allowed: 1e-2, ..GradientError::default() }],
            timing: Some(Timing { samples_ms: vec![6.0], median_ms: 6.0, spread: 0.0, calls: None }),
            unordered: None,
            memory_bytes: Some(3 << 20),
        };
        let run = RunReport {
            device_name: "card".into(),
            device: Device::Cpu,
            environment: [("driver".to_string(), "1".to_string())].into(),
            card: None,
            load: None,
            work: WorkStats { flop: 4e9, ..WorkStats::default() },
            backends: [
                (BackendName::Flex, done(error(1e-3))),
                (BackendName::Sdpa, done(error(1.0))),
                (BackendName::Eager, refused),
            ]
            .map(|(backend, outcome)| BackendReport { backend, outcome })
            .into(),
            gradients: [
                (BackendName::Flex, trained(2e-3)),
                (BackendName::Eager, trained(0.5)),
                (BackendName::Sdpa, GradientOutcome::Refused { why: Diagnostic::error("x", "none <here>") }),
            ]
            .map(|(backend, outcome)| GradientReport { backend, outcome })
            .into(),
            notes: Vec::new(),
        };
        let request = ReportRequest {
            name: "r.html",
            stem: "mine",
            document: &document,
            problem: &problem,
            picture: &picture,
            run: Some(&run),
            recorded: &[],
            date: Some("2026-11-23"),
        };
        let made = report(&request, &Control::new()).expect("made");
        let text = std::str::from_utf8(&made.bytes).expect("text");
        assert!(!text.contains("<script>") && text.contains("&lt;script&gt;mine") && text.contains("base64,AQID"));
        assert!(
            text.contains("<td class=\"n\">2.0000</td><td class=\"n\">1.0%</td><td class=\"n\">2.0</td>"),
            "{text}"
        );
        assert_eq!(text.matches("class=\"wrong\"").count(), 2);
        // backward, forward + backward, memory, worst gradient
        let backward = "<td class=\"n\">6.0000</td><td class=\"n\">8.0000</td><td class=\"n\">3.00 MiB</td><td class=\"n\">dk</td>";
        assert!(text.contains(backward) && text.contains("refused: none &lt;here&gt;"), "{text}");
        assert!(text.contains("refused: it cannot") && text.contains("k&lt;1&gt;"));
        for part in [
            "sliding_window(",
            "mine_transformers.use(model)",
            "MASKLOOM_SIDECAR=EXPORT",
            "on 2026-11-23",
            &crate::base::identity::build().to_string(),
            "queries (q_idx)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let without = ReportRequest { run: None, recorded: &[&run], ..request };
        let text = String::from_utf8(report(&without, &Control::new()).expect("made").bytes).expect("text");
        assert!(
            text.contains("No race was run here") && text.contains("<h2>Recorded on card; not measured here</h2>"),
            "{text}"
        );
    }
}
