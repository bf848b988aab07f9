//! The window is to close, and unsaved documents cannot be kept for the next start.
//!
//! Invariant: they are given up by one button alone, which says so. Must not know how they are kept.

use super::{Action, Actions, Next, title};
use crate::app::command::Command;
use crate::app::language::{say, say_with};
use crate::app::widgets::{english_way_out, refusal, severity_colour};
use crate::base::Diagnostic;
use egui::{Label, RichText, Ui};

pub(super) fn show(ui: &mut Ui, why: &Diagnostic, names: &[String], actions: &mut Actions) -> Next {
    title(ui, say(ui, "leave-title"));
    ui.add(Label::new(say_with(ui, "leave-words", &[("names", names.join(", ").into())])).wrap());
    ui.add_space(6.0);
    refusal(ui, why);
    let message = RichText::new(&why.message).color(severity_colour(ui, why.severity));
    ui.add(Label::new(message).wrap()).on_hover_text(&*why.code);
    if let Some(hint) = english_way_out(ui, why) {
        ui.label(hint);
    }
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
