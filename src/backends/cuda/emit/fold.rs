//! Products of a cell's value with factors that are the same for all cells: `score / cap * gain` is one multiplication
//! per score, by a factor that is computed once.
//!
//! Invariant: a folded product equals the written one up to rounding. Must not know CUDA's text.

use crate::ir::graph::{BinaryOp, Graph, Input, NodeId, Op, Ty, UnaryOp};
use crate::ir::schedule::{Level, Schedule};

/// `base * factors...`, some of them inverted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Product {
    /// The factor that differs between cells.
    pub base: NodeId,
    /// Factors that are the same all over a head, and whether the base is divided by them.
    pub factors: Vec<(NodeId, bool)>,
    /// Whether the base is the score itself, which comes without its scale.
    pub raw: bool,
}

/// A node's product; None if there is nothing to fold.
pub(crate) fn product(graph: &Graph, schedule: &Schedule, id: NodeId) -> Option<Product> {
    let same = |id: NodeId| {
        let level = schedule.level_of(id);
        graph.ty(id) == Ty::Float && matches!(level, Some(Level::Uniform | Level::BatchHead))
    };
    let (mut base, mut factors) = (id, Vec::new());
    loop {
        match graph.node(base).op {
            Op::Binary(BinaryOp::Mul, a, b) if same(b) && !same(a) => {
                factors.push((b, false));
                base = a;
            }
            Op::Binary(BinaryOp::Mul, a, b) if same(a) && !same(b) => {
                factors.push((a, false));
                base = b;
            }
            Op::Binary(BinaryOp::Div, a, b) if same(b) && !same(a) => {
                factors.push((b, true));
                base = a;
            }
            _ => break,
        }
    }
    let raw = graph.node(base).op == Op::Input(Input::Score);
    let float = graph.ty(base) == Ty::Float;
    // a single factor of a tanh goes into the tanh
    let tanh = matches!(graph.node(base).op, Op::Unary(UnaryOp::Tanh, _)) && !factors.is_empty();
    (float && (tanh || factors.len() + usize::from(raw) > 1)).then_some(Product { base, factors, raw })
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::emit::fold::*;

    #[test]
    fn chains_of_constants_fold_and_sums_end_them() {
        let mut g = Graph::new();
        let (score, q) = (g.input(Input::Score), g.input(Input::QIdx));
        let (cap, gain) = (g.float(30.0), g.float(2.0));
        let ratio = g.binary(BinaryOp::Div, score, cap);
        let gained = g.binary(BinaryOp::Mul, gain, ratio);
        let place = g.unary(UnaryOp::ToFloat, q);
        let moved = g.binary(BinaryOp::Add, gained, place);
        let last = g.binary(BinaryOp::Mul, moved, cap);
        let root = g.binary(BinaryOp::Mul, last, place);
        let schedule = Schedule::new(&g, &[root]);
        let of = |id| product(&g, &schedule, id);
        assert_eq!(of(ratio), Some(Product { base: score, factors: vec![(cap, true)], raw: true }));
        assert_eq!(of(gained), Some(Product { base: score, factors: vec![(gain, false), (cap, true)], raw: true }));
        assert_eq!(of(moved), None);
        assert_eq!(of(last), None, "one factor is written as it stands");
        assert_eq!(of(root), None, "a row's value is no constant");
        let bent = g.unary(UnaryOp::Tanh, moved);
        let capped = g.binary(BinaryOp::Mul, cap, bent);
        let schedule = Schedule::new(&g, &[capped]);
        let of = |id| product(&g, &schedule, id);
        assert_eq!(of(capped), Some(Product { base: bent, factors: vec![(cap, false)], raw: false }));
    }
}
