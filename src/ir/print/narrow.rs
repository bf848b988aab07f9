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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::HostTensor;
    use crate::base::tensor::Data;
    use crate::ir::graph::{Input, Mod, ModKind};
    use crate::ir::print::{names::Names, python::function};

    fn printed(of: &Mod, ranges: Ranges) -> String {
        function("f", of, &mut Names::reserving(&[]), ranges)
    }

    #[test]
    fn a_product_beyond_32_bits_reads_int64_and_a_smaller_one_does_not() {
        let mut graph = Graph::new();
        let (q, kv) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
        let table = graph.add_capture("t", HostTensor::vector(Data::I32(vec![7; 100])));
        let read = graph.add(Op::Load(table, smallvec::smallvec![q]), None);
        let by = graph.int(5000);
        let product = graph.binary(BinaryOp::Mul, read, by);
        let root = graph.binary(BinaryOp::Ge, product, kv);
        let of = Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() };
        assert!(!printed(&of, &|_| (0, 50)).contains("int64"));
        for far in [(0, 1 << 31), (-(1 << 31) - 1, 0)] {
            assert!(printed(&of, &|_| far).contains("].to(torch.int64) * 5000"), "{}", printed(&of, &|_| far));
        }
    }

    #[test]
    fn half_floats_are_read_as_float32() {
        let mut graph = Graph::new();
        let (q, score) = (graph.input(Input::QIdx), graph.input(Input::Score));
        let table = graph.add_capture("t", HostTensor::vector(Data::F16(vec![half::f16::ONE; 100])));
        let read = graph.add(Op::Load(table, smallvec::smallvec![q]), None);
        let root = graph.binary(BinaryOp::Add, score, read);
        let of = Mod { kind: ModKind::Score, graph, root, sources: Vec::new() };
        assert!(printed(&of, &|_| (0, 50)).contains("t[q_idx].to(torch.float32)"));
    }
}
