//! The arrays of PyTorch's BlockMask, in the order of `create_block_mask`.
//!
//! Invariant: each index row equals `argsort(descending, stable)` of the 0/1 row: listed blocks first, ascending, then
//! the others, ascending.

use super::transposed::Transposed;
use super::walk::too_large;
use super::{BlockMask, PackedRun, Rows};
use crate::base::tensor::Data;
use crate::base::{Diagnostic, HostTensor};
use rayon::prelude::*;
use std::sync::OnceLock;

/// I32 tensors by PyTorch's names: counts [B, H, rows], indices [B, H, rows, columns]; `kv_*` lists partial blocks.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct TorchBlockMask {
    pub kv_num_blocks: HostTensor,
    pub kv_indices: HostTensor,
    pub full_kv_num_blocks: HostTensor,
    pub full_kv_indices: HostTensor,
    pub q_num_blocks: HostTensor,
    pub q_indices: HostTensor,
    pub full_q_num_blocks: HostTensor,
    pub full_q_indices: HostTensor,
}

impl TorchBlockMask {
    /// Names and tensors, in PyTorch's order.
    pub fn fields(&self) -> [(&'static str, &HostTensor); 8] {
        [
            ("kv_num_blocks", &self.kv_num_blocks),
            ("kv_indices", &self.kv_indices),
            ("full_kv_num_blocks", &self.full_kv_num_blocks),
            ("full_kv_indices", &self.full_kv_indices),
            ("q_num_blocks", &self.q_num_blocks),
            ("q_indices", &self.q_indices),
            ("full_q_num_blocks", &self.full_q_num_blocks),
            ("full_q_indices", &self.full_q_indices),
        ]
    }
}

/// Elements that one index array may have: 8 GiB for the four of them.
const MAX_ELEMENTS: u128 = 1 << 29;
/// Elements that one thread writes alone: fewer take less time than waking another.
const QUICK: usize = 1 << 16;

/// The blocks that one pair of arrays lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// `kv_*` and `q_*` where full blocks have lists of their own.
    Partial,
    /// `full_kv_*` and `full_q_*`.
    Full,
    /// `kv_*` and `q_*` with `separate_full_blocks=False`.
    Both,
}

impl Listed {
    fn has(self, run: PackedRun) -> bool {
        match self {
            Listed::Partial => !run.full(),
            Listed::Full => run.full(),
            Listed::Both => true,
        }
    }
}

/// The side from which blocks are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// For each q block its kv blocks: `kv_*`.
    Kv,
    /// For each kv block its q blocks: `q_*`.
    Q,
}

/// Writes PyTorch's arrays into memory that the caller made.
pub struct TorchLists {
    mask: BlockMask,
    columns: OnceLock<Transposed>,
}

impl TorchLists {
    /// The lists of a block mask.
    pub fn new(mask: &BlockMask) -> Self {
        Self { mask: mask.clone(), columns: OnceLock::new() }
    }

    /// Whether the index arrays are of a size that we write. Errors: one would have more than 2^29 entries.
    pub fn check(&self) -> Result<(), Diagnostic> {
        let shape = self.mask.shape();
        let (rows, cols) = self.mask.grid();
        let elements = (shape.batch * shape.heads) as u128 * rows as u128 * cols as u128;
        if elements > MAX_ELEMENTS {
            let size = self.mask.block_size();
            return Err(too_large(shape, size, elements, "PyTorch's arrays hold an entry for every block"));
        }
        Ok(())
    }

    /// Shapes of the counts and of the indices: [B, H, rows] and [B, H, rows, columns], seen from this side.
    pub fn shapes(&self, side: Side) -> ([usize; 3], [usize; 4]) {
        let (batch, heads) = (self.mask.shape().batch, self.mask.shape().heads);
        let (rows, cols) = self.grid(side);
        ([batch, heads, rows], [batch, heads, rows, cols])
    }

    /// Writes every entry of one pair. Panics if the slices do not have the lengths of [`shapes`](Self::shapes).
    pub fn write(&self, side: Side, listed: Listed, counts: &mut [i32], indices: &mut [i32]) {
        let (rows, cols) = self.grid(side);
        let heads = self.mask.shape().heads;
        assert_eq!((counts.len() * cols, counts.len() % rows), (indices.len(), 0), "lengths follow from the grid");
        // rows are pieces of this: copying them takes less than counting
        let blocks: Vec<i32> = (0..cols as i32).collect();
        let write = |(at, (count, entries)): (usize, (&mut i32, &mut [i32]))| {
            let (group, row) = (at / rows, at % rows);
            let runs = self.rows_of(side, group / heads, group % heads).row(row);
            *count = write_row(runs, listed, entries, &blocks);
        };
        if indices.len() <= QUICK {
            counts.iter_mut().zip(indices.chunks_mut(cols)).enumerate().for_each(write);
        } else {
            let least = QUICK.div_ceil(cols);
            counts.par_iter_mut().zip(indices.par_chunks_mut(cols)).enumerate().with_min_len(least).for_each(write);
        }
    }

    /// Writes the counts alone. Panics if the slice does not have their length.
    pub fn write_counts(&self, side: Side, listed: Listed, counts: &mut [i32]) {
        let (rows, _) = self.grid(side);
        let heads = self.mask.shape().heads;
        assert_eq!(counts.len(), rows * heads * self.mask.shape().batch, "lengths follow from the grid");
        for (at, count) in counts.iter_mut().enumerate() {
            let (group, row) = (at / rows, at % rows);
            let runs = self.rows_of(side, group / heads, group % heads).row(row);
            *count = runs.iter().filter(|r| listed.has(**r)).map(|r| (r.end() - r.start) as i32).sum();
        }
    }

    fn grid(&self, side: Side) -> (usize, usize) {
        let (rows, cols) = self.mask.grid();
        match side {
            Side::Kv => (rows, cols),
            Side::Q => (cols, rows),
        }
    }

    fn rows_of(&self, side: Side, b: usize, h: usize) -> &Rows {
        match side {
            Side::Kv => self.mask.rows_of(b, h),
            Side::Q => self.columns.get_or_init(|| self.mask.transposed()).rows_of(b, h),
        }
    }
}

/// Listed blocks first, ascending, then the others, ascending, of all of them, `blocks`. Returns the number of the listed.
fn write_row(runs: &[PackedRun], listed: Listed, entries: &mut [i32], blocks: &[i32]) -> i32 {
    let cols = entries.len() as u32;
    let mut written = 0;
    let mut put = |from: u32, to: u32| {
        let end = written + (to - from) as usize;
        entries[written..end].copy_from_slice(&blocks[from as usize..to as usize]);
        written = end;
        end as i32
    };
    let wanted = || runs.iter().filter(|r| listed.has(**r));
    let count = wanted().map(|r| put(r.start, r.end())).last().unwrap_or(0);
    let mut at = 0;
    for run in wanted() {
        put(at, run.start);
        at = run.end();
    }
    put(at, cols);
    count
}

pub(super) fn arrays(mask: &BlockMask) -> Result<TorchBlockMask, Diagnostic> {
    let lists = TorchLists::new(mask);
    lists.check()?;
    let pair = |side, listed| {
        let (rows, entries) = lists.shapes(side);
        let (mut counts, mut indices) = (vec![0; rows.iter().product()], vec![0; entries.iter().product()]);
        lists.write(side, listed, &mut counts, &mut indices);
        let make = |shape: &[usize], data| HostTensor::new(shape, Data::I32(data)).expect("sizes follow from the grid");
        (make(&rows, counts), make(&entries, indices))
    };
    let (kv_num_blocks, kv_indices) = pair(Side::Kv, Listed::Partial);
    let (full_kv_num_blocks, full_kv_indices) = pair(Side::Kv, Listed::Full);
    let (q_num_blocks, q_indices) = pair(Side::Q, Listed::Partial);
    let (full_q_num_blocks, full_q_indices) = pair(Side::Q, Listed::Full);
    Ok(TorchBlockMask {
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks,
        full_kv_indices,
        q_num_blocks,
        q_indices,
        full_q_num_blocks,
        full_q_indices,
    })
}
