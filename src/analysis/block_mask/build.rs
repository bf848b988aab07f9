//! Finds the blocks: row by row if the mask's comparisons change at few places, otherwise by a quadtree over the grid
//! of blocks. Threads take bands of rows.
//!
//! Invariant: the bands of a group are joined in order, whichever thread finishes first. Must not know how a box of
//! blocks is decided.

use super::alike::alike;
use super::rows::{self, GroupCuts};
use super::walk::{Eyes, Grid, MAX_RUNS, Node, Past, Walk, too_large};
use super::{BlockMask, Inner, MaskShape, PackedRun, Rows};
use crate::analysis::change::Change;
use crate::analysis::classify::{Exact, Mask};
use crate::analysis::spread;
use crate::base::{BlockSize, Control, Diagnostic};
use crate::ir::graph::Mod;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// Blocks of a grid, over batch and heads, that we are ready to look at.
const MAX_BLOCKS: u128 = 1 << 36;
/// Rows of blocks, over batch and heads.
const MAX_ROWS: usize = 1 << 26;

pub(super) fn build(
    mask: Option<Arc<Mod>>,
    shape: MaskShape,
    block_size: BlockSize,
    control: &Control,
) -> Result<BlockMask, Diagnostic> {
    check(shape, block_size)?;
    find(mask, shape, block_size, None, control)
}

/// The blocks of another mask of the same extent, computed only where it differs from the previous mask.
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

impl<'a> Grid<'a> {
    /// The rows of these batch entries and heads.
    fn groups(&self, groups: &[(usize, usize)]) -> Result<Vec<Rows>, Diagnostic> {
        // where only a part is looked at, its group's cuts are made when they are first needed
        let cuts: Vec<OnceLock<Option<GroupCuts>>> = groups.iter().map(|_| OnceLock::new()).collect();
        let prepare = |n: usize| {
            let (b, h) = groups[n];
            cuts[n].get_or_init(|| GroupCuts::new(self, b, h)).as_ref()
        };
        if self.past.is_none() {
            spread::in_order(groups.len(), || (), |(), n| prepare(n).is_some());
        }
        let bands = self.rows.div_ceil(self.band);
        let tasks = groups.len() * bands;
        let task = |eyes: &mut Eyes<'a>, n: usize| {
            let (group, band) = (n / bands, n % bands);
            self.band(eyes, groups[group], || prepare(group), band * self.band)
        };
        let start = || Eyes { exact: self.mask.map(Exact::new), asked: self.past.map(|past| past.change.ask()) };
        let parts = spread::in_order(tasks, start, task).into_iter().collect::<Result<Vec<Band>, _>>()?;
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
