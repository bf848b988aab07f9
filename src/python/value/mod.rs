//! The values of the tracer: Python's, host tensors, and symbolic ones made of graph nodes.
//!
//! Invariant: cloning is cheap (shared by `Rc`), and dropping never recurses deeply, for any nesting of lists. Must not
//! know how code is evaluated.

pub mod fault;
pub(in crate::python) mod meter;
pub(in crate::python) mod scope;
pub(in crate::python) mod typed;

pub use self::fault::{Fault, Raised};
use self::scope::Scope;
use super::syntax::ast;
pub use super::syntax::ast::Name;
use super::tensors::{Budget, TensorRef};
use crate::base::{DType, HostTensor};
use crate::ir::graph::{NodeId, Ty};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A Python value.
#[derive(Clone)]
#[allow(missing_docs)] // the names say it
pub enum Value {
    None,
    Ellipsis,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Rc<str>),
    Tuple(Rc<Items>),
    List(Rc<RefCell<Items>>),
    /// Insertion-ordered, as Python's.
    Dict(Rc<RefCell<Pairs>>),
    Set(Rc<RefCell<Items>>),
    /// start, stop, step
    Range(i64, i64, i64),
    /// lower, upper, step
    Slice(Rc<Items>),
    Function(Rc<Function>),
    Partial(Rc<Partial>),
    /// A function, class or module of Python or PyTorch, by its dotted name: `torch`, `torch.where`, `len`.
    Builtin(Name),
    /// `receiver.name`, not called yet.
    Method(Rc<(Value, Name)>),
    Class(Rc<Class>),
    Instance(Rc<Instance>),
    /// A tensor of known values.
    Tensor(Tensor),
    DType(DType),
    /// A symbolic 0-dimensional tensor.
    Sym(Sym),
    /// A symbolic tensor with dimensions, element by element.
    Array(Rc<SymArray>),
    /// A host tensor indexed in part: more indices may follow.
    View(Rc<SymView>),
    /// A module evaluated from source.
    Module(Rc<ModuleValue>),
    /// Something imported, looked for when it is used: a module, or a name in it.
    Import(Rc<(Name, Option<Name>)>),
    /// Something host-side that only its own functions understand, such as a random generator.
    Opaque(Rc<Opaque>),
    /// A name whose value could not be made; using it is this fault.
    Missing(Rc<Fault>),
}

/// Bytes that a value in a container takes.
pub const VALUE_BYTES: u64 = size_of::<Value>() as u64;

/// A concrete tensor, shared by reference as in Python.
pub type Tensor = Rc<TensorCell>;

/// A tensor and the variable that it was first bound to.
pub struct TensorCell {
    tensor: TensorRef,
    name: RefCell<Option<Name>>,
    /// Whether NumPy made it: its methods and its division differ.
    numpy: Cell<bool>,
}

impl TensorCell {
    /// A tensor with its own storage.
    pub fn new(value: HostTensor) -> Tensor {
        Self::of(TensorRef::new(value))
    }

    /// A tensor, or a view that shares another one's storage.
    pub fn of(tensor: TensorRef) -> Tensor {
        Rc::new(Self { tensor, name: RefCell::default(), numpy: Cell::new(false) })
    }

    /// Whether it is NumPy's array.
    pub fn is_numpy(&self) -> bool {
        self.numpy.get()
    }

    /// Makes it NumPy's array.
    pub fn mark_numpy(&self) {
        self.numpy.set(true);
    }

    /// The storage behind it, for views and in-place writes.
    pub fn handle(&self) -> &TensorRef {
        &self.tensor
    }

    /// The values now. Views are charged when they are made, so reading them is free.
    pub fn get(&self) -> HostTensor {
        self.tensor.read()
    }

    /// The same as [`get`](Self::get).
    pub fn borrow(&self) -> HostTensor {
        self.tensor.read()
    }

    /// Writes other values of the same shape and dtype in place: all views of the storage see them.
    pub fn replace(&self, value: HostTensor) {
        let written = self.tensor.assign(&value, &Budget::new(u64::MAX));
        debug_assert!(written.is_ok(), "the caller compared shapes and dtypes");
    }

    /// The variable it was first bound to.
    pub fn name(&self) -> Option<Name> {
        self.name.borrow().clone()
    }

    /// Names it, unless it has a name.
    pub fn name_it(&self, name: &Name) {
        self.name.borrow_mut().get_or_insert_with(|| name.clone());
    }
}

/// A symbolic 0-dimensional tensor: a node of the graph being traced.
#[derive(Clone, Copy, Debug)]
pub struct Sym {
    /// The node.
    pub node: NodeId,
    /// Its type.
    pub ty: Ty,
    /// Which object of the text it is: two may have one node.
    pub object: u32,
}

/// A small symbolic tensor: one node an element, row-major.
#[derive(Debug, PartialEq)]
pub struct SymArray {
    /// Extents.
    pub shape: Vec<usize>,
    /// Elements.
    pub nodes: Vec<NodeId>,
    /// Their type.
    pub ty: Ty,
}

/// A host tensor of which leading or chosen dimensions are bound to symbolic indices.
pub struct SymView {
    /// The read value.
    pub tensor: HostTensor,
    /// Name of the capture.
    pub name: Name,
    /// One for each dimension of `tensor`.
    pub dims: Vec<Dim>,
}

/// The index bound to a dimension of a [`SymView`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // the names say it
pub enum Dim {
    /// One index.
    At(NodeId),
    /// Free: `len` elements from `start` on, `step` apart.
    Free { start: i64, len: usize, step: i64 },
}

impl SymView {
    /// Extents of the free dimensions.
    pub fn shape(&self) -> Vec<usize> {
        let free = |dim: &Dim| if let Dim::Free { len, .. } = dim { Some(*len) } else { None };
        self.dims.iter().filter_map(free).collect()
    }
}

/// A function with its closure.
pub struct Function {
    /// Its definition.
    pub def: Rc<ast::Function>,
    /// Values of the defaults, for each parameter.
    pub defaults: Vec<Option<Value>>,
    /// Its enclosing scope.
    pub scope: Rc<Scope>,
    /// Attributes set on it, including `__name__`.
    pub attributes: RefCell<Pairs>,
}

impl Drop for Function {
    fn drop(&mut self) {
        bury(self.defaults.drain(..).flatten());
    }
}

/// `functools.partial`.
pub struct Partial {
    /// The called value.
    pub function: Value,
    /// Bound arguments.
    pub args: Args,
}

impl Drop for Partial {
    fn drop(&mut self) {
        bury([std::mem::replace(&mut self.function, Value::None)]);
    }
}

/// A class defined in the text.
pub struct Class {
    /// Its name.
    pub name: Name,
    /// Base classes.
    pub bases: Items,
    /// Methods and class attributes.
    pub members: RefCell<Pairs>,
    /// Fields of a `@dataclass`, with defaults.
    pub fields: Option<Vec<(Name, Option<Value>)>>,
}

impl Class {
    /// Whether its objects are `types.SimpleNamespace`s, which are equal where their attributes are.
    pub fn is_namespace(&self) -> bool {
        &*self.name == "namespace" && self.bases.0.is_empty() && self.members.borrow().0.is_empty()
    }
}

/// An object of a [`Class`].
pub struct Instance {
    /// Its class.
    pub class: Rc<Class>,
    /// `self.x`
    pub attributes: RefCell<Pairs>,
}

/// A module evaluated from its source.
pub struct ModuleValue {
    /// `attn_gym.masks.causal`
    pub name: Name,
    /// Its globals.
    pub scope: Rc<Scope>,
}

/// A host-side object: methods are called as `KIND.method` with it first.
pub struct Opaque {
    /// `Generator`
    pub kind: &'static str,
    /// Its state.
    pub state: RefCell<Box<dyn Any>>,
}

/// Elements of a container. Dropping is iterative.
#[derive(Default)]
pub struct Items(pub Vec<Value>);

/// Keys and values in insertion order. Dropping is iterative.
#[derive(Default)]
pub struct Pairs(pub Vec<(Value, Value)>);

impl Drop for Items {
    fn drop(&mut self) {
        if self.0.iter().any(Value::holds_values) {
            bury(self.0.drain(..));
        }
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        if self.0.iter().any(|(_, v)| v.holds_values()) {
            bury(self.0.drain(..).map(|(_, v)| v));
        }
    }
}

thread_local! {
    /// Values waiting to be dropped, while one is being dropped.
    static DYING: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    static BURYING: Cell<bool> = const { Cell::new(false) };
}

/// Drops values one after the other instead of one within the other.
pub(crate) fn bury(values: impl IntoIterator<Item = Value>) {
    // taking the next of them may drop values too, such as a dict's key: nothing is borrowed meanwhile
    for value in values {
        DYING.with(|dying| dying.borrow_mut().push(value));
    }
    if BURYING.replace(true) {
        return;
    }
    while let Some(value) = DYING.with(|dying| dying.borrow_mut().pop()) {
        drop(value);
    }
    BURYING.set(false);
}

impl Pairs {
    /// The value under a string key.
    pub fn named(&self, name: &str) -> Option<Value> {
        meter::work(self.0.len() / 4);
        self.0.iter().rev().find(|(k, _)| matches!(k, Value::Str(k) if **k == *name)).map(|(_, v)| v.clone())
    }

    /// Sets the value under a string key.
    pub fn set_named(&mut self, name: &Name, value: Value) {
        meter::work(self.0.len() / 4);
        match self.0.iter_mut().find(|(k, _)| matches!(k, Value::Str(k) if **k == **name)) {
            Some((_, old)) => *old = value,
            None => self.0.push((Value::Str(name.clone()), value)),
        }
    }
}

impl Value {
    /// A string.
    pub fn str(text: impl Into<Rc<str>>) -> Value {
        Value::Str(text.into())
    }

    /// A tuple.
    pub fn tuple(items: Vec<Value>) -> Value {
        Value::Tuple(Rc::new(Items(items)))
    }

    /// A list.
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Rc::new(RefCell::new(Items(items))))
    }

    /// A tuple of ints, such as a shape.
    pub fn ints(items: impl IntoIterator<Item = usize>) -> Value {
        Value::tuple(items.into_iter().map(|n| Value::Int(n as i64)).collect())
    }

    /// A tensor with its own storage.
    pub fn tensor(value: HostTensor) -> Value {
        Value::Tensor(TensorCell::new(value))
    }

    /// Whether it may hold other values, so that dropping it may go on.
    fn holds_values(&self) -> bool {
        !matches!(
            self,
            Value::None
                | Value::Ellipsis
                | Value::Bool(_)
                | Value::Int(_)
                | Value::Float(_)
                | Value::Str(_)
                | Value::Range(..)
                | Value::Builtin(_)
                | Value::DType(_)
                | Value::Sym(_)
                | Value::Array(_)
                | Value::View(_)
                | Value::Import(_)
        )
    }

    /// Whether it is of Python's plain types, all of whose operations are known.
    pub fn is_plain(&self) -> bool {
        matches!(
            self,
            Value::None
                | Value::Bool(_)
                | Value::Int(_)
                | Value::Float(_)
                | Value::Str(_)
                | Value::Tuple(_)
                | Value::List(_)
                | Value::Dict(_)
                | Value::Set(_)
                | Value::Range(..)
        )
    }

    /// Whether it is known only inside the mod.
    pub fn is_symbolic(&self) -> bool {
        matches!(self, Value::Sym(_) | Value::Array(_) | Value::View(_))
    }

    /// Python's name of its type, for messages.
    pub fn type_name(&self) -> String {
        let name = match self {
            Value::None => "None",
            Value::Ellipsis => "ellipsis",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::Tuple(_) => "tuple",
            Value::List(_) => "list",
            Value::Dict(_) => "dict",
            Value::Set(_) => "set",
            Value::Range(..) => "range",
            Value::Slice(_) => "slice",
            Value::Function(_) | Value::Partial(_) | Value::Builtin(_) | Value::Method(_) => "function",
            Value::Class(_) => "type",
            Value::Instance(instance) => return instance.class.name.to_string(),
            Value::Tensor(_) | Value::Sym(_) | Value::Array(_) | Value::View(_) => "Tensor",
            Value::DType(_) => "torch.dtype",
            Value::Module(_) | Value::Import(_) => "module",
            Value::Opaque(opaque) => opaque.kind,
            Value::Missing(_) => "missing value",
        };
        name.to_string()
    }

    /// An int, or a bool or one-element integer tensor as one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(i) => Some(*i),
            Value::Bool(b) => Some(i64::from(*b)),
            Value::Tensor(t) => {
                let t = t.borrow();
                (t.numel() == 1 && !t.dtype().is_float()).then(|| t.int_at(0))
            }
            _ => None,
        }
    }

    /// A float, or anything numeric with one element as one.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Float(f) => Some(*f),
            Value::Tensor(t) => {
                let t = t.borrow();
                (t.numel() == 1).then(|| t.float_at(0))
            }
            other => other.as_int().map(|i| i as f64),
        }
    }

    /// A bool.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            Value::Int(i) => Some(*i != 0),
            _ => None,
        }
    }

    /// A string.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::Str(text) = self { Some(text) } else { None }
    }

    /// A concrete tensor.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        if let Value::Tensor(t) = self { Some(t) } else { None }
    }

    /// A dtype; Python's `int`, `float` and `bool` are the dtypes that PyTorch takes them for.
    pub fn as_dtype(&self) -> Option<DType> {
        match self {
            Value::DType(dtype) => Some(*dtype),
            Value::Builtin(name) => match &**name {
                "int" => Some(DType::I64),
                "float" => Some(DType::F64),
                "bool" => Some(DType::Bool),
                _ => None,
            },
            _ => None,
        }
    }

    /// The elements of a tuple, list, range or set.
    pub fn as_items(&self) -> Option<Vec<Value>> {
        let items: Vec<Value> = match self {
            Value::Tuple(items) => items.0.clone(),
            Value::List(items) | Value::Set(items) => items.borrow().0.clone(),
            Value::Range(start, stop, step) if range_len(*start, *stop, *step) <= 1 << 20 => {
                range_items(*start, *stop, *step).collect()
            }
            _ => return None,
        };
        meter::work(items.len());
        Some(items)
    }
}

/// Number of elements of a range.
pub fn range_len(start: i64, stop: i64, step: i64) -> u64 {
    let span = if step > 0 { i128::from(stop) - i128::from(start) } else { i128::from(start) - i128::from(stop) };
    let step = i128::from(step).abs().max(1);
    u64::try_from((span.max(0) + step - 1) / step).unwrap_or(u64::MAX)
}

/// The elements of a range. Its last step may pass the largest int, its elements do not.
pub(crate) fn range_items(start: i64, stop: i64, step: i64) -> impl Iterator<Item = Value> {
    let n = range_len(start, stop, step);
    (0..n).map(move |at| Value::Int(start.wrapping_add((at as i64).wrapping_mul(step))))
}

/// Arguments of a call.
#[derive(Clone, Default)]
pub struct Args {
    /// By position.
    pub positional: Vec<Value>,
    /// By name.
    pub keyword: Vec<(Name, Value)>,
}

impl Args {
    /// Only positional ones.
    pub fn of(positional: Vec<Value>) -> Args {
        Args { positional, keyword: Vec::new() }
    }

    /// The argument at a position or under a name.
    pub fn get(&self, at: usize, name: &str) -> Option<&Value> {
        self.positional.get(at).or_else(|| self.named(name))
    }

    /// The keyword argument of a name.
    pub fn named(&self, name: &str) -> Option<&Value> {
        self.keyword.iter().find(|(n, _)| **n == *name).map(|(_, v)| v)
    }

    /// The argument at a position or under a name, or a fault that names it.
    pub fn need(&self, function: &str, at: usize, name: &str) -> Result<&Value, Fault> {
        self.get(at, name).ok_or_else(|| {
            Fault::type_error(format!("{function}() misses its argument `{name}`"))
                .hint(format!("pass `{name}`, by position or as `{name}=...`"))
        })
    }

    /// The arguments by position after the first ones; none if even those came by name.
    pub fn rest(&self, from: usize) -> &[Value] {
        self.positional.get(from..).unwrap_or_default()
    }

    /// Whether any argument is symbolic, also one inside a list or tuple.
    pub fn any_symbolic(&self) -> bool {
        fn any(items: &[Value]) -> bool {
            // several at the time of a unit
            meter::work(items.len() / 4);
            items.iter().any(Value::is_symbolic)
        }
        fn symbolic(value: &Value) -> bool {
            match value {
                Value::Tuple(items) => any(&items.0),
                Value::List(items) => any(&items.borrow().0),
                other => other.is_symbolic(),
            }
        }
        self.positional.iter().chain(self.keyword.iter().map(|(_, v)| v)).any(symbolic)
    }
}

/// Whether two values are the same callable.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Function(a), Value::Function(b)) => Rc::ptr_eq(a, b),
        (Value::Partial(a), Value::Partial(b)) => Rc::ptr_eq(a, b),
        (Value::Instance(a), Value::Instance(b)) => Rc::ptr_eq(a, b),
        (Value::Builtin(a), Value::Builtin(b)) => a == b,
        _ => false,
    }
}

/// The result of calling a function with a cache.
pub(crate) const CACHED: &str = "functools.cached";

/// The dtype named `torch.NAME`; None for other names.
pub(crate) fn torch_dtype(name: &str) -> Option<DType> {
    Some(match name {
        "bool" => DType::Bool,
        "uint8" => DType::U8,
        "int8" => DType::I8,
        "int16" | "short" => DType::I16,
        "int32" | "int" => DType::I32,
        "int64" | "long" => DType::I64,
        "float16" | "half" => DType::F16,
        "bfloat16" => DType::BF16,
        "float32" | "float" => DType::F32,
        "float64" | "double" => DType::F64,
        _ => return None,
    })
}
