//! What the nodes of a graph compute: types, operations, and the rules by which they fit together.
//!
//! Invariant: every operation has one meaning, that of PyTorch's CPU; `language::interpret` spells it out. Must not know
//! graphs.

use super::{CaptureId, NodeId, UniformId};
use crate::base::DType;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

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

/// What a mod is a function of.
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

/// Operations on one operand. Float functions take and give Float or Double; casts are explicit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum UnaryOp {
    /// Int, Float or Double.
    Neg,
    /// Int, Float or Double.
    Abs,
    /// Bool: logical not. Int: bitwise not (`~x == -x - 1`).
    Not,
    Exp,
    Exp2,
    Log,
    Log2,
    Log1p,
    Expm1,
    Sqrt,
    Rsqrt,
    Sin,
    Cos,
    Tanh,
    /// tanh by the hardware's approximate instruction on the GPU; plain tanh elsewhere.
    TanhApprox,
    Sigmoid,
    Erf,
    /// Float to Float, Double to Double.
    Floor,
    Ceil,
    Round,
    Trunc,
    /// Bool, Int or Double to Float.
    ToFloat,
    /// Bool, Int or Float to Double.
    ToDouble,
    /// Bool to Int (0 or 1), or Float or Double to Int: truncates toward zero; NaN and what int64 cannot hold give its
    /// smallest value.
    ToInt,
    /// Float or Double to Int by way of int32, as casts to narrow ints go: NaN and what int32 cannot hold give its smallest
    /// value.
    ToInt32,
    /// Int, Float or Double to Bool (`x != 0`).
    ToBool,
    /// What an element of this dtype keeps of the value, in the type that the value had: an Int wraps (of int64 it is all),
    /// a Float is rounded to half precision (of float32 it is all). Neither bool nor float64.
    As(DType),
}

/// Operations on two operands of one type, unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum BinaryOp {
    /// Any number.
    Add,
    Sub,
    Mul,
    /// Float or Double: true division.
    Div,
    /// Any number; floors toward negative infinity, as in Python. Int division by zero gives 0.
    FloorDiv,
    /// Int only; rounds toward zero (`div(rounding_mode="trunc")`). By zero gives 0.
    TruncDiv,
    /// Any number; sign of the divisor, as in Python. Int modulo zero gives 0.
    Mod,
    /// Any number; sign of the dividend, as `torch.fmod`. Int modulo zero gives 0.
    Fmod,
    /// Any number. An Int to a negative power keeps what truncation leaves of it.
    Pow,
    /// Float or Double.
    Atan2,
    /// Any number; NaN propagates, as torch.minimum does.
    Min,
    Max,
    /// Bool: logical. Int: bitwise.
    And,
    Or,
    Xor,
    /// Int only. An amount outside 0..=63 gives 0.
    Shl,
    /// Int only. An amount outside 0..=63 leaves only the sign: 0 or -1.
    Shr,
    /// Any type, to Bool.
    Eq,
    Ne,
    /// Any number, to Bool.
    Lt,
    Le,
    Gt,
    Ge,
}

impl BinaryOp {
    /// Whether the result is Bool whatever the operands are.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }

    /// Whether operands may be swapped.
    pub fn is_commutative(self) -> bool {
        use BinaryOp::*;
        matches!(self, Add | Mul | Min | Max | And | Or | Xor | Eq | Ne)
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
    /// One element of a captured tensor, as many Int indices as it has dimensions; each wraps once when negative and is
    /// then clamped into bounds ([`crate::base::tensor::clamp_index`]). Of the type of the tensor's dtype.
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
    use UnaryOp::*;
    match (op, a) {
        (Neg | Abs, Ty::Int | Ty::Float | Ty::Double) => Ok(a),
        (Not, Ty::Bool | Ty::Int) => Ok(a),
        (ToFloat, Ty::Bool | Ty::Int | Ty::Double) => Ok(Ty::Float),
        (ToDouble, Ty::Bool | Ty::Int | Ty::Float) => Ok(Ty::Double),
        (ToInt, Ty::Bool | Ty::Float | Ty::Double) => Ok(Ty::Int),
        (ToInt32, Ty::Float | Ty::Double) => Ok(Ty::Int),
        (ToBool, Ty::Int | Ty::Float | Ty::Double) => Ok(Ty::Bool),
        (As(DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64), Ty::Int) => Ok(a),
        (As(DType::F16 | DType::BF16 | DType::F32), Ty::Float) => Ok(a),
        (
            Exp | Exp2 | Log | Log2 | Log1p | Expm1 | Sqrt | Rsqrt | Sin | Cos | Tanh | TanhApprox,
            Ty::Float | Ty::Double,
        ) => Ok(a),
        (Sigmoid | Erf | Floor | Ceil | Round | Trunc, Ty::Float | Ty::Double) => Ok(a),
        (op, a) => Err(format!("{op:?} of {a:?}")),
    }
}

/// Type of an operation on two operands, or why it has none.
pub(super) fn binary_type(op: BinaryOp, a: Ty, b: Ty) -> Result<Ty, String> {
    use BinaryOp::*;
    if a != b {
        return Err(format!("{op:?} of {a:?} and {b:?}"));
    }
    match (op, a) {
        (Add | Sub | Mul | FloorDiv | Mod | Fmod | Pow | Min | Max, Ty::Int | Ty::Float | Ty::Double) => Ok(a),
        (Div | Atan2, Ty::Float | Ty::Double) => Ok(a),
        (TruncDiv | Shl | Shr, Ty::Int) => Ok(a),
        (And | Or | Xor, Ty::Bool | Ty::Int) => Ok(a),
        (Eq | Ne, _) | (Lt | Le | Gt | Ge, Ty::Int | Ty::Float | Ty::Double) => Ok(Ty::Bool),
        (op, a) => Err(format!("{op:?} of {a:?}")),
    }
}
