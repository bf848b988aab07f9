//! Operations that move elements without computing: broadcasting, joining, repeating, reversing.
//!
//! Invariant: every output element is a copy of an input element. Must not know arithmetic.

use super::error::{Budget, HostError, HostResult, shape_text};
use super::promote::{Operand, result_type};
use super::strided::{Strided, Walk, contiguous_strides, copy_out, finish, wrap_dim};
use super::{Scalar, cast};
use crate::base::{DType, HostTensor};

/// The common shape of two, by PyTorch's broadcasting.
pub fn broadcast_shapes(a: &[usize], b: &[usize]) -> HostResult<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |s: &[usize], d: usize| (d + s.len()).checked_sub(rank).map_or(1, |d| s[d]);
    let mut out = Vec::with_capacity(rank);
    for d in 0..rank {
        out.push(match (at(a, d), at(b, d)) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            (x, y) => {
                let message = format!(
                    "The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {d}"
                );
                let shapes = format!("the shapes are {} and {}", shape_text(a), shape_text(b));
                return Err(HostError::shape(message).hint(shapes));
            }
        });
    }
    Ok(out)
}

/// A walk over a contiguous tensor of shape `from`, broadcast to `to`.
pub(super) fn broadcast_walk(from: &[usize], to: &[usize]) -> Walk {
    let own = contiguous_strides(from);
    let lead = to.len() - from.len();
    let mut strides = vec![0isize; to.len()];
    for (d, &n) in from.iter().enumerate() {
        strides[lead + d] = if n == 1 { 0 } else { own[d] };
    }
    Walk::new(to, &strides, 0)
}

/// The tensor repeated to a shape that it broadcasts to.
pub fn broadcast_to(t: &HostTensor, shape: &[usize], budget: &Budget) -> HostResult {
    let sizes: Vec<i64> = shape.iter().map(|d| *d as i64).collect();
    Strided::contiguous(t.shape()).expand(&sizes)?.read(t, budget)
}

/// Elements of `t` in the order that `offset` gives for each output element.
fn copy_by(t: &HostTensor, shape: &[usize], budget: &Budget, offset: impl FnMut(usize) -> usize) -> HostResult {
    let n = budget.charge(shape, t.dtype())?;
    finish(shape, copy_out(t.data(), (0..n).map(offset)))
}

/// Extents before, at and after a dimension.
pub(super) fn around(shape: &[usize], dim: usize) -> (usize, usize, usize) {
    (shape[..dim].iter().product(), shape[dim], shape[dim + 1..].iter().product())
}

/// Tensors joined along a dimension. Empty 1-D tensors are skipped, as PyTorch does.
pub fn cat(tensors: &[HostTensor], dim: i64, budget: &Budget) -> HostResult {
    let Some(first) = tensors.iter().find(|t| t.shape() != [0]).or(tensors.first()) else {
        return Err(HostError::shape("torch.cat(): expected a non-empty list of Tensors"));
    };
    let operands: Vec<Operand> = tensors.iter().map(Operand::from).collect();
    let dtype = operands.iter().map(|o| o.dtype()).reduce(super::promote).unwrap_or_else(|| result_type(&operands));
    if tensors.iter().any(|t| t.shape().is_empty()) {
        return Err(HostError::shape("zero-dimensional tensor (at position 0) cannot be concatenated")
            .hint("torch.stack joins scalars"));
    }
    let dim = wrap_dim(dim, first.shape().len())?;
    let mut shape = first.shape().to_vec();
    shape[dim] = 0;
    let mut parts = Vec::new();
    for (n, t) in tensors.iter().enumerate().filter(|(_, t)| t.shape() != [0] || first.shape().len() == 1) {
        let fits = t.shape().len() == shape.len() && (0..shape.len()).all(|d| d == dim || t.shape()[d] == shape[d]);
        if !fits {
            let message = format!(
                "Sizes of tensors must match except in dimension {dim}. Expected shape {} but got shape {} for tensor number {n} in the list.",
                shape_text(first.shape()),
                shape_text(t.shape())
            );
            return Err(HostError::shape(message));
        }
        shape[dim] += t.shape()[dim];
        parts.push(cast(t, dtype, budget)?);
    }
    budget.charge(&shape, dtype)?;
    let (outer, _, inner) = around(&shape, dim);
    let mut data = copy_out(parts[0].data(), std::iter::empty());
    for o in 0..outer {
        for part in &parts {
            let run = part.shape()[dim] * inner;
            append(&mut data, part, o * run, run);
        }
    }
    finish(&shape, data)
}

fn append(data: &mut crate::base::tensor::Data, part: &HostTensor, from: usize, count: usize) {
    use crate::base::tensor::Data;
    macro_rules! extend {
        ($($variant:ident)*) => {
            match (data, part.data()) {
                $((Data::$variant(to), Data::$variant(v)) => to.extend_from_slice(&v[from..from + count]),)*
                _ => debug_assert!(false, "parts are cast before they are joined"),
            }
        };
    }
    extend!(Bool U8 I8 I16 I32 I64 F16 BF16 F32 F64);
}

/// Tensors of one shape along a new dimension.
pub fn stack(tensors: &[HostTensor], dim: i64, budget: &Budget) -> HostResult {
    let Some(first) = tensors.first() else {
        return Err(HostError::shape("stack expects a non-empty TensorList"));
    };
    let dim = wrap_dim(dim, first.shape().len() + 1)?;
    let mut parts = Vec::with_capacity(tensors.len());
    for (n, t) in tensors.iter().enumerate() {
        if t.shape() != first.shape() {
            let message = format!(
                "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {n}",
                shape_text(first.shape()),
                shape_text(t.shape())
            );
            return Err(HostError::shape(message));
        }
        let mut shape = t.shape().to_vec();
        shape.insert(dim, 1);
        parts.push(t.reshaped(shape).map_err(|d| HostError::shape(d.message))?);
    }
    cat(&parts, dim as i64, budget)
}

/// `.repeat(*sizes)` (and `torch.tile` after its own padding of sizes).
pub fn repeat(t: &HostTensor, sizes: &[i64], budget: &Budget) -> HostResult {
    let rank = t.shape().len();
    if sizes.len() < rank {
        return Err(HostError::shape(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        ));
    }
    let negative = sizes.iter().find(|n| **n < 0);
    if let Some(n) = negative {
        return Err(HostError::shape(format!("Trying to create tensor with negative dimension {n}: {sizes:?}")));
    }
    let lead = sizes.len() - rank;
    let own = |d: usize| d.checked_sub(lead).map_or(1, |d| t.shape()[d]);
    // Each dimension becomes (repeats with stride 0, own extent).
    let strides = contiguous_strides(t.shape());
    let (mut shape, mut wide, mut walked) = (Vec::new(), Vec::new(), Vec::new());
    for (d, &n) in sizes.iter().enumerate() {
        shape.push((n as usize).saturating_mul(own(d)));
        wide.extend([n as usize, own(d)]);
        walked.extend([0, d.checked_sub(lead).map_or(0, |d| strides[d])]);
    }
    let mut walk = Walk::new(&wide, &walked, 0);
    copy_by(t, &shape, budget, |_| walk.next())
}

/// Each element along `dim` repeated `repeats` times: one number, or one for each.
pub fn repeat_interleave(t: &HostTensor, repeats: &[i64], dim: usize, budget: &Budget) -> HostResult {
    let (outer, extent, inner) = around(t.shape(), dim);
    if repeats.len() != 1 && repeats.len() != extent {
        let message = format!(
            "repeats must have the same size as input along dim, but got repeats.size(0) = {} and input.size({dim}) = {extent}",
            repeats.len()
        );
        return Err(HostError::shape(message));
    }
    if repeats.iter().any(|n| *n < 0) {
        return Err(HostError::shape("repeats can not be negative"));
    }
    let times = |i: usize| repeats[if repeats.len() == 1 { 0 } else { i }] as usize;
    let total = (0..extent).try_fold(0usize, |n, i| n.checked_add(times(i))).unwrap_or(usize::MAX);
    let mut shape = t.shape().to_vec();
    shape[dim] = total;
    budget.charge(&shape, DType::I64)?;
    let sources: Vec<usize> = (0..extent).flat_map(|i| std::iter::repeat_n(i, times(i))).collect();
    let _ = outer;
    copy_by(t, &shape, budget, |flat| {
        let (rest, i) = (flat / inner, flat % inner);
        (rest / total * extent + sources[rest % total]) * inner + i
    })
}

/// Elements shifted along dimensions, wrapping around; without dimensions in the flat order.
pub fn roll(t: &HostTensor, shifts: &[i64], dims: &[i64], budget: &Budget) -> HostResult {
    if dims.is_empty() && shifts.len() == 1 {
        let n = t.numel() as i64;
        return copy_by(t, t.shape(), budget, |i| (i as i64 - shifts[0] % n.max(1)).rem_euclid(n.max(1)) as usize);
    }
    if dims.len() != shifts.len() {
        let message = format!("shifts and dimensions must align. shifts: {}, dims:{}", shifts.len(), dims.len());
        return Err(HostError::shape(message));
    }
    let mut out = t.clone();
    for (&shift, &dim) in shifts.iter().zip(dims) {
        let (_, extent, inner) = around(t.shape(), wrap_dim(dim, t.shape().len())?);
        out = copy_by(&out, t.shape(), budget, |flat| {
            let (rest, i) = (flat / inner, flat % inner);
            let from = (rest % extent) as i64 - shift % extent as i64;
            (rest / extent * extent + from.rem_euclid(extent as i64) as usize) * inner + i
        })?;
    }
    Ok(out)
}

/// Dimensions reversed.
pub fn flip(t: &HostTensor, dims: &[i64], budget: &Budget) -> HostResult {
    let mut strides = contiguous_strides(t.shape());
    let mut offset = 0usize;
    for &dim in dims {
        let d = wrap_dim(dim, t.shape().len())?;
        if strides[d] < 0 {
            return Err(HostError::shape(format!("dim {d} appears multiple times in the list of dims")));
        }
        offset += strides[d].unsigned_abs() * t.shape()[d].saturating_sub(1);
        strides[d] = -strides[d];
    }
    if t.numel() == 0 {
        return Ok(t.clone());
    }
    let mut walk = Walk::new(t.shape(), &strides, offset);
    copy_by(t, t.shape(), budget, |_| walk.next())
}

/// Quarter turns in the plane of two dimensions.
pub fn rot90(t: &HostTensor, k: i64, dims: (i64, i64), budget: &Budget) -> HostResult {
    let view = |t: &HostTensor| Strided::contiguous(t.shape()).transpose(dims.0, dims.1)?.read(t, budget);
    match k.rem_euclid(4) {
        1 => view(&flip(t, &[dims.1], budget)?),
        2 => flip(t, &[dims.0, dims.1], budget),
        3 => flip(&view(t)?, &[dims.1], budget),
        _ => Ok(t.clone()),
    }
}

/// Constant padding, pairs from the last dimension backwards (`F.pad`); negative amounts crop.
pub fn pad(t: &HostTensor, amounts: &[i64], value: Scalar, budget: &Budget) -> HostResult {
    let rank = t.shape().len();
    if amounts.iter().any(|n| n.unsigned_abs() > 1 << 48) {
        return Err(budget.refuse("padding by this much"));
    }
    if !amounts.len().is_multiple_of(2) || amounts.len() / 2 > rank {
        return Err(HostError::shape(
            "Padding length must be divisible by 2 and at most twice the number of dimensions",
        ));
    }
    let mut shape = t.shape().to_vec();
    let mut before = vec![0i64; rank];
    for (pair, both) in amounts.chunks_exact(2).enumerate() {
        let d = rank - 1 - pair;
        let size = (shape[d] as i64).saturating_add(both[0]).saturating_add(both[1]);
        if size < 0 {
            return Err(HostError::shape(format!("the padding {both:?} leaves dimension {d} with a negative size")));
        }
        shape[d] = size as usize;
        before[d] = both[0];
    }
    let mut out = super::full(&shape, value, Some(t.dtype()), budget)?;
    let (mut to, mut from) = (Strided::contiguous(&shape), Strided::contiguous(t.shape()));
    for d in 0..rank {
        let (low, size) = (before[d], t.shape()[d] as i64);
        let length = (size.min(shape[d] as i64 - low) - (-low).max(0)).max(0);
        to = to.slice(d, Some(low.max(0)), Some(low.max(0) + length), None)?;
        from = from.slice(d, Some((-low).max(0)), Some((-low).max(0) + length), None)?;
    }
    let (mut reader, mut writer) = (from.walk(), to.walk());
    super::strided::copy_in(out.data_mut(), (0..to.numel()).map(|_| writer.next()), t.data(), || reader.next());
    Ok(out)
}

/// Lengths of `torch.chunk(t, chunks)` along a dimension of `extent`.
pub fn chunk_sizes(extent: usize, chunks: i64) -> HostResult<Vec<usize>> {
    if chunks <= 0 {
        return Err(HostError::shape(format!("chunk expects `chunks` to be greater than 0, got: {chunks}")));
    }
    split_sizes(extent, extent.div_ceil(chunks as usize).max(1) as i64)
}

/// Lengths of `torch.split(t, size)` along a dimension of `extent`.
pub fn split_sizes(extent: usize, size: i64) -> HostResult<Vec<usize>> {
    if size < 0 || (size == 0 && extent > 0) {
        return Err(HostError::shape(format!("split expects split_size be non-negative, but got split_size={size}")));
    }
    if extent == 0 {
        return Ok(vec![0]);
    }
    let size = (size as usize).min(extent);
    Ok((0..extent.div_ceil(size)).map(|i| size.min(extent - i * size)).collect())
}
