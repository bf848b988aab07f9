//! The document's own file was changed or deleted by another program: the user chooses what becomes of both.
//!
//! Invariant: neither the file nor the document is lost by any choice: work that a reload replaces stays among the unsaved
//! documents, a file that is kept out is only written by the next save, and a document whose file is gone is unsaved. Must not know
//! how the choices are shown.

use crate::app::action::FileChoice;
use crate::app::drafts::Dialog;
use crate::app::errands::Now;
use crate::app::state::{NEVER, Outside, State};
use crate::base::Diagnostic;
use crate::document::edit::Edit;
use crate::document::file;
use crate::document::model::Document;
use crate::worker::seen::Seen;
use std::path::Path;

/// What the file holds now.
pub(super) fn looked(state: &mut State, path: &Path, now: Now) {
    if state.path.as_deref() != Some(path) {
        return;
    }
    let Some(seen) = state.seen.clone() else {
        state.outside = None;
        return;
    };
    state.outside = match now {
        // nothing is said of what nobody can read
        Now::Unknown => return,
        Now::Gone => (seen != Seen::gone()).then_some(Outside::Gone),
        // it is back, and holds this very document
        Now::Holds(now) if state.is_home(Some(&now)) => {
            (state.seen, state.saved) = (Some(now), state.revision);
            None
        }
        Now::Holds(now) => (now != seen).then_some(Outside::Changed(now)),
    };
}

/// Carries a choice out.
pub(super) fn choose(state: &mut State, choice: FileChoice) {
    let Some(path) = state.path.clone() else { return };
    match choice {
        FileChoice::Reload => state.session.errands.reload(path),
        FileChoice::Difference => state.session.errands.compare(path),
        FileChoice::KeepMine => {
            let Some(outside) = state.outside.take() else { return };
            // the next save may write over this content, and over no later one
            let (seen, said) = match outside {
                Outside::Changed(seen) => (seen, "done-stays"),
                Outside::Gone => (Seen::gone(), "done-stays-gone"),
            };
            (state.seen, state.saved) = (Some(seen), NEVER);
            state.dialog = None;
            state.done(state.words().with(said, &[("path", path.display().to_string().into())]));
        }
    }
}

/// The file was read again, or not.
pub(super) fn reloaded(state: &mut State, path: &Path, what: Result<(Box<Document>, Seen), Vec<Diagnostic>>) {
    if state.path.as_deref() != Some(path) {
        // another document is in work by now
        return;
    }
    let (document, seen) = match what {
        Ok(read) => read,
        Err(why) => {
            let behind = state.dialog.take();
            state.dialog = Some(Dialog::failure(
                &state.words().with("failed-read", &[("path", path.display().to_string().into())]),
                why,
                behind,
            ));
            return;
        }
    };
    super::keep_unsaved(state);
    state.history.seal();
    state.edit(Edit::Replace(document));
    state.history.seal();
    super::replaced(state);
    (state.seen, state.outside, state.kept_as) = (Some(seen), None, None);
    (state.saved, state.begun) = (state.revision, state.revision);
    state.focus.layer = state.document.layers.first().map(|layer| layer.id);
    state.dialog = None;
    state.came_home();
    state.done(state.words().with("done-read-again", &[("path", path.display().to_string().into())]));
}

/// Shows the file's text beside the document's.
pub(super) fn compared(state: &mut State, path: &Path, theirs: Result<String, Diagnostic>) {
    if state.path.as_deref() != Some(path) {
        return;
    }
    state.dialog = Some(match theirs {
        Ok(theirs) => Dialog::Difference { path: path.into(), theirs, mine: file::to_json(&state.document) },
        Err(why) => Dialog::failure(
            &state.words().with("failed-read", &[("path", path.display().to_string().into())]),
            vec![why],
            None,
        ),
    });
}
