//! The buttons for a file that another program changed or deleted, as the bar over the canvas and the dialog show them.
//!
//! Invariant: each sends one choice. Must not know how choices are carried out.

use super::action::{Action, Actions, FileChoice};
use super::command::Command;
use super::language::say;
use egui::Ui;

/// The buttons.
pub(super) fn choices(ui: &mut Ui, difference: bool, actions: &mut Actions) {
    let mut choice = |ui: &mut Ui, words: &str, about: &str, choice: FileChoice| {
        if ui.button(words).on_hover_text(about).clicked() {
            actions.push(Action::Outside(choice));
        }
    };
    choice(ui, say(ui, "outside-reload"), say(ui, "outside-reload.tip"), FileChoice::Reload);
    choice(ui, say(ui, "outside-keep"), say(ui, "outside-keep.tip"), FileChoice::KeepMine);
    if difference {
        choice(ui, say(ui, "outside-show"), say(ui, "outside-show.tip"), FileChoice::Difference);
    }
}

/// The buttons for a file that is gone.
pub(super) fn of_a_gone_file(ui: &mut Ui, actions: &mut Actions) {
    if ui.button(say(ui, "outside-again")).on_hover_text(say(ui, "outside-again.tip")).clicked() {
        actions.command(Command::Save);
    }
    if ui.button(say(ui, "outside-unsaved")).on_hover_text(say(ui, "outside-unsaved.tip")).clicked() {
        actions.push(Action::Outside(FileChoice::KeepMine));
    }
}
