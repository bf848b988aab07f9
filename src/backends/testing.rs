//! Small problems for this module's tests.
//!
//! Invariant: only compiled into tests. Must not contain expectations; those are in the tests.

use crate::base::DType;
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, UnaryOp};
use crate::problem::{Problem, ProblemSpec};
use std::sync::Arc;

/// A float32 problem without mods.
pub fn spec(batch: usize, heads: usize, kv_heads: usize, q_len: usize, kv_len: usize, head_dim: usize) -> ProblemSpec {
    let plain = ProblemSpec::plain(batch, (heads, kv_heads), (q_len, kv_len), head_dim);
    ProblemSpec { dtype: DType::F32, ..plain }
}

/// The same, validated.
pub fn problem(batch: usize, heads: usize, kv_heads: usize, q_len: usize, kv_len: usize, head_dim: usize) -> Problem {
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

/// `(q_idx >= kv_idx) & (q_idx % by != rest)`: causal with empty rows.
pub fn modulo_rows(by: i64, rest: i64) -> Mod {
    let mut graph = Graph::new();
    let (q, kv) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
    let (by, rest) = (graph.int(by), graph.int(rest));
    let below = graph.binary(BinaryOp::Ge, q, kv);
    let row = graph.binary(BinaryOp::Mod, q, by);
    let other = graph.binary(BinaryOp::Ne, row, rest);
    let root = graph.binary(BinaryOp::And, below, other);
    Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
}

/// `score * 0.5 - 0.01 * (h + 1) * abs(q_idx - kv_idx)`
pub fn distance_score() -> Mod {
    let mut graph = Graph::new();
    let (q, kv, h) = (graph.input(Input::QIdx), graph.input(Input::KvIdx), graph.input(Input::H));
    let score = graph.input(Input::Score);
    let one = graph.int(1);
    let (half, slope) = (graph.float(0.5), graph.float(0.01));
    let difference = graph.binary(BinaryOp::Sub, q, kv);
    let distance = graph.unary(UnaryOp::Abs, difference);
    let head = graph.binary(BinaryOp::Add, h, one);
    let product = graph.binary(BinaryOp::Mul, distance, head);
    let product = graph.unary(UnaryOp::ToFloat, product);
    let penalty = graph.binary(BinaryOp::Mul, product, slope);
    let halved = graph.binary(BinaryOp::Mul, score, half);
    let root = graph.binary(BinaryOp::Sub, halved, penalty);
    Mod { kind: ModKind::Score, graph, root, sources: Vec::new() }
}
