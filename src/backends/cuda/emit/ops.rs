//! The CUDA C++ text of each operation.
//!
//! Invariant: values that decide over a cell are rounded after every operation, as on the host ([`Precision::Exact`]);
//! functions that no GPU rounds correctly come from the library. Scores may use the special-function unit if its error
//! is far below bf16's. Must not know graphs or kernels.

use crate::base::DType;
use crate::ir::graph::{BinaryOp, Op, Ty, UnaryOp};
use crate::ir::ops::rows::{BinaryCuda, UnaryCuda};

/// How closely an operation on floats is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// Rounded separately: the compiler fuses it with nothing.
    Exact,
    /// By the library's functions.
    Library,
    /// By the special-function unit.
    Fast,
}

/// An operation without operands.
pub(crate) fn atom(op: &Op) -> String {
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
pub(crate) fn double(value: f64) -> String {
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

/// A function of the library; of doubles it has the same name without the f.
fn library(name: &str, ty: Ty, a: &str) -> String {
    match ty {
        Ty::Double => format!("{}({a})", name.strip_suffix('f').unwrap_or(name)),
        Ty::Bool | Ty::Int | Ty::Float => format!("{name}({a})"),
    }
}

/// One operand of type `ty`.
pub(crate) fn unary(op: UnaryOp, ty: Ty, a: &str, how: Precision) -> String {
    match op.row().cuda {
        UnaryCuda::Sign(sign) => format!("{sign}{a}"),
        UnaryCuda::OrFast(_, fast) if how == Precision::Fast && ty == Ty::Float => format!("{fast}({a})"),
        UnaryCuda::Library(name) | UnaryCuda::OrFast(name, _) => library(name, ty, a),
        UnaryCuda::Own => own(op, ty, a, how),
    }
}

/// The parts that depend on the type or on the precision.
fn own(op: UnaryOp, ty: Ty, a: &str, how: Precision) -> String {
    use UnaryOp::*;
    match (op, ty) {
        (Abs, Ty::Int) => format!("abs({a})"),
        (Abs, _) => library("fabsf", ty, a),
        (Not, Ty::Bool) => format!("!{a}"),
        (Not, _) => format!("~{a}"),
        (Sqrt, Ty::Float) if how == Precision::Exact => format!("__fsqrt_rn({a})"),
        (Sqrt, _) => library("sqrtf", ty, a),
        (Rsqrt, Ty::Float) if how == Precision::Exact => format!("__fdiv_rn(1.0f, __fsqrt_rn({a}))"),
        (Rsqrt, Ty::Double) => format!("1.0 / sqrt({a})"),
        (Rsqrt, _) => format!("rsqrtf({a})"),
        (Tanh, Ty::Float) if how == Precision::Fast => format!("fast_tanh(0, {a}, 1.0f, 1.0f)"),
        (Tanh, _) => library("tanhf", ty, a),
        (TanhApprox, Ty::Float) => format!("tanh_fast({a})"),
        (TanhApprox, _) => format!("tanh({a})"),
        (Relu, Ty::Double) => format!("nan_max({a}, 0.0)"),
        (Relu, _) => format!("nan_max({a}, 0.0f)"),
        (Stop, _) => a.to_string(),
        (ToFloat, Ty::Bool) => format!("{a} ? 1.0f : 0.0f"),
        (ToFloat, _) => format!("float({a})"),
        (ToDouble, Ty::Bool) => format!("{a} ? 1.0 : 0.0"),
        (ToDouble, _) => format!("double({a})"),
        (ToInt | ToInt32, _) => format!("to_int({a})"),
        (ToBool, Ty::Int) => format!("{a} != 0"),
        (ToBool, Ty::Double) => format!("{a} != 0.0"),
        (ToBool, _) => format!("{a} != 0.0f"),
        (As(dtype), _) => stored(dtype, a),
        (op, _) => unreachable!("{op:?} is in the table"),
    }
}

/// The value after conversion to `dtype`.
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

/// Two operands of type `ty`. `literal` is the second operand if it is a literal int.
pub(crate) fn binary(op: BinaryOp, ty: Ty, a: &str, b: &str, literal: Option<i64>, how: Precision) -> String {
    use BinaryOp::{Div, FloorDiv, Mod};
    let power = literal.filter(|n| *n > 0 && n.count_ones() == 1 && *n < 1 << 31);
    match (op, ty, power) {
        (FloorDiv, Ty::Int, Some(n)) => return format!("{a} >> {}", n.trailing_zeros()),
        (Mod, Ty::Int, Some(n)) => return format!("{a} & {}", n - 1),
        _ => {}
    }
    let call = |name: &str| format!("{name}({a}, {b})");
    let infix = |sign: &str| format!("{a} {sign} {b}");
    if op == Div && ty == Ty::Float && how == Precision::Fast {
        return call("__fdividef");
    }
    match (op.row().cuda, ty) {
        // a product and a sum would be fused into one rounding
        (BinaryCuda::Rounded(_, single, _), Ty::Float) if how == Precision::Exact => call(single),
        (BinaryCuda::Rounded(_, _, double), Ty::Double) => call(double),
        (BinaryCuda::Rounded(sign, ..), Ty::Bool | Ty::Int | Ty::Float) => infix(sign),
        (BinaryCuda::Call(of_ints, ..), Ty::Bool | Ty::Int) => call(of_ints),
        (BinaryCuda::Call(_, of_floats, _), Ty::Float) => call(of_floats),
        (BinaryCuda::Call(_, _, of_doubles), Ty::Double) => call(of_doubles),
        (BinaryCuda::Infix(sign), _) | (BinaryCuda::Logic(sign, _), Ty::Bool) => infix(sign),
        (BinaryCuda::Logic(_, sign), _) => infix(sign),
    }
}
