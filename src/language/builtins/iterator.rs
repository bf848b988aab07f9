//! Iterators: what `iter()`, generators and generator expressions give, and `next()` takes from.
//!
//! Invariant: an element is given once, whoever asks for it. Must not know how the elements were made.

use crate::language::value::{Fault, Items, Opaque, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Kind of their [`Opaque`].
pub(crate) const KIND: &str = "generator";

/// An iterator over these.
pub(crate) fn of(mut items: Vec<Value>) -> Value {
    // taken from the end
    items.reverse();
    Value::Opaque(Rc::new(Opaque { kind: KIND, state: RefCell::new(Box::new(Items(items))) }))
}

/// Everything that is left; the iterator is empty afterwards.
pub(crate) fn rest(iterator: &Opaque) -> Vec<Value> {
    let mut items = with(iterator, |items| std::mem::take(&mut items.0)).unwrap_or_default();
    items.reverse();
    items
}

/// `next(iterator, default)`
pub(super) fn next(iterator: &Value, default: Option<&Value>) -> Result<Value, Fault> {
    let Value::Opaque(iterator) = iterator else {
        return Err(Fault::type_error(format!("a {} is no iterator", iterator.type_name()))
            .hint("write `next(iter(x))`, or `x[0]` for the first element"));
    };
    let item = with(iterator, |items| items.0.pop()).flatten();
    item.or_else(|| default.cloned()).ok_or_else(|| {
        Fault::new("StopIteration", "value-error", "there is no next element").hint("give next() a default")
    })
}

/// `zip(it, it, ...)`: the usual way to walk in groups takes turns with one iterator.
pub(super) fn zipped_with_itself(columns: &[Value]) -> Option<Vec<Value>> {
    let [Value::Opaque(first), others @ ..] = columns else { return None };
    let same = |v: &Value| matches!(v, Value::Opaque(other) if Rc::ptr_eq(first, other));
    if others.is_empty() || !others.iter().all(same) {
        return None;
    }
    let items = rest(first);
    Some(items.chunks_exact(columns.len()).map(|group| Value::tuple(group.to_vec())).collect())
}

fn with<T>(iterator: &Opaque, f: impl FnOnce(&mut Items) -> T) -> Option<T> {
    iterator.state.borrow_mut().downcast_mut::<Items>().map(f)
}
