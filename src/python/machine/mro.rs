//! The order in which Python looks through a class and its bases (C3: a class before its bases, bases as written, each once).
//!
//! Invariant: the same class gives the same order. Must not know members' values.

use crate::python::value::{Class, Value};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Deepest chain of base classes that is walked.
pub(super) const MAX_BASES: usize = 32;

type Order = Vec<Rc<Class>>;

/// The classes of the text that a class looks through, itself first.
pub(super) fn order(class: &Rc<Class>) -> Order {
    linear(class, 0, &mut HashMap::new())
}

/// The first of these classes that has a member itself.
pub(super) fn member_in(classes: &[Rc<Class>], name: &str) -> Option<(Rc<Class>, Value)> {
    classes.iter().find_map(|class| Some((class.clone(), class.members.borrow().named(name)?)))
}

/// The classes that `super()` looks through in a method of `class` that runs for this receiver.
pub(super) fn following(receiver: &Value, class: &Rc<Class>) -> Vec<Rc<Class>> {
    match receiver {
        Value::Instance(object) => after(&object.class, class),
        Value::Class(of) => after(of, class),
        _ => after(class, class),
    }
}

/// Of a class, the ones after the class that contains the method.
fn after(of: &Rc<Class>, class: &Rc<Class>) -> Order {
    let whole = order(of);
    match whole.iter().position(|c| Rc::ptr_eq(c, class)) {
        Some(at) => whole[at + 1..].to_vec(),
        // `super()` of a class that the object is not of
        None => order(class)[1..].to_vec(),
    }
}

/// The first answer of a class's bases and theirs, as they are written. Each class is asked once: a ladder of classes with two
/// bases each has two ways to every class above.
pub(super) fn find_base<T>(class: &Class, ask: impl Fn(&Value) -> Option<T>) -> Option<T> {
    find_from(class, &ask, 0, &mut HashSet::new())
}

fn find_from<T>(
    class: &Class,
    ask: &dyn Fn(&Value) -> Option<T>,
    depth: usize,
    asked: &mut HashSet<*const Class>,
) -> Option<T> {
    class.bases.0.iter().find_map(|base| match (ask(base), base) {
        (None, Value::Class(above)) if depth < MAX_BASES && asked.insert(Rc::as_ptr(above)) => {
            find_from(above, ask, depth + 1, asked)
        }
        (answer, _) => answer,
    })
}

/// The bases that the text defines.
pub(super) fn bases(class: &Class) -> impl Iterator<Item = &Rc<Class>> {
    class.bases.0.iter().filter_map(|base| if let Value::Class(base) = base { Some(base) } else { None })
}

fn linear(class: &Rc<Class>, depth: usize, known: &mut HashMap<*const Class, Order>) -> Order {
    if let Some(found) = known.get(&Rc::as_ptr(class)) {
        return found.clone();
    }
    let mut out = vec![class.clone()];
    if depth <= MAX_BASES {
        let mut lists: Vec<Order> = bases(class).map(|base| linear(base, depth + 1, known)).collect();
        lists.push(bases(class).cloned().collect());
        merge(lists, &mut out);
    }
    known.insert(Rc::as_ptr(class), out.clone());
    out
}

/// Takes the first class that stands behind no other list's first, until none is left.
fn merge(mut lists: Vec<Order>, out: &mut Order) {
    loop {
        lists.retain(|list| !list.is_empty());
        let behind = |class: &Rc<Class>| lists.iter().any(|l| l[1..].iter().any(|c| Rc::ptr_eq(c, class)));
        let free = lists.iter().map(|list| &list[0]).find(|class| !behind(class));
        // Python refuses classes of which there is none
        let Some(next) = free.or_else(|| lists.first().map(|list| &list[0])).cloned() else { return };
        lists.iter_mut().for_each(|list| list.retain(|c| !Rc::ptr_eq(c, &next)));
        out.push(next);
    }
}
