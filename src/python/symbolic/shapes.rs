//! Moves, merges and joins dimensions of small symbolic tensors.
//!
//! Invariant: elements keep their nodes; a partially read captured tensor is only reordered, and none of its elements
//! is read early. Must not know the elements' meaning.

use super::rows::dimension;
use super::{MAX_ELEMENTS, too_many};
use crate::ir::graph::NodeId;
use crate::python::machine::Context;
use crate::python::tensors::Strided;
use crate::python::value::{Args, Dim, Fault, SymView, Value};
use std::rc::Rc;

/// A dimension counted from either end.
fn axis(dim: i64, rank: usize) -> Result<usize, Fault> {
    let n = rank.max(1) as i64;
    let at = if dim < 0 { dim + n } else { dim };
    usize::try_from(at).ok().filter(|at| *at < n as usize).ok_or_else(|| dimension(dim, rank))
}

fn int(args: &Args, name: &str, at: usize, param: &str) -> Result<i64, Fault> {
    let value = args.need(name, at, param)?;
    value.as_int().ok_or_else(|| Fault::type_error(format!("{name}(): `{param}` must be an int")))
}

/// `permute`, `transpose`, `movedim` and their kin.
pub(super) fn moved(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let rank = cx.symbolic_shape(&x).len();
    let mut order: Vec<usize> = (0..rank).collect();
    match name {
        "permute" => {
            let rest = args.rest(1);
            let listed = rest.first().or_else(|| args.named("dims")).and_then(Value::as_items);
            let dims = listed.unwrap_or_else(|| rest.to_vec());
            let dims: Option<Vec<i64>> = dims.iter().map(Value::as_int).collect();
            let dims = dims.ok_or_else(|| Fault::type_error("permute() takes ints"))?;
            order = dims.iter().map(|d| axis(*d, rank)).collect::<Result<_, _>>()?;
        }
        "t" => order.reverse(),
        "movedim" | "moveaxis" => {
            let (from, to) = (int(args, name, 1, "source")?, int(args, name, 2, "destination")?);
            let dim = order.remove(axis(from, rank)?);
            order.insert(axis(to, rank)?, dim);
        }
        _ => {
            let (a, b) = (axis(int(args, name, 1, "dim0")?, rank)?, axis(int(args, name, 2, "dim1")?, rank)?);
            if rank > 0 {
                order.swap(a, b);
            }
        }
    }
    cx.permuted(&x, &order)
}

/// `flatten(start_dim, end_dim)`
pub(super) fn flattened(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let shape = cx.symbolic_shape(&x);
    let dim = |at: usize, param: &str, default: i64| {
        axis(args.get(at, param).and_then(Value::as_int).unwrap_or(default), shape.len())
    };
    let (start, end) = (dim(1, "start_dim", 0)?, dim(2, "end_dim", -1)?);
    if shape.is_empty() {
        return cx.reshape(&x, &[1]);
    }
    if start > end {
        return Err(Fault::runtime_error("flatten() has invalid args: start_dim cannot come after end_dim"));
    }
    let mut sizes: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    let merged = sizes.drain(start..=end).product();
    sizes.insert(start, merged);
    cx.reshape(&x, &sizes)
}

impl Context<'_> {
    /// A symbolic tensor with its dimensions in another order.
    pub(crate) fn permuted(&mut self, value: &Value, order: &[usize]) -> Result<Value, Fault> {
        let shape = self.symbolic_shape(value);
        let mut seen = order.to_vec();
        seen.sort_unstable();
        if seen != (0..shape.len()).collect::<Vec<_>>() {
            return Err(Fault::runtime_error(format!(
                "permute(): the dimensions {order:?} are not those of a tensor of shape {shape:?}"
            )));
        }
        match value {
            Value::View(view) => self.permuted_view(view, order),
            Value::Array(array) => {
                let strides: Vec<usize> = (0..shape.len()).map(|d| shape[d + 1..].iter().product()).collect();
                let to: Vec<usize> = order.iter().map(|d| shape[*d]).collect();
                let nodes = (0..array.nodes.len()).map(|flat| {
                    let mut rest = flat;
                    let mut from = 0;
                    for (d, extent) in order.iter().zip(&to).rev() {
                        from += rest % extent * strides[*d];
                        rest /= extent;
                    }
                    array.nodes[from]
                });
                let nodes: Vec<NodeId> = nodes.collect();
                self.array(to, nodes)
            }
            other => Ok(other.clone()),
        }
    }

    /// The same of a captured tensor that is read in part: its dimensions change places before it is read.
    fn permuted_view(&mut self, view: &SymView, order: &[usize]) -> Result<Value, Fault> {
        let is_free = |d: &usize| matches!(view.dims[*d], Dim::Free { .. });
        let (free, bound): (Vec<usize>, Vec<usize>) = (0..view.dims.len()).partition(is_free);
        let whole: Vec<usize> = bound.iter().copied().chain(order.iter().map(|d| free[*d])).collect();
        let dims: Vec<i64> = whole.iter().map(|d| *d as i64).collect();
        let budget = self.tensor_budget();
        let fault = |e: python::tensors::HostError| Fault::runtime_error(e.message);
        let layout = Strided::contiguous(view.tensor.shape()).permute(&dims).map_err(fault)?;
        let tensor = layout.read(&view.tensor, &budget).map_err(fault)?;
        self.spent(&budget)?;
        let dims = whole.iter().map(|d| view.dims[*d]).collect();
        Ok(Value::View(Rc::new(SymView { tensor, name: view.name.clone(), dims })))
    }

    /// Tensors one after the other along a dimension.
    pub(super) fn concatenated(&mut self, values: &[Value], dim: i64) -> Result<Value, Fault> {
        let mut arrays = Vec::with_capacity(values.len());
        for value in values {
            let array = self.as_array(value)?;
            // an empty vector adds nothing, with any others
            if array.shape != [0] {
                arrays.push(array);
            }
        }
        let Some(first) = arrays.first().cloned() else {
            return Err(Fault::runtime_error("torch.cat(): expected a non-empty list of Tensors"));
        };
        if first.shape.is_empty() {
            return Err(Fault::runtime_error("zero-dimensional tensor (at position 0) cannot be concatenated")
                .hint("join single values with torch.stack"));
        }
        let at = axis(dim, first.shape.len())?;
        let fits = |shape: &[usize]| {
            shape.len() == first.shape.len() && (0..shape.len()).all(|d| d == at || shape[d] == first.shape[d])
        };
        if let Some(other) = arrays.iter().find(|a| !fits(&a.shape)) {
            return Err(Fault::runtime_error(format!(
                "torch.cat(): shapes {:?} and {:?} differ elsewhere than in dimension {at}",
                first.shape, other.shape
            )));
        }
        let mut shape = first.shape.clone();
        shape[at] = arrays.iter().map(|a| a.shape[at]).sum();
        if shape.iter().product::<usize>() > MAX_ELEMENTS {
            return Err(too_many(&shape));
        }
        let outer: usize = shape[..at].iter().product();
        let mut nodes = Vec::new();
        for o in 0..outer {
            for array in &arrays {
                let inner: usize = array.shape[at..].iter().product();
                nodes.extend(&array.nodes[o * inner..(o + 1) * inner]);
            }
        }
        self.array(shape, nodes)
    }
}
