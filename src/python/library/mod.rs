//! The names of Python and PyTorch: the part of the tracer that handles a call, an attribute, an operator.
//!
//! Invariant: every call ends in one of four tables, in this order: `python` (len, range, str and list methods...),
//! `symbolic` if any argument is symbolic, then `host` (functions on concrete values) and `tensor_methods` (methods,
//! operators and indexing of concrete tensors). A table returns None for an unknown name, and the nearest known name is
//! suggested. Must not know how calls bind arguments.
//!
//! # The host tables' interface
//!
//! - [`host::call`]`("torch.arange", &args, cx)`: any dotted name of `torch`, `math` and the like, without symbolic
//!   arguments; methods of an [`Opaque`](super::value::Opaque) come as `"Generator.manual_seed"` with it first.
//! - [`host::value`]`("torch.pi")`: an attribute of a module that is a value, not a function.
//! - [`tensor_methods::call`]`("view", &tensor, &args, cx)`: `tensor.view(...)`; a name ending in `_` works in place.
//! - [`tensor_methods::attribute`]`("shape", &tensor, cx)`: attributes that are values.
//! - [`tensor_methods::binary`], [`compare`](tensor_methods::compare), [`unary`](tensor_methods::unary): operators with at
//!   least one concrete tensor among the operands and no symbolic one.
//! - [`tensor_methods::index`], [`set_index`](tensor_methods::set_index): `t[...]` and `t[...] = value`; a tuple index
//!   comes as a tuple, slices as `Value::Slice`, None as `Value::None`.
//!
//! They charge allocations through [`Context::charge_bytes`] and long loops through [`Context::charge_steps`], and
//! leave the place of a fault to the caller, who knows it.

mod bind;
mod collections;
mod containers;
mod copying;
mod einsum;
mod functional;
mod generator;
mod homes;
pub mod host;
mod itertools;
mod json;
mod making;
mod math;
mod numbers;
mod numpy;
mod operator;
#[cfg(test)]
mod prelude_tests;
pub mod python;
mod python_random;
pub(crate) mod re;
mod records;
pub(super) mod rough;
mod sorting;
pub(crate) mod strings;
mod tensor_compute;
mod tensor_in_place;
pub mod tensor_methods;
mod tensor_move;
mod tensor_table;
mod tensor_views;
mod ties;
#[cfg(test)]
mod torch_tests;
mod unknown;
mod vmap;

pub(crate) use self::numpy::convert;
pub(crate) use self::records::method as record_method;

use super::diagnose;
use super::machine::{Context, Library};
use super::prelude;

use super::syntax::Name;
use super::value::{Args, Fault, Tensor, Value, torch_dtype};
use crate::base::{SourceId, Span};

/// The machine's calls of this library.
pub(crate) static LIBRARY: Library = Library {
    call,
    method,
    attribute,
    value,
    convert,
    record_method,
    percent: strings::percent,
    is_builtin: python::is_builtin,
    builtins: python::names,
    tensor_methods: || &tensor_methods::NAMES,
    is_method: |name| tensor_methods::NAMES.contains(&name) || super::symbolic::functions::is_method(name),
    binary: tensor_methods::binary,
    unary: tensor_methods::unary,
    compare: tensor_methods::compare,
    contains: tensor_methods::contains,
    item: re::item,
    index: tensor_methods::index,
    set_index: tensor_methods::set_index,
    augmented: tensor_methods::augmented,
};

/// Remembers numbers that left a tensor with its last bits.
fn remember(result: &Value, follows: Option<&std::rc::Rc<str>>, cx: &mut Context) {
    if let Some(function) = follows {
        cx.remember_rough(result, function);
    }
}

/// Calls a builtin by its dotted name.
pub(crate) fn call(name: &str, args: Args, cx: &mut Context) -> Result<Value, Fault> {
    let follows = rough::of_call(name, None, &args).or_else(|| args.positional.iter().find_map(|a| cx.rough_number(a)));
    let makes_parameter = cx.learning && learns(name, &args);
    let given = cx.knows_origins().then(|| args.clone());
    let shaking = rough::Shaking::of(cx.shaken, name, None, &args);
    let result = called(name, args, cx)?;
    if let Some(shaking) = shaking {
        shaking.shake(&result);
    }
    if let (true, Value::Tensor(tensor)) = (makes_parameter, &result) {
        let own = tensor.name().unwrap_or_else(|| "parameter".into());
        cx.learns(tensor, &own);
    }
    rough::mark(&result, follows.as_ref());
    remember(&result, follows.as_ref(), cx);
    cx.followed_call(name, None, given.as_ref(), &result, |cx, _, args| called(name, args, cx));
    Ok(result)
}

/// Whether a call makes a tensor that learns.
fn learns(name: &str, args: &Args) -> bool {
    let says = args.named("requires_grad").map(|v| v.as_bool() == Some(true));
    says.unwrap_or(name.ends_with("nn.Parameter") || name.ends_with("nn.parameter.Parameter"))
}

/// `torch.sub(a, b, out=keep)`: the result is written into a tensor that is there, which every view of it sees.
fn written_out(name: &str, out: &Value, args: Args, cx: &mut Context) -> Result<Value, Fault> {
    let made = called(name, args, cx)?;
    let (Value::Tensor(to), Value::Tensor(from)) = (out, &made) else {
        return match out {
            Value::None => Ok(made),
            _ => Err(Fault::unsupported(format!("{name}() with this `out=` is not supported here"))
                .hint("use the result: `y = f(x)` instead of `f(x, out=y)`")),
        };
    };
    let (own, new) = (to.handle().dtype(), from.handle().dtype());
    if !super::tensors::can_cast(new, own) {
        let (new, own) = (new.torch_name(), own.torch_name());
        return Err(Fault::runtime_error(format!("result type {new} can't be cast to the desired output type {own}")));
    }
    if to.handle().shape() != from.handle().shape() {
        return Err(Fault::unsupported(format!(
            "{name}() with an `out=` of another shape than its result is not supported here"
        ))
        .hint("use the result: `y = f(x)` instead of `f(x, out=y)`"));
    }
    bind::spend(cx, |budget| to.handle().assign(&from.get(), budget))?;
    cx.takes_origin(to, &made, "out=");
    Ok(out.clone())
}

fn called(name: &str, mut args: Args, cx: &mut Context) -> Result<Value, Fault> {
    let out = args.keyword.iter().position(|(n, _)| &**n == "out");
    if let Some(at) = out.filter(|_| name.starts_with("torch.") && !args.any_symbolic()) {
        let (_, out) = args.keyword.remove(at);
        return written_out(name, &out, args, cx);
    }
    if name == "method" {
        return cx.run_method(args);
    }
    let is_number = name.starts_with("math.") && !args.any_symbolic();
    if let Some(result) = is_number.then(|| host::of_math(name, &args, cx)).flatten() {
        return result;
    }
    if let Some(own) = name.strip_prefix("prelude.") {
        return match own {
            "members" => members(&args),
            "wide" => cx.in_wide(args.need("wide", 0, "input")?),
            "solved" | "determinant" => linear(own, &args, cx),
            "place" => Ok(place(cx.place())),
            _ => Ok(left_open(&args)),
        };
    }
    if let Some(result) = python::call(name, &args, cx) {
        return result;
    }
    if let Some(result) = functional::call(name, &args, cx) {
        return result;
    }
    if args.any_symbolic() {
        return match cx.symbolic_call(name, &args) {
            Some(result) => result,
            None => cx.call_shipped(name, args, true).unwrap_or_else(|| Err(unknown::unknown_function(name, true))),
        };
    }
    if let Some(short) = name.strip_prefix("numpy.") {
        return match numpy::call(short, &args, cx) {
            Some(result) => result,
            None => cx.call_shipped(name, args, false).unwrap_or_else(|| Err(unknown::unknown_function(name, false))),
        };
    }
    match host::call(name, &args, cx) {
        Some(result) => result,
        None if prelude::find(name, false).is_some() => {
            cx.call_shipped(name, args, false).unwrap_or_else(|| Err(unknown::unknown_function(name, false)))
        }
        // `torch.Tensor.clamp(x, ...)` is the method
        None => match (name.strip_prefix("torch.Tensor."), args.positional.first()) {
            (Some(method), Some(receiver)) => {
                let rest = Args { positional: args.rest(1).to_vec(), keyword: args.keyword.clone() };
                self::method(receiver, &method.into(), rest, cx)
            }
            _ => Err(unknown::unknown_function(name, false)),
        },
    }
}

/// The user's call of what ships, for an object that remembers it.
fn place(at: Span) -> Value {
    Value::tuple([at.source.0, at.start, at.end].map(|n| Value::Int(n.into())).to_vec())
}

/// The same as a span again.
pub(crate) fn placed(value: &Value) -> Option<Span> {
    let items = value.as_items()?;
    let number = |at: usize| u32::try_from(items.get(at)?.as_int()?).ok();
    Some(Span { source: SourceId(number(0)?), start: number(1)?, end: number(2)? })
}

/// `solved(a, b)` and `determinant(a)` of matrices.
fn linear(name: &str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let matrix = |at: usize| {
        let value = args.need(name, at, "A")?;
        let wrong = || Fault::type_error(format!("linalg: a Tensor is needed, not {}", value.type_name()));
        value.as_tensor().map(|t| t.get()).ok_or_else(wrong)
    };
    let a = matrix(0)?;
    let made = match name {
        "determinant" => bind::spend(cx, |budget| super::tensors::determinant(&a, budget)),
        _ => {
            let b = matrix(1)?;
            bind::spend(cx, |budget| super::tensors::solve(&a, &b, budget))
        }
    };
    made.map(Value::tensor)
}

/// The attributes of an object, by name.
fn members(args: &Args) -> Result<Value, Fault> {
    match args.need("members", 0, "object")? {
        Value::Instance(object) => {
            let pairs = super::value::Pairs(object.attributes.borrow().0.clone());
            Ok(Value::Dict(std::rc::Rc::new(std::cell::RefCell::new(pairs))))
        }
        other => Err(Fault::type_error(format!("{} has no attributes", other.type_name()))),
    }
}

/// A value that PyTorch leaves open: using it is the refusal that is given.
fn left_open(args: &Args) -> Value {
    let text = args.positional.first().and_then(Value::as_str).unwrap_or("this is not supported here");
    let fault = match text.split_once(": ") {
        Some((message, hint)) => Fault::unsupported(message).hint(hint),
        None => Fault::unsupported(text),
    };
    Value::Missing(std::rc::Rc::new(fault))
}

/// `tensor.name(args)` of a tensor of known values.
fn tensor_method(receiver: &Value, tensor: &Tensor, name: &Name, args: Args, cx: &mut Context) -> Result<Value, Fault> {
    match tensor_methods::call(name, tensor, &args, cx) {
        Some(result) => result,
        None => match tensor_methods::attribute(name, tensor, cx) {
            Some(value) => {
                let value = value?;
                cx.call(&value, args)
            }
            None => cx
                .call_shipped_method(receiver, name, &args)
                .unwrap_or_else(|| Err(diagnose::unknown_method(name, tensor_methods::NAMES.iter().copied()))),
        },
    }
}

/// `receiver.name(args)` of values that are not made by the text.
pub(crate) fn method(receiver: &Value, name: &Name, args: Args, cx: &mut Context) -> Result<Value, Fault> {
    match receiver {
        Value::Sym(_) | Value::Array(_) | Value::View(_) => cx.symbolic_method(receiver, name, &args),
        Value::Tensor(_) if args.any_symbolic() => cx.symbolic_method(receiver, name, &args),
        Value::Tensor(tensor) => {
            let follows = rough::of_call(name, Some(receiver), &args);
            let given = cx.knows_origins().then(|| args.clone());
            let shaking = rough::Shaking::of(cx.shaken, name, Some(receiver), &args);
            let result = match tensor.is_numpy() {
                true => numpy::method(name, tensor, args, cx),
                false => tensor_method(receiver, tensor, name, args, cx),
            };
            let result = result?;
            if let Some(shaking) = shaking {
                shaking.shake(&result);
            }
            rough::mark(&result, follows.as_ref());
            remember(&result, follows.as_ref(), cx);
            cx.followed_call(name, Some(receiver), given.as_ref(), &result, |cx, receiver, args| match &receiver {
                Some(Value::Tensor(tensor)) => {
                    tensor_method(receiver.as_ref().unwrap_or(&Value::None), tensor, name, args, cx)
                }
                Some(receiver) => cx.symbolic_method(receiver, name, &args),
                None => Ok(Value::None),
            });
            Ok(result)
        }
        Value::Opaque(opaque) => {
            let dotted = format!("{}.{name}", opaque.kind);
            let mut all = vec![receiver.clone()];
            all.extend(args.positional);
            match host::call(&dotted, &Args { positional: all, keyword: args.keyword }, cx) {
                Some(result) => result,
                None => Err(unknown::unknown_function(&dotted, false)),
            }
        }
        other => match containers::method(other, name, &args, cx) {
            Some(result) => result,
            None if containers::methods_of(other).is_some_and(|all| all.contains(&&**name)) => {
                Err(Fault::unsupported(format!("{}.{name}() is not supported here", other.type_name())))
            }
            None if containers::methods_of(other).is_some() => Err(no_attribute(other, name)),
            None => Err(diagnose::unknown_attribute(&other.type_name(), name, std::iter::empty())),
        },
    }
}

/// `value.name` of values that are not made by the text.
pub(crate) fn attribute(value: &Value, name: &Name, cx: &mut Context) -> Result<Value, Fault> {
    let own = match value {
        Value::Sym(_) | Value::Array(_) | Value::View(_) => cx.symbolic_attribute(value, name).map(Ok),
        Value::Tensor(tensor) if tensor.is_numpy() => numpy::attribute(name, tensor, cx),
        Value::Tensor(tensor) => tensor_methods::attribute(name, tensor, cx),
        Value::DType(dtype) => match &**name {
            "is_floating_point" => Some(Ok(Value::Bool(dtype.is_float()))),
            "itemsize" => Some(Ok(Value::Int(dtype.size() as i64))),
            "is_complex" => Some(Ok(Value::Bool(false))),
            "is_signed" => Some(Ok(Value::Bool(!matches!(dtype, crate::base::DType::Bool | crate::base::DType::U8)))),
            "name" => Some(Ok(Value::str(dtype.torch_name().trim_start_matches("torch.")))),
            other if other.starts_with("__") => None,
            other => {
                let known = ["is_floating_point", "itemsize", "is_signed", "is_complex"];
                Some(Err(diagnose::unknown_attribute("torch.dtype", other, known.into_iter())))
            }
        },
        Value::Range(start, stop, step) => match &**name {
            "start" => Some(Ok(Value::Int(*start))),
            "stop" => Some(Ok(Value::Int(*stop))),
            "step" => Some(Ok(Value::Int(*step))),
            _ => None,
        },
        Value::Int(_) | Value::Bool(_) | Value::Float(_) => {
            let whole = value.as_int().filter(|_| !matches!(value, Value::Float(_)));
            match (&**name, whole) {
                ("real" | "numerator", Some(i)) => Some(Ok(Value::Int(i))),
                ("imag", Some(_)) => Some(Ok(Value::Int(0))),
                ("denominator", Some(_)) => Some(Ok(Value::Int(1))),
                ("real", None) => Some(Ok(value.clone())),
                ("imag", None) => Some(Ok(Value::Float(0.0))),
                _ => None,
            }
        }
        Value::Tuple(items) => tensor_methods::pair_attribute(name, &items.0).map(Ok),
        Value::Slice(parts) => {
            let at = ["start", "stop", "step"].iter().position(|n| *n == &**name);
            at.map(|at| Ok(parts.0[at].clone()))
        }
        Value::Opaque(opaque) if opaque.kind == crate::python::machine::exception::KIND && &**name == "args" => {
            let charged = cx.charge_bytes(crate::python::machine::exception::message_bytes(opaque));
            crate::python::machine::exception::args_of(opaque).map(|args| charged.map(|()| args))
        }
        Value::Opaque(opaque) if opaque.kind == crate::python::machine::exception::KIND && !is_method_of_all(name) => {
            Some(Err(Fault::unsupported(format!("an exception's `{name}` is not known here"))))
        }
        Value::Opaque(_) if let Some(value) = re::attribute(value, name) => Some(Ok(value)),
        Value::Str(text) if &**name == "type" => {
            let kind = text.split(':').next().unwrap_or(text);
            Some(Ok(Value::str(kind)))
        }
        Value::None => Some(Err(diagnose::unknown_attribute("None", name, std::iter::empty())
            .python()
            .hint("a function returned None, or an argument is missing"))),
        _ => None,
    };
    let tensor = value.type_name() == "Tensor";
    match own {
        Some(own) => own,
        None if containers::methods_of(value).is_some_and(|all| !all.contains(&&**name)) && !name.starts_with("__") => {
            Err(no_attribute(value, name))
        }
        None if tensor && !method_exists(value, name) => {
            Err(diagnose::unknown_method(name, tensor_methods::NAMES.iter().copied()))
        }
        None => Ok(Value::Method(std::rc::Rc::new((value.clone(), name.clone())))),
    }
}

/// Methods that every exception has.
fn is_method_of_all(name: &str) -> bool {
    matches!(name, "__str__" | "__repr__" | "__class__")
}

/// An attribute that a value of Python's own does not have.
fn no_attribute(value: &Value, name: &str) -> Fault {
    let known = containers::methods_of(value).unwrap_or_default();
    let fault = diagnose::unknown_attribute(&value.type_name(), name, known.iter().copied()).python();
    match value {
        Value::Dict(pairs) if pairs.borrow().named(name).is_some() => {
            fault.hint(format!("read a dict's value by its key: `[\"{name}\"]`"))
        }
        Value::List(_) | Value::Tuple(_) if matches!(name, "shape" | "dtype" | "device" | "ndim") => {
            fault.hint("make it a tensor first: `torch.tensor(values)`")
        }
        Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_) | Value::Dict(_) => {
            let near = diagnose::suggested(&fault).is_some();
            if near { fault } else { fault.hint(format!("pass an object that has `{name}`")) }
        }
        _ => fault,
    }
}

/// Whether a builtin value has a method, for `hasattr`.
pub(crate) fn method_exists(value: &Value, name: &str) -> bool {
    match value {
        Value::Tensor(_) | Value::Sym(_) | Value::Array(_) | Value::View(_) => {
            let plain = name.strip_suffix('_').unwrap_or(name);
            let concrete = matches!(value, Value::Tensor(_)) && tensor_methods::NAMES.contains(&name);
            concrete
                || super::symbolic::functions::is_method(plain)
                || prelude::find_method(plain, false).is_some()
                || name.starts_with("__")
        }
        other => containers::methods_of(other).is_some_and(|all| all.contains(&name)),
    }
}

/// A dotted name that is a value and not a function.
pub(crate) fn value(dotted: &str) -> Option<Value> {
    let dtype = dotted.strip_prefix("torch.").and_then(torch_dtype);
    if let Some(name) = dotted.strip_prefix("numpy.") {
        return numpy::dtype(name).map(Value::DType).or_else(|| numpy::value(name));
    }
    match dotted {
        "typing.TYPE_CHECKING" => Some(Value::Bool(false)),
        "string.ascii_lowercase" => Some(Value::str("abcdefghijklmnopqrstuvwxyz")),
        "string.ascii_uppercase" => Some(Value::str("ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
        "string.ascii_letters" => Some(Value::str("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")),
        "string.digits" => Some(Value::str("0123456789")),
        "string.hexdigits" => Some(Value::str("0123456789abcdefABCDEF")),
        "string.punctuation" => Some(Value::str("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")),
        // the oldest Python that PyTorch 2.15 runs on is 3.10
        "sys.version_info" => Some(Value::tuple(vec![Value::Int(3), Value::Int(12), Value::Int(0)])),
        "sys.maxsize" => Some(Value::Int(i64::MAX)),
        "flex._DEFAULT_SPARSE_BLOCK_SIZE" => Some(Value::Int(128)),
        _ => dtype.map(Value::DType).or_else(|| host::value(dotted)),
    }
}
