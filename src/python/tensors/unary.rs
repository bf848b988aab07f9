//! Element-wise functions of one tensor.
//!
//! Invariant: float functions convert integers to float32 first; the others keep the dtype or return bools. Float32 is
//! computed in double precision and rounded once, which is within one unit in the last place of PyTorch's own. Must not
//! know broadcasting.

use super::elem::{from_bools, from_costly_singles, from_floats, from_ints, singles};
use super::error::{Budget, HostError, HostResult};
use super::special;
use super::strided::finish;
use crate::base::{DType, HostTensor};
use crate::ir::ops::lanes::erf;
use crate::ir::ops::{UnaryOp, double_function};

/// A function of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // PyTorch's names
pub enum Unary {
    /// A graph's function of floats; ints become floats.
    Function(UnaryOp),
    /// A graph's rounding of floats; ints stay as they are.
    Rounding(UnaryOp),
    Neg,
    Abs,
    Sign,
    Square,
    BitwiseNot,
    LogicalNot,
    Frac,
    IsNan,
    IsInf,
    IsFinite,
    IsPosInf,
    IsNegInf,
    SignBit,
    Log10,
    Reciprocal,
    Tan,
    Atan,
    Atanh,
    LogSigmoid,
    Silu,
    Gelu,
    Softplus,
    Relu,
    Deg2Rad,
    Rad2Deg,
    Lgamma,
    Digamma,
    Erfinv,
    I0,
    I0e,
    I1,
    I1e,
    Ndtr,
    Entr,
}

/// Applies `op` to every element.
pub fn unary(op: Unary, t: &HostTensor, budget: &Budget) -> HostResult {
    use Unary::*;
    match op {
        IsNan | IsInf | IsFinite | IsPosInf | IsNegInf | SignBit | LogicalNot => test(op, t, budget),
        Rounding(_) | Neg | Abs | Sign | Square | BitwiseNot | Frac | Relu => same_type(op, t, budget),
        _ => float_function(op, t, budget),
    }
}

fn test(op: Unary, t: &HostTensor, budget: &Budget) -> HostResult {
    let n = budget.charge(t.shape(), DType::Bool)?;
    let check: fn(f64) -> bool = match op {
        Unary::IsNan => f64::is_nan,
        Unary::IsInf => f64::is_infinite,
        Unary::IsFinite => f64::is_finite,
        Unary::IsPosInf => |x| x == f64::INFINITY,
        Unary::IsNegInf => |x| x == f64::NEG_INFINITY,
        Unary::SignBit => f64::is_sign_negative,
        Unary::LogicalNot => |x| x == 0.0,
        other => unreachable!("{other:?} is no test"),
    };
    finish(t.shape(), from_bools(n, |i| check(t.float_at(i))))
}

fn same_type(op: Unary, t: &HostTensor, budget: &Budget) -> HostResult {
    let dtype = t.dtype();
    if (op, dtype) == (Unary::Square, DType::Bool) {
        return super::cast(t, DType::I64, budget);
    }
    if dtype.is_float() {
        let f = float_of(op).ok_or_else(|| not_for(op, dtype))?;
        let n = budget.charge(t.shape(), dtype)?;
        return finish(t.shape(), from_floats(dtype, n, |i| f(t.float_at(i))));
    }
    let f: fn(i64) -> i64 = match (op, dtype) {
        (Unary::Neg, DType::Bool) => {
            let message = "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, \
                           use the `~` or `logical_not()` operator instead.";
            return Err(HostError::dtype(message).hint("~mask"));
        }
        (Unary::Abs | Unary::Rounding(_), DType::Bool) => {
            return Err(not_for(op, dtype).hint("`.int()` first"));
        }
        (Unary::BitwiseNot, DType::Bool) => |x| i64::from(x == 0),
        (Unary::BitwiseNot, _) => |x| !x,
        (Unary::Neg, _) => i64::wrapping_neg,
        (Unary::Abs, _) => i64::wrapping_abs,
        (Unary::Sign, _) => i64::signum,
        (Unary::Square, _) => |x| x.wrapping_mul(x),
        (Unary::Relu, _) => |x| x.max(0),
        (Unary::Frac, _) => return Err(not_for(op, dtype)),
        (Unary::Rounding(_), _) => |x| x,
        (other, _) => unreachable!("{other:?} keeps no dtype"),
    };
    let n = budget.charge(t.shape(), dtype)?;
    finish(t.shape(), from_ints(dtype, n, |i| f(t.int_at(i))))
}

fn not_for(op: Unary, dtype: DType) -> HostError {
    let name = match op {
        Unary::Function(op) | Unary::Rounding(op) => op.row().name.to_string(),
        own => format!("{own:?}").to_lowercase(),
    };
    HostError::dtype(format!("\"{name}\" not implemented for dtype {dtype}"))
}

/// The function on floats that keeps the dtype.
fn float_of(op: Unary) -> Option<fn(f64) -> f64> {
    Some(match op {
        Unary::Neg => |x| -x,
        Unary::Abs => f64::abs,
        Unary::Sign => |x| {
            if x > 0.0 {
                1.0
            } else if x < 0.0 {
                -1.0
            } else {
                // also of NaN
                0.0
            }
        },
        Unary::Square => |x| x * x,
        Unary::Rounding(op) => return double_function(op),
        Unary::Frac => |x| x - x.trunc(),
        Unary::Relu => |x| if x < 0.0 { 0.0 } else { x },
        _ => return None,
    })
}

fn float_function(op: Unary, t: &HostTensor, budget: &Budget) -> HostResult {
    let dtype = if t.dtype().is_float() { t.dtype() } else { super::default_float() };
    let n = budget.charge(t.shape(), dtype)?;
    budget.work_each(n, price(op))?;
    let f = function(op);
    if dtype == DType::F64 {
        return finish(t.shape(), from_floats(dtype, n, |i| f(t.float_at(i))));
    }
    let x = singles(t.data());
    if matches!(op, Unary::I0 | Unary::I1) {
        // the exponential overflows before the quotient does
        let grown = |x: f32| if x.abs().exp().is_infinite() { x.abs() / 0.0 } else { f(f64::from(x)) as f32 };
        let signed = |x: f32| if op == Unary::I1 { grown(x).copysign(x) } else { grown(x) };
        return finish(
            t.shape(),
            from_costly_singles(dtype, n, |i| if x[i].is_finite() { signed(x[i]) } else { f32::NAN }),
        );
    }
    finish(t.shape(), from_costly_singles(dtype, n, |i| f(f64::from(x[i])) as f32))
}

/// What an element of a function costs beside that of a result, in nanoseconds.
fn price(op: Unary) -> u64 {
    use Unary::*;
    match op {
        Erfinv => 350,
        _ => 60,
    }
}

/// The function in double precision.
fn function(op: Unary) -> fn(f64) -> f64 {
    match op {
        Unary::Function(op) => double_function(op).unwrap_or_else(|| unreachable!("{op:?} is no float function")),
        Unary::Log10 => f64::log10,
        Unary::Reciprocal => |x| 1.0 / x,
        Unary::Tan => f64::tan,
        Unary::Atan => f64::atan,
        Unary::Atanh => f64::atanh,
        Unary::LogSigmoid => |x| x.min(0.0) - (-x.abs()).exp().ln_1p(),
        Unary::Silu => |x| x / (1.0 + (-x).exp()),
        Unary::Gelu => |x| 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        Unary::Softplus => |x| if x > 20.0 { x } else { x.exp().ln_1p() },
        Unary::Deg2Rad => f64::to_radians,
        Unary::Rad2Deg => f64::to_degrees,
        Unary::Lgamma => special::lgamma,
        Unary::Digamma => special::digamma,
        Unary::Erfinv => special::erfinv,
        Unary::I0 => special::i0,
        Unary::I0e => special::i0e,
        Unary::I1 => special::i1,
        Unary::I1e => special::i1e,
        Unary::Ndtr => special::ndtr,
        Unary::Entr => special::entr,
        other => unreachable!("{other:?} is no float function"),
    }
}
