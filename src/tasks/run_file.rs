//! A run as a file: environment, preset, every sample, errors, small pictures. Opened, compared and shipped.
//!
//! Invariant: a saved run opens equal; a file of another version or with wrong types is a diagnostic; saving is
//! complete or not at all. Must not know how a run is shown.

use crate::analysis::raster::{BiasRaster, Raster, Region};
use crate::backends::race::RaceOptions;
use crate::base::{BackendName, Control, Diagnostic, Lengths, identity};
use crate::document::compile::Compiled;
use crate::document::model::Document;
use crate::problem::facts::Busy;
use crate::problem::result::{GradientOutcome, RunReport, Timing};
use crate::problem::verdict::Versus;
use crate::problem::{Fingerprint, ProblemSpec};
use crate::tasks::ratios;
use crate::words::{Language, Words};
use crate::worker::files;
use crate::worker::protocol::{InputSource, RunRequest};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version written to new files. Readers accept this and every older one.
pub const RUN_VERSION: u32 = 2;
/// Pixels along the longer side of a picture.
const SIDE: usize = 64;

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFile {
    /// [`RUN_VERSION`] when saved.
    pub maskloom_run: u32,
    /// The document that ran.
    pub document: Document,
    /// For the problem that ran; absent in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// How it ran.
    pub conditions: Conditions,
    /// The result.
    pub report: RunReport,
    /// Small pictures of the mask and the bias.
    #[serde(default)]
    pub pictures: Vec<Thumbnail>,
    /// What `document` is a smaller copy of, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<Box<CopyOf>>,
}

/// The original document of a smaller copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyOf {
    /// All of it.
    pub document: Document,
    /// The share of cells that it keeps.
    pub kept: f64,
}

/// Inputs and rounds of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // as in RunRequest
pub struct Conditions {
    pub inputs: InputSource,
    #[serde(flatten)]
    pub options: RaceOptions,
}

impl Conditions {
    /// Those of a request.
    pub fn of(request: &RunRequest) -> Conditions {
        Conditions { inputs: request.inputs.clone(), options: request.options }
    }
}

/// A small grey picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thumbnail {
    /// `mask` or `bias`.
    pub title: String,
    /// Pixels in a row.
    pub width: usize,
    /// Rows, two hexadecimal digits a pixel: 00 for nothing (or the smallest bias), ff for all (or the largest).
    pub rows: Vec<String>,
}

impl RunFile {
    /// Puts a run together; draws the pictures (milliseconds).
    pub fn new(document: &Document, compiled: &Compiled, request: &RunRequest, report: RunReport) -> RunFile {
        RunFile { pictures: pictures(document, compiled), ..RunFile::bare(document.clone(), request, report) }
    }

    /// The same without pictures, of a document that is not compiled here.
    pub fn bare(document: Document, request: &RunRequest, report: RunReport) -> RunFile {
        RunFile {
            maskloom_run: RUN_VERSION,
            document,
            fingerprint: Some(request.problem.fingerprint()),
            conditions: Conditions::of(request),
            report,
            pictures: Vec::new(),
            copy_of: None,
        }
    }

    /// Whether its numbers belong to this problem; None if the file does not identify it. A document that links a
    /// changed file, or that another version of Maskloom reads differently, gives another problem than before.
    pub fn is_of(&self, problem: &ProblemSpec) -> Option<bool> {
        self.fingerprint.as_ref().map(|own| *own == problem.fingerprint())
    }

    /// The document of the run: the original, if a smaller copy ran.
    pub fn whole(&self) -> &Document {
        self.copy_of.as_ref().map_or(&self.document, |copy| &copy.document)
    }

    /// As JSON.
    pub fn to_json(&self) -> Result<String, Diagnostic> {
        let text = serde_json::to_string_pretty(&RunFile { maskloom_run: RUN_VERSION, ..self.clone() });
        text.map(|t| t + "\n").map_err(|e| Diagnostic::error("run-file", format!("the run cannot be written: {e}")))
    }

    /// From JSON. Errors: no run file, a newer version, wrong types.
    pub fn from_json(text: &str) -> Result<RunFile, Diagnostic> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| not_a_run(&format!("it is not JSON: {e}")))?;
        match value.get("maskloom_run").map(|v| v.as_u64()) {
            None => return Err(not_a_run("it has no `maskloom_run` version")),
            Some(Some(1..=2)) => {}
            Some(_) => {
                let message = format!(
                    "the run file has format version {}; this Maskloom ({}) reads versions 1 to {RUN_VERSION}",
                    value["maskloom_run"],
                    identity::build().version
                );
                return Err(Diagnostic::error("run-file-version", message).hint("update Maskloom"));
            }
        }
        let run: RunFile = serde_json::from_value(value).map_err(|e| not_a_run(&e.to_string()))?;
        let whole = run.copy_of.iter().flat_map(|copy| copy.document.validate());
        match run.document.validate().into_iter().chain(whole).next() {
            Some(why) => Err(why),
            None => Ok(run),
        }
    }

    /// Saves it, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), Diagnostic> {
        files::save(path, self.to_json()?.as_bytes())
    }

    /// Opens one. Errors name the file.
    pub fn open(path: &Path) -> Result<RunFile, Diagnostic> {
        RunFile::from_json(&files::read_text(path)?).map_err(|mut why| {
            why.message = format!("{}: {}", path.display(), why.message);
            why
        })
    }
}

/// Whether a text is a run file, of any version, rather than a document; false if it is not JSON.
pub fn is_run(text: &str) -> bool {
    // most documents never say the word, and are not parsed twice
    text.contains("\"maskloom_run\"")
        && serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| value.get("maskloom_run").is_some())
}

/// A run whose numbers belong to another problem than the one it is named for.
pub fn of_another(path: &Path) -> Diagnostic {
    let message = format!("the run in {} is of another problem: mask, lengths, heads or format differ", path.display());
    Diagnostic::error("run-of-another", message)
        .hint("race this design and save that run: maskloom run DESIGN --save-run RUN.json")
}

fn not_a_run(why: &str) -> Diagnostic {
    Diagnostic::error("run-file", format!("this is not a run file: {why}"))
        .hint("run files are written by `maskloom run PRESET --save-run F` and by the window's Race workspace")
}

/// One backend in two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Who.
    pub backend: BackendName,
    /// Its forward pass.
    #[serde(flatten)]
    pub forward: PassChange,
    /// Its backward pass, if either run asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backward: Option<PassChange>,
}

/// One pass in two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PassChange {
    /// Medians, in milliseconds, if it was timed.
    pub before_ms: Option<f64>,
    /// The same in the other run.
    pub after_ms: Option<f64>,
    /// Before over after: above 1 the other run is faster.
    pub speed_up: Option<f64>,
    /// Whether the samples show a difference.
    pub significant: bool,
    /// Doubts about it, in words: `no difference shown (intervals overlap)`; None without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The ratio with its doubts, for other languages.
    #[serde(skip)]
    pub versus: Option<Versus>,
}

/// Two runs side by side, with the differences of their conditions (which limit a comparison).
pub fn compare(before: &RunFile, after: &RunFile) -> (Vec<Change>, Vec<String>) {
    let mut names: Vec<BackendName> = Vec::new();
    for report in [&before.report, &after.report] {
        let all = report.backends.iter().map(|b| b.backend).chain(report.gradients.iter().map(|g| g.backend));
        for name in all {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let changes = names.into_iter().map(|name| change(name, before, after)).collect();
    let mut differences = Vec::new();
    let mut note = |what: &str, a: String, b: String| {
        if a != b {
            differences.push(format!("{what}: {a} before, {b} after"));
        }
    };
    let of = |run: &RunFile| (run.document.axes.lengths().ok(), run.document.settings.clone());
    let ((a_len, a), (b_len, b)) = (of(before), of(after));
    let reported = |run: &RunFile, what: &str| run.report.environment.get(what).cloned();
    for what in ["driver", "nvrtc", "torch"] {
        if let (Some(a), Some(b)) = (reported(before, what), reported(after, what)) {
            note(what, a, b);
        }
    }
    let limit = |run: &RunFile| run.report.card.and_then(|card| card.start.power_limit_w);
    if let (Some(a), Some(b)) = (limit(before), limit(after)) {
        note("power limit", format!("{a} W"), format!("{b} W"));
    }
    note("device", before.report.device_name.clone(), after.report.device_name.clone());
    note("document", before.document.name.clone(), after.document.name.clone());
    let words = |of: Option<Lengths>| of.map_or("unknown".into(), |of| format!("{} x {}", of.q_len, of.kv_len));
    note("lengths", words(a_len), words(b_len));
    note("heads", format!("{}/{}", a.heads, a.kv_heads), format!("{}/{}", b.heads, b.kv_heads));
    note("head_dim", a.head_dim.to_string(), b.head_dim.to_string());
    note("dtype", a.dtype.to_string(), b.dtype.to_string());
    note("batch", a.batch.to_string(), b.batch.to_string());
    let prints = before.fingerprint.as_ref().zip(after.fingerprint.as_ref());
    if let Some((a, b)) = prints.filter(|(a, b)| a != b && differences.is_empty()) {
        differences.push(format!("mask, score mods or settings: problem {a} before, {b} after"));
    }
    (changes, differences)
}

fn change(backend: BackendName, before: &RunFile, after: &RunFile) -> Change {
    let busy = before.report.busy().or(after.report.busy());
    let both = |of: fn(&RunReport, BackendName) -> Option<&Timing>| {
        PassChange::new(of(&before.report, backend), of(&after.report, backend), busy)
    };
    let asked = |run: &RunFile| run.report.gradients.iter().any(|g| g.backend == backend);
    let backward = (asked(before) || asked(after)).then(|| both(backward_timing));
    Change { backend, forward: both(RunReport::timing), backward }
}

/// The samples of one backend's backward pass, if it was timed.
fn backward_timing(report: &RunReport, backend: BackendName) -> Option<&Timing> {
    match &report.gradients.iter().find(|g| g.backend == backend)?.outcome {
        GradientOutcome::Done { timing, .. } => timing.as_ref(),
        _ => None,
    }
}

impl PassChange {
    fn new(before: Option<&Timing>, after: Option<&Timing>, busy: Option<Busy>) -> PassChange {
        let found = before.zip(after).filter(|(_, after)| after.median_ms > 0.0);
        let versus = found.map(|(before, after)| Versus::new(after, before, busy));
        let words = |v: &Versus| ratios::remark(Words::of(Language::English), v);
        PassChange {
            before_ms: before.map(|t| t.median_ms),
            after_ms: after.map(|t| t.median_ms),
            speed_up: versus.as_ref().map(|v| v.ratio),
            significant: versus.as_ref().is_some_and(|v| v.shown),
            verdict: versus.as_ref().map(words).filter(|doubts| !doubts.is_empty()),
            versus,
        }
    }
}

/// Small pictures of the cells that a document's mask keeps and the bias that it adds, for batch 0 and head 0.
pub fn pictures(document: &Document, compiled: &Compiled) -> Vec<Thumbnail> {
    let Ok(lengths) = document.axes.lengths() else { return Vec::new() };
    let [height, width] = lengths.in_pixels(SIDE.min(lengths.longer()));
    let (region, control) = (Region::whole([0, 0], lengths, [height, width]), Control::new());
    let mut pictures = Vec::new();
    if let Some(mask) = &compiled.mask {
        let shares = Raster::new(mask.clone()).tile(&region, &control);
        pictures.push(thumbnail("mask", width, &shares));
    }
    if let Some(score) = &compiled.score {
        let values = BiasRaster::new(score.clone()).tile(&region, &control);
        let finite = || values.iter().copied().filter(|v| v.is_finite());
        let (lo, hi) = finite().fold((f32::INFINITY, f32::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
        let span = if hi > lo { hi - lo } else { 1.0 };
        let shares: Vec<f32> = values.iter().map(|v| if v.is_finite() { (v - lo) / span } else { 0.0 }).collect();
        pictures.push(thumbnail("bias", width, &shares));
    }
    pictures
}

fn thumbnail(title: &str, width: usize, shares: &[f32]) -> Thumbnail {
    let hex = |s: &f32| format!("{:02x}", (s.clamp(0.0, 1.0) * 255.0).round() as u8);
    let rows = shares.chunks(width).map(|row| row.iter().map(hex).collect()).collect();
    Thumbnail { title: title.into(), width, rows }
}

impl Thumbnail {
    /// Shares in 0..=1, row by row; 0 for invalid digits.
    pub fn pixels(&self) -> Vec<f32> {
        let byte = |pair: &[u8]| {
            let text = std::str::from_utf8(pair).unwrap_or("0");
            f32::from(u8::from_str_radix(text, 16).unwrap_or(0)) / 255.0
        };
        self.rows.iter().flat_map(|row| row.as_bytes().chunks(2).map(byte).collect::<Vec<_>>()).collect()
    }
}

#[cfg(test)]
#[path = "run_file_tests.rs"]
mod tests;
