//! Block masks with PyTorch's meaning, run-length coded, of any block size and any lengths.
//!
//! Invariant: exact. A block is full only if every one of its cells is kept and it lies inside the lengths; it is
//! listed only if it keeps a cell. Runs of a row ascend, touch only between different kinds, and never overlap. Must
//! not know documents, problems or devices.

mod alike;
mod build;
mod rows;
mod stats;
mod torch;
mod transposed;
mod walk;

pub use stats::{Load, Stats, sparsity_words};
pub use torch::{Listed, Side, TorchBlockMask, TorchLists};
pub use transposed::Transposed;

use super::change::Change;
use super::classify::Mask;
use crate::base::{BlockSize, Control, Diagnostic, Lengths};
use crate::ir::graph::{Input, Mod};
use std::sync::{Arc, OnceLock};

/// Marks the end of a run of full blocks.
const FULL_BIT: u32 = 1 << 31;

/// Extent of a block mask. `batch` or `heads` 1 means broadcast: the mask is that of b = 0 or h = 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct MaskShape {
    pub batch: usize,
    pub heads: usize,
    pub lengths: Lengths,
}

impl MaskShape {
    /// One mask for all batch entries and heads.
    pub fn broadcast(lengths: Lengths) -> Self {
        Self { batch: 1, heads: 1, lengths }
    }

    /// Batch entries and heads between which a mask differs by its graph, 1 if it does not read them.
    pub fn of(mask: Option<&Mod>, (batch, heads): (usize, usize), lengths: Lengths) -> Self {
        let depends = mask.map(|m| m.depends()).unwrap_or_default();
        let extent = |input, all| if depends.on(input) { all } else { 1 };
        Self { batch: extent(Input::B, batch), heads: extent(Input::H, heads), lengths }
    }
}

/// The kept cells of a listed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// All its cells: mask_mod need not be evaluated there.
    Full,
    /// Some of its cells, or all of them in a block that reaches beyond the end.
    Partial,
}

/// Neighbouring blocks of one kind in a row of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRun {
    /// First kv block.
    pub start: usize,
    /// One past the last kv block.
    pub end: usize,
    /// The kind of its blocks.
    pub kind: BlockKind,
}

/// A run in eight bytes: the top bit of the end marks full blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PackedRun {
    start: u32,
    end: u32,
}

impl PackedRun {
    fn new(start: u32, end: u32, full: bool) -> Self {
        Self { start, end: end | if full { FULL_BIT } else { 0 } }
    }

    fn end(self) -> u32 {
        self.end & !FULL_BIT
    }

    fn full(self) -> bool {
        self.end & FULL_BIT != 0
    }

    fn unpack(self) -> BlockRun {
        let kind = if self.full() { BlockKind::Full } else { BlockKind::Partial };
        BlockRun { start: self.start as usize, end: self.end() as usize, kind }
    }
}

/// A mask and the block size at which its blocks were looked for.
#[cfg(any(test, feature = "testing"))]
pub type Build = (Option<Mod>, BlockSize);

#[cfg(any(test, feature = "testing"))]
thread_local! {
    static BUILDS: std::cell::RefCell<Vec<Build>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// All rows of one (b, h) group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rows {
    /// Where each row's runs start; one more at the end.
    offsets: Vec<u32>,
    runs: Vec<PackedRun>,
}

impl Rows {
    fn row(&self, row: usize) -> &[PackedRun] {
        &self.runs[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

/// A block mask. Cheap to clone.
#[derive(Clone, Debug)]
pub struct BlockMask {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shape: MaskShape,
    block_size: BlockSize,
    mask: Option<Mask>,
    /// Distinct batch entries and heads: 1 if the graph does not read b or h.
    distinct: (usize, usize),
    groups: Vec<Arc<Rows>>,
    /// For each group the first with the same mask, whose rows it has.
    alike: Vec<usize>,
    stats: OnceLock<Stats>,
    /// The parts of `stats`, for the next mask that differs from this one only in places.
    sums: OnceLock<Vec<stats::RowSum>>,
}

impl PartialEq for BlockMask {
    /// The same extents and the same blocks, for any mods.
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&*self.inner, &*other.inner);
        let pairs = || (0..a.shape.batch).flat_map(|x| (0..a.shape.heads).map(move |y| (x, y)));
        a.shape == b.shape
            && a.block_size == b.block_size
            && pairs().all(|(x, y)| self.rows_of(x, y) == other.rows_of(x, y))
    }
}

impl BlockMask {
    /// Finds the blocks of `mask` (None keeps everything). Errors: a block size of zero, a grid too large to list, or
    /// `cancelled`.
    pub fn build(
        mask: Option<&Mod>,
        shape: MaskShape,
        block_size: BlockSize,
        control: &Control,
    ) -> Result<Self, Diagnostic> {
        #[cfg(any(test, feature = "testing"))]
        BUILDS.with_borrow_mut(|all| all.push((mask.cloned(), block_size)));
        build::build(mask.map(|m| Arc::new(m.clone())), shape, block_size, control)
    }

    /// The calls of [`BlockMask::build`] in this thread, in order.
    #[cfg(any(test, feature = "testing"))]
    pub fn builds_here() -> Vec<Build> {
        BUILDS.with_borrow(Clone::clone)
    }

    /// The blocks of another mask over the same extent: equal to those of `build`, but computed only where the masks
    /// differ. Also returns these places. Errors: those of `build`.
    pub fn rebuild(&self, mask: Option<&Mod>, control: &Control) -> Result<(Self, Change), Diagnostic> {
        let change = Change::between(self.mask_mod().map(|m| &**m), mask);
        let built = build::rebuild(self, &change, mask.map(|m| Arc::new(m.clone())), control)?;
        Ok((built, change))
    }

    /// The size of its blocks and its extent, as requested.
    pub fn shape(&self) -> MaskShape {
        self.inner.shape
    }

    /// BLOCK_SIZE.
    pub fn block_size(&self) -> BlockSize {
        self.inner.block_size
    }

    /// Rows and columns of blocks.
    pub fn grid(&self) -> (usize, usize) {
        self.inner.block_size.grid(self.inner.shape.lengths)
    }

    /// The mod whose blocks these are.
    pub fn mask_mod(&self) -> Option<&Arc<Mod>> {
        self.inner.mask.as_ref().map(Mask::source)
    }

    /// How many different batch entries and heads are stored; the others repeat them.
    pub fn distinct(&self) -> (usize, usize) {
        self.inner.distinct
    }

    /// Runs of a row of blocks, ascending; empty blocks are in none. `b` and `h` are taken modulo the stored numbers.
    pub fn runs(&self, b: usize, h: usize, q_block: usize) -> impl Iterator<Item = BlockRun> + '_ {
        self.rows_of(b, h).row(q_block).iter().map(|r| r.unpack())
    }

    /// The kind of one block; None is empty.
    pub fn kind(&self, b: usize, h: usize, q_block: usize, kv_block: usize) -> Option<BlockKind> {
        let row = self.rows_of(b, h).row(q_block);
        let after = row.partition_point(|r| r.start as usize <= kv_block);
        let run = row[..after].last()?;
        (kv_block < run.end() as usize).then(|| run.unpack().kind)
    }

    /// Blocks, cells and rows summed up. The blocks are counted at once, the cells of partial blocks at the first call.
    pub fn stats(&self) -> Stats {
        self.stats_with(&Control::new()).expect("nobody cancelled")
    }

    /// The same, for a caller that may cancel; None if it did.
    pub fn stats_with(&self, control: &Control) -> Option<Stats> {
        if let Some(known) = self.inner.stats.get() {
            return Some(known.clone());
        }
        self.count(None, control)
    }

    /// The same, counted only where the mask differs from `before`, from which `rebuild` made this one.
    pub fn stats_after(&self, before: &BlockMask, change: &Change, control: &Control) -> Option<Stats> {
        self.count(stats::Past::new(before, change), control)
    }

    fn count(&self, past: Option<stats::Past<'_>>, control: &Control) -> Option<Stats> {
        let (found, sums) = stats::stats(self, past, control)?;
        let _ = self.inner.sums.set(sums);
        Some(self.inner.stats.get_or_init(|| found).clone())
    }

    /// PyTorch's arrays. Errors: they would not fit in memory.
    pub fn torch_arrays(&self) -> Result<TorchBlockMask, Diagnostic> {
        torch::arrays(self)
    }

    /// A writer of these arrays.
    pub fn torch_lists(&self) -> TorchLists {
        TorchLists::new(self)
    }

    /// The same blocks by kv block.
    pub fn transposed(&self) -> Transposed {
        Transposed::new(self)
    }

    /// Bytes of the stored runs.
    pub fn memory(&self) -> usize {
        self.own_groups().map(|n| &self.inner.groups[n]).map(|g| g.offsets.len() * 4 + g.runs.len() * 8).sum()
    }

    /// Groups whose rows are not those of an earlier one.
    fn own_groups(&self) -> impl Iterator<Item = usize> + '_ {
        self.inner.alike.iter().enumerate().filter(|(n, first)| n == *first).map(|(n, _)| n)
    }

    fn rows_of(&self, b: usize, h: usize) -> &Rows {
        let (nb, nh) = self.inner.distinct;
        &self.inner.groups[(b % nb) * nh + h % nh]
    }
}

#[cfg(test)]
mod tests;
