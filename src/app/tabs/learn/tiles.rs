//! FlashAttention tile by tile, on the open document: one row of query blocks visits its kv tiles, also on the canvas.
//!
//! Invariant: tiles and counts are the open mask's own; the scores are random and labelled so. Must not know how a
//! trace is computed.

use crate::analysis::block_mask::BlockKind;
use crate::app::action::{Action, Actions};
use crate::app::fields::slider_of;
use crate::app::language::{say, say_with};
use crate::app::session::Shown;
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::trace::{Question, Running, Trace, trace};
use crate::app::widgets::{grouped, id, primary_button, whole};
use crate::base::Provenance;
use egui::{Grid, ProgressBar, RichText, Ui};
use std::sync::Arc;

/// Seconds of a step while it plays.
const STEP: f64 = 0.35;

/// The key of a trace: picture, block size, batch entry, head, query.
type Key = (u64, [usize; 2], usize, usize, usize);
type Known = (Key, Arc<Trace>);

/// The trace that is shown, and how many of its tiles are done.
pub(in crate::app) fn shown(ui: &Ui, state: &State) -> Option<(Arc<Trace>, usize)> {
    let step = state.focus.step?;
    let (_, trace) = ui.data(|d| d.get_temp::<Known>(id("trace")))?;
    let current = trace.q_idx == state.focus.pinned[0];
    current.then(|| (trace.clone(), step.min(trace.tiles.len())))
}

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.add(egui::Label::new(say(ui, "tiles-words")).wrap());
    let Some(trace) = current(ui, state) else {
        ui.weak(say(ui, "tiles-none"));
        return;
    };
    let step = state.focus.step.unwrap_or(0).min(trace.tiles.len());
    query(ui, state, &trace, actions);
    controls(ui, state, &trace, step, actions);
    counts(ui, state, &trace, step);
    numbers(ui, &trace, step);
}

/// The trace of the present document, computed again if it has changed.
fn current(ui: &Ui, state: &State) -> Option<Arc<Trace>> {
    let Shown { built, .. } = state.session.shown.as_ref()?;
    let counted = state.session.current_stats()?;
    let (blocks, lengths) = (counted.blocks.as_ref()?, built.lengths?);
    let (b, h) = (state.focus.b, state.focus.h);
    let q_idx = state.focus.pinned[0].min(lengths.q_len - 1);
    let size = counted.block_size;
    let key: Key = (counted.picture, [size.q, size.kv], b, h, q_idx);
    let memory = id("trace");
    if let Some((_, known)) = ui.data(|d| d.get_temp::<Known>(memory)).filter(|k| k.0 == key) {
        return Some(known);
    }
    let settings = &built.document.settings;
    let made = Arc::new(trace(&Question {
        blocks,
        mask: built.compiled.mask.as_deref(),
        score: built.compiled.score.as_deref(),
        lengths,
        b,
        h,
        q_idx,
        dims: [settings.head_dim, settings.head_dim_v.unwrap_or(settings.head_dim)],
        bytes: settings.dtype.size(),
    }));
    ui.data_mut(|d| d.insert_temp::<Known>(memory, (key, made.clone())));
    Some(made)
}

fn query(ui: &mut Ui, state: &State, trace: &Trace, actions: &mut Actions) {
    ui.horizontal_wrapped(|ui| {
        ui.label(say(ui, "tiles-query"));
        let last = state.document.axes.q.len().saturating_sub(1);
        if let Some(q) = whole(ui, say(ui, "tiles-query-name"), trace.q_idx, 0..=last) {
            actions.push(Action::Pin([q, state.focus.pinned[1]]));
        }
        ui.weak(say_with(ui, "tiles-row", &[("row", trace.q_block.into())]));
    });
}

fn controls(ui: &mut Ui, state: &State, trace: &Trace, step: usize, actions: &mut Actions) {
    let memory = id("trace plays");
    let since = ui.data(|d| d.get_temp::<f64>(memory));
    let all = trace.tiles.len();
    ui.horizontal_wrapped(|ui| {
        let playing = since.is_some() && step < all;
        if ui.add(primary_button(ui, say(ui, if playing { "tiles-pause" } else { "tiles-play" }), true)).clicked() {
            match playing {
                true => ui.data_mut(|d| d.remove::<f64>(memory)),
                false => {
                    ui.data_mut(|d| d.insert_temp(memory, state.now));
                    actions.push(Action::Step(Some(if step >= all { 0 } else { step })));
                }
            }
        }
        if ui.add_enabled(step > 0, egui::Button::new(say(ui, "learn-back"))).clicked() {
            actions.push(Action::Step(Some(step - 1)));
        }
        if ui.add_enabled(step < all, egui::Button::new(say(ui, "tiles-step"))).clicked() {
            actions.push(Action::Step(Some(step + 1)));
        }
        if let Some(since) = since.filter(|_| playing) {
            if state.now - since >= STEP {
                ui.data_mut(|d| d.insert_temp(memory, state.now));
                actions.push(Action::Step(Some(step + 1)));
            }
            ui.ctx().request_repaint_after_secs(STEP as f32 / 2.0);
        }
    });
    let mut at = step;
    ui.spacing_mut().slider_width = (ui.available_width() - 60.0).max(80.0);
    let slider = slider_of(&mut at, 0..=all.max(1));
    if ui.add(slider).accessible_name(say(ui, "tiles-stepped")).changed() {
        actions.push(Action::Step(Some(at.min(all))));
    }
}

/// Visited and skipped tiles, and bytes compared with eager.
fn counts(ui: &mut Ui, state: &State, trace: &Trace, step: usize) {
    let colours = palette(ui.visuals());
    let skipped = trace.all - trace.tiles.len();
    let now = step.checked_sub(1).and_then(|at| trace.tiles.get(at));
    ui.add_space(4.0);
    match now {
        None => drop(ui.label(say(ui, "tiles-not-yet"))),
        Some(tile) => {
            let kind = match tile.kind {
                BlockKind::Full => "tiles-full",
                BlockKind::Partial => "tiles-partial",
            };
            ui.label(RichText::new(say_with(ui, kind, &[("tile", tile.kv_block.into())])).strong());
        }
    }
    let tiles = [("step", step), ("kept", trace.tiles.len()), ("skipped", skipped), ("all", trace.all)];
    ui.label(say_with(ui, "tiles-visited", &tiles.map(|(name, n)| (name, n.into()))));
    let (ours, eager) = (step * trace.tile_bytes, trace.eager_bytes);
    ui.add_space(4.0);
    for (name, bytes, colour) in [("FlashAttention", ours, colours.accent), ("eager", eager, colours.bar)] {
        let share = bytes as f32 / eager.max(1) as f32;
        let figures = [("name", name.into()), ("bytes", grouped(bytes as u128).into())];
        ui.label(say_with(ui, "tiles-bytes", &figures));
        ui.add(ProgressBar::new(share.min(1.0)).fill(colour).desired_height(10.0));
    }
    let words = say(ui, "tiles-bytes-words");
    let heads = state.document.settings.heads;
    ui.add(egui::Label::new(RichText::new(words).small().weak()).wrap()).on_hover_text(say_with(
        ui,
        "tiles-heads",
        &[("heads", heads.into())],
    ));
}

fn numbers(ui: &mut Ui, trace: &Trace, step: usize) {
    ui.add_space(6.0);
    let Some(running) = &trace.running else {
        ui.weak(say(ui, "tiles-too-many"));
        return;
    };
    let before = step.checked_sub(2).and_then(|at| running.get(at));
    let Some(now) = step.checked_sub(1).and_then(|at| running.get(at)) else { return };
    let start = Running { m: f64::NEG_INFINITY, l: 0.0, o: 0.0, kept: 0 };
    let before = before.unwrap_or(&start);
    Grid::new("running").num_columns(3).striped(true).show(ui, |ui| {
        ui.weak("");
        ui.weak(say(ui, "tiles-before"));
        ui.weak(say(ui, "tiles-after"));
        ui.end_row();
        for (name, words, was, is) in [
            ("m", "tiles-m", before.m, now.m),
            ("l", "tiles-l", before.l, now.l),
            ("o / l", "tiles-o", before.o / before.l, now.o / now.l),
        ] {
            ui.monospace(name).on_hover_text(say(ui, words));
            ui.monospace(number(was));
            ui.label(RichText::new(number(is)).monospace().strong());
            ui.end_row();
        }
    });
    if now.m > before.m && before.l > 0.0 {
        let figures = [("before", before.m), ("now", now.m)].map(|(name, m)| (name, format!("{m:.3}").into()));
        ui.label(say_with(ui, "tiles-increased", &figures));
    }
    ui.label(say_with(ui, "tiles-kept", &[("kept", now.kept.into()), ("query", trace.q_idx.into())]));
    let words = say_with(ui, "tiles-scores", &[("source", Provenance::Random.to_string().into())]);
    ui.add(egui::Label::new(RichText::new(words).small().weak()).wrap());
}

fn number(value: f64) -> String {
    if value.is_nan() { "\u{2013}".into() } else { format!("{value:.4}") }
}
