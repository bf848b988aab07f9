//! Which keys a tile of queries visits, and how the mask is applied there.
//!
//! Invariant: every kept cell lies in a visited span, and a span that is not looked at keeps all its cells. Must not know
//! how attention is computed, nor why a plan was chosen.

use crate::analysis::block_mask::{BlockKind, BlockMask, MaskShape, Transposed};
use crate::backends::mods::{Mods, Place};
use crate::base::{BlockSize, Control, Diagnostic};
use crate::micro::PANEL;
use crate::problem::Problem;
use crate::problem::facts::MaskRead;
use crate::problem::pattern::Pattern;
use rayon::prelude::*;
use std::ops::Range;

/// Query rows of a tile.
pub(super) const ROWS: usize = 64;
/// Which keys a tile of queries visits and how the mask is applied there.
pub(super) enum Plan {
    /// All keys, no mask.
    Full,
    /// Keys up to `q_idx + offset`.
    Causal { offset: i64 },
    /// All keys, a byte a cell.
    Dense(DenseMask),
    /// Only listed blocks of [`ROWS`] x [`PANEL`]; the mask is evaluated in partial ones.
    Blocks(BlockMask, Transposed),
}

/// A materialised mask: [batch or 1][heads or 1][q_len][kv_len] bytes.
pub(super) struct DenseMask {
    bytes: Vec<u8>,
    batch: usize,
    heads: usize,
    q_len: usize,
    kv_len: usize,
}

impl DenseMask {
    /// Evaluates the mask everywhere.
    pub(super) fn new(problem: &Problem, mods: &Mods) -> DenseMask {
        let (q_len, kv_len) = (problem.q_len, problem.kv_len);
        let MaskShape { batch, heads, .. } = problem.mask_shape();
        let mut bytes = vec![0; batch * heads * q_len * kv_len];
        let rows = 16;
        let per_head = q_len.div_ceil(rows);
        // chunks must not straddle heads: split by head first
        bytes.par_chunks_mut(q_len * kv_len).enumerate().for_each(|(head, bytes)| {
            bytes.par_chunks_mut(rows * kv_len).enumerate().for_each(|(at, bytes)| {
                debug_assert!(at < per_head);
                let q = at * rows..(at * rows + rows).min(q_len);
                mods.keep(&Place { b: head / heads, h: head % heads, q, kv: 0..kv_len }, bytes);
            });
        });
        DenseMask { bytes, batch, heads, q_len, kv_len }
    }

    /// Copies a tile; cells beyond the keys are not kept, rows beyond the queries keep their bytes.
    pub(super) fn tile(&self, at: &Place, out: &mut [u8]) {
        let (b, h) = (if self.batch == 1 { 0 } else { at.b }, if self.heads == 1 { 0 } else { at.h });
        let head = &self.bytes[(b * self.heads + h) * self.q_len * self.kv_len..];
        let columns = at.kv.len();
        let inside = at.kv.end.min(self.kv_len) - at.kv.start;
        for (row, q) in out.chunks_exact_mut(columns).zip(at.q.start..at.q.end.min(self.q_len)) {
            let from = q * self.kv_len + at.kv.start;
            row[..inside].copy_from_slice(&head[from..from + inside]);
            row[inside..].fill(0);
        }
    }
}

impl Plan {
    /// For kernels without block lists.
    pub(super) fn dense(problem: &Problem, pattern: Pattern) -> Plan {
        match pattern {
            Pattern::Full => Plan::Full,
            Pattern::Causal { offset } => Plan::Causal { offset },
            Pattern::Other => Plan::Dense(DenseMask::new(problem, &Mods::new(problem))),
        }
    }

    /// For flex. Errors: those of [`BlockMask::build`].
    pub(super) fn blocks(problem: &Problem) -> Result<Plan, Diagnostic> {
        if problem.mask.is_none() {
            return Ok(Plan::Full);
        }
        let blocks = problem.block_mask(BlockSize { q: ROWS, kv: PANEL }, &Control::new())?;
        let columns = blocks.transposed();
        Ok(Plan::Blocks(blocks, columns))
    }

    pub(super) fn words(&self) -> &'static str {
        match self {
            Plan::Full => "no mask",
            Plan::Causal { .. } => "causal",
            Plan::Dense(_) => "dense mask",
            Plan::Blocks(..) => "block-sparse",
        }
    }

    pub(super) fn reads(&self) -> MaskRead {
        match self {
            Plan::Full => MaskRead::Nothing,
            Plan::Causal { .. } => MaskRead::Causal,
            Plan::Dense(_) => MaskRead::Dense,
            Plan::Blocks(..) => MaskRead::Blocks,
        }
    }

    /// Its memory, bytes.
    pub(super) fn memory(&self) -> u64 {
        let bytes = match self {
            Plan::Full | Plan::Causal { .. } => 0,
            Plan::Dense(mask) => mask.bytes.len(),
            Plan::Blocks(blocks, columns) => blocks.memory() + columns.memory(),
        };
        bytes as u64
    }

    /// Which cells of a tile are kept.
    pub(super) fn keep(&self, mods: &Mods, at: &Place, keep: &mut [u8]) {
        match self {
            Plan::Dense(mask) => mask.tile(at, keep),
            Plan::Causal { offset } => {
                for (row, q) in keep.chunks_exact_mut(at.kv.len()).zip(at.q.clone()) {
                    let seen = (q as i64 + offset + 1 - at.kv.start as i64).clamp(0, at.kv.len() as i64) as usize;
                    row[..seen].fill(1);
                    row[seen..].fill(0);
                }
            }
            Plan::Full | Plan::Blocks(..) => mods.keep(at, keep),
        }
    }

    /// The spans of keys that a tile visits, and whether the mask must be looked at there.
    pub(super) fn spans(&self, place: &Place, kv_len: usize, out: &mut Vec<(Range<usize>, bool)>) {
        out.clear();
        match self {
            Plan::Full => out.push((0..kv_len, false)),
            Plan::Dense(_) => out.push((0..kv_len, true)),
            Plan::Causal { offset } => {
                // keys that every row sees, whole panels of them; then the diagonal
                let seen = |q: usize| (q as i64 + offset + 1).clamp(0, kv_len as i64) as usize;
                let all = seen(place.q.start) / PANEL * PANEL;
                let some = seen(place.q.end - 1);
                out.extend([(0..all, false), (all..some, true)].into_iter().filter(|(r, _)| !r.is_empty()));
            }
            Plan::Blocks(blocks, _) => {
                let runs = blocks.runs(place.b, place.h, place.q.start / ROWS);
                out.extend(runs.map(|r| (r.start * PANEL..(r.end * PANEL).min(kv_len), r.kind == BlockKind::Partial)));
            }
        }
    }
}
