//! Iterators: what `iter()`, generators, generator expressions and endless counters give, and `next()` takes from.
//!
//! Invariant: an element is given once, to the first caller; asking an endless one for all is a fault. Must not know how
//! the elements were made.

use crate::python::value::{Fault, Items, Opaque, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Kind of their [`Opaque`].
pub(crate) const KIND: &str = "generator";

/// Most elements that a generator is run for: more than that has no end.
pub(crate) const MOST: usize = 1 << 17;

/// Code of the fault that stops a generator without an end.
const ENDLESS: &str = "endless";

/// The continuation after the known elements.
pub(crate) enum Tail {
    /// Nothing.
    End,
    /// Ints: the next one, and the step.
    Count(i64, i64),
    /// These, again and again: the next one.
    Cycle(Items, usize),
    /// Where a generator stopped.
    Fault(Fault),
}

struct State {
    /// Known elements, taken from the end.
    known: Items,
    tail: Tail,
}

/// An iterator over these.
pub(crate) fn of(items: Vec<Value>) -> Value {
    ending(items, Tail::End)
}

/// An iterator over these, and then what the tail gives.
pub(crate) fn ending(mut items: Vec<Value>, tail: Tail) -> Value {
    items.reverse();
    let state = State { known: Items(items), tail };
    Value::Opaque(Rc::new(Opaque { kind: KIND, state: RefCell::new(Box::new(state)) }))
}

/// A generator's results before it ended in this way.
pub(crate) fn of_generator(items: Vec<Value>, ended: Result<(), Fault>) -> Result<Value, Fault> {
    match ended {
        Ok(()) => Ok(of(items)),
        Err(fault) if fault.fatal && fault.diagnostic.code != ENDLESS => Err(fault),
        // it would have stopped here at the next request
        Err(fault) => Ok(ending(items, Tail::Fault(fault))),
    }
}

/// The fault of requesting all elements of an infinite iterator.
pub(crate) fn endless() -> Fault {
    Fault::limit(ENDLESS, "this iterator has no end")
        .hint("take a part of it: `itertools.islice(it, n)`, `next(it)` or zip()")
}

/// The next element, if there is one.
pub(crate) fn step(iterator: &Opaque) -> Result<Option<Value>, Fault> {
    with(iterator, |state| {
        if let Some(item) = state.known.0.pop() {
            return Ok(Some(item));
        }
        match &mut state.tail {
            Tail::End => Ok(None),
            Tail::Count(next, step) => {
                let value = *next;
                *next = next.wrapping_add(*step);
                Ok(Some(Value::Int(value)))
            }
            Tail::Cycle(items, at) => {
                let value = items.0.get(*at).cloned();
                *at = (*at + 1) % items.0.len().max(1);
                Ok(value)
            }
            Tail::Fault(fault) => Err(fault.clone()),
        }
    })
    .unwrap_or(Ok(None))
}

/// At most `n` elements.
pub(crate) fn take(iterator: &Opaque, n: usize) -> Result<Vec<Value>, Fault> {
    let mut out = Vec::new();
    while out.len() < n {
        match step(iterator)? {
            Some(item) => out.push(item),
            None => break,
        }
    }
    Ok(out)
}

/// Everything that is left; the iterator is empty afterwards.
pub(crate) fn rest(iterator: &Opaque) -> Result<Vec<Value>, Fault> {
    with(iterator, |state| match &state.tail {
        Tail::End => {
            let mut items = std::mem::take(&mut state.known.0);
            items.reverse();
            Ok(items)
        }
        Tail::Fault(fault) => Err(fault.clone()),
        Tail::Count(..) | Tail::Cycle(..) => Err(endless()),
    })
    .unwrap_or_else(|| Ok(Vec::new()))
}

/// The iterator behind a value that may never end.
pub(crate) fn open_ended(value: &Value) -> Option<&Rc<Opaque>> {
    let Value::Opaque(iterator) = value else { return None };
    let open = iterator.kind == KIND && with(iterator, |state| !matches!(state.tail, Tail::End)) == Some(true);
    open.then_some(iterator)
}

/// `next(iterator, default)`
pub(crate) fn next(iterator: &Value, default: Option<&Value>) -> Result<Value, Fault> {
    let Value::Opaque(iterator) = iterator else {
        return Err(Fault::type_error(format!("a {} is not an iterator", iterator.type_name()))
            .hint("write `next(iter(x))`, or `x[0]` for the first element"));
    };
    step(iterator)?.or_else(|| default.cloned()).ok_or_else(|| {
        Fault::new("StopIteration", "value-error", "the iterator has no next element").hint("pass a default to next()")
    })
}

/// `zip(it, it, ...)`: the usual way to walk in groups takes turns with one iterator.
pub(crate) fn zipped_with_itself(columns: &[Value]) -> Option<Result<Vec<Value>, Fault>> {
    let [Value::Opaque(first), others @ ..] = columns else { return None };
    let same = |v: &Value| matches!(v, Value::Opaque(other) if Rc::ptr_eq(first, other));
    if others.is_empty() || !others.iter().all(same) {
        return None;
    }
    let rows =
        |items: Vec<Value>| items.chunks_exact(columns.len()).map(|group| Value::tuple(group.to_vec())).collect();
    Some(rest(first).map(rows))
}

fn with<T>(iterator: &Opaque, f: impl FnOnce(&mut State) -> T) -> Option<T> {
    iterator.state.borrow_mut().downcast_mut::<State>().map(f)
}
