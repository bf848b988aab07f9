//! Products of small matrices.
//!
//! Invariant: floats accumulate in double precision and round once; integers wrap. The work is charged before it starts.
//! Must not know broadcasting beyond the batch dimensions of `@`.

use super::elem::{doubles, from_floats, from_ints, wholes};
use super::error::{Budget, HostError, HostResult, shape_text};
use super::shape::{broadcast_shapes, broadcast_walk};
use super::strided::finish;
use super::{Binary, Operand, binary};
use crate::base::{DType, HostTensor};

fn same_dtype(name: &str, a: &HostTensor, b: &HostTensor) -> HostResult<()> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    let message = format!("{name}: expected both to have the same dtype, but got {} and {}", a.dtype(), b.dtype());
    Err(HostError::dtype(message).hint("`.to(other.dtype)` makes them agree"))
}

/// `torch.dot` of two vectors.
pub fn dot(a: &HostTensor, b: &HostTensor, budget: &Budget) -> HostResult {
    if a.shape().len() != 1 || b.shape().len() != 1 {
        let message = format!("1D tensors expected, but got {}D and {}D tensors", a.shape().len(), b.shape().len());
        return Err(HostError::shape(message));
    }
    if a.numel() != b.numel() {
        let message = format!(
            "inconsistent tensor size, expected tensor {} and src {} to have the same number of elements",
            shape_text(a.shape()),
            shape_text(b.shape())
        );
        return Err(HostError::shape(message));
    }
    matmul(a, b, budget)
}

/// `torch.outer` of two vectors.
pub fn outer(a: &HostTensor, b: &HostTensor, budget: &Budget) -> HostResult {
    if a.shape().len() != 1 || b.shape().len() != 1 {
        let message = format!("outer: Expected 1-D arguments, but got {}-D and {}-D", a.shape().len(), b.shape().len());
        return Err(HostError::shape(message));
    }
    let column = a.reshaped([a.numel(), 1]).map_err(|d| HostError::shape(d.message))?;
    binary(Binary::Mul, Operand::Tensor(&column), Operand::Tensor(b), budget)
}

/// `a @ b`: vectors, matrices, and batches of matrices that broadcast.
pub fn matmul(a: &HostTensor, b: &HostTensor, budget: &Budget) -> HostResult {
    same_dtype("matmul", a, b)?;
    let (&[.., k], false) = (a.shape(), b.shape().is_empty()) else {
        return Err(HostError::shape("both arguments to matmul need to be at least 1D"));
    };
    let (row, column) = (a.shape().len() == 1, b.shape().len() == 1);
    let a_shape = if row { vec![1, k] } else { a.shape().to_vec() };
    let b_shape = if column { vec![b.numel(), 1] } else { b.shape().to_vec() };
    let (a_batch, a_last) = a_shape.split_at(a_shape.len() - 2);
    let (b_batch, b_last) = b_shape.split_at(b_shape.len() - 2);
    if a_last[1] != b_last[0] {
        let message = format!(
            "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
            a_last[0], a_last[1], b_last[0], b_last[1]
        );
        return Err(HostError::shape(message));
    }
    let (m, n) = (a_last[0], b_last[1]);
    let batch = broadcast_shapes(a_batch, b_batch)?;
    let full = [batch.clone(), vec![m, n]].concat();
    let count = budget.charge(&full, a.dtype())?;
    budget.work((count as u64).saturating_mul(4 * k as u64))?;
    let (mut a_walk, mut b_walk) = (broadcast_walk(a_batch, &batch), broadcast_walk(b_batch, &batch));
    let bases: Vec<(usize, usize)> = (0..if count == 0 { 0 } else { count / (m * n) })
        .map(|_| (a_walk.next() * m * k, b_walk.next() * k * n))
        .collect();
    // rows and columns are read once for each cell: at full width, and the columns one after the other
    budget.charge(a.shape(), DType::F64)?;
    budget.charge(b.shape(), DType::F64)?;
    let place = |flat: usize| {
        let ((from, to), row, column) = (bases[flat / (m * n)], flat / n % m, flat % n);
        (from + row * k, to + column * k)
    };
    let data = if a.dtype().is_float() {
        let (rows, columns) = (doubles(a.data()), columns(&doubles(b.data()), k, n));
        from_floats(a.dtype(), count, |flat| {
            let (x, y) = place(flat);
            rows[x..x + k].iter().zip(&columns[y..y + k]).map(|(x, y)| x * y).sum()
        })
    } else {
        let (rows, columns) = (wholes(a), columns(&wholes(b), k, n));
        from_ints(a.dtype(), count, |flat| {
            let (x, y) = place(flat);
            let pairs = rows[x..x + k].iter().zip(&columns[y..y + k]);
            pairs.fold(0i64, |sum, (x, y)| sum.wrapping_add(x.wrapping_mul(*y)))
        })
    };
    let mut shape = batch;
    shape.extend((!row).then_some(m));
    shape.extend((!column).then_some(n));
    finish(&shape, data)
}

/// Matrices of k x n with the elements of each column beside one another.
fn columns<T: Copy>(matrices: &[T], k: usize, n: usize) -> Vec<T> {
    let each = (k * n).max(1);
    (0..matrices.len()).map(|at| matrices[at / each * each + at % each % k.max(1) * n + at % each / k.max(1)]).collect()
}
