//! Scores and probabilities on the canvas: the requested map of the last race, and the message if there is none.
//!
//! Invariant: numbers are drawn only over the raced mask, complete and unchanged since; other cases get a message. Must
//! not know how maps are computed or drawn.

use super::canvas::heat::HeatData;
use super::session::{MapPicture, Shown};
use super::state::State;
use crate::words::Words;
use crate::worker::protocol::{InputSource, MapKind, MapRequest};
use std::sync::Arc;

/// Requested pixels along each side.
const PIXELS: usize = 512;
/// A requested part begins at a multiple of its length over this, so that small moves request nothing.
const STEPS: usize = 4;

/// The numbers to draw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// The numbers there are, of the race that is shown.
    pub data: Option<Arc<HeatData>>,
    pub words: String,
    /// To be requested, unless requested before.
    pub ask: Option<(u64, MapRequest)>,
}

/// The numbers that can be drawn now. `seen`: [q0, q1, kv0, kv1] in tokens.
pub(crate) fn wanted(state: &State, seen: [f64; 4]) -> Wanted {
    let said = state.words();
    let say = |words: &str| Wanted { words: words.into(), ..Wanted::default() };
    let Some(race) = &state.session.race else { return say(said.text("numbers-run-first")) };
    let Some((request, _)) = &race.request else { return say(said.text("numbers-recorded")) };
    if race.report.is_none() {
        return say(said.text("numbers-follow"));
    }
    if !race.is_whole() {
        return say(said.text("numbers-copy"));
    }
    let lengths = state.session.shown.as_ref().and_then(|Shown { built, .. }| built.lengths);
    let problem = &request.problem;
    if race.stale || lengths.is_none_or(|l| [l.q_len, l.kv_len] != [problem.q_len, problem.kv_len]) {
        return say(said.text("numbers-changed"));
    }
    let (b, h) = (state.focus.b.min(problem.batch - 1), state.focus.h.min(problem.heads - 1));
    let row = state.focus.patches.then(|| state.focus.pinned[0].min(problem.q_len - 1));
    let (q, kv) = match row {
        Some(q) => ([q, q + 1], [0, problem.kv_len]),
        None => (part([seen[0], seen[1]], problem.q_len), part([seen[2], seen[3]], problem.kv_len)),
    };
    // patches are not summed up
    let most = if row.is_some() { usize::MAX } else { PIXELS };
    let pixels = |[from, to]: [usize; 2]| most.min(to - from);
    let request = MapRequest { b, h, q, kv, height: pixels(q), width: pixels(kv), kind: state.focus.map };
    let session = &state.session;
    let fits = |of: &MapRequest| (of.b, of.h, of.kind) == (b, h, state.focus.map);
    let known = session.numbers.as_ref().filter(|(of, known, _)| *of == race.id && fits(known));
    let data = known.map(|(.., data)| data.clone());
    if known.is_some_and(|(_, known, _)| *known == request) {
        return Wanted { data, ..Wanted::default() };
    }
    let ask = Some((race.id, request));
    if let Some(why) = session.numbers_error.as_ref().filter(|_| session.numbers_asked == ask) {
        return Wanted { data, words: said.reported(&why.code, &why.message), ask: None };
    }
    if session.on_worker != Some(race.id) {
        return Wanted { data, words: said.text("map-gone").into(), ask: None };
    }
    let words = if data.is_some() { "" } else { said.text("numbers-computing") };
    Wanted { data, words: words.into(), ask }
}

/// The tokens to request: the visible ones and a margin, or a whole side if it is not much longer.
pub(crate) fn part([from, to]: [f64; 2], len: usize) -> [usize; 2] {
    let (from, to) = ((from.max(0.0) as usize).min(len - 1), (to.ceil().max(1.0) as usize).min(len));
    let unit = ((to.saturating_sub(from)).max(1).next_power_of_two() / STEPS).max(1);
    let (from, to) = (from / unit * unit, to.div_ceil(unit).saturating_mul(unit).min(len));
    if 2 * (to - from) >= len { [0, len] } else { [from, to] }
}

/// A map as numbers with their tokens, and whose they are.
pub(crate) fn data(said: &'static Words, map: &MapPicture, inputs: &InputSource) -> HeatData {
    let tokens = |[from, to]: [usize; 2]| to - from;
    let pooled = tokens(map.request.q) > map.height || tokens(map.request.kv) > map.width;
    let quantity = match (map.request.kind, pooled) {
        (MapKind::Probabilities, false) => said.text("numbers-probability"),
        (MapKind::Probabilities, true) => said.text("numbers-probability-sum"),
        (MapKind::Scores, false) => said.text("numbers-score"),
        (MapKind::Scores, true) => said.text("numbers-score-mean"),
    };
    HeatData {
        rows: map.height,
        cols: map.width,
        values: map.pixels.as_slice().into(),
        q: map.request.q,
        kv: map.request.kv,
        quantity: quantity.into(),
        source: inputs.provenance(),
        masked_is_zero: map.request.kind == MapKind::Probabilities,
        revision: map.number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_holds_what_is_seen_and_stays_while_one_moves_a_little() {
        assert_eq!(part([0.0, 8192.0], 8192), [0, 8192]);
        assert_eq!(part([10.0, 7000.0], 8192), [0, 8192]);
        for (from, to) in [(100.2, 190.7), (8100.0, 8192.0), (0.0, 1.0), (4095.5, 4096.5)] {
            let [a, b] = part([from, to], 8192);
            assert!(a as f64 <= from && b as f64 >= to && b - a < 4 * ((to - from) as usize + 2), "{a}..{b}");
        }
        assert_eq!(part([100.0, 190.0], 8192), part([101.0, 191.0], 8192));
        assert_eq!(part([0.0, 1.0], 1), [0, 1]);
    }
}
