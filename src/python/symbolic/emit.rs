//! Single operations as graph nodes: promotion, casts, and Python's and PyTorch's rules for each operator.
//!
//! Invariant: returns well-typed nodes or a fault in the user's words. Must not know dimensions.

use super::dtype::category;
use crate::base::DType;
use crate::ir::graph::{BinaryOp, NodeId, Op, Ty, UnaryOp};
use crate::python::machine::Context;
use crate::python::syntax::ast::BinOp;
use crate::python::value::Fault;

/// Powers up to this are multiplied out.
const MAX_POWER: f64 = 8.0;

impl Context<'_> {
    /// The node as another type; literals are converted at once. A node with its own dtype is cast by
    /// [`to_dtype`](Context::to_dtype).
    pub(crate) fn cast(&mut self, node: NodeId, to: Ty) -> Result<NodeId, Fault> {
        if self.graph.ty(node) == to {
            return Ok(node);
        }
        self.operand_as(node, dtype_of(to))
    }

    /// Both as the higher of their dtypes, which is at least `least`, for an operation whose result is then stored in it.
    pub(crate) fn promote(&mut self, a: NodeId, b: NodeId, least: Ty) -> Result<(NodeId, NodeId, DType), Fault> {
        let common = self.common(&[a, b]);
        let dtype = if category(dtype_of(least)) > category(common) { dtype_of(least) } else { common };
        Ok((self.operand_as(a, dtype)?, self.operand_as(b, dtype)?, dtype))
    }

    /// Two operands of one dtype, at least `least`.
    pub(crate) fn two(&mut self, op: BinaryOp, a: NodeId, b: NodeId, least: Ty) -> Result<NodeId, Fault> {
        use BinaryOp::{And, Max, Min, Or};
        let op = match op {
            Min if self.are_bools(a, b) => And,
            Max if self.are_bools(a, b) => Or,
            op => op,
        };
        let least = if matches!(op, And | Or) { Ty::Bool } else { least };
        // under vmap a number next to halves is rounded to their dtype, too
        let (x, y, dtype) = self.promote(a, b, least)?;
        let node = self.node(Op::Binary(op, x, y))?;
        if op.is_comparison() { Ok(node) } else { self.stored(node, dtype) }
    }

    fn are_bools(&self, a: NodeId, b: NodeId) -> bool {
        (self.graph.ty(a), self.graph.ty(b)) == (Ty::Bool, Ty::Bool)
    }

    /// One operand, which keeps its dtype.
    pub(crate) fn one(&mut self, op: UnaryOp, a: NodeId) -> Result<NodeId, Fault> {
        let dtype = self.dtype(a);
        let node = self.node(Op::Unary(op, a))?;
        if self.is_number(a) { Ok(node) } else { self.stored(node, dtype) }
    }

    /// A function of floats: ints become float32 first, and halves are rounded once.
    pub(crate) fn float_unary(&mut self, op: UnaryOp, a: NodeId) -> Result<NodeId, Fault> {
        let dtype = self.dtype(a);
        if dtype.is_float() {
            return self.one(op, a);
        }
        let a = self.operand_as(a, DType::F32)?;
        self.node(Op::Unary(op, a))
    }

    pub(crate) fn negate(&mut self, a: NodeId) -> Result<NodeId, Fault> {
        match self.graph.node(a).op {
            Op::Int(i) if i != i64::MIN => self.node(Op::Int(-i)),
            Op::Float(bits) => self.node(Op::Float((-f64::from_bits(bits)).to_bits())),
            _ if self.graph.ty(a) == Ty::Bool => {
                Err(Fault::type_error("`-` of a truth value").hint("write `~x` to negate a condition"))
            }
            _ => self.one(UnaryOp::Neg, a),
        }
    }

    /// `~a`
    pub(crate) fn invert(&mut self, a: NodeId) -> Result<NodeId, Fault> {
        if self.graph.ty(a).is_float() {
            return Err(Fault::type_error("`~` of a float").hint("compare first: `~(x > 0)`"));
        }
        self.one(UnaryOp::Not, a)
    }

    pub(crate) fn emit_compare(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
        let least = if matches!(op, BinaryOp::Eq | BinaryOp::Ne) { Ty::Bool } else { Ty::Int };
        self.two(op, a, b, least)
    }

    pub(crate) fn emit_binary(&mut self, op: BinOp, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
        let bools = self.are_bools(a, b);
        match op {
            // PyTorch adds and multiplies truth values as `|` and `&`
            BinOp::Add if bools => self.two(BinaryOp::Or, a, b, Ty::Bool),
            BinOp::Mul if bools => self.two(BinaryOp::And, a, b, Ty::Bool),
            BinOp::Sub if bools => Err(Fault::type_error("`-` of two truth values").hint("write `a & ~b`, or `a ^ b`")),
            BinOp::Add => self.two(BinaryOp::Add, a, b, Ty::Int),
            BinOp::Sub => self.two(BinaryOp::Sub, a, b, Ty::Int),
            BinOp::Mul => self.two(BinaryOp::Mul, a, b, Ty::Int),
            // PyTorch's Tensor.__rtruediv__ multiplies the reciprocal, which rounds twice
            BinOp::Div if self.is_number(a) && !self.is_number(b) => {
                let one = self.float_literal(1.0)?;
                let inverse = self.two(BinaryOp::Div, one, b, Ty::Float)?;
                let is_one = matches!(self.number_of(a), Some(x) if x == 1.0);
                if is_one { Ok(inverse) } else { self.two(BinaryOp::Mul, inverse, a, Ty::Float) }
            }
            BinOp::Div => self.two(BinaryOp::Div, a, b, Ty::Float),
            BinOp::FloorDiv | BinOp::Mod => {
                if self.literal_int(b) == Some(0) && !self.graph.ty(a).is_float() {
                    return Err(Fault::new("ZeroDivisionError", "zero-division", format!("`{}` by zero", op.symbol()))
                        .hint("set the parameter to a value above 0"));
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
        if !self.graph.ty(a).is_float() && !self.graph.ty(b).is_float() {
            return Ok(());
        }
        let message = format!("`{}` of floats: it works on conditions and on ints", op.symbol());
        Err(Fault::new("RuntimeError", "dtype", message).hint(
            "compare first, as in `(x > 0) & (y > 0)`; put comparisons in parentheses; for an int quotient use `//`",
        ))
    }

    /// The value of a Python number.
    fn number_of(&self, node: NodeId) -> Option<f64> {
        match self.graph.node(node).op {
            Op::Int(i) => Some(i as f64),
            Op::Float(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// `a ** b`, by the cases that PyTorch has.
    pub(crate) fn power(&mut self, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
        let dtype = match self.common(&[a, b]) {
            DType::Bool => DType::I64,
            dtype => dtype,
        };
        if !dtype.is_float() {
            return self.int_power(a, b, dtype);
        }
        let exponent = self.number_of(b);
        let base = self.operand_as(a, dtype)?;
        let Some(x) = exponent else {
            let two = matches!(self.graph.node(base).op, Op::Float(bits) if f64::from_bits(bits) == 2.0);
            let exponent = self.operand_as(b, dtype)?;
            let power = match two && self.graph.follows_score(exponent) {
                // one instruction in a kernel
                true => Op::Unary(UnaryOp::Exp2, exponent),
                false => Op::Binary(BinaryOp::Pow, base, exponent),
            };
            let power = self.node(power)?;
            return self.stored(power, dtype);
        };
        let squared = |cx: &mut Self| cx.node(Op::Binary(BinaryOp::Mul, base, base));
        let inverse = |cx: &mut Self, of: NodeId| {
            let one = cx.node(Op::Float(1f64.to_bits()))?;
            let one = cx.operand_as(one, if dtype == DType::F64 { dtype } else { DType::F32 })?;
            cx.node(Op::Binary(BinaryOp::Div, one, of))
        };
        let whole = x.fract() == 0.0 && (0.0..=MAX_POWER).contains(&x);
        let power = match x {
            0.0 => {
                let one = self.node(Op::Float(1f64.to_bits()))?;
                self.operand_as(one, dtype)?
            }
            1.0 => base,
            2.0 => squared(self)?,
            3.0 => {
                let square = squared(self)?;
                self.node(Op::Binary(BinaryOp::Mul, square, base))?
            }
            0.5 => self.node(Op::Unary(UnaryOp::Sqrt, base))?,
            -0.5 => self.node(Op::Unary(UnaryOp::Rsqrt, base))?,
            -1.0 => inverse(self, base)?,
            -2.0 => {
                let square = squared(self)?;
                inverse(self, square)?
            }
            // cheaper, and what follows from the score is no power to the last bit on any device
            _ if whole && self.graph.follows_score(base) => self.multiplied(base, x as i64)?,
            _ => {
                let exponent = self.operand_as(b, dtype)?;
                self.node(Op::Binary(BinaryOp::Pow, base, exponent))?
            }
        };
        self.stored(power, dtype)
    }

    fn int_power(&mut self, a: NodeId, b: NodeId, dtype: DType) -> Result<NodeId, Fault> {
        let (base, number) = (self.operand_as(a, dtype)?, self.is_number(b).then(|| self.literal_int(b)).flatten());
        let power = match number {
            Some(x) if x < 0 => {
                let message = "Integers to negative integer powers are not allowed.";
                return Err(
                    Fault::new("RuntimeError", "dtype", message).hint("make the base a float: `x.float() ** -1`")
                );
            }
            Some(0) => self.node(Op::Int(1))?,
            // products wrap as the power does
            Some(x) if x as f64 <= MAX_POWER => self.multiplied(base, x)?,
            _ => {
                let exponent = self.operand_as(b, dtype)?;
                match self.graph.node(base).op {
                    Op::Int(2) => {
                        let one = self.node(Op::Int(1))?;
                        self.node(Op::Binary(BinaryOp::Shl, one, exponent))?
                    }
                    _ => self.node(Op::Binary(BinaryOp::Pow, base, exponent))?,
                }
            }
        };
        self.stored(power, dtype)
    }

    fn multiplied(&mut self, a: NodeId, times: i64) -> Result<NodeId, Fault> {
        let half = if times > 1 { self.multiplied(a, times / 2)? } else { a };
        let even = if times > 1 { self.node(Op::Binary(BinaryOp::Mul, half, half))? } else { a };
        if times % 2 == 1 && times > 1 { self.node(Op::Binary(BinaryOp::Mul, even, a)) } else { Ok(even) }
    }

    /// `torch.where(c, a, b)`
    pub(crate) fn choose(&mut self, c: NodeId, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
        if self.graph.ty(c).is_float() {
            return Err(Fault::new("RuntimeError", "dtype", "torch.where needs a condition first, not a float")
                .hint("compare it: `torch.where(x > 0, a, b)`"));
        }
        let c = self.cast(c, Ty::Bool)?;
        let dtype = self.common(&[a, b]);
        self.must_hold(dtype, a)?;
        self.must_hold(dtype, b)?;
        let (a, b) = (self.operand_as(a, dtype)?, self.operand_as(b, dtype)?);
        let chosen = self.node(Op::Where(c, a, b))?;
        self.stored(chosen, dtype)
    }

    /// Division by `rounding_mode`.
    pub(crate) fn divide(&mut self, a: NodeId, b: NodeId, mode: Option<&str>) -> Result<NodeId, Fault> {
        let float = self.common(&[a, b]).is_float();
        match mode {
            None => self.two(BinaryOp::Div, a, b, Ty::Float),
            // `//` has no derivative in PyTorch; this one's is zero
            Some("floor") => {
                let whole = self.emit_binary(BinOp::FloorDiv, a, b)?;
                self.stopped(whole)
            }
            Some("trunc") if float => {
                let (a, b, dtype) = self.promote(a, b, Ty::Float)?;
                let quotient = self.node(Op::Binary(BinaryOp::Div, a, b))?;
                let whole = self.node(Op::Unary(UnaryOp::Trunc, quotient))?;
                self.stored(whole, dtype)
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

/// The dtype of a type.
pub(super) fn dtype_of(ty: Ty) -> DType {
    match ty {
        Ty::Bool => DType::Bool,
        Ty::Int => DType::I64,
        Ty::Float => DType::F32,
        Ty::Double => DType::F64,
    }
}
