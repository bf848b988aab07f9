//! How each operation of the graph is written in CUDA C++.
//!
//! Invariant: masks use correctly rounded or library functions, because a cell is kept or not; scores may use the
//! special-function unit where the error stays far below bf16's. Must not know graphs or kernels.

use crate::language::graph::{BinaryOp, Op, Ty, UnaryOp};

/// An operation without operands.
pub(super) fn atom(op: &Op) -> String {
    match op {
        Op::Input(input) => input.name().to_string(),
        Op::Bool(value) => value.to_string(),
        Op::Int(value) => int(*value),
        Op::Float(bits) => float(f64::from_bits(*bits)),
        Op::UniformInt(id) => format!("m.ui[{}]", id.0),
        Op::UniformFloat(id) => format!("m.uf[{}]", id.0),
        Op::Unary(..) | Op::Binary(..) | Op::Where(..) | Op::Load(..) => unreachable!("has operands"),
    }
}

fn int(value: i64) -> String {
    let value = value.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    match value {
        v if v == i64::from(i32::MIN) => "(-2147483647 - 1)".to_string(),
        v if v < 0 => format!("({v})"),
        v => v.to_string(),
    }
}

fn float(value: f64) -> String {
    let value = value as f32;
    if value.is_nan() {
        "__int_as_float(0x7fffffff)".to_string()
    } else if value.is_infinite() {
        if value < 0.0 { "negative_infinity()" } else { "(-negative_infinity())" }.to_string()
    } else if value.is_sign_negative() {
        format!("({value:?}f)")
    } else {
        format!("{value:?}f")
    }
}

pub(super) fn unary(op: UnaryOp, ty: Ty, a: &str, fast: bool) -> String {
    use UnaryOp::*;
    let pick = |precise: &str, quick: &str| format!("{}({a})", if fast { quick } else { precise });
    match (op, ty) {
        (Neg, _) => format!("-{a}"),
        (Abs, Ty::Int) => format!("abs({a})"),
        (Abs, _) => format!("fabsf({a})"),
        (Not, Ty::Bool) => format!("!{a}"),
        (Not, _) => format!("~{a}"),
        (Exp, _) => pick("expf", "fast_exp"),
        (Exp2, _) => pick("exp2f", "exp2_fast"),
        (Log, _) => pick("logf", "fast_log"),
        (Log2, _) => pick("log2f", "log2_fast"),
        (Log1p, _) => format!("log1pf({a})"),
        (Expm1, _) => format!("expm1f({a})"),
        (Sqrt, _) => format!("sqrtf({a})"),
        (Rsqrt, _) => format!("rsqrtf({a})"),
        (Sin, _) => format!("sinf({a})"),
        (Cos, _) => format!("cosf({a})"),
        (Tanh, _) if fast => format!("fast_tanh(0, {a}, 1.0f, 1.0f)"),
        (Tanh, _) => format!("tanhf({a})"),
        (TanhApprox, _) => format!("tanh_fast({a})"),
        (Sigmoid, _) => pick("sigmoid", "fast_sigmoid"),
        (Erf, _) => format!("erff({a})"),
        (Floor, _) => format!("floorf({a})"),
        (Ceil, _) => format!("ceilf({a})"),
        (Round, _) => format!("rintf({a})"),
        (Trunc, _) => format!("truncf({a})"),
        (ToFloat, Ty::Bool) => format!("{a} ? 1.0f : 0.0f"),
        (ToFloat, _) => format!("float({a})"),
        (ToInt, _) => format!("to_int({a})"),
        (ToBool, Ty::Int) => format!("{a} != 0"),
        (ToBool, _) => format!("{a} != 0.0f"),
    }
}

/// `literal` is the second operand where it is a literal int.
pub(super) fn binary(op: BinaryOp, ty: Ty, a: &str, b: &str, literal: Option<i64>, fast: bool) -> String {
    use BinaryOp::*;
    let power = literal.filter(|n| *n > 0 && n.count_ones() == 1 && *n < 1 << 31);
    match (op, ty, power) {
        (FloorDiv, Ty::Int, Some(n)) => return format!("{a} >> {}", n.trailing_zeros()),
        (Mod, Ty::Int, Some(n)) => return format!("{a} & {}", n - 1),
        _ => {}
    }
    let call = |name: &str| format!("{name}({a}, {b})");
    let infix = |sign: &str| format!("{a} {sign} {b}");
    match (op, ty) {
        (Add, _) => infix("+"),
        (Sub, _) => infix("-"),
        (Mul, _) => infix("*"),
        (Div, _) if fast => call("__fdividef"),
        (Div, _) => infix("/"),
        (FloorDiv, _) => call("floor_div"),
        (TruncDiv, _) => call("trunc_div"),
        (Mod, _) => call("floor_mod"),
        (Pow, _) => call("powf"),
        (Atan2, _) => call("atan2f"),
        (Min, Ty::Float) => call("nan_min"),
        (Max, Ty::Float) => call("nan_max"),
        (Min, _) => call("min"),
        (Max, _) => call("max"),
        (And, Ty::Bool) => infix("&&"),
        (Or, Ty::Bool) => infix("||"),
        (Xor, Ty::Bool) => infix("!="),
        (And, _) => infix("&"),
        (Or, _) => infix("|"),
        (Xor, _) => infix("^"),
        (Shl, _) => call("shift_left"),
        (Shr, _) => call("shift_right"),
        (Eq, _) => infix("=="),
        (Ne, _) => infix("!="),
        (Lt, _) => infix("<"),
        (Le, _) => infix("<="),
        (Gt, _) => infix(">"),
        (Ge, _) => infix(">="),
    }
}
