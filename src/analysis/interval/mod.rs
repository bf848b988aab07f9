//! Abstract values of a graph's nodes over a box of cells: ranges, affine forms in q_idx and kv_idx, and truth sets.
//!
//! Invariant: sound. A node's value at any cell of the box is inside its abstract value; a form, if present, is the
//! value at every cell. A box of one cell gives the values of `ir::cell`. Must not know about blocks.

mod apply;
mod cuts;
pub mod float;
pub mod int;
mod program;
mod residual;
mod table;

pub use cuts::{Cuts, RowCuts};
pub use float::Floats;
pub use int::{Form, Ints};
pub use program::{Program, Scratch};
pub use residual::{Key, KeyMap};

use std::ops::Range;

/// A box of cells; every range is inclusive at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the mod's own parameters
pub struct Cells {
    pub b: (i64, i64),
    pub h: (i64, i64),
    pub q: (i64, i64),
    pub kv: (i64, i64),
}

impl Cells {
    /// One batch entry and head, half-open token ranges; the ranges must not be empty.
    pub fn new(b: usize, h: usize, q: Range<usize>, kv: Range<usize>) -> Self {
        debug_assert!(q.start < q.end && kv.start < kv.end);
        Self {
            b: (b as i64, b as i64),
            h: (h as i64, h as i64),
            q: (q.start as i64, q.end as i64 - 1),
            kv: (kv.start as i64, kv.end as i64 - 1),
        }
    }

    /// A single cell.
    pub fn cell(b: usize, h: usize, q: usize, kv: usize) -> Self {
        Self::new(b, h, q..q + 1, kv..kv + 1)
    }

    /// Rows times columns.
    pub fn area(&self) -> u64 {
        (self.q.1 - self.q.0 + 1) as u64 * (self.kv.1 - self.kv.0 + 1) as u64
    }
}

/// The set of truth values a bool can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Truth {
    pub can_false: bool,
    pub can_true: bool,
}

impl Truth {
    /// Could be either.
    pub const BOTH: Truth = Truth { can_false: true, can_true: true };
    /// Always true.
    pub const TRUE: Truth = Truth { can_false: false, can_true: true };
    /// Always false.
    pub const FALSE: Truth = Truth { can_false: true, can_true: false };

    /// Exactly this value.
    pub fn of(value: bool) -> Self {
        if value { Self::TRUE } else { Self::FALSE }
    }

    /// The value, if there is only one.
    pub fn value(self) -> Option<bool> {
        (self.can_false != self.can_true).then_some(self.can_true)
    }

    fn not(self) -> Self {
        Self { can_false: self.can_true, can_true: self.can_false }
    }

    fn and(self, other: Self) -> Self {
        Self { can_false: self.can_false || other.can_false, can_true: self.can_true && other.can_true }
    }

    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    fn xor(self, other: Self) -> Self {
        match (self.value(), other.value()) {
            (Some(a), Some(b)) => Self::of(a != b),
            _ => Self::BOTH,
        }
    }

    fn join(self, other: Self) -> Self {
        Self { can_false: self.can_false || other.can_false, can_true: self.can_true || other.can_true }
    }
}

/// Abstract value of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    Bool(Truth),
    Int(Ints),
    Float(Floats),
}

impl Value {
    fn truth(&self) -> Truth {
        if let Value::Bool(t) = self { *t } else { Truth::BOTH }
    }

    fn int(&self) -> Ints {
        if let Value::Int(i) = self { *i } else { Ints::ANY }
    }

    fn float(&self) -> Floats {
        if let Value::Float(f) = self { *f } else { Floats::ANY }
    }

    /// The same with floats rounded to float32.
    fn single(self) -> Self {
        match self {
            Value::Float(f) => Value::Float(f.single()),
            other => other,
        }
    }

    /// Whether it is one single value.
    pub fn is_constant(&self) -> bool {
        match self {
            Value::Bool(t) => t.value().is_some(),
            Value::Int(i) => i.value().is_some(),
            Value::Float(f) => f.value().is_some(),
        }
    }
}

#[cfg(test)]
mod proof;
