//! Bounds of an index's range before the lengths are known: sufficient to warn of reads out of bounds.
//!
//! Invariant: the true values are within the bounds. Must not know lengths: only that indices are not negative.

use crate::ir::graph::{BinaryOp, Graph, NodeId, Op, UnaryOp};

/// Inclusive bounds; None is unbounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub lo: Option<i64>,
    pub hi: Option<i64>,
}

const ANY: Bounds = Bounds { lo: None, hi: None };

/// How far into the expression is looked.
const MAX_DEPTH: usize = 10;

/// Bounds of an int node.
pub(super) fn bounds(graph: &Graph, node: NodeId) -> Bounds {
    at(graph, node, MAX_DEPTH)
}

fn at(graph: &Graph, node: NodeId, depth: usize) -> Bounds {
    if depth == 0 {
        return ANY;
    }
    // operands may be shared: the small depth keeps this from growing exponentially
    let of = |n: NodeId| at(graph, n, depth - 1);
    match &graph.node(node).op {
        Op::Int(i) => Bounds { lo: Some(*i), hi: Some(*i) },
        Op::Input(_) => Bounds { lo: Some(0), hi: None },
        Op::Unary(UnaryOp::Neg, a) => {
            let a = of(*a);
            Bounds { lo: a.hi.and_then(i64::checked_neg), hi: a.lo.and_then(i64::checked_neg) }
        }
        Op::Unary(UnaryOp::Abs, a) => match of(*a) {
            Bounds { lo: Some(lo), hi } if lo >= 0 => Bounds { lo: Some(lo), hi },
            Bounds { lo: Some(lo), hi: Some(hi) } => Bounds { lo: Some(0), hi: lo.checked_neg().map(|l| l.max(hi)) },
            _ => Bounds { lo: Some(0), hi: None },
        },
        // if the bounds fit, nothing wraps
        Op::Unary(UnaryOp::As(dtype), a) => match (of(*a), crate::ir::bounds::stored(*dtype)) {
            (Bounds { lo: Some(lo), hi: Some(hi) }, all) if i128::from(lo) >= all.0 && i128::from(hi) <= all.1 => {
                Bounds { lo: Some(lo), hi: Some(hi) }
            }
            (_, (lo, hi)) => Bounds { lo: i64::try_from(lo).ok(), hi: i64::try_from(hi).ok() },
        },
        Op::Unary(UnaryOp::ToInt, a) if graph.ty(*a) == crate::ir::graph::Ty::Bool => {
            Bounds { lo: Some(0), hi: Some(1) }
        }
        Op::Where(_, a, b) => {
            let (a, b) = (of(*a), of(*b));
            Bounds { lo: a.lo.zip(b.lo).map(|(a, b)| a.min(b)), hi: a.hi.zip(b.hi).map(|(a, b)| a.max(b)) }
        }
        Op::Binary(op, a, b) => binary(*op, of(*a), of(*b)),
        Op::Load(capture, _) => {
            let tensor = &graph.capture(*capture).tensor;
            // large tables are not worth a scan on every keystroke
            if tensor.dtype().is_float() || tensor.numel() == 0 || tensor.numel() > 1 << 14 {
                return ANY;
            }
            let values = (0..tensor.numel()).map(|i| tensor.int_at(i));
            let (lo, hi) = values.fold((i64::MAX, i64::MIN), |(lo, hi), v| (lo.min(v), hi.max(v)));
            Bounds { lo: Some(lo), hi: Some(hi) }
        }
        _ => ANY,
    }
}

fn binary(op: BinaryOp, a: Bounds, b: Bounds) -> Bounds {
    let both = |x: Option<i64>, y: Option<i64>, f: fn(i64, i64) -> Option<i64>| x.zip(y).and_then(|(x, y)| f(x, y));
    let constant = if b.lo == b.hi { b.lo } else { None };
    match (op, constant) {
        (BinaryOp::Add, _) => Bounds { lo: both(a.lo, b.lo, i64::checked_add), hi: both(a.hi, b.hi, i64::checked_add) },
        (BinaryOp::Sub, _) => Bounds { lo: both(a.lo, b.hi, i64::checked_sub), hi: both(a.hi, b.lo, i64::checked_sub) },
        (BinaryOp::Mul, Some(c)) if c >= 0 => {
            let times = |x: Option<i64>| x.and_then(|x| x.checked_mul(c));
            Bounds { lo: times(a.lo), hi: times(a.hi) }
        }
        (BinaryOp::FloorDiv, Some(c)) if c > 0 => {
            Bounds { lo: a.lo.map(|x| x.div_euclid(c)), hi: a.hi.map(|x| x.div_euclid(c)) }
        }
        (BinaryOp::Mod, Some(c)) if c > 0 => {
            let inside = a.lo.is_some_and(|lo| lo >= 0) && a.hi.is_some_and(|hi| hi < c);
            if inside { a } else { Bounds { lo: Some(0), hi: Some(c - 1) } }
        }
        (BinaryOp::And, Some(c)) if c >= 0 => Bounds { lo: Some(0), hi: Some(c) },
        (BinaryOp::Shr, Some(c)) if (0..=31).contains(&c) => {
            Bounds { lo: a.lo.map(|x| x >> c), hi: a.hi.map(|x| x >> c) }
        }
        (BinaryOp::Min, _) => {
            Bounds { lo: a.lo.zip(b.lo).map(|(a, b)| a.min(b)), hi: [a.hi, b.hi].into_iter().flatten().min() }
        }
        (BinaryOp::Max, _) => {
            Bounds { lo: [a.lo, b.lo].into_iter().flatten().max(), hi: a.hi.zip(b.hi).map(|(a, b)| a.max(b)) }
        }
        _ => ANY,
    }
}
