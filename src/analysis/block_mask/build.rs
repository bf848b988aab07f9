//! Finding the blocks: row by row where the mask's comparisons turn at few places, else a quadtree over the grid of blocks
//! decided by intervals; exact at the leaves either way.
//!
//! Invariant: a box that intervals decide is emitted as runs, never block by block. Every row receives its runs in
//! ascending order because a node's left half is finished before its right half.

use super::alike::alike;
use super::rows::{self, GroupCuts};
use super::{BlockMask, Inner, MaskShape, PackedRun, Rows};
use crate::analysis::change::{Asked, Change};
use crate::analysis::classify::{Exact, Mask, Verdict};
use crate::analysis::interval::Cells;
use crate::base::{BlockSize, Control, Diagnostic};
use crate::ir::graph::Mod;
use rayon::prelude::*;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Blocks of a grid, over batch and heads, that we are ready to look at.
const MAX_BLOCKS: u128 = 1 << 36;
/// Rows of blocks, over batch and heads.
const MAX_ROWS: usize = 1 << 26;
/// Runs that a mask may need: half a gigabyte.
const MAX_RUNS: usize = 1 << 26;
/// Rows of blocks in one task, at least and at most.
const BAND: [usize; 2] = [8, 64];
/// Tasks that there should be, so that all threads have work.
const TASKS: usize = 16;
/// Steps of progress in which a count of blocks is told.
const TOLD: usize = 512;
/// Work that one thread does alone.
const QUICK: Duration = Duration::from_micros(500);

pub(super) fn build(
    mask: Option<Arc<Mod>>,
    shape: MaskShape,
    block_size: BlockSize,
    control: &Control,
) -> Result<BlockMask, Diagnostic> {
    check(shape, block_size)?;
    find(mask, shape, block_size, None, control)
}

/// The blocks of another mask of the same extent, looking only where it differs from the one before.
pub(super) fn rebuild(
    before: &BlockMask,
    change: &Change,
    mask: Option<Arc<Mod>>,
    control: &Control,
) -> Result<BlockMask, Diagnostic> {
    find(mask, before.inner.shape, before.inner.block_size, Some(Past { mask: before, change }), control)
}

fn find(
    mask: Option<Arc<Mod>>,
    shape: MaskShape,
    block_size: BlockSize,
    past: Option<Past<'_>>,
    control: &Control,
) -> Result<BlockMask, Diagnostic> {
    let MaskShape { batch, heads, .. } = MaskShape::of(mask.as_deref(), (shape.batch, shape.heads), shape.lengths);
    let distinct = (batch, heads);
    let groups: Vec<(usize, usize)> = (0..distinct.0).flat_map(|b| (0..distinct.1).map(move |h| (b, h))).collect();
    let alike = alike(mask.as_deref(), &groups);
    let own: Vec<usize> = (0..groups.len()).filter(|n| alike[*n] == *n).collect();
    let mask = mask.map(Mask::new);
    let mut grid = Grid::new(mask.as_ref(), shape, block_size, control);
    grid.past = past;
    grid.blocks *= own.len();
    let found = grid.groups(&own.iter().map(|n| groups[*n]).collect::<Vec<_>>())?;
    let mut rows: Vec<Option<Arc<Rows>>> = vec![None; groups.len()];
    own.iter().zip(found).for_each(|(n, found)| rows[*n] = Some(Arc::new(found)));
    let groups = alike.iter().filter_map(|first| rows[*first].clone()).collect();
    let inner =
        Inner { shape, block_size, mask, distinct, groups, alike, stats: OnceLock::new(), sums: OnceLock::new() };
    Ok(BlockMask { inner: Arc::new(inner) })
}

/// A mask of the same extent whose blocks are known, and where it differs.
#[derive(Clone, Copy)]
struct Past<'a> {
    mask: &'a BlockMask,
    change: &'a Change,
}

fn check(shape: MaskShape, block_size: BlockSize) -> Result<(), Diagnostic> {
    if block_size.q == 0 || block_size.kv == 0 {
        return Err(Diagnostic::error("block-size-zero", format!("BLOCK_SIZE {block_size} has no extent"))
            .hint("use a positive block size; PyTorch's default is 128x128"));
    }
    if shape.batch == 0 || shape.heads == 0 {
        let message = format!("a block mask of batch {} and heads {} is empty", shape.batch, shape.heads);
        return Err(Diagnostic::error("block-mask-empty", message).hint("use 1 to broadcast over batch or heads"));
    }
    let (rows, cols) = block_size.grid(shape.lengths);
    let groups = shape.batch.saturating_mul(shape.heads);
    let blocks = rows as u128 * cols as u128 * groups as u128;
    if blocks > MAX_BLOCKS || rows.saturating_mul(groups) > MAX_ROWS {
        return Err(too_large(shape, block_size, blocks, "the grid alone is past what can be listed"));
    }
    Ok(())
}

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

pub(super) struct Grid<'a> {
    pub(super) mask: Option<&'a Mask>,
    pub(super) shape: MaskShape,
    pub(super) block_size: BlockSize,
    past: Option<Past<'a>>,
    control: &'a Control,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Rows of blocks in one task: a power of two.
    band: usize,
    runs: AtomicUsize,
    /// Blocks, over the stored groups, that are decided, and how many there are.
    done: AtomicUsize,
    blocks: usize,
}

impl<'a> Grid<'a> {
    fn new(mask: Option<&'a Mask>, shape: MaskShape, block_size: BlockSize, control: &'a Control) -> Self {
        let (rows, cols) = block_size.grid(shape.lengths);
        let band = (rows / TASKS).next_power_of_two().clamp(BAND[0], BAND[1]);
        let (runs, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { mask, shape, block_size, past: None, control, rows, cols, band, runs, done, blocks: rows * cols }
    }

    /// The rows of these batch entries and heads.
    fn groups(&self, groups: &[(usize, usize)]) -> Result<Vec<Rows>, Diagnostic> {
        // where only a part is looked at, its group's cuts are made when they are first needed
        let cuts: Vec<OnceLock<Option<GroupCuts>>> = groups.iter().map(|_| OnceLock::new()).collect();
        let prepare = |n: usize| {
            let (b, h) = groups[n];
            cuts[n].get_or_init(|| GroupCuts::new(self, b, h)).as_ref()
        };
        if self.past.is_none() {
            (0..groups.len()).into_par_iter().for_each(|n| {
                prepare(n);
            });
        }
        let bands = self.rows.div_ceil(self.band);
        let tasks = groups.len() * bands;
        let task = |eyes: &mut Eyes<'a>, n: usize| {
            let (group, band) = (n / bands, n % bands);
            self.band(eyes, groups[group], || prepare(group), band * self.band)
        };
        let start = || Eyes { exact: self.mask.map(Exact::new), asked: self.past.map(|past| past.change.ask()) };
        // where the first task says that all take less than waking other threads, one thread does them
        let began = Instant::now();
        let mut eyes = start();
        let first = task(&mut eyes, 0)?;
        let rest: Vec<Band> = if began.elapsed() * (tasks as u32) < QUICK {
            (1..tasks).map(|n| task(&mut eyes, n)).collect::<Result<_, _>>()?
        } else {
            (1..tasks).into_par_iter().map_init(start, task).collect::<Result<_, _>>()?
        };
        let parts: Vec<Band> = std::iter::once(first).chain(rest).collect();
        Ok(parts.chunks(bands).map(join).collect())
    }

    fn band<'c>(
        &self,
        eyes: &mut Eyes<'a>,
        (b, h): (usize, usize),
        cuts: impl Fn() -> Option<&'c GroupCuts>,
        first: usize,
    ) -> Result<Band, Diagnostic> {
        let rows = self.band.min(self.rows - first);
        let mut walk = Walk { grid: self, eyes, b, h, first, rows: vec![SmallVec::new(); rows], untold: 0 };
        let whole = Node { row: first, rows: self.band, col: 0, cols: self.cols.next_power_of_two() };
        if !walk.left(&whole) {
            let cut = match cuts() {
                Some(cuts) => rows::cut(&mut walk, cuts, first..first + rows)?,
                None => false,
            };
            if !cut {
                walk.rows.iter_mut().for_each(SmallVec::clear);
                walk.descend(whole)?;
            }
        }
        self.tell(walk.untold);
        let lengths: Vec<u32> = walk.rows.iter().map(|r| r.len() as u32).collect();
        let mut runs = Vec::with_capacity(walk.rows.iter().map(SmallVec::len).sum());
        walk.rows.iter().for_each(|row| runs.extend_from_slice(row));
        let total = self.runs.fetch_add(runs.len(), Ordering::Relaxed) + runs.len();
        if total > MAX_RUNS {
            return Err(self.refuse());
        }
        Ok(Band { lengths, runs })
    }

    /// Adds to the blocks that are decided.
    fn tell(&self, blocks: usize) {
        let done = self.done.fetch_add(blocks, Ordering::Relaxed) + blocks;
        self.control.set_progress(done as f64 / self.blocks as f64);
    }

    fn refuse(&self) -> Diagnostic {
        let groups = self.shape.batch as u128 * self.shape.heads as u128;
        let blocks = self.rows as u128 * self.cols as u128 * groups;
        too_large(self.shape, self.block_size, blocks, "the mask is too scattered to be kept as runs")
    }
}

/// Rows of one task.
struct Band {
    lengths: Vec<u32>,
    runs: Vec<PackedRun>,
}

fn join(bands: &[Band]) -> Rows {
    let mut offsets = vec![0];
    let mut at = 0;
    for length in bands.iter().flat_map(|b| &b.lengths) {
        at += length;
        offsets.push(at);
    }
    Rows { offsets, runs: bands.iter().flat_map(|b| b.runs.iter().copied()).collect() }
}

/// A box of blocks; `rows` and `cols` are powers of two and may reach past the grid.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) row: usize,
    pub(super) rows: usize,
    pub(super) col: usize,
    pub(super) cols: usize,
}

/// What a thread looks with.
struct Eyes<'a> {
    /// None: everything is kept.
    exact: Option<Exact<'a>>,
    /// Where the mask differs from the one before, if there was one.
    asked: Option<Asked<'a>>,
}

pub(super) struct Walk<'g, 'a, 'e> {
    pub(super) grid: &'g Grid<'a>,
    eyes: &'e mut Eyes<'a>,
    b: usize,
    h: usize,
    first: usize,
    rows: Vec<SmallVec<[PackedRun; 4]>>,
    /// Blocks that have been decided and not been told.
    untold: usize,
}

impl Walk<'_, '_, '_> {
    fn descend(&mut self, node: Node) -> Result<(), Diagnostic> {
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
        if self.untold > self.grid.blocks / TOLD {
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

    /// Splits what is longer in tokens; both where they are alike. Left before right.
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

    /// Adds the node's blocks to its rows; those that hang over the lengths are partial.
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
