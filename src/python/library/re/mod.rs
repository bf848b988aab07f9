//! Python's `re`, on strings that are known when the text runs.
//!
//! Invariant: a pattern has CPython's meaning, or is refused in words; positions count characters. Must not know
//! tensors.

mod pattern;
#[cfg(test)]
mod tests;

use self::pattern::{Flags, Mode, Program, Refusal, Spans};
use crate::python::machine::Context;
use crate::python::machine::iterator;
use crate::python::value::{Args, Fault, Opaque, Pairs, VALUE_BYTES, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Kind of a compiled pattern.
pub(crate) const PATTERN: &str = "re.Pattern";
/// Kind of a match.
pub(crate) const MATCH: &str = "re.Match";

/// Functions of the module, for suggestions.
pub(super) const NAMES: &[&str] = &[
    "re.compile",
    "re.match",
    "re.fullmatch",
    "re.search",
    "re.findall",
    "re.finditer",
    "re.split",
    "re.sub",
    "re.subn",
    "re.escape",
];

/// A compiled pattern and its text.
#[derive(Clone)]
struct Pattern {
    text: Rc<str>,
    program: Rc<Program>,
}

/// The matched text.
#[derive(Clone)]
struct Matched {
    program: Rc<Program>,
    text: Rc<str>,
    spans: Spans,
}

/// `re.IGNORECASE` and similar; None for other names.
pub(super) fn value(name: &str) -> Option<Value> {
    Some(Value::Int(match name.strip_prefix("re.")? {
        "I" | "IGNORECASE" => 2,
        "M" | "MULTILINE" => 8,
        "S" | "DOTALL" => 16,
        "U" | "UNICODE" => 32,
        "X" | "VERBOSE" => 64,
        "A" | "ASCII" => 256,
        "NOFLAG" => 0,
        _ => return None,
    }))
}

/// Calls a function of `re`, or a method of a pattern or match such as `re.Match.group`; None for unknown names.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if let Some(method) = name.strip_prefix("re.Match.") {
        return of_match(method, args);
    }
    let method = name.strip_prefix("re.Pattern.").filter(|m| !matches!(*m, "compile" | "escape"));
    let short = method.or_else(|| name.strip_prefix("re."))?;
    Some(match short {
        "compile" => args.need(name, 0, "pattern").and_then(|pattern| {
            let flags = flags_at(args, 1)?;
            compiled(pattern, flags).map(|p| Value::Opaque(of(PATTERN, p)))
        }),
        "escape" => text_of(name, args, 0, "pattern").map(|text| Value::str(escaped(&text))),
        "match" | "fullmatch" | "search" | "findall" | "finditer" | "split" | "sub" | "subn" => {
            run(short, method.is_some(), args, cx)
        }
        _ => return None,
    })
}

fn of<T: 'static>(kind: &'static str, state: T) -> Rc<Opaque> {
    Rc::new(Opaque { kind, state: RefCell::new(Box::new(state)) })
}

fn state<T: Clone + 'static>(value: &Value, kind: &str) -> Option<T> {
    let Value::Opaque(opaque) = value else { return None };
    if opaque.kind != kind {
        return None;
    }
    opaque.state.borrow().downcast_ref::<T>().cloned()
}

fn flags_at(args: &Args, at: usize) -> Result<i64, Fault> {
    match args.get(at, "flags") {
        None => Ok(0),
        Some(Value::Int(bits)) => Ok(*bits),
        Some(other) => Err(Fault::type_error(format!("flags are ints such as re.I, not {}", other.type_name()))),
    }
}

fn text_of(name: &str, args: &Args, at: usize, param: &str) -> Result<Rc<str>, Fault> {
    match args.need(name, at, param)? {
        Value::Str(text) => Ok(text.clone()),
        other => Err(Fault::type_error(format!("expected string or bytes-like object, got '{}'", other.type_name()))),
    }
}

fn compiled(pattern: &Value, flags: i64) -> Result<Pattern, Fault> {
    if let Some(known) = state::<Pattern>(pattern, PATTERN) {
        return match flags {
            0 => Ok(known),
            _ => Err(Fault::value_error("cannot process flags argument with a compiled pattern")),
        };
    }
    let Value::Str(text) = pattern else {
        return Err(Fault::type_error(format!("a pattern is a string, not {}", pattern.type_name())));
    };
    let reported = |refusal: Refusal| match refusal.python {
        true => Fault::value_error(format!("re.error: {} in the pattern {text:?}", refusal.message)),
        false => Fault::unsupported(format!("{}: {text:?}", refusal.message))
            .hint("split the text with `str.split`, or use a simpler pattern"),
    };
    let program = Flags::of(flags).and_then(|flags| Program::new(text, flags)).map_err(reported)?;
    Ok(Pattern { text: text.clone(), program: Rc::new(program) })
}

/// `re.escape`
fn escaped(text: &str) -> String {
    const SPECIAL: &str = "()[]{}?*+-|^$\\.&~# \t\n\r\u{b}\u{c}";
    let mut out = String::new();
    for c in text.chars() {
        if SPECIAL.contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// One of the functions that search. `method`: of a pattern, whose flags are known.
fn run(name: &str, method: bool, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let pattern = args.need(name, 0, "pattern")?.clone();
    let replaces = matches!(name, "sub" | "subn");
    let at = 1 + usize::from(replaces);
    let text = text_of(name, args, at, "string")?;
    let counts = replaces || name == "split";
    let limit = match args.get(at + 1, if replaces { "count" } else { "maxsplit" }).filter(|_| counts) {
        None => 0,
        Some(given) => {
            given.as_int().ok_or_else(|| Fault::type_error(format!("the count of {name}() must be an int")))?
        }
    };
    if method && !counts && args.positional.len() > 2 {
        return Err(Fault::unsupported(format!("{name}() of a part of the text is not supported here"))
            .hint("cut the text: `pattern.search(text[start:])`"));
    }
    let flags = if method { 0 } else { flags_at(args, at + 1 + usize::from(counts))? };
    let program = compiled(&pattern, flags)?.program;
    let mode = match name {
        "match" => Mode::Here,
        "fullmatch" => Mode::Whole,
        _ => Mode::Anywhere,
    };
    if matches!(name, "match" | "fullmatch" | "search") {
        let found = all(&program, &text, mode, 1, cx)?.pop();
        return Ok(found.map_or(Value::None, |m| Value::Opaque(of(MATCH, m))));
    }
    if limit < 0 && name != "split" {
        return Err(Fault::unsupported(format!("{name}() with a negative count is not supported here")));
    }
    let most = if limit > 0 { limit as usize } else { usize::MAX };
    let found = if limit < 0 { Vec::new() } else { all(&program, &text, mode, most, cx)? };
    cx.charge_bytes((found.len() * (1 + program.groups)) as u64 * VALUE_BYTES + text.len() as u64)?;
    match name {
        "findall" => Ok(Value::list(found.iter().map(Matched::listed).collect())),
        "finditer" => Ok(iterator::of(found.into_iter().map(|m| Value::Opaque(of(MATCH, m))).collect())),
        "split" => Ok(Value::list(split(&text, &found))),
        _ => {
            let count = found.len() as i64;
            let replaced = replaced(&text, &found, args.need(name, 1, "repl")?, cx)?;
            let replaced = Value::str(replaced);
            Ok(if name == "sub" { replaced } else { Value::tuple(vec![replaced, Value::Int(count)]) })
        }
    }
}

/// Matches one after the other, at most so many.
fn all(
    program: &Rc<Program>,
    text: &Rc<str>,
    mut mode: Mode,
    most: usize,
    cx: &mut Context,
) -> Result<Vec<Matched>, Fault> {
    let (mut out, mut from) = (Vec::new(), 0);
    while out.len() < most {
        cx.charge_steps(1 + (text.len() - from) as u64 / 8)?;
        let found = program.find(text, from, mode).map_err(|_| {
            Fault::limit("too-many-steps", "this pattern needs too many steps for this text")
                .hint("avoid repeats within repeats, as in `(a+)+`")
        })?;
        let Some(spans) = found else { break };
        let (start, end) = spans[0].unwrap_or_default();
        // an empty match may follow another match directly, but not twice at one position
        mode = if start == end { Mode::Further } else { Mode::Anywhere };
        from = end;
        out.push(Matched { program: program.clone(), text: text.clone(), spans });
    }
    Ok(out)
}

fn split(text: &str, found: &[Matched]) -> Vec<Value> {
    let (mut out, mut last) = (Vec::new(), 0);
    for matched in found {
        let (start, end) = matched.spans[0].unwrap_or_default();
        out.push(Value::str(&text[last..start]));
        out.extend((1..matched.spans.len()).map(|n| matched.group(n)));
        last = end;
    }
    out.push(Value::str(&text[last..]));
    out
}

/// The text with its matches replaced by a template's text or a function's result.
fn replaced(text: &str, found: &[Matched], by: &Value, cx: &mut Context) -> Result<String, Fault> {
    let (mut out, mut last) = (String::new(), 0);
    for matched in found {
        let (start, end) = matched.spans[0].unwrap_or_default();
        out.push_str(&text[last..start]);
        last = end;
        let new: Rc<str> = match by {
            Value::Str(template) => matched.expanded(template)?.into(),
            function => {
                let given = Value::Opaque(of(MATCH, matched.clone()));
                let made = cx.call(function, Args::of(vec![given]))?;
                let wrong = || Fault::type_error(format!("expected str instance, {} found", made.type_name()));
                made.as_str().ok_or_else(wrong)?.into()
            }
        };
        cx.charge_bytes(new.len() as u64)?;
        out.push_str(&new);
    }
    out.push_str(&text[last..]);
    Ok(out)
}

impl Matched {
    /// The text of a group; None if it did not take part.
    fn group(&self, n: usize) -> Value {
        match self.spans[n] {
            Some((start, end)) => Value::str(&self.text[start..end]),
            None => Value::None,
        }
    }

    /// A group's start and end in characters; -1 if it did not take part.
    fn place(&self, n: usize) -> (Value, Value) {
        let count = |at: usize| Value::Int(self.text[..at].chars().count() as i64);
        self.spans[n].map_or((Value::Int(-1), Value::Int(-1)), |(start, end)| (count(start), count(end)))
    }

    /// As `findall` lists it.
    fn listed(&self) -> Value {
        let shown = |n: usize| match self.group(n) {
            Value::None => Value::str(""),
            text => text,
        };
        match self.spans.len() {
            1 => shown(0),
            2 => shown(1),
            n => Value::tuple((1..n).map(shown).collect()),
        }
    }

    /// A group's number by number or name.
    fn number(&self, of: &Value) -> Result<usize, Fault> {
        let n = match of {
            Value::Str(name) => self.program.names.iter().find(|(n, _)| **n == **name).map(|(_, n)| *n),
            other => other.as_int().and_then(|n| usize::try_from(n).ok()).filter(|n| *n < self.spans.len()),
        };
        n.ok_or_else(|| Fault::index_error("no such group"))
    }

    /// A template with its groups filled in.
    fn expanded(&self, template: &str) -> Result<String, Fault> {
        let mut out = String::new();
        let mut chars = template.chars().peekable();
        let wrong = |what: &str| Fault::value_error(format!("re.error: {what} in the template {template:?}"));
        while let Some(c) = chars.next() {
            if c != '\\' {
                out.push(c);
                continue;
            }
            let group = match chars.next() {
                Some('n') => {
                    out.push('\n');
                    continue;
                }
                Some('t') => {
                    out.push('\t');
                    continue;
                }
                Some('\\') => {
                    out.push('\\');
                    continue;
                }
                Some('g') if chars.next() == Some('<') => {
                    let name: String = chars.by_ref().take_while(|c| *c != '>').collect();
                    match name.parse::<i64>() {
                        Ok(n) => Value::Int(n),
                        Err(_) => Value::str(name),
                    }
                }
                Some(d @ '1'..='9') => {
                    let mut n = i64::from(d.to_digit(10).unwrap_or(0));
                    if let Some(d) = chars.peek().and_then(|c| c.to_digit(10)) {
                        n = 10 * n + i64::from(d);
                        chars.next();
                    }
                    Value::Int(n)
                }
                Some(c) if !c.is_ascii_alphanumeric() => {
                    out.push('\\');
                    out.push(c);
                    continue;
                }
                Some(c) => return Err(wrong(&format!("bad escape \\{c}"))),
                None => return Err(wrong("bad escape (end of pattern)")),
            };
            let n = self.number(&group).map_err(|_| wrong("invalid group reference"))?;
            out.push_str(self.group(n).as_str().unwrap_or_default());
        }
        Ok(out)
    }
}

/// `match.name(...)`
fn of_match(name: &str, args: &Args) -> Option<Result<Value, Fault>> {
    let (receiver, rest) = args.positional.split_first()?;
    let matched = state::<Matched>(receiver, MATCH)?;
    let place = |of: Option<&Value>| matched.number(of.unwrap_or(&Value::Int(0))).map(|n| matched.place(n));
    let default = || args.get(1, "default").cloned().unwrap_or(Value::None);
    let or_default = |n: usize| match matched.group(n) {
        Value::None => default(),
        text => text,
    };
    Some(match name {
        "group" | "__getitem__" => {
            let all: Result<Vec<Value>, Fault> =
                rest.iter().map(|of| matched.number(of).map(|n| matched.group(n))).collect();
            all.map(|mut all| match all.len() {
                0 => matched.group(0),
                1 => all.remove(0),
                _ => Value::tuple(all),
            })
        }
        "groups" => Ok(Value::tuple((1..matched.spans.len()).map(or_default).collect())),
        "groupdict" => {
            let pairs = matched.program.names.iter().map(|(name, n)| (Value::str(name.as_str()), or_default(*n)));
            Ok(Value::Dict(Rc::new(RefCell::new(Pairs(pairs.collect())))))
        }
        "start" => place(rest.first()).map(|(start, _)| start),
        "end" => place(rest.first()).map(|(_, end)| end),
        "span" => place(rest.first()).map(|(start, end)| Value::tuple(vec![start, end])),
        "expand" => args.need(name, 1, "template").and_then(|template| {
            let text = template.as_str().ok_or_else(|| Fault::type_error("a template is a string"))?;
            matched.expanded(text).map(Value::str)
        }),
        _ => return None,
    })
}

/// `match[group]`; None for other values.
pub(crate) fn item(value: &Value, index: &Value) -> Option<Result<Value, Fault>> {
    state::<Matched>(value, MATCH)?;
    of_match("group", &Args::of(vec![value.clone(), index.clone()]))
}

/// `pattern.pattern`, `match.string` and similar; None for unknown names.
pub(crate) fn attribute(value: &Value, name: &str) -> Option<Value> {
    if let Some(pattern) = state::<Pattern>(value, PATTERN) {
        let names = || pattern.program.names.iter().map(|(n, at)| (Value::str(n.as_str()), Value::Int(*at as i64)));
        return Some(match name {
            "pattern" => Value::Str(pattern.text),
            "groups" => Value::Int(pattern.program.groups as i64),
            "groupindex" => Value::Dict(Rc::new(RefCell::new(Pairs(names().collect())))),
            _ => return None,
        });
    }
    let matched = state::<Matched>(value, MATCH)?;
    match name {
        "string" => Some(Value::Str(matched.text)),
        "regs" => {
            let pair = |n| {
                let (start, end) = matched.place(n);
                Value::tuple(vec![start, end])
            };
            Some(Value::tuple((0..matched.spans.len()).map(pair).collect()))
        }
        _ => None,
    }
}
