//! Rows of blocks from the places along kv where the mask's comparisons change.
//!
//! Invariant: blocks that a cut leaves undecided are evaluated one by one, so the rows are as exact as the quadtree's.
//! If many are undecided, the quadtree is used instead. Must not know graphs.

use super::walk::{Grid, Node, Walk};
use crate::analysis::classify::Verdict;
use crate::analysis::interval::{Cells, Cuts, RowCuts};
use crate::base::Diagnostic;
use smallvec::SmallVec;
use std::ops::Range;

/// Runs of blocks of a row, on average, whose bounds are looked at.
const BOUNDED: usize = 768;
/// Open blocks of a row, on average, whose cells are asked about.
const ASKED: usize = 96;
/// Remembered answers.
const MEMO: usize = 24;

/// The cuts of one batch entry and head.
pub(super) struct GroupCuts {
    cuts: Cuts,
    whole: Cells,
}

/// Blocks of a row that are not empty: a range and whether it is known to be full.
type Piece = (Range<u32>, bool);

impl GroupCuts {
    /// None if the mask cannot be cut.
    pub(super) fn new(grid: &Grid<'_>, b: usize, h: usize) -> Option<Self> {
        let lengths = grid.shape.lengths;
        let whole = Cells::new(b, h, 0..lengths.q_len, 0..lengths.kv_len);
        let size = grid.block_size.kv as i64;
        let kv: Vec<(i64, i64)> =
            (0..grid.cols as i64).map(|n| (n * size, ((n + 1) * size - 1).min(whole.kv.1))).collect();
        let cuts = Cuts::new(grid.mask?.program(), &whole, &kv)?;
        Some(Self { cuts, whole })
    }
}

/// Emits rows; false, without emitted rows, if the quadtree is faster.
pub(super) fn cut(walk: &mut Walk<'_, '_, '_>, group: &GroupCuts, rows: Range<usize>) -> Result<bool, Diagnostic> {
    let Some(mask) = walk.grid.mask else { return Ok(false) };
    let mut cutter = Cutter { rows: group.cuts.rows(mask.program()), memo: Vec::new(), pieces: Vec::new() };
    let (mut bounded, mut asked) = (BOUNDED * rows.len(), ASKED * rows.len());
    for row in rows {
        let whole = Node { row, rows: 1, col: 0, cols: walk.grid.cols };
        if walk.left(&whole) {
            walk.decided(&whole);
            continue;
        }
        let q = walk.cells(&Node { row, rows: 1, col: 0, cols: 1 }).q;
        cutter.rows.enter(&group.whole, q);
        let Some(open) = cutter.cut(&mut bounded) else { return Ok(false) };
        if open > asked {
            return Ok(false);
        }
        asked -= open;
        cutter.emit(walk, row)?;
        walk.decided(&whole);
    }
    Ok(true)
}

struct Cutter<'c> {
    rows: RowCuts<'c>,
    memo: Vec<(SmallVec<[i64; 8]>, Verdict)>,
    pieces: Vec<Piece>,
}

impl Cutter<'_> {
    /// Fills the pieces of the row and counts its open blocks; None when there are more than `bounded` runs to look at.
    fn cut(&mut self, bounded: &mut usize) -> Option<usize> {
        self.pieces.clear();
        let (mut start, mut open) = (0, 0);
        for (end, truth) in self.rows.segments() {
            match truth.value() {
                Some(true) => self.pieces.push((start..end, true)),
                Some(false) => {}
                None => {
                    let level = (end - start).ilog2() as usize;
                    for n in start as usize >> level..=(end as usize - 1) >> level {
                        open += self.look(level, n, &(start..end), bounded)?;
                    }
                }
            }
            start = end;
        }
        Some(open)
    }

    /// Blocks of an aligned run as far as they are in a range: decided by their bounds, halved, or open.
    fn look(&mut self, level: usize, n: usize, within: &Range<u32>, bounded: &mut usize) -> Option<usize> {
        let blocks = within.start.max((n << level) as u32)..within.end.min(((n + 1) << level) as u32);
        if blocks.is_empty() {
            return Some(0);
        }
        *bounded = bounded.checked_sub(1)?;
        match self.rows.truth(level, n).value() {
            Some(false) => Some(0),
            Some(true) => {
                self.add(blocks, true);
                Some(0)
            }
            None if level == 0 => {
                self.add(blocks, false);
                Some(1)
            }
            None => {
                let left = self.look(level - 1, 2 * n, within, bounded)?;
                Some(left + self.look(level - 1, 2 * n + 1, within, bounded)?)
            }
        }
    }

    fn add(&mut self, blocks: Range<u32>, full: bool) {
        match self.pieces.last_mut() {
            Some((last, same)) if *same == full && last.end == blocks.start => last.end = blocks.end,
            _ => self.pieces.push((blocks, full)),
        }
    }

    fn emit(&mut self, walk: &mut Walk<'_, '_, '_>, row: usize) -> Result<(), Diagnostic> {
        for at in 0..self.pieces.len() {
            let (blocks, full) = self.pieces[at].clone();
            let (col, cols) = (blocks.start as usize, blocks.len());
            if full {
                walk.step()?;
                walk.emit(&Node { row, rows: 1, col, cols }, true)?;
                continue;
            }
            for col in col..col + cols {
                walk.step()?;
                let node = Node { row, rows: 1, col, cols: 1 };
                if walk.left(&node) {
                    continue;
                }
                match self.verdict(walk, &node) {
                    Verdict::Empty => {}
                    verdict => walk.emit(&node, verdict == Verdict::Full)?,
                }
            }
        }
        Ok(())
    }

    /// The kind of an undecided block, from memory if a similar block was evaluated.
    fn verdict(&mut self, walk: &mut Walk<'_, '_, '_>, node: &Node) -> Verdict {
        let cells = walk.cells(node);
        let Some(key) = self.rows.key(node.col, cells.kv) else { return walk.opened(node) };
        if let Some((_, known)) = self.memo.iter().find(|(k, _)| *k == key) {
            return *known;
        }
        let found = walk.opened(node);
        if self.memo.len() < MEMO {
            self.memo.push((key, found));
        }
        found
    }
}
