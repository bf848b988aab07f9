//! Recommends an attention setting for a document and a model, with reasons, from measured races only: facts without words.
//!
//! Invariant: only races that ran and were right count; forward timings never decide a setting for training, and advice
//! from them is marked as forward only; backward timings count only with right gradients; without a measurement the
//! advice is a command to run. Must not know where runs come from.

use super::config::Trainer;
use super::effects::{self, Setup};
use super::known;
use crate::base::{BackendName, Diagnostic, Provenance};
use crate::problem::facts::{KernelFacts, Library};
use crate::problem::result::{GradientOutcome, Outcome, RunReport};

/// Differences below this are no reason for a change, for any spread.
const WORTH: f64 = 0.05;

/// A race and its source.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// Its result.
    pub report: &'a RunReport,
    /// Whether it ran with the shipped runs rather than here.
    pub recorded: bool,
}

/// The question.
#[derive(Clone, Debug, Default)]
pub struct Question<'a> {
    /// The owner of the setting.
    pub trainer: Trainer,
    /// The model family, where known.
    pub family: Option<&'a str>,
    /// The present setting.
    pub current: Option<&'a str>,
    /// `mixed_precision`.
    pub precision: Option<&'a str>,
    /// A race of the model's attention as it is, without the design.
    pub plain: Option<Measured<'a>>,
    /// A race of the design; None without a design or a race.
    pub designed: Option<Measured<'a>>,
    /// Whether there is a design with a mask or score mod.
    pub has_design: bool,
    /// Attention of the model as it is configured.
    pub model: Option<Attended<'a>>,
    /// The design's shape.
    pub design: Option<Attended<'a>>,
    /// `base_model_precision`.
    pub weights: Option<&'a str>,
    /// What decides the setting's effect besides its value.
    pub setup: Setup<'a>,
    /// What measures the missing times.
    pub measuring: Measuring,
}

/// Heads over tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attended<'a> {
    /// Query heads.
    pub heads: usize,
    /// For queries.
    pub q_len: usize,
    /// For keys.
    pub kv_len: usize,
    /// The query axis as it is written.
    pub axis: &'a str,
}

impl Attended<'_> {
    fn shape(&self) -> Shape {
        Shape { heads: self.heads, q_len: self.q_len, kv_len: self.kv_len, axis: self.axis.into() }
    }

    /// Scores of a layer in 32 bits, in GiB.
    fn scores(&self) -> f64 {
        self.heads as f64 * self.q_len as f64 * self.kv_len as f64 * 4.0 / f64::from(1 << 30)
    }
}

/// What measures missing times.
#[derive(Clone, Debug, PartialEq)]
pub enum Measuring {
    /// A command of a shell.
    Command(String),
    /// Opening the config again and racing.
    OpenAgain,
}

impl Default for Measuring {
    fn default() -> Self {
        Measuring::Command(String::new())
    }
}

/// [`Attended`], kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Query heads.
    pub heads: usize,
    /// For queries.
    pub q_len: usize,
    /// For keys.
    pub kv_len: usize,
    /// The query axis as it is written.
    pub axis: String,
}

/// The answer in one line.
#[derive(Clone, Debug, PartialEq)]
pub enum Headline {
    /// None of the setting's choices was measured.
    None,
    /// The present value cannot work; another.
    Must(&'static str),
    /// The present value materialises all scores; the fused one.
    Fused {
        /// Present.
        current: String,
        /// Better.
        fused: &'static str,
    },
    /// The only measured choice.
    Only(&'static str),
    /// These choices are within a share of each other.
    Within(Vec<&'static str>, f64),
    /// The present value is the fastest, by so much.
    Present(&'static str, Option<f64>),
    /// Another is the fastest, by so much.
    Fastest(&'static str, Option<f64>),
}

/// A reason of the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// What a release does with the present value.
    Noted(Diagnostic),
    /// Weights' format is not attention's.
    Weights(String),
    /// With this value attention layers stay untrained, in a release.
    Untrained(String, String),
    /// This value does not take this precision.
    Formats(String, String),
    /// The scores of a value, in GiB where the model is known.
    Needs(String, Option<f64>),
    /// The design's shape is not the model's.
    Differs {
        /// The design's.
        design: Shape,
        /// The model's.
        model: Shape,
    },
    /// Values that do not reach a family's attention, in a release.
    NoEffect {
        /// Which family.
        family: String,
        /// Which values.
        values: Vec<&'static str>,
        /// Which release.
        edition: String,
    },
    /// Times of values without the design.
    Plain(Provenance, Vec<(&'static str, f64)>),
    /// Times forward and backward, with the design or without.
    Both {
        /// Where from.
        place: Provenance,
        /// Whether with the design.
        designed: bool,
        /// Of each.
        of: Vec<Trained>,
    },
    /// These backends of Maskloom have no backward pass; nothing follows for the trainer's.
    OwnForwardOnly(Vec<&'static str>),
    /// The design's time.
    Designed {
        /// Where from.
        place: Provenance,
        /// Whether in the model's shape.
        fits: bool,
        /// How long.
        ms: f64,
        /// Whether by Maskloom's kernel rather than by PyTorch's FlexAttention.
        ours: bool,
        /// How often it goes into the fastest time without the design.
        times: Option<f64>,
    },
}

/// A forward and a backward pass together.
#[derive(Clone, Debug, PartialEq)]
pub enum Trained {
    /// Both times in ms.
    Timed(String, f64, f64),
    /// Wrong gradients: the fault.
    Wrong(String, String),
    /// No time.
    NotTimed(String),
    /// No backward pass; why, where the reason says more.
    NoBackward(String, Option<String>),
}

/// A next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Measure the choices.
    Measure(Measuring),
    /// Measure the other choices.
    MeasureOthers(Measuring),
    /// Time steps with the value that was fastest forward and backward.
    Training(&'static str),
    /// Time steps with and without a change.
    ForwardOnly,
    /// Race the design.
    RaceDesign,
    /// Load the design into the model.
    NoValue,
    /// Export the design for the model's axis and heads.
    Export(String, usize),
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The setting's name.
    pub key: &'static str,
    /// The fastest forward value among those that the trainer can select as measured.
    pub forward: Option<&'static str>,
    /// The value that was fastest forward and backward together, where backward passes were raced.
    pub training: Option<&'static str>,
    /// A value that must change because the setting cannot work, regardless of speed.
    pub must: Option<&'static str>,
    /// In one line.
    pub headline: Headline,
    /// Measured reasons.
    pub why: Vec<Reason>,
    /// The next steps.
    pub next: Vec<Next>,
}

/// A right and timed backend, and the value that selects exactly it.
struct Entry {
    backend: BackendName,
    ms: f64,
    spread: f64,
    value: Option<&'static str>,
}

/// Answers.
pub fn advise(question: &Question) -> Advice {
    let mut advice = Advice {
        key: question.trainer.key(),
        forward: None,
        training: None,
        must: None,
        headline: Headline::None,
        why: Vec::new(),
        next: Vec::new(),
    };
    if question.trainer == Trainer::SimpleTuner
        && let Some(value) = question.current
    {
        let setup = Setup { family: question.family.or(question.setup.family), ..question.setup };
        let notes = effects::warnings(value, setup);
        advice.why.extend(notes.into_iter().filter(|n| n.code != "config-untrained").map(Reason::Noted));
    }
    advice.must = must(question, &mut advice.why);
    let plain = question.plain.map(|m| (m, entries(question.trainer, m.report)));
    match &plain {
        Some((measured, entries)) if entries.iter().any(|e| e.value.is_some()) => {
            fastest(question, *measured, entries, &mut advice);
        }
        _ => advice.next.push(Next::Measure(question.measuring.clone())),
    }
    unfused(question, &mut advice);
    if let Some(weights) = question.weights.filter(|w| !matches!(*w, "no_change" | "bf16" | "fp16" | "fp32")) {
        advice.why.push(Reason::Weights(weights.into()));
    }
    if let Some(value) = advice.must {
        advice.headline = Headline::Must(value);
    }
    if let Some((measured, entries)) = &plain {
        let named = entries.iter().filter_map(|e| Some((e.value?, e))).collect::<Vec<_>>();
        advice.training = training(*measured, false, &named, &mut advice.why);
    }
    design(question, plain.as_ref().map(|p| &p.1[..]), &mut advice);
    let backward = |m: &Measured| !m.report.gradients.is_empty();
    let raced: Vec<Measured> = question.plain.into_iter().chain(question.designed).collect();
    if let Some(value) = advice.training {
        advice.next.push(Next::Training(value));
    } else if !raced.is_empty() && !raced.iter().any(backward) {
        advice.next.push(Next::ForwardOnly);
    }
    advice
}

/// The time of a step's attention, forward and backward, and the backends without right gradients; the fastest. Empty
/// if no backward passes were raced.
fn training<N: std::fmt::Display + Copy>(
    measured: Measured,
    designed: bool,
    named: &[(N, &Entry)],
    why: &mut Vec<Reason>,
) -> Option<N> {
    let mut best: Option<(N, f64)> = None;
    let (mut of, mut own) = (Vec::new(), Vec::new());
    for (name, entry) in named {
        let found = measured.report.gradients.iter().find(|r| r.backend == entry.backend);
        of.push(match found.map(|r| &r.outcome) {
            None => continue,
            Some(GradientOutcome::Done { timing: Some(back), .. }) => {
                let sum = entry.ms + back.median_ms;
                if best.is_none_or(|(_, ms)| sum < ms) {
                    best = Some((*name, sum));
                }
                Trained::Timed(name.to_string(), entry.ms, back.median_ms)
            }
            Some(GradientOutcome::Done { errors, .. }) => match errors.iter().find_map(|e| e.words()) {
                Some(fault) => Trained::Wrong(name.to_string(), fault),
                None => Trained::NotTimed(name.to_string()),
            },
            Some(GradientOutcome::Refused { .. }) if !entry.backend.is_torch() => {
                // the trainer's kernel of this name is another one, which may well have gradients
                own.push(entry.backend.as_str());
                continue;
            }
            // the reason is the same sentence by another name
            Some(GradientOutcome::Refused { why }) if why.code == "no-backward" => {
                Trained::NoBackward(name.to_string(), None)
            }
            Some(GradientOutcome::Refused { why } | GradientOutcome::Failed { why }) => {
                Trained::NoBackward(name.to_string(), Some(why.message.clone()))
            }
        });
    }
    if !of.is_empty() {
        why.push(Reason::Both { place: place(measured), designed, of });
    }
    if !own.is_empty() {
        why.push(Reason::OwnForwardOnly(own));
    }
    best.map(|(name, _)| name)
}

/// A setting that materialises all scores, if no measurement suggests another: its memory is known without a race.
fn unfused(question: &Question, advice: &mut Advice) {
    let current = question.current.unwrap_or_default();
    let fused = question.trainer.value(BackendName::TorchSdpa).0;
    if !matches!(current, "eager" | "native-math") || advice.forward.is_some_and(|v| v != current && v != fused) {
        return;
    }
    advice.headline = Headline::Fused { current: current.into(), fused };
    advice.why.push(Reason::Needs(current.into(), question.model.map(|m| m.scores())));
    advice.forward = Some(fused);
}

/// Whether the design fits the model; adds the reason if not.
fn fits(question: &Question, advice: &mut Advice) -> bool {
    let (Some(model), Some(design)) = (question.model, question.design) else { return true };
    let same = |a: &Attended, b: &Attended| (a.heads, a.q_len, a.kv_len) == (b.heads, b.q_len, b.kv_len);
    if same(&model, &design) {
        return true;
    }
    advice.why.push(Reason::Differs { design: design.shape(), model: model.shape() });
    advice.next.push(Next::Export(model.axis.into(), model.heads));
    false
}

/// Settings that cannot work: formats that a backend refuses.
fn must(question: &Question, why: &mut Vec<Reason>) -> Option<&'static str> {
    let current = question.current?;
    let setup = Setup { family: question.family.or(question.setup.family), ..question.setup };
    if question.trainer == Trainer::SimpleTuner && effects::untrained(current, setup) {
        why.push(Reason::Untrained(current.into(), known::edition()));
        return Some(question.trainer.value(BackendName::TorchSdpa).0);
    }
    let picky = current == "flex" || current.starts_with("flash-attn") || current.starts_with("flash_attention");
    let precision = question.precision.filter(|p| matches!(*p, "no" | "fp8" | "fp32" | "float32"))?;
    if !picky {
        return None;
    }
    why.push(Reason::Formats(current.into(), precision.into()));
    Some(question.trainer.value(BackendName::TorchSdpa).0)
}

fn entries(trainer: Trainer, report: &RunReport) -> Vec<Entry> {
    let entry = |r: &crate::problem::result::BackendReport| match &r.outcome {
        Outcome::Done { kernel, .. } => r.outcome.right().map(|t| Entry {
            backend: r.backend,
            ms: t.median_ms,
            spread: t.spread,
            value: selects(trainer, r.backend, &kernel.facts),
        }),
        _ => None,
    };
    report.backends.iter().filter_map(entry).collect()
}

/// The value that selects the measured backend. A trainer's `flex` or `flash-attn` does not run Maskloom's own kernels:
/// their times do not apply to those.
fn selects(trainer: Trainer, backend: BackendName, kernel: &KernelFacts) -> Option<&'static str> {
    use BackendName::{Sdpa, TorchEager, TorchFlex, TorchSdpa};
    match backend {
        TorchSdpa | TorchFlex | TorchEager => Some(trainer.value(backend).0),
        Sdpa if kernel.library == Library::Cudnn => match trainer {
            Trainer::SimpleTuner => Some("cudnn"),
            Trainer::Transformers => Some("sdpa"),
        },
        _ => None,
    }
}

fn place(measured: Measured) -> Provenance {
    let place = measured.report.place();
    if measured.recorded { Provenance::Recorded(place) } else { Provenance::Measured(place) }
}

/// Takes out the choices that do not reach the family's attention, and says which.
fn without_effect(question: &Question, choices: &mut Vec<&Entry>) -> Option<Reason> {
    let family = question.family.filter(|_| question.trainer == Trainer::SimpleTuner)?;
    let setup = Setup { family: Some(family), ..question.setup };
    let idle = |e: &&Entry| e.value.is_some_and(|v| !effects::acts(v, setup));
    let mut values: Vec<&str> = choices.iter().filter(|e| idle(e)).filter_map(|e| e.value).collect();
    values.dedup();
    choices.retain(|e| !idle(e));
    (!values.is_empty()).then(|| Reason::NoEffect { family: family.into(), values, edition: known::edition() })
}

fn fastest(question: &Question, measured: Measured, entries: &[Entry], advice: &mut Advice) {
    let mut choices: Vec<&Entry> = entries.iter().filter(|e| e.value.is_some()).collect();
    // one value, one time: PyTorch's own is what the trainer runs
    let own = |e: &Entry| e.backend.is_torch();
    let stands_in = |e: &Entry| !own(e) && entries.iter().any(|o| own(o) && o.value == e.value);
    choices.retain(|e| !stands_in(e));
    advice.why.extend(without_effect(question, &mut choices));
    choices.sort_by(|a, b| a.ms.total_cmp(&b.ms));
    let Some(best) = choices.first() else { return };
    let value = best.value.unwrap_or_default();
    let times = choices.iter().map(|e| (e.value.unwrap_or_default(), e.ms)).collect();
    advice.why.push(Reason::Plain(place(measured), times));
    if choices.iter().all(|e| e.value == best.value) {
        advice.forward = Some(value);
        advice.headline = Headline::Only(value);
        advice.next.push(Next::MeasureOthers(question.measuring.clone()));
        return;
    }
    let second = choices.get(1).map(|s| s.ms / best.ms - 1.0);
    let noise = choices.iter().take(2).map(|e| e.spread).fold(WORTH, f64::max);
    if second.is_some_and(|gain| gain < noise) {
        let others = choices.iter().take_while(|e| e.ms / best.ms - 1.0 < noise);
        let names: Vec<_> = others.filter_map(|e| e.value).collect();
        let keeps = question.current.is_none_or(|c| names.contains(&c));
        advice.headline = Headline::Within(names, noise);
        advice.forward = if keeps { None } else { Some(value) };
        return;
    }
    advice.forward = Some(value);
    advice.headline = match question.current {
        Some(current) if current == value => Headline::Present(value, second),
        _ => Headline::Fastest(value, second),
    };
}

/// The benefit of the design, and how to apply it to the model.
fn design(question: &Question, plain: Option<&[Entry]>, advice: &mut Advice) {
    if !question.has_design {
        return;
    }
    let fits = fits(question, advice);
    let Some(measured) = question.designed else {
        advice.next.push(Next::RaceDesign);
        return;
    };
    let designed = entries(question.trainer, measured.report);
    let dense = plain.into_iter().flatten().filter(|e| e.value.is_some()).map(|e| e.ms).min_by(f64::total_cmp);
    for (name, ours) in [(BackendName::TorchFlex, false), (BackendName::Flex, true)] {
        let Some(entry) = designed.iter().find(|e| e.backend == name) else { continue };
        // the time of another shape would not be comparable
        let times = dense.filter(|_| fits).map(|ms| ms / entry.ms);
        advice.why.push(Reason::Designed { place: place(measured), fits, ms: entry.ms, ours, times });
    }
    let named: Vec<(BackendName, &Entry)> = designed.iter().map(|e| (e.backend, e)).collect();
    training(measured, true, &named, &mut advice.why);
    advice.next.push(Next::NoValue);
}
