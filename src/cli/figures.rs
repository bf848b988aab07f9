//! Figures and tables for papers: what `render`, `share`, `report` and `atlas` write with the endings svg, pdf, csv and tex.
//!
//! Invariant: numbers are those of the printed tables. Must not know how files are read.

use super::out::Failure;
use super::table;
use crate::base::provenance::Looked;
use crate::base::{BackendName, Provenance};
use crate::document::model::Document;
use crate::export::ExportFile;
use crate::export::figure::plots::{Bar, MaskPlot, bars, mask};
use crate::export::figure::{Colour, Figure};
use crate::export::picture::{EMPTY, FULL, colour};
use crate::problem::result::{GradientOutcome, Outcome, RunReport, Timing};
use crate::tasks::run_file::RunFile;
use crate::worker::files;
use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;

/// Endings of figures.
pub(super) const FIGURES: [&str; 2] = ["svg", "pdf"];

/// Whether a path asks for a figure.
pub(super) fn is_figure(path: &Path) -> bool {
    super::ending::of(path).is_some_and(|ending| FIGURES.contains(&ending.as_str()))
}

/// Writes a figure, and beside a chart its numbers. Errors: it cannot be written.
pub(super) fn write(figure: &Figure, path: &Path) -> Result<Vec<String>, Failure> {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let made: Vec<ExportFile> = figure.files(&name)?;
    // files are named by text: a stem that is none stands under its own bytes
    let stem = path.file_stem().unwrap_or_default();
    let readable = stem.to_string_lossy();
    let beside = |file: &ExportFile| {
        let (mut own, rest) = match file.name.strip_prefix(&*readable) {
            Some(rest) => (stem.to_os_string(), rest),
            None => (OsString::new(), file.name.as_str()),
        };
        own.push(rest);
        path.with_file_name(own)
    };
    for file in &made {
        files::save(&beside(file), &file.bytes)?;
    }
    Ok(made.iter().map(|file| beside(file).display().to_string()).collect())
}

/// What a picture shows.
pub(super) struct Shown<'a> {
    /// Of which design.
    pub document: &'a Document,
    /// Batch entry and head.
    pub place: [usize; 2],
    /// Query tokens.
    pub q: Range<usize>,
    /// Key tokens.
    pub kv: Range<usize>,
    /// Pixels across and down.
    pub pixels: [usize; 2],
}

impl Shown<'_> {
    fn plot(&self, rgb: Vec<u8>, caption: &str, legend: Vec<(Colour, String)>, looked: Looked) -> Figure {
        let axes = &self.document.axes;
        let ([across, down], cells) = (self.pixels, [self.q.len(), self.kv.len()]);
        mask(&MaskPlot {
            title: &self.document.name,
            caption,
            rgb,
            pixels: self.pixels,
            rows: [self.q.start, self.q.end],
            cols: [self.kv.start, self.kv.end],
            q_axis: &axes.q,
            kv_axis: axes.kv(),
            legend,
            from: Provenance::design(self.place, cells, [down, across], looked),
        })
    }

    /// The kept share of each pixel; whether all are exact.
    pub(super) fn mask(&self, shares: &[f32], exact: bool) -> Figure {
        let rgb = shares.iter().flat_map(|share| colour(*share)).collect();
        let mean = shares.iter().map(|s| f64::from(*s)).sum::<f64>() / shares.len().max(1) as f64;
        let caption = format!("Keeps {} of the cells shown.", table::percent(mean));
        let legend = [(FULL, "kept"), (EMPTY, "dropped"), (colour(0.6), "part of its cells kept (lighter: fewer)")];
        let legend = legend.map(|(colour, words)| (colour, words.to_string()));
        self.plot(rgb, &caption, legend.into(), Looked::of(exact))
    }

    /// What score mods add, in colours from the smallest to the largest value.
    pub(super) fn bias(&self, values: &[f32], rgb: Vec<u8>) -> Figure {
        let finite = || values.iter().copied().filter(|v| v.is_finite());
        let (low, high) = finite().fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let at = |share: f64| {
            let c = colorous::CIVIDIS.eval_continuous(share);
            [c.r, c.g, c.b]
        };
        let mut legend = vec![
            (at(0.0), format!("{low:.4}")),
            (at(0.5), format!("{:.4}", (low + high) / 2.0)),
            (at(1.0), format!("{high:.4}")),
        ];
        if finite().count() < values.len() {
            legend.push(([255; 3], "not finite".into()));
        }
        self.plot(rgb, "The score mods' result for a score of zero.", legend, Looked::One)
    }
}

/// Ours, and those of others.
fn colour_of(backend: BackendName) -> Colour {
    match backend {
        BackendName::Flex => [0x0b, 0x57, 0xa4],
        other if other.is_torch() => [0xb3, 0x59, 0x00],
        _ => [0x8a, 0x99, 0xb3],
    }
}

fn range(timing: &Timing) -> Option<[f64; 2]> {
    let all = || timing.samples_ms.iter().copied();
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    least.is_finite().then_some([least, most])
}

/// The times of a run as bars.
pub(super) fn race(run: &RunFile) -> Figure {
    let report = &run.report;
    let forward: Vec<Bar> = report.backends.iter().map(|b| forward_bar(b.backend, &b.outcome, report)).collect();
    let backward: Vec<Bar> = report.gradients.iter().map(|g| backward_bar(g.backend, &g.outcome)).collect();
    let torch = report.environment.get("torch").map(|version| format!(" PyTorch {version}.")).unwrap_or_default();
    let settings = &run.document.settings;
    let caption = format!(
        "{} x {} tokens, batch {}, {} heads of {}, {}; the mask keeps {} of its cells. Every time is of a result that was checked \
         against {}.{torch}",
        run.document.axes.q.len(),
        run.document.axes.kv().len(),
        settings.batch,
        settings.heads,
        settings.head_dim,
        settings.dtype,
        table::percent(report.work.density),
        Provenance::Reference
    );
    let from = Provenance::Measured(report.place());
    bars(&run.document.name, &[("Forward pass", forward), ("Backward pass", backward)], &caption, &from)
}

fn forward_bar(backend: BackendName, outcome: &Outcome, report: &RunReport) -> Bar {
    let bar = |words: String, timing: Option<&Timing>| Bar {
        name: backend.to_string(),
        ms: timing.map(|t| t.median_ms),
        range: timing.and_then(range),
        words,
        colour: colour_of(backend),
    };
    match outcome {
        Outcome::Done { error, timings, .. } if error.passed() => {
            let timing = timings.forward();
            let ratio =
                report.baseline().zip(report.versus(backend)).map(|(base, v)| format!(", {}", v.words_of(&base.words)));
            let words =
                timing.map_or("not timed".into(), |t| table::milliseconds(t.median_ms) + &ratio.unwrap_or_default());
            bar(words, timing)
        }
        Outcome::Done { .. } => bar("wrong result: no time".into(), None),
        Outcome::Refused { why } => bar(format!("refused: {}", why.message), None),
        Outcome::Failed { why } => bar(format!("failed: {}", why.message), None),
    }
}

fn backward_bar(backend: BackendName, outcome: &GradientOutcome) -> Bar {
    let timing = outcome.right();
    let words = match (timing, outcome) {
        (Some(timing), _) => table::milliseconds(timing.median_ms),
        (None, GradientOutcome::Refused { why }) => format!("refused: {}", why.message),
        (None, GradientOutcome::Failed { why }) => format!("failed: {}", why.message),
        (None, GradientOutcome::Done { .. }) => "no time of a right result".into(),
    };
    let (name, colour) = (backend.to_string(), colour_of(backend));
    Bar { name, ms: timing.map(|t| t.median_ms), range: timing.and_then(range), words, colour }
}
