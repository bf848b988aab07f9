//! The quadtree over the grid of blocks, and the rows that quadtree and cuts write.
//!
//! Invariant: exact at the leaves. A box that intervals decide is emitted as runs, never block by block. Every row
//! receives its
//! runs in ascending order because a node's left half is finished before its right half. Must not know threads.

use super::{BlockMask, MaskShape, PackedRun};
use crate::analysis::change::{Asked, Change};
use crate::analysis::classify::{Exact, Mask, Verdict};
use crate::analysis::interval::Cells;
use crate::base::{BlockSize, Control, Diagnostic};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs that a mask may need: half a gigabyte.
pub(super) const MAX_RUNS: usize = 1 << 26;
/// Rows of blocks in one task, at least and at most.
const BAND: [usize; 2] = [8, 64];
/// Tasks that there should be, so that all threads have work.
const TASKS: usize = 16;
/// Steps of progress in which a count of blocks is shown.
const SHOWN: usize = 512;

/// The refusal, with the size that the index arrays would need.
pub(super) fn too_large(shape: MaskShape, block_size: BlockSize, blocks: u128, why: &str) -> Diagnostic {
    let gib = blocks as f64 * 16.0 / f64::from(1 << 30);
    let message = format!(
        "a BlockMask of batch {} x heads {} x {} x {} tokens in blocks of {block_size} has {blocks} blocks and would need \
         {gib:.1} GiB of index arrays: {why}",
        shape.batch, shape.heads, shape.lengths.q_len, shape.lengths.kv_len
    );
    Diagnostic::error("grid-too-large", message)
        .hint("use a larger BLOCK_SIZE, shorter lengths, or broadcast over batch and heads")
}

/// A mask of the same extent with known blocks, and the places where it differs.
#[derive(Clone, Copy)]
pub(super) struct Past<'a> {
    pub(super) mask: &'a BlockMask,
    pub(super) change: &'a Change,
}

pub(super) struct Grid<'a> {
    pub(super) mask: Option<&'a Mask>,
    pub(super) shape: MaskShape,
    pub(super) block_size: BlockSize,
    pub(super) past: Option<Past<'a>>,
    control: &'a Control,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Rows of blocks in one task: a power of two.
    pub(super) band: usize,
    pub(super) runs: AtomicUsize,
    /// Blocks, over the stored groups, that are decided, and how many there are.
    done: AtomicUsize,
    pub(super) blocks: usize,
}

impl<'a> Grid<'a> {
    pub(super) fn new(mask: Option<&'a Mask>, shape: MaskShape, block_size: BlockSize, control: &'a Control) -> Self {
        let (rows, cols) = block_size.grid(shape.lengths);
        let band = (rows / TASKS).next_power_of_two().clamp(BAND[0], BAND[1]);
        let (runs, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { mask, shape, block_size, past: None, control, rows, cols, band, runs, done, blocks: rows * cols }
    }

    /// Adds to the blocks that are decided.
    pub(super) fn tell(&self, blocks: usize) {
        let done = self.done.fetch_add(blocks, Ordering::Relaxed) + blocks;
        self.control.set_progress(done as f64 / self.blocks as f64);
    }

    pub(super) fn refuse(&self) -> Diagnostic {
        let groups = self.shape.batch as u128 * self.shape.heads as u128;
        let blocks = self.rows as u128 * self.cols as u128 * groups;
        too_large(self.shape, self.block_size, blocks, "the mask is too scattered to be kept as runs")
    }
}

/// A box of blocks; `rows` and `cols` are powers of two and may reach past the grid.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) row: usize,
    pub(super) rows: usize,
    pub(super) col: usize,
    pub(super) cols: usize,
}

/// A thread's scratch data.
pub(super) struct Eyes<'a> {
    /// None: everything is kept.
    pub(super) exact: Option<Exact<'a>>,
    /// Where the mask differs from the one before, if there was one.
    pub(super) asked: Option<Asked<'a>>,
}

pub(super) struct Walk<'g, 'a, 'e> {
    pub(super) grid: &'g Grid<'a>,
    pub(super) eyes: &'e mut Eyes<'a>,
    pub(super) b: usize,
    pub(super) h: usize,
    pub(super) first: usize,
    pub(super) rows: Vec<SmallVec<[PackedRun; 4]>>,
    /// Blocks decided but not yet reported.
    pub(super) untold: usize,
}

impl Walk<'_, '_, '_> {
    pub(super) fn descend(&mut self, node: Node) -> Result<(), Diagnostic> {
        if node.row >= self.grid.rows || node.col >= self.grid.cols {
            return Ok(());
        }
        self.step()?;
        if !self.left(&node) {
            match self.verdict(&node) {
                Verdict::Empty => {}
                Verdict::Full => self.emit(&node, true)?,
                Verdict::Mixed if node.rows == 1 && node.cols == 1 => self.emit(&node, false)?,
                Verdict::Mixed => return self.children(node),
            }
        }
        self.decided(&node);
        Ok(())
    }

    /// Counts a box of blocks as decided.
    pub(super) fn decided(&mut self, node: &Node) {
        let inside = |start: usize, n: usize, end: usize| (start + n).min(end) - start;
        self.untold += inside(node.row, node.rows, self.grid.rows) * inside(node.col, node.cols, self.grid.cols);
        if self.untold > self.grid.blocks / SHOWN {
            self.grid.tell(std::mem::take(&mut self.untold));
        }
    }

    /// Takes a box over from the mask before, if that is known to keep the same there.
    pub(super) fn left(&mut self, node: &Node) -> bool {
        let Some(past) = self.grid.past else { return false };
        let cells = self.cells(node);
        if !self.eyes.asked.as_mut().is_some_and(|asked| asked.leaves(&cells)) {
            return false;
        }
        let known = past.mask.rows_of(self.b, self.h);
        let (start, end) = (node.col as u32, (node.col + node.cols).min(self.grid.cols) as u32);
        for row in node.row..(node.row + node.rows).min(self.grid.rows) {
            let runs = known.row(row);
            let from = runs.partition_point(|run| run.end() <= start);
            for run in runs[from..].iter().take_while(|run| run.start < end) {
                push(&mut self.rows[row - self.first], run.start.max(start), run.end().min(end), run.full());
            }
        }
        true
    }

    /// Whether the work was cancelled.
    pub(super) fn step(&self) -> Result<(), Diagnostic> {
        if self.grid.control.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }

    /// The cells of a box of blocks.
    pub(super) fn cells(&self, node: &Node) -> Cells {
        let (size, lengths) = (self.grid.block_size, self.grid.shape.lengths);
        let q = node.row * size.q..((node.row + node.rows) * size.q).min(lengths.q_len);
        let kv = node.col * size.kv..((node.col + node.cols) * size.kv).min(lengths.kv_len);
        Cells::new(self.b, self.h, q, kv)
    }

    /// Intervals for a box of blocks; the truth for a single block.
    pub(super) fn verdict(&mut self, node: &Node) -> Verdict {
        let cells = self.cells(node);
        let Some(exact) = self.eyes.exact.as_mut() else { return Verdict::Full };
        match exact.classify(&cells) {
            Verdict::Mixed if node.rows == 1 && node.cols == 1 => exact.resolve_mixed(&cells),
            decided => decided,
        }
    }

    /// The truth for a single block that bounds have left open.
    pub(super) fn opened(&mut self, node: &Node) -> Verdict {
        let cells = self.cells(node);
        self.eyes.exact.as_mut().map_or(Verdict::Full, |exact| exact.resolve_mixed(&cells))
    }

    /// Splits the dimension that is longer in tokens; both if they are equal. Left before right.
    fn children(&mut self, node: Node) -> Result<(), Diagnostic> {
        let size = self.grid.block_size;
        let (tall, wide) = (node.rows * size.q, node.cols * size.kv);
        let cut_rows = node.rows > 1 && (node.cols == 1 || 2 * tall > wide);
        let cut_cols = node.cols > 1 && (node.rows == 1 || 2 * wide > tall);
        let (rows, cols) =
            (if cut_rows { node.rows / 2 } else { node.rows }, if cut_cols { node.cols / 2 } else { node.cols });
        for row in (node.row..node.row + node.rows).step_by(rows) {
            for col in (node.col..node.col + node.cols).step_by(cols) {
                self.descend(Node { row, rows, col, cols })?;
            }
        }
        Ok(())
    }

    /// Adds the node's blocks to its rows; blocks that reach beyond the lengths are partial.
    pub(super) fn emit(&mut self, node: &Node, full: bool) -> Result<(), Diagnostic> {
        let (size, lengths) = (self.grid.block_size, self.grid.shape.lengths);
        let whole_cols = lengths.kv_len / size.kv;
        let end = (node.col + node.cols).min(self.grid.cols);
        for row in node.row..(node.row + node.rows).min(self.grid.rows) {
            let full_row = full && (row + 1) * size.q <= lengths.q_len;
            let full_end = if full_row { end.min(whole_cols) } else { node.col };
            let runs = &mut self.rows[row - self.first];
            push(runs, node.col as u32, full_end as u32, true);
            push(runs, full_end.max(node.col) as u32, end as u32, false);
            if runs.len() > MAX_RUNS {
                return Err(self.grid.refuse());
            }
        }
        Ok(())
    }
}

fn push(runs: &mut SmallVec<[PackedRun; 4]>, start: u32, end: u32, full: bool) {
    if start >= end {
        return;
    }
    let run = PackedRun::new(start, end, full);
    match runs.last_mut() {
        Some(last) if last.end() == start && last.full() == full => last.end = run.end,
        _ => runs.push(run),
    }
}

pub(super) fn cancelled() -> Diagnostic {
    Diagnostic::error("cancelled", "finding the blocks of the mask was cancelled")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Lengths;

    #[test]
    fn a_scattered_mask_is_refused_with_the_number_of_its_blocks() {
        let shape = MaskShape { batch: 2, heads: 3, lengths: Lengths::new(4096, 1000).expect("lengths") };
        let control = Control::new();
        let refused = Grid::new(None, shape, BlockSize { q: 64, kv: 100 }, &control).refuse();
        // 64 rows and 10 columns of blocks in each of 6 groups
        assert!(refused.message.contains("has 3840 blocks"), "{}", refused.message);
        assert!(refused.message.contains("too scattered") && refused.code == "grid-too-large");
    }
}
