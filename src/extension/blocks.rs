//! Block masks and PyTorch's arrays of them.
//!
//! Invariant: exact, as the block masks that it wraps. Must not know PyTorch's objects.

use super::guard::computed;
use super::mask::Mask;
use super::memory;
use crate::analysis::block_mask::{BlockMask, Listed, MaskShape, Side, TorchLists};
use crate::base::{BlockSize, Control, Lengths};
use pyo3::prelude::*;

/// The blocks of a mask.
#[pyclass(frozen, module = "maskloom._native")]
pub(super) struct Blocks {
    mask: BlockMask,
    lists: TorchLists,
}

/// Finds the blocks of a mask over (B, H), (Q_LEN, KV_LEN) in blocks of (Q, KV) tokens.
#[pyfunction]
pub(super) fn build(
    py: Python<'_>,
    mask: &Mask,
    groups: (usize, usize),
    lengths: (usize, usize),
    block: (usize, usize),
) -> PyResult<Blocks> {
    computed(py, || {
        let lengths = Lengths::new(lengths.0, lengths.1)?;
        let shape = MaskShape { batch: groups.0, heads: groups.1, lengths };
        let size = BlockSize { q: block.0, kv: block.1 };
        let mask = BlockMask::build(Some(&mask.of), shape, size, &Control::new())?;
        let lists = mask.torch_lists();
        Ok(Blocks { mask, lists })
    })
}

/// 0: partial blocks; 1: full ones; 2: both.
fn listed(which: u8) -> Listed {
    match which {
        0 => Listed::Partial,
        1 => Listed::Full,
        _ => Listed::Both,
    }
}

fn side(by_kv_block: bool) -> Side {
    if by_kv_block { Side::Q } else { Side::Kv }
}

#[pymethods]
impl Blocks {
    /// Writes lists of (seen from the kv blocks, which blocks, address of the counts, address of the indices or 0).
    fn write(&self, py: Python<'_>, lists: Vec<(bool, u8, usize, usize)>) -> PyResult<()> {
        computed(py, || {
            for (by_kv_block, which, counts_at, indices_at) in lists {
                let (rows, entries) = self.lists.shapes(side(by_kv_block));
                let counts = memory::to_write(counts_at, rows.iter().product());
                let side = side(by_kv_block);
                match indices_at {
                    0 => self.lists.write_counts(side, listed(which), counts),
                    at => {
                        self.lists.check()?;
                        self.lists.write(side, listed(which), counts, memory::to_write(at, entries.iter().product()));
                    }
                }
            }
            Ok(())
        })
    }

    /// Kept cells, over batch and heads.
    fn kept_cells(&self, py: Python<'_>) -> PyResult<u128> {
        computed(py, || Ok(self.mask.stats().kept_cells))
    }
}
