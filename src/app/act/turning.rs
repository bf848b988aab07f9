//! Undo and redo of the document in work.
//!
//! Invariant: a document that comes back has the file that it had when another took its place. Must not know what the steps are.

use super::is_preset;
use crate::app::state::State;
use crate::document::history::Way;
use crate::tasks::steps;

/// Takes the last step back.
pub(super) fn undo(state: &mut State) {
    turn(state, Way::Back, "done-undone");
}

/// Does the last step again that was taken back.
pub(super) fn redo(state: &mut State) {
    turn(state, Way::Again, "done-again");
}

fn turn(state: &mut State, way: Way, how: &'static str) {
    state.history.work_on(state.focus.layer);
    state.remember_home(state.history.replaces(way));
    let step = match way {
        Way::Back => state.history.undo(&mut state.document),
        Way::Again => state.history.redo(&mut state.document),
    };
    if let Some(step) = step {
        state.turned(&step);
        came_back(state, step.replaced);
        let said = state.words();
        state.done(said.with(how, &[("step", steps::told(said, &step.title).into())]));
    }
}

/// What came back by undo or redo is no change where it is a preset as it was opened, or what the file holds.
fn came_back(state: &mut State, replaced: bool) {
    if state.is_home(state.seen.as_ref()) {
        state.saved = state.revision;
    }
    if state.path.is_none() && is_preset(&state.document) {
        state.saved = state.revision;
        state.begun = if replaced { state.revision } else { state.begun };
    }
}
