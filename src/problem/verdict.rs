//! Comparison of two timings: the ratio, what makes it doubtful, and their English words.
//!
//! Invariant: one function decides whether a difference is shown; every table, chart, card and file uses it. Must not measure.

pub use super::ran::{Own, Ran, what_ran};

use super::facts::{Busy, KernelReport, Library, MaskRead};
use super::result::Waits;
use super::result::{BackendReport, GradientOutcome, GradientReport, Outcome, RunReport, Timing};
use crate::base::BackendName;
use serde::{Serialize, Serializer};
use std::fmt;

/// A spread (interquartile range over the median) beyond which a figure is called loose.
pub const LOOSE: f64 = 0.10;
/// A spread beyond which there is no ratio.
const NONE: f64 = 1.0;
/// Ratios nearer to 1 than this are no difference, even with a steady clock.
const ALIKE: f64 = 0.01;

/// How often one time goes into another, and whether that may be believed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Versus {
    /// The other's median over this one's: above 1 this one is faster.
    pub ratio: f64,
    /// Whether the samples show a difference at all: the medians with their spreads, as rows print them, do not meet.
    pub shown: bool,
    /// The larger spread of the two.
    pub spread: f64,
    /// Why the figure is loose, or shows nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
    /// The other's calls, if a program that makes them waits for the host: the ratio is of times on the GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
}

/// Why a ratio is loose, or shows nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Doubt {
    /// The medians with their spreads meet.
    Overlap,
    /// The larger spread.
    Spread(f64),
    /// Other programs ran.
    Busy(Busy),
    /// Its own calls wait for the host.
    Waits(Waits),
    /// This rival did not run.
    Unraced(BackendName),
}

/// `spread 141%`, `intervals overlap`, `other programs used 1.2 of 2 cores`.
impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Overlap => f.write_str("intervals overlap"),
            Doubt::Spread(share) => write!(f, "spread {:.0}%", 100.0 * share),
            Doubt::Busy(busy) => busy.fmt(f),
            Doubt::Waits(waits) => waits.fmt(f),
            Doubt::Unraced(name) => write!(f, "{name} did not run"),
        }
    }
}

/// Files have the words.
impl Serialize for Doubt {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The other's calls, which wait for the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host(pub Waits);

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the other is {}", self.0)
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// What a ratio is shown as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// No ratio at all.
    Nothing,
    /// The ratio, which shows no difference.
    Alike,
    /// The ratio.
    Ratio,
}

impl Versus {
    /// For `own` against `other`, both measured in one run; `busy` is the load of other programs.
    pub fn new(own: &Timing, other: &Timing, busy: Option<Busy>) -> Versus {
        let ratio = other.median_ms / own.median_ms;
        let [(a, b), (c, d)] = [interval(own), interval(other)];
        let overlap = a <= d && c <= b;
        let mut doubts = Vec::new();
        if overlap && (ratio - 1.0).abs() > ALIKE {
            doubts.push(Doubt::Overlap);
        }
        let spread = own.spread.max(other.spread);
        if spread > LOOSE {
            doubts.push(Doubt::Spread(spread));
        }
        doubts.extend(busy.map(Doubt::Busy));
        // a program does not get the ratio of kernels that wait for their launches
        doubts.extend(own.launch_bound().map(Doubt::Waits));
        let host = other.launch_bound().map(Host);
        let differs = (ratio - 1.0).abs() > ALIKE && ratio.is_finite();
        Versus { ratio, shown: !overlap && differs && spread <= NONE, spread, doubts, host }
    }

    /// Whether the difference is shown and nothing makes the figure loose: only such a ratio may be praised.
    pub fn is_clear(&self) -> bool {
        self.shown && self.doubts.is_empty()
    }

    /// What it is shown as.
    pub fn shows(&self) -> Shown {
        match (self.spread > NONE, self.shown) {
            (true, _) => Shown::Nothing,
            (_, true) => Shown::Ratio,
            (_, false) => Shown::Alike,
        }
    }

    /// `1.25x`, `3.42x (spread 14%)`, `1.02x, no difference shown (intervals overlap, spread 41%)`, `no ratio (intervals
    /// overlap, spread 231%)`.
    pub fn words(&self) -> String {
        let mut words = match self.shows() {
            Shown::Nothing => "no ratio".to_string(),
            Shown::Ratio => format!("{:.2}x", self.ratio),
            Shown::Alike => format!("{:.2}x, no difference shown", self.ratio),
        };
        let doubts = self.doubts.iter().map(Doubt::to_string);
        let remarks: Vec<String> = doubts.chain(self.host.map(|host| host.to_string())).collect();
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

/// The baseline of the others in a race.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline<'a> {
    /// Who.
    pub backend: BackendName,
    /// How long it took.
    pub timing: &'a Timing,
    /// The report's own.
    pub kernel: &'a KernelReport,
    /// Its implementation.
    pub ran: Ran,
    /// The same in words.
    pub words: String,
}

impl<'a> Baseline<'a> {
    fn new(backend: BackendName, timing: &'a Timing, kernel: &'a KernelReport) -> Baseline<'a> {
        let ran = Ran::of(backend, kernel);
        Baseline { backend, timing, kernel, words: ran.to_string(), ran }
    }

    /// Who it is where there is little room: `PyTorch 2.11 SDPA`, `cuDNN 9.19 SDPA`, `our dense-mask kernel`.
    pub fn short(&self) -> &str {
        self.words.split(',').next().unwrap_or(&self.words)
    }
}

/// How near a backend is to what the user would run instead, lower is nearer. None: it is a candidate itself.
fn rank(backend: BackendName, kernel: &KernelReport) -> Option<u8> {
    use BackendName::{
        CudnnFlex, Eager, FlashAttention2, Flex, Sdpa, TorchEager, TorchFlex, TorchFlexFlash, TorchSdpa,
    };
    match backend {
        TorchSdpa | TorchFlex | TorchFlexFlash | CudnnFlex => Some(0),
        // the library that PyTorch calls, too
        Sdpa if kernel.facts.library == Library::Cudnn => Some(0),
        TorchEager => Some(1),
        Sdpa => Some(2),
        Eager => Some(3),
        Flex | FlashAttention2 => None,
    }
}

/// The fastest right one of what the user would run instead: PyTorch's SDPA or FlexAttention, or cuDNN. Where none ran,
/// PyTorch's eager, our stand-in for SDPA, or our eager, in this order. Where PyTorch's SDPA ran, cuDNN called by us is
/// no alternative beside it: a user meets PyTorch's choice.
pub fn baseline(reports: &[BackendReport]) -> Option<Baseline<'_>> {
    best(reports.iter().filter_map(|r| match &r.outcome {
        Outcome::Done { kernel, .. } => Some((r.backend, r.outcome.right()?, kernel)),
        _ => None,
    }))
}

/// The same of backward passes.
pub fn backward_baseline(reports: &[GradientReport]) -> Option<Baseline<'_>> {
    best(reports.iter().filter_map(|r| match &r.outcome {
        GradientOutcome::Done { kernel, .. } => Some((r.backend, r.outcome.right()?, kernel)),
        _ => None,
    }))
}

/// Of those who were timed and right.
fn best<'a>(timed: impl Iterator<Item = (BackendName, &'a Timing, &'a KernelReport)>) -> Option<Baseline<'a>> {
    let ranked = timed.filter_map(|(backend, timing, kernel)| Some((rank(backend, kernel)?, backend, timing, kernel)));
    let mut ranked: Vec<_> = ranked.collect();
    if ranked.iter().any(|(_, backend, ..)| *backend == BackendName::TorchSdpa) {
        ranked.retain(|(_, backend, ..)| *backend != BackendName::Sdpa);
    }
    let nearest = ranked.into_iter().min_by(|a, b| a.0.cmp(&b.0).then(a.2.median_ms.total_cmp(&b.2.median_ms)));
    nearest.map(|(_, backend, timing, kernel)| Baseline::new(backend, timing, kernel))
}

/// A backend against the baseline: None for the baseline itself, and where either has no time.
pub fn versus(reports: &[BackendReport], backend: BackendName, busy: Option<Busy>) -> Option<Versus> {
    let base = baseline(reports).filter(|base| base.backend != backend)?;
    let own = reports.iter().find(|r| r.backend == backend)?.outcome.forward()?;
    let mut versus = Versus::new(own, base.timing, busy);
    versus.doubts.extend(unraced(&base, reports.iter().map(|r| r.backend)));
    Some(versus)
}

/// What makes PyTorch's SDPA a poor rival: it was given the whole mask, and nobody asked PyTorch's FlexAttention.
fn unraced(base: &Baseline<'_>, mut asked: impl Iterator<Item = BackendName>) -> Option<Doubt> {
    use BackendName::{CudnnFlex, TorchFlex, TorchFlexFlash, TorchSdpa};
    let flex = asked.any(|backend| matches!(backend, TorchFlex | TorchFlexFlash | CudnnFlex));
    let dense = base.backend == TorchSdpa && base.kernel.facts.mask == MaskRead::Dense;
    (dense && !flex).then_some(Doubt::Unraced(TorchFlex))
}

impl RunReport {
    /// The baseline of the others; see [`baseline`].
    pub fn baseline(&self) -> Option<Baseline<'_>> {
        baseline(&self.backends)
    }

    /// The baseline that was asked for, if it was right and timed; without a wish the usual one.
    pub fn baseline_of(&self, wanted: Option<BackendName>) -> Option<Baseline<'_>> {
        let Some(name) = wanted else { return self.baseline() };
        let report = self.backends.iter().find(|r| r.backend == name)?;
        let Outcome::Done { kernel, .. } = &report.outcome else { return None };
        let timing = report.outcome.right()?;
        Some(Baseline::new(name, timing, kernel))
    }

    /// A backend against [`Self::baseline_of`]: None for the baseline itself, and where either has no time.
    pub fn versus_of(&self, backend: BackendName, wanted: Option<BackendName>) -> Option<Versus> {
        if wanted.is_none() {
            return self.versus(backend);
        }
        let base = self.baseline_of(wanted).filter(|base| base.backend != backend)?;
        Some(Versus::new(self.timing(backend)?, base.timing, self.busy()))
    }

    /// The load of other programs while it was timed, if relevant.
    pub fn busy(&self) -> Option<Busy> {
        self.load.or_else(|| self.environment.get(Busy::KEY)?.parse().ok())
    }

    /// A backend against the baseline; see [`versus`].
    pub fn versus(&self, backend: BackendName) -> Option<Versus> {
        versus(&self.backends, backend, self.busy())
    }

    /// Whether PyTorch itself ran something that the others can be compared with.
    pub fn beside_pytorch(&self) -> bool {
        self.baseline().is_some_and(|base| base.backend.is_torch())
    }

    /// The baseline of the backward passes; see [`backward_baseline`].
    pub fn backward_baseline(&self) -> Option<Baseline<'_>> {
        backward_baseline(&self.gradients)
    }

    /// A backend's backward pass against that baseline.
    pub fn backward_versus(&self, backend: BackendName) -> Option<Versus> {
        let base = self.backward_baseline().filter(|base| base.backend != backend)?;
        let own = self.gradients.iter().find(|r| r.backend == backend)?.outcome.right()?;
        let mut versus = Versus::new(own, base.timing, self.busy());
        versus.doubts.extend(unraced(&base, self.gradients.iter().map(|r| r.backend)));
        Some(versus)
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
        // the limit itself is still the kernels' own time
        assert_eq!(with_calls(20.0, 1.15 * 20.0).launch_bound(), None);
        assert!(with_calls(20.0, 1.16 * 20.0).launch_bound().is_some());
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
        // a spread of all of the median is the last that has a ratio
        let found = Versus::new(&of(1.0, 1.0), &of(30.0, 0.1), None);
        assert!(found.shown && found.words() == "30.00x (spread 100%)", "{}", found.words());
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
            (
                CudnnFlex,
                "torch 2.11.0+cu130 cudnn.flex_attention 1.32.0, nfunc 3, 384 KiB",
                "cudnn.flex_attention 1.32",
            ),
        ] {
            assert_eq!(what_ran(backend, &kernel.into()), words);
        }
    }

    const CUDNN: &str = "cuDNN 9.19 fused attention, is_causal";
    const OURS: &str = "flex_sm80 128x64 d128 bf16 mask:dense sm_90a, Maskloom's fused kernel, dense";

    /// Who, how long, and which kernel; one of no time was refused.
    fn race(rows: &[(BackendName, f64, &str)]) -> RunReport {
        use crate::base::{Device, Diagnostic};
        use crate::problem::result::{ErrorStats, OutputError, OutputName, Timings, WorkStats};
        let report = |&(backend, ms, kernel): &(BackendName, f64, &str)| {
            let outputs = vec![OutputError::plain(OutputName::Out, 0.0, 1.0)];
            let outcome = match ms > 0.0 {
                true => Outcome::Done {
                    kernel: kernel.into(),
                    error: ErrorStats { outputs, rows_checked: 1, rows_total: 1, nan_rows: 0, worst: None },
                    timings: Timings::forward_only(Some(timing(&[ms, 1.01 * ms, ms, 0.99 * ms]))),
                    artefact: None,
                    ready_ms: None,
                    settled_ms: None,
                    max_scores: Vec::new(),
                    memory_bytes: None,
                },
                false => Outcome::Refused { why: Diagnostic::error("x", kernel) },
            };
            BackendReport { backend, outcome }
        };
        RunReport {
            device_name: "a card".into(),
            device: Device::Cuda(0),
            environment: Default::default(),
            card: None,
            load: None,
            work: WorkStats::default(),
            backends: rows.iter().map(report).collect(),
            gradients: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_baseline_is_the_best_that_the_user_could_run_instead() {
        use BackendName::*;
        let (sdpa, triton) = ("torch 2.11.0+cu130 SDPA cudnn, dense bias", "torch 2.11.0+cu130 flex, Triton");
        let ours = [(Flex, 0.2, "flex_sm90"), (Sdpa, 3.9, OURS), (Eager, 15.0, "eager 128x64")];
        let with = |more: &[(BackendName, f64, &'static str)]| race(&[&ours[..], more].concat());
        let words = |run: &RunReport| run.baseline().map(|base| base.words).unwrap_or_default();
        // nothing of PyTorch ran, and then the faster of what did, whichever its place; ours is never nearer
        assert_eq!(words(&race(&ours)), "our dense-mask kernel");
        assert_eq!(words(&with(&[(TorchFlex, 0.0, "not installed")])), "our dense-mask kernel");
        assert_eq!(words(&with(&[(TorchEager, 30.0, "torch 2.11.0 eager")])), "PyTorch 2.11 eager");
        let both = with(&[(TorchSdpa, 3.3, sdpa), (TorchFlex, 0.4, triton)]);
        assert_eq!(
            (words(&both), both.baseline().unwrap().short()),
            ("PyTorch 2.11 FlexAttention, Triton".into(), "PyTorch 2.11 FlexAttention")
        );
        let versus = both.versus(Flex).unwrap();
        assert!(versus.is_clear() && (versus.ratio - 2.0).abs() < 1e-9, "{versus:?}");
        let asked = |backend| both.versus_of(backend, Some(TorchSdpa)).map(|versus| (10.0 * versus.ratio).round());
        assert_eq!((asked(Flex), asked(TorchSdpa)), (Some(165.0), None), "no one is its own rival");
        assert_eq!(words(&with(&[(TorchSdpa, 0.3, sdpa), (TorchFlex, 0.4, triton)])), "PyTorch 2.11 SDPA, cudnn");
        assert_eq!(words(&with(&[(TorchSdpa, 9.0, sdpa)])), "PyTorch 2.11 SDPA, cudnn");
        // cuDNN is the user's too: a slower FlexAttention does not hide it, PyTorch's own call of it does
        let causal = [(Flex, 0.36, "flex_sm90"), (Sdpa, 0.50, CUDNN), (TorchFlex, 0.86, triton)];
        assert_eq!(words(&race(&causal)), "cuDNN 9.19 SDPA");
        let called = [&causal[..], &[(TorchSdpa, 0.51, "torch 2.11.0 SDPA cudnn, is_causal")]].concat();
        assert_eq!(words(&race(&called)), "PyTorch 2.11 SDPA, cudnn");
        for (rows, short) in [
            (&causal, "cuDNN 9.19 SDPA"),
            (&ours, "our dense-mask kernel"),
            (&[called[0], called[2], called[3]], "PyTorch 2.11 SDPA"),
        ] {
            assert_eq!(race(rows).baseline().unwrap().short(), short);
        }
        assert_eq!(race(&[(Flex, 0.2, "flex_sm90"), (FlashAttention2, 0.8, "flex_sm80")]).baseline(), None);
    }

    #[test]
    fn a_dense_mask_is_no_rival_where_nobody_asked_pytorchs_flex_attention() {
        use BackendName::*;
        let rows = [(Flex, 0.2, "flex_sm90"), (TorchSdpa, 3.3, "torch 2.11.0 SDPA cudnn, dense bias")];
        let lonely = race(&rows).versus(Flex).unwrap();
        assert!(
            lonely.shown && !lonely.is_clear() && lonely.words() == "16.50x (torch:flex did not run)",
            "{lonely:?}"
        );
        // that refuses, or a mask that SDPA knows by itself
        let asked = [&rows[..], &[(TorchFlex, 0.0, "it cannot")]].concat();
        assert!(race(&asked).versus(Flex).unwrap().is_clear());
        let causal = [(Flex, 0.36, "flex_sm90"), (TorchSdpa, 0.5, "torch 2.11.0 SDPA cudnn, is_causal")];
        assert!(race(&causal).versus(Flex).unwrap().is_clear());
        // only beside PyTorch: a run without it has no such promise
        let ours = race(&[(Flex, 0.2, "flex_sm90"), (Sdpa, 3.9, OURS)]);
        assert!(ours.versus(Flex).unwrap().is_clear() && !ours.beside_pytorch() && race(&causal).beside_pytorch());
    }

    #[test]
    fn backward_passes_have_a_baseline_of_their_own() {
        use crate::problem::result::GradientError;
        use BackendName::*;
        let done = |backend, ms: f64, kernel: &str, off: f64| GradientReport {
            backend,
            outcome: GradientOutcome::Done {
                kernel: kernel.into(),
                errors: vec![GradientError { max_abs: off, allowed: 1.0, ..GradientError::default() }],
                timing: Some(timing(&[ms, 1.01 * ms, ms, 0.99 * ms])),
                unordered: None,
                memory_bytes: None,
            },
        };
        let sdpa = "torch 2.11.0+cu130 SDPA cudnn, dense bias, backward efficient, dense bias";
        let mut run = race(&[(Flex, 0.2, "flex_sm90")]);
        run.gradients = vec![
            done(Flex, 0.8, "flex", 0.1),
            done(TorchSdpa, 2.4, sdpa, 0.1),
            done(TorchFlex, 1.2, "torch 2.11.0 flex, Triton", 2.0),
        ];
        assert_eq!(run.backward_baseline().unwrap().words, "PyTorch 2.11 SDPA, efficient");
        assert!((run.backward_versus(Flex).unwrap().ratio - 3.0).abs() < 1e-9);
        assert_eq!(run.backward_versus(TorchSdpa), None);
        run.gradients.pop();
        assert_eq!(run.backward_versus(Flex).unwrap().doubts, [Doubt::Unraced(TorchFlex)]);
    }
}
