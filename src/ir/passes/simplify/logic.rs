//! Rules for truth values.
//!
//! Invariant: De Morgan's rules are used only if the negations cost nothing. Must not know numbers.

use super::Pass;
use super::compare::inverted;
use crate::ir::graph::{BinaryOp, NodeId, Op, Ty, UnaryOp};
use smallvec::{SmallVec, smallvec};

/// How deep a chain of `&` or `|` is searched for an operand.
const CHAIN: usize = 96;
/// How deep a negation is pushed down.
const DEEP: usize = 4;

impl Pass {
    pub(super) fn not(&mut self, a: NodeId) -> Option<NodeId> {
        match self.graph.node(a).op {
            Op::Unary(UnaryOp::Not, x) => Some(x),
            Op::Binary(op, x, y) if self.inverts(a) => Some(self.binary(inverted(op), x, y)),
            Op::Binary(BinaryOp::Xor, x, y) => Some(self.binary(BinaryOp::Eq, x, y)),
            Op::Binary(BinaryOp::Eq, x, y) => Some(self.binary(BinaryOp::Xor, x, y)),
            Op::Binary(op @ (BinaryOp::And | BinaryOp::Or), x, y) if self.negates_freely(a, DEEP) => {
                let (x, y) = (self.make(Op::Unary(UnaryOp::Not, x)), self.make(Op::Unary(UnaryOp::Not, y)));
                Some(self.binary(if op == BinaryOp::And { BinaryOp::Or } else { BinaryOp::And }, x, y))
            }
            _ => None,
        }
    }

    /// Whether a node is a comparison with an exact opposite.
    fn inverts(&self, id: NodeId) -> bool {
        let Op::Binary(op, x, _) = self.graph.node(id).op else { return false };
        match self.graph.ty(x) {
            Ty::Int => op.is_comparison(),
            // NaN is neither less nor not less
            Ty::Float | Ty::Double => matches!(op, BinaryOp::Eq | BinaryOp::Ne),
            Ty::Bool => false,
        }
    }

    /// Whether the opposite of a node takes no operation more than the node.
    fn negates_freely(&self, id: NodeId, depth: usize) -> bool {
        match self.graph.node(id).op {
            Op::Unary(UnaryOp::Not, _) | Op::Bool(_) => true,
            Op::Binary(BinaryOp::And | BinaryOp::Or, x, y) => {
                let alone = self.uses[id.0 as usize] <= 1;
                depth > 0 && alone && self.negates_freely(x, depth - 1) && self.negates_freely(y, depth - 1)
            }
            Op::Binary(BinaryOp::Xor | BinaryOp::Eq, x, _) if self.graph.ty(x) == Ty::Bool => true,
            _ => self.inverts(id),
        }
    }

    pub(super) fn bool_binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        use BinaryOp::*;
        if self.bool(a).is_some() && self.bool(b).is_none() {
            return Some(self.binary(op, b, a));
        }
        let same = a == b;
        match (op, self.bool(b)) {
            (Ne, _) => Some(self.binary(Xor, a, b)),
            (And, Some(true)) | (Or | Xor, Some(false)) | (Eq, Some(true)) => Some(a),
            (And, Some(false)) | (Or, Some(true)) => Some(b),
            (Xor, Some(true)) | (Eq, Some(false)) => Some(self.make(Op::Unary(UnaryOp::Not, a))),
            (And | Or, None) if same => Some(a),
            (Xor | Eq, None) if same => Some(self.truth(op == Eq)),
            (And | Or, None) => self.joined(op, a, b),
            (Xor | Eq, None) => self.parity(op, a, b),
            _ => None,
        }
    }

    /// `~x ^ y` and the like: negations move out.
    fn parity(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        let (x, y) = (self.inside(UnaryOp::Not, a), self.inside(UnaryOp::Not, b));
        if x.is_none() && y.is_none() {
            return None;
        }
        let flip = x.is_some() != y.is_some();
        let other = if op == BinaryOp::Xor { BinaryOp::Eq } else { BinaryOp::Xor };
        Some(self.binary(if flip { other } else { op }, x.unwrap_or(a), y.unwrap_or(b)))
    }

    /// `&` and `|`: repeated, opposite and absorbed operands.
    fn joined(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
        self.operands_of_chain(op, a, &mut of_a);
        self.operands_of_chain(op, b, &mut of_b);
        if of_b.iter().all(|x| of_a.contains(x)) {
            return Some(a);
        }
        if of_a.iter().all(|x| of_b.contains(x)) {
            return Some(b);
        }
        if of_a.iter().any(|x| of_b.iter().any(|y| self.are_opposite(*x, *y))) {
            return Some(self.truth(op == BinaryOp::Or));
        }
        // x & (x | y) is x
        let other = if op == BinaryOp::And { BinaryOp::Or } else { BinaryOp::And };
        let absorbs = |pass: &Pass, few: &[NodeId], id: NodeId| {
            let mut parts = Vec::new();
            pass.operands_of_chain(other, id, &mut parts);
            parts.len() > 1 && parts.iter().any(|x| few.contains(x))
        };
        if absorbs(self, &of_a, b) {
            return Some(a);
        }
        if absorbs(self, &of_b, a) {
            return Some(b);
        }
        // (p & q) & (q & r): the new part on the right
        let fresh: Vec<NodeId> = of_b.iter().copied().filter(|x| !of_a.contains(x)).collect();
        let worth = fresh.len() < of_b.len() && self.uses[b.0 as usize] <= 1;
        worth.then(|| fresh.into_iter().fold(a, |all, x| self.binary(op, all, x)))
    }

    fn operands_of_chain(&self, op: BinaryOp, id: NodeId, out: &mut Vec<NodeId>) {
        // from the end of the chain on: as deep as it may be, no more of it than that is opened
        let mut open: SmallVec<[NodeId; 8]> = smallvec![id];
        while let Some(at) = open.pop() {
            match self.graph.node(at).op {
                Op::Binary(found, x, y) if found == op && out.len() + open.len() < CHAIN => open.extend([x, y]),
                _ => out.push(at),
            }
        }
        out.reverse();
    }

    fn are_opposite(&self, a: NodeId, b: NodeId) -> bool {
        if self.inside(UnaryOp::Not, a) == Some(b) || self.inside(UnaryOp::Not, b) == Some(a) {
            return true;
        }
        match (&self.graph.node(a).op, &self.graph.node(b).op) {
            (Op::Binary(op, x, y), Op::Binary(other, v, w)) => {
                x == v && y == w && self.inverts(a) && inverted(*op) == *other
            }
            _ => false,
        }
    }

    pub(super) fn bool_choice(&mut self, c: NodeId, a: NodeId, b: NodeId) -> Option<NodeId> {
        use BinaryOp::{And, Or};
        match (self.bool(a), self.bool(b)) {
            (Some(true), Some(false)) => Some(c),
            (Some(false), Some(true)) => Some(self.make(Op::Unary(UnaryOp::Not, c))),
            (Some(true), _) => Some(self.binary(Or, c, b)),
            (_, Some(false)) => Some(self.binary(And, c, a)),
            (Some(false), _) => {
                let other = self.make(Op::Unary(UnaryOp::Not, c));
                Some(self.binary(And, other, b))
            }
            (_, Some(true)) => {
                let other = self.make(Op::Unary(UnaryOp::Not, c));
                Some(self.binary(Or, other, a))
            }
            // where(c, c, b) and where(c, a, c)
            _ if a == c => Some(self.binary(Or, c, b)),
            _ if b == c => Some(self.binary(And, c, a)),
            _ => None,
        }
    }
}
