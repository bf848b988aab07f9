//! Linear equations of small matrices for which no step of any algorithm rounds.
//!
//! Invariant: a result is that of every library, because each intermediate product, sum and quotient is exact; other
//! systems are refused. Must not know how libraries order their steps.

use super::elem::from_floats;
use super::error::{Budget, HostError, HostResult};
use super::strided::finish;
use crate::base::{DType, HostTensor};

/// Most rows.
const MOST: usize = 64;

/// A matrix, factored: rows in the order of their pivots, whether that order is an odd one.
struct Factored {
    rows: Vec<Vec<f64>>,
    order: Vec<usize>,
    odd: bool,
}

fn rounds() -> HostError {
    HostError::unsupported("solving this linear system needs rounding, and every library rounds in another order")
        .hint("compute it in PyTorch and capture the result")
}

/// A number that the dtype holds.
fn held(x: f64, dtype: DType) -> HostResult<f64> {
    let fits = dtype == DType::F64 || f64::from(x as f32) == x;
    if fits && x.is_finite() { Ok(x) } else { Err(rounds()) }
}

/// `a - b * c`, if neither the product nor the difference rounds.
fn reduced(a: f64, b: f64, c: f64, dtype: DType) -> HostResult<f64> {
    let product = b * c;
    if b.mul_add(c, -product) != 0.0 {
        return Err(rounds());
    }
    held(product, dtype)?;
    let difference = a - product;
    // what the subtraction lost
    let back = a - difference;
    let lost = (a - (difference + back)) + (back - product);
    if lost != 0.0 { Err(rounds()) } else { held(difference, dtype) }
}

/// Whether dividing by it and multiplying by its reciprocal are one, and exact.
fn divides(pivot: f64) -> bool {
    pivot.is_normal() && pivot.to_bits() & ((1 << 52) - 1) == 0
}

/// Gauss's elimination with the largest pivots. `last`: whether the last pivot divides, too. None if the matrix is
/// singular.
fn factored(t: &HostTensor, last: bool, budget: &Budget) -> HostResult<Option<Factored>> {
    let n = square(t)?;
    budget.work_each(n * n * n, 40)?;
    let dtype = t.dtype();
    let mut rows: Vec<Vec<f64>> = (0..n).map(|r| (0..n).map(|c| t.float_at(r * n + c)).collect()).collect();
    let (mut order, mut odd): (Vec<usize>, bool) = ((0..n).collect(), false);
    for at in 0..n {
        let largest = (at..n).rev().max_by(|a, b| rows[*a][at].abs().total_cmp(&rows[*b][at].abs()));
        let largest = largest.unwrap_or(at);
        if rows[largest][at] == 0.0 {
            return Ok(None);
        }
        rows.swap(at, largest);
        order.swap(at, largest);
        odd ^= at != largest;
        let pivot = rows[at][at];
        if !divides(pivot) && (last || at + 1 < n) {
            return Err(rounds());
        }
        let (above, below) = rows.split_at_mut(at + 1);
        for row in below {
            let by = held(row[at] / pivot, dtype)?;
            row[at] = by;
            for c in at + 1..n {
                row[c] = reduced(row[c], by, above[at][c], dtype)?;
            }
        }
    }
    Ok(Some(Factored { rows, order, odd }))
}

fn square(t: &HostTensor) -> HostResult<usize> {
    if t.shape().len() < 2 {
        let words = "linalg: the input tensor must have at least 2 dimensions";
        return Err(HostError::new(words));
    }
    let &[rows, columns] = t.shape() else {
        return Err(HostError::unsupported("batched linear systems are not supported here"));
    };
    if rows != columns {
        return Err(HostError::shape(format!(
            "A must be batches of square matrices, but they are {rows} by {columns} matrices"
        )));
    }
    if !matches!(t.dtype(), DType::F32 | DType::F64) {
        return Err(HostError::dtype(format!("linalg: expected a floating point tensor as input, got {}", t.dtype())));
    }
    if rows > MOST { Err(rounds()) } else { Ok(rows) }
}

/// `torch.linalg.solve(a, b)` of one matrix and columns `b`.
pub fn solve(a: &HostTensor, b: &HostTensor, budget: &Budget) -> HostResult {
    let (n, dtype) = (square(a)?, a.dtype());
    if b.dtype() != dtype || b.shape().first() != Some(&n) || b.shape().len() > 2 {
        return Err(HostError::shape(format!("linalg.solve: incompatible shapes {:?} and {:?}", a.shape(), b.shape())));
    }
    let singular = || HostError::new("linalg.solve: The solver failed because the input matrix is singular.");
    let Factored { rows, order, .. } = factored(a, true, budget)?.ok_or_else(singular)?;
    let columns = b.numel() / n.max(1);
    budget.work_each(n * n * columns, 40)?;
    budget.charge(b.shape(), dtype)?;
    let mut out = vec![0.0; b.numel()];
    for c in 0..columns {
        let mut x: Vec<f64> = order.iter().map(|r| b.float_at(r * columns + c)).collect();
        for r in 0..n {
            for k in 0..r {
                x[r] = reduced(x[r], rows[r][k], x[k], dtype)?;
            }
        }
        for r in (0..n).rev() {
            for k in r + 1..n {
                x[r] = reduced(x[r], rows[r][k], x[k], dtype)?;
            }
            x[r] = held(x[r] / rows[r][r], dtype)?;
        }
        x.into_iter().enumerate().for_each(|(r, x)| out[r * columns + c] = x);
    }
    // LAPACK's zeros may have either sign, which compares equal
    finish(b.shape(), from_floats(dtype, out.len(), |i| out[i] + 0.0))
}

/// `torch.linalg.det`.
pub fn determinant(t: &HostTensor, budget: &Budget) -> HostResult {
    let dtype = t.dtype();
    let product = match factored(t, false, budget)? {
        None => 0.0,
        Some(Factored { rows, odd, .. }) => {
            let sign = if odd { -1.0 } else { 1.0 };
            rows.iter().enumerate().try_fold(sign, |product, (at, row)| reduced(0.0, -product, row[at], dtype))?
        }
    };
    finish(&[], from_floats(dtype, 1, |_| product))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::tensor::Data;

    fn matrix(n: usize, values: &[f32]) -> HostTensor {
        HostTensor::new([n, values.len() / n], Data::F32(values.to_vec())).expect("a matrix")
    }

    fn solved(a: &[f32], b: &[f32], n: usize) -> Result<Vec<f32>, &'static str> {
        let budget = Budget::new(1 << 20);
        solve(&matrix(n, a), &matrix(n, b), &budget).map(|x| x.to_f32_vec()).map_err(|e| e.code)
    }

    #[test]
    fn equations_that_round_nowhere_are_solved() {
        assert_eq!(solved(&[0.0, 1.0, 2.0, 0.0], &[1.0, 0.0, 0.0, 1.0], 2), Ok(vec![0.0, 0.5, 1.0, 0.0]));
        assert_eq!(solved(&[1.0, 3.0, 0.0, 4.0], &[7.0, 8.0], 2), Ok(vec![1.0, 2.0]));
        assert_eq!(solved(&[2.0, 1.0, 4.0, 4.0], &[1.0, 0.0, 0.0, 1.0], 2), Ok(vec![1.0, -0.25, -1.0, 0.5]));
        assert_eq!(solved(&[3.0, 0.0, 0.0, 1.0], &[1.0, 1.0], 2), Err("unsupported-tensor-op"));
        assert_eq!(solved(&[1.0, 2.0, 2.0, 4.0], &[1.0, 1.0], 2), Err("tensor-op"));
        assert_eq!(solved(&[1.0, 0.3, 0.0, 1.0], &[0.1, 0.7], 2), Err("unsupported-tensor-op"));
    }

    #[test]
    fn determinants_that_round_nowhere() {
        let budget = Budget::new(1 << 20);
        let of =
            |n: usize, all: &[f32]| determinant(&matrix(n, all), &budget).map(|x| x.float_at(0)).map_err(|e| e.code);
        assert_eq!(of(2, &[0.0, 1.0, 1.0, 0.0]), Ok(-1.0));
        assert_eq!(of(2, &[4.0, 6.0, 2.0, 8.0]), Ok(20.0));
        assert_eq!(of(2, &[1.0, 2.0, 2.0, 4.0]), Ok(0.0));
        assert_eq!(of(3, &[3.0, 1.0, 0.0, 1.0, 3.0, 1.0, 0.0, 1.0, 3.0]), Err("unsupported-tensor-op"));
    }
}
