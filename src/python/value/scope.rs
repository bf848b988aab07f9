//! Names and their values: one scope per module, call, class body or comprehension, each inside the next.
//!
//! Invariant: a scope that a function closes over is cleared when the trace ends, so that cycles do not leak. Must not
//! know expressions.

use super::{Name, Value, bury};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Names up to which a scope compares them one by one: most calls have fewer.
const FEW: usize = 16;

/// Names with their values in order of their binding; a module of many thousand names finds each at once.
#[derive(Default)]
struct Names {
    /// None: it was unbound.
    slots: Vec<(Name, Option<Value>)>,
    /// Where each bound name stands, once there are more than [`FEW`].
    places: HashMap<Name, usize>,
}

impl Names {
    fn place(&self, name: &str) -> Option<usize> {
        if self.slots.len() > FEW {
            return self.places.get(name).copied();
        }
        self.slots.iter().position(|(n, value)| **n == *name && value.is_some())
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.slots[self.place(name)?].1.as_ref()
    }

    /// Binds a name; the value that it had.
    fn set(&mut self, name: &Name, value: Value) -> Option<Value> {
        if let Some(at) = self.place(name) {
            return self.slots[at].1.replace(value);
        }
        self.slots.push((name.clone(), Some(value)));
        match self.slots.len() {
            n if n == FEW + 1 => self.index(),
            n if n > FEW => drop(self.places.insert(name.clone(), n - 1)),
            _ => (),
        }
        None
    }

    fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.place(name)?;
        self.places.remove(name);
        let removed = self.slots[at].1.take();
        // half of them gone: each removal pays for one slot that goes
        if self.slots.len() <= FEW || 2 * self.places.len() < self.slots.len() {
            self.slots.retain(|(_, value)| value.is_some());
            self.index();
        }
        removed
    }

    fn index(&mut self) {
        self.places.clear();
        if self.slots.len() > FEW {
            let places = self.slots.iter().enumerate().filter(|(_, (_, value))| value.is_some());
            self.places.extend(places.map(|(at, (name, _))| (name.clone(), at)));
        }
    }

    fn bound(&self) -> impl Iterator<Item = (&Name, &Value)> {
        self.slots.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }
}

/// One level of names.
pub struct Scope {
    names: RefCell<Names>,
    /// Names that `global` or `nonlocal` declare here, and whether each is `global`.
    outer: RefCell<Vec<(Name, bool)>>,
    parent: Option<Rc<Scope>>,
    /// Whether the interpreter keeps it on its list of scopes to clear.
    pub(in crate::python) registered: Cell<bool>,
    kind: Kind,
}

/// The owner of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A module's globals.
    Module,
    /// A call.
    Function,
    /// A class body: functions inside it do not see it.
    Class,
    /// A comprehension: `:=` binds outside it.
    Comprehension,
}

impl Scope {
    /// A scope inside `parent`.
    pub fn new(kind: Kind, parent: Option<Rc<Scope>>) -> Rc<Scope> {
        let (names, outer, registered) = Default::default();
        Rc::new(Scope { names, outer, parent, registered, kind })
    }

    /// Its owner.
    pub(in crate::python) fn kind(&self) -> Kind {
        self.kind
    }

    /// Where `:=` binds.
    pub(in crate::python) fn outside_comprehensions(self: &Rc<Scope>) -> Rc<Scope> {
        let mut scope = self.clone();
        while let (Kind::Comprehension, Some(parent)) = (scope.kind, scope.parent.clone()) {
            scope = parent;
        }
        scope
    }

    /// The scope that functions defined here close over.
    pub fn for_closures(self: &Rc<Scope>) -> Rc<Scope> {
        match (&self.parent, self.kind) {
            (Some(parent), Kind::Class) => parent.for_closures(),
            _ => self.clone(),
        }
    }

    /// The value of a name, from here outwards.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.own(name).or_else(|| self.parent.as_ref()?.get_outer(name))
    }

    fn get_outer(&self, name: &str) -> Option<Value> {
        let mut scope = self;
        loop {
            if scope.kind != Kind::Class
                && let Some(value) = scope.own(name)
            {
                return Some(value);
            }
            scope = scope.parent.as_ref()?;
        }
    }

    /// The value of a name of this scope itself.
    pub fn own(&self, name: &str) -> Option<Value> {
        self.names.borrow().get(name).cloned()
    }

    /// Binds a name here, or where `global` and `nonlocal` say.
    pub fn set(self: &Rc<Scope>, name: &Name, value: Value) {
        let declared = self.outer.borrow().iter().find(|(n, _)| n == name).map(|(_, global)| *global);
        match declared {
            Some(true) => self.module().set_own(name, value),
            Some(false) => {
                let mut scope = self.parent.clone();
                while let Some(at) = scope {
                    if at.kind == Kind::Function && at.own(name).is_some() {
                        return at.set_own(name, value);
                    }
                    scope = at.parent.clone();
                }
                self.set_own(name, value);
            }
            None => self.set_own(name, value),
        }
    }

    fn set_own(&self, name: &Name, value: Value) {
        let old = self.names.borrow_mut().set(name, value);
        drop(old);
    }

    /// The value of the first binding here, without `__class__`: a method's first parameter.
    pub(in crate::python) fn first_bound(&self) -> Option<Value> {
        self.names.borrow().bound().find(|(n, _)| &***n != "__class__").map(|(_, v)| v.clone())
    }

    /// Unbinds a name here. False when it was not bound.
    pub fn remove(&self, name: &str) -> bool {
        let removed = self.names.borrow_mut().remove(name);
        removed.is_some()
    }

    /// Declares names `global` or `nonlocal`.
    pub fn declare(&self, names: &[Name], global: bool) {
        let mut outer = self.outer.borrow_mut();
        for name in names {
            // a statement in a loop says it once
            if !outer.iter().any(|(known, of_module)| known == name && *of_module == global) {
                outer.push((name.clone(), global));
            }
        }
    }

    /// The module around it.
    pub fn module(self: &Rc<Scope>) -> Rc<Scope> {
        let mut scope = self.clone();
        while let Some(parent) = scope.parent.clone() {
            scope = parent;
        }
        scope
    }

    /// The function's scope that binds a name, from here outwards: what `nonlocal` means.
    pub(in crate::python) fn holder(self: &Rc<Scope>, name: &str) -> Option<Rc<Scope>> {
        let mut scope = Some(self.clone());
        while let Some(at) = scope {
            if at.kind == Kind::Function && at.own(name).is_some() {
                return Some(at);
            }
            scope = at.parent.clone();
        }
        None
    }

    /// All names bound here, in order of their first binding.
    pub fn names(&self) -> Vec<(Name, Value)> {
        self.names.borrow().bound().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Binds the names of this scope whose value is `of` to another value; how many there were.
    pub fn replace(&self, of: impl Fn(&Value) -> bool, by: &Value) -> usize {
        let mut names = self.names.borrow_mut();
        let found = names.slots.iter_mut().filter_map(|(_, value)| value.as_mut().filter(|value| of(value)));
        found.map(|value| *value = by.clone()).count()
    }

    /// Names visible from here, for suggestions.
    pub fn visible(&self) -> Vec<Name> {
        let mut out: Vec<Name> = self.names.borrow().bound().map(|(n, _)| n.clone()).collect();
        if let Some(parent) = &self.parent {
            out.extend(parent.visible());
        }
        out
    }

    /// Forgets everything, so that functions that close over it can go.
    pub fn clear(&self) {
        let names = std::mem::take(&mut *self.names.borrow_mut());
        drop(names);
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        bury(self.names.get_mut().slots.drain(..).filter_map(|(_, v)| v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bound, bound again and unbound in any order, few names and many: as a list that is searched from its beginning.
    #[test]
    fn names_are_those_of_a_plain_list() {
        for seed in 0..200u64 {
            let (scope, mut list) = (Scope::new(Kind::Module, None), Vec::<(Name, i64)>::new());
            let mut state = seed;
            let mut random = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            for step in 0..400 {
                let name: Name = format!("n{}", random(60)).into();
                let at = list.iter().position(|(n, _)| *n == name);
                if random(5) < 3 {
                    scope.set(&name, Value::Int(step));
                    match at {
                        Some(at) => list[at].1 = step,
                        None => list.push((name.clone(), step)),
                    }
                } else {
                    assert_eq!(scope.remove(&name), at.map(|at| list.remove(at)).is_some(), "{seed}");
                }
                let bound = list.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
                assert_eq!(scope.own(&name).and_then(|value| value.as_int()), bound, "{seed}");
            }
            let found: Vec<_> = scope.names().into_iter().map(|(n, v)| (n, v.as_int().expect("an int"))).collect();
            assert_eq!(found, list, "{seed}");
        }
    }
}
