//! Possible masks on another processor: the last bits of its functions changed.
//!
//! Invariant: results that all processors share stay unchanged, and equal arguments give equal results at every place.
//! Must not know lengths: the caller, who knows them, finds where the masks differ.

use super::result::rough_function;
use crate::ir::graph::{BinaryOp, Graph, Mod, NodeId, Op, Ty, UnaryOp};
use crate::ir::schedule;
use crate::python::library::rough::is_up;
use std::collections::HashMap;

/// Ways in which last bits are set: all up, all down, and by chance.
const SEEDS: u64 = 10;
/// Fewer of them would not say that a mask does not depend on them.
const LEAST: u64 = 3;

/// The number of ways that are tried of a text that took so many of its steps once: together they take no more than one text may.
pub(super) fn ways(limit: u64, steps: u64) -> u64 {
    let fit = (limit / steps.max(1)).saturating_sub(1);
    if fit < LEAST { 0 } else { fit.min(SEEDS) }
}

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
                of_sum(&mut graph, own, &terms, seed)
            }
            None if is_library => of_function(&mut graph, own, op_argument(&mask.graph, &node.op, &map), seed),
            None => own,
        };
    }
    Mod { root: map[mask.root.0 as usize], graph, ..mask.clone() }
}

/// A function's first operand in the new graph.
fn op_argument(old: &Graph, op: &Op, map: &[NodeId]) -> Option<NodeId> {
    match op {
        Op::Unary(_, a) | Op::Binary(_, a, _) if old.ty(*a).is_float() => Some(map[a.0 as usize]),
        _ => None,
    }
}

/// One of two factors for a result, by the way of the seed: by chance is by the values that it follows, so that equal arguments have the
/// same result in all of the mask.
fn chosen(graph: &mut Graph, x: NodeId, argument: Option<NodeId>, seed: u64, [up, down]: [f64; 2]) -> NodeId {
    let double = graph.ty(x) == Ty::Double;
    if seed < 2 {
        return literal(graph, if is_up(seed, 0) { up } else { down }, double);
    }
    let key = match argument.filter(|a| graph.ty(*a) == graph.ty(x)) {
        Some(argument) => graph.binary(BinaryOp::Add, x, argument),
        None => x,
    };
    // whether a large multiple is even
    let large = literal(graph, 30_011.0 + 7_919.0 * seed as f64, double);
    let many = graph.binary(BinaryOp::Mul, key, large);
    let many = graph.unary(UnaryOp::Floor, many);
    let half = literal(graph, 0.5, double);
    let half = graph.binary(BinaryOp::Mul, many, half);
    let pairs = graph.unary(UnaryOp::Floor, half);
    let twice = graph.binary(BinaryOp::Add, pairs, pairs);
    let even = graph.binary(BinaryOp::Eq, twice, many);
    let (up, down) = (literal(graph, up, double), literal(graph, down, double));
    graph.add(Op::Where(even, up, down), None)
}

/// A function's result, one unit further in one direction if it has many digits.
fn of_function(graph: &mut Graph, x: NodeId, argument: Option<NodeId>, seed: u64) -> NodeId {
    let double = graph.ty(x) == Ty::Double;
    let unit = if double { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let by = chosen(graph, x, argument, seed, [1.0 + unit, 1.0 - unit / 2.0]);
    let other = graph.binary(BinaryOp::Mul, x, by);
    unless_exact(graph, x, other)
}

/// A sum of floats in another order.
fn of_sum(graph: &mut Graph, x: NodeId, terms: &[NodeId], seed: u64) -> NodeId {
    let double = graph.ty(x) == Ty::Double;
    let mut all = None;
    for term in terms {
        let size = graph.unary(UnaryOp::Abs, *term);
        all = Some(all.map_or(size, |sum| graph.binary(BinaryOp::Add, sum, size)));
    }
    let Some(all) = all.filter(|all| graph.ty(*all) == graph.ty(x)) else { return x };
    let unit = if double { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let by = chosen(graph, x, None, seed, [2.0 * unit, -2.0 * unit]);
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
