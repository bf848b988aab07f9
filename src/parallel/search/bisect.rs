//! A first assignment: the rows in a line are halved into windows of equal rows and nearly equal work, again and again.
//!
//! Invariant: every rank receives exactly its number of rows. Must not know how assignments are improved.

use super::refine::objective;
use super::state::State;
use super::work::{KindWork, Work};
use std::cmp::Ordering;

/// Windows of one halving whose needs are counted.
const LOOKED_AT: usize = 12;
/// The same where two ranks are cut anew.
const RECUT: usize = 6;
/// A deviation that swaps of rows can level.
const EVEN: f64 = 0.01;
/// Places between which pairs of windows are looked for.
const GRID: usize = 24;
/// What a deviation of the work by its whole weighs against the share of needed keys.
const PER_DEVIATION: f64 = 4.0;

/// Rows of each rank: equal, the first ranks one more where ranks do not divide them.
pub(crate) fn sizes(rows: usize, ranks: usize) -> Vec<usize> {
    (0..ranks).map(|rank| rows / ranks + usize::from(rank < rows % ranks)).collect()
}

/// Assigns the rows of `line` in pieces.
pub(crate) fn bisect(work: &Work, line: Vec<u32>, sizes: &[usize]) -> Vec<u16> {
    let mut owner = vec![0; work.rows];
    let shares = work.shares();
    let mut scratch = Scratch::new(work);
    let mut todo = vec![(line, 0..sizes.len())];
    while let Some((line, ranks)) = todo.pop() {
        if ranks.len() == 1 {
            line.iter().for_each(|row| owner[*row as usize] = ranks.start as u16);
            continue;
        }
        let middle = ranks.start + ranks.len() / 2;
        let count: usize = sizes[ranks.start..middle].iter().sum();
        let part = (middle - ranks.start) as f64 / ranks.len() as f64;
        let part = scratch.part(work, &shares, &line, count, part);
        let (window, rest) = split(&line, &part);
        todo.push((rest, middle..ranks.end));
        todo.push((window, ranks.start..middle));
    }
    owner
}

/// The rows of a part and the others, both in the order of the line.
fn split(line: &[u32], part: &Part) -> (Vec<u32>, Vec<u32>) {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for (at, row) in line.iter().enumerate() {
        if part.has(at) { inside.push(*row) } else { outside.push(*row) }
    }
    (inside, outside)
}

struct Scratch {
    /// Steps of the number of rows that need a column, for the window and the rest.
    steps: [Vec<i32>; 2],
    /// 1 in the window, 2 in the rest.
    side: Vec<u8>,
}

impl Scratch {
    fn new(work: &Work) -> Self {
        Self { steps: [vec![0; work.cols + 1], vec![0; work.cols + 1]], side: vec![0; work.rows.max(work.cols)] }
    }

    /// The best part of a line, by places in the line.
    fn part(&mut self, work: &Work, shares: &[f64], line: &[u32], count: usize, part: f64) -> Part {
        if count == 0 || count == line.len() {
            return Part::one(0, count);
        }
        let sums = Sums::new(work, shares, line, part);
        let parts = sums.candidates(count, LOOKED_AT);
        let mut best = (f64::INFINITY, Part::one(0, count));
        for part in parts {
            let uneven = PER_DEVIATION * sums.deviation(&part);
            // needs are counted only where they can decide
            let score = if uneven < best.0 { uneven + self.needs(work, line, &part) } else { uneven };
            if score < best.0 {
                best = (score, part);
            }
        }
        best.1
    }

    /// Keys that the window needs of others, and the rest of the line, as a share of the columns.
    fn needs(&mut self, work: &Work, line: &[u32], part: &Part) -> f64 {
        self.side.fill(0);
        for (at, row) in line.iter().enumerate() {
            self.side[*row as usize] = if part.has(at) { 1 } else { 2 };
        }
        let (mut sum, mut layers) = (0.0, 0.0);
        for kind in &work.kinds {
            self.steps.iter_mut().for_each(|steps| steps.fill(0));
            for row in line {
                let steps = &mut self.steps[usize::from(self.side[*row as usize] == 2)];
                for (from, to) in kind.needs(*row as usize) {
                    steps[*from as usize] += 1;
                    steps[*to as usize] -= 1;
                }
            }
            let mut remote = 0u32;
            for (which, steps) in self.steps.iter().enumerate() {
                let mut now = 0;
                for (col, step) in steps[..work.cols].iter().enumerate() {
                    now += step;
                    let own = work.coupled && self.side[col] == which as u8 + 1;
                    remote += u32::from(now > 0 && !own);
                }
            }
            sum += kind.layers * f64::from(remote);
            layers += kind.layers;
        }
        sum / (layers * work.cols as f64)
    }
}

/// Sums of each kind's work along a line.
struct Sums {
    kinds: Vec<(f64, Vec<f64>)>,
    part: f64,
    len: usize,
}

impl Sums {
    fn new(work: &Work, shares: &[f64], line: &[u32], part: f64) -> Self {
        let of = |(kind, share): (&KindWork, &f64)| {
            let mut sums = Vec::with_capacity(line.len() + 1);
            sums.push(0.0);
            line.iter().for_each(|row| sums.push(sums[sums.len() - 1] + kind.weight[*row as usize]));
            (*share, sums)
        };
        let kinds = work.kinds.iter().zip(shares).map(of).filter(|(_, sums)| sums[line.len()] > 0.0);
        Self { kinds: kinds.collect(), part, len: line.len() }
    }

    /// Parts worth a look: windows, and pairs of windows if none of those is even.
    fn candidates(&self, count: usize, most: usize) -> Vec<Part> {
        let n = self.len;
        let deviation: Vec<f64> = (0..n).map(|start| self.deviation(&Part::around(start, count, n))).collect();
        let mut order: Vec<usize> = (0..n).collect();
        // a window and the one beside it have nearly the same needs: valleys first, then the others
        let is_valley = |s: usize| deviation[s] <= deviation[(s + 1) % n] && deviation[s] <= deviation[(s + n - 1) % n];
        let key: Vec<(bool, f64)> = (0..n).map(|s| (!is_valley(s), deviation[s])).collect();
        first(&mut order, most, |a, b| key[*a].0.cmp(&key[*b].0).then(key[*a].1.total_cmp(&key[*b].1)).then(a.cmp(b)));
        let mut parts: Vec<Part> = order.iter().map(|start| Part::around(*start, count, n)).collect();
        if deviation[order[0]] > EVEN {
            parts.extend(twos(self, count, n, most));
        }
        parts
    }

    /// How far the work is from its part, in parts of the line's.
    fn deviation(&self, of: &Part) -> f64 {
        let one = |(share, sums): &(f64, Vec<f64>)| {
            let whole = sums[sums.len() - 1];
            let inside: f64 = of.pieces.iter().map(|(from, to)| sums[*to] - sums[*from]).sum();
            share * (inside - self.part * whole).abs() / whole
        };
        self.kinds.iter().map(one).sum()
    }
}

/// Improves a state by cutting the rows of two ranks anew, pair by pair, until none is better.
pub(crate) fn recut(state: &mut State<'_>, level: f64, sweeps: usize) {
    let work = state.work;
    let shares = work.shares();
    let mut now = objective(state, level);
    let mut age = vec![0u32; state.ranks];
    let mut tried = vec![None; state.ranks * state.ranks];
    for _ in 0..sweeps {
        let before = now;
        let ranks = state.ranks;
        for (a, b) in (0..ranks).flat_map(|a| (a + 1..ranks).map(move |b| (a, b))) {
            let ages = (age[a], age[b]);
            if tried[a * ranks + b] == Some(ages) {
                continue;
            }
            tried[a * ranks + b] = Some(ages);
            let of = |row: &u32| [a as u16, b as u16].contains(&state.owner[*row as usize]);
            let line: Vec<u32> = (0..work.rows as u32).filter(of).collect();
            let count = state.size[a];
            if count == 0 || count == line.len() {
                continue;
            }
            let part = count as f64 / line.len() as f64;
            let mut best: Vec<u16> = line.iter().map(|row| state.owner[*row as usize]).collect();
            let first = now;
            for part in Sums::new(work, &shares, &line, part).candidates(count, RECUT) {
                assign(state, &line, |at| if part.has(at) { a } else { b });
                let after = objective(state, level);
                if after < now - 1e-9 {
                    now = after;
                    best.iter_mut().zip(&line).for_each(|(best, row)| *best = state.owner[*row as usize]);
                }
            }
            assign(state, &line, |at| best[at] as usize);
            if now < first {
                age[a] += 1;
                age[b] += 1;
                tried[a * ranks + b] = Some((age[a], age[b]));
            }
        }
        if now > before - 1e-6 {
            break;
        }
    }
}

fn assign(state: &mut State<'_>, line: &[u32], to: impl Fn(usize) -> usize) {
    for (at, row) in line.iter().enumerate() {
        if state.owner[*row as usize] as usize != to(at) {
            state.shift(*row as usize, to(at));
        }
    }
}

/// Parts of two windows whose work deviates least: for masks that one window cannot balance.
fn twos(sums: &Sums, count: usize, n: usize, most: usize) -> Vec<Part> {
    let step = n.div_ceil(GRID).max(1);
    let mut found: Vec<(f64, Part)> = Vec::new();
    for from in (0..n).step_by(step) {
        for length in (step..count).step_by(step) {
            for second in (from + length + step..n).step_by(step) {
                if from + length >= n || second + count - length > n {
                    break;
                }
                let part = Part { pieces: [(from, from + length), (second, second + count - length)] };
                found.push((sums.deviation(&part), part));
            }
        }
    }
    first(&mut found, most, |a, b| a.0.total_cmp(&b.0).then(a.1.pieces.cmp(&b.1.pieces)));
    found.into_iter().map(|(deviation, part)| climb(sums, deviation, part, step, n)).collect()
}

/// Keeps the first of an order, in it; the others are not sorted.
fn first<T>(of: &mut Vec<T>, most: usize, by: impl Fn(&T, &T) -> Ordering) {
    if of.len() > most {
        of.select_nth_unstable_by(most, &by);
        of.truncate(most);
    }
    of.sort_by(by);
}

/// Moves the ends of both windows while that lowers the deviation.
fn climb(sums: &Sums, mut deviation: f64, mut part: Part, step: usize, n: usize) -> Part {
    let mut by = step / 2;
    while by > 0 {
        let [(a, b), (c, d)] = part.pieces;
        let moved = [
            (a.wrapping_sub(by), b.wrapping_sub(by), c, d),
            (a + by, b + by, c, d),
            (a, b, c.wrapping_sub(by), d.wrapping_sub(by)),
            (a, b, c + by, d + by),
            (a, b + by, c + by, d),
            (a, b.wrapping_sub(by), c.wrapping_sub(by), d),
            (a.wrapping_sub(by), b, c, d.wrapping_sub(by)),
            (a + by, b, c, d + by),
        ];
        let valid = moved.into_iter().filter(|(a, b, c, d)| a < b && b <= c && c < d && *d <= n);
        let parts = valid.map(|(a, b, c, d)| Part { pieces: [(a, b), (c, d)] });
        let best = parts.map(|part| (sums.deviation(&part), part)).min_by(|a, b| a.0.total_cmp(&b.0));
        match best {
            Some((lower, better)) if lower < deviation => (deviation, part) = (lower, better),
            _ => by /= 2,
        }
    }
    part
}

/// Two windows of a line; the second may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    pieces: [(usize, usize); 2],
}

impl Part {
    fn one(from: usize, to: usize) -> Self {
        Self { pieces: [(from, to), (to, to)] }
    }

    /// A window that may reach around the end of `n`.
    fn around(start: usize, count: usize, n: usize) -> Self {
        let end = start + count;
        if end <= n { Self::one(start, end) } else { Self { pieces: [(0, end - n), (start, n)] } }
    }

    fn has(&self, at: usize) -> bool {
        self.pieces.iter().any(|(from, to)| (*from..*to).contains(&at))
    }
}
