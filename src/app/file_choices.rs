//! The buttons for a file that another program changed, as the bar over the canvas and the dialog show them.
//!
//! Invariant: each sends one choice. Must not know how choices are carried out.

use super::action::{Action, Actions, FileChoice};
use egui::Ui;

/// The buttons.
pub(super) fn choices(ui: &mut Ui, difference: bool, actions: &mut Actions) {
    let mut choice = |ui: &mut Ui, words: &str, about: &str, choice: FileChoice| {
        if ui.button(words).on_hover_text(about).clicked() {
            actions.push(Action::Outside(choice));
        }
    };
    choice(ui, "Reload", "Reads the file; Undo restores this document.", FileChoice::Reload);
    choice(ui, "Keep mine", "The next save writes over the file.", FileChoice::KeepMine);
    if difference {
        choice(ui, "Show the difference", "Shows the lines that differ.", FileChoice::Difference);
    }
}
