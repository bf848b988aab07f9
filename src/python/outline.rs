//! The mods and factories of a text, with parameters and help, found without running it.
//!
//! Invariant: reads only the tree; nothing is executed. Must not know values or graphs.

use super::candidates;
pub use super::candidates::EntryKind;
use super::request::STACK_BYTES;
use super::request::{Arg, Limits};
use super::syntax;
use super::syntax::annotation::annotation_text;
use super::syntax::ast::{self, Argument, Body, Expr, ExprKind, Function, Module, Name, ParamMode, Stmt, StmtKind};
use crate::base::{Diagnostic, Source, SourceId, Span};
use std::collections::{HashMap, HashSet};

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum ParamKind {
    Int,
    Float,
    Bool,
    Str,
    Tensor,
    Mod,
    Tuple,
    Any,
}

/// A parameter of a factory.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// By annotation, default or docstring.
    pub kind: ParamKind,
    /// Its default, when it is a literal.
    pub default: Option<Arg>,
    /// Its line of the docstring's `Args:`.
    pub doc: String,
    /// The place of the declaration.
    pub span: Span,
}

/// A function that can be traced.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: EntryKind,
    /// A factory's parameters; for a mod those beyond the 4 or 5.
    pub params: Vec<Param>,
    /// The docstring's text before `Args:`.
    pub doc: String,
    /// The whole definition.
    pub span: Span,
    /// Whether its parameters' names, its use or its result make it a mod or a factory; their number alone does not.
    pub likely: bool,
}

/// All entries of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    /// In text order.
    pub entries: Vec<Entry>,
    /// Syntax errors.
    pub diagnostics: Vec<Diagnostic>,
}

/// The entries of `source`.
pub fn outline(source: &Source) -> Outline {
    let longest = Limits::default().source_bytes;
    if source.text.len() > longest {
        return Outline { entries: Vec::new(), diagnostics: vec![too_long(source, longest)] };
    }
    outline_on(source, STACK_BYTES)
}

fn outline_on(source: &Source, stack: usize) -> Outline {
    let read = || {
        let parsed = syntax::parse(source, SourceId(0));
        let mut outline = Outline { entries: entries(&parsed.module), diagnostics: parsed.errors };
        for diagnostic in &mut outline.diagnostics {
            diagnostic.sources = vec![source.clone()];
        }
        outline
    };
    on_stack_for(source, stack, read).unwrap_or_else(|why| Outline { entries: Vec::new(), diagnostics: vec![why] })
}

/// The system starts no thread.
pub(crate) fn no_thread(why: &std::io::Error) -> Diagnostic {
    Diagnostic::error("no-thread", format!("the system cannot start another thread: {why}"))
        .hint("close other programs, or raise the limit on memory and processes")
}

/// A text of more than `longest` bytes.
pub(crate) fn too_long(source: &Source, longest: usize) -> Diagnostic {
    let (size, limit) = (source.text.len() >> 10, longest >> 10);
    let message = format!("`{}` is {size} KiB long; the limit is {limit} KiB", source.name);
    Diagnostic::error("source-too-long", message).hint("keep the mod and its factory, and move data into tensors")
}

/// Runs `read` on a stack of this many bytes if the text nests so deeply that it needs one. Errors: the system cannot
/// start a thread.
fn on_stack_for<T: Send>(source: &Source, stack: usize, read: impl FnOnce() -> T + Send) -> Result<T, Diagnostic> {
    if syntax::nesting(source) <= syntax::SHALLOW {
        return Ok(read());
    }
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(stack);
        let handle = builder.spawn_scoped(scope, read).map_err(|why| no_thread(&why))?;
        Ok(handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Mods and factories at the top of a text, in text order; without any, nested functions that may be mods. A function
/// at the top is a mod by its parameters' names or its use, or because there is no other.
pub(crate) fn entries(module: &Module) -> Vec<Entry> {
    let all = at_the_top(module);
    let candidates = candidates::candidates(module);
    let paths: HashSet<&str> = candidates.iter().map(|c| c.path.as_str()).collect();
    let functions: HashSet<&str> = module.body.iter().filter_map(function_of).map(|def| &*def.name).collect();
    let factories: HashSet<&str> =
        all.iter().filter(|e| e.kind == EntryKind::Factory).map(|e| e.name.as_str()).collect();
    let like = |e: &&Entry| {
        e.kind == EntryKind::Factory || !functions.contains(e.name.as_str()) || paths.contains(e.name.as_str())
    };
    let returned = |path: &str| path.split('.').next().is_some_and(|first| factories.contains(first));
    let nested = candidates.iter().filter(|c| c.is_nested() && !returned(&c.path)).map(|c| Entry {
        name: c.path.clone(),
        kind: c.kind,
        params: Vec::new(),
        doc: String::new(),
        span: Span::default(),
        likely: true,
    });
    let top: Vec<Entry> = all.iter().filter(like).cloned().collect();
    if !top.is_empty() {
        return top;
    }
    let mut nested: Vec<Entry> = nested.collect();
    let used: HashSet<&str> = candidates.iter().filter(|c| c.used).map(|c| c.path.as_str()).collect();
    nested.sort_by_key(|e| used.contains(e.name.as_str()));
    if !nested.is_empty() {
        return nested;
    }
    all.into_iter().map(|entry| Entry { likely: false, ..entry }).collect()
}

fn function_of(statement: &Stmt) -> Option<&Function> {
    if let StmtKind::Function(def) = &statement.kind { Some(def) } else { None }
}

fn at_the_top(module: &Module) -> Vec<Entry> {
    let mut known = Products::new();
    let mut entries: Vec<Entry> = Vec::new();
    for statement in &module.body {
        let found = match &statement.kind {
            StmtKind::Function(def) => {
                of_function(def, &known).map(|(entry, product)| (def.name.clone(), entry, product))
            }
            StmtKind::Assign { targets, value } => match &targets[..] {
                [Expr { kind: ExprKind::Name(name), .. }] => {
                    of_value(name, value, statement.span, &known).map(|(e, p)| (name.clone(), e, p))
                }
                _ => None,
            },
            StmtKind::Class(class) => {
                let methods = of_class(class, &known);
                known.extend(methods);
                None
            }
            _ => None,
        };
        if let Some((name, entry, product)) = found {
            known.insert(name, product);
            entries.extend(entry);
        }
    }
    entries
}

/// What each name is, as it was bound last.
pub(crate) type Products = HashMap<Name, Product>;

/// The kind of a name: a mod, or a function that returns one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Mod(EntryKind),
    Factory(Option<EntryKind>),
}

fn of_function(def: &Function, known: &Products) -> Option<(Option<Entry>, Product)> {
    let product = match (returned_mod(def, known), mod_kind(def)) {
        (Some(returned), _) => Product::Factory(returned),
        (None, Some(kind)) => Product::Mod(kind),
        (None, None) => return None,
    };
    let (kind, skipped) = match product {
        Product::Mod(kind) => (kind, if kind == EntryKind::MaskMod { 4 } else { 5 }),
        Product::Factory(_) => (EntryKind::Factory, 0),
    };
    let (doc, lines) = docstring(def.doc.as_deref().unwrap_or(""));
    let named = def.params.iter().filter(|p| !matches!(p.mode, ParamMode::VarArgs | ParamMode::KwArgs));
    let params = named.skip(skipped).map(|p| param(p, &lines)).collect();
    let entry = Entry { name: def.name.to_string(), kind, params, doc, span: def.span, likely: true };
    Some((Some(entry), product))
}

/// Methods that are mods or make them, as `.name`; and the class itself where calling its objects is a mod.
fn of_class(class: &ast::Class, known: &Products) -> Vec<(Name, Product)> {
    let mut out: Vec<(Name, Product)> = Vec::new();
    for statement in &class.body {
        let StmtKind::Function(def) = &statement.kind else { continue };
        let is_static = def.decorators.iter().any(|d| matches!(&d.kind, ExprKind::Name(n) if &**n == "staticmethod"));
        let kind = match def.required().count().saturating_sub(usize::from(!is_static)) {
            4 => Some(EntryKind::MaskMod),
            5 => Some(EntryKind::ScoreMod),
            _ => None,
        };
        let product = match (returned_mod(def, known), kind) {
            (Some(returned), _) => Product::Factory(returned),
            (None, Some(kind)) => Product::Mod(kind),
            (None, None) => continue,
        };
        if let (Product::Mod(kind), "__call__" | "forward") = (product, &*def.name) {
            out.push((class.name.clone(), Product::Factory(Some(kind))));
        }
        out.push((format!(".{}", def.name).into(), product));
    }
    out
}

/// By the number of positional parameters without defaults, as PyTorch distinguishes them.
pub(crate) fn mod_kind(def: &Function) -> Option<EntryKind> {
    match def.required().count() {
        4 => Some(EntryKind::MaskMod),
        5 => Some(EntryKind::ScoreMod),
        _ => None,
    }
}

/// `name = value`: a lambda, a combination of masks, or a factory's result.
fn of_value(name: &Name, value: &Expr, span: Span, known: &Products) -> Option<(Option<Entry>, Product)> {
    let entry =
        |kind| Entry { name: name.to_string(), kind, params: Vec::new(), doc: String::new(), span, likely: true };
    match &value.kind {
        ExprKind::Lambda(def) => {
            let kind = mod_kind(def)?;
            Some((Some(entry(kind)), Product::Mod(kind)))
        }
        ExprKind::Name(other) => {
            let product = *known.get(other)?;
            let Product::Mod(kind) = product else { return None };
            Some((Some(entry(kind)), product))
        }
        ExprKind::Attribute(_, method) => {
            let product = *known.get(&*format!(".{method}"))?;
            let Product::Mod(kind) = product else { return None };
            Some((Some(entry(kind)), product))
        }
        ExprKind::Call(..) => {
            let kind = returned_kind(value, &Products::new(), known)??;
            Some((Some(entry(kind)), Product::Mod(kind)))
        }
        _ => None,
    }
}

/// Whether a function returns a mod, and its kind if known.
pub(crate) fn returned_mod(def: &Function, known: &Products) -> Option<Option<EntryKind>> {
    let Body::Block(body) = &def.body else {
        let Body::Expr(e) = &def.body else { return None };
        return returned_kind(e, &Products::new(), known);
    };
    let mut local = Products::new();
    let mut found = None;
    returns(body, &mut local, known, &mut found);
    let said = def.returns.as_ref().and_then(annotation_text).unwrap_or_default();
    let by_annotation = if said.contains("score_mod") {
        Some(Some(EntryKind::ScoreMod))
    } else if said.contains("mask_mod") {
        Some(Some(EntryKind::MaskMod))
    } else {
        None
    };
    match (found, by_annotation) {
        (Some(None), Some(kind)) => Some(kind),
        (found, annotated) => found.or(annotated),
    }
}

fn returns(body: &[Stmt], local: &mut Products, known: &Products, found: &mut Option<Option<EntryKind>>) {
    for statement in body {
        match &statement.kind {
            StmtKind::Function(def) => {
                let product = match (returned_mod(def, known), mod_kind(def)) {
                    (Some(returned), _) => Some(Product::Factory(returned)),
                    (None, Some(kind)) => Some(Product::Mod(kind)),
                    _ => None,
                };
                local.extend(product.map(|p| (def.name.clone(), p)));
            }
            StmtKind::Assign { targets, value } => {
                if let [Expr { kind: ExprKind::Name(name), .. }] = &targets[..]
                    && let Some(Some(kind)) = returned_kind(value, local, known)
                {
                    local.insert(name.clone(), Product::Mod(kind));
                }
            }
            StmtKind::Return(Some(value)) => {
                if let Some(kind) = returned_kind(value, local, known) {
                    *found = Some(found.flatten().or(kind));
                }
            }
            StmtKind::If(branches) => branches.iter().for_each(|(_, b)| returns(b, local, known, found)),
            StmtKind::For { body, .. } | StmtKind::While { body, .. } => returns(body, local, known, found),
            StmtKind::With(with) => returns(&with.body, local, known, found),
            StmtKind::Match { cases, .. } => cases.iter().for_each(|c| returns(&c.body, local, known, found)),
            StmtKind::Try { body, orelse, .. } => {
                returns(body, local, known, found);
                returns(orelse, local, known, found);
            }
            _ => {}
        }
    }
}

/// Whether an expression is a mod: Some(None) when it is one of an unknown kind.
fn returned_kind(e: &Expr, local: &Products, known: &Products) -> Option<Option<EntryKind>> {
    match &e.kind {
        ExprKind::Name(name) => match local.get(name).or_else(|| known.get(name))? {
            Product::Mod(kind) => Some(Some(*kind)),
            Product::Factory(_) => None,
        },
        ExprKind::Lambda(def) => Some(Some(mod_kind(def)?)),
        ExprKind::Ternary(parts) => {
            returned_kind(&parts[1], local, known).or_else(|| returned_kind(&parts[2], local, known))
        }
        ExprKind::Call(callee, arguments) => {
            let name = match &callee.kind {
                ExprKind::Name(name) | ExprKind::Attribute(_, name) => name,
                _ => return None,
            };
            let first = arguments.first().and_then(|a| match a {
                Argument::Positional(e) => Some(e),
                Argument::Keyword(n, e) if &**n == "mask_mod" => Some(e),
                _ => None,
            });
            match &**name {
                "and_masks" | "or_masks" => Some(Some(EntryKind::MaskMod)),
                "create_block_mask" => returned_kind(first?, local, known),
                "partial" => Some(returned_kind(first?, local, known).flatten()),
                _ => match local.get(name).or_else(|| known.get(name)).or_else(|| known.get(&*format!(".{name}")))? {
                    Product::Factory(kind) => Some(*kind),
                    Product::Mod(_) => None,
                },
            }
        }
        _ => None,
    }
}

fn param(given: &ast::Param, lines: &[(String, String, String)]) -> Param {
    let line = lines.iter().find(|(name, ..)| *name == *given.name);
    let annotation = given.annotation.as_ref().and_then(annotation_text);
    let default = given.default.as_ref().and_then(literal);
    let by_doc = line.map(|(_, kind, _)| kind.clone()).filter(|k| !k.is_empty());
    let kind = annotation
        .as_deref()
        .and_then(kind_named)
        .or_else(|| default.as_ref().and_then(kind_of_default))
        .or_else(|| by_doc.as_deref().and_then(kind_named))
        .or_else(|| given.default.as_ref().filter(|d| matches!(&d.kind, ExprKind::Lambda(_))).map(|_| ParamKind::Mod))
        .or_else(|| line.filter(|(_, _, text)| text.to_lowercase().contains("tensor")).map(|_| ParamKind::Tensor))
        .unwrap_or(ParamKind::Any);
    let doc = line.map(|(_, _, text)| text.clone()).unwrap_or_default();
    Param { name: given.name.to_string(), kind, default, doc, span: given.span }
}

/// The kind that the text of an annotation means.
fn kind_named(text: &str) -> Option<ParamKind> {
    let lower = text.trim().to_lowercase();
    let inner = lower.strip_prefix("optional[").and_then(|r| r.strip_suffix(']')).unwrap_or(&lower);
    let inner = inner.strip_prefix("typing.").unwrap_or(inner);
    if inner.contains("mask_mod") || inner.contains("score_mod") || inner.starts_with("callable") {
        return Some(ParamKind::Mod);
    }
    let parts: Vec<&str> = inner.split('|').map(str::trim).filter(|p| *p != "none" && *p != "optional").collect();
    let one = |part: &str| {
        let base = part.split(['[', ',', ' ']).next().unwrap_or(part);
        match base.rsplit('.').next().unwrap_or(base) {
            "int" | "integer" => Some(ParamKind::Int),
            "float" | "number" => Some(ParamKind::Float),
            "bool" | "boolean" => Some(ParamKind::Bool),
            "str" | "string" | "device" => Some(ParamKind::Str),
            "tensor" | "longtensor" | "booltensor" | "floattensor" | "parameter" => Some(ParamKind::Tensor),
            "tuple" | "list" | "sequence" | "iterable" => Some(ParamKind::Tuple),
            _ => None,
        }
    };
    let kinds: Vec<ParamKind> = parts.iter().filter_map(|p| one(p)).collect();
    match &kinds[..] {
        [] => None,
        [ParamKind::Int, ParamKind::Float] | [ParamKind::Float, ParamKind::Int] => Some(ParamKind::Float),
        kinds if kinds.contains(&ParamKind::Tensor) => Some(ParamKind::Tensor),
        kinds => Some(kinds[0]),
    }
}

fn kind_of_default(default: &Arg) -> Option<ParamKind> {
    Some(match default {
        Arg::Bool(_) => ParamKind::Bool,
        Arg::Int(_) => ParamKind::Int,
        Arg::Float(_) => ParamKind::Float,
        Arg::Str(_) => ParamKind::Str,
        Arg::List(_) | Arg::Tuple(_) => ParamKind::Tuple,
        Arg::Tensor(_) => ParamKind::Tensor,
        Arg::Python(_) => return None,
        Arg::Mod { .. } => ParamKind::Mod,
        Arg::None => return None,
    })
}

/// A literal default.
fn literal(e: &Expr) -> Option<Arg> {
    Some(match &e.kind {
        ExprKind::None => Arg::None,
        ExprKind::Bool(b) => Arg::Bool(*b),
        ExprKind::Int(i) => Arg::Int(*i),
        ExprKind::Float(f) => Arg::Float(*f),
        ExprKind::Str(text) => Arg::Str(text.to_string()),
        ExprKind::List(items) => Arg::List(items.iter().map(literal).collect::<Option<_>>()?),
        ExprKind::Tuple(items) => Arg::Tuple(items.iter().map(literal).collect::<Option<_>>()?),
        ExprKind::Unary(ast::UnaryOp::Neg, inner) => match literal(inner)? {
            Arg::Int(i) => Arg::Int(i.checked_neg()?),
            Arg::Float(f) => Arg::Float(-f),
            _ => return None,
        },
        _ => return None,
    })
}

/// A docstring taken apart: the text before `Args:`, and name, type and text of each line there.
fn docstring(doc: &str) -> (String, Vec<(String, String, String)>) {
    let lines: Vec<&str> = doc.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let heading = |line: &&str| matches!(line.trim(), "Args:" | "Arguments:" | "Parameters:" | "Params:");
    let at = lines.iter().position(heading).unwrap_or(lines.len());
    let text: Vec<&str> = lines[..at].iter().map(|l| l.trim()).collect();
    let mut out: Vec<(String, String, String)> = Vec::new();
    let mut own_indent = None;
    for line in lines.iter().skip(at + 1) {
        if line.trim().is_empty() {
            continue;
        }
        let own = *own_indent.get_or_insert(indent(line));
        if indent(line) < own {
            break;
        }
        match line.trim().split_once(':') {
            Some((name, text)) if indent(line) == own => {
                let (name, kind) = name.split_once('(').unwrap_or((name, ""));
                let kind = kind.trim().trim_end_matches(')').trim_end_matches(", optional").to_string();
                out.push((name.trim().trim_start_matches('*').to_string(), kind, text.trim().to_string()));
            }
            _ => {
                if let Some((.., text)) = out.last_mut() {
                    text.push(' ');
                    text.push_str(line.trim());
                }
            }
        }
    }
    (text.join("\n").trim().to_string(), out)
}

#[cfg(test)]
mod tests;
