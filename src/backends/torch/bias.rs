//! Whether a score mod is a bias, which only adds to the score: SDPA supports nothing else.
//!
//! Invariant: returns yes only if `mod(s) = s + c(b, h, q_idx, kv_idx)` for every finite s, or -inf. Must not evaluate.

use crate::ir::graph::{BinaryOp, Graph, Input, Mod, NodeId, Op};
use crate::ir::schedule;

/// Whether the score mod adds a bias and does nothing else.
pub(super) fn is_bias(of: &Mod) -> bool {
    let graph = &of.graph;
    let constant: Vec<bool> = graph.depends().iter().map(|d| !d.on(Input::Score)).collect();
    let mut adds = vec![false; graph.nodes().len()];
    // operands come before their users
    for id in schedule::needed(graph, &[of.root]) {
        let (constant, added) = (|id: NodeId| constant[id.0 as usize], |id: NodeId| adds[id.0 as usize]);
        adds[id.0 as usize] = match &graph.node(id).op {
            Op::Input(Input::Score) => true,
            Op::Binary(BinaryOp::Add, a, b) => (constant(*a) && added(*b)) || (constant(*b) && added(*a)),
            Op::Binary(BinaryOp::Sub, a, b) => constant(*b) && added(*a),
            Op::Where(c, a, b) => constant(*c) && [a, b].into_iter().all(|x| is_minus_infinity(graph, *x) || added(*x)),
            _ => false,
        };
    }
    adds[of.root.0 as usize]
}

fn is_minus_infinity(graph: &Graph, node: NodeId) -> bool {
    match graph.node(node).op {
        Op::Float(bits) => f64::from_bits(bits) == f64::NEG_INFINITY,
        Op::Unary(crate::ir::graph::UnaryOp::Neg, a) => {
            matches!(graph.node(a).op, Op::Float(bits) if f64::from_bits(bits) == f64::INFINITY)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::testing::distance_score;
    use crate::ir::graph::ModKind;

    fn check(build: impl FnOnce(&mut Graph) -> NodeId) -> bool {
        let mut graph = Graph::new();
        let root = build(&mut graph);
        is_bias(&Mod { kind: ModKind::Score, graph, root, sources: Vec::new() })
    }

    #[test]
    fn only_what_adds_is_a_bias() {
        assert!(!is_bias(&distance_score())); // halves the score first
        assert!(check(|g| g.input(Input::Score)));
        let soft_cap = check(|g| {
            let s = g.input(Input::Score);
            g.unary(crate::ir::graph::UnaryOp::Tanh, s)
        });
        assert!(!soft_cap);
        let where_minus = |value: f64| {
            check(|g| {
                let (s, q, kv) = (g.input(Input::Score), g.input(Input::QIdx), g.input(Input::KvIdx));
                let slope = g.unary(crate::ir::graph::UnaryOp::ToFloat, q);
                let biased = g.binary(BinaryOp::Sub, s, slope);
                let keep = g.binary(BinaryOp::Ge, q, kv);
                let low = g.float(value);
                g.add(Op::Where(keep, biased, low), None)
            })
        };
        assert!(where_minus(f64::NEG_INFINITY));
        assert!(!where_minus(-1e4)); // replaces the score
        let reversed = check(|g| {
            let (s, one) = (g.input(Input::Score), g.float(1.0));
            g.binary(BinaryOp::Sub, one, s)
        });
        assert!(!reversed);
    }
}
