//! The definition of each operation: one row with its name, types, lanes, range, cost, Python text, CUDA text and
//! PyTorch's names.
//!
//! Invariant: every other property of an operation is read from its row, or matched exhaustively. Loops over lanes use
//! the same functions as single values, so that they vectorise and never disagree. Must not know graphs.

mod binary;
pub mod lanes;
pub mod rows;
mod types;
mod unary;

pub use self::binary::BinaryOp;
pub use self::binary::{bool_binary, compare, float_binary, int_binary, single_binary};
pub use self::types::{Ty, Width};
pub use self::unary::UnaryOp;
pub use self::unary::{double_function, float_unary, int_unary, single_unary};

/// Runs a lane, or panics if the operation has none.
macro_rules! lane {
    ($lanes:ident, $op:ident, $what:literal; $run:expr) => {
        $lanes.run($run)
    };
    ($lanes:ident, $op:ident, $what:literal;) => {
        panic!(concat!("{:?} ", $what), $op)
    };
}
use lane;

/// Where an operation on one operand is computed: a value, or a slice of them in one loop.
pub trait Lanes<T> {
    /// The remaining operation.
    type Out;
    /// Computes `f` there.
    fn run(self, f: impl Fn(T) -> T) -> Self::Out;
}

/// The same of two operands.
pub trait Lanes2<T> {
    /// The remaining operation.
    type Out;
    /// Computes `f` there.
    fn run(self, f: impl Fn(T, T) -> T) -> Self::Out;
}

/// Where two values are compared.
pub trait Tests<T> {
    /// The remaining operation.
    type Out;
    /// Computes `f` there.
    fn run(self, f: impl Fn(T, T) -> bool) -> Self::Out;
}

/// One value.
pub struct One<T>(pub T);

impl<T> Lanes<T> for One<T> {
    type Out = T;
    #[inline(always)]
    fn run(self, f: impl Fn(T) -> T) -> T {
        f(self.0)
    }
}

/// Two values.
pub struct Two<T>(pub T, pub T);

impl<T> Lanes2<T> for Two<T> {
    type Out = T;
    #[inline(always)]
    fn run(self, f: impl Fn(T, T) -> T) -> T {
        f(self.0, self.1)
    }
}

impl<T> Tests<T> for Two<T> {
    type Out = bool;
    #[inline(always)]
    fn run(self, f: impl Fn(T, T) -> bool) -> bool {
        f(self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_so_are_those_of_pytorch() {
        let mut names = HashSet::new();
        let unary = UnaryOp::all()
            .into_iter()
            .filter(|op| !matches!(op, UnaryOp::As(dtype) if *dtype != crate::base::DType::U8));
        for name in unary.map(|op| op.row().name).chain(BinaryOp::ALL.iter().map(|op| op.row().name)) {
            assert!(names.insert(name), "{name} twice");
        }
        let mut torch = HashSet::new();
        let unary = UnaryOp::all().into_iter().filter_map(|op| op.row().torch).flat_map(|(_, names)| names);
        let binary = BinaryOp::ALL.iter().flat_map(|op| op.row().torch).flat_map(|(_, names)| *names);
        for name in unary.chain(binary) {
            assert!(torch.insert(name), "{name} twice");
        }
    }

    #[test]
    fn rounding_is_exact_and_cheap_and_keeps_ints() {
        use self::rows::{LastBit, UnaryTraced};
        for op in [UnaryOp::Floor, UnaryOp::Ceil, UnaryOp::Trunc] {
            let row = op.row();
            assert_eq!((row.last_bit, row.rough), (LastBit::Same, false), "{op:?}");
            assert!(matches!(row.torch, Some((UnaryTraced::Rounding, _))), "{op:?}");
            assert!(row.cost < UnaryOp::Exp.row().cost, "{op:?}");
        }
    }

    #[test]
    fn single_lanes_round_once() {
        let x = 0.1f32;
        assert_eq!(single_unary(UnaryOp::Asinh, One(x)), f64::from(x).asinh() as f32);
        assert_eq!(float_unary(UnaryOp::Asinh, One(-1e300)), (-1e300f64).asinh());
        assert_eq!(UnaryOp::Asinh.type_of(Ty::Int), None);
    }

    #[test]
    fn an_operation_has_lanes_for_the_types_it_takes() {
        for op in UnaryOp::all() {
            if op.type_of(Ty::Float) == Some(Ty::Float) && op != UnaryOp::ToFloat {
                let (wide, single) = (float_unary(op, One(0.25f64)), single_unary(op, One(0.25f32)));
                // acosh has no value there
                let alike = (wide - f64::from(single)).abs() < 1e-3 || (wide.is_nan() && single.is_nan());
                assert!(alike, "{op:?}: {wide} {single}");
            }
            if op.type_of(Ty::Int) == Some(Ty::Int) {
                assert_eq!(int_unary(op, One(3i64)), i64::from(int_unary(op, One(3i32))), "{op:?}");
            }
        }
        for op in BinaryOp::ALL.iter().copied() {
            if op.row().typed.of(Ty::Float) == Some(Ty::Float) {
                let (wide, single) = (float_binary(op, Two(2.5, 0.5f64)), single_binary(op, Two(2.5, 0.5f32)));
                assert!((wide - f64::from(single)).abs() < 1e-3, "{op:?}: {wide} {single}");
            }
            if op.row().typed.of(Ty::Int) == Some(Ty::Int) {
                assert_eq!(int_binary(op, Two(9i64, 2)), i64::from(int_binary(op, Two(9i32, 2))), "{op:?}");
            }
            if op.row().typed.of(Ty::Bool) == Some(Ty::Bool) {
                for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
                    let byte = bool_binary(op, Two(u8::from(a), u8::from(b)));
                    assert_eq!(u8::from(bool_binary(op, Two(a, b))), byte, "{op:?}");
                }
            }
            if op.is_comparison() {
                assert_eq!(compare(op, Two(1.0, f64::NAN)), op == BinaryOp::Ne, "{op:?}");
            }
        }
    }
}
