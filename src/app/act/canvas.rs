//! The effect of drawing on the document.
//!
//! Invariant: a stroke is one undo point, including layers that it creates; Escape reverts that point only. Must not
//! know how the canvas draws.

use super::layers;
use crate::app::area::{Area, Figures};
use crate::app::canvas::CanvasEvent;
use crate::app::gesture::{Gesture, Rest};
use crate::app::region::Region;
use crate::app::state::State;
use crate::app::workspace::Aside;
use crate::base::BlockSize;
use crate::base::words::grouped;
use crate::document::edit::Edit;
use crate::document::model::*;
use crate::document::title::Title;

/// Counts the selected area, if its figures are not those of the newest compiled design.
pub(super) fn count_area(state: &mut State) {
    let of = state.area_of();
    let Some(area) = state.focus.area.as_mut() else { return };
    let Some(built) = state.session.built.clone() else { return };
    let Some(lengths) = built.lengths else { return };
    let Some(region) = area.region.within(lengths) else {
        // the axes have become shorter
        state.focus.area = None;
        return;
    };
    area.region = region.clone();
    let counting = state.session.counting_area.as_ref().is_some_and(|(known, of_it)| *known == region && *of_it == of);
    if area.figures.as_ref().is_some_and(|figures| figures.of == of) || counting {
        return;
    }
    state.session.counting_area = Some((region.clone(), of));
    state.session.errands.area(built, lengths, region, state.session.heads.clone(), of);
}

/// Keeps or removes the cells of the selected area, as one stroke.
pub(super) fn fill_area(state: &mut State, keep: bool) {
    let (Some(area), Ok(lengths)) = (&state.focus.area, state.document.axes.lengths()) else { return };
    let Some(region) = area.region.within(lengths) else { return };
    // the painted cells there are, unless its edges lie between them
    let cell = region.cell(state.painting_cell(), lengths);
    let stroke = Stroke { paint: keep, rects: region.in_cells(cell) };
    event(state, CanvasEvent::StrokeBegan);
    extend(state, &stroke, cell);
    event(state, CanvasEvent::StrokeEnded);
}

/// An area was counted; another may have been selected since.
pub(super) fn area_counted(state: &mut State, region: &Region, figures: Figures) {
    if state.session.counting_area.as_ref().is_some_and(|(known, of)| known == region && *of == figures.of) {
        state.session.counting_area = None;
    }
    if let Some(area) = state.focus.area.as_mut().filter(|area| area.region == *region) {
        area.figures = Some(figures);
    }
}

/// Carries an event of the canvas out.
pub(super) fn event(state: &mut State, event: CanvasEvent) {
    match event {
        CanvasEvent::StrokeBegan => {
            // with the keyboard no pointer went down
            state.history.pointer_down();
            (state.focus.drawing, state.focus.stroke) = (true, None);
        }
        CanvasEvent::Stroke(stroke) => {
            let cell = state.painting_cell();
            extend(state, &stroke, cell);
        }
        CanvasEvent::StrokeEnded => {
            (state.focus.drawing, state.focus.stroke) = (false, None);
            state.history.pointer_up();
        }
        CanvasEvent::StrokeCancelled => cancel(state),
        CanvasEvent::RectangleDrawn { q, kv } => {
            begins(state, "done-begins-drawn");
            layers::add_mask(state, "Rectangle", MaskContent::Rectangle { q, kv });
        }
        CanvasEvent::AreaSelected(region) => {
            state.focus.area = Some(Area { region, figures: None });
            count_area(state);
        }
        CanvasEvent::Reshaped { q, kv } => {
            if let Some(id) = state.focus.layer.filter(|_| state.selected_rectangle().is_some()) {
                state.edit(Edit::SetContent(id, Box::new(MaskContent::Rectangle { q, kv })));
            }
        }
        CanvasEvent::BandDrawn { lo, hi } => {
            begins(state, "done-begins-drawn");
            layers::add_mask(state, "Band", MaskContent::Band { lo: Some(lo), hi: Some(hi) });
        }
        CanvasEvent::Hovered(cell) => {
            state.focus.hovered = cell;
            if let Some(cell) = cell.filter(|_| !state.focus.is_pinned) {
                state.focus.pinned = cell;
            }
        }
        CanvasEvent::Clicked(cell) => (state.focus.pinned, state.focus.is_pinned) = (cell, true),
        CanvasEvent::Beyond { wanted, shown } => {
            let words = |[q, kv]: [usize; 2]| format!("{}, {}", grouped(q as u128), grouped(kv as u128));
            let [wanted, shown] = [wanted, shown].map(words);
            let values = [("wanted", wanted.into()), ("shown", shown.into())];
            state.done(state.words().with("done-beyond", &values));
        }
        CanvasEvent::Inspected(cell) => {
            (state.focus.pinned, state.focus.is_pinned) = (cell, true);
            state.view.show_aside(Aside::Cell);
        }
        CanvasEvent::Wished(command) => super::run_command(state, command),
        CanvasEvent::Gridded(axis) => super::set_keys_axis(state, axis),
        CanvasEvent::Selected(layer) => state.focus.layer = Some(layer),
        CanvasEvent::Picked(heads) => state.focus.picked = heads,
        CanvasEvent::Chosen { b, h } => (state.focus.b, state.focus.h) = (b, h),
    }
}

/// A mask without layers keeps everything; the first drawn layer reverses this, which is reported: the text on how.
fn begins(state: &mut State, how: &'static str) {
    if !state.document.layers.iter().any(|l| l.enabled && l.meets(state.focus.picked.as_ref())) {
        // other heads keep what they kept
        let how = if state.focus.picked.is_some() { "done-begins-heads" } else { how };
        state.done(state.words().text(how));
    }
}

fn cancel(state: &mut State) {
    (state.focus.drawing, state.focus.stroke) = (false, None);
    if let Some(step) = state.history.cancel_gesture(&mut state.document) {
        state.turned(&step);
    }
}

fn extend(state: &mut State, stroke: &Stroke, cell: BlockSize) {
    if !state.focus.drawing || stroke.rects.is_empty() {
        return;
    }
    let mut gesture = match state.focus.stroke.take() {
        Some(gesture) => gesture,
        None => start(state, stroke.paint, cell),
    };
    for (layer, paint) in gesture.plan.targets.clone() {
        draw(state, &mut gesture, layer, paint, stroke.rects.clone());
    }
    let rest = match gesture.plan.rest {
        Rest::Nothing => Vec::new(),
        Rest::Begins(_) => stroke.rects.clone(),
        Rest::Layer(_) | Rest::New(_) => gesture.left_over(&state.document, &stroke.rects),
    };
    if !rest.is_empty()
        && let Some(layer) = layer_for_rest(state, &mut gesture)
    {
        // a layer that removes cells removes the cells painted in it
        draw(state, &mut gesture, layer, true, rest);
    }
    state.focus.stroke = Some(gesture);
}

/// The stroke's first cells: its effect is decided once.
fn start(state: &mut State, keep: bool, cell: BlockSize) -> Gesture {
    let gesture = Gesture::new(state, keep, cell);
    state.history.name_gesture(if keep { Title::Paint } else { Title::Erase });
    if let Some(layer) = gesture.plan.layer().filter(|_| state.painted().is_none()) {
        state.focus.layer = Some(layer);
    }
    gesture
}

/// The layer for the remaining part of the plan's targets, created if missing.
fn layer_for_rest(state: &mut State, gesture: &mut Gesture) -> Option<u64> {
    let combine = match gesture.plan.rest {
        Rest::Layer(layer) => return Some(layer),
        Rest::New(combine) | Rest::Begins(combine) => combine,
        Rest::Nothing => return None,
    };
    if gesture.plan.keep {
        begins(state, "done-begins-painted");
    }
    let selected = state.focus.layer;
    let name = if combine == Combine::AndNot { "Erased" } else { "Painted" };
    let layer = layers::add_painted(state, name, combine, gesture.cell)?;
    // a painted layer that one works on stays the one
    if gesture.plan.targets.iter().any(|t| Some(t.0) == selected) {
        state.focus.layer = selected;
    }
    match gesture.plan.rest {
        Rest::Begins(_) => {
            gesture.plan.targets.push((layer, true));
            gesture.plan.rest = Rest::Nothing;
        }
        _ => gesture.plan.rest = Rest::Layer(layer),
    }
    Some(layer)
}

fn draw(state: &mut State, gesture: &mut Gesture, layer: u64, paint: bool, rects: Vec<[u32; 4]>) {
    let newest = match state.document.layer(layer).map(|l| &l.content) {
        Some(MaskContent::Painted(painted)) => painted.strokes.last().map(|s| s.paint),
        _ => return,
    };
    let goes_on = gesture.begun.contains(&layer) && newest == Some(paint);
    let edit = if goes_on { Edit::ExtendStroke(layer, rects) } else { Edit::AddStroke(layer, Stroke { paint, rects }) };
    if state.edit(edit) && !goes_on {
        gesture.begun.push(layer);
    }
}
