//! Recommends an attention setting for a document and a model, with reasons, from measured races only.
//!
//! Invariant: only races that ran and were right count; forward timings never decide a setting for training, and advice
//! from them is marked as forward only; backward timings count only with right gradients; without a measurement the
//! advice is a command to run. Must not know where runs come from.

use super::config::Trainer;
use super::effects::{self, Setup};
use super::known;
use crate::base::{BackendName, Provenance};
use crate::problem::facts::{KernelFacts, Library};
use crate::problem::result::{GradientOutcome, Outcome, RunReport};
use serde::Serialize;

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
#[derive(Clone, Copy, Debug, Default)]
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
    /// The command that measures the missing times.
    pub command: &'a str,
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
    fn words(&self) -> String {
        format!("{} heads over {} x {} tokens ({})", self.heads, self.q_len, self.kv_len, self.axis)
    }

    /// Scores of a layer in 32 bits, in GiB.
    fn scores(&self) -> f64 {
        self.heads as f64 * self.q_len as f64 * self.kv_len as f64 * 4.0 / f64::from(1 << 30)
    }
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Advice {
    /// The fastest forward value among those that the trainer can select as measured.
    pub forward: Option<&'static str>,
    /// The value that was fastest forward and backward together, where backward passes were raced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<&'static str>,
    /// A value that must change because the setting cannot work, regardless of speed.
    pub must: Option<&'static str>,
    /// In one line.
    pub headline: String,
    /// Measured reasons, one a line.
    pub why: Vec<String>,
    /// The next steps, one per line.
    pub next: Vec<String>,
}

impl Advice {
    /// As text for a terminal.
    pub fn render(&self) -> String {
        let mut text = format!("{}\n", self.headline);
        self.why.iter().for_each(|line| text.push_str(&format!("  because: {line}\n")));
        self.next.iter().for_each(|line| text.push_str(&format!("  next: {line}\n")));
        text
    }
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
    let mut advice = Advice::default();
    let key = question.trainer.key();
    if question.trainer == Trainer::SimpleTuner
        && let Some(value) = question.current
    {
        let setup = Setup { family: question.family.or(question.setup.family), ..question.setup };
        let notes = effects::warnings(value, setup);
        advice.why.extend(notes.into_iter().filter(|n| n.code != "config-untrained").map(|n| n.message));
    }
    advice.must = must(question, &mut advice.why);
    let plain = question.plain.map(|m| (m, entries(question.trainer, m.report)));
    match &plain {
        Some((measured, entries)) if entries.iter().any(|e| e.value.is_some()) => {
            fastest(question, *measured, entries, &mut advice);
        }
        _ => {
            advice.headline = format!("no recommendation for `{key}`: none of its choices has been measured");
            advice.next.push(format!("measure it: {}", question.command));
        }
    }
    unfused(question, &mut advice);
    if let Some(weights) = question.weights.filter(|w| !matches!(*w, "no_change" | "bf16" | "fp16" | "fp32")) {
        advice.why.push(format!(
            "base_model_precision `{weights}` is the format of the weights; attention runs in the format of mixed_precision"
        ));
    }
    if let Some(value) = advice.must {
        advice.headline = format!("set `{key}` to `{value}`: the present value cannot work");
    }
    if let Some((measured, entries)) = &plain {
        let named = entries.iter().filter_map(|e| Some((e.value?, e))).collect::<Vec<_>>();
        advice.training = training(*measured, "without the design", &named, &mut advice.why);
    }
    design(question, plain.as_ref().map(|p| &p.1[..]), &mut advice);
    let backward = |m: &Measured| !m.report.gradients.is_empty();
    let raced: Vec<Measured> = question.plain.into_iter().chain(question.designed).collect();
    if let Some(value) = advice.training {
        advice.next.push(format!(
            "for training, `{value}` was the fastest forward and backward: time 20 steps with it before you keep it"
        ));
    } else if !raced.is_empty() && !raced.iter().any(backward) {
        advice.next.push(format!(
            "forward only: these are forward timings; for training, time 20 steps with and without the change of `{key}` \
             before you keep it"
        ));
    }
    advice
}

/// The time of a step's attention, forward and backward, and the backends without right gradients; the fastest. Empty
/// if no backward passes were raced.
fn training<N: std::fmt::Display + Copy>(
    measured: Measured,
    of: &str,
    named: &[(N, &Entry)],
    why: &mut Vec<String>,
) -> Option<N> {
    let mut best: Option<(N, f64)> = None;
    let (mut reported, mut own) = (Vec::new(), Vec::new());
    for (name, entry) in named {
        let found = measured.report.gradients.iter().find(|r| r.backend == entry.backend);
        reported.push(match found.map(|r| &r.outcome) {
            None => continue,
            Some(GradientOutcome::Done { timing: Some(back), .. }) => {
                let sum = entry.ms + back.median_ms;
                if best.is_none_or(|(_, ms)| sum < ms) {
                    best = Some((*name, sum));
                }
                format!("{name} {:.2} + {:.2} = {sum:.2} ms", entry.ms, back.median_ms)
            }
            Some(GradientOutcome::Done { errors, .. }) => match errors.iter().find_map(|e| e.words()) {
                Some(words) => format!("{name} computes wrong gradients ({words})"),
                None => format!("{name} was not timed backward"),
            },
            Some(GradientOutcome::Refused { .. }) if !entry.backend.is_torch() => {
                // the trainer's kernel of this name is another one, which may well have gradients
                own.push(entry.backend.as_str());
                continue;
            }
            // the reason is the same sentence by another name
            Some(GradientOutcome::Refused { why }) if why.code == "no-backward" => {
                format!("{name} has no backward pass on this device")
            }
            Some(GradientOutcome::Refused { why } | GradientOutcome::Failed { why }) => {
                format!("{name} has no backward pass on this device ({})", why.message)
            }
        });
    }
    if !reported.is_empty() {
        why.push(format!("{}; {of}, forward + backward: {}", place(measured), reported.join(", ")));
    }
    if !own.is_empty() {
        why.push(format!(
            "Maskloom's own `{}` measures forward passes only; this says nothing about the trainer's kernel: race torch:sdpa \
             with --pass both",
            own.join("` and `")
        ));
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
    let scores = question.model.map(|m| format!("{:.2} GiB of scores for each layer and sample", m.scores()));
    advice.headline = format!(
        "set `{}` to `{fused}`: `{current}` materialises all scores, `{fused}` computes the same result without them",
        question.trainer.key()
    );
    advice.why.push(format!(
        "`{current}` needs {}, and twice that with their softmax",
        scores.unwrap_or("all q_len x kv_len scores".into())
    ));
    advice.forward = Some(fused);
}

/// Whether the design fits the model; adds the reason if not.
fn fits(question: &Question, advice: &mut Advice) -> bool {
    let (Some(model), Some(design)) = (question.model, question.design) else { return true };
    let same = |a: &Attended, b: &Attended| (a.heads, a.q_len, a.kv_len) == (b.heads, b.q_len, b.kv_len);
    if same(&model, &design) {
        return true;
    }
    advice.why.push(format!(
        "the design has {}, but the configured model has {}: the sidecar would not mask its calls",
        design.words(),
        model.words()
    ));
    advice.next.push(format!("export the design for the model: --axes \"{}\" --heads {}", model.axis, model.heads));
    false
}

/// Settings that cannot work: formats that a backend refuses.
fn must(question: &Question, why: &mut Vec<String>) -> Option<&'static str> {
    let current = question.current?;
    let setup = Setup { family: question.family.or(question.setup.family), ..question.setup };
    if question.trainer == Trainer::SimpleTuner && effects::untrained(current, setup) {
        why.push(format!(
            "with `{current}` in training the attention layers will not be trained, as the trainer itself warns ({})",
            known::edition()
        ));
        return Some(question.trainer.value(BackendName::TorchSdpa).0);
    }
    let picky = current == "flex" || current.starts_with("flash-attn") || current.starts_with("flash_attention");
    let precision = question.precision.filter(|p| matches!(*p, "no" | "fp8" | "fp32" | "float32"))?;
    if !picky {
        return None;
    }
    why.push(format!("`{current}` supports bfloat16 and float16 only, but mixed_precision is `{precision}`"));
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
fn without_effect(question: &Question, choices: &mut Vec<&Entry>) -> Option<String> {
    let family = question.family.filter(|_| question.trainer == Trainer::SimpleTuner)?;
    let setup = Setup { family: Some(family), ..question.setup };
    let idle = |e: &&Entry| e.value.is_some_and(|v| !effects::acts(v, setup));
    let mut names: Vec<&str> = choices.iter().filter(|e| idle(e)).filter_map(|e| e.value).collect();
    names.dedup();
    choices.retain(|e| !idle(e));
    (!names.is_empty()).then(|| {
        format!(
            "the `{family}` family calls PyTorch's SDPA itself: `{}` has no effect there ({})",
            names.join("` and `"),
            known::edition()
        )
    })
}

fn fastest(question: &Question, measured: Measured, entries: &[Entry], advice: &mut Advice) {
    let key = question.trainer.key();
    let mut choices: Vec<&Entry> = entries.iter().filter(|e| e.value.is_some()).collect();
    // one value, one time: PyTorch's own is what the trainer runs
    let own = |e: &Entry| e.backend.is_torch();
    let stands_in = |e: &Entry| !own(e) && entries.iter().any(|o| own(o) && o.value == e.value);
    choices.retain(|e| !stands_in(e));
    advice.why.extend(without_effect(question, &mut choices));
    choices.sort_by(|a, b| a.ms.total_cmp(&b.ms));
    let Some(best) = choices.first() else { return };
    let value = best.value.unwrap_or_default();
    let list = choices.iter().map(|e| format!("{} {:.2} ms", e.value.unwrap_or_default(), e.ms));
    advice.why.push(format!("{}; without the design: {}", place(measured), list.collect::<Vec<_>>().join(", ")));
    if choices.iter().all(|e| e.value == best.value) {
        advice.forward = Some(value);
        advice.headline = format!("`{value}` is the only measured choice of `{key}`, so there is no comparison");
        advice.next.push(format!("measure the others: {}", question.command));
        return;
    }
    let second = choices.get(1).map(|s| s.ms / best.ms - 1.0);
    let noise = choices.iter().take(2).map(|e| e.spread).fold(WORTH, f64::max);
    if second.is_some_and(|gain| gain < noise) {
        let others = choices.iter().take_while(|e| e.ms / best.ms - 1.0 < noise);
        let names: Vec<_> = others.filter_map(|e| e.value).collect();
        advice.headline = format!("forward, {} are within {:.0}% of each other", names.join(" and "), noise * 100.0);
        let keeps = question.current.is_none_or(|c| names.contains(&c));
        advice.forward = if keeps { None } else { Some(value) };
        return;
    }
    advice.forward = Some(value);
    let ahead = second.map(|gain| format!(", {:.0}% ahead of the next", gain * 100.0)).unwrap_or_default();
    advice.headline = match question.current {
        Some(current) if current == value => {
            format!("forward, the present value `{value}` is the fastest measured{ahead}")
        }
        _ => format!("forward (sampling, validation), `{value}` is the fastest measured choice of `{key}`{ahead}"),
    };
}

/// The benefit of the design, and how to apply it to the model.
fn design(question: &Question, plain: Option<&[Entry]>, advice: &mut Advice) {
    if !question.has_design {
        return;
    }
    let fits = fits(question, advice);
    let Some(measured) = question.designed else {
        advice
            .next
            .push("the design itself has not been raced here: run it with torch:sdpa, torch:flex and flex".into());
        return;
    };
    let designed = entries(question.trainer, measured.report);
    let dense = plain.into_iter().flatten().filter(|e| e.value.is_some()).map(|e| e.ms).min_by(f64::total_cmp);
    for (name, words) in [
        (BackendName::TorchFlex, "PyTorch's compiled FlexAttention, which the sidecar uses in the model"),
        (BackendName::Flex, "Maskloom's kernel, which the exported kernel bundle uses in the model"),
    ] {
        let Some(entry) = designed.iter().find(|e| e.backend == name) else { continue };
        // the time of another shape would not be comparable
        let versus = dense.filter(|_| fits).map(|ms| format!(", {:.2}x the fastest without the design", ms / entry.ms));
        let at = place(measured);
        let of = if fits { "" } else { " in its own shape" };
        advice.why.push(format!(
            "{at}; with the design{of}: {:.2} ms by {words}{}",
            entry.ms,
            versus.unwrap_or_default()
        ));
    }
    let named: Vec<(BackendName, &Entry)> = designed.iter().map(|e| (e.backend, e)).collect();
    training(measured, "with the design", &named, &mut advice.why);
    advice.next.push(format!(
        "no value of `{}` selects a design: export it, and load the sidecar or the module into the model",
        question.trainer.key()
    ));
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
