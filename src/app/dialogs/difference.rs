//! The dialog that shows how the document differs from its file, which another program changed.
//!
//! Invariant: it changes neither; the choices are those of the bar over the canvas. Must not know how they are carried out.

use super::Next;
use crate::app::action::Actions;
use crate::app::changed_lines;
use crate::app::file_choices::choices;
use crate::app::language::say;
use egui::Ui;
use std::path::Path;

/// Draws it.
pub(super) fn show(ui: &mut Ui, path: &Path, [theirs, mine]: [&str; 2], actions: &mut Actions) -> Next {
    ui.heading(say(ui, "difference-title"));
    ui.weak(path.display().to_string());
    ui.label(say(ui, "difference-words"));
    let height = (ui.ctx().content_rect().height() - 260.0).max(120.0);
    changed_lines::show(ui, (theirs.as_bytes(), mine.as_bytes()), height);
    ui.add_space(6.0);
    let mut next = Next::Stay;
    ui.horizontal(|ui| {
        choices(ui, false, actions);
        if ui.button(say(ui, "difference-later")).clicked() {
            next = Next::Close;
        }
    });
    next
}
