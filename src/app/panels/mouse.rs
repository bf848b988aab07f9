//! What the mouse does with the tool in hand, in a sentence.
//!
//! Invariant: it is said before the tool is used. Must not know where it is shown.

use crate::app::canvas::Tool;
use crate::app::gesture::Plan;
use crate::app::state::State;
use crate::words::Words;

/// The tool's effect, shown before its use.
pub(super) fn words(said: &'static Words, state: &State) -> String {
    let empty = state.document.layers.iter().all(|l| !l.enabled);
    let area = |id: &str| said.with(id, &[("borders", said.text("mouse-borders").into())]);
    let id = match state.focus.tool {
        _ if state.focus.patches => "mouse-patches",
        Tool::Pan if state.selected_rectangle().is_some() => "mouse-handles",
        Tool::Pan => "mouse-pan",
        Tool::Brush | Tool::Eraser | Tool::Line => {
            let words = Plan::of(state, state.focus.tool != Tool::Eraser).words(said, &state.document);
            return said.with("tools-width", &[("words", words.into())]);
        }
        Tool::Area => return area("mouse-area"),
        Tool::Polygon => return area("mouse-polygon"),
        Tool::Lasso => return area("mouse-lasso"),
        Tool::Rectangle if empty => "mouse-rectangle-first",
        Tool::Band if empty => "mouse-band-first",
        Tool::Rectangle => "mouse-rectangle",
        Tool::Band => "mouse-band",
    };
    said.text(id).into()
}
