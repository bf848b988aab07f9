//! Functions of single elements that need more than one operation.
//!
//! Invariant: as in `emit`: well-typed nodes or a fault. Must not know dimensions, except to pass them on.

use crate::base::DType;
use crate::ir::graph::{BinaryOp, NodeId, Op, Ty, UnaryOp};
use crate::python::machine::Context;
use crate::python::syntax::ast::BinOp;
use crate::python::value::{Args, Fault, Value};

pub(super) fn abs(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    if cx.graph.ty(a) == Ty::Bool {
        return Err(Fault::type_error("abs() of a truth value"));
    }
    cx.one(UnaryOp::Abs, a)
}

pub(super) fn rounded(cx: &mut Context<'_>, op: UnaryOp, a: NodeId) -> Result<NodeId, Fault> {
    match cx.graph.ty(a) {
        Ty::Float | Ty::Double => cx.one(op, a),
        Ty::Int => Ok(a),
        Ty::Bool => Err(Fault::type_error("rounding a truth value").hint("convert it: `x.int()`")),
    }
}

pub(super) fn frac(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    if !cx.graph.ty(a).is_float() {
        return Err(Fault::type_error("frac() of ints").hint("an int has no fraction"));
    }
    let whole = cx.one(UnaryOp::Trunc, a)?;
    cx.two(BinaryOp::Sub, a, whole, Ty::Float)
}

/// `torch.round(x, decimals=n)`: scaled, rounded and scaled back, each step in the tensor's own precision.
pub(super) fn round(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let decimals = match args.get(1, "decimals") {
        None => 0,
        Some(given) => given.as_int().ok_or_else(|| Fault::type_error("round() needs an int for `decimals`"))?,
    };
    cx.elementwise(&[&x], |cx, n| {
        if decimals == 0 || !cx.graph.ty(n[0]).is_float() {
            return rounded(cx, UnaryOp::Round, n[0]);
        }
        let dtype = cx.dtype(n[0]);
        let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
        let power = cx.float_literal(10f64.powi(decimals.unsigned_abs().min(400) as i32))?;
        let power = cx.operand_as(power, wide)?;
        let (first, last) = if decimals > 0 { (BinaryOp::Mul, BinaryOp::Div) } else { (BinaryOp::Div, BinaryOp::Mul) };
        let scaled = cx.node(Op::Binary(first, n[0], power))?;
        let whole = cx.node(Op::Unary(UnaryOp::Round, scaled))?;
        let back = cx.node(Op::Binary(last, whole, power))?;
        cx.stored(back, dtype)
    })
}

/// A function that the graph lacks, by others in double precision, rounded once; what follows from the score stays in its
/// own.
fn composed(
    cx: &mut Context<'_>,
    a: NodeId,
    f: impl FnOnce(&mut Context<'_>, NodeId, DType) -> Result<NodeId, Fault>,
) -> Result<NodeId, Fault> {
    let dtype = if cx.dtype(a).is_float() { cx.dtype(a) } else { DType::F32 };
    let single = cx.operand_as(a, dtype)?;
    if cx.graph.follows_score(single) {
        let made = f(cx, single, DType::F32)?;
        return cx.stored(made, dtype);
    }
    let double = cx.operand_as(single, DType::F64)?;
    let made = f(cx, double, DType::F64)?;
    cx.to_dtype(made, dtype)
}

impl Context<'_> {
    /// A value in the precision that a formula of several steps is computed in before its result is rounded: float64, but what
    /// follows from the score keeps the score's own.
    pub(crate) fn in_wide(&mut self, value: &Value) -> Result<Value, Fault> {
        self.elementwise(&[value], |cx, n| {
            let dtype = if cx.dtype(n[0]).is_float() { cx.dtype(n[0]) } else { DType::F32 };
            let single = cx.operand_as(n[0], dtype)?;
            if cx.graph.follows_score(single) {
                cx.stored(single, DType::F32)
            } else {
                cx.operand_as(single, DType::F64)
            }
        })
    }
}

pub(super) fn log10(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    composed(cx, a, |cx, a, dtype| {
        let log = cx.node(Op::Unary(UnaryOp::Log, a))?;
        let ten = cx.float_literal(std::f64::consts::LN_10)?;
        let ten = cx.operand_as(ten, dtype)?;
        cx.node(Op::Binary(BinaryOp::Div, log, ten))
    })
}

pub(super) fn reciprocal(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let one = cx.float_literal(1.0)?;
    cx.two(BinaryOp::Div, one, a, Ty::Float)
}

pub(super) fn tan(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    composed(cx, a, |cx, a, _| {
        let (sin, cos) = (cx.node(Op::Unary(UnaryOp::Sin, a))?, cx.node(Op::Unary(UnaryOp::Cos, a))?);
        cx.node(Op::Binary(BinaryOp::Div, sin, cos))
    })
}

/// 1, 0 or -1; 0 for NaN.
pub(super) fn sign(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let dtype = cx.dtype(a);
    if dtype == DType::Bool {
        return Ok(a);
    }
    let zero = cx.node(Op::Int(0))?;
    let above = cx.emit_compare(BinaryOp::Gt, a, zero)?;
    let below = cx.emit_compare(BinaryOp::Lt, a, zero)?;
    let (above, below) = (cx.cast(above, Ty::Int)?, cx.cast(below, Ty::Int)?);
    let sign = cx.node(Op::Binary(BinaryOp::Sub, above, below))?;
    cx.to_dtype(sign, dtype)
}

pub(super) fn relu(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    if cx.graph.ty(a).is_float() {
        return cx.one(UnaryOp::Relu, a);
    }
    let zero = cx.node(Op::Int(0))?;
    cx.two(BinaryOp::Max, a, zero, Ty::Int)
}

pub(super) fn relu6(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let (zero, six) = (cx.node(Op::Int(0))?, cx.node(Op::Int(6))?);
    hardtanh(cx, a, zero, six)
}

/// Between two numbers; NaN passes the gradient on, which a clamp does not.
pub(super) fn hardtanh(cx: &mut Context<'_>, a: NodeId, lo: NodeId, hi: NodeId) -> Result<NodeId, Fault> {
    if !cx.graph.ty(a).is_float() {
        let above = bounded(cx, BinaryOp::Max, a, lo)?;
        return bounded(cx, BinaryOp::Min, above, hi);
    }
    let (below, above) = (cx.emit_compare(BinaryOp::Le, a, lo)?, cx.emit_compare(BinaryOp::Ge, a, hi)?);
    let held = cx.choose(above, hi, a)?;
    cx.choose(below, lo, held)
}

pub(super) fn silu(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let (dtype, a) = float_operand(cx, a)?;
    let gate = cx.node(Op::Unary(UnaryOp::Sigmoid, a))?;
    let gated = cx.node(Op::Binary(BinaryOp::Mul, a, gate))?;
    cx.stored(gated, dtype)
}

/// A float's dtype, and itself for an operation that rounds its result to that.
fn float_operand(cx: &mut Context<'_>, a: NodeId) -> Result<(DType, NodeId), Fault> {
    let dtype = if cx.dtype(a).is_float() { cx.dtype(a) } else { DType::F32 };
    Ok((dtype, cx.operand_as(a, dtype)?))
}

/// A number next to a float of this dtype.
fn number(cx: &mut Context<'_>, x: f64, dtype: DType) -> Result<NodeId, Fault> {
    let number = cx.float_literal(x)?;
    cx.operand_as(number, if dtype == DType::F64 { dtype } else { DType::F32 })
}

/// `log(1 + exp(a * beta)) / beta`, and `a` itself where `a * beta` is above the threshold, as PyTorch has it.
pub(super) fn softplus(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let given = |at: usize, of: &str, default: f64| match args.get(at, of) {
        None => Ok(default),
        Some(value) => {
            value.as_float().ok_or_else(|| Fault::type_error(format!("softplus() needs a number for `{of}`")))
        }
    };
    let (beta, threshold) = (given(1, "beta", 1.0)?, given(2, "threshold", 20.0)?);
    cx.elementwise(&[&x], |cx, n| {
        let (dtype, a) = float_operand(cx, n[0])?;
        let limit = number(cx, threshold, dtype)?;
        let by = number(cx, beta, dtype)?;
        let scaled = if beta == 1.0 { a } else { cx.node(Op::Binary(BinaryOp::Mul, a, by))? };
        let above = cx.node(Op::Binary(BinaryOp::Gt, scaled, limit))?;
        // beyond the limit the function that is not chosen must not overflow: its gradient would be 0 * inf
        let held = cx.node(Op::Where(above, limit, scaled))?;
        let power = cx.node(Op::Unary(UnaryOp::Exp, held))?;
        let mut soft = cx.node(Op::Unary(UnaryOp::Log1p, power))?;
        if beta != 1.0 {
            soft = cx.node(Op::Binary(BinaryOp::Div, soft, by))?;
        }
        let chosen = cx.node(Op::Where(above, a, soft))?;
        cx.stored(chosen, dtype)
    })
}

/// `min(a, 0) - log1p(exp(-|a|))`
pub(super) fn logsigmoid(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let (dtype, a) = float_operand(cx, a)?;
    let zero = number(cx, 0.0, dtype)?;
    let least = cx.node(Op::Binary(BinaryOp::Min, a, zero))?;
    let tail = log1p_exp_minus(cx, a)?;
    let sum = cx.node(Op::Binary(BinaryOp::Sub, least, tail))?;
    cx.stored(sum, dtype)
}

/// `log1p(exp(-|a|))`
fn log1p_exp_minus(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let size = cx.node(Op::Unary(UnaryOp::Abs, a))?;
    let minus = cx.node(Op::Unary(UnaryOp::Neg, size))?;
    let small = cx.node(Op::Unary(UnaryOp::Exp, minus))?;
    cx.node(Op::Unary(UnaryOp::Log1p, small))
}

pub(super) fn isinf(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    against_infinity(cx, BinaryOp::Eq, a)
}

pub(super) fn isfinite(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    against_infinity(cx, BinaryOp::Lt, a)
}

fn against_infinity(cx: &mut Context<'_>, op: BinaryOp, a: NodeId) -> Result<NodeId, Fault> {
    let (dtype, a) = float_operand(cx, a)?;
    let size = cx.node(Op::Unary(UnaryOp::Abs, a))?;
    let infinity = number(cx, f64::INFINITY, dtype)?;
    cx.node(Op::Binary(op, size, infinity))
}

pub(super) fn logical_not(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Bool)?;
    cx.node(Op::Unary(UnaryOp::Not, a))
}

pub(super) fn logical(cx: &mut Context<'_>, op: BinaryOp, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
    let (a, b) = (cx.cast(a, Ty::Bool)?, cx.cast(b, Ty::Bool)?);
    cx.node(Op::Binary(op, a, b))
}

/// Remainder with the sign of the dividend.
pub(super) fn fmod(cx: &mut Context<'_>, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
    if cx.literal_int(b) == Some(0) && !cx.graph.ty(a).is_float() {
        return Err(Fault::new("ZeroDivisionError", "zero-division", "fmod() by zero"));
    }
    cx.two(BinaryOp::Fmod, a, b, Ty::Int)
}

/// `torch.fmin` and `torch.fmax`: NaN only where both are.
pub(super) fn extreme_number(cx: &mut Context<'_>, op: BinaryOp, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
    let chosen = cx.two(op, a, b, Ty::Int)?;
    if !cx.graph.ty(chosen).is_float() {
        return Ok(chosen);
    }
    let (no_a, no_b) = (cx.emit_compare(BinaryOp::Ne, a, a)?, cx.emit_compare(BinaryOp::Ne, b, b)?);
    let with_a = cx.choose(no_a, b, chosen)?;
    cx.choose(no_b, a, with_a)
}

/// `log(exp(a) + exp(b))`: of two equal infinities it is that infinity.
pub(super) fn logaddexp(cx: &mut Context<'_>, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
    if !cx.common(&[a, b]).is_float() {
        return Err(Fault::new("NotImplementedError", "dtype", "logaddexp() of ints").hint("convert them: `x.float()`"));
    }
    let (a, b, dtype) = cx.promote(a, b, Ty::Float)?;
    let most = cx.node(Op::Binary(BinaryOp::Max, a, b))?;
    let apart = cx.node(Op::Binary(BinaryOp::Sub, a, b))?;
    let tail = log1p_exp_minus(cx, apart)?;
    let sum = cx.node(Op::Binary(BinaryOp::Add, most, tail))?;
    let (same, infinite) = (cx.node(Op::Binary(BinaryOp::Eq, a, b))?, isinf(cx, a)?);
    let same = cx.node(Op::Binary(BinaryOp::And, same, infinite))?;
    let chosen = cx.node(Op::Where(same, a, sum))?;
    cx.stored(chosen, dtype)
}

pub(super) fn gelu(cx: &mut Context<'_>, _: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need("gelu", 0, "input")?.clone();
    let by_tanh = args.get(1, "approximate").and_then(Value::as_str) == Some("tanh");
    cx.elementwise(&[&x], |cx, n| {
        let (dtype, x) = float_operand(cx, n[0])?;
        let half = number(cx, 0.5, dtype)?;
        let one = number(cx, 1.0, dtype)?;
        let gate = if by_tanh {
            // tanh(sqrt(2 / pi) * (x + 0.044715 x^3))
            let square = cx.node(Op::Binary(BinaryOp::Mul, x, x))?;
            let cube = cx.node(Op::Binary(BinaryOp::Mul, square, x))?;
            let small = number(cx, 0.044715, dtype)?;
            let small = cx.node(Op::Binary(BinaryOp::Mul, small, cube))?;
            let sum = cx.node(Op::Binary(BinaryOp::Add, x, small))?;
            let scale = number(cx, (2.0 / std::f64::consts::PI).sqrt(), dtype)?;
            let inner = cx.node(Op::Binary(BinaryOp::Mul, scale, sum))?;
            cx.node(Op::Unary(UnaryOp::Tanh, inner))?
        } else {
            let scale = number(cx, std::f64::consts::FRAC_1_SQRT_2, dtype)?;
            let inner = cx.node(Op::Binary(BinaryOp::Mul, x, scale))?;
            cx.node(Op::Unary(UnaryOp::Erf, inner))?
        };
        let gate = cx.node(Op::Binary(BinaryOp::Add, one, gate))?;
        let scaled = cx.node(Op::Binary(BinaryOp::Mul, x, half))?;
        let gated = cx.node(Op::Binary(BinaryOp::Mul, scaled, gate))?;
        cx.stored(gated, dtype)
    })
}

pub(super) fn leaky_relu(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let slope = args.get(1, "negative_slope").cloned().unwrap_or(Value::Float(0.01));
    cx.elementwise(&[&x, &slope], |cx, n| {
        let zero = cx.node(Op::Int(0))?;
        let above = cx.emit_compare(BinaryOp::Gt, n[0], zero)?;
        let below = cx.emit_binary(BinOp::Mul, n[0], n[1])?;
        cx.choose(above, n[0], below)
    })
}

pub(super) fn elu(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let alpha = args.get(1, "alpha").cloned().unwrap_or(Value::Float(1.0));
    cx.elementwise(&[&x, &alpha], |cx, n| {
        let zero = cx.node(Op::Int(0))?;
        let above = cx.emit_compare(BinaryOp::Gt, n[0], zero)?;
        // as in softplus
        let held = cx.choose(above, zero, n[0])?;
        let small = cx.float_unary(UnaryOp::Expm1, held)?;
        let below = cx.emit_binary(BinOp::Mul, n[1], small)?;
        cx.choose(above, n[0], below)
    })
}

/// One side of a clamp: an int bound does not wrap in the tensor's dtype.
pub(super) fn bounded(cx: &mut Context<'_>, op: BinaryOp, a: NodeId, bound: NodeId) -> Result<NodeId, Fault> {
    let dtype = cx.common(&[a, bound]);
    if cx.is_number(bound) && cx.graph.ty(a).is_float() {
        let op = if op == BinaryOp::Max { BinaryOp::ClampMin } else { BinaryOp::ClampMax };
        return cx.two(op, a, bound, Ty::Float);
    }
    if !dtype.is_int() || !cx.is_number(bound) {
        return cx.two(op, a, bound, Ty::Int);
    }
    let a = cx.operand_as(a, dtype)?;
    let held = cx.node(Op::Binary(op, a, bound))?;
    cx.stored(held, dtype)
}

/// `torch.float_power`: always in double precision.
pub(super) fn float_power(cx: &mut Context<'_>, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
    let (a, b) = (cx.operand_as(a, DType::F64)?, cx.operand_as(b, DType::F64)?);
    cx.node(Op::Binary(BinaryOp::Pow, a, b))
}
