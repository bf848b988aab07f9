//! Gamma, error and Bessel functions in double precision.
//!
//! Invariant: within a few units of float64's last place, so that the float32 result errs no more than PyTorch's own;
//! poles, signs, infinities and NaN are PyTorch's. Must not know tensors.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

pub(super) fn lgamma(x: f64) -> f64 {
    if x.is_infinite() { f64::INFINITY } else { libm::lgamma(x) }
}

pub(super) fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// The logarithmic derivative of the gamma function: moved up by its recurrence, then by its asymptotic series.
pub(super) fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        let rest = x.fract();
        return if rest == 0.0 || x.is_infinite() { f64::NAN } else { digamma(1.0 - x) - PI / (PI * rest).tan() };
    }
    let (mut x, mut below) = (x, 0.0);
    while x < 12.0 {
        below += 1.0 / x;
        x += 1.0;
    }
    // B(2n) / 2n
    const SERIES: [f64; 7] =
        [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];
    let r = 1.0 / (x * x);
    let tail = SERIES.iter().rev().fold(0.0, |sum, c| (sum + c) * r);
    x.ln() - 0.5 / x - tail - below
}

/// The inverse of the error function: Newton's steps on erf, or on erfc if that has more digits.
pub(super) fn erfinv(x: f64) -> f64 {
    let size = x.abs();
    if x == 0.0 || size.is_nan() {
        return x;
    }
    if size >= 1.0 {
        return if size == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    // within 0.2 %
    let (log, a) = ((-x * x).ln_1p(), 0.147);
    let half = 2.0 / (PI * a) + log / 2.0;
    let mut y = ((half * half - log / a).sqrt() - half).sqrt();
    for _ in 0..4 {
        let apart = if size < 0.5 { libm::erf(y) - size } else { (1.0 - size) - libm::erfc(y) };
        let step = apart / (2.0 / PI.sqrt() * (-y * y).exp());
        // Halley's correction: the second derivative is -2y times the first
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}

/// Beyond this the asymptotic series of the Bessel functions has float64's precision.
const FAR: f64 = 22.0;

/// `exp(-|x|)` times the modified Bessel function of order 0 or 1; NaN stays, infinity gives 0.
fn bessel_scaled(x: f64, order: u32) -> f64 {
    let a = x.abs();
    if a > FAR {
        // the sum of (1 - 4 order^2) (9 - 4 order^2) ... / (n! (8a)^n)
        let square = f64::from(4 * order * order);
        let (mut term, mut sum) = (1.0, 1.0);
        for n in 1..40 {
            let odd = f64::from(2 * n - 1);
            let next = term * (odd * odd - square) / (f64::from(n) * 8.0 * a);
            if next.abs() > f64::abs(term) || next.abs() < 1e-18 {
                break;
            }
            term = next;
            sum += term;
        }
        return if a.is_infinite() { 0.0 } else { sum / (2.0 * PI * a).sqrt() };
    }
    // the sum of (a/2)^(2n + order) / (n! (n + order)!)
    let quarter = a * a / 4.0;
    let mut term = if order == 0 { 1.0 } else { a / 2.0 };
    let (mut sum, mut n) = (term, 1.0);
    while term > sum * 1e-18 {
        term *= quarter / (n * (n + f64::from(order)));
        sum += term;
        n += 1.0;
    }
    sum * (-a).exp()
}

pub(super) fn i0e(x: f64) -> f64 {
    bessel_scaled(x, 0)
}

pub(super) fn i1e(x: f64) -> f64 {
    bessel_scaled(x, 1).copysign(x)
}

/// PyTorch multiplies by the exponential: of infinity that is NaN.
pub(super) fn i0(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { unscaled(i0e(x), x) }
}

pub(super) fn i1(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { unscaled(i1e(x), x) }
}

/// Times `exp(|x|)`, in two steps so that only the product overflows.
fn unscaled(y: f64, x: f64) -> f64 {
    let half = (x.abs() / 2.0).exp();
    y * half * half
}

/// The distribution function of the normal distribution.
pub(super) fn ndtr(x: f64) -> f64 {
    0.5 * erfc(-x * FRAC_1_SQRT_2)
}

/// `log2(2^x + 2^y)`: of two equal infinities it is that infinity.
pub(super) fn logaddexp2(x: f64, y: f64) -> f64 {
    if x == y && x.is_infinite() {
        return x;
    }
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    x.max(y) + (-(x - y).abs()).exp2().ln_1p() / LN_2
}

/// `-x log x`
pub(super) fn entr(x: f64) -> f64 {
    match x {
        x if x > 0.0 => -x * x.ln(),
        0.0 => 0.0,
        x if x < 0.0 => f64::NEG_INFINITY,
        nan => nan,
    }
}

#[cfg(test)]
mod tests {
    use crate::python::tensors::special::*;

    fn near(got: f64, want: f64) -> bool {
        got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= 4e-14 * want.abs().max(1e-2)
    }

    #[test]
    fn known_values() {
        type Case = (fn(f64) -> f64, f64, f64);
        let cases: [Case; 16] = [
            (lgamma, 0.5, 0.572_364_942_924_700_1),
            (lgamma, -1.5, 0.860_047_015_376_481),
            (digamma, 1.0, -0.577_215_664_901_532_9),
            (digamma, 0.25, -4.227_453_533_376_265),
            (digamma, -0.5, 0.036_489_973_978_576_39),
            (digamma, 100.0, 4.600_161_852_738_087),
            (erfinv, 0.5, 0.476_936_276_204_469_9),
            (erfinv, -0.999_999, -3.458_910_737_275_499),
            (i0, 1.0, 1.266_065_877_752_008_4),
            (i0, 21.9, 278_147_724.138_305_5),
            (i0, 22.1, 338_171_337.219_337_5),
            (i1, -2.5, -2.516_716_245_288_698),
            (i0e, 700.0, 0.015_081_295_651_531_355),
            (i1e, 50.0, 0.055_993_123_892_895_395),
            (ndtr, -1.0, 0.158_655_253_931_457_05),
            (entr, 0.5, 0.346_573_590_279_972_64),
        ];
        for (at, (f, x, want)) in cases.into_iter().enumerate() {
            assert!(near(f(x), want), "{at}: f({x}) = {:?}, not {want:?}", f(x));
        }
        assert!(near(logaddexp2(1.0, 3.0), 10f64.log2()));
    }

    #[test]
    fn poles_and_infinities() {
        assert_eq!((digamma(0.0), digamma(-0.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(digamma(-3.0).is_nan() && digamma(f64::INFINITY) == f64::INFINITY);
        assert_eq!((lgamma(f64::NEG_INFINITY), lgamma(-2.0)), (f64::INFINITY, f64::INFINITY));
        assert!(i0(f64::INFINITY).is_nan() && i0e(f64::INFINITY) == 0.0 && i0(f64::NAN).is_nan());
        assert!(erfinv(1.0) == f64::INFINITY && erfinv(1.1).is_nan());
        assert_eq!(logaddexp2(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
    }
}
