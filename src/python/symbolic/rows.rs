//! Small symbolic tensors: reductions, products, and changes of shape.
//!
//! Invariant: everything is unrolled into nodes, so sizes are limited. Must not know names of functions.

use super::{MAX_ELEMENTS, Operand};
use crate::base::DType;
use crate::ir::graph::{BinaryOp, NodeId, Op, Ty};
use crate::python::machine::Context;
use crate::python::syntax::ast::BinOp;
use crate::python::value::{Args, Fault, SymArray, Value};
use std::rc::Rc;

/// How elements are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reduce {
    Any,
    All,
    Sum,
    Prod,
    Min,
    Max,
    Mean,
}

/// Up to this number of floats are added one after another on every processor.
const IN_ORDER: usize = 4;

/// With more elements the gradient of the largest goes by halves.
const SHARED: usize = 512;

impl Context<'_> {
    /// A value as a tensor of elements; single values have no dimensions.
    pub(super) fn as_array(&mut self, value: &Value) -> Result<Rc<SymArray>, Fault> {
        Ok(match self.operand(value)? {
            Operand::Array(array) => array,
            Operand::Scalar(node) => {
                Rc::new(SymArray { shape: Vec::new(), nodes: vec![node], ty: self.graph.ty(node) })
            }
        })
    }

    /// Reduces over all dimensions, or over some.
    pub(super) fn reduce(
        &mut self,
        how: Reduce,
        value: &Value,
        dims: Option<Vec<i64>>,
        keep: bool,
    ) -> Result<Value, Fault> {
        let array = self.as_array(value)?;
        let n = array.shape.len();
        let mut reduced = vec![dims.is_none(); n];
        for dim in dims.unwrap_or_default() {
            let at = if dim < 0 { dim + n.max(1) as i64 } else { dim };
            match usize::try_from(at).ok().filter(|at| *at < n.max(1)) {
                Some(at) if n > 0 => reduced[at] = true,
                Some(_) => {}
                None => return Err(dimension(dim, n)),
            }
        }
        let outer: Vec<usize> = (0..n).map(|i| if reduced[i] { 1 } else { array.shape[i] }).collect();
        let mut groups: Vec<Vec<NodeId>> = vec![Vec::new(); outer.iter().product()];
        for (flat, node) in array.nodes.iter().enumerate() {
            let (mut rest, mut to, mut stride) = (flat, 0, 1);
            for i in (0..n).rev() {
                let at = rest % array.shape[i];
                rest /= array.shape[i];
                if !reduced[i] {
                    to += at * stride;
                    stride *= array.shape[i];
                }
            }
            groups[to].push(*node);
        }
        let mut nodes = Vec::with_capacity(groups.len());
        for group in groups {
            nodes.push(self.reduce_group(how, &group)?);
        }
        let kept = (0..n).filter(|i| keep || !reduced[*i]).map(|i| outer[i]);
        self.array(kept.collect(), nodes)
    }

    fn reduce_group(&mut self, how: Reduce, nodes: &[NodeId]) -> Result<NodeId, Fault> {
        match how {
            Reduce::Any | Reduce::All => self.reduce_truth(how, nodes),
            Reduce::Sum | Reduce::Prod | Reduce::Mean => self.reduce_number(how, nodes),
            Reduce::Min | Reduce::Max => {
                let op = if how == Reduce::Min { BinaryOp::Min } else { BinaryOp::Max };
                if let [first, rest @ ..] = nodes
                    && !rest.is_empty()
                    && nodes.len() <= SHARED
                    && nodes.iter().any(|n| self.graph.ty(*n).is_float())
                {
                    return self.shared_extreme(op, *first, rest);
                }
                let paired = self.paired(nodes.to_vec(), |cx, a, b| cx.two(op, a, b, Ty::Int))?;
                paired.ok_or_else(|| Fault::runtime_error("the maximum of an empty tensor"))
            }
        }
    }

    /// The largest or smallest float of several, in the form whose gradient is shared evenly
    /// ([`shared_extreme`](crate::ir::passes::derive::shared_extreme)).
    fn shared_extreme(&mut self, op: BinaryOp, first: NodeId, rest: &[NodeId]) -> Result<NodeId, Fault> {
        let mut top = self.two(op, first, first, Ty::Int)?;
        for node in rest {
            // an element that is there twice would end the chain
            top = if *node == top { top } else { self.two(op, top, *node, Ty::Int)? };
        }
        self.two(op, top, top, Ty::Int)
    }

    fn reduce_truth(&mut self, how: Reduce, nodes: &[NodeId]) -> Result<NodeId, Fault> {
        let all = how == Reduce::All;
        let op = if all { BinaryOp::And } else { BinaryOp::Or };
        let mut truths = Vec::with_capacity(nodes.len());
        for node in nodes {
            truths.push(self.cast(*node, Ty::Bool)?);
        }
        match self.paired(truths, |cx, a, b| cx.node(Op::Binary(op, a, b)))? {
            Some(node) => Ok(node),
            None => self.node(Op::Bool(all)),
        }
    }

    /// Sums and products of ints are int64; of halves they are rounded once, at the end.
    fn reduce_number(&mut self, how: Reduce, nodes: &[NodeId]) -> Result<NodeId, Fault> {
        let op = if how == Reduce::Prod { BinaryOp::Mul } else { BinaryOp::Add };
        let dtype = match self.common(nodes) {
            _ if nodes.is_empty() => DType::F32,
            DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 if how != Reduce::Mean => DType::I64,
            dtype => dtype,
        };
        if how == Reduce::Mean && !dtype.is_float() {
            return Err(Fault::runtime_error("mean() of ints or truth values").hint("convert them: `x.float().mean()`"));
        }
        let mut parts = Vec::with_capacity(nodes.len());
        for node in nodes {
            parts.push(self.operand_as(*node, dtype)?);
        }
        let few = dtype.is_float() && parts.len() <= IN_ORDER;
        if dtype.is_float() && !few && !parts.iter().any(|n| self.graph.follows_score(*n)) {
            self.follows(&"sum".into());
        }
        let many = dtype.is_float() && !few && how != Reduce::Prod;
        let terms = if many { parts.clone() } else { Vec::new() };
        let joined = match few {
            // as every processor adds them
            true => self.in_order(parts, op)?,
            false => self.paired(parts, |cx, a, b| cx.node(Op::Binary(op, a, b)))?,
        };
        let mut node = match joined {
            Some(node) => node,
            None => self.node(if how == Reduce::Prod { Op::Int(1) } else { Op::Int(0) })?,
        };
        if many && !self.graph.follows_score(node) {
            self.charge_bytes(8 * terms.len() as u64)?;
            self.sums.push((node, terms));
        }
        if how == Reduce::Mean {
            let count = self.float_literal(nodes.len() as f64)?;
            let count = self.operand_as(count, if dtype == DType::F64 { dtype } else { DType::F32 })?;
            node = self.node(Op::Binary(BinaryOp::Div, node, count))?;
        }
        self.stored(node, dtype)
    }

    /// One after the other. None of nothing.
    fn in_order(&mut self, parts: Vec<NodeId>, op: BinaryOp) -> Result<Option<NodeId>, Fault> {
        let mut parts = parts.into_iter();
        let Some(mut sum) = parts.next() else { return Ok(None) };
        for part in parts {
            sum = self.node(Op::Binary(op, sum, part))?;
        }
        Ok(Some(sum))
    }

    /// In pairs, so that the graph stays shallow. None of nothing.
    fn paired(
        &mut self,
        mut parts: Vec<NodeId>,
        mut join: impl FnMut(&mut Self, NodeId, NodeId) -> Result<NodeId, Fault>,
    ) -> Result<Option<NodeId>, Fault> {
        while parts.len() > 1 {
            let mut next = Vec::with_capacity(parts.len().div_ceil(2));
            for pair in parts.chunks(2) {
                next.push(match pair {
                    [a, b] => join(self, *a, *b)?,
                    _ => pair[0],
                });
            }
            parts = next;
        }
        Ok(parts.first().copied())
    }

    /// Inner product of two vectors, or of a matrix's rows and a vector.
    pub(crate) fn dot(&mut self, a: &Value, b: &Value) -> Result<Value, Fault> {
        let (shape_a, shape_b) = (self.symbolic_shape(a), self.symbolic_shape(b));
        let fits = match (shape_a.len(), shape_b.len()) {
            (1 | 2, 1) => shape_a.last() == shape_b.last(),
            _ => false,
        };
        if !fits && !shape_a.is_empty() && !shape_b.is_empty() {
            let args = Args::of(vec![a.clone(), b.clone()]);
            return self.call_shipped("torch.matmul", args, true).unwrap_or_else(|| Err(Fault::unsupported("matmul")));
        }
        if !fits {
            return Err(Fault::runtime_error(format!("a product of tensors of shapes {shape_a:?} and {shape_b:?}"))
                .hint("inside a mod, products are of vectors: index all dimensions but the last"));
        }
        let product = self.symbolic_binary(BinOp::Mul, a, b)?;
        self.reduce(Reduce::Sum, &product, Some(vec![-1]), false)
    }

    /// The same elements in another shape; one extent may be -1.
    pub(super) fn reshape(&mut self, value: &Value, shape: &[i64]) -> Result<Value, Fault> {
        let array = self.as_array(value)?;
        let total = array.nodes.len() as i64;
        let known: i64 = shape.iter().filter(|n| **n >= 0).product();
        let filled: Vec<usize> = shape
            .iter()
            .map(|n| if *n < 0 { total.checked_div(known).unwrap_or(0) as usize } else { *n as usize })
            .collect();
        if filled.iter().product::<usize>() != array.nodes.len() {
            return Err(Fault::runtime_error(format!("{total} elements do not fit the shape {shape:?}")));
        }
        self.array(filled, array.nodes.clone())
    }

    /// Inserts a dimension of one.
    pub(super) fn unsqueeze(&mut self, value: &Value, dim: i64) -> Result<Value, Fault> {
        let array = self.as_array(value)?;
        let n = array.shape.len() as i64;
        let at = if dim < 0 { dim + n + 1 } else { dim };
        if !(0..=n).contains(&at) {
            return Err(dimension(dim, n as usize + 1));
        }
        let mut shape = array.shape.clone();
        shape.insert(at as usize, 1);
        self.array(shape, array.nodes.clone())
    }

    /// Removes dimensions of one: a given one, or all.
    pub(super) fn squeeze(&mut self, value: &Value, dim: Option<i64>) -> Result<Value, Fault> {
        let array = self.as_array(value)?;
        let n = array.shape.len() as i64;
        let only = dim.map(|d| if d < 0 { d + n } else { d });
        let keep = |(at, extent): &(usize, &usize)| **extent != 1 || only.is_some_and(|o| o != *at as i64);
        let shape = array.shape.iter().enumerate().filter(keep).map(|(_, e)| *e).collect();
        self.array(shape, array.nodes.clone())
    }

    /// Repeats elements to a shape; -1 keeps an extent.
    pub(super) fn expand(&mut self, value: &Value, shape: &[i64]) -> Result<Value, Fault> {
        let array = self.as_array(value)?;
        let skipped = shape.len().saturating_sub(array.shape.len());
        let wanted: Vec<usize> = shape
            .iter()
            .enumerate()
            .map(|(i, n)| match usize::try_from(*n) {
                Ok(n) => n,
                Err(_) => i.checked_sub(skipped).and_then(|i| array.shape.get(i).copied()).unwrap_or(1),
            })
            .collect();
        if super::broadcast(&wanted, &array.shape)? != wanted {
            return Err(Fault::runtime_error(format!("the shape {:?} does not expand to {wanted:?}", array.shape)));
        }
        let count: usize = wanted.iter().product();
        if count > MAX_ELEMENTS {
            return Err(super::too_many(&wanted));
        }
        let operand = Operand::Array(array);
        let nodes = (0..count).map(|at| super::element(&operand, &wanted, at)).collect();
        self.array(wanted, nodes)
    }

    /// Values of one shape along a new dimension.
    pub(super) fn stack(&mut self, values: &[Value], dim: i64) -> Result<Value, Fault> {
        let mut arrays = Vec::with_capacity(values.len());
        for value in values {
            arrays.push(self.as_array(value)?);
        }
        let Some(first) = arrays.first() else { return Err(Fault::runtime_error("a stack of zero tensors")) };
        let shape = first.shape.clone();
        if arrays.iter().any(|a| a.shape != shape) {
            return Err(Fault::runtime_error("a stack of tensors of different shapes"));
        }
        let n = shape.len() as i64 + 1;
        let at = if dim < 0 { dim + n } else { dim };
        if !(0..n).contains(&at) {
            return Err(dimension(dim, n as usize));
        }
        let inner: usize = shape[at as usize..].iter().product();
        let outer: usize = shape[..at as usize].iter().product();
        let mut nodes = Vec::new();
        for o in 0..outer {
            for array in &arrays {
                nodes.extend(&array.nodes[o * inner..(o + 1) * inner]);
            }
        }
        let mut stacked = shape;
        stacked.insert(at as usize, arrays.len());
        self.array(stacked, nodes)
    }
}

pub(super) fn dimension(dim: i64, n: usize) -> Fault {
    Fault::index_error(format!("dimension {dim} of a tensor with {n} dimensions"))
}
