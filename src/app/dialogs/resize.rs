//! New lengths with drawn layers: keep, scale or repeat.
//!
//! Invariant: nothing changes until one is chosen. Must not know how cells are moved.

use super::{Action, Actions, Next, State, title};
use crate::document::model::Axes;
use crate::document::resize::Resize;
use egui::Ui;

pub(super) fn show(ui: &mut Ui, state: &State, axes: &Axes, actions: &mut Actions) -> Next {
    title(ui, "The lengths change");
    let lengths = |axes: &Axes| format!("{} x {}", axes.q.len(), axes.kv().len());
    let (old, new) = (lengths(&state.document.axes), lengths(axes));
    ui.label(format!("From {old} to {new} tokens. What should happen to the drawn layers?"));
    ui.add_space(6.0);
    for (how, name, words) in [
        (Resize::Keep, "Keep them", "Every cell, rectangle and band stays at its tokens."),
        (
            Resize::Scale,
            "Scale them",
            "Painted cells, rectangles, bands and distance curves are scaled to the new lengths.",
        ),
        (
            Resize::Repeat,
            "Repeat them",
            "Painted cells are repeated along both axes; everything else stays at its tokens.",
        ),
    ] {
        ui.horizontal(|ui| {
            if ui.add_sized([110.0, 26.0], egui::Button::new(name)).clicked() {
                actions.push(Action::Resize(axes.clone(), how));
            }
            ui.label(words);
        });
    }
    ui.add_space(6.0);
    if ui.button("Cancel").clicked() { Next::Close } else { Next::Stay }
}
