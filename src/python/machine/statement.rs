//! Statements.
//!
//! Invariant: a failing statement of a module binds its names to the fault, so that independent code still runs. Must
//! not know the details of expressions.

use super::Context;
use super::changes::{Role, is_inert};
use super::effects::bound_names;
use crate::base::{Diagnostic, Span};
use crate::ir::graph::Op;
use crate::python::syntax::Name;
use crate::python::syntax::ast::*;
use crate::python::value::scope::{Kind, Scope};
use crate::python::value::{Args, Fault, Function as FunctionValue, Pairs, VALUE_BYTES, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// How a block ended.
pub(super) enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
}

impl Context<'_> {
    /// Runs a module's statements, skipping failing ones.
    pub(super) fn run_module(&mut self, body: &[Stmt], scope: &Rc<Scope>) -> Result<(), Fault> {
        let given = if body.first().is_some_and(|s| s.span.source.0 == 0) { self.given.clone() } else { Vec::new() };
        for statement in body {
            if super::inside::is_given(statement, &given) {
                continue;
            }
            let ran = self.statement(statement, scope);
            if !given.is_empty() {
                give_attributes(statement, &given, scope);
            }
            if let Err(fault) = ran {
                let fault = fault.at(statement.span);
                if fault.fatal {
                    return Err(fault);
                }
                self.skip(statement, fault, scope);
            }
        }
        Ok(())
    }

    pub(super) fn block(&mut self, body: &[Stmt], scope: &Rc<Scope>) -> Result<Flow, Fault> {
        for (at, statement) in body.iter().enumerate() {
            match self.statement(statement, scope) {
                Ok(Flow::Next) => {}
                Ok(other) => return Ok(other),
                Err(fault) => {
                    let fault = self.branch_rewrite(fault, statement, &body[at + 1..], scope);
                    self.recovered(fault, statement, scope)?;
                }
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn statement(&mut self, statement: &Stmt, scope: &Rc<Scope>) -> Result<Flow, Fault> {
        self.charge_steps(1).map_err(|f| f.at(statement.span))?;
        self.deeper(|cx| cx.statement_kind(statement, scope)).map_err(|f| f.at(statement.span))
    }

    fn statement_kind(&mut self, statement: &Stmt, scope: &Rc<Scope>) -> Result<Flow, Fault> {
        match &statement.kind {
            StmtKind::Expr(e) => drop(self.eval(e, scope)?),
            StmtKind::Return(e) => {
                let value = e.as_ref().map_or(Ok(Value::None), |e| self.eval(e, scope))?;
                return Ok(Flow::Return(value));
            }
            StmtKind::Assign { targets, value } => {
                let value = self.eval(value, scope)?;
                for target in targets {
                    self.assign(target, value.clone(), scope)?;
                }
            }
            StmtKind::AugAssign { target, op, value } => self.augmented(target, *op, value, scope, statement)?,
            StmtKind::AnnAssign { target, value, .. } => {
                if let Some(value) = value {
                    let value = self.eval(value, scope)?;
                    self.assign(target, value, scope)?;
                }
            }
            StmtKind::If(branches) => return self.branches(branches, scope),
            StmtKind::For { target, iter, body, orelse } => return self.for_loop(target, iter, body, orelse, scope),
            StmtKind::While { test, body, orelse } => return self.while_loop(test, body, orelse, scope),
            StmtKind::Function(def) => self.define(def, scope)?,
            StmtKind::Class(class) => self.define_class(class, scope)?,
            StmtKind::With(with) => return self.with_items(with, 0, scope),
            StmtKind::Raise(e) => return Err(self.raised(e.as_ref(), scope)?),
            StmtKind::Try { body, handlers, orelse, finally } => {
                return self.try_statement(body, handlers, orelse, finally, scope);
            }
            StmtKind::Match { subject, cases } => return self.match_statement(subject, cases, scope),
            StmtKind::Assert { test, message } => self.assertion(test, message.as_ref(), statement.span, scope)?,
            StmtKind::Import(names) => self.import(names, scope)?,
            StmtKind::ImportFrom { module, level, names } => self.import_from(module, *level, names, scope)?,
            StmtKind::Global(names) => scope.declare(names, true),
            StmtKind::Nonlocal(names) => scope.declare(names, false),
            StmtKind::Delete(targets) => {
                for target in targets {
                    self.delete(target, scope)?;
                }
            }
            StmtKind::Pass => {}
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::Unsupported(what) => {
                return Err(Fault::unsupported(format!("{what} is not supported here"))
                    .hint("write the mask with if, for and plain expressions"));
            }
        }
        Ok(Flow::Next)
    }

    fn branches(&mut self, branches: &[(Option<Expr>, Vec<Stmt>)], scope: &Rc<Scope>) -> Result<Flow, Fault> {
        for (test, body) in branches {
            let holds = match test {
                Some(test) => self.condition(test, scope, "if")?,
                None => true,
            };
            if holds {
                return self.block(body, scope);
            }
        }
        Ok(Flow::Next)
    }

    fn while_loop(&mut self, test: &Expr, body: &[Stmt], orelse: &[Stmt], scope: &Rc<Scope>) -> Result<Flow, Fault> {
        while self.condition(test, scope, "while")? {
            self.charge_steps(1)?;
            match self.block(body, scope)? {
                Flow::Break => return Ok(Flow::Next),
                Flow::Return(value) => return Ok(Flow::Return(value)),
                Flow::Next | Flow::Continue => {}
            }
        }
        self.block(orelse, scope)
    }

    fn for_loop(
        &mut self,
        target: &Expr,
        iter: &Expr,
        body: &[Stmt],
        orelse: &[Stmt],
        scope: &Rc<Scope>,
    ) -> Result<Flow, Fault> {
        let iterable = self.eval(iter, scope)?;
        let mut items = self.iterate(&iterable).map_err(|f| f.at(iter.span))?;
        while let Some(item) = items.next(self)? {
            self.charge_steps(1)?;
            self.assign(target, item, scope)?;
            match self.block(body, scope)? {
                Flow::Break => return Ok(Flow::Next),
                Flow::Return(value) => return Ok(Flow::Return(value)),
                Flow::Next | Flow::Continue => {}
            }
        }
        self.block(orelse, scope)
    }

    fn define(&mut self, def: &Rc<Function>, scope: &Rc<Scope>) -> Result<(), Fault> {
        let function = self.function(def, scope)?;
        let function = match self.decorated(function, &def.decorators, scope) {
            // a method that cannot be made leaves the other methods as they are
            Err(fault) if !fault.fatal && scope.kind() == Kind::Class => Value::Missing(Rc::new(fault)),
            other => other?,
        };
        scope.set(&def.name, function);
        Ok(())
    }

    /// A function value that closes over `scope`.
    pub(super) fn function(&mut self, def: &Rc<Function>, scope: &Rc<Scope>) -> Result<Value, Fault> {
        let mut defaults = Vec::with_capacity(def.params.len());
        for param in &def.params {
            let default = param.default.as_ref().map(|d| self.eval_default(d, scope)).transpose()?;
            defaults.push(default);
        }
        let scope = scope.for_closures();
        self.register(&scope);
        let attributes = RefCell::new(Pairs::default());
        Ok(Value::Function(Rc::new(FunctionValue { def: def.clone(), defaults, scope, attributes })))
    }

    /// A default that cannot be made becomes missing: the caller may pass the argument.
    fn eval_default(&mut self, default: &Expr, scope: &Rc<Scope>) -> Result<Value, Fault> {
        match self.eval(default, scope) {
            Err(fault) if !fault.fatal => Ok(Value::Missing(Rc::new(fault))),
            other => other,
        }
    }

    /// Applies the text's own decorators; those of Python and PyTorch change nothing that matters here.
    pub(super) fn decorated(&mut self, value: Value, decorators: &[Expr], scope: &Rc<Scope>) -> Result<Value, Fault> {
        self.decorated_by(value, &decorators.iter().collect::<Vec<_>>(), scope)
    }

    /// The same for some of them.
    pub(super) fn decorated_by(
        &mut self,
        mut value: Value,
        decorators: &[&Expr],
        scope: &Rc<Scope>,
    ) -> Result<Value, Fault> {
        for decorator in decorators.iter().rev().copied() {
            let callee = if let ExprKind::Call(callee, _) = &decorator.kind { callee } else { decorator };
            if let ExprKind::Attribute(of, part) = &callee.kind
                && matches!(&**part, "setter" | "deleter" | "getter")
                && let Ok(Value::Function(getter)) = self.eval(of, scope)
            {
                getter.attributes.borrow_mut().set_named(part, value);
                value = Value::Function(getter);
                continue;
            }
            let found = match self.eval(callee, scope) {
                Err(_) if self.is_passed_over(callee, scope) => continue,
                found => found?,
            };
            match &found {
                Value::Builtin(name) if is_inert(name, Role::Decorator) => {
                    if let (Value::Function(f), "torch.no_grad" | "torch.inference_mode") = (&value, &**name) {
                        f.attributes.borrow_mut().set_named(&super::call::NO_GRAD.into(), Value::Bool(true));
                    }
                    continue;
                }
                Value::Builtin(name) => {
                    if let (
                        Value::Function(f),
                        "property" | "staticmethod" | "classmethod" | "functools.cached_property",
                    ) = (&value, &**name)
                    {
                        let kind = name.rsplit('.').next().unwrap_or(name);
                        f.attributes.borrow_mut().set_named(&kind.into(), Value::Bool(true));
                        continue;
                    }
                }
                _ => {}
            }
            let function = self.eval(decorator, scope)?;
            self.span = decorator.span;
            value = self.call(&function, super::call::one(value)).map_err(|f| f.at(decorator.span))?;
        }
        Ok(value)
    }

    /// Whether a decorator comes from a library that is not there and that only checks or measures.
    fn is_passed_over(&self, callee: &Expr, scope: &Rc<Scope>) -> bool {
        let mut root = callee;
        while let ExprKind::Attribute(inner, _) | ExprKind::Call(inner, _) = &root.kind {
            root = inner;
        }
        let ExprKind::Name(name) = &root.kind else { return false };
        matches!(scope.get(name), Some(Value::Import(import)) if super::import::is_pure_library(&import.0)
            || super::import::only_checks(&import.0))
    }

    /// The fault that `raise` makes.
    fn raised(&mut self, e: Option<&Expr>, scope: &Rc<Scope>) -> Result<Fault, Fault> {
        let Some(e) = e else {
            let said = self.handled.as_ref().map_or(0, |fault| fault.diagnostic.message.len());
            self.charge_bytes(said as u64)?;
            let again = || Fault::new("RuntimeError", "raised", "the code raises an error again");
            return Ok(self.handled.clone().unwrap_or_else(again));
        };
        let value = self.eval(e, scope)?;
        self.span = e.span;
        let value = match value {
            class @ Value::Class(_) => self.call(&class, Args::default())?,
            other => other,
        };
        // its message is copied into the diagnostic
        self.charge_text(&value)?;
        super::exception::raised(value).map(|f| f.at(e.span)).map_err(|f| f.at(e.span))
    }

    fn assertion(
        &mut self,
        test: &Expr,
        message: Option<&Expr>,
        statement: Span,
        scope: &Rc<Scope>,
    ) -> Result<(), Fault> {
        let value = self.eval(test, scope)?;
        if value.is_symbolic() {
            let fault = super::super::diagnose::branch("assert", self.text_of(test.span)).at(test.span);
            return Err(fault.rewrite(statement, "pass"));
        }
        if self.truth(&value).map_err(|f| f.at(test.span))? {
            return Ok(());
        }
        let said = match message {
            Some(message) => {
                let value = self.eval(message, scope)?;
                self.charge_text(&value)?;
                super::text(&value)
            }
            None => format!("`{}` does not hold", self.text_of(test.span)),
        };
        Err(Fault::new("AssertionError", "assertion", said)
            .hint("the code itself raises this: change the arguments")
            .at(test.span))
    }

    fn try_statement(
        &mut self,
        body: &[Stmt],
        handlers: &[Handler],
        orelse: &[Stmt],
        finally: &[Stmt],
        scope: &Rc<Scope>,
    ) -> Result<Flow, Fault> {
        self.trying += usize::from(!handlers.is_empty());
        let result = self.block(body, scope);
        self.trying -= usize::from(!handlers.is_empty());
        let result = match result {
            Ok(Flow::Next) => self.block(orelse, scope),
            Err(fault) if !fault.fatal => {
                if fault.python && fault.diagnostic.code == "unknown-module" {
                    self.guard(&fault, [body, orelse].into_iter().chain(handlers.iter().map(|h| &h.body[..])));
                }
                self.handle(fault, handlers, scope)
            }
            other => other,
        };
        match self.block(finally, scope)? {
            Flow::Next => result,
            other => Ok(other),
        }
    }

    /// Runs the clause that catches a fault. A fault that only means "not supported here" is not caught: Python may
    /// behave differently.
    fn handle(&mut self, fault: Fault, handlers: &[Handler], scope: &Rc<Scope>) -> Result<Flow, Fault> {
        if !fault.python {
            return Err(fault);
        }
        for handler in handlers {
            let catches = match &handler.class {
                None => true,
                Some(class) => {
                    let class = self.eval(class, scope)?;
                    super::exception::catches(&class, &fault)
                }
            };
            if catches {
                if let Some(name) = &handler.name {
                    scope.set(name, super::exception::caught(&fault));
                }
                let outer = self.handled.replace(fault);
                let result = self.block(&handler.body, scope);
                self.handled = outer;
                if let Some(name) = &handler.name {
                    scope.remove(name);
                }
                return result;
            }
        }
        Err(fault)
    }

    /// Records which names depend on a missing module: they are reported when they are read.
    fn guard<'s>(&mut self, fault: &Fault, blocks: impl Iterator<Item = &'s [Stmt]>) {
        let missing = &fault.diagnostic.message;
        let mut reported = Diagnostic::warning(
            "absent-module",
            format!(
                "{missing}, so the code runs its `except` branch; with the module installed Python runs the other branch"
            ),
        )
        .hint("name the folder that contains it, `--package DIR`, or remove the unwanted branch");
        reported.labels = fault.diagnostic.labels.clone();
        for name in blocks.flatten().flat_map(bound_names) {
            self.guarded.push((name, reported.clone()));
        }
    }

    /// Warns of a name that a guarded import decided.
    pub(super) fn tell_guarded(&mut self, name: &Name) {
        if let Some(at) = self.guarded.iter().position(|(n, _)| n == name) {
            let (_, reported) = self.guarded.remove(at);
            self.warn(reported);
        }
    }

    fn augmented(
        &mut self,
        target: &Expr,
        op: BinOp,
        value: &Expr,
        scope: &Rc<Scope>,
        statement: &Stmt,
    ) -> Result<(), Fault> {
        let old = self.eval(target, scope)?;
        let by = self.eval(value, scope)?;
        self.span = statement.span;
        if let (Value::List(list), BinOp::Add) = (&old, op) {
            let more = self.collect(&by)?;
            self.charge_bytes(VALUE_BYTES * more.len() as u64)?;
            list.borrow_mut().0.extend(more);
            return Ok(());
        }
        if let Some(changed) = self.changed_in_place(op, &old, &by)? {
            return self.assign(target, changed, scope);
        }
        // a tensor changes in place: others that hold it see it. A part that an index copied out goes back.
        if let Value::Tensor(tensor) = &old
            && !by.is_symbolic()
        {
            (self.library.augmented)(op, tensor, &by, self)?;
            return if matches!(target.kind, ExprKind::Subscript(..)) {
                self.assign(target, old, scope)
            } else {
                Ok(())
            };
        }
        let new = self.binary(op, &old, &by)?;
        let in_place = old.is_symbolic() || matches!(old, Value::Tensor(_));
        if !in_place || self.is_inside() {
            return self.assign(target, new, scope);
        }
        self.written_in_place(op, old, new, target, statement, scope)
    }

    /// `s |= t` of a set or dict, `xs *= 2` of a list, and objects with `__iadd__` and similar methods: every holder of
    /// the value sees the change. None for operators that create a new value.
    fn changed_in_place(&mut self, op: BinOp, old: &Value, by: &Value) -> Result<Option<Value>, Fault> {
        if let Value::Instance(object) = old {
            let method = self.instance_method(object, &format!("__i{}__", op.method()));
            return method.map(|method| self.call(&method, Args::of(vec![by.clone()]))).transpose();
        }
        if !matches!(old, Value::Set(_) | Value::Dict(_) | Value::List(_)) {
            return Ok(None);
        }
        match (old, self.binary(op, old, by)?) {
            (Value::Set(own), Value::Set(new)) if !Rc::ptr_eq(own, &new) => *own.borrow_mut() = new.take(),
            (Value::Dict(own), Value::Dict(new)) if !Rc::ptr_eq(own, &new) => *own.borrow_mut() = new.take(),
            (Value::List(own), Value::List(new)) if !Rc::ptr_eq(own, &new) => *own.borrow_mut() = new.take(),
            (_, new) => return Ok(Some(new)),
        }
        Ok(Some(old.clone()))
    }

    /// `n &= 3` of a tensor: PyTorch writes into it, and every holder sees the change.
    fn written_in_place(
        &mut self,
        op: BinOp,
        old: Value,
        new: Value,
        target: &Expr,
        statement: &Stmt,
        scope: &Rc<Scope>,
    ) -> Result<(), Fault> {
        let sign = format!("{}=", op.symbol());
        let plain = |fault: Fault| fault.hint(format!("create a new value: `x = x {} y`", op.symbol()));
        let new = self.in_dtype_of(&old, new, &sign).map_err(plain)?;
        self.same_indices(&old, &new, &sign).map_err(plain)?;
        self.assign(target, new.clone(), scope)?;
        let held = self.holders(&old);
        let others = self.rebind(&old, &new);
        if others < held {
            let message = format!("`{sign}` writes into a value inside a container");
            return Err(plain(Fault::unsupported(message)));
        }
        if let Value::Sym(index) = old
            && let Op::Input(input) = self.graph.node(index.node).op
            && others > 0
        {
            let name = input.name();
            let warning = Diagnostic::warning(
                "writes-index",
                format!("PyTorch writes into {name} itself here: all later reads see the new value"),
            )
            .at(statement.span, "")
            .hint("create a new value: `n = n & 3` instead of `n &= 3`");
            self.warn(warning);
        }
        Ok(())
    }

    fn delete(&mut self, target: &Expr, scope: &Rc<Scope>) -> Result<(), Fault> {
        match &target.kind {
            ExprKind::Name(name) => {
                if !scope.remove(name) {
                    return Err(Fault::new("NameError", "unknown-name", format!("`{name}` is not defined here")));
                }
                Ok(())
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().try_for_each(|i| self.delete(i, scope)),
            ExprKind::Subscript(container, index) => {
                let container = self.eval(container, scope)?;
                let index = self.eval(index, scope)?;
                self.delete_item(&container, &index)
            }
            _ => Err(Fault::unsupported("deleting this is not supported here")),
        }
    }

    /// Binds a target: a name, attribute, item, or a tuple of them.
    pub(super) fn assign(&mut self, target: &Expr, value: Value, scope: &Rc<Scope>) -> Result<(), Fault> {
        match &target.kind {
            ExprKind::Name(name) => {
                name_value(&value, name);
                scope.set(name, value);
                Ok(())
            }
            ExprKind::Attribute(object, name) => {
                name_value(&value, name);
                let object = self.eval(object, scope)?;
                self.set_attribute(&object, name, value)
            }
            ExprKind::Subscript(container, index) => {
                let container = self.eval(container, scope)?;
                let index = self.eval(index, scope)?;
                self.span = target.span;
                self.set_item(&container, &index, value).map_err(|f| f.at(target.span))
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => self.unpack(targets, value, scope, target),
            ExprKind::Starred(inner) => self.assign(inner, value, scope),
            _ => Err(Fault::unsupported("this cannot be assigned").at(target.span)),
        }
    }

    fn unpack(&mut self, targets: &[Expr], value: Value, scope: &Rc<Scope>, whole: &Expr) -> Result<(), Fault> {
        let items = self.collect(&value).map_err(|f| f.at(whole.span))?;
        let star = targets.iter().position(|t| matches!(t.kind, ExprKind::Starred(_)));
        let fits = match star {
            None => items.len() == targets.len(),
            Some(_) => items.len() + 1 >= targets.len(),
        };
        if !fits {
            let message = format!("{} values cannot be unpacked into {} names", items.len(), targets.len());
            return Err(Fault::value_error(message).at(whole.span));
        }
        let mut items = items.into_iter();
        let extra = items.len() + 1 - targets.len().min(items.len() + 1);
        for (at, target) in targets.iter().enumerate() {
            if star == Some(at) {
                let rest: Vec<Value> = items.by_ref().take(extra).collect();
                self.assign(target, Value::list(rest), scope)?;
            } else if let Some(item) = items.next() {
                self.assign(target, item, scope)?;
            }
        }
        Ok(())
    }
}

/// Sets passed values for attributes of an object that a statement has just bound.
fn give_attributes(statement: &Stmt, given: &[(Name, Value)], scope: &Rc<Scope>) {
    let mut names = Vec::new();
    python::syntax::binds::bound_by(statement, &mut names);
    for (path, value) in given {
        let Some((root, rest)) = path.split_once('.') else { continue };
        if let (true, Some(Value::Instance(object))) = (names.iter().any(|n| **n == *root), scope.own(root)) {
            super::inside::set_path(&object, rest, value.clone());
        }
    }
}

/// A tensor takes the name of the first variable it is bound to: its name as a capture.
pub(super) fn name_value(value: &Value, name: &Name) {
    if let Value::Tensor(tensor) = value {
        tensor.name_it(name);
    }
}
