//! Running sums and similar functions along one dimension.
//!
//! Invariant: float32 accumulates in double precision and rounds each element, like PyTorch's CPU kernels. Must not
//! know Python values.

use super::elem::{from_floats, from_ints};
use super::error::{Budget, HostError, HostResult};
use super::shape::around;
use super::strided::{Strided, finish, wrap_dim};
use super::{Binary, Dims, Operand, binary};
use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};
use crate::ir::ops::UnaryOp;

/// The running operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Scan {
    Sum,
    Prod,
}

/// `cumsum`, `cumprod`; integers give int64.
pub fn scan(op: Scan, t: &HostTensor, dim: i64, dtype: Option<DType>, budget: &Budget) -> HostResult {
    let dim = wrap_dim(dim, t.shape().len().max(1))?;
    let out = dtype.unwrap_or(if t.dtype().is_float() { t.dtype() } else { DType::I64 });
    let t = super::cast(t, out, budget)?;
    let n = budget.charge(t.shape(), out)?;
    budget.charge(t.shape(), DType::I64)?;
    if t.shape().is_empty() {
        return Ok(t);
    }
    let (_, extent, inner) = around(t.shape(), dim);
    let first = |flat: usize| (flat / inner).is_multiple_of(extent);
    if out.is_float() {
        let mut run = vec![0f64; n];
        for flat in 0..n {
            let x = t.float_at(flat);
            run[flat] = match (first(flat), op) {
                (true, _) => x,
                (_, Scan::Sum) => run[flat - inner] + x,
                (_, Scan::Prod) => run[flat - inner] * x,
            };
        }
        return finish(t.shape(), from_floats(out, n, |i| run[i]));
    }
    let mut run = vec![0i64; n];
    for flat in 0..n {
        let x = t.int_at(flat);
        run[flat] = match (first(flat), op) {
            (true, _) => x,
            (_, Scan::Sum) => run[flat - inner].wrapping_add(x),
            (_, Scan::Prod) => run[flat - inner].wrapping_mul(x),
        };
    }
    finish(t.shape(), from_ints(out, n, |i| run[i]))
}

/// `cummax` and `cummin`: values and int64 positions of the last extreme so far.
pub fn cumulative_extreme(
    largest: bool,
    t: &HostTensor,
    dim: i64,
    budget: &Budget,
) -> HostResult<(HostTensor, HostTensor)> {
    let dim = wrap_dim(dim, t.shape().len().max(1))?;
    let n = budget.charge(t.shape(), DType::I64)?;
    if t.shape().is_empty() {
        return Ok((t.clone(), HostTensor::scalar(Data::I64(vec![0])).map_err(|d| HostError::shape(d.message))?));
    }
    let (_, extent, inner) = around(t.shape(), dim);
    let mut from: Vec<usize> = (0..n).collect();
    for flat in 0..n {
        if flat / inner % extent == 0 {
            continue;
        }
        let (best, x) = (t.float_at(from[flat - inner]), t.float_at(flat));
        let keeps = if best.is_nan() {
            !x.is_nan()
        } else if x.is_nan() {
            false
        } else if largest {
            best > x
        } else {
            best < x
        };
        if keeps {
            from[flat] = from[flat - inner];
        }
    }
    let places = from_ints(DType::I64, n, |i| (from[i] / inner % extent) as i64);
    let values = super::strided::copy_out(t.data(), from.iter().copied());
    Ok((finish(t.shape(), values)?, finish(t.shape(), places)?))
}

/// `torch.diff(t, n, dim)` without prepended or appended values.
pub fn diff(t: &HostTensor, n: i64, dim: i64, budget: &Budget) -> HostResult {
    if n < 0 {
        return Err(HostError::new(format!("order must be non-negative but got {n}")));
    }
    let dim = wrap_dim(dim, t.shape().len())?;
    let mut out = t.clone();
    for _ in 0..n.min(out.shape()[dim] as i64) {
        let whole = Strided::contiguous(out.shape());
        let length = out.shape()[dim] as i64;
        let later = whole.slice(dim, Some(1), None, None)?.read(&out, budget)?;
        let earlier = whole.slice(dim, Some(0), Some((length - 1).max(0)), None)?.read(&out, budget)?;
        let op = if out.dtype() == DType::Bool { Binary::LogicalXor } else { Binary::Sub };
        out = binary(op, Operand::Tensor(&later), Operand::Tensor(&earlier), budget)?;
    }
    Ok(out)
}

/// `softmax` or, with `log`, `log_softmax` along a dimension.
pub fn softmax(t: &HostTensor, dim: i64, log: bool, dtype: Option<DType>, budget: &Budget) -> HostResult {
    let out = dtype.unwrap_or(t.dtype());
    if !out.is_float() {
        return Err(HostError::dtype(format!("\"softmax_lastdim_kernel_impl\" not implemented for dtype {out}"))
            .hint("`.float()` first"));
    }
    let lse = logsumexp(&super::cast(t, DType::F64, budget)?, &Dims::one(dim, true), budget)?;
    let wide = super::cast(t, DType::F64, budget)?;
    let mut result = binary(Binary::Sub, Operand::Tensor(&wide), Operand::Tensor(&lse), budget)?;
    if !log {
        result = super::unary(super::Unary::Function(UnaryOp::Exp), &result, budget)?;
    }
    super::cast(&result, out, budget)
}

/// `logsumexp` over dimensions; a line of -inf gives -inf.
pub fn logsumexp(t: &HostTensor, dims: &Dims, budget: &Budget) -> HostResult {
    let out = if t.dtype().is_float() { t.dtype() } else { super::default_float() };
    let wide = super::cast(t, DType::F64, budget)?;
    let kept = Dims { keep: true, ..dims.clone() };
    let largest = super::extreme(super::Extreme::Max, &wide, &kept, budget)?;
    let finite = from_floats(DType::F64, largest.numel(), |i| {
        let x = largest.float_at(i);
        if x.is_infinite() { 0.0 } else { x }
    });
    let largest = finish(largest.shape(), finite)?;
    let shifted = binary(Binary::Sub, Operand::Tensor(&wide), Operand::Tensor(&largest), budget)?;
    let powers = super::unary(super::Unary::Function(UnaryOp::Exp), &shifted, budget)?;
    let sums = super::fold(super::Fold::Sum, &powers, dims, None, budget)?;
    let logs = from_floats(out, sums.numel(), |i| sums.float_at(i).ln() + largest.float_at(i));
    finish(sums.shape(), logs)
}
