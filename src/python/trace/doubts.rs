//! What a mask may be on another processor: its functions' last bits set otherwise.
//!
//! Invariant: results that every processor has stay as they are, and one node is one value wherever it is read. Must not know
//! lengths: where the masks differ is for those who know them.

use super::result::rough_function;
use crate::ir::graph::{BinaryOp, Graph, Mod, NodeId, Op, Ty, UnaryOp};
use crate::ir::schedule;
use crate::python::library::rough::is_up;
use std::collections::HashMap;

/// Ways in which last bits are set: all up, all down, and by chance.
pub(super) const SEEDS: u64 = 10;

/// The mask with other last bits of its own functions and sums of floats.
pub(super) fn shaken(mask: &Mod, sums: &[(NodeId, Vec<NodeId>)], seed: u64) -> Mod {
    let sums: HashMap<NodeId, &[NodeId]> = sums.iter().map(|(sum, terms)| (*sum, &**terms)).collect();
    let mut graph = Graph::new();
    let mut map: Vec<NodeId> = vec![NodeId(u32::MAX); mask.graph.nodes().len()];
    for id in schedule::post_order(&mask.graph, &[mask.root]) {
        let node = mask.graph.node(id);
        let op = node.op.map_operands(|o| map[o.0 as usize]);
        let op = graph.reading(&mask.graph, op);
        let own = graph.add(op, node.span);
        let is_library = rough_function(&mask.graph, &node.op).is_some();
        map[id.0 as usize] = match sums.get(&id) {
            _ if !matches!(node.ty, Ty::Float | Ty::Double) => own,
            Some(terms) => {
                let terms: Vec<NodeId> = terms.iter().map(|t| map[t.0 as usize]).collect();
                of_sum(&mut graph, own, &terms, is_up(seed, id.0.into()))
            }
            None if is_library => of_function(&mut graph, own, is_up(seed, id.0.into())),
            None => own,
        };
    }
    Mod { root: map[mask.root.0 as usize], graph, ..mask.clone() }
}

/// A function's result, a unit further in one direction where it has many digits.
fn of_function(graph: &mut Graph, x: NodeId, up: bool) -> NodeId {
    let double = graph.ty(x) == Ty::Double;
    let unit = if double { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let by = literal(graph, if up { 1.0 + unit } else { 1.0 - unit / 2.0 }, double);
    let other = graph.binary(BinaryOp::Mul, x, by);
    unless_exact(graph, x, other)
}

/// A sum of floats in another order.
fn of_sum(graph: &mut Graph, x: NodeId, terms: &[NodeId], up: bool) -> NodeId {
    let double = graph.ty(x) == Ty::Double;
    let mut all = None;
    for term in terms {
        let size = graph.unary(UnaryOp::Abs, *term);
        all = Some(all.map_or(size, |sum| graph.binary(BinaryOp::Add, sum, size)));
    }
    let Some(all) = all.filter(|all| graph.ty(*all) == graph.ty(x)) else { return x };
    let unit = if double { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let by = literal(graph, if up { 2.0 * unit } else { -2.0 * unit }, double);
    let step = graph.binary(BinaryOp::Mul, all, by);
    let other = graph.binary(BinaryOp::Add, x, step);
    // every order gives the same of multiples of a power of two
    let grain = literal(graph, 4096.0, double);
    let mut exact = graph.bool(true);
    for term in terms {
        let scaled = graph.binary(BinaryOp::Mul, *term, grain);
        let whole = graph.unary(UnaryOp::Trunc, scaled);
        let whole = graph.binary(BinaryOp::Eq, whole, scaled);
        exact = graph.binary(BinaryOp::And, exact, whole);
    }
    graph.add(Op::Where(exact, x, other), None)
}

/// A number of a type.
fn literal(graph: &mut Graph, x: f64, double: bool) -> NodeId {
    let own = graph.float(x);
    if double { graph.unary(UnaryOp::ToDouble, own) } else { own }
}

/// `other` where `x` has more digits than what functions give exactly.
fn unless_exact(graph: &mut Graph, x: NodeId, other: NodeId) -> NodeId {
    use crate::base::DType::BF16;
    let double = graph.ty(x) == Ty::Double;
    let single = if double { graph.unary(UnaryOp::ToFloat, x) } else { x };
    let few = graph.unary(UnaryOp::As(BF16), single);
    let few = if double { graph.unary(UnaryOp::ToDouble, few) } else { few };
    let few = graph.binary(BinaryOp::Eq, few, x);
    let whole = graph.unary(UnaryOp::Trunc, x);
    let whole = graph.binary(BinaryOp::Eq, whole, x);
    let size = graph.unary(UnaryOp::Abs, x);
    let most = literal(graph, 16384.0, double);
    let small = graph.binary(BinaryOp::Lt, size, most);
    let whole = graph.binary(BinaryOp::And, whole, small);
    let exact = graph.binary(BinaryOp::Or, few, whole);
    graph.add(Op::Where(exact, x, other), None)
}
