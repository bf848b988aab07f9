//! The racing backends, their passes, and the number of rounds.
//!
//! Invariant: backends are stored in the document, rounds in the view. Must not know devices.

use crate::app::action::settings_edit;
use crate::app::action::{Action, Actions};
use crate::app::command::Command;
use crate::app::language::say;
use crate::app::state::State;
use crate::app::widgets::whole;
use crate::base::BackendName;
use egui::Ui;

/// Who races, and how often.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let settings = &state.document.settings;
    for backend in BackendName::ALL {
        let mut on = settings.backends.contains(&backend);
        if ui.checkbox(&mut on, backend.as_str()).on_hover_text(say(ui, words(backend))).changed() {
            actions.edit(settings_edit(settings, |s| {
                s.backends.retain(|b| *b != backend);
                if on {
                    s.backends.push(backend);
                    s.backends.sort();
                }
            }));
        }
    }
    ui.horizontal(|ui| {
        ui.label(say(ui, "racers-rounds"));
        if let Some(rounds) = whole(ui, say(ui, "racers-rounds"), state.view.rounds as usize, 0..=1000) {
            actions.push(Action::SetRounds(rounds as u32));
        }
        if state.view.rounds == 0 {
            ui.weak(say(ui, "racers-only"));
        }
    });
    let mut deterministic = state.view.deterministic;
    let checkbox = egui::Checkbox::new(&mut deterministic, say(ui, "racers-fixed"));
    if ui.add_enabled(state.view.backward, checkbox).on_hover_text(say(ui, "racers-fixed.tip")).changed() {
        actions.push(Action::SetDeterministic(deterministic));
    }
    let button = egui::Button::new(say(ui, "racers-own"));
    if ui.add_enabled(state.can(Command::Run), button).on_hover_text(say(ui, "racers-own.tip")).clicked() {
        actions.push(Action::CheckOwnGradients);
    }
}

/// Whether races have a backward pass.
pub(super) fn passes(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let mut backward = state.view.backward;
    if ui.checkbox(&mut backward, say(ui, "racers-backward")).on_hover_text(say(ui, "racers-backward.tip")).changed() {
        actions.push(Action::SetBackward(backward));
    }
}

/// The text on what a backend is.
fn words(backend: BackendName) -> &'static str {
    match backend {
        BackendName::Eager => "racer-eager",
        BackendName::Sdpa => "racer-sdpa",
        BackendName::FlashAttention2 => "racer-flash",
        BackendName::Flex => "racer-flex",
        BackendName::TorchEager => "racer-torch-eager",
        BackendName::TorchSdpa => "racer-torch-sdpa",
        BackendName::TorchFlex => "racer-torch-flex",
        BackendName::TorchFlexFlash => "racer-torch-flex-flash",
        BackendName::CudnnFlex => "racer-cudnn-flex",
    }
}
