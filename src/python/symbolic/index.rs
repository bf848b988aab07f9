//! Reading captured tensors at symbolic indices.
//!
//! Invariant: a read has one int index per dimension; a constant index outside a dimension is PyTorch's IndexError, a
//! symbolic index that may be outside is a warning. Must not know how dimensions are reduced.

use super::range::bounds;
use super::{MAX_ELEMENTS, Operand, broadcast};
use crate::base::{DType, Diagnostic};
use crate::ir::graph::{NodeId, Op, Ty};
use crate::python::machine::Context;
use crate::python::machine::subscript::slice_bounds;
use crate::python::syntax::Name;
use crate::python::value::{Dim, Fault, SymArray, SymView, Value};
use smallvec::SmallVec;
use std::rc::Rc;

/// One place of an index, after `...` is spelled out.
pub(super) enum Place {
    Node(NodeId),
    Slice(Vec<Value>),
    /// Several indices at once: the result has their shape.
    Nodes(Rc<SymArray>),
    NewAxis,
}

impl Context<'_> {
    /// `container[index]` where either is symbolic.
    pub(crate) fn symbolic_index(&mut self, container: &Value, index: &Value, name: &Name) -> Result<Value, Fault> {
        let view = match container {
            Value::Tensor(tensor) if self.on_elements() && self.has_origin(tensor) => {
                let elements = self.elements_of(tensor).ok_or_else(super::too_many_elements)?;
                return self.symbolic_index(&elements, index, name);
            }
            Value::Tensor(tensor) => {
                self.reads(tensor);
                let tensor = tensor.get();
                let free = |n: &usize| Dim::Free { start: 0, len: *n, step: 1 };
                let dims = tensor.shape().iter().map(free).collect();
                SymView { tensor, name: name.clone(), dims }
            }
            Value::View(view) => {
                SymView { tensor: view.tensor.clone(), name: view.name.clone(), dims: view.dims.clone() }
            }
            Value::Sym(_) => return self.index_scalar(container, index),
            other => return self.index_array(other, index),
        };
        let places = self.places(index, view.shape().len(), &view.name)?;
        if places.iter().any(|p| matches!(p, Place::Nodes(_) | Place::NewAxis)) {
            return self.gather(&view, places);
        }
        let mut places = places.into_iter();
        let mut dims = Vec::with_capacity(view.dims.len());
        for (at, dim) in view.dims.iter().enumerate() {
            dims.push(match dim {
                Dim::At(node) => Dim::At(*node),
                Dim::Free { start, len, step } => match places.next() {
                    Some(Place::Node(node)) => Dim::At(self.placed(node, *start, *len, *step, at, &view)?),
                    Some(Place::Slice(slice)) => {
                        let (first, by, count) = slice_bounds(&slice, *len)?;
                        Dim::Free { start: start + first * step, len: count, step: step * by }
                    }
                    _ => *dim,
                },
            });
        }
        let view = SymView { dims, ..view };
        if view.dims.iter().all(|d| matches!(d, Dim::At(_))) {
            self.read_view(&view)
        } else {
            Ok(Value::View(Rc::new(view)))
        }
    }

    /// The place in the tensor of index `node` into a free dimension.
    fn placed(
        &mut self,
        node: NodeId,
        start: i64,
        len: usize,
        step: i64,
        dim: usize,
        view: &SymView,
    ) -> Result<NodeId, Fault> {
        self.check_range(node, len, dim, view)?;
        if (start, step) == (0, 1) && len == view.tensor.shape()[dim] {
            return Ok(node);
        }
        // inside a slice, count from its start
        let step = self.node(Op::Int(step))?;
        let scaled = self.two(crate::ir::graph::BinaryOp::Mul, node, step, Ty::Int)?;
        let start = self.node(Op::Int(start))?;
        self.two(crate::ir::graph::BinaryOp::Add, scaled, start, Ty::Int)
    }

    /// Faults for a constant outside `len`, and warns if an index may be outside.
    fn check_range(&mut self, node: NodeId, len: usize, dim: usize, view: &SymView) -> Result<(), Fault> {
        let range = bounds(&self.graph, node);
        let n = len as i64;
        let what = format!("dimension {dim} of `{}`, which has {len} elements", view.name);
        if let Some(at) = self.literal_int(node) {
            if at < -n || at >= n {
                return Err(Fault::new(
                    "IndexError",
                    "index-out-of-range",
                    format!("index {at} is out of range in {what}"),
                )
                .hint(format!("indices run from 0 to {}", n - 1)));
            }
            return Ok(());
        }
        let shown = |end: Option<i64>| end.map_or_else(|| "...".to_string(), |e| e.to_string());
        let certain = range.lo.is_some_and(|lo| lo >= n) || range.hi.is_some_and(|hi| hi < -n);
        let possible = range.hi.is_some_and(|hi| hi >= n) || range.lo.is_some_and(|lo| lo < -n);
        if len == 0 || certain || possible {
            let verb = if certain || len == 0 { "always leaves" } else { "can leave" };
            let message = format!("this index {verb} {what}: it is in {}..={}", shown(range.lo), shown(range.hi));
            let warning = Diagnostic::warning("index-out-of-range", message)
                .at(self.graph.node(node).span.unwrap_or(self.span), "")
                .hint("reads out of range return the nearest element here, but crash or read undefined memory in PyTorch: clamp the index, or make the tensor longer");
            self.warn(warning);
        }
        Ok(())
    }

    /// The places of an index into `dims` dimensions.
    pub(super) fn places(&mut self, index: &Value, dims: usize, name: &str) -> Result<Vec<Place>, Fault> {
        let given = match index {
            Value::Tuple(items) => items.0.clone(),
            other => vec![other.clone()],
        };
        let takes = given.iter().filter(|v| !matches!(v, Value::None | Value::Ellipsis)).count();
        if takes > dims {
            return Err(Fault::index_error(format!("{takes} indices into `{name}`, which has {dims} dimensions"))
                .hint("remove an index, or add the missing dimension with .unsqueeze(0)"));
        }
        let mut places = Vec::with_capacity(given.len());
        for value in &given {
            match value {
                Value::None => places.push(Place::NewAxis),
                Value::Ellipsis => places.extend((takes..dims).map(|_| Place::Slice(Vec::new()))),
                Value::Slice(parts) => {
                    if parts.0.iter().any(Value::is_symbolic) {
                        return Err(Fault::type_error("a slice whose ends differ from cell to cell has no fixed size")
                            .hint("read single elements, or keep a cumulative sum and subtract its ends"));
                    }
                    places.push(Place::Slice(parts.0.clone()));
                }
                Value::List(_) => {
                    let items = value.as_items().unwrap_or_default();
                    let stacked = self.stack(&items, 0)?;
                    places.push(self.index_place(&stacked, name)?);
                }
                other => places.push(self.index_place(other, name)?),
            }
        }
        Ok(places)
    }

    fn index_place(&mut self, value: &Value, name: &str) -> Result<Place, Fault> {
        let operand = self.operand(value)?;
        let (ty, dtype) = match &operand {
            Operand::Scalar(node) => (self.graph.ty(*node), Some(self.dtype(*node))),
            Operand::Array(array) => (array.ty, array.nodes.first().map(|n| self.dtype(*n))),
        };
        let narrow = |message: String| {
            Err(Fault::new("IndexError", "index-dtype", message).hint("convert the index with .to(torch.int64)"))
        };
        match (ty, operand) {
            // PyTorch's older masks were uint8, and it still takes such an index for one
            (Ty::Int, _) if dtype == Some(DType::U8) => {
                narrow(format!("`{name}` is indexed by a uint8, which PyTorch takes for a mask"))
            }
            (Ty::Int, _) if matches!(dtype, Some(DType::I8 | DType::I16)) => {
                narrow(format!("`{name}` is indexed by an int8 or int16; PyTorch's indices are int64 or int32"))
            }
            (Ty::Float | Ty::Double, _) => {
                let message = format!("`{name}` is indexed by a float; indices must be ints");
                Err(Fault::new("IndexError", "index-dtype", message)
                    .hint("use `//` instead of `/`, or convert with .to(torch.int64)"))
            }
            (Ty::Bool, _) => Err(Fault::index_error(format!("`{name}` is indexed by a truth value"))
                .hint("choose with torch.where, or convert with .to(torch.int64)")),
            (Ty::Int, Operand::Scalar(node)) => Ok(Place::Node(node)),
            (Ty::Int, Operand::Array(array)) => Ok(Place::Nodes(array)),
        }
    }

    /// Indexing with vectors of indices or new axes: element by element.
    fn gather(&mut self, view: &SymView, places: Vec<Place>) -> Result<Value, Fault> {
        // the common shape of the index vectors, and its position: that of the first of them
        let mut vectors: Vec<usize> = Vec::new();
        for place in &places {
            if let Place::Nodes(array) = place {
                vectors = broadcast(&vectors, &array.shape)?;
            }
        }
        let free: Vec<(usize, i64, usize, i64)> = view
            .dims
            .iter()
            .enumerate()
            .filter_map(
                |(at, d)| if let Dim::Free { start, len, step } = d { Some((at, *start, *len, *step)) } else { None },
            )
            .collect();
        enum Axis {
            Fixed(NodeId),
            Vector(Rc<SymArray>),
            Slice(i64, i64),
        }
        let (mut shape, mut axes, mut vector_at, mut next) = (Vec::new(), Vec::new(), None, 0);
        let rest = free.len() - places.iter().filter(|p| !matches!(p, Place::NewAxis)).count();
        for place in places.into_iter().chain((0..rest).map(|_| Place::Slice(Vec::new()))) {
            if let Place::NewAxis = place {
                shape.push(1);
                continue;
            }
            let (dim, start, len, step) = free[next];
            next += 1;
            match place {
                Place::Node(node) => axes.push((dim, Axis::Fixed(self.placed(node, start, len, step, dim, view)?), 0)),
                Place::Nodes(array) => {
                    if vector_at.is_none() {
                        vector_at = Some(shape.len());
                        shape.extend(&vectors);
                    }
                    let mut nodes = Vec::with_capacity(array.nodes.len());
                    for node in &array.nodes {
                        nodes.push(self.placed(*node, start, len, step, dim, view)?);
                    }
                    let array = SymArray { shape: array.shape.clone(), nodes, ty: Ty::Int };
                    axes.push((dim, Axis::Vector(Rc::new(array)), 0));
                }
                Place::Slice(slice) => {
                    let (first, by, count) = slice_bounds(&slice, len)?;
                    axes.push((dim, Axis::Slice(start + first * step, step * by), shape.len()));
                    shape.push(count);
                }
                Place::NewAxis => {}
            }
        }
        let count: usize = shape.iter().product();
        if count > MAX_ELEMENTS {
            return Err(super::too_many(&shape));
        }
        let capture = self.captured(&view.name, view.tensor.clone());
        let mut nodes = Vec::with_capacity(count);
        for flat in 0..count {
            let mut at = vec![0usize; shape.len()];
            let mut left = flat;
            for (place, extent) in at.iter_mut().zip(&shape).rev() {
                *place = left % extent;
                left /= extent;
            }
            let mut index: SmallVec<[NodeId; 4]> = SmallVec::new();
            for (dim, bound) in view.dims.iter().enumerate() {
                let node = match (bound, axes.iter().find(|(d, ..)| *d == dim)) {
                    (Dim::At(node), _) => *node,
                    (_, Some((_, Axis::Fixed(node), _))) => *node,
                    (_, Some((_, Axis::Vector(array), _))) => {
                        let from = vector_at.unwrap_or(0);
                        let own = &at[from..from + vectors.len()];
                        let flat = own.iter().zip(&vectors).fold(0, |f, (i, n)| f * n + i);
                        super::element(&Operand::Array(array.clone()), &vectors, flat)
                    }
                    (_, Some((_, Axis::Slice(start, step), axis))) => {
                        self.node(Op::Int(start + step * at[*axis] as i64))?
                    }
                    (Dim::Free { start, .. }, None) => self.node(Op::Int(*start))?,
                };
                index.push(node);
            }
            nodes.push(self.node(Op::Load(capture, index))?);
        }
        self.array(shape, nodes)
    }

    /// `x[None]`, `x[...]` and `x[()]` of a value without dimensions.
    pub(super) fn index_scalar(&mut self, value: &Value, index: &Value) -> Result<Value, Fault> {
        let items = python::machine::subscript::index_items(index);
        let axes = items.iter().filter(|v| matches!(v, Value::None)).count();
        if items.iter().any(|v| !matches!(v, Value::None | Value::Ellipsis)) {
            return Err(Fault::index_error(
                "invalid index of a 0-dim tensor: an index and what is read by one have no dimensions",
            )
            .hint("a mod computes one cell at a time: remove the index"));
        }
        let node = self.scalar(value)?;
        self.array(vec![1; axes], vec![node])
    }
}
