//! A trainer's config.json: what it says of attention, and the presets for its model.
//!
//! Invariant: the file is only read; export merges into it later, and asks first. Must not know how a preset opens.

use super::{Action, Actions, Next, title};
use crate::app::widgets::{diagnostic_below, primary_button, section};
use crate::base::{BackendName, Diagnostic};
use crate::document::library;
use crate::export::{ConfigRequest, config};
use egui::Ui;
use serde_json::Value;
use std::path::PathBuf;

/// What was found.
#[derive(Clone, Debug)]
pub(crate) struct TrainerDialog {
    path: PathBuf,
    family: Option<String>,
    mechanism: Option<String>,
    precision: Option<String>,
    /// What the trainer would do with the setting of a designed mask.
    notes: Vec<Diagnostic>,
}

impl TrainerDialog {
    /// Reads what concerns attention; `text` is JSON.
    pub fn new(path: PathBuf, text: &str) -> Self {
        let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap_or_default();
        // `key` and `--key` are the same flag
        let read = |name: &str| {
            let entries = value.as_object()?;
            let found = entries.get(name).or_else(|| entries.get(&format!("--{name}")))?;
            Some(found.as_str().map_or_else(|| found.to_string(), String::from))
        };
        let existing = Some(("config.json", text.as_bytes()));
        let request =
            ConfigRequest { backend: Some(BackendName::Flex), designed: true, existing, ..Default::default() };
        Self {
            family: read("model_family").or_else(|| read("model_type")),
            mechanism: read("attention_mechanism"),
            precision: read("mixed_precision"),
            notes: match config(&request) {
                Ok(found) => found.notes,
                Err(why) => vec![why],
            },
            path,
        }
    }

    /// Presets for the family, by name.
    fn presets(&self) -> Vec<&'static str> {
        let family = self.family.as_deref().unwrap_or("");
        let begins: &[&str] = match family {
            f if f.starts_with("flux") || f == "chroma" => &["flux"],
            f if f.starts_with("wan") => &["wan", "svg"],
            f if f.starts_with("qwen") => &["qwen"],
            f if f.starts_with("hunyuan") => &["hunyuan", "svg"],
            f if f.starts_with("ltx") => &["ltx"],
            "sdxl" | "sd1x" | "sd2x" => &["sdxl"],
            _ => &["sliding_window", "natten_2d", "flux_text_padding", "wan_natten_3d"],
        };
        let wanted = |p: &&library::Preset| begins.iter().any(|b| p.name.starts_with(b));
        library::presets().iter().filter(wanted).map(|p| p.name).collect()
    }
}

pub(super) fn show(ui: &mut Ui, dialog: &mut TrainerDialog, actions: &mut Actions) -> Next {
    title(ui, "A trainer's configuration");
    ui.label(dialog.path.display().to_string());
    egui::Grid::new("trainer").num_columns(2).show(ui, |ui| {
        for (name, value) in [
            ("model_family", &dialog.family),
            ("attention_mechanism", &dialog.mechanism),
            ("mixed_precision", &dialog.precision),
        ] {
            ui.weak(name);
            ui.label(value.as_deref().unwrap_or("not set"));
            ui.end_row();
        }
    });
    dialog.notes.iter().for_each(|note| diagnostic_below(ui, note));
    section(ui, "Begin with a preset for this model");
    let mut next = Next::Stay;
    for name in dialog.presets() {
        let Some(document) = library::preset(name).and_then(|p| p.document().ok()) else { continue };
        let button = primary_button(ui, &document.name, true);
        ui.horizontal(|ui| {
            if ui.add(button).on_hover_text(&document.about).clicked() {
                actions.push(Action::FitConfig { path: dialog.path.clone(), preset: name.into() });
                next = Next::Close;
            }
            ui.weak(document.axes.q.to_string());
        });
    }
    ui.add_space(6.0);
    ui.weak("Export then merges the attention setting into this file, and asks before it writes.");
    if ui.button("Cancel").clicked() { Next::Close } else { next }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read_and_models_have_presets() {
        let text = r#"{"model_family": "wan", "--attention_mechanism": "diffusers"}"#;
        let dialog = TrainerDialog::new("config.json".into(), text);
        assert_eq!(dialog.mechanism.as_deref(), Some("diffusers"));
        assert!(dialog.presets().contains(&"wan_natten_3d"));
        for family in ["flux", "qwen_image", "hunyuanvideo", "ltxvideo", "sdxl", "unheard_of"] {
            let text = format!("{{\"--model_family\": \"{family}\"}}");
            assert!(!TrainerDialog::new("c".into(), &text).presets().is_empty(), "{family}");
        }
    }
}
