//! The row above the canvas: tools, what is drawn, which head, and what the mask amounts to.
//!
//! Invariant: numbers are those of the picture shown, or say that they are being counted. Must not know how the canvas
//! draws.

use crate::app::action::{Action, Actions};
use crate::app::canvas::{NO_SCORE, Picture, Tool};
use crate::app::command::Command;
use crate::app::painting::Plan;
use crate::app::session::CountProgress;
use crate::app::state::State;
use crate::app::widgets::{diagnostic_below, grouped, percent, whole};
use crate::base::control::remaining;
use egui::{RichText, Ui};
use std::time::Duration;

/// A count that is done by then is not worth a word about its progress.
const PATIENCE: Duration = Duration::from_millis(300);

const TOOLS: [(Tool, Command); 5] = [
    (Tool::Pan, Command::ToolPan),
    (Tool::Brush, Command::ToolBrush),
    (Tool::Eraser, Command::ToolEraser),
    (Tool::Rectangle, Command::ToolRectangle),
    (Tool::Band, Command::ToolBand),
];

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.horizontal_wrapped(|ui| {
        for (tool, command) in TOOLS {
            let response = ui.selectable_label(state.focus.tool == tool, command.text());
            if response.on_hover_text(command.tooltip(ui.ctx())).clicked() {
                actions.command(command);
            }
        }
        ui.separator();
        for (picture, name, words) in [
            (Picture::Blocks, "Blocks", "Full, partial and empty blocks of BLOCK_SIZE."),
            (Picture::Mask, "Mask", "The kept share of each pixel."),
            (Picture::Bias, "Bias", "What the score mods add to a score of zero."),
        ] {
            if ui.selectable_label(state.focus.picture == picture, name).on_hover_text(words).clicked() {
                actions.push(Action::SetPicture(picture));
            }
        }
        head(ui, state, actions);
    });
    ui.horizontal_wrapped(|ui| sum(ui, state, actions));
    // always a line, so that the picture stays where it is when another tool is taken
    ui.weak(tool_words(state));
}

/// What the tool will do, said before it does.
fn tool_words(state: &State) -> String {
    let empty = state.document.layers.iter().all(|l| !l.enabled);
    let begins = |what: &str| format!("{what} begins an empty mask: only what is drawn is kept.");
    match state.focus.tool {
        Tool::Pan => "Drag moves the picture, the wheel zooms, a click keeps a cell in the Cell tab.".into(),
        Tool::Brush | Tool::Eraser => {
            let words = Plan::of(state, state.focus.tool == Tool::Brush).words(&state.document);
            format!("{words} [ and ] change the width.")
        }
        Tool::Rectangle if empty => begins("The first rectangle"),
        Tool::Band if empty => begins("The first band"),
        Tool::Rectangle => "Keeps a rectangle of cells, as a new layer.".into(),
        Tool::Band => "Keeps a diagonal band of cells, as a new layer.".into(),
    }
}

fn head(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let settings = &state.document.settings;
    let (b, h) = (state.focus.b, state.focus.h);
    if settings.batch > 1 {
        ui.weak("batch");
        if let Some(b) = whole(ui, "Shown batch entry", b, 0..=settings.batch - 1) {
            actions.push(Action::SetHead { b, h });
        }
    }
    if settings.heads > 1 {
        ui.weak("head");
        if let Some(h) = whole(ui, "Shown head", h, 0..=settings.heads - 1) {
            actions.push(Action::SetHead { b, h });
        }
    }
}

/// What the picture is of, where the document has errors: nothing is left out of a mask, and nothing is counted of an old one.
fn standing(ui: &mut Ui, state: &State, actions: &mut Actions) -> bool {
    let Some(built) = &state.session.built else { return false };
    let (broken, _) = built.broken();
    if broken.is_empty() {
        return false;
    }
    let words = match state.session.shown {
        Some(_) => format!("as before the error in {}", broken.join(", ")),
        None => format!("no picture: error in {}", broken.join(", ")),
    };
    ui.label(RichText::new("\u{2013} of cells").weak().size(17.0))
        .on_hover_text("Not counted: the document has errors.");
    let link = egui::Label::new(RichText::new(words).color(ui.visuals().error_fg_color)).sense(egui::Sense::click());
    if ui.add(link).on_hover_text("Shows the problems.").clicked() {
        actions.command(Command::ShowProblems);
    }
    true
}

/// How far the count is, when it will be done and how to stop it; nothing but a word while it is quick.
fn counting(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let (at_cells, waited, fraction) = match state.session.count_progress() {
        CountProgress::Working { at_cells, waited, fraction } => (at_cells, waited, fraction),
        CountProgress::Stopped => {
            ui.weak("not counted");
            if ui.small_button("Count").on_hover_text("Counts blocks and cells after all.").clicked() {
                actions.push(Action::Count(true));
            }
            return;
        }
    };
    if waited < PATIENCE {
        // the last figure stays, dimmed: it would flicker while one paints
        if let Some(Ok(stats)) = state.session.counted.as_ref().map(|counted| &counted.result) {
            let last = RichText::new(format!("{} of cells", percent(stats.density))).weak().size(17.0);
            ui.label(last).on_hover_text("Before the last change.");
        }
        ui.weak("counting…");
        ui.ctx().request_repaint_after(PATIENCE - waited);
        return;
    }
    let what = if at_cells { "counting the cells of partial blocks" } else { "finding the blocks" };
    let left = remaining(waited, fraction).map(|left| format!(", {left}")).unwrap_or_default();
    let words = format!("{what}, {:.0}%{left}", 100.0 * fraction);
    ui.weak(words).on_hover_text(
        "No rule decides this mask, so its cells are evaluated. The picture does not wait: it samples what it shows.",
    );
    if ui.small_button("Stop").on_hover_text("Stops counting; the picture stays.").clicked() {
        actions.push(Action::Count(false));
    }
    ui.ctx().request_repaint_after(Duration::from_millis(250));
}

/// `11.7% of cells`, and what it means in blocks.
fn sum(ui: &mut Ui, state: &State, actions: &mut Actions) {
    if standing(ui, state, actions) {
        return;
    }
    if state.focus.picture == Picture::Bias && state.session.built.as_ref().is_some_and(|b| b.compiled.score.is_none())
    {
        ui.weak(NO_SCORE);
    }
    let Some(counted) = state.session.current_stats() else {
        return counting(ui, state, actions);
    };
    let stats = match &counted.result {
        Ok(stats) => stats,
        Err(why) => return diagnostic_below(ui, why),
    };
    let text = format!("{} of cells", percent(stats.density));
    let behind = state.session.is_behind(state.revision);
    let text = RichText::new(text).strong().size(17.0);
    ui.label(if behind { text.weak() } else { text }).on_hover_ui(|ui| {
        for (name, value) in [
            ("Cells kept", grouped(stats.kept_cells)),
            ("Full blocks", grouped(stats.full.into())),
            ("Partial blocks", grouped(stats.partial.into())),
            ("Empty blocks", grouped(stats.empty.into())),
            ("Sparsity, as PyTorch counts", stats.sparsity_words()),
            ("Computed cells that are dropped", percent(stats.wasted)),
            ("Blocks a row", format!("{} to {}, mean {:.1}", stats.load.min, stats.load.max, stats.load.mean)),
        ] {
            ui.horizontal(|ui| {
                ui.weak(name);
                ui.label(value);
            });
        }
    });
    let blocks = stats.full + stats.partial + stats.empty;
    ui.weak(format!(
        "{} computed, in blocks of {}, sparsity {}: {} full, {} partial, {} empty",
        percent(stats.computed),
        counted.block_size,
        stats.sparsity_words(),
        percent(stats.full as f64 / blocks.max(1) as f64),
        percent(stats.partial as f64 / blocks.max(1) as f64),
        percent(stats.empty as f64 / blocks.max(1) as f64),
    ));
    if stats.empty_rows > 0 {
        let words = format!("{} rows keep nothing", grouped(stats.empty_rows.into()));
        ui.colored_label(ui.visuals().warn_fg_color, words).on_hover_text("Their output is 0 and their lse -inf.");
    }
}
