//! The bar at the bottom: the cell under the pointer, problems, what is in work, where it runs.
//!
//! Invariant: progress shows only after a tenth of a second, with its cancel. Must not know what the work is.

use crate::app::action::Actions;
use crate::app::command::Command;
use crate::app::session::JobKind;
use crate::app::state::State;
use crate::app::theme;
use crate::app::widgets::severity_word;
use crate::base::Diagnostic;
use egui::{ProgressBar, RichText, Ui};
use std::time::Duration;

/// Progress is not worth showing before.
const PATIENCE: Duration = Duration::from_millis(100);

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.horizontal(|ui| {
        problems(ui, state, actions);
        ui.separator();
        hovered(ui, state);
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            worker(ui, state, actions);
            progress(ui, state, actions);
        });
    });
}

/// How many errors and warnings there are, and the first of them.
fn problems(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let Some(built) = &state.session.built else {
        ui.weak("compiling…");
        return;
    };
    let all: Vec<&Diagnostic> = built.diagnostics().into_iter().map(|(_, d)| d).collect();
    let errors = all.iter().filter(|d| d.is_error()).count();
    let colours = theme::palette(ui.visuals());
    let (text, colour) = match (errors, all.len()) {
        (0, 0) => ("no problems".to_string(), colours.weak),
        (0, n) => (format!("{n} warnings"), colours.warning),
        (1, 1) => ("1 error".to_string(), colours.error),
        (e, n) if e == n => (format!("{e} errors"), colours.error),
        (e, n) => (format!("{e} errors, {} warnings", n - e), colours.error),
    };
    let response = ui.add(egui::Button::new(RichText::new(text).color(colour)).frame(false));
    let first = all.iter().find(|d| d.is_error()).or(all.first());
    let response = match first {
        Some(d) => response.on_hover_text(format!("{}: {}", severity_word(d.severity), d.message)),
        None => response.on_hover_text("The document compiles."),
    };
    if response.clicked() {
        actions.command(Command::ShowProblems);
    }
}

/// The cell under the pointer in the words of the axes.
fn hovered(ui: &mut Ui, state: &State) {
    let Some([q, kv]) = state.focus.hovered else {
        ui.weak("point at a cell");
        return;
    };
    let axes = &state.document.axes;
    let place =
        |axis: &crate::document::model::Axis, at: usize| axis.place(at).map(|p| p.to_string()).unwrap_or_default();
    ui.label(format!("q {q}, kv {kv}, distance {}", q as i64 - kv as i64));
    if axes.q.segments.len() + axes.kv().segments.len() > 2 || axes.q.segments[0].grid.len() > 1 {
        ui.weak(format!("{} → {}", place(&axes.q, q), place(axes.kv(), kv)));
    }
}

fn worker(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let target = state.view.target.title().to_string();
    let colours = theme::palette(ui.visuals());
    let (text, colour, words) = match (&state.session.worker, &state.session.worker_error) {
        (_, Some(why)) => {
            let why = why.first().map(|d| d.render()).unwrap_or_default();
            (format!("no worker on {target}"), colours.error, why)
        }
        (Some(info), None) => (info.host.clone(), colours.weak, format!("The worker runs on {target}.")),
        (None, None) => (target.clone(), colours.weak, "The worker has not answered yet.".into()),
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
            ui.weak("compiling…");
        }
        return;
    };
    let waited = running.since.elapsed();
    if waited < PATIENCE {
        ui.ctx().request_repaint_after(PATIENCE - waited);
        return;
    }
    if running.kind != JobKind::Hello {
        let cancel = ui.small_button("Cancel").on_hover_text(Command::Cancel.tooltip(ui.ctx()));
        if cancel.accessible_name("Cancel the work").clicked() {
            actions.command(Command::Cancel);
        }
    }
    if running.fraction > 0.0 {
        ui.add(ProgressBar::new(running.fraction).desired_width(120.0).show_percentage());
    } else {
        ui.spinner();
    }
    ui.label(&running.what);
}
