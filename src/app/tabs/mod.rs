//! The tabs of the bottom panel.
//!
//! Invariant: a tab reads the state and pushes actions; stale results say that they are. Must not know how results are
//! made.

mod cell;
mod code;
mod doctor;
mod map;
mod problems;
mod timing;

use super::action::Actions;
use super::state::{State, Tab};
use crate::base::Diagnostic;
use egui::Ui;

pub(super) use map::MapCache;
pub(super) use problems::rewritten;
pub(super) use timing::cannot_run;

/// Draws the row of tabs and the one in front.
pub(super) fn show(ui: &mut Ui, state: &State, maps: &mut MapCache, actions: &mut Actions) {
    ui.horizontal_wrapped(|ui| {
        for tab in Tab::ALL {
            let command = tab.command();
            let text = match (tab, problems(state)) {
                (Tab::Problems, n) if n > 0 => format!("{} ({n})", command.text()),
                _ => command.text().to_string(),
            };
            let response = ui.selectable_label(state.view.tab == tab, text);
            if response.on_hover_text(command.tooltip(ui.ctx())).clicked() {
                actions.command(command);
            }
        }
    });
    ui.separator();
    match state.view.tab {
        Tab::Timing => timing::show(ui, state, actions),
        Tab::Map => map::show(ui, state, maps, actions),
        Tab::Cell => cell::show(ui, state, actions),
        Tab::Code => code::show(ui, state, actions),
        Tab::Problems => problems::show(ui, state, actions),
        Tab::Doctor => doctor::show(ui, state, actions),
    }
}

fn problems(state: &State) -> usize {
    state.session.built.as_ref().map_or(0, |b| b.problems().1)
}

/// Diagnostics in full.
fn told(ui: &mut Ui, why: &[Diagnostic]) {
    for diagnostic in why {
        super::widgets::diagnostic_below(ui, diagnostic);
    }
}
