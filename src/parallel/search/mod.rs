//! The search for an assignment of rows to ranks: lines of rows cut into windows on a coarse grid, improved there and
//! then on the fine one.
//!
//! Invariant: deterministic; the ranks' numbers of rows differ by at most one. Must not know tokens, bytes or
//! milliseconds.

mod bisect;
mod lines;
mod refine;
mod state;
mod work;

#[cfg(test)]
mod tests;

pub(crate) use bisect::sizes;
pub(crate) use work::{KindWork, Work, merged};

use rayon::prelude::*;
use state::State;

/// Rows of the coarse grid, at most.
const COARSE_ROWS: usize = 256;
/// Loads up to these multiples of the mean count as balanced: on the coarse grid and on the fine one.
const COARSE_LEVEL: f64 = 1.01;
const LEVEL: f64 = 1.006;
/// What imbalance weighs in the choice of first assignments, which swaps level later.
const PER_IMBALANCE: f64 = 1.0;

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Random orders of pieces.
    shuffles: usize,
    /// First assignments that are improved on the coarse grid.
    first: usize,
    /// Those of them that are looked at on the fine grid.
    kept: usize,
    /// Those of them, of a line and of what was known that are improved on the fine grid.
    fine: usize,
    /// Passes over all pairs of ranks that cut their rows anew.
    sweeps: usize,
    /// Whether the best line is cut again on the fine grid.
    again: bool,
    /// Swaps of each improvement on the coarse grid and on the fine one.
    swaps: (usize, usize),
}

impl Effort {
    /// For a new sequence.
    pub(crate) const WHOLE: Effort =
        Effort { shuffles: 12, first: 3, kept: 2, fine: 2, sweeps: 2, again: true, swaps: (60, 40) };
    /// With an assignment at hand that was good for another mask: it takes the place of cutting again, which takes longest.
    pub(crate) const QUICK: Effort =
        Effort { shuffles: 0, first: 1, kept: 1, fine: 2, sweeps: 0, again: false, swaps: (16, 16) };
}

/// The rank of each row. `before` is an assignment of the same rows that may still be good.
pub(crate) fn search(work: &Work, ranks: usize, effort: Effort, before: Option<&[u16]>) -> Vec<u16> {
    if ranks < 2 || work.rows < 2 {
        return bisect::bisect(work, (0..work.rows as u32).collect(), &sizes(work.rows, ranks));
    }
    let mut starts = starts(work, ranks, effort);
    starts.extend(before.map(|owner| Start::Known(owner.to_vec())));
    let begin = |(n, start): (usize, Start)| {
        let mut state = start.state(work, ranks);
        refine::resize(&mut state, &sizes(work.rows, ranks));
        (promise(&state), n, state)
    };
    let mut states: Vec<(f64, usize, State<'_>)> = starts.into_par_iter().enumerate().map(begin).collect();
    keep_best(&mut states, effort.fine);
    let improved: Vec<(f64, State<'_>)> = states
        .into_par_iter()
        .map(|(_, _, mut state)| {
            refine::refine(&mut state, effort.swaps.1, LEVEL);
            (refine::objective(&state, LEVEL), state)
        })
        .collect();
    // the first of equals, whichever thread was faster
    let best = improved.into_iter().reduce(|a, b| if b.0 < a.0 { b } else { a });
    best.map(|(_, state)| state.owner).unwrap_or_default()
}

/// Where an improvement on the fine grid begins.
enum Start {
    /// This assignment.
    Known(Vec<u16>),
    /// This line, cut on the fine grid.
    Line(Vec<u32>),
}

impl Start {
    fn state(self, work: &Work, ranks: usize) -> State<'_> {
        let owner = match self {
            Start::Known(owner) => owner,
            Start::Line(line) => bisect::bisect(work, line, &sizes(work.rows, ranks)),
        };
        State::new(work, ranks, owner)
    }
}

/// The best assignments of the coarse grid, and the line of the best to be cut again on the fine one.
fn starts(work: &Work, ranks: usize, effort: Effort) -> Vec<Start> {
    let factor = work.rows.div_ceil(COARSE_ROWS);
    let coarse = work.coarse(factor);
    let lines = lines::lines(&coarse, effort.shuffles);
    let cut = |(n, line): (usize, &Vec<u32>)| {
        let owner = bisect::bisect(&coarse, line.clone(), &sizes(coarse.rows, ranks));
        let state = State::new(&coarse, ranks, owner);
        (promise(&state), n, state)
    };
    let mut found: Vec<(f64, usize, State<'_>)> = lines.par_iter().enumerate().map(cut).collect();
    keep_best(&mut found, effort.first);
    found.par_iter_mut().for_each(|(value, _, state)| {
        bisect::recut(state, COARSE_LEVEL, effort.sweeps);
        refine::refine(state, effort.swaps.0, COARSE_LEVEL);
        *value = refine::objective(state, COARSE_LEVEL);
    });
    keep_best(&mut found, effort.kept);
    let fine = |chunk: &u32| (*chunk as usize * factor) as u32..((*chunk as usize + 1) * factor).min(work.rows) as u32;
    let best = found.first().filter(|_| effort.again);
    let line = best.map(|(_, n, _)| Start::Line(lines[*n].iter().flat_map(fine).collect()));
    let known = |state: &State<'_>| (0..work.rows).map(|row| state.owner[row / factor]).collect();
    found.iter().map(|(_, _, state)| Start::Known(known(state))).chain(line).collect()
}

/// What an assignment may become: swaps level its loads.
fn promise(state: &State<'_>) -> f64 {
    state.share() + PER_IMBALANCE * (state.imbalance() - LEVEL).max(0.0)
}

fn keep_best(found: &mut Vec<(f64, usize, State<'_>)>, count: usize) {
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    found.truncate(count);
}
