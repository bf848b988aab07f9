//! The bar at the bottom: the mouse's present effect, the shape in numbers, running work, the worker's machine.
//!
//! Invariant: progress is shown only after a tenth of a second, with its cancel button. Must not know the work.

use super::mouse;
use crate::app::action::Actions;
use crate::app::command::Command;
use crate::app::language::{self, place, say, say_with};
use crate::app::left;
use crate::app::mishaps;
use crate::app::session::JobKind;
use crate::app::state::State;
use crate::app::theme;
use crate::app::widgets;
use egui::{ProgressBar, RichText, Ui};
use std::time::Duration;

/// Progress is not worth showing before.
const PATIENCE: Duration = Duration::from_millis(100);

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.horizontal(|ui| {
        let wide = ui.available_width() > 1000.0;
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            worker(ui, state, actions);
            progress(ui, state, actions);
            mishaps(ui, actions);
            if wide {
                summary(ui, state);
            }
            ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| {
                happened(ui, state);
                let words = mouse::words(language::words(ui.ctx()), state);
                ui.add(egui::Label::new(RichText::new(&words).weak()).truncate()).on_hover_text(words);
            });
        });
    });
}

/// What is to be clicked in it, in a menu where the window has no room for it.
pub(super) fn in_a_menu(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.horizontal(|ui| progress(ui, state, actions));
    mishaps(ui, actions);
    worker(ui, state, actions);
    let words = mouse::words(language::words(ui.ctx()), state);
    ui.add(egui::Label::new(RichText::new(words).weak()).wrap());
}

/// What just happened, for some seconds, where a toast would cover the mask.
fn happened(ui: &mut Ui, state: &State) {
    let notices = super::toasts::in_the_bar(ui.ctx(), state);
    if notices.is_empty() {
        return;
    }
    let spoken = language::words(ui.ctx());
    let words: Vec<&str> = notices.iter().map(|n| spoken.refusal(&n.what.code).unwrap_or(&n.what.message)).collect();
    let whole: Vec<String> = notices.iter().flat_map(|n| widgets::lines(spoken, &n.what)).collect();
    // what the mouse does keeps its part
    let room = ui.available_width() * 0.6;
    ui.scope(|ui| {
        ui.set_max_width(room);
        ui.add(egui::Label::new(words.join("  \u{b7}  ")).truncate()).on_hover_text(whole.join("\n"));
    });
    ui.separator();
}

/// Mistakes of ours since the start: never passed over in silence.
fn mishaps(ui: &mut Ui, actions: &mut Actions) {
    let text = match mishaps::ours().count() {
        0 => return,
        n => say_with(ui, "status-internal", &[("n", n.into())]),
    };
    let button = egui::Button::new(RichText::new(text).color(theme::palette(ui.visuals()).error)).frame(false);
    if ui.add(button).on_hover_text(say(ui, "status-internal-tip")).clicked() {
        actions.command(Command::Messages);
    }
}

/// The shape of the problem, in a few numbers.
fn summary(ui: &mut Ui, state: &State) {
    let (axes, settings) = (&state.document.axes, &state.document.settings);
    let figures = [
        ("queries", axes.q.len().to_string()),
        ("keys", axes.kv().len().to_string()),
        ("heads", settings.heads.to_string()),
        ("dim", settings.head_dim.to_string()),
        ("dtype", settings.dtype.to_string()),
        ("batch", settings.batch.to_string()),
    ];
    let id = if settings.batch > 1 { "status-shape-batch" } else { "status-shape" };
    let words = say_with(ui, id, &figures.map(|(name, figure)| (name, figure.into())));
    let file = state.path.as_ref().map_or(say(ui, "top-no-file").to_string(), |p| p.display().to_string());
    ui.weak(words).on_hover_text(file);
    ui.separator();
}

fn worker(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let target = place(ui, &state.view.target);
    let colours = theme::palette(ui.visuals());
    let on = |id: &str| say_with(ui, id, &[("target", target.clone().into())]);
    let (text, colour, words) = match (&state.session.worker, &state.session.worker_error) {
        (_, Some(why)) => {
            let why = why.first().map(|d| d.render()).unwrap_or_default();
            (on("status-no-worker"), colours.error, why)
        }
        (Some(info), None) => (info.host.clone(), colours.weak, on("status-worker")),
        (None, None) => (target.clone(), colours.weak, say(ui, "status-waiting").into()),
    };
    let button = egui::Button::new(RichText::new(text).color(colour)).frame(false);
    if ui.add(button).on_hover_text(words).clicked() {
        actions.command(Command::Connect);
    }
}

fn progress(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let behind = state.session.is_behind(state.revision);
    let Some(running) = state.session.running() else {
        if behind {
            ui.weak(say(ui, "status-compiling"));
        }
        return;
    };
    let waited = running.since.elapsed();
    if waited < PATIENCE {
        ui.ctx().request_repaint_after(PATIENCE - waited);
        return;
    }
    if running.kind != JobKind::Hello {
        let cancel = ui.small_button(say(ui, "status-cancel")).on_hover_text(Command::Cancel.tooltip(ui.ctx()));
        if cancel.accessible_name(say(ui, "status-cancel-name")).clicked() {
            actions.command(Command::Cancel);
        }
    }
    if running.step.fraction > 0.0 {
        ui.add(ProgressBar::new(running.step.fraction).desired_width(120.0).show_percentage());
    } else {
        ui.spinner();
    }
    let words = left::doing_left(ui, running);
    ui.label(words);
}
