//! PyTorch's dtype of every traced value, with promotion, casts, wrapping and rounding.
//!
//! Invariant: the node alone determines the dtype of a value. A value narrower than int64 or float32 ends in an `As` or
//! is a read of such a tensor; a bare literal is Python's number, and a literal of a tensor is marked by `As` of its
//! dtype. Must not know dimensions.

use crate::base::DType;
use crate::ir::graph::{NodeId, Op, Ty, UnaryOp};
use crate::python::machine::Context;
use crate::python::tensors::{self, Scalar};
use crate::python::value::Fault;
use half::{bf16, f16};

impl Context<'_> {
    /// PyTorch's dtype of a value; for a Python number its default dtype.
    pub(crate) fn dtype(&self, node: NodeId) -> DType {
        match (&self.graph.node(node).op, self.graph.ty(node)) {
            (_, Ty::Bool) => DType::Bool,
            (_, Ty::Double) => DType::F64,
            (Op::Unary(UnaryOp::As(dtype), _), _) => *dtype,
            (Op::Unary(UnaryOp::Stop, a), _) => self.dtype(*a),
            (Op::Unary(UnaryOp::ToInt32, _), _) => DType::I32,
            (Op::Load(capture, _), _) => self.graph.capture(*capture).tensor.dtype(),
            (_, Ty::Int) => DType::I64,
            (_, Ty::Float) => DType::F32,
        }
    }

    /// Whether a value is a Python number, which takes the dtype of the other operand.
    pub(crate) fn is_number(&self, node: NodeId) -> bool {
        matches!(self.graph.node(node).op, Op::Int(_) | Op::Float(_))
    }

    /// The int that a node is for sure: a number, or a tensor's element of known value.
    pub(crate) fn literal_int(&self, node: NodeId) -> Option<i64> {
        match self.graph.node(node).op {
            Op::Int(x) => Some(x),
            Op::Unary(UnaryOp::As(_), a) => match self.graph.node(a).op {
                Op::Int(x) => Some(x),
                _ => None,
            },
            _ => None,
        }
    }

    /// The dtype of an operation on values without dimensions (`torch.result_type`): a number only decides when its category
    /// is higher.
    pub(crate) fn common(&self, nodes: &[NodeId]) -> DType {
        let (mut tensors, mut numbers) = (None, None);
        for node in nodes {
            let slot = if self.is_number(*node) { &mut numbers } else { &mut tensors };
            let dtype = self.dtype(*node);
            *slot = Some(slot.map_or(dtype, |have| tensors::promote(have, dtype)));
        }
        match (tensors, numbers) {
            (Some(tensor), Some(number)) if category(number) > category(tensor) => tensors::promote(tensor, number),
            (Some(dtype), _) | (None, Some(dtype)) => dtype,
            (None, None) => DType::F32,
        }
    }

    /// A value cast to `dtype`, for an operation that goes on with it: not marked where nothing changes.
    pub(crate) fn operand_as(&mut self, node: NodeId, dtype: DType) -> Result<NodeId, Fault> {
        if let Some(number) = self.number_as(node, dtype) {
            let node = self.node(number)?;
            return if dtype == DType::F64 { self.node(Op::Unary(UnaryOp::ToDouble, node)) } else { Ok(node) };
        }
        let from = self.dtype(node);
        if from == dtype {
            return Ok(node);
        }
        let one = |op| Op::Unary(op, node);
        match dtype {
            DType::Bool => self.node(one(UnaryOp::ToBool)),
            DType::F64 => self.node(one(UnaryOp::ToDouble)),
            DType::F32 if from.is_float() && from != DType::F64 => Ok(node),
            DType::F32 => self.node(one(UnaryOp::ToFloat)),
            DType::F16 | DType::BF16 => {
                let single = self.operand_as(node, DType::F32)?;
                self.node(Op::Unary(UnaryOp::As(dtype), single))
            }
            DType::I64 if from.is_float() || from == DType::Bool => self.node(one(UnaryOp::ToInt)),
            DType::I64 => Ok(node),
            DType::U8 | DType::I8 | DType::I16 | DType::I32 if from.is_float() => {
                let whole = self.node(one(UnaryOp::ToInt32))?;
                if dtype == DType::I32 { Ok(whole) } else { self.node(Op::Unary(UnaryOp::As(dtype), whole)) }
            }
            DType::U8 | DType::I8 | DType::I16 | DType::I32 => {
                let whole = if from == DType::Bool { self.node(one(UnaryOp::ToInt))? } else { node };
                self.node(Op::Unary(UnaryOp::As(dtype), whole))
            }
        }
    }

    /// A literal as a number of `dtype`; ints wrap, like PyTorch's next to a tensor. None for other nodes.
    fn number_as(&self, node: NodeId, dtype: DType) -> Option<Op> {
        let int = |x: i64| match dtype {
            DType::U8 => i64::from(x as u8),
            DType::I8 => i64::from(x as i8),
            DType::I16 => i64::from(x as i16),
            DType::I32 => i64::from(x as i32),
            _ => x,
        };
        let float = |x: f64| match dtype {
            DType::F16 => f64::from(f16::from_f32(x as f32)),
            DType::BF16 => f64::from(bf16::from_f32(x as f32)),
            _ => x,
        };
        let (whole, real) = match self.graph.node(node).op {
            Op::Bool(x) => (i64::from(x), f64::from(u8::from(x))),
            Op::Int(x) => (x, x as f64),
            Op::Float(bits) if dtype.is_float() || dtype == DType::Bool => (0, f64::from_bits(bits)),
            _ => return None,
        };
        Some(match dtype {
            DType::Bool => Op::Bool(real != 0.0),
            dtype if dtype.is_float() => Op::Float(float(real).to_bits()),
            _ => Op::Int(int(whole)),
        })
    }

    /// The result of an operation in `dtype`: wrapped or rounded to it, and marked by its node.
    pub(crate) fn stored(&mut self, node: NodeId, dtype: DType) -> Result<NodeId, Fault> {
        if self.dtype(node) == dtype && !self.is_number(node) {
            return Ok(node);
        }
        match dtype {
            DType::Bool | DType::F64 => Ok(node),
            dtype => self.node(Op::Unary(UnaryOp::As(dtype), node)),
        }
    }

    /// `x.to(dtype)`
    #[allow(clippy::wrong_self_convention)] // PyTorch's word; it adds nodes
    pub(crate) fn to_dtype(&mut self, node: NodeId, dtype: DType) -> Result<NodeId, Fault> {
        let node = self.operand_as(node, dtype)?;
        self.stored(node, dtype)
    }

    /// Errors if `dtype` cannot represent a number and PyTorch does not let it wrap.
    pub(crate) fn must_hold(&self, dtype: DType, node: NodeId) -> Result<(), Fault> {
        let number = match self.graph.node(node).op {
            Op::Int(x) => Scalar::Int(x),
            Op::Float(bits) => Scalar::Float(f64::from_bits(bits)),
            _ => return Ok(()),
        };
        let fits = number.fits(dtype);
        if fits {
            return Ok(());
        }
        let message = format!("value cannot be converted to type {dtype} without overflow: {}", number.as_f64());
        Err(Fault::new("RuntimeError", "dtype", message)
            .hint(format!("use a value that fits in {dtype}, or cast the tensor: `.int()`")))
    }
}

/// 0 bool, 1 int, 2 float.
pub(super) fn category(dtype: DType) -> u8 {
    if dtype.is_float() { 2 } else { u8::from(dtype.is_int()) }
}
