//! A bar that tells that another program changed or deleted the document's file, with what can be done.
//!
//! Invariant: it is there until the user has chosen. Must not know how the choices are carried out.

use crate::app::action::Actions;
use crate::app::file_choices::{choices, of_a_gone_file};
use crate::app::language::say_with;
use crate::app::state::{Outside, State};
use crate::app::theme;
use egui::{RichText, Ui};

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let Some(path) = &state.path else { return };
    let colour = theme::palette(ui.visuals()).warning;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let gone = state.outside == Some(Outside::Gone);
    ui.horizontal_wrapped(|ui| {
        let words = say_with(ui, if gone { "outside-gone" } else { "outside-changed" }, &[("name", name.into())]);
        ui.label(RichText::new(words).color(colour).strong()).on_hover_text(path.display().to_string());
        match gone {
            true => of_a_gone_file(ui, actions),
            false => choices(ui, true, actions),
        }
    });
}
