//! Pictures of a score mod: the colours of its addition to a score of zero in kept cells.
//!
//! Invariant: the colour range is that of kept cells, and the same for all batch entries and heads, so that heads can
//! be compared; a fully masked pixel is hatched grey, never a colour of the scale. Must not know the window, caches or
//! threads.

use super::colors::{Palette, Ramp};
use crate::analysis::interval::Cells;
use crate::analysis::raster::{BiasRaster, Raster};
use crate::base::{Control, Lengths};
use egui::Color32;
use std::ops::Range;

/// Cells that are looked at for the range, over all batch entries and heads.
const BUDGET: usize = 1 << 20;
/// Batch entries and heads that are looked at; of more, so many spread evenly.
const GROUPS: usize = 64;
/// Rows of each, where not all of them are looked at.
const ROWS: usize = 16;
/// Pieces of a row that is not evaluated as a whole.
const PIECES: usize = 16;

/// Most cells along each side of the grid over the whole picture.
const GRID: usize = 512;

/// The range of a bias's colours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    /// Over kept cells.
    pub ramp: Ramp,
    /// Whether all of them were looked at.
    pub exact: bool,
}

/// The mods that are looked at.
pub(super) struct Mods<'a> {
    /// None keeps everything.
    pub mask: Option<&'a Raster>,
    /// The drawn picture.
    pub score: &'a BiasRaster,
    /// Rows and columns.
    pub lengths: Lengths,
}

/// The range over kept cells of these (batch entry, head); None: cancelled, or nothing is kept.
pub(super) fn span(mods: &Mods<'_>, groups: &[[usize; 2]], control: &Control) -> Option<Span> {
    let Lengths { q_len, kv_len } = mods.lengths;
    let some = groups.iter().step_by(groups.len().div_ceil(GROUPS).max(1));
    let cells = BUDGET / groups.len().clamp(1, GROUPS);
    let all = q_len.saturating_mul(kv_len) <= cells;
    let rows = if all { q_len } else { q_len.min(ROWS) };
    let (mut ramp, mut kept, mut scores): (Option<Ramp>, Vec<u8>, Vec<f32>) = (None, Vec::new(), Vec::new());
    for [b, h] in some.copied() {
        for n in 0..rows {
            if control.is_cancelled() {
                return None;
            }
            let q = spread(n, rows, q_len);
            for kv in pieces(q, mods.lengths, cells / rows.max(1)) {
                scores.clear();
                scores.resize(kv.len(), 0.0);
                mods.score.row(b, h, q, kv.clone(), &mut scores);
                mods.kept(b, h, q, kv, &mut kept);
                let values = scores.iter().zip(&kept).filter(|(_, kept)| **kept != 0).map(|(score, _)| *score);
                ramp = Ramp::over(values.chain(ramp.iter().flat_map(|r| [r.lo, r.hi])));
            }
        }
    }
    // what is large enough to be seen in the whole picture, wherever it lies
    if !all {
        let side = ((BUDGET / 4 / groups.len().clamp(1, GROUPS)) as f64).sqrt() as usize;
        let some = groups.iter().step_by(groups.len().div_ceil(GROUPS).max(1));
        for [b, h] in some.copied() {
            ramp = mods.over_grid([b, h], side.clamp(1, GRID), ramp, control)?;
        }
    }
    let exact = all && groups.len() <= GROUPS;
    ramp.map(|ramp| Span { ramp, exact })
}

/// The `n`-th of `parts` places, the first and last included.
fn spread(n: usize, parts: usize, len: usize) -> usize {
    if parts < 2 { len / 2 } else { (n as u128 * (len - 1) as u128 / (parts - 1) as u128) as usize }
}

/// Parts of a row to look at: all of it, or pieces spread evenly and a larger one about the diagonal, where narrow masks keep.
fn pieces(q: usize, lengths: Lengths, cells: usize) -> Vec<Range<usize>> {
    let len = lengths.kv_len;
    if len <= cells {
        return std::iter::once(0..len).collect();
    }
    let piece = |start: usize, width: usize| {
        let start = start.min(len - width);
        start..start + width
    };
    let (few, near) = ((cells / 2 / PIECES).clamp(1, len), (cells / 4).clamp(1, len));
    let diagonal = (q as u128 * len as u128 / lengths.q_len as u128) as usize;
    let along = (0..PIECES).map(|n| piece(spread(n, PIECES, len - few + 1), few));
    along.chain([diagonal, q].map(|at| piece(at.saturating_sub(near / 2), near))).collect()
}

impl Mods<'_> {
    /// A range widened by the kept cells of a grid over everything; None: cancelled.
    fn over_grid(
        &self,
        [b, h]: [usize; 2],
        side: usize,
        ramp: Option<Ramp>,
        control: &Control,
    ) -> Option<Option<Ramp>> {
        let Lengths { q_len, kv_len } = self.lengths;
        let (rows, columns) = (side.min(q_len), side.min(kv_len));
        let (mut ramp, mut kept, mut score) = (ramp, Vec::new(), [0.0]);
        for row in 0..rows {
            if control.is_cancelled() {
                return None;
            }
            let q = spread(row, rows, q_len);
            for column in 0..columns {
                let kv = spread(column, columns, kv_len);
                self.kept(b, h, q, kv..kv + 1, &mut kept);
                if kept[0] != 0 {
                    score[0] = 0.0;
                    self.score.row(b, h, q, kv..kv + 1, &mut score);
                    ramp = Ramp::over(score.iter().copied().chain(ramp.iter().flat_map(|r| [r.lo, r.hi])));
                }
            }
        }
        Some(ramp)
    }

    /// Which cells of a row are kept.
    fn kept(&self, b: usize, h: usize, q: usize, kv: Range<usize>, out: &mut Vec<u8>) {
        out.clear();
        out.resize(kv.len(), 1);
        if let Some(raster) = self.mask {
            raster.mask().tile(&Cells::new(b, h, q..q + 1, kv), out);
        }
    }
}

/// The colour of a pixel that keeps none: stripes over the picture's own pixels.
pub(super) fn dropped(row: usize, col: usize, palette: &Palette) -> Color32 {
    palette.dropped[usize::from((row + col) % 8 < 4)]
}
