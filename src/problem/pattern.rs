//! The form of a mask for kernels without block lists: none, causal, or bytes.
//!
//! Invariant: a mask counts as causal or full only if every cell inside the lengths agrees, determined by an exact
//! count of kept cells, never from the text. Must not know any kernel.

use super::Problem;
use crate::analysis::block_mask::BlockMask;
use crate::base::{BlockSize, Control, Diagnostic};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind};
use crate::ir::passes::compose;

/// The shape of a mask, as kernels without mods see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Everything is kept.
    Full,
    /// `kv_idx <= q_idx + offset`: 0 is aligned top-left (SDPA's `is_causal`), `kv_len - q_len` bottom-right
    /// (flash-attn's `causal`).
    Causal {
        /// Keys that row 0 sees beyond the first.
        offset: i64,
    },
    /// Anything else: needs a dense mask.
    Other,
}

/// Finds the pattern of a problem's mask. Errors: those of [`BlockMask::build`].
pub(super) fn find(problem: &Problem, control: &Control) -> Result<Pattern, Diagnostic> {
    let Some(mask) = &problem.mask else { return Ok(Pattern::Full) };
    let lengths = problem.lengths();
    let count = |blocks: BlockMask| -> Result<u128, Diagnostic> {
        let stats = blocks.stats_with(control).ok_or_else(|| Diagnostic::error("cancelled", "cancelled"))?;
        Ok(stats.kept_cells)
    };
    let copies = problem.mask_copies() as u128;
    // the number of cells is the same at any size
    let known = problem.plans().known(problem.block_size).is_some();
    let size = if known { problem.block_size } else { BlockSize::DEFAULT };
    let kept = count(problem.block_mask(size, control)?)?;
    if kept == copies * (lengths.q_len as u128) * (lengths.kv_len as u128) {
        return Ok(Pattern::Full);
    }
    for offset in [0, lengths.kv_len as i64 - lengths.q_len as i64] {
        let causal = causal_mask(offset);
        if kept != copies * causal_cells(lengths.q_len, lengths.kv_len, offset) {
            continue;
        }
        // |M| = |C| = |M and C|: the same cells
        let both = compose::and_masks(&[mask, &causal]);
        if count(BlockMask::build(Some(&both), problem.mask_shape(), BlockSize::DEFAULT, control)?)? == kept {
            return Ok(Pattern::Causal { offset });
        }
    }
    Ok(Pattern::Other)
}

/// Cells that `kv_idx <= q_idx + offset` keeps.
fn causal_cells(q_len: usize, kv_len: usize, offset: i64) -> u128 {
    (0..q_len as i64).map(|q| (q + offset + 1).clamp(0, kv_len as i64) as u128).sum()
}

/// `kv_idx <= q_idx + offset`
fn causal_mask(offset: i64) -> Mod {
    let mut graph = Graph::new();
    let (q, kv) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
    let by = graph.int(offset);
    let limit = graph.binary(BinaryOp::Add, q, by);
    let root = graph.binary(BinaryOp::Le, kv, limit);
    Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::ProblemSpec;
    use std::sync::Arc;

    fn of(q_len: usize, kv_len: usize, mask: Mod) -> Pattern {
        let plain = ProblemSpec::plain(1, (2, 2), (q_len, kv_len), 16);
        let problem = Problem::new(ProblemSpec { mask: Some(Arc::new(mask)), ..plain }).expect("valid");
        problem.pattern(&Control::new()).expect("not cancelled")
    }

    #[test]
    fn masks_are_recognised_by_their_cells() {
        let causal = causal_mask;
        assert_eq!(of(300, 300, causal(0)), Pattern::Causal { offset: 0 });
        assert_eq!(of(300, 200, causal(-100)), Pattern::Causal { offset: -100 });
        assert_eq!(of(200, 300, causal(0)), Pattern::Causal { offset: 0 });
        assert_eq!(of(300, 300, causal(-1)), Pattern::Other);
        assert_eq!(of(300, 300, causal(299)), Pattern::Full);
        assert_eq!(of(300, 300, compose::and_masks(&[&causal(0), &causal_mask(-299)])), Pattern::Other);
    }
}
