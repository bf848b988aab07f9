//! Moves literals out of the graph into buffers of uniforms, so that a moved slider reuses the cached kernel.
//!
//! Invariant: the lifted graph with its values equals the given graph (floats rounded to f32, as in kernels). Each
//! place that reads a literal has its own uniform, numbered in evaluation order: two graphs that differ only in lifted
//! literals become the same graph, even if some literals happen to be equal. Must not know what runs the result.

use crate::ir::graph::{BinaryOp, Graph, NodeId, Op, UnaryOp, UniformId};
use crate::ir::schedule;

/// Which literals leave the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lift {
    /// All except those that determine the graph's form: bools, zeros, infinities and NaN, ints beyond 32 bits,
    /// float64.
    Everything,
    /// Divisors, shift amounts and exponents stay too: known, they cost a multiplication or less; unknown, twenty
    /// instructions.
    #[default]
    KeepDivisors,
}

/// A graph without its liftable literals, and their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lifted {
    /// The nodes that the roots need, reading uniforms.
    pub graph: Graph,
    /// The roots, in the order given.
    pub roots: Vec<NodeId>,
    /// Values of `Op::UniformInt`.
    pub ints: Vec<i32>,
    /// Values of `Op::UniformFloat`.
    pub floats: Vec<f32>,
}

/// Lifts what `roots` need.
pub fn lift(graph: &Graph, roots: &[NodeId], how: Lift) -> Lifted {
    let mut lifted = Lifted::default();
    let mut map = vec![NodeId(u32::MAX); graph.nodes().len()];
    for id in schedule::post_order(graph, roots) {
        let node = graph.node(id);
        if lifts(&node.op) {
            // its readers make their own
            continue;
        }
        let mut place = 0;
        let op = node.op.map_operands(|operand| {
            let read = &graph.node(operand).op;
            place += 1;
            match lifts(read) {
                true if is_double(&node.op) || (how == Lift::KeepDivisors && shapes(&node.op, place - 1)) => {
                    lifted.graph.add(read.clone(), None)
                }
                true => lifted.uniform(read),
                false => map[operand.0 as usize],
            }
        });
        let op = lifted.graph.reading(graph, op);
        map[id.0 as usize] = lifted.graph.add(op, node.span);
    }
    for root in roots {
        let op = &graph.node(*root).op;
        let root = if lifts(op) { lifted.uniform(op) } else { map[root.0 as usize] };
        lifted.roots.push(root);
    }
    debug_assert_eq!(lifted.graph.verify(), Ok(()));
    lifted
}

impl Lifted {
    /// A new uniform with a literal's value.
    fn uniform(&mut self, literal: &Op) -> NodeId {
        let op = match literal {
            Op::Int(value) => {
                self.ints.push(*value as i32);
                Op::UniformInt(UniformId(self.ints.len() as u32 - 1))
            }
            Op::Float(bits) => {
                self.floats.push(f64::from_bits(*bits) as f32);
                Op::UniformFloat(UniformId(self.floats.len() as u32 - 1))
            }
            other => other.clone(),
        };
        self.graph.add(op, None)
    }
}

/// Whether an operation is a literal that can be a uniform.
fn lifts(op: &Op) -> bool {
    match op {
        Op::Int(value) => *value != 0 && i32::try_from(*value).is_ok(),
        Op::Float(bits) => {
            let value = f64::from_bits(*bits);
            // -0.0 and what f32 rounds to zero or infinity stay as well
            value.is_finite() && value as f32 != 0.0 && (value as f32).is_finite()
        }
        _ => false,
    }
}

/// Whether an operation makes a float64 of a number, which no uniform holds.
fn is_double(op: &Op) -> bool {
    matches!(op, Op::Unary(UnaryOp::ToDouble, _))
}

/// Whether a literal at this operand decides how the operation is computed.
fn shapes(op: &Op, operand: usize) -> bool {
    use BinaryOp::*;
    operand == 1 && matches!(op, Op::Binary(FloorDiv | TruncDiv | Mod | Fmod | Shl | Shr | Pow, ..))
}

#[cfg(test)]
mod tests {
    use crate::ir::cell::{Cell, Uniforms, Value, eval_with};
    use crate::ir::graph::{Input, Mod};
    use crate::ir::passes::lift::*;
    use crate::ir::random::{self, Options, Rng};

    /// Float literals as kernels have them.
    fn rounded(given: &Mod) -> Mod {
        let mut graph = Graph::new();
        let root = graph.import(&given.graph, given.root, |graph, op| match op {
            Op::Float(bits) => Some(graph.float(f64::from(f64::from_bits(*bits) as f32))),
            _ => None,
        });
        Mod { graph, root, ..given.clone() }
    }

    #[test]
    fn lifted_mods_mean_the_same() {
        for seed in 0..300 {
            let options = Options { batch: 2, heads: 3, depth: 4, portable: seed % 2 == 0, ..Options::new(70, 90) };
            for given in [random::mask(seed, &options), random::score(seed, &options)] {
                let given = rounded(&given);
                for how in [Lift::Everything, Lift::KeepDivisors] {
                    let lifted = lift(&given.graph, &[given.root], how);
                    let uniforms = Uniforms { ints: &lifted.ints, floats: &lifted.floats };
                    let mut rng = Rng::new(seed);
                    for _ in 0..15 {
                        let cell = random::cell(&mut rng, [2, 3, 70, 90]);
                        let want = eval_with(&given.graph, given.root, &cell, Uniforms::default());
                        let got = eval_with(&lifted.graph, lifted.roots[0], &cell, uniforms);
                        assert_eq!(got, want, "seed {seed} at {cell:?}");
                    }
                }
            }
        }
    }

    fn window(width: i64, block: i64) -> (Graph, NodeId) {
        let mut g = Graph::new();
        let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
        let (width, block) = (g.int(width), g.int(block));
        let distance = g.binary(BinaryOp::Sub, q, k);
        let near = g.binary(BinaryOp::Le, distance, width);
        let (a, b) = (g.binary(BinaryOp::FloorDiv, q, block), g.binary(BinaryOp::FloorDiv, k, block));
        let same = g.binary(BinaryOp::Eq, a, b);
        let root = g.binary(BinaryOp::Or, near, same);
        (g, root)
    }

    #[test]
    fn sliders_do_not_change_the_template() {
        // 64 is both width and block here
        let (g, root) = window(64, 64);
        let (other, other_root) = window(100, 64);
        let (a, b) = (lift(&g, &[root], Lift::KeepDivisors), lift(&other, &[other_root], Lift::KeepDivisors));
        assert_eq!((&a.graph, &a.roots), (&b.graph, &b.roots));
        assert_eq!((a.ints, b.ints), (vec![64], vec![100]));
        let (third, third_root) = window(7, 9);
        let (a, c) = (lift(&g, &[root], Lift::Everything), lift(&third, &[third_root], Lift::Everything));
        assert_eq!((&a.graph, &a.roots), (&c.graph, &c.roots));
        assert_eq!((a.ints, c.ints), (vec![64, 64, 64], vec![7, 9, 9]));
    }

    #[test]
    fn what_says_what_the_graph_is_stays() {
        let mut g = Graph::new();
        let (score, k) = (g.input(Input::Score), g.input(Input::KvIdx));
        let (zero, low, slope, huge) = (g.int(0), g.float(f64::NEG_INFINITY), g.float(0.1), g.int(1 << 40));
        let (first, far) = (g.binary(BinaryOp::Eq, k, zero), g.binary(BinaryOp::Lt, k, huge));
        let scaled = g.binary(BinaryOp::Mul, score, slope);
        let masked = g.add(Op::Where(first, low, scaled), None);
        let root = g.add(Op::Where(far, masked, low), None);
        let lifted = lift(&g, &[root], Lift::Everything);
        assert_eq!((lifted.ints.len(), lifted.floats.as_slice()), (0, &[0.1f32][..]));
        let cell = Cell { kv_idx: 3, score: 2.0, ..Cell::default() };
        let got = eval_with(&lifted.graph, lifted.roots[0], &cell, Uniforms { ints: &[], floats: &lifted.floats });
        assert_eq!(got, Value::Float(2.0 * f64::from(0.1f32)));
    }

    #[test]
    fn a_root_that_is_a_literal_is_lifted_too() {
        let mut g = Graph::new();
        let root = g.float(2.5);
        let lifted = lift(&g, &[root], Lift::Everything);
        assert_eq!((lifted.graph.nodes().len(), lifted.floats), (1, vec![2.5]));
    }
}
