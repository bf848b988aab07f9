//! Skipped failed statements: values that they may have changed are as unknown as the names that they would have bound.
//!
//! Invariant: every value that a failed statement could have changed is a fault for its later readers, under any name
//! and through any container; so every read value comes from statements that ran. Must not know why statements fail.

use super::Context;
use super::effects::bound_names;
use super::fixed::identity;
use super::touched::{Touched, touched};
use crate::python::syntax::ast::Stmt;
use crate::python::value::scope::Scope;
use crate::python::value::{Fault, Value};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The recorded failed statements.
#[derive(Default)]
pub(super) struct Taint {
    /// Objects that may have been changed, by identity, and by which statement.
    objects: HashMap<usize, Rc<Fault>>,
    /// The same objects, kept so that no other takes their identity.
    kept: Vec<Value>,
    /// The values used by each failed statement: its result may reference them.
    used: HashMap<usize, Vec<Value>>,
}

impl Taint {
    pub(super) fn clear(&mut self) {
        *self = Taint::default();
    }
}

/// Each object once, and nothing that cannot change: a statement that reads what a failed one left uses all that this one used.
fn distinct(used: Vec<Value>) -> Vec<Value> {
    let mut seen = HashSet::new();
    let place = |value: &Value| match value {
        Value::Module(module) => Some(Rc::as_ptr(module) as usize),
        other => identity(other),
    };
    used.into_iter().filter(|value| place(value).is_some_and(|at| seen.insert(at))).collect()
}

/// The content of an object.
fn held(value: &Value) -> Vec<Value> {
    match value {
        Value::Tuple(items) => items.0.clone(),
        Value::List(items) | Value::Set(items) => items.borrow().0.clone(),
        Value::Dict(pairs) => pairs.borrow().0.iter().flat_map(|(k, v)| [k.clone(), v.clone()]).collect(),
        Value::Partial(partial) => {
            let bound = partial.args.positional.iter().chain(partial.args.keyword.iter().map(|(_, v)| v));
            bound.chain([&partial.function]).cloned().collect()
        }
        Value::Method(method) => vec![method.0.clone()],
        Value::Class(class) => class.members.borrow().0.iter().map(|(_, v)| v.clone()).collect(),
        Value::Instance(object) => object.attributes.borrow().0.iter().map(|(_, v)| v.clone()).collect(),
        Value::Module(module) => module.scope.names().into_iter().map(|(_, v)| v).collect(),
        _ => Vec::new(),
    }
}

impl Context<'_> {
    /// Continues after a failed statement: its possible bindings and changes are its fault from now on.
    pub(super) fn skip(&mut self, statement: &Stmt, fault: Fault, scope: &Rc<Scope>) {
        let shared = Rc::new(fault.clone());
        let Touched { changed, used, elsewhere, attributes, draws, everything } = touched(self, statement, scope);
        let missing = Value::Missing(shared.clone());
        for name in bound_names(statement) {
            scope.set(&name, missing.clone());
        }
        for (scope, name) in elsewhere {
            scope.set(&name, missing.clone());
        }
        for (of, name) in attributes {
            match of {
                Value::Function(of) => of.attributes.borrow_mut().set_named(&name, missing.clone()),
                Value::Instance(of) => of.attributes.borrow_mut().set_named(&name, missing.clone()),
                Value::Class(of) => of.members.borrow_mut().set_named(&name, missing.clone()),
                Value::Builtin(of) => drop(self.patch(&super::call::dotted(&of, &name), missing.clone())),
                _ => {}
            }
        }
        self.taint(changed, &shared);
        self.taint.used.insert(Rc::as_ptr(&shared) as usize, distinct(used));
        if draws {
            self.host.unsure = Some(shared.clone());
        }
        if everything && self.unsure.is_none() && statement.span.source.0 == 0 {
            self.unsure = Some(fault.clone());
        }
        // keeps the identity of the fault
        self.taint.kept.push(missing);
        self.skipped.push(fault);
    }

    /// The values used by the statement with this fault.
    pub(super) fn used_by(&self, fault: &Rc<Fault>) -> Vec<Value> {
        self.taint.used.get(&(Rc::as_ptr(fault) as usize)).cloned().unwrap_or_default()
    }

    /// A value as it is read: the fault of the statement that may have changed it, if there is one.
    pub(crate) fn untouched(&self, value: Value) -> Result<Value, Fault> {
        if self.taint.objects.is_empty() {
            return Ok(value);
        }
        match identity(&value).and_then(|id| self.taint.objects.get(&id)) {
            Some(fault) => Err(Fault::clone(fault)),
            None => Ok(value),
        }
    }

    /// Marks objects, all that they hold, and all that holds them.
    fn taint(&mut self, changed: Vec<Value>, fault: &Rc<Fault>) {
        let before = self.taint.objects.len();
        let mut left = changed;
        let mut seen = HashSet::new();
        while let Some(value) = left.pop() {
            let id = identity(&value);
            if id.is_some_and(|id| !seen.insert(id)) {
                continue;
            }
            left.extend(held(&value).into_iter().filter(|v| identity(v).is_some() || matches!(v, Value::Module(_))));
            if let Some(id) = id {
                self.taint.objects.entry(id).or_insert_with(|| fault.clone());
                self.taint.kept.push(value);
            }
        }
        if self.taint.objects.len() > before {
            self.taint_holders(fault);
        }
    }

    /// Marks every container, under any binding, through which something marked can be reached.
    fn taint_holders(&mut self, fault: &Rc<Fault>) {
        let mut left: Vec<Value> = Vec::new();
        let scopes = self.scopes.iter().filter_map(|s| s.upgrade()).chain(self.frames.iter().cloned());
        for scope in scopes {
            left.extend(scope.names().into_iter().map(|(_, v)| v).filter(|v| identity(v).is_some()));
        }
        let mut objects: Vec<(usize, Value, Vec<usize>)> = Vec::new();
        let mut seen = HashSet::new();
        while let Some(value) = left.pop() {
            let Some(id) = identity(&value) else { continue };
            // tensors share storage: each is looked at by its storage once
            if !seen.insert(id) {
                continue;
            }
            let inside: Vec<Value> = held(&value).into_iter().filter(|v| identity(v).is_some()).collect();
            objects.push((id, value, inside.iter().filter_map(identity).collect()));
            left.extend(inside);
        }
        loop {
            let mut more = false;
            for (id, value, inside) in &objects {
                if !self.taint.objects.contains_key(id) && inside.iter().any(|i| self.taint.objects.contains_key(i)) {
                    self.taint.objects.insert(*id, fault.clone());
                    self.taint.kept.push(value.clone());
                    more = true;
                }
            }
            if !more {
                break;
            }
        }
    }
}
