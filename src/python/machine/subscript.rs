//! Indexing: `container[index]`, read, written and deleted.
//!
//! Invariant: an index outside a list is Python's IndexError; tensors have their own tables. Must not know calls.

use super::Context;
use super::keyed::Places;
use crate::base::Diagnostic;
use crate::python::syntax::ast::*;
use crate::python::value::scope::Scope;
use crate::python::value::{Args, Fault, Items, Pairs, VALUE_BYTES, Value};
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

/// What becomes of a BlockMask's mask when rows of blocks are taken out of it.
const SLICED: &str = "PyTorch drops the mask_mod of a sliced BlockMask: older releases then mask nothing, 2.15 refuses its use. Write a \
                      mod of the whole mask with an offset, `whole(b, h, q_idx + first, kv_idx)`, where `first` is the slice's first query";

/// Whether a value is `os.environ`, which is not read: the result must not depend on the machine.
pub(super) fn is_environment(value: &Value) -> bool {
    matches!(value, Value::Builtin(name) if &**name == "os.environ")
}

/// Whether an int is one of a range's.
pub(super) fn in_range(x: i64, start: i64, stop: i64, step: i64) -> bool {
    let inside = if step > 0 { (start..stop).contains(&x) } else { stop < x && x <= start };
    inside && (i128::from(x) - i128::from(start)) % i128::from(step) == 0
}

impl Context<'_> {
    /// `key in os.environ`
    pub(super) fn in_environment(&mut self, key: &Value) -> bool {
        let message = format!("environment variables are not read: `{}` is not set here", super::text(key));
        let note = Diagnostic::note("environment", message).at(self.place(), "");
        self.warn(note.hint("write another value into the code"));
        false
    }

    pub(super) fn eval_subscript(
        &mut self,
        whole: &Expr,
        container: &Expr,
        index: &Expr,
        scope: &Rc<Scope>,
    ) -> Result<Value, Fault> {
        let value = self.eval(container, scope)?;
        // `Callable[[int], int]` and the like are types: their arguments are not values
        if let Value::Class(class) = &value
            && super::enums::is_enum(class)
        {
            let name = self.eval(index, scope)?;
            return self.enum_named(class, &name);
        }
        if is_environment(&value) {
            let key = self.eval(index, scope)?;
            let message = format!("environment variables are not read: `{}` has no value here", super::text(&key));
            let fault = Fault::new("KeyError", "environment", message).python();
            return Err(fault.hint("write another value into the code").at(whole.span));
        }
        if matches!(value, Value::Builtin(_) | Value::Class(_)) {
            return Ok(value);
        }
        let (place, index) = (index, self.eval(index, scope)?);
        self.span = whole.span;
        self.hint = match &container.kind {
            ExprKind::Name(name) | ExprKind::Attribute(_, name) if !self.is_inside() => Some(name.clone()),
            _ => None,
        };
        self.item(&value, &index).map_err(|fault| match &place.kind {
            // a quotient that was meant to be whole
            ExprKind::Binary(BinOp::Div, a, b) if fault.diagnostic.code == "index-dtype" => {
                fault.at(whole.span).rewrite(place.span, self.whole_quotient(a, b))
            }
            _ => self.table_rewrite(fault.at(whole.span), container, &value),
        })
    }

    /// `container[index]`
    pub(crate) fn item(&mut self, container: &Value, index: &Value) -> Result<Value, Fault> {
        let plain = super::enums::plain_enum_value(index);
        let index = match (&plain, container) {
            (Some(plain), container) if !matches!(container, Value::Dict(_)) => plain,
            _ => index,
        };
        let symbolic_index = index.is_symbolic() || index_items(index).iter().any(Value::is_symbolic);
        match container {
            Value::Tensor(tensor) if symbolic_index => {
                let name = self.hint.take().or_else(|| tensor.name()).unwrap_or_else(|| "captured".into());
                self.symbolic_index(container, index, &name)
            }
            Value::Tensor(tensor) => (self.library.index)(tensor, index, self),
            Value::Missing(fault) => Err(Fault::clone(fault)),
            Value::Opaque(_) if let Some(group) = (self.library.item)(container, index) => group,
            Value::View(_) | Value::Array(_) | Value::Sym(_) => {
                self.symbolic_index(container, index, &"captured".into())
            }
            _ if symbolic_index => Err(python::diagnose::list_index(container)),
            Value::Tuple(items) => {
                self.charge_slice(items.0.len(), index)?;
                sequence_item(&items.0, index, Value::tuple)
            }
            Value::List(items) => {
                self.charge_slice(items.borrow().0.len(), index)?;
                sequence_item(&items.borrow().0, index, Value::list)
            }
            Value::Range(start, stop, step) => {
                let n = python::value::range_len(*start, *stop, *step) as i64;
                if let Value::Slice(slice) = index {
                    return range_part((*start, *step), &slice.0, n as usize);
                }
                let at = index.as_int().ok_or_else(|| Fault::type_error("a range needs an int index"))?;
                let at = if at < 0 { at.saturating_add(n) } else { at };
                if !(0..n).contains(&at) {
                    return Err(Fault::index_error(format!("index {at} of a range of {n}")));
                }
                Ok(Value::Int(start.wrapping_add(at.wrapping_mul(*step))))
            }
            Value::Str(text) => {
                self.charge_steps(text.len() as u64 / 64)?;
                if let Value::Slice(_) = index {
                    self.charge_steps(text.len() as u64 / 16)?;
                    self.charge_bytes(text.len() as u64)?;
                }
                text_item(text, index)
            }
            Value::Dict(pairs) => {
                let found = self.place_in_dict(pairs, index)?.map(|at| pairs.borrow().0[at].1.clone());
                let found = match found {
                    Some(found) => found,
                    None => self.missing_item(container, pairs, index)?,
                };
                self.usable(found)
            }
            Value::Instance(instance) if super::class::is_named_tuple(&instance.class) => {
                sequence_item(&self.collect(container)?, index, Value::tuple)
            }
            Value::Instance(instance) => match self.instance_method(instance, "__getitem__") {
                Some(method) => self.call(&method, super::call::one(index.clone())),
                None => {
                    if &*instance.class.name == "BlockMask" {
                        return Err(Fault::unsupported("a part of a BlockMask is not supported here").hint(SLICED));
                    }
                    Err(Fault::type_error(format!("{} cannot be indexed", container.type_name())))
                }
            },
            other => {
                let fault = Fault::type_error(format!("{} cannot be indexed", other.type_name()));
                Err(if other.is_plain() { fault.python() } else { fault })
            }
        }
    }

    /// A slice is a list of its own.
    fn charge_slice(&mut self, len: usize, index: &Value) -> Result<(), Fault> {
        let Value::Slice(slice) = index else { return Ok(()) };
        let (_, _, count) = slice_bounds(&slice.0, len)?;
        self.charge_steps(count as u64 / 8)?;
        self.charge_bytes(VALUE_BYTES * count as u64)
    }

    /// A dict's result for a missing key.
    fn missing_item(&mut self, container: &Value, pairs: &Rc<RefCell<Pairs>>, index: &Value) -> Result<Value, Fault> {
        let factory = self.factory_of(pairs).cloned();
        let Some(factory) = factory else {
            let may = self.may_compare(pairs.borrow().0.len());
            let keys: Vec<String> = pairs.borrow().0.iter().take(8).map(|(k, _)| super::repr_in_message(k)).collect();
            return Err(Fault::new(
                "KeyError",
                "key-error",
                format!("no key {} in this dict", super::repr_in_message(index)),
            )
            .hint(match index.as_str().filter(|_| may).and_then(|i| nearest_key(i, pairs)) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("its keys are: {}", keys.join(", ")),
            }));
        };
        let made = self.call(&factory, Args::default())?;
        if !matches!(&factory, Value::Builtin(name) if &**name == "collections.Counter.absent") {
            self.set_item(container, index, made.clone())?;
        }
        Ok(made)
    }

    /// `container[index] = value`
    pub(crate) fn set_item(&mut self, container: &Value, index: &Value, value: Value) -> Result<(), Fault> {
        match container {
            Value::Tensor(tensor) => {
                if index.is_symbolic() || value.is_symbolic() || index_items(index).iter().any(Value::is_symbolic) {
                    return Err(python::diagnose::write_in_mod());
                }
                (self.library.set_index)(tensor, index, &value, self)
            }
            Value::View(_) | Value::Array(_) | Value::Sym(_) => Err(python::diagnose::write_in_mod()),
            Value::List(items) => {
                if let Value::Slice(slice) = index {
                    let new = self.collect(&value)?;
                    self.charge_bytes(VALUE_BYTES * new.len() as u64)?;
                    self.charge_move(items.borrow().0.len() + 16 * new.len())?;
                    return assign_slice(&mut items.borrow_mut().0, &slice.0, new);
                }
                let mut items = items.borrow_mut();
                let at = position(items.0.len(), index)?;
                let old = std::mem::replace(&mut items.0[at], value);
                drop(items);
                drop(old);
                Ok(())
            }
            Value::Dict(pairs) => {
                if !hashable(index) {
                    return Err(Fault::type_error(format!("{} cannot be a key of a dict", index.type_name())));
                }
                let at = self.place_in_dict(pairs, index)?;
                let mut pairs = pairs.borrow_mut();
                match at {
                    Some(at) => {
                        let old = std::mem::replace(&mut pairs.0[at].1, value);
                        drop(pairs);
                        drop(old);
                    }
                    None => {
                        pairs.0.push((index.clone(), value));
                        drop(pairs);
                        self.charge_bytes(2 * VALUE_BYTES)?;
                    }
                }
                Ok(())
            }
            Value::Instance(instance) => match self.instance_method(instance, "__setitem__") {
                Some(method) => self.call(&method, Args::of(vec![index.clone(), value])).map(drop),
                None => Err(Fault::type_error(format!("{} cannot be written into", container.type_name()))),
            },
            other => Err(Fault::type_error(format!("{} cannot be written into", other.type_name()))),
        }
    }

    pub(super) fn delete_item(&mut self, container: &Value, index: &Value) -> Result<(), Fault> {
        match container {
            Value::List(items) if let Value::Slice(slice) = index => {
                let (start, step, count) = slice_bounds(&slice.0, items.borrow().0.len())?;
                let gone: HashSet<usize> = (0..count as i64).map(|i| (start + i * step) as usize).collect();
                self.charge_steps(count as u64)?;
                self.charge_move(items.borrow().0.len())?;
                let all = std::mem::take(&mut items.borrow_mut().0).into_iter().enumerate();
                let (removed, left): (Vec<_>, Vec<_>) = all.partition(|(at, _)| gone.contains(at));
                items.borrow_mut().0 = left.into_iter().map(|(_, item)| item).collect();
                drop(Items(removed.into_iter().map(|(_, item)| item).collect()));
                Ok(())
            }
            Value::List(items) => {
                let at = position(items.borrow().0.len(), index)?;
                self.charge_move(items.borrow().0.len() - at)?;
                let removed = items.borrow_mut().0.remove(at);
                drop(removed);
                Ok(())
            }
            Value::Dict(pairs) => {
                let at = self.place_in_dict(pairs, index)?;
                let at = at.ok_or_else(|| Fault::new("KeyError", "key-error", "no such key in this dict"))?;
                self.charge_move(pairs.borrow().0.len() - at)?;
                let removed = pairs.borrow_mut().0.remove(at);
                drop(removed);
                Ok(())
            }
            other => Err(Fault::type_error(format!("items of {} cannot be deleted", other.type_name()))),
        }
    }

    /// A set of these elements, each once.
    pub(crate) fn set_of(&mut self, items: Vec<Value>) -> Result<Value, Fault> {
        let mut out: Vec<Value> = Vec::new();
        let mut places = Places::default();
        for item in items {
            self.charge_steps(1 + places.crowd())?;
            if !hashable(&item) {
                return Err(Fault::type_error(format!("{} cannot be in a set", item.type_name())));
            }
            if places.find(&item, |at| out.get(at)).is_none() {
                places.add(&item, out.len());
                self.charge_bytes(VALUE_BYTES)?;
                out.push(item);
            }
        }
        self.charge_steps(0)?;
        Ok(Value::Set(Rc::new(RefCell::new(Items(out)))))
    }
}

/// The string key most like another.
fn nearest_key(index: &str, pairs: &Rc<RefCell<Pairs>>) -> Option<String> {
    let pairs = pairs.borrow();
    let near = python::diagnose::nearest(index, pairs.0.iter().filter_map(|(k, _)| k.as_str()))?;
    Some(super::repr(&Value::str(near)))
}

/// The items of an index: of a tuple, or itself.
pub(crate) fn index_items(index: &Value) -> Vec<Value> {
    match index {
        Value::Tuple(items) => items.0.clone(),
        Value::List(items) => items.borrow().0.clone(),
        other => vec![other.clone()],
    }
}

fn hashable(value: &Value) -> bool {
    // a frozenset is a set here
    !matches!(value, Value::List(_) | Value::Dict(_)) && !value.is_symbolic()
}

fn position(len: usize, index: &Value) -> Result<usize, Fault> {
    let at = index.as_int().ok_or_else(|| {
        let fault = Fault::type_error(format!("{} is not an index of a list", index.type_name()));
        if index.is_plain() { fault.python() } else { fault }
    })?;
    let wrapped = if at < 0 { at.saturating_add(len as i64) } else { at };
    usize::try_from(wrapped)
        .ok()
        .filter(|at| *at < len)
        .ok_or_else(|| Fault::index_error(format!("index {at} is out of range: there are {len} elements")))
}

/// Start, step and number of elements that a slice takes of `len`.
pub(crate) fn slice_bounds(slice: &[Value], len: usize) -> Result<(i64, i64, usize), Fault> {
    let part = |at: usize| match slice.get(at) {
        None | Some(Value::None) => Ok(None),
        Some(value) => match value.as_int() {
            Some(i) => Ok(Some(i)),
            None => Err(Fault::type_error(format!("a slice needs ints, not {}", value.type_name()))),
        },
    };
    let (lower, upper, step) = (part(0)?, part(1)?, part(2)?.unwrap_or(1));
    if step == 0 {
        return Err(Fault::value_error("a slice's step cannot be zero"));
    }
    let n = len as i64;
    let clip = |at: i64, lo: i64, hi: i64| (if at < 0 { at.saturating_add(n) } else { at }).clamp(lo, hi);
    let (start, stop) = if step > 0 {
        (lower.map_or(0, |l| clip(l, 0, n)), upper.map_or(n, |u| clip(u, 0, n)))
    } else {
        (lower.map_or(n - 1, |l| clip(l, -1, n - 1)), upper.map_or(-1, |u| clip(u, -1, n - 1)))
    };
    Ok((start, step, python::value::range_len(start, stop, step) as usize))
}

/// `list[a:b] = new`
fn assign_slice(items: &mut Vec<Value>, slice: &[Value], new: Vec<Value>) -> Result<(), Fault> {
    let (start, step, count) = slice_bounds(slice, items.len())?;
    if step == 1 {
        let start = start as usize;
        drop(items.splice(start..start + count, new));
        return Ok(());
    }
    if new.len() != count {
        let message = format!("{} values cannot replace {count} values of a slice with a step", new.len());
        return Err(Fault::value_error(message));
    }
    for (i, value) in (0..).zip(new) {
        items[(start + i * step) as usize] = value;
    }
    Ok(())
}

/// Characters of a text.
fn text_item(text: &str, index: &Value) -> Result<Value, Fault> {
    let count = text.chars().count();
    let Value::Slice(slice) = index else {
        let found = text.chars().nth(position(count, index)?);
        return Ok(Value::str(found.map(String::from).unwrap_or_default()));
    };
    let (start, step, picked) = slice_bounds(&slice.0, count)?;
    let chars: Vec<char> = text.chars().collect();
    Ok(Value::str((0..picked as i64).map(|i| chars[(start + i * step) as usize]).collect::<String>()))
}

/// `range(start, _, step)[slice]` of a range of so many numbers: a range.
fn range_part((start, step): (i64, i64), slice: &[Value], n: usize) -> Result<Value, Fault> {
    let (first, by, count) = slice_bounds(slice, n)?;
    let at = |i: i64| start.wrapping_add(i.wrapping_mul(step));
    Ok(Value::Range(at(first), at(first.wrapping_add(by.wrapping_mul(count as i64))), by.wrapping_mul(step)))
}

fn sequence_item(items: &[Value], index: &Value, rebuild: impl FnOnce(Vec<Value>) -> Value) -> Result<Value, Fault> {
    if let Value::Slice(slice) = index {
        let (start, step, count) = slice_bounds(&slice.0, items.len())?;
        let picked = (0..count as i64).map(|i| items[(start + i * step) as usize].clone());
        return Ok(rebuild(picked.collect()));
    }
    Ok(items[position(items.len(), index)?].clone())
}
