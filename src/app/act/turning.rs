//! Undo and redo of the document in work.
//!
//! Invariant: a document that comes back has the file that it had when another took its place. Must not know what the steps are.

use super::is_preset;
use crate::app::state::State;
use crate::document::history::Way;
use crate::tasks::steps;

/// Takes the last step back.
pub(super) fn undo(state: &mut State) {
    state.history.work_on(state.focus.layer);
    state.remember_home(state.history.replaces(Way::Back));
    if let Some(step) = state.history.undo(&mut state.document) {
        state.turned(&step);
        came_back(state, step.replaced);
        let said = state.words();
        state.done(said.with("done-undone", &[("step", steps::told(said, &step.title).into())]));
    }
}

/// Does the last step again that was taken back.
pub(super) fn redo(state: &mut State) {
    state.history.work_on(state.focus.layer);
    state.remember_home(state.history.replaces(Way::Again));
    if let Some(step) = state.history.redo(&mut state.document) {
        state.turned(&step);
        came_back(state, step.replaced);
        let said = state.words();
        state.done(said.with("done-again", &[("step", steps::told(said, &step.title).into())]));
    }
}

/// What came back by undo or redo is no change where it is a preset as it was opened, or what the file holds.
fn came_back(state: &mut State, replaced: bool) {
    if state.is_home() {
        state.saved = state.revision;
    }
    if state.path.is_none() && is_preset(&state.document) {
        state.saved = state.revision;
        state.begun = if replaced { state.revision } else { state.begun };
    }
}
