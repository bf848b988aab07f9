//! A trainer's `config.json` with the attention setting in it.
//!
//! Invariant: only the one value changes; the effect on the trainer is described next to the bytes, and flex is set
//! only on request. Facts about SimpleTuner's releases come from `known`.

use super::effects::{self, Setup};
use super::json_edit::Object;
use super::known::{self, Does};
use super::meaning::Meaning;
use super::programs::{Program, program};
use super::settings_file::SettingsFile;
use crate::base::{BackendName, Diagnostic};
use crate::base::{ExportFile, ExportKind};

/// The owner of the setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trainer {
    /// `attention_mechanism`
    #[default]
    SimpleTuner,
    /// `attn_implementation`, as transformers has it.
    Transformers,
}

impl Trainer {
    /// Keys of an older spelling, which the reader prefers if both occur.
    fn older_keys(self) -> &'static [&'static str] {
        match self {
            Trainer::SimpleTuner => &[],
            Trainer::Transformers => &["_attn_implementation"],
        }
    }

    /// The setting's key.
    pub fn key(self) -> &'static str {
        match self {
            Trainer::SimpleTuner => "attention_mechanism",
            Trainer::Transformers => "attn_implementation",
        }
    }

    /// The exact value that selects a backend there, with a note.
    pub fn value(self, backend: BackendName) -> (&'static str, Option<&'static str>) {
        use BackendName::*;
        let nearest = "it has no eager backend; `native-math`, PyTorch's unfused SDPA, is the closest";
        let cudnn = "it has no setting for cudnn.flex_attention; `flex` uses Triton's kernels";
        let kernel = "it has no setting for FlexAttention's flash kernels; `flex` uses Triton's";
        match (self, backend) {
            (Trainer::SimpleTuner, Eager | TorchEager) => ("native-math", Some(nearest)),
            (Trainer::SimpleTuner, Sdpa | TorchSdpa) => ("diffusers", None),
            (Trainer::SimpleTuner, FlashAttention2) => ("flash-attn", None),
            (Trainer::SimpleTuner, Flex | TorchFlex) => ("flex", None),
            (Trainer::SimpleTuner, TorchFlexFlash) => ("flex", Some(kernel)),
            (Trainer::SimpleTuner, CudnnFlex) => ("flex", Some(cudnn)),
            (Trainer::Transformers, Eager | TorchEager) => ("eager", None),
            (Trainer::Transformers, Sdpa | TorchSdpa) => ("sdpa", None),
            (Trainer::Transformers, FlashAttention2) => ("flash_attention_2", None),
            (Trainer::Transformers, Flex | TorchFlex) => ("flex_attention", None),
            (Trainer::Transformers, TorchFlexFlash) => ("flex_attention", Some(kernel)),
            (Trainer::Transformers, CudnnFlex) => ("flex_attention", Some(cudnn)),
        }
    }
}

/// The request.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConfigRequest<'a> {
    /// The owner of the file.
    pub trainer: Trainer,
    /// The backend chosen by the user. None: the fastest measured one that needs no mask, otherwise SDPA.
    pub backend: Option<BackendName>,
    /// The fastest backend without a mask, by a race.
    pub measured: Option<BackendName>,
    /// Whether the design has a mask or score mod.
    pub designed: bool,
    /// The file to be merged into, by name and bytes; None makes a new one.
    pub existing: Option<(&'a str, &'a [u8])>,
}

/// A config, ready to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigExport {
    /// The whole file.
    pub file: ExportFile,
    /// The value that is set now.
    pub value: &'static str,
    /// The value that was there, as it was written.
    pub before: Option<String>,
    /// The trainer's support for it, and its limits.
    pub notes: Vec<Diagnostic>,
}

/// The config with its attention set. Errors: what keeps the existing file from being read, with line and column.
pub fn config(request: &ConfigRequest) -> Result<ConfigExport, Diagnostic> {
    let object = match request.existing {
        Some((name, bytes)) => Some(SettingsFile::parse(name, bytes)?),
        None => None,
    };
    if let (Some(object), Some((name, _))) = (&object, request.existing) {
        refuse_other_files(request.trainer, name, object)?;
        let bytes = request.existing.map(|(_, bytes)| bytes).unwrap_or_default();
        if let Some(program) = program(name, object, bytes) {
            return of_program(request, program, name, object);
        }
    }
    let backend = request.backend.unwrap_or_else(|| maskless(request.measured));
    let (value, remark) = request.trainer.value(backend);
    // if the older spelling occurs, it counts
    let older = request.trainer.older_keys().iter().find(|k| object.as_ref().is_some_and(|o| o.find(&[k]).is_some()));
    let key = older.copied().unwrap_or(request.trainer.key());
    let mut notes: Vec<Diagnostic> =
        remark.map(|text| Diagnostic::note("config-nearest", format!("{key}: {text}"))).into_iter().collect();
    let setting = |name: &str| {
        let dashed = format!("--{name}");
        let object = object.as_ref()?;
        object.find(&[name, &dashed]).and_then(|m| object.string(m))
    };
    let number = |name: &str| {
        let dashed = format!("--{name}");
        let object = object.as_ref()?;
        let value = object.value(object.find(&[name, &dashed])?);
        value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()).map(|n| n as usize)
    };
    let (family, usage, mode) = (setting("model_family"), setting("sageattention_usage"), setting("dynamo_mode"));
    let setup = Setup {
        family: family.as_deref(),
        usage: usage.as_deref(),
        parallel: number("context_parallel_size").unwrap_or(0),
        dynamo_mode: mode.as_deref(),
        batch: number("train_batch_size").unwrap_or(0),
    };
    let present = setting(key);
    notes.extend(remarks(request, backend, setup, setting("mixed_precision").as_deref()));
    if request.trainer == Trainer::SimpleTuner {
        let stays = request.backend.is_none() && present.is_some();
        let will_be = present.as_deref().filter(|_| stays).unwrap_or(value);
        notes.extend(of_value(will_be, setup, request.designed));
        if object.is_some() && present.is_none() {
            notes.extend(default_left(value, setup));
        }
    }
    let written = object.as_ref().map_or_else(|| format!("\"{value}\""), |o| o.quoted(value));
    let dashed = format!("--{key}");
    let (text, before) = match &object {
        None => (format!("{{\n  \"{key}\": {written}\n}}\n"), None),
        Some(object) => {
            let both = [key, dashed.as_str()].iter().all(|k| object.find(&[k]).is_some());
            if both {
                let message = format!("the file contains both `{key}` and `{dashed}`; the last one counts and was set");
                notes.push(Diagnostic::warning("config-both-spellings", message).hint("remove the other one"));
            }
            match object.find(&[key, &dashed]) {
                // no other choice was requested, and the mask does not need one
                Some(member) if request.backend.is_none() && !matches!(object.written(member), "null" | "" | "~") => {
                    let message = format!("`{key}` stays {}, the value in the file", object.written(member));
                    let hint =
                        "the exported sidecar and adapters replace attention for every value; --backend sets another";
                    notes.push(Diagnostic::note("config-kept", message).hint(hint));
                    (object.replaced(member, object.written(member))?, Some(object.written(member).to_string()))
                }
                Some(member) => (object.replaced(member, &written)?, Some(object.written(member).to_string())),
                None => (object.inserted(if mostly_dashed(object) { &dashed } else { key }, &written), None),
            }
        }
    };
    if let Some(SettingsFile::Json(Object { commented: true, .. })) = &object {
        let message = "the file has comments, which are kept: a strict JSON reader (Python's json.load) stops at them";
        notes.push(
            Diagnostic::warning("config-comments", message)
                .hint("rename it to .jsonc where the trainer reads that, or remove them"),
        );
    }
    if let Some(object) = &object {
        notes.extend(other_flags(object));
    } else {
        let message = format!("on a command line it is --{key}={value}");
        notes.push(
            Diagnostic::note("config-flag", message)
                .hint("--merge FILE takes a trainer's .json, .jsonc, .yaml or .toml"),
        );
    }
    let name = request.existing.map_or("config.json", |(name, _)| file_name(name));
    let what = match &before {
        Some(before) if request.backend.is_none() && before != "null" => {
            format!("the trainer's config, unchanged: \"{key}\" is {before}")
        }
        Some(before) if *before == written => {
            format!("the trainer's config, unchanged: \"{key}\" is {written} already")
        }
        Some(before) => format!("the trainer's config with \"{key}\" {written} instead of {before}"),
        None if object.is_some() => format!("the trainer's config with \"{key}\": {written} added"),
        None => format!("a trainer's config with \"{key}\": {written}"),
    };
    Ok(ConfigExport { file: ExportFile::new(ExportKind::Config, name, text, what), value, before, notes })
}

/// The file of a program with keys of its own. Errors: the program has no key for this.
fn of_program(
    request: &ConfigRequest,
    program: Program,
    name: &str,
    object: &SettingsFile,
) -> Result<ConfigExport, Diagnostic> {
    if let Program::None(foreign) = program {
        let message = format!("{name} is {}", foreign.what);
        return Err(Diagnostic::error("config-other-file", message).hint(foreign.instead));
    }
    let backend = request.backend.unwrap_or_else(|| maskless(request.measured));
    let mut notes = vec![Diagnostic::note("config-program", format!("{name} is a file of {}", program.name()))];
    if request.designed {
        let message = "the setting selects a backend; no key of the file contains a mask or score mod";
        let hint = "the exported sidecar applies the mask in an unchanged program: set PYTHONPATH=EXPORT/sidecar and MASKLOOM_SIDECAR=EXPORT";
        notes.push(Diagnostic::note("config-carries-no-mask", message).hint(hint));
    }
    let export = |text: String, key: &str, value: &'static str, before: Option<String>, notes: Vec<Diagnostic>| {
        let what = match &before {
            Some(before) => format!("{}'s config with \"{key}\" {value}, before {before}", program.name()),
            None => format!("{}'s config with \"{key}\": {value} added", program.name()),
        };
        ConfigExport { file: ExportFile::new(ExportKind::Config, file_name(name), text, what), value, before, notes }
    };
    if let Some(found) = program.value(backend) {
        let (key, value) = found?;
        let member = object.find(&[key]);
        let before = member.map(|m| object.written(m).to_string());
        let keeps = request.backend.is_none() && before.is_some();
        let text = match member {
            Some(member) if keeps => object.replaced(member, object.written(member))?,
            Some(member) => object.replaced(member, &object.quoted(value))?,
            None => object.inserted(key, &object.quoted(value)),
        };
        return Ok(export(text, key, value, before, notes));
    }
    let switch = program.switch(backend)?;
    let is_on = |key: &str| object.find(&[key]).is_some_and(|m| object.value(m) == serde_json::Value::Bool(true));
    let chosen: Vec<&str> = switch.others.iter().copied().filter(|key| is_on(key)).collect();
    if request.backend.is_none() && !chosen.is_empty() {
        notes.push(Diagnostic::note("config-kept", format!("`{}` stays, the choice in the file", chosen.join("`, `"))));
        let member = object.find(&[chosen[0]]).expect("it is on");
        let text = object.replaced(member, object.written(member))?;
        return Ok(export(text, chosen[0], "true", Some("true".into()), notes));
    }
    // one switch at a time, each in the text that the one before made
    let mut text = object.text().to_string();
    for key in chosen.iter().filter(|key| **key != switch.on) {
        notes.push(Diagnostic::note("config-switched-off", format!("`{key}` is false now: one of these counts")));
        let now = SettingsFile::parse(name, text.as_bytes())?;
        text = now.find(&[*key]).map_or(Ok(text.clone()), |m| now.replaced(m, "false"))?;
    }
    let now = SettingsFile::parse(name, text.as_bytes())?;
    let before = now.find(&[switch.on]).map(|m| now.written(m).to_string());
    let made = match now.find(&[switch.on]) {
        Some(member) => now.replaced(member, "true")?,
        None => now.inserted(switch.on, "true"),
    };
    Ok(export(made, switch.on, "true", before, notes))
}

/// Switches by which axolotl, LLaMA-Factory and kohya's scripts choose attention.
const OTHER_FLAGS: &[&str] = &[
    "flash_attention",
    "sdp_attention",
    "xformers_attention",
    "flex_attention",
    "eager_attention",
    "sage_attention",
    "flash_attn",
    "sdpa",
    "xformers",
    "mem_eff_attn",
];

fn other_flags(object: &SettingsFile) -> Option<Diagnostic> {
    let flags: Vec<&str> = object
        .members()
        .iter()
        .filter(|m| OTHER_FLAGS.contains(&m.key.as_str()) && object.value(m) != serde_json::Value::Bool(false))
        .map(|m| m.key.as_str())
        .collect();
    let message = format!("the file contains `{}`, which also selects the attention", flags.join("`, `"));
    (!flags.is_empty()).then(|| {
        Diagnostic::warning("config-other-flag", message)
            .hint("keep one of them; the exported sidecar applies a mask with either")
    })
}

/// Files that no trainer of this kind reads as its settings: the key would do nothing there.
fn refuse_other_files(trainer: Trainer, name: &str, object: &SettingsFile) -> Result<(), Diagnostic> {
    let has = |key: &str| object.find(&[key]).is_some();
    let what = if has("_diffusers_version") || (has("_class_name") && !has("model_family")) {
        "the config of a diffusers model or pipeline"
    } else if has("zero_optimization") || has("train_micro_batch_size_per_gpu") {
        "a DeepSpeed config"
    } else if has("max_new_tokens") || (has("transformers_version") && !has("model_type") && !has("architectures")) {
        "a generation config"
    } else if has("tokenizer_class") && !has("model_type") {
        "a tokenizer's config"
    } else if trainer == Trainer::SimpleTuner
        && has("model_type")
        && ["architectures", "transformers_version", "_attn_implementation"].into_iter().any(has)
        && !has("model_family")
    {
        let message = format!("{name} is the config of a transformers model, not of SimpleTuner");
        return Err(Diagnostic::error("config-other-file", message).hint("select it: --trainer transformers"));
    } else {
        return Ok(());
    };
    let message = format!("{name} is {what}: no trainer reads its attention setting from this file");
    Err(Diagnostic::error("config-other-file", message)
        .hint(format!("merge into the trainer's own config; on a command line it is --{}=VALUE", trainer.key())))
}

/// The default choice: never flex, which without a mask in the model is a slower SDPA.
fn maskless(measured: Option<BackendName>) -> BackendName {
    match measured {
        Some(fast @ (BackendName::Sdpa | BackendName::FlashAttention2 | BackendName::TorchSdpa)) => fast,
        _ => BackendName::Sdpa,
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().filter(|n| !n.is_empty()).unwrap_or("config.json")
}

fn mostly_dashed(object: &SettingsFile) -> bool {
    let dashed = object.members().iter().filter(|m| m.key.starts_with("--")).count();
    2 * dashed > object.members().len()
}

fn remarks(request: &ConfigRequest, backend: BackendName, setup: Setup, precision: Option<&str>) -> Vec<Diagnostic> {
    use BackendName::*;
    let mut notes = Vec::new();
    let key = request.trainer.key();
    let flex = matches!(backend, Flex | TorchFlex | TorchFlexFlash | CudnnFlex);
    if request.designed {
        let message = format!("`{key}` selects a backend; no key of the file contains a mask or score mod");
        let hint = "the exported sidecar applies the mask in an unchanged trainer: set PYTHONPATH=EXPORT/sidecar and MASKLOOM_SIDECAR=EXPORT";
        notes.push(Diagnostic::note("config-carries-no-mask", message).hint(hint));
    }
    if request.trainer == Trainer::SimpleTuner && flex && request.designed && setup.family == Some("wan") {
        let message = "Wan's self-attention passes no mask: with `flex` alone it computes dense attention, slower";
        let hint = "choose `diffusers`; the exported sidecar applies the mask";
        notes.push(Diagnostic::warning("config-no-mask", message).hint(hint));
    }
    if (flex || backend == FlashAttention2) && matches!(precision, Some("no" | "fp8")) {
        let message = format!(
            "mixed_precision is `{}`, but this backend supports bfloat16 and float16 only",
            precision.unwrap_or("")
        );
        notes.push(
            Diagnostic::warning("config-precision", message)
                .hint("set \"mixed_precision\": \"bf16\", or keep `diffusers`, which supports any"),
        );
    }
    notes
}

/// What the value that will stand in the file does in its family.
fn of_value(value: &str, setup: Setup, designed: bool) -> Vec<Diagnostic> {
    let mut notes = effects::warnings(value, setup);
    let Some(family) = setup.family else { return notes };
    let does = known::effect(Some(family), value, setup.usage).training;
    notes.extend(match does {
        Does::Nothing | Does::Reads => {
            let message = format!(
                "the `{family}` family calls PyTorch's SDPA itself: `{value}` has no effect there ({})",
                known::edition()
            );
            Some(
                Diagnostic::warning("config-no-effect", message)
                    .hint("the exported sidecar applies a mask to it for every value"),
            )
        }
        Does::Dispatches("flex") if !(designed && family == "wan") => {
            let message = format!(
                "in the `{family}` family flex runs uncompiled unless the model is compiled; uncompiled it materialises all scores"
            );
            Some(Diagnostic::warning("config-uncompiled", message).hint("compile the model (torch.compile), or choose the fastest maskless backend and use the exported sidecar, which compiles"))
        }
        _ if known::family_name(family).is_none() => {
            let message = format!(
                "the `{family}` family is unknown to Maskloom ({}): the effect of the setting there is unknown",
                known::edition()
            );
            Some(
                Diagnostic::note("config-unknown-family", message)
                    .hint("compare the time of a step with and without it"),
            )
        }
        _ => None,
    });
    notes
}

/// A value is written where the trainer's default counted before.
fn default_left(value: &str, setup: Setup) -> Option<Diagnostic> {
    let release = known::newest();
    if value == release.default {
        return None;
    }
    let message = format!(
        "the file had no `attention_mechanism`: in {} that is `{}`; with `{value}` it is no longer used",
        known::edition(),
        release.default
    );
    let meaning = Meaning { unset: None, facts: effects::meaning(&release.default, setup) };
    Some(
        Diagnostic::warning("config-default-left", message)
            .hint(format!("`{}`: {meaning} A mask stays active with either", release.default)),
    )
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
