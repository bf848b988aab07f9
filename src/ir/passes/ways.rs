//! Gradients from a tensor that a factory computed back to the tensors that it was computed from.
//!
//! Invariant: the result contains every partial derivative, or names the operation without one. Must not know the text
//! of the computation.

use super::derive::{Derivative, derivative, shared_extreme, slope};
use crate::base::HostTensor;
use crate::ir::cell::{self, Cell};
use crate::ir::graph::{Graph, NodeId, Op};
use crate::ir::made::{Part, Way};

/// Partial derivatives of a tensor's elements at most.
pub const MOST_PARTS: usize = 1 << 20;

/// The derivatives of `roots`, the elements of `made`, by the tensors that `graph` reads. The inner error names the
/// operation without a derivative.
pub fn ways(graph: &Graph, roots: &[NodeId], made: &HostTensor) -> Result<Vec<Part>, String> {
    let Some(last) = roots.iter().max() else { return Ok(Vec::new()) };
    let values = cell::values(graph, *last, &Cell::default(), Default::default());
    let largest = (0..made.numel()).map(|i| made.float_at(i).abs()).filter(|x| x.is_finite()).fold(0.0, f64::max);
    for (at, root) in roots.iter().enumerate() {
        let (got, want) = (values[root.0 as usize], made.float_at(at));
        let got =
            if let cell::Value::Float(x) = got { x } else { return Err("an operation that returns no floats".into()) };
        let same = got == want || (got.is_nan() && want.is_nan());
        let near = want.is_finite() && (got - want).abs() <= 0.02 * want.abs() + 1e-4 * largest;
        if !same && !near {
            return Err("an operation whose values differ inside a mod".into());
        }
    }
    let slopes = Slopes::of(graph, *last, &values)?;
    let parts = graph.captures().iter().enumerate().filter_map(|(capture, held)| {
        let mut each = Vec::new();
        for (at, root) in roots.iter().enumerate() {
            let own = slopes.of_node(*root).iter().filter(|s| s.0 == capture as u32);
            each.extend(own.map(|(_, element, by)| (at as u32, *element, *by)));
        }
        let part = || Part { name: held.name.clone(), tensor: held.tensor.clone(), way: Way::Each(each.clone()) };
        (!each.is_empty()).then(part)
    });
    Ok(parts.collect())
}

/// For every node of a graph, the derivatives by its origins: tensor, element, derivative.
struct Slopes {
    all: Vec<Vec<(u32, u32, f64)>>,
    parts: usize,
}

impl Slopes {
    fn of(graph: &Graph, last: NodeId, values: &[cell::Value]) -> Result<Slopes, String> {
        let mut made = Slopes { all: Vec::with_capacity(last.0 as usize + 1), parts: 0 };
        for id in 0..=last.0 {
            let own = made.node(graph, NodeId(id), values)?;
            made.parts += own.len();
            if made.parts > MOST_PARTS {
                return Err(format!("operations with more than {MOST_PARTS} partial derivatives"));
            }
            made.all.push(own);
        }
        Ok(made)
    }

    fn of_node(&self, id: NodeId) -> &[(u32, u32, f64)] {
        &self.all[id.0 as usize]
    }

    fn node(&self, graph: &Graph, id: NodeId, values: &[cell::Value]) -> Result<Vec<(u32, u32, f64)>, String> {
        let node = graph.node(id);
        if let (Op::Load(capture, index), true) = (&node.op, node.ty.is_float()) {
            let index: Vec<i64> = index.iter().map(|i| values[i.0 as usize].as_int()).collect();
            let at = graph.capture(*capture).tensor.clamped_offset(&index);
            return Ok(vec![(capture.0, at as u32, 1.0)]);
        }
        let operands = node.op.operands();
        if !node.ty.is_float() || operands.iter().all(|o| self.of_node(*o).is_empty()) {
            return Ok(Vec::new());
        }
        if let Some(leaves) = shared_extreme(graph, id) {
            let top = |l: &&NodeId| values[l.0 as usize] == values[id.0 as usize];
            let count = leaves.iter().filter(top).count() as f64;
            let all =
                leaves.iter().filter(top).flat_map(|l| self.of_node(*l).iter().map(|(c, e, x)| (*c, *e, x / count)));
            return Ok(merged(all.collect()));
        }
        let formulas = match derivative(&node.op) {
            Derivative::Ends => return Ok(Vec::new()),
            Derivative::Missing(name) => return Err(format!("{name}, which has no derivative in PyTorch")),
            Derivative::Of(formulas) => formulas,
        };
        let mut sum: Vec<(u32, u32, f64)> = Vec::new();
        for (operand, formula) in operands.iter().zip(formulas) {
            let (Some(formula), false) = (formula, self.of_node(*operand).is_empty()) else { continue };
            let by = slope(graph, id, values, formula);
            sum.extend(self.of_node(*operand).iter().map(|(c, e, x)| (*c, *e, if *x == 0.0 { 0.0 } else { by * x })));
        }
        Ok(merged(sum))
    }
}

/// Entries of one element added up.
fn merged(mut all: Vec<(u32, u32, f64)>) -> Vec<(u32, u32, f64)> {
    all.sort_by_key(|(c, e, _)| (*c, *e));
    all.dedup_by(|next, kept| {
        let same = (next.0, next.1) == (kept.0, kept.1);
        if same {
            kept.2 += next.2;
        }
        same
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::tensor::Data;
    use crate::ir::graph::BinaryOp;

    #[test]
    fn products_and_ties_give_each_parent_its_share() {
        let mut graph = Graph::new();
        let table = |v: Vec<f32>| HostTensor::vector(Data::F32(v));
        let (a, b) = (graph.add_capture("a", table(vec![2.0, 3.0])), graph.add_capture("b", table(vec![3.0])));
        let read = |graph: &mut Graph, capture, at| {
            let at = graph.int(at);
            graph.add(Op::Load(capture, smallvec::smallvec![at]), None)
        };
        let (a0, a1, b0) = (read(&mut graph, a, 0), read(&mut graph, a, 1), read(&mut graph, b, 0));
        let square = graph.binary(BinaryOp::Mul, a0, a0);
        let top = graph.binary(BinaryOp::Max, a1, b0);
        let parts = ways(&graph, &[square, top], &table(vec![4.0, 3.0])).expect("all differentiable");
        assert_eq!(parts[0].way, Way::Each(vec![(0, 0, 4.0), (1, 1, 0.5)]));
        assert_eq!(parts[1].way, Way::Each(vec![(1, 0, 0.5)]));
        let mut to = vec![0.0; 2];
        parts[0].give(&[10.0, 4.0], &mut to);
        assert_eq!(to, [40.0, 2.0]);
    }

    #[test]
    fn values_that_the_mod_would_not_have_are_no_way_back() {
        let table = |v: Vec<f32>| HostTensor::vector(Data::F32(v));
        let mut graph = Graph::new();
        let a = graph.add_capture("a", table(vec![2.0]));
        let at = graph.int(0);
        let a0 = graph.add(Op::Load(a, smallvec::smallvec![at]), None);
        let square = graph.binary(BinaryOp::Mul, a0, a0);
        // two percent is another order of roundings; ten are another function
        assert!(ways(&graph, &[square], &table(vec![4.05])).is_ok());
        for made in [vec![4.4], vec![3.6], vec![f32::NAN], vec![f32::INFINITY], vec![4.9, 1000.0]] {
            assert!(ways(&graph, &[square], &table(made.clone())).is_err(), "{made:?}");
        }
    }

    #[test]
    fn a_view_gives_to_what_it_shows() {
        let way = Way::View { shape: vec![2, 2], strides: vec![0, -1], offset: 2 };
        let part = Part { name: "t".into(), tensor: HostTensor::vector(Data::F32(vec![0.0; 3])), way };
        let mut to = vec![0.0; 3];
        part.give(&[1.0, 2.0, 3.0, 4.0], &mut to);
        assert_eq!(to, [0.0, 6.0, 4.0]);
    }
}
