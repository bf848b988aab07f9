//! Shorter axes: the possible extents of every segment, and the deviation of each choice.
//!
//! Invariant: segments keep their names and order; a segment on both axes gets the same extents on both; text next to a
//! grid shrinks by the same factor as the grid. Must not know layers.

use crate::document::model::{Axes, Axis, Segment};

/// Plans that are kept, at most.
const MOST: usize = 48;
/// The largest factor by which an axis may exceed the requested length.
const SLACK: f64 = 1.3;
/// How much shorter, at most.
const SHORTEST: f64 = 8.0;

/// Shorter axes.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The copy's.
    pub axes: Axes,
    /// The document's.
    pub old: Axes,
    /// The deviation of the copy's axes, and from the requested length; 0 is best.
    pub cost: f64,
}

/// Plans for a longer side of about `tokens`, the likeliest first.
pub(super) fn plans(axes: &Axes, tokens: usize) -> Vec<Plan> {
    let longest = axes.q.len().max(axes.kv().len());
    if longest <= tokens {
        return vec![Plan { axes: axes.clone(), old: axes.clone(), cost: 0.0 }];
    }
    let mut plans: Vec<Plan> = match grid(axes) {
        Some(grid) => grids(grid, longest as f64 / tokens as f64)
            .into_iter()
            .filter_map(|(new, cost)| {
                let part = new.iter().product::<usize>() as f64 / grid.len() as f64;
                plan(axes, part, Some((grid, &new)), tokens, cost)
            })
            .collect(),
        None => divisors(longest, tokens).into_iter().filter_map(|n| plan(axes, 1.0 / n, None, tokens, 0.0)).collect(),
    };
    plans.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    plans.truncate(MOST);
    plans
}

/// Divisors of lengths without a grid: powers of two, and the whole numbers next to the requested ratio.
fn divisors(longest: usize, tokens: usize) -> Vec<f64> {
    let least = longest.div_ceil(tokens);
    let mut all = vec![(longest / tokens).max(2), least, least.next_power_of_two()];
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(|n| n as f64).collect()
}

/// The largest segment with a grid.
fn grid(axes: &Axes) -> Option<&Segment> {
    let all = axes.q.segments.iter().chain(axes.kv.iter().flat_map(|kv| &kv.segments));
    all.filter(|s| s.grid.len() > 1).max_by_key(|s| s.len())
}

fn plan(axes: &Axes, part: f64, given: Option<(&Segment, &[usize])>, tokens: usize, cost: f64) -> Option<Plan> {
    let segment = |s: &Segment| {
        let grid = match given {
            Some((of, new)) if of.grid == s.grid => new.to_vec(),
            _ => {
                let side = part.powf(1.0 / s.grid.len() as f64);
                s.grid.iter().map(|n| ((*n as f64 * side).round() as usize).max(1)).collect()
            }
        };
        Segment { name: s.name.clone(), grid }
    };
    let axis = |axis: &Axis| Axis { segments: axis.segments.iter().map(segment).collect() };
    let new = Axes { q: axis(&axes.q), kv: axes.kv.as_ref().map(axis) };
    let longest = new.q.len().max(new.kv().len()) as f64;
    let goal = tokens as f64;
    if longest > goal * SLACK || longest < goal / SHORTEST {
        return None;
    }
    let cost = cost + 0.1 * (goal / longest).ln().abs();
    Some(Plan { axes: new, old: axes.clone(), cost })
}

/// Extents for a grid that is to shrink by about `factor`, with what each costs.
fn grids(grid: &Segment, factor: f64) -> Vec<(Vec<usize>, f64)> {
    let sides: Vec<Vec<usize>> = grid.grid.iter().map(|n| extents(*n)).collect();
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for side in &sides {
        all = all.iter().flat_map(|start| side.iter().map(|n| [&start[..], &[*n]].concat())).collect();
    }
    let tokens = grid.len() as f64;
    let fits = |new: &Vec<usize>| {
        let shrunk = tokens / new.iter().product::<usize>() as f64;
        shrunk * SLACK > factor && shrunk < factor * SHORTEST
    };
    all.into_iter().filter(fits).map(|new| (new.clone(), unlike(&grid.grid, &new))).collect()
}

/// Extents that a side may shrink to: all that divide it a few times, and its halves.
fn extents(n: usize) -> Vec<usize> {
    let whole = (1..=16).filter(|by| n.is_multiple_of(*by)).map(|by| n / by);
    let halves = (1..=4).map(|by: u32| ((n as f64 / 2f64.powi(by as i32)).round() as usize).max(1));
    let mut all: Vec<usize> = whole.chain(halves).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// How much proportions change: rows and columns belong together, frames less so.
fn unlike(old: &[usize], new: &[usize]) -> f64 {
    let by: Vec<f64> = old.iter().zip(new).map(|(a, b)| (*a as f64 / *b as f64).ln()).collect();
    let n = by.len();
    let uneven = old.iter().zip(new).filter(|(a, b)| !a.is_multiple_of(**b)).count() as f64;
    let flat = if n > 1 { 0.2 * (by[n - 1] - by[n - 2]).abs() } else { 0.0 };
    let frames = if n > 2 { 0.05 * (by[0] - (by[n - 1] + by[n - 2]) / 2.0).abs() } else { 0.0 };
    flat + frames + 0.02 * uneven
}

impl Plan {
    /// Query tokens of the copy for each of the document's.
    pub(super) fn q_ratio(&self) -> f64 {
        self.axes.q.len() as f64 / self.old.q.len() as f64
    }

    /// The same of keys.
    pub(super) fn kv_ratio(&self) -> f64 {
        self.axes.kv().len() as f64 / self.old.kv().len() as f64
    }

    /// The largest grid, before and after.
    pub(super) fn grid(&self) -> Option<(&[usize], &[usize])> {
        let old = grid(&self.old)?;
        let on = |axis: &Axis| axis.segments.iter().position(|s| s.grid == old.grid);
        match on(&self.old.q) {
            Some(at) => Some((&old.grid, &self.axes.q.segments[at].grid)),
            None => on(self.old.kv()).map(|at| (&old.grid[..], &self.axes.kv().segments[at].grid[..])),
        }
    }

    /// The document's rows in the copy; at least one row.
    pub(super) fn q_range(&self, range: [usize; 2]) -> [usize; 2] {
        moved(range, &self.old.q, &self.axes.q)
    }

    /// The same of columns.
    pub(super) fn kv_range(&self, range: [usize; 2]) -> [usize; 2] {
        moved(range, self.old.kv(), self.axes.kv())
    }
}

fn moved([from, to]: [usize; 2], old: &Axis, new: &Axis) -> [usize; 2] {
    let (start, end) = (place(from, old, new), place(to, old, new));
    [start, if to > from { end.max(start + 1) } else { end }]
}

/// A token's place in the copy: as far into its segment as before.
fn place(token: usize, old: &Axis, new: &Axis) -> usize {
    let (starts, moved) = (old.starts(), new.starts());
    let at = starts.windows(2).position(|ends| token < ends[1]);
    let Some(at) = at else { return moved[moved.len() - 1] };
    let inside = (token - starts[at]) * new.segments[at].len();
    moved[at] + (inside + old.segments[at].len() / 2) / old.segments[at].len()
}
