//! The values that a statement could change, found without running it.
//!
//! Invariant: errs on the side of more. A call may do what the body of its function does, and an unknown function may
//! change all its arguments; only functions known to change nothing (PyTorch's functions without `_`, `out=` and
//! `inplace=`, Python's own readers) are assumed to change nothing. Must not know the use of the answer.

use super::Context;
use super::changes::{Change, change_of};
use super::class::member_of;
use super::effects::{changes, harmless};
use super::fixed::{is_fixed, names_class};
use super::frame::{Frame, is_fresh};
use super::import::is_pure_library;
use crate::python::syntax::Name;
use crate::python::syntax::ast::*;
use crate::python::syntax::walk;
use crate::python::value::scope::Scope;
use crate::python::value::{Class as ClassValue, Function as FunctionValue, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// Expressions that are looked at in all; text with more may change everything.
const MOST: usize = 200_000;

/// The possible changes of a statement.
#[derive(Default)]
pub(super) struct Touched {
    /// Objects that may be changed, with all that they hold.
    pub changed: Vec<Value>,
    /// Every value that it names.
    pub used: Vec<Value>,
    /// Names that functions bind elsewhere: `global`, `nonlocal`.
    pub elsewhere: Vec<(Rc<Scope>, Name)>,
    /// Attributes of functions, objects and classes that are set.
    pub attributes: Vec<(Value, Name)>,
    /// Whether random numbers may be drawn.
    pub draws: bool,
    /// Whether names may be bound that the text does not show: `exec`, `globals()`.
    pub everything: bool,
}

/// The possible changes of running `statement` in `scope`.
pub(super) fn touched(cx: &mut Context<'_>, statement: &Stmt, scope: &Rc<Scope>) -> Touched {
    let mut walk = Walk { cx, out: Touched::default(), known: HashMap::new(), left: MOST };
    let mut frame = Frame::new(scope.clone(), std::slice::from_ref(statement));
    walk.statement(statement, &mut frame);
    if frame.changes_nested {
        let used = walk.out.used.clone();
        walk.out.changed.extend(used);
    }
    if walk.left == 0 {
        walk.out.everything = true;
    }
    walk.out
}

/// The holders of the objects that an expression may return.
#[derive(Default)]
struct Origins {
    values: Vec<Value>,
    params: bool,
    nested: bool,
}

struct Walk<'c, 'a> {
    cx: &'c mut Context<'a>,
    out: Touched,
    /// Functions that were walked: whether they change what their arguments hold.
    known: HashMap<*const FunctionValue, bool>,
    left: usize,
}

impl Walk<'_, '_> {
    fn block<'f>(&mut self, body: &'f [Stmt], frame: &mut Frame<'f>) {
        body.iter().for_each(|s| self.statement(s, frame));
    }

    fn statement<'f>(&mut self, s: &'f Stmt, frame: &mut Frame<'f>) {
        match &s.kind {
            StmtKind::Assign { targets, .. } => targets.iter().for_each(|t| self.target(t, frame)),
            StmtKind::AnnAssign { target, value: Some(_) } | StmtKind::For { target, .. } => self.target(target, frame),
            StmtKind::AugAssign { target, .. } => match &target.kind {
                ExprKind::Name(_) => self.change(target, frame),
                _ => self.target(target, frame),
            },
            StmtKind::Delete(targets) => targets.iter().for_each(|t| self.target(t, frame)),
            StmtKind::With(with) => {
                for (item, target) in &with.items {
                    target.iter().for_each(|t| self.target(t, frame));
                    self.entered(item, frame);
                }
            }
            StmtKind::Global(names) => {
                let module = frame.scope.module();
                self.out.elsewhere.extend(names.iter().map(|n| (module.clone(), n.clone())));
            }
            StmtKind::Nonlocal(names) => {
                let held = names.iter().filter_map(|n| Some((frame.scope.holder(n)?, n.clone())));
                self.out.elsewhere.extend(held);
            }
            StmtKind::Function(def) => {
                if let Body::Block(body) = &def.body {
                    self.block(body, frame);
                }
            }
            StmtKind::Class(class) => self.block(&class.body, frame),
            _ => {}
        }
        walk::own_expressions(s, &mut |e| self.expression(e, frame));
        for block in walk::blocks(s) {
            self.block(block, frame);
        }
    }

    /// A target of an assignment: the object that contains it changes.
    fn target(&mut self, target: &Expr, frame: &mut Frame<'_>) {
        match &target.kind {
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|i| self.target(i, frame)),
            ExprKind::Starred(inner) => self.target(inner, frame),
            ExprKind::Attribute(object, _) if names_class(object) => self.out.everything = true,
            ExprKind::Attribute(object, name) => match self.value_of(object, frame) {
                Some(of @ (Value::Function(_) | Value::Class(_) | Value::Builtin(_))) => {
                    self.out.attributes.push((of, name.clone()))
                }
                Some(Value::Instance(of)) if super::class::own_setter(&of.class).is_none() => {
                    self.out.attributes.push((Value::Instance(of), name.clone()));
                }
                _ => self.change(object, frame),
            },
            ExprKind::Subscript(object, _) => {
                if matches!(&object.kind, ExprKind::Call(callee, _) if matches!(&callee.kind, ExprKind::Name(n) if matches!(&**n, "globals" | "locals")))
                {
                    self.out.everything = true;
                }
                self.change(object, frame);
            }
            _ => {}
        }
    }

    /// The objects that an expression gives may change.
    fn change(&mut self, e: &Expr, frame: &mut Frame<'_>) {
        let mut origins = Origins::default();
        self.origins(e, frame, true, &mut Vec::new(), &mut origins);
        self.out.changed.append(&mut origins.values);
        frame.changes_params |= origins.params;
        frame.changes_nested |= origins.nested;
    }

    /// The holders of the objects that `e` may return. `whole`: the object itself, not only a part of it.
    fn origins(&mut self, e: &Expr, frame: &Frame<'_>, whole: bool, seen: &mut Vec<Name>, out: &mut Origins) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || (whole && is_fresh(e)) {
            return;
        }
        // a function's result may be any of its visible objects
        if let ExprKind::Call(callee, _) = &e.kind
            && let Some(Value::Function(function)) = self.value_of(callee, frame)
        {
            out.values.extend(self.seen_by(&function));
        }
        let ExprKind::Name(name) = &e.kind else {
            walk::parts(e, &mut |part| self.origins(part, frame, false, seen, out));
            return;
        };
        if seen.contains(name) || frame.fresh.as_ref() == Some(name) {
            return;
        }
        seen.push(name.clone());
        out.params |= frame.params.contains(name);
        out.nested |= frame.nested.contains(name);
        for source in frame.sources.get(name).into_iter().flatten() {
            self.origins(source, frame, whole, seen, out);
        }
        if frame.is_own(name) {
            return;
        }
        match frame.scope.get(name) {
            // a failed statement's result may reference its arguments
            Some(Value::Missing(fault)) => out.values.extend(self.cx.used_by(&fault)),
            value => out.values.extend(value),
        }
    }

    /// The values of the names that a function's body reads around itself.
    fn seen_by(&mut self, function: &Rc<FunctionValue>) -> Vec<Value> {
        let def = function.def.clone();
        let frame = Frame::of_function(function, &def);
        let mut out = Vec::new();
        let mut look = |e: &Expr| {
            walk::within(e, &mut |e| {
                if let ExprKind::Name(name) = &e.kind
                    && !frame.is_own(name)
                {
                    let value = frame.scope.get(name);
                    out.extend(value.filter(|v| !matches!(v, Value::Function(_) | Value::Builtin(_))));
                }
            })
        };
        match &def.body {
            Body::Expr(e) => look(e),
            Body::Block(body) => {
                let mut all = |s: &Stmt| walk::own_expressions(s, &mut look);
                body.iter().for_each(|s| walk::statements(s, &mut all));
            }
        }
        out
    }

    fn expression<'f>(&mut self, e: &'f Expr, frame: &mut Frame<'f>) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return;
        }
        match &e.kind {
            ExprKind::Name(name) if !frame.is_own(name) => self.named(name, frame),
            ExprKind::Attribute(..) => {
                // a property runs
                if let Some(Value::Function(function)) = self.value_of(e, frame)
                    && self.function(&function)
                    && let ExprKind::Attribute(object, _) = &e.kind
                {
                    self.change(object, frame);
                }
            }
            ExprKind::Call(callee, arguments) => {
                self.call(callee, arguments, frame);
                // the object that is made does not hold its class: who changes it later leaves the class as it is
                if let ExprKind::Name(_) = &callee.kind
                    && let Some(Value::Class(class)) = self.value_of(callee, frame)
                    && is_fixed(&class)
                {
                    return arguments.iter().for_each(|a| self.expression(walk::argument(a), frame));
                }
            }
            _ => {}
        }
        walk::parts(e, &mut |part| self.expression(part, frame));
    }

    /// A name is read: a function may be called by its receiver, and operators of an object may run.
    fn named(&mut self, name: &Name, frame: &mut Frame<'_>) {
        let Some(value) = frame.scope.get(name) else { return };
        match &value {
            Value::Function(function) => drop(self.function(&function.clone())),
            Value::Class(class) => drop(self.made(&class.clone())),
            Value::Missing(fault) => {
                let used = self.cx.used_by(fault);
                self.out.used.extend(used);
            }
            Value::Instance(object) => {
                let operators: Vec<Value> = {
                    let members = object.class.members.borrow();
                    let is_operator = |k: &Value| k.as_str().is_some_and(|n| n.starts_with("__") && n != "__init__");
                    members.0.iter().filter(|(k, _)| is_operator(k)).map(|(_, v)| v.clone()).collect()
                };
                for member in operators {
                    if let Value::Function(function) = member
                        && self.function(&function)
                    {
                        self.out.changed.push(value.clone());
                    }
                }
            }
            _ => {}
        }
        self.out.used.push(value);
    }

    /// `with item`: its class's own methods run.
    fn entered(&mut self, item: &Expr, frame: &mut Frame<'_>) {
        let callee = if let ExprKind::Call(callee, _) = &item.kind { callee } else { item };
        let class = match self.value_of(callee, frame) {
            Some(Value::Class(class)) => class,
            Some(Value::Instance(object)) => object.class.clone(),
            _ => return,
        };
        for method in ["__enter__", "__exit__"] {
            if let Some(Value::Function(function)) = member_of(&class, method)
                && self.function(&function)
            {
                self.change(item, frame);
            }
        }
    }

    fn call<'f>(&mut self, callee: &'f Expr, arguments: &'f [Argument], frame: &mut Frame<'f>) {
        let known = self.value_of(callee, frame);
        let change = match &known {
            Some(value) => self.called(value),
            None => match &callee.kind {
                ExprKind::Attribute(object, method) => self.method(object, method, frame),
                _ => Change::Unknown,
            },
        };
        let in_place = arguments.iter().any(|a| match a {
            Argument::Keyword(name, _) if &**name == "out" => true,
            Argument::Keyword(name, e) if &**name == "inplace" => !matches!(e.kind, ExprKind::Bool(false)),
            _ => false,
        });
        self.out.draws |= matches!(change, Change::Draws | Change::Unknown);
        self.out.everything |= change == Change::Everything;
        let first = || arguments.first().map(walk::argument);
        match change {
            Change::All | Change::Unknown => {
                if let ExprKind::Attribute(object, _) = &callee.kind {
                    self.change(object, frame);
                } else if known.is_none() {
                    self.change(callee, frame);
                }
                arguments.iter().for_each(|a| self.change(walk::argument(a), frame));
            }
            Change::First => first().into_iter().for_each(|e| self.change(e, frame)),
            Change::Receiver => {
                if let ExprKind::Attribute(object, _) = &callee.kind {
                    self.change(object, frame);
                }
            }
            Change::Nothing | Change::Draws | Change::Everything => {
                let callbacks = arguments.iter().any(|a| match self.value_of(walk::argument(a), frame) {
                    Some(Value::Function(function)) => self.function(&function),
                    _ => false,
                });
                if in_place || callbacks {
                    arguments.iter().for_each(|a| self.change(walk::argument(a), frame));
                }
            }
        }
    }

    /// The possible changes of calling a value.
    fn called(&mut self, value: &Value) -> Change {
        let of_body = |changes: bool| if changes { Change::All } else { Change::Nothing };
        match value {
            Value::Builtin(name) => change_of(self.cx.library, name),
            Value::Function(function) => of_body(self.function(function)),
            Value::Class(class) => of_body(self.made(class)),
            Value::Partial(partial) => {
                let change = self.called(&partial.function);
                if change != Change::Nothing {
                    let bound = partial.args.positional.iter().chain(partial.args.keyword.iter().map(|(_, v)| v));
                    self.out.changed.extend(bound.cloned());
                }
                change
            }
            Value::Instance(object) => {
                let method = member_of(&object.class, "__call__").or_else(|| member_of(&object.class, "forward"));
                match method {
                    Some(Value::Function(function)) if self.function(&function) => {
                        self.out.changed.push(value.clone());
                        Change::All
                    }
                    Some(Value::Function(_)) => Change::Nothing,
                    _ => Change::Unknown,
                }
            }
            Value::Import(import) if is_pure_library(&import.0) => Change::Nothing,
            Value::DType(_) => Change::Nothing,
            _ => Change::Unknown,
        }
    }

    /// The possible changes of a method of an unknown value, or of a value that is not an object of the text.
    fn method(&mut self, object: &Expr, method: &Name, frame: &mut Frame<'_>) -> Change {
        let receiver = self.value_of(object, frame);
        match &receiver {
            Some(Value::Import(import)) if is_pure_library(&import.0) => return Change::Nothing,
            Some(Value::Module(module)) if is_pure_library(&module.name) => return Change::Nothing,
            // functions of a library that is not there
            Some(Value::Import(_) | Value::Module(_)) => return Change::Unknown,
            Some(Value::Opaque(_)) => return Change::Receiver,
            _ if changes(method) => return Change::Receiver,
            Some(Value::Instance(_) | Value::Missing(_) | Value::Class(_)) | None => {}
            Some(_) => return Change::Nothing,
        }
        let is_super = matches!(&object.kind, ExprKind::Call(callee, _) if matches!(&callee.kind, ExprKind::Name(n) if &**n == "super"));
        let classes = frame.scope.module().names().into_iter().filter_map(|(_, v)| match v {
            Value::Class(class) => Some(class),
            _ => None,
        });
        let classes: Vec<Rc<ClassValue>> = classes.collect();
        let mut found = false;
        for class in classes {
            if let Some(Value::Function(function)) = member_of(&class, method) {
                found = true;
                if self.function(&function) {
                    return Change::All;
                }
            }
        }
        if found || is_super || harmless(self.cx.library, method) { Change::Nothing } else { Change::Unknown }
    }

    /// Walks a function once; whether it changes what its arguments hold.
    fn function(&mut self, function: &Rc<FunctionValue>) -> bool {
        let key = Rc::as_ptr(function);
        if let Some(changes) = self.known.get(&key) {
            return *changes;
        }
        // a recursive function may pass on its arguments
        self.known.insert(key, true);
        let changes = self.walked(function, None);
        self.known.insert(key, changes);
        changes
    }

    fn walked(&mut self, function: &Rc<FunctionValue>, fresh: Option<Name>) -> bool {
        let def = function.def.clone();
        let mut frame = Frame::of_function(function, &def);
        frame.fresh = fresh;
        match &def.body {
            Body::Expr(e) => self.expression(e, &mut frame),
            Body::Block(body) => self.block(body, &mut frame),
        }
        let (params, nested) = (frame.changes_params, frame.changes_nested);
        if nested {
            let seen = self.seen_by(function);
            self.out.changed.extend(seen);
        }
        params || nested
    }

    /// Walks what makes an object of a class; whether that changes what its arguments hold.
    fn made(&mut self, class: &Rc<ClassValue>) -> bool {
        let mut changes = false;
        for method in ["__new__", "__init__", "__post_init__"] {
            if let Some(Value::Function(function)) = member_of(class, method) {
                let key = Rc::as_ptr(&function);
                if let Some(known) = self.known.get(&key) {
                    changes |= *known;
                    continue;
                }
                self.known.insert(key, true);
                let own = function.def.params.first().map(|p| p.name.clone());
                let walked = self.walked(&function, own);
                self.known.insert(key, walked);
                changes |= walked;
            }
        }
        changes
    }

    /// The value of a name or of a path of attributes, if known without running anything.
    fn value_of(&mut self, e: &Expr, frame: &Frame<'_>) -> Option<Value> {
        match &e.kind {
            ExprKind::Name(name) if frame.is_own(name) => None,
            ExprKind::Name(name) => match frame.scope.get(name) {
                Some(import @ Value::Import(_)) => Some(self.cx.use_value(import.clone()).unwrap_or(import)),
                Some(value) => Some(value),
                None => {
                    let hidden = matches!(&**name, "globals" | "locals" | "exec" | "eval" | "compile" | "__import__");
                    let builtin = super::expression::builtin_named(self.cx.library, name)
                        .or_else(|| hidden.then(|| name.clone()));
                    builtin.map(Value::Builtin)
                }
            },
            ExprKind::Attribute(object, name) => match self.value_of(object, frame)? {
                Value::Builtin(module) => Some(Value::Builtin(super::call::dotted(&module, name).into())),
                Value::Module(module) => match module.scope.own(name) {
                    None if is_pure_library(&module.name) => {
                        Some(Value::Import(Rc::new((module.name.clone(), Some(name.clone())))))
                    }
                    own => own,
                },
                Value::Class(class) => member_of(&class, name),
                Value::Instance(object) => {
                    let own = object.attributes.borrow().named(name);
                    own.or_else(|| member_of(&object.class, name))
                }
                Value::Import(import) if is_pure_library(&import.0) => Some(Value::Import(import)),
                _ => None,
            },
            _ => None,
        }
    }
}
