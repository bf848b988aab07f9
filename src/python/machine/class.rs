//! Classes, objects and exceptions.
//!
//! Invariant: attribute look-up follows Python's order: the object, its class, its bases. Must not know tensors.

use super::Context;
use super::effects::bound_names;
use super::enums::is_enum;
use super::exception::{builtin_base, derives, is_exception};
use super::mro::{self, MAX_BASES};
use super::operators::equal;
use crate::python::diagnose;
use crate::python::syntax::ast::*;
use crate::python::value::scope::{Kind, Scope};
use crate::python::value::{
    Args, Class as ClassValue, Fault, Function as FunctionValue, Instance, Items, Opaque, Pairs, VALUE_BYTES, Value,
};
use std::cell::RefCell;
use std::rc::Rc;

/// The function of a `functools.partialmethod`: its arguments are the method and what is bound.
pub(crate) const PARTIAL_METHOD: &str = "partialmethod";

fn is_tuple_base(base: &Value) -> bool {
    matches!(base, Value::Builtin(n) if matches!(&**n, "typing.NamedTuple" | "NamedTuple"))
}

/// The fields of an object whose class compares by them: a dataclass or a tuple with names.
pub(super) fn field_values(object: &Instance) -> Option<Vec<Value>> {
    let attributes = object.attributes.borrow();
    object.class.fields.as_ref().map(|fields| fields.iter().filter_map(|(name, _)| attributes.named(name)).collect())
}

/// Whether the objects of a class are tuples with names.
pub(crate) fn is_named_tuple(class: &ClassValue) -> bool {
    class.bases.0.iter().any(is_tuple_base)
}

fn is_dataclass(decorator: &Expr) -> bool {
    let callee = if let ExprKind::Call(callee, _) = &decorator.kind { callee } else { decorator };
    matches!(&callee.kind, ExprKind::Name(n) | ExprKind::Attribute(_, n) if &**n == "dataclass")
}

/// Whether setting an attribute of an object of a class runs the text's own code.
pub(super) fn own_setter(class: &Rc<ClassValue>) -> Option<Rc<FunctionValue>> {
    match find_member(class, "__setattr__", 0)?.1 {
        Value::Function(function) => Some(function),
        _ => None,
    }
}

impl Context<'_> {
    pub(super) fn define_class(&mut self, class: &Rc<Class>, scope: &Rc<Scope>) -> Result<(), Fault> {
        let mut bases = Vec::new();
        for base in &class.bases {
            bases.push(match self.eval(base, scope) {
                // a base that is not here is a fault only where something of it is used
                Err(fault) if fault.diagnostic.code == "unknown-module" => Value::Missing(Rc::new(fault)),
                found => found?,
            });
        }
        self.charge_steps(16)?;
        let keywords = self.class_keywords(class, scope)?;
        let inner = Scope::new(Kind::Class, Some(scope.clone()));
        let enumerated = bases.iter().any(|b| matches!(b, Value::Builtin(name) if name.starts_with("enum.")));
        if scope.kind() == Kind::Module && self.trying == 0 && !enumerated {
            self.class_body(&class.body, &inner)?;
        } else {
            self.block(&class.body, &inner)?;
        }
        if let Some(name) = ["__getattribute__", "__class__", "__prepare__"].iter().find(|n| inner.own(n).is_some()) {
            return Err(Fault::unsupported(format!("a class that defines `{name}` is not supported here"))
                .hint("use plain attributes and methods"));
        }
        let tuple_like = bases.iter().any(is_tuple_base);
        let decorated = class.decorators.iter().any(is_dataclass);
        let fields = (tuple_like || decorated).then(|| {
            let own = class.body.iter().filter_map(|s| match &s.kind {
                StmtKind::AnnAssign { target: Expr { kind: ExprKind::Name(name), .. }, .. } => Some(name.clone()),
                _ => None,
            });
            let inherited = bases.iter().filter_map(|b| if let Value::Class(c) = b { c.fields.clone() } else { None });
            let mut fields: Vec<_> = inherited.flatten().collect();
            fields.extend(own.map(|name| (name.clone(), inner.own(&name))));
            fields
        });
        let members = inner.names().into_iter().map(|(n, v)| (Value::Str(n), v)).collect();
        let value = Rc::new(ClassValue {
            name: class.name.clone(),
            bases: Items(bases),
            members: RefCell::new(Pairs(members)),
            fields,
        });
        if is_enum(&value) {
            self.make_enum(&value);
        }
        self.tell_base(&value, keywords)?;
        let others: Vec<&Expr> = class.decorators.iter().filter(|d| !is_dataclass(d)).collect();
        let value = self.decorated_by(Value::Class(value), &others, scope)?;
        scope.set(&class.name, value);
        Ok(())
    }

    /// Runs the body of a module's class: what is only not known here is missing in the class, and the rest is there.
    fn class_body(&mut self, body: &[Stmt], inner: &Rc<Scope>) -> Result<(), Fault> {
        for statement in body {
            match self.statement(statement, inner) {
                Err(fault) if fault.fatal || fault.python => return Err(fault),
                // operators and the like act by being there
                Err(fault) if bound_names(statement).iter().any(|n| n.starts_with("__")) => return Err(fault),
                Err(fault) => self.skip(statement, fault.at(statement.span), inner),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Keyword arguments of a class, for `__init_subclass__`.
    fn class_keywords(&mut self, class: &Rc<Class>, scope: &Rc<Scope>) -> Result<Vec<(Name, Value)>, Fault> {
        let mut out = Vec::new();
        for (name, given) in &class.keywords {
            let value = self.eval(given, scope)?;
            match (&**name, &value) {
                ("metaclass", Value::Builtin(of)) if of.starts_with("abc.") || &**of == "type" => {}
                ("metaclass" | "**", _) => {
                    return Err(Fault::unsupported("a class with a metaclass is not supported here")
                        .hint("write a plain class")
                        .at(given.span));
                }
                _ => out.push((name.clone(), value)),
            }
        }
        Ok(out)
    }

    /// Calls a base class's hook for a derived class.
    fn tell_base(&mut self, class: &Rc<ClassValue>, keyword: Vec<(Name, Value)>) -> Result<(), Fault> {
        let reported = class.bases.0.iter().find_map(|b| match b {
            Value::Class(base) => find_member(base, "__init_subclass__", 0),
            _ => None,
        });
        match reported {
            Some((owner, Value::Function(function))) => {
                let args = Args { positional: vec![Value::Class(class.clone())], keyword };
                self.call_function(&function, args, Some(&owner)).map(drop)
            }
            _ if keyword.is_empty() || missing_base(class).is_some() => Ok(()),
            _ => {
                let message = format!("{}.__init_subclass__() takes no keyword arguments", class.name);
                Err(Fault::type_error(message).python())
            }
        }
    }

    pub(super) fn instantiate(&mut self, class: &Rc<ClassValue>, args: Args) -> Result<Value, Fault> {
        if is_enum(class) {
            return self.enum_member(class, &args);
        }
        let instance = match find_member(class, "__new__", 0) {
            Some((owner, Value::Function(new))) => {
                let mut given = args.clone();
                given.positional.insert(0, Value::Class(class.clone()));
                match self.call_function(&new, given, Some(&owner))? {
                    Value::Instance(made) if is_subclass(&made.class, class) => made,
                    other => return Ok(other),
                }
            }
            _ => self.bare(class)?,
        };
        let value = Value::Instance(instance.clone());
        if builtin_base(class).is_some() {
            instance.attributes.borrow_mut().set_named(&"args".into(), Value::tuple(args.positional.clone()));
        }
        if let Some(init) = self.instance_method(&instance, "__init__") {
            self.call(&init, args)?;
            return Ok(value);
        }
        if let Some(fields) = &class.fields {
            for (at, (name, default)) in fields.iter().enumerate() {
                let given = match (args.get(at, name), default) {
                    (Some(given), _) => Some(given.clone()),
                    (None, Some(Value::Opaque(field))) if field.kind == FIELD => self.field_default(field)?,
                    (None, default) => default.clone(),
                };
                let missing = || Fault::type_error(format!("{}() misses its argument `{name}`", class.name));
                instance.attributes.borrow_mut().set_named(name, given.ok_or_else(missing)?);
            }
            if let Some(after) = self.instance_method(&instance, "__post_init__") {
                self.call(&after, Args::default())?;
            }
            return Ok(value);
        }
        let made_by_new = find_member(class, "__new__", 0).is_some();
        if builtin_base(class).is_some() || made_by_new {
            return Ok(value);
        }
        if !args.positional.is_empty() || !args.keyword.is_empty() {
            return Err(Fault::type_error(format!("{}() takes no arguments", class.name)));
        }
        Ok(value)
    }

    /// An object without attributes.
    pub(super) fn bare(&mut self, class: &Rc<ClassValue>) -> Result<Rc<Instance>, Fault> {
        let instance = Rc::new(Instance { class: class.clone(), attributes: RefCell::new(Pairs::default()) });
        self.instances.push(Rc::downgrade(&instance));
        self.charge_bytes(64)?;
        Ok(instance)
    }

    /// The result of `dataclasses.field(...)` if no argument is passed.
    fn field_default(&mut self, field: &Opaque) -> Result<Option<Value>, Fault> {
        let given = field.state.borrow().downcast_ref::<(Option<Value>, Option<Value>)>().cloned();
        match given {
            Some((_, Some(factory))) => self.call(&factory, Args::default()).map(Some),
            Some((default, None)) => Ok(default),
            None => Ok(None),
        }
    }

    /// The elements of an object: by `__iter__`, or by `__getitem__` up to its length.
    pub(super) fn instance_items(&mut self, object: &Rc<Instance>) -> Result<Vec<Value>, Fault> {
        if let Some(method) = self.instance_method(object, "__iter__") {
            let made = self.call(&method, Args::default())?;
            if matches!(&made, Value::Instance(same) if Rc::ptr_eq(same, object)) {
                return self.by_next(object);
            }
            return self.deeper(|cx| cx.collect(&made));
        }
        let methods = (self.instance_method(object, "__len__"), self.instance_method(object, "__getitem__"));
        let (Some(len), Some(item)) = methods else {
            return Err(Fault::type_error(format!("{} is not iterable", object.class.name))
                .hint("define `__iter__`, or iterate over one of its attributes"));
        };
        let n = self.call(&len, Args::default())?.as_int().unwrap_or(0);
        self.charge_steps(n.max(0) as u64)?;
        (0..n).map(|at| self.call(&item, Args::of(vec![Value::Int(at)]))).collect()
    }

    /// The results of `__next__` until it raises StopIteration.
    fn by_next(&mut self, object: &Rc<Instance>) -> Result<Vec<Value>, Fault> {
        let method = self.instance_method(object, "__next__");
        let method = method.ok_or_else(|| Fault::type_error(format!("{} has no __next__", object.class.name)))?;
        let mut out = Vec::new();
        loop {
            self.charge_bytes(VALUE_BYTES)?;
            match self.call(&method, Args::default()) {
                Ok(item) => out.push(item),
                Err(fault) if fault.class == "StopIteration" => return Ok(out),
                Err(fault) => return Err(fault),
            }
        }
    }

    /// A method bound to an object.
    pub(crate) fn instance_method(&mut self, instance: &Rc<Instance>, name: &str) -> Option<Value> {
        if let Some(value) = instance.attributes.borrow().named(name) {
            return Some(value);
        }
        let (owner, member) = find_member(&instance.class, name, 0)?;
        // what a property gives is called, not its getter
        if matches!(&member, Value::Function(f) if matches!(kind_of(f), "property" | "cached_property")) {
            return None;
        }
        Some(self.bind_member(Value::Instance(instance.clone()), &instance.class, &owner, member))
    }

    /// A class member as seen through an object: functions get it as their first argument.
    fn bind_member(&self, receiver: Value, class: &Rc<ClassValue>, owner: &Rc<ClassValue>, member: Value) -> Value {
        if let Value::Partial(partial) = &member
            && matches!(&partial.function, Value::Builtin(name) if &**name == PARTIAL_METHOD)
        {
            let method = self.bind_member(receiver, class, owner, partial.args.positional[0].clone());
            let rest = Args { positional: partial.args.rest(1).to_vec(), keyword: partial.args.keyword.clone() };
            return self.bound(method, rest);
        }
        let Value::Function(function) = &member else { return member };
        match kind_of(function) {
            "staticmethod" => member,
            "classmethod" => self.bound(member, Args::of(vec![Value::Class(class.clone())])),
            _ => {
                // `super()` inside needs the class that contains the function
                let owner = Value::Class(owner.clone());
                let args = Args::of(vec![owner, member, receiver]);
                self.bound(Value::Builtin("method".into()), args)
            }
        }
    }

    /// Runs a method made by `bind_member`: class, function, object, arguments.
    pub(crate) fn run_method(&mut self, args: Args) -> Result<Value, Fault> {
        let mut positional = args.positional.into_iter();
        match (positional.next(), positional.next()) {
            (Some(Value::Class(owner)), Some(Value::Function(function))) => {
                let args = Args { positional: positional.collect(), keyword: args.keyword };
                self.call_function(&function, args, Some(&owner))
            }
            _ => Err(Fault::type_error("this is not a method")),
        }
    }

    pub(super) fn instance_attribute(&mut self, instance: &Rc<Instance>, name: &Name) -> Result<Value, Fault> {
        let own = instance.attributes.borrow().named(name);
        if let Some(value) = own {
            return self.usable(value);
        }
        if let Some((owner, member)) = find_member(&instance.class, name, 0) {
            let kind = if let Value::Function(f) = &member { kind_of(f) } else { "" };
            if let Value::Instance(descriptor) = &member
                && find_member(&descriptor.class, "__get__", 0).is_some()
            {
                return Err(Fault::unsupported("descriptors defined in the code are not supported here")
                    .hint("write a property, or a plain attribute"));
            }
            let value = self.bind_member(Value::Instance(instance.clone()), &instance.class, &owner, member);
            return match kind {
                "property" => self.call(&value, Args::default()),
                "cached_property" => {
                    let made = self.call(&value, Args::default())?;
                    instance.attributes.borrow_mut().set_named(name, made.clone());
                    Ok(made)
                }
                _ => self.usable(value),
            };
        }
        if let Some((owner, Value::Function(function))) = find_member(&instance.class, "__getattr__", 0)
            && &**name != "__class__"
        {
            let args = Args::of(vec![Value::Instance(instance.clone()), Value::Str(name.clone())]);
            return self.call_function(&function, args, Some(&owner));
        }
        match &**name {
            "__class__" => Ok(Value::Class(instance.class.clone())),
            _ if super::inside::is_given_object(instance) => {
                let of = &instance.class.name;
                Err(Fault::new("AttributeError", "not-given", format!("`{of}.{name}` has no value"))
                    .hint(format!("pass one: `--arg {of}.{name}=VALUE`")))
            }
            _ => {
                let (attributes, members) = (instance.attributes.borrow(), instance.class.members.borrow());
                let known = attributes.0.iter().chain(&members.0).filter_map(|(k, _)| k.as_str());
                Err(missing_base(&instance.class)
                    .unwrap_or_else(|| diagnose::unknown_attribute(&instance.class.name, name, known).python()))
            }
        }
    }

    pub(super) fn class_attribute(&mut self, class: &Rc<ClassValue>, name: &Name) -> Result<Value, Fault> {
        if let Some((_, member)) = find_member(class, name, 0) {
            let is_classmethod = matches!(&member, Value::Function(f) if kind_of(f) == "classmethod");
            return if is_classmethod {
                Ok(self.bound(member, Args::of(vec![Value::Class(class.clone())])))
            } else {
                self.usable(member)
            };
        }
        match &**name {
            "__name__" => Ok(Value::Str(class.name.clone())),
            // torch.autograd.Function: the forward pass is all that counts here
            "apply" => match find_member(class, "forward", 0) {
                Some((_, Value::Function(forward))) => {
                    let takes_context = forward.def.params.first().is_some_and(|p| &*p.name == "ctx");
                    let function = Value::Function(forward);
                    Ok(if takes_context { self.bound(function, Args::of(vec![Value::None])) } else { function })
                }
                _ => Err(diagnose::unknown_attribute(&class.name, name, std::iter::empty()).python()),
            },
            _ if missing_base(class).is_some() => Err(missing_base(class).expect("just seen")),
            _ => {
                let members = class.members.borrow();
                let known = members.0.iter().filter_map(|(k, _)| k.as_str());
                let fault = diagnose::unknown_attribute(&class.name, name, known);
                // Python's classes have more attributes than are known here
                Err(if name.starts_with("__") { fault } else { fault.python() })
            }
        }
    }

    /// `super().name`: a property is computed for the object itself, another value is the base's own.
    pub(super) fn super_attribute(&mut self, name: &Name, scope: &Rc<Scope>) -> Result<Value, Fault> {
        let receiver = self.frames.last().and_then(|frame| frame.first_bound());
        let (Some(Value::Class(class)), Some(receiver)) = (scope.get("__class__"), receiver) else {
            return Err(Fault::runtime_error("super(): no arguments"));
        };
        match mro::member_in(&mro::following(&receiver, &class), name) {
            Some((owner, Value::Function(function)))
                if matches!(kind_of(&function), "property" | "cached_property") =>
            {
                self.call_function(&function, Args::of(vec![receiver]), Some(&owner))
            }
            Some((_, Value::Function(_))) => {
                Err(Fault::unsupported(format!("`super().{name}` is supported only as a call"))
                    .hint(format!("call it: `super().{name}(...)`")))
            }
            Some((_, value)) => Ok(value),
            None => Err(missing_base(&class).unwrap_or_else(|| {
                Fault::unsupported(format!("`super().{name}` of a class defined elsewhere is not supported here"))
            })),
        }
    }

    /// `super().name(args)`
    pub(super) fn super_call(&mut self, name: &Name, args: Args, scope: &Rc<Scope>) -> Result<Value, Fault> {
        let class = scope.get("__class__");
        let receiver = self.frames.last().and_then(|frame| frame.first_bound());
        if let (Some(Value::Class(class)), Some(receiver @ (Value::Instance(_) | Value::Class(_)))) =
            (&class, &receiver)
            && let Some((owner, Value::Function(function))) = mro::member_in(&mro::following(receiver, class), name)
        {
            let mut positional = vec![receiver.clone()];
            positional.extend(args.positional);
            return self.call_function(&function, Args { positional, keyword: args.keyword }, Some(&owner));
        }
        if let Some(Value::Class(class)) = &class
            && let Some(fault) = missing_base(class)
        {
            // what an unknown base prepares is missing later, by its name
            return if &**name == "__init__" { Ok(Value::None) } else { Err(fault) };
        }
        // `object`, Python's exceptions and the bases that PyTorch gives
        match (&**name, &receiver) {
            ("__new__", _) => match args.positional.first() {
                Some(Value::Class(class)) => self.bare(&class.clone()).map(Value::Instance),
                _ => Err(Fault::type_error("__new__() takes a class").python()),
            },
            ("__setattr__", Some(Value::Instance(object))) => match &args.positional[..] {
                [Value::Str(name), value] => {
                    object.attributes.borrow_mut().set_named(name, value.clone());
                    Ok(Value::None)
                }
                _ => Err(Fault::type_error("__setattr__() takes a name and a value").python()),
            },
            ("__init__", Some(Value::Instance(object))) if builtin_base(&object.class).is_some() => {
                object.attributes.borrow_mut().set_named(&"args".into(), Value::tuple(args.positional));
                Ok(Value::None)
            }
            (
                "__init__" | "__init_subclass__" | "__post_init__" | "__enter__" | "__exit__" | "register_buffer"
                | "forward" | "extra_repr" | "train" | "eval" | "to",
                _,
            ) => Ok(Value::None),
            _ => Err(Fault::unsupported(format!(
                "`super().{name}()` of a class defined elsewhere is not supported here"
            ))
            .hint("write its code into the method")),
        }
    }

    /// `issubclass(class, of)`
    pub(crate) fn is_subclass_of(&self, class: &Value, of: &Value) -> bool {
        match (class, of) {
            (class, Value::Tuple(all)) => all.0.iter().any(|of| self.is_subclass_of(class, of)),
            (Value::Class(class), Value::Class(of)) => is_subclass(class, of),
            (_, Value::Builtin(of)) if &**of == "object" => true,
            (Value::Builtin(class), Value::Builtin(of)) => match (&**class, &**of) {
                ("bool", "int") => true,
                (class, of) if is_exception(class) && is_exception(of) => derives(class, of),
                (class, of) => class == of,
            },
            (Value::Class(class), of) => {
                let is = |base: &Value| !matches!(base, Value::Class(_)) && self.is_subclass_of(base, of);
                mro::find_base(class, |base| is(base).then_some(())).is_some()
            }
            (class, of) => equal(class, of),
        }
    }

    /// `isinstance(value, class)`
    pub(crate) fn is_instance(&self, value: &Value, class: &Value) -> bool {
        match class {
            Value::Tuple(classes) => classes.0.iter().any(|c| self.is_instance(value, c)),
            Value::Class(class) => match value {
                Value::Instance(instance) => is_subclass(&instance.class, class),
                _ => false,
            },
            Value::Builtin(name) if is_exception(name.rsplit('.').next().unwrap_or(name)) => match value {
                Value::Opaque(opaque) if opaque.kind == super::exception::KIND => {
                    derives(&super::exception::exception_class(value), name)
                }
                Value::Instance(object) => builtin_base(&object.class).is_some_and(|own| derives(&own, name)),
                _ => false,
            },
            Value::Builtin(name) => {
                let short = name.rsplit('.').next().unwrap_or(name);
                let own = value.type_name();
                match short {
                    "object" => true,
                    "int" => matches!(value, Value::Int(_) | Value::Bool(_)),
                    "Integral" | "integer" => matches!(value, Value::Int(_) | Value::Bool(_)),
                    "ndarray" => matches!(value, Value::Tensor(t) if t.is_numpy()),
                    "Number" | "Real" => matches!(value, Value::Int(_) | Value::Bool(_) | Value::Float(_)),
                    "Tensor" | "Parameter" | "LongTensor" => own == "Tensor",
                    "Sequence" | "Iterable" => {
                        matches!(value, Value::Tuple(_) | Value::List(_) | Value::Range(..) | Value::Str(_))
                    }
                    "Size" => own == "tuple",
                    "Callable" | "FunctionType" => callable(value),
                    "dtype" => matches!(value, Value::DType(_)),
                    "device" => matches!(value, Value::Str(_)),
                    "Mapping" | "Dict" => own == "dict",
                    "List" => own == "list",
                    "Tuple" | "tuple" => {
                        own == "tuple" || matches!(value, Value::Instance(i) if is_named_tuple(&i.class))
                    }
                    _ => own == short,
                }
            }
            _ => false,
        }
    }
}

/// Kind of the [`Opaque`] that `dataclasses.field()` gives.
const FIELD: &str = "field";

/// `dataclasses.field(default=..., default_factory=...)`
pub(crate) fn field(args: &Args) -> Value {
    let given = (args.named("default").cloned(), args.named("default_factory").cloned());
    Value::Opaque(Rc::new(Opaque { kind: FIELD, state: RefCell::new(Box::new(given)) }))
}

/// Whether a class is one of Python's plain types, which a pattern matches as a whole.
pub(super) fn is_known_class(class: &Value) -> bool {
    matches!(class, Value::Builtin(name) if !name.contains('.'))
}

/// The attributes that positional patterns match.
pub(super) fn attribute_names(class: &Value) -> Vec<Name> {
    let Value::Class(class) = class else { return Vec::new() };
    if let Some(names) = class.members.borrow().named("__match_args__").and_then(|v| v.as_items()) {
        return names.iter().filter_map(|n| n.as_str().map(Name::from)).collect();
    }
    class.fields.iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// Whether a value can be called.
pub(crate) fn callable(value: &Value) -> bool {
    match value {
        Value::Function(_) | Value::Partial(_) | Value::Builtin(_) | Value::Method(_) | Value::Class(_) => true,
        Value::Instance(instance) => {
            find_member(&instance.class, "__call__", 0).is_some()
                || find_member(&instance.class, "forward", 0).is_some()
        }
        _ => false,
    }
}

fn kind_of(function: &FunctionValue) -> &'static str {
    let attributes = function.attributes.borrow();
    ["staticmethod", "classmethod", "property", "cached_property"]
        .into_iter()
        .find(|k| attributes.named(k).is_some())
        .unwrap_or("")
}

/// The function that a property is set by.
pub(super) fn setter(instance: &Instance, name: &str) -> Option<Value> {
    match find_member(&instance.class, name, 0)?.1 {
        Value::Function(getter) if kind_of(&getter) == "property" => getter.attributes.borrow().named("setter"),
        _ => None,
    }
}

/// The fault of a base that could not be found, if a class has one.
pub(super) fn missing_base(class: &ClassValue) -> Option<Fault> {
    mro::find_base(class, |base| if let Value::Missing(fault) = base { Some(Fault::clone(fault)) } else { None })
}

/// A member of a class or of its bases, as it was written.
pub(super) fn member_of(class: &Rc<ClassValue>, name: &str) -> Option<Value> {
    find_member(class, name, 0).map(|(_, member)| member)
}

/// The same for those outside.
pub(crate) fn member(class: &Rc<ClassValue>, name: &str) -> Option<Value> {
    member_of(class, name)
}

fn find_member(class: &Rc<ClassValue>, name: &str, depth: usize) -> Option<(Rc<ClassValue>, Value)> {
    if let Some(value) = class.members.borrow().named(name) {
        return Some((class.clone(), value));
    }
    if depth > MAX_BASES {
        return None;
    }
    let mut bases = mro::bases(class);
    match (bases.next(), bases.next()) {
        (Some(only), None) => find_member(only, name, depth + 1),
        (Some(_), Some(_)) => mro::member_in(&mro::order(class)[1..], name),
        (None, _) => None,
    }
}

pub(super) fn is_subclass(class: &Rc<ClassValue>, of: &Rc<ClassValue>) -> bool {
    let is = |base: &Value| matches!(base, Value::Class(base) if Rc::ptr_eq(base, of)).then_some(());
    Rc::ptr_eq(class, of) || mro::find_base(class, is).is_some()
}
