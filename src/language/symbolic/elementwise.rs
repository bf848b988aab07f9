//! Functions of single elements that need more than one operation.
//!
//! Invariant: as in `emit`: well-typed nodes or a fault. Must not know dimensions, but for passing them on.

use crate::language::eval::Context;
use crate::language::graph::{BinaryOp, NodeId, Op, Ty, UnaryOp};
use crate::language::syntax::ast::BinOp;
use crate::language::value::{Args, Fault, Value};

pub(super) fn abs(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    if cx.graph.ty(a) == Ty::Bool {
        return Err(Fault::type_error("abs() of a truth value"));
    }
    cx.node(Op::Unary(UnaryOp::Abs, a))
}

pub(super) fn rounded(cx: &mut Context<'_>, op: UnaryOp, a: NodeId) -> Result<NodeId, Fault> {
    if cx.graph.ty(a) == Ty::Float { cx.node(Op::Unary(op, a)) } else { Ok(a) }
}

pub(super) fn frac(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Float)?;
    let whole = cx.node(Op::Unary(UnaryOp::Trunc, a))?;
    cx.node(Op::Binary(BinaryOp::Sub, a, whole))
}

pub(super) fn log10(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let log = cx.float_unary(UnaryOp::Log, a)?;
    let ten = cx.float_literal(std::f64::consts::LN_10)?;
    cx.node(Op::Binary(BinaryOp::Div, log, ten))
}

pub(super) fn reciprocal(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let one = cx.float_literal(1.0)?;
    cx.two(BinaryOp::Div, one, a, Ty::Float)
}

pub(super) fn tan(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let (sin, cos) = (cx.float_unary(UnaryOp::Sin, a)?, cx.float_unary(UnaryOp::Cos, a)?);
    cx.node(Op::Binary(BinaryOp::Div, sin, cos))
}

pub(super) fn sign(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let zero = cx.node(Op::Int(0))?;
    let above = cx.emit_compare(BinaryOp::Gt, a, zero)?;
    let below = cx.emit_compare(BinaryOp::Lt, a, zero)?;
    let (above, below) = (cx.cast(above, Ty::Int)?, cx.cast(below, Ty::Int)?);
    let sign = cx.node(Op::Binary(BinaryOp::Sub, above, below))?;
    let ty = cx.graph.ty(a);
    if ty == Ty::Float { cx.cast(sign, ty) } else { Ok(sign) }
}

pub(super) fn relu(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let zero = cx.node(Op::Int(0))?;
    cx.two(BinaryOp::Max, a, zero, Ty::Int)
}

pub(super) fn relu6(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let above = relu(cx, a)?;
    let six = cx.node(Op::Int(6))?;
    cx.two(BinaryOp::Min, above, six, Ty::Int)
}

pub(super) fn silu(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Float)?;
    let gate = cx.node(Op::Unary(UnaryOp::Sigmoid, a))?;
    cx.node(Op::Binary(BinaryOp::Mul, a, gate))
}

/// `log(1 + exp(a))`, without overflow: `max(a, 0) + log1p(exp(-|a|))`.
pub(super) fn softplus(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Float)?;
    let size = cx.node(Op::Unary(UnaryOp::Abs, a))?;
    let minus = cx.negate(size)?;
    let small = cx.node(Op::Unary(UnaryOp::Exp, minus))?;
    let tail = cx.node(Op::Unary(UnaryOp::Log1p, small))?;
    let above = relu(cx, a)?;
    cx.node(Op::Binary(BinaryOp::Add, above, tail))
}

pub(super) fn logsigmoid(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Float)?;
    let minus = cx.negate(a)?;
    let plus = softplus(cx, minus)?;
    cx.negate(plus)
}

pub(super) fn isinf(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Float)?;
    let size = cx.node(Op::Unary(UnaryOp::Abs, a))?;
    let infinity = cx.float_literal(f64::INFINITY)?;
    cx.node(Op::Binary(BinaryOp::Eq, size, infinity))
}

pub(super) fn isfinite(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Float)?;
    let size = cx.node(Op::Unary(UnaryOp::Abs, a))?;
    let infinity = cx.float_literal(f64::INFINITY)?;
    cx.node(Op::Binary(BinaryOp::Lt, size, infinity))
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
    let (a, b, _) = cx.promote(a, b, Ty::Int)?;
    let quotient = cx.divide(a, b, Some("trunc"))?;
    let whole = cx.node(Op::Binary(BinaryOp::Mul, quotient, b))?;
    cx.node(Op::Binary(BinaryOp::Sub, a, whole))
}

pub(super) fn logaddexp(cx: &mut Context<'_>, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
    let (a, b, _) = cx.promote(a, b, Ty::Float)?;
    let most = cx.node(Op::Binary(BinaryOp::Max, a, b))?;
    let apart = cx.node(Op::Binary(BinaryOp::Sub, a, b))?;
    let size = cx.node(Op::Unary(UnaryOp::Abs, apart))?;
    let minus = cx.negate(size)?;
    let small = cx.node(Op::Unary(UnaryOp::Exp, minus))?;
    let tail = cx.node(Op::Unary(UnaryOp::Log1p, small))?;
    cx.node(Op::Binary(BinaryOp::Add, most, tail))
}

pub(super) fn gelu(cx: &mut Context<'_>, _: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need("gelu", 0, "input")?.clone();
    let by_tanh = args.get(1, "approximate").and_then(Value::as_str) == Some("tanh");
    cx.elementwise(&[&x], |cx, n| {
        let x = cx.cast(n[0], Ty::Float)?;
        let half = cx.float_literal(0.5)?;
        let one = cx.float_literal(1.0)?;
        let gate = if by_tanh {
            // tanh(sqrt(2 / pi) * (x + 0.044715 x^3))
            let three = cx.float_literal(3.0)?;
            let cube = cx.power(x, three)?;
            let small = cx.float_literal(0.044715)?;
            let small = cx.node(Op::Binary(BinaryOp::Mul, small, cube))?;
            let sum = cx.node(Op::Binary(BinaryOp::Add, x, small))?;
            let scale = cx.float_literal((2.0 / std::f64::consts::PI).sqrt())?;
            let inner = cx.node(Op::Binary(BinaryOp::Mul, scale, sum))?;
            cx.node(Op::Unary(UnaryOp::Tanh, inner))?
        } else {
            let scale = cx.float_literal(std::f64::consts::FRAC_1_SQRT_2)?;
            let inner = cx.node(Op::Binary(BinaryOp::Mul, x, scale))?;
            cx.node(Op::Unary(UnaryOp::Erf, inner))?
        };
        let gate = cx.node(Op::Binary(BinaryOp::Add, one, gate))?;
        let scaled = cx.node(Op::Binary(BinaryOp::Mul, x, half))?;
        cx.node(Op::Binary(BinaryOp::Mul, scaled, gate))
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
        let small = cx.float_unary(UnaryOp::Expm1, n[0])?;
        let below = cx.emit_binary(BinOp::Mul, n[1], small)?;
        cx.choose(above, n[0], below)
    })
}

pub(super) fn lerp(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let (a, b) = (args.need(name, 0, "input")?.clone(), args.need(name, 1, "end")?.clone());
    let weight = args.need(name, 2, "weight")?.clone();
    let apart = cx.symbolic_binary(BinOp::Sub, &b, &a)?;
    let part = cx.symbolic_binary(BinOp::Mul, &apart, &weight)?;
    cx.symbolic_binary(BinOp::Add, &a, &part)
}
