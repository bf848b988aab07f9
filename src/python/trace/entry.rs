//! From a request to the function that is the mod: the name, whether it is called, and its arguments.
//!
//! Invariant: without a name a function is chosen by its parameters' names or by its use, never by their number alone,
//! and the choice is reported. The rules for calling it are those of [`Call`]; a missing argument of a factory is
//! reported by name, with its place. Must not know what a mod computes.

use super::given::{self, Open};
use super::{Arg, Call, Chosen, lists};
use crate::base::{Diagnostic, Source};
use crate::ir::graph::ModKind;
use crate::python::candidates::names_indices;
use crate::python::diagnose;
use crate::python::library::placed;
use crate::python::machine::Context;
use crate::python::machine::arity::required;
use crate::python::machine::class::{PARTIAL_METHOD, callable, member};
use crate::python::met::Met;
use crate::python::outline::{EntryKind, Products, returned_mod};
use crate::python::syntax::Name;
use crate::python::syntax::ast::{self, ParamMode};
use crate::python::value::scope::Scope;
use crate::python::value::{Args, CACHED, Class as ClassValue, Fault, Function, Partial, Value};
use std::collections::HashSet;
use std::rc::Rc;

/// A request for an entry.
pub(crate) struct Wanted<'a> {
    /// Name of the entry; empty: the only or last of the kind.
    pub entry: &'a str,
    /// Mask or score.
    pub kind: ModKind,
    /// Whether it is called.
    pub call: Call,
    /// Arguments for that.
    pub args: &'a [(String, Arg)],
    /// All that is given by name, tensors too, as values.
    pub given: &'a [(Name, Value)],
}

impl Wanted<'_> {
    /// Whether something is given under a name, or for attributes of it.
    fn gives(&self, name: &str) -> bool {
        name == "self"
            || self.given.iter().any(|(n, _)| n.split('.').next() == Some(name))
            || self.args.iter().any(|(n, _)| n == name)
    }
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
    let value = cx.untouched(value).map_err(one)?;
    let factory = match wanted.call {
        Call::Factory => true,
        Call::Mod => false,
        Call::Auto => is_factory(&value, wanted),
    };
    let args = arguments(cx, &value, wanted, depth)?;
    if !factory {
        let args = leading_by_position(&value, args);
        let nothing = args.keyword.is_empty() && args.positional.is_empty();
        return Ok(if nothing { value } else { cx.bound(value, args) });
    }
    if let Some(open) = Open::of(&value) {
        cx.span = open.function.def.name_span;
    }
    let at = cx.span;
    let made = cx.call(&value, args).map_err(|f| one(f.at(at)))?;
    let found = the_mod_in(cx, &made, wanted.kind, &name).map_err(|f| one(f.at(at)))?;
    let found = found.ok_or_else(|| {
        let message = format!("`{name}` returns no function: a factory returns its mod");
        let hint = match &value {
            Value::Function(f) if f.def.params.is_empty() => "end it with `return` and the name of the inner function",
            _ => "end it with `return` and the name of the inner function; or choose the mod itself as the entry",
        };
        vec![Diagnostic::error("not-a-mod", message).at(at, "").hint(hint)]
    })?;
    cx.untouched(found).map_err(one)
}

/// The mod is called by position: values passed for its first parameters come before the indices.
fn leading_by_position(value: &Value, mut args: Args) -> Args {
    let Some(open) = Open::of(value) else { return args };
    for param in open.params() {
        let Some(at) = args.keyword.iter().position(|(n, _)| *n == param.name) else { break };
        args.positional.push(args.keyword.remove(at).1);
    }
    args
}

/// Keyword arguments for the found function: those named like its parameters, and those named like no parameter and no
/// global, which it will refuse.
fn arguments(cx: &mut Context, value: &Value, wanted: &Wanted<'_>, depth: usize) -> Result<Args, Vec<Diagnostic>> {
    let mut args = Args::default();
    let open = Open::of(value).filter(|_| wanted.call == Call::Auto);
    if let Some(open) = &open {
        args.keyword = given::for_params(cx, open, wanted.given).map_err(|f| vec![*f.diagnostic])?;
    }
    for (name, arg) in wanted.args {
        let root = name.split('.').next().unwrap_or(name);
        let taken = args.keyword.iter().any(|(n, _)| **n == *root) || cx.given.iter().any(|(n, _)| **n == **name);
        // a path through functions has used its part
        let on_the_way = wanted.entry.contains('.') || cx.chosen.as_ref().is_some_and(|c| c.entry.contains('.'));
        if !taken && !on_the_way {
            let value = given::argument(cx, arg, depth)?;
            args.keyword.push((name.as_str().into(), value));
        }
    }
    Ok(args)
}

/// The mod in a factory's result: itself, a BlockMask's mask, or the only one of the kind in a tuple or dict.
fn the_mod_in(cx: &mut Context, made: &Value, kind: ModKind, name: &str) -> Result<Option<Value>, Fault> {
    if let Some(found) = unwrap(cx, made.clone()) {
        return Ok(Some(found));
    }
    let parts: Vec<(String, Value)> = match made {
        Value::Tuple(items) => items.0.iter().enumerate().map(|(at, v)| (at.to_string(), v.clone())).collect(),
        Value::List(items) => items.borrow().0.iter().enumerate().map(|(at, v)| (at.to_string(), v.clone())).collect(),
        Value::Dict(pairs) => pairs.borrow().0.iter().map(|(k, v)| (python::machine::text(k), v.clone())).collect(),
        _ => return Ok(None),
    };
    let mut found: Vec<(String, Value)> = Vec::new();
    for (part, value) in parts {
        if let Some(own) = unwrap(cx, value)
            && !found.iter().any(|(_, known)| python::value::same(known, &own))
        {
            found.push((part, own));
        }
    }
    let of_kind: Vec<&(String, Value)> =
        found.iter().filter(|(_, v)| required(v).is_none_or(|n| n == arity(kind))).collect();
    match (&of_kind[..], &found[..]) {
        ([(_, only)], _) | ([], [(_, only)]) => Ok(Some(only.clone())),
        ([], _) => Ok(None),
        (several, _) => {
            let ways: Vec<String> = several.iter().map(|(part, _)| format!("`{name}.{part}`")).collect();
            let message = format!("`{name}` returns {} mods", several.len());
            Err(Fault::new("TypeError", "not-a-mod", message)
                .hint(format!("choose one as the entry: {}", ways.join(", "))))
        }
    }
}

/// A value as a mod: a callable, or a BlockMask's mask.
fn unwrap(cx: &mut Context, made: Value) -> Option<Value> {
    match &made {
        Value::Instance(instance) if &*instance.class.name == "BlockMask" => {
            // of a block mask that is given by its lists, only the listed blocks are computed
            let attributes = instance.attributes.borrow();
            if let (Some(mask), Some(lengths)) = (attributes.named("effective"), attributes.named("seq_lengths")) {
                let place = attributes.named("_place").as_ref().and_then(placed).unwrap_or(cx.span);
                cx.met.push(Met::of_lists(mask, &lengths, attributes.named("BLOCK_SIZE").as_ref(), place));
                if let Some(told) = lists::alone(&attributes, place) {
                    cx.warn(told);
                }
            }
            attributes.named("effective").or_else(|| attributes.named("mask_mod")).filter(callable)
        }
        Value::None => None,
        other if callable(other) => Some(made),
        Value::Instance(_) => cx.attribute(&made, &"mask_mod".into()).ok().filter(callable),
        _ => None,
    }
}

/// The named value, or the most likely mod of the kind.
fn find(cx: &mut Context, scope: &Rc<Scope>, wanted: &Wanted<'_>) -> Result<(Name, Value), Fault> {
    if wanted.entry.is_empty() {
        return choose(cx, scope, wanted);
    }
    let value = at_path(cx, scope, wanted, wanted.entry)?;
    let path = cx.chosen.as_ref().map_or_else(|| wanted.entry.to_string(), |c| c.entry.clone());
    match unwrap(cx, value.clone()) {
        Some(value) => Ok((path.into(), value)),
        None => {
            let name: &str = &path;
            if let Some(found) = the_mod_in(cx, &value, wanted.kind, name)? {
                return Ok((path.into(), found));
            }
            let message = format!("`{}` is {}, not a function", wanted.entry, value.type_name());
            Err(Fault::new("TypeError", "not-a-mod", message).hint("choose the mod, or the function that returns it"))
        }
    }
}

/// The value at `outer.inner`, `Class.method.mod` or `factory.key`.
fn at_path(cx: &mut Context, scope: &Rc<Scope>, wanted: &Wanted<'_>, path: &str) -> Result<Value, Fault> {
    let mut parts = path.split('.');
    let first = parts.next().unwrap_or_default();
    let Some(value) = scope.own(first) else { return nested_of_name(cx, scope, wanted, path) };
    cx.chosen = Some(Chosen { entry: path.to_string(), asked: true, ..Chosen::default() });
    let mut value = cx.use_value(value)?;
    let mut owner: Option<Rc<ClassValue>> = None;
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        value = match &value {
            Value::Class(class) => match member(class, part) {
                Some(Value::Function(method)) if last => cx.method_given(class, &method, wanted.given)?,
                Some(Value::Partial(ref partial)) if last && let Some(method) = partial_method(partial) => {
                    let bound = cx.method_given(class, method, wanted.given)?;
                    let rest =
                        Args { positional: partial.args.rest(1).to_vec(), keyword: partial.args.keyword.clone() };
                    cx.bound(bound, rest)
                }
                Some(method @ Value::Function(_)) => {
                    owner = Some(class.clone());
                    method
                }
                _ => cx.attribute(&value, &(*part).into())?,
            },
            Value::Function(function) => inside(cx, function, owner.take(), part, wanted)?,
            Value::Partial(partial) if let Some(Value::Function(cached)) = cached(partial) => {
                inside(cx, cached, owner.take(), part, wanted)?
            }
            other => part_of(cx, other, part)?,
        };
    }
    Ok(value)
}

/// The function that `functools.lru_cache` remembers the results of.
fn cached(partial: &Partial) -> Option<&Value> {
    partial.args.positional.first().filter(|_| matches!(&partial.function, Value::Builtin(name) if &**name == CACHED))
}

/// The method of a `functools.partialmethod`.
fn partial_method(partial: &Partial) -> Option<&Rc<Function>> {
    match (&partial.function, partial.args.positional.first()) {
        (Value::Builtin(name), Some(Value::Function(method))) if &**name == PARTIAL_METHOD => Some(method),
        _ => None,
    }
}

/// A function inside a function, or a part of a factory's result.
fn inside(
    cx: &mut Context,
    function: &Rc<Function>,
    owner: Option<Rc<ClassValue>>,
    part: &str,
    wanted: &Wanted<'_>,
) -> Result<Value, Fault> {
    if let Some(value) = function.attributes.borrow().named(part) {
        return Ok(value);
    }
    match cx.function_inside(function, owner.as_ref(), part, wanted.given) {
        Err(fault) if fault.diagnostic.code == "entry-not-found" && owner.is_none() => {
            let value = Value::Function(function.clone());
            let open = Open::of(&value).expect("a function");
            let keyword = given::for_params(cx, &open, wanted.given)?;
            let at = function.def.name_span;
            let made = cx.call(&value, Args { positional: Vec::new(), keyword }).map_err(|f| f.at(at))?;
            part_of(cx, &made, part).map_err(|_| fault)
        }
        other => other,
    }
}

/// A key of a dict, a position in a tuple, an attribute.
fn part_of(cx: &mut Context, value: &Value, part: &str) -> Result<Value, Fault> {
    let index = part.parse::<i64>().ok().map(Value::Int);
    match value {
        Value::Dict(_) => match (cx.item(value, &Value::str(part)), index) {
            (Err(_), Some(index)) => cx.item(value, &index),
            (found, _) => found,
        },
        Value::Tuple(_) | Value::List(_) if index.is_some() => cx.item(value, &index.unwrap_or(Value::None)),
        other => cx.attribute(other, &part.into()),
    }
}

/// A name that is not bound at the top: the one function of that name further in.
fn nested_of_name(cx: &mut Context, scope: &Rc<Scope>, wanted: &Wanted<'_>, name: &str) -> Result<Value, Fault> {
    let end = format!(".{name}");
    let mut paths: Vec<String> = cx.candidates.iter().map(|c| c.path.clone()).filter(|p| p.ends_with(&end)).collect();
    paths.dedup();
    match &paths[..] {
        [path] => {
            let path = path.clone();
            at_path(cx, scope, wanted, &path)
        }
        [] => Err(not_found(cx, wanted, &scope.names())),
        several => {
            let ways: Vec<String> = several.iter().map(|p| format!("`{p}`")).collect();
            let message = format!("several functions of this code define `{name}`");
            Err(Fault::new("NameError", "entry-not-found", message).hint(format!("name one: {}", ways.join(", "))))
        }
    }
}

/// The likelihood that a value at the top of a text is the intended mod; None: it is not a mod.
fn likeness(used: &HashSet<String>, name: &str, value: &Value, wanted: &Wanted<'_>) -> Option<u8> {
    if let Value::Instance(object) = value
        && &*object.class.name == "BlockMask"
    {
        return Some(4);
    }
    let Some(open) = Open::of(value) else {
        // combinations of masks
        return (matches!(value, Value::Partial(_)) && required(value) == Some(arity(wanted.kind))).then_some(5);
    };
    let plain = matches!(value, Value::Function(_) | Value::Partial(_));
    if plain && returned_mod(&open.function.def, &Products::new()).is_some() {
        // arguments are for a factory; a factory without required arguments is as likely as a mod
        return Some(match (args_fit(&open, wanted), wanted.args.is_empty()) {
            (true, false) => 6,
            (true, true) => 5,
            _ => 2,
        });
    }
    let left: Vec<&str> = open.required().map(|p| &*p.name).filter(|n| !wanted.gives(n)).collect();
    let known = used.contains(name) || names_indices(&left);
    match left.len() {
        n if known && n == arity(wanted.kind) => Some(5),
        4 | 5 if known => Some(1),
        _ if plain && defines_function(&open.function.def) => Some(0),
        _ => None,
    }
}

/// The value at the top of the text that is most like a mod, the last of several; else a function further in.
fn choose(cx: &mut Context, scope: &Rc<Scope>, wanted: &Wanted<'_>) -> Result<(Name, Value), Fault> {
    let mut names = scope.names();
    // a name that is bound again stands where it is bound last
    names.sort_by_key(|(name, _)| cx.bound_last.get(name).copied().unwrap_or(0));
    let used = cx.candidates.iter().filter(|c| c.used).map(|c| c.path.clone()).collect();
    let mut failed: Option<(bool, Fault)> = None;
    let mut all: Vec<(u8, Name, Value)> = Vec::new();
    for (name, value) in names.iter().filter(|(n, _)| !n.starts_with("__")) {
        if let Value::Missing(fault) = value {
            // the most likely last mod of the text was intended, even if it could not be created
            let meant = cx.outlined.last().is_some_and(|last| **last == **name);
            failed = Some((meant, Fault::clone(fault)));
            continue;
        }
        if let Some(score) = likeness(&used, name, value, wanted) {
            all.push((score, name.clone(), value.clone()));
        }
    }
    let best = all.iter().max_by_key(|(score, ..)| *score).cloned();
    let best = best.map(|best| if best.0 <= 5 { asked_for(cx, &all).unwrap_or(best) } else { best });
    if let Some((true, fault)) = &failed {
        return Err(fault.clone());
    }
    // a factory of `*mods` is no answer where the text has called it
    if matches!(&best, Some((_, _, Value::Function(f))) if takes_tuple(f))
        && let Some(fault) = counts_none(&names)
    {
        return Err(fault);
    }
    let kind = if wanted.kind == ModKind::Mask { EntryKind::MaskMod } else { EntryKind::ScoreMod };
    let inner = cx.candidates.iter().filter(|c| c.is_nested() && c.kind == kind);
    let inner = inner.max_by_key(|c| c.used).map(|c| c.path.clone());
    if let (None | Some((0, ..)), Some(path)) = (&best, &inner) {
        let value = at_path(cx, scope, wanted, path)?;
        note(cx, path, &all);
        return Ok((path.as_str().into(), value));
    }
    if let Some((_, name, value)) = best.or_else(|| only_function(cx, &names, wanted)) {
        note(cx, &name, &all);
        let value = unwrap(cx, value.clone()).unwrap_or(value);
        return Ok((name, value));
    }
    match (failed, &cx.skipped[..]) {
        (Some((_, fault)), _) => Err(fault),
        (None, [first, ..]) => Err(first.clone()),
        (None, []) => Err(unlike(&names)
            .or_else(|| wrong_parameters(wanted, &names))
            .or_else(|| counts_none(&names))
            .unwrap_or_else(|| not_found(cx, wanted, &names))),
    }
}

/// The function of a name that the text itself makes a block mask of, at its last call.
fn asked_for(cx: &Context, all: &[(u8, Name, Value)]) -> Option<(u8, Name, Value)> {
    let of_name = |met: &Met| all.iter().rfind(|(_, _, value)| python::value::same(value, &met.mask)).cloned();
    cx.met.iter().rev().find_map(of_name)
}

/// The last function of a text that takes its arguments as a tuple: PyTorch counts none.
fn counts_none(names: &[(Name, Value)]) -> Option<Fault> {
    let (name, value) = names.iter().rfind(|(_, v)| matches!(v, Value::Function(_)))?;
    let Value::Function(function) = value else { return None };
    let def = &function.def;
    if !takes_tuple(function) || function.attributes.borrow().named("__wrapped__").is_some() || defines_function(def) {
        return None;
    }
    let message =
        format!("Expected 4 or 5 positional args, got 0: `{name}` takes `*args`, and PyTorch counts parameters");
    Some(
        Fault::new("AssertionError", "wrong-arity", message)
            .hint("its signature is `mask_mod(b, h, q_idx, kv_idx)`")
            .at(def.name_span),
    )
}

/// `def f(*args)`
fn takes_tuple(function: &Function) -> bool {
    function.def.params.first().is_some_and(|p| p.mode == ParamMode::VarArgs)
}

/// Records the choice and the alternatives.
fn note(cx: &mut Context, chosen: &str, all: &[(u8, Name, Value)]) {
    let inside = format!("{chosen}.");
    let top = all.iter().filter(|(score, ..)| *score > 0).map(|(_, name, _)| name.to_string());
    let nested = cx.candidates.iter().filter(|c| c.is_nested()).map(|c| c.path.clone());
    let mut others: Vec<String> =
        top.chain(nested).filter(|name| *name != *chosen && !name.starts_with(&inside)).collect();
    others.dedup();
    // a helper that factories are called with is taken only because their arguments are not known
    let taken =
        cx.makers.iter().any(|maker| **maker == *chosen) || cx.candidates.iter().any(|c| c.path == chosen && c.used);
    let known: HashSet<&str> = others.iter().map(String::as_str).collect();
    let meant = cx.makers.iter().find(|maker| !taken && known.contains(&***maker));
    let meant = meant.map(|maker| maker.to_string());
    cx.chosen = Some(Chosen { entry: chosen.to_string(), asked: false, others, meant });
}

/// A text of one function that takes as many parameters as a mod does: with any names, that is the one meant.
fn only_function(cx: &Context, names: &[(Name, Value)], wanted: &Wanted<'_>) -> Option<(u8, Name, Value)> {
    let mut functions = names.iter().filter(|(_, v)| matches!(v, Value::Function(_) | Value::Class(_)));
    let (name, value) = functions.next().filter(|_| functions.next().is_none() && cx.candidates.is_empty())?;
    let fits = required(value).is_some_and(|n| n == arity(wanted.kind) || matches!(n, 4 | 5));
    fits.then(|| (1, name.clone(), value.clone()))
}

/// A function with a mod's number of parameters but other names.
fn unlike(names: &[(Name, Value)]) -> Option<Fault> {
    let (name, value) =
        names.iter().rfind(|(_, v)| matches!(v, Value::Function(_)) && matches!(required(v), Some(4 | 5)))?;
    let Value::Function(function) = value else { return None };
    let params: Vec<&str> = function.def.required().map(|p| &*p.name).collect();
    let message = format!(
        "this code has no mod; `{name}` takes {} parameters, but their names are {}",
        params.len(),
        params.join(", ")
    );
    let hint = format!("name them b, h, q_idx, kv_idx, or choose the function by its name: FILE.py:{name}");
    Some(Fault::new("NameError", "entry-not-found", message).hint(hint).at(function.def.name_span))
}

/// Whether a function has a function inside: a factory that forgot to return it.
fn defines_function(def: &ast::Function) -> bool {
    let ast::Body::Block(body) = &def.body else { return false };
    body.iter().any(|s| matches!(s.kind, ast::StmtKind::Function(_)))
}

/// The last function that may be meant as a mod, when its number of parameters alone keeps it from being one: its last two
/// are named like a query's and a key's index, or the text has no other.
fn wrong_parameters(wanted: &Wanted<'_>, names: &[(Name, Value)]) -> Option<Fault> {
    let functions = || names.iter().filter_map(|(_, v)| if let Value::Function(f) = v { Some((f, v)) } else { None });
    let (only, _) = functions().next()?;
    let classes = names.iter().any(|(_, v)| matches!(v, Value::Class(_)));
    let alone = !classes && functions().all(|(f, _)| Rc::ptr_eq(f, only));
    let meant = |function: &Function| {
        let params: Vec<&str> = function.def.required().map(|p| &*p.name).collect();
        alone || names_indices(&[&["?", "?"][..], &params[..]].concat())
    };
    let (function, last) = functions().rfind(|(f, _)| meant(f))?;
    let n = required(last).filter(|n| (2..=8).contains(n))?;
    Some(diagnose::arity(n, arity(wanted.kind), Some(function.def.name_span)))
}

fn not_found(cx: &Context, wanted: &Wanted<'_>, names: &[(Name, Value)]) -> Fault {
    let nested = cx.candidates.iter().filter(|c| c.is_nested()).map(|c| &*c.path);
    // what the text imports is no mod of it
    let own =
        |value: &Value| callable(value) && !matches!(value, Value::Module(_) | Value::Import(_) | Value::Builtin(_));
    let known: Vec<&str> = names.iter().filter(|(_, v)| own(v)).map(|(n, _)| &**n).chain(nested).collect();
    let signature = match wanted.kind {
        ModKind::Mask => "def mask_mod(b, h, q_idx, kv_idx): return q_idx >= kv_idx",
        ModKind::Score => "def score_mod(score, b, h, q_idx, kv_idx): return score",
    };
    let message = match wanted.entry {
        "" => "this code has no mod".to_string(),
        name => format!("this code has no `{name}`"),
    };
    let hint = match diagnose::nearest(wanted.entry, known.iter().copied()) {
        Some(near) if !wanted.entry.is_empty() => format!("did you mean `{near}`?"),
        _ if !known.is_empty() => format!("it has: {}", known.join(", ")),
        _ => format!("write one: `{signature}`"),
    };
    Fault::new("NameError", "entry-not-found", message).hint(hint)
}

/// Whether all given arguments name parameters, and all required ones are given.
fn args_fit(open: &Open, wanted: &Wanted<'_>) -> bool {
    let named = |name: &str| {
        let root = name.split('.').next().unwrap_or(name);
        open.params().any(|p| *p.name == *root || p.mode == ParamMode::KwArgs)
    };
    wanted.args.iter().all(|(n, _)| named(n)) && open.required().all(|p| wanted.gives(&p.name))
}

/// [`Call::Auto`]: a function of a mod's parameters is the mod, unless the arguments name some of those.
fn is_factory(value: &Value, wanted: &Wanted<'_>) -> bool {
    let open = match (value, Open::of(value)) {
        // objects and combinations are used directly; classes are called to create one
        (Value::Class(_), _) => return true,
        (Value::Instance(_), _) | (_, None) => return !matches!(required(value), Some(4 | 5) | None),
        (_, Some(open)) => open,
    };
    let def = &open.function.def;
    if returned_mod(def, &Products::new()).is_some() {
        return true;
    }
    let left: Vec<&str> = open.required().map(|p| &*p.name).filter(|n| !wanted.gives(n)).collect();
    let all = open.required().count();
    match left.len() {
        n if n == arity(wanted.kind) && (all == n || names_indices(&left)) => false,
        // the other kind of mod: say so when it is called
        4 | 5 if all == left.len() => false,
        0 => true,
        _ if all != left.len() || defines_function(def) => true,
        _ => open.params().any(|p| wanted.gives(&p.name)),
    }
}

/// Runs a text as a separate module.
pub(crate) fn run(cx: &mut Context, source: Source, globals: Vec<(Name, Value)>) -> Result<Rc<Scope>, Vec<Diagnostic>> {
    cx.run_source(source, "", globals)
}
