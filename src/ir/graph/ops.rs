//! The nodes of a graph: inputs, literals, operations and reads, and the rules of their types.
//!
//! Invariant: every operation has the meaning of PyTorch's CPU; `ir::cell` defines it, and `ir::ops` has its row. Must
//! not know graphs.

use super::{CaptureId, NodeId, UniformId};
use crate::base::DType;
pub use crate::ir::ops::{BinaryOp, Ty, UnaryOp, Width};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// The inputs of a mod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Input {
    /// Batch index, Int.
    B,
    /// Query head index, Int.
    H,
    /// Query token index, Int.
    QIdx,
    /// Key and value token index, Int.
    KvIdx,
    /// The score before the mod, Float; only in score mods.
    Score,
}

impl Input {
    /// The name that its parameter has in printed text.
    pub fn name(self) -> &'static str {
        match self {
            Input::B => "b",
            Input::H => "h",
            Input::QIdx => "q_idx",
            Input::KvIdx => "kv_idx",
            Input::Score => "score",
        }
    }
}

/// One operation. Floats are kept by their bits so that nodes hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Op {
    /// One of the mod's parameters.
    Input(Input),
    /// A bool literal.
    Bool(bool),
    /// An int literal.
    Int(i64),
    /// A float literal by its IEEE bits (`f64::to_bits`): Python's number, which the operation that reads it rounds to its
    /// own width.
    Float(u64),
    /// An int from the uniform buffer; only in lifted graphs.
    UniformInt(UniformId),
    /// A float from the uniform buffer; only in lifted graphs.
    UniformFloat(UniformId),
    /// One operand.
    Unary(UnaryOp, NodeId),
    /// Two operands.
    Binary(BinaryOp, NodeId, NodeId),
    /// `torch.where(condition, a, b)`: Bool, then two of one type.
    Where(NodeId, NodeId, NodeId),
    /// One element of a captured tensor, with as many Int indices as it has dimensions; each wraps once if negative and
    /// is then clamped into bounds ([`crate::base::tensor::clamp_index`]). It has the type of the tensor's dtype.
    Load(CaptureId, SmallVec<[NodeId; 4]>),
}

impl Op {
    /// Operands in order.
    pub fn operands(&self) -> SmallVec<[NodeId; 4]> {
        match self {
            Op::Unary(_, a) => SmallVec::from_slice(&[*a]),
            Op::Binary(_, a, b) => SmallVec::from_slice(&[*a, *b]),
            Op::Where(c, a, b) => SmallVec::from_slice(&[*c, *a, *b]),
            Op::Load(_, index) => index.clone(),
            _ => SmallVec::new(),
        }
    }

    /// The same operation on other operands.
    #[must_use]
    pub fn map_operands(&self, mut f: impl FnMut(NodeId) -> NodeId) -> Op {
        match self {
            Op::Unary(op, a) => Op::Unary(*op, f(*a)),
            Op::Binary(op, a, b) => Op::Binary(*op, f(*a), f(*b)),
            Op::Where(c, a, b) => Op::Where(f(*c), f(*a), f(*b)),
            Op::Load(capture, index) => Op::Load(*capture, index.iter().map(|i| f(*i)).collect()),
            other => other.clone(),
        }
    }
}

/// Type that reading a tensor of this dtype gives.
pub fn load_ty(dtype: DType) -> Ty {
    match dtype {
        DType::Bool => Ty::Bool,
        DType::F64 => Ty::Double,
        DType::F16 | DType::BF16 | DType::F32 => Ty::Float,
        DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => Ty::Int,
    }
}

/// Type of an operation on one operand of type `a`, or why it has none.
pub(super) fn unary_type(op: UnaryOp, a: Ty) -> Result<Ty, String> {
    op.type_of(a).ok_or_else(|| format!("{op:?} of {a:?}"))
}

/// Type of an operation on two operands, or why it has none.
pub(super) fn binary_type(op: BinaryOp, a: Ty, b: Ty) -> Result<Ty, String> {
    if a != b {
        return Err(format!("{op:?} of {a:?} and {b:?}"));
    }
    op.row().typed.of(a).ok_or_else(|| format!("{op:?} of {a:?}"))
}
