//! Rules for floats.
//!
//! Invariant: only identities that hold to the bit in every precision, including signed zeros, infinities and NaN;
//! nothing is reassociated. Must not know ints.

use super::Pass;
use crate::ir::graph::{BinaryOp, NodeId, Op, UnaryOp};

impl Pass {
    pub(super) fn float_unary(&mut self, op: UnaryOp, a: NodeId) -> Option<NodeId> {
        use UnaryOp::*;
        match op {
            Neg => match self.graph.node(a).op {
                Op::Unary(Neg, x) => Some(x),
                _ => None,
            },
            Abs => match self.graph.node(a).op {
                Op::Unary(Neg | Abs, x) => Some(self.make(Op::Unary(Abs, x))),
                _ => None,
            },
            Floor | Ceil | Round | Trunc => self.is_whole_float(a).then_some(a),
            Stop => self.stopped(a),
            _ => None,
        }
    }

    /// A stop inside a stopped value needs no mark.
    fn stopped(&mut self, a: NodeId) -> Option<NodeId> {
        let op = self.graph.node(a).op.clone();
        if let Op::Unary(UnaryOp::Stop, _) = op {
            return Some(a);
        }
        let inner = |id: NodeId| self.inside(UnaryOp::Stop, id);
        if op.operands().iter().all(|o| inner(*o).is_none()) {
            return None;
        }
        let plain = op.map_operands(|o| inner(o).unwrap_or(o));
        let plain = self.make(plain);
        Some(self.make(Op::Unary(UnaryOp::Stop, plain)))
    }

    /// Whether a float is an integer (or not finite) by how it is made.
    fn is_whole_float(&self, id: NodeId) -> bool {
        use UnaryOp::*;
        match self.graph.node(id).op {
            Op::Unary(ToFloat | ToDouble, x) => !self.graph.ty(x).is_float(),
            Op::Unary(Floor | Ceil | Round | Trunc, _) => true,
            _ => false,
        }
    }

    /// Whether a float can never be -0.0.
    fn is_never_minus_zero(&self, id: NodeId) -> bool {
        match self.graph.node(id).op {
            Op::Unary(UnaryOp::ToFloat, x) => !self.graph.ty(x).is_float(),
            Op::Unary(UnaryOp::Abs | UnaryOp::Exp, _) => true,
            // a tiny one is rounded to zero
            Op::Float(bits) => (f64::from_bits(bits) as f32).to_bits() != (-0.0f32).to_bits(),
            _ => false,
        }
    }

    pub(super) fn float_binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        use BinaryOp::*;
        debug_assert!(self.graph.ty(a).is_float());
        if matches!(op, Add | Mul) && self.float(a).is_some() && self.float(b).is_none() {
            return Some(self.binary(op, b, a));
        }
        // in a score mod it may mark the largest of many, whose gradient is shared evenly
        if a == b && matches!(op, Min | Max) && !self.reads_learn {
            return Some(a);
        }
        if let Some(by) = self.float(b) {
            return self.float_by_literal(op, a, by);
        }
        let negated = self.inside(UnaryOp::Neg, b);
        match (op, negated) {
            (Add, Some(x)) => Some(self.binary(Sub, a, x)),
            (Sub, Some(x)) => Some(self.binary(Add, a, x)),
            _ => None,
        }
    }

    fn float_by_literal(&mut self, op: BinaryOp, a: NodeId, by: f64) -> Option<NodeId> {
        use BinaryOp::*;
        let is = |x: f64| by.to_bits() == x.to_bits();
        match op {
            Add if is(-0.0) || (is(0.0) && self.is_never_minus_zero(a)) => Some(a),
            Sub if is(0.0) || (is(-0.0) && self.is_never_minus_zero(a)) => Some(a),
            // literals are added, with either sign
            Sub if !by.is_nan() => {
                let negated = self.add(Op::Float((-by).to_bits()));
                Some(self.binary(Add, a, negated))
            }
            Mul | Div if by == 1.0 => Some(a),
            Mul | Div if by == -1.0 => Some(self.make(Op::Unary(UnaryOp::Neg, a))),
            Pow if by == 1.0 => Some(a),
            Pow if by == 0.0 => Some(self.add(Op::Float(1.0f64.to_bits()))),
            Min | ClampMax if by == f64::INFINITY => Some(a),
            Max | ClampMin if by == f64::NEG_INFINITY => Some(a),
            _ => None,
        }
    }
}
