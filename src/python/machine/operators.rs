//! Operators on values: the choice of the table, and Python's own arithmetic.
//!
//! Invariant: ints beyond 64 bits are a fault, never wrapped. Must not know syntax beyond the operators.

use super::Context;
use super::keyed::Members;
use crate::ir::ops::lanes::{FloatLane, IntLane};
use crate::python::syntax::ast::{BinOp, CmpOp, UnaryOp};
use crate::python::value::{Args, Fault, VALUE_BYTES, Value, meter};
use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;

impl Context<'_> {
    /// `a op b`
    pub(crate) fn binary(&mut self, op: BinOp, a: &Value, b: &Value) -> Result<Value, Fault> {
        let (x, y) = (super::enums::plain_enum_value(a), super::enums::plain_enum_value(b));
        let (a, b) = (x.as_ref().unwrap_or(a), y.as_ref().unwrap_or(b));
        match (a, b) {
            (Value::Int(a), Value::Int(b)) => return int_binary(op, *a, *b),
            (Value::Instance(_), _) | (_, Value::Instance(_)) => {
                if let Some(result) = self.overloaded(op.method(), a, b) {
                    return result;
                }
            }
            _ => {}
        }
        if a.is_symbolic() || b.is_symbolic() {
            return self.symbolic_binary(op, a, b);
        }
        if let (BinOp::Mul, Some((sequence, n))) = (op, repeated_by_tensor(a, b)) {
            return self.repeated(sequence, n);
        }
        if a.as_tensor().is_some() || b.as_tensor().is_some() {
            return (self.library.binary)(op, a, b, self);
        }
        let result = self.plain_binary(op, a, b)?;
        if let Some(function) = self.rough_number(a).or_else(|| self.rough_number(b)) {
            self.remember_rough(&result, &function);
        }
        Ok(result)
    }

    fn overloaded(&mut self, method: &str, a: &Value, b: &Value) -> Option<Result<Value, Fault>> {
        for (receiver, name, other) in [(a, format!("__{method}__"), b), (b, format!("__r{method}__"), a)] {
            if let Value::Instance(instance) = receiver
                && let Some(method) = self.instance_method(instance, &name)
            {
                return Some(self.call(&method, Args::of(vec![other.clone()])));
            }
        }
        None
    }

    fn plain_binary(&mut self, op: BinOp, a: &Value, b: &Value) -> Result<Value, Fault> {
        match (op, a, b) {
            (BinOp::And | BinOp::Or | BinOp::Xor, Value::Bool(a), Value::Bool(b)) => Ok(Value::Bool(match op {
                BinOp::And => a & b,
                BinOp::Or => a | b,
                _ => a ^ b,
            })),
            (BinOp::Mod, Value::Str(format), values) => {
                self.charge_bytes(format.len() as u64)?;
                match values {
                    Value::Tuple(items) => items.0.iter().try_for_each(|item| self.charge_text(item))?,
                    // charged when it is named
                    Value::Dict(_) => {}
                    other => self.charge_text(other)?,
                }
                (self.library.percent)(format, values, self)
            }
            (BinOp::Add, Value::Str(a), Value::Str(b)) => {
                self.charge_bytes((a.len() + b.len()) as u64)?;
                Ok(Value::str(format!("{a}{b}")))
            }
            (BinOp::Add, Value::Tuple(a), Value::Tuple(b)) => {
                self.charge_bytes(VALUE_BYTES * (a.0.len() + b.0.len()) as u64)?;
                Ok(Value::tuple(a.0.iter().chain(&b.0).cloned().collect()))
            }
            (BinOp::Add, Value::List(a), Value::List(b)) => {
                let items: Vec<Value> = a.borrow().0.iter().chain(&b.borrow().0).cloned().collect();
                self.charge_bytes(VALUE_BYTES * items.len() as u64)?;
                Ok(Value::list(items))
            }
            (BinOp::Mul, sequence @ (Value::Str(_) | Value::Tuple(_) | Value::List(_)), n)
            | (BinOp::Mul, n, sequence @ (Value::Str(_) | Value::Tuple(_) | Value::List(_)))
                if n.as_int().is_some() =>
            {
                self.repeated(sequence, n.as_int().unwrap_or(0))
            }
            (BinOp::Or | BinOp::And | BinOp::Sub, Value::Set(x), Value::Set(y)) => {
                let (x, y) = (x.borrow().0.clone(), y.borrow().0.clone());
                self.charge_steps((x.len() + y.len()) as u64)?;
                let of_y = Members::of(&y);
                self.charge_steps(of_y.crowd().saturating_mul(x.len() as u64))?;
                let kept = match op {
                    BinOp::Or => x.iter().chain(&y).cloned().collect(),
                    BinOp::And => x.iter().filter(|v| of_y.has(v)).cloned().collect(),
                    _ => x.iter().filter(|v| !of_y.has(v)).cloned().collect(),
                };
                self.set_of(kept)
            }
            (BinOp::Or, Value::Dict(x), Value::Dict(y)) => {
                let (x, y) = (x.borrow().0.clone(), y.borrow().0.clone());
                let joined = Value::Dict(Rc::default());
                for (key, value) in x.into_iter().chain(y) {
                    self.set_item(&joined, &key, value)?;
                }
                Ok(joined)
            }
            (BinOp::Xor, Value::Set(x), Value::Set(y)) => {
                let (x, y) = (x.borrow().0.clone(), y.borrow().0.clone());
                self.charge_steps((x.len() + y.len()) as u64)?;
                let (of_x, of_y) = (Members::of(&x), Members::of(&y));
                let crowds = of_y.crowd().saturating_mul(x.len() as u64) + of_x.crowd().saturating_mul(y.len() as u64);
                self.charge_steps(crowds)?;
                let apart = x.iter().filter(|v| !of_y.has(v)).chain(y.iter().filter(|v| !of_x.has(v)));
                self.set_of(apart.cloned().collect())
            }
            // `int | None` as a value: a type
            (BinOp::Or, Value::Builtin(_) | Value::Class(_), _) => Ok(a.clone()),
            (BinOp::Or, Value::None, Value::Builtin(_) | Value::Class(_)) => Ok(b.clone()),
            _ => match (plain_int(a), plain_int(b)) {
                (Some(x), Some(y)) => int_binary(op, x, y),
                _ => match (plain_float(a), plain_float(b)) {
                    (Some(x), Some(y)) => float_binary(op, x, y),
                    _ => {
                        let message = format!("{} {} {} is not defined", a.type_name(), op.symbol(), b.type_name());
                        let fault = Fault::type_error(message).hint("check both operands");
                        let scalar = |v: &Value| v.is_plain() && !matches!(v, Value::Set(_) | Value::Dict(_));
                        Err(if scalar(a) && scalar(b) { fault.python() } else { fault })
                    }
                },
            },
        }
    }

    fn repeated(&mut self, sequence: &Value, n: i64) -> Result<Value, Fault> {
        let n = n.max(0) as u64;
        match sequence {
            Value::Str(text) => {
                self.charge_bytes(n.saturating_mul(text.len() as u64))?;
                Ok(Value::str(text.repeat(n as usize)))
            }
            other => {
                let items = other.as_items().unwrap_or_default();
                self.charge_bytes(n.saturating_mul(VALUE_BYTES * items.len() as u64))?;
                // nothing stays nothing, however often it is repeated
                let n = if items.is_empty() { 0 } else { n };
                self.charge_steps(n.saturating_mul(items.len() as u64) / 8)?;
                let all: Vec<Value> = (0..n).flat_map(|_| items.iter().cloned()).collect();
                Ok(if matches!(other, Value::List(_)) { Value::list(all) } else { Value::tuple(all) })
            }
        }
    }

    /// `-a`, `~a`, `+a`
    pub(crate) fn unary(&mut self, op: UnaryOp, a: &Value) -> Result<Value, Fault> {
        if a.is_symbolic() {
            return self.symbolic_unary(op, a);
        }
        match (op, a) {
            (_, Value::Tensor(tensor)) => (self.library.unary)(op, tensor, self),
            (_, Value::Instance(instance)) => {
                let method = match op {
                    UnaryOp::Neg => "__neg__",
                    UnaryOp::Plus => "__pos__",
                    _ => "__invert__",
                };
                let (plain, method) = (super::enums::plain_enum_value(a), self.instance_method(instance, method));
                match (plain, method) {
                    (Some(plain), _) => self.unary(op, &plain),
                    (None, Some(method)) => self.call(&method, Args::default()),
                    (None, None) => Err(Fault::type_error(format!("{} has no sign and no bits", a.type_name()))),
                }
            }
            (UnaryOp::Neg, Value::Float(x)) => Ok(Value::Float(-x)),
            (UnaryOp::Plus, Value::Float(_) | Value::Int(_)) => Ok(a.clone()),
            (UnaryOp::Neg, Value::Int(_) | Value::Bool(_)) => {
                let x = plain_int(a).unwrap_or(0);
                x.checked_neg().map(Value::Int).ok_or_else(|| overflow(&format!("-({x})")))
            }
            (UnaryOp::Invert, Value::Int(_) | Value::Bool(_)) => Ok(Value::Int(!plain_int(a).unwrap_or(0))),
            (UnaryOp::Plus, Value::Bool(b)) => Ok(Value::Int(i64::from(*b))),
            (_, other) => Err(Fault::type_error(format!("{} has no sign and no bits", other.type_name()))),
        }
    }

    /// `a op b` for comparisons.
    pub(crate) fn compare(&mut self, op: CmpOp, a: &Value, b: &Value) -> Result<Value, Fault> {
        match op {
            CmpOp::Is | CmpOp::IsNot => {
                let same = identical(a, b);
                self.charge_steps(0)?;
                return Ok(Value::Bool(same == (op == CmpOp::Is)));
            }
            CmpOp::In => return Ok(Value::Bool(self.contains(b, a)?)),
            CmpOp::NotIn => return Ok(Value::Bool(!self.contains(b, a)?)),
            _ => {}
        }
        let (x, y) = (super::enums::plain_enum_value(a), super::enums::plain_enum_value(b));
        let (a, b) = (x.as_ref().unwrap_or(a), y.as_ref().unwrap_or(b));
        if a.is_symbolic() || b.is_symbolic() {
            if matches!(a, Value::None) || matches!(b, Value::None) {
                return match op {
                    CmpOp::Eq | CmpOp::Ne => Ok(Value::Bool(op == CmpOp::Ne)),
                    _ => Err(Fault::type_error(format!("`{}` compares with None", op.symbol()))
                        .hint("set the name on that side to a number, or test it first: `if w is not None:`")),
                };
            }
            return self.symbolic_compare(op, a, b);
        }
        let tensors = a.as_tensor().is_some() || b.as_tensor().is_some();
        let plain = |v: &Value| matches!(v, Value::Tensor(_)) || plain_float(v).is_some();
        if tensors && plain(a) && plain(b) {
            return (self.library.compare)(op, a, b, self);
        }
        if let Some(result) = self.compared(op, a, b) {
            return result;
        }
        self.charge_steps(1)?;
        if let (Value::Set(x), Value::Set(y)) = (a, b) {
            let (x, y) = (x.borrow(), y.borrow());
            self.charge_steps((x.0.len() + y.0.len()) as u64)?;
            let within = |x: &[Value], y: &[Value]| {
                let of_y = Members::of(y);
                x.iter().all(|v| of_y.has(v))
            };
            let (n, m) = (x.0.len(), y.0.len());
            let holds = match op {
                CmpOp::Le => within(&x.0, &y.0),
                CmpOp::Lt => n < m && within(&x.0, &y.0),
                CmpOp::Ge => within(&y.0, &x.0),
                CmpOp::Gt => n > m && within(&y.0, &x.0),
                CmpOp::Eq => n == m && within(&x.0, &y.0),
                _ => n != m || !within(&x.0, &y.0),
            };
            self.charge_steps(0)?;
            return Ok(Value::Bool(holds));
        }
        match op {
            CmpOp::Eq | CmpOp::Ne => {
                let left = Cell::new(MOST_COMPARED);
                let same = equal_to(a, b, 64, &left);
                self.charge_steps(0)?;
                if left.get() == 0 {
                    return Err(Fault::limit("too-slow", "this compares more than a million elements")
                        .hint("compare tensors: `torch.equal(a, b)`"));
                }
                Ok(Value::Bool(same == (op == CmpOp::Eq)))
            }
            _ => {
                let order = order(a, b).ok_or_else(|| {
                    Fault::type_error(format!("{} {} {} is not defined", a.type_name(), op.symbol(), b.type_name()))
                })?;
                self.charge_steps(0)?;
                let order = order.ok();
                Ok(Value::Bool(match op {
                    CmpOp::Lt => order == Some(Ordering::Less),
                    CmpOp::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                    CmpOp::Gt => order == Some(Ordering::Greater),
                    _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
                }))
            }
        }
    }

    /// The comparison that a class of the text defines.
    fn compared(&mut self, op: CmpOp, a: &Value, b: &Value) -> Option<Result<Value, Fault>> {
        let (name, mirrored) = match op {
            CmpOp::Eq => ("__eq__", "__eq__"),
            CmpOp::Ne => ("__ne__", "__ne__"),
            CmpOp::Lt => ("__lt__", "__gt__"),
            CmpOp::Le => ("__le__", "__ge__"),
            CmpOp::Gt => ("__gt__", "__lt__"),
            CmpOp::Ge => ("__ge__", "__le__"),
            _ => return None,
        };
        for (receiver, name, other) in [(a, name, b), (b, mirrored, a)] {
            let Value::Instance(instance) = receiver else { continue };
            if let Some(method) = self.instance_method(instance, name) {
                return Some(self.call(&method, Args::of(vec![other.clone()])));
            }
            if op == CmpOp::Ne
                && let Some(method) = self.instance_method(instance, "__eq__")
            {
                let equal = self.call(&method, Args::of(vec![other.clone()]));
                return Some(equal.and_then(|equal| Ok(Value::Bool(!self.truth(&equal)?))));
            }
        }
        super::version::compared(op, a, b).map(|known| Ok(Value::Bool(known)))
    }

    fn contains(&mut self, container: &Value, item: &Value) -> Result<bool, Fault> {
        if let (Value::Str(text), Value::Str(part)) = (container, item) {
            self.charge_steps(text.len() as u64 / 64)?;
            return Ok(text.contains(&**part));
        }
        if container.is_symbolic() || item.is_symbolic() {
            return Err(python::diagnose::membership());
        }
        if let (Value::Tensor(tensor), Value::Tensor(_) | Value::Bool(_) | Value::Int(_) | Value::Float(_)) =
            (container, item)
        {
            return (self.library.contains)(tensor, item, self);
        }
        if let Value::Range(start, stop, step) = container {
            return Ok(item.as_int().is_some_and(|x| super::subscript::in_range(x, *start, *stop, *step)));
        }
        if let Value::Instance(instance) = container
            && let Some(method) = self.instance_method(instance, "__contains__")
        {
            let found = self.call(&method, Args::of(vec![item.clone()]))?;
            return self.truth(&found);
        }
        match container {
            of if super::subscript::is_environment(of) => return Ok(self.in_environment(item)),
            Value::Dict(pairs) => return Ok(self.place_in_dict(pairs, item)?.is_some()),
            Value::Set(items) => return Ok(self.place_in_set(items, item)?.is_some()),
            Value::List(items) => return Ok(self.position(&items.borrow().0, item)?.is_some()),
            Value::Tuple(items) => return Ok(self.position(&items.0, item)?.is_some()),
            _ => {}
        }
        let items = self.collect(container)?;
        Ok(self.position(&items, item)?.is_some())
    }

    /// The first of these that equals a value.
    pub(crate) fn position(&mut self, items: &[Value], value: &Value) -> Result<Option<usize>, Fault> {
        let at = items.iter().position(|item| equal(item, value));
        // what was compared; a result of comparing too much is refused
        self.charge_steps(0)?;
        Ok(at)
    }

    /// Python's truth value.
    pub(crate) fn truth(&mut self, value: &Value) -> Result<bool, Fault> {
        match value {
            Value::Tensor(tensor) => {
                let tensor = tensor.borrow();
                if tensor.numel() != 1 {
                    let message = format!("a tensor of shape {:?} has no single truth value", tensor.shape());
                    return Err(Fault::runtime_error(message).hint("reduce it with .any() or .all()"));
                }
                Ok(tensor.float_at(0) != 0.0)
            }
            Value::Instance(_) if let Some(plain) = super::enums::plain_enum_value(value) => Ok(truth_of_plain(&plain)),
            Value::Instance(instance) => {
                match self.instance_method(instance, "__bool__").or_else(|| self.instance_method(instance, "__len__")) {
                    Some(method) => {
                        let n = self.call(&method, Args::default())?;
                        Ok(truth_of_plain(&n))
                    }
                    None => Ok(true),
                }
            }
            v if v.is_symbolic() => Err(python::diagnose::branch("bool", String::new())),
            other => Ok(truth_of_plain(other)),
        }
    }
}

/// Truth of a value that is neither a tensor nor symbolic.
pub(crate) fn truth_of_plain(value: &Value) -> bool {
    match value {
        Value::None => false,
        Value::Bool(b) => *b,
        Value::Int(i) => *i != 0,
        Value::Float(f) => *f != 0.0,
        Value::Str(text) => !text.is_empty(),
        Value::Tuple(items) => !items.0.is_empty(),
        Value::List(items) | Value::Set(items) => !items.borrow().0.is_empty(),
        Value::Dict(pairs) => !pairs.borrow().0.is_empty(),
        Value::Range(start, stop, step) => python::value::range_len(*start, *stop, *step) > 0,
        _ => true,
    }
}

fn identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::None, Value::None) | (Value::Ellipsis, Value::Ellipsis) => true,
        (Value::List(a), Value::List(b)) => Rc::ptr_eq(a, b),
        (Value::Dict(a), Value::Dict(b)) => Rc::ptr_eq(a, b),
        (Value::Tensor(a), Value::Tensor(b)) => Rc::ptr_eq(a, b),
        (Value::Function(a), Value::Function(b)) => Rc::ptr_eq(a, b),
        (Value::Instance(a), Value::Instance(b)) => Rc::ptr_eq(a, b),
        (Value::Class(a), Value::Class(b)) => Rc::ptr_eq(a, b),
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Builtin(a), Value::Builtin(b)) => a == b,
        (Value::DType(a), Value::DType(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => {
            meter::bytes(if a.len() == b.len() { a.len() } else { 0 });
            a == b
        }
        _ => false,
    }
}

/// Most elements that one `==` looks at: lists that hold one another twice would be looked at exponentially often.
const MOST_COMPARED: usize = 1 << 20;

/// Python's `==` on plain values; containers element by element, a bounded number of levels deep.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    let left = Cell::new(MOST_COMPARED);
    let same = equal_to(a, b, 64, &left);
    if left.get() == 0 {
        meter::exhaust();
    }
    same
}

/// The same; `left` counts down what may still be looked at, and at 0 the result means nothing.
fn equal_to(a: &Value, b: &Value, depth: usize, left: &Cell<usize>) -> bool {
    left.set(left.get().saturating_sub(1));
    meter::work(1);
    if depth == 0 || left.get() == 0 || meter::exhausted() {
        return false;
    }
    let all =
        |a: &[Value], b: &[Value]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_to(a, b, depth - 1, left));
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => {
            meter::bytes(if a.len() == b.len() { a.len() } else { 0 });
            a == b
        }
        (Value::Tuple(a), Value::Tuple(b)) => all(&a.0, &b.0),
        (Value::List(x), Value::List(y)) => Rc::ptr_eq(x, y) || all(&x.borrow().0, &y.borrow().0),
        (Value::Set(x), Value::Set(y)) => {
            let (x, y) = (x.borrow(), y.borrow());
            x.0.len() == y.0.len() && x.0.iter().all(|v| y.0.iter().any(|o| equal_to(o, v, depth - 1, left)))
        }
        (Value::Dict(x), Value::Dict(y)) => {
            let (x, y) = (x.borrow(), y.borrow());
            let same = |(k, v): &(Value, Value)| {
                y.0.iter().any(|(l, w)| equal_to(k, l, depth - 1, left) && equal_to(v, w, depth - 1, left))
            };
            x.0.len() == y.0.len() && x.0.iter().all(same)
        }
        (Value::Instance(member), other) | (other, Value::Instance(member))
            if !matches!(other, Value::Instance(_)) && super::enums::is_plain_enum(&member.class) =>
        {
            let value = member.attributes.borrow().named("value");
            value.is_some_and(|v| equal_to(&v, other, depth - 1, left))
        }
        (Value::Instance(x), Value::Instance(y))
            if !Rc::ptr_eq(x, y) && x.class.is_namespace() && y.class.is_namespace() =>
        {
            let (x, y) = (x.attributes.borrow(), y.attributes.borrow());
            let same = |(k, v): &(Value, Value)| {
                y.0.iter().any(|(l, w)| equal_to(k, l, depth - 1, left) && equal_to(v, w, depth - 1, left))
            };
            x.0.len() == y.0.len() && x.0.iter().all(same)
        }
        (Value::Instance(x), Value::Instance(y)) if !Rc::ptr_eq(x, y) && Rc::ptr_eq(&x.class, &y.class) => {
            let fields = super::class::field_values(x).zip(super::class::field_values(y));
            fields.is_some_and(|(x, y)| all(&x, &y))
        }
        (Value::Range(..), Value::Range(..)) => a.as_items().zip(b.as_items()).is_some_and(|(a, b)| all(&a, &b)),
        _ => match (plain_int(a), plain_int(b)) {
            (Some(a), Some(b)) => a == b,
            _ => match (plain_float(a), plain_float(b)) {
                (Some(a), Some(b)) => a == b,
                _ => identical(a, b),
            },
        },
    }
}

/// Deepest lists in lists whose order is looked for.
const MOST_NESTING: usize = 16;

/// Order of two plain values; the inner error is "not comparable" (NaN).
fn order(a: &Value, b: &Value) -> Option<Result<Ordering, ()>> {
    order_nested(a, b, MOST_NESTING)
}

fn order_nested(a: &Value, b: &Value, nesting: usize) -> Option<Result<Ordering, ()>> {
    meter::work(1);
    match (a, b) {
        // a sort that has looked at too much ends, and is refused
        _ if meter::exhausted() => Some(Ok(Ordering::Equal)),
        (Value::Str(a), Value::Str(b)) => {
            meter::bytes(a.len().min(b.len()));
            Some(Ok(a.cmp(b)))
        }
        (Value::Tuple(a), Value::Tuple(b)) => order_of_items(&a.0, &b.0, nesting),
        (Value::List(a), Value::List(b)) => order_of_items(&a.borrow().0, &b.borrow().0, nesting),
        (Value::Instance(x), Value::Instance(y)) => {
            let (x, y) = (super::class::field_values(x)?, super::class::field_values(y)?);
            order_nested(&Value::tuple(x), &Value::tuple(y), nesting.checked_sub(1)?)
        }
        _ => match (plain_int(a), plain_int(b)) {
            (Some(a), Some(b)) => Some(Ok(a.cmp(&b))),
            _ => Some(plain_float(a)?.partial_cmp(&plain_float(b)?).ok_or(())),
        },
    }
}

/// The order of the first elements that differ, or of the lengths.
fn order_of_items(a: &[Value], b: &[Value], nesting: usize) -> Option<Result<Ordering, ()>> {
    match a.iter().zip(b).find(|(x, y)| !equal(x, y)) {
        Some(_) if nesting == 0 => None,
        Some((x, y)) => order_nested(x, y, nesting - 1),
        None => Some(Ok(a.len().cmp(&b.len()))),
    }
}

/// Compares for sorting; None where Python would refuse.
pub(crate) fn sort_order(a: &Value, b: &Value) -> Option<Ordering> {
    order(a, b).map(|o| o.unwrap_or(Ordering::Equal))
}

fn plain_int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(i) => Some(*i),
        Value::Bool(b) => Some(i64::from(*b)),
        _ => None,
    }
}

pub(super) fn plain_float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(f) => Some(*f),
        other => plain_int(other).map(|i| i as f64),
    }
}

fn overflow(what: &str) -> Fault {
    Fault::new("OverflowError", "int-overflow", format!("{what} does not fit in 64 bits"))
        .hint("masks use 32-bit indices: use smaller numbers")
}

fn zero_division(op: BinOp) -> Fault {
    Fault::new("ZeroDivisionError", "zero-division", format!("`{}` by zero", op.symbol()))
        .hint("set the parameter to a value above 0")
}

/// Python's int arithmetic.
pub(crate) fn int_binary(op: BinOp, a: i64, b: i64) -> Result<Value, Fault> {
    let text = || format!("{a} {} {b}", op.symbol());
    let checked = |x: Option<i64>| x.map(Value::Int).ok_or_else(|| overflow(&text()));
    match op {
        BinOp::Add => checked(a.checked_add(b)),
        BinOp::Sub => checked(a.checked_sub(b)),
        BinOp::Mul => checked(a.checked_mul(b)),
        BinOp::Div | BinOp::FloorDiv | BinOp::Mod if b == 0 => Err(zero_division(op)),
        BinOp::Div => Ok(Value::Float(a as f64 / b as f64)),
        BinOp::FloorDiv if a == i64::MIN && b == -1 => Err(overflow(&text())),
        BinOp::FloorDiv => Ok(Value::Int(IntLane::floor_div(a, b))),
        BinOp::Mod => Ok(Value::Int(if b == -1 { 0 } else { IntLane::floor_mod(a, b) })),
        BinOp::Pow if b < 0 && a == 0 => Err(zero_division(op)),
        BinOp::Pow if b < 0 => Ok(Value::Float((a as f64).powf(b as f64))),
        BinOp::Pow => match (a, u32::try_from(b)) {
            (0 | 1, _) => Ok(Value::Int(if b == 0 { 1 } else { a })),
            (-1, _) => Ok(Value::Int(if b % 2 == 0 { 1 } else { -1 })),
            (_, Ok(b)) => checked(a.checked_pow(b)),
            _ => Err(overflow(&text())),
        },
        BinOp::Shl | BinOp::Shr if b < 0 => Err(Fault::value_error("negative shift count")),
        BinOp::Shl if a == 0 => Ok(Value::Int(0)),
        BinOp::Shl => {
            let shifted = (b < 63).then(|| a << b).filter(|s| s >> b == a);
            checked(shifted)
        }
        BinOp::Shr => Ok(Value::Int(a >> b.min(63))),
        BinOp::And => Ok(Value::Int(a & b)),
        BinOp::Or => Ok(Value::Int(a | b)),
        BinOp::Xor => Ok(Value::Int(a ^ b)),
        BinOp::MatMul => Err(Fault::type_error("`@` needs tensors")),
    }
}

fn float_binary(op: BinOp, a: f64, b: f64) -> Result<Value, Fault> {
    Ok(Value::Float(match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::Div | BinOp::FloorDiv | BinOp::Mod if b == 0.0 => return Err(zero_division(op)),
        BinOp::Div => a / b,
        BinOp::FloorDiv => FloatLane::floor_div(a, b),
        BinOp::Mod => FloatLane::floor_mod(a, b),
        BinOp::Pow if a == 0.0 && b < 0.0 => return Err(zero_division(op)),
        BinOp::Pow => a.powf(b),
        _ => {
            return Err(Fault::type_error(format!("`{}` is not defined on floats", op.symbol()))
                .hint("convert with int(...) first"));
        }
    }))
}

/// `[x] * t` with a tensor of one whole number: Python asks it for an index, and repeats the sequence.
fn repeated_by_tensor<'v>(a: &'v Value, b: &'v Value) -> Option<(&'v Value, i64)> {
    let (sequence, tensor) = if matches!(a, Value::Tensor(_)) { (b, a) } else { (a, b) };
    let own = tensor.as_tensor().is_some_and(|t| !t.is_numpy());
    let sequence = Some(sequence).filter(|s| own && matches!(s, Value::Str(_) | Value::Tuple(_) | Value::List(_)))?;
    Some((sequence, tensor.as_int()?))
}
