//! How much arithmetic attention under a mask takes.
//!
//! Invariant: counts the two matrix products, a multiply-add as two; the mods and the softmax are not counted. Must not
//! know devices.

use super::block_mask::BlockMask;
use crate::base::Lengths;
use serde::{Deserialize, Serialize};

/// FLOP of a forward pass, over batch and query heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// On kept cells: what figures of TFLOP/s on unmasked work divide.
    pub kept: f64,
    /// On all cells of computed blocks, those beyond the lengths left out.
    pub computed: f64,
    /// On all cells.
    pub dense: f64,
}

/// Extents that a mask leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // FlexAttention's own names
pub struct Extents {
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    pub head_dim: usize,
    pub head_dim_v: usize,
}

/// FLOP of all cells.
pub fn dense(lengths: Lengths, extents: Extents) -> f64 {
    let cells = extents.batch as f64 * extents.heads as f64 * lengths.q_len as f64 * lengths.kv_len as f64;
    2.0 * cells * (extents.head_dim + extents.head_dim_v) as f64
}

/// FLOP under a mask, which may be broadcast over batch and heads. Counts its cells if nobody has yet.
pub fn cost(mask: &BlockMask, extents: Extents) -> Cost {
    let stats = mask.stats();
    let dense = dense(mask.shape().lengths, extents);
    Cost { kept: stats.density * dense, computed: stats.computed * dense, dense }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::block_mask::MaskShape;
    use crate::analysis::examples;
    use crate::base::{BlockSize, Control};

    #[test]
    fn causal_costs_half_and_a_diagonal() {
        let lengths = Lengths::new(256, 256).unwrap();
        let causal = examples::causal();
        let shape = MaskShape::broadcast(lengths);
        let mask = BlockMask::build(Some(&causal), shape, BlockSize::square(64), &Control::new()).unwrap();
        let cost = cost(&mask, Extents { batch: 2, heads: 3, head_dim: 64, head_dim_v: 32 });
        assert_eq!(cost.kept, 2.0 * 6.0 * (256.0 * 257.0 / 2.0) * 96.0);
        assert_eq!(cost.computed, 2.0 * 6.0 * (10.0 * 64.0 * 64.0) * 96.0);
    }
}
