//! Single operations as graph nodes: promotion, casts, and Python's and PyTorch's rules for each operator.
//!
//! Invariant: gives well-typed nodes or a fault in the user's words. Must not know dimensions.

use crate::language::eval::Context;
use crate::language::graph::{BinaryOp, NodeId, Op, Ty, UnaryOp};
use crate::language::symbolic::rank;
use crate::language::syntax::ast::BinOp;
use crate::language::value::Fault;

/// Powers up to this are multiplied out.
const MAX_POWER: i64 = 8;

impl Context<'_> {
    /// The node as another type; literals are converted at once.
    pub(crate) fn cast(&mut self, node: NodeId, to: Ty) -> Result<NodeId, Fault> {
        let op = match (&self.graph.node(node).op, self.graph.ty(node), to) {
            (_, from, to) if from == to => return Ok(node),
            (Op::Bool(b), _, Ty::Int) => Op::Int(i64::from(*b)),
            (Op::Bool(b), _, Ty::Float) => Op::Float(f64::from(u8::from(*b)).to_bits()),
            (Op::Int(i), _, Ty::Float) => Op::Float((*i as f64).to_bits()),
            (Op::Int(i), _, Ty::Bool) => Op::Bool(*i != 0),
            (_, _, Ty::Bool) => Op::Unary(UnaryOp::ToBool, node),
            (_, _, Ty::Int) => Op::Unary(UnaryOp::ToInt, node),
            (_, _, Ty::Float) => Op::Unary(UnaryOp::ToFloat, node),
        };
        self.node(op)
    }

    /// Both as the higher of their types, which is at least `least`.
    pub(crate) fn promote(&mut self, a: NodeId, b: NodeId, least: Ty) -> Result<(NodeId, NodeId, Ty), Fault> {
        let all = [self.graph.ty(a), self.graph.ty(b), least];
        let ty = all.into_iter().max_by_key(|t| rank(*t)).unwrap_or(least);
        Ok((self.cast(a, ty)?, self.cast(b, ty)?, ty))
    }

    /// Two operands of one type, at least `least`.
    pub(crate) fn two(&mut self, op: BinaryOp, a: NodeId, b: NodeId, least: Ty) -> Result<NodeId, Fault> {
        let (a, b, _) = self.promote(a, b, least)?;
        self.node(Op::Binary(op, a, b))
    }

    /// One float operand.
    pub(crate) fn float_unary(&mut self, op: UnaryOp, a: NodeId) -> Result<NodeId, Fault> {
        let a = self.cast(a, Ty::Float)?;
        self.node(Op::Unary(op, a))
    }

    pub(crate) fn negate(&mut self, a: NodeId) -> Result<NodeId, Fault> {
        match self.graph.node(a).op {
            Op::Int(i) if i != i64::MIN => self.node(Op::Int(-i)),
            Op::Float(bits) => self.node(Op::Float((-f64::from_bits(bits)).to_bits())),
            _ if self.graph.ty(a) == Ty::Bool => {
                Err(Fault::type_error("`-` of a truth value").hint("write `~x` to negate a condition"))
            }
            _ => self.node(Op::Unary(UnaryOp::Neg, a)),
        }
    }

    pub(crate) fn emit_compare(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
        let least = if matches!(op, BinaryOp::Eq | BinaryOp::Ne) { Ty::Bool } else { Ty::Int };
        self.two(op, a, b, least)
    }

    pub(crate) fn emit_binary(&mut self, op: BinOp, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
        let types = (self.graph.ty(a), self.graph.ty(b));
        let bools = types == (Ty::Bool, Ty::Bool);
        match op {
            // PyTorch adds and multiplies truth values as `|` and `&`
            BinOp::Add if bools => self.two(BinaryOp::Or, a, b, Ty::Bool),
            BinOp::Mul if bools => self.two(BinaryOp::And, a, b, Ty::Bool),
            BinOp::Sub if bools => Err(Fault::type_error("`-` of two truth values").hint("write `a & ~b`, or `a ^ b`")),
            BinOp::Add => self.two(BinaryOp::Add, a, b, Ty::Int),
            BinOp::Sub => self.two(BinaryOp::Sub, a, b, Ty::Int),
            BinOp::Mul => self.two(BinaryOp::Mul, a, b, Ty::Int),
            BinOp::Div => self.two(BinaryOp::Div, a, b, Ty::Float),
            BinOp::FloorDiv | BinOp::Mod => {
                if matches!(self.graph.node(b).op, Op::Int(0)) && types.0 != Ty::Float {
                    return Err(Fault::new("ZeroDivisionError", "zero-division", format!("`{}` by zero", op.symbol()))
                        .hint("give the parameter a value above 0"));
                }
                self.two(if op == BinOp::Mod { BinaryOp::Mod } else { BinaryOp::FloorDiv }, a, b, Ty::Int)
            }
            BinOp::Pow => self.power(a, b),
            BinOp::Shl | BinOp::Shr => {
                self.integers(op, a, b)?;
                self.two(if op == BinOp::Shl { BinaryOp::Shl } else { BinaryOp::Shr }, a, b, Ty::Int)
            }
            BinOp::And | BinOp::Or | BinOp::Xor => {
                self.integers(op, a, b)?;
                let op = match op {
                    BinOp::And => BinaryOp::And,
                    BinOp::Or => BinaryOp::Or,
                    _ => BinaryOp::Xor,
                };
                self.two(op, a, b, Ty::Bool)
            }
            BinOp::MatMul => Err(Fault::type_error("`@` of two single values").hint("write `*`")),
        }
    }

    fn integers(&mut self, op: BinOp, a: NodeId, b: NodeId) -> Result<(), Fault> {
        if self.graph.ty(a) != Ty::Float && self.graph.ty(b) != Ty::Float {
            return Ok(());
        }
        let message = format!("`{}` of floats: it works on conditions and on ints", op.symbol());
        Err(Fault::new("RuntimeError", "dtype", message).hint(
            "compare first, as in `(x > 0) & (y > 0)`; put comparisons in parentheses; for an int quotient use `//`",
        ))
    }

    /// `a ** b`
    pub(crate) fn power(&mut self, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
        let exponent = match self.graph.node(b).op {
            Op::Int(i) => Some(i as f64),
            Op::Float(bits) => Some(f64::from_bits(bits)),
            _ => None,
        };
        let ints = self.graph.ty(a) != Ty::Float && self.graph.ty(b) != Ty::Float;
        if let Some(x) = exponent {
            let a = if ints { self.cast(a, Ty::Int)? } else { self.cast(a, Ty::Float)? };
            if x.fract() == 0.0 && (0.0..=MAX_POWER as f64).contains(&x) {
                return self.multiplied(a, x as i64);
            }
            if !ints && x == 0.5 {
                return self.float_unary(UnaryOp::Sqrt, a);
            }
            if !ints && x == -1.0 {
                let one = self.node(Op::Float(1f64.to_bits()))?;
                return self.node(Op::Binary(BinaryOp::Div, one, a));
            }
        }
        let base = match self.graph.node(a).op {
            Op::Int(i) => Some(i as f64),
            Op::Float(bits) => Some(f64::from_bits(bits)),
            _ => None,
        };
        if ints && base == Some(2.0) {
            let one = self.node(Op::Int(1))?;
            return self.two(BinaryOp::Shl, one, b, Ty::Int);
        }
        if base == Some(2.0) {
            return self.float_unary(UnaryOp::Exp2, b);
        }
        let power = self.two(BinaryOp::Pow, a, b, Ty::Float)?;
        if ints {
            let whole = self.node(Op::Unary(UnaryOp::Round, power))?;
            return self.cast(whole, Ty::Int);
        }
        Ok(power)
    }

    fn multiplied(&mut self, a: NodeId, times: i64) -> Result<NodeId, Fault> {
        if times == 0 {
            let one = self.node(Op::Int(1))?;
            let ty = self.graph.ty(a);
            return self.cast(one, ty);
        }
        let half = if times > 1 { self.multiplied(a, times / 2)? } else { a };
        let even = if times > 1 { self.node(Op::Binary(BinaryOp::Mul, half, half))? } else { a };
        if times % 2 == 1 && times > 1 { self.node(Op::Binary(BinaryOp::Mul, even, a)) } else { Ok(even) }
    }

    /// `torch.where(c, a, b)`
    pub(crate) fn choose(&mut self, c: NodeId, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
        if self.graph.ty(c) == Ty::Float {
            return Err(Fault::new("RuntimeError", "dtype", "torch.where needs a condition first, not a float")
                .hint("compare it: `torch.where(x > 0, a, b)`"));
        }
        let c = self.cast(c, Ty::Bool)?;
        let (a, b, _) = self.promote(a, b, Ty::Bool)?;
        self.node(Op::Where(c, a, b))
    }

    /// Division by `rounding_mode`.
    pub(crate) fn divide(&mut self, a: NodeId, b: NodeId, mode: Option<&str>) -> Result<NodeId, Fault> {
        let float = self.graph.ty(a) == Ty::Float || self.graph.ty(b) == Ty::Float;
        match mode {
            None => self.two(BinaryOp::Div, a, b, Ty::Float),
            Some("floor") => self.emit_binary(BinOp::FloorDiv, a, b),
            Some("trunc") if float => {
                let quotient = self.two(BinaryOp::Div, a, b, Ty::Float)?;
                self.node(Op::Unary(UnaryOp::Trunc, quotient))
            }
            Some("trunc") => self.two(BinaryOp::TruncDiv, a, b, Ty::Int),
            Some(other) => Err(Fault::value_error(format!("rounding_mode is 'floor', 'trunc' or None, not '{other}'"))),
        }
    }

    /// A float literal.
    pub(crate) fn float_literal(&mut self, x: f64) -> Result<NodeId, Fault> {
        self.node(Op::Float(x.to_bits()))
    }
}
