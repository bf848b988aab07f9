//! Sorting, searching, counting.
//!
//! Invariant: NaN sorts last, equal elements keep their order. Must not know Python values.

use super::elem::from_ints;
use super::error::{Budget, HostError, HostResult, shape_text};
use super::shape::around;
use super::strided::{copy_out, finish, wrap_dim};
use super::{Operand, cast, result_type};
use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};
use std::cmp::Ordering;

/// Compares two elements; NaN is larger than all.
fn compare(t: &HostTensor, a: usize, b: usize) -> Ordering {
    if t.dtype().is_float() {
        let (x, y) = (t.float_at(a), t.float_at(b));
        return x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()));
    }
    t.int_at(a).cmp(&t.int_at(b))
}

/// For each line along `dim` (`extent` entries a line), the positions of its elements in sorted order.
fn order(t: &HostTensor, dim: usize, descending: bool, budget: &Budget) -> HostResult<Vec<usize>> {
    let (_, extent, inner) = around(t.shape(), dim);
    let n = budget.charge(t.shape(), DType::I64)?;
    budget.work_each(n, 20 * u64::from(usize::BITS - extent.leading_zeros()))?;
    let mut places: Vec<usize> = (0..n).map(|i| i % extent).collect();
    for (line, places) in places.chunks_exact_mut(extent.max(1)).enumerate() {
        let at = |i: usize| (line / inner * extent + i) * inner + line % inner;
        places.sort_by(|a, b| {
            let ordering = compare(t, at(*a), at(*b));
            if descending { ordering.reverse() } else { ordering }
        });
    }
    Ok(places)
}

/// Values and int64 positions of the first `take` elements of each line.
fn pick_lines(
    t: &HostTensor,
    dim: usize,
    take: usize,
    places: &[usize],
    budget: &Budget,
) -> HostResult<(HostTensor, HostTensor)> {
    let (_, extent, inner) = around(t.shape(), dim);
    let mut shape = t.shape().to_vec();
    shape[dim] = take;
    let n = budget.charge(&shape, DType::I64)?;
    budget.charge(&shape, t.dtype())?;
    // the line and the position in it of each output element
    let place = |flat: usize| {
        let (rest, i) = (flat / inner, flat % inner);
        let line = rest / take * inner + i;
        (line, places[line * extent + rest % take])
    };
    let values = (0..n).map(|flat| {
        let (line, position) = place(flat);
        (line / inner * extent + position) * inner + line % inner
    });
    let values = finish(&shape, copy_out(t.data(), values))?;
    Ok((values, finish(&shape, from_ints(DType::I64, n, |flat| place(flat).1 as i64))?))
}

/// A scalar as a vector of one, so that dimensions exist.
fn at_least_1d(t: &HostTensor) -> HostResult {
    if t.shape().is_empty() { t.reshaped([1]).map_err(|d| HostError::shape(d.message)) } else { Ok(t.clone()) }
}

/// The result of sorting.
pub struct Sorted {
    /// The elements in order.
    pub values: HostTensor,
    /// Their int64 places before.
    pub places: HostTensor,
    /// Equal elements among them, and the one after them.
    pub ties: Ties,
}

/// Equal elements among those whose positions are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ties {
    /// None.
    None,
    /// Only infinite ones: excluded by a mask before.
    Infinite,
    /// Others.
    Open,
}

/// `torch.sort` (stable).
pub fn sort(t: &HostTensor, dim: i64, descending: bool, budget: &Budget) -> HostResult<Sorted> {
    let flat = at_least_1d(t)?;
    let dim = wrap_dim(dim, flat.shape().len())?;
    let sorted = first_of(&flat, dim, flat.shape()[dim], descending, budget)?;
    let back = |x: HostTensor| x.reshaped(t.shape()).map_err(|d| HostError::shape(d.message));
    Ok(Sorted { values: back(sorted.values)?, places: back(sorted.places)?, ties: sorted.ties })
}

/// `torch.topk`, sorted. PyTorch leaves the order of equal elements open ([`Ties`]); here the first ones win.
pub fn topk(t: &HostTensor, k: i64, dim: i64, largest: bool, budget: &Budget) -> HostResult<Sorted> {
    let t = at_least_1d(t)?;
    let dim = wrap_dim(dim, t.shape().len())?;
    let take = usize::try_from(k).ok().filter(|k| *k <= t.shape()[dim]).ok_or_else(|| {
        HostError::index("selected index k out of range")
            .hint(format!("dimension {dim} has {} elements", t.shape()[dim]))
    })?;
    first_of(&t, dim, take, largest, budget)
}

/// The first `take` elements of each sorted line along `dim`.
fn first_of(t: &HostTensor, dim: usize, take: usize, descending: bool, budget: &Budget) -> HostResult<Sorted> {
    let order = order(t, dim, descending, budget)?;
    let (values, places) = pick_lines(t, dim, take, &order, budget)?;
    Ok(Sorted { values, places, ties: ties(t, dim, take, &order) })
}

/// Ties of the first `first` elements of a sorted line with each other and the one after them, over all lines along `dim`.
fn ties(t: &HostTensor, dim: usize, first: usize, order: &[usize]) -> Ties {
    let (_, extent, inner) = around(t.shape(), dim);
    let mut found = Ties::None;
    for (line, places) in order.chunks_exact(extent.max(1)).enumerate() {
        let at = |i: usize| (line / inner * extent + i) * inner + line % inner;
        let upto = places.len().min(first.saturating_add(1));
        for pair in places[..upto].windows(2) {
            if compare(t, at(pair[0]), at(pair[1])).is_eq() {
                let infinite = t.dtype().is_float() && t.float_at(at(pair[0])).is_infinite();
                found = found.max(if infinite { Ties::Infinite } else { Ties::Open });
            }
        }
    }
    found
}

/// Sorted distinct elements, the place of each input among them, and how often each occurs.
pub fn unique(t: &HostTensor, budget: &Budget) -> HostResult<(HostTensor, HostTensor, HostTensor)> {
    budget.charge(t.shape(), DType::I64)?;
    let flat = t.reshaped([t.numel()]).map_err(|d| HostError::shape(d.message))?;
    budget.charge(t.shape(), DType::F64)?;
    group(t, &flat, &order(&flat, 0, false, budget)?)
}

/// The same without sorting: runs of equal neighbours.
pub fn unique_consecutive(t: &HostTensor, budget: &Budget) -> HostResult<(HostTensor, HostTensor, HostTensor)> {
    (0..3).try_for_each(|_| budget.charge(t.shape(), DType::I64).map(|_| ()))?;
    let flat = t.reshaped([t.numel()]).map_err(|d| HostError::shape(d.message))?;
    group(t, &flat, &(0..t.numel()).collect::<Vec<_>>())
}

fn group(t: &HostTensor, flat: &HostTensor, places: &[usize]) -> HostResult<(HostTensor, HostTensor, HostTensor)> {
    let (mut firsts, mut counts): (Vec<usize>, Vec<i64>) = (Vec::new(), Vec::new());
    let mut inverse = vec![0i64; flat.numel()];
    for &i in places {
        match (firsts.last(), counts.last_mut()) {
            (Some(&f), Some(count)) if compare(flat, f, i) == Ordering::Equal => *count += 1,
            _ => {
                firsts.push(i);
                counts.push(1);
            }
        }
        inverse[i] = firsts.len() as i64 - 1;
    }
    let values = HostTensor::vector(copy_out(flat.data(), firsts.into_iter()));
    Ok((values, finish(t.shape(), Data::I64(inverse))?, HostTensor::vector(Data::I64(counts))))
}

/// `torch.nonzero`: [count, rank] of int64.
pub fn nonzero(t: &HostTensor, budget: &Budget) -> HostResult {
    // it is looked through twice, and each place is divided into its dimensions
    budget.work_each(t.numel(), 24)?;
    let holds = || (0..t.numel()).filter(|i| t.float_at(*i) != 0.0);
    let shape = [holds().count(), t.shape().len()];
    budget.charge(&shape, DType::I64)?;
    budget.work_each(shape[0], 24 * shape[1].max(1) as u64)?;
    let strides = super::strided::contiguous_strides(t.shape());
    let mut out = Vec::with_capacity(shape[0] * shape[1]);
    for flat in holds() {
        out.extend(strides.iter().zip(t.shape()).map(|(s, n)| (flat / *s as usize % n) as i64));
    }
    finish(&shape, Data::I64(out))
}

/// `torch.bincount` of non-negative integers, optionally weighted.
pub fn bincount(t: &HostTensor, weights: Option<&HostTensor>, at_least: i64, budget: &Budget) -> HostResult {
    budget.work_each(t.numel(), 30)?;
    if t.shape().len() != 1 || t.dtype().is_float() || (0..t.numel()).any(|i| t.int_at(i) < 0) {
        return Err(HostError::new("bincount only supports 1-d non-negative integral inputs."));
    }
    if at_least < 0 {
        return Err(HostError::new("minlength should be >= 0"));
    }
    let largest = (0..t.numel()).map(|i| t.int_at(i)).max();
    let bins = (largest.map_or(0, |m| m as usize + 1)).max(at_least as usize);
    let Some(weights) = weights else {
        budget.charge(&[bins], DType::I64)?;
        let mut counts = vec![0i64; bins];
        (0..t.numel()).for_each(|i| counts[t.int_at(i) as usize] += 1);
        return Ok(HostTensor::vector(Data::I64(counts)));
    };
    if weights.shape() != t.shape() {
        return Err(HostError::shape("weights should be 1-d and have the same length as input"));
    }
    budget.charge(&[bins], DType::F64)?;
    let mut sums = vec![0f64; bins];
    (0..t.numel()).for_each(|i| sums[t.int_at(i) as usize] += weights.float_at(i));
    let dtype = if weights.dtype() == DType::F32 { DType::F32 } else { DType::F64 };
    cast(&HostTensor::vector(Data::F64(sums)), dtype, budget)
}

/// `torch.histc(t, bins, min, max)`; equal bounds mean the tensor's own.
pub fn histc(t: &HostTensor, bins: i64, low: f64, high: f64, budget: &Budget) -> HostResult {
    if bins <= 0 || !t.dtype().is_float() {
        return Err(HostError::new("histc wants a float tensor and bins > 0"));
    }
    budget.charge(&[bins as usize], DType::I64)?;
    budget.work_each(t.numel(), 60)?;
    let all = || (0..t.numel()).map(|i| t.float_at(i));
    let (mut low, mut high) =
        if low == high { (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max)) } else { (low, high) };
    if low == high {
        (low, high) = (low - 1.0, high + 1.0);
    }
    let mut counts = vec![0i64; bins as usize];
    for x in all().filter(|x| *x >= low && *x <= high) {
        let bin = ((x - low) / (high - low) * bins as f64) as usize;
        counts[bin.min(bins as usize - 1)] += 1;
    }
    cast(&HostTensor::vector(Data::I64(counts)), t.dtype(), budget)
}

/// `torch.bucketize(values, edges, right=...)`: how many edges are below (with `right`: at or below) each value.
pub fn bucketize(values: &Operand, edges: &HostTensor, right: bool, int32: bool, budget: &Budget) -> HostResult {
    if edges.shape().len() != 1 {
        let message = format!("boundaries tensor must be 1 dimension, but got dim({})", edges.shape().len());
        return Err(HostError::shape(message));
    }
    search(values, edges, right, int32, budget)
}

/// `torch.searchsorted(sorted, values)`: sorted along the last dimension; leading dimensions agree or do not exist.
pub fn searchsorted(sorted: &HostTensor, values: &Operand, right: bool, int32: bool, budget: &Budget) -> HostResult {
    let rank = sorted.shape().len();
    let (lead, own) = (&sorted.shape()[..rank.max(1) - 1], values.shape());
    if rank == 0 || (rank > 1 && (own.len() != rank || own[..rank - 1] != *lead)) {
        let message = format!(
            "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, but we got boundaries tensor {} and input value tensor {}",
            shape_text(sorted.shape()),
            shape_text(own)
        );
        return Err(HostError::shape(message));
    }
    search(values, sorted, right, int32, budget)
}

fn search(values: &Operand, sorted: &HostTensor, right: bool, int32: bool, budget: &Budget) -> HostResult {
    let common = result_type(&[values.clone(), Operand::Tensor(sorted)]);
    let (values, edges) = (values.cast(common, budget)?, cast(sorted, common, budget)?);
    let dtype = if int32 { DType::I32 } else { DType::I64 };
    let n = budget.charge(values.shape(), dtype)?;
    let length = *edges.shape().last().unwrap_or(&0);
    budget.work_each(n, 16 * u64::from(usize::BITS - length.leading_zeros()))?;
    let per_line = if edges.shape().len() > 1 { *values.shape().last().unwrap_or(&1) } else { n.max(1) };
    let float = common.is_float();
    let data = from_ints(dtype, n, |i| {
        let base = i / per_line * length;
        let below = |j: usize| {
            let ordering = if float {
                let (e, v) = (edges.float_at(base + j), values.float_at(i));
                e.partial_cmp(&v).unwrap_or_else(|| e.is_nan().cmp(&v.is_nan()))
            } else {
                edges.int_at(base + j).cmp(&values.int_at(i))
            };
            ordering == Ordering::Less || (right && ordering == Ordering::Equal)
        };
        let (mut low, mut high) = (0, length);
        while low < high {
            let middle = (low + high) / 2;
            if below(middle) { low = middle + 1 } else { high = middle }
        }
        low as i64
    });
    finish(values.shape(), data)
}
