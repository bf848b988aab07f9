//! Comparison of two timings, and the implementation behind a backend's name: the words next to every ratio.
//!
//! Invariant: one function decides whether a difference is shown, and one names what ran; every table, chart, card and
//! file uses them. One of our backends is never shown under the name of the library that it replaces. Must not measure.

use super::result::{BackendReport, Outcome, RunReport, Timing};
use crate::base::BackendName;
use serde::{Deserialize, Serialize};

/// A spread (interquartile range over the median) beyond which a figure is called loose.
pub const LOOSE: f64 = 0.10;
/// A spread beyond which there is no ratio.
const NONE: f64 = 1.0;
/// Ratios nearer to 1 than this are no difference, even with a steady clock.
const ALIKE: f64 = 0.01;

/// How often one time goes into another, and whether that may be believed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Versus {
    /// The other's median over this one's: above 1 this one is faster.
    pub ratio: f64,
    /// Whether the samples show a difference at all: the medians with their spreads, as rows print them, do not meet.
    pub shown: bool,
    /// The larger spread of the two.
    #[serde(default)]
    pub spread: f64,
    /// Why the figure is loose, or shows nothing: `spread 141%`, `intervals overlap`, `other programs used 1.2 of 2 cores`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// The other's calls, if a program that makes them waits for the host: the ratio is of times on the GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl Versus {
    /// For `own` against `other`, both measured in one run; `busy` is the load of other programs.
    pub fn new(own: &Timing, other: &Timing, busy: Option<Busy>) -> Versus {
        let ratio = other.median_ms / own.median_ms;
        let [(a, b), (c, d)] = [interval(own), interval(other)];
        let overlap = a <= d && c <= b;
        let mut doubts = Vec::new();
        if overlap && (ratio - 1.0).abs() > ALIKE {
            doubts.push("intervals overlap".to_string());
        }
        let spread = own.spread.max(other.spread);
        if spread > LOOSE {
            doubts.push(format!("spread {:.0}%", 100.0 * spread));
        }
        doubts.extend(busy.map(|busy| busy.to_string()));
        // a program does not get the ratio of kernels that wait for their launches
        doubts.extend(own.launch_bound());
        let host = other.launch_bound().map(|words| format!("the other is {words}"));
        let differs = (ratio - 1.0).abs() > ALIKE && ratio.is_finite();
        Versus { ratio, shown: !overlap && differs && spread <= NONE, spread, doubts, host }
    }

    /// Whether the difference is shown and nothing makes the figure loose: only such a ratio may be praised.
    pub fn is_clear(&self) -> bool {
        self.shown && self.doubts.is_empty()
    }

    /// `1.25x`, `3.42x (spread 14%)`, `1.02x, no difference shown (intervals overlap, spread 41%)`, `no ratio (intervals
    /// overlap, spread 231%)`.
    pub fn words(&self) -> String {
        let mut words = match (self.spread > NONE, self.shown) {
            (true, _) => "no ratio".to_string(),
            (_, true) => format!("{:.2}x", self.ratio),
            (_, false) => format!("{:.2}x, no difference shown", self.ratio),
        };
        let remarks: Vec<&str> = self.doubts.iter().chain(&self.host).map(String::as_str).collect();
        if !remarks.is_empty() {
            words.push_str(&format!(" ({})", remarks.join(", ")));
        }
        words
    }

    /// The same with the name of the baseline: `1.25x our dense-mask kernel`.
    pub fn words_of(&self, other: &str) -> String {
        let words = self.words();
        match words.split_once('x').filter(|_| self.spread <= NONE) {
            Some((ratio, rest)) => format!("{ratio}x {other}{rest}"),
            None => words,
        }
    }
}

/// The median and the spread about it that rows print: `5.29 ms \u{b1}16%`.
fn interval(timing: &Timing) -> (f64, f64) {
    (timing.median_ms * (1.0 - timing.spread), timing.median_ms * (1.0 + timing.spread))
}

/// Quantile of sorted samples with linear interpolation.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// Processors that other programs took while backends were timed on the cpu.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busy {
    /// On average, such as 1.2.
    pub others: f64,
    /// Total number.
    pub cores: usize,
}

impl Busy {
    /// Its name in a run's environment.
    pub const KEY: &str = "busy";
}

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "other programs used {:.1} of {} cores", self.others, self.cores)
    }
}

impl std::str::FromStr for Busy {
    type Err = ();
    fn from_str(text: &str) -> Result<Busy, ()> {
        let numbers =
            text.strip_prefix("other programs used ").and_then(|rest| rest.strip_suffix(" cores")).ok_or(())?;
        let (others, cores) = numbers.split_once(" of ").ok_or(())?;
        Ok(Busy { others: others.parse().map_err(|_| ())?, cores: cores.parse().map_err(|_| ())? })
    }
}

/// Who ran, in words: `cuDNN 9.19 SDPA`, `our dense-mask kernel`, `our CPU flex kernel`, `PyTorch 2.15 SDPA, efficient`.
/// `kernel` is the report's own text.
pub fn what_ran(backend: BackendName, kernel: &str) -> String {
    if backend.is_torch() {
        return torch_words(backend, kernel);
    }
    if let Some(rest) = kernel.strip_prefix("cuDNN ") {
        let version = rest.split(' ').next().unwrap_or_default();
        return format!("cuDNN {version} SDPA");
    }
    let cpu = if kernel.starts_with("cpu ") { "CPU " } else { "" };
    let name = match backend {
        BackendName::Sdpa if kernel.contains("causal") => "causal",
        BackendName::Sdpa if kernel.contains("no mask") || kernel.contains("mask:none") => "maskless",
        BackendName::Sdpa => "dense-mask",
        BackendName::FlashAttention2 => "FlashAttention-2",
        BackendName::Eager => "eager",
        _ => "flex",
    };
    format!("our {cpu}{name} kernel")
}

/// `torch 2.15.0+cu128 SDPA efficient, dense mask` as `PyTorch 2.15 SDPA, efficient`.
fn torch_words(backend: BackendName, kernel: &str) -> String {
    let mut words = kernel.strip_prefix("torch ").unwrap_or_default().splitn(2, ' ');
    let version: Vec<&str> = words.next().unwrap_or_default().split(['.', '+']).take(2).collect();
    let rest = words.next().unwrap_or_default();
    let (name, which) = match backend {
        BackendName::TorchSdpa => ("SDPA", rest.strip_prefix("SDPA ").and_then(|r| r.split(',').next())),
        BackendName::TorchEager => ("eager", None),
        _ => ("FlexAttention", rest.strip_prefix("flex, ")),
    };
    let which = which.filter(|w| !w.is_empty()).map(|w| format!(", {w}")).unwrap_or_default();
    format!("PyTorch {} {name}{which}", version.join("."))
}

/// The baseline of the others in a race.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline<'a> {
    /// Who.
    pub backend: BackendName,
    /// How long it took.
    pub timing: &'a Timing,
    /// Its implementation; see [`what_ran`].
    pub words: String,
}

/// The fastest right SDPA: the user's present choice. If every SDPA refuses, as for score mods, the fastest eager.
pub fn baseline(reports: &[BackendReport]) -> Option<Baseline<'_>> {
    use BackendName::{Eager, Sdpa, TorchEager, TorchSdpa};
    [[Sdpa, TorchSdpa], [Eager, TorchEager]].iter().find_map(|names| fastest_of(reports, names))
}

/// The fastest right one of these backends.
fn fastest_of<'a>(reports: &'a [BackendReport], names: &[BackendName]) -> Option<Baseline<'a>> {
    let timed = reports.iter().filter(|r| names.contains(&r.backend)).filter_map(|r| match &r.outcome {
        Outcome::Done { kernel, .. } => Some((r.backend, r.outcome.right()?, kernel)),
        _ => None,
    });
    let (backend, timing, kernel) = timed.min_by(|a, b| a.1.median_ms.total_cmp(&b.1.median_ms))?;
    Some(Baseline { backend, timing, words: what_ran(backend, kernel) })
}

impl RunReport {
    /// The baseline of the others; see [`baseline`].
    pub fn baseline(&self) -> Option<Baseline<'_>> {
        baseline(&self.backends)
    }

    /// The baseline that was asked for, if it was right and timed; without a wish the usual one.
    pub fn baseline_of(&self, wanted: Option<BackendName>) -> Option<Baseline<'_>> {
        wanted.map_or_else(|| self.baseline(), |name| fastest_of(&self.backends, &[name]))
    }

    /// A backend against [`Self::baseline_of`]: None for the baseline itself, and where either has no time.
    pub fn versus_of(&self, backend: BackendName, wanted: Option<BackendName>) -> Option<Versus> {
        let base = self.baseline_of(wanted).filter(|base| base.backend != backend)?;
        Some(Versus::new(self.timing(backend)?, base.timing, self.busy()))
    }

    /// The load of other programs while it was timed, if relevant.
    pub fn busy(&self) -> Option<Busy> {
        self.environment.get(Busy::KEY)?.parse().ok()
    }

    /// A backend against the baseline: None for the baseline itself, and where either has no time.
    pub fn versus(&self, backend: BackendName) -> Option<Versus> {
        self.versus_of(backend, None)
    }

    /// The samples of one backend, if it was timed.
    pub fn timing(&self, backend: BackendName) -> Option<&Timing> {
        self.backends.iter().find(|r| r.backend == backend)?.outcome.forward()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(samples: &[f64]) -> Timing {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median_ms = quantile(&sorted, 0.5);
        let spread = (quantile(&sorted, 0.75) - quantile(&sorted, 0.25)) / median_ms;
        Timing { samples_ms: samples.to_vec(), median_ms, spread, calls: None }
    }

    #[test]
    fn a_slow_host_changes_no_ratio_and_is_told() {
        use crate::problem::result::{Calls, Clock};
        let with_calls = |ms: f64, call: f64| {
            let calls = Some(Calls { median_ms: call, clock: Clock::Graph });
            Timing { calls, ..timing(&[ms, 1.01 * ms, ms, 0.99 * ms, ms]) }
        };
        let (ours, theirs) = (with_calls(0.43, 0.44), with_calls(0.55, 1.22));
        assert_eq!(ours.launch_bound(), None);
        let found = Versus::new(&ours, &theirs, None);
        assert!(found.is_clear() && (found.ratio - 0.55 / 0.43).abs() < 1e-12, "{found:?}");
        let words = "1.28x (the other is launch-bound: 1.22 ms a call, 0.550 ms on the GPU)";
        assert_eq!(found.words(), words);
        // whose own calls wait gives a program less than the ratio of its kernels
        let found = Versus::new(&with_calls(0.1, 0.2), &theirs, None);
        assert!(
            found.shown && !found.is_clear() && found.words().contains("(launch-bound: 0.200 ms a call"),
            "{found:?}"
        );
        // some microseconds are the clock's own
        assert_eq!(with_calls(0.01, 0.014).launch_bound(), None);
    }

    #[test]
    fn a_difference_is_judged_by_the_spread_that_rows_print() {
        let of = |median_ms: f64, spread: f64| Timing { samples_ms: Vec::new(), median_ms, spread, calls: None };
        let found = Versus::new(&of(22.5, 0.68), &of(1.21, 0.03), None);
        assert!(found.shown && found.words().starts_with("0.05x (spread 68%"), "{}", found.words());
        let found = Versus::new(&of(1.51, 0.02), &of(5.29, 1.16), None);
        assert!(!found.shown);
        assert_eq!(found.words_of("eager"), "no ratio (intervals overlap, spread 116%)");
        let found = Versus::new(&of(1.51, 0.02), &of(52.9, 2.31), None);
        assert!(!found.shown && found.words().starts_with("no ratio ("), "{}", found.words());
    }

    #[test]
    fn noise_shows_no_difference_and_a_steady_clock_does() {
        let steady = timing(&[1.0, 1.01, 1.0, 1.02, 0.99, 1.0]);
        let slower = timing(&[2.5, 2.52, 2.49, 2.5, 2.51, 2.5]);
        let clear = Versus::new(&steady, &slower, None);
        assert!(clear.is_clear());
        assert_eq!(clear.words_of("our dense-mask kernel"), "2.50x our dense-mask kernel");
        // the ±141% of a ratio that was shown as a green 1.25x
        let noisy = timing(&[0.4, 1.0, 2.6, 0.5, 3.0, 1.2]);
        let found = Versus::new(&noisy, &timing(&[1.2, 1.4, 1.3, 1.5, 1.2, 1.4]), None);
        assert!(!found.shown && !found.is_clear(), "{found:?}");
        assert!(found.words().starts_with("no ratio (intervals overlap, spread "), "{}", found.words());
        assert!(!Versus::new(&steady, &timing(&[1.003; 6]), None).shown);
        // far apart but loose, and on a busy machine: shown, said, not praised
        let loose = Versus::new(&steady, &timing(&[10.0, 12.0, 14.0, 11.0, 13.0, 12.0]), None);
        assert!(loose.shown && !loose.is_clear() && loose.words() == "12.00x (spread 12%)", "{}", loose.words());
        let busy = Busy { others: 1.25, cores: 2 };
        assert_eq!("other programs used 1.2 of 2 cores".parse(), Ok(Busy { others: 1.2, cores: 2 }));
        let found = Versus::new(&steady, &slower, Some(busy));
        assert!(found.shown && !found.is_clear());
        assert_eq!(found.words_of("cuDNN 9.19 SDPA"), "2.50x cuDNN 9.19 SDPA (other programs used 1.2 of 2 cores)");
    }

    #[test]
    fn ours_are_called_ours_and_others_by_their_versions() {
        use BackendName::*;
        for (backend, kernel, words) in [
            (Sdpa, "cuDNN 9.19 fused attention, is_causal", "cuDNN 9.19 SDPA"),
            (
                Sdpa,
                "flex_sm80 128x64 d128 bf16 mask:dense sm_90a, Maskloom's fused kernel, dense",
                "our dense-mask kernel",
            ),
            (Sdpa, "cpu sdpa avx2 f32 64x16 d64, causal", "our CPU causal kernel"),
            (Sdpa, "cpu sdpa avx2 f32 64x16 d64, dense mask", "our CPU dense-mask kernel"),
            (Flex, "flex_sm90 128x128 d128 bf16 mask:bitmap sm_90a, block-sparse", "our flex kernel"),
            (FlashAttention2, "cpu flash_attention_2 avx2", "our CPU FlashAttention-2 kernel"),
            (Eager, "eager 128x64 d128 bf16 mask:formula sm_90a", "our eager kernel"),
            (TorchSdpa, "torch 2.15.0+cu128 SDPA efficient, dense mask", "PyTorch 2.15 SDPA, efficient"),
            (TorchSdpa, "torch 2.15.0 SDPA flash", "PyTorch 2.15 SDPA, flash"),
            (TorchFlex, "torch 2.11.0 flex, Triton", "PyTorch 2.11 FlexAttention, Triton"),
            (TorchEager, "torch 2.11.0 eager", "PyTorch 2.11 eager"),
        ] {
            assert_eq!(what_ran(backend, kernel), words);
        }
    }
}
