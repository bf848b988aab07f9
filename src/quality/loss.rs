//! Pictures of a mask's loss: probability mass outside the mask by block, by cell and by row, and the keys that a row
//! misses.
//!
//! Invariant: the sum of a picture is the mass lost there. Must not know colours or windows.

use super::attend::Kept;
use super::cancelled;
use super::masses::Masses;
use super::scores::{ROWS, RowScratch, STEP, Scorer};
use crate::analysis::block_mask::BlockKind;
use crate::analysis::raster::Region;
use crate::base::{Control, Diagnostic};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The kind of picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shows {
    /// Mass outside the mask.
    #[default]
    Lost,
    /// All mass of full attention.
    All,
}

/// Lost mass by block, [q blocks][kv blocks]: mean over the judged rows of a query block. Errors: `cancelled`.
pub fn by_block(scorer: &Scorer, masses: &Masses, kept: &Kept, control: &Control) -> Result<Vec<f32>, Diagnostic> {
    let (_, columns) = masses.grid();
    let (b, h) = scorer.head().place;
    let mut lost = masses.blocks.clone();
    lost.par_chunks_mut(columns).enumerate().for_each_init(Cells::default, |cells, (i, lost)| {
        if control.is_cancelled() {
            return;
        }
        let rows = i * masses.block.q..((i + 1) * masses.block.q).min(masses.lengths.q_len);
        let judged = masses.judged(i).max(1) as f64;
        for run in kept.blocks.runs(b, h, i) {
            if run.kind == BlockKind::Full {
                lost[run.start..run.end].fill(0.0);
                continue;
            }
            for (j, lost) in (run.start..).zip(&mut lost[run.start..run.end]) {
                let kv = j * masses.block.kv..((j + 1) * masses.block.kv).min(masses.lengths.kv_len);
                let mut sum = 0.0;
                cells.visit(scorer, masses, Some(kept), &rows, &kv, |_, _, p| sum += f64::from(p));
                *lost = (sum / judged) as f32;
            }
        }
    });
    if control.is_cancelled() { Err(cancelled()) } else { Ok(lost) }
}

/// Mass by pixel of a region: the sum over its cells of the mass that is shown. Costs the region's cells. Errors: `cancelled`.
pub fn by_cell(
    scorer: &Scorer,
    masses: &Masses,
    kept: &Kept,
    region: &Region,
    shows: Shows,
    control: &Control,
) -> Result<Vec<f32>, Diagnostic> {
    let mut pixels = vec![0.0f32; region.height * region.width];
    let kept = (shows == Shows::Lost).then_some(kept);
    let edge =
        |of: &Range<usize>, n: usize, parts: usize| of.start + (n as u128 * of.len() as u128 / parts as u128) as usize;
    let columns: Vec<usize> = (0..=region.width).map(|n| edge(&region.kv, n, region.width)).collect();
    pixels.par_chunks_mut(region.width.max(1)).enumerate().for_each_init(Cells::default, |cells, (line, pixels)| {
        if control.is_cancelled() {
            return;
        }
        let rows = edge(&region.q, line, region.height)..edge(&region.q, line + 1, region.height);
        let mut at = 0;
        cells.visit(scorer, masses, kept, &rows, &region.kv, |_, kv, p| {
            while kv >= columns[at + 1] {
                at += 1;
            }
            while kv < columns[at] {
                at -= 1;
            }
            pixels[at] += p;
        });
    });
    if control.is_cancelled() { Err(cancelled()) } else { Ok(pixels) }
}

/// The keys that a row misses most: (kv_idx, probability under full attention), the largest first.
pub fn missed(scorer: &Scorer, masses: &Masses, kept: &Kept, row: usize, most: usize) -> Vec<(usize, f32)> {
    let mut found = Vec::new();
    let kv = 0..masses.lengths.kv_len;
    Cells::default().visit(scorer, masses, Some(kept), &(row..row + 1), &kv, |_, kv, p| {
        if p > 0.0 {
            found.push((kv, p));
        }
    });
    found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
    found.truncate(most);
    found
}

/// A strip by query position: for each of `parts` stretches of rows the smallest mass kept; NaN if none is measured.
pub fn strip(rows: &[f32], parts: usize) -> Vec<f32> {
    let parts = parts.clamp(1, rows.len().max(1));
    let edge = |n: usize| n * rows.len() / parts;
    let least = |part: &[f32]| part.iter().copied().filter(|m| !m.is_nan()).fold(f32::NAN, f32::min);
    (0..parts).map(|n| least(&rows[edge(n)..edge(n + 1)])).collect()
}

/// Buffers for walking over cells.
#[derive(Default)]
struct Cells {
    query: Vec<f32>,
    tile: Vec<f32>,
    keep: Vec<u8>,
    running: RowScratch,
}

impl Cells {
    /// Calls `cell(q_idx, kv_idx, p)` on the dropped cells of a box, row by row of a tile; on all cells without a mask.
    fn visit(
        &mut self,
        scorer: &Scorer,
        masses: &Masses,
        dropped_by: Option<&Kept>,
        rows: &Range<usize>,
        kv: &Range<usize>,
        mut cell: impl FnMut(usize, usize, f32),
    ) {
        let (b, h) = scorer.head().place;
        for start in rows.clone().step_by(ROWS) {
            let q = start..(start + ROWS).min(rows.end);
            let mut at = kv.start;
            while at < kv.end {
                let end = (at / STEP * STEP + STEP).min(kv.end);
                let (from, columns) = Scorer::columns(&(at..end));
                self.tile.resize(self.tile.len().max(q.len() * columns), 0.0);
                let tile = &mut self.tile[..q.len() * columns];
                scorer.tile(&q, from, columns, &mut self.query, tile);
                scorer.probabilities(&masses.lse[q.clone()], columns, tile, &mut self.running);
                self.keep.resize(q.len() * (end - at), 0);
                match dropped_by {
                    Some(kept) => kept.cells(b, h, q.clone(), at..end, &mut self.keep),
                    None => self.keep.fill(0),
                }
                let width = end - at;
                for (r, row) in q.clone().enumerate() {
                    for n in (0..width).filter(|n| self.keep[r * width + n] == 0) {
                        cell(row, at + n, tile[r * columns + at - from + n]);
                    }
                }
                at = end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::block_mask::{BlockMask, MaskShape};
    use crate::base::BlockSize;
    use crate::ir::cell::{Cell, eval};
    use crate::ir::random;
    use crate::quality::head::{Head, Own};
    use crate::quality::masses::masses;
    use crate::quality::testing::{dense, head};

    #[test]
    fn pictures_hold_the_mass_outside_the_mask() {
        let made = Head { own: Own::Causal, ..head(1, 90, 90, 8, 2.0) };
        let block = BlockSize { q: 32, kv: 24 };
        let mask = random::mask(7, &random::Options::new(90, 90));
        let blocks =
            BlockMask::build(Some(&mask), MaskShape::broadcast(made.lengths()), block, &Control::new()).unwrap();
        let (kept, control, scorer) = (Kept::new(blocks), Control::new(), Scorer::new(&made));
        let full = masses(&made, block, false, &control).unwrap();
        let p = dense(&made).p;
        let lost = |q: usize, kv: usize| {
            let cell = Cell { b: 0, h: 0, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 };
            if eval(&mask, &cell).as_bool() { 0.0 } else { p[q * 90 + kv] }
        };
        let found = by_block(&scorer, &full, &kept, &control).unwrap();
        for (at, found) in found.iter().enumerate() {
            let (q, kv) = (at / 4 * 32..(at / 4 * 32 + 32).min(90), at % 4 * 24..(at % 4 * 24 + 24).min(90));
            let wanted =
                q.clone().flat_map(|q| kv.clone().map(move |kv| (q, kv))).map(|(q, kv)| lost(q, kv)).sum::<f64>();
            assert!((wanted / q.len() as f64 - f64::from(*found)).abs() < 1e-5, "{at}");
        }
        let region = Region { b: 0, h: 0, q: 5..77, kv: 3..88, height: 9, width: 17 };
        let found = by_cell(&scorer, &full, &kept, &region, Shows::Lost, &control).unwrap();
        for (at, found) in found.iter().enumerate() {
            let (q, kv) = (5 + at / 17 * 8, 3 + at % 17 * 5);
            let wanted: f64 =
                (q..q + 8).flat_map(|q| (kv..kv + 5).map(move |kv| (q, kv))).map(|(q, kv)| lost(q, kv)).sum();
            assert!((wanted - f64::from(*found)).abs() < 1e-5, "{at}");
        }
        let missed = missed(&scorer, &full, &kept, 60, 3);
        let mut all: Vec<f64> = (0..90).map(|kv| lost(60, kv)).filter(|p| *p > 0.0).collect();
        all.sort_by(|a, b| b.total_cmp(a));
        for ((kv, p), wanted) in missed.iter().zip(&all) {
            assert!((lost(60, *kv) - wanted).abs() < 1e-6 && (f64::from(*p) - wanted).abs() < 1e-5);
        }
        assert_eq!(missed.len(), all.len().min(3));
    }

    #[test]
    fn a_strip_shows_the_worst_row_of_each_stretch() {
        let strip = strip(&[0.5, 0.2, f32::NAN, f32::NAN, 0.9, 0.8], 3);
        assert_eq!((strip[0], strip[2]), (0.2, 0.8));
        assert!(strip[1].is_nan());
    }
}
