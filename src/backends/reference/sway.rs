//! Score mods with steps or poles: the possible error of a score before the mod, and the mods for which it matters.
//!
//! Invariant: the float32 rounding error of a score is bounded by its own terms, never by the mod's result. Must not
//! know limits.

use super::Head;
use crate::ir::graph::{BinaryOp, Graph, NodeId, Op, UnaryOp};
use crate::ir::passes::derive::derive;
use crate::problem::Problem;

/// The scores relative to the exact ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// All as far above as rounding may put them.
    Above,
    /// All as far below.
    Below,
}

/// Whether the score mod may turn a rounding of the score into more than a rounding: it has steps, or poles, in the score.
pub(super) fn jumps(problem: &Problem) -> bool {
    problem.score.as_deref().is_some_and(|score| has_jumps(&score.graph))
}

/// Whether it may turn a rounding of the score into more than a rounding of a gradient: it has corners besides, like
/// those of relu and clamp, where its derivative has a step.
pub(super) fn bends(problem: &Problem) -> bool {
    let derivative = |score| derive(score, |_| true).is_ok_and(|derived| has_jumps(&derived.graph));
    jumps(problem) || problem.score.as_deref().is_some_and(derivative)
}

fn has_jumps(graph: &Graph) -> bool {
    let follows = follows(graph);
    let of = |id: &NodeId| follows[id.0 as usize];
    graph.nodes().iter().any(|node| match &node.op {
        Op::Unary(op, a) => {
            use UnaryOp::{As, Ceil, Floor, Log, Log2, Round, Rsqrt, ToBool, ToInt, ToInt32, Trunc};
            matches!(op, Floor | Ceil | Round | Trunc | ToInt | ToInt32 | ToBool | As(_) | Log | Log2 | Rsqrt) && of(a)
        }
        Op::Binary(op, a, b) => {
            use BinaryOp::{Atan2, Div, FloorDiv, Fmod, Mod, Pow, TruncDiv};
            let steps = op.is_comparison() || matches!(op, FloorDiv | Mod | Fmod | TruncDiv | Pow | Atan2);
            (steps && (of(a) || of(b))) || (*op == Div && of(b))
        }
        _ => false,
    })
}

/// Which nodes follow from the score, through ints and truth values too.
fn follows(graph: &Graph) -> Vec<bool> {
    let mut found: Vec<bool> = Vec::with_capacity(graph.nodes().len());
    for node in graph.nodes() {
        let own = matches!(node.op, Op::Input(crate::ir::graph::Input::Score));
        found.push(own || node.op.operands().iter().any(|o| found[o.0 as usize]));
    }
    found
}

/// Moves the scores of a row, before the mod, as far as float32 may round them.
pub(super) fn shifted(head: &Head, q: &[f64], scores: &mut [f64], shift: Shift) {
    let (dim, scale) = (head.problem.head_dim, head.problem.scale());
    for (score, k) in scores.iter_mut().zip(head.k.chunks_exact(dim)) {
        let k = k.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        *score += reach(q, k, *score, scale, shift);
    }
}

/// How far a score moves: by what its sum's rounding comes to, and by its own last places. `k` is the size of the key.
pub(super) fn reach(q: &[f64], k: f64, score: f64, scale: f64, shift: Shift) -> f64 {
    const UNIT: f64 = 1.0 / (1u64 << 20) as f64;
    let q_size = q.iter().map(|x| x * x).sum::<f64>().sqrt();
    let terms = scale.abs() * q_size * k / (q.len() as f64).sqrt();
    let reach = UNIT * (terms + score.abs() / 4.0);
    match shift {
        Shift::Above => reach,
        Shift::Below => -reach,
    }
}
