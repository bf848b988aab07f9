//! Small problems for this module's tests.
//!
//! Invariant: only compiled into tests. Must not hold expectations; those stand in the tests.

use crate::base::{BlockSize, DType, Layout};
use crate::language::graph::{BinaryOp, Graph, Input, Mod, ModKind};
use crate::problem::{Problem, ProblemSpec};
use std::sync::Arc;

/// A float32 problem without mods.
pub fn spec(batch: usize, heads: usize, kv_heads: usize, q_len: usize, kv_len: usize, head_dim: usize) -> ProblemSpec {
    ProblemSpec {
        batch,
        heads,
        kv_heads,
        q_len,
        kv_len,
        head_dim,
        head_dim_v: head_dim,
        dtype: DType::F32,
        layout: Layout::Bhsd,
        scale: None,
        block_size: BlockSize::DEFAULT,
        mask: None,
        score: None,
    }
}

/// The same, validated.
pub fn problem(
    batch: usize,
    heads: usize,
    kv_heads: usize,
    q_len: usize,
    kv_len: usize,
    head_dim: usize,
) -> Problem {
    Problem::new(spec(batch, heads, kv_heads, q_len, kv_len, head_dim)).expect("a valid problem")
}

/// A problem with a mask and a score mod.
pub fn with_mods(mut spec: ProblemSpec, mask: Option<Mod>, score: Option<Mod>) -> Problem {
    spec.mask = mask.map(Arc::new);
    spec.score = score.map(Arc::new);
    Problem::new(spec).expect("a valid problem")
}

/// `kv_idx <= q_idx + offset`
pub fn causal(offset: i64) -> Mod {
    let mut graph = Graph::new();
    let (q, kv) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
    let by = graph.int(offset);
    let limit = graph.binary(BinaryOp::Add, q, by);
    let root = graph.binary(BinaryOp::Le, kv, limit);
    Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
}
