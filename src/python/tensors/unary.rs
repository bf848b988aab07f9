//! Element-wise functions of one tensor.
//!
//! Invariant: float functions turn integers into float32 first; the others keep the dtype or give bools. Singles are
//! computed in double precision and rounded once, which is within one unit in the last place of PyTorch's own. Must not
//! know broadcasting.

use super::elem::{from_bools, from_costly_singles, from_floats, from_ints, singles};
use super::error::{Budget, HostError, HostResult};
use super::special;
use super::strided::finish;
use crate::base::{DType, HostTensor};
use crate::ir::ops::lanes::erf;

/// A function of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // PyTorch's names
pub enum Unary {
    Neg,
    Abs,
    Sign,
    Square,
    BitwiseNot,
    LogicalNot,
    Floor,
    Ceil,
    Round,
    Trunc,
    Frac,
    IsNan,
    IsInf,
    IsFinite,
    IsPosInf,
    IsNegInf,
    SignBit,
    Exp,
    Exp2,
    Expm1,
    Log,
    Log2,
    Log10,
    Log1p,
    Sqrt,
    Rsqrt,
    Reciprocal,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Sigmoid,
    LogSigmoid,
    Silu,
    Gelu,
    Softplus,
    Erf,
    Relu,
    Deg2Rad,
    Rad2Deg,
    Lgamma,
    Digamma,
    Erfc,
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
        Neg | Abs | Sign | Square | BitwiseNot | Floor | Ceil | Round | Trunc | Frac | Relu => same_type(op, t, budget),
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
        (Unary::Abs | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc, DType::Bool) => {
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
        (Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc, _) => |x| x,
        (other, _) => unreachable!("{other:?} keeps no dtype"),
    };
    let n = budget.charge(t.shape(), dtype)?;
    finish(t.shape(), from_ints(dtype, n, |i| f(t.int_at(i))))
}

fn not_for(op: Unary, dtype: DType) -> HostError {
    HostError::dtype(format!("\"{}\" not implemented for dtype {dtype}", format!("{op:?}").to_lowercase()))
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
        Unary::Floor => f64::floor,
        Unary::Ceil => f64::ceil,
        Unary::Round => f64::round_ties_even,
        Unary::Trunc => f64::trunc,
        Unary::Frac => |x| x - x.trunc(),
        Unary::Relu => |x| if x < 0.0 { 0.0 } else { x },
        _ => return None,
    })
}

fn float_function(op: Unary, t: &HostTensor, budget: &Budget) -> HostResult {
    let dtype = if t.dtype().is_float() { t.dtype() } else { super::default_float() };
    let n = budget.charge(t.shape(), dtype)?;
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

/// The function in double precision.
fn function(op: Unary) -> fn(f64) -> f64 {
    match op {
        Unary::Exp => f64::exp,
        Unary::Exp2 => f64::exp2,
        Unary::Expm1 => f64::exp_m1,
        Unary::Log => f64::ln,
        Unary::Log2 => f64::log2,
        Unary::Log10 => f64::log10,
        Unary::Log1p => f64::ln_1p,
        Unary::Sqrt => f64::sqrt,
        Unary::Rsqrt => |x| 1.0 / x.sqrt(),
        Unary::Reciprocal => |x| 1.0 / x,
        Unary::Sin => f64::sin,
        Unary::Cos => f64::cos,
        Unary::Tan => f64::tan,
        Unary::Asin => f64::asin,
        Unary::Acos => f64::acos,
        Unary::Atan => f64::atan,
        Unary::Sinh => f64::sinh,
        Unary::Cosh => f64::cosh,
        Unary::Tanh => f64::tanh,
        Unary::Asinh => f64::asinh,
        Unary::Acosh => f64::acosh,
        Unary::Atanh => f64::atanh,
        Unary::LogSigmoid => |x| x.min(0.0) - (-x.abs()).exp().ln_1p(),
        Unary::Silu => |x| x / (1.0 + (-x).exp()),
        Unary::Gelu => |x| 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        Unary::Softplus => |x| if x > 20.0 { x } else { x.exp().ln_1p() },
        Unary::Erf => erf,
        Unary::Deg2Rad => f64::to_radians,
        Unary::Rad2Deg => f64::to_degrees,
        Unary::Lgamma => special::lgamma,
        Unary::Digamma => special::digamma,
        Unary::Erfc => special::erfc,
        Unary::Erfinv => special::erfinv,
        Unary::I0 => special::i0,
        Unary::I0e => special::i0e,
        Unary::I1 => special::i1,
        Unary::I1e => special::i1e,
        Unary::Ndtr => special::ndtr,
        Unary::Entr => special::entr,
        Unary::Sigmoid => |x| 1.0 / (1.0 + (-x).exp()),
        other => unreachable!("{other:?} is no float function"),
    }
}
