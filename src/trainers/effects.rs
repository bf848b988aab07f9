//! What a value of SimpleTuner's setting means for a config, as facts and as warnings.
//!
//! Invariant: every fact is about a family, a value and a named release. Must not know how a file is read.

use super::known::{self, Does};
use super::meaning::{Fact, Masks, When};
use crate::base::Diagnostic;

/// The part of a config that decides what its attention setting does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setup<'a> {
    /// `model_family`.
    pub family: Option<&'a str>,
    /// `sageattention_usage`.
    pub usage: Option<&'a str>,
    /// `context_parallel_size`; 0 and 1 are none.
    pub parallel: usize,
    /// `dynamo_mode`.
    pub dynamo_mode: Option<&'a str>,
    /// `train_batch_size`.
    pub batch: usize,
}

/// The kernels or package behind a value.
fn what(value: &str) -> Fact {
    match value {
        "diffusers" | "native" => Fact::Sdpa,
        "cudnn" => Fact::Cudnn,
        "native-math" => Fact::Math,
        "native-flash" | "native-efficient" | "native-npu" | "native-xla" => Fact::OneKernel,
        v if v.starts_with("flash") => Fact::Flash(masks_of(v)),
        "flex" => Fact::Flex,
        v if v.starts_with("kohaku") => Fact::Kohaku,
        v if v.starts_with("sage") || v == "sla" => Fact::Quantised,
        v if v.starts_with("metal-flash-attention") => Fact::Metal,
        "xformers" => Fact::Xformers,
        v => Fact::Unknown(v.into(), known::releases().iter().map(|r| r.version.clone()).collect()),
    }
}

/// What the dispatcher's backend of a value does with masks.
fn masks_of(value: &str) -> Masks {
    let row = known::backend_of(value).and_then(known::dispatcher);
    match row.map(|r| r.mask.as_str()) {
        Some("refuses") => Masks::Refused,
        Some("padding only") => Masks::Padding,
        Some("keeps") => Masks::Kept,
        _ => Masks::Unknown,
    }
}

/// What a value does in a config; the last fact is the release.
pub fn meaning(value: &str, setup: Setup) -> Vec<Fact> {
    let mut facts = vec![what(value)];
    if let Some(release) = known::release_with(value) {
        facts.extend(reached(value, setup));
        facts.push(Fact::Release(release.version.clone(), release.built.clone()));
    }
    facts
}

/// How the value reaches the family's attention.
fn reached(value: &str, setup: Setup) -> Vec<Fact> {
    let effect = known::effect(setup.family, value, setup.usage);
    let family = setup.family.unwrap_or("model");
    let mut reported = Vec::new();
    match &effect.training {
        Does::Nothing => reported.push(Fact::NoEffect(family.into())),
        Does::Reads => reported.push(Fact::Reads(family.into())),
        Does::Steers => reported.push(Fact::Steers(family.into())),
        Does::SwitchesUnets => reported.push(Fact::Unets),
        Does::Unknown if known::family_name(family).is_none() && setup.family.is_some() => {
            reported.push(Fact::UnknownFamily(family.into()));
        }
        _ => {}
    }
    let (training, validation) = (replaces(&effect.training), replaces(&effect.validation));
    let when = match (&training, &validation) {
        (Some(_), Some(_)) => When::Both,
        (Some(_), None) => When::Training,
        (None, Some(_)) => When::Validation,
        (None, None) => return reported,
    };
    let (perhaps, drops, untrained) = training.or(validation).unwrap_or_default();
    reported.push(Fact::Replaces(when, perhaps));
    if drops {
        reported.push(Fact::Ignores);
    }
    if untrained && training.is_some() {
        reported.push(Fact::Warns);
    }
    reported
}

fn replaces(does: &Does) -> Option<(bool, bool, bool)> {
    match does {
        Does::Replaces { perhaps, drops_mask, untrained } => Some((*perhaps, *drops_mask, *untrained)),
        _ => None,
    }
}

/// Whether training with this value leaves attention layers untrained, by the trainer's own warning.
pub fn untrained(value: &str, setup: Setup) -> bool {
    replaces(&known::effect(setup.family, value, setup.usage).training).is_some_and(|(_, _, untrained)| untrained)
}

/// Whether a value can change what a family computes in training.
pub fn acts(value: &str, setup: Setup) -> bool {
    let does = known::effect(setup.family, value, setup.usage).training;
    !matches!(does, Does::Nothing | Does::Reads)
}

/// Warnings about a config in which this value will stand.
pub fn warnings(value: &str, setup: Setup) -> Vec<Diagnostic> {
    let mut notes = Vec::new();
    let effect = known::effect(setup.family, value, setup.usage);
    if untrained(value, setup) {
        let message =
            format!("with `{value}` in training the attention layers will not be trained, as the trainer itself warns");
        notes.push(Diagnostic::warning("config-untrained", message).hint(
            "set \"attention_mechanism\": \"diffusers\", or \"sageattention_usage\": \"inference\", which uses it in validation alone",
        ));
    } else if replaces(&effect.training).is_none() && replaces(&effect.validation).is_some() {
        let message = format!("`{value}` acts in validation alone (sageattention_usage): training is not faster");
        notes.push(
            Diagnostic::note("config-validation-only", message)
                .hint("it is forward only; in training it leaves attention layers untrained"),
        );
    }
    notes.extend(replaced(value, &effect.training, &effect.validation));
    notes.extend(causal(value, setup));
    notes.extend(parallel(value, setup));
    if value == "flex" && setup.dynamo_mode.is_some_and(|m| m.contains("reduce-overhead")) {
        let message = "flex with dynamo_mode `reduce-overhead` records CUDA graphs: a block mask that is made anew for a call is not in the graph";
        notes.push(
            Diagnostic::warning("config-cuda-graphs", message)
                .hint("set \"dynamo_mode\": \"default\", or keep the mask's tensors in one place for all steps"),
        );
    }
    notes
}

fn replaced(value: &str, training: &Does, validation: &Does) -> Option<Diagnostic> {
    let (perhaps, drops, _) = replaces(training).or(replaces(validation))?;
    let place = if perhaps { "may put" } else { "puts" };
    let masks = if drops { "; it ignores every mask that a model passes" } else { "" };
    let message = format!(
        "the trainer {place} `{value}` in the place of PyTorch's SDPA while it runs, in every family that calls SDPA{masks}"
    );
    Some(Diagnostic::warning("config-replaces-sdpa", message).hint(
        "the exported sidecar notices it at each call and keeps the mask; `diffusers` runs the trainer without a replacement",
    ))
}

fn causal(value: &str, setup: Setup) -> Option<Diagnostic> {
    let family = setup.family.filter(|f| known::is_causal(f))?;
    let backend = known::backend_of(value)?;
    let row = known::dispatcher(backend).filter(|r| r.causal == "drops")?;
    let both =
        if row.mask_with_causal.starts_with("drops") { ", and drops a dense mask that comes with it" } else { "" };
    let message = format!(
        "the `{family}` family passes is_causal=True, and diffusers' `{backend}` computes full attention then{both} ({})",
        known::diffusers_edition()
    );
    Some(
        Diagnostic::warning("config-causal-lost", message)
            .hint("choose `diffusers`, `native` or `cudnn`, which keep is_causal"),
    )
}

fn parallel(value: &str, setup: Setup) -> Option<Diagnostic> {
    if setup.parallel < 2 {
        return None;
    }
    let backend = known::backend_of(value).unwrap_or("native");
    let row = known::dispatcher(backend)?;
    let message = if !row.context_parallel {
        format!(
            "diffusers' `{backend}` does not run under context parallel (context_parallel_size {}): another backend takes its place, which may refuse the model's mask",
            setup.parallel
        )
    } else if row.mask == "refuses" {
        format!("diffusers' `{backend}` runs under context parallel but refuses every mask that the model passes")
    } else {
        return None;
    };
    Some(
        Diagnostic::warning("config-context-parallel", message)
            .hint("choose `cudnn` or `native`: they run under context parallel and take a mask"),
    )
}
