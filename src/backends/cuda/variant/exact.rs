//! Whether a kernel computes every cell of a mask exactly like the host.
//!
//! Invariant: if it returns yes, the emitted text has the interpreter's value in every operation: ints stay inside 32
//! bits, and floats use only operations that the hardware rounds correctly. Must not know how masks are passed.

use crate::analysis::interval::{Cells, Program};
use crate::ir::graph::{BinaryOp, Mod, Op, Ty, UnaryOp};
use crate::ir::ops::rows::LastBit;
use crate::ir::schedule::needed;
use crate::problem::Problem;

/// Whether `mask` by its formula keeps the cells that the host keeps, at the problem's sizes.
pub(crate) fn by_formula(problem: &Problem, mask: &Mod) -> bool {
    needed(&mask.graph, &[mask.root]).iter().all(|id| is_exact(&mask.graph.node(*id).op)) && stays_small(problem, mask)
}

/// Whether `mask` in ints of 64 bits keeps the cells that the host keeps, whatever its captured tensors hold.
pub(crate) fn in_wide_ints(mask: &Mod) -> bool {
    let graph = &mask.graph;
    needed(graph, &[mask.root]).iter().all(|id| match &graph.node(*id).op {
        Op::Int(value) => i32::try_from(*value).is_ok(),
        // these are written for 32 bits
        Op::Binary(BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Pow, ..) => false,
        Op::Unary(UnaryOp::ToInt | UnaryOp::ToInt32, a) => graph.ty(*a) == Ty::Bool,
        op => is_exact(op),
    })
}

/// Whether an operation gives the same on every processor.
fn is_exact(op: &Op) -> bool {
    match op {
        Op::Unary(op, _) => op.row().last_bit != LastBit::Library,
        // for ints: their range decides whether they fit
        Op::Binary(op, ..) => op.row().last_bit != LastBit::Library,
        Op::Where(..) | Op::Load(..) | Op::Input(_) => true,
        Op::Bool(_) | Op::Int(_) | Op::Float(_) | Op::UniformInt(_) | Op::UniformFloat(_) => true,
    }
}

/// Whether no int can leave 32 bits.
fn stays_small(problem: &Problem, mask: &Mod) -> bool {
    let last = |n: usize| (0, n as i64 - 1);
    let (q, kv) = (last(problem.q_len), last(problem.kv_len));
    let cells = Cells { b: last(problem.batch), h: last(problem.heads), q, kv };
    Program::new(mask).ints_within(&cells, (i32::MIN.into(), i32::MAX.into()))
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::choose::tests::{causal, make, problem};
    use crate::backends::cuda::variant::exact::*;
    use crate::ir::graph::{BinaryOp, Graph, Input, ModKind, NodeId, UnaryOp};

    fn is_by_formula(build: impl FnOnce(&mut Graph, NodeId, NodeId) -> NodeId) -> bool {
        let mask = make(ModKind::Mask, |g| {
            let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
            build(g, q, k)
        });
        by_formula(&problem(Some(mask.clone()), None), &mask)
    }

    #[test]
    fn what_a_gpu_rounds_otherwise_or_cannot_hold_is_no_formula() {
        assert!(by_formula(&problem(Some(causal()), None), &causal()));
        let ratio = |g: &mut Graph, q: NodeId, k: NodeId, bend: Option<UnaryOp>| {
            let (place, step, other) = (g.unary(UnaryOp::ToFloat, q), g.float(0.7), g.unary(UnaryOp::ToFloat, k));
            let scaled = g.binary(BinaryOp::Mul, place, step);
            let bent = bend.map_or(scaled, |op| g.unary(op, scaled));
            g.binary(BinaryOp::Gt, bent, other)
        };
        assert!(is_by_formula(|g, q, k| ratio(g, q, k, None)));
        assert!(is_by_formula(|g, q, k| ratio(g, q, k, Some(UnaryOp::Sqrt))));
        assert!(!is_by_formula(|g, q, k| ratio(g, q, k, Some(UnaryOp::Exp))));
        let hashed = |g: &mut Graph, q: NodeId, k: NodeId, by: i64| {
            let by = g.int(by);
            let far = g.binary(BinaryOp::Mul, q, by);
            g.binary(BinaryOp::Gt, far, k)
        };
        assert!(is_by_formula(|g, q, k| hashed(g, q, k, 1000)));
        assert!(!is_by_formula(|g, q, k| hashed(g, q, k, 2_654_435_761)), "300 times that leaves 32 bits");
        let is_wide = |build: &dyn Fn(&mut Graph, NodeId, NodeId) -> NodeId| {
            in_wide_ints(&make(ModKind::Mask, |g| {
                let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
                build(g, q, k)
            }))
        };
        assert!(is_wide(&|g, q, k| hashed(g, q, k, 2_000_000_000)), "int64 wraps as the host's does");
        assert!(!is_wide(&|g, q, k| hashed(g, q, k, 2_654_435_761)), "a literal beyond 32 bits");
        assert!(is_wide(&|g, q, k| ratio(g, q, k, None)) && !is_wide(&|g, q, k| ratio(g, q, k, Some(UnaryOp::Exp))));
        let shifted = |g: &mut Graph, q: NodeId, k: NodeId| {
            let far = g.binary(BinaryOp::Shl, q, k);
            g.binary(BinaryOp::Gt, far, k)
        };
        assert!(!is_wide(&shifted), "a shift is written for 32 bits");
    }
}
