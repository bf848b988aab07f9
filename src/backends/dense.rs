//! What a mask is to a kernel that knows no block lists: nothing, causal, or bytes.
//!
//! Invariant: a mask counts as causal or full only if every cell inside the lengths agrees, found by counting kept cells
//! exactly, never by looking at the text. Must not know any kernel.

use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::base::{BlockSize, Control, Diagnostic};
use crate::language::compose;
use crate::language::graph::{BinaryOp, Graph, Input, Mod, ModKind};
use crate::problem::Problem;

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
pub fn pattern(problem: &Problem, control: &Control) -> Result<Pattern, Diagnostic> {
    let Some(mask) = &problem.mask else { return Ok(Pattern::Full) };
    let lengths = problem.lengths();
    let shape = MaskShape {
        batch: if problem.mask_per_batch() { problem.batch } else { 1 },
        heads: if problem.mask_per_head() { problem.heads } else { 1 },
        lengths,
    };
    let count = |m: &Mod, shape| -> Result<u128, Diagnostic> {
        let blocks = BlockMask::build(Some(m), shape, BlockSize::DEFAULT, control)?;
        let stats = blocks.stats_with(control).ok_or_else(|| Diagnostic::error("cancelled", "cancelled"))?;
        Ok(stats.kept_cells)
    };
    let copies = (shape.batch * shape.heads) as u128;
    let kept = count(mask, shape)?;
    if kept == copies * (lengths.q_len as u128) * (lengths.kv_len as u128) {
        return Ok(Pattern::Full);
    }
    for offset in [0, lengths.kv_len as i64 - lengths.q_len as i64] {
        let causal = causal_mask(offset);
        if kept != copies * causal_cells(lengths.q_len, lengths.kv_len, offset) {
            continue;
        }
        // |M| = |C| = |M and C|: the same cells
        if count(&compose::and_masks(&[mask, &causal]), shape)? == kept {
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
    use crate::backends::testing::{causal, modulo_rows, spec, with_mods};

    fn of(q_len: usize, kv_len: usize, mask: Mod) -> Pattern {
        let problem = with_mods(spec(1, 2, 2, q_len, kv_len, 16), Some(mask), None);
        pattern(&problem, &Control::new()).expect("not cancelled")
    }

    #[test]
    fn masks_are_recognised_by_their_cells() {
        assert_eq!(of(300, 300, causal(0)), Pattern::Causal { offset: 0 });
        assert_eq!(of(300, 200, causal(-100)), Pattern::Causal { offset: -100 });
        assert_eq!(of(200, 300, causal(0)), Pattern::Causal { offset: 0 });
        assert_eq!(of(300, 300, causal(-1)), Pattern::Other);
        assert_eq!(of(300, 300, causal(299)), Pattern::Full);
        assert_eq!(of(300, 300, modulo_rows(5, 3)), Pattern::Other);
    }
}
