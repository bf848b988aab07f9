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

    /// More rows and keys than a tile has; pixels of unequal size; all mass and the lost mass.
    #[test]
    fn pixels_of_a_long_head_hold_the_mass_of_their_cells() {
        let (q_len, kv_len) = (150, 700);
        let made = head(3, q_len, kv_len, 8, 2.0);
        let block = BlockSize { q: 64, kv: 128 };
        let mask = random::mask(11, &random::Options::new(q_len, kv_len));
        let blocks =
            BlockMask::build(Some(&mask), MaskShape::broadcast(made.lengths()), block, &Control::new()).unwrap();
        let (kept, control, scorer) = (Kept::new(blocks), Control::new(), Scorer::new(&made));
        let full = masses(&made, block, false, &control).unwrap();
        let p = dense(&made).p;
        let keeps = |q: usize, kv: usize| {
            eval(&mask, &Cell { b: 0, h: 0, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 }).as_bool()
        };
        let region = Region { b: 0, h: 0, q: 10..149, kv: 100..699, height: 5, width: 7 };
        for shows in [Shows::All, Shows::Lost] {
            let found = by_cell(&scorer, &full, &kept, &region, shows, &control).unwrap();
            let mut wanted = vec![0.0; 35];
            for (q, kv) in region.q.clone().flat_map(|q| region.kv.clone().map(move |kv| (q, kv))) {
                if shows == Shows::All || !keeps(q, kv) {
                    // the last pixel that begins at the cell or before it
                    let line = (0..5).rev().find(|n| 10 + n * 139 / 5 <= q).expect("a line");
                    let column = (0..7).rev().find(|n| 100 + n * 599 / 7 <= kv).expect("a column");
                    wanted[line * 7 + column] += p[q * kv_len + kv];
                }
            }
            for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                assert!((f64::from(*found) - wanted).abs() < 1e-4, "{shows:?} {at}: {found} {wanted}");
            }
        }
    }

    #[test]
    fn keys_that_the_model_hides_are_not_missed() {
        let made = Head { own: Own::Causal, ..head(2, 90, 90, 8, 1.0) };
        let block = BlockSize::square(16);
        let mask = crate::analysis::examples::sliding_window(10);
        let blocks =
            BlockMask::build(Some(&mask), MaskShape::broadcast(made.lengths()), block, &Control::new()).unwrap();
        let (kept, scorer) = (Kept::new(blocks), Scorer::new(&made));
        let full = masses(&made, block, false, &Control::new()).unwrap();
        // row 60 keeps the keys 50 to 60 and sees none after them
        let mut found: Vec<usize> = missed(&scorer, &full, &kept, 60, 90).iter().map(|(kv, _)| *kv).collect();
        found.sort_unstable();
        assert_eq!(found, (0..50).collect::<Vec<_>>());
        assert_eq!(missed(&scorer, &full, &kept, 9, 90), []);
    }

    /// More keys than a tile has, from the first one on.
    #[test]
    fn the_keys_that_a_row_of_a_long_head_misses_are_all_found() {
        let (q_len, kv_len) = (20, 2 * STEP + 70);
        let made = head(5, q_len, kv_len, 8, 1.0);
        let block = BlockSize::square(16);
        let mask = crate::analysis::examples::sliding_window(4);
        let blocks =
            BlockMask::build(Some(&mask), MaskShape::broadcast(made.lengths()), block, &Control::new()).unwrap();
        let (kept, scorer) = (Kept::new(blocks), Scorer::new(&made));
        let full = masses(&made, block, false, &Control::new()).unwrap();
        let p = dense(&made).p;
        let keeps = |kv: usize| eval(&mask, &Cell { b: 0, h: 0, q_idx: 9, kv_idx: kv as i64, score: 0.0 }).as_bool();
        let mut found = missed(&scorer, &full, &kept, 9, kv_len);
        found.sort_unstable_by_key(|(kv, _)| *kv);
        let wanted: Vec<usize> = (0..kv_len).filter(|kv| !keeps(*kv)).collect();
        assert_eq!(found.iter().map(|(kv, _)| *kv).collect::<Vec<_>>(), wanted);
        assert!(found.iter().all(|(kv, share)| (f64::from(*share) - p[9 * kv_len + kv]).abs() < 1e-5));
    }

    #[test]
    fn rows_that_cannot_be_judged_do_not_count_in_the_mean() {
        // three of the first eight rows keep no key in full attention
        let keep: Vec<u8> = (0..256).map(|at| u8::from(![1, 2, 5].contains(&(at / 16)))).collect();
        let made = Head { own: Own::Keep(keep.into()), ..head(4, 16, 16, 8, 1.0) };
        let block = BlockSize::square(8);
        let mut graph = crate::ir::graph::Graph::new();
        let root = graph.bool(false);
        let nothing = crate::ir::graph::Mod { kind: crate::ir::graph::ModKind::Mask, graph, root, sources: Vec::new() };
        let control = Control::new();
        let blocks = BlockMask::build(Some(&nothing), MaskShape::broadcast(made.lengths()), block, &control).unwrap();
        let full = masses(&made, block, false, &control).unwrap();
        let p = dense(&made).p;
        // a mask that keeps one key: its blocks are partial
        let first = {
            let mut g = crate::analysis::examples::Builder::new();
            let root = g.at_most(g.k, 0);
            g.mask(root)
        };
        let some = BlockMask::build(Some(&first), MaskShape::broadcast(made.lengths()), block, &control).unwrap();
        for (blocks, from) in [(blocks, 0), (some, 1)] {
            let found = by_block(&Scorer::new(&made), &full, &Kept::new(blocks), &control).unwrap();
            for (at, found) in found.iter().enumerate() {
                let (rows, columns) = (at / 2 * 8..at / 2 * 8 + 8, at % 2 * 8..at % 2 * 8 + 8);
                let judged = [5.0, 8.0][at / 2];
                let sum: f64 =
                    rows.map(|q| columns.clone().filter(|kv| *kv >= from).map(|kv| p[q * 16 + kv]).sum::<f64>()).sum();
                assert!((f64::from(*found) - sum / judged).abs() < 1e-5, "{at}: {found}");
            }
        }
    }

    #[test]
    fn cancelled_pictures_are_errors() {
        let made = head(1, 32, 32, 8, 1.0);
        let block = BlockSize::square(16);
        let blocks = BlockMask::build(None, MaskShape::broadcast(made.lengths()), block, &Control::new()).unwrap();
        let (kept, scorer) = (Kept::new(blocks), Scorer::new(&made));
        let full = masses(&made, block, false, &Control::new()).unwrap();
        let control = Control::new();
        control.cancel();
        let region = Region { b: 0, h: 0, q: 0..32, kv: 0..32, height: 4, width: 4 };
        assert_eq!(by_block(&scorer, &full, &kept, &control).unwrap_err().code, "cancelled");
        assert_eq!(by_cell(&scorer, &full, &kept, &region, Shows::All, &control).unwrap_err().code, "cancelled");
    }

    #[test]
    fn a_strip_has_no_more_parts_than_rows() {
        assert_eq!(strip(&[0.5, 0.25], 7), [0.5, 0.25]);
        assert_eq!(strip(&[0.5, 0.25, 0.75, 0.625, 1.0], 2), [0.25, 0.625]);
        assert_eq!(strip(&[0.5, 0.25], 0), [0.25]);
        assert!(matches!(strip(&[], 3)[..], [none] if none.is_nan()));
    }
}
