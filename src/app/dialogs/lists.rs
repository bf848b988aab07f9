//! Dialogs that only show: a failure, the messages since the start, the shortcuts.
//!
//! Invariant: closing them changes nothing. Must not know what they tell of.

use super::{Next, State, title};
use crate::app::command::Command;
use crate::app::widgets::{severity_colour, severity_word};
use crate::base::Diagnostic;
use egui::{Grid, RichText, ScrollArea, Ui};

pub(super) fn failure(ui: &mut Ui, heading: &str, why: &[Diagnostic]) -> Next {
    title(ui, heading);
    ScrollArea::vertical().max_height(360.0).show(ui, |ui| {
        for diagnostic in why {
            ui.label(RichText::new(diagnostic.summary()).color(severity_colour(ui, diagnostic.severity)));
            if let Some(hint) = &diagnostic.hint {
                ui.label(hint);
            }
            ui.add_space(6.0);
        }
    });
    ui.weak("The document is as it was.");
    close(ui)
}

pub(super) fn messages(ui: &mut Ui, state: &State) -> Next {
    title(ui, "Messages");
    ScrollArea::vertical().max_height(420.0).auto_shrink([false, true]).show(ui, |ui| {
        if state.notices.all().next().is_none() {
            ui.weak("Nothing has been told yet.");
        }
        for (_, notice) in state.notices.all().rev() {
            let ago = (state.now - notice.at).max(0.0);
            let ago = if ago < 60.0 { format!("{ago:.0} s ago") } else { format!("{:.0} min ago", ago / 60.0) };
            let word = severity_word(notice.what.severity);
            let colour = severity_colour(ui, notice.what.severity);
            ui.label(RichText::new(format!("{word}, {ago}: {}", notice.what.message)).color(colour));
            if let Some(hint) = &notice.what.hint {
                ui.label(hint);
            }
        }
    });
    close(ui)
}

pub(super) fn shortcuts(ui: &mut Ui) -> Next {
    title(ui, "Keyboard shortcuts");
    ScrollArea::vertical().max_height(460.0).auto_shrink([false, true]).show(ui, |ui| {
        Grid::new("shortcuts").num_columns(3).striped(true).show(ui, |ui| {
            for command in Command::all() {
                ui.label(command.text());
                ui.monospace(command.keys(ui.ctx()));
                ui.weak(command.spec().tooltip);
                ui.end_row();
            }
        });
    });
    close(ui)
}

fn close(ui: &mut Ui) -> Next {
    ui.add_space(8.0);
    if ui.button("Close").clicked() { Next::Close } else { Next::Stay }
}
