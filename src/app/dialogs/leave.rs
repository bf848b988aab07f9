//! The window is to close, and unsaved documents cannot be kept for the next start.
//!
//! Invariant: they are given up by one button alone, which says so. Must not know how they are kept.

use super::{Action, Actions, Next, lists, title};
use crate::app::command::Command;
use crate::app::language::{say, say_with};
use crate::base::Diagnostic;
use egui::{Label, Ui};

pub(super) fn show(ui: &mut Ui, why: &Diagnostic, names: &[String], actions: &mut Actions) -> Next {
    title(ui, say(ui, "leave-title"));
    ui.add(Label::new(say_with(ui, "leave-words", &[("names", names.join(", ").into())])).wrap());
    ui.add_space(6.0);
    lists::told(ui, why);
    ui.add_space(8.0);
    let mut next = Next::Stay;
    ui.horizontal(|ui| {
        if ui.button(Command::SaveAs.text(ui.ctx())).on_hover_text(say(ui, "leave-save")).clicked() {
            actions.command(Command::SaveAs);
            next = Next::Close;
        }
        if ui.button(say(ui, "leave-anyway")).on_hover_text(say(ui, "leave-anyway.tip")).clicked() {
            actions.push(Action::QuitAnyway);
            next = Next::Close;
        }
        if ui.button(say(ui, "cancel")).clicked() {
            next = Next::Close;
        }
    });
    next
}
