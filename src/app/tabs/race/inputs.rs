//! The source of a run's q, k and v.
//!
//! Invariant: a file is on the worker's machine and read there. Must not know its contents.

use crate::app::action::settings_edit;
use crate::app::action::{Action, Actions};
use crate::app::state::State;
use crate::app::view::FileInputs;
use crate::app::widgets::{text_field, text_field_took};
use crate::base::Layout;
use egui::Ui;

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let inputs = &state.view.inputs;
    let mut change = |change: &dyn Fn(&mut FileInputs)| {
        let mut new = inputs.clone();
        change(&mut new);
        actions.push(Action::SetInputs(Some(new)));
    };
    ui.horizontal(|ui| {
        if ui.radio(!inputs.used, "random").on_hover_text("Standard normal values from a seed.").clicked() {
            change(&|i| i.used = false);
        }
        if ui.radio(inputs.used, "safetensors file").on_hover_text("Recorded q, k and v.").clicked() {
            change(&|i| i.used = true);
        }
    });
    if !inputs.used {
        seed(ui, state, actions);
        return;
    }
    let width = ui.available_width();
    ui.weak("on the worker's machine");
    let (_, path) = text_field(ui, "Input file", &inputs.path, width);
    if let Some(path) = path {
        text_field_took(ui, "Input file", &path);
        change(&|i| i.path.clone_from(&path));
    }
    for (at, letter) in ["q", "k", "v"].into_iter().enumerate() {
        ui.horizontal(|ui| {
            ui.monospace(letter);
            let field = format!("Tensor for {letter}");
            let width = ui.available_width();
            let (_, name) = text_field(ui, &field, &inputs.names[at], width);
            if let Some(name) = name {
                text_field_took(ui, &field, &name);
                change(&|i| i.names[at].clone_from(&name));
            }
        });
    }
    ui.horizontal(|ui| {
        ui.label("in the file");
        for (layout, name) in [(Layout::Bhsd, "B H S D"), (Layout::Bshd, "B S H D")] {
            if ui.selectable_label(inputs.layout == layout, name).clicked() {
                change(&|i| i.layout = layout);
            }
        }
    });
}

fn seed(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let settings = &state.document.settings;
    ui.horizontal(|ui| {
        ui.label("seed");
        let mut seed = settings.seed;
        if ui.add(egui::DragValue::new(&mut seed).speed(0.2)).accessible_name("seed").changed() {
            actions.edit(settings_edit(settings, |s| s.seed = seed));
        }
    });
}
