//! Float ranges that know whether NaN can occur.
//!
//! Invariant: conservative, in f64 and, if the ends are rounded (`Floats::single`), in float32: rounding is monotone,
//! and f64 has more than twice the bits, so that a rounded sum, product, quotient or root equals that of float32. Only
//! constants are computed exactly; ranges of libm functions are widened, because such functions are not quite monotone.
//! Must not know about graphs.

use super::Truth;

/// Anything from `lo` to `hi`, infinities included, and NaN if `nan`. No number at all is `lo > hi`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Floats {
    pub lo: f64,
    pub hi: f64,
    pub nan: bool,
}

impl Floats {
    /// Everything, NaN included.
    pub const ANY: Floats = Floats { lo: f64::NEG_INFINITY, hi: f64::INFINITY, nan: true };
    const ONLY_NAN: Floats = Floats { lo: f64::INFINITY, hi: f64::NEG_INFINITY, nan: true };

    /// Exactly this value.
    pub(crate) fn constant(v: f64) -> Self {
        if v.is_nan() { Self::ONLY_NAN } else { Self { lo: v, hi: v, nan: false } }
    }

    /// Numbers from `lo` to `hi`.
    pub(crate) fn range(lo: f64, hi: f64) -> Self {
        Self { lo, hi, nan: false }
    }

    /// The same after every value was rounded to float32.
    pub(crate) fn single(self) -> Self {
        Self { lo: f64::from(self.lo as f32), hi: f64::from(self.hi as f32), nan: self.nan }
    }

    /// The value, if there is only one.
    pub(crate) fn value(&self) -> Option<f64> {
        if self.lo > self.hi {
            return self.nan.then_some(f64::NAN);
        }
        (self.lo == self.hi && !self.nan).then_some(self.lo)
    }

    fn finite(&self) -> bool {
        self.lo.is_finite() && self.hi.is_finite()
    }

    fn zero_or_infinite(&self) -> (bool, bool) {
        (self.lo <= 0.0 && self.hi >= 0.0, self.lo == f64::NEG_INFINITY || self.hi == f64::INFINITY)
    }

    /// Negation.
    pub(crate) fn neg(self) -> Self {
        Self { lo: -self.hi, hi: -self.lo, nan: self.nan }
    }

    /// Sum.
    pub(crate) fn add(self, other: Self) -> Self {
        if let (Some(a), Some(b)) = (self.value(), other.value()) {
            return Self::constant(a + b);
        }
        if self.lo > self.hi || other.lo > other.hi {
            return Self::ONLY_NAN;
        }
        let cancels = |a: &Self, b: &Self| a.hi == f64::INFINITY && b.lo == f64::NEG_INFINITY;
        if cancels(&self, &other) || cancels(&other, &self) {
            return Self::ANY;
        }
        Self { lo: self.lo + other.lo, hi: self.hi + other.hi, nan: self.nan || other.nan }
    }

    /// Difference.
    pub(crate) fn sub(self, other: Self) -> Self {
        self.add(other.neg())
    }

    /// Product.
    pub(crate) fn mul(self, other: Self) -> Self {
        if let (Some(a), Some(b)) = (self.value(), other.value()) {
            return Self::constant(a * b);
        }
        let ((za, ia), (zb, ib)) = (self.zero_or_infinite(), other.zero_or_infinite());
        if (za && ib) || (zb && ia) {
            return Self::ANY;
        }
        self.corners(other, |a, b| a * b)
    }

    /// Quotient.
    pub(crate) fn div(self, other: Self) -> Self {
        if let (Some(a), Some(b)) = (self.value(), other.value()) {
            return Self::constant(a / b);
        }
        if !(other.lo > 0.0 || other.hi < 0.0) || !other.finite() || !self.finite() {
            return Self::ANY;
        }
        self.corners(other, |a, b| a / b)
    }

    fn corners(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        if self.lo > self.hi || other.lo > other.hi {
            return Self::ONLY_NAN;
        }
        let all = [f(self.lo, other.lo), f(self.lo, other.hi), f(self.hi, other.lo), f(self.hi, other.hi)];
        let lo = all.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { lo, hi, nan: self.nan || other.nan }
    }

    /// Absolute value.
    pub(crate) fn abs(self) -> Self {
        if self.lo >= 0.0 {
            self
        } else if self.hi <= 0.0 {
            self.neg()
        } else {
            Self { lo: 0.0, hi: self.hi.max(-self.lo), nan: self.nan }
        }
    }

    /// The smaller; NaN propagates.
    pub(crate) fn min(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.min(other.hi), nan: self.nan || other.nan }.settled(self, other)
    }

    /// The larger; NaN propagates.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { lo: self.lo.max(other.lo), hi: self.hi.max(other.hi), nan: self.nan || other.nan }.settled(self, other)
    }

    fn settled(self, a: Self, b: Self) -> Self {
        if a.lo > a.hi || b.lo > b.hi { Self::ONLY_NAN } else { self }
    }

    /// Either.
    pub(crate) fn join(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi), nan: self.nan || other.nan }
    }

    /// A non-decreasing function from libm on the range, its results clamped into `bounds`.
    pub(crate) fn increasing(self, f: impl Fn(f64) -> f64, bounds: (f64, f64)) -> Self {
        if self.lo > self.hi {
            return Self::ONLY_NAN;
        }
        let (lo, hi) = (f(self.lo), f(self.hi));
        // a NaN at an end (log of a negative): nothing is known of the numbers in between
        if lo.is_nan() || hi.is_nan() {
            return Self { lo: bounds.0, hi: bounds.1, nan: true };
        }
        let slack = |v: f64| if v.is_finite() { v.abs() * 1e-12 + f64::MIN_POSITIVE } else { 0.0 };
        Self { lo: (lo - slack(lo)).max(bounds.0), hi: (hi + slack(hi)).min(bounds.1), nan: self.nan }
    }

    /// A non-decreasing function that rounding does not disturb (floor, ceil, round, trunc).
    pub(crate) fn step(self, f: impl Fn(f64) -> f64) -> Self {
        if self.lo > self.hi { self } else { Self { lo: f(self.lo), hi: f(self.hi), nan: self.nan } }
    }

    /// `self < other`; false with NaN.
    pub(crate) fn lt(self, other: Self) -> Truth {
        let nan = self.nan || other.nan;
        Truth { can_true: self.lo < other.hi, can_false: nan || self.hi >= other.lo || self.lo > self.hi }
    }

    /// `self <= other`; false with NaN.
    pub(crate) fn le(self, other: Self) -> Truth {
        let nan = self.nan || other.nan;
        Truth { can_true: self.lo <= other.hi, can_false: nan || self.hi > other.lo || self.lo > self.hi }
    }

    /// `self == other`; false with NaN.
    pub(crate) fn equals(self, other: Self) -> Truth {
        let same = self.value().is_some_and(|a| other.value() == Some(a));
        Truth { can_true: self.lo <= other.hi && other.lo <= self.hi, can_false: !same }
    }

    /// `self != 0`; NaN counts as true.
    pub(crate) fn to_bool(self) -> Truth {
        let zero = Floats::constant(0.0);
        let eq = self.equals(zero);
        Truth { can_true: eq.can_false, can_false: eq.can_true }
    }
}
