//! `dataclasses` as functions, and the methods of named tuples.
//!
//! Invariant: a passed object is never changed. Must not know tensors.

use crate::python::machine::Context;
use crate::python::machine::class::is_named_tuple;
use crate::python::value::{Args, Class, Fault, Instance, Items, Pairs, VALUE_BYTES, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Deepest records within one another that are made dicts of.
const MAX_DEPTH: usize = 32;

/// Calls a function of `dataclasses` by its dotted name; None for unknown names.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let name = name.strip_prefix("dataclasses.")?;
    Some(match name {
        "replace" => record(name, args).and_then(|object| replaced(&object, &args.keyword, cx)),
        "fields" => fields(args),
        "asdict" => record(name, args).and_then(|object| plain(&Value::Instance(object), true, MAX_DEPTH, cx)),
        "astuple" => record(name, args).and_then(|object| plain(&Value::Instance(object), false, MAX_DEPTH, cx)),
        "is_dataclass" => {
            let has = |class: &Class| class.fields.is_some() && !is_named_tuple(class);
            Ok(Value::Bool(match args.positional.first() {
                Some(Value::Instance(object)) => has(&object.class),
                Some(Value::Class(class)) => has(class),
                _ => false,
            }))
        }
        _ => return None,
    })
}

/// `record._replace(x=1)`, `_asdict()`: methods of a named tuple; None for unknown names.
pub(crate) fn method(object: &Rc<Instance>, name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if !is_named_tuple(&object.class) {
        return None;
    }
    Some(match name {
        "_replace" => replaced(object, &args.keyword, cx),
        "_asdict" => Ok(Value::Dict(Rc::new(RefCell::new(Pairs(
            named(object).into_iter().map(|(name, value)| (Value::Str(name), value)).collect(),
        ))))),
        "index" | "count" => {
            let all = Value::tuple(named(object).into_iter().map(|(_, value)| value).collect());
            return super::containers::method(&all, name, args, cx);
        }
        _ => return None,
    })
}

/// The fields with their values, in order.
fn named(object: &Instance) -> Vec<(Rc<str>, Value)> {
    let attributes = object.attributes.borrow();
    let fields = object.class.fields.iter().flatten();
    fields.filter_map(|(name, _)| Some((name.clone(), attributes.named(name)?))).collect()
}

fn record(function: &str, args: &Args) -> Result<Rc<Instance>, Fault> {
    match args.need(function, 0, "obj")? {
        Value::Instance(object) if object.class.fields.is_some() => Ok(object.clone()),
        other => Err(Fault::type_error(format!("{function}() needs a dataclass, not {}", other.type_name()))),
    }
}

/// Another object of the class, with some fields changed.
fn replaced(object: &Rc<Instance>, changes: &[(Rc<str>, Value)], cx: &mut Context) -> Result<Value, Fault> {
    let mut keyword = named(object);
    for (name, value) in changes {
        match keyword.iter_mut().find(|(own, _)| own == name) {
            Some((_, own)) => *own = value.clone(),
            None => {
                let fields: Vec<&str> = keyword.iter().map(|(n, _)| &**n).collect();
                return Err(Fault::type_error(format!("{} has no field `{name}`", object.class.name))
                    .hint(format!("its fields are: {}", fields.join(", "))));
            }
        }
    }
    cx.call(&Value::Class(object.class.clone()), Args { positional: Vec::new(), keyword })
}

/// `dataclasses.fields(x)`: objects with a name and a default.
fn fields(args: &Args) -> Result<Value, Fault> {
    let class = match args.need("fields", 0, "class_or_instance")? {
        Value::Instance(object) => object.class.clone(),
        Value::Class(class) => class.clone(),
        other => return Err(Fault::type_error(format!("fields() needs a dataclass, not {}", other.type_name()))),
    };
    let kind =
        Rc::new(Class { name: "Field".into(), bases: Items::default(), members: RefCell::default(), fields: None });
    let one = |(name, default): &(Rc<str>, Option<Value>)| {
        let mut pairs = Pairs::default();
        pairs.set_named(&"name".into(), Value::Str(name.clone()));
        if let Some(default) = default {
            pairs.set_named(&"default".into(), default.clone());
        }
        Value::Instance(Rc::new(Instance { class: kind.clone(), attributes: RefCell::new(pairs) }))
    };
    Ok(Value::tuple(class.fields.iter().flatten().map(one).collect()))
}

/// A record as a dict or tuple, and those inside it.
fn plain(value: &Value, dict: bool, depth: usize, cx: &mut Context) -> Result<Value, Fault> {
    if depth == 0 {
        return Err(Fault::value_error(format!("records nest more than {MAX_DEPTH} deep")));
    }
    // what holds one record twice has it twice as a dict
    cx.charge_steps(1)?;
    cx.charge_bytes(2 * VALUE_BYTES)?;
    let mut all = |items: &[Value]| items.iter().map(|v| plain(v, dict, depth - 1, cx)).collect::<Result<Vec<_>, _>>();
    Ok(match value {
        Value::Instance(object) if object.class.fields.is_some() && !is_named_tuple(&object.class) => {
            let own = named(object);
            let values = all(&own.iter().map(|(_, v)| v.clone()).collect::<Vec<_>>())?;
            match dict {
                true => {
                    let pairs = own.into_iter().zip(values).map(|((name, _), v)| (Value::Str(name), v)).collect();
                    Value::Dict(Rc::new(RefCell::new(Pairs(pairs))))
                }
                false => Value::tuple(values),
            }
        }
        Value::List(items) => Value::list(all(&items.borrow().0)?),
        Value::Tuple(items) => Value::tuple(all(&items.0)?),
        Value::Dict(pairs) => {
            let one = |(k, v): &(Value, Value)| Ok((k.clone(), plain(v, dict, depth - 1, cx)?));
            let pairs = pairs.borrow().0.iter().map(one).collect::<Result<_, Fault>>()?;
            Value::Dict(Rc::new(RefCell::new(Pairs(pairs))))
        }
        other => other.clone(),
    })
}
