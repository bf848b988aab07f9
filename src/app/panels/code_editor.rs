//! The editor of a layer's text: coloured, with its errors underlined and told at their lines.
//!
//! Invariant: the document holds the text; every key is an edit of it. Must not know how text is traced.

use super::highlight::{self, Mark};
use crate::app::action::Actions;
use crate::app::state::State;
use crate::app::widgets::{id, severity_colour};
use crate::base::Diagnostic;
use crate::document::edit::Edit;
use egui::epaint::text::PlacedRow;
use egui::{Galley, Pos2, ScrollArea, TextEdit, Ui};

/// The id that text of the document is edited under: its undo is the document's.
pub(in crate::app) fn editor_id(layer: u64) -> egui::Id {
    id("code editor").with(layer)
}

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, layer: u64, source: &str, actions: &mut Actions) {
    let told = state.session.built.as_ref().map_or(&[][..], |b| b.layer(layer));
    let placed = marks(told, source);
    let mut text = source.to_string();
    let mut layouter = highlight::layouter(placed.iter().map(|(mark, _)| mark.clone()).collect());
    ScrollArea::both().id_salt(("code", layer)).max_height(280.0).auto_shrink([false, true]).show(ui, |ui| {
        let field = TextEdit::multiline(&mut text)
            .id(editor_id(layer))
            .code_editor()
            .desired_rows(8)
            .desired_width(f32::INFINITY)
            .layouter(&mut layouter);
        let output = field.show(ui);
        let response = output.response.response.accessible_name("Code");
        if response.changed() {
            actions.edit(Edit::SetSource(layer, text.clone()));
        }
        // what is wrong, behind the end of its line: the first thing, where there are several
        let mut told_at = Vec::new();
        for ((range, _), diagnostic) in &placed {
            let line = source[..range.start.min(source.len())].matches('\n').count();
            let Some(row) = last_row(&output.galley, line).filter(|_| !told_at.contains(&line)) else { continue };
            told_at.push(line);
            let at = output.galley_pos + row.pos.to_vec2() + egui::vec2(row.row.size.x + 14.0, 0.0);
            let colour = severity_colour(ui, diagnostic.severity);
            inline(ui, at, &diagnostic.message, colour);
        }
    });
}

/// The last row of a line: a long line wraps into several.
fn last_row(galley: &Galley, line: usize) -> Option<&PlacedRow> {
    galley.rows.iter().filter(|row| row.ends_with_newline).nth(line).or(galley.rows.last())
}

fn inline(ui: &Ui, at: Pos2, message: &str, colour: egui::Color32) {
    let font = egui::TextStyle::Small.resolve(ui.style());
    ui.painter().text(at, egui::Align2::LEFT_TOP, message, font, colour);
}

/// Places of this very text that are told of; those of an older text are left out.
fn marks<'a>(told: &'a [Diagnostic], source: &str) -> Vec<(Mark, &'a Diagnostic)> {
    let place = |diagnostic: &'a Diagnostic| {
        let label = diagnostic.labels.first()?;
        let own = diagnostic.sources.get(label.span.source.0 as usize)?;
        let (start, end) = (label.span.start as usize, label.span.end as usize);
        let fits = *own.text == *source && start <= end && end <= source.len() && source.is_char_boundary(start);
        fits.then(|| ((start..end.max(start + 1), diagnostic.is_error()), diagnostic))
    };
    told.iter().filter_map(place).collect()
}
