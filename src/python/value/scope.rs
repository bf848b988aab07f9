//! Names and their values: one scope per module, call, class body or comprehension, each inside the next.
//!
//! Invariant: a scope that a function closes over is cleared when the trace ends, so that cycles do not leak. Must not
//! know expressions.

use super::{Name, Value, bury};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// One level of names.
pub struct Scope {
    names: RefCell<Vec<(Name, Value)>>,
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
        self.names.borrow().iter().find(|(n, _)| **n == *name).map(|(_, v)| v.clone())
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
        let mut names = self.names.borrow_mut();
        let old = match names.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => Some(std::mem::replace(old, value)),
            None => {
                names.push((name.clone(), value));
                None
            }
        };
        drop(names);
        drop(old);
    }

    /// The value of the first binding here, without `__class__`: a method's first parameter.
    pub(in crate::python) fn first_bound(&self) -> Option<Value> {
        self.names.borrow().iter().find(|(n, _)| &**n != "__class__").map(|(_, v)| v.clone())
    }

    /// Unbinds a name here. False when it was not bound.
    pub fn remove(&self, name: &str) -> bool {
        let mut names = self.names.borrow_mut();
        let Some(at) = names.iter().position(|(n, _)| **n == *name) else { return false };
        let removed = names.remove(at);
        drop(names);
        drop(removed);
        true
    }

    /// Declares names `global` or `nonlocal`.
    pub fn declare(&self, names: &[Name], global: bool) {
        self.outer.borrow_mut().extend(names.iter().map(|n| (n.clone(), global)));
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
        self.names.borrow().clone()
    }

    /// Binds the names of this scope whose value is `of` to another value; how many there were.
    pub fn replace(&self, of: impl Fn(&Value) -> bool, by: &Value) -> usize {
        let mut names = self.names.borrow_mut();
        let found = names.iter_mut().filter(|(_, value)| of(value));
        found.map(|(_, value)| *value = by.clone()).count()
    }

    /// Names visible from here, for suggestions.
    pub fn visible(&self) -> Vec<Name> {
        let mut out: Vec<Name> = self.names.borrow().iter().map(|(n, _)| n.clone()).collect();
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
        bury(self.names.get_mut().drain(..).map(|(_, v)| v));
    }
}
