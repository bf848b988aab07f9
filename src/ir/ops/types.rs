//! Types of values and precisions of operations.
//!
//! Invariant: Float is float32 unless it follows from the score. Must not know operations.

use serde::{Deserialize, Serialize};

/// Type of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ty {
    /// A truth value.
    Bool,
    /// PyTorch's int64. Kernels compute in 32 bits what stays inside them.
    Int,
    /// PyTorch's float32; what follows from the score has the score's own precision ([`Width`]).
    Float,
    /// PyTorch's float64.
    Double,
}

impl Ty {
    /// Whether it is one of the floating types.
    pub fn is_float(self) -> bool {
        matches!(self, Ty::Float | Ty::Double)
    }
}

/// In which precision an operation on floats computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// float32: operands and result are rounded to it.
    Single,
    /// That of the score: float64 in the reference, float32 in backends.
    Score,
    /// float64.
    Double,
}
