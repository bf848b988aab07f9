//! The content of the selected layer or score mod, for editing.
//!
//! Invariant: shows the document's own value, never a copy that could drift. Must not know other layers.

use super::{args, curve};
use crate::app::action::Actions;
use crate::app::editor;
use crate::app::fields::drag_of;
use crate::app::language::{say, say_with};
use crate::app::state::State;
use crate::app::widgets::{diagnostic_below, grouped, section, text_field, text_field_took, whole};
use crate::base::{BlockSize, HostTensor, Source};
use crate::document::edit::Edit;
use crate::document::model::*;
use crate::python::outline::{EntryKind, outline};
use egui::Ui;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Height of the editor next to a layer's parameters; the Code workspace has a larger one.
const EDITOR: f32 = 280.0;

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let Some(id) = state.focus.layer else {
        ui.add_space(8.0);
        ui.weak(say(ui, "layers-select"));
        return;
    };
    if let Some(layer) = state.document.layer(id) {
        mask(ui, state, layer, actions);
    } else if let Some(score) = state.document.score(id) {
        score_mod(ui, state, score, actions);
        learns(ui, state, id);
    }
    let reported = state.session.built.as_ref().map_or(&[][..], |b| b.layer(id));
    for diagnostic in reported {
        ui.add_space(4.0);
        if let Some((line, column)) = diagnostic.line_column().filter(|_| !of_library(state, id)) {
            ui.weak(say_with(ui, "detail-line", &[("line", line.into()), ("column", column.into())]));
        }
        diagnostic_below(ui, diagnostic);
    }
}

/// Whether the text is a pattern's: its lines are not on the screen.
fn of_library(state: &State, id: u64) -> bool {
    let mask = state.document.layer(id).is_some_and(|layer| matches!(layer.content, MaskContent::Pattern(_)));
    let score = state.document.score(id).is_some_and(|score| matches!(score.content, ScoreContent::Pattern(_)));
    mask || score
}

fn mask(ui: &mut Ui, state: &State, layer: &Layer, actions: &mut Actions) {
    let set = |content| Edit::SetContent(layer.id, Box::new(content));
    match &layer.content {
        MaskContent::Pattern(code) => {
            section(ui, &title(&code.name));
            args::show(ui, state, layer.id, actions);
        }
        MaskContent::Rectangle { q, kv } => {
            section(ui, say(ui, "detail-rectangle"));
            let (q_new, kv_new) = (span(ui, ROWS, *q), span(ui, COLUMNS, *kv));
            if q_new.is_some() || kv_new.is_some() {
                let (q, kv) = (q_new.unwrap_or(*q), kv_new.unwrap_or(*kv));
                actions.edit(set(MaskContent::Rectangle { q, kv }));
            }
        }
        MaskContent::Band { lo, hi } => {
            section(ui, say(ui, "detail-band"));
            let (lo_new, hi_new) = (
                bound(ui, ["detail-from", "detail-distance-from"], *lo),
                bound(ui, ["detail-to", "detail-distance-to"], *hi),
            );
            if lo_new.is_some() || hi_new.is_some() {
                let (lo, hi) = (lo_new.unwrap_or(*lo), hi_new.unwrap_or(*hi));
                actions.edit(set(MaskContent::Band { lo, hi }));
            }
        }
        MaskContent::Painted(painted) => painted_ui(ui, layer.id, painted, actions),
        MaskContent::Text(code) => {
            editor::show(ui, state, layer.id, &code.source, EDITOR, actions);
            if let Some(entry) = entry_of(ui, layer.id, code, false) {
                actions.edit(set(MaskContent::Text(TextCode { entry, ..code.clone() })));
            }
            globals(ui, layer.id, &code.tensors, actions);
            args::show(ui, state, layer.id, actions);
        }
        MaskContent::Linked(code) => {
            if let Some(code) = linked(ui, code) {
                actions.edit(set(MaskContent::Linked(code)));
            }
            globals(ui, layer.id, &code.tensors, actions);
            args::show(ui, state, layer.id, actions);
        }
    }
}

fn score_mod(ui: &mut Ui, state: &State, score: &ScoreLayer, actions: &mut Actions) {
    let set = |content| Edit::SetScoreContent(score.id, Box::new(content));
    match &score.content {
        ScoreContent::Pattern(code) => {
            section(ui, &title(&code.name));
            args::show(ui, state, score.id, actions);
        }
        ScoreContent::Curve { points } => {
            section(ui, say(ui, "detail-bias"));
            if let Some(points) = curve::show(ui, score.id, points, &state.document.axes) {
                actions.edit(set(ScoreContent::Curve { points }));
            }
        }
        ScoreContent::Text(code) => {
            editor::show(ui, state, score.id, &code.source, EDITOR, actions);
            if let Some(entry) = entry_of(ui, score.id, code, true) {
                actions.edit(set(ScoreContent::Text(TextCode { entry, ..code.clone() })));
            }
            globals(ui, score.id, &code.tensors, actions);
            args::show(ui, state, score.id, actions);
        }
        ScoreContent::Linked(code) => {
            if let Some(code) = linked(ui, code) {
                actions.edit(set(ScoreContent::Linked(code)));
            }
            globals(ui, score.id, &code.tensors, actions);
            args::show(ui, state, score.id, actions);
        }
    }
}

/// Which of its tensors get a gradient in training.
fn learns(ui: &mut Ui, state: &State, id: u64) {
    let Some(tensors) = state.session.built.as_ref().and_then(|b| b.learns.get(&id)) else { return };
    let one = |(name, shape): &(String, Vec<usize>)| format!("{name} {shape:?}");
    let words = match tensors {
        Err(why) => say_with(ui, "detail-learns-not", &[("why", why.to_string().into())]),
        Ok(tensors) if tensors.is_empty() => say(ui, "detail-learns-none").to_string(),
        Ok(tensors) => {
            say_with(ui, "detail-learns", &[("tensors", tensors.iter().map(one).collect::<Vec<_>>().join(", ").into())])
        }
    };
    ui.add_space(4.0);
    ui.add(egui::Label::new(egui::RichText::new(words).weak()).wrap()).on_hover_text(say(ui, "detail-learns-tip"));
}

fn title(pattern: &str) -> String {
    crate::document::library::pattern(pattern).map_or_else(|| pattern.to_string(), |p| p.title())
}

/// Texts on a range: its label, and the names of its ends.
const ROWS: [&str; 3] = ["detail-rows", "detail-rows-first", "detail-rows-end"];
const COLUMNS: [&str; 3] = ["detail-columns", "detail-columns-first", "detail-columns-end"];

/// Half-open range in tokens.
fn span(ui: &mut Ui, texts: [&str; 3], [from, to]: [usize; 2]) -> Option<[usize; 2]> {
    let row = ui.horizontal(|ui| {
        let [label, first, last] = texts.map(|id| say(ui, id));
        ui.label(label);
        let start = whole(ui, first, from, 0..=to.saturating_sub(1));
        ui.label(say(ui, "detail-up-to"));
        let end = whole(ui, last, to, from + 1..=crate::base::shape::MAX_LENGTH);
        (start.is_some() || end.is_some()).then(|| [start.unwrap_or(from), end.unwrap_or(to)])
    });
    row.inner
}

/// An end of a band, which may be open; with the texts of its label and its name.
fn bound(ui: &mut Ui, texts: [&str; 2], value: Option<i64>) -> Option<Option<i64>> {
    let row = ui.horizontal(|ui| {
        let mut closed = value.is_some();
        let [label, name] = texts.map(|id| say(ui, id));
        let toggled = ui.checkbox(&mut closed, label).changed();
        let mut number = value.unwrap_or(0);
        let drag = ui.add_enabled(closed, drag_of(&mut number).speed(0.5));
        let moved = drag.accessible_name(name).changed();
        (toggled || moved).then(|| closed.then_some(number))
    });
    row.inner
}

fn painted_ui(ui: &mut Ui, id: u64, painted: &Painted, actions: &mut Actions) {
    section(ui, say(ui, "detail-painted"));
    ui.horizontal(|ui| {
        ui.label(say(ui, "detail-cell"));
        // cells that hold strokes stay as they are: another size would move them
        let empty = painted.strokes.is_empty();
        ui.add_enabled_ui(empty, |ui| {
            let q = whole(ui, say(ui, "detail-cell-rows"), painted.cell.q, 1..=1 << 20);
            ui.label("x");
            let kv = whole(ui, say(ui, "detail-cell-columns"), painted.cell.kv, 1..=1 << 20);
            if q.is_some() || kv.is_some() {
                let cell = BlockSize { q: q.unwrap_or(painted.cell.q), kv: kv.unwrap_or(painted.cell.kv) };
                let content = MaskContent::Painted(Painted { cell, ..painted.clone() });
                actions.edit(Edit::SetContent(id, Box::new(content)));
            }
        })
        .response
        .on_disabled_hover_text(say(ui, "detail-cell-tip"));
    });
    let rects: usize = painted.strokes.iter().map(|s| s.rects.len()).sum();
    let strokes = painted.strokes.len();
    let shown = [("n", rects.into()), ("shown", grouped(rects as u128).into())];
    let rectangles = say_with(ui, "detail-n-rectangles", &shown);
    let strokes = say_with(ui, "detail-n-strokes", &[("n", strokes.into())]);
    ui.weak(say_with(ui, "detail-strokes", &[("strokes", strokes.into()), ("rectangles", rectangles.into())]));
    ui.weak(say(ui, "detail-brush"));
}

/// Functions of a text that may be the mod, as of this hash of the text.
type Entries = (u64, Arc<Vec<String>>);

/// Which function of a text is the mod: one of those found, or any name that is typed.
fn entry_of(ui: &mut Ui, id: u64, code: &TextCode, score: bool) -> Option<String> {
    let typed = entry(ui, &code.entry);
    let memory = ui.make_persistent_id(("entries", id));
    let hash = {
        let mut hasher = DefaultHasher::new();
        code.source.hash(&mut hasher);
        hasher.finish()
    };
    let known = ui.data(|d| d.get_temp::<Entries>(memory)).filter(|(of, _)| *of == hash);
    let (_, entries) = known.unwrap_or_else(|| {
        let unwanted = if score { EntryKind::MaskMod } else { EntryKind::ScoreMod };
        let found = outline(&Source::new("code", code.source.as_str())).entries;
        let names = found.into_iter().filter(|e| e.kind != unwanted).map(|e| e.name).collect();
        let entries: Entries = (hash, Arc::new(names));
        ui.data_mut(|d| d.insert_temp(memory, entries.clone()));
        entries
    });
    if entries.len() < 2 && entries.first().is_none_or(|only| code.entry.is_empty() || *only == code.entry) {
        return typed;
    }
    let mut chosen = None;
    let combo = egui::ComboBox::from_id_salt(("found", id)).selected_text(say(ui, "detail-found")).width(150.0);
    let response = combo.show_ui(ui, |ui| {
        for name in entries.iter() {
            if ui.selectable_label(*name == code.entry, name).clicked() {
                chosen = Some(name.clone());
            }
        }
    });
    response.response.accessible_name(say(ui, "detail-found-name"));
    chosen.or(typed)
}

/// Which function of a text is the mod.
fn entry(ui: &mut Ui, entry: &str) -> Option<String> {
    let row = ui.horizontal(|ui| {
        ui.label(say(ui, "detail-entry"));
        let width = ui.available_width();
        let (response, changed) = text_field(ui, say(ui, "detail-entry-name"), entry, width);
        response.on_hover_text(say(ui, "detail-entry-tip"));
        let changed = changed?;
        text_field_took(ui, say(ui, "detail-entry-name"), &changed);
        Some(changed)
    });
    row.inner
}

/// Captured tensors that the code reads as global names.
fn globals(ui: &mut Ui, id: u64, tensors: &BTreeMap<String, HostTensor>, actions: &mut Actions) {
    ui.collapsing(say_with(ui, "detail-tensors", &[("n", tensors.len().into())]), |ui| {
        for (name, tensor) in tensors {
            ui.horizontal(|ui| {
                ui.monospace(name);
                ui.weak(format!("{:?} {}", tensor.shape(), tensor.dtype()));
            });
        }
        args::from_file(ui, say(ui, "detail-tensors-file"), id, &|_| None, actions);
    });
}

fn linked(ui: &mut Ui, code: &LinkedCode) -> Option<LinkedCode> {
    section(ui, say(ui, "detail-linked"));
    let width = ui.available_width();
    let (_, path) = text_field(ui, say(ui, "detail-linked-path"), &code.path, width);
    if let Some(path) = &path {
        text_field_took(ui, say(ui, "detail-linked-path"), path);
    }
    ui.weak(say(ui, "detail-linked-words"));
    let entry = entry(ui, &code.entry);
    (path.is_some() || entry.is_some()).then(|| LinkedCode {
        path: path.unwrap_or_else(|| code.path.clone()),
        entry: entry.unwrap_or_else(|| code.entry.clone()),
        ..code.clone()
    })
}
