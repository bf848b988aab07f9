//! Which panels are shown, how large everything is, and presentations.
//!
//! Invariant: a presentation ends as it began. Must not know how panels are placed.

use crate::app::state::State;
use crate::app::theme::ThemeChoice;
use crate::app::workspace::Workspace;

/// Size of everything on a projector.
const PRESENT: f32 = 1.46;

/// The layers: where there is no room beside the mask they are part of what lies over it.
pub(super) fn toggle_layers(state: &mut State) {
    let view = &mut state.view;
    match state.given_up.panels && view.workspace.has_layers() {
        true => (view.left, view.drawer) = (true, !view.drawer),
        false => {
            view.left = !view.left;
            view.drawer |= view.left && view.workspace.has_layers();
        }
    }
}

/// The page at the side: the same.
pub(super) fn toggle_page(state: &mut State) {
    let view = &mut state.view;
    match state.given_up.panels {
        true => (view.right, view.drawer) = (true, !view.drawer),
        false => (view.right, view.drawer) = (!view.right, !view.right),
    }
}

/// The mask without panels, or with both.
pub(super) fn toggle_both(state: &mut State) {
    let view = &mut state.view;
    let shown = match state.given_up.panels {
        true => view.drawer,
        false => view.left || view.right,
    };
    (view.left, view.right, view.drawer) = (!shown, !shown, !shown);
}

/// For a projector: large type, light, the mask alone. Again: everything as it was.
pub(super) fn present(state: &mut State) {
    let view = &mut state.view;
    match state.before_present.take() {
        Some((left, right, theme, scale)) => {
            (view.left, view.right, view.theme, view.scale) = (left, right, theme, scale)
        }
        None => {
            state.before_present = Some((view.left, view.right, view.theme, view.scale));
            // a lesson is what one shows
            let page = view.is_at(Workspace::Learn);
            (view.left, view.right, view.theme, view.scale) = (false, page, ThemeChoice::Light, PRESENT);
            state.first_steps = false;
            state.session.canvas.take_focus();
            state.done(state.words().text("done-presentation"));
        }
    }
}

/// Steps that come back to 1 exactly, between half and three times the size.
pub(super) fn scale_text(state: &mut State, by: f32) {
    let steps = (state.view.scale.ln() / 1.1_f32.ln()).round() + by.ln().signum();
    state.view.scale = 1.1_f32.powf(steps).clamp(0.5, 3.0);
}
