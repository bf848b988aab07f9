//! Methods of lists, dicts, sets and tuples.
//!
//! Invariant: growth is charged. Must not know tensors.

use super::sorting::sort;
use super::strings;
use crate::python::machine::keyed::Members;
use crate::python::machine::{Context, equal};
use crate::python::syntax::ast::BinOp;
use crate::python::value::{Args, Fault, VALUE_BYTES, Value};

/// Methods of lists, deques among them.
const OF_LISTS: &[&str] = &[
    "append",
    "extend",
    "insert",
    "appendleft",
    "extendleft",
    "rotate",
    "pop",
    "popleft",
    "remove",
    "clear",
    "reverse",
    "sort",
    "copy",
    "index",
    "count",
    "numel",
    "maxlen",
];

/// Methods of dicts, Counters among them.
const OF_DICTS: &[&str] = &[
    "keys",
    "values",
    "items",
    "get",
    "pop",
    "setdefault",
    "update",
    "most_common",
    "clear",
    "popitem",
    "copy",
    "move_to_end",
    "elements",
    "total",
    "subtract",
    "fromkeys",
    "default_factory",
];

const OF_SETS: &[&str] = &[
    "add",
    "union",
    "intersection",
    "difference",
    "symmetric_difference",
    "update",
    "issubset",
    "issuperset",
    "isdisjoint",
    "discard",
    "remove",
    "clear",
    "pop",
    "copy",
    "intersection_update",
    "difference_update",
    "symmetric_difference_update",
];

const OF_STRINGS: &[&str] = &[
    "upper",
    "lower",
    "strip",
    "lstrip",
    "rstrip",
    "title",
    "capitalize",
    "removeprefix",
    "removesuffix",
    "isalpha",
    "isalnum",
    "isspace",
    "isupper",
    "islower",
    "isidentifier",
    "casefold",
    "swapcase",
    "translate",
    "zfill",
    "rjust",
    "ljust",
    "center",
    "startswith",
    "endswith",
    "isdigit",
    "isdecimal",
    "isnumeric",
    "count",
    "find",
    "rfind",
    "index",
    "rindex",
    "replace",
    "split",
    "rsplit",
    "partition",
    "rpartition",
    "splitlines",
    "join",
    "format",
    "encode",
    "expandtabs",
    "isascii",
    "isprintable",
    "istitle",
    "maketrans",
    "format_map",
    "type",
];

const OF_NUMBERS: &[&str] = &[
    "bit_length",
    "bit_count",
    "is_integer",
    "item",
    "real",
    "imag",
    "numerator",
    "denominator",
    "conjugate",
    "as_integer_ratio",
    "to_bytes",
    "from_bytes",
    "hex",
    "fromhex",
];

/// The methods and attributes of a value's type in Python; None if not all are known.
pub(super) fn methods_of(value: &Value) -> Option<&'static [&'static str]> {
    Some(match value {
        Value::Str(_) => OF_STRINGS,
        Value::List(_) => OF_LISTS,
        Value::Dict(_) => OF_DICTS,
        Value::Set(_) => OF_SETS,
        Value::Tuple(_) => &["index", "count", "numel"],
        Value::Range(..) => &["index", "count", "start", "stop", "step"],
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => OF_NUMBERS,
        _ => return None,
    })
}

/// `receiver.name(args)`; None when there is no such method.
pub(super) fn method(receiver: &Value, name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    match receiver {
        Value::Str(given) => strings::method(given, name, args, cx),
        Value::List(_) => list(receiver, name, args, cx),
        Value::Dict(_) => dict(receiver, name, args, cx),
        Value::Set(_) => set(receiver, name, args, cx),
        Value::Tuple(_) | Value::Range(..) => sequence(receiver, name, args, cx),
        Value::Int(i) => match name {
            "bit_count" => Some(Ok(Value::Int(i64::from(i.unsigned_abs().count_ones())))),
            "conjugate" => Some(Ok(receiver.clone())),
            "bit_length" => Some(Ok(Value::Int(i64::from(64 - i.unsigned_abs().leading_zeros())))),
            "item" => Some(Ok(receiver.clone())),
            _ => None,
        },
        Value::Float(f) => match name {
            "is_integer" => Some(Ok(Value::Bool(f.fract() == 0.0))),
            "item" => Some(Ok(receiver.clone())),
            _ => None,
        },
        _ => None,
    }
}

fn list(receiver: &Value, name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let Value::List(items) = receiver else { return None };
    Some(match name {
        "append" => args.need(name, 0, "object").and_then(|value| {
            cx.charge_bytes(VALUE_BYTES)?;
            items.borrow_mut().0.push(value.clone());
            Ok(Value::None)
        }),
        "extend" => args.need(name, 0, "iterable").and_then(|more| {
            let more = cx.collect(more)?;
            cx.charge_bytes(VALUE_BYTES * more.len() as u64)?;
            items.borrow_mut().0.extend(more);
            Ok(Value::None)
        }),
        "insert" => args.need(name, 1, "object").and_then(|value| {
            cx.charge_bytes(VALUE_BYTES)?;
            cx.charge_steps(items.borrow().0.len() as u64 / 64)?;
            let mut items = items.borrow_mut();
            let n = items.0.len() as i64;
            let at = args
                .need(name, 0, "index")?
                .as_int()
                .ok_or_else(|| Fault::type_error("insert() needs an int position"))?;
            let at = if at < 0 { at.saturating_add(n) } else { at }.clamp(0, n);
            items.0.insert(at as usize, value.clone());
            Ok(Value::None)
        }),
        "appendleft" => args.need(name, 0, "object").and_then(|value| {
            cx.charge_bytes(VALUE_BYTES)?;
            cx.charge_steps(items.borrow().0.len() as u64 / 64)?;
            items.borrow_mut().0.insert(0, value.clone());
            Ok(Value::None)
        }),
        "rotate" => {
            let by = args.positional.first().and_then(Value::as_int).unwrap_or(1);
            let mut items = items.borrow_mut();
            let n = items.0.len().max(1) as i64;
            cx.charge_move(items.0.len()).map(|()| {
                items.0.rotate_right(by.rem_euclid(n) as usize);
                Value::None
            })
        }
        "pop" | "popleft" => {
            let mut items = items.borrow_mut();
            let n = items.0.len() as i64;
            let end = if name == "pop" { -1 } else { 0 };
            let at = args.positional.first().and_then(Value::as_int).unwrap_or(end);
            let at = if at < 0 { at.saturating_add(n) } else { at };
            if (0..n).contains(&at) {
                cx.charge_move((n - at) as usize).map(|()| items.0.remove(at as usize))
            } else {
                Err(Fault::index_error(format!("pop() from a list of {n}")))
            }
        }
        "remove" => args.need(name, 0, "value").and_then(|value| {
            let at = cx.position(&items.borrow().0, value)?;
            let at = at.ok_or_else(|| Fault::value_error("this is not in the list"))?;
            cx.charge_move(items.borrow().0.len() - at)?;
            let removed = items.borrow_mut().0.remove(at);
            drop(removed);
            Ok(Value::None)
        }),
        "clear" => {
            let old = std::mem::take(&mut items.borrow_mut().0);
            drop(python::value::Items(old));
            Ok(Value::None)
        }
        "reverse" => {
            let mut items = items.borrow_mut();
            cx.charge_move(items.0.len()).map(|()| {
                items.0.reverse();
                Value::None
            })
        }
        "sort" => {
            let all = items.borrow().0.clone();
            sort(all, args, cx).map(|sorted| {
                items.borrow_mut().0 = sorted;
                Value::None
            })
        }
        "copy" => {
            let all = receiver.as_items().unwrap_or_default();
            cx.charge_bytes(VALUE_BYTES * all.len() as u64).map(|()| Value::list(all))
        }
        _ => return sequence(receiver, name, args, cx),
    })
}

/// `items.index(value, start, end)` and `items.count(value)`.
fn found(items: &[Value], name: &str, value: &Value, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    if name == "count" {
        let n = items.iter().filter(|item| equal(item, value)).count();
        return cx.charge_steps(0).map(|()| Value::Int(n as i64));
    }
    let n = items.len() as i64;
    let bound = |at: usize, default: i64| match args.positional.get(at).and_then(Value::as_int) {
        Some(i) => if i < 0 { i.saturating_add(n) } else { i }.clamp(0, n),
        None => default,
    };
    let (start, end) = (bound(1, 0), bound(2, n));
    let at = cx.position(&items[start as usize..end.max(start) as usize], value)?;
    at.map(|at| Value::Int(start + at as i64)).ok_or_else(|| Fault::value_error("this is not in the list"))
}

fn sequence(receiver: &Value, name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    match name {
        "index" | "count" => Some(args.need(name, 0, "value").and_then(|value| match receiver {
            Value::List(items) => found(&items.borrow().0, name, value, args, cx),
            Value::Tuple(items) => found(&items.0, name, value, args, cx),
            _ => found(&cx.collect(receiver)?, name, value, args, cx),
        })),
        // a torch.Size knows its product
        "numel" => Some(
            cx.collect(receiver)
                .map(|items| Value::Int(items.iter().filter_map(Value::as_int).fold(1i64, i64::wrapping_mul))),
        ),
        _ => None,
    }
}

fn dict(receiver: &Value, name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let Value::Dict(pairs) = receiver else { return None };
    let found = |key: &Value, cx: &mut Context| -> Result<Option<Value>, Fault> {
        Ok(cx.place_in_dict(pairs, key)?.map(|at| pairs.borrow().0[at].1.clone()))
    };
    let charged = |cx: &mut Context| {
        let n = pairs.borrow().0.len() as u64;
        cx.charge_steps(n / 8)?;
        cx.charge_bytes(VALUE_BYTES * n)
    };
    Some(match name {
        "keys" => charged(cx).map(|()| Value::list(pairs.borrow().0.iter().map(|(k, _)| k.clone()).collect())),
        "values" => charged(cx).map(|()| Value::list(pairs.borrow().0.iter().map(|(_, v)| v.clone()).collect())),
        "items" => {
            let pair = |(k, v): &(Value, Value)| Value::tuple(vec![k.clone(), v.clone()]);
            charged(cx)
                .and_then(|()| cx.charge_bytes(2 * VALUE_BYTES * pairs.borrow().0.len() as u64))
                .map(|()| Value::list(pairs.borrow().0.iter().map(pair).collect()))
        }
        "get" => args
            .need(name, 0, "key")
            .and_then(|key| Ok(found(key, cx)?.or_else(|| args.positional.get(1).cloned()).unwrap_or(Value::None))),
        "pop" => args.need(name, 0, "key").and_then(|key| {
            let at = cx.place_in_dict(pairs, key)?;
            match (at, args.positional.get(1)) {
                (Some(at), _) => {
                    cx.charge_move(pairs.borrow().0.len() - at)?;
                    Ok(pairs.borrow_mut().0.remove(at).1)
                }
                (None, Some(default)) => Ok(default.clone()),
                (None, None) => Err(Fault::new("KeyError", "key-error", "no such key in this dict")),
            }
        }),
        "setdefault" => args.need(name, 0, "key").and_then(|key| {
            if let Some(value) = found(key, cx)? {
                return Ok(value);
            }
            let value = args.positional.get(1).cloned().unwrap_or(Value::None);
            cx.charge_bytes(2 * VALUE_BYTES)?;
            pairs.borrow_mut().0.push((key.clone(), value.clone()));
            Ok(value)
        }),
        "update" => {
            let counts = super::collections::is_counter(pairs, cx);
            let made = match counts {
                true => super::collections::counter_update(pairs, args, 1, cx),
                false => super::python::dict(args, cx),
            };
            let all: Vec<(Value, Value)> = match made {
                Ok(Value::Dict(more)) => more.borrow().0.clone(),
                Ok(_) => Vec::new(),
                Err(fault) => return Some(Err(fault)),
            };
            cx.charge_bytes(2 * VALUE_BYTES * all.len() as u64).and_then(|()| {
                for (key, value) in all {
                    match cx.place_in_dict(pairs, &key)? {
                        Some(at) => drop(std::mem::replace(&mut pairs.borrow_mut().0[at].1, value)),
                        None => pairs.borrow_mut().0.push((key, value)),
                    }
                }
                Ok(Value::None)
            })
        }
        "subtract" if super::collections::is_counter(pairs, cx) => {
            super::collections::counter_update(pairs, args, -1, cx).map(|new| {
                if let Value::Dict(new) = new {
                    *pairs.borrow_mut() = new.take();
                }
                Value::None
            })
        }
        "total" => {
            let all: Vec<Value> = pairs.borrow().0.iter().map(|(_, n)| n.clone()).collect();
            cx.charge_steps(all.len() as u64)
                .and_then(|()| all.iter().try_fold(Value::Int(0), |sum, n| cx.binary(BinOp::Add, &sum, n)))
        }
        "elements" => {
            let times = |n: &Value| n.as_int().unwrap_or(0).max(0) as u64;
            let all = pairs.borrow().0.iter().fold(0u64, |all, (_, n)| all.saturating_add(times(n)));
            let charged = cx.charge_bytes(all.saturating_mul(VALUE_BYTES));
            charged.and_then(|()| cx.charge_steps(all / 8)).map(|()| {
                let repeated = |(k, n): &(Value, Value)| std::iter::repeat_n(k.clone(), times(n) as usize);
                Value::list(pairs.borrow().0.iter().flat_map(repeated).collect())
            })
        }
        "most_common" => {
            let all = pairs.borrow().0.clone();
            let most = args.positional.first().and_then(Value::as_int).map_or(all.len(), |n| n.max(0) as usize);
            let mut ordered = all;
            ordered.sort_by_key(|(_, n)| std::cmp::Reverse(n.as_int().unwrap_or(0)));
            let pair = |(k, n): (Value, Value)| Value::tuple(vec![k, n]);
            let n = ordered.len() as u64;
            if let Err(fault) = cx.charge_steps(n * (64 - n.leading_zeros()) as u64 / 4) {
                return Some(Err(fault));
            }
            cx.charge_bytes(3 * VALUE_BYTES * most.min(ordered.len()) as u64)
                .map(|()| Value::list(ordered.into_iter().take(most).map(pair).collect()))
        }
        "clear" => {
            let old = std::mem::take(&mut *pairs.borrow_mut());
            drop(old);
            Ok(Value::None)
        }
        "popitem" => {
            let last = pairs.borrow_mut().0.pop();
            let missing = || Fault::new("KeyError", "key-error", "popitem(): dictionary is empty");
            last.map(|(k, v)| Value::tuple(vec![k, v])).ok_or_else(missing)
        }
        // as `copy.copy`, which charges it
        "copy" => super::copying::call(false, &Args::of(vec![receiver.clone()]), cx),
        _ => return None,
    })
}

fn set(receiver: &Value, name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let Value::Set(items) = receiver else { return None };
    Some(match name {
        "add" => args.need(name, 0, "value").and_then(|value| {
            if cx.place_in_set(items, value)?.is_none() {
                cx.charge_bytes(VALUE_BYTES)?;
                items.borrow_mut().0.push(value.clone());
            }
            Ok(Value::None)
        }),
        "union" | "intersection" | "difference" | "symmetric_difference" | "update" => {
            let op = match name {
                "union" | "update" => BinOp::Or,
                "intersection" => BinOp::And,
                "difference" => BinOp::Sub,
                _ => BinOp::Xor,
            };
            let joined = args.positional.iter().try_fold(receiver.clone(), |joined, other| {
                let other = cx.collect(other).and_then(|o| cx.set_of(o))?;
                cx.binary(op, &joined, &other)
            });
            joined.and_then(|joined| {
                let all = joined.as_items().unwrap_or_default();
                if name != "update" {
                    // of no other set it is a copy
                    return cx.set_of(all);
                }
                items.borrow_mut().0 = all;
                Ok(Value::None)
            })
        }
        "issubset" | "issuperset" | "isdisjoint" => args.need(name, 0, "other").and_then(|other| {
            let (own, other) = (items.borrow().0.clone(), cx.collect(other)?);
            cx.charge_steps((own.len() + other.len()) as u64)?;
            let (of_own, of_other) = (Members::of(&own), Members::of(&other));
            cx.charge_steps((of_own.crowd() + of_other.crowd()).saturating_mul((own.len() + other.len()) as u64))?;
            let holds = match name {
                "issubset" => own.iter().all(|v| of_other.has(v)),
                "issuperset" => other.iter().all(|v| of_own.has(v)),
                _ => !own.iter().any(|v| of_other.has(v)),
            };
            cx.charge_steps(0)?;
            Ok(Value::Bool(holds))
        }),
        "discard" | "remove" => args.need(name, 0, "value").and_then(|value| {
            let at = cx.place_in_set(items, value)?;
            match at {
                Some(at) => {
                    cx.charge_move(items.borrow().0.len() - at)?;
                    drop(items.borrow_mut().0.remove(at));
                }
                None if name == "remove" => return Err(Fault::new("KeyError", "key-error", "this is not in the set")),
                None => {}
            }
            Ok(Value::None)
        }),
        "clear" => {
            let old = std::mem::take(&mut *items.borrow_mut());
            drop(old);
            Ok(Value::None)
        }
        "pop" => {
            let mut items = items.borrow_mut();
            match items.0.is_empty() {
                true => Err(Fault::new("KeyError", "key-error", "pop from an empty set")),
                false => cx.charge_move(items.0.len()).map(|()| items.0.remove(0)),
            }
        }
        "copy" => cx.set_of(items.borrow().0.clone()),
        _ => return None,
    })
}
