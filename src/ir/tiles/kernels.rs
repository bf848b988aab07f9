//! One operation over a slice of lanes.
//!
//! Invariant: each lane has the value of [`crate::ir::ops::lanes`]; loops are plain, so that they vectorise, and each
//! is compiled twice: for any processor, and for those with AVX2. Must not know registers or graphs. `unsafe` only to
//! call the second version after a check of the processor.
#![allow(unsafe_code)]

use crate::ir::ops::lanes::{BoolLane, FloatLane, IntLane};
use crate::ir::ops::{self, BinaryOp, Lanes, Lanes2, Tests, UnaryOp};

/// Defines a kernel that runs with the widest vectors that this machine has.
macro_rules! kernel {
    (fn $name:ident<$($generic:ident $(: $bound:path)?),*>($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        pub(super) fn $name<$($generic $(: $bound)?),*>($($arg: $ty),*) {
            #[inline(always)]
            fn plain<$($generic $(: $bound)?),*>($($arg: $ty),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn avx2<$($generic $(: $bound)?),*>($($arg: $ty),*) {
                    plain($($arg),*);
                }
                if std::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor and the system have just said that AVX2 works here
                    return unsafe { avx2($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    };
}

/// An argument: the same in all lanes, or one a lane.
#[derive(Clone, Copy)]
pub(super) enum Src<'a, T> {
    One(T),
    Many(&'a [T]),
}

impl<T: Copy> Src<'_, T> {
    #[inline(always)]
    pub(super) fn at(self, lane: usize) -> T {
        match self {
            Src::One(x) => x,
            Src::Many(x) => x[lane],
        }
    }
}

#[inline(always)]
pub(super) fn map1<A: Copy, R: Copy>(out: &mut [R], a: Src<A>, f: impl Fn(A) -> R) {
    match a {
        Src::One(a) => out.fill(f(a)),
        Src::Many(a) => out.iter_mut().zip(a).for_each(|(out, a)| *out = f(*a)),
    }
}

#[inline(always)]
fn map2<A: Copy, B: Copy, R: Copy>(out: &mut [R], a: Src<A>, b: Src<B>, f: impl Fn(A, B) -> R) {
    match (a, b) {
        (Src::One(a), Src::One(b)) => out.fill(f(a, b)),
        (Src::Many(a), Src::One(b)) => out.iter_mut().zip(a).for_each(|(out, a)| *out = f(*a, b)),
        (Src::One(a), Src::Many(b)) => out.iter_mut().zip(b).for_each(|(out, b)| *out = f(a, *b)),
        (Src::Many(a), Src::Many(b)) => out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (a, b))| *out = f(*a, *b)),
    }
}

/// A slice of results and their operand.
struct Each<'a, T> {
    out: &'a mut [T],
    a: Src<'a, T>,
}

impl<T: Copy> Lanes<T> for Each<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self, f: impl Fn(T) -> T) {
        map1(self.out, self.a, f);
    }
}

/// A slice of results and their two operands.
struct Each2<'a, T, R> {
    out: &'a mut [R],
    a: Src<'a, T>,
    b: Src<'a, T>,
}

impl<T: Copy> Lanes2<T> for Each2<'_, T, T> {
    type Out = ();
    #[inline(always)]
    fn run(self, f: impl Fn(T, T) -> T) {
        map2(self.out, self.a, self.b, f);
    }
}

impl<T: Copy> Tests<T> for Each2<'_, T, u8> {
    type Out = ();
    #[inline(always)]
    fn run(self, f: impl Fn(T, T) -> bool) {
        map2(self.out, self.a, self.b, |a, b| u8::from(f(a, b)));
    }
}

kernel! {
    fn int_unary<I: IntLane>(op: UnaryOp, out: &mut [I], a: Src<I>) {
        ops::int_unary(op, Each { out, a });
    }
}

kernel! {
    fn float_unary<F: FloatLane>(op: UnaryOp, out: &mut [F], a: Src<F>) {
        ops::float_unary(op, Each { out, a });
    }
}

// Functions of float32 that masks decide by.
kernel! {
    fn single_unary<>(op: UnaryOp, out: &mut [f32], a: Src<f32>) {
        ops::single_unary(op, Each { out, a });
    }
}

kernel! {
    fn single_binary<>(op: BinaryOp, out: &mut [f32], a: Src<f32>, b: Src<f32>) {
        ops::single_binary(op, Each2 { out, a, b });
    }
}

kernel! {
    fn int_binary<I: IntLane>(op: BinaryOp, out: &mut [I], a: Src<I>, b: Src<I>) {
        match op {
            BinaryOp::FloorDiv | BinaryOp::Mod => int_division(op, out, a, b),
            op => ops::int_binary(op, Each2 { out, a, b }),
        }
    }
}

#[inline(always)]
fn int_division<I: IntLane>(op: BinaryOp, out: &mut [I], a: Src<I>, b: Src<I>) {
    if let (Src::Many(lanes), Src::One(divisor)) = (a, b) {
        let by = divisor.to_i64();
        if I::NARROW && by > 0 {
            return match op {
                BinaryOp::FloorDiv => divide_narrow(out, lanes, by, |_, quotient| quotient),
                _ => divide_narrow(out, lanes, by, |a, quotient| a.wsub(quotient.wmul(divisor))),
            };
        }
    }
    match op {
        BinaryOp::FloorDiv => map2(out, a, b, I::floor_div),
        _ => map2(out, a, b, I::floor_mod),
    }
}

/// `f(a, a // by)` of 32-bit lanes without a division. `(a + 0.5) / by` differs by at least `0.5 / by` from any
/// integer, far more than the f64 error here, so rounding `(a + 0.5) / by - 0.5` to the nearest integer is flooring `a
/// / by`; adding 1.5 * 2^52 rounds and leaves that integer in the low bits.
#[inline(always)]
fn divide_narrow<I: IntLane>(out: &mut [I], a: &[I], by: i64, f: impl Fn(I, I) -> I) {
    const ROUND: f64 = 1.5 * (1u64 << 52) as f64;
    let inverse = 1.0 / by as f64;
    let shift = 0.5 * inverse - 0.5;
    for (out, a) in out.iter_mut().zip(a) {
        let quotient = a.to_i64() as i32 as f64 * inverse + shift + ROUND;
        *out = f(*a, I::from_i64(i64::from(quotient.to_bits() as i32)));
    }
}

kernel! {
    fn float_binary<F: FloatLane>(op: BinaryOp, out: &mut [F], a: Src<F>, b: Src<F>) {
        ops::float_binary(op, Each2 { out, a, b });
    }
}

kernel! {
    fn bool_binary<B: BoolLane>(op: BinaryOp, out: &mut [B], a: Src<B>, b: Src<B>) {
        ops::bool_binary(op, Each2 { out, a, b });
    }
}

/// The comparisons.
pub(super) trait Ordered: Copy + PartialOrd {}
impl<T: Copy + PartialOrd> Ordered for T {}

kernel! {
    fn compare<T: Ordered>(op: BinaryOp, out: &mut [u8], a: Src<T>, b: Src<T>) {
        ops::compare(op, Each2 { out, a, b });
    }
}

kernel! {
    fn choose<T: Copy>(out: &mut [T], c: Src<u8>, a: Src<T>, b: Src<T>) {
        let pick = |c: u8, a: T, b: T| if c != 0 { a } else { b };
        match (c, a, b) {
            (Src::One(c), a, b) => map1(out, if c != 0 { a } else { b }, |x| x),
            (Src::Many(c), Src::One(a), Src::One(b)) => map1(out, Src::Many(c), |c| pick(c, a, b)),
            (Src::Many(c), Src::One(a), b) => map2(out, Src::Many(c), b, |c, b| pick(c, a, b)),
            (Src::Many(c), a, Src::One(b)) => map2(out, Src::Many(c), a, |c, a| pick(c, a, b)),
            (Src::Many(c), Src::Many(a), Src::Many(b)) => {
                out.iter_mut().zip(c.iter().zip(a.iter().zip(b))).for_each(|(out, (c, (a, b)))| *out = pick(*c, *a, *b));
            }
        }
    }
}

// Where to read: an index list over a tensor of `shape`, by the read rule.
kernel! {
    fn gather<I: IntLane, T: Copy>(out: &mut [T], table: &[T], shape: &[usize], index: &[Src<I>], zero: T) {
        if table.is_empty() {
            return out.fill(zero);
        }
        match index {
            [] => out.fill(table[0]),
            [index] => map1(out, *index, |i| table[clamp(i, shape[0])]),
            [row, column] => {
                let width = shape[1];
                map2(out, *row, *column, |r, c| table[clamp(r, shape[0]) * width + clamp(c, width)]);
            }
            many => {
                for (lane, out) in out.iter_mut().enumerate() {
                    let flat = many.iter().zip(shape).fold(0, |flat, (i, n)| flat * n + clamp(i.at(lane), *n));
                    *out = table[flat];
                }
            }
        }
    }
}

#[inline(always)]
fn clamp<I: IntLane>(index: I, n: usize) -> usize {
    crate::base::tensor::clamp_index(index.to_i64(), n)
}
