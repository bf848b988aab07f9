//! Tensors that host code computed from tensors that may need gradients: the origin of each element.
//!
//! Invariant: a float tensor that depends on a parameter is recorded here by its storage, as expressions of the
//! parameter's elements or as lost to a named operation; views need no record, as they share storage. Must not know
//! which gradients are wanted.

use super::MAX_ELEMENTS;
use crate::base::tensor::Data;
use crate::base::{HostTensor, Span};
use crate::ir::graph::{NodeId, Op, load_ty};
use crate::ir::made::{Lost, Made, Part, Way};
use crate::ir::passes::ways::ways;
use crate::python::machine::Context;
use crate::python::machine::origins::{Kind, Read};
use crate::python::tensors::Strided;
use crate::python::value::{Args, Fault, SymArray, Tensor, Value};
use smallvec::SmallVec;
use std::rc::Rc;

/// Functions and methods whose results PyTorch gives no gradient, or whose result is a new tensor that learns for itself.
const ENDS: &[&str] = &[
    "detach",
    "detach_",
    "tensor",
    "new_tensor",
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
    "rand_like",
    "randn_like",
    "randint_like",
    "new_zeros",
    "new_ones",
    "new_full",
    "new_empty",
    "numpy",
    "asarray",
    "deepcopy",
    "copy",
    "Parameter",
    "bernoulli",
    "multinomial",
    "tolist",
    "item",
    "one_hot",
];

/// Functions that move elements and compute nothing, which expressions are not run through: where each element goes is seen by
/// moving numbers of places.
const MOVES: &[&str] =
    &["pad", "tril", "triu", "diag", "diag_embed", "diagflat", "rot90", "tile", "fliplr", "flipud", "block_diag"];
/// Numbers of places begin here, so that no other number is taken for one.
const PLACES: f64 = (1u64 << 40) as f64;

impl Context<'_> {
    /// Marks a tensor as one that may need gradients.
    pub(crate) fn learns(&mut self, tensor: &Tensor, name: &str) {
        let held = tensor.get();
        if held.dtype().is_float() && tensor.handle().layout().is_whole(tensor.handle().storage_len()) {
            let name = self.origins.name_of(&held).unwrap_or_else(|| self.origins.free_name(name));
            self.origins.set(tensor.handle(), Kind::Root { name, tensor: held });
        }
    }

    /// Marks a tensor that was passed again as the same one.
    pub(crate) fn learns_again(&mut self, tensor: &Tensor) {
        if self.learning && self.origins.name_of(&tensor.get()).is_some() {
            self.learns(tensor, "parameter");
        }
    }

    /// Whether any tensor may need gradients, or depends on one that may.
    pub(crate) fn knows_origins(&self) -> bool {
        !self.origins.storages.is_empty()
    }

    /// Whether a tensor depends on one that may need gradients.
    pub(crate) fn has_origin(&self, tensor: &Tensor) -> bool {
        self.knows_origins() && self.origins.of(tensor.handle()).is_some()
    }

    /// Whether an operation is being run on expressions of elements.
    pub(crate) fn on_elements(&self) -> bool {
        self.origins.busy
    }

    /// Remembers that the mod reads a tensor.
    pub(crate) fn reads_origin(&mut self, tensor: &Tensor) {
        if !self.knows_origins() || !tensor.handle().dtype().is_float() {
            return;
        }
        if let Some(read) = self.origins.of(tensor.handle()) {
            let held = tensor.get();
            if !self.origins.read.iter().any(|(other, _)| other.same_storage(&held)) {
                self.origins.read.push((held, read));
            }
        }
    }

    /// Says in the mod's graph what its captured tensors were computed from.
    pub(crate) fn tell_origins(&mut self) {
        let read = std::mem::take(&mut self.origins.read);
        let all: Vec<_> = self.graph.ids_of_captures().collect();
        for id in all {
            let tensor = self.graph.capture(id).tensor.clone();
            let Some((_, read)) = read.iter().find(|(other, _)| other.same_storage(&tensor)) else { continue };
            let made = match &read.kind {
                Kind::Root { name, tensor: own }
                    if own.same_storage(&tensor) && **name == *self.graph.capture(id).name =>
                {
                    continue;
                }
                Kind::Root { name, tensor } => {
                    let Strided { shape, strides, offset } = read.view.clone();
                    let way = Way::View { shape, strides, offset };
                    Made::Of(vec![Part { name: name.to_string(), tensor: tensor.clone(), way }])
                }
                Kind::Nodes(nodes) => {
                    let roots: Vec<NodeId> = read.places().into_iter().map(|at| nodes[at]).collect();
                    let lost = |by| Lost { parent: self.origins.parent_of(&read.kind).to_string(), by, span: None };
                    ways(&self.origins.graph, &roots, &tensor).map_or_else(|by| Made::Lost(lost(by)), Made::Of)
                }
                Kind::Lost(lost) => Made::Lost(Lost::clone(lost)),
            };
            self.graph.set_made(id, made);
        }
    }

    /// Whether what an operation gives may follow from something that learns.
    fn may_follow(&self, given: &[&Value]) -> bool {
        let known = self.knows_origins() && !self.origins.busy && !self.no_grad;
        known && given.iter().any(|v| tensors(v).iter().any(|t| self.has_origin(t)))
    }

    /// After an operation on tensors gave `result`: notes what that follows from. `again` runs the operation on expressions.
    pub(crate) fn followed(
        &mut self,
        name: &str,
        given: &[&Value],
        result: &Value,
        again: impl Fn(&mut Self, &[Value]) -> Result<Value, Fault>,
    ) {
        let short = name.rsplit('.').next().unwrap_or(name);
        if !self.may_follow(given) || ENDS.contains(&short) {
            return;
        }
        let new: Vec<Tensor> = tensors(result).into_iter().filter(|t| self.wants_origin(t)).collect();
        if new.is_empty() || given.iter().any(|v| tensors(v).iter().any(|t| t.is_numpy())) {
            return;
        }
        let mut computed = self.on_expressions(given, &again);
        if computed.is_none() && MOVES.contains(&short) {
            computed = self.moved(given, result, &again);
        }
        let computed = computed.as_ref().map(listed).unwrap_or_default();
        let all = tensors(result);
        for tensor in new {
            let at = all.iter().position(|t| Rc::ptr_eq(t, &tensor));
            let own = at.and_then(|at| computed.get(at)).filter(|_| computed.len() == all.len());
            let whole = tensor.handle().layout().is_whole(tensor.handle().storage_len());
            let nodes = own.filter(|_| whole).and_then(|v| self.nodes_of(v, tensor.handle().shape()));
            match nodes {
                Some(nodes) => self.origins.set(tensor.handle(), Kind::Nodes(nodes)),
                None => self.lose(&tensor, name, given),
            }
        }
    }

    /// After `value` was written into `tensor`, which had `before` for its origin.
    pub(crate) fn written(&mut self, tensor: &Tensor, name: &str, given: &[&Value]) {
        if !self.knows_origins() || self.origins.busy {
            return;
        }
        let follows = given.iter().any(|v| tensors(v).iter().any(|t| self.has_origin(t))) && !self.no_grad;
        let own = self.origins.of(tensor.handle());
        let computed = own.is_some_and(|read| !matches!(read.kind, Kind::Root { .. }));
        if follows || computed {
            let whole = Value::Tensor(tensor.clone());
            let all: Vec<&Value> = given.iter().copied().chain([&whole]).collect();
            self.lose(tensor, name, &all);
        }
    }

    /// Gives a tensor the expressions of another, which was written over all of it.
    pub(crate) fn takes_origin(&mut self, tensor: &Tensor, from: &Value, name: &str) {
        let known = self.knows_origins() && !self.origins.busy;
        let read = from.as_tensor().filter(|_| known).and_then(|t| self.origins.of(t.handle()));
        let whole = tensor.handle().layout().is_whole(tensor.handle().storage_len());
        match read {
            Some(Read { kind: Kind::Nodes(nodes), .. }) if whole && nodes.len() == tensor.handle().numel() => {
                self.origins.set(tensor.handle(), Kind::Nodes(nodes));
            }
            _ => self.written(tensor, name, &[from]),
        }
    }

    fn wants_origin(&self, tensor: &Tensor) -> bool {
        let handle = tensor.handle();
        handle.dtype().is_float()
            && !handle.is_detached()
            && !self.origins.storages.contains_key(&handle.storage_identity())
    }

    /// Runs an operation with expressions in the place of tensors, in the graph of expressions.
    fn on_expressions(
        &mut self,
        given: &[&Value],
        again: impl Fn(&mut Self, &[Value]) -> Result<Value, Fault>,
    ) -> Option<Value> {
        self.in_expressions(|cx| {
            let shadows: Option<Vec<Value>> = given.iter().map(|v| cx.shadow(v)).collect();
            shadows.and_then(|shadows| again(cx, &shadows).ok())
        })
    }

    /// The elements of a result of moving alone: numbers of places are moved in the place of elements.
    fn moved(
        &mut self,
        given: &[&Value],
        result: &Value,
        again: impl Fn(&mut Self, &[Value]) -> Result<Value, Fault>,
    ) -> Option<Value> {
        let held = result.as_tensor()?.get();
        self.in_expressions(|cx| {
            let mut nodes = Vec::new();
            let mut numbers = Vec::new();
            for value in given {
                let tensor = value.as_tensor().filter(|t| cx.has_origin(t));
                let Some(tensor) = tensor else {
                    numbers.push(Value::clone(value));
                    continue;
                };
                let elements = cx.elements_of(tensor)?;
                let own = match elements {
                    Value::Sym(sym) => vec![sym.node],
                    Value::Array(array) => array.nodes.clone(),
                    _ => return None,
                };
                let places = (0..own.len()).map(|i| PLACES + (nodes.len() + i) as f64).collect();
                nodes.extend(own);
                let places = HostTensor::new(tensor.handle().shape(), Data::F64(places)).ok()?;
                numbers.push(Value::tensor(places));
            }
            let placed = again(cx, &numbers).ok()?.as_tensor()?.get();
            if placed.shape() != held.shape() {
                return None;
            }
            let mut all = Vec::with_capacity(held.numel());
            for at in 0..held.numel() {
                let place = placed.float_at(at) - PLACES;
                all.push(match place >= 0.0 && place < nodes.len() as f64 {
                    true => nodes[place as usize],
                    false => cx.node(Op::Float(held.float_at(at).to_bits())).ok()?,
                });
            }
            let ty = load_ty(held.dtype());
            Some(Value::Array(Rc::new(SymArray { shape: held.shape().to_vec(), nodes: all, ty })))
        })
    }

    /// Runs `f` in the graph of expressions; nothing else that it changes stays.
    fn in_expressions(&mut self, f: impl FnOnce(&mut Self) -> Option<Value>) -> Option<Value> {
        let (warnings, rough, hint) = (self.warnings.len(), self.rough.clone(), self.hint.clone());
        std::mem::swap(&mut self.graph, &mut self.origins.graph);
        self.origins.busy = true;
        let result = f(self);
        self.origins.busy = false;
        std::mem::swap(&mut self.graph, &mut self.origins.graph);
        self.warnings.truncate(warnings);
        (self.rough, self.hint) = (rough, hint);
        result
    }

    /// A value with expressions instead of tensors that depend on parameters. None if there are none or too many.
    fn shadow(&mut self, value: &Value) -> Option<Value> {
        let items = |cx: &mut Self, items: &[Value]| items.iter().map(|v| cx.shadow(v)).collect::<Option<Vec<_>>>();
        Some(match value {
            Value::Tuple(all) => Value::tuple(items(self, &all.0)?),
            Value::List(all) => {
                let all = all.borrow().0.clone();
                Value::list(items(self, &all)?)
            }
            Value::Tensor(tensor) => match self.origins.of(tensor.handle()) {
                Some(read) => self.expressions(tensor, &read)?,
                None => value.clone(),
            },
            other => other.clone(),
        })
    }

    /// The elements of a tensor as expressions.
    pub(crate) fn elements_of(&mut self, tensor: &Tensor) -> Option<Value> {
        let read = self.origins.of(tensor.handle())?;
        self.expressions(tensor, &read)
    }

    fn expressions(&mut self, tensor: &Tensor, read: &Read) -> Option<Value> {
        if tensor.handle().numel() > MAX_ELEMENTS {
            return None;
        }
        let nodes: Vec<NodeId> = match &read.kind {
            Kind::Lost(_) => return None,
            Kind::Nodes(nodes) => read.places().into_iter().map(|at| nodes[at]).collect(),
            Kind::Root { name, tensor } => {
                let capture = self.captured(name, tensor.clone());
                let mut nodes = Vec::new();
                for mut at in read.places() {
                    let mut index: SmallVec<[NodeId; 4]> = SmallVec::new();
                    for n in tensor.shape().iter().rev() {
                        index.push(self.node(Op::Int((at % n) as i64)).ok()?);
                        at /= n;
                    }
                    index.reverse();
                    nodes.push(self.node(Op::Load(capture, index)).ok()?);
                }
                nodes
            }
        };
        let shape = tensor.handle().shape().to_vec();
        Some(match (&shape[..], &nodes[..]) {
            ([], [node]) => self.sym(*node),
            _ => Value::Array(Rc::new(SymArray { shape, nodes, ty: load_ty(tensor.handle().dtype()) })),
        })
    }

    /// The expressions of a value of this shape.
    fn nodes_of(&self, value: &Value, shape: &[usize]) -> Option<Rc<[NodeId]>> {
        let nodes = match value {
            Value::Sym(sym) if shape.iter().product::<usize>() == 1 => vec![sym.node],
            Value::Array(array) if array.shape == shape => array.nodes.clone(),
            _ => return None,
        };
        nodes.iter().all(|n| self.origins.graph.ty(*n).is_float()).then(|| nodes.into())
    }

    fn lose(&mut self, tensor: &Tensor, name: &str, given: &[&Value]) {
        let before = given.iter().flat_map(|v| tensors(v)).find_map(|t| self.origins.of(t.handle()));
        let Some(before) = before else { return };
        let lost = match before.kind {
            Kind::Lost(lost) => lost,
            kind => {
                let parent = self.origins.parent_of(&kind).to_string();
                let size = given.iter().flat_map(|v| tensors(v)).map(|t| t.handle().numel()).max().unwrap_or(0);
                let by = match size > MAX_ELEMENTS {
                    true => format!("`{name}` on {size} elements, more than the limit of {MAX_ELEMENTS}"),
                    false => format!("`{name}`"),
                };
                Rc::new(Lost { parent, by, span: Some(self.place()).filter(|s: &Span| !self.ships(s.source)) })
            }
        };
        self.origins.set(tensor.handle(), Kind::Lost(lost));
    }

    /// The same for a call: its arguments are passed unchanged. `args`: as they were before it; None if no tensor learned then.
    pub(crate) fn followed_call(
        &mut self,
        name: &str,
        receiver: Option<&Value>,
        args: Option<&Args>,
        result: &Value,
        again: impl Fn(&mut Self, Option<Value>, Args) -> Result<Value, Fault>,
    ) {
        let Some(args) = args else { return };
        let given: Vec<&Value> =
            receiver.into_iter().chain(&args.positional).chain(args.keyword.iter().map(|(_, v)| v)).collect();
        let (first, positional) = (receiver.is_some(), args.positional.len());
        self.followed(name, &given, result, |cx, shadows| {
            let mut shadows = shadows.iter().cloned();
            let receiver = if first { shadows.next() } else { None };
            let positional: Vec<Value> = shadows.by_ref().take(positional).collect();
            let keyword = args.keyword.iter().map(|(n, _)| n.clone()).zip(shadows).collect();
            again(cx, receiver, Args { positional, keyword })
        });
    }
}

/// A tensor, or those of a list.
fn tensors(value: &Value) -> Vec<Tensor> {
    listed(value).iter().filter_map(|v| v.as_tensor().cloned()).collect()
}

/// The items of a list, or the value itself.
fn listed(value: &Value) -> Vec<Value> {
    match value {
        Value::Tuple(items) => items.0.clone(),
        Value::List(items) => items.borrow().0.clone(),
        other => vec![other.clone()],
    }
}
