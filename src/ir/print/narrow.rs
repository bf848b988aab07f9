//! The places where printed ints must become int64: PyTorch computes int32 tensors in 32 bits, the graph computes in
//! 64.
//!
//! Invariant: an operation whose value may exceed 32 bits reads at least one int64. Must not know text.

use crate::base::DType;
use crate::ir::graph::{BinaryOp, Graph, NodeId, Op, Ty, UnaryOp};

/// The possible values of int nodes, inclusive; unknown ones are `(i64::MIN, i64::MAX)`.
pub type Ranges<'a> = &'a dyn Fn(NodeId) -> (i64, i64);

/// Knows no ranges: every read is clamped.
pub fn any_range(_: NodeId) -> (i64, i64) {
    (i64::MIN, i64::MAX)
}

/// The printed form of an int.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    /// Python's number: it follows the other operand.
    Number,
    Int32,
    Int64,
}

/// The operand of each node that is to be written as int64.
pub(super) fn widened(graph: &Graph, ranges: Ranges) -> Vec<Option<NodeId>> {
    let mut kept: Vec<Kept> = Vec::with_capacity(graph.nodes().len());
    let mut widened = vec![None; graph.nodes().len()];
    for (at, node) in graph.nodes().iter().enumerate() {
        let ints: Vec<NodeId> = match &node.op {
            Op::Load(..) | Op::Unary(UnaryOp::ToInt | UnaryOp::ToInt32 | UnaryOp::As(_), _) => Vec::new(),
            op => op.operands().into_iter().filter(|o| graph.ty(*o) == Ty::Int).collect(),
        };
        let of = |id: &NodeId| kept[id.0 as usize];
        let narrow = ints.iter().copied().find(|id| of(id) == Kept::Int32);
        let all_narrow = narrow.is_some() && ints.iter().all(|id| of(id) != Kept::Int64);
        let far = |id: &NodeId| matches!(graph.node(*id).op, Op::Int(x) if i32::try_from(x).is_err());
        let grows = matches!(
            node.op,
            Op::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Pow | BinaryOp::Shl, ..)
                | Op::Unary(UnaryOp::Neg | UnaryOp::Abs, _)
        );
        let leaves = grows && !fits(ranges(NodeId(at as u32)));
        let widens = all_narrow && (leaves || ints.iter().any(far));
        widened[at] = narrow.filter(|_| widens);
        kept.push(match &node.op {
            Op::Int(_) => Kept::Number,
            Op::Load(capture, _) if graph.capture(*capture).tensor.dtype() != DType::I64 => Kept::Int32,
            Op::Unary(UnaryOp::ToInt, a) if graph.ty(*a) == Ty::Bool => Kept::Int32,
            Op::Unary(UnaryOp::ToInt32, _) => Kept::Int32,
            Op::Unary(UnaryOp::As(dtype), a) if *dtype == DType::I64 => of(a),
            Op::Unary(UnaryOp::As(_), _) => Kept::Int32,
            _ if all_narrow && !widens => Kept::Int32,
            _ => Kept::Int64,
        });
    }
    widened
}

fn fits((least, most): (i64, i64)) -> bool {
    i32::try_from(least).is_ok() && i32::try_from(most).is_ok()
}
