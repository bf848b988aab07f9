//! The holders of a symbolic value: the names of the running calls, and the containers that these hold.
//!
//! Invariant: counts every holder through which the running text could read it. Must not know the use of the count.

use super::Context;
use crate::python::value::Value;
use std::rc::Rc;

/// Containers within one another that are looked into.
const MAX_DEPTH: usize = 4;

/// Whether both are one object.
fn is(value: &Value, of: &Value) -> bool {
    match (value, of) {
        (Value::Sym(a), Value::Sym(b)) => a.object == b.object,
        (Value::Array(a), Value::Array(b)) => Rc::ptr_eq(a, b),
        _ => false,
    }
}

fn count(value: &Value, of: &Value, depth: usize) -> usize {
    if is(value, of) {
        return 1;
    }
    if depth == 0 {
        return 0;
    }
    let all = |items: &[Value]| items.iter().map(|v| count(v, of, depth - 1)).sum();
    let pairs = |pairs: &[(Value, Value)]| pairs.iter().map(|(_, v)| count(v, of, depth - 1)).sum();
    match value {
        Value::Tuple(items) => all(&items.0),
        Value::List(items) | Value::Set(items) => all(&items.borrow().0),
        Value::Dict(given) => pairs(&given.borrow().0),
        Value::Instance(object) => pairs(&object.attributes.borrow().0),
        _ => 0,
    }
}

impl Context<'_> {
    /// A number that no other symbolic value has.
    pub(crate) fn new_object(&self) -> u32 {
        self.objects.replace(self.objects.get() + 1)
    }

    /// How many names and containers hold a symbolic value.
    pub(crate) fn holders(&self, of: &Value) -> usize {
        self.frames.iter().flat_map(|f| f.names()).map(|(_, v)| count(&v, of, MAX_DEPTH)).sum()
    }

    /// Names that hold a symbolic value get another; how many there were.
    pub(crate) fn rebind(&mut self, of: &Value, to: &Value) -> usize {
        self.frames.iter().map(|f| f.replace(|v| is(v, of), to)).sum()
    }
}
