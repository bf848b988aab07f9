//! Swaps of rows between ranks that level the loads and then need fewer keys.
//!
//! Invariant: the number of rows of a rank stays; a swap is kept only if it lowers the objective. Must not know how the
//! first assignment was found.

use super::state::{State, Sums};

/// What the load above it weighs against the share of needed keys: the largest, and the sum of squares.
const PER_LOAD: f64 = 20.0;
const PER_SQUARE: f64 = 200.0;
/// The least gain worth a swap.
const LEAST: f64 = 1e-7;
/// Rows of each side that are paired.
const PAIRED: usize = 48;

/// What a search lowers.
pub(crate) fn objective(state: &State<'_>, level: f64) -> f64 {
    let mut out = state.share();
    for (m, share) in state.work.shares().iter().enumerate() {
        let mean = state.work.kinds[m].total / state.ranks as f64;
        let (mut most, mut squares) = (0.0f64, 0.0);
        for load in &state.load[m] {
            let over = over(*load, mean, level);
            most = most.max(over);
            squares += over * over;
        }
        out += share * penalty(most, squares);
    }
    out
}

/// How far a load is above the level, in means.
fn over(load: f64, mean: f64, level: f64) -> f64 {
    if mean > 0.0 { (load / mean - level).max(0.0) } else { 0.0 }
}

fn penalty(most: f64, squares: f64) -> f64 {
    PER_LOAD * most + PER_SQUARE * squares
}

/// Improves a state by at most so many swaps.
pub(crate) fn refine(state: &mut State<'_>, swaps: usize, level: f64) {
    let mut swaps_of = Swaps::new(state, level);
    let mut now = objective(state, level);
    for _ in 0..swaps {
        let found = pairs(state).into_iter().find_map(|(a, b)| swaps_of.best(state, a, b, now));
        match found {
            Some(better) => now = better,
            None => break,
        }
    }
}

/// Pairs of ranks worth a look, the most uneven first.
fn pairs(state: &State<'_>) -> Vec<(usize, usize)> {
    let shares = state.work.shares();
    let over = |rank: usize| -> f64 {
        let of = |m: usize| {
            let mean = state.work.kinds[m].total / state.ranks as f64;
            if mean > 0.0 { shares[m] * (state.load[m][rank] / mean - 1.0) } else { 0.0 }
        };
        (0..shares.len()).map(of).sum()
    };
    let mut order: Vec<(f64, usize)> = (0..state.ranks).map(|rank| (over(rank), rank)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut out = Vec::new();
    let n = order.len();
    for sum in 0..(2 * n).saturating_sub(2) {
        for high in 0..=sum.min(n - 1) {
            let low = sum - high;
            if low < n && n - 1 - low > high {
                out.push((order[high].1, order[n - 1 - low].1));
            }
        }
    }
    out
}

/// Rows of a rank with what their move changes, the cheapest first. `of`: of both ranks.
fn movable(state: &State<'_>, from: usize, to: usize, of: (&Sums, &Sums)) -> Vec<(f64, usize)> {
    let rows = (0..state.work.rows).filter(|row| state.owner[*row] == from as u16);
    let mut rows: Vec<(f64, usize)> = rows.map(|row| (state.delta(row, to, of), row)).collect();
    let by = |x: &(f64, usize), y: &(f64, usize)| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1));
    if rows.len() > PAIRED {
        rows.select_nth_unstable_by(PAIRED, by);
        rows.truncate(PAIRED);
    }
    rows.sort_by(by);
    rows
}

/// What is known of the moves between ranks, until one of the two changes.
struct Swaps {
    /// For each pair the movable rows, with the ages of both ranks when they were listed.
    lists: Vec<Option<Listed>>,
    /// For each rank its sums, with its age when they were made.
    sums: Vec<Option<(u32, Sums)>>,
    /// For each pair the ages at which no swap helped.
    failed: Vec<Option<(u32, u32)>>,
    /// Changes of each rank.
    age: Vec<u32>,
    shares: Vec<f64>,
    unit: f64,
    level: f64,
}

/// The ages of two ranks, and what moves from the first to the second.
type Listed = ((u32, u32), Vec<(f64, usize)>);

impl Swaps {
    fn new(state: &State<'_>, level: f64) -> Self {
        let n = state.ranks;
        Self {
            lists: vec![None; n * n],
            sums: (0..n).map(|_| None).collect(),
            failed: vec![None; n * n],
            age: vec![0; n],
            level,
            shares: state.work.shares(),
            unit: state.work.all_gather(n).max(1.0),
        }
    }

    fn list(&mut self, state: &State<'_>, from: usize, to: usize) {
        let ages = (self.age[from], self.age[to]);
        let place = &mut self.lists[from * state.ranks + to];
        if place.as_ref().is_some_and(|(at, _)| *at == ages) {
            return;
        }
        for (rank, age) in [(from, ages.0), (to, ages.1)] {
            let known = &mut self.sums[rank];
            if known.as_ref().is_none_or(|(at, _)| *at != age) {
                *known = Some((age, state.sums(rank)));
            }
        }
        if let (Some((_, ours)), Some((_, theirs))) = (&self.sums[from], &self.sums[to]) {
            *place = Some((ages, movable(state, from, to, (ours, theirs))));
        }
    }

    /// The best swap between two ranks, made if it lowers the objective, which is returned.
    fn best(&mut self, state: &mut State<'_>, a: usize, b: usize, now: f64) -> Option<f64> {
        let ages = (self.age[a], self.age[b]);
        let pair = a * state.ranks + b;
        if self.failed[pair] == Some(ages) {
            return None;
        }
        self.list(state, a, b);
        self.list(state, b, a);
        let (i, j) = self.look(state, a, b, now)?;
        state.shift(i, b);
        state.shift(j, a);
        let after = objective(state, self.level);
        if after < now - LEAST {
            self.age[a] += 1;
            self.age[b] += 1;
            return Some(after);
        }
        state.shift(i, a);
        state.shift(j, b);
        self.failed[pair] = Some(ages);
        None
    }

    fn look(&mut self, state: &State<'_>, a: usize, b: usize, now: f64) -> Option<(usize, usize)> {
        let list = |from: usize, to: usize| self.lists[from * state.ranks + to].as_ref().map(|(_, rows)| &rows[..]);
        let (ours, theirs) = (list(a, b)?, list(b, a)?);
        let kinds: Vec<Pair<'_>> =
            (0..self.shares.len()).map(|m| Pair::new(state, m, self.shares[m], (a, b), self.level)).collect();
        let share = state.share();
        let least: f64 = kinds.iter().map(Pair::least).sum();
        let mut best = (now - LEAST, None);
        for (out, i) in ours {
            for (back, j) in theirs {
                let mut value = share + (out + back) / self.unit;
                if value + least >= best.0 {
                    // the lists ascend
                    break;
                }
                kinds.iter().for_each(|kind| value += kind.uneven(*i, *j));
                if value < best.0 {
                    best = (value, Some((*i, *j)));
                }
            }
        }
        if best.1.is_none() {
            self.failed[a * state.ranks + b] = Some((self.age[a], self.age[b]));
        }
        best.1
    }
}

/// One kind's loads, with those of all ranks but two summed up.
struct Pair<'a> {
    weight: &'a [f64],
    /// One over the mean load; 0 for a kind without work.
    per_mean: f64,
    share: f64,
    /// Loads of the two, in means.
    of_two: (f64, f64),
    most: f64,
    squares: f64,
    level: f64,
}

impl<'a> Pair<'a> {
    fn new(state: &State<'a>, m: usize, share: f64, (a, b): (usize, usize), level: f64) -> Self {
        let kind = &state.work.kinds[m];
        let mean = kind.total / state.ranks as f64;
        let (mut most, mut squares) = (0.0f64, 0.0);
        for (_, load) in state.load[m].iter().enumerate().filter(|(rank, _)| *rank != a && *rank != b) {
            let over = over(*load, mean, level);
            most = most.max(over);
            squares += over * over;
        }
        let per_mean = if mean > 0.0 { 1.0 / mean } else { 0.0 };
        let of_two = (state.load[m][a] * per_mean, state.load[m][b] * per_mean);
        Self { weight: &kind.weight, per_mean, share, of_two, most, squares, level }
    }

    /// What the other ranks' loads weigh: no swap of the two leaves less.
    fn least(&self) -> f64 {
        self.share * penalty(self.most, self.squares)
    }

    /// The penalty after a swap.
    fn uneven(&self, i: usize, j: usize) -> f64 {
        let more = (self.weight[j] - self.weight[i]) * self.per_mean;
        let (x, y) = ((self.of_two.0 + more - self.level).max(0.0), (self.of_two.1 - more - self.level).max(0.0));
        self.share * penalty(self.most.max(x).max(y), self.squares + x * x + y * y)
    }
}

/// Moves single rows until every rank has its number of them.
pub(crate) fn resize(state: &mut State<'_>, sizes: &[usize]) {
    loop {
        let over = (0..state.ranks).find(|rank| state.size[*rank] > sizes[*rank]);
        let under = (0..state.ranks).find(|rank| state.size[*rank] < sizes[*rank]);
        let (Some(from), Some(to)) = (over, under) else { return };
        let of = (state.sums(from), state.sums(to));
        let Some((_, row)) = movable(state, from, to, (&of.0, &of.1)).first().copied() else { return };
        state.shift(row, to);
    }
}
