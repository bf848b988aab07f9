//! The arrays of PyTorch's BlockMask, in the order of `create_block_mask`.
//!
//! Invariant: each index row equals `argsort(descending, stable)` of the 0/1 row: listed blocks first, ascending, then
//! the others, ascending.

use super::walk::too_large;
use super::{BlockMask, PackedRun};
use crate::base::tensor::Data;
use crate::base::{Diagnostic, HostTensor};

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

pub(super) fn arrays(mask: &BlockMask) -> Result<TorchBlockMask, Diagnostic> {
    let shape = mask.shape();
    let (rows, cols) = mask.grid();
    let groups = shape.batch * shape.heads;
    let elements = groups as u128 * rows as u128 * cols as u128;
    if elements > MAX_ELEMENTS {
        return Err(too_large(shape, mask.block_size(), elements, "PyTorch's arrays hold an entry for every block"));
    }
    let (kv_num_blocks, kv_indices) = lists(mask, groups, false);
    let (full_kv_num_blocks, full_kv_indices) = lists(mask, groups, true);
    let (q_num_blocks, q_indices) = transposed(mask, groups, false);
    let (full_q_num_blocks, full_q_indices) = transposed(mask, groups, true);
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

fn tensors(
    mask: &BlockMask,
    (rows, cols): (usize, usize),
    counts: Vec<i32>,
    indices: Vec<i32>,
) -> (HostTensor, HostTensor) {
    let (batch, heads) = (mask.shape().batch, mask.shape().heads);
    let make = |shape: Vec<usize>, data| HostTensor::new(shape, Data::I32(data)).expect("sizes follow from the grid");
    (make(vec![batch, heads, rows], counts), make(vec![batch, heads, rows, cols], indices))
}

fn group_of(mask: &BlockMask, n: usize) -> &super::Rows {
    let heads = mask.shape().heads;
    mask.rows_of(n / heads, n % heads)
}

fn lists(mask: &BlockMask, groups: usize, full: bool) -> (HostTensor, HostTensor) {
    let (rows, cols) = mask.grid();
    let mut counts = Vec::with_capacity(groups * rows);
    let mut indices = Vec::with_capacity(groups * rows * cols);
    for n in 0..groups {
        let group = group_of(mask, n);
        for row in 0..rows {
            let wanted = || group.row(row).iter().filter(|r| r.full() == full);
            wanted().for_each(|r| indices.extend(r.start as i32..r.end() as i32));
            counts.push((indices.len() - (n * rows + row) * cols) as i32);
            let mut at = 0;
            for run in wanted().chain(std::iter::once(&PackedRun::new(cols as u32, cols as u32, full))) {
                indices.extend(at..run.start as i32);
                at = run.end() as i32;
            }
        }
    }
    tensors(mask, (rows, cols), counts, indices)
}

/// The same seen from the kv side: for each kv block the q blocks that list it.
fn transposed(mask: &BlockMask, groups: usize, full: bool) -> (HostTensor, HostTensor) {
    let (rows, cols) = mask.grid();
    let mut counts = vec![0i32; groups * cols];
    let mut indices = vec![0i32; groups * cols * rows];
    for n in 0..groups {
        let group = group_of(mask, n);
        let mut dropped = vec![0usize; cols];
        // listed ones from the front; the others follow once all counts are known
        for row in 0..rows {
            for run in group.row(row).iter().filter(|r| r.full() == full) {
                for col in run.start as usize..run.end() as usize {
                    let count = &mut counts[n * cols + col];
                    indices[(n * cols + col) * rows + *count as usize] = row as i32;
                    *count += 1;
                }
            }
        }
        for row in 0..rows {
            let mut at = 0;
            let mut fill = |from: usize, to: usize| {
                for (col, dropped) in dropped.iter_mut().enumerate().take(to).skip(from) {
                    let place = counts[n * cols + col] as usize + *dropped;
                    indices[(n * cols + col) * rows + place] = row as i32;
                    *dropped += 1;
                }
            };
            for run in group.row(row).iter().filter(|r| r.full() == full) {
                fill(at, run.start as usize);
                at = run.end() as usize;
            }
            fill(at, cols);
        }
    }
    tensors(mask, (cols, rows), counts, indices)
}
