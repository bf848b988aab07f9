//! Rules for ints.
//!
//! Invariant: a rule holds for wrapping arithmetic of any width, or it checks the ranges first. Must not know bools.

use super::Pass;
use crate::ir::bounds::fits_i64;
use crate::ir::graph::{BinaryOp, NodeId, Op, UnaryOp};

impl Pass {
    pub(super) fn int_unary(&mut self, op: UnaryOp, a: NodeId) -> Option<NodeId> {
        match op {
            UnaryOp::Neg => match self.graph.node(a).op {
                Op::Unary(UnaryOp::Neg, x) => Some(x),
                Op::Binary(BinaryOp::Sub, x, y) => Some(self.binary(BinaryOp::Sub, y, x)),
                _ => None,
            },
            UnaryOp::Not => self.inside(UnaryOp::Not, a),
            UnaryOp::Abs if self.range(a).0 >= 0 => Some(a),
            UnaryOp::Abs => match self.graph.node(a).op {
                Op::Unary(UnaryOp::Neg | UnaryOp::Abs, x) => Some(self.make(Op::Unary(UnaryOp::Abs, x))),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        self.make(Op::Binary(op, a, b))
    }

    pub(super) fn int_binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        use BinaryOp::*;
        if op.is_commutative() && self.int(a).is_some() && self.int(b).is_none() {
            return Some(self.binary(op, b, a));
        }
        match op {
            Add | Sub => self.sum(op, a, b),
            Mul => self.product(a, b),
            FloorDiv | Mod | TruncDiv => self.division(op, a, b),
            Min | Max => self.extreme(op, a, b),
            ClampMin | ClampMax => None,
            And | Or | Xor => self.bits(op, a, b),
            Shl | Shr => self.shift(op, a, b),
            Fmod => self.remainder(a, b),
            Div | Pow | Atan2 | Eq | Ne | Lt | Le | Gt | Ge => None,
        }
    }

    fn sum(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        use BinaryOp::{Add, Sub};
        if let Some(by) = self.int(b) {
            return self.sum_with_literal(op, a, i128::from(by));
        }
        if a == b && op == Sub {
            return self.small(0);
        }
        if self.int(a) == Some(0) && op == Sub {
            return Some(self.make(Op::Unary(UnaryOp::Neg, b)));
        }
        if let Some(inner) = self.inside(UnaryOp::Neg, b) {
            return Some(self.binary(if op == Add { Sub } else { Add }, a, inner));
        }
        if let (Add, Some(inner)) = (op, self.inside(UnaryOp::Neg, a)) {
            return Some(self.binary(Sub, b, inner));
        }
        match (op, &self.graph.node(a).op, &self.graph.node(b).op) {
            // (x - y) + y, (x + y) - y, (x + y) - x, x - (x - y)
            (Add, Op::Binary(Sub, x, y), _) if *y == b => Some(*x),
            (Add, _, Op::Binary(Sub, x, y)) if *y == a => Some(*x),
            (Sub, Op::Binary(Add, x, y), _) if *y == b => Some(*x),
            (Sub, Op::Binary(Add, x, y), _) if *x == b => Some(*y),
            (Sub, _, Op::Binary(Sub, x, y)) if *x == a => Some(*y),
            _ => None,
        }
    }

    /// `a + by` or `a - by`: literals are joined, and added rather than subtracted, with either sign: a slider that
    /// crosses zero leaves the graph alone.
    fn sum_with_literal(&mut self, op: BinaryOp, a: NodeId, by: i128) -> Option<NodeId> {
        use BinaryOp::{Add, Sub};
        let by = if op == Add { by } else { -by };
        if by == 0 {
            return Some(a);
        }
        let joined = match self.graph.node(a).op {
            Op::Binary(Add, x, c) => self.int(c).map(|c| (Add, x, by + i128::from(c))),
            Op::Binary(Sub, x, c) if self.int(c).is_some() => self.int(c).map(|c| (Add, x, by - i128::from(c))),
            // (c - x) + by
            Op::Binary(Sub, c, x) => self.int(c).map(|c| (Sub, x, by + i128::from(c))),
            _ => None,
        };
        if let Some((kind, x, total)) = joined {
            let literal = self.small(total)?;
            return Some(if kind == Add { self.binary(Add, x, literal) } else { self.binary(Sub, literal, x) });
        }
        if op == Add {
            return None;
        }
        let literal = self.small(by)?;
        Some(self.binary(Add, a, literal))
    }

    fn product(&mut self, a: NodeId, b: NodeId) -> Option<NodeId> {
        let by = self.int(b)?;
        match by {
            0 => return self.small(0),
            1 => return Some(a),
            -1 => return Some(self.make(Op::Unary(UnaryOp::Neg, a))),
            _ => {}
        }
        let Op::Binary(BinaryOp::Mul, x, c) = self.graph.node(a).op else { return None };
        let literal = self.small(i128::from(self.int(c)?) * i128::from(by))?;
        Some(self.binary(BinaryOp::Mul, x, literal))
    }

    fn division(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        use BinaryOp::{FloorDiv, Mod, TruncDiv};
        if self.int(a) == Some(0) || (op == Mod && a == b) {
            return self.small(0);
        }
        let by = self.int(b)?;
        match (by, op) {
            (0, _) | (1 | -1, Mod) => return self.small(0),
            (1, _) => return Some(a),
            (-1, _) => return Some(self.make(Op::Unary(UnaryOp::Neg, a))),
            (2.., TruncDiv) if self.range(a).0 >= 0 => return Some(self.binary(FloorDiv, a, b)),
            (2.., FloorDiv | Mod) => {}
            _ => return None,
        }
        let (lo, hi) = self.range(a);
        if lo >= 0 && hi < i128::from(by) {
            return if op == Mod { Some(a) } else { self.small(0) };
        }
        self.nested_division(op, a, i128::from(by)).or_else(|| self.division_of_sum(op, a, b, i128::from(by)))
    }

    /// `x // c // by`, `x % c % by` and `x % c // by`, if one division suffices.
    fn nested_division(&mut self, op: BinaryOp, a: NodeId, by: i128) -> Option<NodeId> {
        use BinaryOp::{FloorDiv, Mod};
        let Op::Binary(inner @ (FloorDiv | Mod), x, c) = self.graph.node(a).op else { return None };
        let c = i128::from(self.int(c)?);
        if c <= 0 {
            return None;
        }
        match (inner, op) {
            (FloorDiv, FloorDiv) => {
                let both = self.small(c * by)?;
                Some(self.binary(FloorDiv, x, both))
            }
            (Mod, Mod) if c % by == 0 => {
                let by = self.small(by)?;
                Some(self.binary(Mod, x, by))
            }
            _ => None,
        }
    }

    /// `(x * (k * by) + rest) // by` is `x * k + rest // by`, and modulo `by` it is `rest % by`: where nothing overflows.
    fn division_of_sum(&mut self, op: BinaryOp, a: NodeId, b: NodeId, by: i128) -> Option<NodeId> {
        use BinaryOp::{Add, FloorDiv, Mul, Sub};
        let multiple = |pass: &Pass, id: NodeId| match pass.graph.node(id).op {
            Op::Binary(Mul, x, c) => pass.int(c).map(i128::from).filter(|c| c % by == 0).map(|c| (x, c / by)),
            _ => None,
        };
        let (product, factor, rest, sign) = match self.graph.node(a).op {
            Op::Binary(Mul, ..) => {
                let (x, k) = multiple(self, a)?;
                (x, k, self.small(0)?, Add)
            }
            Op::Binary(Add, p, r) => match (multiple(self, p), multiple(self, r)) {
                (Some((x, k)), _) => (x, k, r, Add),
                (None, Some((x, k))) => (x, k, p, Add),
                _ => return None,
            },
            Op::Binary(Sub, p, r) => {
                let (x, k) = multiple(self, p)?;
                (x, k, r, Sub)
            }
            _ => return None,
        };
        let whole = self.range(product);
        let ends = [whole.0 * factor * by, whole.1 * factor * by];
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let rests = self.range(rest);
        let most = rests.0.abs().max(rests.1.abs());
        if most >= 1 << 62 || !fits_i64((low - most, high + most)) {
            return None;
        }
        let rest = if sign == Sub { self.make(Op::Unary(UnaryOp::Neg, rest)) } else { rest };
        let rest = self.binary(op, rest, b);
        if op != FloorDiv {
            return Some(rest);
        }
        let factor = self.small(factor)?;
        let product = self.binary(Mul, product, factor);
        Some(self.binary(Add, product, rest))
    }

    fn extreme(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        if a == b {
            return Some(a);
        }
        let ((a_lo, a_hi), (b_lo, b_hi)) = (self.range(a), self.range(b));
        match op {
            BinaryOp::Min if a_hi <= b_lo => return Some(a),
            BinaryOp::Min if b_hi <= a_lo => return Some(b),
            BinaryOp::Max if a_lo >= b_hi => return Some(a),
            BinaryOp::Max if b_lo >= a_hi => return Some(b),
            _ => {}
        }
        let Op::Binary(inner, x, c) = self.graph.node(a).op else { return None };
        if inner != op {
            return None;
        }
        if x == b || c == b {
            return Some(a);
        }
        let (c, by) = (self.int(c)?, self.int(b)?);
        let literal = self.small(i128::from(if op == BinaryOp::Min { c.min(by) } else { c.max(by) }))?;
        Some(self.binary(op, x, literal))
    }

    fn bits(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        use BinaryOp::{And, Or, Xor};
        if a == b {
            return if op == Xor { self.small(0) } else { Some(a) };
        }
        match (op, self.int(b)?) {
            (And, 0) => self.small(0),
            (And, -1) | (Or | Xor, 0) => Some(a),
            (Or, -1) => self.small(-1),
            (Xor, -1) => Some(self.make(Op::Unary(UnaryOp::Not, a))),
            _ => None,
        }
    }

    /// `fmod` of a non-negative value is the modulo.
    fn remainder(&mut self, a: NodeId, b: NodeId) -> Option<NodeId> {
        let by = self.int(b)?;
        (by > 0 && self.range(a).0 >= 0).then(|| self.binary(BinaryOp::Mod, a, b))
    }

    fn shift(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        if self.int(a) == Some(0) {
            return Some(a);
        }
        let by = self.int(b)?;
        match (op, by) {
            (_, 0) => Some(a),
            (_, 1..64) => None,
            (BinaryOp::Shl, _) => self.small(0),
            _ => {
                let sign = self.small(63)?;
                (by != 63).then(|| self.binary(op, a, sign))
            }
        }
    }
}
