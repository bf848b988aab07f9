//! `scatter_reduce`: combines several elements written to one place.
//!
//! Invariant: elements arrive in the order of the index, like in PyTorch's CPU kernel. Must not know Python values.

use super::elem::{from_floats, from_ints};
use super::error::{Budget, HostError, HostResult};
use super::gather::{along, need_index, need_inside};
use super::strided::{contiguous_strides, finish, wrap_dim};
use super::{Operand, broadcast_to};
use crate::base::{DType, HostTensor};

/// The combination of elements at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Gather {
    Sum,
    Prod,
    Mean,
    Max,
    Min,
}

/// `t.scatter_reduce(dim, index, source, how, include_self)`: shape and dtype of `t`.
pub fn scatter_reduce(
    t: &HostTensor,
    dim: i64,
    index: &HostTensor,
    source: &Operand,
    how: Gather,
    own: bool,
    budget: &Budget,
) -> HostResult {
    need_index("scatter_reduce", index)?;
    let dim = wrap_dim(dim, t.shape().len())?;
    need_inside("scatter_reduce", index, t.shape(), dim)?;
    if source.dtype() != t.dtype() && matches!(source, Operand::Tensor(_)) {
        return Err(HostError::dtype("scatter(): Expected self.dtype to be equal to src.dtype"));
    }
    let values = match source {
        Operand::Tensor(s) => {
            need_inside("scatter_reduce", index, s.shape(), usize::MAX)?;
            (*s).clone()
        }
        Operand::Scalar(_) => broadcast_to(&source.cast(t.dtype(), budget)?, index.shape(), budget)?,
    };
    budget.charge(index.shape(), DType::I64)?;
    budget.work_each(index.numel(), 60)?;
    budget.charge(t.shape(), DType::F64)?;
    budget.charge(t.shape(), t.dtype())?;
    let places = along(t.shape(), dim, index)?;
    let (at, strides) = (contiguous_strides(index.shape()), contiguous_strides(values.shape()));
    let from = |flat: usize| -> usize {
        (0..at.len()).map(|d| flat / at[d] as usize % index.shape()[d] * strides[d] as usize).sum()
    };
    let mut counts = vec![i64::from(own); t.numel()];
    let dtype = t.dtype();
    let data = if dtype.is_float() {
        // single precision and the halves are rounded at every step
        let round = |x: f64| match dtype {
            DType::F64 => x,
            DType::F16 => half::f16::from_f64(x).to_f64(),
            DType::BF16 => half::bf16::from_f64(x).to_f64(),
            _ => f64::from(x as f32),
        };
        let mut out: Vec<f64> = (0..t.numel()).map(|i| t.float_at(i)).collect();
        for (i, place) in places.iter().enumerate() {
            let x = values.float_at(from(i));
            out[*place] = if counts[*place] == 0 { x } else { round(floats(how, out[*place], x)) };
            counts[*place] += 1;
        }
        if how == Gather::Mean {
            out.iter_mut().zip(&counts).filter(|(_, n)| **n > 0).for_each(|(x, n)| *x = round(*x / *n as f64));
        }
        from_floats(dtype, out.len(), |i| out[i])
    } else {
        let mut out: Vec<i64> = (0..t.numel()).map(|i| t.int_at(i)).collect();
        for (i, place) in places.iter().enumerate() {
            let x = values.int_at(from(i));
            out[*place] = if counts[*place] == 0 { x } else { ints(how, out[*place], x) };
            counts[*place] += 1;
        }
        if how == Gather::Mean {
            out.iter_mut().zip(&counts).filter(|(_, n)| **n > 0).for_each(|(x, n)| *x = x.div_euclid(*n));
        }
        from_ints(dtype, out.len(), |i| out[i])
    };
    finish(t.shape(), data)
}

fn floats(how: Gather, a: f64, b: f64) -> f64 {
    match how {
        Gather::Sum | Gather::Mean => a + b,
        Gather::Prod => a * b,
        Gather::Max | Gather::Min if a.is_nan() || b.is_nan() => f64::NAN,
        Gather::Max => a.max(b),
        Gather::Min => a.min(b),
    }
}

fn ints(how: Gather, a: i64, b: i64) -> i64 {
    match how {
        Gather::Sum | Gather::Mean => a.wrapping_add(b),
        Gather::Prod => a.wrapping_mul(b),
        Gather::Max => a.max(b),
        Gather::Min => a.min(b),
    }
}
