//! Methods, attributes, operators and indexing of concrete tensors.
//!
//! Invariant: as in `host`: no value is symbolic. Must not know syntax beyond the operators' names.

use super::bind::{Number, bind, fault, number, spend};
use super::tensor_compute::{self, one};
use super::{generator, making, rough, tensor_in_place, tensor_move, tensor_table, tensor_views};
use crate::base::{DType, HostTensor};
use crate::python::machine::Context;
use crate::python::syntax::ast::{BinOp, CmpOp, UnaryOp};
use crate::python::tensors::{self, Binary, Index, Nested, TensorRef, Unary};
use crate::python::value::typed::{dtype_in_name, type_name};
use crate::python::value::{Args, Fault, Tensor, TensorCell, Value};
use std::sync::LazyLock;

/// Names of methods and attributes that no table lists.
const OWN: &[&str] = &[
    "shape",
    "dtype",
    "ndim",
    "device",
    "T",
    "mT",
    "H",
    "is_cuda",
    "requires_grad",
    "itemsize",
    "nbytes",
    "data",
    "grad",
    "size",
    "dim",
    "ndimension",
    "numel",
    "nelement",
    "element_size",
    "stride",
    "storage_offset",
    "is_contiguous",
    "is_floating_point",
    "item",
    "tolist",
    "to",
    "type",
    "type_as",
    "float",
    "double",
    "half",
    "bfloat16",
    "int",
    "long",
    "short",
    "bool",
    "byte",
    "char",
    "clone",
    "numpy",
    "new_zeros",
    "new_ones",
    "new_full",
    "new_empty",
    "new_tensor",
];

/// Names that [`call`] and [`attribute`] know, for suggestions.
pub static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let tables = [OWN, tensor_views::NAMES, tensor_compute::NAMES, tensor_in_place::NAMES];
    tables.into_iter().flatten().copied().chain(tensor_table::names()).collect()
});

/// The same, to walk over.
pub fn names() -> Vec<&'static str> {
    NAMES.clone()
}

/// `tensor.name(args)`; None when the method is unknown.
pub fn call(name: &str, tensor: &Tensor, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    own(name, tensor, args, cx)
        .or_else(|| tensor_views::call(name, tensor, args, cx))
        .or_else(|| tensor_move::parts(name, tensor, args, cx))
        .or_else(|| tensor_in_place::call(name, tensor, args, cx))
        .or_else(|| generator::method(name, tensor, args, cx))
        .or_else(|| tensor_compute::call(name, &tensor.get(), args, cx))
}

/// Methods that inspect a tensor, convert it or copy it.
fn own(name: &str, t: &Tensor, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if let Some(dtype) = conversion(name) {
        return Some(bind(name, args, &[]).and_then(|_| to_dtype(t, dtype, cx)));
    }
    let (handle, layout) = (t.handle(), t.handle().layout());
    Some(match name {
        "dim" | "ndimension" => Ok(Value::Int(layout.shape.len() as i64)),
        "numel" | "nelement" => Ok(Value::Int(layout.numel() as i64)),
        "element_size" => Ok(Value::Int(handle.dtype().size() as i64)),
        "is_contiguous" => Ok(Value::Bool(layout.is_contiguous())),
        "is_floating_point" => Ok(Value::Bool(handle.dtype().is_float())),
        "storage_offset" => Ok(Value::Int(layout.offset as i64)),
        "size" => bind(name, args, &["dim"]).and_then(|bound| match bound.int("dim")? {
            None => Ok(Value::ints(layout.shape.iter().copied())),
            Some(dim) => layout.dim(dim, 0).map(|d| Value::Int(layout.shape[d] as i64)).map_err(fault),
        }),
        "stride" => bind(name, args, &["dim"]).and_then(|bound| match bound.int("dim")? {
            None => Ok(Value::tuple(layout.strides.iter().map(|s| Value::Int(*s as i64)).collect())),
            Some(dim) => layout.dim(dim, 0).map(|d| Value::Int(layout.strides[d] as i64)).map_err(fault),
        }),
        "item" if layout.numel() == 1 => Ok(element(&t.get(), 0)),
        "item" => {
            let message = format!("a Tensor with {} elements cannot be converted to Scalar", layout.numel());
            Err(Fault::new("RuntimeError", "tensor-shape", message))
        }
        "tolist" => tolist(&t.get(), cx),
        "type" if args.positional.is_empty() && args.keyword.is_empty() => Ok(Value::str(type_name(handle.dtype()))),
        "to" | "type" => to(t, args, cx),
        "type_as" => {
            bind(name, args, &["other"]).and_then(|b| to_dtype(t, b.need_handle("other")?.handle().dtype(), cx))
        }
        // the elements are copied at the first write into either
        "clone" => spend(cx, |budget| budget.charge(&layout.shape, t.handle().dtype())).map(|_| Value::tensor(t.get())),
        "numpy" => {
            // the same storage, as NumPy's array
            let array = TensorCell::of(handle.clone());
            array.mark_numpy();
            Ok(Value::Tensor(array))
        }
        "new_zeros" | "new_ones" | "new_full" | "new_empty" => making::new_like(name, t, args, cx),
        "new_tensor" => bind(name, args, &["data", "dtype"]).and_then(|bound| {
            let data = super::bind::nested(bound.need("data")?, cx)?;
            let dtype = bound.dtype()?.unwrap_or(handle.dtype());
            one(cx, |budget| tensors::tensor(&data, Some(dtype), budget))
        }),
        _ => return None,
    })
}

/// The dtype of `.float()` and the like.
fn conversion(name: &str) -> Option<DType> {
    Some(match name {
        "float" => DType::F32,
        "double" => DType::F64,
        "half" => DType::F16,
        "bfloat16" => DType::BF16,
        "int" => DType::I32,
        "long" => DType::I64,
        "short" => DType::I16,
        "bool" => DType::Bool,
        "byte" => DType::U8,
        "char" => DType::I8,
        _ => return None,
    })
}

fn to_dtype(t: &Tensor, dtype: DType, cx: &mut Context) -> Result<Value, Fault> {
    if t.handle().dtype() == dtype {
        return Ok(Value::Tensor(t.clone()));
    }
    one(cx, |budget| tensors::cast(&t.get(), dtype, budget))
}

/// `.to(dtype)`, `.to(device)`, `.to(device, dtype)`, `.to(other)`.
fn to(t: &Tensor, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let mut dtype = t.handle().dtype();
    let mut copy = false;
    for value in &args.positional {
        match value {
            Value::Tensor(other) => dtype = other.handle().dtype(),
            // `"torch.LongTensor"`, `torch.LongTensor`; other texts are devices
            Value::Str(name) | Value::Builtin(name) if let Some(named) = dtype_in_name(name) => dtype = named,
            other => dtype = other.as_dtype().unwrap_or(dtype),
        }
    }
    for (name, value) in &args.keyword {
        match (&**name, value) {
            ("dtype", Value::None) | ("device" | "non_blocking" | "memory_format", _) => {}
            ("dtype", value) => {
                let wrong =
                    || Fault::type_error(format!("to(): dtype must be a torch.dtype, not {}", value.type_name()));
                dtype = value.as_dtype().ok_or_else(wrong)?;
            }
            ("copy", value) => copy = value.as_bool().unwrap_or(false),
            ("other", Value::Tensor(other)) => dtype = other.handle().dtype(),
            (other, _) => return Err(Fault::type_error(format!("to() got an unexpected keyword argument `{other}`"))),
        }
    }
    let out = to_dtype(t, dtype, cx)?;
    let same = out.as_tensor().is_some_and(|o| o.handle().same(t.handle()));
    Ok(if copy && same { Value::tensor(t.get()) } else { out })
}

/// One element as a Python number.
pub(super) fn element(t: &HostTensor, i: usize) -> Value {
    match t.dtype() {
        DType::Bool => Value::Bool(t.int_at(i) != 0),
        d if d.is_float() => Value::Float(t.float_at(i)),
        _ => Value::Int(t.int_at(i)),
    }
}

fn tolist(t: &HostTensor, cx: &mut Context) -> Result<Value, Fault> {
    cx.charge_bytes(t.numel() as u64 * 24)?;
    cx.charge_steps(t.numel() as u64 / 8)?;
    fn rows(t: &HostTensor, dim: usize, base: usize) -> Value {
        let Some(&n) = t.shape().get(dim) else { return element(t, base) };
        let inner: usize = t.shape()[dim + 1..].iter().product();
        Value::list((0..n).map(|i| rows(t, dim + 1, base + i * inner)).collect())
    }
    Ok(rows(t, 0, 0))
}

/// `tensor.name` if it is a value and not a method; None for others.
pub fn attribute(name: &str, tensor: &Tensor, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let (handle, layout) = (tensor.handle(), tensor.handle().layout());
    Some(Ok(match name {
        "shape" => Value::ints(layout.shape.iter().copied()),
        "dtype" => Value::DType(handle.dtype()),
        "ndim" => Value::Int(layout.shape.len() as i64),
        "device" => Value::str("cpu"),
        "is_cuda" | "requires_grad" => Value::Bool(false),
        "grad" => Value::None,
        "itemsize" => Value::Int(handle.dtype().size() as i64),
        "nbytes" => Value::Int((layout.numel() * handle.dtype().size()) as i64),
        "data" if cx.has_origin(tensor) => Value::Tensor(TensorCell::of(handle.detached())),
        "data" => Value::Tensor(tensor.clone()),
        "T" | "mT" | "H" => return Some(transposed(name, tensor, cx)),
        _ => return None,
    }))
}

fn transposed(name: &str, t: &Tensor, cx: &mut Context) -> Result<Value, Fault> {
    let layout = t.handle().layout();
    let rank = layout.shape.len() as i64;
    let view = match name {
        "T" => layout.permute(&(0..rank).rev().collect::<Vec<_>>()),
        _ => layout.transpose(-1, -2),
    };
    let view = view.map_err(fault)?;
    Ok(Value::Tensor(TensorCell::of(spend(cx, |budget| t.handle().view(view, budget))?)))
}

/// `a.name` of the results of `max(dim)`, `sort` and `topk`; None for other names.
pub fn pair_attribute(name: &str, items: &[Value]) -> Option<Value> {
    match (name, items) {
        ("values" | "min", [value, place]) if are_pair(value, place) => Some(value.clone()),
        ("indices" | "max", [value, place]) if are_pair(value, place) => Some(place.clone()),
        _ => None,
    }
}

/// Whether these are values and their places; the latter may be left open.
fn are_pair(value: &Value, place: &Value) -> bool {
    let tensor = |v: &Value| v.type_name() == "Tensor";
    tensor(value) && (tensor(place) || matches!(place, Value::Missing(_)))
}

/// The operation of an operator.
fn operation(op: BinOp) -> Option<Binary> {
    Some(match op {
        BinOp::Add => Binary::Add,
        BinOp::Sub => Binary::Sub,
        BinOp::Mul => Binary::Mul,
        BinOp::Div => Binary::Div,
        BinOp::FloorDiv => Binary::FloorDiv,
        BinOp::Mod => Binary::Remainder,
        BinOp::Pow => Binary::Pow,
        BinOp::Shl => Binary::Shl,
        BinOp::Shr => Binary::Shr,
        BinOp::And => Binary::And,
        BinOp::Or => Binary::Or,
        BinOp::Xor => Binary::Xor,
        BinOp::MatMul => return None,
    })
}

/// Both operands, or a fault that names the one that is not a number.
fn operands(symbol: &str, a: &Value, b: &Value) -> Result<(Number, Number), Fault> {
    let bad = || {
        let message = format!("unsupported operand type(s) for {symbol}: '{}' and '{}'", a.type_name(), b.type_name());
        Fault::type_error(message)
    };
    Ok((number(a).ok_or_else(bad)?, number(b).ok_or_else(bad)?))
}

/// `a op b`.
pub fn binary(op: BinOp, a: &Value, b: &Value, cx: &mut Context) -> Result<Value, Fault> {
    let args = Args::of(vec![a.clone(), b.clone()]);
    let name = match op {
        BinOp::Pow => "pow",
        BinOp::MatMul => "matmul",
        _ => "",
    };
    let follows = rough::of_call(name, None, &args);
    let shaking = rough::Shaking::of(cx.shaken, name, None, &args);
    let result = match (op, a, b) {
        // PyTorch's Tensor.__rtruediv__ multiplies the reciprocal, which rounds twice
        (BinOp::Div, Value::Int(_) | Value::Float(_) | Value::Bool(_), Value::Tensor(t)) if !t.is_numpy() => {
            let inverse = one(cx, |budget| tensors::unary(Unary::Reciprocal, &t.get(), budget))?;
            operated(BinOp::Mul, &inverse, a, cx)
        }
        _ => operated(op, a, b, cx),
    }?;
    if let Some(shaking) = shaking {
        shaking.shake(&result);
    }
    rough::mark(&result, follows.as_ref());
    cx.followed(op.symbol(), &[a, b], &result, |cx, given| cx.symbolic_binary(op, &given[0], &given[1]));
    Ok(result)
}

fn operated(op: BinOp, a: &Value, b: &Value, cx: &mut Context) -> Result<Value, Fault> {
    let numpy = [a, b].iter().any(|v| v.as_tensor().is_some_and(|t| t.is_numpy()));
    let (mut x, mut y) = operands(op.symbol(), a, b)?;
    if numpy && of_numpy(a, b) {
        (x, y) = super::numpy::meeting(x, y, cx)?;
    }
    if numpy && op == BinOp::Div && ![a, b].iter().any(|v| is_float(v)) {
        // whole numbers divide to float64 there
        x = match x {
            Number::Tensor(t) => Number::Tensor(spend(cx, |budget| tensors::cast(&t, DType::F64, budget))?),
            Number::Scalar(s) => Number::Tensor(s.tensor(DType::F64).map_err(fault)?),
        };
    }
    let result = match (operation(op), x, y) {
        (Some(op), x, y) => one(cx, |budget| tensors::binary(op, x.operand(), y.operand(), budget)),
        (None, Number::Tensor(x), Number::Tensor(y)) => one(cx, |budget| tensors::matmul(&x, &y, budget)),
        _ => Err(Fault::type_error("@ needs two tensors").hint("* multiplies by a number")),
    };
    if numpy { result.map(super::numpy::array) } else { result }
}

/// Whether no operand is a tensor of PyTorch's.
fn of_numpy(a: &Value, b: &Value) -> bool {
    [a, b].iter().all(|v| v.as_tensor().is_none_or(|t| t.is_numpy()))
}

fn is_float(value: &Value) -> bool {
    match value {
        Value::Float(_) => true,
        Value::Tensor(t) => t.handle().dtype().is_float(),
        _ => false,
    }
}

/// `a op= b`: the tensor's storage is written, so that every view sees it.
pub fn augmented(op: BinOp, a: &Tensor, b: &Value, cx: &mut Context) -> Result<(), Fault> {
    let result = binary(op, &Value::Tensor(a.clone()), b, cx)?;
    rough::mark(&Value::Tensor(a.clone()), rough::of_operands(&[&result]).as_ref());
    let Some(made) = result.as_tensor() else { return Ok(()) };
    spend(cx, |budget| a.handle().assign(&made.get(), budget))?;
    cx.takes_origin(a, &result, &format!("{}=", op.symbol()));
    Ok(())
}

/// `a op b` for comparisons, element by element.
pub fn compare(op: CmpOp, a: &Value, b: &Value, cx: &mut Context) -> Result<Value, Fault> {
    let result = compared(op, a, b, cx)?;
    rough::mark(&result, rough::of_operands(&[a, b]).as_ref());
    Ok(result)
}

fn compared(op: CmpOp, a: &Value, b: &Value, cx: &mut Context) -> Result<Value, Fault> {
    let operation = match op {
        CmpOp::Eq => Binary::Eq,
        CmpOp::Ne => Binary::Ne,
        CmpOp::Lt => Binary::Lt,
        CmpOp::Le => Binary::Le,
        CmpOp::Gt => Binary::Gt,
        CmpOp::Ge => Binary::Ge,
        _ => return Err(Fault::unsupported("`is` and `in` are not element by element")),
    };
    // Python's == with something that is no number is False, not a fault.
    if let (CmpOp::Eq | CmpOp::Ne, None) = (op, number(a).and(number(b))) {
        return Ok(Value::Bool(op == CmpOp::Ne));
    }
    let (mut x, mut y) = operands(op.symbol(), a, b)?;
    let numpy = [a, b].iter().any(|v| v.as_tensor().is_some_and(|t| t.is_numpy()));
    if numpy && of_numpy(a, b) {
        (x, y) = super::numpy::meeting(x, y, cx)?;
    }
    let result = one(cx, |budget| tensors::binary(operation, x.operand(), y.operand(), budget));
    if numpy { result.map(super::numpy::array) } else { result }
}

/// `-a`, `~a`, `+a`.
pub fn unary(op: UnaryOp, a: &Tensor, cx: &mut Context) -> Result<Value, Fault> {
    let operation = match op {
        UnaryOp::Neg => Unary::Neg,
        UnaryOp::Invert => Unary::BitwiseNot,
        _ if a.handle().dtype() == DType::Bool => {
            return Err(Fault::new(
                "RuntimeError",
                "tensor-dtype",
                "The `+` operator, on a bool tensor is not supported.",
            ));
        }
        _ => return Ok(Value::Tensor(a.clone())),
    };
    let result = one(cx, |budget| tensors::unary(operation, &a.get(), budget));
    if let (Ok(result), Some(follows)) = (&result, a.handle().rough()) {
        rough::mark(result, Some(&follows));
    }
    if let Ok(result) = &result {
        let given = Value::Tensor(a.clone());
        cx.followed("-", &[&given], result, |cx, given| cx.symbolic_unary(op, &given[0]));
    }
    if a.is_numpy() { result.map(super::numpy::array) } else { result }
}

/// Whether `needle in tensor`.
pub fn contains(t: &Tensor, needle: &Value, cx: &mut Context) -> Result<bool, Fault> {
    let (x, y) = operands("in", &Value::Tensor(t.clone()), needle)?;
    let found = spend(cx, |budget| tensors::binary(Binary::Eq, x.operand(), y.operand(), budget))?;
    Ok((0..found.numel()).any(|i| found.int_at(i) != 0))
}

/// `tensor[index]`
pub fn index(tensor: &Tensor, index: &Value, cx: &mut Context) -> Result<Value, Fault> {
    let parts = index_parts(index, cx)?;
    let picked: TensorRef = spend(cx, |budget| tensors::pick(tensor.handle(), &parts, budget))?;
    let picked = TensorCell::of(picked);
    if tensor.is_numpy() {
        picked.mark_numpy();
    }
    let picked = Value::Tensor(picked);
    let whole = Value::Tensor(tensor.clone());
    rough::mark(&picked, rough::of_operands(&[&whole, index]).as_ref());
    let name = cx.hint.clone().unwrap_or_else(|| "captured".into());
    cx.followed("[...]", &[&whole], &picked, |cx, given| cx.symbolic_index(&given[0], index, &name));
    Ok(picked)
}

/// `tensor[index] = value`
pub fn set_index(tensor: &Tensor, index: &Value, value: &Value, cx: &mut Context) -> Result<(), Fault> {
    rough::mark(&Value::Tensor(tensor.clone()), rough::of_operands(&[index, value]).as_ref());
    let parts = index_parts(index, cx)?;
    let given = value;
    let value = match number(value) {
        Some(n) => n,
        None => {
            let data = super::bind::nested(value, cx)?;
            Number::Tensor(spend(cx, |budget| tensors::tensor(&data, None, budget))?)
        }
    };
    spend(cx, |budget| tensors::put(tensor.handle(), &parts, &value.operand(), budget))?;
    cx.written(tensor, "[...] =", &[given]);
    Ok(())
}

fn index_parts(index: &Value, cx: &mut Context) -> Result<Vec<Index>, Fault> {
    match index {
        Value::Tuple(items) => items.0.iter().map(|v| index_part(v, cx)).collect(),
        other => Ok(vec![index_part(other, cx)?]),
    }
}

fn index_part(part: &Value, cx: &mut Context) -> Result<Index, Fault> {
    Ok(match part {
        Value::Int(i) => Index::Int(*i),
        Value::Bool(b) => Index::Bool(*b),
        Value::None => Index::NewAxis,
        Value::Ellipsis => Index::Ellipsis,
        Value::Tensor(t) => Index::Tensor(t.get()),
        Value::Slice(bounds) => {
            let bound = |i: usize| match bounds.0.get(i) {
                None | Some(Value::None) => Ok(None),
                Some(v) if v.is_symbolic() => Err(Fault::new(
                    "TypeError",
                    "value-of-index",
                    "the ends of a slice must be known, but an index differs from cell to cell",
                )
                .hint("read single elements, or keep a cumulative sum outside the mod and subtract at both ends")),
                Some(v) => v.as_int().map(Some).ok_or_else(|| {
                    Fault::type_error("slice indices must be integers or None or have an __index__ method")
                        .hint(format!("this one is a {}; `//` of two ints is an int", v.type_name()))
                }),
            };
            Index::Slice(bound(0)?, bound(1)?, bound(2)?)
        }
        Value::List(_) | Value::Tuple(_) | Value::Range(..) => {
            let data = super::bind::nested(part, cx)?;
            let empty = matches!(&data, Nested::List(items) if items.is_empty());
            Index::Tensor(spend(cx, |budget| tensors::tensor(&data, empty.then_some(DType::I64), budget))?)
        }
        Value::Float(x) => {
            return Err(
                Fault::type_error(format!("a tensor cannot be indexed by the float {x}")).hint("`int(...)` or `//`")
            );
        }
        other => {
            let message = format!(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})",
                other.type_name()
            );
            return Err(Fault::index_error(message));
        }
    })
}
