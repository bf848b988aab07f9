//! Iteration: over ranges, lists, iterators, tensors by rows, and other values with known elements.
//!
//! Invariant: a list that grows during iteration is iterated further, as in Python; created values are charged. Must
//! not know loops.

use super::Context;
use super::iterator;
use crate::python::value::{Fault, VALUE_BYTES, Value, bury, range_items, range_len};
use std::cell::RefCell;
use std::rc::Rc;

/// The elements of an iterable, one after the other.
pub(super) enum Iterate {
    /// Known elements.
    Items(std::vec::IntoIter<Value>),
    /// A range: next, step, how many are left.
    Range(i64, i64, u64),
    /// A list that may grow while it is walked.
    List(Rc<RefCell<python::value::Items>>, usize),
    /// An iterator: others may take from it meanwhile.
    Iterator(Rc<python::value::Opaque>),
}

impl Iterate {
    pub(super) fn next(&mut self, _cx: &mut Context<'_>) -> Result<Option<Value>, Fault> {
        Ok(match self {
            Iterate::Items(items) => items.next(),
            Iterate::Range(_, _, 0) => None,
            Iterate::Range(next, step, left) => {
                let value = *next;
                *next = next.wrapping_add(*step);
                *left -= 1;
                Some(Value::Int(value))
            }
            Iterate::List(list, at) => {
                *at += 1;
                list.borrow().0.get(*at - 1).cloned()
            }
            Iterate::Iterator(iterator) => iterator::step(iterator)?,
        })
    }
}

impl Drop for Iterate {
    fn drop(&mut self) {
        if let Iterate::Items(items) = self {
            bury(items.by_ref());
        }
    }
}

impl Context<'_> {
    /// Walks an iterable.
    pub(super) fn iterate(&mut self, value: &Value) -> Result<Iterate, Fault> {
        Ok(match value {
            Value::Range(start, stop, step) => Iterate::Range(*start, *step, range_len(*start, *stop, *step)),
            Value::List(list) => Iterate::List(list.clone(), 0),
            Value::Opaque(iterator) if iterator.kind == iterator::KIND => Iterate::Iterator(iterator.clone()),
            other => Iterate::Items(self.collect(other)?.into_iter()),
        })
    }

    /// Takes elements one by one, until `f` stops it.
    pub(crate) fn walk(
        &mut self,
        value: &Value,
        mut f: impl FnMut(&mut Self, Value) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let mut items = self.iterate(value)?;
        while let Some(item) = items.next(self)? {
            self.charge_steps(1)?;
            if !f(self, item)? {
                break;
            }
        }
        Ok(())
    }

    /// All elements of an iterable.
    pub(crate) fn collect(&mut self, value: &Value) -> Result<Vec<Value>, Fault> {
        match value {
            Value::Range(start, stop, step) => {
                let n = range_len(*start, *stop, *step);
                self.charge_bytes(n.saturating_mul(VALUE_BYTES))?;
                self.charge_steps(n / 4)?;
                Ok(range_items(*start, *stop, *step).collect())
            }
            Value::Dict(pairs) => {
                self.charge_steps(pairs.borrow().0.len() as u64 / 4)?;
                Ok(pairs.borrow().0.iter().map(|(k, _)| k.clone()).collect())
            }
            Value::Opaque(opaque) if opaque.kind == iterator::KIND => iterator::rest(opaque),
            Value::Class(class) if super::enums::is_enum(class) => Ok(super::enums::enum_members(class)),
            Value::Instance(object) if super::class::is_named_tuple(&object.class) => {
                let attributes = object.attributes.borrow();
                let fields = object.class.fields.iter().flatten();
                Ok(fields.filter_map(|(name, _)| attributes.named(name)).collect())
            }
            Value::Instance(object) => self.instance_items(object),
            Value::Str(text) => {
                self.charge_bytes(2 * VALUE_BYTES * text.len() as u64)?;
                self.charge_steps(text.len() as u64 / 4)?;
                Ok(text.chars().map(|c| Value::str(c.to_string())).collect())
            }
            Value::Tensor(tensor) => {
                let rows = tensor.borrow().shape().first().copied();
                let Some(rows) = rows else { return Err(Fault::type_error("iteration over a 0-d tensor")) };
                self.charge_steps(rows as u64)?;
                (0..rows).map(|i| (self.library.index)(tensor, &Value::Int(i as i64), self)).collect()
            }
            Value::Array(_) | Value::View(_) => self.symbolic_rows(value),
            Value::Sym(_) => Err(super::super::diagnose::not_a_number(
                "this",
                "an index is one value in each cell, and cannot be unpacked or iterated over",
            )),
            other => match other.as_items() {
                Some(items) => {
                    // with what the meter counts: a step for four
                    self.charge_steps(items.len() as u64 / 8)?;
                    Ok(items)
                }
                None => {
                    let fault = Fault::type_error(format!("{} is not iterable", other.type_name()));
                    Err(if other.is_plain() { fault.python() } else { fault })
                }
            },
        }
    }
}
