//! Rewrites a mod to less work and to a form that people and the analysis read more easily.
//!
//! Invariant: at every cell the result equals the interpreter's to the bit (all NaNs count as equal), spans stay with
//! their expressions, and the graph verifies after each pass. Folded ints fit in 32 bits, as in kernels. `//` and `%`
//! are kept: emitters reduce their strength. Must not know what runs the result.

mod compare;
mod float;
mod int;
mod logic;
#[cfg(test)]
mod tests;

use crate::base::tensor::clamp_index;
use crate::base::{DType, Span};
use crate::ir::bounds::{self, Range};
use crate::ir::cell::{self, Value};
use crate::ir::graph::{CaptureId, Depends, Graph, Input, Mod, ModKind, NodeId, Op, Ty, UnaryOp, Width};
use crate::ir::schedule;
use std::collections::HashMap;

/// Passes before it is left as it is; two do nearly always.
const PASSES: usize = 6;
/// Rewrites that one node may set off.
const FUEL: usize = 200;
/// Captured tensors with more elements are not read for their extremes.
const SCANNED: usize = 1 << 20;

/// The same mod, simplified. Nodes and captured tensors that the result does not need are gone.
pub fn simplify(given: &Mod) -> Mod {
    let mut now = prune(given);
    for _ in 0..PASSES {
        let next = prune(&pass(&now));
        debug_assert_eq!(next.graph.verify(), Ok(()));
        if next.root == now.root && same_ops(&next.graph, &now.graph) {
            return next;
        }
        now = next;
    }
    now
}

fn same_ops(a: &Graph, b: &Graph) -> bool {
    a.nodes().len() == b.nodes().len() && a.nodes().iter().zip(b.nodes()).all(|(x, y)| x.op == y.op)
}

/// Only what the result needs.
fn prune(given: &Mod) -> Mod {
    let mut graph = Graph::new();
    let root = graph.import(&given.graph, given.root, |_, _| None);
    Mod { kind: given.kind, graph, root, sources: given.sources.clone() }
}

fn pass(given: &Mod) -> Mod {
    let old = &given.graph;
    let mut pass = Pass { reads_learn: given.kind == ModKind::Score, ..Pass::default() };
    let needed = schedule::needed(old, &[given.root]);
    let mut uses = vec![0u32; old.nodes().len()];
    needed.iter().flat_map(|id| old.node(*id).op.operands()).for_each(|o| uses[o.0 as usize] += 1);
    let mut map = vec![NodeId(u32::MAX); old.nodes().len()];
    for id in needed {
        let node = old.node(id);
        let op = pass.graph.reading(old, node.op.map_operands(|o| map[o.0 as usize]));
        (pass.span, pass.fuel) = (node.span, FUEL);
        let made = pass.make(op);
        pass.uses[made.0 as usize] += uses[id.0 as usize];
        map[id.0 as usize] = made;
    }
    debug_assert_eq!(pass.graph.verify(), Ok(()));
    Mod { kind: given.kind, graph: pass.graph, root: map[given.root.0 as usize], sources: given.sources.clone() }
}

/// The new graph, with the known facts of each node.
#[derive(Default)]
struct Pass {
    graph: Graph,
    /// Whether reads of float tensors may want a gradient, so that they stay reads.
    reads_learn: bool,
    depends: Vec<Depends>,
    ranges: Vec<Range>,
    /// Readers in the old graph.
    uses: Vec<u32>,
    loads: HashMap<CaptureId, Range>,
    span: Option<Span>,
    fuel: usize,
}

impl Pass {
    /// The simplest node that means `op`, whose operands are simplified already.
    fn make(&mut self, op: Op) -> NodeId {
        if self.fuel == 0 {
            return self.add(op);
        }
        self.fuel -= 1;
        let Some(id) = self.rewritten(&op) else { return self.add(op) };
        if self.graph.ty(id) != Ty::Float {
            return id;
        }
        match (self.graph.width(&op), self.float(id)) {
            // a number that replaces a rounded operation is rounded
            (Width::Single, Some(x)) => self.number(f64::from(x as f32)),
            // what is computed from the score keeps the score's precision
            (Width::Score, _) if !self.graph.follows_score(id) => self.add(op),
            _ => id,
        }
    }

    fn number(&mut self, x: f64) -> NodeId {
        self.add(Op::Float(x.to_bits()))
    }

    fn rewritten(&mut self, op: &Op) -> Option<NodeId> {
        if let Some(value) = self.folded(op) {
            return Some(self.add(value.literal()));
        }
        match op {
            Op::Unary(unary, a) => self.unary(*unary, *a),
            Op::Binary(binary, a, b) if binary.is_comparison() => self.comparison(*binary, *a, *b),
            Op::Binary(binary, a, b) => match self.graph.ty(*a) {
                Ty::Bool => self.bool_binary(*binary, *a, *b),
                Ty::Int => self.int_binary(*binary, *a, *b),
                Ty::Float | Ty::Double => self.float_binary(*binary, *a, *b),
            },
            Op::Where(c, a, b) => self.choice(*c, *a, *b),
            Op::Load(capture, index) => self.load(*capture, index),
            _ => None,
        }
    }

    /// Adds a node as it is.
    fn add(&mut self, op: Op) -> NodeId {
        let id = self.graph.add(op.clone(), self.span);
        if id.0 as usize == self.ranges.len() {
            let own = if let Op::Input(input) = op { Depends::of(input) } else { Depends::NONE };
            self.depends.push(op.operands().iter().fold(own, |d, o| d.with(self.depends[o.0 as usize])));
            let range = self.range_of(&op, id);
            self.ranges.push(range);
            self.uses.push(0);
        }
        id
    }

    fn range_of(&mut self, op: &Op, id: NodeId) -> Range {
        if self.graph.ty(id) != Ty::Int {
            return bounds::ANY;
        }
        if let Op::Load(capture, _) = op {
            let tensor = &self.graph.capture(*capture).tensor;
            let scan = || if tensor.numel() <= SCANNED { bounds::tensor_range(tensor) } else { bounds::ANY };
            return *self.loads.entry(*capture).or_insert_with(scan);
        }
        let range = bounds::range_of(&self.graph, op, &self.ranges, crate::base::shape::MAX_LENGTH, &[]);
        // beyond i64 the interpreter wraps
        if bounds::fits_i64(range) { range } else { bounds::ANY }
    }

    /// The value of an operation on literals; none for an int beyond 32 bits, nor for a Double, which has no literal.
    fn folded(&self, op: &Op) -> Option<Value> {
        let width = self.graph.width(op);
        let value = match op {
            Op::Unary(UnaryOp::ToDouble, _) => return None,
            Op::Unary(unary, a) => cell::unary(*unary, self.literal(*a)?, width),
            Op::Binary(binary, a, b) => cell::binary(*binary, self.literal(*a)?, self.literal(*b)?, width),
            Op::Load(capture, _) if self.graph.capture(*capture).tensor.dtype() == DType::F64 => return None,
            Op::Load(capture, _) if self.reads_learn && self.graph.capture(*capture).tensor.dtype().is_float() => {
                return None;
            }
            Op::Load(capture, index) => {
                let tensor = &self.graph.capture(*capture).tensor;
                let at = |(i, n): (&NodeId, &usize)| if *n == 1 { Some(0) } else { self.int(*i) };
                let index = index.iter().zip(tensor.shape()).map(at).collect::<Option<Vec<_>>>();
                match index {
                    Some(index) => cell::load(tensor, &index),
                    None if tensor.numel() == 0 => cell::load(tensor, &[]),
                    None => return None,
                }
            }
            _ => return None,
        };
        let fits = |x: i64| i32::try_from(x).is_ok();
        (!matches!(value, Value::Int(x) if !fits(x))).then_some(value)
    }

    fn literal(&self, id: NodeId) -> Option<Value> {
        Value::of_literal(&self.graph.node(id).op)
    }

    fn int(&self, id: NodeId) -> Option<i64> {
        if let Op::Int(x) = self.graph.node(id).op { Some(x) } else { None }
    }

    fn bool(&self, id: NodeId) -> Option<bool> {
        if let Op::Bool(x) = self.graph.node(id).op { Some(x) } else { None }
    }

    fn float(&self, id: NodeId) -> Option<f64> {
        if let Op::Float(bits) = self.graph.node(id).op { Some(f64::from_bits(bits)) } else { None }
    }

    /// The operand of a unary operation.
    fn inside(&self, op: UnaryOp, id: NodeId) -> Option<NodeId> {
        match self.graph.node(id).op {
            Op::Unary(found, a) if found == op => Some(a),
            _ => None,
        }
    }

    fn range(&self, id: NodeId) -> Range {
        self.ranges[id.0 as usize]
    }

    /// An int literal that kernels can hold.
    fn small(&mut self, value: i128) -> Option<NodeId> {
        let value = i32::try_from(value).ok()?;
        Some(self.add(Op::Int(i64::from(value))))
    }

    fn truth(&mut self, value: bool) -> NodeId {
        self.add(Op::Bool(value))
    }

    fn unary(&mut self, op: UnaryOp, a: NodeId) -> Option<NodeId> {
        match (op, self.graph.ty(a)) {
            (UnaryOp::Not, Ty::Bool) => self.not(a),
            (UnaryOp::ToBool, _) => self.as_bool(a),
            (UnaryOp::As(dtype), Ty::Int) => self.stored_int(dtype, a),
            (UnaryOp::As(dtype), Ty::Float) => self.stored_float(dtype, a),
            (UnaryOp::ToDouble, _) => None,
            (UnaryOp::ToFloat, Ty::Double) => None,
            (UnaryOp::ToFloat, _) => {
                let inner = self.inside(UnaryOp::ToInt, a)?;
                (self.graph.ty(inner) == Ty::Bool).then(|| self.make(Op::Unary(UnaryOp::ToFloat, inner)))
            }
            (UnaryOp::ToInt32, _) => {
                // an int, as a float, that is one exactly
                let inner = self.inside(UnaryOp::ToFloat, a).filter(|x| self.graph.ty(*x) == Ty::Int)?;
                self.is_exact_float(inner).then_some(inner)
            }
            (UnaryOp::ToInt, Ty::Float) => {
                let inner = self.inside(UnaryOp::ToFloat, a)?;
                match self.graph.ty(inner) {
                    Ty::Bool => Some(self.make(Op::Unary(UnaryOp::ToInt, inner))),
                    _ => self.is_exact_float(inner).then_some(inner),
                }
            }
            (_, Ty::Int) => self.int_unary(op, a),
            (_, Ty::Float | Ty::Double) => self.float_unary(op, a),
            _ => None,
        }
    }

    /// Whether every value of an int node is a float32 exactly.
    fn is_exact_float(&self, id: NodeId) -> bool {
        let (lo, hi) = self.range(id);
        lo >= -(1 << 24) && hi <= 1 << 24
    }

    /// An int after conversion to `dtype`: unchanged if it fits.
    fn stored_int(&mut self, dtype: DType, a: NodeId) -> Option<NodeId> {
        if self.range(a) == bounds::unary(UnaryOp::As(dtype), self.range(a)) {
            return Some(a);
        }
        // a narrower element of a wider one needs no more than the narrower
        let Op::Unary(UnaryOp::As(inner), x) = self.graph.node(a).op else { return None };
        (inner.size() >= dtype.size()).then(|| self.make(Op::Unary(UnaryOp::As(dtype), x)))
    }

    /// A float as an element of `dtype` keeps it.
    fn stored_float(&mut self, dtype: DType, a: NodeId) -> Option<NodeId> {
        match (dtype, &self.graph.node(a).op) {
            // of a number, [`Pass::folded`] has made the float32
            (DType::F32, _) => Some(a),
            (_, Op::Unary(UnaryOp::As(inner), _)) if *inner == dtype => Some(a),
            (_, Op::Load(capture, _)) if self.graph.capture(*capture).tensor.dtype() == dtype => Some(a),
            _ => None,
        }
    }

    fn as_bool(&mut self, a: NodeId) -> Option<NodeId> {
        let inner = self.inside(UnaryOp::ToInt, a).or_else(|| self.inside(UnaryOp::ToFloat, a))?;
        match self.graph.ty(inner) {
            Ty::Bool => Some(inner),
            Ty::Int => Some(self.make(Op::Unary(UnaryOp::ToBool, inner))),
            // ToInt of a float truncates: 0.5 is not 0; ToFloat of a double may round to 0
            Ty::Float | Ty::Double => None,
        }
    }

    fn choice(&mut self, c: NodeId, a: NodeId, b: NodeId) -> Option<NodeId> {
        if let Some(keep) = self.bool(c) {
            return Some(if keep { a } else { b });
        }
        if a == b {
            return Some(a);
        }
        if let Some(inner) = self.inside(UnaryOp::Not, c) {
            return Some(self.make(Op::Where(inner, b, a)));
        }
        match self.graph.node(a).op {
            Op::Where(d, x, _) if d == c => return Some(self.make(Op::Where(c, x, b))),
            _ => {}
        }
        match self.graph.node(b).op {
            Op::Where(d, _, y) if d == c => return Some(self.make(Op::Where(c, a, y))),
            _ => {}
        }
        if self.graph.ty(a) == Ty::Bool { self.bool_choice(c, a, b) } else { None }
    }

    /// Literal indices inside their dimension.
    fn load(&mut self, capture: CaptureId, index: &[NodeId]) -> Option<NodeId> {
        let shape = self.graph.capture(capture).tensor.shape().to_vec();
        let inside = |pass: &Pass, i: NodeId, n: usize| match pass.int(i) {
            Some(at) => Some(clamp_index(at, n) as i64),
            None if n == 1 => Some(0),
            None => None,
        };
        let wanted: Vec<Option<i64>> = index.iter().zip(&shape).map(|(i, n)| inside(self, *i, *n)).collect();
        if wanted.iter().zip(index).all(|(want, i)| want.is_none() || *want == self.int(*i)) {
            return None;
        }
        let index = wanted.iter().zip(index).map(|(want, i)| want.map_or(*i, |at| self.add(Op::Int(at)))).collect();
        Some(self.add(Op::Load(capture, index)))
    }

    fn reads(&self, id: NodeId, input: Input) -> bool {
        self.depends[id.0 as usize].on(input)
    }
}
