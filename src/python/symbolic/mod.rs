//! Values that are known only inside the mod: tensors of graph nodes, and the operators on them.
//!
//! Invariant: every node goes through [`Context::node`], which keeps the limit; dtypes follow PyTorch's promotion, in which
//! tensors with dimensions come before those without, and these before numbers. Must not know syntax beyond the operators' names.

mod dtype;
mod elementwise;
mod emit;
pub(crate) mod functions;
mod in_place;
mod index;
pub(crate) mod origins;
mod pick;
mod range;
mod rows;
mod shapes;
mod table;
mod tensors;

use super::diagnose;
use super::machine::Context;
use super::syntax::ast;
use super::value::{Dim, Fault, Sym, SymArray, SymView, Value, meter};
use crate::base::{DType, HostTensor};
use crate::ir::graph::{BinaryOp, CaptureId, NodeId, Op, Ty, UnaryOp};
use smallvec::SmallVec;
use std::rc::Rc;

/// Largest number of elements of a symbolic tensor: each is a node.
pub(crate) const MAX_ELEMENTS: usize = 8192;

/// An operand of an elementwise operation.
pub(crate) enum Operand {
    /// The same for all elements.
    Scalar(NodeId),
    /// One node an element.
    Array(Rc<SymArray>),
}

impl Operand {
    fn shape(&self) -> &[usize] {
        match self {
            Operand::Scalar(_) => &[],
            Operand::Array(array) => &array.shape,
        }
    }
}

impl Context<'_> {
    /// A captured tensor of the graph. It is compared with each that is there, which is work.
    pub(super) fn captured(&mut self, name: &str, tensor: HostTensor) -> CaptureId {
        meter::work(self.graph.captures().len());
        self.graph.add_capture(name, tensor)
    }

    /// Adds a node at the current place. Errors at the limit.
    pub(crate) fn node(&mut self, op: Op) -> Result<NodeId, Fault> {
        if self.graph.nodes().len() >= self.node_limit() {
            let message = format!("this mod needs more than {} operations", self.node_limit());
            return Err(Fault::limit("graph-too-large", message)
                .hint("replace unrolled loops by a captured table that the mod reads"));
        }
        // also of one that is there already: a loop that adds none has an end
        self.charge_steps(2)?;
        let learns = !matches!(op, Op::Float(_) | Op::Input(_) | Op::Unary(UnaryOp::Stop, _));
        let node = self.graph.add(op, Some(self.place()));
        if self.no_grad && learns { self.stopped(node) } else { Ok(node) }
    }

    /// A value through which no gradient goes; ints and truth values have none.
    pub(crate) fn stopped(&mut self, node: NodeId) -> Result<NodeId, Fault> {
        if !self.graph.ty(node).is_float() || self.is_number(node) {
            return Ok(node);
        }
        Ok(self.graph.add(Op::Unary(UnaryOp::Stop, node), Some(self.place())))
    }

    /// A value without its gradient: another view of the same storage, so that it stays the same object.
    pub(crate) fn detached(&mut self, value: &Value) -> Result<Value, Fault> {
        let stopped = self.elementwise(&[value], |cx, n| cx.stopped(n[0]))?;
        Ok(match (value, stopped) {
            (Value::Sym(of), Value::Sym(stopped)) => Value::Sym(Sym { object: of.object, ..stopped }),
            (_, stopped) => stopped,
        })
    }

    /// A node as a value.
    pub(crate) fn sym(&self, node: NodeId) -> Value {
        Value::Sym(Sym { node, ty: self.graph.ty(node), object: self.new_object() })
    }

    /// A number, tensor or symbolic value as an operand.
    pub(crate) fn operand(&mut self, value: &Value) -> Result<Operand, Fault> {
        match value {
            Value::Sym(sym) => Ok(Operand::Scalar(sym.node)),
            Value::Array(array) => Ok(Operand::Array(array.clone())),
            Value::View(view) => match self.read_view(view)? {
                Value::Sym(sym) => Ok(Operand::Scalar(sym.node)),
                Value::Array(array) => Ok(Operand::Array(array)),
                _ => Err(Fault::type_error("a tensor read in part")),
            },
            Value::Bool(b) => self.node(Op::Bool(*b)).map(Operand::Scalar),
            Value::Int(i) => self.node(Op::Int(*i)).map(Operand::Scalar),
            Value::Float(f) => self.node(Op::Float(f.to_bits())).map(Operand::Scalar),
            Value::Tensor(tensor) => {
                self.reads(tensor);
                let learns = self.has_origin(tensor);
                if learns && self.on_elements() {
                    let elements = self.elements_of(tensor).ok_or_else(too_many_elements)?;
                    return self.operand(&elements);
                }
                let name = self.hint.clone().or_else(|| tensor.name().filter(|_| learns));
                self.constant(&tensor.get(), &name.unwrap_or_else(|| "captured".into()), learns)
            }
            Value::Missing(fault) => Err(Fault::clone(fault)),
            Value::None => Err(Fault::type_error("None has no value to compute with")
                .hint("a function without `return` returns None; a parameter may need a value")),
            Value::Function(_) | Value::Partial(_) | Value::Builtin(_) | Value::Method(_) => {
                Err(Fault::type_error("a function is not a value to compute with")
                    .hint("call it: add the parentheses and arguments"))
            }
            other => Err(Fault::type_error(format!("{} cannot be computed with an index", other.type_name()))
                .hint("create a tensor outside the mod: `torch.tensor(values)`")),
        }
    }

    /// A concrete tensor as literals, or as reads if it may need gradients.
    fn constant(&mut self, tensor: &HostTensor, name: &str, learns: bool) -> Result<Operand, Fault> {
        if tensor.numel() > MAX_ELEMENTS {
            let message =
                format!("`{name}` has {} elements: a mod computes one cell, not a whole tensor", tensor.numel());
            return Err(
                Fault::type_error(message).hint(format!("read the element that belongs to the cell: `{name}[q_idx]`"))
            );
        }
        let mut nodes = Vec::with_capacity(tensor.numel());
        if learns && tensor.dtype().is_float() {
            nodes = self.elements_read(tensor, name)?;
        } else {
            for at in 0..tensor.numel() {
                nodes.push(self.element_of(tensor, at)?);
            }
        }
        match (tensor.shape(), nodes.first()) {
            ([], Some(node)) => Ok(Operand::Scalar(*node)),
            (shape, _) => {
                let ty = crate::ir::graph::load_ty(tensor.dtype());
                Ok(Operand::Array(Rc::new(SymArray { shape: shape.to_vec(), nodes, ty })))
            }
        }
    }

    /// Every element of a captured tensor, read.
    fn elements_read(&mut self, tensor: &HostTensor, name: &str) -> Result<Vec<NodeId>, Fault> {
        let capture = self.graph.add_capture(name, tensor.clone());
        let mut nodes = Vec::with_capacity(tensor.numel());
        for at in 0..tensor.numel() {
            let mut rest = at;
            let mut index = SmallVec::new();
            for n in tensor.shape().iter().rev() {
                index.push(self.node(Op::Int((rest % n) as i64))?);
                rest /= n;
            }
            index.reverse();
            nodes.push(self.node(Op::Load(capture, index))?);
        }
        Ok(nodes)
    }

    /// One element of a concrete tensor. Marked by its dtype, unless it has dimensions and the default dtype of a
    /// number.
    fn element_of(&mut self, tensor: &HostTensor, at: usize) -> Result<NodeId, Fault> {
        let node = self.node(literal(tensor, at))?;
        match tensor.dtype() {
            DType::Bool => Ok(node),
            DType::F64 => self.node(Op::Unary(UnaryOp::ToDouble, node)),
            DType::I64 | DType::F32 if !tensor.shape().is_empty() => Ok(node),
            dtype => self.node(Op::Unary(UnaryOp::As(dtype), node)),
        }
    }

    /// A value as a single node. Errors when it has dimensions.
    pub(crate) fn scalar(&mut self, value: &Value) -> Result<NodeId, Fault> {
        match self.operand(value)? {
            Operand::Scalar(node) => Ok(node),
            Operand::Array(array) if array.nodes.len() == 1 => Ok(array.nodes[0]),
            Operand::Array(array) => {
                Err(Fault::type_error(format!("a tensor of shape {:?} where one value is needed", array.shape))
                    .hint("reduce it with .any(), .all() or .sum()"))
            }
        }
    }

    /// Applies `f` element by element, broadcasting the operands. Of two operands, one without dimensions takes the
    /// dtype of one with dimensions; where, clamp and similar functions treat both equally under vmap.
    pub(crate) fn elementwise(
        &mut self,
        values: &[&Value],
        f: impl FnMut(&mut Self, &[NodeId]) -> Result<NodeId, Fault>,
    ) -> Result<Value, Fault> {
        self.broadcasted(values, values.len() == 2, f)
    }

    /// The same; `follows` sets whether an operand without dimensions takes the dtype of one with dimensions.
    pub(crate) fn broadcasted(
        &mut self,
        values: &[&Value],
        follows: bool,
        mut f: impl FnMut(&mut Self, &[NodeId]) -> Result<NodeId, Fault>,
    ) -> Result<Value, Fault> {
        let mut operands = Vec::with_capacity(values.len());
        for value in values {
            operands.push(self.operand(value)?);
        }
        if operands.iter().all(|o| matches!(o, Operand::Scalar(_))) {
            let nodes: SmallVec<[NodeId; 4]> =
                operands.iter().filter_map(|o| if let Operand::Scalar(n) = o { Some(*n) } else { None }).collect();
            let node = f(self, &nodes)?;
            return Ok(self.sym(node));
        }
        let shape = operands.iter().try_fold(Vec::new(), |all, o| broadcast(&all, o.shape()))?;
        let count: usize = shape.iter().product();
        if count > MAX_ELEMENTS {
            return Err(too_many(&shape));
        }
        if follows {
            self.follow_dimensions(&mut operands)?;
        }
        let mut nodes = Vec::with_capacity(count);
        for at in 0..count {
            let picked: SmallVec<[NodeId; 4]> = operands.iter().map(|o| element(o, &shape, at)).collect();
            nodes.push(f(self, &picked)?);
        }
        self.array(shape, nodes)
    }

    /// Casts values without dimensions to the dtype of the tensors with dimensions, if it has the same category.
    fn follow_dimensions(&mut self, operands: &mut [Operand]) -> Result<(), Fault> {
        let dims = operands.iter().filter(|o| !o.shape().is_empty()).map(|o| match o {
            Operand::Array(array) => self.common(&array.nodes),
            Operand::Scalar(node) => self.dtype(*node),
        });
        let Some(dims) = dims.filter(|d| *d != DType::Bool).reduce(super::tensors::promote) else { return Ok(()) };
        for operand in operands {
            if let Operand::Scalar(node) = operand
                && !self.is_number(*node)
                && dtype::category(self.dtype(*node)) == dtype::category(dims)
            {
                *node = self.to_dtype(*node, dims)?;
            }
        }
        Ok(())
    }

    /// A symbolic tensor of these elements, which take on one dtype.
    pub(crate) fn array(&mut self, shape: Vec<usize>, nodes: Vec<NodeId>) -> Result<Value, Fault> {
        if shape.is_empty() && nodes.len() == 1 {
            return Ok(self.sym(nodes[0]));
        }
        let dtype = self.common(&nodes);
        let mut same = Vec::with_capacity(nodes.len());
        for node in nodes {
            let same_dtype = self.dtype(node) == dtype;
            same.push(if same_dtype { node } else { self.to_dtype(node, dtype)? });
        }
        let ty = crate::ir::graph::load_ty(dtype);
        Ok(Value::Array(Rc::new(SymArray { shape, nodes: same, ty })))
    }

    /// Reads all elements of a partly indexed tensor.
    pub(crate) fn read_view(&mut self, view: &SymView) -> Result<Value, Fault> {
        let shape = view.shape();
        let count: usize = shape.iter().product();
        if count > MAX_ELEMENTS {
            let message = format!("this reads {count} elements of `{}` for every cell", view.name);
            return Err(Fault::type_error(message).hint("index all its dimensions, or reduce it outside the mod"));
        }
        let capture = self.graph.add_capture(&view.name, view.tensor.clone());
        let mut nodes = Vec::with_capacity(count);
        for at in 0..count {
            let mut rest = at;
            let mut free = vec![0usize; shape.len()];
            for (place, extent) in free.iter_mut().zip(&shape).rev() {
                *place = rest % extent;
                rest /= extent;
            }
            let mut free = free.into_iter();
            let mut index: SmallVec<[NodeId; 4]> = SmallVec::new();
            for dim in &view.dims {
                index.push(match dim {
                    Dim::At(node) => *node,
                    Dim::Free { start, step, .. } => {
                        let at = start + step * free.next().unwrap_or(0) as i64;
                        self.node(Op::Int(at))?
                    }
                });
            }
            nodes.push(self.node(Op::Load(capture, index))?);
        }
        self.array(shape, nodes)
    }

    /// The rows of a symbolic tensor, for loops.
    pub(crate) fn symbolic_rows(&mut self, value: &Value) -> Result<Vec<Value>, Fault> {
        let n = self.symbolic_shape(value).first().copied().unwrap_or(0);
        self.charge_steps(n as u64)?;
        (0..n).map(|i| self.item(value, &Value::Int(i as i64))).collect()
    }

    /// Extents of a symbolic or concrete tensor; none for numbers.
    pub(crate) fn symbolic_shape(&self, value: &Value) -> Vec<usize> {
        match value {
            Value::Array(array) => array.shape.clone(),
            Value::View(view) => view.shape(),
            Value::Tensor(tensor) => tensor.borrow().shape().to_vec(),
            _ => Vec::new(),
        }
    }

    /// Type of a symbolic or plain value's elements.
    pub(crate) fn symbolic_ty(&self, value: &Value) -> Ty {
        match value {
            Value::Sym(sym) => sym.ty,
            Value::Array(array) => array.ty,
            Value::View(view) => crate::ir::graph::load_ty(view.tensor.dtype()),
            Value::Tensor(tensor) => crate::ir::graph::load_ty(tensor.borrow().dtype()),
            Value::Bool(_) => Ty::Bool,
            Value::Int(_) => Ty::Int,
            _ => Ty::Float,
        }
    }

    /// PyTorch's dtype of a symbolic or plain value.
    pub(crate) fn value_dtype(&self, value: &Value) -> DType {
        match value {
            Value::Sym(sym) => self.dtype(sym.node),
            Value::Array(array) => self.common(&array.nodes),
            Value::View(view) => view.tensor.dtype(),
            Value::Tensor(tensor) => tensor.borrow().dtype(),
            Value::Bool(_) => DType::Bool,
            Value::Int(_) => DType::I64,
            _ => DType::F32,
        }
    }

    /// `shape`, `dtype` and the like of a symbolic tensor; None for other names.
    pub(crate) fn symbolic_attribute(&mut self, value: &Value, name: &str) -> Option<Value> {
        if !value.is_symbolic() {
            return None;
        }
        Some(match name {
            "shape" => Value::ints(self.symbolic_shape(value)),
            "ndim" => Value::Int(self.symbolic_shape(value).len() as i64),
            "dtype" => Value::DType(self.value_dtype(value)),
            "device" => Value::str("cpu"),
            "requires_grad" | "is_cuda" | "is_sparse" => Value::Bool(false),
            "data" => {
                return Some(self.detached(value).unwrap_or_else(|fault| Value::Missing(fault.into())));
            }
            "T" | "mT" if self.symbolic_shape(value).len() < 2 => value.clone(),
            "T" | "mT" => {
                let mut order: Vec<usize> = (0..self.symbolic_shape(value).len()).collect();
                let n = order.len();
                if name == "T" {
                    order.reverse()
                } else {
                    order.swap(n - 2, n - 1)
                }
                return self.permuted(value, &order).ok();
            }
            _ => return None,
        })
    }

    /// `a op b` with a symbolic side.
    pub(crate) fn symbolic_binary(&mut self, op: ast::BinOp, a: &Value, b: &Value) -> Result<Value, Fault> {
        if op == ast::BinOp::MatMul {
            return self.dot(a, b);
        }
        self.elementwise(&[a, b], |cx, n| cx.emit_binary(op, n[0], n[1]))
    }

    /// `-a`, `~a`, `+a` of a symbolic value.
    pub(crate) fn symbolic_unary(&mut self, op: ast::UnaryOp, a: &Value) -> Result<Value, Fault> {
        match op {
            ast::UnaryOp::Plus => Ok(a.clone()),
            ast::UnaryOp::Neg => self.elementwise(&[a], |cx, n| cx.negate(n[0])),
            ast::UnaryOp::Invert => self.elementwise(&[a], |cx, n| cx.invert(n[0])),
            ast::UnaryOp::Not => Err(diagnose::not().hint("write `~(...)`")),
        }
    }

    /// `a op b` for comparisons with a symbolic side.
    pub(crate) fn symbolic_compare(&mut self, op: ast::CmpOp, a: &Value, b: &Value) -> Result<Value, Fault> {
        let op = match op {
            ast::CmpOp::Eq => BinaryOp::Eq,
            ast::CmpOp::Ne => BinaryOp::Ne,
            ast::CmpOp::Lt => BinaryOp::Lt,
            ast::CmpOp::Le => BinaryOp::Le,
            ast::CmpOp::Gt => BinaryOp::Gt,
            ast::CmpOp::Ge => BinaryOp::Ge,
            _ => return Err(diagnose::membership()),
        };
        self.elementwise(&[a, b], |cx, n| cx.emit_compare(op, n[0], n[1]))
    }
}

/// The literal of one element.
fn literal(tensor: &HostTensor, at: usize) -> Op {
    match crate::ir::graph::load_ty(tensor.dtype()) {
        Ty::Bool => Op::Bool(tensor.int_at(at) != 0),
        Ty::Int => Op::Int(tensor.int_at(at)),
        Ty::Float | Ty::Double => Op::Float(tensor.float_at(at).to_bits()),
    }
}

/// Common shape of two, by PyTorch's rule.
pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>, Fault> {
    let n = a.len().max(b.len());
    let at = |shape: &[usize], i: usize| (i + shape.len()).checked_sub(n).map_or(1, |i| shape[i]);
    (0..n)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y || y == 1 => Ok(x),
            (1, y) => Ok(y),
            _ => Err(Fault::runtime_error(format!("shapes {a:?} and {b:?} do not fit together"))
                .hint("inside a mod most values have no dimensions: index captured tensors fully")),
        })
        .collect()
}

/// The node of an operand for element `at` of the broadcast shape.
fn element(operand: &Operand, shape: &[usize], at: usize) -> NodeId {
    match operand {
        Operand::Scalar(node) => *node,
        Operand::Array(array) => {
            let (mut rest, mut flat, mut stride) = (at, 0, 1);
            let skipped = shape.len() - array.shape.len();
            for (i, extent) in shape.iter().enumerate().rev() {
                let place = rest % extent;
                rest /= extent;
                if let Some(own) = i.checked_sub(skipped).map(|i| array.shape[i]) {
                    flat += if own == 1 { 0 } else { place * stride };
                    stride *= own;
                }
            }
            array.nodes[flat]
        }
    }
}

fn too_many_elements() -> Fault {
    Fault::limit("graph-too-large", format!("a tensor of more than {MAX_ELEMENTS} elements"))
}

fn too_many(shape: &[usize]) -> Fault {
    Fault::type_error(format!(
        "a tensor of shape {shape:?} inside a mod has more than {MAX_ELEMENTS} elements for every cell"
    ))
    .hint("index captured tensors fully, so that one value remains")
}
