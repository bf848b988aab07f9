//! A run's outputs and times as tables: one row per output, one row per phase.
//!
//! Invariant: all outputs have the same columns of judgement; results of older files are converted to these tables when
//! they are read. Must not know any backend.

use crate::base::words::{self, percent};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Largest lse error allowed in 16-bit runs of files that do not say it.
pub const LSE_ALLOWED: f64 = 1e-3;

/// A run's outputs, under FlexAttention's names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum OutputName {
    /// [B, Hq, Q, Ev], of the problem's dtype.
    Out,
    /// [B, Hq, Q], natural log.
    Lse,
    /// [B, Hq, Q]: the rows' largest scores.
    MaxScores,
    /// Gradient of q.
    DQ,
    /// Gradient of k.
    DK,
    /// Gradient of v.
    DV,
    /// Gradient of a captured tensor, by the capture's name.
    DCapture(String),
}

/// How the gradient of a captured tensor is named: this, then the capture.
const CAPTURE: &str = "dcap.";

impl fmt::Display for OutputName {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str(match self {
            OutputName::Out => "out",
            OutputName::Lse => "lse",
            OutputName::MaxScores => "max_scores",
            OutputName::DQ => "dq",
            OutputName::DK => "dk",
            OutputName::DV => "dv",
            OutputName::DCapture(name) => return write!(to, "{CAPTURE}{name}"),
        })
    }
}

impl From<OutputName> for String {
    fn from(name: OutputName) -> String {
        name.to_string()
    }
}

impl TryFrom<String> for OutputName {
    type Error = String;
    fn try_from(text: String) -> Result<OutputName, String> {
        use OutputName::{DCapture, DK, DQ, DV, Lse, MaxScores, Out};
        let plain = [Out, Lse, MaxScores, DQ, DK, DV].into_iter().find(|name| name.to_string() == text);
        let capture = || text.strip_prefix(CAPTURE).filter(|name| !name.is_empty()).map(|name| DCapture(name.into()));
        plain.or_else(capture).ok_or_else(|| format!("`{text}` is not the name of an output"))
    }
}

/// One output and its reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputError {
    /// Which output.
    pub name: OutputName,
    /// Largest absolute error. -inf equals -inf.
    #[serde(with = "crate::base::float")]
    pub max_abs: f64,
    /// Root of the mean squared error over the root of the mean squared reference; None if it is not judged.
    #[serde(default, with = "crate::base::float::option", skip_serializing_if = "Option::is_none")]
    pub relative_rms: Option<f64>,
    /// Largest error that any element of any row may have. Each is judged by its own row's bar, which is often far
    /// smaller: see [`ErrorStats::worst`].
    #[serde(with = "crate::base::float")]
    pub allowed: f64,
    /// Largest `relative_rms` allowed; None in files of older versions, which did not judge it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_rms_allowed: Option<f64>,
    /// Elements that are NaN, infinite or still poisoned although the reference has a number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nan_mismatch: u64,
    /// From which rule the bars come, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
}

impl OutputError {
    /// Only a largest error and its bar.
    pub fn plain(name: OutputName, max_abs: f64, allowed: f64) -> OutputError {
        let (relative_rms, relative_rms_allowed, nan_mismatch, from) = (None, None, 0, String::new());
        OutputError { name, max_abs, relative_rms, allowed, relative_rms_allowed, nan_mismatch, from }
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// An error and its limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// Its output: `out`, `lse`, `max_scores`, with further description.
    pub what: String,
    /// Where: `b 0, h 3, q_idx 8191`, or of which rows together.
    pub place: String,
    /// How far it is off.
    #[serde(with = "crate::base::float")]
    pub error: f64,
    /// How far it may be.
    #[serde(with = "crate::base::float")]
    pub allowed: f64,
    /// One over the other: above 1 the result is wrong.
    #[serde(with = "crate::base::float")]
    pub ratio: f64,
}

/// Difference from the f64 reference: a row for each returned output. NaN in only one of the two places is a mismatch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Wire")]
pub struct ErrorStats {
    /// `out` first, then what else was given.
    pub outputs: Vec<OutputError>,
    /// Query rows compared (over batch and heads), and of how many.
    pub rows_checked: u64,
    /// All query rows.
    pub rows_total: u64,
    /// Compared rows whose output is not a number in the reference too: nothing is wrong there, and nothing is right.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nan_rows: u64,
    /// The error with the largest ratio to its limit; None in files of older versions, which judged by the largest
    /// errors alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<Worst>,
}

impl ErrorStats {
    /// The row of an output; None if the backend does not return it or it was not requested.
    pub fn output(&self, name: &OutputName) -> Option<&OutputError> {
        self.outputs.iter().find(|row| row.name == *name)
    }

    /// Largest absolute error of an output, if it was given.
    pub fn max_abs_of(&self, name: &OutputName) -> Option<f64> {
        self.output(name).map(|row| row.max_abs)
    }

    /// Largest absolute error of the first output.
    pub fn max_abs(&self) -> f64 {
        self.outputs.first().map_or(f64::NAN, |row| row.max_abs)
    }

    /// Largest error that any element of the first output may have.
    pub fn allowed(&self) -> f64 {
        self.outputs.first().map_or(0.0, |row| row.allowed)
    }

    /// From which rule the first output's bars come.
    pub fn allowed_from(&self) -> &str {
        self.outputs.first().map_or("", |row| &row.from)
    }

    /// Mismatches of all outputs.
    pub fn nan_mismatch(&self) -> u64 {
        self.outputs.iter().map(|row| row.nan_mismatch).sum()
    }

    /// Whether the result may be shown as correct.
    pub fn passed(&self) -> bool {
        let compared = self.nan_mismatch() == 0 && self.rows_checked > 0 && !self.outputs.is_empty();
        compared && self.worst.as_ref().map_or_else(|| self.passed_by_largest(), |worst| worst.ratio <= 1.0)
    }

    /// As older versions judged.
    fn passed_by_largest(&self) -> bool {
        self.outputs.iter().all(|row| row.max_abs <= row.allowed)
    }

    /// The rows that are not numbers, in words; None where all are.
    pub fn nan_words(&self) -> Option<String> {
        let (nan, all) = (self.nan_rows, self.rows_checked);
        (nan > 0).then(|| format!("the output is NaN in {nan} of {all} compared rows, here and in the reference"))
    }

    /// The fault, in words; None without one.
    pub fn fault(&self) -> Option<String> {
        if self.passed() {
            return None;
        }
        Some(match &self.worst {
            _ if self.nan_mismatch() > 0 => {
                let n = self.nan_mismatch();
                format!("{n} elements are NaN, infinite or never written where the reference has a number")
            }
            _ if self.rows_checked == 0 => "no row was compared".into(),
            Some(Worst { what, place, error, allowed, .. }) => {
                format!("{what} of {place} has an error of {error:.1e}; the limit there is {allowed:.1e}")
            }
            None => format!("error {:.1e}; the limit is {:.1e}", self.max_abs(), self.allowed()),
        })
    }
}

/// Errors as files hold them: a table, or version 1's fields.
#[derive(Deserialize)]
struct Wire {
    outputs: Option<Vec<OutputError>>,
    #[serde(default, with = "crate::base::float::option")]
    max_abs: Option<f64>,
    #[serde(default, with = "crate::base::float::option")]
    relative_rms: Option<f64>,
    #[serde(default, with = "crate::base::float::option")]
    lse_max_abs: Option<f64>,
    #[serde(default, with = "crate::base::float::option")]
    max_scores_max_abs: Option<f64>,
    #[serde(default)]
    nan_mismatch: u64,
    rows_checked: u64,
    rows_total: u64,
    #[serde(default)]
    nan_rows: u64,
    #[serde(default, with = "crate::base::float::option")]
    allowed: Option<f64>,
    #[serde(default)]
    relative_rms_allowed: f64,
    #[serde(default)]
    lse_allowed: f64,
    #[serde(default)]
    max_scores_allowed: f64,
    #[serde(default)]
    allowed_from: String,
    worst: Option<Worst>,
}

impl TryFrom<Wire> for ErrorStats {
    type Error = &'static str;

    fn try_from(wire: Wire) -> Result<ErrorStats, &'static str> {
        let Wire { rows_checked, rows_total, nan_rows, .. } = wire;
        let (outputs, worst) = match wire.outputs {
            Some(outputs) => (outputs, wire.worst),
            None => (wire.version_1()?, wire.worst),
        };
        Ok(ErrorStats { outputs, rows_checked, rows_total, nan_rows, worst })
    }
}

impl Wire {
    /// The rows of version 1's fields. It counted the mismatches of all outputs together: they are assigned to `out`.
    fn version_1(&self) -> Result<Vec<OutputError>, &'static str> {
        let (Some(max_abs), Some(allowed)) = (self.max_abs, self.allowed) else {
            return Err("an error has neither `outputs` nor `max_abs` and `allowed`");
        };
        let above_zero = |allowed: f64| Some(allowed).filter(|allowed| *allowed > 0.0);
        let row = |name, max_abs: Option<f64>, allowed| {
            let allowed = above_zero(allowed).unwrap_or(LSE_ALLOWED);
            let plain = OutputError::plain(name, max_abs?, allowed);
            Some(OutputError { from: self.allowed_from.clone(), ..plain })
        };
        let out = OutputError {
            name: OutputName::Out,
            max_abs,
            relative_rms: self.relative_rms,
            allowed,
            relative_rms_allowed: above_zero(self.relative_rms_allowed),
            nan_mismatch: self.nan_mismatch,
            from: self.allowed_from.clone(),
        };
        let others = [
            row(OutputName::Lse, self.lse_max_abs, self.lse_allowed),
            row(OutputName::MaxScores, self.max_scores_max_abs, self.max_scores_allowed),
        ];
        Ok(std::iter::once(out).chain(others.into_iter().flatten()).collect())
    }
}

/// Samples of one backend's time for one phase, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Every sample, in the order measured.
    pub samples_ms: Vec<f64>,
    /// Median.
    #[serde(with = "crate::base::float")]
    pub median_ms: f64,
    /// Interquartile range over the median (0.02 is 2%).
    #[serde(with = "crate::base::float")]
    pub spread: f64,
    /// The same passes as calls of a program, if the samples are times of the GPU alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Calls>,
}

/// Samples of a backend as it measured them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timed {
    /// Milliseconds of each pass: of the GPU's work if there is a clock, of the call otherwise.
    pub passes_ms: Vec<f64>,
    /// Milliseconds of a call as a program makes it, one after another, the host's part included; empty without a clock.
    pub calls_ms: Vec<f64>,
    /// How the GPU's part was told from the host's.
    pub clock: Option<Clock>,
}

impl From<Vec<f64>> for Timed {
    /// Passes that are calls.
    fn from(passes_ms: Vec<f64>) -> Timed {
        Timed { passes_ms, ..Timed::default() }
    }
}

impl Timed {
    /// Adds later samples.
    pub fn extend(&mut self, later: Timed) {
        self.passes_ms.extend(later.passes_ms);
        self.calls_ms.extend(later.calls_ms);
        self.clock = later.clock.or(self.clock);
    }
}

/// How the GPU's part of a call is told from the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Passes were enqueued while the GPU was busy, with events between them.
    Queue,
    /// A CUDA graph captured from the call was replayed.
    Graph,
    /// PyTorch's profiler counted the time of its kernels, because the call cannot be captured.
    Profiler,
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Clock::Queue => "launches queued ahead",
            Clock::Graph => "a replayed CUDA graph",
            Clock::Profiler => "the profiler's kernel time",
        })
    }
}

/// Calls of which the host takes longer than the GPU: `launch-bound: 1.22 ms a call, 0.55 ms on the GPU`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waits {
    /// Of a call.
    pub call_ms: f64,
    /// On the GPU.
    pub own_ms: f64,
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (call, own) = (words::milliseconds(self.call_ms), words::milliseconds(self.own_ms));
        write!(f, "launch-bound: {call} a call, {own} on the GPU")
    }
}

/// Calls as a program makes them, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// Median of a call, the host's part included.
    #[serde(with = "crate::base::float")]
    pub median_ms: f64,
    /// How the GPU's part was told from it.
    pub clock: Clock,
}

/// A call that takes this many times the GPU's time waits for its host.
const LAUNCH_BOUND: f64 = 1.15;
/// The same in milliseconds: less is the clock's own error.
const LAUNCH_MS: f64 = 0.005;

impl Timing {
    /// Something that was done once.
    pub fn once(ms: f64) -> Timing {
        Timing { samples_ms: vec![ms], median_ms: ms, ..Timing::default() }
    }

    /// Both times, if a program that calls it waits for the host.
    pub fn launch_bound(&self) -> Option<Waits> {
        let call_ms = self.calls?.median_ms;
        let waits = call_ms > LAUNCH_BOUND * self.median_ms && call_ms > self.median_ms + LAUNCH_MS;
        waits.then_some(Waits { call_ms, own_ms: self.median_ms })
    }

    /// The spread as a cell of a table.
    pub fn spread_words(&self) -> String {
        spread_words(self.samples_ms.len(), self.spread)
    }
}

/// The spread of this many samples as a cell of a table: one sample has none.
pub fn spread_words(samples: usize, spread: f64) -> String {
    if samples < 2 { "-".into() } else { percent(spread) }
}

/// The timed phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Everything before the first pass: block lists, compiling, tensors to the device.
    Prepare,
    /// The compiler alone, if it ran; a part of `Prepare`, or of the time after the first output.
    Compile,
    /// A forward pass.
    Forward,
    /// A backward pass.
    Backward,
}

/// One phase's samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseTiming {
    /// Which phase.
    pub phase: Phase,
    /// How long it took.
    #[serde(flatten)]
    pub timing: Timing,
}

/// The phases of a run, in order. Only `Forward` and `Backward` have many samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "WireTimings")]
pub struct Timings(pub Vec<PhaseTiming>);

impl Timings {
    /// For phases with samples.
    pub fn new(phases: impl IntoIterator<Item = (Phase, Option<Timing>)>) -> Timings {
        let row = |(phase, timing): (Phase, Option<Timing>)| Some(PhaseTiming { phase, timing: timing? });
        Timings(phases.into_iter().filter_map(row).collect())
    }

    /// For forward passes alone.
    pub fn forward_only(timing: Option<Timing>) -> Timings {
        Timings::new([(Phase::Forward, timing)])
    }

    /// Replaces the samples of a phase.
    pub fn put(&mut self, phase: Phase, timing: Timing) {
        match self.0.iter_mut().find(|row| row.phase == phase) {
            Some(row) => row.timing = timing,
            None => self.0.push(PhaseTiming { phase, timing }),
        }
    }

    /// The samples of a phase, if there are any.
    pub fn of(&self, phase: Phase) -> Option<&Timing> {
        self.0.iter().find(|row| row.phase == phase).map(|row| &row.timing)
    }

    /// The samples of forward passes; absent when only correctness was asked.
    pub fn forward(&self) -> Option<&Timing> {
        self.of(Phase::Forward)
    }
}

/// Times as files hold them: a list, or version 1's forward passes, which may be null.
#[derive(Deserialize)]
#[serde(untagged)]
enum WireTimings {
    List(Vec<PhaseTiming>),
    Forward(Timing),
    Nothing(()),
}

impl From<WireTimings> for Timings {
    fn from(wire: WireTimings) -> Timings {
        match wire {
            WireTimings::List(rows) => Timings(rows),
            WireTimings::Forward(timing) => Timings::forward_only(Some(timing)),
            WireTimings::Nothing(()) => Timings::default(),
        }
    }
}

#[cfg(test)]
#[path = "outputs_tests.rs"]
mod tests;
