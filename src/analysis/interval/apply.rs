//! What one operation makes of what its operands can be.
//!
//! Invariant: sound for every operation, in its own precision. Must not know programs or boxes beyond their extents.

use super::{Cells, Floats, Ints, Truth, Value};
use crate::base::DType;
use crate::language::graph::{BinaryOp, UnaryOp};
use half::{bf16, f16};

/// One operand; floats are float32 where `single`.
pub(super) fn unary(op: UnaryOp, a: &Value, cells: &Cells, single: bool) -> Value {
    match (op, a) {
        (UnaryOp::Not, Value::Bool(t)) => Value::Bool(t.not()),
        (UnaryOp::Not, Value::Int(i)) => Value::Int(i.not(cells)),
        (UnaryOp::Neg, Value::Int(i)) => Value::Int(i.neg()),
        (UnaryOp::Abs, Value::Int(i)) => Value::Int(i.abs()),
        (UnaryOp::As(dtype), Value::Int(i)) => Value::Int(i.stored_as(stored(dtype))),
        (UnaryOp::ToFloat, Value::Int(i)) => {
            // in one rounding
            Value::Float(Floats::range(f64::from(i.lo as f32), f64::from(i.hi as f32)))
        }
        (UnaryOp::ToDouble, Value::Int(i)) => Value::Float(Floats::range(i.lo as f64, i.hi as f64)),
        (UnaryOp::ToFloat | UnaryOp::ToDouble, Value::Bool(t)) => {
            Value::Float(Floats::range(f64::from(u8::from(!t.can_false)), f64::from(u8::from(t.can_true))))
        }
        (UnaryOp::ToInt, Value::Bool(t)) => Value::Int(Ints::range(i64::from(!t.can_false), i64::from(t.can_true))),
        (UnaryOp::ToInt, Value::Float(f)) => Value::Int(float_to_int(if single { f.single() } else { *f })),
        (UnaryOp::ToInt32, Value::Float(f)) => {
            let f = if single { f.single() } else { *f };
            let fits = f.lo >= f64::from(i32::MIN) && f.hi <= f64::from(i32::MAX) && f.lo <= f.hi && !f.nan;
            let (least, most) = stored(DType::I32);
            Value::Int(if fits { Ints::range(f.lo as i64, f.hi as i64) } else { Ints::range(least, most) })
        }
        (UnaryOp::ToBool, Value::Int(i)) => Value::Bool(i.equals(Ints::constant(0), cells).not()),
        (UnaryOp::ToBool, Value::Float(f)) => Value::Bool(if single { f.single() } else { *f }.to_bool()),
        _ if single => Value::Float(float_unary(op, a.float().single(), true).single()),
        _ => Value::Float(float_unary(op, a.float(), false)),
    }
}

/// What an int dtype holds.
fn stored(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::U8 => (0, 255),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

fn float_to_int(f: Floats) -> Ints {
    if f.lo > f.hi {
        return Ints::ANY;
    }
    // beyond these the cast gives the smallest int
    let inside = f.lo >= -(2f64.powi(62)) && f.hi <= 2f64.powi(62);
    if f.nan || !inside { Ints::ANY } else { Ints::range(f.lo as i64, f.hi as i64) }
}

fn float_unary(op: UnaryOp, a: Floats, single: bool) -> Floats {
    use UnaryOp::*;
    const INF: f64 = f64::INFINITY;
    let any = (-INF, INF);
    match op {
        Neg => a.neg(),
        Abs => a.abs(),
        Floor => a.step(f64::floor),
        Ceil => a.step(f64::ceil),
        Round => a.step(f64::round_ties_even),
        Trunc => a.step(f64::trunc),
        Exp => a.increasing(f64::exp, (0.0, INF)),
        Exp2 => a.increasing(f64::exp2, (0.0, INF)),
        Expm1 => a.increasing(f64::exp_m1, (-1.0, INF)),
        Log => a.increasing(f64::ln, any),
        Log2 => a.increasing(f64::log2, any),
        Log1p => a.increasing(f64::ln_1p, any),
        Sqrt => a.increasing(f64::sqrt, (0.0, INF)),
        Tanh | TanhApprox => a.increasing(f64::tanh, (-1.0, 1.0)),
        // three roundings of float32 lie further from the exact value than the one that others have
        Sigmoid if single => Floats { lo: 0.0, hi: 1.0, nan: a.nan },
        Sigmoid => a.increasing(|x| 1.0 / (1.0 + (-x).exp()), (0.0, 1.0)),
        Erf => Floats { lo: -1.0, hi: 1.0, nan: a.nan },
        Sin | Cos => Floats { lo: -1.0, hi: 1.0, nan: true },
        Rsqrt => Floats { lo: -INF, hi: INF, nan: true },
        As(DType::F16) => a.step(|x| f64::from(f16::from_f32(x as f32).to_f32())),
        As(DType::BF16) => a.step(|x| f64::from(bf16::from_f32(x as f32).to_f32())),
        ToFloat | ToDouble | As(DType::F32) => a,
        Not | ToInt | ToInt32 | ToBool | As(_) => Floats::ANY,
    }
}

/// `x op x` for one and the same node.
pub(super) fn same_operands(op: BinaryOp, a: &Value, cells: &Cells, single: bool) -> Value {
    use BinaryOp::*;
    match (op, a) {
        (And | Or, _) => *a,
        (Min | Max, _) if single => a.single(),
        (Min | Max, _) => *a,
        (Sub | Xor, Value::Int(_)) => Value::Int(Ints::constant(0)),
        (Xor, Value::Bool(_)) => Value::Bool(Truth::FALSE),
        (Eq | Le | Ge, Value::Int(_) | Value::Bool(_)) => Value::Bool(Truth::TRUE),
        (Ne | Lt | Gt, Value::Int(_) | Value::Bool(_)) => Value::Bool(Truth::FALSE),
        _ => binary(op, a, a, cells, single),
    }
}

/// Two operands; floats are float32 where `single`.
pub(super) fn binary(op: BinaryOp, a: &Value, b: &Value, cells: &Cells, single: bool) -> Value {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Value::Bool(bool_binary(op, *a, *b)),
        (Value::Int(a), Value::Int(b)) => int_binary(op, *a, *b, cells),
        _ if single => float_binary(op, a.float().single(), b.float().single()).single(),
        _ => float_binary(op, a.float(), b.float()),
    }
}

fn bool_binary(op: BinaryOp, a: Truth, b: Truth) -> Truth {
    use BinaryOp::*;
    match op {
        And => a.and(b),
        Or => a.or(b),
        Xor | Ne => a.xor(b),
        Eq => a.xor(b).not(),
        Add | Sub | Mul | Div | FloorDiv | TruncDiv | Mod | Fmod | Pow | Atan2 | Min | Max | Shl | Shr => Truth::BOTH,
        Lt | Le | Gt | Ge => Truth::BOTH,
    }
}

fn int_binary(op: BinaryOp, a: Ints, b: Ints, cells: &Cells) -> Value {
    use BinaryOp::*;
    Value::Int(match op {
        Add => a.add(b, cells),
        Sub => a.sub(b, cells),
        Mul => a.mul(b, cells),
        FloorDiv => a.floor_div(b, cells),
        TruncDiv => a.trunc_div(b, cells),
        Mod => a.modulo(b, cells),
        Fmod => a.fmod(b, cells),
        Min => a.min(b, cells),
        Max => a.max(b, cells),
        And => a.and(b, cells),
        Or => a.or(b),
        Xor => a.xor(b),
        Shl => a.shl(b, cells),
        Shr => a.shr(b, cells),
        Eq => return Value::Bool(a.equals(b, cells)),
        Ne => return Value::Bool(a.equals(b, cells).not()),
        Lt => return Value::Bool(a.lt(b, cells)),
        Le => return Value::Bool(a.le(b, cells)),
        Gt => return Value::Bool(b.lt(a, cells)),
        Ge => return Value::Bool(b.le(a, cells)),
        Div | Pow | Atan2 => Ints::ANY,
    })
}

fn float_binary(op: BinaryOp, a: Floats, b: Floats) -> Value {
    use BinaryOp::*;
    Value::Float(match op {
        Add => a.add(b),
        Sub => a.sub(b),
        Mul => a.mul(b),
        Div => a.div(b),
        Min => a.min(b),
        Max => a.max(b),
        Eq => return Value::Bool(a.equals(b)),
        Ne => return Value::Bool(a.equals(b).not()),
        Lt => return Value::Bool(a.lt(b)),
        Le => return Value::Bool(a.le(b)),
        Gt => return Value::Bool(b.lt(a)),
        Ge => return Value::Bool(b.le(a)),
        FloorDiv | TruncDiv | Mod | Fmod | Pow | Atan2 | And | Or | Xor | Shl | Shr => Floats::ANY,
    })
}
