//! Whose settings file it is, and the key by which that program chooses attention.
//!
//! Invariant: a file is taken for a program's only by keys that this program alone has together; a program that reads no such
//! key is refused with what to do instead. Must not know how a file is changed.

use super::settings_file::SettingsFile;
use crate::base::{BackendName, Diagnostic};

/// A program other than SimpleTuner and transformers whose file this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// LLaMA-Factory: one key with a value.
    LlamaFactory,
    /// kohya's sd-scripts: one switch of several.
    Kohya,
    /// musubi-tuner: one switch of several.
    Musubi,
    /// axolotl: one switch of several.
    Axolotl,
    /// No key of the file chooses attention.
    None(&'static Foreign),
}

/// A file in which no key chooses attention.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    /// What it is.
    pub what: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

/// A change of a switch: its key and the new value; None for the value leaves it.
pub(crate) struct Switch {
    /// To be switched on.
    pub on: &'static str,
    /// The other switches of the program, to be switched off where they are on.
    pub others: &'static [&'static str],
}

static ACCELERATE: Foreign = Foreign {
    what: "accelerate's launch config, which ends with an error at a key that it does not know",
    instead: "merge into the config of the training script that it launches",
};
static DATASETS: Foreign = Foreign {
    what: "a dataset config of kohya's or musubi's scripts",
    instead: "merge into the training config (the file after --config_file), or add --sdpa to the command",
};
static TORCHTITAN: Foreign = Foreign {
    what: "torchtitan's job config: the model's flavor decides its attention",
    instead: "choose a flavor with FlexAttention (attn_type \"flex\" in the model's arguments); the exported module gives its BlockMask",
};
static SCRIPTS: Foreign = Foreign {
    what: "the arguments of a diffusers example script, which has no setting for attention",
    instead: "export DIFFUSERS_ATTN_BACKEND=native (or flash, flex, _native_cudnn), or call set_attention_backend; the exported sidecar masks it unchanged",
};

/// Whose file it is. None: SimpleTuner's, transformers', or not recognised.
pub(super) fn program(name: &str, object: &SettingsFile, bytes: &[u8]) -> Option<Program> {
    let has = |key: &str| object.find(&[key]).is_some() || object.find(&[&format!("--{key}")]).is_some();
    let any = |keys: &[&str]| keys.iter().any(|k| has(k));
    let all = |keys: &[&str]| keys.iter().all(|k| has(k));
    let tables = tables(bytes);
    let table = |names: &[&str]| names.iter().all(|n| tables.iter().any(|t| t == n));
    let is = |ends: &[&str]| ends.iter().any(|end| name.to_lowercase().ends_with(end));
    if any(&["model_family", "attention_mechanism"]) {
        return None;
    }
    if any(&["compute_environment", "distributed_type"]) && any(&["num_processes", "machine_rank", "mixed_precision"]) {
        return Some(Program::None(&ACCELERATE));
    }
    if is(&[".toml"]) && table(&["datasets"])
        || (table(&["general"]) && !any(&["output_dir", "output_name"]) && tables.len() < 3)
    {
        return Some(Program::None(&DATASETS));
    }
    if table(&["model", "training"])
        && tables.iter().any(|t| ["job", "parallelism", "optimizer", "checkpoint"].contains(&t.as_str()))
    {
        return Some(Program::None(&TORCHTITAN));
    }
    if any(&["finetuning_type", "template", "dataset_dir"]) && any(&["stage", "model_name_or_path", "flash_attn"]) {
        return Some(Program::LlamaFactory);
    }
    if has("base_model")
        && any(&["adapter", "datasets", "sequence_len", "micro_batch_size", "load_in_4bit", "load_in_8bit"])
    {
        return Some(Program::Axolotl);
    }
    if any(&["dit", "dit_high_noise"]) && any(&["vae", "network_module", "dataset_config", "text_encoder1", "t5"]) {
        return Some(Program::Musubi);
    }
    let kohya = [
        "network_module",
        "network_dim",
        "cache_latents",
        "unet_lr",
        "train_data_dir",
        "mem_eff_attn",
        "clip_skip",
        "sdpa",
        "xformers",
        "save_model_as",
    ];
    if has("pretrained_model_name_or_path") && any(&kohya) || kohya.iter().filter(|k| has(k)).count() >= 2 {
        return Some(Program::Kohya);
    }
    let script = [
        "instance_data_dir",
        "instance_prompt",
        "enable_xformers_memory_efficient_attention",
        "validation_prompt",
        "dataset_name",
    ];
    if has("pretrained_model_name_or_path") && any(&script) && !all(&["model_type"]) {
        return Some(Program::None(&SCRIPTS));
    }
    None
}

/// The names of a TOML file's tables.
fn tables(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let header = |line: &str| {
        let inner = line.trim().strip_prefix('[')?.trim_start_matches('[').split(']').next()?.trim().to_string();
        inner
            .chars()
            .all(|c| c.is_alphanumeric() || "_.-".contains(c))
            .then(|| inner.split('.').next().unwrap_or("").to_string())
    };
    text.lines().filter_map(header).filter(|t| !t.is_empty()).collect()
}

impl Program {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Program::LlamaFactory => "LLaMA-Factory",
            Program::Kohya => "kohya's sd-scripts",
            Program::Musubi => "musubi-tuner",
            Program::Axolotl => "axolotl",
            Program::None(_) => "another program",
        }
    }

    /// The key and value of a program with one key. None: it has switches.
    pub(crate) fn value(self, backend: BackendName) -> Option<Result<(&'static str, &'static str), Diagnostic>> {
        use BackendName::{
            CudnnFlex, Eager, FlashAttention2, Flex, Sdpa, TorchEager, TorchFlex, TorchFlexFlash, TorchSdpa,
        };
        (self == Program::LlamaFactory).then(|| match backend {
            Sdpa | TorchSdpa => Ok(("flash_attn", "sdpa")),
            FlashAttention2 => Ok(("flash_attn", "fa2")),
            Eager | TorchEager => Ok(("flash_attn", "disabled")),
            Flex | TorchFlex | TorchFlexFlash | CudnnFlex => Err(self.lacks(backend)),
        })
    }

    /// The switch of a program with several. Errors: it has none for this backend.
    pub(crate) fn switch(self, backend: BackendName) -> Result<Switch, Diagnostic> {
        use BackendName::{
            CudnnFlex, Eager, FlashAttention2, Flex, Sdpa, TorchEager, TorchFlex, TorchFlexFlash, TorchSdpa,
        };
        let kind = match backend {
            Sdpa | TorchSdpa => 0,
            FlashAttention2 => 1,
            Flex | TorchFlex | TorchFlexFlash | CudnnFlex => 2,
            Eager | TorchEager => 3,
        };
        let (names, others): ([Option<&'static str>; 4], &'static [&'static str]) = match self {
            Program::Kohya => ([Some("sdpa"), None, None, None], &["sdpa", "xformers", "mem_eff_attn"]),
            Program::Musubi => (
                [Some("sdpa"), Some("flash_attn"), None, None],
                &["sdpa", "flash_attn", "flash3", "sage_attn", "xformers"],
            ),
            Program::Axolotl => (
                [Some("sdp_attention"), Some("flash_attention"), Some("flex_attention"), Some("eager_attention")],
                &[
                    "sdp_attention",
                    "flash_attention",
                    "flex_attention",
                    "eager_attention",
                    "xformers_attention",
                    "sage_attention",
                ],
            ),
            _ => ([None; 4], &[]),
        };
        names[kind].map(|on| Switch { on, others }).ok_or_else(|| self.lacks(backend))
    }

    fn lacks(self, backend: BackendName) -> Diagnostic {
        let message = format!("{} has no setting for {backend}", self.name());
        Diagnostic::error("config-no-setting", message)
            .hint("merge with --backend sdpa; the exported sidecar or adapter applies the mask in the program")
    }
}
