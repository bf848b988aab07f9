//! Whether a mask keeps all, none or some cells of a box, by intervals alone and exactly.
//!
//! Invariant: `Empty` and `Full` are always right. `classify` may return `Mixed` for a box that is not mixed;
//! `Exact::resolve` never does. Must not know how blocks are stored.

use super::interval::{Cells, Key, KeyMap, Program, Scratch};
use crate::ir::graph::Mod;
use crate::ir::tiles;
use std::sync::Arc;

/// The kept part of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing.
    Empty,
    /// Everything.
    Full,
    /// Some, or (from intervals alone) unknown.
    Mixed,
}

/// A mask ready to be asked about boxes and cells; shared between threads.
#[derive(Debug)]
pub struct Mask {
    program: Program,
    cells: tiles::Program,
    source: Arc<Mod>,
}

impl Mask {
    /// Compiles a mask_mod.
    pub fn new(source: Arc<Mod>) -> Self {
        Self { program: Program::new(&source), cells: tiles::Program::new(&source), source }
    }

    /// The mod it was made from.
    pub fn source(&self) -> &Arc<Mod> {
        &self.source
    }

    /// The graph over boxes.
    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// Fresh scratch for `classify`.
    pub fn scratch(&self) -> Scratch {
        self.program.scratch()
    }

    /// The result of intervals for a box.
    pub fn classify(&self, cells: &Cells, scratch: &mut Scratch) -> Verdict {
        let truth = self.program.truth(cells, scratch);
        match truth.value() {
            Some(true) => Verdict::Full,
            Some(false) => Verdict::Empty,
            None => Verdict::Mixed,
        }
    }

    /// The cells of a box as 0 and 1, row by row.
    pub fn tile(&self, cells: &Cells, out: &mut [u8]) {
        let range = |(lo, hi): (i64, i64)| lo as usize..hi as usize + 1;
        self.cells.mask_tile(cells.b.0 as usize, cells.h.0 as usize, range(cells.q), range(cells.kv), out);
    }
}

/// Halves the longer side, or both if they are equal; the parts come row by row.
pub fn split(cells: &Cells) -> smallvec::SmallVec<[Cells; 4]> {
    let (rows, cols) = (cells.q.1 - cells.q.0 + 1, cells.kv.1 - cells.kv.0 + 1);
    let halves = |(lo, hi): (i64, i64), n: i64, cut: bool| -> smallvec::SmallVec<[(i64, i64); 2]> {
        if cut && n > 1 {
            let middle = lo + (n as u64).next_power_of_two() as i64 / 2;
            smallvec::smallvec![(lo, middle - 1), (middle, hi)]
        } else {
            smallvec::smallvec![(lo, hi)]
        }
    };
    let mut out = smallvec::SmallVec::new();
    for q in halves(cells.q, rows, 2 * rows > cols) {
        for kv in halves(cells.kv, cols, 2 * cols > rows) {
            out.push(Cells { q, kv, ..*cells });
        }
    }
    out
}

/// Cells of a box that are evaluated one by one rather than split further.
const TILE: u64 = 1024;
/// Remembered remains, at most.
const MEMO: usize = 1 << 14;

/// Which cells of one box are kept, summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Kept cells.
    pub kept: u64,
    /// One bit a row: whether it keeps a cell.
    pub rows: Vec<u64>,
}

/// Exact answers about boxes, with a memory of remains already seen; one a thread.
pub struct Exact<'a> {
    mask: &'a Mask,
    scratch: Scratch,
    kinds: KeyMap<Verdict>,
    counts: KeyMap<Arc<Count>>,
    tile: Vec<u8>,
    stack: Vec<Cells>,
}

impl<'a> Exact<'a> {
    /// A solver for this mask.
    pub fn new(mask: &'a Mask) -> Self {
        Self {
            mask,
            scratch: mask.scratch(),
            kinds: KeyMap::default(),
            counts: KeyMap::default(),
            tile: Vec::new(),
            stack: Vec::new(),
        }
    }

    /// The result of intervals.
    pub fn classify(&mut self, cells: &Cells) -> Verdict {
        self.mask.classify(cells, &mut self.scratch)
    }

    /// The exact kind: `Mixed` only if the box contains both kept and dropped cells.
    pub fn resolve(&mut self, cells: &Cells) -> Verdict {
        match self.classify(cells) {
            Verdict::Mixed => self.resolve_mixed(cells),
            decided => decided,
        }
    }

    /// The same for a box that intervals, here or elsewhere, have left open.
    pub fn resolve_mixed(&mut self, cells: &Cells) -> Verdict {
        // most mixed boxes show both at their corners, which is quicker than intervals and than remembering them
        let Some(corner) = self.corners(cells) else { return Verdict::Mixed };
        match self.classify(cells) {
            Verdict::Mixed => self.remembered(cells, corner),
            decided => decided,
        }
    }

    /// The kind of the box that was just classified, from memory if one with the same remains was looked at.
    fn remembered(&mut self, cells: &Cells, corner: Verdict) -> Verdict {
        let key = self.mask.program.residual(cells, &mut self.scratch);
        if let Some(known) = key.as_ref().and_then(|k| self.kinds.get(k)) {
            return *known;
        }
        let found = self.search(cells, corner);
        if let Some(key) = key.filter(|_| self.kinds.len() < MEMO) {
            self.kinds.insert(key, found);
        }
        found
    }

    /// The verdict that all four corners share, if they do; otherwise the box is mixed.
    fn corners(&mut self, cells: &Cells) -> Option<Verdict> {
        let mut corner = |q: i64, kv: i64| match self.classify(&Cells { q: (q, q), kv: (kv, kv), ..*cells }) {
            // intervals of a single cell decide, but for floats on the edge
            Verdict::Mixed => self.cells(&Cells { q: (q, q), kv: (kv, kv), ..*cells })[0] != 0,
            decided => decided == Verdict::Full,
        };
        let (q, kv) = (cells.q, cells.kv);
        let first = corner(q.0, kv.0);
        // the diagonal and a document's first block differ along the first row
        let same = corner(q.0, kv.1) == first && corner(q.1, kv.0) == first && corner(q.1, kv.1) == first;
        same.then_some(if first { Verdict::Full } else { Verdict::Empty })
    }

    /// Looks for a kept and a dropped cell, one of which a corner has shown, in ever smaller boxes.
    fn search(&mut self, cells: &Cells, corner: Verdict) -> Verdict {
        let mut seen = (corner == Verdict::Empty, corner == Verdict::Full);
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        stack.push(*cells);
        while let Some(part) = stack.pop() {
            if seen == (true, true) {
                break;
            }
            if !self.note(&part, &mut seen) {
                stack.extend(split(&part));
            }
        }
        self.stack = stack;
        match seen {
            (true, true) => Verdict::Mixed,
            (false, true) => Verdict::Full,
            _ => Verdict::Empty,
        }
    }

    /// Adds a box's cells to (dropped seen, kept seen); false if the box must be split.
    fn note(&mut self, cells: &Cells, seen: &mut (bool, bool)) -> bool {
        match self.classify(cells) {
            Verdict::Empty => seen.0 = true,
            Verdict::Full => seen.1 = true,
            Verdict::Mixed if cells.area() <= TILE => {
                let kept = self.fill_tile(cells);
                seen.0 |= kept < cells.area();
                seen.1 |= kept > 0;
            }
            Verdict::Mixed => return false,
        }
        true
    }

    fn fill_tile(&mut self, cells: &Cells) -> u64 {
        self.cells(cells).iter().map(|c| u64::from(*c)).sum()
    }

    /// The cells of a box as 0 and 1, row by row.
    pub fn cells(&mut self, cells: &Cells) -> &[u8] {
        self.tile.resize(cells.area() as usize, 0);
        self.mask.tile(cells, &mut self.tile);
        &self.tile
    }

    /// The residual of the mask over the box of the last `classify`; equal residuals are equal cells.
    pub fn residual(&mut self, cells: &Cells) -> Option<Key> {
        self.mask.program.residual(cells, &mut self.scratch)
    }

    /// How many cells of a box are kept, and in which rows.
    pub fn count(&mut self, cells: &Cells) -> Arc<Count> {
        let verdict = self.classify(cells);
        let key = match verdict {
            Verdict::Mixed => self.mask.program.residual(cells, &mut self.scratch),
            _ => None,
        };
        if let Some(known) = key.as_ref().and_then(|k| self.counts.get(k)) {
            return known.clone();
        }
        let rows = (cells.q.1 - cells.q.0 + 1) as usize;
        let mut count = Count { kept: 0, rows: vec![0; rows.div_ceil(64)] };
        self.add_count(cells, cells.q.0, &mut count);
        let count = Arc::new(count);
        if let Some(key) = key.filter(|_| self.counts.len() < MEMO) {
            self.counts.insert(key, count.clone());
        }
        count
    }

    fn add_count(&mut self, cells: &Cells, origin: i64, count: &mut Count) {
        match self.classify(cells) {
            Verdict::Empty => {}
            Verdict::Full => {
                count.kept += cells.area();
                (cells.q.0..=cells.q.1).for_each(|q| set_row(count, q - origin));
            }
            Verdict::Mixed if cells.area() <= TILE => {
                count.kept += self.fill_tile(cells);
                let width = (cells.kv.1 - cells.kv.0 + 1) as usize;
                for (row, line) in self.tile.chunks(width).enumerate() {
                    if line.iter().any(|c| *c != 0) {
                        set_row(count, cells.q.0 - origin + row as i64);
                    }
                }
            }
            Verdict::Mixed => split(cells).iter().for_each(|part| self.add_count(part, origin, count)),
        }
    }
}

fn set_row(count: &mut Count, row: i64) {
    count.rows[row as usize / 64] |= 1 << (row % 64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::examples::{self, Builder};
    use crate::ir::graph::{Op, UnaryOp};

    fn cells(q: std::ops::Range<usize>, kv: std::ops::Range<usize>) -> Cells {
        Cells::new(0, 0, q, kv)
    }

    /// All cells but one, or that one alone.
    fn odd((q, kv): (i64, i64), kept: bool) -> Mask {
        let mut g = Builder::new();
        let (a, b) = (g.int(q), g.int(kv));
        let (row, column) = (g.eq(g.q, a), g.eq(g.k, b));
        let one = g.and(row, column);
        let root = if kept { one } else { g.not(one) };
        Mask::new(Arc::new(g.mask(root)))
    }

    /// A document's end, and the diagonal: bounds have left them open, and two cells tell.
    #[test]
    fn the_first_row_of_a_mixed_block_tells() {
        let mut g = Builder::new();
        let root = g.at_most(g.k, 3);
        let (end, causal) = (Mask::new(Arc::new(g.mask(root))), Mask::new(Arc::new(examples::causal())));
        for mask in [&end, &causal] {
            let mut exact = Exact::new(mask);
            assert_eq!(exact.resolve_mixed(&cells(0..8, 0..8)), Verdict::Mixed);
            // the second corner was the last cell that anybody looked at
            assert_eq!(exact.scratch.cells(), Some(&Cells::cell(0, 0, 0, 7)));
        }
        let mut exact = Exact::new(&causal);
        // a box that bounds elsewhere left open and that is not mixed
        assert_eq!(exact.resolve_mixed(&cells(8..16, 0..8)), Verdict::Full);
        assert_eq!(exact.resolve_mixed(&cells(0..8, 8..16)), Verdict::Empty);
    }

    #[test]
    fn corners_agree_only_if_all_four_do() {
        for kept in [false, true] {
            for corner in [(2, 3), (2, 12), (9, 3), (9, 12)] {
                let mask = odd(corner, kept);
                assert_eq!(Exact::new(&mask).corners(&cells(2..10, 3..13)), None, "{corner:?}");
            }
            for other in [(2, 4), (5, 3), (5, 12), (9, 11), (1, 3), (5, 5)] {
                let (mask, all) = (odd(other, kept), if kept { Verdict::Empty } else { Verdict::Full });
                assert_eq!(Exact::new(&mask).corners(&cells(2..10, 3..13)), Some(all), "{other:?}");
            }
        }
    }

    /// `op(sin(q_idx), 0)`: of a sine intervals know no more than -1..1, not even in one cell.
    fn sine(
        op: fn(&mut Builder, crate::ir::graph::NodeId, crate::ir::graph::NodeId) -> crate::ir::graph::NodeId,
    ) -> Mask {
        let mut g = Builder::new();
        let float = g.graph.add(Op::Unary(UnaryOp::ToFloat, g.q), None);
        let (sine, zero) = (g.graph.add(Op::Unary(UnaryOp::Sin, float), None), g.graph.float(0.0));
        let root = op(&mut g, sine, zero);
        Mask::new(Arc::new(g.mask(root)))
    }

    #[test]
    fn corners_that_intervals_leave_open_are_their_own_cells() {
        // sin is positive at 2 and 3, and negative at 4 and 5: of (q, kv) with their sum
        let mut g = Builder::new();
        let sum = g.add(g.q, g.k);
        let float = g.graph.add(Op::Unary(UnaryOp::ToFloat, sum), None);
        let (sine, zero) = (g.graph.add(Op::Unary(UnaryOp::Sin, float), None), g.graph.float(0.0));
        let root = g.gt(sine, zero);
        let mask = Mask::new(Arc::new(g.mask(root)));
        let of = |q, kv| Exact::new(&mask).corners(&cells(q, kv));
        assert_eq!((of(3..5, 0..1), of(3..4, 0..2), of(1..3, 1..3)), (None, None, None));
        assert_eq!((of(1..3, 0..1), of(4..6, 0..1)), (Some(Verdict::Full), Some(Verdict::Empty)));
    }

    #[test]
    fn boxes_that_intervals_leave_open_are_resolved_by_their_cells() {
        // sin is positive at 1 to 3 and negative at 4 to 6
        let mask = sine(Builder::gt);
        let mut exact = Exact::new(&mask);
        let found = [1..4, 4..7, 3..5, 2..3, 5..6].map(|q| {
            let cells = cells(q, 0..5);
            assert_eq!(exact.classify(&cells), Verdict::Mixed);
            exact.resolve(&cells)
        });
        assert_eq!(found, [Verdict::Full, Verdict::Empty, Verdict::Mixed, Verdict::Full, Verdict::Empty]);
        // a square is 0 or 1 modulo 4; intervals know 0 to 3
        let square = |is: i64| {
            let mut g = Builder::new();
            let square = g.mul(g.q, g.k);
            let square = g.mul(square, square);
            let (rest, is) = (g.rem_by(square, 4), g.int(is));
            let root = g.eq(rest, is);
            Mask::new(Arc::new(g.mask(root)))
        };
        for (is, found) in [(2, Verdict::Empty), (3, Verdict::Empty), (1, Verdict::Mixed)] {
            // more cells than are looked at at once
            assert_eq!(Exact::new(&square(is)).resolve(&cells(0..70, 0..90)), found);
        }
    }

    #[test]
    fn kept_cells_and_their_rows_are_counted() {
        // rows 1 to 3 of 0..8, and 7 again (sin 7 = 0.66)
        let mask = sine(Builder::gt);
        let count = Exact::new(&mask).count(&cells(0..8, 0..300));
        assert_eq!((count.kept, &count.rows[..]), (4 * 300, &[0b1000_1110][..]));
        let count = Exact::new(&mask).count(&cells(2..5, 7..9));
        assert_eq!((count.kept, &count.rows[..]), (4, &[0b011][..]));
        // rows count from the box's first: sin is positive at 70 to 72
        let count = Exact::new(&mask).count(&cells(70..75, 0..2));
        assert_eq!((count.kept, &count.rows[..]), (6, &[0b111][..]));
        let causal = Mask::new(Arc::new(examples::causal()));
        let count = Exact::new(&causal).count(&cells(0..100, 40..140));
        // row q keeps the keys 40..=q
        assert_eq!((count.kept, count.rows[0], count.rows[1]), (60 * 61 / 2, u64::MAX << 40, (1 << 36) - 1));
    }

    #[test]
    fn the_longer_side_is_halved_at_a_power_of_two() {
        let of = |q, kv| split(&cells(q, kv)).iter().map(|c| (c.q, c.kv)).collect::<Vec<_>>();
        assert_eq!(of(0..4, 0..16), [((0, 3), (0, 7)), ((0, 3), (8, 15))]);
        assert_eq!(of(0..16, 8..12), [((0, 7), (8, 11)), ((8, 15), (8, 11))]);
        assert_eq!(of(0..6, 0..6), [((0, 3), (0, 3)), ((0, 3), (4, 5)), ((4, 5), (0, 3)), ((4, 5), (4, 5))]);
        // twice as long is not halved in both; less than that is
        assert_eq!(of(0..4, 0..8), [((0, 3), (0, 3)), ((0, 3), (4, 7))]);
        assert_eq!(of(0..8, 0..4), [((0, 3), (0, 3)), ((4, 7), (0, 3))]);
        assert_eq!((of(0..5, 0..8).len(), of(0..5, 0..3).len()), (4, 4));
        assert_eq!(of(3..4, 0..2), [((3, 3), (0, 0)), ((3, 3), (1, 1))]);
    }
}
