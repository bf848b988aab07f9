//! FlashAttention tile by tile, on the open document: one row of query blocks visits its kv tiles, also on the canvas.
//!
//! Invariant: tiles and counts are the open mask's own; the scores are random and labelled so. Must not know how a
//! trace is computed.

use crate::analysis::block_mask::BlockKind;
use crate::app::action::{Action, Actions};
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
    ui.add(
        egui::Label::new(
            "A block of queries stays on chip. The kernel visits the kv tiles that its row keeps, skips the empty ones, \
             and updates three values: the largest score m, the sum l, and the output.",
        )
        .wrap(),
    );
    let Some(trace) = current(ui, state) else {
        ui.weak("The blocks are not counted yet, or the document has errors.");
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
        ui.label("query");
        let last = state.document.axes.q.len().saturating_sub(1);
        if let Some(q) = whole(ui, "Query of the trace", trace.q_idx, 0..=last) {
            actions.push(Action::Pin([q, state.focus.pinned[1]]));
        }
        ui.weak(format!("in row {} of query blocks; click the canvas to choose another", trace.q_block));
    });
}

fn controls(ui: &mut Ui, state: &State, trace: &Trace, step: usize, actions: &mut Actions) {
    let memory = id("trace plays");
    let since = ui.data(|d| d.get_temp::<f64>(memory));
    let all = trace.tiles.len();
    ui.horizontal_wrapped(|ui| {
        let playing = since.is_some() && step < all;
        if ui.add(primary_button(ui, if playing { "Pause" } else { "Play" }, true)).clicked() {
            match playing {
                true => ui.data_mut(|d| d.remove::<f64>(memory)),
                false => {
                    ui.data_mut(|d| d.insert_temp(memory, state.now));
                    actions.push(Action::Step(Some(if step >= all { 0 } else { step })));
                }
            }
        }
        if ui.add_enabled(step > 0, egui::Button::new("Back")).clicked() {
            actions.push(Action::Step(Some(step - 1)));
        }
        if ui.add_enabled(step < all, egui::Button::new("Step")).clicked() {
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
    let slider = egui::Slider::new(&mut at, 0..=all.max(1));
    if ui.add(slider).accessible_name("Tiles stepped").changed() {
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
        None => drop(ui.label("No tile has been visited yet.")),
        Some(tile) => {
            let kind = match tile.kind {
                BlockKind::Full => "full: no mask is evaluated",
                BlockKind::Partial => "partial: mask_mod decides each cell",
            };
            ui.label(RichText::new(format!("kv tile {}, {kind}", tile.kv_block)).strong());
        }
    }
    ui.label(format!(
        "{step} of {} tiles visited; {skipped} of {} are empty and skipped",
        trace.tiles.len(),
        trace.all
    ));
    let (ours, eager) = (step * trace.tile_bytes, trace.eager_bytes);
    ui.add_space(4.0);
    for (name, bytes, colour) in [("FlashAttention", ours, colours.accent), ("eager", eager, colours.bar)] {
        let share = bytes as f32 / eager.max(1) as f32;
        ui.label(format!("{name}: {} bytes", grouped(bytes as u128)));
        ui.add(ProgressBar::new(share.min(1.0)).fill(colour).desired_height(10.0));
    }
    let words = "K and V of each tile, for one query block of one head. Eager also writes its float32 scores, reads them, \
                 and writes and reads the probabilities.";
    let heads = state.document.settings.heads;
    ui.add(egui::Label::new(RichText::new(words).small().weak()).wrap())
        .on_hover_text(format!("{heads} heads do the same."));
}

fn numbers(ui: &mut Ui, trace: &Trace, step: usize) {
    ui.add_space(6.0);
    let Some(running) = &trace.running else {
        ui.weak("This row has too many keys for its numbers; a shorter document shows them.");
        return;
    };
    let before = step.checked_sub(2).and_then(|at| running.get(at));
    let Some(now) = step.checked_sub(1).and_then(|at| running.get(at)) else { return };
    let start = Running { m: f64::NEG_INFINITY, l: 0.0, o: 0.0, kept: 0 };
    let before = before.unwrap_or(&start);
    Grid::new("running").num_columns(3).striped(true).show(ui, |ui| {
        ui.weak("");
        ui.weak("before");
        ui.weak("after this tile");
        ui.end_row();
        for (name, words, was, is) in [
            ("m", "The largest score so far.", before.m, now.m),
            ("l", "The sum of exp(score - m); shrunk when m rises.", before.l, now.l),
            ("o / l", "The current first component of the output.", before.o / before.l, now.o / now.l),
        ] {
            ui.monospace(name).on_hover_text(words);
            ui.monospace(number(was));
            ui.label(RichText::new(number(is)).monospace().strong());
            ui.end_row();
        }
    });
    if now.m > before.m && before.l > 0.0 {
        ui.label(format!("m has increased: l and o are first multiplied by exp({:.3} - {:.3}).", before.m, now.m));
    }
    ui.label(format!("{} keys of this tile are kept for query {}.", now.kept, trace.q_idx));
    let words = format!(
        "Scores are those of {}, numbers of a normal distribution; mask_mod and score_mod are those of the document.",
        Provenance::Random
    );
    ui.add(egui::Label::new(RichText::new(words).small().weak()).wrap());
}

fn number(value: f64) -> String {
    if value.is_nan() { "\u{2013}".into() } else { format!("{value:.4}") }
}
