//! `with`: contexts of the text's own classes and generators are entered and left like in Python.
//!
//! Invariant: exceptions leave a context like in Python; a context with an unknown effect on the computation is
//! refused. Must not know what runs inside.

use super::Context;
use super::exception;
use super::iterator;
use super::statement::Flow;
use crate::python::syntax::ast::*;
use crate::python::value::scope::Scope;
use crate::python::value::{Args, Fault, Instance, Value};
use std::rc::Rc;

/// The result of calling a generator made by `contextlib.contextmanager`.
pub(crate) const GENERATOR: &str = "contextlib.manager";

/// A `with` whose body waits for its generator to yield.
pub(super) struct Waiting {
    with: Rc<With>,
    at: usize,
    scope: Rc<Scope>,
    /// The number of running calls at the generator.
    frames: usize,
    /// Whether its body is running.
    running: bool,
    /// How the body ended.
    ended: Option<Flow>,
}

/// The kinds of context managers in `with item`.
enum Manager {
    /// It gives this, and does nothing.
    Nothing(Value),
    /// It sets whether gradients are computed inside.
    Gradients(bool),
    /// `contextlib.suppress` of these classes.
    Suppress(Value),
    Object(Rc<Instance>),
    /// A generator function with its arguments.
    Generator(Value),
}

impl Context<'_> {
    /// Enters the items from `at` on, runs the body, and leaves them.
    pub(super) fn with_items(&mut self, with: &Rc<With>, at: usize, scope: &Rc<Scope>) -> Result<Flow, Fault> {
        let Some((item, target)) = with.items.get(at) else { return self.block(&with.body, scope) };
        let bind = |cx: &mut Self, value: Value| match target {
            Some(target) => cx.assign(target, value, scope),
            None => Ok(()),
        };
        match self.manager(item, scope)? {
            Manager::Nothing(value) => {
                bind(self, value)?;
                self.with_items(with, at + 1, scope)
            }
            Manager::Gradients(taken) => {
                bind(self, Value::None)?;
                let before = std::mem::replace(&mut self.no_grad, !taken);
                let ended = self.with_items(with, at + 1, scope);
                self.no_grad = before;
                ended
            }
            Manager::Suppress(classes) => {
                bind(self, Value::None)?;
                match self.with_items(with, at + 1, scope) {
                    Err(f) if !f.fatal && f.python && exception::catches(&classes, &f) => Ok(Flow::Next),
                    other => other,
                }
            }
            Manager::Object(object) => {
                let enter = self.needed(&object, "__enter__").map_err(|f| f.at(item.span))?;
                let exit = self.needed(&object, "__exit__").map_err(|f| f.at(item.span))?;
                let entered = self.call(&enter, Args::default())?;
                let ended = bind(self, entered).and_then(|()| self.with_items(with, at + 1, scope));
                self.left(&exit, ended)
            }
            Manager::Generator(made) => {
                self.span = item.span;
                self.through_generator(with, at, made, scope)
            }
        }
    }

    fn manager(&mut self, item: &Expr, scope: &Rc<Scope>) -> Result<Manager, Fault> {
        let callee = if let ExprKind::Call(callee, _) = &item.kind { callee } else { item };
        if let Value::Builtin(name) = self.eval(callee, scope)? {
            if let Some(taken) = self.gradients(&name, item, scope)? {
                return Ok(Manager::Gradients(taken));
            }
            if super::changes::is_inert(&name, super::changes::Role::Context) {
                return Ok(Manager::Nothing(Value::None));
            }
            if let (ExprKind::Call(_, given), "contextlib.suppress" | "contextlib.nullcontext") = (&item.kind, &*name) {
                let args = self.arguments(given, scope)?;
                return Ok(if &*name == "contextlib.suppress" {
                    Manager::Suppress(Value::tuple(args.positional))
                } else {
                    Manager::Nothing(args.get(0, "enter_result").cloned().unwrap_or(Value::None))
                });
            }
        }
        match self.eval(item, scope)? {
            Value::Instance(object) => Ok(Manager::Object(object)),
            Value::Partial(made) if matches!(&made.function, Value::Builtin(n) if &**n == GENERATOR) => {
                let function = made.args.positional.first().cloned();
                function.map(Manager::Generator).ok_or_else(|| Fault::type_error("this is not a context manager"))
            }
            // what such a context is called with was made by the call
            Value::Builtin(name) if &*name == "ignored" => Ok(Manager::Nothing(Value::None)),
            other => Err(Fault::unsupported(format!("`with` is not supported for {} here", self.text_of(item.span)))
                .hint(format!("a {} is not a supported context manager: remove the `with`", other.type_name()))
                .at(item.span)),
        }
    }

    /// Whether a context of this name takes gradients; None for what leaves that as it is.
    fn gradients(&mut self, name: &str, item: &Expr, scope: &Rc<Scope>) -> Result<Option<bool>, Fault> {
        let given = match &item.kind {
            ExprKind::Call(_, given) => self.arguments(given, scope)?.positional.first().and_then(Value::as_bool),
            _ => None,
        };
        Ok(match name {
            "torch.no_grad" => Some(false),
            "torch.enable_grad" => Some(true),
            "torch.inference_mode" => Some(given == Some(false)),
            "torch.set_grad_enabled" => Some(given != Some(false)),
            _ => None,
        })
    }

    fn needed(&mut self, object: &Rc<Instance>, name: &str) -> Result<Value, Fault> {
        self.instance_method(object, name).ok_or_else(|| {
            let message = format!("{} is not a context manager: it has no `{name}`", object.class.name);
            Fault::type_error(message).python()
        })
    }

    /// Leaves an object's context; its return value decides whether an exception continues.
    fn left(&mut self, exit: &Value, ended: Result<Flow, Fault>) -> Result<Flow, Fault> {
        let none = || Value::None;
        match ended {
            Ok(flow) => {
                self.call(exit, Args::of(vec![none(), none(), none()]))?;
                Ok(flow)
            }
            Err(fault) if fault.fatal || !fault.python => Err(fault),
            Err(fault) => {
                let object = exception::caught(&fault);
                let class = match &object {
                    Value::Instance(object) => Value::Class(object.class.clone()),
                    _ => Value::Builtin(fault.class.to_string().into()),
                };
                let said = self.call(exit, Args::of(vec![class, object, none()]))?;
                if self.truth(&said)? { Ok(Flow::Next) } else { Err(fault) }
            }
        }
    }

    /// Runs a generator; its `yield` runs the body.
    fn through_generator(&mut self, with: &Rc<With>, at: usize, made: Value, scope: &Rc<Scope>) -> Result<Flow, Fault> {
        let frames = self.frames.len() + 1;
        self.waiting.push(Waiting {
            with: with.clone(),
            at,
            scope: scope.clone(),
            frames,
            running: false,
            ended: None,
        });
        let ran = self.call(&made, Args::default());
        let ran = ran.and_then(|given| match &given {
            Value::Opaque(given) if given.kind == iterator::KIND => iterator::step(given).map(drop),
            _ => Err(Fault::type_error("contextlib.contextmanager needs a generator").python()),
        });
        let waited = self.waiting.pop();
        ran?;
        waited.and_then(|w| w.ended).ok_or_else(|| Fault::runtime_error("generator didn't yield"))
    }

    /// Whether the present `yield` is the one of a pending `with`, and the result of its body.
    pub(super) fn yielded_to_with(&mut self, value: &Value) -> Option<Result<Value, Fault>> {
        let waiting = self.waiting.last().filter(|w| w.frames == self.frames.len())?;
        if waiting.ended.is_some() {
            return Some(Err(Fault::runtime_error("generator didn't stop")));
        }
        if waiting.running {
            return Some(Err(Fault::unsupported(
                "a `yield` inside a `with` of a generator's context manager is not supported here",
            )
            .hint("collect the values in a list, and yield them outside the `with`")));
        }
        let (with, at, scope) = (waiting.with.clone(), waiting.at, waiting.scope.clone());
        let depth = self.waiting.len();
        self.waiting[depth - 1].running = true;
        let bound = match with.items.get(at) {
            Some((_, Some(target))) => self.assign(target, value.clone(), &scope),
            _ => Ok(()),
        };
        let ran = bound.and_then(|()| self.with_items(&with, at + 1, &scope));
        let waiting = self.waiting.get_mut(depth - 1)?;
        waiting.running = false;
        Some(match ran {
            Ok(flow) => {
                waiting.ended = Some(flow);
                Ok(Value::None)
            }
            Err(fault) => {
                // a generator that catches this and ends has suppressed it
                waiting.ended = Some(Flow::Next);
                Err(fault)
            }
        })
    }
}
