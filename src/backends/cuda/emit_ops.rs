//! How each operation of the graph is written in CUDA C++.
//!
//! Invariant: what decides over a cell is rounded after every operation, as on the host ([`Precision::Exact`]); functions that
//! no GPU rounds correctly are the library's. Scores may use the special-function unit where the error stays far below bf16's.
//! Must not know graphs or kernels.

use crate::base::DType;
use crate::language::graph::{BinaryOp, Op, Ty, UnaryOp};

/// How closely an operation on floats is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// Rounded by itself: the compiler fuses it with nothing.
    Exact,
    /// By the library's functions.
    Library,
    /// By the special-function unit.
    Fast,
}

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

/// A number in float64.
pub(super) fn double(value: f64) -> String {
    if value.is_nan() {
        "double(__int_as_float(0x7fffffff))".to_string()
    } else if value.is_infinite() {
        if value < 0.0 { "double(negative_infinity())" } else { "(-double(negative_infinity()))" }.to_string()
    } else if value.is_sign_negative() {
        format!("({value:?})")
    } else {
        format!("{value:?}")
    }
}

/// One operand of type `ty`.
pub(super) fn unary(op: UnaryOp, ty: Ty, a: &str, how: Precision) -> String {
    use UnaryOp::*;
    let fast = how == Precision::Fast;
    // of doubles the functions have the same names without the f
    let library = |name: &str| match ty {
        Ty::Double => format!("{}({a})", name.strip_suffix('f').unwrap_or(name)),
        _ => format!("{name}({a})"),
    };
    let pick = |precise: &str, quick: &str| {
        if fast && ty == Ty::Float { format!("{quick}({a})") } else { library(precise) }
    };
    match (op, ty) {
        (Neg, _) => format!("-{a}"),
        (Abs, Ty::Int) => format!("abs({a})"),
        (Abs, _) => library("fabsf"),
        (Not, Ty::Bool) => format!("!{a}"),
        (Not, _) => format!("~{a}"),
        (Exp, _) => pick("expf", "fast_exp"),
        (Exp2, _) => pick("exp2f", "exp2_fast"),
        (Log, _) => pick("logf", "fast_log"),
        (Log2, _) => pick("log2f", "log2_fast"),
        (Log1p, _) => library("log1pf"),
        (Expm1, _) => library("expm1f"),
        (Sqrt, Ty::Float) if how == Precision::Exact => format!("__fsqrt_rn({a})"),
        (Sqrt, _) => library("sqrtf"),
        (Rsqrt, Ty::Float) if how == Precision::Exact => format!("__fdiv_rn(1.0f, __fsqrt_rn({a}))"),
        (Rsqrt, Ty::Double) => format!("1.0 / sqrt({a})"),
        (Rsqrt, _) => format!("rsqrtf({a})"),
        (Sin, _) => library("sinf"),
        (Cos, _) => library("cosf"),
        (Tanh, Ty::Float) if fast => format!("fast_tanh(0, {a}, 1.0f, 1.0f)"),
        (Tanh, _) => library("tanhf"),
        (TanhApprox, Ty::Float) => format!("tanh_fast({a})"),
        (TanhApprox, _) => format!("tanh({a})"),
        (Sigmoid, _) => pick("sigmoid", "fast_sigmoid"),
        (Erf, _) => library("erff"),
        (Floor, _) => library("floorf"),
        (Ceil, _) => library("ceilf"),
        (Round, _) => library("rintf"),
        (Trunc, _) => library("truncf"),
        (ToFloat, Ty::Bool) => format!("{a} ? 1.0f : 0.0f"),
        (ToFloat, _) => format!("float({a})"),
        (ToDouble, Ty::Bool) => format!("{a} ? 1.0 : 0.0"),
        (ToDouble, _) => format!("double({a})"),
        (ToInt | ToInt32, _) => format!("to_int({a})"),
        (ToBool, Ty::Int) => format!("{a} != 0"),
        (ToBool, Ty::Double) => format!("{a} != 0.0"),
        (ToBool, _) => format!("{a} != 0.0f"),
        (As(dtype), _) => stored(dtype, a),
    }
}

/// What an element of `dtype` keeps of a value.
fn stored(dtype: DType, a: &str) -> String {
    match dtype {
        DType::U8 => format!("{a} & 255"),
        DType::I8 => format!("int(u32({a}) << 24) >> 24"),
        DType::I16 => format!("int(u32({a}) << 16) >> 16"),
        DType::F16 => format!("as_float16({a})"),
        DType::BF16 => format!("as_bfloat16({a})"),
        DType::I32 | DType::I64 | DType::F32 => a.to_string(),
        DType::Bool | DType::F64 => unreachable!("no cast within a type"),
    }
}

/// Two operands of type `ty`. `literal` is the second operand where it is a literal int.
pub(super) fn binary(op: BinaryOp, ty: Ty, a: &str, b: &str, literal: Option<i64>, how: Precision) -> String {
    use BinaryOp::*;
    let power = literal.filter(|n| *n > 0 && n.count_ones() == 1 && *n < 1 << 31);
    match (op, ty, power) {
        (FloorDiv, Ty::Int, Some(n)) => return format!("{a} >> {}", n.trailing_zeros()),
        (Mod, Ty::Int, Some(n)) => return format!("{a} & {}", n - 1),
        _ => {}
    }
    let call = |name: &str| format!("{name}({a}, {b})");
    let infix = |sign: &str| format!("{a} {sign} {b}");
    // a product and a sum would be fused into one rounding
    let rounded = |single: &str, double: &str, sign: &str| match (how, ty) {
        (Precision::Exact, Ty::Float) => call(single),
        (_, Ty::Double) => call(double),
        _ => infix(sign),
    };
    match (op, ty) {
        (Add, _) => rounded("__fadd_rn", "__dadd_rn", "+"),
        (Sub, _) => rounded("__fsub_rn", "__dsub_rn", "-"),
        (Mul, _) => rounded("__fmul_rn", "__dmul_rn", "*"),
        (Div, Ty::Float) if how == Precision::Fast => call("__fdividef"),
        (Div, _) => rounded("__fdiv_rn", "__ddiv_rn", "/"),
        (FloorDiv, _) => call("floor_div"),
        (TruncDiv, _) => call("trunc_div"),
        (Mod, _) => call("floor_mod"),
        (Fmod, Ty::Int) => call("trunc_mod"),
        (Fmod, Ty::Double) => call("fmod"),
        (Fmod, _) => call("fmodf"),
        (Pow, Ty::Int) => call("int_pow"),
        (Pow, Ty::Double) => call("pow"),
        (Pow, _) => call("powf"),
        (Atan2, Ty::Double) => call("atan2"),
        (Atan2, _) => call("atan2f"),
        (Min, Ty::Float | Ty::Double) => call("nan_min"),
        (Max, Ty::Float | Ty::Double) => call("nan_max"),
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
