//! New lengths with drawn layers: keep, scale or repeat.
//!
//! Invariant: nothing changes until one is chosen. Must not know how cells are moved.

use super::{Action, Actions, Next, State, title};
use crate::app::language::{say, say_with};
use crate::document::model::Axes;
use crate::document::resize::Resize;
use egui::Ui;

pub(super) fn show(ui: &mut Ui, state: &State, axes: &Axes, actions: &mut Actions) -> Next {
    title(ui, say(ui, "resize-title"));
    let lengths = |axes: &Axes| format!("{} x {}", axes.q.len(), axes.kv().len());
    let (old, new) = (lengths(&state.document.axes), lengths(axes));
    ui.label(say_with(ui, "resize-question", &[("old", old.into()), ("new", new.into())]));
    ui.add_space(6.0);
    for (how, name, words) in [
        (Resize::Keep, say(ui, "resize-keep"), say(ui, "resize-keep.tip")),
        (Resize::Scale, say(ui, "resize-scale"), say(ui, "resize-scale.tip")),
        (Resize::Repeat, say(ui, "resize-repeat"), say(ui, "resize-repeat.tip")),
    ] {
        ui.horizontal(|ui| {
            if ui.add_sized([110.0, 26.0], egui::Button::new(name)).clicked() {
                actions.push(Action::Resize(axes.clone(), how));
            }
            ui.label(words);
        });
    }
    ui.add_space(6.0);
    if ui.button(say(ui, "cancel")).clicked() { Next::Close } else { Next::Stay }
}
