//! Statements.
//!
//! Invariant: a module's statement that fails leaves its names bound to the fault, so that what does not need them still
//! runs. Must not know expressions' inner workings.

use super::Context;
use super::effects::{bound_names, changed_names, is_changeable};
use super::scope::Scope;
use crate::base::{Diagnostic, Span};
use crate::language::builtins::{iterator, tensor_methods};
use crate::language::graph::Op;
use crate::language::syntax::Name;
use crate::language::syntax::ast::*;
use crate::language::value::{Fault, Function as FunctionValue, Pairs, VALUE_BYTES, Value, bury, range_len};
use std::borrow::Cow;
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
    /// Runs a module's statements, skipping those that fail.
    pub(super) fn run_module(&mut self, body: &[Stmt], scope: &Rc<Scope>) -> Result<(), Fault> {
        for statement in body {
            if let Err(fault) = self.statement(statement, scope) {
                let fault = fault.at(statement.span);
                if fault.fatal {
                    return Err(fault);
                }
                let shared = Rc::new(fault.clone());
                for name in bound_names(statement) {
                    if scope.own(&name).is_none() || !matches!(statement.kind, StmtKind::If(_) | StmtKind::Try { .. }) {
                        scope.set(&name, Value::Missing(shared.clone()));
                    }
                }
                for name in changed_names(statement) {
                    // half of a change is worse than none: what it would have changed is as unknown as what it binds
                    if scope.own(&name).is_some_and(|v| is_changeable(&v)) {
                        scope.set(&name, Value::Missing(shared.clone()));
                    }
                }
                self.skipped.push(fault);
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

    fn statement(&mut self, statement: &Stmt, scope: &Rc<Scope>) -> Result<Flow, Fault> {
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
            StmtKind::With { items, body } => {
                for (item, name) in items {
                    let value = self.context_manager(item, scope)?;
                    if let Some(name) = name {
                        self.assign(name, value, scope)?;
                    }
                }
                return self.block(body, scope);
            }
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
                return Err(Fault::unsupported(format!("{what} is not run here")).hint(
                    "a mask is made before anything waits or runs: write it with if, for and plain expressions",
                ));
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
        let function = self.decorated(function, &def.decorators, scope)?;
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
    pub(super) fn decorated(
        &mut self,
        mut value: Value,
        decorators: &[Expr],
        scope: &Rc<Scope>,
    ) -> Result<Value, Fault> {
        for decorator in decorators.iter().rev() {
            let callee = if let ExprKind::Call(callee, _) = &decorator.kind { callee } else { decorator };
            if let ExprKind::Attribute(of, part) = &callee.kind
                && matches!(&**part, "setter" | "deleter" | "getter")
                && let Ok(Value::Function(getter)) = self.eval(of, scope)
            {
                getter.attributes.borrow_mut().set_named(part, value);
                value = Value::Function(getter);
                continue;
            }
            let applies = match self.eval(callee, scope) {
                Ok(Value::Builtin(name)) => {
                    if let (Value::Function(f), "property" | "staticmethod" | "classmethod") = (&value, &*name) {
                        f.attributes.borrow_mut().set_named(&name, Value::Bool(true));
                    }
                    if let (Value::Function(f), "functools.cached_property") = (&value, &*name) {
                        f.attributes.borrow_mut().set_named(&"property".into(), Value::Bool(true));
                        f.attributes.borrow_mut().set_named(&"cached".into(), Value::Bool(true));
                    }
                    false
                }
                Ok(Value::Function(_) | Value::Partial(_) | Value::Class(_) | Value::Instance(_)) => true,
                Ok(_) => false,
                Err(fault) if fault.fatal => return Err(fault),
                Err(_) => false,
            };
            if applies {
                let function = self.eval(decorator, scope)?;
                self.span = decorator.span;
                value = self.call(&function, super::call::one(value)).map_err(|f| f.at(decorator.span))?;
            }
        }
        Ok(value)
    }

    /// `with torch.no_grad()` and the like do nothing here.
    fn context_manager(&mut self, item: &Expr, scope: &Rc<Scope>) -> Result<Value, Fault> {
        let callee = if let ExprKind::Call(callee, _) = &item.kind { callee } else { item };
        match self.eval(callee, scope)? {
            Value::Builtin(_) => Ok(Value::None),
            _ => Err(Fault::unsupported("`with` is run only for PyTorch's own contexts, such as torch.no_grad()")
                .hint("leave the `with` out")
                .at(item.span)),
        }
    }

    /// The fault that `raise` makes.
    fn raised(&mut self, e: Option<&Expr>, scope: &Rc<Scope>) -> Result<Fault, Fault> {
        let Some(e) = e else { return Ok(Fault::new("RuntimeError", "raised", "the text raises an error again")) };
        let value = self.eval(e, scope)?;
        let (class, message) = super::class::exception_parts(&value);
        let text = if message.is_empty() { class.clone() } else { format!("{class}: {message}") };
        let diagnostic = Box::new(Diagnostic::error("raised", text));
        let fault = Fault { class: Cow::Owned(class), diagnostic, fatal: false };
        Ok(fault.hint("the text itself refuses this: change the arguments").at(e.span))
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
                super::text(&value)
            }
            None => format!("`{}` does not hold", self.text_of(test.span)),
        };
        Err(Fault::new("AssertionError", "assertion", said)
            .hint("the text itself refuses this: change the arguments")
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
            Err(fault) if !fault.fatal => self.handle(fault, handlers, scope),
            other => other,
        };
        match self.block(finally, scope)? {
            Flow::Next => result,
            other => Ok(other),
        }
    }

    fn handle(&mut self, fault: Fault, handlers: &[Handler], scope: &Rc<Scope>) -> Result<Flow, Fault> {
        for handler in handlers {
            let catches = match &handler.class {
                None => true,
                Some(class) => {
                    let class = self.eval(class, scope)?;
                    super::class::catches(&class, &fault.class)
                }
            };
            if catches {
                if let Some(name) = &handler.name {
                    // what `raise` was given stands after the class
                    let message = &fault.diagnostic.message;
                    let own = message.strip_prefix(&*fault.class).and_then(|m| m.strip_prefix(": "));
                    scope.set(name, super::class::exception(&fault.class, own.unwrap_or(message)));
                }
                return self.block(&handler.body, scope);
            }
        }
        Err(fault)
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
        // a tensor changes in place: others that hold it see it. A part that an index copied out goes back.
        if let Value::Tensor(tensor) = &old
            && !by.is_symbolic()
        {
            tensor_methods::augmented(op, tensor, &by, self)?;
            return if matches!(target.kind, ExprKind::Subscript(..)) {
                self.assign(target, old, scope)
            } else {
                Ok(())
            };
        }
        let new = self.binary(op, &old, &by)?;
        self.assign(target, new.clone(), scope)?;
        self.written_in_place(&old, &new, statement);
        Ok(())
    }

    /// `n &= 3` where `n` is an index: PyTorch writes into the index itself, and whoever else holds it sees that.
    fn written_in_place(&mut self, old: &Value, new: &Value, statement: &Stmt) {
        let Value::Sym(index) = old else { return };
        let Op::Input(input) = self.graph.node(index.node).op else { return };
        let mut others = false;
        for frame in &self.frames {
            others |= frame.replace(|value| matches!(value, Value::Sym(sym) if sym.node == index.node), new);
        }
        if others {
            let name = input.name();
            let warning = Diagnostic::warning(
                "writes-index",
                format!("PyTorch writes into {name} itself here: whatever reads it afterwards reads the new value"),
            )
            .at(statement.span, "")
            .hint("make it a new value: `n = n & 3` instead of `n &= 3`");
            self.warn(warning);
        }
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
            _ => Err(Fault::unsupported("this cannot be deleted here")),
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
            _ => Err(Fault::unsupported("this cannot be assigned to").at(target.span)),
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

/// A tensor takes the name of the first variable it is bound to: its name as a capture.
pub(super) fn name_value(value: &Value, name: &Name) {
    if let Value::Tensor(tensor) = value {
        tensor.name_it(name);
    }
}

/// The elements of an iterable, one after the other.
pub(super) enum Iterate {
    /// Known elements.
    Items(std::vec::IntoIter<Value>),
    /// A range: next, step, how many are left.
    Range(i64, i64, u64),
    /// A list that may grow while it is walked.
    List(Rc<RefCell<crate::language::value::Items>>, usize),
    /// An iterator: others may take from it meanwhile.
    Iterator(Rc<crate::language::value::Opaque>),
}

impl Iterate {
    pub(super) fn next(&mut self, _cx: &mut Context<'_>) -> Result<Option<Value>, Fault> {
        Ok(match self {
            Iterate::Items(items) => items.next(),
            Iterate::Range(_, _, 0) => None,
            Iterate::Range(next, step, left) => {
                let value = *next;
                *next = next.wrapping_add(*step);
                *left -= 1;
                Some(Value::Int(value))
            }
            Iterate::List(list, at) => {
                *at += 1;
                list.borrow().0.get(*at - 1).cloned()
            }
            Iterate::Iterator(iterator) => iterator::step(iterator)?,
        })
    }
}

impl Drop for Iterate {
    fn drop(&mut self) {
        if let Iterate::Items(items) = self {
            bury(items.by_ref());
        }
    }
}

impl Context<'_> {
    /// Walks an iterable.
    pub(super) fn iterate(&mut self, value: &Value) -> Result<Iterate, Fault> {
        Ok(match value {
            Value::Range(start, stop, step) => Iterate::Range(*start, *step, range_len(*start, *stop, *step)),
            Value::List(list) => Iterate::List(list.clone(), 0),
            Value::Opaque(iterator) if iterator.kind == iterator::KIND => Iterate::Iterator(iterator.clone()),
            other => Iterate::Items(self.collect(other)?.into_iter()),
        })
    }

    /// Takes elements one by one, until `f` says that it is enough.
    pub(crate) fn walk(
        &mut self,
        value: &Value,
        mut f: impl FnMut(&mut Self, Value) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let mut items = self.iterate(value)?;
        while let Some(item) = items.next(self)? {
            self.charge_steps(1)?;
            if !f(self, item)? {
                break;
            }
        }
        Ok(())
    }

    /// All elements of an iterable.
    pub(crate) fn collect(&mut self, value: &Value) -> Result<Vec<Value>, Fault> {
        match value {
            Value::Range(start, stop, step) => {
                let n = range_len(*start, *stop, *step);
                self.charge_bytes(n.saturating_mul(VALUE_BYTES))?;
                self.charge_steps(n / 16)?;
                Ok((0..n as i64).map(|i| Value::Int(start + i * step)).collect())
            }
            Value::Dict(pairs) => Ok(pairs.borrow().0.iter().map(|(k, _)| k.clone()).collect()),
            Value::Opaque(opaque) if opaque.kind == iterator::KIND => iterator::rest(opaque),
            Value::Class(class) if super::class::is_enum(class, 0) => Ok(super::class::enum_members(class)),
            Value::Instance(object) if super::class::is_named_tuple(&object.class) => {
                let attributes = object.attributes.borrow();
                let fields = object.class.fields.iter().flatten();
                Ok(fields.filter_map(|(name, _)| attributes.named(name)).collect())
            }
            Value::Instance(object) => self.instance_items(object),
            Value::Str(text) => {
                self.charge_bytes(2 * VALUE_BYTES * text.len() as u64)?;
                Ok(text.chars().map(|c| Value::str(c.to_string())).collect())
            }
            Value::Tensor(tensor) => {
                let rows = tensor.borrow().shape().first().copied();
                let Some(rows) = rows else { return Err(Fault::type_error("a 0-dimensional tensor cannot be walked")) };
                self.charge_steps(rows as u64)?;
                (0..rows).map(|i| tensor_methods::index(tensor, &Value::Int(i as i64), self)).collect()
            }
            Value::Array(_) | Value::View(_) => self.symbolic_rows(value),
            Value::Sym(_) => Err(super::super::diagnose::not_a_number(
                "this",
                "an index is one value in each cell, which can be neither unpacked nor walked",
            )),
            other => match other.as_items() {
                Some(items) => {
                    self.charge_steps(items.len() as u64 / 16)?;
                    Ok(items)
                }
                None => Err(Fault::type_error(format!("{} cannot be walked", other.type_name()))),
            },
        }
    }
}
