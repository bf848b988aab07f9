//! From a request to the function that is the mod: which name is meant, whether it is called, and with what.
//!
//! Invariant: the rules are those of [`Call`]; what a factory misses is said by name, with its place. Must not know what
//! a mod computes.

use super::diagnose;
use super::eval::Context;
use super::eval::class::callable;
use super::eval::scope::Scope;
use super::graph::ModKind;
use super::outline::returned_mod;
use super::syntax::Name;
use super::syntax::ast::{self, ParamMode};
use super::trace::{Arg, Call};
use super::value::{Args, Fault, Value};
use crate::base::{Diagnostic, Source};
use std::rc::Rc;

/// Patterns may take patterns as arguments, this deep.
const MAX_NESTING: usize = 16;

/// What is asked of a text.
pub(crate) struct Wanted<'a> {
    /// Name of the entry; empty: the only or last of the kind.
    pub entry: &'a str,
    /// Mask or score.
    pub kind: ModKind,
    /// Whether it is called.
    pub call: Call,
    /// Arguments for that.
    pub args: &'a [(String, Arg)],
}

/// Positional parameters that a mod of this kind takes.
pub(crate) fn arity(kind: ModKind) -> usize {
    match kind {
        ModKind::Mask => 4,
        ModKind::Score => 5,
    }
}

/// The mod as a value that can be called with the indices.
pub(crate) fn find_mod(
    cx: &mut Context,
    scope: &Rc<Scope>,
    wanted: &Wanted<'_>,
    depth: usize,
) -> Result<Value, Vec<Diagnostic>> {
    let one = |fault: Fault| vec![*fault.diagnostic];
    let (name, value) = find(cx, scope, wanted).map_err(one)?;
    let mut args = Args::default();
    for (name, arg) in wanted.args {
        args.keyword.push((name.as_str().into(), argument(cx, arg, depth)?));
    }
    let factory = match wanted.call {
        Call::Factory => true,
        Call::Mod => false,
        Call::Auto => is_factory(&value, wanted),
    };
    if !factory {
        return Ok(if args.keyword.is_empty() { value } else { cx.bound(value, args) });
    }
    if let Value::Function(function) = &value {
        cx.span = function.def.name_span;
    }
    let at = cx.span;
    let made = cx.call(&value, args).map_err(|f| one(f.at(at)))?;
    unwrap(cx, made).ok_or_else(|| {
        let message = format!("`{name}` returns no function: a factory returns the mod it makes");
        let hint = match &value {
            Value::Function(f) if f.def.params.is_empty() => "end it with `return` and the name of the inner function",
            _ => "end it with `return` and the name of the inner function; or choose the entry that is the mod itself",
        };
        vec![Diagnostic::error("not-a-mod", message).at(at, "").hint(hint)]
    })
}

/// A callable in what a factory returned: itself, a BlockMask's mask_mod, or the only one in a tuple.
fn unwrap(cx: &mut Context, made: Value) -> Option<Value> {
    match &made {
        Value::Instance(instance) if &*instance.class.name == "BlockMask" => {
            // of a block mask that is given by its lists, only the listed blocks are computed
            let attributes = instance.attributes.borrow();
            attributes.named("effective").or_else(|| attributes.named("mask_mod"))
        }
        Value::Tuple(items) => items.0.iter().find(|v| callable(v)).cloned(),
        Value::None => None,
        other if callable(other) => Some(made),
        Value::Instance(_) => cx.attribute(&made, &"mask_mod".into()).ok().filter(callable),
        _ => None,
    }
}

/// The named value, or the last that looks like a mod of the kind, or the last factory.
fn find(cx: &mut Context, scope: &Rc<Scope>, wanted: &Wanted<'_>) -> Result<(Name, Value), Fault> {
    let names = scope.names();
    if !wanted.entry.is_empty() {
        let (first, rest) = wanted.entry.split_once('.').map_or((wanted.entry, None), |(f, r)| (f, Some(r)));
        let Some(value) = scope.own(first) else { return Err(not_found(wanted, &names)) };
        let mut value = cx.use_value(value)?;
        for part in rest.iter().flat_map(|r| r.split('.')) {
            value = cx.attribute(&value, &part.into())?;
        }
        return match unwrap(cx, value.clone()) {
            Some(value) => Ok((wanted.entry.into(), value)),
            None => Err(Fault::new(
                "TypeError",
                "not-a-mod",
                format!("`{}` is {}, not a function", wanted.entry, value.type_name()),
            )
            .hint("choose the function that is the mod or makes it")),
        };
    }
    let mut failed: Option<(bool, Fault)> = None;
    let mut best: Option<(usize, Name, Value)> = None;
    for (name, value) in names.iter().filter(|(n, _)| !n.starts_with("__")) {
        if let Value::Missing(fault) = value {
            // what looks like the last mod of the text is what was meant, even if it could not be made
            let meant = cx.outlined.last().is_some_and(|last| **last == **name);
            failed = Some((meant, Fault::clone(fault)));
            continue;
        }
        let score = match value {
            Value::Function(f) if returned_mod(&f.def, &[]).is_some() => {
                // arguments are for a factory
                match (args_fit(value, wanted), wanted.args.is_empty()) {
                    (true, false) => 6,
                    // one that needs nothing is as good as a mod: the last of them is what was meant
                    (true, true) => 5,
                    _ => 2,
                }
            }
            v => match required(v) {
                Some(n) if n == arity(wanted.kind) => 5,
                Some(4 | 5) => 1,
                _ => match v {
                    Value::Instance(i) if &*i.class.name == "BlockMask" => 4,
                    Value::Function(f) if defines_function(&f.def) => 0,
                    _ => continue,
                },
            },
        };
        if best.as_ref().is_none_or(|(s, ..)| score >= *s) {
            best = Some((score, name.clone(), value.clone()));
        }
    }
    match (best, failed) {
        (_, Some((true, fault))) | (None, Some((_, fault))) => Err(fault),
        (Some((_, name, value)), _) => {
            let value = unwrap(cx, value.clone()).unwrap_or(value);
            Ok((name, value))
        }
        (None, None) => match &cx.skipped[..] {
            [first, ..] => Err(first.clone()),
            [] => Err(wrong_parameters(wanted, &names).unwrap_or_else(|| not_found(wanted, &names))),
        },
    }
}

/// Whether a function has a function inside: a factory that forgot to return it.
fn defines_function(def: &ast::Function) -> bool {
    let ast::Body::Block(body) = &def.body else { return false };
    body.iter().any(|s| matches!(s.kind, ast::StmtKind::Function(_)))
}

/// The last function, when its number of parameters alone keeps it from being a mod.
fn wrong_parameters(wanted: &Wanted<'_>, names: &[(Name, Value)]) -> Option<Fault> {
    let (_, last) = names.iter().rfind(|(_, v)| matches!(v, Value::Function(_)))?;
    let Value::Function(function) = last else { return None };
    let n = required(last).filter(|n| (2..=8).contains(n))?;
    Some(diagnose::arity(n, arity(wanted.kind), Some(function.def.name_span)))
}

fn not_found(wanted: &Wanted<'_>, names: &[(Name, Value)]) -> Fault {
    let known: Vec<&str> = names.iter().filter(|(_, v)| callable(v)).map(|(n, _)| &**n).collect();
    let signature = match wanted.kind {
        ModKind::Mask => "def mask_mod(b, h, q_idx, kv_idx): return q_idx >= kv_idx",
        ModKind::Score => "def score_mod(score, b, h, q_idx, kv_idx): return score",
    };
    let message = match wanted.entry {
        "" => "there is no mod in this text".to_string(),
        name => format!("there is no `{name}` in this text"),
    };
    let hint = match diagnose::nearest(wanted.entry, known.iter().copied()) {
        Some(near) if !wanted.entry.is_empty() => format!("did you mean `{near}`?"),
        _ if !known.is_empty() => format!("it has: {}", known.join(", ")),
        _ => format!("write one: `{signature}`"),
    };
    Fault::new("NameError", "entry-not-found", message).hint(hint)
}

/// Positional parameters that a callable still needs; None when that cannot be told.
pub(crate) fn required(value: &Value) -> Option<usize> {
    match value {
        // `def wrapper(*args, **kwargs)` takes what the function that it wraps takes
        Value::Function(function) if function.def.params.iter().any(|p| p.mode == ParamMode::VarArgs) => {
            function.attributes.borrow().named("__wrapped__").and_then(|of| required(&of))
        }
        Value::Function(function) => Some(function.def.required().count()),
        Value::Partial(partial) => match &partial.function {
            Value::Builtin(name) if name.starts_with("flex.") => Some(4),
            Value::Builtin(name) if &**name == "method" => match &partial.args.positional[..] {
                [_, function, ..] => required(function).map(|n| n.saturating_sub(1)),
                _ => None,
            },
            Value::Function(function) => {
                let bound = partial.args.positional.len();
                let left = function.def.required().skip(bound);
                Some(left.filter(|p| partial.args.named(&p.name).is_none()).count())
            }
            other => required(other).map(|n| n.saturating_sub(partial.args.positional.len())),
        },
        Value::Builtin(name) if &**name == "flex.noop_mask" => Some(4),
        Value::Instance(instance) => {
            let members = instance.class.members.borrow();
            let method = members.named("__call__").or_else(|| members.named("forward"))?;
            required(&method).map(|n| n.saturating_sub(1))
        }
        _ => None,
    }
}

/// Whether all given arguments name parameters, and all required ones are given.
fn args_fit(value: &Value, wanted: &Wanted<'_>) -> bool {
    let Value::Function(function) = value else { return false };
    let def = &function.def;
    let named = |name: &str| def.params.iter().any(|p| *p.name == *name || p.mode == ParamMode::KwArgs);
    let given = |name: &str| wanted.args.iter().any(|(n, _)| n == name);
    wanted.args.iter().all(|(n, _)| named(n)) && def.required().all(|p| given(&p.name))
}

/// [`Call::Auto`]: a function of a mod's parameters is the mod, unless the arguments name some of those.
fn is_factory(value: &Value, wanted: &Wanted<'_>) -> bool {
    let Value::Function(function) = value else {
        // partials, combinations and objects are what they are; classes are called to make one
        return matches!(value, Value::Class(_)) || !matches!(required(value), Some(4 | 5) | None);
    };
    let def = &function.def;
    if def.required().any(|p| wanted.args.iter().any(|(n, _)| *n == *p.name)) {
        return true;
    }
    if returned_mod(def, &[]).is_some() {
        return true;
    }
    match def.required().count() {
        n if n == arity(wanted.kind) => false,
        // the other kind of mod: say so when it is called
        4 | 5 => false,
        0 => true,
        _ if defines_function(def) => true,
        _ => def.params.iter().any(|p| wanted.args.iter().any(|(n, _)| *n == *p.name)),
    }
}

/// A request's argument as a value.
fn argument(cx: &mut Context, arg: &Arg, depth: usize) -> Result<Value, Vec<Diagnostic>> {
    let items = |cx: &mut Context, items: &[Arg]| -> Result<Vec<Value>, Vec<Diagnostic>> {
        items.iter().map(|i| argument(cx, i, depth + 1)).collect()
    };
    if depth > MAX_NESTING {
        let message = format!("arguments nest more than {MAX_NESTING} deep");
        return Err(vec![Diagnostic::error("pattern-nesting", message).hint("combine masks as layers instead")]);
    }
    Ok(match arg {
        Arg::None => Value::None,
        Arg::Bool(b) => Value::Bool(*b),
        Arg::Int(i) => Value::Int(*i),
        Arg::Float(f) => Value::Float(*f),
        Arg::Str(text) => Value::str(text.as_str()),
        Arg::List(given) => Value::list(items(cx, given)?),
        Arg::Tuple(given) => Value::tuple(items(cx, given)?),
        Arg::Tensor(tensor) => Value::tensor(tensor.clone()),
        Arg::Mod { source, entry, call, args } => {
            let call = if *call { Call::Factory } else { Call::Mod };
            let scope = run(cx, source.clone(), Vec::new())?;
            find_mod(cx, &scope, &Wanted { entry, kind: ModKind::Mask, call, args }, depth + 1)?
        }
    })
}

/// Runs a text as a module of its own.
pub(crate) fn run(cx: &mut Context, source: Source, globals: Vec<(Name, Value)>) -> Result<Rc<Scope>, Vec<Diagnostic>> {
    cx.run_source(source, "", globals)
}
