//! The racing backends, their passes, and the number of rounds.
//!
//! Invariant: backends are stored in the document, rounds in the view. Must not know devices.

use crate::app::action::settings_edit;
use crate::app::action::{Action, Actions};
use crate::app::command::Command;
use crate::app::state::State;
use crate::app::widgets::whole;
use crate::base::BackendName;
use egui::Ui;

/// Who races, and how often.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let settings = &state.document.settings;
    for backend in BackendName::ALL {
        let mut on = settings.backends.contains(&backend);
        if ui.checkbox(&mut on, backend.as_str()).on_hover_text(words(backend)).changed() {
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
        ui.label("timing rounds");
        if let Some(rounds) = whole(ui, "timing rounds", state.view.rounds as usize, 0..=1000) {
            actions.push(Action::SetRounds(rounds as u32));
        }
        if state.view.rounds == 0 {
            ui.weak("correctness only");
        }
    });
    let mut deterministic = state.view.deterministic;
    let words = "Gradients have the same bits in every run: sums are added in a fixed order. The race checks this with a second run and shows \
                 the cost of the fixed order.";
    let checkbox = egui::Checkbox::new(&mut deterministic, "deterministic gradients");
    if ui.add_enabled(state.view.backward, checkbox).on_hover_text(words).changed() {
        actions.push(Action::SetDeterministic(deterministic));
    }
    let words = "Runs your own PyTorch alone, forward and backward, on this design with its dtype and strides, and compares every gradient \
                 with float64. Wrong gradients are listed, with the matching known issue of PyTorch. On the CPU a large design is \
                 checked as a smaller copy; `maskloom conform --grad` checks all of it.";
    let button = egui::Button::new("Check my PyTorch's gradients");
    if ui.add_enabled(state.can(Command::Run), button).on_hover_text(words).clicked() {
        actions.push(Action::CheckOwnGradients);
    }
}

/// Whether races have a backward pass.
pub(super) fn passes(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let mut backward = state.view.backward;
    let words = "Gradients of q, k, v and of captured tensors, compared with float64 and timed.";
    if ui.checkbox(&mut backward, "backward pass too").on_hover_text(words).changed() {
        actions.push(Action::SetBackward(backward));
    }
}

fn words(backend: BackendName) -> &'static str {
    match backend {
        BackendName::Eager => "Maskloom's: writes the scores to memory and reads them back.",
        BackendName::Sdpa => {
            "cuDNN's fused kernel on GPUs if it supports the mask, otherwise Maskloom's own with a dense mask; never block-sparse."
        }
        BackendName::FlashAttention2 => {
            "Maskloom's, by FlashAttention-2's algorithm: full or causal; refuses other masks."
        }
        BackendName::Flex => "Maskloom's: block-sparse, with the mods compiled in.",
        BackendName::TorchEager => "Unfused attention in your own PyTorch.",
        BackendName::TorchSdpa => "scaled_dot_product_attention of your own PyTorch.",
        BackendName::TorchFlex => "flex_attention of your own PyTorch, compiled.",
        BackendName::TorchFlexFlash => "flex_attention of your own PyTorch with the flash backend.",
        BackendName::CudnnFlex => "cudnn.flex_attention of your own Python: masks as ranges of keys.",
    }
}
