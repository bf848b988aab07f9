//! What releases of SimpleTuner and diffusers do with attention: `assets/trainers/known.json`, made from their wheels.
//!
//! Invariant: every answer is of a named release, and what no release has is unknown. Must not know any config file.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[derive(Debug, Deserialize)]
struct Table {
    diffusers: Diffusers,
    /// Newest first.
    simpletuner: Vec<Release>,
}

#[derive(Debug, Deserialize)]
struct Diffusers {
    version: String,
    built: String,
    backends: BTreeMap<String, DispatcherRow>,
}

/// What a backend of diffusers' dispatcher does with what the model passes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DispatcherRow {
    /// What becomes of a mask: keeps, padding only, refuses, drops, drops some.
    pub mask: String,
    /// What becomes of `is_causal=True`: keeps, drops, no argument.
    pub causal: String,
    /// What becomes of a mask where `is_causal=True` too.
    pub mask_with_causal: String,
    /// Whether it runs under diffusers' context parallel.
    pub context_parallel: bool,
}

/// A release of the trainer.
#[derive(Debug, Deserialize)]
pub struct Release {
    /// Such as 4.10.1.
    pub version: String,
    /// The day its wheel was built.
    pub built: String,
    /// The value of a config without the key.
    pub default: String,
    default_usage: String,
    values: BTreeMap<String, ValueRow>,
    families: BTreeMap<String, FamilyRow>,
}

#[derive(Debug, Deserialize)]
struct ValueRow {
    #[serde(default)]
    switches_unets: bool,
    #[serde(flatten)]
    by_usage: BTreeMap<String, Phases>,
}

#[derive(Debug, Deserialize)]
struct Phases {
    training: Act,
    validation: Act,
}

#[derive(Clone, Debug, Deserialize)]
struct Act {
    effect: String,
    #[serde(default)]
    dispatcher: Option<String>,
    #[serde(default)]
    mask: Option<String>,
    #[serde(default)]
    untrained: bool,
}

#[derive(Debug, Deserialize)]
struct FamilyRow {
    calls: Vec<String>,
    #[serde(default)]
    is_causal: bool,
    #[serde(default)]
    reads_setting: bool,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../assets/trainers/known.json")).expect("the table is made by a script")
});

/// What a value does to the attention of a family in one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does {
    /// PyTorch's own choice among its SDPA kernels.
    Default,
    /// The trainer puts another function in the place of `scaled_dot_product_attention`, wherever it is called from.
    Replaces {
        /// Only where its packages and card are there; elsewhere PyTorch's SDPA runs.
        perhaps: bool,
        /// Whether a mask that a call passes is ignored.
        drops_mask: bool,
        /// The trainer's own warning: attention layers will not be trained.
        untrained: bool,
    },
    /// PyTorch's SDPA is restricted to one kernel.
    Steers,
    /// diffusers' dispatcher calls this backend.
    Dispatches(&'static str),
    /// The family's own code reads the value.
    Reads,
    /// The trainer calls a switch that UNets have and transformers lack.
    SwitchesUnets,
    /// The value does not reach this family's attention.
    Nothing,
    /// No release that was read has this value or family.
    Unknown,
}

/// A value in a family: in training and in validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// During training steps.
    pub training: Does,
    /// While validation pictures are made.
    pub validation: Does,
}

/// The newest release that was read.
pub fn newest() -> &'static Release {
    &TABLE.simpletuner[0]
}

/// The newest release and its day.
pub fn edition() -> String {
    let release = newest();
    format!("SimpleTuner {}, {}", release.version, release.built)
}

/// The releases that were read, newest first.
pub fn releases() -> &'static [Release] {
    &TABLE.simpletuner
}

/// diffusers' release that was read, and its day.
pub fn diffusers_edition() -> String {
    format!("diffusers {}, {}", TABLE.diffusers.version, TABLE.diffusers.built)
}

/// The row of a backend of diffusers.
pub fn dispatcher(backend: &str) -> Option<&'static DispatcherRow> {
    TABLE.diffusers.backends.get(backend)
}

/// The newest release that has a value. None: none has it.
pub fn release_with(value: &str) -> Option<&'static Release> {
    TABLE.simpletuner.iter().find(|r| r.values.contains_key(value))
}

/// The values of the newest release.
pub fn values() -> impl Iterator<Item = &'static str> {
    newest().values.keys().map(String::as_str)
}

/// A family's row, and its own spelling: `minimax_h3` is `minimaxh3`.
fn family(name: &str) -> Option<(&'static str, &'static FamilyRow)> {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-', '.'], "");
    let wanted = plain(name);
    let find = |r: &'static Release| r.families.iter().find(|(key, _)| plain(key) == wanted);
    TABLE.simpletuner.iter().find_map(find).map(|(key, row)| (key.as_str(), row))
}

/// The trainer's own spelling of a family. None: no release that was read has it.
pub fn family_name(name: &str) -> Option<&'static str> {
    family(name).map(|(key, _)| key)
}

/// Whether a family's attention passes `is_causal=True`.
pub fn is_causal(name: &str) -> bool {
    family(name).is_some_and(|(_, row)| row.is_causal)
}

/// Whether a family's attention goes through diffusers' dispatcher. None: unknown.
pub fn dispatches(name: &str) -> Option<bool> {
    let (_, row) = family(name)?;
    (row.calls != ["unknown"]).then(|| row.calls.iter().any(|c| c == "dispatches"))
}

/// The families of the newest release whose attention can be reached by a dispatcher's value.
pub fn families() -> impl Iterator<Item = (&'static str, bool)> {
    newest().families.iter().map(|(name, row)| (name.as_str(), row.calls.iter().any(|c| c == "dispatches")))
}

/// The backend of diffusers that a value selects, if it selects one.
pub fn backend_of(value: &str) -> Option<&'static str> {
    let release = release_with(value)?;
    release.values[value].by_usage.values().next()?.training.dispatcher.as_deref()
}

/// What a value does in a family (None: one that is not named). `usage` is `sageattention_usage`.
pub fn effect(name: Option<&str>, value: &str, usage: Option<&str>) -> Effect {
    let unknown = Effect { training: Does::Unknown, validation: Does::Unknown };
    let Some(release) = release_with(value) else { return unknown };
    let row = &release.values[value];
    let usage = usage.unwrap_or(&release.default_usage);
    let Some(phases) = row.by_usage.get(usage).or_else(|| row.by_usage.values().next()) else { return unknown };
    let known = match name {
        Some(name) => match family(name) {
            Some((_, row)) if row.calls != ["unknown"] => Some(row),
            // what is put in the place of SDPA reaches every family; which of the others do is not known
            _ => {
                let of = |act: &Act| match reach(act, None) {
                    does @ (Does::Replaces { .. } | Does::Default) => does,
                    _ => Does::Unknown,
                };
                return Effect { training: of(&phases.training), validation: of(&phases.validation) };
            }
        },
        None => None,
    };
    let of = |act: &Act| match reach(act, known) {
        Does::Default if row.switches_unets => Does::SwitchesUnets,
        does => does,
    };
    Effect { training: of(&phases.training), validation: of(&phases.validation) }
}

/// What reaches the calls that a family makes. Without a family: what is done at all.
fn reach(act: &Act, family: Option<&'static FamilyRow>) -> Does {
    let calls = |what: &str| family.is_none_or(|f| f.calls.iter().any(|c| c == what));
    match act.effect.as_str() {
        // the dispatcher's own default calls PyTorch's SDPA, so it is reached there too
        "replaces" | "may replace" if calls("sdpa") || calls("dispatches") => Does::Replaces {
            perhaps: act.effect == "may replace",
            drops_mask: act.mask.as_deref() == Some("drops"),
            untrained: act.untrained,
        },
        "replaces" | "may replace" => Does::Nothing,
        "unknown" => Does::Unknown,
        effect => match &act.dispatcher {
            None => Does::Default,
            Some(backend) if calls("dispatches") => Does::Dispatches(leaked(backend)),
            Some(_) if effect == "steers" && calls("sdpa") => Does::Steers,
            Some(_) if family.is_some_and(|f| f.reads_setting) => Does::Reads,
            Some(backend) if backend == "native" => Does::Default,
            Some(_) => Does::Nothing,
        },
    }
}

/// The table's own copy of a backend's name.
fn leaked(backend: &str) -> &'static str {
    TABLE.diffusers.backends.get_key_value(backend).map_or("unknown", |(key, _)| key.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value in the family during training, in short.
    fn check(family: &str, value: &str, usage: Option<&str>, want: &str) {
        let effect = effect(Some(family), value, usage);
        assert_eq!(format!("{:?} / {:?}", effect.training, effect.validation), want, "{family} {value}");
    }

    /// What SimpleTuner 4.10.1's own controller did with these values in these models, by hand.
    #[test]
    fn what_a_value_does_depends_on_family_and_value() {
        let kept = "Replaces { perhaps: false, drops_mask: false, untrained: false }";
        let sage = "Replaces { perhaps: false, drops_mask: true, untrained: true }";
        let validation = "Default / Replaces { perhaps: false, drops_mask: true, untrained: false }";
        check("flux", "flex", None, "Reads / Reads");
        check("sdxl", "flex", None, "Nothing / Nothing");
        check("sdxl", "cudnn", None, "Steers / Steers");
        check("sd3", "native-math", None, "Steers / Steers");
        check("wan", "cudnn", None, "Dispatches(\"_native_cudnn\") / Dispatches(\"_native_cudnn\")");
        check("flux", "sageattention", None, validation);
        check("wan", "sageattention", Some("training+inference"), &format!("{sage} / {sage}"));
        check("sdxl", "sla", None, &format!("{kept} / {kept}"));
        check("sdxl", "xformers", None, "SwitchesUnets / SwitchesUnets");
        check(
            "wan",
            "kohaku-fa-auto",
            None,
            "Replaces { perhaps: true, drops_mask: false, untrained: false } / Default",
        );
        check("wan", "diffusers", None, "Default / Default");
        check("wan", "no-such-value", None, "Unknown / Unknown");
    }

    #[test]
    fn every_value_and_family_of_the_releases_is_known() {
        let counts: Vec<_> =
            releases().iter().map(|r| (r.version.as_str(), r.values.len(), r.families.len())).collect();
        assert_eq!(counts, [("4.10.1", 29, 45), ("4.8.0", 27, 43), ("3.1.6", 18, 26)]);
        assert_eq!(
            releases().iter().map(|r| r.default.as_str()).collect::<Vec<_>>(),
            ["kohaku-fa-auto", "diffusers", "diffusers"]
        );
        for (name, row) in &newest().families {
            assert!(row.calls != ["unknown"], "{name}");
        }
        for name in ["ernie", "flux3_image", "minimaxh3", "minimaxmusic", "moss_image", "z_image_omni", "minimax_h3"] {
            assert_eq!(dispatches(name), Some(true), "{name}");
        }
        for name in ["flux", "sdxl", "ace_step", "anima", "hidream"] {
            assert_eq!(dispatches(name), Some(false), "{name}");
        }
        assert!(is_causal("cosmos3") && !is_causal("wan"));
        assert_eq!(dispatches("unheard_of"), None);
    }

    #[test]
    fn the_dispatcher_of_flex_computes_full_attention_for_is_causal() {
        let flex = dispatcher("flex").expect("a row");
        assert_eq!((flex.mask.as_str(), flex.causal.as_str(), flex.context_parallel), ("keeps", "drops", false));
        assert_eq!(flex.mask_with_causal, "drops some");
        assert_eq!(dispatcher("native").map(|r| r.causal.as_str()), Some("keeps"));
        assert_eq!(dispatcher("_native_flash").map(|r| r.mask.as_str()), Some("refuses"));
    }
}
