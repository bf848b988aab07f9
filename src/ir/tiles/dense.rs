//! The whole mask as bytes, on all cores, like PyTorch's `create_mask`.
//!
//! Invariant: [batch, heads, q_len, kv_len], row-major, 0 or 1. For shapes that fit in memory; block lists never use
//! it. Must not know blocks.

use super::Program;
use crate::base::Lengths;
use crate::ir::graph::Mod;
use rayon::prelude::*;

/// Number of rows per task: this many rows share the column values.
const ROWS: usize = 64;

/// The dense mask of `batch` x `heads` x the lengths. Panics for a score mod.
pub fn dense_mask(mask: &Mod, batch: usize, heads: usize, lengths: Lengths) -> Vec<u8> {
    let mut out = vec![0; batch * heads * lengths.q_len * lengths.kv_len];
    dense_mask_into(mask, batch, heads, lengths, &mut out);
    out
}

/// The same into existing memory, whose content is overwritten. Panics when it is not that long, or for
/// a score mod.
pub fn dense_mask_into(mask: &Mod, batch: usize, heads: usize, lengths: Lengths, out: &mut [u8]) {
    assert_eq!(out.len(), batch * heads * lengths.q_len * lengths.kv_len, "one byte a cell");
    let program = Program::new(mask);
    for (head, out) in out.chunks_exact_mut(lengths.q_len * lengths.kv_len).enumerate() {
        out.par_chunks_mut(ROWS * lengths.kv_len).enumerate().for_each(|(at, out)| {
            let q = at * ROWS..(at * ROWS + ROWS).min(lengths.q_len);
            program.mask_tile(head / heads, head % heads, q, 0..lengths.kv_len, out);
        });
    }
}
