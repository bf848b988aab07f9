//! Layers made of code: the function to trace, with every argument.
//!
//! Invariant: an argument in the document overrides the followed value, which overrides the default. Must not know how
//! layers combine.

use super::binding::{Facts, ParamDoc};
use super::environment::Environment;
use super::library;
use super::model::*;
use crate::analysis::lint::{self, Lone};
use crate::base::{Diagnostic, HostTensor, Source};
use crate::ir::graph::{Mod, ModKind};
use crate::ir::passes::simplify::simplify;
use crate::python::outline::{Entry, EntryKind, Outline, outline};
use crate::python::{Arg, Call, Chosen, Limits, ModuleLoader, TextSizes, TraceRequest, trace};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Patterns may take patterns as arguments, this deep.
const MAX_NESTING: usize = 8;

/// Everything a trace depends on.
#[derive(Debug)]
pub(crate) struct Code {
    source: Source,
    entry: String,
    kind: ModKind,
    args: Vec<(String, Arg)>,
    globals: Vec<(String, HostTensor)>,
    call: Call,
    /// Modules that the last trace requested, and their texts; not part of the equality of two codes.
    modules: Vec<(String, Option<Source>)>,
    /// The last trace's choice of the mod, and the sizes in the text itself; not part of the equality either.
    said: (Option<Chosen>, Option<TextSizes>),
    /// Reads of the last trace that simplifying hides.
    lone: Vec<Lone>,
    /// The last trace's mask with other last bits of its functions.
    doubts: Vec<Arc<Mod>>,
}

impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        let own = (&self.source, &self.entry, self.kind, &self.args, &self.globals, self.call);
        own == (&other.source, &other.entry, other.kind, &other.args, &other.globals, other.call)
    }
}

struct Loader<'a> {
    env: &'a dyn Environment,
    asked: RefCell<Vec<(String, Option<Source>)>>,
}

impl ModuleLoader for Loader<'_> {
    fn load(&self, dotted: &str) -> Option<Source> {
        let before = self.asked.borrow().iter().find(|(name, _)| name == dotted).map(|(_, found)| found.clone());
        if let Some(found) = before {
            return found;
        }
        let found = self.env.module(dotted);
        self.asked.borrow_mut().push((dotted.to_string(), found.clone()));
        found
    }
}

impl Code {
    /// Traces and simplifies.
    pub(crate) fn trace(&mut self, env: &dyn Environment) -> (Option<Arc<Mod>>, Vec<Diagnostic>) {
        let loader = Loader { env, asked: RefCell::default() };
        let traced = trace(&TraceRequest {
            source: self.source.clone(),
            entry: self.entry.clone(),
            kind: self.kind,
            args: self.args.clone(),
            globals: self.globals.clone(),
            call: self.call,
            loader: &loader,
            limits: Limits::default(),
        });
        self.modules = loader.asked.into_inner();
        self.said = (traced.chosen.clone(), traced.sizes);
        self.lone = traced.result.as_ref().map(lint::lone).unwrap_or_default();
        self.doubts = traced.doubts.iter().map(|other| Arc::new(simplify(other))).collect();
        (traced.result.map(|given| Arc::new(simplify(&given))), traced.diagnostics)
    }

    /// The last trace's mask with other last bits of its functions.
    pub(crate) fn doubts(&self) -> &[Arc<Mod>] {
        &self.doubts
    }

    /// Reads of the last trace that simplifying hides.
    pub(crate) fn lone(&self) -> &[Lone] {
        &self.lone
    }

    /// The function that the last trace chose, and the sizes of the text's own block mask.
    pub(crate) fn said(&self) -> &(Option<Chosen>, Option<TextSizes>) {
        &self.said
    }

    /// Whether the modules it imported still have the same text.
    pub(crate) fn modules_unchanged(&self, env: &dyn Environment) -> bool {
        self.modules.iter().all(|(dotted, source)| env.module(dotted) == *source)
    }
}

/// The code of a pattern layer.
pub(crate) fn of_pattern(
    pattern: &CodeRef,
    kind: ModKind,
    facts: &Facts,
    env: &dyn Environment,
) -> Result<Code, Diagnostic> {
    let source = pattern_source(&pattern.name, env)?;
    let args = arguments(&outline(&source), &pattern.name, &pattern.args, facts, env, 0)?;
    let entry = pattern.name.clone();
    Ok(Code {
        source,
        entry,
        kind,
        args,
        globals: Vec::new(),
        call: Call::Factory,
        modules: Vec::new(),
        said: (None, None),
        lone: Vec::new(),
        doubts: Vec::new(),
    })
}

/// The code of a text layer.
pub(crate) fn of_text(
    text: &TextCode,
    layer: &str,
    kind: ModKind,
    facts: &Facts,
    env: &dyn Environment,
) -> Result<Code, Diagnostic> {
    let source = Source::new(layer, text.source.as_str());
    of_source(source, &text.entry, kind, &text.args, &text.tensors, facts, env)
}

/// The code of a linked file.
pub(crate) fn of_linked(
    linked: &LinkedCode,
    kind: ModKind,
    facts: &Facts,
    env: &dyn Environment,
) -> Result<Code, Diagnostic> {
    let source = Source::new(linked.path.as_str(), env.linked(&linked.path)?);
    of_source(source, &linked.entry, kind, &linked.args, &linked.tensors, facts, env)
}

fn of_source(
    source: Source,
    entry: &str,
    kind: ModKind,
    args: &BTreeMap<String, ArgValue>,
    tensors: &BTreeMap<String, HostTensor>,
    facts: &Facts,
    env: &dyn Environment,
) -> Result<Code, Diagnostic> {
    let args = arguments(&outline(&source), entry, args, facts, env, 0)?;
    let globals = tensors.iter().map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
    Ok(Code {
        source,
        entry: entry.to_string(),
        kind,
        args,
        globals,
        call: Call::Auto,
        modules: Vec::new(),
        said: (None, None),
        lone: Vec::new(),
        doubts: Vec::new(),
    })
}

/// The text of a pattern, or an error that names those there are.
pub(crate) fn pattern_source(name: &str, env: &dyn Environment) -> Result<Source, Diagnostic> {
    env.pattern(name).ok_or_else(|| {
        let near = library::did_you_mean(name, library::patterns().map(|p| p.name));
        Diagnostic::error("unknown-pattern", format!("there is no pattern named `{name}`"))
            .hint(format!("{near}`maskloom presets` lists all patterns"))
    })
}

/// The entry of a name: the named one, or the last if none is named.
pub(crate) fn find_entry<'a>(outline: &'a Outline, name: &str) -> Option<&'a Entry> {
    if name.is_empty() { outline.entries.last() } else { outline.entries.iter().rev().find(|e| e.name == name) }
}

/// Given arguments and followed facts, in the order of the signature.
fn arguments(
    outline: &Outline,
    entry: &str,
    given: &BTreeMap<String, ArgValue>,
    facts: &Facts,
    env: &dyn Environment,
    depth: usize,
) -> Result<Vec<(String, Arg)>, Diagnostic> {
    let mut args = Vec::new();
    let entry = find_entry(outline, entry);
    for param in entry.filter(|e| e.kind == EntryKind::Factory).map_or(&[][..], |e| &e.params) {
        if given.contains_key(&param.name) {
            continue;
        }
        let follows = ParamDoc::parse(&param.doc, &param.name).follows;
        if let Some(value) = follows.and_then(|name| facts.value(&name)) {
            args.push((param.name.clone(), Arg::Int(value)));
        }
    }
    for (name, value) in given {
        args.push((name.clone(), argument(value, facts, env, depth)?));
    }
    Ok(args)
}

fn argument(value: &ArgValue, facts: &Facts, env: &dyn Environment, depth: usize) -> Result<Arg, Diagnostic> {
    Ok(match value {
        ArgValue::None => Arg::None,
        ArgValue::Bool(value) => Arg::Bool(*value),
        ArgValue::Int(value) => Arg::Int(*value),
        ArgValue::Float(value) => Arg::Float(*value),
        ArgValue::Text(value) => Arg::Str(value.clone()),
        ArgValue::List(items) => {
            let items = items.iter().map(|item| argument(item, facts, env, depth));
            Arg::Tuple(items.collect::<Result<_, _>>()?)
        }
        ArgValue::Tensor { tensor } => Arg::Tensor(tensor.clone()),
        ArgValue::Python { python } => Arg::Python(python.clone()),
        ArgValue::Mask { mask } if depth >= MAX_NESTING => {
            let message = format!("`{}` nests patterns more than {MAX_NESTING} deep", mask.name);
            return Err(Diagnostic::error("pattern-nesting", message).hint("combine masks as layers instead"));
        }
        ArgValue::Mask { mask } => {
            let source = pattern_source(&mask.name, env)?;
            let args = arguments(&outline(&source), &mask.name, &mask.args, facts, env, depth + 1)?;
            Arg::Mod { source, entry: mask.name.clone(), call: true, args }
        }
    })
}
