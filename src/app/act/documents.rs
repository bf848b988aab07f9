//! Several open documents: one is active, the others keep their state, each with its own undo.
//!
//! Invariant: an inactive document loses nothing. Must not know how tabs are drawn.

use super::{keep_unsaved_now, replaced};
use crate::app::drafts::{Dialog, Leaving};
use crate::app::state::{Focus, NEVER, Outside, Parked, State, empty_document};
use crate::document::history::History;
use crate::document::model::Document;
use std::path::Path;

/// Opens an empty document behind the last one and works on it.
pub(super) fn new(state: &mut State) {
    open(state, empty_document("tokens 4096"));
}

/// Opens a document behind the last one and works on it.
pub(super) fn open(state: &mut State, document: Document) {
    let last = state.parked.len();
    let id = state.next_id();
    let fresh = Parked { document: Some(document), id, ..Parked::default() };
    let place = state.tab;
    park(state, fresh, |tabs, mine| {
        tabs.insert(place.min(tabs.len()), mine);
        last + 1
    });
}

/// Works on the tab at this place, counted from the left.
pub(super) fn show(state: &mut State, at: usize) {
    if at == state.tab || at > state.parked.len() {
        return;
    }
    // the active document is not among the inactive ones
    let from = if at > state.tab { at - 1 } else { at };
    let mine = state.tab;
    let chosen = state.parked.remove(from);
    park(state, chosen, |tabs, old| {
        // its place among the inactive ones: after all to its left, without the chosen one
        let place = if at < mine { mine - 1 } else { mine };
        tabs.insert(place.min(tabs.len()), old);
        at
    });
}

/// Works on the tab whose document is of this file. Returns whether there is one.
pub(super) fn show_file(state: &mut State, path: &Path) -> bool {
    if state.path.as_deref() == Some(path) {
        return true;
    }
    let Some(at) = state.parked.iter().position(|tab| tab.path.as_deref() == Some(path)) else { return false };
    show(state, if at >= state.tab { at + 1 } else { at });
    true
}

/// The next one to the right, or to the left, around the ends.
pub(super) fn step(state: &mut State, by: isize) {
    let all = state.parked.len() as isize + 1;
    show(state, (state.tab as isize + by).rem_euclid(all) as usize);
}

/// Closes the one in work. Work that no file has stays among the unsaved documents; where it cannot be kept there, a question is open
/// from here on. The last one cannot be closed.
pub(super) fn close(state: &mut State) {
    if state.parked.is_empty() {
        return;
    }
    match keep_unsaved_now(state) {
        Ok(()) => close_anyway(state),
        Err(why) => {
            let (of, names) = (Leaving::Tab, vec![state.document.name.clone()]);
            state.dialog = Some(Dialog::Leave { of, why, names, behind: None });
        }
    }
}

/// Closes the one in work, whatever becomes of it.
pub(super) fn close_anyway(state: &mut State) {
    if state.parked.is_empty() {
        return;
    }
    let at = state.tab.min(state.parked.len() - 1);
    let next = state.parked.remove(at);
    take(state, next);
    state.tab = at;
}

/// Deactivates the active document and activates another.
fn park(state: &mut State, next: Parked, place: impl FnOnce(&mut Vec<Parked>, Parked) -> usize) {
    state.history.seal();
    let (dirty, gone) = (state.is_dirty(), state.is_only_gone());
    let mine = Parked {
        document: Some(state.document.clone()),
        history: std::mem::replace(&mut state.history, History::new()),
        homes: std::mem::take(&mut state.homes),
        id: state.id,
        mark: state.revision,
        dirty,
        gone,
        kept_as: state.kept_as.take(),
        path: state.path.take(),
        seen: state.seen.take(),
        config: state.config.take(),
        trainer: state.trainer.take(),
        export: std::mem::take(&mut state.export),
        focus: std::mem::take(&mut state.focus),
        race: state.session.race.as_ref().map(|race| race.id),
    };
    let mut tabs = std::mem::take(&mut state.parked);
    let at = place(&mut tabs, mine);
    state.parked = tabs;
    take(state, next);
    state.tab = at;
}

fn take(state: &mut State, next: Parked) {
    let Some(document) = next.document else { return };
    state.document = document;
    (state.history, state.homes) = (next.history, next.homes);
    state.id = next.id;
    (state.kept_as, state.path, state.config) = (next.kept_as, next.path, next.config);
    (state.seen, state.outside) = (next.seen, next.gone.then_some(Outside::Gone));
    (state.trainer, state.export) = (next.trainer, next.export);
    // a revision that no document had: data derived from the other document do not apply
    state.revision += 1;
    state.saved = if next.dirty && !next.gone { NEVER } else { state.revision };
    state.begun = state.revision;
    let tool = Focus::default().tool;
    state.focus = Focus { tool, drawing: false, stroke: None, hovered: None, ..next.focus };
    state.focus.layer = state.focus.layer.or(state.document.layers.first().map(|l| l.id));
    replaced(state);
    state.session.races.prefer(next.race);
}
