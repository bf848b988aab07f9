//! Python's own functions: `len`, `range`, `int`, `isinstance` and the like.
//!
//! Invariant: a function that needs the value of a symbolic index is refused, and the message names the equivalent
//! tensor function. Must not know tensors' elements.

use super::numbers::{abs, divmod, number, power, round};
use crate::ir::graph::Ty;
use crate::python::diagnose;
use crate::python::machine::class::{callable, is_named_tuple};
use crate::python::machine::exception::{exception, is_exception};
use crate::python::machine::iterator;
use crate::python::machine::keyed::Places;
use crate::python::machine::{Context, repr, text};
use crate::python::syntax::ast::{BinOp, CmpOp};
use crate::python::value::{Args, Fault, Function as FunctionValue, Pairs, VALUE_BYTES, Value, range_len};
use std::cell::RefCell;
use std::rc::Rc;

const NAMES: &[&str] = &[
    "len",
    "range",
    "enumerate",
    "zip",
    "min",
    "max",
    "abs",
    "round",
    "int",
    "float",
    "bool",
    "str",
    "repr",
    "print",
    "sum",
    "any",
    "all",
    "sorted",
    "reversed",
    "map",
    "filter",
    "list",
    "tuple",
    "dict",
    "set",
    "frozenset",
    "isinstance",
    "callable",
    "hasattr",
    "getattr",
    "setattr",
    "type",
    "id",
    "divmod",
    "pow",
    "format",
    "ord",
    "chr",
    "slice",
    "object",
    "super",
    "property",
    "staticmethod",
    "classmethod",
    "iter",
    "next",
    "hash",
    "issubclass",
    "NotImplemented",
    "bytes",
    "complex",
    "vars",
    "dir",
    "bin",
    "hex",
    "oct",
];

/// Whether a name is Python's own.
pub(crate) fn is_builtin(name: &str) -> bool {
    NAMES.contains(&name) || is_exception(name)
}

/// All names, for suggestions.
pub(crate) fn names() -> &'static [&'static str] {
    NAMES
}

/// Calls one of Python's functions; None when the name is not Python's.
pub(crate) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if name.contains('.') {
        return None;
    }
    if is_exception(name) {
        return Some(match args.positional.first() {
            Some(value) => cx.charge_text(value).map(|()| exception(name, &text(value))),
            None => Ok(exception(name, "")),
        });
    }
    Some(match name {
        "len" => len(args, cx),
        "range" => range(args),
        "enumerate" => enumerate(args, cx),
        "zip" => zip(args, cx),
        "min" => extreme("min", args, cx),
        "max" => extreme("max", args, cx),
        "abs" => abs(args, cx),
        "round" => round(args, cx),
        "int" | "float" | "bool" => number(name, args, cx),
        "str" => match args.positional.first() {
            Some(value) => cx.shown(value, "str"),
            None => Ok(Value::str("")),
        },
        "repr" => args.need("repr", 0, "object").and_then(|v| cx.shown(v, "repr")),
        "print" => Ok(Value::None),
        "sum" => sum(args, cx),
        "any" | "all" => any_all(name == "any", args, cx),
        "sorted" => sorted(args, cx),
        "reversed" => kept(args, "reversed", cx).map(|v| Value::list(v.into_iter().rev().collect())),
        "map" => map(args, cx),
        "filter" => filter(args, cx),
        "list" => optional_items(args, cx).map(Value::list),
        "iter" => match args.positional.first() {
            Some(Value::Opaque(same)) if same.kind == iterator::KIND => Ok(Value::Opaque(same.clone())),
            _ => kept(args, "iter", cx).map(iterator::of),
        },
        "tuple" => optional_items(args, cx).map(Value::tuple),
        "set" | "frozenset" => optional_items(args, cx).and_then(|v| cx.set_of(v)),
        "dict" => dict(args, cx),
        "isinstance" => isinstance(args, cx),
        "callable" => args.need(name, 0, "object").map(|v| Value::Bool(callable(v))),
        "hasattr" => attribute_of(name, args, cx).map(|v| Value::Bool(v.is_some())),
        "getattr" => getattr(args, cx),
        "type" => args.need(name, 0, "object").map(type_of),
        "divmod" => divmod(args, cx),
        "pow" => power(args, cx),
        "format" => args.need(name, 0, "value").and_then(|v| {
            let spec = args.get(1, "format_spec").and_then(Value::as_str).unwrap_or("");
            cx.formatted_as(v, spec).map(Value::str)
        }),
        "ord" => args.need(name, 0, "c").and_then(|c| {
            let first = c.as_str().filter(|t| t.chars().count() == 1).and_then(|t| t.chars().next());
            first
                .map(|c| Value::Int(i64::from(u32::from(c))))
                .ok_or_else(|| Fault::type_error("ord() needs a character"))
        }),
        "chr" => args.need(name, 0, "i").and_then(|i| {
            let c = i.as_int().and_then(|i| u32::try_from(i).ok()).and_then(char::from_u32);
            c.map(|c| Value::str(c.to_string())).ok_or_else(|| Fault::value_error("chr() needs a character's number"))
        }),
        "bin" | "hex" | "oct" => args.need(name, 0, "number").and_then(|number| match number {
            Value::Int(_) | Value::Bool(_) => {
                let spec = match name {
                    "bin" => "#b",
                    "hex" => "#x",
                    _ => "#o",
                };
                cx.formatted_as(&Value::Int(number.as_int().unwrap_or(0)), spec).map(Value::str)
            }
            other => Err(Fault::type_error(format!("{name}() of {}", other.type_name()))),
        }),
        "slice" => Ok(slice(args)),
        "next" => args.need("next", 0, "iterator").and_then(|v| iterator::next(v, args.positional.get(1))),
        "setattr" => {
            let named = args.get(1, "name").and_then(Value::as_str).map(python::syntax::Name::from);
            match (args.need(name, 0, "object"), named, args.need(name, 2, "value")) {
                (Ok(object), Some(named), Ok(value)) => {
                    cx.set_attribute(object, &named, value.clone()).map(|()| Value::None)
                }
                _ => Err(Fault::type_error("setattr() takes an object, a name and a value")),
            }
        }
        "issubclass" => two(name, args).map(|(class, of)| Value::Bool(cx.is_subclass_of(&class, &of))),
        "id" => args.need(name, 0, "object").map(|v| Value::Int(identity(v))),
        "hash" => args.need(name, 0, "object").and_then(|v| hash(v, cx)),
        "staticmethod" | "classmethod" | "property" => args.need(name, 0, "function").map(|f| described(name, f, args)),
        "object" | "super" | "NotImplemented" | "bytes" | "complex" | "vars" | "dir" => {
            Err(Fault::unsupported(format!("{name}() is not supported here")))
        }
        _ => return None,
    })
}

/// `staticmethod(f)` and its kin as calls: a function of its own, so that `f` stays what it was.
fn described(kind: &str, function: &Value, args: &Args) -> Value {
    let Value::Function(of) = function else { return function.clone() };
    let made = FunctionValue {
        def: of.def.clone(),
        defaults: of.defaults.clone(),
        scope: of.scope.clone(),
        attributes: RefCell::new(Pairs(of.attributes.borrow().0.clone())),
    };
    let mut attributes = made.attributes.borrow_mut();
    attributes.set_named(&kind.into(), Value::Bool(true));
    if let (Some(setter), "property") = (args.get(1, "fset"), kind) {
        attributes.set_named(&"setter".into(), setter.clone());
    }
    drop(attributes);
    Value::Function(Rc::new(made))
}

fn items(args: &Args, function: &str, cx: &mut Context) -> Result<Vec<Value>, Fault> {
    cx.collect(args.need(function, 0, "iterable")?)
}

/// The same, for a result that keeps them.
fn kept(args: &Args, function: &str, cx: &mut Context) -> Result<Vec<Value>, Fault> {
    let items = items(args, function, cx)?;
    cx.charge_bytes(VALUE_BYTES * items.len() as u64)?;
    Ok(items)
}

fn optional_items(args: &Args, cx: &mut Context) -> Result<Vec<Value>, Fault> {
    match args.positional.first() {
        Some(value) => {
            let items = cx.collect(value)?;
            cx.charge_bytes(VALUE_BYTES * items.len() as u64)?;
            Ok(items)
        }
        None => Ok(Vec::new()),
    }
}

pub(super) fn two(function: &str, args: &Args) -> Result<(Value, Value), Fault> {
    Ok((args.need(function, 0, "a")?.clone(), args.need(function, 1, "b")?.clone()))
}

fn len(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let value = args.need("len", 0, "object")?;
    let n = match value {
        Value::Str(text) => {
            cx.charge_steps(text.len() as u64 / 64)?;
            text.chars().count()
        }
        Value::Tuple(items) => items.0.len(),
        Value::List(items) | Value::Set(items) => items.borrow().0.len(),
        Value::Dict(pairs) => pairs.borrow().0.len(),
        Value::Range(start, stop, step) => range_len(*start, *stop, *step) as usize,
        Value::Tensor(tensor) => match tensor.borrow().shape().first() {
            Some(n) => *n,
            None => return Err(Fault::type_error("len() of a 0-dimensional tensor")),
        },
        Value::Instance(instance) if is_named_tuple(&instance.class) => cx.collect(value)?.len(),
        Value::Class(_) => cx.collect(value)?.len(),
        Value::Instance(instance) => {
            let method = cx.instance_method(instance, "__len__");
            let method = method.ok_or_else(|| Fault::type_error(format!("{} has no len()", value.type_name())))?;
            return cx.call(&method, Args::default());
        }
        other => match cx.symbolic_attribute(other, "shape").and_then(|s| s.as_items()) {
            Some(shape) if !shape.is_empty() => return Ok(shape[0].clone()),
            _ => {
                let fault = Fault::type_error(format!("{} has no len()", other.type_name()));
                return Err(if other.is_plain() { fault.python() } else { fault });
            }
        },
    };
    Ok(Value::Int(n as i64))
}

fn range(args: &Args) -> Result<Value, Fault> {
    let mut numbers = Vec::new();
    for value in &args.positional {
        if value.is_symbolic() {
            return Err(diagnose::not_a_number("range", "the length of a loop cannot depend on an index"));
        }
        let number = value.as_int();
        numbers.push(number.ok_or_else(|| {
            Fault::type_error(format!("range() needs ints, not {}", value.type_name()))
                .hint("use `//` for an int quotient")
        })?);
    }
    match numbers[..] {
        [stop] => Ok(Value::Range(0, stop, 1)),
        [start, stop] => Ok(Value::Range(start, stop, 1)),
        [_, _, 0] => Err(Fault::value_error("range() with a step of 0")),
        [start, stop, step] => Ok(Value::Range(start, stop, step)),
        _ => Err(Fault::type_error("range() takes one to three ints")),
    }
}

fn enumerate(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let start = args.get(1, "start").and_then(Value::as_int).unwrap_or(0);
    let items = items(args, "enumerate", cx)?;
    cx.charge_bytes(3 * VALUE_BYTES * items.len() as u64)?;
    let pair = |(at, item): (usize, Value)| Value::tuple(vec![Value::Int(start.wrapping_add(at as i64)), item]);
    Ok(Value::list(items.into_iter().enumerate().map(pair).collect()))
}

fn zip(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let mut columns = Vec::new();
    if let Some(rows) = iterator::zipped_with_itself(&args.positional) {
        return rows.map(iterator::of);
    }
    let strict = args.named("strict").and_then(Value::as_bool) == Some(true);
    for value in &args.positional {
        columns.push(if iterator::open_ended(value).is_some() { None } else { Some(cx.collect(value)?) });
        let held = columns.last().and_then(|c| c.as_ref().map(Vec::len)).unwrap_or(0);
        cx.charge_bytes(VALUE_BYTES * held as u64)?;
    }
    // those without an end give as many as the shortest of the others
    let n = columns.iter().flatten().map(Vec::len).min();
    if strict && columns.iter().any(|c| c.as_ref().map(Vec::len) != n) {
        return Err(Fault::value_error("zip() arguments have different lengths"));
    }
    if n.is_none() && !columns.is_empty() {
        return Err(iterator::endless());
    }
    let n = n.unwrap_or(0);
    let mut known = Vec::with_capacity(columns.len());
    for (column, value) in columns.into_iter().zip(&args.positional) {
        known.push(match (column, iterator::open_ended(value)) {
            (Some(column), _) => column,
            (None, Some(open)) => iterator::take(open, n)?,
            (None, None) => Vec::new(),
        });
    }
    let columns = known;
    let n = columns.iter().map(Vec::len).min().unwrap_or(0);
    cx.charge_bytes(2 * VALUE_BYTES * (n * columns.len()) as u64)?;
    let row = |at: usize| Value::tuple(columns.iter().map(|c| c[at].clone()).collect());
    Ok(Value::list((0..n).map(row).collect()))
}

fn extreme(name: &'static str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let items = match &args.positional[..] {
        [one] => cx.collect(one)?,
        _ => args.positional.clone(),
    };
    if items.iter().any(Value::is_symbolic) {
        return Err(diagnose::python_extreme(name));
    }
    let key = args.named("key").cloned();
    let op = if name == "min" { CmpOp::Lt } else { CmpOp::Gt };
    let mut best: Option<(Value, Value)> = None;
    for item in items {
        cx.charge_steps(1)?;
        let measure = match &key {
            Some(key) => cx.call(key, Args::of(vec![item.clone()]))?,
            None => item.clone(),
        };
        let better = match &best {
            None => true,
            Some((_, old)) => {
                let holds = cx.compare(op, &measure, old)?;
                cx.truth(&holds)?
            }
        };
        if better {
            best = Some((item, measure));
        }
    }
    let best = best.map(|(item, _)| item).or_else(|| args.named("default").cloned());
    best.ok_or_else(|| Fault::value_error(format!("{name}() of an empty sequence")))
}

fn sum(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let items = items(args, "sum", cx)?;
    let mut total = args.get(1, "start").cloned().unwrap_or(Value::Int(0));
    for (at, item) in items.iter().enumerate() {
        cx.charge_steps(1)?;
        // the zero to start with adds nothing to a symbolic number, but makes an int of a truth value
        let number = item.is_symbolic() && cx.symbolic_ty(item) != Ty::Bool;
        total = if at == 0 && number && matches!(total, Value::Int(0)) {
            item.clone()
        } else {
            cx.binary(BinOp::Add, &total, item)?
        };
    }
    Ok(total)
}

fn any_all(any: bool, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    for item in items(args, if any { "any" } else { "all" }, cx)? {
        cx.charge_steps(1)?;
        if item.is_symbolic() {
            return Err(diagnose::python_any_all(any));
        }
        if cx.truth(&item)? == any {
            return Ok(Value::Bool(any));
        }
    }
    Ok(Value::Bool(!any))
}

fn sorted(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let all = kept(args, "sorted", cx)?;
    super::sorting::sort(all, args, cx).map(Value::list)
}

fn map(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let function = args.need("map", 0, "function")?.clone();
    let columns = Args::of(args.rest(1).to_vec());
    let rows = zip(&columns, cx)?.as_items().unwrap_or_default();
    let mut out = Vec::with_capacity(rows.len());
    for row in rows {
        cx.charge_steps(1)?;
        out.push(cx.call(&function, Args::of(row.as_items().unwrap_or_default()))?);
    }
    Ok(Value::list(out))
}

fn filter(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let function = args.need("filter", 0, "function")?.clone();
    let mut out = Vec::new();
    for item in cx.collect(args.need("filter", 1, "iterable")?)? {
        cx.charge_steps(1)?;
        let keep = match &function {
            Value::None => item.clone(),
            function => cx.call(function, Args::of(vec![item.clone()]))?,
        };
        if cx.truth(&keep)? {
            cx.charge_bytes(VALUE_BYTES)?;
            out.push(item);
        }
    }
    Ok(Value::list(out))
}

pub(super) fn dict(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let mut pairs = Pairs::default();
    let mut places = Places::default();
    match args.positional.first() {
        Some(Value::Dict(given)) => {
            cx.charge_bytes(2 * VALUE_BYTES * given.borrow().0.len() as u64)?;
            pairs.0.extend(given.borrow().0.iter().cloned());
        }
        Some(other) => {
            for pair in cx.collect(other)? {
                cx.charge_steps(1 + places.crowd())?;
                match &pair.as_items().unwrap_or_default()[..] {
                    // the last value of a key counts
                    [key, value] => match places.find(key, |at| pairs.0.get(at).map(|(k, _)| k)) {
                        Some(at) => pairs.0[at].1 = value.clone(),
                        None => {
                            places.add(key, pairs.0.len());
                            pairs.0.push((key.clone(), value.clone()));
                        }
                    },
                    _ => return Err(Fault::type_error("dict() needs pairs of key and value")),
                }
            }
        }
        None => {}
    }
    if places.is_empty() {
        places = Places::of(pairs.0.iter().map(|(k, _)| k));
    }
    for (name, value) in &args.keyword {
        let key = Value::Str(name.clone());
        match places.find(&key, |at| pairs.0.get(at).map(|(k, _)| k)) {
            Some(at) => pairs.0[at].1 = value.clone(),
            None => {
                places.add(&key, pairs.0.len());
                pairs.0.push((key, value.clone()));
            }
        }
    }
    cx.charge_bytes(2 * VALUE_BYTES * pairs.0.len() as u64)?;
    cx.charge_steps(0)?;
    Ok(Value::Dict(Rc::new(RefCell::new(pairs))))
}

fn isinstance(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let (value, class) = two("isinstance", args)?;
    Ok(Value::Bool(cx.is_instance(&value, &class)))
}

fn attribute_of(function: &str, args: &Args, cx: &mut Context) -> Result<Option<Value>, Fault> {
    let object = args.need(function, 0, "object")?;
    let name = args.need(function, 1, "name")?;
    let name = name.as_str().ok_or_else(|| Fault::type_error("an attribute's name is a string"))?;
    match cx.attribute(object, &name.into()) {
        // methods of builtin values are looked up when called: the known ones are listed
        Ok(Value::Method(_)) if !super::method_exists(object, name) => Ok(None),
        Ok(Value::Builtin(dotted)) if !python::exports::may_exist(&dotted) => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(fault) if fault.fatal || !fault.python => Err(fault),
        Err(_) => Ok(None),
    }
}

fn getattr(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    match (attribute_of("getattr", args, cx)?, args.positional.get(2)) {
        (Some(value), _) => Ok(value),
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => {
            let name = text(args.need("getattr", 1, "name")?);
            Err(diagnose::unknown_attribute(&args.need("getattr", 0, "object")?.type_name(), &name, std::iter::empty()))
        }
    }
}

/// The same number for the same object.
fn identity(value: &Value) -> i64 {
    match value {
        Value::Instance(i) => Rc::as_ptr(i) as *const u8 as i64,
        Value::Function(f) => Rc::as_ptr(f) as *const u8 as i64,
        Value::Tensor(t) => Rc::as_ptr(t) as *const u8 as i64,
        Value::List(l) => Rc::as_ptr(l) as *const u8 as i64,
        Value::Dict(d) => Rc::as_ptr(d) as *const u8 as i64,
        other => {
            // the same text has the same number in every run
            let shown = repr(other);
            shown.bytes().fold(1469598103934665603u64, |h, b| (h ^ u64::from(b)).wrapping_mul(1099511628211)) as i64
                >> 2
        }
    }
}

/// `hash(value)`, if it is the same in every run.
fn hash(value: &Value, cx: &mut Context) -> Result<Value, Fault> {
    const MODULUS: i64 = (1 << 61) - 1;
    if let Value::Instance(object) = value
        && let Some(method) = cx.instance_method(object, "__hash__")
    {
        return cx.call(&method, Args::default());
    }
    let whole = match value {
        Value::Int(_) | Value::Bool(_) => value.as_int(),
        Value::Float(x) if x.fract() == 0.0 && x.abs() < 9e15 => Some(*x as i64),
        _ => None,
    };
    match whole {
        // Python keeps -1 for errors
        Some(n) => Ok(Value::Int(if n % MODULUS == -1 { -2 } else { n % MODULUS })),
        None if matches!(value, Value::List(_) | Value::Dict(_) | Value::Set(_)) => {
            Err(Fault::type_error(format!("unhashable type: '{}'", value.type_name())).python())
        }
        None => Err(Fault::unsupported(format!("hash() of a {} differs between runs", value.type_name()))
            .hint("use a number of your own: a position in a list, or a constant")),
    }
}

fn type_of(value: &Value) -> Value {
    match value {
        Value::Instance(instance) => Value::Class(instance.class.clone()),
        other if other.type_name() == "Tensor" => Value::Builtin("torch.Tensor".into()),
        Value::Opaque(opaque) if opaque.kind == python::machine::exception::KIND => {
            Value::Builtin(python::machine::exception::exception_class(value).into())
        }
        other => Value::Builtin(other.type_name().into()),
    }
}

fn slice(args: &Args) -> Value {
    let at = |i: usize| args.positional.get(i).cloned().unwrap_or(Value::None);
    let parts =
        if args.positional.len() == 1 { vec![Value::None, at(0), Value::None] } else { vec![at(0), at(1), at(2)] };
    Value::Slice(Rc::new(python::value::Items(parts)))
}
