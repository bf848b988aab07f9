//! A nested function, created without calling the function around it: `Attn.forward.mask_mod`.
//!
//! Invariant: the surrounding statements run in their order up to its use; a value that only a caller could pass is
//! passed by name or is a fault for its readers. Must not know which function is wanted, nor why.

use super::Context;
use super::class::member_of;
use super::statement::{Flow, name_value};
use crate::python::syntax::ast::*;
use crate::python::syntax::binds::bound_by;
use crate::python::syntax::walk;
use crate::python::value::scope::{Kind, Scope};
use crate::python::value::{Args, Class as ClassValue, Fault, Function as FunctionValue, Instance, Pairs, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Values from outside, by name; `self.window` gives an attribute.
pub(crate) type Given = [(Name, Value)];

impl Context<'_> {
    /// The function `name` inside `outer`, in the state at its use. `owner`: the class of the method `outer`.
    pub(crate) fn function_inside(
        &mut self,
        outer: &Rc<FunctionValue>,
        owner: Option<&Rc<ClassValue>>,
        name: &str,
        given: &Given,
    ) -> Result<Value, Fault> {
        let def = outer.def.clone();
        let Body::Block(body) = &def.body else { return Err(not_inside(&def.name, name)) };
        let scope = Scope::new(Kind::Function, Some(outer.scope.clone()));
        self.register(&scope);
        if let Some(class) = owner {
            scope.set(&"__class__".into(), Value::Class(class.clone()));
        }
        self.bind_given(outer, owner, given, &scope)?;
        let skipped = self.skipped.len();
        self.frames.push(scope.clone());
        let found = self.run_to(body, name, given, &scope);
        self.frames.pop();
        // the rest of the function is not needed here
        self.skipped.truncate(skipped);
        if !found? {
            return Err(not_inside(&def.name, name));
        }
        let made = scope.own(name).ok_or_else(|| not_inside(&def.name, name))?;
        self.use_value(made)
    }

    /// The object of a method, created from the passed values.
    pub(crate) fn object_given(&mut self, class: &Rc<ClassValue>, root: &str, given: &Given) -> Result<Value, Fault> {
        let object = self.bare(class)?;
        let value = Value::Instance(object.clone());
        if let Some(Value::Function(init)) = member_of(class, "__init__") {
            let scope = Scope::new(Kind::Function, Some(init.scope.clone()));
            self.register(&scope);
            scope.set(&"__class__".into(), Value::Class(class.clone()));
            let def = init.def.clone();
            if let (Some(own), Body::Block(body)) = (def.params.first(), &def.body) {
                scope.set(&own.name, value.clone());
                self.bind_params(&init, 1, given, &scope)?;
                let skipped = self.skipped.len();
                self.frames.push(scope.clone());
                let ran = self.run_skipping(body, given, &scope);
                self.frames.pop();
                self.skipped.truncate(skipped);
                ran?;
            }
        }
        for (path, attribute) in attributes_of(root, given) {
            set_path(&object, path, attribute);
        }
        Ok(value)
    }

    fn bind_given(
        &mut self,
        outer: &Rc<FunctionValue>,
        owner: Option<&Rc<ClassValue>>,
        given: &Given,
        scope: &Rc<Scope>,
    ) -> Result<(), Fault> {
        let is_static = python::candidates::is_static(&outer.def);
        let mut from = 0;
        if let (Some(class), Some(own), false) = (owner, outer.def.params.first(), is_static) {
            let is_classmethod = outer.attributes.borrow().named("classmethod").is_some();
            let object = is_classmethod.then(|| Value::Class(class.clone()));
            let object = object.map_or_else(|| self.object_given(class, &own.name, given), Ok)?;
            scope.set(&own.name, object);
            from = 1;
        }
        self.bind_params(outer, from, given, scope)?;
        // names that the function binds itself
        for (name, value) in given.iter().filter(|(n, _)| !n.contains('.')) {
            if scope.own(name).is_none() {
                scope.set(name, value.clone());
            }
        }
        Ok(())
    }

    fn bind_params(
        &mut self,
        function: &Rc<FunctionValue>,
        from: usize,
        given: &Given,
        scope: &Rc<Scope>,
    ) -> Result<(), Fault> {
        let def = &function.def;
        for (param, default) in def.params.iter().zip(&function.defaults).skip(from) {
            let own = given.iter().find(|(n, _)| *n == param.name).map(|(_, v)| v.clone());
            let own = own.or_else(|| namespace(&param.name, given));
            let value = own.or_else(|| default.clone()).unwrap_or_else(|| match param.mode {
                ParamMode::VarArgs => Value::tuple(Vec::new()),
                ParamMode::KwArgs => Value::Dict(Rc::default()),
                _ => Value::Missing(Rc::new(not_given(&param.name, &def.name).at(param.span))),
            });
            name_value(&value, &param.name);
            scope.set(&param.name, value);
        }
        Ok(())
    }

    /// Runs statements one by one, continuing after failures; passed names keep their values. Returns how it ended
    /// early.
    fn run_skipping(&mut self, body: &[Stmt], given: &Given, scope: &Rc<Scope>) -> Result<Option<Flow>, Fault> {
        for statement in body {
            if is_given(statement, given) {
                continue;
            }
            match self.statement(statement, scope) {
                Ok(Flow::Next) => {}
                Ok(flow) => return Ok(Some(flow)),
                Err(fault) if fault.fatal => return Err(fault),
                Err(fault) => self.skip(statement, fault.at(statement.span), scope),
            }
        }
        Ok(None)
    }

    /// Runs a block up to the use of the function `name` defined in it or in a block inside. False: it is not there.
    fn run_to(&mut self, body: &[Stmt], name: &str, given: &Given, scope: &Rc<Scope>) -> Result<bool, Fault> {
        let Some(at) = body.iter().position(|s| defines(s, name)) else { return Ok(false) };
        if self.run_skipping(&body[..at], given, scope)?.is_some() {
            return Ok(false);
        }
        if is_definition(&body[at], name) {
            self.run_skipping(&body[at..=at], given, scope)?;
            // statements between it and its use may still change its variables
            let rest = &body[at + 1..];
            let end = rest.iter().position(|s| uses(s, name)).map_or(rest.len(), |used| used + 1);
            self.run_skipping(&rest[..end], given, scope)?;
            return Ok(true);
        }
        // the user who names it means the branch that contains it
        for block in walk::blocks(&body[at]) {
            if self.run_to(block, name, given, scope)? {
                let rest = &body[at + 1..];
                if let Some(used) = rest.iter().position(|s| uses(s, name)) {
                    self.run_skipping(&rest[..=used], given, scope)?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a plain assignment binds only names that are given.
pub(super) fn is_given(statement: &Stmt, given: &Given) -> bool {
    if given.is_empty() || !matches!(statement.kind, StmtKind::Assign { .. } | StmtKind::AnnAssign { .. }) {
        return false;
    }
    let mut names = Vec::new();
    bound_by(statement, &mut names);
    !names.is_empty() && names.iter().all(|n| given.iter().any(|(g, _)| g == n))
}

fn is_definition(s: &Stmt, name: &str) -> bool {
    match &s.kind {
        StmtKind::Function(def) => *def.name == *name,
        StmtKind::Assign { targets, value: Expr { kind: ExprKind::Lambda(_), .. } } => {
            matches!(&targets[..], [Expr { kind: ExprKind::Name(n), .. }] if **n == *name)
        }
        _ => false,
    }
}

fn defines(s: &Stmt, name: &str) -> bool {
    let mut found = false;
    walk::statements(s, &mut |s| found |= is_definition(s, name));
    found
}

/// Whether a statement passes the function on.
fn uses(s: &Stmt, name: &str) -> bool {
    let mut found = false;
    walk::statements(s, &mut |s| {
        walk::own_expressions(s, &mut |e| {
            walk::within(e, &mut |e| found |= matches!(&e.kind, ExprKind::Name(n) if **n == *name))
        })
    });
    found
}

/// The values passed under `root.`, with their paths.
fn attributes_of<'g>(root: &str, given: &'g Given) -> impl Iterator<Item = (&'g str, Value)> {
    let root = format!("{root}.");
    given.iter().filter_map(move |(name, value)| Some((name.strip_prefix(&root)?, value.clone())))
}

/// An object whose attributes are the values passed under `root.`; None without any.
pub(crate) fn namespace(root: &str, given: &Given) -> Option<Value> {
    let mut all = attributes_of(root, given).peekable();
    all.peek()?;
    let object = empty_object(root);
    for (path, value) in all {
        set_path(&object, path, value);
    }
    Some(Value::Instance(object))
}

/// An object of which nothing is given.
pub(crate) fn nothing_given(name: &str) -> Value {
    Value::Instance(empty_object(name))
}

/// Base of objects created from passed values.
const GIVEN: &str = "given";

/// Whether an object was created from passed values, so that more can be added.
pub(super) fn is_given_object(object: &Instance) -> bool {
    object.class.bases.0.iter().any(|b| matches!(b, Value::Builtin(name) if &**name == GIVEN))
}

fn empty_object(name: &str) -> Rc<Instance> {
    let bases = python::value::Items(vec![Value::Builtin(GIVEN.into())]);
    let class = ClassValue { name: name.into(), bases, members: RefCell::default(), fields: None };
    Rc::new(Instance { class: Rc::new(class), attributes: RefCell::new(Pairs::default()) })
}

/// Sets `object.a.b`, creating missing objects in between.
pub(crate) fn set_path(object: &Rc<Instance>, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        name_value(&value, &path.into());
        object.attributes.borrow_mut().set_named(&path.into(), value);
        return;
    };
    let inner = match object.attributes.borrow().named(first) {
        Some(Value::Instance(inner)) => inner,
        _ => empty_object(first),
    };
    set_path(&inner, rest, value);
    object.attributes.borrow_mut().set_named(&first.into(), Value::Instance(inner));
}

fn not_inside(outer: &str, name: &str) -> Fault {
    Fault::new("NameError", "entry-not-found", format!("`{outer}` has no function `{name}` inside"))
        .hint("write its full name: OUTER.INNER, or CLASS.METHOD.INNER")
}

fn not_given(name: &str, function: &str) -> Fault {
    let message = format!("`{name}` is a parameter of `{function}`, which is not called here");
    Fault::new("NameError", "not-given", message).hint(format!(
        "pass it: `--arg {name}=VALUE`, `--arg {name}.ATTRIBUTE=VALUE`, or a tensor of that name with `--tensors`"
    ))
}

impl Context<'_> {
    /// A method as a function of its other parameters, with its object created from passed values.
    pub(crate) fn method_given(
        &mut self,
        class: &Rc<ClassValue>,
        method: &Rc<FunctionValue>,
        given: &Given,
    ) -> Result<Value, Fault> {
        if python::candidates::is_static(&method.def) {
            return Ok(Value::Function(method.clone()));
        }
        let own = method.def.params.first().map_or("self".into(), |p| p.name.clone());
        let object = self.object_given(class, &own, given)?;
        let args = Args::of(vec![Value::Class(class.clone()), Value::Function(method.clone()), object]);
        Ok(self.bound(Value::Builtin("method".into()), args))
    }
}
