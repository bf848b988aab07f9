//! One cell: the mods evaluated step by step at (b, h, q_idx, kv_idx).
//!
//! Invariant: values come from the interpreter, the definition of every operation. Must not know the canvas.

use crate::app::action::{Action, Actions};
use crate::app::language::{say, say_with};
use crate::app::session::Shown;
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::whole;
use crate::ir::cell::{Cell, Value, eval};
use crate::ir::graph::Mod;
use crate::ir::steps::steps;
use egui::{Grid, RichText, ScrollArea, Ui};

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let Some(Shown { built, before }) = &state.session.shown else {
        ui.weak(say(ui, "cell-errors"));
        return;
    };
    if !before.is_empty() {
        let colour = palette(ui.visuals()).error;
        ui.colored_label(colour, say_with(ui, "cell-before", &[("layers", before.join(", ").into())]));
    }
    let Some(lengths) = built.lengths else {
        ui.weak(say(ui, "cell-no-lengths"));
        return;
    };
    let [q, kv] = state.focus.pinned;
    let (q, kv) = (q.min(lengths.q_len - 1), kv.min(lengths.kv_len - 1));
    ui.horizontal_wrapped(|ui| {
        ui.weak("b");
        let (b, h) = (state.focus.b, state.focus.h);
        let settings = &built.document.settings;
        if let Some(b) = whole(ui, say(ui, "cell-b"), b, 0..=settings.batch.saturating_sub(1)) {
            actions.push(Action::SetHead { b, h });
        }
        ui.weak("h");
        if let Some(h) = whole(ui, say(ui, "cell-h"), h, 0..=settings.heads.saturating_sub(1)) {
            actions.push(Action::SetHead { b, h });
        }
        ui.weak("q_idx");
        if let Some(q) = whole(ui, say(ui, "cell-q"), q, 0..=lengths.q_len - 1) {
            actions.push(Action::Pin([q, kv]));
        }
        ui.weak("kv_idx");
        if let Some(kv) = whole(ui, say(ui, "cell-kv"), kv, 0..=lengths.kv_len - 1) {
            actions.push(Action::Pin([q, kv]));
        }
        let axes = &built.document.axes;
        let place = |axis: &crate::document::model::Axis, at| axis.place(at).map(|p| p.to_string()).unwrap_or_default();
        ui.separator();
        ui.weak(say_with(ui, "cell-to", &[("q", place(&axes.q, q).into()), ("kv", place(axes.kv(), kv).into())]));
        if state.focus.is_pinned
            && ui.small_button(say(ui, "cell-unpin")).on_hover_text(say(ui, "cell-unpin.tip")).clicked()
        {
            actions.push(Action::Unpin);
        }
        verdict(ui, built.compiled.mask.as_deref(), &cell_of(state, q, kv, 0.0));
    });
    ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        super::patches::show(ui, state, actions);
        let cell = cell_of(state, q, kv, 0.0);
        mod_steps(ui, "mask_mod", built.compiled.mask.as_deref(), &cell, say(ui, "cell-every"));
        let scored = Cell { score: 1.0, ..cell };
        mod_steps(ui, say(ui, "cell-score-of"), built.compiled.score.as_deref(), &scored, say(ui, "cell-scores-stay"));
    });
}

fn cell_of(state: &State, q: usize, kv: usize, score: f64) -> Cell {
    Cell { b: state.focus.b as i64, h: state.focus.h as i64, q_idx: q as i64, kv_idx: kv as i64, score }
}

fn verdict(ui: &mut Ui, mask: Option<&Mod>, cell: &Cell) {
    let keeps = mask.is_none_or(|m| matches!(eval(m, cell), Value::Bool(true)));
    let colours = palette(ui.visuals());
    let (text, colour) = if keeps { ("cell-is-kept", colours.good) } else { ("cell-is-dropped", colours.warning) };
    ui.label(RichText::new(say(ui, text)).strong().color(colour));
}

fn mod_steps(ui: &mut Ui, title: &str, of: Option<&Mod>, cell: &Cell, without: &str) {
    /// Longer lists are cut to stay readable.
    const SHOWN: usize = 200;
    ui.label(RichText::new(title).strong());
    let Some(of) = of else {
        ui.weak(without);
        return;
    };
    let steps = steps(of, cell);
    // values first: a long expression is cut, never its value
    Grid::new(title).num_columns(2).striped(true).show(ui, |ui| {
        for step in steps.iter().take(SHOWN) {
            ui.label(RichText::new(step.shown()).monospace().strong());
            let room = (ui.clip_rect().right() - ui.cursor().left() - 8.0).max(60.0);
            let text = short(&step.text);
            ui.allocate_ui(egui::vec2(room, 18.0), |ui| {
                ui.set_max_width(room);
                ui.add(egui::Label::new(RichText::new(text).monospace()).truncate()).on_hover_text(&step.text);
            });
            ui.end_row();
        }
    });
    if steps.len() > SHOWN {
        ui.weak(say_with(ui, "cell-more", &[("n", (steps.len() - SHOWN).into())]));
    }
}

fn short(text: &str) -> String {
    const LONGEST: usize = 110;
    if text.chars().count() <= LONGEST {
        return text.to_string();
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}
