//! The window or a tab is to close, and unsaved documents cannot be kept.
//!
//! Invariant: they are given up by one button alone, which says so. Must not know how they are kept.

use super::{Action, Actions, Next, lists, title};
use crate::app::command::Command;
use crate::app::drafts::Leaving;
use crate::app::language::{say, say_with};
use crate::base::Diagnostic;
use egui::{Label, Ui};

pub(super) fn show(ui: &mut Ui, of: Leaving, why: &Diagnostic, names: &[String], actions: &mut Actions) -> Next {
    title(ui, say(ui, "leave-title"));
    let names = [("names", names.join(", ").into())];
    let (words, save, anyway) = match of {
        Leaving::Window => (say_with(ui, "leave-words", &names), say(ui, "leave-save"), say(ui, "leave-anyway")),
        Leaving::Tab => (say_with(ui, "leave-tab", &names), say(ui, "leave-tab.save"), say(ui, "leave-tab.anyway")),
    };
    ui.add(Label::new(words).wrap());
    ui.add_space(6.0);
    lists::told(ui, why);
    ui.add_space(8.0);
    let mut next = Next::Stay;
    ui.horizontal(|ui| {
        if ui.button(Command::SaveAs.text(ui.ctx())).on_hover_text(save).clicked() {
            actions.command(Command::SaveAs);
            next = Next::Close;
        }
        if ui.button(anyway).on_hover_text(say(ui, "leave-anyway.tip")).clicked() {
            actions.push(match of {
                Leaving::Window => Action::QuitAnyway,
                Leaving::Tab => Action::CloseAnyway,
            });
            next = Next::Close;
        }
        if ui.button(say(ui, "cancel")).clicked() {
            next = Next::Close;
        }
    });
    next
}
