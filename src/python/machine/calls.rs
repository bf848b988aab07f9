//! The machine's interface to Python's and PyTorch's library, and the state of the library's functions.
//!
//! Invariant: the machine reaches library functions only through this table, so that the library may call the machine
//! back. Must not know the functions.

use super::Context;
use crate::python::syntax::Name;
use crate::python::syntax::ast::{BinOp, CmpOp, UnaryOp};
use crate::python::tensors::PythonRandom;
use crate::python::value::{Args, Fault, Instance, Opaque, Tensor, Value};
use std::rc::Rc;

/// State that functions keep over one trace.
#[derive(Default)]
pub struct Draws {
    /// The global generator, once it was seeded.
    pub(crate) generator: Option<Rc<Opaque>>,
    /// A statement that failed and may have drawn: what comes after it is not known until the next seed.
    pub unsure: Option<Rc<Fault>>,
    /// Python's `random`, once it was seeded.
    pub(crate) random: Option<PythonRandom>,
}

/// Calls a built-in method of a record; None for unknown names.
pub(crate) type RecordMethod = fn(&Rc<Instance>, &str, &Args, &mut Context) -> Option<Result<Value, Fault>>;

/// A library: functions of tensors, containers, strings and modules.
pub(crate) struct Library {
    /// Calls a builtin by its dotted name.
    pub call: fn(&str, Args, &mut Context) -> Result<Value, Fault>,
    /// Calls a method of a value that is neither an instance nor a class of the text.
    pub method: fn(&Value, &Name, Args, &mut Context) -> Result<Value, Fault>,
    /// Reads an attribute of such a value.
    pub attribute: fn(&Value, &Name, &mut Context) -> Result<Value, Fault>,
    /// A dotted name that is a value and not a function.
    pub value: fn(&str) -> Option<Value>,
    /// Calls a dtype, as numpy's are called.
    pub convert: fn(crate::base::DType, &Args, &mut Context) -> Result<Value, Fault>,
    /// Calls a built-in method of a record (dataclass, namedtuple).
    pub record_method: RecordMethod,
    /// `format % values`
    pub percent: fn(&str, &Value, &mut Context<'_>) -> Result<Value, Fault>,
    /// Python's own names that are known here, for suggestions.
    pub builtins: fn() -> &'static [&'static str],
    /// Methods of host tensors, for suggestions.
    pub tensor_methods: fn() -> &'static [&'static str],
    /// Whether a name is Python's own.
    pub is_builtin: fn(&str) -> bool,
    /// Whether tensors, host or symbolic, have a method.
    pub is_method: fn(&str) -> bool,
    /// An operator between a tensor and another value.
    pub binary: fn(BinOp, &Value, &Value, &mut Context) -> Result<Value, Fault>,
    /// An operator before a tensor.
    pub unary: fn(UnaryOp, &Tensor, &mut Context) -> Result<Value, Fault>,
    /// A comparison with a tensor.
    pub compare: fn(CmpOp, &Value, &Value, &mut Context) -> Result<Value, Fault>,
    /// `item in tensor`
    pub contains: fn(&Tensor, &Value, &mut Context) -> Result<bool, Fault>,
    /// `value[index]` of an object from the library; None if it has no items
    pub item: fn(&Value, &Value) -> Option<Result<Value, Fault>>,
    /// `tensor[index]`
    pub index: fn(&Tensor, &Value, &mut Context) -> Result<Value, Fault>,
    /// `tensor[index] = value`
    pub set_index: fn(&Tensor, &Value, &Value, &mut Context) -> Result<(), Fault>,
    /// `tensor += value` and its kin
    pub augmented: fn(BinOp, &Tensor, &Value, &mut Context) -> Result<(), Fault>,
}
