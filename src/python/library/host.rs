//! `torch.*`, `math.*` and other functions on concrete values.
//!
//! Invariant: no value here is symbolic; results follow PyTorch's promotion and shapes. Must not know syntax.

use super::bind::{Number, number};
use super::tensor_compute::{quotient, sum_of, two};
use super::{
    einsum, generator, homes, making, math, python_random, re, tensor_compute, tensor_in_place, tensor_methods,
    tensor_table, tensor_views,
};
use crate::base::DType;
use crate::python::machine::Context;
use crate::python::tensors::{default_float, set_default_float};
use crate::python::value::{Args, Class, Fault, Instance, Items, Pairs, TensorCell, Value, torch_dtype};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::LazyLock;

/// Functions that are not methods, and neither create tensors nor draw random numbers.
const OWN: &[&str] = &[
    "torch.finfo",
    "torch.iinfo",
    "torch.is_floating_point",
    "torch.numel",
    "torch.get_default_dtype",
    "torch.set_default_dtype",
    "torch.get_default_device",
];

/// Modules whose functions are those of `torch`.
const PREFIXES: &[&str] = &["torch.nn.functional.", "torch.special.", "torch.linalg.", "torch.Tensor.", "torch."];

/// Names that [`call`] knows, for suggestions.
pub static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let own = [OWN, making::NAMES, einsum::NAMES, generator::NAMES, python_random::NAMES, re::NAMES]
        .into_iter()
        .flatten()
        .map(|n| n.to_string());
    let tables = [tensor_compute::NAMES, tensor_views::NAMES].into_iter().flatten().copied();
    let methods = tables.chain(tensor_table::names()).map(|n| format!("torch.{n}"));
    own.chain(math::names().map(str::to_string)).chain(methods).collect()
});

/// The same, to walk over.
pub fn names() -> Vec<String> {
    NAMES.clone()
}

/// Calls a function by its dotted name; None when it is unknown.
pub fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    making::call(name, args, cx)
        .or_else(|| einsum::call(name, args, cx))
        .or_else(|| generator::call(name, args, cx))
        .or_else(|| of_math(name, args, cx))
        .or_else(|| python_random::call(name, args, cx))
        .or_else(|| re::call(name, args, cx))
        .or_else(|| own(name, args))
        .or_else(|| {
            let (prefix, name) = PREFIXES.iter().find_map(|p| Some((*p, name.strip_prefix(p)?)))?;
            known_method(name)
                .then(|| homes::check(prefix, name).err().map(Err))
                .flatten()
                .or_else(|| method(name, args, cx))
        })
}

/// A function of `math`; None when it is unknown. A generator that it is given is run to its end.
pub fn of_math(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if !matches!(name, "math.prod" | "math.fsum" | "math.dist" | "math.sumprod") {
        return math::call(name, args);
    }
    let mut args = args.clone();
    for value in args.positional.iter_mut().filter(|v| matches!(v, Value::Opaque(_) | Value::Dict(_))) {
        if let Ok(all) = cx.collect(value) {
            *value = Value::list(all);
        }
    }
    math::call(name, &args)
}

/// `torch.name(t, ...)` as `t.name(...)`.
fn method(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if name.contains('.') || !known_method(name) {
        return None;
    }
    let name = if name == "concat" { "cat" } else { name };
    let mut rest = args.clone();
    let at = rest
        .keyword
        .iter()
        .position(|(n, _)| matches!(&**n, "input" | "self" | "sorted_sequence" | "elements" | "tensor"));
    let first = match at {
        Some(at) => Some(rest.keyword.remove(at).1),
        None if rest.positional.is_empty() => None,
        None => Some(rest.positional.remove(0)),
    };
    let Some(first) = first else {
        return Some(Err(Fault::type_error(format!("torch.{name}() misses its argument `input`"))));
    };
    if let Value::Tensor(t) = &first {
        return tensor_methods::call(name, t, &rest, cx);
    }
    Some(of_number(name, &first, &rest, cx))
}

fn known_method(name: &str) -> bool {
    let plain = name.strip_suffix('_').unwrap_or(name);
    tensor_table::unary(plain).is_some()
        || tensor_table::binary(plain).is_some()
        || [tensor_compute::NAMES, tensor_views::NAMES].iter().any(|t| t.contains(&plain))
        || tensor_in_place::NAMES.contains(&name)
        || matches!(name, "clone" | "numel")
}

/// Functions whose first argument may be a Python number.
fn of_number(name: &str, first: &Value, rest: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let wrong = || {
        let fault = Fault::type_error(format!(
            "torch.{name}(): argument 'input' (position 1) must be Tensor, not {}",
            first.type_name()
        ));
        match (first, math_name(name)) {
            (Value::Int(_) | Value::Float(_), Some(math)) => fault.hint(format!("{math} is for Python numbers")),
            _ => fault.hint("`torch.tensor(...)` makes one"),
        }
    };
    let Some(Number::Scalar(own)) = number(first) else { return Err(wrong()) };
    let own = Number::Scalar(own);
    let other = rest.get(0, "other").or(rest.named("exponent")).or(rest.named("boundaries"));
    if other.and_then(Value::as_tensor).is_none() {
        return Err(wrong());
    }
    if let Some(op) = tensor_table::binary(name) {
        return two(name, op, own, rest, cx);
    }
    match name {
        "add" | "sub" | "subtract" | "rsub" => sum_of(name, own, rest, cx),
        "div" | "divide" => quotient(name, own, rest, cx),
        "bucketize" => {
            let Number::Scalar(scalar) = own else { return Err(wrong()) };
            let t = scalar.tensor(scalar.dtype()).map_err(super::bind::fault)?;
            tensor_methods::call(name, &TensorCell::new(t), rest, cx).unwrap_or_else(|| Err(wrong()))
        }
        _ => Err(wrong()),
    }
}

/// The function of `math` or Python for a number.
fn math_name(name: &str) -> Option<String> {
    match name {
        "abs" | "round" | "min" | "max" | "sum" | "any" | "all" => Some(format!("`{name}()`")),
        _ => math::names().find(|n| n.strip_prefix("math.") == Some(name)).map(|n| format!("`{n}`")),
    }
}

fn own(name: &str, args: &Args) -> Option<Result<Value, Fault>> {
    let tensor = || {
        args.need(name, 0, "input").and_then(|v| {
            v.as_tensor()
                .cloned()
                .ok_or_else(|| Fault::type_error(format!("{name}() wants a Tensor, not {}", v.type_name())))
        })
    };
    Some(match name {
        "torch.get_default_device" => Ok(Value::str("cpu")),
        "torch.finfo" | "torch.iinfo" => info(name, args),
        "torch.is_floating_point" => tensor().map(|t| Value::Bool(t.handle().dtype().is_float())),
        "torch.numel" => tensor().map(|t| Value::Int(t.handle().numel() as i64)),
        "torch.get_default_dtype" => Ok(Value::DType(default_float())),
        "torch.set_default_dtype" => {
            match args.get(0, "d").and_then(Value::as_dtype) {
                Some(dtype @ (DType::F32 | DType::F64)) => {
                    set_default_float(dtype);
                    Ok(Value::None)
                }
                _ => Err(Fault::unsupported("the default dtype is float32 or float64 here")
                    .hint("pass dtype= to each tensor")),
            }
        }
        _ => return None,
    })
}

/// `torch.finfo(dtype)` and `torch.iinfo(dtype)`: objects with the dtype's limits.
fn info(name: &str, args: &Args) -> Result<Value, Fault> {
    let dtype = args.get(0, "type").and_then(Value::as_dtype).unwrap_or_else(default_float);
    let mut fields = Pairs::default();
    let mut set = |field: &str, value: Value| fields.set_named(&Rc::from(field), value);
    set("bits", Value::Int(dtype.size() as i64 * 8));
    set("dtype", Value::str(dtype.torch_name()));
    if name == "torch.iinfo" {
        if !dtype.is_int() {
            return Err(Fault::type_error(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle floats.",
            ));
        }
        let bits = dtype.size() as u32 * 8;
        let (low, high) =
            if dtype == DType::U8 { (0, 255) } else { (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)) };
        set("min", Value::Int(low));
        set("max", Value::Int(high));
    } else {
        let (max, eps, tiny) = match dtype {
            DType::F16 => (65504.0, 2f64.powi(-10), 2f64.powi(-14)),
            DType::BF16 => (half::bf16::MAX.to_f64(), 2f64.powi(-7), 2f64.powi(-126)),
            DType::F32 => (f64::from(f32::MAX), 2f64.powi(-23), 2f64.powi(-126)),
            DType::F64 => (f64::MAX, f64::EPSILON, f64::MIN_POSITIVE),
            _ => {
                return Err(Fault::type_error(
                    "torch.finfo() requires a floating point input type. Use torch.iinfo to handle integers.",
                ));
            }
        };
        for (field, value) in [("max", max), ("min", -max), ("eps", eps), ("tiny", tiny), ("smallest_normal", tiny)] {
            set(field, Value::Float(value));
        }
    }
    let class = Class { name: Rc::from(name), bases: Items::default(), members: RefCell::default(), fields: None };
    Ok(Value::Instance(Rc::new(Instance { class: Rc::new(class), attributes: RefCell::new(fields) })))
}

/// An attribute of a module that is a value, such as `math.pi`; None for others.
pub fn value(name: &str) -> Option<Value> {
    if let Some(flag) = re::value(name) {
        return Some(flag);
    }
    match name {
        "math.pi" | "torch.pi" => Some(Value::Float(std::f64::consts::PI)),
        "math.tau" => Some(Value::Float(std::f64::consts::TAU)),
        "math.inf" | "torch.inf" => Some(Value::Float(f64::INFINITY)),
        "math.e" | "torch.e" => Some(Value::Float(std::f64::consts::E)),
        "math.nan" | "torch.nan" => Some(Value::Float(f64::NAN)),
        "torch.__version__" => Some(python::machine::version::torch_version()),
        "torch.newaxis" => Some(Value::None),
        other => torch_dtype(other.strip_prefix("torch.")?).map(Value::DType),
    }
}
