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

#[cfg(test)]
mod tests {
    use super::*;

    const INF: f64 = f64::INFINITY;

    fn of(lo: f64, hi: f64) -> Floats {
        Floats::range(lo, hi)
    }

    fn maybe_nan(lo: f64, hi: f64) -> Floats {
        Floats { lo, hi, nan: true }
    }

    #[test]
    fn sums_and_products_reach_from_end_to_end() {
        assert_eq!(of(1.0, 2.0).add(of(-3.0, 5.0)), of(-2.0, 7.0));
        assert_eq!(of(1.0, 2.0).sub(of(-3.0, 5.0)), of(-4.0, 5.0));
        assert_eq!(of(-1.0, 2.0).mul(of(-3.0, 5.0)), of(-6.0, 10.0));
        assert_eq!(of(-4.0, 2.0).mul(of(-3.0, -1.0)), of(-6.0, 12.0));
        assert_eq!(of(2.0, 6.0).div(of(1.0, 4.0)), of(0.5, 6.0));
        assert_eq!(of(-2.0, 6.0).div(of(-4.0, -1.0)), of(-6.0, 2.0));
        assert_eq!(maybe_nan(1.0, 2.0).add(of(1.0, 2.0)), maybe_nan(2.0, 4.0));
        assert_eq!(of(1.0, 2.0).mul(maybe_nan(1.0, 2.0)), maybe_nan(1.0, 4.0));
        assert_eq!(maybe_nan(1.0, 2.0).neg(), maybe_nan(-2.0, -1.0));
        // single values are computed
        let one = Floats::constant;
        assert_eq!((one(0.1).add(one(0.2)), one(0.1).mul(one(0.2))), (one(0.1 + 0.2), one(0.1 * 0.2)));
        assert_eq!((one(1.0).div(one(0.0)), one(0.0).mul(one(INF))), (one(INF), Floats::ONLY_NAN));
    }

    #[test]
    fn what_may_have_no_value_may_be_anything() {
        // infinities that cancel
        assert_eq!(of(0.0, INF).add(of(-INF, 0.0)), Floats::ANY);
        assert_eq!(of(-INF, 0.0).add(of(0.0, INF)), Floats::ANY);
        assert_eq!(of(0.0, INF).add(of(1.0, INF)), of(1.0, INF));
        assert_eq!(of(-INF, 0.0).add(of(-INF, 1.0)), of(-INF, 1.0));
        // zero times infinity
        for zero in [of(-1.0, 1.0), of(0.0, 1.0), of(-1.0, 0.0)] {
            for infinite in [of(1.0, INF), of(-INF, -1.0)] {
                assert_eq!((zero.mul(infinite), infinite.mul(zero)), (Floats::ANY, Floats::ANY));
            }
        }
        assert_eq!(of(1.0, 2.0).mul(of(1.0, INF)), of(1.0, INF));
        // a divisor of zero, and infinities
        for by in [of(-1.0, 1.0), of(0.0, 1.0), of(-1.0, 0.0), of(1.0, INF), of(-INF, -1.0)] {
            assert_eq!(of(1.0, 2.0).div(by), Floats::ANY);
        }
        assert_eq!((of(1.0, INF).div(of(1.0, 2.0)), of(-INF, 1.0).div(of(1.0, 2.0))), (Floats::ANY, Floats::ANY));
        // nothing but NaN
        let nan = Floats::constant(f64::NAN);
        assert_eq!(nan, Floats::ONLY_NAN);
        assert!(nan.value().is_some_and(f64::is_nan));
        for found in [nan.add(of(1.0, 2.0)), of(1.0, 2.0).add(nan), nan.mul(of(1.0, 2.0)), of(1.0, 2.0).mul(nan)] {
            assert_eq!(found, Floats::ONLY_NAN);
        }
        for found in [nan.min(of(1.0, 2.0)), of(1.0, 2.0).max(nan), nan.increasing(f64::exp, (0.0, INF))] {
            assert_eq!(found, Floats::ONLY_NAN);
        }
        assert_eq!((nan.step(f64::floor), nan.add(of(-INF, 1.0)), of(1.0, INF).add(nan)), (nan, nan, nan));
    }

    #[test]
    fn the_value_of_a_range_is_known_where_there_is_one_alone() {
        assert_eq!((of(2.0, 2.0).value(), of(2.0, 3.0).value(), maybe_nan(2.0, 2.0).value()), (Some(2.0), None, None));
        // no number and no NaN: nothing
        assert_eq!(Floats { lo: 1.0, hi: 0.0, nan: false }.value(), None);
    }

    #[test]
    fn sizes_minima_and_unions_are_tight() {
        assert_eq!((of(1.0, 2.0).abs(), of(-2.0, -1.0).abs()), (of(1.0, 2.0), of(1.0, 2.0)));
        assert_eq!((of(-3.0, 2.0).abs(), of(-1.0, 2.0).abs()), (of(0.0, 3.0), of(0.0, 2.0)));
        assert_eq!((of(0.0, 2.0).abs(), of(-2.0, 0.0).abs()), (of(0.0, 2.0), of(0.0, 2.0)));
        assert!(maybe_nan(-3.0, 2.0).abs().nan && !of(-3.0, 2.0).abs().nan);
        assert_eq!(of(1.0, 5.0).min(of(2.0, 3.0)), of(1.0, 3.0));
        assert_eq!(of(1.0, 5.0).max(of(2.0, 3.0)), of(2.0, 5.0));
        assert_eq!(of(1.0, 5.0).min(maybe_nan(2.0, 3.0)), maybe_nan(1.0, 3.0));
        assert_eq!(maybe_nan(1.0, 5.0).max(of(2.0, 3.0)), maybe_nan(2.0, 5.0));
        assert_eq!(of(1.0, 2.0).join(of(4.0, 5.0)), of(1.0, 5.0));
        assert_eq!(of(4.0, 5.0).join(maybe_nan(1.0, 2.0)), maybe_nan(1.0, 5.0));
        assert_eq!(maybe_nan(4.0, 5.0).join(of(1.0, 2.0)), maybe_nan(1.0, 5.0));
        // 16777217 is not a float32
        assert_eq!(maybe_nan(16_777_217.0, 16_777_219.0).single(), maybe_nan(16_777_216.0, 16_777_220.0));
    }

    #[test]
    fn functions_of_a_library_are_widened_a_little_and_stay_within_their_bounds() {
        let found = of(1.0, 2.0).increasing(f64::exp, (0.0, INF));
        let (one, two) = (1f64.exp(), 2f64.exp());
        assert!(found.lo < one && one - found.lo < 1e-11 && found.hi > two && found.hi - two < 1e-11 && !found.nan);
        let found = of(-2.0, -1.0).increasing(|x| x, (-INF, INF));
        assert!(found.lo < -2.0 && found.lo > -2.0 - 1e-11 && found.hi > -1.0 && found.hi < -1.0 + 1e-11);
        let found = of(-1000.0, 1000.0).increasing(f64::tanh, (-1.0, 1.0));
        assert_eq!(found, of(-1.0, 1.0));
        assert_eq!(of(1.0, 1e6).increasing(f64::exp, (0.0, INF)).hi, INF);
        // zero is widened, too
        let zero = of(0.0, 1.0).increasing(f64::sqrt, (-INF, INF)).lo;
        assert!(zero < 0.0 && zero > -1e-300, "{zero}");
        // a function without a value at an end
        for range in [of(-1.0, 1.0), of(-2.0, -1.0)] {
            assert_eq!(range.increasing(f64::ln, (-INF, INF)), Floats::ANY);
        }
        assert_eq!(maybe_nan(1.5, 2.5).step(f64::floor), maybe_nan(1.0, 2.0));
    }

    #[test]
    fn comparisons_are_decided_where_no_number_lies_between() {
        let (t, f, both) = (Truth::TRUE, Truth::FALSE, Truth::BOTH);
        assert_eq!(
            [of(1.0, 2.0).lt(of(3.0, 4.0)), of(1.0, 3.0).lt(of(3.0, 4.0)), of(3.0, 4.0).lt(of(1.0, 3.0))],
            [t, both, f]
        );
        assert_eq!(
            [of(1.0, 3.0).le(of(3.0, 4.0)), of(1.0, 3.5).le(of(3.0, 4.0)), of(3.5, 4.0).le(of(1.0, 3.0))],
            [t, both, f]
        );
        assert_eq!(of(3.0, 4.0).le(of(1.0, 3.0)), both);
        assert_eq!(
            [of(1.0, 1.0).lt(of(2.0, 2.0)), of(1.0, 1.0).le(of(1.0, 1.0)), of(2.0, 2.0).lt(of(1.0, 1.0))],
            [t, t, f]
        );
        // NaN compares as false, and is not equal to itself
        assert_eq!([maybe_nan(1.0, 2.0).lt(of(3.0, 4.0)), of(1.0, 2.0).le(maybe_nan(3.0, 4.0))], [both, both]);
        let nan = Floats::constant(f64::NAN);
        assert_eq!([nan.lt(of(1.0, 2.0)), nan.le(of(1.0, 2.0)), of(1.0, 2.0).lt(nan), of(1.0, 2.0).le(nan)], [f; 4]);
        assert_eq!([nan.equals(nan), nan.equals(of(1.0, 2.0))], [f; 2]);
        assert_eq!([of(2.0, 2.0).equals(of(2.0, 2.0)), of(1.0, 2.0).equals(of(2.0, 3.0))], [t, both]);
        assert_eq!([of(1.0, 2.0).equals(of(2.5, 3.0)), of(2.5, 3.0).equals(of(1.0, 2.0))], [f; 2]);
        assert_eq!([of(1.0, 2.0).to_bool(), of(0.0, 0.0).to_bool(), of(-1.0, 1.0).to_bool()], [t, f, both]);
    }
}
