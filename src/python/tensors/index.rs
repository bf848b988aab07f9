//! `t[...]` and `t[...] = value` with ints, slices, None, Ellipsis, masks and integer tensors.
//!
//! Invariant: offsets that leave this module are inside the storage. Basic indices give views, tensors give copies, as
//! in PyTorch. Must not know Python values.

use super::error::{Budget, HostError, HostResult, shape_text};
use super::handle::TensorRef;
use super::order::nonzero;
use super::promote::Operand;
use super::shape::{broadcast_shapes, broadcast_walk};
use super::strided::{Strided, Walk, copy_out, finish};
use crate::base::{DType, HostTensor};

/// One part of an index.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Index {
    Int(i64),
    Slice(Option<i64>, Option<i64>, Option<i64>),
    /// `None`: a new dimension.
    NewAxis,
    Ellipsis,
    Bool(bool),
    /// A mask, or integers.
    Tensor(HostTensor),
}

/// The result of an index: a view, or elements by their offsets.
pub enum Picked {
    /// Basic indexing.
    View(Strided),
    /// A tensor took part: the shape of the result and the storage offset of each element.
    Elements(Vec<usize>, Vec<usize>),
}

/// Reads `t[index]`.
pub fn pick(t: &TensorRef, index: &[Index], budget: &Budget) -> HostResult<TensorRef> {
    match resolve(t.layout(), index, budget)? {
        Picked::View(view) => t.view(view, budget),
        Picked::Elements(shape, offsets) => {
            budget.charge(&shape, t.dtype())?;
            let data = copy_out(t.storage().data(), offsets.into_iter());
            Ok(TensorRef::new(finish(&shape, data)?))
        }
    }
}

/// Writes `t[index] = value`.
pub fn put(t: &TensorRef, index: &[Index], value: &Operand, budget: &Budget) -> HostResult<()> {
    match resolve(t.layout(), index, budget)? {
        Picked::View(view) => t.overwrite_view(view, value, budget),
        Picked::Elements(shape, offsets) => t.write(&shape, &mut offsets.into_iter(), value, budget),
    }
}

/// Applies the basic parts of the index, then the tensors.
pub(super) fn resolve(layout: &Strided, index: &[Index], budget: &Budget) -> HostResult<Picked> {
    let taken: usize = index.iter().map(consumes).sum();
    let rank = layout.shape.len();
    if taken > rank {
        return Err(HostError {
            code: "too-many-indices",
            message: format!("too many indices for tensor of dimension {rank}"),
            hint: None,
        }
        .hint(format!("its shape is {}", shape_text(&layout.shape))));
    }
    let mut view = layout.clone();
    let mut tensors: Vec<(usize, HostTensor)> = Vec::new();
    let mut dim = 0;
    let mut ellipsis = false;
    for part in index {
        match part {
            Index::Int(i) => view = select(&view, dim, *i)?,
            Index::Slice(start, stop, step) => {
                view = view.slice(dim, *start, *stop, *step)?;
                dim += 1;
            }
            Index::NewAxis => {
                view = view.unsqueeze(dim as i64)?;
                dim += 1;
            }
            Index::Ellipsis if ellipsis => {
                return Err(HostError::index("an index can only have a single ellipsis ('...')"));
            }
            Index::Ellipsis => {
                ellipsis = true;
                dim += rank - taken;
            }
            Index::Bool(keep) => {
                view = view.unsqueeze(dim as i64)?;
                let chosen = crate::base::tensor::Data::I64(if *keep { vec![0] } else { Vec::new() });
                tensors.push((dim, HostTensor::vector(chosen)));
                dim += 1;
            }
            Index::Tensor(t) if t.shape().is_empty() && t.dtype().is_int() => view = select(&view, dim, t.int_at(0))?,
            Index::Tensor(t) if t.dtype() == DType::Bool || t.dtype() == DType::U8 => {
                dim = mask(t, &mut view, dim, &mut tensors, budget)?;
            }
            Index::Tensor(t) if t.dtype().is_int() => {
                tensors.push((dim, t.clone()));
                dim += 1;
            }
            Index::Tensor(t) => {
                let message =
                    format!("tensors used as indices must be long, int, byte or bool tensors, not {}", t.dtype());
                return Err(HostError::dtype(message).hint("`.long()` makes integers"));
            }
        }
    }
    if tensors.is_empty() { Ok(Picked::View(view)) } else { advanced(&view, &tensors, budget) }
}

/// Dimensions that a part uses up.
fn consumes(part: &Index) -> usize {
    match part {
        Index::Int(_) | Index::Slice(..) => 1,
        Index::Tensor(t) if matches!(t.dtype(), DType::Bool | DType::U8) => t.shape().len(),
        Index::Tensor(_) => 1,
        _ => 0,
    }
}

fn select(view: &Strided, dim: usize, i: i64) -> HostResult<Strided> {
    let hint = |n: usize| format!("dimension {dim} has indices 0 to {}", n as i64 - 1);
    view.select(dim, i).map_err(|e| e.hint(hint(view.shape[dim])))
}

/// A mask becomes the positions of its true elements, one tensor for each of its dimensions. Returns the next
/// dimension.
fn mask(
    t: &HostTensor,
    view: &mut Strided,
    dim: usize,
    tensors: &mut Vec<(usize, HostTensor)>,
    budget: &Budget,
) -> HostResult<usize> {
    if t.shape().is_empty() {
        *view = view.unsqueeze(dim as i64)?;
        let chosen = crate::base::tensor::Data::I64(if t.int_at(0) != 0 { vec![0] } else { Vec::new() });
        tensors.push((dim, HostTensor::vector(chosen)));
        return Ok(dim + 1);
    }
    for (d, &n) in t.shape().iter().enumerate() {
        let have = view.shape.get(dim + d).copied().unwrap_or(0);
        if have != n {
            let message = format!(
                "The shape of the mask {} at index {d} does not match the shape of the indexed tensor {} at index {}",
                shape_text(t.shape()),
                shape_text(&view.shape),
                dim + d
            );
            return Err(HostError::index(message));
        }
    }
    let rank = t.shape().len();
    let places = nonzero(t, budget)?;
    for d in 0..rank {
        let column = (0..places.shape()[0]).map(|row| places.int_at(row * rank + d)).collect();
        tensors.push((dim + d, HostTensor::vector(crate::base::tensor::Data::I64(column))));
    }
    Ok(dim + rank)
}

/// Integer tensors broadcast together; their dimensions are at the place of the first one, or in front if they are
/// apart.
fn advanced(view: &Strided, tensors: &[(usize, HostTensor)], budget: &Budget) -> HostResult<Picked> {
    let mut common: Vec<usize> = Vec::new();
    for (_, t) in tensors {
        common = broadcast_shapes(&common, t.shape()).map_err(|_| {
            let shapes: Vec<String> = tensors.iter().map(|(_, t)| shape_text(t.shape())).collect();
            HostError::index(format!(
                "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
                shapes.join(", ")
            ))
        })?;
    }
    let adjacent = tensors.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1);
    let place = if adjacent { tensors[0].0 } else { 0 };
    let rest: Vec<usize> = (0..view.shape.len()).filter(|d| tensors.iter().all(|(t, _)| t != d)).collect();
    let (before, after): (Vec<usize>, Vec<usize>) = rest.iter().partition(|d| adjacent && **d < place);
    let extents = |dims: &[usize]| dims.iter().map(|d| view.shape[*d]).collect::<Vec<_>>();
    let shape = [extents(&before), common.clone(), extents(&after)].concat();
    let total = budget.charge(&shape, DType::I64)?;
    budget.work_each(total, 24)?;
    let chosen = if total == 0 { Vec::new() } else { chosen_offsets(view, tensors, &common, budget)? };
    let strides = |dims: &[usize]| dims.iter().map(|d| view.strides[*d]).collect::<Vec<_>>();
    let (outer, inner) = (extents(&before).iter().product::<usize>(), extents(&after).iter().product::<usize>());
    let mut offsets = Vec::with_capacity(total);
    let mut outer_walk = Walk::new(&extents(&before), &strides(&before), view.offset);
    for _ in 0..if total == 0 { 0 } else { outer } {
        let base = outer_walk.next();
        for &step in &chosen {
            let mut walk = Walk::new(&extents(&after), &strides(&after), base.wrapping_add_signed(step));
            offsets.extend((0..inner).map(|_| walk.next()));
        }
    }
    Ok(Picked::Elements(shape, offsets))
}

/// For each position of the broadcast indices, their addition to the offset.
fn chosen_offsets(
    view: &Strided,
    tensors: &[(usize, HostTensor)],
    common: &[usize],
    budget: &Budget,
) -> HostResult<Vec<isize>> {
    let count = budget.charge(common, DType::I64)?;
    let mut out = vec![0isize; count];
    for (dim, t) in tensors {
        let mut walk = broadcast_walk(t.shape(), common);
        let size = view.shape[*dim] as i64;
        for slot in &mut out {
            let i = t.int_at(walk.next());
            if i < -size || i >= size {
                let message = format!("index {i} is out of bounds for dimension {dim} with size {size}");
                return Err(HostError::index(message));
            }
            *slot += view.strides[*dim] * (if i < 0 { i + size } else { i }) as isize;
        }
    }
    Ok(out)
}
