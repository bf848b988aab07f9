//! The character of a head: effective keys, mass by key, by distance and by grid offset.
//!
//! Invariant: exact over all measured rows, from probabilities and the known lse. Must not know masks or proposals.

use super::cancelled;
use super::masses::Masses;
use super::measure::rank;
use super::scores::{ROWS, RowScratch, STEP, Scorer};
use crate::base::{Control, Diagnostic};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Tokens on a grid in raster order, such as a video's [frames, rows, columns] behind `start` text tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    /// Frames, rows, columns; an image has one frame.
    pub extents: [usize; 3],
    /// First token of the grid.
    pub start: usize,
}

impl Grid {
    /// Tokens of the grid.
    pub fn count(&self) -> usize {
        self.extents.iter().product()
    }

    /// The tokens of the grid.
    pub fn tokens(&self) -> Range<usize> {
        self.start..self.start + self.count()
    }

    /// Place of a token of the grid.
    pub fn place(&self, token: usize) -> [usize; 3] {
        let [_, h, w] = self.extents;
        let at = token - self.start;
        [at / (h * w), at / w % h, at % w]
    }
}

/// Mass by offset `q - kv` on a grid: mean over the grid's judged rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Offsets {
    /// The grid.
    pub grid: Grid,
    /// `[2T-1][2H-1][2W-1]`; offset d has the index d + extent - 1.
    pub mass: Vec<f64>,
}

impl Offsets {
    /// Extent of each dimension of `mass`.
    pub fn shape(&self) -> [usize; 3] {
        self.grid.extents.map(|n| 2 * n - 1)
    }
}

/// The character of a head.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// exp(entropy) of each row, in keys; NaN if the row is not measured.
    pub effective_keys: Vec<f32>,
    /// Mean over rows of the mass at each key.
    pub columns: Vec<f64>,
    /// Mean over rows of the mass at each distance `q_idx - kv_idx`; distance d has the index d + kv_len - 1.
    pub distance: Vec<f64>,
    /// Mass by grid offset, if the tokens are a grid.
    pub offsets: Option<Offsets>,
    kv_len: usize,
}

impl Profile {
    /// Mean over rows of exp(entropy) over the number of keys: 1 is uniform.
    pub fn effective_share(&self) -> f64 {
        let judged: Vec<f64> = self.effective_keys.iter().filter(|x| !x.is_nan()).map(|x| f64::from(*x)).collect();
        judged.iter().sum::<f64>() / (judged.len().max(1) * self.kv_len) as f64
    }

    /// Median over rows of exp(entropy).
    pub fn median_keys(&self) -> f64 {
        let mut judged: Vec<f32> = self.effective_keys.iter().copied().filter(|x| !x.is_nan()).collect();
        if judged.is_empty() {
            return f64::NAN;
        }
        let at = rank(judged.len(), 0.5);
        f64::from(*judged.select_nth_unstable_by(at, f32::total_cmp).1)
    }

    /// Mass on the first `keys` keys.
    pub fn prefix(&self, keys: usize) -> f64 {
        self.columns[..keys.min(self.columns.len())].iter().sum()
    }

    /// Mass at distances `lo..=hi` of `q_idx - kv_idx`.
    pub fn within(&self, lo: i64, hi: i64) -> f64 {
        in_band(&self.distance, self.kv_len, lo, hi)
    }

    /// Mean distance in tokens, regardless of direction.
    pub fn mean_distance(&self) -> f64 {
        let zero = self.kv_len as i64 - 1;
        self.distance.iter().enumerate().map(|(at, m)| m * (at as i64 - zero).abs() as f64).sum()
    }
}

fn in_band(distance: &[f64], kv_len: usize, lo: i64, hi: i64) -> f64 {
    let at = |d: i64| (d + kv_len as i64 - 1).clamp(0, distance.len() as i64) as usize;
    distance[at(lo)..at(hi + 1).max(at(lo))].iter().sum()
}

/// Sums of one thread.
struct Sums {
    columns: Vec<f64>,
    /// [kv - q + q_len - 1], so that a row is added in its own order.
    distance: Vec<f64>,
    offsets: Vec<f64>,
}

struct Scratch {
    query: Vec<f32>,
    tile: Vec<f32>,
    scores: Vec<f32>,
    running: RowScratch,
}

struct Pass<'a> {
    scorer: &'a Scorer,
    masses: &'a Masses,
    grid: Option<Grid>,
}

/// Looks at a head whose masses are known. Errors: `cancelled`, a grid beyond the tokens.
pub fn profile(scorer: &Scorer, masses: &Masses, grid: Option<Grid>, control: &Control) -> Result<Profile, Diagnostic> {
    let (q_len, kv_len) = (masses.lengths.q_len, masses.lengths.kv_len);
    if let Some(grid) = grid.filter(|g| g.tokens().end > q_len.min(kv_len)) {
        let message = format!(
            "a grid of {:?} at token {} ends at {}, beyond the {q_len} x {kv_len} tokens of the head",
            grid.extents,
            grid.start,
            grid.tokens().end
        );
        return Err(Diagnostic::error("capture-axes", message).hint("set the axes of the captured model"));
    }
    let pass = Pass { scorer, masses, grid };
    let mut effective_keys = vec![f32::NAN; q_len];
    let sums = effective_keys
        .par_chunks_mut(ROWS)
        .enumerate()
        .fold(
            || (pass.sums(), pass.scratch()),
            |(mut sums, mut scratch), (at, keys)| {
                if !control.is_cancelled() {
                    pass.rows(at * ROWS..at * ROWS + keys.len(), keys, &mut sums, &mut scratch);
                }
                (sums, scratch)
            },
        )
        .map(|(sums, _)| sums)
        .reduce(|| pass.sums(), Sums::joined);
    if control.is_cancelled() {
        return Err(cancelled());
    }
    let judged = masses.lse.iter().filter(|lse| lse.is_finite()).count().max(1) as f64;
    let mean = |of: Vec<f64>, count: f64| -> Vec<f64> { of.into_iter().map(|x| x / count).collect() };
    let mut distance = mean(sums.distance, judged);
    distance.reverse();
    let offsets = grid.map(|grid| {
        let rows = masses.lse[grid.tokens()].iter().filter(|lse| lse.is_finite()).count().max(1) as f64;
        Offsets { grid, mass: mean(sums.offsets, rows) }
    });
    Ok(Profile { effective_keys, columns: mean(sums.columns, judged), distance, offsets, kv_len })
}

impl Sums {
    fn joined(mut self, other: Sums) -> Sums {
        add(&mut self.columns, &other.columns);
        add(&mut self.distance, &other.distance);
        add(&mut self.offsets, &other.offsets);
        self
    }
}

fn add(to: &mut [f64], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, x)| *to += x);
}

fn add_f32(to: &mut [f64], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, x)| *to += f64::from(*x));
}

impl Pass<'_> {
    fn sums(&self) -> Sums {
        let (q_len, kv_len) = (self.masses.lengths.q_len, self.masses.lengths.kv_len);
        let offsets = self.grid.map_or(0, |g| g.extents.iter().map(|n| 2 * n - 1).product());
        Sums { columns: vec![0.0; kv_len], distance: vec![0.0; q_len + kv_len - 1], offsets: vec![0.0; offsets] }
    }

    fn scratch(&self) -> Scratch {
        Scratch { query: Vec::new(), tile: vec![0.0; ROWS * STEP], scores: Vec::new(), running: RowScratch::default() }
    }

    fn rows(&self, rows: Range<usize>, keys: &mut [f32], sums: &mut Sums, scratch: &mut Scratch) {
        let kv_len = self.masses.lengths.kv_len;
        let lse = &self.masses.lse[rows.clone()];
        let mut entropy: Vec<f64> = lse.iter().map(|lse| if lse.is_finite() { *lse } else { f64::NAN }).collect();
        for from in (0..kv_len).step_by(STEP) {
            let (from, columns) = Scorer::columns(&(from..(from + STEP).min(kv_len)));
            let inside = columns.min(kv_len - from);
            let cells = &mut scratch.tile[..rows.len() * columns];
            self.scorer.tile(&rows, from, columns, &mut scratch.query, cells);
            scratch.scores.clear();
            scratch.scores.extend_from_slice(cells);
            self.scorer.probabilities(lse, columns, cells, &mut scratch.running);
            let pairs = cells.chunks_exact(columns).zip(scratch.scores.chunks_exact(columns));
            for ((q, (p, s)), entropy) in rows.clone().zip(pairs).zip(&mut entropy) {
                if entropy.is_nan() {
                    continue;
                }
                let (p, s) = (&p[..inside], &s[..inside]);
                // H = lse - sum p s
                let weighted = |(p, s): (&f32, &f32)| if *p > 0.0 { f64::from(p * s) } else { 0.0 };
                *entropy -= p.iter().zip(s).map(weighted).sum::<f64>();
                add_f32(&mut sums.columns[from..], p);
                add_f32(&mut sums.distance[self.masses.lengths.q_len - 1 - q + from..], p);
                self.offsets(q, from, p, sums);
            }
        }
        keys.iter_mut().zip(&entropy).for_each(|(to, h)| *to = h.exp() as f32);
    }

    fn offsets(&self, q: usize, from: usize, p: &[f32], sums: &mut Sums) {
        let Some(grid) = self.grid.filter(|g| g.tokens().contains(&q)) else { return };
        let [t, h, w] = grid.extents;
        let [qt, qh, qw] = grid.place(q);
        let tokens = grid.tokens();
        let (mut at, end) = (from.max(tokens.start), (from + p.len()).min(tokens.end));
        while at < end {
            let [kt, kh, kw] = grid.place(at);
            let stop = (at + w - kw).min(end);
            let line = ((qt + t - 1 - kt) * (2 * h - 1) + (qh + h - 1 - kh)) * (2 * w - 1);
            for (n, x) in p[at - from..stop - from].iter().enumerate() {
                sums.offsets[line + qw + w - 1 - kw - n] += f64::from(*x);
            }
            at = stop;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::BlockSize;
    use crate::quality::head::{Head, Own};
    use crate::quality::masses::masses;
    use crate::quality::testing::{dense, head};

    fn profile_of(head: &Head, grid: Option<Grid>) -> Profile {
        let masses = masses(head, BlockSize::square(32), false, &Control::new()).unwrap();
        profile(&Scorer::new(head), &masses, grid, &Control::new()).unwrap()
    }

    fn check(head: &Head) {
        let found = profile_of(head, None);
        let (q_len, kv_len, p) = (head.lengths().q_len, head.lengths().kv_len, dense(head).p);
        let sum = |keep: &dyn Fn(i64, i64) -> bool| {
            let cells = (0..q_len * kv_len).filter(|at| keep((at / kv_len) as i64, (at % kv_len) as i64));
            cells.map(|at| p[at]).sum::<f64>() / q_len as f64
        };
        for (lo, hi) in [(-500, 500), (0, 10), (-3, 40), (7, 7), (-60, -20)] {
            let wanted = sum(&|q, kv| (lo..=hi).contains(&(q - kv)));
            assert!((found.within(lo, hi) - wanted).abs() < 1e-5, "{lo}..={hi}");
        }
        assert!((found.prefix(17) - sum(&|_, kv| kv < 17)).abs() < 1e-5);
        for q in [0, q_len / 2, q_len - 1] {
            let row = &p[q * kv_len..(q + 1) * kv_len];
            let entropy: f64 = row.iter().filter(|x| **x > 0.0).map(|x| -x * x.ln()).sum();
            assert!((f64::from(found.effective_keys[q]) / entropy.exp() - 1.0).abs() < 1e-4, "{q}");
        }
    }

    #[test]
    fn a_head_that_looks_at_all_keys_alike_has_the_share_of_one() {
        let found = profile_of(&Head::new((4, 10), 2, vec![0.0; 8], vec![1.0; 20], None).expect("a head"), None);
        assert!((found.effective_share() - 1.0).abs() < 1e-5 && (found.median_keys() - 10.0).abs() < 1e-4);
        let one = Head::new((4, 2), 1, vec![100.0; 4], vec![100.0, 0.0], None).expect("a head");
        assert!((profile_of(&one, None).effective_share() - 0.5).abs() < 1e-5);
    }

    #[test]
    fn sums_by_distance_key_and_entropy_are_those_of_a_plain_softmax() {
        check(&head(1, 90, 90, 8, 2.0));
        check(&head(2, 40, 300, 8, 1.0));
        check(&Head { own: Own::Causal, ..head(3, 130, 130, 8, 2.0) });
    }

    #[test]
    fn grid_offsets_are_those_of_a_plain_softmax() {
        let grid = Grid { extents: [3, 4, 5], start: 6 };
        let made = head(4, 70, 70, 8, 2.0);
        let found = profile_of(&made, Some(grid)).offsets.unwrap();
        let p = dense(&made).p;
        let mut wanted = vec![0.0; 5 * 7 * 9];
        for (q, kv) in grid.tokens().flat_map(|q| grid.tokens().map(move |kv| (q, kv))) {
            let (a, b) = (grid.place(q), grid.place(kv));
            let at = |n: usize| a[n] + grid.extents[n] - 1 - b[n];
            wanted[(at(0) * 7 + at(1)) * 9 + at(2)] += p[q * 70 + kv] / 60.0;
        }
        for (a, b) in found.mass.iter().zip(&wanted) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        let beyond = Grid { extents: [3, 4, 6], start: 0 };
        let masses = masses(&made, BlockSize::square(32), false, &Control::new()).unwrap();
        let refused = profile(&Scorer::new(&made), &masses, Some(beyond), &Control::new());
        assert_eq!(refused.unwrap_err().code, "capture-axes");
    }
}
