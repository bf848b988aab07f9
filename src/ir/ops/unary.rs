//! Operations on one operand: one row each.
//!
//! Invariant: a row and, if the standard library lacks it, a function in [`super::lanes`] define an operation
//! completely; only its derivative is elsewhere, in `passes/derive`. Must not know graphs.

use super::lanes::{FloatLane, IntLane, widened};
use super::rows::{FLOATS, LastBit, NUMBERS, Typed, UnaryCuda, UnaryRange, UnaryRow, UnaryText};
use super::types::Ty;
use super::{Lanes, lane};
use crate::base::DType;
use serde::{Deserialize, Serialize};

const INF: f64 = f64::INFINITY;
const POSITIVE: (f64, f64) = (0.0, INF);
const ALL: (f64, f64) = (-INF, INF);

/// Dtypes that [`UnaryOp::As`] is for.
const STORED: [DType; 8] =
    [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32];

/// The float32 lane: its own function, the one of float64 rounded once, or that of any float.
macro_rules! single_lane {
    ($lanes:ident, $op:ident; $single:expr; $($rest:tt)*) => {
        $lanes.run($single)
    };
    ($lanes:ident, $op:ident; ; $wide:expr; ) => {
        $lanes.run(|x: f32| widened(x, $wide))
    };
    ($lanes:ident, $op:ident; ; ; $float:expr) => {
        $lanes.run($float)
    };
    ($lanes:ident, $op:ident; ; ;) => {
        panic!("{:?} from a float to a float", $op)
    };
}

/// The lane of float64 as a plain function: what depends on a dtype, or is nothing of floats, has none.
macro_rules! double_lane {
    ($dtype:ident; $($float:expr)?) => {{
        let _ = $dtype;
        None
    }};
    (; $float:expr) => {{
        let lane: fn(f64) -> f64 = $float;
        Some(lane)
    }};
    (;) => {
        None
    };
}

/// The operation itself, or that for each dtype.
macro_rules! variants {
    ($all:ident, $op:ident) => {
        $all.push(UnaryOp::$op)
    };
    ($all:ident, $op:ident, $dtype:ty) => {
        $all.extend(STORED.map(UnaryOp::$op))
    };
}

/// `float` is the lane of any float, rounded separately. `wide` is one, too, but masks' float32 is float64's rounded
/// once. `single` is masks' float32 if it is neither. `int` is the lane of any int.
macro_rules! unary_ops {
    ($( $(#[$doc:meta])* $op:ident $(($dtype:ident: $ty:ty))? {
        $(float: $float:expr,)?
        $(wide: $wide:expr,)?
        $(single: $single:expr,)?
        $(int: $int:expr,)?
        row: $row:expr,
    } )*) => {
        /// Operations on one operand. Float functions take and give Float or Double; casts are explicit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[allow(missing_docs)]
        pub enum UnaryOp {
            $( $(#[$doc])* $op $(($ty))?, )*
        }

        impl UnaryOp {
            /// Its row.
            pub fn row(self) -> &'static UnaryRow {
                match self {
                    $( UnaryOp::$op { .. } => {
                        static ROW: UnaryRow = $row;
                        &ROW
                    } )*
                }
            }

            /// All of them, with each dtype.
            #[allow(clippy::vec_init_then_push)] // the macro pushes one or several an op
            pub fn all() -> Vec<UnaryOp> {
                let mut all = Vec::new();
                $( variants!(all, $op $(, $ty)?); )*
                all
            }
        }

        /// From a float to a float, each in the lane's own precision. Panics for operations without floats.
        #[inline(always)]
        pub fn float_unary<F: FloatLane, L: Lanes<F>>(op: UnaryOp, lanes: L) -> L::Out {
            match op {
                $( UnaryOp::$op $(($dtype))? => lane!(lanes, op, "from a float to a float"; $($float)? $($wide)?), )*
            }
        }

        /// From a float32 to a float32 as masks have them: rounded correctly. PyTorch rounds `+ - * /` so, too; its vector
        /// libraries' functions err by up to a unit in the last place, which differs between processors.
        #[inline(always)]
        pub fn single_unary<L: Lanes<f32>>(op: UnaryOp, lanes: L) -> L::Out {
            match op {
                $( UnaryOp::$op $(($dtype))? => single_lane!(lanes, op; $($single)?; $($wide)?; $($float)?), )*
            }
        }

        /// The lane of float64 as a plain function; None for operations without floats, or those that depend on a
        /// dtype.
        pub fn double_function(op: UnaryOp) -> Option<fn(f64) -> f64> {
            match op {
                $( UnaryOp::$op $(($dtype))? => double_lane!($($dtype)?; $($float)? $($wide)?), )*
            }
        }

        /// From an int to an int.
        #[inline(always)]
        pub fn int_unary<I: IntLane, L: Lanes<I>>(op: UnaryOp, lanes: L) -> L::Out {
            match op {
                $( UnaryOp::$op $(($dtype))? => lane!(lanes, op, "from an int to an int"; $($int)?), )*
            }
        }
    };
}

unary_ops! {
    /// Int, Float or Double.
    Neg {
        float: |x| -x,
        int: |x| x.wneg(),
        row: UnaryRow {
            typed: Typed::Keeps(NUMBERS),
            python: UnaryText::Sign("-"),
            cuda: UnaryCuda::Sign("-"),
            ..UnaryRow::cast("neg", Typed::Stored, UnaryRange::Negated, LastBit::Same)
        },
    }
    /// Int, Float or Double.
    Abs {
        float: |x| x.abs(),
        int: |x| x.wabs(),
        row: UnaryRow {
            python: UnaryText::Function("abs"),
            ..UnaryRow::cast("abs", Typed::Keeps(NUMBERS), UnaryRange::Size, LastBit::Same)
        },
    }
    /// Bool: logical not. Int: bitwise not (`~x == -x - 1`).
    Not {
        int: |x| x.bitnot(),
        row: UnaryRow {
            python: UnaryText::Sign("~"),
            ..UnaryRow::cast("not", Typed::Keeps(&[Ty::Bool, Ty::Int]), UnaryRange::Inverted, LastBit::Same)
        },
    }
    Exp {
        wide: |x| x.exp(),
        row: UnaryRow::function("exp", UnaryCuda::OrFast("expf", "fast_exp"), &["exp"], UnaryRange::Rising(f64::exp, POSITIVE)),
    }
    Exp2 {
        wide: |x| x.exp2(),
        row: UnaryRow::function("exp2", UnaryCuda::OrFast("exp2f", "exp2_fast"), &["exp2"], UnaryRange::Rising(f64::exp2, POSITIVE)),
    }
    Log {
        wide: |x| x.ln(),
        row: UnaryRow::function("log", UnaryCuda::OrFast("logf", "fast_log"), &["log"], UnaryRange::Rising(f64::ln, ALL)),
    }
    Log2 {
        wide: |x| x.log2(),
        row: UnaryRow::function("log2", UnaryCuda::OrFast("log2f", "log2_fast"), &["log2"], UnaryRange::Rising(f64::log2, ALL)),
    }
    Log1p {
        wide: |x| x.ln_1p(),
        row: UnaryRow::function("log1p", UnaryCuda::Library("log1pf"), &["log1p"], UnaryRange::Rising(f64::ln_1p, ALL)),
    }
    Expm1 {
        wide: |x| x.exp_m1(),
        row: UnaryRow::function("expm1", UnaryCuda::Library("expm1f"), &["expm1"], UnaryRange::Rising(f64::exp_m1, (-1.0, INF))),
    }
    Sqrt {
        float: |x| x.sqrt(),
        row: UnaryRow {
            last_bit: LastBit::Same,
            ..UnaryRow::function("sqrt", UnaryCuda::Own, &["sqrt"], UnaryRange::Rising(f64::sqrt, POSITIVE))
        },
    }
    Rsqrt {
        float: |x| x.rsqrt(),
        row: UnaryRow {
            last_bit: LastBit::Composed,
            math: false,
            ..UnaryRow::function("rsqrt", UnaryCuda::Own, &["rsqrt"], UnaryRange::WithinOrNan(-INF, INF))
        },
    }
    Sin {
        wide: |x| x.sin(),
        row: UnaryRow::function("sin", UnaryCuda::Library("sinf"), &["sin"], UnaryRange::WithinOrNan(-1.0, 1.0)),
    }
    Cos {
        wide: |x| x.cos(),
        row: UnaryRow::function("cos", UnaryCuda::Library("cosf"), &["cos"], UnaryRange::WithinOrNan(-1.0, 1.0)),
    }
    Tanh {
        wide: |x| x.tanh(),
        row: UnaryRow::function("tanh", UnaryCuda::Own, &["tanh"], UnaryRange::Rising(f64::tanh, (-1.0, 1.0))),
    }
    /// tanh by the hardware's approximate instruction on the GPU; plain tanh elsewhere.
    TanhApprox {
        wide: |x| x.tanh(),
        row: UnaryRow {
            python: UnaryText::Function("tanh"),
            torch: None,
            math: false,
            ..UnaryRow::function("tanh_approx", UnaryCuda::Own, &[], UnaryRange::Rising(f64::tanh, (-1.0, 1.0)))
        },
    }
    /// PyTorch composes it, each step rounded.
    Sigmoid {
        float: |x| x.sigmoid(),
        single: |x| 1.0 / (1.0 + widened(-x, |x| x.exp())),
        row: UnaryRow {
            math: false,
            ..UnaryRow::function(
                "sigmoid",
                UnaryCuda::OrFast("sigmoid", "fast_sigmoid"),
                &["sigmoid", "expit"],
                UnaryRange::RisingInDouble(|x| 1.0 / (1.0 + (-x).exp()), (0.0, 1.0)),
            )
        },
    }
    Erf {
        wide: FloatLane::erf,
        row: UnaryRow::function("erf", UnaryCuda::Library("erff"), &["erf"], UnaryRange::Within(-1.0, 1.0)),
    }
    /// `exp(x * x) * erfc(x)`, which does not underflow.
    Erfcx {
        wide: FloatLane::erfcx,
        row: UnaryRow {
            python: UnaryText::Function("special.erfcx"),
            math: false,
            // in float32 it is infinite from -9.4 on, and a random graph of infinities tests little
            drawn: false,
            ..UnaryRow::function("erfcx", UnaryCuda::Library("erfcxf"), &["erfcx"], UnaryRange::WithinOrNan(0.0, INF))
        },
    }
    Asinh {
        wide: |x| x.asinh(),
        row: UnaryRow::function("asinh", UnaryCuda::Library("asinhf"), &["asinh", "arcsinh"], UnaryRange::Rising(f64::asinh, ALL)),
    }
    Sinh {
        wide: |x| x.sinh(),
        row: UnaryRow::function("sinh", UnaryCuda::Library("sinhf"), &["sinh"], UnaryRange::Rising(f64::sinh, ALL)),
    }
    Cosh {
        wide: |x| x.cosh(),
        row: UnaryRow::function("cosh", UnaryCuda::Library("coshf"), &["cosh"], UnaryRange::Within(1.0, INF)),
    }
    Asin {
        wide: |x| x.asin(),
        row: UnaryRow::function("asin", UnaryCuda::Library("asinf"), &["asin", "arcsin"], UnaryRange::WithinOrNan(-1.6, 1.6)),
    }
    Acos {
        wide: |x| x.acos(),
        row: UnaryRow::function("acos", UnaryCuda::Library("acosf"), &["acos", "arccos"], UnaryRange::WithinOrNan(0.0, 3.2)),
    }
    Acosh {
        wide: FloatLane::acosh,
        row: UnaryRow::function("acosh", UnaryCuda::Library("acoshf"), &["acosh", "arccosh"], UnaryRange::WithinOrNan(0.0, INF)),
    }
    Erfc {
        wide: FloatLane::erfc,
        row: UnaryRow::function("erfc", UnaryCuda::Library("erfcf"), &["erfc"], UnaryRange::Within(0.0, 2.0)),
    }
    /// The larger of the value and 0, whose derivative at 0 is 0; NaN passes. Float or Double.
    Relu {
        float: |x| x.positive(),
        row: UnaryRow {
            python: UnaryText::Function("relu"),
            drawn: true,
            ..UnaryRow::cast("relu", Typed::Keeps(FLOATS), UnaryRange::Step(|x| x.max(0.0)), LastBit::Same)
        },
    }
    /// The value itself, through which no gradient goes (`detach`). Float or Double.
    Stop {
        float: |x| x,
        row: UnaryRow {
            cost: 0,
            python: UnaryText::Method("detach"),
            drawn: true,
            ..UnaryRow::cast("stop", Typed::Keeps(FLOATS), UnaryRange::Step(|x| x), LastBit::Same)
        },
    }
    /// Float to Float, Double to Double.
    Floor {
        float: |x| x.floor(),
        row: UnaryRow::rounding("floor", "floorf", &["floor"], f64::floor),
    }
    Ceil {
        float: |x| x.ceil(),
        row: UnaryRow::rounding("ceil", "ceilf", &["ceil"], f64::ceil),
    }
    /// To the nearest integer, halves to the even one.
    Round {
        float: |x| x.round_even(),
        row: UnaryRow {
            // of PyTorch's function, which has decimals, the tracer makes several operations
            torch: None,
            math: false,
            ..UnaryRow::rounding("round", "rintf", &[], f64::round_ties_even)
        },
    }
    Trunc {
        float: |x| x.trunc(),
        row: UnaryRow::rounding("trunc", "truncf", &["trunc", "fix"], f64::trunc),
    }
    /// Bool, Int or Double to Float.
    ToFloat {
        row: UnaryRow::cast("to_float", Typed::To(Ty::Float, &[Ty::Bool, Ty::Int, Ty::Double]), UnaryRange::ToFloat, LastBit::Same),
    }
    /// Bool, Int or Float to Double.
    ToDouble {
        row: UnaryRow::cast("to_double", Typed::To(Ty::Double, &[Ty::Bool, Ty::Int, Ty::Float]), UnaryRange::ToDouble, LastBit::Composed),
    }
    /// Bool to Int (0 or 1), or Float or Double to Int: truncates toward zero; NaN and what int64 cannot hold give its
    /// smallest value.
    ToInt {
        row: UnaryRow::cast("to_int", Typed::To(Ty::Int, &[Ty::Bool, Ty::Float, Ty::Double]), UnaryRange::ToInt, LastBit::Same),
    }
    /// Float or Double to Int by way of int32, as casts to narrow ints go: NaN and what int32 cannot hold give its smallest
    /// value.
    ToInt32 {
        row: UnaryRow::cast("to_int32", Typed::To(Ty::Int, FLOATS), UnaryRange::ToInt32, LastBit::Composed),
    }
    /// Int, Float or Double to Bool (`x != 0`).
    ToBool {
        row: UnaryRow::cast("to_bool", Typed::To(Ty::Bool, NUMBERS), UnaryRange::ToBool, LastBit::Same),
    }
    /// The value of an element of this dtype, in the type that the value had: an Int wraps (int64 keeps it), a Float is
    /// rounded to half precision (float32 keeps it). Neither bool nor float64.
    As(dtype: DType) {
        float: |x| x.stored_as(dtype),
        int: |x| x.stored_as(dtype),
        row: UnaryRow::cast("as", Typed::Stored, UnaryRange::Stored, LastBit::Composed),
    }
}

impl UnaryOp {
    /// The dtype whose element it keeps; None for all but [`UnaryOp::As`].
    pub fn keeps(self) -> Option<DType> {
        if let UnaryOp::As(dtype) = self { Some(dtype) } else { None }
    }

    /// Instructions, roughly.
    pub fn cost(self) -> u32 {
        match self.keeps() {
            Some(DType::F16 | DType::BF16) => 4,
            _ => self.row().cost,
        }
    }

    /// Type of the result for an operand of type `a`; None if the operation does not support it.
    pub(crate) fn type_of(self, a: Ty) -> Option<Ty> {
        let fits = match self.keeps() {
            None => true,
            Some(DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64) => a == Ty::Int,
            Some(DType::F16 | DType::BF16 | DType::F32) => a == Ty::Float,
            Some(DType::Bool | DType::F64) => false,
        };
        self.row().typed.of(a).filter(|_| fits)
    }
}
