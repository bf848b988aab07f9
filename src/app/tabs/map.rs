//! The attention map of a head: scores or probabilities of the last run's inputs, with values under the mouse.
//!
//! Invariant: a map is drawn only if it is the requested one, of the shown race; a stale one is marked. Must not know
//! how maps are computed.

use crate::app::action::{Action, Actions};
use crate::app::canvas::heat::{HeatData, HeatMap};
use crate::app::command::Command;
use crate::app::language::{say, say_with};
use crate::app::numbers;
use crate::app::origins;
use crate::app::session::JobKind;
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{command_button, whole};
use crate::problem::ProblemSpec;
use crate::worker::protocol::{InputSource, MapKind, MapRequest};
use egui::{RichText, Ui};

/// Requested pixels along each side.
const PIXELS: usize = 512;
/// Tokens along each side of a closer look.
const CLOSER: usize = 256;

/// The page's state between frames.
pub(crate) struct MapCache {
    heat: HeatMap,
    data: Option<HeatData>,
    kind: MapKind,
    /// Shown part, rows and columns in tokens; None: all of it.
    part: Option<([usize; 2], [usize; 2])>,
    /// The race that it is a part of.
    race: u64,
}

impl Default for MapCache {
    fn default() -> Self {
        Self { heat: HeatMap::default(), data: None, kind: MapKind::Probabilities, part: None, race: 0 }
    }
}

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, cache: &mut MapCache, actions: &mut Actions) {
    let Some(race) = &state.session.race else {
        return nothing(ui, state, actions, say(ui, "map-run-first"));
    };
    let Some((request, _)) = &race.request else {
        return nothing(ui, state, actions, say(ui, "map-recorded"));
    };
    if race.report.is_none() {
        ui.weak(say(ui, "map-follows"));
        return;
    }
    if cache.race != race.id {
        // of other tokens, perhaps of another document
        *cache = MapCache { race: race.id, kind: cache.kind, ..MapCache::default() };
    }
    controls(ui, state, cache, &request.problem, actions);
    if let Some(copy) = &race.copy {
        ui.weak(say_with(ui, "map-of-copy", &[("copy", (&*copy.words).into())]));
    }
    whose(ui, state, &request.inputs, actions);
    let wanted = wanted(state, cache, &request.problem);
    let asked = state.session.map_asked.as_ref() == Some(&(race.id, wanted.clone()));
    let there = state.session.map.as_ref().filter(|map| map.race == race.id && map.request == wanted);
    if let Some(map) = there {
        if cache.data.as_ref().is_none_or(|data| data.revision != map.number) {
            cache.data = Some(numbers::data(state.words(), map, &request.inputs));
        }
        if let Some(data) = &cache.data {
            cache.heat.show(ui, data);
        }
        return;
    }
    if let Some(why) = state.session.map_error.as_ref().filter(|_| asked) {
        super::reported(ui, why);
        return gone(ui, state, actions);
    }
    if state.session.on_worker != Some(race.id) {
        return gone(ui, state, actions);
    }
    if !asked {
        actions.push(Action::RequestMap { race: race.id, request: wanted });
    }
    ui.horizontal(|ui| {
        ui.spinner();
        ui.label(say(ui, "map-computing"));
    });
}

/// Says whose q and k the map is of, and offers those of the open capture.
fn whose(ui: &mut Ui, state: &State, inputs: &InputSource, actions: &mut Actions) {
    let from = inputs.provenance();
    ui.horizontal_wrapped(|ui| {
        let words = RichText::new(say_with(ui, "map-of", &[("from", origins::whole(ui, &from).into())]));
        match from.is_random() {
            true => ui.label(words.color(palette(ui.visuals()).warning)),
            false => ui.weak(words),
        };
        let captured = state.session.captured.as_ref().and_then(|captured| {
            let lengths = state.document.axes.lengths().ok()?;
            captured.inputs(&state.document.settings, lengths)
        });
        let other = captured.filter(|own| !matches!(inputs, InputSource::File { path, .. } if *path == own.path));
        if let Some(own) = other {
            let run = ui.button(say(ui, "map-on-capture"));
            if run.on_hover_text(say(ui, "map-on-capture.tip")).clicked() {
                actions.push(Action::SetInputs(Some(own)));
                actions.command(Command::Run);
            }
        }
    });
}

/// The inputs are not there any more.
fn gone(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.weak(say(ui, "map-gone"));
    command_button(ui, Command::Run, state.can(Command::Run), actions);
}

fn nothing(ui: &mut Ui, state: &State, actions: &mut Actions, words: &str) {
    ui.add_space(8.0);
    ui.label(words);
    command_button(ui, Command::Run, state.can(Command::Run), actions);
}

/// The map to be shown: of the head in focus, within the lengths of the run.
fn wanted(state: &State, cache: &MapCache, problem: &ProblemSpec) -> MapRequest {
    let (b, h) = (state.focus.b.min(problem.batch - 1), state.focus.h.min(problem.heads - 1));
    let (q, kv) = cache.part.unwrap_or(([0, problem.q_len], [0, problem.kv_len]));
    let (q, kv) = (within(q, problem.q_len), within(kv, problem.kv_len));
    let pixels = |[from, to]: [usize; 2]| PIXELS.min(to - from);
    MapRequest { b, h, q, kv, height: pixels(q), width: pixels(kv), kind: cache.kind }
}

fn within([from, to]: [usize; 2], len: usize) -> [usize; 2] {
    let from = from.min(len - 1);
    [from, to.clamp(from + 1, len)]
}

fn controls(ui: &mut Ui, state: &State, cache: &mut MapCache, problem: &ProblemSpec, actions: &mut Actions) {
    ui.horizontal_wrapped(|ui| {
        for (kind, name, words) in [
            (MapKind::Probabilities, say(ui, "map-probabilities"), say(ui, "map-probabilities.tip")),
            (MapKind::Scores, say(ui, "map-scores"), say(ui, "map-scores.tip")),
        ] {
            ui.selectable_value(&mut cache.kind, kind, name).on_hover_text(words);
        }
        ui.separator();
        let (b, h) = (state.focus.b, state.focus.h);
        if problem.batch > 1 {
            ui.weak(say(ui, "tools-batch"));
            if let Some(b) = whole(ui, say(ui, "map-batch"), b, 0..=problem.batch - 1) {
                actions.push(Action::SetHead { b, h });
            }
        }
        ui.weak(say(ui, "tools-head"));
        if let Some(h) = whole(ui, say(ui, "map-head"), h, 0..=problem.heads - 1) {
            actions.push(Action::SetHead { b, h });
        }
        ui.separator();
        part(ui, state, cache, problem);
        if state.session.has(JobKind::Map) {
            ui.spinner();
        }
        if state.session.race.as_ref().is_some_and(|r| r.stale) {
            let colours = palette(ui.visuals());
            ui.label(RichText::new(say(ui, "map-stale")).strong().color(colours.warning))
                .on_hover_text(say(ui, "map-stale.tip"));
        }
    });
}

/// Which tokens are shown.
fn part(ui: &mut Ui, state: &State, cache: &mut MapCache, problem: &ProblemSpec) {
    let around = |at: usize, len: usize| {
        let from = at.min(len - 1).saturating_sub(CLOSER / 2).min(len.saturating_sub(CLOSER));
        [from, (from + CLOSER).min(len)]
    };
    if problem.q_len.max(problem.kv_len) > CLOSER {
        let [q, kv] = state.focus.pinned;
        let words = say_with(ui, "map-closer-tip", &[("side", CLOSER.into()), ("q", q.into()), ("kv", kv.into())]);
        if ui.button(say(ui, "map-closer")).on_hover_text(words).clicked() {
            cache.part = Some((around(q, problem.q_len), around(kv, problem.kv_len)));
        }
    }
    if let Some((q, kv)) = cache.part {
        ui.weak(format!("q {}..{}, kv {}..{}", q[0], q[1], kv[0], kv[1]));
        if ui.button(say(ui, "map-whole")).clicked() {
            cache.part = None;
        }
    }
}
