//! The menu that hands on what the window shows.
//!
//! Invariant: every entry is a command of the table. Must not know how they are carried out.

use crate::app::action::Actions;
use crate::app::command::Command;
use crate::app::language::say;
use crate::app::state::State;
use crate::app::widgets::command_entry;
use egui::{Response, RichText, Ui};

/// A small button with the entries.
pub(super) fn menu(ui: &mut Ui, state: &State, entries: &[Command], actions: &mut Actions) -> Response {
    let button = ui.menu_button(RichText::new(say(ui, "menu-share")).small(), |ui| {
        entries.iter().for_each(|command| command_entry(ui, *command, state.can(*command), actions));
    });
    button.response.on_hover_text(say(ui, "menu-share.tip"))
}
