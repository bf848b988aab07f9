//! Methods of strings, lists, dicts, sets and tuples.
//!
//! Invariant: what grows is charged. Must not know tensors.

use super::python::sort;
use crate::language::eval::{Context, equal, formatted, text};
use crate::language::syntax::ast::BinOp;
use crate::language::value::{Args, Fault, VALUE_BYTES, Value};

/// `receiver.name(args)`; None when there is no such method.
pub(super) fn method(receiver: &Value, name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    match receiver {
        Value::Str(given) => string(given, name, args, cx),
        Value::List(_) => list(receiver, name, args, cx),
        Value::Dict(_) => dict(receiver, name, args, cx),
        Value::Set(_) => set(receiver, name, args, cx),
        Value::Tuple(_) | Value::Range(..) => sequence(receiver, name, args, cx),
        Value::Int(i) => match name {
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

/// `text.zfill(8)` and the like.
fn padded(given: &str, name: &str, args: &Args) -> String {
    let width = args.positional.first().and_then(Value::as_int).unwrap_or(0).clamp(0, 1 << 16) as usize;
    let fill = args.positional.get(1).and_then(Value::as_str).and_then(|t| t.chars().next()).unwrap_or(' ');
    let missing = width.saturating_sub(given.chars().count());
    let pad = |n: usize| fill.to_string().repeat(n);
    match name {
        "zfill" => {
            // zeros go between the sign and the digits
            let digits = given.trim_start_matches(['+', '-']);
            let sign = if given.len() > digits.len() { &given[..1] } else { "" };
            format!("{sign}{}{}", "0".repeat(missing), &given[sign.len()..])
        }
        "ljust" => format!("{given}{}", pad(missing)),
        "rjust" => format!("{}{given}", pad(missing)),
        _ => {
            // of an odd number of places the odd one stands left where the width is odd, as CPython has it
            let left = missing / 2 + (missing & width & 1);
            format!("{}{given}{}", pad(left), pad(missing - left))
        }
    }
}

/// `text.split(sep, maxsplit)` from either end.
fn split<'a>(given: &'a str, from_end: bool, args: &Args) -> Result<Vec<&'a str>, Fault> {
    let most = args.get(1, "maxsplit").and_then(Value::as_int).and_then(|n| usize::try_from(n).ok());
    let parts = most.map_or(usize::MAX, |n| n.saturating_add(1));
    match args.get(0, "sep").and_then(Value::as_str) {
        Some("") => Err(Fault::value_error("empty separator")),
        Some(mark) if from_end => {
            let mut found: Vec<&str> = given.rsplitn(parts, mark).collect();
            found.reverse();
            Ok(found)
        }
        Some(mark) => Ok(given.splitn(parts, mark).collect()),
        None if most.is_some() => Err(Fault::unsupported("split() at spaces takes no maxsplit here")
            .hint("name the separator: `text.split(\" \", 1)`")),
        None => Ok(given.split_whitespace().collect()),
    }
}

fn need_text(args: &Args, at: usize) -> Result<&str, Fault> {
    let value = args.positional.get(at).ok_or_else(|| Fault::type_error("this method needs a string"))?;
    value.as_str().ok_or_else(|| Fault::type_error(format!("this method needs a string, not {}", value.type_name())))
}

fn string(given: &str, name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if let Err(fault) = cx.charge_steps(given.len() as u64 / 16).and_then(|()| cx.charge_bytes(given.len() as u64)) {
        return Some(Err(fault));
    }
    let test = |f: fn(&str, &str) -> bool| need_text(args, 0).map(|part| Value::Bool(f(given, part)));
    Some(match name {
        "upper" => Ok(Value::str(given.to_uppercase())),
        "lower" => Ok(Value::str(given.to_lowercase())),
        "strip" | "lstrip" | "rstrip" => {
            let of = args.positional.first().and_then(Value::as_str);
            let off = |c: char| of.map_or(c.is_whitespace(), |of| of.contains(c));
            let left = if name == "rstrip" { given } else { given.trim_start_matches(off) };
            Ok(Value::str(if name == "lstrip" { left } else { left.trim_end_matches(off) }))
        }
        "title" | "capitalize" => {
            let mut start = true;
            let cased = given.chars().map(|c| {
                let c = if start { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
                start = name == "title" && !c.is_alphabetic();
                c
            });
            Ok(Value::str(cased.collect::<String>()))
        }
        "removeprefix" => need_text(args, 0).map(|part| Value::str(given.strip_prefix(part).unwrap_or(given))),
        "removesuffix" => need_text(args, 0).map(|part| Value::str(given.strip_suffix(part).unwrap_or(given))),
        "isalpha" => Ok(Value::Bool(!given.is_empty() && given.chars().all(char::is_alphabetic))),
        "zfill" | "rjust" | "ljust" | "center" => Ok(Value::str(padded(given, name, args))),
        "startswith" => test(|a, b| a.starts_with(b)),
        "endswith" => test(|a, b| a.ends_with(b)),
        "isdigit" => Ok(Value::Bool(!given.is_empty() && given.chars().all(|c| c.is_ascii_digit()))),
        "count" => need_text(args, 0).map(|part| Value::Int(given.matches(part).count() as i64)),
        "find" => need_text(args, 0).map(|part| Value::Int(given.find(part).map_or(-1, |at| at as i64))),
        "replace" => need_text(args, 0).and_then(|from| {
            let to = need_text(args, 1)?;
            cx.charge_bytes((given.matches(from).count() * to.len()) as u64)?;
            Ok(Value::str(given.replace(from, to)))
        }),
        "split" | "rsplit" => split(given, name == "rsplit", args).and_then(|parts| {
            cx.charge_bytes(2 * VALUE_BYTES * parts.len() as u64)?;
            Ok(Value::list(parts.into_iter().map(Value::str).collect()))
        }),
        "partition" | "rpartition" => need_text(args, 0).map(|mark| {
            let at = if name == "partition" { given.find(mark) } else { given.rfind(mark) };
            let (head, middle, tail) = match at {
                Some(at) => (&given[..at], mark, &given[at + mark.len()..]),
                None if name == "partition" => (given, "", ""),
                None => ("", "", given),
            };
            Value::tuple([head, middle, tail].into_iter().map(Value::str).collect())
        }),
        "splitlines" => Ok(Value::list(given.lines().map(Value::str).collect())),
        "join" => args.need("join", 0, "iterable").and_then(|items| {
            let parts: Vec<String> = cx.collect(items)?.iter().map(text).collect();
            cx.charge_bytes(parts.iter().map(|p| p.len() + given.len()).sum::<usize>() as u64)?;
            Ok(Value::str(parts.join(given)))
        }),
        "format" => format_method(given, args),
        _ => return None,
    })
}

/// `"{} {name:spec}".format(...)`, without nesting.
fn format_method(given: &str, args: &Args) -> Result<Value, Fault> {
    let bad = || Fault::value_error("this format string is not understood");
    let (mut out, mut rest, mut next) = (String::new(), given, 0);
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let doubled = rest[at..].starts_with("{{") || rest[at..].starts_with("}}");
        if doubled {
            out.push_str(&rest[at..at + 1]);
            rest = &rest[at + 2..];
            continue;
        }
        let end = rest[at..].find('}').filter(|end| *end > 0).ok_or_else(bad)? + at;
        let (field, spec) = rest[at + 1..end].split_once(':').unwrap_or((&rest[at + 1..end], ""));
        let value = match field.parse::<usize>() {
            Ok(at) => args.positional.get(at),
            Err(_) if field.is_empty() => {
                next += 1;
                args.positional.get(next - 1)
            }
            Err(_) => args.named(field),
        };
        out.push_str(&formatted(value.ok_or_else(bad)?, spec)?);
        rest = &rest[end + 1..];
    }
    Ok(Value::str(out + rest))
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
            let at = args.positional[0].as_int().ok_or_else(|| Fault::type_error("insert() needs an int position"))?;
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
            items.0.rotate_right(by.rem_euclid(n) as usize);
            Ok(Value::None)
        }
        "pop" | "popleft" => {
            let mut items = items.borrow_mut();
            let n = items.0.len() as i64;
            let end = if name == "pop" { -1 } else { 0 };
            let at = args.positional.first().and_then(Value::as_int).unwrap_or(end);
            let at = if at < 0 { at.saturating_add(n) } else { at };
            if (0..n).contains(&at) {
                Ok(items.0.remove(at as usize))
            } else {
                Err(Fault::index_error(format!("pop() from a list of {n}")))
            }
        }
        "remove" => args.need(name, 0, "value").and_then(|value| {
            let at = items.borrow().0.iter().position(|o| equal(o, value));
            let at = at.ok_or_else(|| Fault::value_error("this is not in the list"))?;
            let removed = items.borrow_mut().0.remove(at);
            drop(removed);
            Ok(Value::None)
        }),
        "clear" => {
            let old = std::mem::take(&mut items.borrow_mut().0);
            drop(crate::language::value::Items(old));
            Ok(Value::None)
        }
        "reverse" => {
            items.borrow_mut().0.reverse();
            Ok(Value::None)
        }
        "sort" => {
            let all = items.borrow().0.clone();
            sort(all, args, cx).map(|sorted| {
                items.borrow_mut().0 = sorted;
                Value::None
            })
        }
        "copy" => {
            let all = items.borrow().0.clone();
            cx.charge_bytes(VALUE_BYTES * all.len() as u64).map(|()| Value::list(all))
        }
        _ => return sequence(receiver, name, args, cx),
    })
}

fn sequence(receiver: &Value, name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let find = |cx: &mut Context| -> Result<(Vec<Value>, Value), Fault> {
        Ok((cx.collect(receiver)?, args.need(name, 0, "value")?.clone()))
    };
    match name {
        "index" => Some(find(cx).and_then(|(items, value)| {
            let at = items.iter().position(|o| equal(o, &value));
            at.map(|at| Value::Int(at as i64)).ok_or_else(|| Fault::value_error("this is not in the list"))
        })),
        "count" => {
            Some(find(cx).map(|(items, value)| Value::Int(items.iter().filter(|o| equal(o, &value)).count() as i64)))
        }
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
    let found = |key: &Value| pairs.borrow().0.iter().find(|(k, _)| equal(k, key)).map(|(_, v)| v.clone());
    Some(match name {
        "keys" => Ok(Value::list(pairs.borrow().0.iter().map(|(k, _)| k.clone()).collect())),
        "values" => Ok(Value::list(pairs.borrow().0.iter().map(|(_, v)| v.clone()).collect())),
        "items" => {
            let pair = |(k, v): &(Value, Value)| Value::tuple(vec![k.clone(), v.clone()]);
            cx.charge_bytes(3 * VALUE_BYTES * pairs.borrow().0.len() as u64)
                .map(|()| Value::list(pairs.borrow().0.iter().map(pair).collect()))
        }
        "get" => args
            .need(name, 0, "key")
            .map(|key| found(key).or_else(|| args.positional.get(1).cloned()).unwrap_or(Value::None)),
        "pop" => args.need(name, 0, "key").and_then(|key| {
            let at = pairs.borrow().0.iter().position(|(k, _)| equal(k, key));
            match (at, args.positional.get(1)) {
                (Some(at), _) => Ok(pairs.borrow_mut().0.remove(at).1),
                (None, Some(default)) => Ok(default.clone()),
                (None, None) => Err(Fault::new("KeyError", "key-error", "no such key in this dict")),
            }
        }),
        "setdefault" => args.need(name, 0, "key").and_then(|key| {
            if let Some(value) = found(key) {
                return Ok(value);
            }
            let value = args.positional.get(1).cloned().unwrap_or(Value::None);
            cx.charge_bytes(2 * VALUE_BYTES)?;
            pairs.borrow_mut().0.push((key.clone(), value.clone()));
            Ok(value)
        }),
        "update" => {
            let more =
                args.positional.first().map(|m| if let Value::Dict(m) = m { m.borrow().0.clone() } else { Vec::new() });
            let keyword = args.keyword.iter().map(|(n, v)| (Value::Str(n.clone()), v.clone()));
            let all: Vec<(Value, Value)> = more.unwrap_or_default().into_iter().chain(keyword).collect();
            let steps = (all.len() * pairs.borrow().0.len()) as u64 / 16;
            cx.charge_bytes(2 * VALUE_BYTES * all.len() as u64).and_then(|()| cx.charge_steps(steps)).map(|()| {
                let mut pairs = pairs.borrow_mut();
                for (key, value) in all {
                    match pairs.0.iter().position(|(k, _)| equal(k, &key)) {
                        Some(at) => pairs.0[at].1 = value,
                        None => pairs.0.push((key, value)),
                    }
                }
                Value::None
            })
        }
        "most_common" => {
            let all = pairs.borrow().0.clone();
            let most = args.positional.first().and_then(Value::as_int).map_or(all.len(), |n| n.max(0) as usize);
            let mut ordered = all;
            ordered.sort_by_key(|(_, n)| std::cmp::Reverse(n.as_int().unwrap_or(0)));
            let pair = |(k, n): (Value, Value)| Value::tuple(vec![k, n]);
            cx.charge_bytes(3 * VALUE_BYTES * most.min(ordered.len()) as u64)
                .map(|()| Value::list(ordered.into_iter().take(most).map(pair).collect()))
        }
        "copy" => Ok(Value::Dict(std::rc::Rc::new(std::cell::RefCell::new(crate::language::value::Pairs(
            pairs.borrow().0.clone(),
        ))))),
        _ => return None,
    })
}

fn set(receiver: &Value, name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let Value::Set(items) = receiver else { return None };
    Some(match name {
        "add" => args.need(name, 0, "value").and_then(|value| {
            cx.charge_steps(items.borrow().0.len() as u64 / 16 + 1)?;
            if !items.borrow().0.iter().any(|o| equal(o, value)) {
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
            cx.charge_steps((own.len() * other.len()) as u64 / 8)?;
            let within = |all: &[Value], v: &Value| all.iter().any(|o| equal(o, v));
            Ok(Value::Bool(match name {
                "issubset" => own.iter().all(|v| within(&other, v)),
                "issuperset" => other.iter().all(|v| within(&own, v)),
                _ => !own.iter().any(|v| within(&other, v)),
            }))
        }),
        "discard" | "remove" => args.need(name, 0, "value").and_then(|value| {
            let at = items.borrow().0.iter().position(|o| equal(o, value));
            match at {
                Some(at) => drop(items.borrow_mut().0.remove(at)),
                None if name == "remove" => return Err(Fault::new("KeyError", "key-error", "this is not in the set")),
                None => {}
            }
            Ok(Value::None)
        }),
        "copy" => cx.set_of(items.borrow().0.clone()),
        _ => return None,
    })
}
