//! The kept share of one pixel: boxes split breadth first within a budget, the rest sampled.
//!
//! Invariant: a share is marked exact only if every part was decided or counted.

use super::{CELLS, Sharer};
use crate::analysis::classify::{Verdict, split};
use crate::analysis::interval::Cells;
use std::collections::VecDeque;

/// Remembered shares, at most.
const MEMO: usize = 1 << 12;
/// The cost of counting the cells of a small box, in evaluations of a box.
const COUNT_COST: usize = 24;

impl Sharer<'_> {
    /// The kept share of a box and whether it is exact, spending about `budget` evaluations.
    pub(super) fn share(&mut self, cells: &Cells, budget: usize) -> (f32, bool) {
        let first = self.exact.classify(cells);
        if first != Verdict::Mixed {
            return (if first == Verdict::Full { 1.0 } else { 0.0 }, true);
        }
        let key = self.exact.residual(cells);
        if let Some(known) = key.as_ref().and_then(|k| self.memo.get(k)) {
            return *known;
        }
        let found = self.search(cells, budget);
        if let Some(key) = key.filter(|_| self.memo.len() < MEMO) {
            self.memo.insert(key, found);
        }
        found
    }

    fn search(&mut self, cells: &Cells, budget: usize) -> (f32, bool) {
        let mut kept = 0.0;
        let mut left = budget;
        let mut queue = VecDeque::from([*cells]);
        // each waiting box will cost a sample, so leave enough for those
        while let Some(part) = queue.pop_front() {
            if left < queue.len() + 5 {
                queue.push_back(part);
                break;
            }
            if part.area() <= CELLS {
                kept += self.exact.cells(&part).iter().map(|c| f64::from(*c)).sum::<f64>();
                left = left.saturating_sub(COUNT_COST);
                continue;
            }
            for half in split(&part) {
                left = left.saturating_sub(1);
                match self.exact.classify(&half) {
                    Verdict::Full => kept += half.area() as f64,
                    Verdict::Empty => {}
                    Verdict::Mixed => queue.push_back(half),
                }
            }
        }
        let area = cells.area() as f64;
        if queue.is_empty() {
            return ((kept / area) as f32, true);
        }
        let mut seed = (cells.q.0 as u64) << 32 ^ cells.kv.0 as u64;
        for part in &queue {
            kept += part.area() as f64 * self.sample(part, &mut seed);
        }
        // a few cells alike do not make a box empty or full
        let unsure = queue.iter().map(Cells::area).min().unwrap_or(0) as f64 / area / 2.0;
        ((kept / area).clamp(unsure, 1.0 - unsure) as f32, false)
    }

    /// One cell at a scattered place represents a box.
    fn sample(&mut self, part: &Cells, seed: &mut u64) -> f64 {
        *seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let pick = |(lo, hi): (i64, i64), bits: u64| lo + (bits % (hi - lo + 1) as u64) as i64;
        let (q, kv) = (pick(part.q, *seed >> 33), pick(part.kv, (*seed >> 13) & 0xf_ffff_ffff));
        let cell = Cells { q: (q, q), kv: (kv, kv), ..*part };
        match self.exact.classify(&cell) {
            Verdict::Full => 1.0,
            Verdict::Empty => 0.0,
            Verdict::Mixed => f64::from(self.exact.cells(&cell)[0]),
        }
    }
}
