//! Creates tensors: ranges, constants, nested lists, triangles.
//!
//! Invariant: the dtype is PyTorch's default for the arguments (int64, float32 unless another default was set, bool) or
//! the requested one. Must not know Python values.

use super::elem::{from_floats, from_ints, one};
use super::error::{Budget, HostError, HostResult};
use super::promote::{Scalar, default_float};
use super::strided::{Strided, copy_out, finish};
use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};

/// `torch.zeros`.
pub fn zeros(shape: &[usize], dtype: Option<DType>, budget: &Budget) -> HostResult {
    full(shape, Scalar::Int(0), Some(dtype.unwrap_or_else(default_float)), budget)
}

/// `torch.full`; the value's own dtype unless one is given.
pub fn full(shape: &[usize], value: Scalar, dtype: Option<DType>, budget: &Budget) -> HostResult {
    let dtype = dtype.unwrap_or(value.dtype());
    value.must_fit(dtype)?;
    let n = budget.charge(shape, dtype)?;
    let element = one(dtype, value);
    finish(shape, copy_out(&element, std::iter::repeat_n(0, n)))
}

/// `torch.arange(start, end, step)`. Ints give int64; one float makes it float32.
pub fn arange(start: Scalar, end: Scalar, step: Scalar, dtype: Option<DType>, budget: &Budget) -> HostResult {
    let float = [start, end, step].iter().any(|s| matches!(s, Scalar::Float(_)));
    let dtype = dtype.unwrap_or(if float { default_float() } else { DType::I64 });
    if dtype == DType::Bool {
        return Err(HostError::dtype("\"arange\" not implemented for dtype bool").hint("`torch.arange(n) < k`"));
    }
    let (first, last, by) = (start.as_f64(), end.as_f64(), step.as_f64());
    if by == 0.0 || by.is_nan() {
        return Err(HostError::new("step must be nonzero"));
    }
    if !first.is_finite() || !last.is_finite() {
        return Err(HostError::new(format!("unsupported range: {first} -> {last}")));
    }
    if (by > 0.0 && last < first) || (by < 0.0 && last > first) {
        let message = "upper bound and lower bound inconsistent with step sign";
        return Err(HostError::new(message).hint(format!("start {first}, end {last}, step {by}")));
    }
    if let (Scalar::Int(a), Scalar::Int(b), Scalar::Int(s)) = (start, end, step) {
        let count = (i128::from(b) - i128::from(a)).unsigned_abs().div_ceil(u128::from(s.unsigned_abs()));
        let shape = [usize::try_from(count).unwrap_or(usize::MAX)];
        let n = budget.charge(&shape, dtype)?;
        return finish(&shape, from_ints(dtype, n, |i| a.wrapping_add(s.wrapping_mul(i as i64))));
    }
    let shape = [((last - first) / by).ceil() as usize];
    let n = budget.charge(&shape, dtype)?;
    if dtype.is_int() {
        let (first, by) = (first as i64, by as i64);
        return finish(&shape, from_ints(dtype, n, |i| first.wrapping_add(by.wrapping_mul(i as i64))));
    }
    finish(&shape, from_floats(dtype, n, |i| step_of(dtype, first, by, i, n)))
}

/// Element `i` of `n` of a range of floats, as in PyTorch's vector loop with eight floats per register: the first
/// element of each register is rounded to the dtype, the others are counted from it; elements beyond full pairs of
/// registers are computed one by one.
fn step_of(dtype: DType, first: f64, by: f64, i: usize, n: usize) -> f64 {
    let lanes = match dtype {
        DType::F64 => 4,
        DType::F16 | DType::BF16 => 16,
        _ => 8,
    };
    let short = matches!(dtype, DType::F16 | DType::BF16);
    // halves are counted in float32
    let at = |base: f64, count: usize| {
        let count = count as f64;
        if short { f64::from(base as f32 + count as f32 * by as f32) } else { by.mul_add(count, base) }
    };
    if i >= n / (2 * lanes) * (2 * lanes) {
        return at(first, i);
    }
    let base = at(first, i / lanes * lanes);
    let base = match dtype {
        DType::F64 => base,
        DType::F16 => f64::from(half::f16::from_f32(base as f32)),
        DType::BF16 => f64::from(half::bf16::from_f32(base as f32)),
        _ => f64::from(base as f32),
    };
    at(base, i % lanes)
}

/// `torch.linspace(start, end, steps)`: from both ends towards the middle, as PyTorch does.
pub fn linspace(start: f64, end: f64, steps: i64, dtype: Option<DType>, budget: &Budget) -> HostResult {
    if steps < 0 {
        return Err(HostError::new("number of steps must be non-negative"));
    }
    let dtype = dtype.unwrap_or_else(default_float);
    let n = budget.charge(&[steps as usize], dtype)?;
    let data = if dtype == DType::F64 {
        let by = (end - start) / (n as f64 - 1.0).max(1.0);
        from_floats(dtype, n, |i| if i < n / 2 { start + by * i as f64 } else { end - by * (n - 1 - i) as f64 })
    } else {
        let (start, end) = (start as f32, end as f32);
        let by = (end - start) / (n as f32 - 1.0).max(1.0);
        from_floats(dtype, n, |i| {
            f64::from(if i < n / 2 { by.mul_add(i as f32, start) } else { (-by).mul_add((n - 1 - i) as f32, end) })
        })
    };
    if n == 1 { full(&[1], Scalar::Float(start), Some(dtype), budget) } else { finish(&[n], data) }
}

/// `torch.logspace(start, end, steps, base)`.
pub fn logspace(start: f64, end: f64, steps: i64, base: f64, dtype: Option<DType>, budget: &Budget) -> HostResult {
    let exponents = linspace(start, end, steps, Some(DType::F64), budget)?;
    let dtype = dtype.unwrap_or_else(default_float);
    finish(exponents.shape(), from_floats(dtype, exponents.numel(), |i| base.powf(exponents.float_at(i))))
}

/// `torch.eye(rows, columns)`.
pub fn eye(rows: usize, columns: usize, dtype: Option<DType>, budget: &Budget) -> HostResult {
    let dtype = dtype.unwrap_or_else(default_float);
    let n = budget.charge(&[rows, columns], dtype)?;
    finish(&[rows, columns], from_ints(dtype, n, |i| i64::from(i / columns == i % columns)))
}

/// The arguments of `torch.tensor`: numbers, lists of them, tensors inside.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Nested {
    Number(Scalar),
    List(Vec<Nested>),
    Tensor(HostTensor),
}

/// `torch.tensor(data, dtype=...)`: the dtype is the widest category among the numbers.
pub fn tensor(data: &Nested, dtype: Option<DType>, budget: &Budget) -> HostResult {
    if let Nested::Tensor(t) = data {
        return super::cast(t, dtype.unwrap_or(t.dtype()), budget);
    }
    let mut shape = Vec::new();
    let mut first = data;
    loop {
        match first {
            Nested::List(items) => {
                shape.push(items.len());
                match items.first() {
                    Some(item) => first = item,
                    None => break,
                }
            }
            Nested::Tensor(t) => {
                shape.extend(t.shape());
                break;
            }
            Nested::Number(_) => break,
        }
    }
    let dtype = dtype.or_else(|| infer(data)).unwrap_or_else(default_float);
    let n = budget.charge(&shape, dtype)?;
    let mut leaves = Vec::with_capacity(n);
    flatten(data, &shape, 0, &mut leaves)?;
    let rounds = |leaf: &Scalar| dtype.is_float() && matches!(leaf, Scalar::Float(_));
    leaves.iter().filter(|leaf| !rounds(leaf)).try_for_each(|leaf| leaf.must_fit(dtype))?;
    let whole = leaves.iter().all(|s| !matches!(s, Scalar::Float(_)));
    let data = if whole {
        from_ints(dtype, n, |i| match leaves[i] {
            Scalar::Int(v) => v,
            other => other.as_f64() as i64,
        })
    } else {
        from_floats(dtype, n, |i| leaves[i].as_f64())
    };
    finish(&shape, data)
}

/// The dtype of the widest number in it.
fn infer(data: &Nested) -> Option<DType> {
    match data {
        Nested::Number(s) => Some(s.dtype()),
        Nested::Tensor(t) => Some(t.dtype()),
        Nested::List(items) => items.iter().filter_map(infer).reduce(super::promote),
    }
}

fn flatten(data: &Nested, shape: &[usize], depth: usize, out: &mut Vec<Scalar>) -> HostResult<()> {
    match data {
        Nested::Number(s) if depth == shape.len() => out.push(*s),
        Nested::Tensor(t) if t.shape() == &shape[depth..] => {
            let float = t.dtype().is_float();
            let scalar = |i| if float { Scalar::Float(t.float_at(i)) } else { Scalar::Int(t.int_at(i)) };
            out.extend((0..t.numel()).map(scalar));
        }
        Nested::List(items) if depth < shape.len() && items.len() == shape[depth] => {
            for item in items {
                flatten(item, shape, depth + 1, out)?;
            }
        }
        Nested::List(items) if depth < shape.len() => {
            let (want, have) = (shape[depth], items.len());
            let message = format!("expected sequence of length {want} at dim {depth} (got {have})");
            return Err(HostError::shape(message).hint("all rows of a tensor have one length; pad the short ones"));
        }
        _ => return Err(HostError::shape(format!("the nesting differs between items at dim {depth}"))),
    }
    Ok(())
}

/// `torch.tril` (`lower`) and `torch.triu` of the last two dimensions.
pub fn triangle(t: &HostTensor, lower: bool, diagonal: i64, budget: &Budget) -> HostResult {
    let &[.., rows, columns] = t.shape() else {
        return Err(HostError::shape("tril and triu: input tensor must have at least 2 dimensions"));
    };
    budget.charge(t.shape(), t.dtype())?;
    let mut out = t.clone();
    let zero = one(t.dtype(), Scalar::Int(0));
    let dropped = (0..t.numel()).filter(|flat| {
        let (row, column) = ((flat / columns % rows) as i64, (flat % columns) as i64);
        let above = column - row > diagonal;
        let below = column - row < diagonal;
        if lower { above } else { below }
    });
    super::strided::copy_in(out.data_mut(), dropped, &zero, || 0);
    Ok(out)
}

/// `torch.tril_indices` and `torch.triu_indices`: [2, count] of int64.
pub fn tri_indices(rows: usize, columns: usize, lower: bool, offset: i64, budget: &Budget) -> HostResult {
    budget.charge(&[rows], DType::I64)?;
    // The columns of a row that belong to the triangle.
    let span = |r: usize| {
        let edge = (r as i64).saturating_add(offset).saturating_add(i64::from(lower)).clamp(0, columns as i64) as usize;
        if lower { 0..edge } else { edge..columns }
    };
    let count = (0..rows).fold(0usize, |n, r| n.saturating_add(span(r).len()));
    budget.charge(&[2, count], DType::I64)?;
    let mut both = Vec::with_capacity(2 * count);
    (0..rows).for_each(|r| both.extend(std::iter::repeat_n(r as i64, span(r).len())));
    (0..rows).for_each(|r| both.extend(span(r).map(|c| c as i64)));
    finish(&[2, count], Data::I64(both))
}

/// A vector onto a diagonal of a square matrix (`torch.diag` of a vector).
pub fn diag_embed(t: &HostTensor, offset: i64, budget: &Budget) -> HostResult {
    let side = t.numel().saturating_add(offset.unsigned_abs() as usize);
    let mut out = zeros(&[side, side], Some(t.dtype()), budget)?;
    let view = Strided::contiguous(&[side, side]).diagonal(offset, 0, 1)?;
    let (mut to, mut from) = (view.walk(), 0..t.numel());
    super::strided::copy_in(out.data_mut(), (0..t.numel()).map(|_| to.next()), t.data(), || from.next().unwrap_or(0));
    Ok(out)
}

/// `torch.meshgrid`: `ij` (rows first) or `xy`.
pub fn meshgrid(vectors: &[HostTensor], xy: bool, budget: &Budget) -> HostResult<Vec<HostTensor>> {
    if let Some(t) = vectors.iter().find(|t| t.shape().len() > 1) {
        let message = format!("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {:?}", t.shape());
        return Err(HostError::shape(message));
    }
    let swap = |d: usize| if xy && vectors.len() > 1 && d < 2 { 1 - d } else { d };
    let shape: Vec<usize> = (0..vectors.len()).map(|d| vectors[swap(d)].numel()).collect();
    let mut out = Vec::with_capacity(vectors.len());
    for (i, t) in vectors.iter().enumerate() {
        let mut own = vec![1; vectors.len()];
        own[swap(i)] = t.numel();
        let t = t.reshaped(own).map_err(|d| HostError::shape(d.message))?;
        out.push(super::broadcast_to(&t, &shape, budget)?);
    }
    Ok(out)
}
