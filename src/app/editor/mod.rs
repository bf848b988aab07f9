//! The editor of a layer's text: coloured, numbered, with each error under its line and a button for its fix.
//!
//! Invariant: the document holds the text; every key is an edit of it. Must not know how text is traced.

pub(super) mod highlight;

use crate::app::action::Actions;
use crate::app::language::say;
use crate::app::state::State;
use crate::app::widgets::{id, severity_colour};
use crate::base::Diagnostic;
use crate::document::edit::Edit;
use crate::document::model::{MaskContent, ScoreContent};
use egui::epaint::text::PlacedRow;
use egui::{Align2, FontId, Galley, Margin, Pos2, Rect, RichText, ScrollArea, TextEdit, Ui, UiBuilder, pos2, vec2};
use highlight::{Gap, Mark};

/// Room for the lines' numbers, in points.
const NUMBERS: i8 = 38;
/// Height of a message line.
const TOLD: f32 = 20.0;

/// The id that text of the document is edited under: its undo is the document's.
pub(in crate::app) fn editor_id(layer: u64) -> egui::Id {
    id("code editor").with(layer)
}

/// Draws it, at most `height` high.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, layer: u64, source: &str, height: f32, actions: &mut Actions) {
    let reported = state.session.built.as_ref().map_or(&[][..], |b| b.layer(layer));
    let placed = by_line(marks(reported, source), source);
    let mut text = source.to_string();
    let marks = placed.iter().map(|one| one.mark.clone()).collect();
    let gaps = placed.iter().filter_map(|one| one.gap).collect();
    let mut layouter = highlight::layouter(marks, gaps);
    let area = ScrollArea::both().id_salt(("code", layer)).max_height(height).auto_shrink([false, true]);
    area.show(ui, |ui| {
        let field = TextEdit::multiline(&mut text)
            .id(editor_id(layer))
            .code_editor()
            .margin(Margin { left: NUMBERS, right: 4, top: 3, bottom: 3 })
            .desired_rows(8)
            .desired_width(f32::INFINITY)
            .layouter(&mut layouter);
        let output = field.show(ui);
        let response = output.response.response.accessible_name(say(ui, "code-field"));
        if response.changed() {
            actions.edit(Edit::SetSource(layer, text.clone()));
        }
        numbers(ui, &output.galley, output.galley_pos);
        for one in &placed {
            let Some(row) = last_row(&output.galley, one.line) else { continue };
            let left = output.galley_pos.x;
            let (top, size) = (output.galley_pos.y + row.pos.y, row.row.size);
            let right = (response.rect.right() - 4.0).max(left + 240.0);
            let room = match one.gap {
                Some(_) => Rect::from_min_max(pos2(left, top + size.y - TOLD), pos2(right, top + size.y)),
                // behind the end of its line
                None => Rect::from_min_size(pos2(left + size.x + 14.0, top), vec2(right, size.y)),
            };
            under(ui, state, layer, one, room, actions);
        }
    });
}

/// The number of each line before its first row.
fn numbers(ui: &Ui, galley: &Galley, at: Pos2) {
    let (mut line, mut begins) = (1, true);
    let colour = ui.visuals().weak_text_color();
    for row in &galley.rows {
        if begins {
            let place = pos2(at.x - 10.0, at.y + row.pos.y + 1.0);
            ui.painter().text(place, Align2::RIGHT_TOP, line.to_string(), FontId::monospace(11.0), colour);
            line += 1;
        }
        begins = row.ends_with_newline;
    }
}

/// The error of a line, and the button that writes the suggested code.
fn under(ui: &mut Ui, state: &State, layer: u64, one: &Placed<'_>, room: Rect, actions: &mut Actions) {
    let salt = ("under", layer, one.line);
    let mut child = ui.new_child(
        UiBuilder::new().id_salt(salt).max_rect(room).layout(egui::Layout::left_to_right(egui::Align::Center)),
    );
    let diagnostic = one.diagnostic;
    if let Some(text) = rewritten(state, layer, diagnostic) {
        let [apply, tip] = ["problems-apply", "problems-apply.tip"].map(|id| say(&child, id));
        let button = child.small_button(apply).on_hover_text(tip);
        if button.accessible_name(say(ui, "code-apply")).clicked() {
            actions.edit(Edit::SetSource(layer, text));
        }
    }
    // one line: the sentence in the spoken language, then the English message with its figures
    let reported = app::language::words(child.ctx()).reported(&diagnostic.code, &diagnostic.message);
    let words = RichText::new(reported).small().color(severity_colour(&child, diagnostic.severity));
    let label = child.add(egui::Label::new(words).truncate().selectable(false));
    label.on_hover_text(diagnostic.render());
}

/// A layer's text with the diagnostic's suggested code, if the diagnostic belongs to this text.
pub(in crate::app) fn rewritten(state: &State, layer: u64, diagnostic: &Diagnostic) -> Option<String> {
    let mask = state.document.layer(layer).map(|l| &l.content);
    let score = state.document.score(layer).map(|s| &s.content);
    let code = match (mask, score) {
        (Some(MaskContent::Text(code)), _) | (_, Some(ScoreContent::Text(code))) => code,
        _ => return None,
    };
    let of = diagnostic.sources.get(diagnostic.rewrite.as_ref()?.span.source.0 as usize)?;
    (*of.text == *code.source).then(|| diagnostic.rewritten()).flatten()
}

/// The last row of a line: a long line wraps into several.
fn last_row(galley: &Galley, line: usize) -> Option<&PlacedRow> {
    galley.rows.iter().filter(|row| row.ends_with_newline).nth(line).or(galley.rows.last())
}

/// The message of a line.
struct Placed<'a> {
    mark: Mark,
    /// From 0.
    line: usize,
    /// The space below a line, if the line has a message.
    gap: Option<Gap>,
    diagnostic: &'a Diagnostic,
}

/// One message per line: the first of several.
fn by_line<'a>(marks: Vec<(Mark, &'a Diagnostic)>, source: &str) -> Vec<Placed<'a>> {
    let mut out: Vec<Placed<'a>> = Vec::new();
    for (mark, diagnostic) in marks {
        let start = mark.0.start.min(source.len());
        let line = source[..start].matches('\n').count();
        if out.iter().any(|one| one.line == line) {
            continue;
        }
        let begins = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let ends = source[start..].find('\n').map_or(source.len(), |at| start + at);
        // a space can be as high as it needs to be: nothing is drawn of it
        let gap = source[begins..ends].rfind(' ').map(|at| (begins + at, TOLD));
        out.push(Placed { mark, line, gap, diagnostic });
    }
    out
}

/// Places of messages about this text; those of an older text are omitted.
fn marks<'a>(reported: &'a [Diagnostic], source: &str) -> Vec<(Mark, &'a Diagnostic)> {
    let place = |diagnostic: &'a Diagnostic| {
        let label = diagnostic.labels.first()?;
        let own = diagnostic.sources.get(label.span.source.0 as usize)?;
        let (start, end) = (label.span.start as usize, label.span.end as usize);
        let fits = *own.text == *source && start <= end && end <= source.len() && source.is_char_boundary(start);
        fits.then(|| ((start..end.max(start + 1), diagnostic.is_error()), diagnostic))
    };
    reported.iter().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_told_of_a_line_and_its_last_space_makes_the_room() {
        let source = "def f(x):\n    return x\n\nend";
        let why = Diagnostic::error("x", "wrong");
        let mark = |at: usize| ((at..at + 1, true), &why);
        let placed = by_line(vec![mark(14), mark(21), mark(23), mark(24)], source);
        let seen: Vec<_> = placed.iter().map(|p| (p.line, p.gap.map(|g| g.0))).collect();
        assert_eq!(seen, [(1, Some(20)), (2, None), (3, None)]);
    }
}
