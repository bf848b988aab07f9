//! Reductions: sums, extremes, means.
//!
//! Invariant: long float sums accumulate in double precision and round once, short sums add one by one; integer sums
//! are int64; NaN propagates. Must not know Python values.

use super::elem::{from_floats, from_ints};
use super::error::{Budget, HostError, HostResult};
use super::strided::{Strided, Walk};
use super::strided::{contiguous_strides, copy_out, finish, wrap_dim};
use crate::base::{DType, HostTensor};

/// Which dimensions go; none given means all.
#[derive(Clone, Debug, Default)]
pub struct Dims {
    /// The dimensions, negatives from the end; None or empty: all of them.
    pub dims: Option<Vec<i64>>,
    /// Whether they stay with extent 1.
    pub keep: bool,
}

impl Dims {
    /// One dimension.
    pub fn one(dim: i64, keep: bool) -> Self {
        Self { dims: Some(vec![dim]), keep }
    }
}

/// The kind of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Fold {
    Sum,
    Prod,
    Any,
    All,
    CountNonzero,
}

/// The lines that are folded: the shape that stays, the walk over their first elements, and the walk inside a line.
struct Lines {
    shape: Vec<usize>,
    count: usize,
    length: usize,
    starts: Walk,
    inside: Walk,
}

fn lines(t: &HostTensor, dims: &Dims) -> HostResult<Lines> {
    let rank = t.shape().len();
    let listed = dims.dims.as_deref().unwrap_or(&[]);
    let mut gone = vec![listed.is_empty(); rank];
    for &dim in listed {
        let d = wrap_dim(dim, rank.max(1))?;
        if rank > 0 {
            if gone[d] {
                return Err(HostError::shape(format!("dim {d} appears multiple times in the list of dims")));
            }
            gone[d] = true;
        }
    }
    let strides = contiguous_strides(t.shape());
    let pick = |want: bool| -> (Vec<usize>, Vec<isize>) {
        (0..rank).filter(|d| gone[*d] == want).map(|d| (t.shape()[d], strides[d])).unzip()
    };
    let (kept, inside) = (pick(false), pick(true));
    let shape = match dims.keep {
        true => (0..rank).map(|d| if gone[d] { 1 } else { t.shape()[d] }).collect(),
        false => kept.0.clone(),
    };
    let (count, length) = (kept.0.iter().product(), inside.0.iter().product());
    Ok(Lines {
        shape,
        count,
        length,
        starts: Walk::new(&kept.0, &kept.1, 0),
        inside: Walk::new(&inside.0, &inside.1, 0),
    })
}

impl Lines {
    /// Offsets of the elements of the next line.
    fn next(&mut self) -> impl Iterator<Item = usize> + use<> {
        let (start, mut walk) = (self.starts.next(), self.inside.clone());
        (0..self.length).map(move |_| start + walk.next())
    }
}

/// Up to this number of floats are added one after another, each sum rounded, on every processor.
const IN_ORDER: usize = 4;

/// The sum of the next line; of many floats in double precision, which no order of PyTorch's is far from.
fn sum(t: &HostTensor, out: DType, lines: &mut Lines) -> f64 {
    let few = lines.length <= IN_ORDER && out != DType::F64;
    let mut terms = lines.next().map(|i| t.float_at(i));
    match few {
        true => f64::from(terms.fold(0f32, |sum, x| sum + x as f32)),
        false => terms.by_ref().sum(),
    }
}

/// `sum`, `prod`, `any`, `all`, `count_nonzero`. `dtype` is the dtype to compute in, if given.
pub fn fold(op: Fold, t: &HostTensor, dims: &Dims, dtype: Option<DType>, budget: &Budget) -> HostResult {
    let mut lines = lines(t, dims)?;
    budget.work_each(t.numel(), 12)?;
    let kept = if matches!(op, Fold::Any | Fold::All) && t.dtype() == DType::U8 { DType::U8 } else { DType::Bool };
    let summed = dtype.unwrap_or(if t.dtype().is_float() { t.dtype() } else { DType::I64 });
    let out = match op {
        Fold::Any | Fold::All => kept,
        Fold::CountNonzero => DType::I64,
        Fold::Sum | Fold::Prod => summed,
    };
    let n = budget.charge(&lines.shape, out)?;
    debug_assert_eq!(n, lines.count);
    let nonzero = |i: usize| t.float_at(i) != 0.0;
    let data = match op {
        Fold::Any => from_ints(out, n, |_| i64::from(lines.next().any(nonzero))),
        Fold::All => from_ints(out, n, |_| i64::from(lines.next().all(nonzero))),
        Fold::CountNonzero => from_ints(out, n, |_| lines.next().filter(|i| nonzero(*i)).count() as i64),
        Fold::Sum if out.is_float() => from_floats(out, n, |_| sum(t, out, &mut lines) + 0.0),
        Fold::Prod if out.is_float() => from_floats(out, n, |_| lines.next().map(|i| t.float_at(i)).product()),
        Fold::Sum => from_ints(out, n, |_| lines.next().fold(0i64, |s, i| s.wrapping_add(t.int_at(i)))),
        Fold::Prod => from_ints(out, n, |_| lines.next().fold(1i64, |s, i| s.wrapping_mul(t.int_at(i)))),
    };
    finish(&lines.shape, data)
}

/// `mean`. Errors for integers, as PyTorch does.
pub fn mean(t: &HostTensor, dims: &Dims, dtype: Option<DType>, budget: &Budget) -> HostResult {
    let out = dtype.unwrap_or(t.dtype());
    if !out.is_float() {
        let message = format!(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {}",
            t.dtype()
        );
        return Err(HostError::dtype(message).hint("`.float().mean()`"));
    }
    let mut lines = lines(t, dims)?;
    budget.work_each(t.numel(), 12)?;
    let n = budget.charge(&lines.shape, out)?;
    let length = lines.length as f64;
    let data = from_floats(out, n, |_| sum(t, out, &mut lines) / length);
    finish(&lines.shape, data)
}

/// `var`, or with `root` `std`: divided by `count - correction`.
pub fn variance(t: &HostTensor, dims: &Dims, correction: f64, root: bool, budget: &Budget) -> HostResult {
    if !t.dtype().is_float() {
        return Err(HostError::dtype("std and var only support floating point dtypes").hint("`.float()` first"));
    }
    let mut lines = lines(t, dims)?;
    budget.charge(t.shape(), DType::F64)?;
    budget.work_each(t.numel(), 16)?;
    let n = budget.charge(&lines.shape, t.dtype())?;
    let length = lines.length as f64;
    let data = from_floats(t.dtype(), n, |_| {
        let values: Vec<f64> = lines.next().map(|i| t.float_at(i)).collect();
        let mean = values.iter().sum::<f64>() / length;
        let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        let variance = squares / (length - correction).max(0.0);
        if root { variance.sqrt() } else { variance }
    });
    finish(&lines.shape, data)
}

/// `norm(p)` over dimensions.
pub fn norm(t: &HostTensor, p: f64, dims: &Dims, budget: &Budget) -> HostResult {
    if !t.dtype().is_float() {
        return Err(HostError::dtype("norm: input must be a floating point tensor").hint("`.float()` first"));
    }
    let mut lines = lines(t, dims)?;
    budget.work_each(t.numel(), if p == 2.0 || p == f64::INFINITY { 16 } else { 60 })?;
    let n = budget.charge(&lines.shape, t.dtype())?;
    let data = from_floats(t.dtype(), n, |_| {
        let values = lines.next().map(|i| t.float_at(i).abs());
        match p {
            2.0 => values.map(|x| x * x).sum::<f64>().sqrt(),
            f64::INFINITY => values.fold(0.0, f64::max),
            _ => values.map(|x| x.powf(p)).sum::<f64>().powf(1.0 / p),
        }
    });
    finish(&lines.shape, data)
}

/// Smallest or largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Extreme {
    Min,
    Max,
}

/// Whether `b` replaces the best so far, `a`; the first of equals stays, NaN beats all.
fn beats(op: Extreme, t: &HostTensor, a: usize, b: usize) -> bool {
    if t.dtype().is_float() {
        let (x, y) = (t.float_at(a), t.float_at(b));
        return !x.is_nan() && (y.is_nan() || if op == Extreme::Min { y < x } else { y > x });
    }
    let (x, y) = (t.int_at(a), t.int_at(b));
    if op == Extreme::Min { y < x } else { y > x }
}

/// The result's shape; offset and position in its line of each line's extreme.
type Extremes = (Vec<usize>, Vec<(usize, usize)>);

/// The extreme of every line.
fn best(op: Extreme, t: &HostTensor, dims: &Dims, budget: &Budget) -> HostResult<Extremes> {
    let mut lines = lines(t, dims)?;
    budget.work_each(t.numel(), 20)?;
    let n = budget.charge(&lines.shape, DType::I64)?;
    if lines.length == 0 && n > 0 {
        let name = format!("{op:?}").to_lowercase();
        let message = format!(
            "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
        );
        return Err(HostError::shape(message).hint("the tensor is empty"));
    }
    let found = (0..n)
        .map(|_| {
            let line = lines.next().enumerate().map(|(position, offset)| (offset, position));
            line.reduce(|a, b| if beats(op, t, a.0, b.0) { b } else { a }).unwrap_or_default()
        })
        .collect();
    Ok((lines.shape, found))
}

/// `min()`, `max()`, `amin`, `amax`: the values alone.
pub fn extreme(op: Extreme, t: &HostTensor, dims: &Dims, budget: &Budget) -> HostResult {
    let (shape, found) = best(op, t, dims, budget)?;
    finish(&shape, copy_out(t.data(), found.into_iter().map(|f| f.0)))
}

/// `min(dim)`, `max(dim)`: values and int64 positions.
pub fn extreme_dim(
    op: Extreme,
    t: &HostTensor,
    dim: i64,
    keep: bool,
    budget: &Budget,
) -> HostResult<(HostTensor, HostTensor)> {
    let (shape, found) = best(op, t, &Dims::one(dim, keep), budget)?;
    let values = finish(&shape, copy_out(t.data(), found.iter().map(|f| f.0)))?;
    let places = from_ints(DType::I64, found.len(), |i| found[i].1 as i64);
    Ok((values, finish(&shape, places)?))
}

/// `argmin`, `argmax`: over the flat elements, or along a dimension.
pub fn arg_extreme(op: Extreme, t: &HostTensor, dim: Option<i64>, keep: bool, budget: &Budget) -> HostResult {
    if t.dtype() == DType::Bool {
        return Err(HostError::dtype("argmin and argmax are not implemented for dtype bool").hint("`.int()` first"));
    }
    let dims = Dims { dims: dim.map(|d| vec![d]), keep };
    let (shape, found) = best(op, t, &dims, budget)?;
    finish(&shape, from_ints(DType::I64, found.len(), |i| found[i].1 as i64))
}

/// `median(dim)`: the lower of the middle values, and its position.
pub fn median_dim(t: &HostTensor, dim: i64, keep: bool, budget: &Budget) -> HostResult<(HostTensor, HostTensor)> {
    let d = wrap_dim(dim, t.shape().len().max(1))?;
    let super::Sorted { values, places: indices, .. } = super::sort(t, dim, false, budget)?;
    let extent = t.shape().get(d).copied().unwrap_or(1);
    if extent == 0 {
        return Err(HostError::shape("median(): Expected reduction dim to be non-empty"));
    }
    let nan = |line: &HostTensor| line.dtype().is_float() && (0..line.numel()).any(|i| line.float_at(i).is_nan());
    if nan(t) {
        return Err(HostError::unsupported("median of a tensor with NaN is not evaluated").hint("remove the NaN first"));
    }
    let middle = |x: &HostTensor| -> HostResult {
        if x.shape().is_empty() {
            return Ok(x.clone());
        }
        let mut view = Strided::contiguous(x.shape()).select(d, (extent as i64 - 1) / 2)?;
        if keep {
            view = view.unsqueeze(d as i64)?;
        }
        view.read(x, budget)
    };
    Ok((middle(&values)?, middle(&indices)?))
}
