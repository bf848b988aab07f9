//! The attention setting in a trainer's config.json, and starting points for its model.
//!
//! Invariant: the file is only read. Must not know how a document opens, nor how it is shown.

use crate::base::{BackendName, Diagnostic};
use crate::document::library;
use crate::document::model::Document;
use crate::tasks::recorded;
use crate::trainers::ConfigRequest;
use crate::trainers::advice::{Advice, Measured, Question, advise};
use crate::trainers::config::config;
use crate::trainers::read::TrainerConfig;
use std::path::PathBuf;

/// The result of reading.
#[derive(Clone, Debug)]
pub(crate) struct TrainerDialog {
    pub path: PathBuf,
    /// The file, or why it cannot be read.
    pub read: Result<TrainerConfig, Diagnostic>,
    /// The model's attention as it is trained, where its shape is known.
    pub plain: Option<Document>,
    /// From shipped runs, if there are any of this shape.
    pub advice: Option<Advice>,
    /// The trainer's behaviour with the setting of a designed mask.
    pub notes: Vec<Diagnostic>,
}

impl TrainerDialog {
    /// Reads what concerns attention.
    pub(crate) fn new(path: PathBuf, text: &str) -> Self {
        let name = path.file_name().map_or("config.json".into(), |n| n.to_string_lossy().into_owned());
        let read = TrainerConfig::read(&name, text.as_bytes());
        let plain = read.as_ref().ok().and_then(TrainerConfig::document);
        let existing = Some(("config.json", text.as_bytes()));
        let request =
            ConfigRequest { backend: Some(BackendName::Flex), designed: true, existing, ..Default::default() };
        let notes = config(&request).map(|found| found.notes).unwrap_or_default();
        let advice = read.as_ref().ok().zip(plain.as_ref()).and_then(|(config, plain)| recorded_advice(config, plain));
        Self { path, read, plain, advice, notes }
    }

    /// Whether the file can be read as one.
    pub(crate) fn is_one(&self) -> bool {
        self.read.is_ok()
    }

    /// Presets for the family, by name.
    pub(crate) fn presets(&self) -> Vec<&'static str> {
        let family = self.read.as_ref().ok().and_then(|c| c.family.as_deref()).unwrap_or("");
        let begins: &[&str] = match family {
            f if f.starts_with("flux") || f == "chroma" => &["flux"],
            f if f.starts_with("wan") => &["wan", "svg"],
            f if f.starts_with("qwen_image") => &["qwen_image"],
            f if f.starts_with("hunyuan") => &["hunyuan", "svg"],
            f if f.starts_with("ltx") => &["ltx"],
            f if f.starts_with("gemma") => &["gemma"],
            f if f.starts_with("llama") => &["gqa_llama3", "llama", "streaming"],
            f if f.starts_with("qwen") => &["qwen3", "block_topk"],
            f if f.starts_with("mistral") => &["mistral"],
            f if f.starts_with("gpt_oss") => &["gpt_oss"],
            f if f.starts_with("deepseek") => &["deepseek"],
            "sd3" => &["sd3"],
            "sdxl" | "sd1x" | "sd2x" => &["sdxl"],
            _ => &["sliding_window", "natten_2d", "flux_text_padding", "wan_natten_3d"],
        };
        let wanted = |p: &&library::Preset| begins.iter().any(|b| p.name.starts_with(b));
        library::presets().iter().filter(wanted).map(|p| p.name).collect()
    }
}

/// Advice from the runs that ship.
fn recorded_advice(config: &TrainerConfig, plain: &Document) -> Option<Advice> {
    let run = *recorded::of(plain).first()?;
    Some(advise(&Question {
        trainer: config.trainer,
        family: config.family.as_deref(),
        current: config.setting.as_deref(),
        precision: config.precision.as_deref(),
        setup: config.setup(),
        plain: Some(Measured { report: &run.report, recorded: true }),
        ..Question::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read_and_models_have_presets() {
        let text = r#"{"model_family": "wan", "--attention_mechanism": "diffusers"}"#;
        let dialog = TrainerDialog::new("config.json".into(), text);
        assert_eq!(dialog.read.as_ref().unwrap().setting.as_deref(), Some("diffusers"));
        assert!(dialog.presets().contains(&"wan_natten_3d"));
        assert_eq!(dialog.plain.as_ref().unwrap().axes.q.to_string(), "video 21x30x52");
        for family in ["flux", "qwen_image", "hunyuanvideo", "ltxvideo", "sdxl", "sd3", "qwen3", "unheard_of"] {
            let text = format!("{{\"--model_family\": \"{family}\"}}");
            assert!(!TrainerDialog::new("c".into(), &text).presets().is_empty(), "{family}");
        }
        assert_eq!(TrainerDialog::new("c".into(), "[1]").read.unwrap_err().code, "config-not-object");
    }
}
