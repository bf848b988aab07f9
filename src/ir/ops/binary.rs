//! Operations on two operands: one row each.
//!
//! Invariant: as in [`super::unary`]; both operands have the same type. Must not know graphs.

use super::lanes::{BoolLane, FloatLane, IntLane, widened2};
use super::rows::BinaryTraced::{Compared, Floats, Logical, Numbers, Operator};
use super::rows::{
    ANY, BITS, BinaryCuda, BinaryRange, BinaryRow, BinaryText, FLOATS, INTS, LastBit, NUMBERS, Tight, Typed,
};
use super::types::Ty;
use super::{Lanes2, Tests, lane};
use serde::{Deserialize, Serialize};

/// The float32 lane: the one of float64 rounded once, or that of any float.
macro_rules! single_lane {
    ($lanes:ident, $op:ident; $wide:expr; ) => {
        $lanes.run(|a: f32, b: f32| widened2(a, b, $wide))
    };
    ($lanes:ident, $op:ident; ; $float:expr) => {
        $lanes.run($float)
    };
    ($lanes:ident, $op:ident; ;) => {
        panic!("{:?} from floats to a float", $op)
    };
}

/// `float` is the lane of any float, rounded separately. `wide` is one, too, but masks' float32 is float64's rounded
/// once. `int` is the lane of any int, `bool` that of truth values, `test` that of a comparison.
macro_rules! binary_ops {
    ($( $(#[$doc:meta])* $op:ident {
        $(float: $float:expr,)?
        $(wide: $wide:expr,)?
        $(int: $int:expr,)?
        $(bool: $bool:expr,)?
        $(test: $test:expr,)?
        row: $row:expr,
    } )*) => {
        /// Operations on two operands of one type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[allow(missing_docs)]
        pub enum BinaryOp {
            $( $(#[$doc])* $op, )*
        }

        impl BinaryOp {
            /// All of them.
            pub const ALL: &[BinaryOp] = &[$( BinaryOp::$op, )*];

            /// Its row.
            pub fn row(self) -> &'static BinaryRow {
                match self {
                    $( BinaryOp::$op => {
                        static ROW: BinaryRow = $row;
                        &ROW
                    } )*
                }
            }
        }

        /// From two floats to a float, each in the lane's own precision. Panics for operations without floats.
        #[inline(always)]
        pub fn float_binary<F: FloatLane, L: Lanes2<F>>(op: BinaryOp, lanes: L) -> L::Out {
            match op {
                $( BinaryOp::$op => lane!(lanes, op, "from floats to a float"; $($float)? $($wide)?), )*
            }
        }

        /// From two float32 to a float32 as masks have them: rounded correctly.
        #[inline(always)]
        pub fn single_binary<L: Lanes2<f32>>(op: BinaryOp, lanes: L) -> L::Out {
            match op {
                $( BinaryOp::$op => single_lane!(lanes, op; $($wide)?; $($float)?), )*
            }
        }

        /// From two ints to an int.
        #[inline(always)]
        pub fn int_binary<I: IntLane, L: Lanes2<I>>(op: BinaryOp, lanes: L) -> L::Out {
            match op {
                $( BinaryOp::$op => lane!(lanes, op, "from ints to an int"; $($int)?), )*
            }
        }

        /// From two truth values to one.
        #[inline(always)]
        pub fn bool_binary<B: BoolLane, L: Lanes2<B>>(op: BinaryOp, lanes: L) -> L::Out {
            match op {
                $( BinaryOp::$op => lane!(lanes, op, "of bools"; $($bool)?), )*
            }
        }

        /// Whether two numbers compare so.
        #[inline(always)]
        pub fn compare<T: Copy + PartialOrd, L: Tests<T>>(op: BinaryOp, lanes: L) -> L::Out {
            match op {
                $( BinaryOp::$op => lane!(lanes, op, "as a comparison"; $($test)?), )*
            }
        }
    };
}

binary_ops! {
    /// Any number.
    Add {
        float: |a, b| a + b,
        int: |a, b| a.wadd(b),
        row: BinaryRow {
            commutes: true,
            ..BinaryRow::infix(
                "add",
                ("+", Tight::Sum),
                Typed::Keeps(NUMBERS),
                BinaryRange::Sum,
                BinaryCuda::Rounded("+", "__fadd_rn", "__dadd_rn"),
                &[],
            )
        },
    }
    Sub {
        float: |a, b| a - b,
        int: |a, b| a.wsub(b),
        row: BinaryRow::infix(
            "sub",
            ("-", Tight::Sum),
            Typed::Keeps(NUMBERS),
            BinaryRange::Difference,
            BinaryCuda::Rounded("-", "__fsub_rn", "__dsub_rn"),
            &[],
        ),
    }
    Mul {
        float: |a, b| a * b,
        int: |a, b| a.wmul(b),
        row: BinaryRow {
            commutes: true,
            drawn_of_floats: true,
            ..BinaryRow::infix(
                "mul",
                ("*", Tight::Product),
                Typed::Keeps(NUMBERS),
                BinaryRange::Product,
                BinaryCuda::Rounded("*", "__fmul_rn", "__dmul_rn"),
                &[(Operator, &["mul", "multiply"])],
            )
        },
    }
    /// Float or Double: true division.
    Div {
        float: |a, b| a / b,
        row: BinaryRow {
            cost: 8,
            drawn_of_floats: true,
            ..BinaryRow::infix(
                "div",
                ("/", Tight::Product),
                Typed::Keeps(FLOATS),
                BinaryRange::Quotient,
                BinaryCuda::Rounded("/", "__fdiv_rn", "__ddiv_rn"),
                &[],
            )
        },
    }
    /// Any number; floors toward negative infinity, as in Python. Int division by zero gives 0.
    FloorDiv {
        float: |a, b| a.floor_div(b),
        int: |a, b| a.floor_div(b),
        row: BinaryRow {
            cost: 8,
            divides: true,
            drawn_of_ints: true,
            drawn_of_floats: true,
            ..BinaryRow::infix(
                "floor_div",
                ("//", Tight::Product),
                Typed::Keeps(NUMBERS),
                BinaryRange::FloorQuotient,
                BinaryCuda::Call("floor_div", "floor_div", "floor_div"),
                &[(Operator, &["floor_divide"])],
            )
        },
    }
    /// Int only; rounds toward zero (`div(rounding_mode="trunc")`). By zero gives 0.
    TruncDiv {
        int: |a, b| a.trunc_div(b),
        row: BinaryRow {
            cost: 8,
            divides: true,
            python: BinaryText::TruncDiv,
            drawn_of_ints: true,
            ..BinaryRow::infix(
                "trunc_div",
                ("", Tight::Atom),
                Typed::Keeps(INTS),
                BinaryRange::TruncQuotient,
                BinaryCuda::Call("trunc_div", "trunc_div", "trunc_div"),
                &[],
            )
        },
    }
    /// Any number; sign of the divisor, as in Python. Int modulo zero gives 0.
    Mod {
        float: |a, b| a.floor_mod(b),
        int: |a, b| a.floor_mod(b),
        row: BinaryRow {
            cost: 8,
            divides: true,
            drawn_of_ints: true,
            drawn_of_floats: true,
            ..BinaryRow::infix(
                "mod",
                ("%", Tight::Product),
                Typed::Keeps(NUMBERS),
                BinaryRange::Modulo,
                BinaryCuda::Call("floor_mod", "floor_mod", "floor_mod"),
                &[(Operator, &["remainder"])],
            )
        },
    }
    /// Any number; sign of the dividend, as `torch.fmod`. Int modulo zero gives 0.
    Fmod {
        float: |a, b| a.fmod(b),
        int: |a, b| a.fmod(b),
        row: BinaryRow {
            cost: 8,
            divides: true,
            python: BinaryText::Function("fmod", true),
            drawn_of_ints: true,
            drawn_of_floats: true,
            ..BinaryRow::infix(
                "fmod",
                ("", Tight::Atom),
                Typed::Keeps(NUMBERS),
                BinaryRange::Remainder,
                BinaryCuda::Call("trunc_mod", "fmodf", "fmod"),
                &[],
            )
        },
    }
    /// Any number. An Int to a negative power keeps what truncation leaves of it.
    Pow {
        wide: |a, b| a.pow(b),
        int: |a, b| a.pow(b),
        row: BinaryRow {
            cost: 40,
            last_bit: LastBit::Library,
            drawn_of_ints: true,
            drawn_of_floats: true,
            ..BinaryRow::infix(
                "pow",
                ("**", Tight::Power),
                Typed::Keeps(NUMBERS),
                BinaryRange::Unknown,
                BinaryCuda::Call("int_pow", "powf", "pow"),
                &[(Operator, &["pow"])],
            )
        },
    }
    /// Float or Double.
    Atan2 {
        wide: |a, b| a.atan2(b),
        row: BinaryRow {
            cost: 40,
            python: BinaryText::Function("atan2", false),
            last_bit: LastBit::Library,
            drawn_of_floats: true,
            ..BinaryRow::infix(
                "atan2",
                ("", Tight::Atom),
                Typed::Keeps(FLOATS),
                BinaryRange::Unknown,
                BinaryCuda::Call("atan2f", "atan2f", "atan2"),
                &[(Floats, &["atan2", "arctan2"])],
            )
        },
    }
    /// Any number; NaN propagates, as torch.minimum does.
    Min {
        float: |a, b| a.least(b),
        int: |a, b| a.min(b),
        row: BinaryRow {
            python: BinaryText::Bound("max", "minimum"),
            commutes: true,
            ..BinaryRow::infix(
                "min",
                ("", Tight::Atom),
                Typed::Keeps(NUMBERS),
                BinaryRange::Least,
                BinaryCuda::Call("min", "nan_min", "nan_min"),
                &[(Numbers, &["minimum"])],
            )
        },
    }
    Max {
        float: |a, b| a.greatest(b),
        int: |a, b| a.max(b),
        row: BinaryRow {
            python: BinaryText::Bound("min", "maximum"),
            commutes: true,
            ..BinaryRow::infix(
                "max",
                ("", Tight::Atom),
                Typed::Keeps(NUMBERS),
                BinaryRange::Greatest,
                BinaryCuda::Call("max", "nan_max", "nan_max"),
                &[(Numbers, &["maximum"])],
            )
        },
    }
    /// Float or Double: the value as Max and Min give it, `x.clamp(min=b)` and `x.clamp(max=b)`. Their gradient goes to the
    /// first operand alone, and nowhere at the bound, where Max and Min halve it.
    ClampMin {
        float: |a, b| a.greatest(b),
        row: BinaryRow {
            python: BinaryText::Clamp("min"),
            drawn_of_floats: true,
            ..BinaryRow::infix(
                "clamp_min",
                ("", Tight::Atom),
                Typed::Keeps(FLOATS),
                BinaryRange::Greatest,
                BinaryCuda::Call("nan_max", "nan_max", "nan_max"),
                &[],
            )
        },
    }
    ClampMax {
        float: |a, b| a.least(b),
        row: BinaryRow {
            python: BinaryText::Clamp("max"),
            drawn_of_floats: true,
            ..BinaryRow::infix(
                "clamp_max",
                ("", Tight::Atom),
                Typed::Keeps(FLOATS),
                BinaryRange::Least,
                BinaryCuda::Call("nan_min", "nan_min", "nan_min"),
                &[],
            )
        },
    }
    /// Bool: logical. Int: bitwise.
    And {
        int: |a, b| a & b,
        bool: |a, b| a & b,
        row: BinaryRow {
            commutes: true,
            ..BinaryRow::infix(
                "and",
                ("&", Tight::And),
                Typed::Keeps(BITS),
                BinaryRange::And,
                BinaryCuda::Logic("&&", "&"),
                &[(Logical, &["logical_and"]), (Operator, &["bitwise_and"])],
            )
        },
    }
    Or {
        int: |a, b| a | b,
        bool: |a, b| a | b,
        row: BinaryRow {
            commutes: true,
            ..BinaryRow::infix(
                "or",
                ("|", Tight::Or),
                Typed::Keeps(BITS),
                BinaryRange::Or,
                BinaryCuda::Logic("||", "|"),
                &[(Logical, &["logical_or"]), (Operator, &["bitwise_or"])],
            )
        },
    }
    Xor {
        int: |a, b| a ^ b,
        bool: |a, b| a ^ b,
        row: BinaryRow {
            commutes: true,
            ..BinaryRow::infix(
                "xor",
                ("^", Tight::Xor),
                Typed::Keeps(BITS),
                BinaryRange::Xor,
                BinaryCuda::Logic("!=", "^"),
                &[(Logical, &["logical_xor"]), (Operator, &["bitwise_xor"])],
            )
        },
    }
    /// Int only. An amount outside 0..=63 gives 0.
    Shl {
        int: |a, b| a.shl(b),
        row: BinaryRow {
            drawn_of_ints: true,
            ..BinaryRow::infix(
                "shl",
                ("<<", Tight::Shift),
                Typed::Keeps(INTS),
                BinaryRange::ShiftLeft,
                BinaryCuda::Call("shift_left", "shift_left", "shift_left"),
                &[(Operator, &["bitwise_left_shift"])],
            )
        },
    }
    /// Int only. An amount outside 0..=63 leaves only the sign: 0 or -1.
    Shr {
        int: |a, b| a.shr(b),
        row: BinaryRow {
            drawn_of_ints: true,
            ..BinaryRow::infix(
                "shr",
                (">>", Tight::Shift),
                Typed::Keeps(INTS),
                BinaryRange::ShiftRight,
                BinaryCuda::Call("shift_right", "shift_right", "shift_right"),
                &[(Operator, &["bitwise_right_shift"])],
            )
        },
    }
    /// Any type, to Bool.
    Eq {
        bool: |a, b| a.same(b),
        test: |a, b| a == b,
        row: BinaryRow {
            commutes: true,
            ..BinaryRow::comparison("eq", "==", ANY, BinaryRange::Equal, &[(Compared, &["eq"])])
        },
    }
    Ne {
        bool: |a, b| a ^ b,
        test: |a, b| a != b,
        row: BinaryRow {
            commutes: true,
            ..BinaryRow::comparison("ne", "!=", ANY, BinaryRange::NotEqual, &[(Compared, &["ne", "not_equal"])])
        },
    }
    /// Any number, to Bool.
    Lt {
        test: |a, b| a < b,
        row: BinaryRow::comparison("lt", "<", NUMBERS, BinaryRange::Less, &[(Compared, &["lt", "less"])]),
    }
    Le {
        test: |a, b| a <= b,
        row: BinaryRow::comparison("le", "<=", NUMBERS, BinaryRange::LessEqual, &[(Compared, &["le", "less_equal"])]),
    }
    Gt {
        test: |a, b| a > b,
        row: BinaryRow::comparison("gt", ">", NUMBERS, BinaryRange::Greater, &[(Compared, &["gt", "greater"])]),
    }
    Ge {
        test: |a, b| a >= b,
        row: BinaryRow::comparison("ge", ">=", NUMBERS, BinaryRange::GreaterEqual, &[(Compared, &["ge", "greater_equal"])]),
    }
}

impl BinaryOp {
    /// Whether the result is Bool for all operands.
    pub fn is_comparison(self) -> bool {
        matches!(self.row().typed, Typed::To(Ty::Bool, _))
    }

    /// Whether operands may be swapped.
    pub fn is_commutative(self) -> bool {
        self.row().commutes
    }
}
