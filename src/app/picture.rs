//! The picture in the middle: what the canvas is given of the state, and what floats over it.
//!
//! Invariant: the canvas shows the newest document that has compiled, or says why there is none. Must not know how anything is drawn.

use super::action::{Action, Actions};
use super::canvas::{Against, Numbers, Picture, Scene, SceneLayer, Walk};
use super::language::say_with;
use super::session::{JobKind, Shown};
use super::state::State;
use super::tabs::QualityPage;
use super::workspace::Workspace;
use super::{panels, tabs, widgets};
use egui::{Frame, Ui};

/// The picture: of the newest compiled document, or the state before an error.
pub(super) fn show(ui: &mut Ui, state: &mut State, quality: &QualityPage, actions: &mut Actions) {
    let Some(newest) = state.session.built.clone() else {
        ui.centered_and_justified(|ui| ui.spinner());
        return;
    };
    let Some(Shown { built, before }) = state.session.shown.clone() else {
        // a layer that has never compiled cannot be left out: the rest is another mask
        Frame::new().inner_margin(24.0).show(ui, |ui| {
            let (broken, _) = newest.broken();
            ui.strong(say_with(ui, "frame-no-picture", &[("layers", broken.join(", ").into())]));
            let errors = newest.diagnostics().into_iter().map(|(_, d)| d).filter(|d| d.is_error());
            errors.for_each(|d| widgets::diagnostic_below(ui, d));
        });
        return;
    };
    let Some(lengths) = built.lengths else { return };
    let settings = &built.document.settings;
    let h = state.focus.h.min(settings.heads.saturating_sub(1));
    let layers = built.document.layers.iter().zip(&built.compiled.layers).filter(|(l, _)| l.is_for(h));
    let layers = layers.filter_map(|(l, made)| {
        Some(SceneLayer { id: l.id, name: &l.name, combine: l.combine, mask: made.result.as_ref()? })
    });
    let walked = tabs::shown_trace(ui, state).filter(|_| state.view.is_at(Workspace::Learn));
    let tiles: Vec<usize> = walked.iter().flat_map(|(trace, _)| trace.tiles.iter().map(|tile| tile.kv_block)).collect();
    let walk = walked.as_ref().map(|(trace, step)| Walk { q_block: trace.q_block, tiles: &tiles, step: *step });
    let wanted = match state.focus.picture {
        Picture::Map => super::numbers::wanted(state, state.session.canvas.seen()),
        Picture::Loss => quality.numbers(state),
        _ => Default::default(),
    };
    // one question at a time: the next follows when this one is answered
    let free = !state.session.has(JobKind::Map) && !state.session.has(JobKind::Run);
    let new = wanted.ask.clone().filter(|_| free && wanted.ask != state.session.numbers_asked);
    if let Some((race, request)) = new {
        actions.push(Action::RequestNumbers { race, request });
    }
    let captured = state.session.captured.clone();
    let against = state.session.compared.as_ref().map(|other| state.name_of(other));
    let numbers = Numbers { data: wanted.data.as_deref(), words: &wanted.words, log: state.focus.map_log };
    let scene = Scene {
        said: state.words(),
        document: state.id,
        walk,
        layers: layers.collect(),
        mask: built.compiled.mask.clone(),
        score: built.compiled.score.clone(),
        lengths,
        block_size: settings.block_size,
        q_axis: &built.document.axes.q,
        kv_axis: built.document.axes.kv(),
        texts: captured.as_ref().map_or([None, None], |captured| captured.texts(lengths)),
        batch: settings.batch,
        heads: settings.heads,
        b: state.focus.b.min(settings.batch.saturating_sub(1)),
        h,
        picked: state.focus.picked.as_ref(),
        revision: state.session.picture,
        tool: state.focus.tool,
        painted_cell: Some(state.painting_cell()),
        at: state.focus.pinned,
        grid: captured.as_ref().and_then(|captured| captured.grid(lengths)),
        pinned: state.focus.is_pinned.then_some(state.focus.pinned),
        selected: state.selected_rectangle(),
        area: state.focus.area.as_ref().map(|area| &area.region),
        picture: state.focus.picture,
        map: Some(numbers),
        loss: quality.rows(state),
        against: state.session.compared.as_ref().map(|other| Against {
            number: other.number,
            name: against.as_deref().unwrap_or_default(),
            mask: &other.built.compiled.mask,
            lengths: other.lengths,
        }),
        before: (!before.is_empty())
            .then(|| state.words().with("frame-before", &[("layers", before.join(", ").into())])),
    };
    let place = ui.max_rect();
    if state.focus.patches {
        let events = state.session.canvas.show_patches(ui, &scene);
        events.into_iter().for_each(|event| actions.push(Action::Canvas(event)));
        return;
    }
    let events = state.session.canvas.show(ui, &scene);
    let listed = panels::differing::show(ui, place, state, actions);
    panels::area::show(ui, place, listed, state, actions);
    events.into_iter().for_each(|event| actions.push(Action::Canvas(event)));
}
