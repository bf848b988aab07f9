//! Errors and warnings of the document, each with its place and a suggested fix.
//!
//! Invariant: shows all of them; a layer's message links to that layer. Must not know their subject.

use crate::app::action::{Action, Actions};
use crate::app::editor::rewritten;
use crate::app::language::{say, say_with, words};
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{english_way_out, refusal, severity_colour, severity_word};
use crate::base::Diagnostic;
use crate::document::edit::Edit;
use crate::tasks::smaller;
use egui::{Label, RichText, ScrollArea, Ui};

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let Some(built) = &state.session.built else { return };
    let all = built.diagnostics();
    if all.is_empty() {
        let colours = palette(ui.visuals());
        ui.colored_label(colours.good, say(ui, "problems-none"));
    }
    if let Some(sizes) = &built.own_sizes {
        ui.horizontal_wrapped(|ui| {
            let name = state.document.layer(sizes.layer).map(|l| &*l.name);
            let name = name
                .or_else(|| state.document.score(sizes.layer).map(|s| &*s.name))
                .unwrap_or(say(ui, "problems-the-code"));
            let lengths = [sizes.q_len, sizes.kv_len];
            let told = smaller::told(words(ui.ctx()), sizes.batch, lengths, sizes.heads);
            let made = say_with(ui, "problems-made-for", &[("name", name.into()), ("sizes", told.into())]);
            let from = match &sizes.table {
                Some((n, name)) => say_with(ui, "problems-table", &[("name", (&**name).into()), ("n", (*n).into())]),
                None => say(ui, "problems-call").into(),
            };
            ui.label(format!("{made} {from}"));
            let tip = say(ui, "problems-sizes.tip");
            if ui.small_button(say(ui, "problems-sizes")).on_hover_text(tip).clicked() {
                actions.push(Action::TakeSizes(sizes.clone()));
            }
        });
    }
    // sideways only the lines of code move: a wide one must not widen the words, which would be cut
    ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        for (n, (layer, diagnostic)) in all.iter().enumerate() {
            ui.push_id(n, |ui| one(ui, state, *layer, diagnostic, actions));
        }
        if let Some(race) = &state.session.race
            && let Some(report) = &race.report
        {
            report.notes.iter().enumerate().for_each(|(n, note)| {
                ui.push_id(("note", n), |ui| one(ui, state, None, note, actions));
            });
        }
    });
}

fn one(ui: &mut Ui, state: &State, layer: Option<u64>, diagnostic: &Diagnostic, actions: &mut Actions) {
    ui.horizontal_wrapped(|ui| {
        let colour = severity_colour(ui, diagnostic.severity);
        ui.label(RichText::new(severity_word(ui, diagnostic.severity)).strong().color(colour));
        ui.label(RichText::new(&*diagnostic.code).small().weak());
        if let Some(id) = layer {
            let name = state.document.layer(id).map(|l| l.name.clone());
            let name = name.or_else(|| state.document.score(id).map(|s| s.name.clone())).unwrap_or_default();
            if ui.link(name).on_hover_text(say(ui, "problems-layer")).clicked() {
                actions.push(Action::Select(Some(id)));
            }
        }
        if ui.small_button(say(ui, "problems-copy")).on_hover_text(say(ui, "problems-copy.tip")).clicked() {
            ui.ctx().copy_text(diagnostic.render());
        }
        if let Some((id, text)) = layer.and_then(|id| Some((id, rewritten(state, id, diagnostic)?)))
            && ui.small_button(say(ui, "problems-apply")).on_hover_text(say(ui, "problems-apply.tip")).clicked()
        {
            actions.edit(Edit::SetSource(id, text));
        }
    });
    refusal(ui, diagnostic);
    if diagnostic.labels.is_empty() {
        ui.add(Label::new(&*diagnostic.message).wrap());
    } else {
        let text = marked(diagnostic);
        let (message, lines) = text.split_once('\n').unwrap_or((&text, ""));
        ui.add(Label::new(RichText::new(message).monospace()).wrap());
        // a wrapped line would not be above its marks
        ScrollArea::horizontal().id_salt("lines").auto_shrink([false, true]).show(ui, |ui| {
            ui.add(Label::new(RichText::new(lines).monospace()).extend());
        });
    }
    if let Some(hint) = english_way_out(ui, diagnostic) {
        ui.add(Label::new(RichText::new(hint).weak()).wrap());
    }
    ui.add_space(6.0);
}

/// The message with its source lines, without the hint, which follows in words.
fn marked(diagnostic: &Diagnostic) -> String {
    Diagnostic { hint: None, ..diagnostic.clone() }.render()
}
