//! `maskloom report`: a run file as Markdown, or two of them compared.
//!
//! Invariant: the report contains the file's data and nothing else. Must not know workers.

use super::out::{self, Failure};
use super::table::{Cell, Table};
use super::{figures, picture, race, table};
use crate::backends::race::RaceOptions;
use crate::base::{Diagnostic, Provenance};
use crate::problem::result::{BackendReport, GradientOutcome, GradientReport, Outcome, RunReport};
use crate::tasks::run_file::{self, Change, PassChange, RunFile};
use crate::tasks::{origins, ratios};
use crate::words::{Language, Words};
use crate::worker::files;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Write a saved run as Markdown, or compare two runs
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Saved by `maskloom run --save-run` or by the window
    run: PathBuf,
    /// A later run for the comparison
    #[arg(long, value_name = "RUN")]
    compare: Option<PathBuf>,
    /// Write to a file instead of stdout: Markdown, the times as a figure with their numbers beside it, or the tables as CSV or TeX
    #[arg(long, value_name = "F.md|svg|pdf|csv|tex", value_parser = super::ending::one_of(&["md", "svg", "pdf", "csv", "tex"]))]
    out: Option<PathBuf>,
    /// Print one JSON object instead of Markdown; with --out, the names of what was written
    #[arg(long)]
    json: bool,
}

/// A later run, with what changed and what differs besides.
type Compared = (Vec<Change>, Vec<String>);

/// Runs the command.
pub(super) fn report(args: Args) -> Result<(), Failure> {
    let run = RunFile::open(&args.run)?;
    let other = args.compare.as_deref().map(RunFile::open).transpose()?;
    let compared = other.as_ref().map(|other| run_file::compare(&run, other));
    match &args.out {
        None => printed(&run, compared.as_ref(), args.json),
        Some(path) => {
            let files = written(&run, compared.as_ref(), path)?;
            if args.json { out::json(&json!({ "files": files })) } else { Ok(()) }
        }
    }
}

fn printed(run: &RunFile, compared: Option<&Compared>, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return match compared {
            None => out::text(&run.to_json()?),
            Some((changes, differences)) => {
                out::text(&format!("{:#}\n", json!({ "changes": changes, "differences": differences })))
            }
        };
    }
    match file(&all_tables(run, compared), table::form().ending()) {
        Some(tables) => out::text(&table::marked(&tables)),
        None => out::text(&in_markdown(run, compared, out::words())),
    }
}

/// Writes a file of the kind that its name says; the names of what is written.
fn written(run: &RunFile, compared: Option<&Compared>, path: &Path) -> Result<Vec<String>, Failure> {
    if figures::is_figure(path) {
        if compared.is_some() {
            let why = Diagnostic::error("report-figure", "a comparison of two runs has no figure");
            return Err(Failure::WrongUse(why.hint("write it as .md, .csv or .tex, or the figure of each run")));
        }
        return figures::write(&figures::race(run), path);
    }
    let ending = super::ending::of(path).unwrap_or_default();
    // a file is read by others
    let text = file(&all_tables(run, compared), &ending).unwrap_or_else(|| in_markdown(run, compared, english()));
    files::save(path, text.as_bytes())?;
    Ok(vec![out::path(path)])
}

/// What files are written in.
fn english() -> &'static Words {
    Words::of(Language::English)
}

fn all_tables(run: &RunFile, compared: Option<&Compared>) -> Vec<Table> {
    match compared {
        None => tables(&run.report),
        Some((changes, _)) => vec![changed(changes)],
    }
}

fn in_markdown(run: &RunFile, compared: Option<&Compared>, said: &'static Words) -> String {
    match compared {
        None => markdown(run, said),
        Some((changes, differences)) => comparison(changes, differences, said),
    }
}

/// Tables as a file of this ending, an empty line between them; None: another ending.
fn file(tables: &[Table], ending: &str) -> Option<String> {
    Some(tables.iter().map(|table| table.file(ending)).collect::<Option<Vec<_>>>()?.join("\n"))
}

/// The forward passes, and the backward passes where there are some.
fn tables(run: &RunReport) -> Vec<Table> {
    let mut forward = Table::told(&[
        "column-backend",
        "column-ran",
        "column-median",
        "column-spread",
        "TFLOP/s",
        "column-versus",
        "column-memory",
        "column-largest-error",
        "column-allowed",
        "column-kernel",
    ]);
    run.backends.iter().for_each(|b| forward.row(forward_line(b, run)));
    let mut all = vec![forward];
    if !run.gradients.is_empty() {
        let mut backward = Table::told(&race::GRADIENTS);
        run.gradients.iter().for_each(|g| backward.row(gradient_line(g, run)));
        all.push(backward);
    }
    all
}

/// A run in Markdown; in English as files have it.
pub(super) fn markdown(run: &RunFile, said: &'static Words) -> String {
    let (d, r) = (&run.document, &run.report);
    let s = &d.settings;
    let mut out = format!("# {}\n\n", d.name);
    if !d.about.is_empty() {
        out.push_str(&format!("{}\n\n", d.about));
    }
    let measured = [
        ("from", origins::sentence(said, &Provenance::Measured(r.place()))),
        ("batch", s.batch.to_string()),
        ("heads", s.heads.to_string()),
        ("few", s.kv_heads.to_string()),
        ("q", d.axes.q.to_string()),
        ("kv", d.axes.kv().to_string()),
        ("dim", s.head_dim.to_string()),
        ("dtype", s.dtype.to_string()),
    ];
    let kept = [
        ("kept", table::percent(r.work.density)),
        ("flop", table::big(r.work.flop)),
        ("computed", table::percent(r.work.computed)),
        ("size", s.block_size.to_string()),
    ];
    out.push_str(&line(said, "report-measured", measured));
    out.push_str(&line(said, "report-kept", kept));
    out.push('\n');
    out.push_str(&tables(r).iter().map(|table| table.markdown_in(said)).collect::<Vec<_>>().join("\n"));
    if r.backends.iter().any(|b| b.outcome.memory().is_some()) {
        let memory = line(said, "report-memory", [("what", ratios::memory(said).to_string())]);
        out.push_str(&format!("\n{memory}"));
    }
    for thumbnail in &run.pictures {
        out.push_str(&format!("\n{}:\n\n```text\n", thumbnail.title));
        picture::lines(&thumbnail.pixels(), thumbnail.width)
            .iter()
            .for_each(|l| out.push_str(&format!("{}\n", l.trim_end())));
        out.push_str("```\n");
    }
    out.push_str(&format!("\n{}\n", line(said, "report-environment", [])));
    r.conditions().for_each(|(k, v)| out.push_str(&format!("- {k}: {v}\n")));
    if let Some(card) = &r.card {
        out.push_str(&format!("- {}", line(said, "report-card-before", [("state", card.start.to_string())])));
        out.push_str(&format!("- {}", line(said, "report-card-after", [("state", card.end.to_string())])));
    }
    let how = &run.conditions.options;
    let figures = [("timed", timed(said, how, &r.gradients)), ("rows", how.reference_rows.to_string())];
    out.push_str(&format!("\n{}", line(said, "report-timed", figures)));
    out
}

fn line<const N: usize>(said: &'static Words, id: &str, figures: [(&'static str, String); N]) -> String {
    said.with(id, &figures.map(|(name, text)| (name, text.into()))) + "\n"
}

/// A backward pass: its time, the sum with the forward time, its worst gradient, or the reason for its absence.
fn gradient_line(g: &GradientReport, run: &RunReport) -> Vec<Cell> {
    let none = |word: &str, why: &Diagnostic| {
        let figures = |said: &'static Words| [("word", said.text(word).into()), ("why", why.message.as_str().into())];
        vec![g.backend.as_str().into(), Cell::told(|said| said.with("row-why", &figures(said)))]
    };
    match &g.outcome {
        GradientOutcome::Refused { why } => none("row-refused", why),
        GradientOutcome::Failed { why } => none("row-failed", why),
        GradientOutcome::Done { errors, timing, .. } => {
            let cells = race::gradient_line(g, errors, timing.as_ref().map(|t| t.median_ms), run);
            cells.into_iter().map(Cell::from).collect()
        }
    }
}

fn forward_line(b: &BackendReport, run: &RunReport) -> Vec<Cell> {
    let refused = |word: &str, why: &Diagnostic| {
        let mut cells = vec![Cell::default(); 10];
        (cells[0], cells[1], cells[9]) = (b.backend.as_str().into(), Cell::text(word), why.message.as_str().into());
        cells
    };
    match &b.outcome {
        Outcome::Refused { why } => refused("row-refused", why),
        Outcome::Failed { why } => refused("row-failed", why),
        Outcome::Done { kernel, error, timings, .. } => {
            let [median, spread, tflops] = match timings.forward() {
                Some(t) => {
                    let tflops = table::digits(run.work.flop / t.median_ms / 1e9);
                    [table::milliseconds(t.median_ms), t.spread_words(), tflops]
                }
                None => ["-", "-", "-"].map(String::from),
            };
            let largest = table::error(error.max_abs());
            let wrong = |fault: String| {
                Cell::told(|said| {
                    let word = said.with("row-error-wrong", &[("error", largest.as_str().into())]);
                    said.with("row-why", &[("word", word.into()), ("why", fault.as_str().into())])
                })
            };
            let base = run.baseline();
            let versus = match (&base, run.versus(b.backend)) {
                (Some(base), Some(versus)) => Cell::told(|said| ratios::versus(said, &versus, Some(&base.ran))),
                (Some(base), None) if base.backend == b.backend => Cell::text("row-baseline"),
                _ => Cell::default(),
            };
            vec![
                b.backend.as_str().into(),
                race::ran(b.backend, kernel),
                median.into(),
                spread.into(),
                tflops.into(),
                versus,
                table::memory(b.outcome.memory()).into(),
                error.fault().map_or_else(|| largest.as_str().into(), wrong),
                table::error(error.allowed()).into(),
                kernel.words.as_str().into(),
            ]
        }
    }
}

fn changed(changes: &[Change]) -> Table {
    let backward = changes.iter().any(|c| c.backward.is_some());
    let mut head = vec!["column-backend", "column-before", "column-after", "column-speed-up", ""];
    let more = ["column-backward-before", "column-backward-after", "column-speed-up", ""];
    head.extend(more.into_iter().filter(|_| backward));
    let mut table = Table::told(&head);
    for c in changes {
        let more = backward.then(|| pass_cells(c.backward.as_ref()));
        let cells = std::iter::once(Cell::from(c.backend.as_str())).chain(pass_cells(Some(&c.forward)));
        table.row(cells.chain(more.into_iter().flatten()));
    }
    table
}

fn comparison(changes: &[Change], differences: &[String], said: &'static Words) -> String {
    let mut out = changed(changes).markdown_in(said);
    if !differences.is_empty() {
        out.push_str(&format!("\n{}\n", line(said, "report-differ", [])));
        differences.iter().for_each(|d| out.push_str(&format!("- {d}\n")));
    }
    out
}

/// One pass of two runs: times, ratio, doubts.
fn pass_cells(pass: Option<&PassChange>) -> [Cell; 4] {
    let ms = |t: Option<f64>| t.map_or("-".into(), table::milliseconds);
    let ratio = pass.and_then(|p| p.speed_up).map_or("-".into(), |s| format!("{}x", table::digits(s)));
    let versus = pass.and_then(|p| p.versus.as_ref());
    let verdict = versus.map_or_else(Cell::default, |of| Cell::told(|said| ratios::remark(said, of)));
    let (before, after) = (pass.and_then(|p| p.before_ms), pass.and_then(|p| p.after_ms));
    [ms(before).into(), ms(after).into(), ratio.into(), verdict]
}

/// How the run was timed: `10 rounds of 1 passes after 2 untimed`, `3 backward passes`.
fn timed(said: &'static Words, how: &RaceOptions, gradients: &[GradientReport]) -> String {
    let samples = |g: &GradientReport| match &g.outcome {
        GradientOutcome::Done { timing: Some(timing), .. } => timing.samples_ms.len(),
        _ => 0,
    };
    let backward = gradients.iter().map(samples).max().unwrap_or(0);
    let back = said.with("timed-backward", &[("n", backward.to_string().into())]);
    let figures = [("rounds", how.rounds), ("passes", how.passes), ("warmup", how.warmup)];
    let forward = said.with("timed-forward", &figures.map(|(name, n)| (name, n.to_string().into())));
    match (how.rounds, backward) {
        (0, 0) => said.text("timed-nothing").into(),
        (0, _) => back,
        (_, 0) => forward,
        _ => said.with("timed-both", &[("forward", forward.into()), ("backward", back.into())]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::BackendName;
    use crate::problem::result::Timing;

    #[test]
    fn a_backward_pass_alone_is_not_zero_rounds() {
        let how = |rounds| RaceOptions { rounds, passes: 1, warmup: 2, ..RaceOptions::USUAL };
        let timing = Some(Timing { samples_ms: vec![1.0; 3], median_ms: 1.0, spread: 0.0, calls: None });
        let outcome =
            GradientOutcome::Done { kernel: "k".into(), errors: vec![], timing, unordered: None, memory_bytes: None };
        let backward = [GradientReport { backend: BackendName::Flex, outcome }];
        assert_eq!(timed(english(), &how(0), &backward), "3 backward passes");
        assert_eq!(timed(english(), &how(3), &backward), "3 rounds of 1 passes after 2 untimed, 3 backward passes");
        assert_eq!(timed(english(), &how(3), &[]), "3 rounds of 1 passes after 2 untimed");
        assert_eq!(timed(english(), &how(0), &[]), "nothing was timed");
    }

    #[test]
    fn a_comparison_has_the_columns_of_both_passes() {
        let pass = |before_ms, after_ms| PassChange {
            before_ms,
            after_ms,
            speed_up: before_ms.zip(after_ms).map(|(a, b): (f64, f64)| a / b),
            significant: false,
            verdict: None,
            versus: None,
        };
        let change = |backend, backward| Change { backend, forward: pass(Some(2.0), Some(1.0)), backward };
        let flex = change(BackendName::Flex, Some(pass(Some(6.0), Some(2.0))));
        let sdpa = change(BackendName::Sdpa, None);
        let both = comparison(&[flex, sdpa.clone()], &[], english());
        let flex = "| flex | 2.00 ms | 1.00 ms | 2.00x |  | 6.00 ms | 2.00 ms | 3.00x |  |";
        assert_eq!(both.lines().nth(2), Some(flex), "{both}");
        let bars: Vec<usize> = both.lines().map(|line| line.matches('|').count()).collect();
        assert_eq!(bars, [10; 4], "{both}");
        assert!(!comparison(&[sdpa], &[], english()).contains("backward"));
    }
}
