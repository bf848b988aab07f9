//! Fast math: replaces a score mod's tanh and sigmoid by the GPU's approximate instruction.
//!
//! Invariant: only these functions change; on a CPU the result has the same meaning. Must not know its callers.

use crate::ir::graph::{BinaryOp, Graph, Mod, Op, UnaryOp};

/// The same mod with approximate functions.
pub fn approximate(exact: &Mod) -> Mod {
    let mut graph = Graph::new();
    let map = graph.rewrite(&exact.graph, exact.graph.ids(), |graph, id, op| {
        let span = exact.graph.node(id).span;
        match op {
            Op::Unary(UnaryOp::Tanh, x) => graph.add(Op::Unary(UnaryOp::TanhApprox, x), span),
            Op::Unary(UnaryOp::Sigmoid, x) => {
                let half = graph.float(0.5);
                let x = graph.binary(BinaryOp::Mul, x, half);
                let bent = graph.add(Op::Unary(UnaryOp::TanhApprox, x), span);
                let scaled = graph.binary(BinaryOp::Mul, bent, half);
                graph.binary(BinaryOp::Add, scaled, half)
            }
            op => graph.add(op, span),
        }
    });
    debug_assert_eq!(graph.verify(), Ok(()));
    Mod { root: map[exact.root.0 as usize], graph, ..exact.clone() }
}

#[cfg(test)]
mod tests {
    use crate::ir::cell::{Cell, eval};
    use crate::ir::passes::approximate::*;
    use crate::ir::random::{self, Options, Rng};

    #[test]
    fn approximate_mods_mean_the_same_on_the_host() {
        for seed in 0..60 {
            let exact = random::score(seed, &Options { portable: false, ..Options::new(50, 60) });
            let fast = approximate(&exact);
            assert_eq!(fast.graph.verify(), Ok(()));
            let left = |op: &Op| matches!(op, Op::Unary(UnaryOp::Tanh | UnaryOp::Sigmoid, _));
            assert!(!fast.graph.nodes().iter().any(|node| left(&node.op)));
            let mut rng = Rng::new(seed);
            for _ in 0..20 {
                let (q_idx, kv_idx) = (rng.below(50) as i64, rng.below(60) as i64);
                let cell = Cell { q_idx, kv_idx, score: 4.0 * rng.unit() - 2.0, ..Cell::default() };
                let (a, b) = (eval(&exact, &cell).as_float(), eval(&fast, &cell).as_float());
                assert!(a == b || (a - b).abs() <= 1e-6 * a.abs().max(1.0) || (a.is_nan() && b.is_nan()), "{a} {b}");
            }
        }
    }
}
