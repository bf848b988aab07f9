//! Integer ranges with an affine form in q_idx and kv_idx, if the value has one.
//!
//! Invariant: `lo <= hi`; a form is the value at every cell of the box, and `lo..=hi` are then its exact extremes. A
//! value that may exceed i64 becomes `ANY`. Must not know about graphs.

use super::{Cells, Truth};

/// `q * q_idx + kv * kv_idx + c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Form {
    pub q: i64,
    pub kv: i64,
    pub c: i64,
}

impl Form {
    fn checked_add(self, other: Form) -> Option<Form> {
        Some(Form {
            q: self.q.checked_add(other.q)?,
            kv: self.kv.checked_add(other.kv)?,
            c: self.c.checked_add(other.c)?,
        })
    }

    fn checked_mul(self, by: i64) -> Option<Form> {
        Some(Form { q: self.q.checked_mul(by)?, kv: self.kv.checked_mul(by)?, c: self.c.checked_mul(by)? })
    }

    /// Smallest and largest value over the box.
    fn extremes(self, cells: &Cells) -> Option<(i64, i64)> {
        let term = |k: i64, (lo, hi): (i64, i64)| -> Option<(i64, i64)> {
            let (a, b) = (k.checked_mul(lo)?, k.checked_mul(hi)?);
            Some((a.min(b), a.max(b)))
        };
        let (q, kv) = (term(self.q, cells.q)?, term(self.kv, cells.kv)?);
        Some((q.0.checked_add(kv.0)?.checked_add(self.c)?, q.1.checked_add(kv.1)?.checked_add(self.c)?))
    }

    /// The constant term when indices count from the box's own corner.
    pub(crate) fn local(self, cells: &Cells) -> i64 {
        self.c.wrapping_add(self.q.wrapping_mul(cells.q.0)).wrapping_add(self.kv.wrapping_mul(cells.kv.0))
    }
}

/// A range of integers, inclusive, and its affine form if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Ints {
    pub lo: i64,
    pub hi: i64,
    pub form: Option<Form>,
}

impl Ints {
    /// Every i64.
    pub const ANY: Ints = Ints { lo: i64::MIN, hi: i64::MAX, form: None };

    /// Exactly `c`.
    pub(crate) fn constant(c: i64) -> Self {
        Self { lo: c, hi: c, form: Some(Form { q: 0, kv: 0, c }) }
    }

    /// Anything from `lo` to `hi`.
    pub(crate) fn range(lo: i64, hi: i64) -> Self {
        if lo == hi { Self::constant(lo) } else { Self { lo, hi, form: None } }
    }

    /// The value of a form over a box; `ANY` if it may overflow.
    pub(crate) fn of_form(form: Form, cells: &Cells) -> Self {
        match form.extremes(cells) {
            Some((lo, hi)) if lo == hi => Self::constant(lo),
            Some((lo, hi)) => Self { lo, hi, form: Some(form) },
            None => Self::ANY,
        }
    }

    /// The value, if there is only one.
    pub(crate) fn value(&self) -> Option<i64> {
        (self.lo == self.hi).then_some(self.lo)
    }

    fn from_extremes(lo: Option<i64>, hi: Option<i64>) -> Self {
        match (lo, hi) {
            (Some(lo), Some(hi)) => Self::range(lo, hi),
            _ => Self::ANY,
        }
    }

    /// Whether the range could be a wrapped value: such a range has lost its exactness.
    fn is_any(&self) -> bool {
        self.lo == i64::MIN && self.hi == i64::MAX
    }

    /// Sum.
    pub(crate) fn add(self, other: Self, cells: &Cells) -> Self {
        if let (Some(a), Some(b)) = (self.form, other.form) {
            return a.checked_add(b).map_or(Self::ANY, |f| Self::of_form(f, cells));
        }
        Self::from_extremes(self.lo.checked_add(other.lo), self.hi.checked_add(other.hi))
    }

    /// Negation.
    pub(crate) fn neg(self) -> Self {
        match (self.hi.checked_neg(), self.lo.checked_neg()) {
            (Some(lo), Some(hi)) => Self { lo, hi, form: self.form.and_then(|f| f.checked_mul(-1)) },
            _ => Self::ANY,
        }
    }

    /// Difference.
    pub(crate) fn sub(self, other: Self, cells: &Cells) -> Self {
        if let (Some(a), Some(b)) = (self.form, other.form) {
            let form = b.checked_mul(-1).and_then(|b| a.checked_add(b));
            return form.map_or(Self::ANY, |f| Self::of_form(f, cells));
        }
        Self::from_extremes(self.lo.checked_sub(other.hi), self.hi.checked_sub(other.lo))
    }

    /// Product.
    pub(crate) fn mul(self, other: Self, cells: &Cells) -> Self {
        for (a, b) in [(self, other), (other, self)] {
            if let (Some(form), Some(by)) = (a.form, b.value()) {
                return form.checked_mul(by).map_or(Self::ANY, |f| Self::of_form(f, cells));
            }
        }
        self.corners(other, |a, b| a.checked_mul(b))
    }

    /// Extremes of an operation that is monotone in each operand: they are at the corners.
    fn corners(self, other: Self, f: impl Fn(i64, i64) -> Option<i64>) -> Self {
        let mut out: Option<(i64, i64)> = None;
        for a in [self.lo, self.hi] {
            for b in [other.lo, other.hi] {
                let Some(v) = f(a, b) else { return Self::ANY };
                out = Some(out.map_or((v, v), |(lo, hi)| (lo.min(v), hi.max(v))));
            }
        }
        out.map_or(Self::ANY, |(lo, hi)| Self::range(lo, hi))
    }

    /// Magnitude bound: `|x| <= bound` for every x of the range.
    fn bound(self) -> Option<i64> {
        Some(self.lo.checked_abs()?.max(self.hi.checked_abs()?))
    }

    /// Floor division; by zero gives 0.
    pub(crate) fn floor_div(self, by: Self, cells: &Cells) -> Self {
        if let Some(n) = by.value() {
            return self.floor_div_constant(n, cells);
        }
        self.divide(by, |a, b| a.checked_div_euclid(b).map(|_| floor_div(a, b)))
    }

    fn floor_div_constant(self, n: i64, cells: &Cells) -> Self {
        if n == 0 {
            return Self::constant(0);
        }
        if n == 1 {
            return self;
        }
        if let Some(f) = self.form.filter(|f| f.q % n == 0 && f.kv % n == 0) {
            return Self::of_form(Form { q: f.q / n, kv: f.kv / n, c: floor_div(f.c, n) }, cells);
        }
        if n == -1 {
            return self.neg();
        }
        let (a, b) = (floor_div(self.lo, n), floor_div(self.hi, n));
        Self::range(a.min(b), a.max(b))
    }

    /// Division toward zero; by zero gives 0.
    pub(crate) fn trunc_div(self, by: Self, cells: &Cells) -> Self {
        if self.lo >= 0 && by.lo >= 0 {
            return self.floor_div(by, cells);
        }
        if by.value() == Some(0) {
            return Self::constant(0);
        }
        self.divide(by, |a, b| a.checked_div(b))
    }

    fn divide(self, by: Self, f: impl Fn(i64, i64) -> Option<i64>) -> Self {
        if by.lo > 0 || by.hi < 0 {
            return self.corners(by, f);
        }
        self.bound().map_or(Self::ANY, |m| Self::range(-m, m))
    }

    /// Floored modulo, sign of the divisor; modulo zero gives 0.
    pub(crate) fn modulo(self, by: Self, cells: &Cells) -> Self {
        let Some(n) = by.value() else { return self.modulo_range(by) };
        if n == 0 || n == 1 || n == -1 {
            return Self::constant(0);
        }
        if let Some(f) = self.form.filter(|f| f.q % n == 0 && f.kv % n == 0) {
            return Self::constant(floor_mod(f.c, n));
        }
        let period = floor_div(self.lo, n);
        if period == floor_div(self.hi, n) {
            let shift = period.checked_mul(n).map(Self::constant);
            return shift.map_or(Self::ANY, |s| self.sub(s, cells));
        }
        if n > 0 { Self::range(0, n - 1) } else { Self::range(n + 1, 0) }
    }

    fn modulo_range(self, by: Self) -> Self {
        if by.lo > 0 && self.lo >= 0 && self.hi < by.lo {
            return self;
        }
        Self::range((by.lo.saturating_add(1)).min(0), (by.hi.saturating_sub(1)).max(0))
    }

    /// Absolute value.
    pub(crate) fn abs(self) -> Self {
        if self.lo >= 0 {
            self
        } else if self.hi <= 0 {
            self.neg()
        } else {
            self.bound().map_or(Self::ANY, |m| Self::range(0, m))
        }
    }

    /// The smaller.
    pub(crate) fn min(self, other: Self, cells: &Cells) -> Self {
        let (lo, hi) = self.difference(other, cells);
        if hi <= 0 {
            self
        } else if lo >= 0 {
            other
        } else {
            Self::range(self.lo.min(other.lo), self.hi.min(other.hi))
        }
    }

    /// The larger.
    pub(crate) fn max(self, other: Self, cells: &Cells) -> Self {
        let (lo, hi) = self.difference(other, cells);
        if hi <= 0 {
            other
        } else if lo >= 0 {
            self
        } else {
            Self::range(self.lo.max(other.lo), self.hi.max(other.hi))
        }
    }

    /// Either.
    pub(crate) fn join(self, other: Self) -> Self {
        if self.form.is_some() && self.form == other.form {
            return self;
        }
        Self::range(self.lo.min(other.lo), self.hi.max(other.hi))
    }

    /// Range of `self - other` in exact arithmetic, by the forms where both have one; saturates, which keeps its signs.
    fn difference(self, other: Self, cells: &Cells) -> (i64, i64) {
        if let (Some(a), Some(b)) = (self.form, other.form)
            && let Some(d) = b.checked_mul(-1).and_then(|b| a.checked_add(b))
            && let Some(range) = d.extremes(cells)
        {
            return range;
        }
        (self.lo.saturating_sub(other.hi), self.hi.saturating_sub(other.lo))
    }

    /// `self < other`.
    pub(crate) fn lt(self, other: Self, cells: &Cells) -> Truth {
        let (lo, hi) = self.difference(other, cells);
        Truth { can_true: lo < 0, can_false: hi >= 0 }
    }

    /// `self <= other`.
    pub(crate) fn le(self, other: Self, cells: &Cells) -> Truth {
        let (lo, hi) = self.difference(other, cells);
        Truth { can_true: lo <= 0, can_false: hi > 0 }
    }

    /// `self == other`.
    pub(crate) fn equals(self, other: Self, cells: &Cells) -> Truth {
        let (lo, hi) = self.difference(other, cells);
        Truth { can_true: lo <= 0 && hi >= 0, can_false: lo != 0 || hi != 0 }
    }

    /// Bits that are the same over the whole range: (value of those bits, mask of the others). None if the sign differs.
    fn known_bits(self) -> Option<(i64, i64)> {
        if (self.lo < 0) != (self.hi < 0) {
            return None;
        }
        let differ = (self.lo ^ self.hi) as u64;
        let unknown = if differ == 0 { 0 } else { u64::MAX >> differ.leading_zeros() };
        Some((self.lo & !(unknown as i64), unknown as i64))
    }

    /// Bitwise and.
    pub(crate) fn and(self, other: Self, cells: &Cells) -> Self {
        for (x, mask) in [(self, other), (other, self)] {
            if let Some(m) = mask.value() {
                if m == -1 {
                    return x;
                }
                if m > 0 && (m & (m + 1)) == 0 && m < i64::MAX {
                    return x.modulo(Self::constant(m + 1), cells);
                }
                if m < 0 && m > i64::MIN && (-m & (-m - 1)) == 0 && !x.is_any() {
                    return x.sub(x.modulo(Self::constant(-m), cells), cells);
                }
            }
        }
        match (self.known_bits(), other.known_bits()) {
            (Some((a, ua)), Some((b, ub))) => Self::range(a & b, (a | ua) & (b | ub)).capped_by(self, other),
            _ if self.lo >= 0 => Self::range(0, self.hi),
            _ if other.lo >= 0 => Self::range(0, other.hi),
            _ => Self::ANY,
        }
    }

    /// An `and` of non-negative operands is at most each of them.
    fn capped_by(self, a: Self, b: Self) -> Self {
        let mut hi = self.hi;
        for x in [a, b].iter().filter(|x| x.lo >= 0) {
            hi = hi.min(x.hi);
        }
        Self::range(self.lo, hi)
    }

    /// Bitwise or.
    pub(crate) fn or(self, other: Self) -> Self {
        if other.value() == Some(0) {
            return self;
        }
        if self.value() == Some(0) {
            return other;
        }
        match (self.known_bits(), other.known_bits()) {
            (Some((a, ua)), Some((b, ub))) => Self::range(a | b, a | ua | b | ub),
            _ => Self::ANY,
        }
    }

    /// Bitwise exclusive or.
    pub(crate) fn xor(self, other: Self) -> Self {
        if other.value() == Some(0) {
            return self;
        }
        if self.value() == Some(0) {
            return other;
        }
        match (self.known_bits(), other.known_bits()) {
            (Some((a, ua)), Some((b, ub))) => {
                let unknown = ua | ub;
                let known = (a ^ b) & !unknown;
                Self::range(known, known | unknown)
            }
            _ => Self::ANY,
        }
    }

    /// Bitwise not.
    pub(crate) fn not(self, cells: &Cells) -> Self {
        Self::constant(-1).sub(self, cells)
    }

    /// Left shift; an amount outside 0..=63 gives 0.
    pub(crate) fn shl(self, by: Self, cells: &Cells) -> Self {
        let (lo, hi) = (by.lo.clamp(0, 63), by.hi.clamp(0, 63));
        if hi == 63 {
            return if self.value() == Some(0) || by.lo > 63 { Self::constant(0) } else { Self::ANY };
        }
        let power = Self { form: (lo == hi).then_some(Form { q: 0, kv: 0, c: 1 << lo }), lo: 1 << lo, hi: 1 << hi };
        let shifted = self.mul(power, cells);
        match by.lo < 0 {
            true if by.hi < 0 => Self::constant(0),
            true => shifted.join(Self::constant(0)),
            false => shifted,
        }
    }

    /// Arithmetic right shift; an amount outside 0..=63 leaves the sign.
    pub(crate) fn shr(self, by: Self, cells: &Cells) -> Self {
        if let Some(n) = by.value().filter(|n| (0..=62).contains(n)) {
            return self.floor_div_constant(1 << n, cells);
        }
        let least = if by.lo < 0 { 0 } else { by.lo.min(63) };
        let most = if by.lo < 0 { 63 } else { by.hi.min(63) };
        self.corners(Self::range(least, most), |x, n| Some(x >> n))
    }

    /// The value of an element with fewer bits: the range if it fits, otherwise all values of the bits.
    pub(crate) fn stored_as(self, (least, most): (i64, i64)) -> Self {
        if self.lo >= least && self.hi <= most { self } else { Self::range(least, most) }
    }

    /// Remainder with the sign of the dividend; 0 by zero.
    pub(crate) fn fmod(self, by: Self, cells: &Cells) -> Self {
        if self.lo >= 0 && by.lo >= 0 {
            return self.modulo(by, cells);
        }
        match (self.bound(), by.bound()) {
            (Some(a), Some(b)) => {
                let most = a.min(b.saturating_sub(1).max(0));
                Self::range(if self.lo < 0 { -most } else { 0 }, if self.hi > 0 { most } else { 0 })
            }
            _ => Self::ANY,
        }
    }
}

/// Python's `//`; 0 by zero, wraps at the one overflow.
pub(crate) fn floor_div(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && ((a < 0) != (b < 0)) { q - 1 } else { q }
}

/// Python's `%`; 0 modulo zero.
pub(crate) fn floor_mod(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let r = a.wrapping_rem(b);
    if r != 0 && ((r < 0) != (b < 0)) { r + b } else { r }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::ops::lanes::IntLane;

    /// All ranges with ends from -5 to 5.
    fn small() -> impl Iterator<Item = Ints> {
        (-5..=5).flat_map(|lo| (lo..=5).map(move |hi| Ints::range(lo, hi)))
    }

    #[test]
    fn every_quotient_and_bit_pattern_lies_in_its_range() {
        let cells = Cells::new(0, 0, 0..1, 0..1);
        type Rule = (&'static str, fn(Ints, Ints, &Cells) -> Ints, fn(i64, i64) -> i64);
        let rules: [Rule; 4] = [
            ("//", |a, b, cells| a.floor_div(b, cells), i64::floor_div),
            ("trunc", |a, b, cells| a.trunc_div(b, cells), |a, b| a.checked_div(b).unwrap_or(0)),
            ("%", |a, b, cells| a.modulo(b, cells), i64::floor_mod),
            ("&", |a, b, cells| a.and(b, cells), |a, b| a & b),
        ];
        for (name, of_ranges, of_values) in rules {
            for (a, b) in small().flat_map(|a| small().map(move |b| (a, b))) {
                let found = of_ranges(a, b, &cells);
                for (x, y) in (a.lo..=a.hi).flat_map(|x| (b.lo..=b.hi).map(move |y| (x, y))) {
                    let value = of_values(x, y);
                    assert!(found.lo <= value && value <= found.hi, "{x} {name} {y} = {value}, not in {found:?}");
                }
            }
        }
    }

    #[test]
    fn ranges_are_as_narrow_as_their_ends_tell() {
        let cells = Cells::new(0, 0, 0..1, 0..1);
        let (ends, range) = (|of: Ints| (of.lo, of.hi), Ints::range);
        assert_eq!(ends(range(10, 20).floor_div(range(2, 5), &cells)), (2, 10));
        assert_eq!(ends(range(10, 20).floor_div(range(-5, -2), &cells)), (-10, -2));
        // a divisor that may be zero gives zero there, and nothing beyond the dividend elsewhere
        assert_eq!(ends(range(10, 20).floor_div(range(-3, 0), &cells)), (-20, 20));
        assert_eq!(ends(range(-20, 20).modulo(Ints::constant(-5), &cells)), (-4, 0));
        assert_eq!(ends(range(-20, 20).modulo(Ints::constant(5), &cells)), (0, 4));
        assert_eq!((Ints::constant(7).value(), range(7, 8).value()), (Some(7), None));
        assert_eq!(ends(range(0, 100).and(Ints::constant(0), &cells)), (0, 0));
    }
}
