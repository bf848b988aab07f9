//! The source of a run's q, k and v.
//!
//! Invariant: a file is on the worker's machine and read there. Must not know its contents.

use crate::app::action::settings_edit;
use crate::app::action::{Action, Actions};
use crate::app::fields::drag_of;
use crate::app::language::{say, say_with};
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
        if ui.radio(!inputs.used, say(ui, "inputs-random")).on_hover_text(say(ui, "inputs-random.tip")).clicked() {
            change(&|i| i.used = false);
        }
        if ui.radio(inputs.used, say(ui, "inputs-file")).on_hover_text(say(ui, "inputs-file.tip")).clicked() {
            change(&|i| i.used = true);
        }
    });
    if !inputs.used {
        seed(ui, state, actions);
        return;
    }
    let width = ui.available_width();
    ui.weak(say(ui, "inputs-where"));
    let (_, path) = text_field(ui, say(ui, "inputs-path"), &inputs.path, width);
    if let Some(path) = path {
        text_field_took(ui, say(ui, "inputs-path"), &path);
        change(&|i| i.path.clone_from(&path));
    }
    for (at, letter) in ["q", "k", "v"].into_iter().enumerate() {
        ui.horizontal(|ui| {
            ui.monospace(letter);
            let field = say_with(ui, "inputs-tensor", &[("letter", letter.into())]);
            let width = ui.available_width();
            let (_, name) = text_field(ui, &field, &inputs.names[at], width);
            if let Some(name) = name {
                text_field_took(ui, &field, &name);
                change(&|i| i.names[at].clone_from(&name));
            }
        });
    }
    ui.horizontal(|ui| {
        ui.label(say(ui, "inputs-layout"));
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
        ui.label(say(ui, "inputs-seed"));
        let mut seed = settings.seed;
        if ui.add(drag_of(&mut seed).speed(0.2)).accessible_name(say(ui, "inputs-seed")).changed() {
            actions.edit(settings_edit(settings, |s| s.seed = seed));
        }
    });
}
