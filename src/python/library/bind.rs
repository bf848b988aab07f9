//! Arguments of PyTorch's functions: bound to parameter names, then read as ints, dims, shapes, dtypes, operands.
//!
//! Invariant: an unknown argument is a fault, never ignored, except arguments without meaning on the host (`device` and
//! the like). Must not know what the functions do.

use crate::base::{DType, HostTensor};
use crate::python::machine::Context;
use crate::python::tensors::{Budget, HostError, HostResult, Nested, Operand, Scalar};
use crate::python::value::{Args, Fault, Tensor, Value, meter};

/// Keyword arguments that change nothing here.
const WITHOUT_MEANING: &[&str] =
    &["device", "requires_grad", "layout", "pin_memory", "memory_format", "non_blocking", "copy", "inplace", "names"];

/// Arguments under their parameters' names.
pub(super) struct Bound<'a> {
    function: &'a str,
    values: Vec<(&'static str, Option<Value>)>,
}

/// Binds positional and keyword arguments to `params`.
pub(super) fn bind<'a>(function: &'a str, args: &Args, params: &[&'static str]) -> Result<Bound<'a>, Fault> {
    let mut values: Vec<(&'static str, Option<Value>)> = params.iter().map(|p| (*p, None)).collect();
    if args.positional.len() > params.len() {
        let (most, have) = (params.len(), args.positional.len());
        let message = format!("{function}() takes {most} positional argument(s) but {have} were given");
        return Err(Fault::type_error(message).hint(format!("its parameters: {}", params.join(", "))));
    }
    for (slot, value) in values.iter_mut().zip(&args.positional) {
        slot.1 = Some(value.clone());
    }
    for (name, value) in &args.keyword {
        let name = match &**name {
            "axis" if !params.contains(&"axis") => "dim",
            "keepdims" => "keepdim",
            other => other,
        };
        match values.iter_mut().find(|(p, _)| *p == name) {
            Some((_, Some(_))) => {
                return Err(Fault::type_error(format!("{function}() got multiple values for argument `{name}`")));
            }
            Some(slot) => slot.1 = Some(value.clone()),
            None if WITHOUT_MEANING.contains(&name) => {}
            None if name == "out" && matches!(value, Value::None) => {}
            None => {
                let message = format!("{function}() got an unexpected keyword argument `{name}`");
                let near = python::diagnose::nearest(name, params.iter().copied());
                return Err(Fault::type_error(message).hint(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its parameters: {}", params.join(", ")),
                }));
            }
        }
    }
    Ok(Bound { function, values })
}

/// `f(2, 3)` as `f((2, 3))`: trailing ints from position `at` on become one tuple.
pub(super) fn pack_sizes(args: &Args, at: usize) -> Args {
    let mut args = args.clone();
    if args.positional.len() > at && args.positional[at..].iter().all(|v| v.as_int().is_some()) {
        let sizes = args.positional.split_off(at);
        args.positional.push(Value::tuple(sizes));
    }
    args
}

/// A number or a tensor.
#[derive(Clone, Debug)]
pub(super) enum Number {
    /// A Python number.
    Scalar(Scalar),
    /// A tensor.
    Tensor(HostTensor),
}

impl Number {
    /// As an operand.
    pub(super) fn operand(&self) -> Operand<'_> {
        match self {
            Number::Scalar(s) => Operand::Scalar(*s),
            Number::Tensor(t) => Operand::Tensor(t),
        }
    }
}

/// A number or tensor as an operand; None for anything else.
pub(super) fn number(value: &Value) -> Option<Number> {
    Some(match value {
        Value::Bool(b) => Number::Scalar(Scalar::Bool(*b)),
        Value::Int(i) => Number::Scalar(Scalar::Int(*i)),
        Value::Float(x) => Number::Scalar(Scalar::Float(*x)),
        Value::Tensor(t) => Number::Tensor(t.get()),
        _ => return None,
    })
}

/// Numbers nested in lists, as `torch.tensor` takes them.
pub(super) fn nested(value: &Value, cx: &mut Context) -> Result<Nested, Fault> {
    nested_in(value, 0, cx)
}

fn nested_in(value: &Value, depth: usize, cx: &mut Context) -> Result<Nested, Fault> {
    if let Some(n) = number(value) {
        return Ok(match n {
            Number::Scalar(s) => Nested::Number(s),
            Number::Tensor(t) => Nested::Tensor(t),
        });
    }
    let items = value.as_items().ok_or_else(|| {
        Fault::type_error(format!("a tensor needs numbers or lists of numbers, not {}", value.type_name()))
    })?;
    if depth >= MAX_NESTING {
        return Err(Fault::value_error(format!("too many dimensions: lists nest more than {MAX_NESTING} deep")));
    }
    cx.charge_steps(1 + items.len() as u64 / 4)?;
    cx.charge_bytes(items.len() as u64 * 24)?;
    Ok(Nested::List(items.iter().map(|v| nested_in(v, depth + 1, cx)).collect::<Result<_, _>>()?))
}

/// Deepest lists that become a tensor: PyTorch's number of dimensions.
const MAX_NESTING: usize = 64;

/// A host error as a fault: limits cannot be caught, index errors are `IndexError`.
pub(super) fn fault(error: HostError) -> Fault {
    let class = match error.code {
        "index-out-of-range" | "too-many-indices" => "IndexError",
        "division-by-zero" => "ZeroDivisionError",
        "unsupported-tensor-op" => "NotImplementedError",
        _ => "RuntimeError",
    };
    let mut out = Fault::new(class, error.code, error.message);
    // as where steps are counted: the text cannot go on
    out.fatal = error.code == "too-slow";
    if let Some(hint) = error.hint {
        out = out.hint(hint);
    }
    out
}

/// What a tensor counts beside its elements: about 5 million tensors can be made.
const TENSOR_BYTES: u64 = 48;

/// Runs a host operation within what the trace may still allocate.
pub(super) fn spend<T>(cx: &mut Context, f: impl FnOnce(&Budget) -> HostResult<T>) -> Result<T, Fault> {
    let budget = cx.tensor_budget();
    let made = f(&budget).map_err(fault);
    // what has failed has taken its time, too
    cx.spent(&budget)?;
    let made = made?;
    cx.charge_bytes(TENSOR_BYTES)?;
    Ok(made)
}

impl Bound<'_> {
    /// The argument, unless it is missing or None.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let slot = self.values.iter().find(|(p, _)| *p == name);
        slot.and_then(|(_, v)| v.as_ref()).filter(|v| !matches!(v, Value::None))
    }

    /// Whether it was given, even as None.
    pub(super) fn given(&self, name: &str) -> bool {
        self.values.iter().any(|(p, v)| *p == name && v.is_some())
    }

    fn missing(&self, name: &str) -> Fault {
        Fault::type_error(format!("{}() misses its argument `{name}`", self.function))
            .hint(format!("pass `{name}`, by position or as `{name}=...`"))
    }

    fn wrong(&self, name: &str, want: &str, value: &Value) -> Fault {
        let message = format!("{}(): argument `{name}` must be {want}, not {}", self.function, value.type_name());
        Fault::type_error(message)
    }

    fn read<T>(&self, name: &str, want: &str, f: impl FnOnce(&Value) -> Option<T>) -> Result<Option<T>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => f(value).map(Some).ok_or_else(|| self.wrong(name, want, value)),
        }
    }

    /// An argument that must be there.
    pub(super) fn need(&self, name: &str) -> Result<&Value, Fault> {
        self.get(name).ok_or_else(|| self.missing(name))
    }

    /// An int, if given.
    pub(super) fn int(&self, name: &str) -> Result<Option<i64>, Fault> {
        self.read(name, "an int", Value::as_int)
    }

    /// An int that must be there.
    pub(super) fn need_int(&self, name: &str) -> Result<i64, Fault> {
        self.int(name)?.ok_or_else(|| self.missing(name))
    }

    /// A float, if given.
    pub(super) fn float(&self, name: &str) -> Result<Option<f64>, Fault> {
        self.read(name, "a number", Value::as_float)
    }

    /// A bool; false when missing.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Fault> {
        Ok(self.read(name, "a bool", Value::as_bool)?.unwrap_or(false))
    }

    /// A string, if given.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Fault> {
        self.read(name, "a string", |v| v.as_str().map(str::to_string))
    }

    /// The dtype, if given.
    pub(super) fn dtype(&self) -> Result<Option<DType>, Fault> {
        self.read("dtype", "a dtype", Value::as_dtype)
    }

    /// A Python number that must be there; one-element tensors count.
    pub(super) fn need_scalar(&self, name: &str) -> Result<Scalar, Fault> {
        let value = self.need(name)?;
        scalar(value).ok_or_else(|| self.wrong(name, "a number", value))
    }

    /// A Python number, if given.
    pub(super) fn scalar(&self, name: &str) -> Result<Option<Scalar>, Fault> {
        self.read(name, "a number", scalar)
    }

    /// A number or tensor that must be there.
    pub(super) fn need_number(&self, name: &str) -> Result<Number, Fault> {
        let value = self.need(name)?;
        number(value).ok_or_else(|| self.wrong(name, "a Tensor or a number", value))
    }

    /// A number or tensor, if given.
    pub(super) fn number(&self, name: &str) -> Result<Option<Number>, Fault> {
        self.read(name, "a Tensor or a number", number)
    }

    /// A tensor that must be there.
    pub(super) fn need_tensor(&self, name: &str) -> Result<HostTensor, Fault> {
        Ok(self.need_handle(name)?.get())
    }

    /// A tensor by reference.
    pub(super) fn need_handle(&self, name: &str) -> Result<Tensor, Fault> {
        let value = self.need(name)?;
        value.as_tensor().cloned().ok_or_else(|| self.wrong(name, "a Tensor", value))
    }

    /// A tensor, if given.
    pub(super) fn tensor(&self, name: &str) -> Result<Option<HostTensor>, Fault> {
        self.read(name, "a Tensor", |v| v.as_tensor().map(|t| t.get()))
    }

    /// One int or a list of ints, if given.
    pub(super) fn ints(&self, name: &str) -> Result<Option<Vec<i64>>, Fault> {
        self.read(name, "an int or a list of ints", ints)
    }

    /// One int or a list of ints that must be there.
    pub(super) fn need_ints(&self, name: &str) -> Result<Vec<i64>, Fault> {
        self.ints(name)?.ok_or_else(|| self.missing(name))
    }

    /// Tensors of a list or tuple.
    pub(super) fn tensors(&self, name: &str) -> Result<Vec<HostTensor>, Fault> {
        let value = self.need(name)?;
        let items = value.as_items().ok_or_else(|| self.wrong(name, "a tuple of Tensors", value))?;
        let one = |v: &Value| v.as_tensor().map(|t| t.get()).ok_or_else(|| self.wrong(name, "a tuple of Tensors", v));
        items.iter().map(one).collect()
    }

    /// A shape that must be there: ints, none negative.
    pub(super) fn shape(&self, name: &str) -> Result<Vec<usize>, Fault> {
        let sizes = self.need_ints(name)?;
        let negative = sizes.iter().find(|n| **n < 0);
        if let Some(n) = negative {
            let message = format!("Trying to create tensor with negative dimension {n}: {sizes:?}");
            return Err(Fault::new("RuntimeError", "tensor-shape", message));
        }
        Ok(sizes.into_iter().map(|n| n as usize).collect())
    }
}

fn scalar(value: &Value) -> Option<Scalar> {
    match value {
        Value::Tensor(t) if t.handle().numel() == 1 => {
            let t = t.get();
            Some(match t.dtype() {
                DType::Bool => Scalar::Bool(t.int_at(0) != 0),
                d if d.is_int() => Scalar::Int(t.int_at(0)),
                _ => Scalar::Float(t.float_at(0)),
            })
        }
        other => match number(other)? {
            Number::Scalar(s) => Some(s),
            Number::Tensor(_) => None,
        },
    }
}

/// One int, or ints of a list, tuple or small integer tensor.
pub(super) fn ints(value: &Value) -> Option<Vec<i64>> {
    if let Some(items) = value.as_items() {
        return items.iter().map(Value::as_int).collect();
    }
    match value {
        Value::Tensor(t) if t.handle().shape().len() == 1 && !t.handle().dtype().is_float() => {
            meter::work(3 * t.handle().numel());
            Some(t.get().to_i64_vec())
        }
        other => other.as_int().map(|i| vec![i]),
    }
}
