//! The dtype in which an operation computes.
//!
//! Invariant: PyTorch's promotion rules: dtype categories (bool < int < float), in which a Python number or a 0-d
//! tensor counts only if its category is higher. Must not touch elements.

use super::elem::one;
use super::error::{HostError, HostResult};
use crate::base::{DType, HostTensor};
use std::cell::Cell;

thread_local! {
    /// The choice of `torch.set_default_dtype` in the text that this thread runs.
    static DEFAULT: Cell<DType> = const { Cell::new(DType::F32) };
}

/// The dtype of floats that nothing else decides (`torch.get_default_dtype`).
pub fn default_float() -> DType {
    DEFAULT.get()
}

/// Chooses it for the text that this thread runs.
pub fn set_default_float(dtype: DType) {
    DEFAULT.set(dtype);
}

/// A Python number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl Scalar {
    /// Its dtype in promotion: bool, int64, or the default of floats.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => default_float(),
        }
    }

    /// As a float.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => f64::from(u8::from(b)),
            Scalar::Int(i) => i as f64,
            Scalar::Float(x) => x,
        }
    }

    /// Errors if the number is outside the range of `dtype`.
    pub(super) fn must_fit(self, dtype: DType) -> HostResult<()> {
        if self.fits(dtype) {
            return Ok(());
        }
        Err(HostError::new(format!("value cannot be converted to type {dtype} without overflow"))
            .hint(format!("the value is {}", self.as_f64())))
    }

    /// Whether `dtype` holds the number; into unsigned types small negatives wrap.
    pub fn fits(self, dtype: DType) -> bool {
        let (low, high) = match dtype {
            DType::Bool | DType::F64 | DType::F16 | DType::BF16 => return true,
            DType::U8 => (-255.0, 255.0),
            DType::I8 => (-128.0, 127.0),
            DType::I16 => (-32768.0, 32767.0),
            DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
            DType::I64 => (-9_223_372_036_854_775_808.0, 9_223_372_036_854_774_784.0),
            DType::F32 => (f64::from(f32::MIN), f64::from(f32::MAX)),
        };
        match self {
            Scalar::Float(x) if dtype.is_float() => !x.is_finite() || (low..=high).contains(&x),
            Scalar::Float(x) => (low..=high).contains(&x.trunc()),
            Scalar::Int(_) if dtype == DType::I64 => true,
            other => (low..=high).contains(&other.as_f64()),
        }
    }

    /// A tensor of no dimensions.
    pub fn tensor(self, dtype: DType) -> HostResult {
        HostTensor::scalar(one(dtype, self)).map_err(|d| HostError::shape(d.message))
    }
}

/// One operand of an operation.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    /// A tensor of any shape.
    Tensor(&'a HostTensor),
    /// A Python number.
    Scalar(Scalar),
}

impl<'a> From<&'a HostTensor> for Operand<'a> {
    fn from(t: &'a HostTensor) -> Self {
        Operand::Tensor(t)
    }
}

impl From<Scalar> for Operand<'_> {
    fn from(s: Scalar) -> Self {
        Operand::Scalar(s)
    }
}

impl Operand<'_> {
    /// Its shape; none for a number.
    pub fn shape(&self) -> &[usize] {
        match self {
            Operand::Tensor(t) => t.shape(),
            Operand::Scalar(_) => &[],
        }
    }

    /// Its own dtype.
    pub fn dtype(&self) -> DType {
        match self {
            Operand::Tensor(t) => t.dtype(),
            Operand::Scalar(s) => s.dtype(),
        }
    }

    /// As a tensor of `dtype`.
    pub(super) fn cast(&self, dtype: DType, budget: &super::Budget) -> HostResult {
        match self {
            Operand::Tensor(t) => super::cast(t, dtype, budget),
            Operand::Scalar(s) => s.tensor(dtype),
        }
    }
}

/// The smallest dtype that holds both (`torch.promote_types`).
pub fn promote(a: DType, b: DType) -> DType {
    use DType::*;
    let (low, high) = if a <= b { (a, b) } else { (b, a) };
    match (low, high) {
        (U8, I8) => I16,
        (F16, BF16) => F32,
        _ => high,
    }
}

/// 0 bool, 1 integer, 2 float.
fn category(dtype: DType) -> u8 {
    if dtype.is_float() { 2 } else { u8::from(dtype.is_int()) }
}

/// The result dtype of an operation on `operands` (`torch.result_type`).
pub fn result_type(operands: &[Operand]) -> DType {
    let (mut dims, mut zero, mut number) = (None, None, None);
    for operand in operands {
        let slot = match operand {
            Operand::Tensor(t) if !t.shape().is_empty() => &mut dims,
            Operand::Tensor(_) => &mut zero,
            Operand::Scalar(_) => &mut number,
        };
        *slot = Some(slot.map_or(operand.dtype(), |have| promote(have, operand.dtype())));
    }
    let lower = combine(zero, number);
    combine(dims, lower).unwrap_or_else(default_float)
}

/// The higher-ranked dtype unless the lower-ranked one is of a higher category.
fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    match (higher, lower) {
        (Some(h), Some(l)) if category(l) > category(h) => Some(promote(h, l)),
        (Some(h), _) => Some(h),
        (None, l) => l,
    }
}

/// Whether an in-place operation may store a result of `from` in a tensor of `to`.
pub fn can_cast(from: DType, to: DType) -> bool {
    category(from) <= category(to)
}
