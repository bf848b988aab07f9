//! A trainer's config.json: what it says of attention, what that means today, and what to race for its model.
//!
//! Invariant: the file is only read; export merges into it later, and asks first. Must not know how a document opens.

use super::{Action, Actions, Next, title};
use crate::app::action::Fit;
use crate::app::widgets::{diagnostic_below, primary_button, section};
use crate::base::{BackendName, Diagnostic};
use crate::document::library;
use crate::document::model::Document;
use crate::service::recorded;
use crate::trainers::ConfigRequest;
use crate::trainers::advice::{Advice, Measured, Question, advise};
use crate::trainers::config::config;
use crate::trainers::read::TrainerConfig;
use egui::Ui;
use std::path::PathBuf;

/// What was found.
#[derive(Clone, Debug)]
pub(crate) struct TrainerDialog {
    path: PathBuf,
    /// The file, or why it cannot be read.
    read: Result<TrainerConfig, Diagnostic>,
    /// The model's attention as it is trained, where its shape is known.
    plain: Option<Document>,
    /// From runs that ship, where there are any of this shape.
    advice: Option<Advice>,
    /// What the trainer would do with the setting of a designed mask.
    notes: Vec<Diagnostic>,
}

impl TrainerDialog {
    /// Reads what concerns attention.
    pub fn new(path: PathBuf, text: &str) -> Self {
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
    pub fn is_one(&self) -> bool {
        self.read.is_ok()
    }

    /// Presets for the family, by name.
    fn presets(&self) -> Vec<&'static str> {
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
        plain: Some(Measured { report: &run.report, recorded: true }),
        ..Question::default()
    }))
}

pub(super) fn show(ui: &mut Ui, dialog: &mut TrainerDialog, actions: &mut Actions) -> Next {
    title(ui, "A trainer's configuration");
    ui.label(dialog.path.display().to_string());
    let mut next = Next::Stay;
    match &dialog.read {
        Err(why) => diagnostic_below(ui, why),
        Ok(config) => next = found(ui, dialog, config, actions),
    }
    if ui.button("Cancel").clicked() { Next::Close } else { next }
}

fn found(ui: &mut Ui, dialog: &TrainerDialog, config: &TrainerConfig, actions: &mut Actions) -> Next {
    egui::Grid::new("trainer").num_columns(2).show(ui, |ui| {
        for (name, value) in [
            ("family", &config.family),
            (config.trainer.key(), &config.setting),
            ("mixed_precision", &config.precision),
        ] {
            ui.weak(name);
            ui.label(value.as_deref().unwrap_or("not set"));
            ui.end_row();
        }
    });
    ui.label(format!("Today: {}", config.meaning()));
    dialog.notes.iter().for_each(|note| diagnostic_below(ui, note));
    let mut next = Next::Stay;
    let mut fit = |start: Fit| {
        let (path, trainer) = (dialog.path.clone(), Box::new(config.clone()));
        actions.push(Action::FitConfig { path, trainer, start });
        next = Next::Close;
    };
    section(ui, "First, the choices without a mask");
    match &dialog.plain {
        Some(plain) => {
            let s = &plain.settings;
            let tokens = plain.axes.q.len();
            ui.label(format!(
                "{} = {tokens} tokens, {} heads, {} kv heads, head_dim {}",
                plain.axes.q, s.heads, s.kv_heads, s.head_dim
            ));
            let names: Vec<_> = s.backends.iter().map(|b| b.as_str()).collect();
            let button = primary_button(ui, "Race the choices that need no mask", true);
            let hover =
                format!("{} at the model's real shape. The fastest may already be sufficient.", names.join(", "));
            if ui.add(button).on_hover_text(hover).clicked() {
                fit(Fit::Plain(Box::new(plain.clone())));
            }
        }
        None => drop(ui.weak("The shape of this model family is unknown: start from a preset.")),
    }
    if let Some(advice) = &dialog.advice {
        advice_ui(ui, advice);
    }
    let known = dialog.plain.is_some();
    section(ui, if known { "Or start from a preset for this model" } else { "Start from a preset" });
    egui::ScrollArea::vertical().max_height(220.0).show(ui, |ui| {
        for name in dialog.presets() {
            let Some(document) = library::preset(name).and_then(|p| p.document().ok()) else { continue };
            ui.horizontal(|ui| {
                if ui.button(&document.name).on_hover_text(&document.about).clicked() {
                    fit(Fit::Preset(name.into()));
                }
                ui.weak(document.axes.q.to_string());
            });
        }
    });
    ui.add_space(6.0);
    ui.weak("Export then changes the attention setting in this file; it shows the difference first and keeps a copy.");
    next
}

/// Advice in the window, here and below a race.
pub(crate) fn advice_ui(ui: &mut Ui, advice: &Advice) {
    ui.add(egui::Label::new(egui::RichText::new(&advice.headline).strong()).wrap());
    for line in advice.why.iter().chain(&advice.next) {
        ui.add(egui::Label::new(egui::RichText::new(line).weak()).wrap());
    }
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
