//! The blocks of a mask as a plan reads them: run-length coded rows, with or without the graph behind them.
//!
//! Invariant: runs of a row ascend, do not overlap and lie inside the grid. Must not know ranks.

use crate::analysis::block_mask::{BlockKind, BlockMask, BlockRun};
use crate::base::{BlockSize, Diagnostic, Lengths};
use crate::ir::graph::Mod;
use std::sync::Arc;

/// The rows of one mask among those that differ by batch entry or head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The batch entry and head that it is evaluated at.
    pub at: (usize, usize),
    offsets: Vec<u32>,
    runs: Vec<BlockRun>,
}

impl Group {
    /// The rows of one batch entry and head, each with its runs. Errors: runs that do not ascend or leave the grid.
    pub fn new(at: (usize, usize), columns: usize, rows: &[Vec<BlockRun>]) -> Result<Self, Diagnostic> {
        for (row, listed) in rows.iter().enumerate() {
            let mut before = 0;
            for run in listed {
                if run.start < before || run.end <= run.start || run.end > columns {
                    let message = format!("row {row} lists blocks {}..{} after block {before}", run.start, run.end);
                    return Err(Diagnostic::error("block-list", message)
                        .hint(format!("list each of the {columns} key blocks at most once, in ascending order")));
                }
                before = run.end;
            }
        }
        Ok(Self::of_rows(at, rows))
    }

    /// The same for rows that are known to ascend.
    pub(crate) fn of_rows(at: (usize, usize), rows: &[Vec<BlockRun>]) -> Self {
        let (mut offsets, mut runs) = (vec![0], Vec::with_capacity(rows.iter().map(Vec::len).sum()));
        for listed in rows {
            runs.extend_from_slice(listed);
            offsets.push(runs.len() as u32);
        }
        Self { at, offsets, runs }
    }

    /// The runs of a row of query blocks.
    pub fn row(&self, row: usize) -> &[BlockRun] {
        &self.runs[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// Full and partial blocks of a row.
    pub fn counts(&self, row: usize) -> (usize, usize) {
        self.row(row).iter().fold((0, 0), |(full, partial), run| match run.kind {
            BlockKind::Full => (full + run.end - run.start, partial),
            BlockKind::Partial => (full, partial + run.end - run.start),
        })
    }
}

/// All rows of a mask.
#[derive(Clone, Debug)]
pub struct MaskRows {
    /// Extent in tokens.
    pub lengths: Lengths,
    /// Tokens of a block.
    pub block_size: BlockSize,
    /// Batch entries and heads between which the mask differs; 1 and 1 if it is the same for all.
    pub distinct: (usize, usize),
    /// One for each batch entry and head of `distinct`, heads innermost.
    pub groups: Vec<Group>,
    /// The graph, if it is known.
    pub mask: Option<Arc<Mod>>,
}

impl MaskRows {
    /// Rows and columns of blocks.
    pub fn grid(&self) -> (usize, usize) {
        self.block_size.grid(self.lengths)
    }

    /// Full and partial blocks in all groups.
    pub fn listed(&self) -> (u64, u64) {
        let runs = self.groups.iter().flat_map(|group| &group.runs);
        runs.fold((0, 0), |(full, partial), run| match run.kind {
            BlockKind::Full => (full + (run.end - run.start) as u64, partial),
            BlockKind::Partial => (full, partial + (run.end - run.start) as u64),
        })
    }

    /// How often each group occurs among so many batch entries and heads.
    pub fn copies(&self, batch: usize, heads: usize) -> f64 {
        (batch * heads) as f64 / (self.distinct.0 * self.distinct.1) as f64
    }
}

impl From<&BlockMask> for MaskRows {
    fn from(mask: &BlockMask) -> Self {
        let (rows, _) = mask.grid();
        let distinct = mask.distinct();
        let group = |b: usize, h: usize| {
            let (mut offsets, mut runs) = (vec![0], Vec::new());
            for row in 0..rows {
                runs.extend(mask.runs(b, h, row));
                offsets.push(runs.len() as u32);
            }
            Group { at: (b, h), offsets, runs }
        };
        let groups = (0..distinct.0).flat_map(|b| (0..distinct.1).map(move |h| (b, h))).map(|(b, h)| group(b, h));
        Self {
            lengths: mask.shape().lengths,
            block_size: mask.block_size(),
            distinct,
            groups: groups.collect(),
            mask: mask.mask_mod().cloned(),
        }
    }
}
