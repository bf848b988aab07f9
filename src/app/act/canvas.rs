//! What drawing on the canvas does to the document.
//!
//! Invariant: a stroke is one undo point; painting without a painted layer makes one first, in the same point. Must not
//! know how the canvas draws.

use super::layers;
use crate::app::canvas::CanvasEvent;
use crate::app::state::{State, Tab};
use crate::document::edit::Edit;
use crate::document::model::*;

/// Carries an event of the canvas out.
pub(super) fn event(state: &mut State, event: CanvasEvent) {
    match event {
        CanvasEvent::StrokeBegan => begin(state),
        CanvasEvent::Stroke(stroke) => extend(state, stroke),
        CanvasEvent::StrokeEnded => {
            state.focus.stroke = None;
            state.history.pointer_up();
        }
        CanvasEvent::StrokeCancelled => {
            state.focus.stroke = None;
            if state.history.undo_title().is_some_and(|t| matches!(t, "Paint" | "Erase") || t.starts_with("Add ")) {
                state.history.undo(&mut state.document);
                state.changed();
            }
        }
        CanvasEvent::RectangleDrawn { q, kv } => {
            layers::add_mask(state, "Rectangle", MaskContent::Rectangle { q, kv });
        }
        CanvasEvent::BandDrawn { lo, hi } => {
            layers::add_mask(state, "Band", MaskContent::Band { lo: Some(lo), hi: Some(hi) });
        }
        CanvasEvent::Hovered(cell) => {
            state.focus.hovered = cell;
            if let Some(cell) = cell {
                state.focus.pinned = cell;
            }
        }
        CanvasEvent::Clicked(cell) => {
            state.focus.pinned = cell;
            (state.view.tab, state.view.bottom) = (Tab::Cell, true);
        }
        CanvasEvent::Chosen { b, h } => (state.focus.b, state.focus.h) = (b, h),
    }
}

/// The pointer is down already; what follows is one undo point.
fn begin(state: &mut State) {
    let layer = match state.painted() {
        Some((id, _)) => Some(id),
        None => layers::add_painted(state),
    };
    (state.focus.stroke, state.focus.stroke_begun) = (layer, false);
}

fn extend(state: &mut State, stroke: Stroke) {
    let Some(id) = state.focus.stroke else { return };
    if stroke.rects.is_empty() {
        return;
    }
    let newest = match state.document.layer(id).map(|l| &l.content) {
        Some(MaskContent::Painted(painted)) => painted.strokes.last().map(|s| s.paint),
        _ => return,
    };
    let begun = state.focus.stroke_begun;
    let edit = match newest {
        Some(paint) if begun && paint == stroke.paint => Edit::ExtendStroke(id, stroke.rects),
        _ => Edit::AddStroke(id, stroke),
    };
    state.edit(edit);
    state.focus.stroke_begun = true;
}
