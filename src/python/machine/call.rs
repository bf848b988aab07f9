//! Calls: the called value, and the binding of arguments to parameters.
//!
//! Invariant: a call binds its arguments like Python, or faults in Python's words; calls nest no deeper than the
//! request allows. Must not know what builtins do.

use super::Context;
use super::changes::{Role, is_inert};
use super::iterator;
use super::statement::{Flow, name_value};
use crate::base::{Diagnostic, Span};
use crate::python::diagnose;
use crate::python::syntax::ast::*;
use crate::python::value::scope::{Kind, Scope};
use crate::python::value::{Args, Class as ClassValue, Fault, Function as FunctionValue, Pairs, VALUE_BYTES, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// A single positional argument.
pub(super) fn one(value: Value) -> Args {
    Args::of(vec![value])
}

/// Labels "called from here" that a fault carries at most.
const MAX_CALLERS: usize = 3;

/// The mark of a function without gradients.
pub(super) const NO_GRAD: &str = "torch.no_grad";

impl Context<'_> {
    pub(super) fn eval_call(
        &mut self,
        whole: &Expr,
        callee: &Expr,
        arguments: &[Argument],
        scope: &Rc<Scope>,
    ) -> Result<Value, Fault> {
        if let ExprKind::Attribute(object, name) = &callee.kind {
            if is_super(object) {
                let args = self.arguments(arguments, scope)?;
                return self.super_call(name, args, scope);
            }
            let receiver = self.eval(object, scope)?;
            let args = self.arguments(arguments, scope)?;
            self.span = whole.span;
            // the names in shipped code are not captures
            self.hint = match &object.kind {
                ExprKind::Name(name) if !self.is_inside() => Some(name.clone()),
                _ => None,
            };
            let result = self.call_method(&receiver, name, args);
            return result.map_err(|f| self.not_called(f, whole, callee, arguments));
        }
        let function = self.eval(callee, scope)?;
        let args = self.arguments(arguments, scope)?;
        self.span = whole.span;
        self.call(&function, args).map_err(|f| self.not_called(f, whole, callee, arguments))
    }

    /// Adds the place of the failed call, and the suggested code.
    fn not_called(&mut self, fault: Fault, whole: &Expr, callee: &Expr, arguments: &[Argument]) -> Fault {
        let fault = called_from(fault, whole.span);
        let own = fault.diagnostic.labels.first().is_none_or(|l| l.span == whole.span);
        if !own || fault.fatal {
            return fault;
        }
        if matches!(&*fault.diagnostic.code, "branch-on-index" | "value-of-index")
            && let Some(text) = self.call_rewrite(callee, arguments)
        {
            return fault.at(whole.span).instead(whole.span, text);
        }
        self.at_name(fault, callee)
    }

    /// Calls a value.
    pub(crate) fn call(&mut self, function: &Value, args: Args) -> Result<Value, Fault> {
        match function {
            Value::Function(function) => self.call_function(function, args, None),
            Value::Builtin(name) => (self.library.call)(name, args, self),
            Value::Partial(partial) => {
                let mut positional = partial.args.positional.clone();
                positional.extend(args.positional);
                let bound = partial.args.keyword.iter().filter(|(n, _)| !args.keyword.iter().any(|(m, _)| m == n));
                let mut keyword: Vec<_> = bound.cloned().collect();
                keyword.extend(args.keyword);
                self.deeper(|cx| cx.call(&partial.function, Args { positional, keyword }))
            }
            Value::Method(method) => self.call_method(&method.0, &method.1, args),
            Value::Class(class) => self.instantiate(class, args),
            Value::Instance(instance) => {
                let method = self.instance_method(instance, "__call__");
                let method = method.or_else(|| self.instance_method(instance, "forward"));
                match method {
                    Some(method) => self.call(&method, args),
                    None => Err(not_callable(function)),
                }
            }
            Value::Import(import) => {
                let function = self.resolve(&import.0, import.1.as_ref())?;
                self.deeper(|cx| cx.call(&function, args))
            }
            // np.float32(x)
            Value::DType(dtype) => (self.library.convert)(*dtype, &args, self),
            Value::Missing(fault) => Err(Fault::clone(fault)),
            other => Err(not_callable(other)),
        }
    }

    /// Calls a function of the text; `owner` is the class it was found in, for `super()`.
    pub(super) fn call_function(
        &mut self,
        function: &Rc<FunctionValue>,
        args: Args,
        owner: Option<&Rc<ClassValue>>,
    ) -> Result<Value, Fault> {
        let before = self.no_grad;
        self.no_grad |= function.attributes.borrow().named(NO_GRAD).is_some();
        let given = if self.crosses(function.def.name_span.source) {
            self.crossing(|cx| cx.run_function(function, args, owner))
        } else {
            self.run_function(function, args, owner)
        };
        self.no_grad = before;
        given
    }

    fn run_function(
        &mut self,
        function: &Rc<FunctionValue>,
        args: Args,
        owner: Option<&Rc<ClassValue>>,
    ) -> Result<Value, Fault> {
        let def = &function.def;
        if def.is_async {
            return Err(Fault::unsupported(format!(
                "`{}` is async: calling it gives a coroutine, not a result",
                def.name
            ))
            .hint("write `def` without `async`: a mask never waits"));
        }
        if self.calls >= self.call_limit() {
            return Err(Fault::limit("recursion", format!("calls nest more than {} deep", self.call_limit()))
                .hint("replace the recursion by a loop"));
        }
        let scope = Scope::new(Kind::Function, Some(function.scope.clone()));
        if let Some(class) = owner {
            scope.set(&"__class__".into(), Value::Class(class.clone()));
        }
        // PyTorch may know an argument that the shipped function of its name does not
        bind(function, args, &scope)
            .map_err(|fault| if self.ships(def.name_span.source) { fault.not_python() } else { fault })?;
        self.calls += 1;
        self.frames.push(scope.clone());
        let outer = std::mem::take(&mut self.yielded);
        let result = self.deeper(|cx| match &def.body {
            Body::Expr(e) => cx.eval(e, &scope),
            Body::Block(body) => cx.block(body, &scope).map(|flow| match flow {
                Flow::Return(value) => value,
                _ => Value::None,
            }),
        });
        let mut yielded = std::mem::replace(&mut self.yielded, outer);
        self.calls -= 1;
        self.frames.pop();
        // a generator runs to its end when it is made: nothing that it reads may change in between
        if def.generator { iterator::of_generator(std::mem::take(&mut yielded.0), result.map(drop)) } else { result }
    }

    /// `receiver.name(args)`
    pub(crate) fn call_method(&mut self, receiver: &Value, name: &Name, args: Args) -> Result<Value, Fault> {
        match receiver {
            Value::Builtin(module) if &**module == "object" => match (&**name, &args.positional[..]) {
                ("__setattr__", [Value::Instance(object), Value::Str(name), value]) => {
                    object.attributes.borrow_mut().set_named(name, value.clone());
                    Ok(Value::None)
                }
                _ => Err(Fault::unsupported(format!("object.{name}() is not supported here"))),
            },
            Value::Builtin(module) => {
                let dotted = dotted(module, name);
                match self.patched(&dotted).or_else(|| (self.library.value)(&dotted)) {
                    Some(value) => {
                        let value = self.usable(value)?;
                        self.call(&value, args)
                    }
                    None => (self.library.call)(&dotted, args, self),
                }
            }
            Value::Instance(instance) => {
                if let Some(method) = self.instance_method(instance, name) {
                    return self.call(&method, args);
                }
                if matches!(&**name, "register_buffer" | "register_parameter") {
                    let buffer = args.get(0, "name").and_then(Value::as_str).map(Name::from);
                    if let (Some(buffer), Some(value)) = (buffer, args.get(1, "tensor")) {
                        self.set_attribute(receiver, &buffer, value.clone())?;
                        return Ok(Value::None);
                    }
                }
                if let Some(result) = (self.library.record_method)(instance, name, &args, self) {
                    return result;
                }
                let function = self.attribute(receiver, name)?;
                self.call(&function, args)
            }
            Value::Class(_) | Value::Module(_) | Value::Function(_) | Value::Partial(_) => {
                let function = self.attribute(receiver, name)?;
                self.call(&function, args)
            }
            Value::Import(import) => {
                let receiver = self.resolve(&import.0, import.1.as_ref())?;
                self.deeper(|cx| cx.call_method(&receiver, name, args))
            }
            _ => (self.library.method)(receiver, name, args, self),
        }
    }

    /// `object.name`
    pub(crate) fn attribute(&mut self, object: &Value, name: &Name) -> Result<Value, Fault> {
        match object {
            Value::Builtin(module) => {
                let dotted = dotted(module, name);
                if let Some(value) = self.patched(&dotted) {
                    return self.usable(value);
                }
                if dotted == "torch.__version__" {
                    self.tell_version();
                }
                match (self.library.value)(&dotted) {
                    Some(value) => Ok(value),
                    None if matches!(&**name, "__name__" | "__qualname__") => Ok(Value::str(match &**module {
                        "None" => "NoneType",
                        other => other.rsplit('.').next().unwrap_or(other),
                    })),
                    None => self.class_or_name(&dotted.into()),
                }
            }
            Value::Import(import) => {
                let object = self.resolve(&import.0, import.1.as_ref())?;
                self.deeper(|cx| cx.attribute(&object, name))
            }
            Value::Module(module) => self.module_attribute(&module.name.clone(), Some(&module.scope.clone()), name),
            Value::Instance(instance) => self.instance_attribute(&instance.clone(), name),
            Value::Class(class) => self.class_attribute(&class.clone(), name),
            Value::Function(function) => match (function.attributes.borrow().named(name), &**name) {
                (Some(value), _) => self.usable(value),
                (None, "__name__" | "__qualname__") => Ok(Value::Str(function.def.name.clone())),
                (None, "__doc__") => Ok(function.def.doc.clone().map_or(Value::None, Value::Str)),
                _ => {
                    let fault =
                        Fault::new("AttributeError", "unknown-attribute", format!("a function has no `{name}`"));
                    Err(if name.starts_with("__") { fault } else { fault.python() })
                }
            },
            Value::Partial(partial) => match &**name {
                "func" => Ok(partial.function.clone()),
                "args" => Ok(Value::tuple(partial.args.positional.clone())),
                "keywords" => {
                    let pairs = partial.args.keyword.iter().map(|(n, v)| (Value::Str(n.clone()), v.clone()));
                    Ok(Value::Dict(Rc::new(RefCell::new(Pairs(pairs.collect())))))
                }
                "__name__" => Ok(Value::str("partial")),
                _ => Err(Fault::new("AttributeError", "unknown-attribute", format!("a partial has no `{name}`"))),
            },
            Value::Missing(fault) => Err(Fault::clone(fault)),
            other => (self.library.attribute)(other, name, self),
        }
    }

    /// `object.name = value`
    pub(crate) fn set_attribute(&mut self, object: &Value, name: &Name, value: Value) -> Result<(), Fault> {
        match object {
            Value::Instance(instance) => {
                if let Some(setter) = super::class::own_setter(&instance.class) {
                    let args = Args::of(vec![object.clone(), Value::Str(name.clone()), value]);
                    return self.call_function(&setter, args, Some(&instance.class)).map(drop);
                }
                if let Some(setter) = super::class::setter(instance, name) {
                    return self.call(&setter, Args::of(vec![object.clone(), value])).map(drop);
                }
                name_value(&value, name);
                let old = instance.attributes.borrow().named(name);
                instance.attributes.borrow_mut().set_named(name, value);
                drop(old);
                Ok(())
            }
            Value::Function(function) => {
                function.attributes.borrow_mut().set_named(name, value);
                Ok(())
            }
            Value::Class(class) => {
                class.members.borrow_mut().set_named(name, value);
                Ok(())
            }
            Value::Module(module) => {
                name_value(&value, name);
                module.scope.set(name, value);
                Ok(())
            }
            Value::Builtin(module) => self.patch(&dotted(module, name), value),
            Value::Tensor(_) if &**name == "data" => {
                Err(Fault::unsupported("setting `.data` to another tensor is not supported here")
                    .hint("write `x.copy_(y)`"))
            }
            // names set on mods and training settings of tensors change nothing here
            Value::Partial(_) | Value::Method(_) | Value::Tensor(_) => Ok(()),
            other => Err(Fault::new(
                "AttributeError",
                "unknown-attribute",
                format!("`{name}` cannot be set on {}", other.type_name()),
            )),
        }
    }

    /// The text's assignment to a name of Python or PyTorch; shipped code keeps the original.
    pub(super) fn patched(&self, dotted: &str) -> Option<Value> {
        if self.is_inside() {
            return None;
        }
        self.patched.iter().rev().find(|(name, _)| *name == dotted).map(|(_, value)| value.clone())
    }

    /// `torch.arange = mine`: later reads of the name give it. Settings of PyTorch have no effect here.
    pub(super) fn patch(&mut self, dotted: &str, value: Value) -> Result<(), Fault> {
        if is_inert(dotted, Role::Call) {
            return Ok(());
        }
        if dotted.starts_with("torch.Tensor.") {
            let message = format!("`{dotted}` is assigned: methods of tensors cannot be replaced here");
            return Err(Fault { fatal: true, ..Fault::unsupported(message).hint("call your function by its name") });
        }
        self.charge_bytes(2 * VALUE_BYTES + dotted.len() as u64)?;
        self.patched.push((dotted.to_string(), value));
        Ok(())
    }

    fn tell_version(&mut self) {
        let note = Diagnostic::note(
            "torch-version",
            "`torch.__version__` is 2.15.0 here, independent of the installed version",
        );
        let place = self.place();
        self.warn(note.at(place, "").hint("a branch on the version runs as with PyTorch 2.15"));
    }

    /// `functools.partial` and the combinators: a function with its first arguments bound.
    pub(crate) fn bound(&self, function: Value, args: Args) -> Value {
        Value::Partial(Rc::new(python::value::Partial { function, args }))
    }
}

fn called_from(mut fault: Fault, span: Span) -> Fault {
    let labels = &fault.diagnostic.labels;
    let apart = labels.first().is_some_and(|l| l.span.source != span.source || !overlaps(l.span, span));
    if apart && labels.len() < MAX_CALLERS && !labels.iter().any(|l| l.span == span) {
        *fault.diagnostic = fault.diagnostic.at(span, "called from here");
    }
    fault
}

fn overlaps(a: Span, b: Span) -> bool {
    a.start < b.end && b.start < a.end
}

pub(super) fn is_super(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Call(callee, _) => matches!(&callee.kind, ExprKind::Name(name) if &**name == "super"),
        _ => false,
    }
}

fn not_callable(value: &Value) -> Fault {
    Fault::new("TypeError", "not-callable", format!("{} cannot be called", value.type_name()))
        .hint("remove the parentheses, or check the value of the name")
}

pub(super) fn dotted(module: &str, name: &str) -> String {
    match module {
        "torch.nn.attention.flex_attention" => format!("flex.{name}"),
        _ => format!("{module}.{name}"),
    }
}

/// Binds arguments to parameters in `scope`.
fn bind(function: &FunctionValue, args: Args, scope: &Rc<Scope>) -> Result<(), Fault> {
    let def = &function.def;
    let given = args.positional.len();
    let mut positional = args.positional.into_iter();
    let mut keyword: Vec<Option<(Name, Value)>> = args.keyword.into_iter().map(Some).collect();
    let mut missing = Vec::new();
    for (param, default) in def.params.iter().zip(&function.defaults) {
        let mut by_name = || {
            let found = keyword.iter_mut().find(|k| matches!(k, Some((n, _)) if *n == param.name))?;
            found.take().map(|(_, v)| v)
        };
        let value = match param.mode {
            ParamMode::PositionalOnly => positional.next(),
            ParamMode::Plain => match positional.next() {
                Some(value) if by_name().is_some() => {
                    drop(value);
                    let message = format!("{}() got two values for its argument `{}`", def.name, param.name);
                    return Err(Fault::new("TypeError", "unexpected-argument", message).at(param.span));
                }
                Some(value) => Some(value),
                None => by_name(),
            },
            ParamMode::KeywordOnly => by_name(),
            ParamMode::VarArgs => Some(Value::tuple(positional.by_ref().collect())),
            ParamMode::KwArgs => {
                let rest = keyword.iter_mut().filter_map(Option::take).map(|(n, v)| (Value::Str(n), v)).collect();
                Some(Value::Dict(Rc::new(RefCell::new(Pairs(rest)))))
            }
        };
        match value.or_else(|| default.clone()) {
            Some(value) => {
                name_value(&value, &param.name);
                scope.set(&param.name, value);
            }
            None => missing.push(param),
        }
    }
    if !missing.is_empty() {
        let left: Vec<Name> = keyword.into_iter().flatten().map(|(n, _)| n).collect();
        return Err(diagnose::missing_arguments(def, &missing, given, &left));
    }
    if positional.next().is_some() {
        return Err(diagnose::too_many_arguments(def, given));
    }
    if let Some((name, _)) = keyword.into_iter().flatten().next() {
        return Err(diagnose::unexpected_argument(def, &name));
    }
    Ok(())
}
