//! The pages next to the canvas.
//!
//! Invariant: a page reads the state and pushes actions; stale results are marked. Must not know how results are
//! computed.

mod cell;
mod code;
mod doctor;
mod export;
mod learn;
mod map;
mod parallel;
mod patches;
mod problems;
mod quality;
mod race;

use super::action::Actions;
use super::drafts::ExportPage;
use super::state::State;
use super::workspace::{Aside, Workspace};
use crate::base::Diagnostic;
use egui::{ScrollArea, Ui};

pub(super) use learn::{is_on as lesson_is_on, shown_trace};
pub(crate) use parallel::ParallelPage;
pub(crate) use quality::QualityPage;
#[cfg(test)]
pub(crate) use quality::tests as quality_tests;
pub(super) use race::{best_time, cannot_run, recorded_runs};

/// The pages' state between frames.
pub(super) struct Pages<'a> {
    pub quality: &'a mut QualityPage,
    pub export: &'a mut ExportPage,
    pub parallel: &'a mut ParallelPage,
}

/// Draws the page in front.
pub(super) fn show(
    ui: &mut Ui,
    state: &State,
    aside: Option<Aside>,
    workspace: Workspace,
    pages: &mut Pages<'_>,
    actions: &mut Actions,
) {
    match (aside, workspace) {
        (Some(Aside::Cell), _) => cell::show(ui, state, actions),
        (Some(Aside::Problems), _) => problems::show(ui, state, actions),
        (Some(Aside::Setup), _) => doctor::show(ui, state, actions),
        // the inspector is drawn by its panel
        (None, Workspace::Design) => {}
        (None, Workspace::Race) => race::show(ui, state, actions),
        (None, Workspace::Quality) => quality::show(ui, state, pages.quality, actions),
        (None, Workspace::Code) => code::show(ui, state, actions),
        (None, Workspace::Export) => export::show(ui, state, pages.export, actions),
        (None, Workspace::Learn) => scrolled(ui, "learn", |ui| learn::show(ui, state, actions)),
        (None, Workspace::Parallel) => parallel::show(ui, state, pages.parallel),
    }
}

fn scrolled(ui: &mut Ui, name: &str, contents: impl FnOnce(&mut Ui)) {
    ScrollArea::vertical().id_salt(name).auto_shrink([false, false]).show(ui, contents);
}

/// Diagnostics in full.
fn reported(ui: &mut Ui, why: &[Diagnostic]) {
    for diagnostic in why {
        super::widgets::diagnostic_below(ui, diagnostic);
    }
}
