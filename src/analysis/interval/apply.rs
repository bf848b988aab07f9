//! Abstract values of one operation from the abstract values of its operands.
//!
//! Invariant: sound for every operation, in its own precision. Must not know programs or boxes beyond their extents.

use super::{Cells, Floats, Ints, Truth, Value};
use crate::base::DType;
use crate::ir::graph::{BinaryOp, UnaryOp};
use crate::ir::ops::rows::{BinaryRange, UnaryRange};
use half::{bf16, f16};

/// One operand; floats are float32 where `single`.
pub(super) fn unary(op: UnaryOp, a: &Value, cells: &Cells, single: bool) -> Value {
    use UnaryRange::{Inverted, Negated, Size, Stored, ToBool, ToDouble, ToFloat, ToInt, ToInt32};
    match (op.row().range, a) {
        (Inverted, Value::Bool(t)) => Value::Bool(t.not()),
        (Inverted, Value::Int(i)) => Value::Int(i.not(cells)),
        (Negated, Value::Int(i)) => Value::Int(i.neg()),
        (Size, Value::Int(i)) => Value::Int(i.abs()),
        (Stored, Value::Int(i)) => Value::Int(i.stored_as(op.keeps().map_or((i64::MIN, i64::MAX), stored))),
        (ToFloat, Value::Int(i)) => {
            // in one rounding
            Value::Float(Floats::range(f64::from(i.lo as f32), f64::from(i.hi as f32)))
        }
        (ToDouble, Value::Int(i)) => Value::Float(Floats::range(i.lo as f64, i.hi as f64)),
        (ToFloat | ToDouble, Value::Bool(t)) => {
            Value::Float(Floats::range(f64::from(u8::from(!t.can_false)), f64::from(u8::from(t.can_true))))
        }
        (ToInt, Value::Bool(t)) => Value::Int(Ints::range(i64::from(!t.can_false), i64::from(t.can_true))),
        (ToInt, Value::Float(f)) => Value::Int(float_to_int(if single { f.single() } else { *f })),
        (ToInt32, Value::Float(f)) => {
            let f = if single { f.single() } else { *f };
            let fits = f.lo >= f64::from(i32::MIN) && f.hi <= f64::from(i32::MAX) && f.lo <= f.hi && !f.nan;
            let (least, most) = stored(DType::I32);
            Value::Int(if fits { Ints::range(f.lo as i64, f.hi as i64) } else { Ints::range(least, most) })
        }
        (ToBool, Value::Int(i)) => Value::Bool(i.equals(Ints::constant(0), cells).not()),
        (ToBool, Value::Float(f)) => Value::Bool(if single { f.single() } else { *f }.to_bool()),
        _ if single => Value::Float(float_unary(op, a.float().single(), true).single()),
        _ => Value::Float(float_unary(op, a.float(), false)),
    }
}

/// The range of an int dtype.
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
    match op.row().range {
        UnaryRange::Negated => a.neg(),
        UnaryRange::Size => a.abs(),
        UnaryRange::Step(f) => a.step(f),
        UnaryRange::Rising(f, bounds) => a.increasing(f, bounds),
        // several float32 roundings can be further from the exact value than a single one
        UnaryRange::RisingInDouble(_, (lo, hi)) if single => Floats { lo, hi, nan: a.nan },
        UnaryRange::RisingInDouble(f, bounds) => a.increasing(f, bounds),
        UnaryRange::Within(lo, hi) => Floats { lo, hi, nan: a.nan },
        UnaryRange::WithinOrNan(lo, hi) => Floats { lo, hi, nan: true },
        UnaryRange::Stored => match op.keeps() {
            Some(DType::F16) => a.step(|x| f64::from(f16::from_f32(x as f32).to_f32())),
            Some(DType::BF16) => a.step(|x| f64::from(bf16::from_f32(x as f32).to_f32())),
            Some(DType::F32) => a,
            _ => Floats::ANY,
        },
        UnaryRange::ToFloat | UnaryRange::ToDouble => a,
        UnaryRange::Inverted | UnaryRange::ToInt | UnaryRange::ToInt32 | UnaryRange::ToBool => Floats::ANY,
    }
}

/// `x op x` for one and the same node.
pub(super) fn same_operands(op: BinaryOp, a: &Value, cells: &Cells, single: bool) -> Value {
    use BinaryOp::*;
    match (op, a) {
        (And | Or, _) => *a,
        (Min | Max | ClampMin | ClampMax, _) if single => a.single(),
        (Min | Max | ClampMin | ClampMax, _) => *a,
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
    use BinaryRange::*;
    match op.row().range {
        And => a.and(b),
        Or => a.or(b),
        Xor | NotEqual => a.xor(b),
        Equal => a.xor(b).not(),
        Sum | Difference | Product | Quotient | FloorQuotient | TruncQuotient | Modulo | Remainder => Truth::BOTH,
        Least | Greatest | ShiftLeft | ShiftRight | Less | LessEqual | Greater | GreaterEqual => Truth::BOTH,
        Unknown => Truth::BOTH,
    }
}

fn int_binary(op: BinaryOp, a: Ints, b: Ints, cells: &Cells) -> Value {
    use BinaryRange::*;
    Value::Int(match op.row().range {
        Sum => a.add(b, cells),
        Difference => a.sub(b, cells),
        Product => a.mul(b, cells),
        FloorQuotient => a.floor_div(b, cells),
        TruncQuotient => a.trunc_div(b, cells),
        Modulo => a.modulo(b, cells),
        Remainder => a.fmod(b, cells),
        Least => a.min(b, cells),
        Greatest => a.max(b, cells),
        And => a.and(b, cells),
        Or => a.or(b),
        Xor => a.xor(b),
        ShiftLeft => a.shl(b, cells),
        ShiftRight => a.shr(b, cells),
        Equal => return Value::Bool(a.equals(b, cells)),
        NotEqual => return Value::Bool(a.equals(b, cells).not()),
        Less => return Value::Bool(a.lt(b, cells)),
        LessEqual => return Value::Bool(a.le(b, cells)),
        Greater => return Value::Bool(b.lt(a, cells)),
        GreaterEqual => return Value::Bool(b.le(a, cells)),
        Quotient | Unknown => Ints::ANY,
    })
}

fn float_binary(op: BinaryOp, a: Floats, b: Floats) -> Value {
    use BinaryRange::*;
    Value::Float(match op.row().range {
        Sum => a.add(b),
        Difference => a.sub(b),
        Product => a.mul(b),
        Quotient => a.div(b),
        Least => a.min(b),
        Greatest => a.max(b),
        Equal => return Value::Bool(a.equals(b)),
        NotEqual => return Value::Bool(a.equals(b).not()),
        Less => return Value::Bool(a.lt(b)),
        LessEqual => return Value::Bool(a.le(b)),
        Greater => return Value::Bool(b.lt(a)),
        GreaterEqual => return Value::Bool(b.le(a)),
        FloorQuotient | TruncQuotient | Modulo | Remainder | And | Or | Xor => Floats::ANY,
        ShiftLeft | ShiftRight | Unknown => Floats::ANY,
    })
}
