//! Methods of strings, and `%` on them.
//!
//! Invariant: positions count characters, as in Python; growth is charged. Must not know tensors.

use crate::python::machine::{Context, formatted, repr, text};
use crate::python::value::{Args, Fault, VALUE_BYTES, Value};
use std::collections::HashMap;

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
            // an odd number of places puts the odd one on the left if the width is odd, as in CPython
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
        None => Ok(match most {
            None => given.split_whitespace().collect(),
            Some(most) if from_end => {
                let (mut rest, mut found) = (given.trim_end(), Vec::new());
                while found.len() < most
                    && let Some((head, last)) = rest.rsplit_once(char::is_whitespace)
                {
                    found.push(last);
                    rest = head.trim_end();
                }
                found.extend((!rest.is_empty()).then_some(rest));
                found.reverse();
                found
            }
            Some(most) => {
                let (mut rest, mut found) = (given.trim_start(), Vec::new());
                while found.len() < most
                    && let Some((first, tail)) = rest.split_once(char::is_whitespace)
                {
                    found.push(first);
                    rest = tail.trim_start();
                }
                found.extend((!rest.is_empty()).then_some(rest));
                found
            }
        }),
    }
}

fn need_text(args: &Args, at: usize) -> Result<&str, Fault> {
    let value = args.positional.get(at).ok_or_else(|| Fault::type_error("this method needs a string"))?;
    value.as_str().ok_or_else(|| Fault::type_error(format!("this method needs a string, not {}", value.type_name())))
}

/// `text.name(args)`; None when there is no such method.
pub(super) fn method(given: &str, name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if let Err(fault) = cx.charge_steps(given.len() as u64 / 16).and_then(|()| cx.charge_bytes(given.len() as u64)) {
        return Some(Err(fault));
    }
    let all = |f: fn(char) -> bool| Value::Bool(!given.is_empty() && given.chars().all(f));
    let cased =
        |other: fn(char) -> bool| Value::Bool(given.chars().any(char::is_alphabetic) && !given.chars().any(other));
    Some(match name {
        "upper" => Ok(Value::str(given.to_uppercase())),
        "lower" => Ok(Value::str(given.to_lowercase())),
        "strip" | "lstrip" | "rstrip" => {
            let of = args.positional.first().and_then(Value::as_str);
            if let Err(fault) = cx.charge_steps((given.len() as u64).saturating_mul(of.map_or(0, str::len) as u64) / 64)
            {
                return Some(Err(fault));
            }
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
        "isalpha" => Ok(all(char::is_alphabetic)),
        "isalnum" => Ok(all(char::is_alphanumeric)),
        "isspace" => Ok(all(char::is_whitespace)),
        "isupper" => Ok(cased(char::is_lowercase)),
        "islower" => Ok(cased(char::is_uppercase)),
        "isidentifier" => {
            let start = given.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
            Ok(Value::Bool(start && given.chars().all(|c| c.is_alphanumeric() || c == '_')))
        }
        "casefold" => Ok(Value::str(given.to_lowercase())),
        "swapcase" => {
            let swapped = |c: char| if c.is_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
            Ok(Value::str(given.chars().map(swapped).collect::<String>()))
        }
        "translate" => translated(given, args, cx),
        "zfill" | "rjust" | "ljust" | "center" => made(padded(given, name, args), cx),
        "startswith" | "endswith" => {
            let (within, _) = window(given, args);
            let starts = name == "startswith";
            if let Some(Value::Tuple(parts)) = args.positional.first()
                && let Err(fault) = cx.charge_steps(parts.0.len() as u64 / 4)
            {
                return Some(Err(fault));
            }
            any_of(args, |part| if starts { within.starts_with(part) } else { within.ends_with(part) })
        }
        "isdigit" | "isdecimal" | "isnumeric" => Ok(all(|c| c.is_ascii_digit())),
        "count" => need_text(args, 0).map(|part| Value::Int(window(given, args).0.matches(part).count() as i64)),
        "find" | "rfind" | "index" | "rindex" => found(given, name, args),
        "replace" => need_text(args, 0).and_then(|from| {
            let to = need_text(args, 1)?;
            cx.charge_bytes((given.matches(from).count() * to.len()) as u64)?;
            let most = args.get(2, "count").and_then(Value::as_int).and_then(|n| usize::try_from(n).ok());
            Ok(Value::str(most.map_or_else(|| given.replace(from, to), |n| given.replacen(from, to, n))))
        }),
        "split" | "rsplit" => {
            // there are at most as many parts as marks and one
            let marks = match args.get(0, "sep").and_then(Value::as_str) {
                Some("") => 0,
                Some(mark) => given.matches(mark).count(),
                None => given.split_whitespace().count(),
            };
            parts_of(marks, cx)
                .and_then(|()| split(given, name == "rsplit", args))
                .map(|parts| Value::list(parts.into_iter().map(Value::str).collect()))
        }
        "partition" | "rpartition" => need_text(args, 0).map(|mark| {
            let at = if name == "partition" { given.find(mark) } else { given.rfind(mark) };
            let (head, middle, tail) = match at {
                Some(at) => (&given[..at], mark, &given[at + mark.len()..]),
                None if name == "partition" => (given, "", ""),
                None => ("", "", given),
            };
            Value::tuple([head, middle, tail].into_iter().map(Value::str).collect())
        }),
        "splitlines" => parts_of(given.matches('\n').count(), cx).map(|()| {
            match args.get(0, "keepends").and_then(Value::as_bool) == Some(true) {
                true => Value::list(given.split_inclusive('\n').map(Value::str).collect()),
                false => Value::list(given.lines().map(Value::str).collect()),
            }
        }),
        "expandtabs" => {
            let size = args.get(0, "tabsize").and_then(Value::as_int).unwrap_or(8).clamp(0, 1000) as usize;
            if let Err(fault) = cx.charge_bytes((size * given.matches('\t').count()) as u64) {
                return Some(Err(fault));
            }
            let (mut out, mut column) = (String::new(), 0);
            for c in given.chars() {
                match c {
                    '\t' if size > 0 => {
                        let missing = size - column % size;
                        out.extend(std::iter::repeat_n(' ', missing));
                        column += missing;
                    }
                    '\t' => {}
                    _ => {
                        out.push(c);
                        column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
                    }
                }
            }
            Ok(Value::str(out))
        }
        "isascii" => Ok(Value::Bool(given.is_ascii())),
        "join" => args.need("join", 0, "iterable").and_then(|items| {
            let items = cx.collect(items)?;
            if let Some((at, other)) = items.iter().enumerate().find(|(_, v)| v.as_str().is_none()) {
                let message = format!("sequence item {at}: expected str instance, {} found", other.type_name());
                return Err(Fault::type_error(message).python());
            }
            let parts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            cx.charge_steps(parts.len() as u64 / 4)?;
            cx.charge_bytes(parts.iter().fold(0u64, |all, p| all.saturating_add((p.len() + given.len()) as u64)))?;
            Ok(Value::str(parts.join(given)))
        }),
        "format" => format_method(given, args, cx),
        _ => return None,
    })
}

/// `"{} {name:spec}".format(...)`, without nesting.
fn format_method(given: &str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let bad = || Fault::value_error("this format string is not supported");
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
        let value = value.ok_or_else(bad)?;
        // one field may stand for a long text many times
        cx.charge_text(value)?;
        push(&mut out, &formatted(value, spec)?, cx)?;
        rest = &rest[end + 1..];
    }
    Ok(Value::str(out + rest))
}

/// A text that a method has made longer, charged.
fn made(text: String, cx: &mut Context) -> Result<Value, Fault> {
    cx.charge_bytes(text.len() as u64).map(|()| Value::str(text))
}

/// A text goes on: a field may be wider than what it shows.
fn push(out: &mut String, more: &str, cx: &mut Context) -> Result<(), Fault> {
    cx.charge_bytes(more.len() as u64)?;
    out.push_str(more);
    Ok(())
}

/// Charges the parts of a text that is divided at so many marks.
pub(super) fn parts_of(marks: usize, cx: &mut Context) -> Result<(), Fault> {
    cx.charge_steps(marks as u64 / 4)?;
    cx.charge_bytes(2 * VALUE_BYTES * (marks as u64 + 1))
}

/// `startswith` and `endswith`: of one text, or of any in a tuple.
fn any_of(args: &Args, holds: impl Fn(&str) -> bool) -> Result<Value, Fault> {
    match args.positional.first() {
        Some(Value::Tuple(parts)) => Ok(Value::Bool(parts.0.iter().filter_map(Value::as_str).any(holds))),
        _ => need_text(args, 0).map(|part| Value::Bool(holds(part))),
    }
}

/// The part of a text between the second and the third argument, and its start.
fn window(given: &str, args: &Args) -> (String, i64) {
    let count = given.chars().count() as i64;
    let bound = |at: usize, default: i64| match args.positional.get(at).and_then(Value::as_int) {
        Some(i) => if i < 0 { i.saturating_add(count) } else { i }.clamp(0, count),
        None => default,
    };
    let (start, end) = (bound(1, 0), bound(2, count));
    (given.chars().skip(start as usize).take((end - start).max(0) as usize).collect(), start)
}

/// `find`, `rfind`, `index` and `rindex`.
fn found(given: &str, name: &str, args: &Args) -> Result<Value, Fault> {
    let part = need_text(args, 0)?;
    let (within, start) = window(given, args);
    let byte = if name.starts_with('r') { within.rfind(part) } else { within.find(part) };
    match byte {
        Some(byte) => Ok(Value::Int(start + within[..byte].chars().count() as i64)),
        None if name.ends_with("find") => Ok(Value::Int(-1)),
        None => Err(Fault::value_error("substring not found")),
    }
}

/// `text.translate(table)`: the table's keys are characters' numbers.
fn translated(given: &str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let Some(Value::Dict(table)) = args.positional.first() else {
        return Err(Fault::type_error("translate() needs a dict from str.maketrans()"));
    };
    let table = table.borrow();
    cx.charge_steps(table.0.len() as u64 / 4)?;
    // of two equal keys the first counts
    let places: HashMap<i64, &Value> = table.0.iter().rev().filter_map(|(k, v)| Some((k.as_int()?, v))).collect();
    let mut out = String::new();
    for c in given.chars() {
        match places.get(&i64::from(u32::from(c))) {
            None => out.push(c),
            Some(Value::None) => {}
            Some(Value::Int(i)) => out.extend(u32::try_from(*i).ok().and_then(char::from_u32)),
            Some(other) => {
                cx.charge_text(other)?;
                push(&mut out, &text(other), cx)?;
            }
        }
    }
    Ok(Value::str(out))
}

/// `str.maketrans(from, to, without)` or of one dict.
pub(super) fn table(args: &Args) -> Result<Value, Fault> {
    let number = |c: char| Value::Int(i64::from(u32::from(c)));
    let mut pairs: Vec<(Value, Value)> = Vec::new();
    match &args.positional[..] {
        [Value::Dict(given)] => {
            for (key, value) in &given.borrow().0 {
                let key = match key.as_str().and_then(|k| k.chars().next()) {
                    Some(c) => number(c),
                    None => key.clone(),
                };
                pairs.push((key, value.clone()));
            }
        }
        [Value::Str(from), Value::Str(to), rest @ ..] if from.chars().count() == to.chars().count() => {
            pairs.extend(from.chars().zip(to.chars()).map(|(a, b)| (number(a), number(b))));
            let without = rest.first().and_then(Value::as_str).unwrap_or("");
            pairs.extend(without.chars().map(|c| (number(c), Value::None)));
        }
        _ => return Err(Fault::value_error("str.maketrans() takes a dict, or two strings of equal length")),
    }
    Ok(Value::Dict(std::rc::Rc::new(std::cell::RefCell::new(python::value::Pairs(pairs)))))
}

/// `"%d of %s" % values`
pub(crate) fn percent(given: &str, values: &Value, cx: &mut Context) -> Result<Value, Fault> {
    let items = match values {
        Value::Tuple(items) => items.0.clone(),
        other => vec![other.clone()],
    };
    let (mut out, mut next, mut rest) = (String::new(), 0, given);
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let named = rest.strip_prefix('(').and_then(|r| r.split_once(')'));
        let value = match (named, values) {
            (Some((name, after)), Value::Dict(pairs)) => {
                rest = after;
                let value = pairs.borrow().named(name);
                // one value may stand for a long text many times
                value.iter().try_for_each(|value| cx.charge_text(value))?;
                value
            }
            _ => {
                next += 1;
                items.get(next - 1).cloned()
            }
        };
        let value = value.ok_or_else(|| Fault::type_error("not enough arguments for format string"))?;
        let end = rest.find(|c: char| c.is_ascii_alphabetic());
        let end = end.ok_or_else(|| Fault::value_error("incomplete format"))?;
        let (spec, kind) = (&rest[..end], &rest[end..=end]);
        // `-` puts text left in a C format, `<` in a format of Python's own
        let (left, spec) = (spec.contains('-'), spec.replace('-', ""));
        let shown = match kind {
            "d" | "i" | "u" => {
                let x = value.as_float().ok_or_else(|| {
                    Fault::type_error(format!("%d format: a real number is required, not {}", value.type_name()))
                })?;
                formatted(&Value::Int(x.trunc() as i64), &format!("{}{spec}d", if left { "<" } else { "" }))?
            }
            "s" | "r" => {
                let shown = Value::str(if kind == "s" { text(&value) } else { repr(&value) });
                formatted(&shown, &format!("{}{spec}", if left { "<" } else { ">" }))?
            }
            "f" | "F" | "e" | "E" | "g" | "G" | "x" | "X" | "o" => {
                formatted(&value, &format!("{}{spec}{kind}", if left { "<" } else { "" }))?
            }
            other => return Err(Fault::value_error(format!("unsupported format character '{other}'"))),
        };
        push(&mut out, &shown, cx)?;
        rest = &rest[end + 1..];
    }
    if next < items.len() && !matches!(values, Value::Dict(_)) {
        return Err(Fault::type_error("not all arguments converted during string formatting"));
    }
    Ok(Value::str(out + rest))
}
