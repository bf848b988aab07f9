//! Indexing a symbolic tensor that the mod created: known indices pick, unknown indices choose among the elements.
//!
//! Invariant: a negative index counts from the end, as everywhere; each choice is unrolled, so sizes are limited. Must not
//! know captured tensors.

use super::index::Place;
use super::range::bounds;
use super::{MAX_ELEMENTS, Operand, broadcast, element, too_many};
use crate::ir::graph::{BinaryOp, NodeId, Op, Ty};
use crate::python::machine::Context;
use crate::python::machine::subscript::slice_bounds;
use crate::python::value::{Fault, SymArray, Value};
use std::rc::Rc;

/// The index of one dimension of the tensor.
enum Axis {
    /// One place, the same for all elements of the result.
    One(NodeId),
    /// A place an element of the vectors.
    Vector(Rc<SymArray>),
    /// These places, along a dimension of the result.
    Slice(Vec<usize>, usize),
}

impl Context<'_> {
    /// `value[index]` of a tensor of elements.
    pub(super) fn index_array(&mut self, value: &Value, index: &Value) -> Result<Value, Fault> {
        let Operand::Array(array) = self.operand(value)? else { return self.index_scalar(value, index) };
        let places = self.places(index, array.shape.len(), "this tensor")?;
        let mut vectors: Vec<usize> = Vec::new();
        for place in &places {
            if let Place::Nodes(nodes) = place {
                vectors = broadcast(&vectors, &nodes.shape)?;
            }
        }
        let rest = array.shape.len() - places.iter().filter(|p| !matches!(p, Place::NewAxis)).count();
        let (mut shape, mut axes, mut vector_at): (Vec<usize>, Vec<Axis>, Option<usize>) = Default::default();
        for place in places.into_iter().chain((0..rest).map(|_| Place::Slice(Vec::new()))) {
            match place {
                Place::NewAxis => shape.push(1),
                Place::Node(node) => axes.push(Axis::One(node)),
                Place::Nodes(nodes) => {
                    if vector_at.is_none() {
                        vector_at = Some(shape.len());
                        shape.extend(&vectors);
                    }
                    axes.push(Axis::Vector(nodes));
                }
                Place::Slice(slice) => {
                    let (first, by, count) = slice_bounds(&slice, array.shape[axes.len()])?;
                    axes.push(Axis::Slice((0..count as i64).map(|i| (first + i * by) as usize).collect(), shape.len()));
                    shape.push(count);
                }
            }
        }
        let count: usize = shape.iter().product();
        if count > MAX_ELEMENTS {
            return Err(too_many(&shape));
        }
        let mut nodes = Vec::with_capacity(count);
        for flat in 0..count {
            let mut at = vec![0usize; shape.len()];
            let mut left = flat;
            for (place, extent) in at.iter_mut().zip(&shape).rev() {
                *place = left % extent;
                left /= extent;
            }
            let mut picks = Vec::with_capacity(axes.len());
            for axis in &axes {
                picks.push(match axis {
                    Axis::One(node) => *node,
                    Axis::Vector(own) => {
                        let from = vector_at.unwrap_or(0);
                        let places = at[from..from + vectors.len()].iter().zip(&vectors);
                        let flat = places.fold(0, |flat, (i, n)| flat * n + i);
                        element(&Operand::Array(own.clone()), &vectors, flat)
                    }
                    Axis::Slice(places, dim) => self.node(Op::Int(places[at[*dim]] as i64))?,
                });
            }
            nodes.push(self.picked(&array, &picks, 0)?);
        }
        self.array(shape, nodes)
    }

    /// The element at these places, the first of which belong to dimensions that led to `offset`.
    fn picked(&mut self, array: &SymArray, picks: &[NodeId], offset: usize) -> Result<NodeId, Fault> {
        let Some((pick, rest)) = picks.split_first() else { return Ok(array.nodes[offset]) };
        let extent = array.shape[array.shape.len() - picks.len()];
        if let Some(at) = self.literal_int(*pick) {
            let wrapped = if at < 0 { at + extent as i64 } else { at };
            let inside = usize::try_from(wrapped).ok().filter(|at| *at < extent);
            let fault = || Fault::index_error(format!("index {at} is out of range: there are {extent} elements"));
            return self.picked(array, rest, offset * extent + inside.ok_or_else(fault)?);
        }
        self.charge_steps(extent as u64)?;
        let mut options = Vec::with_capacity(extent);
        for at in 0..extent {
            options.push(self.picked(array, rest, offset * extent + at)?);
        }
        self.chosen_of(*pick, &options)
    }

    /// `options[node]`, the last one for indices beyond.
    fn chosen_of(&mut self, node: NodeId, options: &[NodeId]) -> Result<NodeId, Fault> {
        let Some((last, rest)) = options.split_last() else {
            return Err(Fault::index_error("an empty tensor has no elements"));
        };
        let mut index = node;
        if bounds(&self.graph, node).lo.is_none_or(|lo| lo < 0) {
            let (zero, n) = (self.node(Op::Int(0))?, self.node(Op::Int(options.len() as i64))?);
            let (below, wrapped) =
                (self.two(BinaryOp::Lt, node, zero, Ty::Int)?, self.two(BinaryOp::Add, node, n, Ty::Int)?);
            index = self.choose(below, wrapped, node)?;
        }
        let mut result = *last;
        for (at, option) in rest.iter().enumerate().rev() {
            let at = self.node(Op::Int(at as i64))?;
            let is_it = self.two(BinaryOp::Eq, index, at, Ty::Int)?;
            result = self.choose(is_it, *option, result)?;
        }
        Ok(result)
    }
}
