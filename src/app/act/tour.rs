//! The tour: each step does what a user would do, on a document of its own.
//!
//! Invariant: the user's documents, their undo and the window's habits are the same after it as before. Must not know how it is drawn.

use super::{act, canvas, documents};
use crate::app::action::Action;
use crate::app::canvas::{CanvasEvent, Picture, Tool};
use crate::app::command::Command;
use crate::app::region::Region;
use crate::app::session::JobKind;
use crate::app::state::State;
use crate::app::tour::{STEPS, Show, Tour};
use crate::app::view::View;
use crate::base::{BlockSize, Device};
use crate::document::edit::Edit;
use crate::document::library;
use crate::document::model::{ArgValue, MaskContent, Stroke};

/// The preset that it begins with, and its slider.
const PRESET: &str = "sliding_window";
const SLIDER: &str = "window";
/// Pieces of the stroke.
const PIECES: usize = 24;

/// Begins in a tab of its own.
pub(super) fn start(state: &mut State) {
    let Some(Ok(mut document)) = library::preset(PRESET).map(|preset| preset.document()) else { return };
    if state.tour.is_some() {
        return;
    }
    document.name = "Tour".into();
    let (home, view, first_steps) = (state.id, state.view.clone(), state.first_steps);
    documents::open(state, document);
    let (own, seen) = (state.id, state.now);
    state.dialog = None;
    let tour = Tour { played: 0.0, seen, paused: false, begun: 0, drawn: 0, own, home, view, first_steps };
    state.tour = Some(tour);
}

/// Plays on; called in each frame.
pub(super) fn follow(state: &mut State) {
    let Some(tour) = &mut state.tour else { return };
    let (over, elsewhere) = (tour.tick(state.now), tour.own != state.id);
    if over || elsewhere {
        return end(state);
    }
    let (step, share) = (tour.step(), tour.share());
    let new = tour.begun <= step;
    tour.begun = step + 1;
    let show = STEPS[step].show;
    if new {
        begin(state, show);
    }
    match show {
        Show::Stroke => draw(state, share),
        Show::Slider => slide(state, share),
        _ => {}
    }
}

fn begin(state: &mut State, show: Show) {
    let mut command = |command| act(state, Action::Command(command));
    match show {
        Show::Preset => {
            command(Command::ShowDesign);
            command(Command::FitMask);
            state.focus.picture = Picture::Blocks;
        }
        Show::Stroke => {
            state.focus.tool = Tool::Brush;
            canvas::event(state, CanvasEvent::StrokeBegan);
        }
        Show::Blocks => {
            state.focus.tool = Tool::Area;
            if let Ok(lengths) = state.document.axes.lengths() {
                let part = |len: usize, [from, to]: [usize; 2]| [len * from / 16, len * to / 16];
                let region = Region::rectangle([part(lengths.q_len, [9, 14]), part(lengths.kv_len, [0, 5])]);
                canvas::event(state, CanvasEvent::AreaSelected(region));
            }
        }
        Show::Slider => {
            (state.focus.area, state.focus.tool) = (None, Tool::Pan);
            // its slider is in sight
            state.focus.layer = state.document.layers.first().map(|layer| layer.id);
        }
        Show::Race => {
            command(Command::ShowRace);
            let gpu = state
                .session
                .worker
                .as_ref()
                .is_some_and(|w| w.devices.iter().any(|d| d.unusable.is_none() && d.device != Device::Cpu));
            if gpu && state.can(Command::Run) {
                act(state, Action::Command(Command::Run));
            }
        }
        Show::Export => {
            stop_race(state);
            act(state, Action::Command(Command::ShowExport));
        }
        Show::End => act(state, Action::Command(Command::ShowDesign)),
    }
}

/// The stroke so far: a diagonal of blocks far from the window.
fn draw(state: &mut State, share: f64) {
    let Ok(lengths) = state.document.axes.lengths() else { return };
    let cell = state.painting_cell();
    let to = ((share * 1.4).min(1.0) * PIECES as f64) as usize;
    let Some(tour) = &mut state.tour else { return };
    let pieces = tour.drawn..to;
    tour.drawn = tour.drawn.max(to);
    let rects: Vec<[u32; 4]> = pieces.map(|n| piece(n, cell, [lengths.q_len, lengths.kv_len])).collect();
    if !rects.is_empty() {
        canvas::event(state, CanvasEvent::Stroke(Stroke { paint: true, rects }));
    }
    if to == PIECES && state.focus.drawing {
        canvas::event(state, CanvasEvent::StrokeEnded);
    }
}

/// A piece of the stroke in painted cells: from (10/16, 1/16) to (13/16, 4/16) of the mask, one sixteenth wide.
fn piece(n: usize, cell: BlockSize, [q_len, kv_len]: [usize; 2]) -> [u32; 4] {
    let side = |len: usize, cell: usize, from: usize| {
        let at = len * from / 16 + len * 3 * n / (16 * PIECES);
        let end = (at + len / 16).min(len);
        [(at / cell) as u32, end.div_ceil(cell) as u32]
    };
    let (q, kv) = (side(q_len, cell.q, 10), side(kv_len, cell.kv, 1));
    [q[0], q[1], kv[0], kv[1]]
}

/// The window from 1024 down to 256 and up to 2048, and back.
fn slide(state: &mut State, share: f64) {
    let wave = (share * std::f64::consts::TAU).sin();
    let value = (1024.0 * 2.0_f64.powf(if wave < 0.0 { wave * 2.0 } else { wave })) as i64 / 64 * 64;
    let Some(layer) = state.document.layers.first().map(|layer| layer.id) else { return };
    let known = match state.document.layer(layer).map(|layer| &layer.content) {
        Some(MaskContent::Pattern(code)) => code.args.get(SLIDER).cloned(),
        _ => return,
    };
    let wanted = ArgValue::Int(value);
    if known.as_ref() != Some(&wanted) {
        state.edit(Edit::SetArg(layer, SLIDER.into(), Some(wanted)));
    }
}

/// A race of the tour's own document ends with it.
fn stop_race(state: &mut State) {
    if state.session.has(JobKind::Run) && state.session.race.is_some() && state.session.is_racing() {
        act(state, Action::Command(Command::Cancel));
    }
}

/// Ends it: its tab closes, and everything is as it was.
pub(in crate::app) fn end(state: &mut State) {
    let Some(tour) = state.tour.take() else { return };
    if tour.own == state.id {
        if state.focus.drawing {
            canvas::event(state, CanvasEvent::StrokeEnded);
        }
        if tour.begun > STEPS.iter().position(|step| step.show == Show::Race).unwrap_or(0) {
            stop_race(state);
        }
        // nobody's work: it is not kept among the unsaved documents
        state.saved = state.revision;
        let from = state.tab;
        documents::close(state);
        let home = state.tabs().iter().position(|tab| tab.id == tour.home);
        documents::show(state, home.unwrap_or(from.saturating_sub(1)));
    } else if let Some(at) = state.tabs().iter().position(|tab| tab.id == tour.own) {
        // a file that was dropped meanwhile is worked on: the tour's tab goes, whatever is in it
        state.parked.retain(|tab| tab.id != tour.own);
        state.tab -= usize::from(at < state.tab);
    }
    let View { theme, scale, .. } = state.view.clone();
    state.view = View { theme, scale, ..tour.view };
    state.first_steps = tour.first_steps;
}
