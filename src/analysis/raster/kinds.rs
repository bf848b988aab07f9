//! Kinds of the blocks in a rectangle, for pictures that colour full, partial and empty blocks.
//!
//! Invariant: exact in the sense of block masks, before the ends of the lengths are considered. Must not know pixels or
//! colours.

use super::Raster;
use crate::analysis::classify::{Exact, Verdict};
use crate::analysis::interval::Cells;
use crate::base::Control;
use std::ops::Range;

/// A grid of blocks: cuts between rows and between columns, in tokens, rising.
struct Grid<'g> {
    b: usize,
    h: usize,
    q_cuts: &'g [usize],
    kv_cuts: &'g [usize],
    control: &'g Control,
}

impl Raster {
    /// The kind of each box between neighbouring cuts, row by row. If cancelled, it returns early with the rest
    /// `Mixed`.
    pub fn kinds(&self, b: usize, h: usize, q_cuts: &[usize], kv_cuts: &[usize], control: &Control) -> Vec<Verdict> {
        let (rows, cols) = (q_cuts.len().saturating_sub(1), kv_cuts.len().saturating_sub(1));
        let mut out = vec![Verdict::Mixed; rows * cols];
        if rows > 0 && cols > 0 {
            let grid = Grid { b, h, q_cuts, kv_cuts, control };
            grid.descend(&mut Exact::new(&self.mask), 0..rows, 0..cols, &mut out);
        }
        out
    }
}

impl Grid<'_> {
    fn descend(&self, exact: &mut Exact<'_>, rows: Range<usize>, cols: Range<usize>, out: &mut [Verdict]) {
        if self.control.is_cancelled() {
            return;
        }
        let tokens = |cuts: &[usize], r: &Range<usize>| cuts[r.start]..cuts[r.end];
        let cells = Cells::new(self.b, self.h, tokens(self.q_cuts, &rows), tokens(self.kv_cuts, &cols));
        let single = rows.len() == 1 && cols.len() == 1;
        let verdict = if single { exact.resolve(&cells) } else { exact.classify(&cells) };
        if single || verdict != Verdict::Mixed {
            let width = self.kv_cuts.len() - 1;
            rows.for_each(|row| out[row * width + cols.start..row * width + cols.end].fill(verdict));
            return;
        }
        let halves = |r: &Range<usize>, cut: bool| {
            let middle = if cut { r.start + r.len().div_ceil(2) } else { r.end };
            [r.start..middle, middle..r.end]
        };
        let (cut_rows, cut_cols) = (2 * rows.len() > cols.len(), 2 * cols.len() > rows.len());
        for row in halves(&rows, cut_rows && rows.len() > 1) {
            for col in halves(&cols, cut_cols && cols.len() > 1) {
                if !row.is_empty() && !col.is_empty() {
                    self.descend(exact, row.clone(), col, out);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::block_mask::{BlockKind, BlockMask, MaskShape};
    use crate::analysis::classify::Verdict;
    use crate::analysis::examples::{self, Rng};
    use crate::analysis::raster::Raster;
    use crate::base::{BlockSize, Control, Lengths};
    use std::sync::Arc;

    #[test]
    fn kinds_are_those_of_the_block_mask() {
        let lengths = Lengths::new(192, 160).unwrap();
        let size = BlockSize { q: 16, kv: 32 };
        for (name, of) in examples::all(lengths, &mut Rng::new(4)) {
            let Some(of) = of else { continue };
            let mask = BlockMask::build(Some(&of), MaskShape::broadcast(lengths), size, &Control::new()).unwrap();
            let cuts = |n: usize, step: usize| (0..=n / step).map(|i| i * step).collect::<Vec<_>>();
            let (q, kv) = (cuts(192, 16), cuts(160, 32));
            let kinds = Raster::new(Arc::new(of)).kinds(0, 0, &q, &kv, &Control::new());
            for (at, kind) in kinds.iter().enumerate() {
                let want = match mask.kind(0, 0, at / 5, at % 5) {
                    Some(BlockKind::Full) => Verdict::Full,
                    Some(BlockKind::Partial) => Verdict::Mixed,
                    None => Verdict::Empty,
                };
                assert_eq!(*kind, want, "{name} block {at}");
            }
        }
    }
}
