//! Rules for comparisons.
//!
//! Invariant: literals are on the right, and operands that read only q_idx are left of those that read only kv_idx; NaN
//! keeps every comparison except `!=` false. Must not know how truth values combine.

use super::Pass;
use crate::ir::bounds::fits_i64;
use crate::ir::cell::{self, Value};
use crate::ir::graph::{BinaryOp, Input, NodeId, Op, Ty, UnaryOp, Width};

/// The comparison with its operands swapped.
pub(super) fn mirrored(op: BinaryOp) -> BinaryOp {
    use BinaryOp::*;
    match op {
        Lt => Gt,
        Le => Ge,
        Gt => Lt,
        Ge => Le,
        same => same,
    }
}

/// The comparison that holds where this one does not; of ints, and for `==` and `!=` of anything.
pub(super) fn inverted(op: BinaryOp) -> BinaryOp {
    use BinaryOp::*;
    match op {
        Lt => Ge,
        Le => Gt,
        Gt => Le,
        Ge => Lt,
        Eq => Ne,
        _ => Eq,
    }
}

impl Pass {
    pub(super) fn comparison(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        if self.literal(a).is_some() && self.literal(b).is_none() {
            return Some(self.binary(mirrored(op), b, a));
        }
        match self.graph.ty(a) {
            Ty::Bool => self.bool_binary(op, a, b),
            Ty::Int => self.int_comparison(op, a, b),
            Ty::Float | Ty::Double => self.float_comparison(op, a, b),
        }
    }

    fn int_comparison(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        if a == b {
            return Some(self.truth(matches!(op, BinaryOp::Eq | BinaryOp::Le | BinaryOp::Ge)));
        }
        if let Some(known) = decided(op, self.range(a), self.range(b)) {
            return Some(self.truth(known));
        }
        if let Some(literal) = self.int(b) {
            return self.with_literal(op, a, i128::from(literal));
        }
        // the same on both sides: x + c >= y + c
        if let (Op::Binary(x, a1, a2), Op::Binary(y, b1, b2)) = (&self.graph.node(a).op, &self.graph.node(b).op)
            && x == y
            && matches!(x, BinaryOp::Add | BinaryOp::Sub)
            && a2 == b2
            && self.is_whole(a)
            && self.is_whole(b)
        {
            return Some(self.binary(op, *a1, *b1));
        }
        self.ordered(op, a, b)
    }

    /// Operands that read only q_idx are left of those that read only kv_idx.
    fn ordered(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        let only = |pass: &Pass, id, yes, no| pass.reads(id, yes) && !pass.reads(id, no);
        let swap = only(self, a, Input::KvIdx, Input::QIdx) && only(self, b, Input::QIdx, Input::KvIdx);
        swap.then(|| self.binary(mirrored(op), b, a))
    }

    /// Whether a sum or difference never wraps.
    fn is_whole(&self, id: NodeId) -> bool {
        let Op::Binary(op, a, b) = self.graph.node(id).op else { return true };
        let ((a_lo, a_hi), (b_lo, b_hi)) = (self.range(a), self.range(b));
        match op {
            BinaryOp::Add => fits_i64((a_lo + b_lo, a_hi + b_hi)),
            BinaryOp::Sub => fits_i64((a_lo - b_hi, a_hi - b_lo)),
            _ => false,
        }
    }

    fn with_literal(&mut self, op: BinaryOp, a: NodeId, c: i128) -> Option<NodeId> {
        match self.graph.node(a).op {
            Op::Binary(BinaryOp::Sub, x, y) if c == 0 && self.is_whole(a) => Some(self.binary(op, x, y)),
            Op::Binary(sum @ (BinaryOp::Add | BinaryOp::Sub), x, y) if self.is_whole(a) => {
                let moved = match (sum, self.int(x).map(i128::from), self.int(y).map(i128::from)) {
                    (BinaryOp::Add, None, Some(y)) => (op, x, c - y),
                    (BinaryOp::Sub, None, Some(y)) => (op, x, c + y),
                    (BinaryOp::Sub, Some(x), None) => (mirrored(op), y, x - c),
                    _ => return None,
                };
                let literal = self.small(moved.2)?;
                Some(self.binary(moved.0, moved.1, literal))
            }
            Op::Unary(UnaryOp::Neg, x) if self.range(x).0 > i128::from(i64::MIN) => {
                let literal = self.small(-c)?;
                Some(self.binary(mirrored(op), x, literal))
            }
            Op::Unary(UnaryOp::ToInt, x) if self.graph.ty(x) == Ty::Bool => {
                let c = i64::try_from(c).ok()?;
                let holds = |bit: i64| cell::binary(op, Value::Int(bit), Value::Int(c), Width::Single).as_bool();
                Some(match (holds(0), holds(1)) {
                    (false, true) => x,
                    (true, false) => self.make(Op::Unary(UnaryOp::Not, x)),
                    (same, _) => self.truth(same),
                })
            }
            _ => None,
        }
    }

    fn float_comparison(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        use BinaryOp::*;
        if a == b && matches!(op, Lt | Gt) {
            return Some(self.truth(false));
        }
        let whole = |pass: &Pass, id| pass.inside(UnaryOp::ToFloat, id).filter(|x| pass.graph.ty(*x) == Ty::Int);
        let left = whole(self, a);
        if let Some(literal) = self.float(b) {
            let single = self.graph.width(&Op::Binary(op, a, b)) == Width::Single;
            let literal = if single { f64::from(literal as f32) } else { literal };
            if literal.is_nan() {
                return Some(self.truth(op == Ne));
            }
            return self.whole_with_literal(op, left?, literal);
        }
        let exact = |id: &NodeId| self.is_exact_float(*id);
        match (left.filter(exact), whole(self, b).filter(exact)) {
            (Some(x), Some(y)) => Some(self.binary(op, x, y)),
            _ => self.ordered(op, a, b),
        }
    }

    /// An int, as a float, against a float literal: the same against an int literal. Ints beyond 2^24 are rounded, but never
    /// to below that.
    fn whole_with_literal(&mut self, op: BinaryOp, x: NodeId, c: f64) -> Option<NodeId> {
        use BinaryOp::*;
        if c.abs() >= f64::from(1 << 24) && !self.is_exact_float(x) {
            return None;
        }
        if c.fract() != 0.0 && matches!(op, Eq | Ne) {
            return Some(self.truth(op == Ne));
        }
        let bound = match op {
            Lt | Ge => c.ceil(),
            _ => c.floor(),
        };
        let bound = bound.clamp(-1e18, 1e18) as i128;
        if let Some(known) = decided(op, self.range(x), (bound, bound)) {
            return Some(self.truth(known));
        }
        let literal = self.small(bound)?;
        Some(self.binary(op, x, literal))
    }
}

/// The constant result of a comparison of two ranges.
fn decided(op: BinaryOp, a: (i128, i128), b: (i128, i128)) -> Option<bool> {
    use BinaryOp::*;
    let known = |yes: bool, no: bool| if yes { Some(true) } else { no.then_some(false) };
    let apart = a.1 < b.0 || b.1 < a.0;
    match op {
        Lt => known(a.1 < b.0, a.0 >= b.1),
        Le => known(a.1 <= b.0, a.0 > b.1),
        Gt => known(a.0 > b.1, a.1 <= b.0),
        Ge => known(a.0 >= b.1, a.1 < b.0),
        Eq => known(false, apart),
        Ne => known(apart, false),
        _ => None,
    }
}
