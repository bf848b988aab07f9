//! `collections`: dicts with a default, counters, queues and named tuples, as plain values.
//!
//! Invariant: a defaultdict and a Counter are dicts, a deque is a list; their additional work is charged. Must not know
//! tensors.

use super::strings::parts_of;
use crate::python::machine::Context;
use crate::python::machine::keyed::Places;
use crate::python::value::{Args, Class, Fault, Items, Pairs, VALUE_BYTES, Value};
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

/// A Counter's value for a missing key: 0, which it does not store.
const ABSENT: &str = "collections.Counter.absent";

/// Calls a class of `collections` by its dotted name; None if it is unknown.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    Some(match name.strip_prefix("collections.")? {
        "namedtuple" => named_tuple(args, cx),
        "OrderedDict" => return super::python::call("dict", args, cx),
        "defaultdict" => default_dict(args, cx),
        "Counter" => counter(args, cx),
        "Counter.absent" => Ok(Value::Int(0)),
        "deque" => deque(args, cx),
        "abc.Callable" => Ok(Value::Builtin("ignored".into())),
        _ => return None,
    })
}

/// `namedtuple("Segment", ["start", "end"])`, or the names in one string; `defaults` belong to the last fields.
fn named_tuple(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let name = args.need("namedtuple", 0, "typename")?;
    let fields = args.need("namedtuple", 1, "field_names")?;
    let fields: Vec<Value> = match fields.as_str() {
        Some(text) => {
            let names = || text.split(|c: char| c == ',' || c.is_whitespace()).filter(|name| !name.is_empty());
            cx.charge_steps(text.len() as u64 / 64)?;
            parts_of(names().count(), cx)?;
            names().map(Value::str).collect()
        }
        None => cx.collect(fields)?,
    };
    let mut seen = HashSet::new();
    if let Some(twice) = fields.iter().filter_map(Value::as_str).find(|name| !seen.insert(*name)) {
        return Err(Fault::value_error(format!("Encountered duplicate field name: {twice:?}")));
    }
    cx.charge_bytes(2 * VALUE_BYTES * fields.len() as u64)?;
    cx.charge_steps(fields.len() as u64)?;
    cx.charge_bytes(2 * name.as_str().map_or(0, str::len) as u64)?;
    let defaults = args.named("defaults").map_or(Ok(Vec::new()), |given| cx.collect(given))?;
    let first = fields.len().saturating_sub(defaults.len());
    let named = fields.iter().enumerate().map(|(at, field)| {
        let field = field.as_str().ok_or_else(|| Fault::type_error("a field's name is a string"))?;
        Ok((field.into(), at.checked_sub(first).and_then(|at| defaults.get(at).cloned())))
    });
    Ok(Value::Class(Rc::new(Class {
        name: name.as_str().unwrap_or("namedtuple").into(),
        bases: Items(vec![Value::Builtin("typing.NamedTuple".into())]),
        members: RefCell::default(),
        fields: Some(named.collect::<Result<_, Fault>>()?),
    })))
}

/// A dict that creates missing values.
fn default_dict(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let mut rest = args.clone();
    let factory = if rest.positional.is_empty() { Value::None } else { rest.positional.remove(0) };
    let made = super::python::dict(&rest, cx)?;
    if let (Value::Dict(pairs), false) = (&made, matches!(factory, Value::None)) {
        cx.charge_bytes(2 * VALUE_BYTES)?;
        cx.factories.push((pairs.clone(), factory));
    }
    Ok(made)
}

/// The count of each element; missing elements have 0.
fn counter(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let mut counts: Vec<(Value, Value)> = Vec::new();
    match args.positional.first() {
        Some(Value::Dict(given)) => counts.extend(given.borrow().0.iter().cloned()),
        Some(given) => {
            let mut places = Places::default();
            for item in cx.collect(given)? {
                cx.charge_steps(1 + places.crowd())?;
                match places.find(&item, |at| counts.get(at).map(|(k, _)| k)) {
                    Some(at) => counts[at].1 = Value::Int(counts[at].1.as_int().unwrap_or(0) + 1),
                    None => {
                        places.add(&item, counts.len());
                        counts.push((item, Value::Int(1)));
                    }
                }
            }
        }
        None => {}
    }
    counts.extend(args.keyword.iter().map(|(name, n)| (Value::Str(name.clone()), n.clone())));
    cx.charge_bytes(2 * VALUE_BYTES * (1 + counts.len()) as u64)?;
    let pairs = Rc::new(RefCell::new(Pairs(counts)));
    cx.factories.push((pairs.clone(), Value::Builtin(ABSENT.into())));
    Ok(Value::Dict(pairs))
}

/// Whether a dict is a Counter.
pub(super) fn is_counter(pairs: &Rc<RefCell<Pairs>>, cx: &Context) -> bool {
    matches!(cx.factory_of(pairs), Some(Value::Builtin(name)) if &**name == ABSENT)
}

/// The counts of a Counter combined with the arguments of `update` or `subtract`: as a new dict.
pub(super) fn counter_update(
    own: &Rc<RefCell<Pairs>>,
    args: &Args,
    sign: i64,
    cx: &mut Context,
) -> Result<Value, Fault> {
    let given = counter(args, cx)?;
    let mut all = own.borrow().0.clone();
    let Value::Dict(given) = given else { return Ok(Value::None) };
    let given = given.borrow().0.clone();
    cx.charge_steps((given.len() + all.len()) as u64)?;
    let mut places = Places::of(all.iter().map(|(k, _)| k));
    for (key, n) in given {
        let n = if sign < 0 { cx.unary(python::syntax::ast::UnaryOp::Neg, &n)? } else { n };
        cx.charge_steps(places.crowd())?;
        match places.find(&key, |at| all.get(at).map(|(k, _)| k)) {
            Some(at) => all[at].1 = cx.binary(python::syntax::ast::BinOp::Add, &all[at].1, &n)?,
            None => {
                places.add(&key, all.len());
                all.push((key, n));
            }
        }
    }
    Ok(Value::Dict(Rc::new(RefCell::new(Pairs(all)))))
}

fn deque(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    if args.get(1, "maxlen").is_some_and(|n| !matches!(n, Value::None)) {
        let made = cx.call_shipped("collections.BoundedDeque", args.clone(), false);
        return made.unwrap_or_else(|| Err(Fault::unsupported("a deque with a maxlen is not supported here")));
    }
    let all = args.get(0, "iterable").map_or(Ok(Vec::new()), |given| cx.collect(given))?;
    cx.charge_bytes(VALUE_BYTES * all.len() as u64)?;
    Ok(Value::list(all))
}
