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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::graph::UnaryOp::*;

    const CELLS: Cells = Cells { b: (0, 0), h: (0, 0), q: (0, 9), kv: (0, 9) };

    fn ints(lo: i64, hi: i64) -> Value {
        Value::Int(Ints::range(lo, hi))
    }

    fn floats(lo: f64, hi: f64) -> Value {
        Value::Float(Floats::range(lo, hi))
    }

    fn both(op: UnaryOp, a: Value) -> [Value; 2] {
        [true, false].map(|single| unary(op, &a, &CELLS, single))
    }

    #[test]
    fn casts_keep_the_ends() {
        assert_eq!(both(ToInt, floats(-1.5, 2.5)), [ints(-1, 2); 2]);
        assert_eq!(both(ToInt32, floats(-1.5, 2.5)), [ints(-1, 2); 2]);
        assert_eq!(unary(ToFloat, &ints(16_777_217, 16_777_219), &CELLS, true), floats(16_777_216.0, 16_777_220.0));
        assert_eq!(unary(ToDouble, &ints(16_777_217, 16_777_219), &CELLS, false), floats(16_777_217.0, 16_777_219.0));
        for op in [ToFloat, ToDouble] {
            let of = |truth| unary(op, &Value::Bool(truth), &CELLS, true);
            assert_eq!(
                [of(Truth::TRUE), of(Truth::FALSE), of(Truth::BOTH)],
                [floats(1.0, 1.0), floats(0.0, 0.0), floats(0.0, 1.0)]
            );
        }
        let of = |truth| unary(ToInt, &Value::Bool(truth), &CELLS, true);
        assert_eq!([of(Truth::TRUE), of(Truth::FALSE), of(Truth::BOTH)], [ints(1, 1), ints(0, 0), ints(0, 1)]);
        let of = |value| unary(ToBool, &value, &CELLS, true);
        assert_eq!(
            [of(ints(1, 3)), of(ints(0, 0)), of(ints(-1, 1))],
            [Truth::TRUE, Truth::FALSE, Truth::BOTH].map(Value::Bool)
        );
        assert_eq!([of(floats(0.5, 3.0)), of(floats(0.0, 0.0))], [Truth::TRUE, Truth::FALSE].map(Value::Bool));
        // half a float32 of the smallest is zero
        let least = floats(1e-46, 1e-46);
        assert_eq!(both(ToBool, least), [Truth::FALSE, Truth::TRUE].map(Value::Bool));
        // float32 rounds up to the next whole number
        let near = floats(0.999_999_99, 0.999_999_99);
        assert_eq!((both(ToInt, near), both(ToInt32, near)), ([ints(1, 1), ints(0, 0)], [ints(1, 1), ints(0, 0)]));
    }

    #[test]
    fn what_an_int_cannot_hold_may_be_any() {
        let any = Value::Int(Ints::ANY);
        let any32 = ints(i32::MIN.into(), i32::MAX.into());
        let nan = Value::Float(Floats { lo: 1.0, hi: 2.0, nan: true });
        let only_nan = Value::Float(Floats::constant(f64::NAN));
        for none in [nan, only_nan] {
            assert_eq!((unary(ToInt, &none, &CELLS, false), unary(ToInt32, &none, &CELLS, false)), (any, any32));
        }
        let edge = 2f64.powi(62);
        assert_eq!(unary(ToInt, &floats(-edge, edge), &CELLS, false), ints(-(1 << 62), 1 << 62));
        for beyond in [floats(0.0, 2.0 * edge), floats(-2.0 * edge, 0.0)] {
            assert_eq!(unary(ToInt, &beyond, &CELLS, false), any);
        }
        let (least, most) = (f64::from(i32::MIN), f64::from(i32::MAX));
        assert_eq!(unary(ToInt32, &floats(least, most), &CELLS, false), any32);
        assert_eq!(unary(ToInt32, &floats(least, 0.0), &CELLS, false), ints(i32::MIN.into(), 0));
        assert_eq!(unary(ToInt32, &floats(0.0, most), &CELLS, false), ints(0, i32::MAX.into()));
        for beyond in [floats(0.0, most + 1.0), floats(least - 1.0, 0.0)] {
            assert_eq!(unary(ToInt32, &beyond, &CELLS, false), any32);
        }
        // what an int dtype holds is kept, other values wrap around
        let stored = [
            (DType::U8, 0, 255),
            (DType::I8, -128, 127),
            (DType::I16, -32_768, 32_767),
            (DType::I32, i32::MIN.into(), i32::MAX.into()),
        ];
        for (dtype, least, most) in stored {
            assert_eq!(unary(As(dtype), &ints(least, most), &CELLS, false), ints(least, most));
            assert_eq!(unary(As(dtype), &ints(least + 1, most - 1), &CELLS, false), ints(least + 1, most - 1));
            for value in [ints(least, most + 1), ints(least - 1, most)] {
                assert_eq!(unary(As(dtype), &value, &CELLS, false), ints(least, most), "{dtype}");
            }
        }
        assert_eq!(unary(As(DType::I64), &ints(i64::MIN, 5), &CELLS, false), ints(i64::MIN, 5));
    }

    #[test]
    fn functions_have_their_own_ranges() {
        // 2049 is between two float16 numbers
        assert_eq!(unary(As(DType::F16), &floats(2049.0, 2051.0), &CELLS, true), floats(2048.0, 2052.0));
        assert_eq!(unary(As(DType::BF16), &floats(257.0, 259.0), &CELLS, true), floats(256.0, 260.0));
        assert_eq!(unary(As(DType::F32), &floats(257.0, 259.0), &CELLS, true), floats(257.0, 259.0));
        assert_eq!(both(Floor, floats(-1.5, 2.5)), [floats(-2.0, 2.0); 2]);
        assert_eq!(both(Neg, floats(-1.5, 2.5)), [floats(-2.5, 1.5); 2]);
        assert_eq!(both(Abs, floats(-1.5, 2.5)), [floats(0.0, 2.5); 2]);
        assert_eq!((both(Neg, ints(-1, 2)), both(Abs, ints(-3, 2))), ([ints(-2, 1); 2], [ints(0, 3); 2]));
        assert_eq!(both(Not, Value::Bool(Truth::TRUE)), [Value::Bool(Truth::FALSE); 2]);
        assert_eq!(both(Not, ints(-3, 2)), [ints(-3, 2); 2]);
        // a sigmoid in float32 has several roundings
        assert_eq!(unary(Sigmoid, &floats(0.0, 1.0), &CELLS, true), floats(0.0, 1.0));
        let Value::Float(wide) = unary(Sigmoid, &floats(0.0, 1.0), &CELLS, false) else { panic!("a float") };
        assert!((wide.lo - 0.5).abs() < 1e-11 && (wide.hi - 0.731_058_578_630_004_9).abs() < 1e-11);
        assert_eq!(both(Sin, floats(0.0, 0.1)).map(|v| v.float().nan), [true; 2]);
    }

    #[test]
    fn an_operand_beside_itself_gives_what_it_must() {
        use BinaryOp::*;
        let of = |op, a: Value| same_operands(op, &a, &CELLS, false);
        let (t, f) = (Value::Bool(Truth::TRUE), Value::Bool(Truth::FALSE));
        for a in [ints(-2, 5), Value::Bool(Truth::BOTH)] {
            assert_eq!([And, Or].map(|op| of(op, a)), [a; 2]);
            assert_eq!([Eq, Le, Ge].map(|op| of(op, a)), [t; 3]);
            assert_eq!([Ne, Lt, Gt].map(|op| of(op, a)), [f; 3]);
        }
        assert_eq!((of(Sub, ints(-2, 5)), of(Xor, ints(-2, 5))), (ints(0, 0), ints(0, 0)));
        assert_eq!(of(Xor, Value::Bool(Truth::BOTH)), f);
        assert_eq!([Min, Max, ClampMin, ClampMax].map(|op| of(op, ints(-2, 5))), [ints(-2, 5); 4]);
        let index = Value::Int(Ints::of_form(super::super::Form { q: 1, kv: 0, c: 0 }, &CELLS));
        assert_eq!([Min, Max].map(|op| of(op, index)), [index; 2]);
        let float = floats(257.000_000_01, 300.0);
        assert_eq!((of(Min, float), same_operands(Max, &float, &CELLS, true)), (float, floats(257.0, 300.0)));
        // a NaN is not itself, and infinity less infinity is none
        let both = Value::Bool(Truth::BOTH);
        assert_eq!([Eq, Ge, Lt].map(|op| of(op, floats(1.0, 2.0))), [both; 3]);
        assert_eq!(of(Sub, floats(1.0, 2.0)), floats(-1.0, 1.0));
        assert_eq!(of(Mul, ints(-2, 5)), ints(-10, 25));
    }

    #[test]
    fn comparisons_and_bits_of_truths_are_decided() {
        use BinaryOp::*;
        let of = |op, a: Truth, b: Truth| bool_binary(op, a, b);
        let (t, f, both) = (Truth::TRUE, Truth::FALSE, Truth::BOTH);
        assert_eq!([of(And, t, t), of(And, t, f), of(And, f, both), of(And, t, both)], [t, f, f, both]);
        assert_eq!([of(Or, f, f), of(Or, t, f), of(Or, t, both), of(Or, f, both)], [f, t, t, both]);
        assert_eq!([of(Xor, t, f), of(Xor, t, t), of(Ne, t, f), of(Eq, t, t), of(Eq, t, f)], [t, f, t, t, f]);
        let int = |op, a: (i64, i64), b: (i64, i64)| binary(op, &ints(a.0, a.1), &ints(b.0, b.1), &CELLS, false);
        let float = |op, a: (i64, i64), b: (i64, i64)| {
            let of = |(low, high): (i64, i64)| floats(low as f64, high as f64);
            binary(op, &of(a), &of(b), &CELLS, true)
        };
        let truths = |op| {
            let pairs = [((0, 1), (2, 3)), ((2, 3), (2, 3)), ((3, 4), (0, 2))];
            (pairs.map(|(a, b)| int(op, a, b)), pairs.map(|(a, b)| float(op, a, b)))
        };
        let both_are = |all: [Truth; 3]| (all.map(Value::Bool), all.map(Value::Bool));
        assert_eq!(truths(Lt), both_are([t, both, f]));
        assert_eq!(truths(Gt), both_are([f, both, t]));
        assert_eq!(truths(Le), both_are([t, both, f]));
        assert_eq!(truths(Ge), both_are([f, both, t]));
        assert_eq!(truths(Eq), both_are([f, both, f]));
        assert_eq!(truths(Ne), both_are([t, both, t]));
    }

    #[test]
    fn results_in_float32_are_rounded_to_it() {
        use BinaryOp::*;
        let (a, b) = (floats(16_777_216.0, 16_777_216.0), floats(1.0, 2.0));
        let of = |single| binary(Add, &a, &b, &CELLS, single);
        assert_eq!((of(true), of(false)), (floats(16_777_216.0, 16_777_218.0), floats(16_777_217.0, 16_777_218.0)));
        let (a, b) = (floats(3.0, 6.0), floats(2.0, 4.0));
        let of = |op| binary(op, &a, &b, &CELLS, false);
        assert_eq!([Sub, Mul, Div].map(of), [floats(-1.0, 4.0), floats(6.0, 24.0), floats(0.75, 3.0)]);
        assert_eq!([Min, Max].map(of), [floats(2.0, 4.0), floats(3.0, 6.0)]);
        let of = |op| binary(op, &ints(3, 6), &ints(2, 4), &CELLS, false);
        assert_eq!([Add, Sub, Mul, FloorDiv].map(of), [ints(5, 10), ints(-1, 4), ints(6, 24), ints(0, 3)]);
        assert_eq!([Min, Max].map(of), [ints(2, 4), ints(3, 6)]);
    }
}
