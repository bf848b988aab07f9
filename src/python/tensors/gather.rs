//! Reads and writes elements by index tensors and masks along one dimension.
//!
//! Invariant: an index outside its dimension is an error, never a wrong element. Must not know Python's indexing syntax
//! (see `index`).

use super::elem::{from_floats, from_ints, one};
use super::error::{Budget, HostError, HostResult, shape_text};
use super::promote::Scalar;
use super::shape::{around, broadcast_shapes, broadcast_walk};
use super::strided::{contiguous_strides, copy_in, copy_out, finish, wrap_dim};
use super::{Operand, cast};
use crate::base::{DType, HostTensor};

/// Refuses anything but int64 and int32 as an index of these functions.
pub(super) fn need_index(name: &str, index: &HostTensor) -> HostResult<()> {
    if matches!(index.dtype(), DType::I64 | DType::I32) {
        return Ok(());
    }
    let message = format!("{name}(): Expected dtype int32/int64 for index, but got {}", index.dtype());
    Err(HostError::dtype(message).hint("`.long()` makes integers"))
}

fn out_of_bounds(i: i64, dim: usize, size: usize) -> HostError {
    HostError::index(format!("index {i} is out of bounds for dimension {dim} with size {size}"))
}

/// `i` of a dimension of `size`; negatives wrap where PyTorch's function does.
fn place(i: i64, dim: usize, size: usize, wraps: bool) -> HostResult<usize> {
    let wrapped = if i < 0 && wraps { i + size as i64 } else { i };
    usize::try_from(wrapped).ok().filter(|w| *w < size).ok_or_else(|| out_of_bounds(i, dim, size))
}

/// `t.index_select(dim, index)`.
pub fn index_select(t: &HostTensor, dim: i64, index: &HostTensor, budget: &Budget) -> HostResult {
    need_index("index_select", index)?;
    if index.shape().len() > 1 {
        return Err(HostError::index("index_select(): Index is supposed to be a vector"));
    }
    let dim = wrap_dim(dim, t.shape().len())?;
    let (_, extent, inner) = around(t.shape(), dim);
    let mut shape = t.shape().to_vec();
    shape[dim] = index.numel();
    let n = budget.charge(&shape, t.dtype())?;
    let rows =
        (0..index.numel()).map(|i| place(index.int_at(i), dim, extent, false)).collect::<HostResult<Vec<_>>>()?;
    let from =
        |flat: usize| (flat / inner / rows.len() * extent + rows[flat / inner % rows.len()]) * inner + flat % inner;
    finish(&shape, copy_out(t.data(), (0..n).map(from)))
}

/// For each element of `index`, the offset in a tensor of `shape` whose coordinate along `dim` is the index.
pub(super) fn along(shape: &[usize], dim: usize, index: &HostTensor) -> HostResult<Vec<usize>> {
    let strides = contiguous_strides(shape);
    let own = contiguous_strides(index.shape());
    (0..index.numel())
        .map(|flat| {
            let i = place(index.int_at(flat), dim, shape[dim], false)?;
            let coordinate = |d: usize| flat / own[d] as usize % index.shape()[d];
            Ok((0..shape.len()).map(|d| if d == dim { i } else { coordinate(d) } * strides[d] as usize).sum())
        })
        .collect()
}

pub(super) fn need_inside(name: &str, index: &HostTensor, shape: &[usize], dim: usize) -> HostResult<()> {
    let inside =
        index.shape().len() == shape.len() && (0..shape.len()).all(|d| d == dim || index.shape()[d] <= shape[d]);
    if inside {
        return Ok(());
    }
    let message = format!(
        "{name}(): Expected index {} to be no larger than self {} apart from dimension {dim}",
        shape_text(index.shape()),
        shape_text(shape)
    );
    Err(HostError::shape(message))
}

/// `torch.gather(t, dim, index)`.
pub fn gather(t: &HostTensor, dim: i64, index: &HostTensor, budget: &Budget) -> HostResult {
    need_index("gather", index)?;
    let dim = wrap_dim(dim, t.shape().len())?;
    need_inside("gather", index, t.shape(), dim)?;
    budget.charge(index.shape(), DType::I64)?;
    budget.work_each(index.numel(), 32)?;
    let offsets = along(t.shape(), dim, index)?;
    budget.charge(index.shape(), t.dtype())?;
    finish(index.shape(), copy_out(t.data(), offsets.into_iter()))
}

/// `t.scatter(dim, index, source)`; with `add`, `scatter_add`.
pub fn scatter(
    t: &HostTensor,
    dim: i64,
    index: &HostTensor,
    source: &Operand,
    add: bool,
    budget: &Budget,
) -> HostResult {
    need_index("scatter", index)?;
    let dim = wrap_dim(dim, t.shape().len())?;
    need_inside("scatter", index, t.shape(), dim)?;
    let values = match source {
        Operand::Tensor(s) if s.dtype() != t.dtype() => {
            return Err(HostError::dtype("scatter(): Expected self.dtype to be equal to src.dtype").hint(format!(
                "self is {}, src is {}",
                t.dtype(),
                s.dtype()
            )));
        }
        Operand::Tensor(s) => {
            need_inside("scatter", index, s.shape(), usize::MAX)?;
            (*s).clone()
        }
        Operand::Scalar(_) => super::broadcast_to(&source.cast(t.dtype(), budget)?, index.shape(), budget)?,
    };
    budget.charge(index.shape(), DType::I64)?;
    budget.work_each(index.numel(), 32)?;
    budget.charge(t.shape(), t.dtype())?;
    let offsets = along(t.shape(), dim, index)?;
    let own = contiguous_strides(index.shape());
    let strides = contiguous_strides(values.shape());
    let from = |flat: usize| {
        (0..own.len()).map(|d| flat / own[d] as usize % index.shape()[d] * strides[d] as usize).sum::<usize>()
    };
    place_all(t, &offsets, &values, from, add)
}

/// Writes or adds `values` at `offsets`, one after another.
fn place_all(
    t: &HostTensor,
    offsets: &[usize],
    values: &HostTensor,
    from: impl Fn(usize) -> usize,
    add: bool,
) -> HostResult {
    let mut out = t.clone();
    let mut order = 0..offsets.len();
    if !add {
        copy_in(out.data_mut(), offsets.iter().copied(), values.data(), || from(order.next().unwrap_or(0)));
        return Ok(out);
    }
    let dtype = t.dtype();
    for (i, &offset) in offsets.iter().enumerate() {
        let sum = if dtype.is_float() {
            let single = |x: f64| if dtype == DType::F64 { x } else { f64::from(x as f32) };
            one(dtype, Scalar::Float(single(out.float_at(offset) + values.float_at(from(i)))))
        } else {
            one(dtype, Scalar::Int(out.int_at(offset).wrapping_add(values.int_at(from(i)))))
        };
        copy_in(out.data_mut(), std::iter::once(offset), &sum, || 0);
    }
    Ok(out)
}

/// Offsets of the rows `index` of dimension `dim`, row by row of the source layout.
fn rows(shape: &[usize], dim: usize, index: &HostTensor) -> HostResult<Vec<usize>> {
    let (outer, extent, inner) = around(shape, dim);
    let at = (0..index.numel()).map(|i| place(index.int_at(i), dim, extent, true)).collect::<HostResult<Vec<_>>>()?;
    let mut out = Vec::with_capacity(outer * at.len() * inner);
    for o in 0..outer {
        for i in &at {
            out.extend((0..inner).map(|n| (o * extent + i) * inner + n));
        }
    }
    Ok(out)
}

/// `t.index_fill(dim, index, value)`.
pub fn index_fill(t: &HostTensor, dim: i64, index: &HostTensor, value: Scalar, budget: &Budget) -> HostResult {
    need_index("index_fill", index)?;
    value.must_fit(t.dtype())?;
    let dim = wrap_dim(dim, t.shape().len())?;
    let (outer, _, inner) = around(t.shape(), dim);
    let count = budget.charge(&[outer, index.numel(), inner], DType::I64)?;
    budget.work_each(count, 16)?;
    budget.charge(t.shape(), t.dtype())?;
    let offsets = rows(t.shape(), dim, index)?;
    let mut out = t.clone();
    copy_in(out.data_mut(), offsets.into_iter(), &one(t.dtype(), value), || 0);
    Ok(out)
}

/// `t.index_add(dim, index, source)`; with `copy`, `index_copy`.
pub fn index_add(
    t: &HostTensor,
    dim: i64,
    index: &HostTensor,
    source: &HostTensor,
    copy: bool,
    budget: &Budget,
) -> HostResult {
    need_index("index_add", index)?;
    let dim = wrap_dim(dim, t.shape().len())?;
    let mut want = t.shape().to_vec();
    want[dim] = index.numel();
    if source.shape() != want || source.dtype() != t.dtype() {
        let message = format!(
            "index_add(): the source must have shape {} and dtype {}, but has {} and {}",
            shape_text(&want),
            t.dtype(),
            shape_text(source.shape()),
            source.dtype()
        );
        return Err(HostError::shape(message));
    }
    budget.charge(source.shape(), DType::I64)?;
    budget.work_each(source.numel(), 60)?;
    budget.charge(t.shape(), t.dtype())?;
    place_all(t, &rows(t.shape(), dim, index)?, source, |i| i, !copy)
}

/// `torch.take(t, index)`: from the flat elements, in the shape of the index.
pub fn take(t: &HostTensor, index: &HostTensor, budget: &Budget) -> HostResult {
    need_index("take", index)?;
    budget.charge(index.shape(), t.dtype())?;
    let offsets =
        (0..index.numel()).map(|i| place(index.int_at(i), 0, t.numel(), true)).collect::<HostResult<Vec<_>>>()?;
    finish(index.shape(), copy_out(t.data(), offsets.into_iter()))
}

fn need_mask(name: &str, mask: &HostTensor) -> HostResult<()> {
    if mask.dtype() == DType::Bool {
        return Ok(());
    }
    let message = format!("{name} only supports boolean masks, but got mask with dtype {}", mask.dtype());
    Err(HostError::dtype(message).hint("`mask.bool()`"))
}

/// `t.masked_fill(mask, value)`: mask and tensor broadcast, the dtype stays.
pub fn masked_fill(t: &HostTensor, mask: &HostTensor, value: &Operand, budget: &Budget) -> HostResult {
    need_mask("masked_fill", mask)?;
    if let Operand::Scalar(value) = value {
        value.must_fit(t.dtype())?;
    }
    if !value.shape().is_empty() {
        return Err(HostError::shape(
            "masked_fill only supports a 0-dimensional value tensor, but got tensor with more dimension(s).",
        )
        .hint("`torch.where(mask, value, t)` broadcasts"));
    }
    let value = value.cast(t.dtype(), budget)?;
    let shape = broadcast_shapes(t.shape(), mask.shape())?;
    let n = budget.charge(&shape, t.dtype())?;
    let (mut walk, mut mask_walk) = (broadcast_walk(t.shape(), &shape), broadcast_walk(mask.shape(), &shape));
    let data = if t.dtype().is_float() {
        let fill = value.float_at(0);
        from_floats(t.dtype(), n, |_| {
            let i = walk.next();
            if mask.int_at(mask_walk.next()) != 0 { fill } else { t.float_at(i) }
        })
    } else {
        let fill = value.int_at(0);
        from_ints(t.dtype(), n, |_| {
            let i = walk.next();
            if mask.int_at(mask_walk.next()) != 0 { fill } else { t.int_at(i) }
        })
    };
    finish(&shape, data)
}

/// `torch.masked_select(t, mask)`: the kept elements as a vector.
pub fn masked_select(t: &HostTensor, mask: &HostTensor, budget: &Budget) -> HostResult {
    need_mask("masked_select", mask)?;
    let shape = broadcast_shapes(t.shape(), mask.shape())?;
    let n = budget.charge(&shape, t.dtype())?;
    let (mut walk, mut mask_walk) = (broadcast_walk(t.shape(), &shape), broadcast_walk(mask.shape(), &shape));
    let kept = (0..n).map(|_| (walk.next(), mask.int_at(mask_walk.next()) != 0)).filter(|p| p.1).map(|p| p.0);
    Ok(HostTensor::vector(copy_out(t.data(), kept)))
}

/// `t.masked_scatter(mask, source)`: kept elements take the source's, in order.
pub fn masked_scatter(t: &HostTensor, mask: &HostTensor, source: &HostTensor, budget: &Budget) -> HostResult {
    need_mask("masked_scatter", mask)?;
    let mask = super::broadcast_to(mask, t.shape(), budget)?;
    budget.charge(t.shape(), DType::I64)?;
    budget.charge(t.shape(), t.dtype())?;
    let source = cast(source, t.dtype(), budget)?;
    let kept: Vec<usize> = (0..t.numel()).filter(|i| mask.int_at(*i) != 0).collect();
    if kept.len() > source.numel() {
        return Err(HostError::shape("masked_scatter: expected self and source to have enough elements for the mask"));
    }
    place_all(t, &kept, &source, |i| i, false)
}
