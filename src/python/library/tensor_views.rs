//! Methods that give another view of a tensor: no element is copied or computed.
//!
//! Invariant: the result shares storage with its tensor, so in-place writes to either reach the other. Must not know
//! element types.

use super::bind::{Bound, bind, fault, pack_sizes, spend};
use crate::python::machine::Context;
use crate::python::tensors::{HostError, Strided, TensorRef};
use crate::python::value::{Args, Fault, Tensor, TensorCell, Value};

/// Names that [`call`] knows.
pub(super) const NAMES: &[&str] = &[
    "view",
    "reshape",
    "view_as",
    "reshape_as",
    "expand",
    "expand_as",
    "broadcast_to",
    "unsqueeze",
    "squeeze",
    "permute",
    "transpose",
    "swapaxes",
    "swapdims",
    "t",
    "movedim",
    "moveaxis",
    "flatten",
    "ravel",
    "unflatten",
    "narrow",
    "select",
    "diagonal",
    "unfold",
    "as_strided",
    "contiguous",
    "detach",
    "cpu",
    "cuda",
];

/// A view by the method's name; None for other names.
pub(super) fn call(name: &str, t: &Tensor, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if matches!(name, "contiguous" | "detach" | "cpu" | "cuda") {
        if name == "detach" && cx.has_origin(t) {
            return Some(Ok(Value::Tensor(TensorCell::of(t.handle().detached()))));
        }
        let same = name != "contiguous" || t.handle().layout().is_contiguous();
        return Some(Ok(if same { Value::Tensor(t.clone()) } else { Value::tensor(t.get()) }));
    }
    if !NAMES.contains(&name) {
        return None;
    }
    Some(view(name, t, args, cx))
}

fn view(name: &str, t: &Tensor, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let layout = t.handle().layout();
    let packed = pack_sizes(args, 0);
    let shaped = match name {
        "view" | "reshape" => {
            let bound = bind(name, &packed, &["shape"])?;
            if name == "view" && bound.need("shape")?.as_dtype().is_some() {
                return Err(Fault::unsupported("view(dtype) reinterprets bytes, which is not evaluated here")
                    .hint("`.to(dtype)`"));
            }
            Some(bound.need_ints("shape")?)
        }
        "view_as" | "reshape_as" => {
            let other = bind(name, args, &["other"])?.need_handle("other")?;
            Some(other.handle().shape().iter().map(|n| *n as i64).collect())
        }
        "flatten" => Some(flattened(layout, &bind(name, args, &["start_dim", "end_dim"])?)?),
        "ravel" => Some(vec![-1]),
        "unflatten" => Some(unflattened(layout, &bind(name, args, &["dim", "sizes"])?)?),
        _ => None,
    };
    if let Some(sizes) = shaped {
        let shape = resolve(&sizes, layout.numel()).map_err(fault)?;
        return reshape(t, &shape, name != "view", cx);
    }
    let view = strided(name, layout, t.handle().storage_len(), args, &packed)?;
    let view = spend(cx, |budget| t.handle().view(view, budget))?;
    Ok(Value::Tensor(TensorCell::of(view)))
}

/// The view without the shape changers.
fn strided(name: &str, layout: &Strided, storage: usize, args: &Args, packed: &Args) -> Result<Strided, Fault> {
    let two = |a: &'static str, b: &'static str| -> Result<(i64, i64), Fault> {
        let bound = bind(name, args, &[a, b])?;
        Ok((bound.need_int(a)?, bound.need_int(b)?))
    };
    let out = match name {
        "expand" | "broadcast_to" => layout.expand(&bind(name, packed, &["size"])?.need_ints("size")?),
        "expand_as" => {
            let other = bind(name, args, &["other"])?.need_handle("other")?;
            layout.expand(&other.handle().shape().iter().map(|n| *n as i64).collect::<Vec<_>>())
        }
        "unsqueeze" => layout.unsqueeze(bind(name, args, &["dim"])?.need_int("dim")?),
        "squeeze" => layout.squeeze(bind(name, args, &["dim"])?.ints("dim")?.as_deref()),
        "permute" => layout.permute(&bind(name, packed, &["dims"])?.need_ints("dims")?),
        "transpose" | "swapaxes" | "swapdims" => {
            let bound = bind(name, args, &["dim0", "dim1"])?;
            layout.transpose(bound.need_int("dim0")?, bound.need_int("dim1")?)
        }
        "t" if layout.shape.len() <= 2 => layout.transpose(0, if layout.shape.len() == 2 { 1 } else { 0 }),
        "t" => Err(HostError::shape(format!(
            "t() expects a tensor with <= 2 dimensions, but self is {}D",
            layout.shape.len()
        ))),
        "movedim" | "moveaxis" => {
            let (from, to) = two("source", "destination")?;
            layout.movedim(from, to)
        }
        "narrow" => {
            let bound = bind(name, args, &["dim", "start", "length"])?;
            let (dim, start, length) = (bound.need_int("dim")?, bound.need_int("start")?, bound.need_int("length")?);
            narrow(layout, dim, start, length)
        }
        "select" => {
            let (dim, index) = two("dim", "index")?;
            layout.dim(dim, 0).and_then(|dim| layout.select(dim, index))
        }
        "diagonal" => {
            let bound = bind(name, args, &["offset", "dim1", "dim2"])?;
            let int = |n: &str, or: i64| bound.int(n).map(|i| i.unwrap_or(or));
            layout.diagonal(int("offset", 0)?, int("dim1", 0)?, int("dim2", 1)?)
        }
        "as_strided" => {
            let bound = bind(name, args, &["size", "stride", "storage_offset"])?;
            let (sizes, strides) = (bound.shape("size")?, bound.need_ints("stride")?);
            let offset = bound.int("storage_offset")?.unwrap_or(layout.offset as i64);
            return as_strided(storage, sizes, &strides, offset).map_err(fault);
        }
        _ => {
            let bound = bind(name, args, &["dimension", "size", "step"])?;
            layout.unfold(bound.need_int("dimension")?, bound.need_int("size")?, bound.need_int("step")?)
        }
    };
    out.map_err(fault)
}

/// A view with strides of the caller's, inside a storage of so many elements.
fn as_strided(storage: usize, shape: Vec<usize>, strides: &[i64], offset: i64) -> Result<Strided, HostError> {
    if shape.len() != strides.len() {
        return Err(HostError::shape("mismatch in length of strides and shape"));
    }
    if strides.iter().any(|s| *s < 0) {
        return Err(HostError::shape("as_strided: Negative strides are not supported at the moment"));
    }
    let empty = shape.contains(&0);
    let last = shape
        .iter()
        .zip(strides)
        .try_fold(offset, |at, (n, s)| s.checked_mul(*n as i64 - 1).and_then(|more| at.checked_add(more.max(0))));
    if offset < 0 || (!empty && last.is_none_or(|last| last as usize >= storage)) {
        return Err(HostError::shape(format!(
            "setStorage: sizes {shape:?}, strides {strides:?}, and storage offset {offset} are out of bounds for storage of {storage} elements"
        )));
    }
    let strides = strides.iter().map(|s| *s as isize).collect();
    Ok(Strided { shape, strides, offset: offset as usize })
}

fn narrow(layout: &Strided, dim: i64, start: i64, length: i64) -> Result<Strided, HostError> {
    let dim = layout.dim(dim, 0)?;
    let size = layout.shape[dim] as i64;
    let first = if start < 0 { start + size } else { start };
    let last = first.checked_add(length);
    if length < 0 || first < 0 || last.is_none_or(|last| last > size) {
        let message = format!("start ({start}) + length ({length}) exceeds dimension size ({size}).");
        return Err(HostError::index(message));
    }
    layout.slice(dim, Some(first), last, None)
}

/// A shape with at most one -1 filled in.
pub(super) fn resolve(sizes: &[i64], numel: usize) -> Result<Vec<usize>, HostError> {
    let invalid = || HostError::shape(format!("shape '{sizes:?}' is invalid for input of size {numel}"));
    if sizes.iter().filter(|n| **n == -1).count() > 1 {
        return Err(HostError::shape("only one dimension can be inferred"));
    }
    if let Some(n) = sizes.iter().find(|n| **n < -1) {
        return Err(HostError::shape(format!("invalid shape dimension {n}")));
    }
    let known = sizes
        .iter()
        .filter(|n| **n != -1)
        .try_fold(1usize, |all, n| all.checked_mul(*n as usize))
        .ok_or_else(invalid)?;
    let inferred = match sizes.contains(&-1) {
        true if known == 0 || !numel.is_multiple_of(known) => return Err(invalid()),
        true => numel / known,
        false if known != numel => return Err(invalid()),
        false => 0,
    };
    Ok(sizes.iter().map(|n| if *n == -1 { inferred } else { *n as usize }).collect())
}

/// A view of `shape`, or a copy if no view is possible, or, with `.view`, a refusal.
fn reshape(t: &Tensor, shape: &[usize], may_copy: bool, cx: &mut Context) -> Result<Value, Fault> {
    if let Some(view) = t.handle().layout().view(shape) {
        let view = spend(cx, |budget| t.handle().view(view, budget))?;
        return Ok(Value::Tensor(TensorCell::of(view)));
    }
    if !may_copy {
        let message = "view size is not compatible with input tensor's size and stride (at least one dimension spans across two \
                       contiguous subspaces). Use .reshape(...) instead.";
        return Err(Fault::new("RuntimeError", "tensor-shape", message).hint("`.reshape(...)` copies if necessary"));
    }
    let copy = t.get().reshaped(shape.to_vec()).map_err(Fault::from)?;
    Ok(Value::Tensor(TensorCell::of(TensorRef::new(copy))))
}

fn flattened(layout: &Strided, bound: &Bound) -> Result<Vec<i64>, Fault> {
    let rank = layout.shape.len();
    if rank == 0 {
        return Ok(vec![1]);
    }
    let dim =
        |name: &str, or: i64| -> Result<usize, Fault> { layout.dim(bound.int(name)?.unwrap_or(or), 0).map_err(fault) };
    let (start, end) = (dim("start_dim", 0)?, dim("end_dim", -1)?);
    if start > end {
        return Err(fault(HostError::shape("flatten() has invalid args: start_dim cannot come after end_dim")));
    }
    let mut out: Vec<i64> = layout.shape.iter().map(|n| *n as i64).collect();
    let merged = out.drain(start..=end).product();
    out.insert(start, merged);
    Ok(out)
}

fn unflattened(layout: &Strided, bound: &Bound) -> Result<Vec<i64>, Fault> {
    let dim = layout.dim(bound.need_int("dim")?, 0).map_err(fault)?;
    let parts = resolve(&bound.need_ints("sizes")?, layout.shape[dim]).map_err(fault)?;
    let mut out: Vec<i64> = layout.shape.iter().map(|n| *n as i64).collect();
    out.splice(dim..=dim, parts.iter().map(|n| *n as i64));
    Ok(out)
}
