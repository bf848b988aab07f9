//! Each operation on one int or one float, for any lane width.
//!
//! Invariant: the i64 and f64 instances are the definition that `ir::cell` uses, and for float32 the functions
//! `single_unary` and `single_binary`, which round once. The narrow int lanes are used only for values that fit. Must
//! not know graphs.

use crate::base::DType;
use half::{bf16, f16};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Sub};

/// An integer lane. Sums wrap, division floors, and division by zero gives zero.
#[allow(missing_docs)] // the names say it: Python's and C's own
pub trait IntLane:
    Copy + Ord + Default + Send + Sync + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + 'static
{
    /// Whether it has 32 bits.
    const NARROW: bool;
    fn from_i64(x: i64) -> Self;
    fn to_i64(self) -> i64;
    fn wadd(self, b: Self) -> Self;
    fn wsub(self, b: Self) -> Self;
    fn wmul(self, b: Self) -> Self;
    fn wneg(self) -> Self;
    fn wabs(self) -> Self;
    fn bitnot(self) -> Self;
    fn floor_div(self, b: Self) -> Self;
    fn floor_mod(self, b: Self) -> Self;
    fn trunc_div(self, b: Self) -> Self;
    fn fmod(self, b: Self) -> Self;
    fn pow(self, b: Self) -> Self;
    fn stored_as(self, dtype: DType) -> Self;
    fn shl(self, b: Self) -> Self;
    fn shr(self, b: Self) -> Self;
}

macro_rules! int_lane {
    ($t:ty) => {
        impl IntLane for $t {
            const NARROW: bool = size_of::<$t>() == 4;
            #[inline(always)]
            fn from_i64(x: i64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn wadd(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn wsub(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn wmul(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn wneg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn wabs(self) -> Self {
                self.wrapping_abs()
            }
            #[inline(always)]
            fn bitnot(self) -> Self {
                !self
            }
            #[inline(always)]
            fn floor_div(self, b: Self) -> Self {
                if b == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(b);
                let remainder = self.wrapping_rem(b);
                quotient.wrapping_sub(<$t>::from(remainder != 0 && (remainder < 0) != (b < 0)))
            }
            #[inline(always)]
            fn floor_mod(self, b: Self) -> Self {
                if b == 0 {
                    return 0;
                }
                let remainder = self.wrapping_rem(b);
                if remainder != 0 && (remainder < 0) != (b < 0) { remainder.wrapping_add(b) } else { remainder }
            }
            #[inline(always)]
            fn trunc_div(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.wrapping_div(b) }
            }
            #[inline(always)]
            fn fmod(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.wrapping_rem(b) }
            }
            fn pow(self, b: Self) -> Self {
                int_power(self as i64, b as i64) as $t
            }
            #[inline(always)]
            fn stored_as(self, dtype: DType) -> Self {
                match dtype {
                    DType::U8 => self as u8 as $t,
                    DType::I8 => self as i8 as $t,
                    DType::I16 => self as i16 as $t,
                    DType::I32 => self as i32 as $t,
                    DType::I64 => self,
                    dtype => panic!("an int as {dtype}"),
                }
            }
            #[inline(always)]
            fn shl(self, b: Self) -> Self {
                // a narrow lane holds only results that fit: beyond its bits nothing but zero does
                if (0..<$t>::BITS as $t).contains(&b) { self.wrapping_shl(b as u32) } else { 0 }
            }
            #[inline(always)]
            fn shr(self, b: Self) -> Self {
                const MOST: $t = <$t>::BITS as $t - 1;
                self.wrapping_shr((if (0..=MOST).contains(&b) { b } else { MOST }) as u32)
            }
        }
    };
}

int_lane!(i32);
int_lane!(i64);

/// `x ** y` of ints: wraps; a negative exponent gives what truncation leaves of the fraction.
pub fn int_power(x: i64, y: i64) -> i64 {
    if y < 0 {
        return match x {
            1 => 1,
            -1 if y % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut base, mut left, mut out) = (x, y as u64, 1i64);
    while left > 0 {
        if left & 1 == 1 {
            out = out.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        left >>= 1;
    }
    out
}

/// A float lane.
#[allow(missing_docs)] // the names say it: Python's and C's own
pub trait FloatLane:
    Copy
    + PartialOrd
    + Default
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    fn from_f64(x: f64) -> Self;
    fn from_int<I: IntLane>(x: I) -> Self;
    fn to_int<I: IntLane>(self) -> I;
    fn to_int32<I: IntLane>(self) -> I;
    fn is_nan(self) -> bool;
    fn abs(self) -> Self;
    fn exp(self) -> Self;
    fn exp2(self) -> Self;
    fn ln(self) -> Self;
    fn log2(self) -> Self;
    fn ln_1p(self) -> Self;
    fn exp_m1(self) -> Self;
    fn sqrt(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tanh(self) -> Self;
    fn asinh(self) -> Self;
    fn sinh(self) -> Self;
    fn cosh(self) -> Self;
    fn asin(self) -> Self;
    fn acos(self) -> Self;
    fn acosh(self) -> Self;
    fn sigmoid(self) -> Self;
    fn erf(self) -> Self;
    fn erfc(self) -> Self;
    fn erfcx(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn round_even(self) -> Self;
    fn trunc(self) -> Self;
    fn pow(self, b: Self) -> Self;
    fn atan2(self, b: Self) -> Self;
    fn floor_div(self, b: Self) -> Self;
    fn floor_mod(self, b: Self) -> Self;
    fn fmod(self, b: Self) -> Self;
    fn stored_as(self, dtype: DType) -> Self;

    /// `1 / sqrt(x)`, both rounded.
    #[inline(always)]
    fn rsqrt(self) -> Self {
        Self::from_f64(1.0) / self.sqrt()
    }

    /// The value, or zero in the place of a negative one; NaN passes.
    #[inline(always)]
    fn positive(self) -> Self {
        self.greatest(Self::from_f64(0.0))
    }

    /// The smaller one; NaN when either is NaN.
    #[inline(always)]
    fn least(self, b: Self) -> Self {
        if self.is_nan() || self < b || self == b { self } else { b }
    }

    /// The larger one; NaN when either is NaN.
    #[inline(always)]
    fn greatest(self, b: Self) -> Self {
        if self.is_nan() || self > b || self == b { self } else { b }
    }
}

macro_rules! float_lane {
    ($t:ty, $($name:ident => $std:ident),*) => {
        impl FloatLane for $t {
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn from_int<I: IntLane>(x: I) -> Self {
                x.to_i64() as $t
            }
            #[inline(always)]
            fn to_int<I: IntLane>(self) -> I {
                // what x86 makes of a float that int64 cannot hold, which is what PyTorch gives
                let whole = self as i64;
                I::from_i64(if whole == i64::MAX || self.is_nan() { i64::MIN } else { whole })
            }
            #[inline(always)]
            fn to_int32<I: IntLane>(self) -> I {
                let whole = self as i64;
                let fits = whole >= i64::from(i32::MIN) && whole <= i64::from(i32::MAX) && !self.is_nan();
                I::from_i64(if fits { whole } else { i64::from(i32::MIN) })
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
            $(
                #[inline(always)]
                fn $name(self) -> Self {
                    <$t>::$std(self)
                }
            )*
            #[inline(always)]
            fn sigmoid(self) -> Self {
                1.0 / (1.0 + (-self).exp())
            }
            fn erf(self) -> Self {
                erf(f64::from(self)) as $t
            }
            fn erfc(self) -> Self {
                libm::erfc(f64::from(self)) as $t
            }
            fn acosh(self) -> Self {
                libm::acosh(f64::from(self)) as $t
            }
            fn erfcx(self) -> Self {
                erfcx(f64::from(self)) as $t
            }
            #[inline(always)]
            fn pow(self, b: Self) -> Self {
                self.powf(b)
            }
            #[inline(always)]
            fn atan2(self, b: Self) -> Self {
                <$t>::atan2(self, b)
            }
            fn floor_div(self, b: Self) -> Self {
                // torch.floor_divide: exact for quotients that round up to an integer
                if b == 0.0 {
                    return self / b;
                }
                let remainder = self % b;
                let mut quotient = (self - remainder) / b;
                if remainder != 0.0 && (remainder < 0.0) != (b < 0.0) {
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return (0.0 as $t).copysign(self / b);
                }
                let floored = quotient.floor();
                if quotient - floored > 0.5 { floored + 1.0 } else { floored }
            }
            fn floor_mod(self, b: Self) -> Self {
                let remainder = self % b;
                if remainder != 0.0 && (remainder < 0.0) != (b < 0.0) { remainder + b } else { remainder }
            }
            fn fmod(self, b: Self) -> Self {
                self % b
            }
            #[inline(always)]
            fn stored_as(self, dtype: DType) -> Self {
                match dtype {
                    DType::F16 => <$t>::from(f16::from_f32(self as f32).to_f32()),
                    DType::BF16 => <$t>::from(bf16::from_f32(self as f32).to_f32()),
                    DType::F32 => self,
                    dtype => panic!("a float as {dtype}"),
                }
            }
        }
    };
}

float_lane!(f32, abs => abs, exp => exp, exp2 => exp2, ln => ln, log2 => log2, ln_1p => ln_1p, exp_m1 => exp_m1,
    sqrt => sqrt, sin => sin, cos => cos, tanh => tanh, asinh => asinh, sinh => sinh, cosh => cosh, asin => asin, acos => acos, floor => floor, ceil => ceil, round_even => round_ties_even, trunc => trunc);
float_lane!(f64, abs => abs, exp => exp, exp2 => exp2, ln => ln, log2 => log2, ln_1p => ln_1p, exp_m1 => exp_m1,
    sqrt => sqrt, sin => sin, cos => cos, tanh => tanh, asinh => asinh, sinh => sinh, cosh => cosh, asin => asin, acos => acos, floor => floor, ceil => ceil, round_even => round_ties_even, trunc => trunc);

/// A function in float64, rounded once.
#[inline(always)]
pub(crate) fn widened(x: f32, f: impl Fn(f64) -> f64) -> f32 {
    f(f64::from(x)) as f32
}

/// The same of two operands.
#[inline(always)]
pub(crate) fn widened2(a: f32, b: f32, f: impl Fn(f64, f64) -> f64) -> f32 {
    f(f64::from(a), f64::from(b)) as f32
}

/// A lane of truth values.
#[allow(missing_docs)] // the names say it: Python's and C's own
pub trait BoolLane: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> {
    /// Whether both are true or both false.
    fn same(self, b: Self) -> Self;
}

impl BoolLane for bool {
    #[inline(always)]
    fn same(self, b: Self) -> Self {
        self == b
    }
}

/// 0 or 1.
impl BoolLane for u8 {
    #[inline(always)]
    fn same(self, b: Self) -> Self {
        self ^ b ^ 1
    }
}

/// `exp(x * x) * erfc(x)`: the product with the square's lost bits where both factors are normal, the asymptotic series beyond.
pub(crate) fn erfcx(x: f64) -> f64 {
    if x < -27.0 {
        return f64::INFINITY;
    }
    if x < 10.0 {
        let square = x * x;
        let lost = x.mul_add(x, -square);
        return square.exp() * (1.0 + lost) * libm::erfc(x);
    }
    let by = -0.5 / (x * x);
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 0..14 {
        term *= f64::from(2 * n + 1) * by;
        sum += term;
    }
    sum / (x * std::f64::consts::PI.sqrt())
}

/// The error function to f64 precision: a series of positive terms near zero, a continued fraction of erfc beyond.
pub fn erf(x: f64) -> f64 {
    let a = x.abs();
    if x.is_nan() || a == 0.0 {
        return x;
    }
    if a > 6.0 {
        return 1f64.copysign(x);
    }
    let scale = 2.0 / std::f64::consts::PI.sqrt() * (-a * a).exp();
    if a < 3.0 {
        // erf(a) = scale * sum of 2^n a^(2n+1) / (2n+1)!!
        let (mut term, mut sum, mut n) = (a, a, 1.0);
        while term > sum * 1e-17 {
            term *= 2.0 * a * a / (2.0 * n + 1.0);
            sum += term;
            n += 1.0;
        }
        return (scale * sum).copysign(x);
    }
    // erfc(a) = exp(-a^2)/sqrt(pi) / (a + (1/2)/(a + 1/(a + (3/2)/(a + ...))))
    let fraction = (1..=60).rev().fold(a, |rest, n| a + f64::from(n) / 2.0 / rest);
    (1.0 - scale / 2.0 / fraction).copysign(x)
}

#[cfg(test)]
mod tests {
    use crate::ir::ops::lanes::*;

    #[test]
    fn division_floors_and_modulo_follows_the_divisor() {
        let cases = [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, 3, 2, 0), (5, 0, 0, 0)];
        for (a, b, quotient, remainder) in cases {
            assert_eq!((i64::floor_div(a, b), i64::floor_mod(a, b)), (quotient, remainder), "{a} by {b}");
            assert_eq!((a as i32).floor_div(b as i32), quotient as i32);
        }
        assert_eq!(FloatLane::floor_div(-7.0, 2.0), -4.0);
        assert_eq!(FloatLane::floor_mod(-7.5, 2.0), 0.5);
        assert!(FloatLane::floor_div(1.0, 0.0) == f64::INFINITY && FloatLane::floor_mod(1.0, 0.0).is_nan());
    }

    #[test]
    fn shifts_and_powers_are_those_of_int64() {
        assert_eq!((1i64.shl(40), 1i64.shl(64), 1i64.shl(-1), (-5i64).shr(70), 5i64.shr(-1)), (1 << 40, 0, 0, -1, 0));
        assert_eq!((7i32.shr(40), (-7i32).shr(40), 0i32.shl(40)), (0, -1, 0));
        assert_eq!((int_power(1, -5), int_power(-1, -2), int_power(0, -1), int_power(5, 0)), (1, 1, 0, 1));
        assert_eq!((int_power(3, 4), int_power(-1, -3), int_power(2, -1), int_power(2, 64)), (81, -1, 0, 0));
        assert_eq!(
            (300i64.stored_as(DType::U8), 200i64.stored_as(DType::I8), (1i64 << 31).stored_as(DType::I32)),
            (44, -56, -(1 << 31))
        );
    }

    #[test]
    fn floats_beyond_int64_become_its_smallest() {
        assert_eq!(
            (f32::NAN.to_int::<i64>(), 1e30f64.to_int::<i64>(), (-2.7f32).to_int::<i64>()),
            (i64::MIN, i64::MIN, -2)
        );
    }

    #[test]
    fn nan_passes_through_minimum_and_maximum() {
        assert!(f64::NAN.least(1.0).is_nan() && 1.0.least(f64::NAN).is_nan());
        assert!(f32::NAN.greatest(1.0).is_nan() && 1f32.greatest(f32::NAN).is_nan());
        assert_eq!((1.0.least(2.0), 1.0.greatest(2.0)), (1.0, 2.0));
    }

    #[test]
    fn erfcx_agrees_with_known_values() {
        // exp(x * x) * erfc(x) in 40 digits
        let known = [
            (-3.0, 16205.988853999586),
            (-0.5, 1.952360489182557),
            (0.0, 1.0),
            (0.3, 0.7345993345676551),
            (1.0, 0.427583576155807),
            (2.7, 0.19687412733195578),
            (5.0, 0.11070463773306863),
            (9.99, 0.05619664070685882),
            (10.0, 0.05614099274382259),
            (10.5, 0.05349189974656412),
            (26.0, 0.021683584850562907),
            (100.0, 0.005641613782989433),
            (1000000.0, 5.641895835474742e-07),
        ];
        for (x, want) in known {
            let got = erfcx(x);
            assert!((got - want).abs() <= 4e-15 * want, "erfcx({x}) = {got:?}, not {want:?}");
        }
        assert_eq!([f64::INFINITY, f64::NEG_INFINITY, -40.0].map(erfcx), [0.0, f64::INFINITY, f64::INFINITY]);
        assert!(erfcx(f64::NAN).is_nan());
    }

    #[test]
    fn erf_agrees_with_known_values() {
        let known = [(0.1, 0.1124629160182849), (1.0, 0.8427007929497149), (2.9, 0.9999589021219005)];
        for (x, want) in known.into_iter().chain([(3.1, 0.9999883513426328), (5.0, 0.9999999999984626)]) {
            assert!((erf(x) - want).abs() < 1e-15, "erf({x}) = {:?}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
    }
}
