//! Methods, operators and indexing of concrete tensors.
//!
//! Invariant: as in `host`: nothing symbolic comes here. Must not know syntax beyond the operators' names.

use crate::language::eval::Context;
use crate::language::syntax::ast::{BinOp, CmpOp, UnaryOp};
use crate::language::value::{Args, Fault, Tensor, Value};

/// Names that [`call`] and [`attribute`] know, for suggestions.
pub const NAMES: &[&str] = &["shape", "dtype", "ndim", "size", "dim", "numel", "item"];

/// `tensor.name(args)`; None when the method is unknown.
pub fn call(name: &str, tensor: &Tensor, args: &Args, _cx: &mut Context) -> Option<Result<Value, Fault>> {
    let t = tensor.get();
    Some(match name {
        "dim" => Ok(Value::Int(t.shape().len() as i64)),
        "numel" => Ok(Value::Int(t.numel() as i64)),
        "size" => match args.get(0, "dim").and_then(Value::as_int) {
            None => Ok(Value::ints(t.shape().iter().copied())),
            Some(dim) => {
                let at = if dim < 0 { dim + t.shape().len() as i64 } else { dim };
                let size = usize::try_from(at).ok().and_then(|at| t.shape().get(at).copied());
                let fault = || Fault::index_error(format!("dimension {dim} of a tensor of shape {:?}", t.shape()));
                size.map(|n| Value::Int(n as i64)).ok_or_else(fault)
            }
        },
        "item" if t.numel() == 1 => Ok(match t.dtype() {
            crate::base::DType::Bool => Value::Bool(t.int_at(0) != 0),
            d if d.is_float() => Value::Float(t.float_at(0)),
            _ => Value::Int(t.int_at(0)),
        }),
        "item" => Err(Fault::runtime_error(format!("item() of a tensor with {} elements", t.numel()))),
        _ => return None,
    })
}

/// `tensor.name` where it is a value and not a method; None when it is none.
pub fn attribute(name: &str, tensor: &Tensor, _cx: &mut Context) -> Option<Result<Value, Fault>> {
    let t = tensor.borrow();
    Some(Ok(match name {
        "shape" => Value::ints(t.shape().iter().copied()),
        "dtype" => Value::DType(t.dtype()),
        "ndim" => Value::Int(t.shape().len() as i64),
        "device" => Value::str("cpu"),
        _ => return None,
    }))
}

/// `a op b`.
pub fn binary(op: BinOp, a: &Value, b: &Value, _cx: &mut Context) -> Result<Value, Fault> {
    Err(Fault::unsupported(format!("{} {} {} of tensors", a.type_name(), op.symbol(), b.type_name())))
}

/// `a op b` for comparisons, element by element.
pub fn compare(op: CmpOp, a: &Value, b: &Value, _cx: &mut Context) -> Result<Value, Fault> {
    Err(Fault::unsupported(format!("{} {} {} of tensors", a.type_name(), op.symbol(), b.type_name())))
}

/// `-a`, `~a`, `+a`.
pub fn unary(op: UnaryOp, a: &Tensor, _cx: &mut Context) -> Result<Value, Fault> {
    Err(Fault::unsupported(format!("{op:?} of a tensor of shape {:?}", a.borrow().shape())))
}

/// `tensor[index]`
pub fn index(tensor: &Tensor, _index: &Value, _cx: &mut Context) -> Result<Value, Fault> {
    Err(Fault::unsupported(format!("indexing a tensor of shape {:?}", tensor.borrow().shape())))
}

/// `tensor[index] = value`
pub fn set_index(tensor: &Tensor, _index: &Value, _value: &Value, _cx: &mut Context) -> Result<(), Fault> {
    Err(Fault::unsupported(format!("writing into a tensor of shape {:?}", tensor.borrow().shape())))
}
