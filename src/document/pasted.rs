//! Analysis of a pasted text: the function that is the mod, its arguments, and the sizes.
//!
//! Invariant: the mod and the sizes are those that a check of the text chooses; only arguments written as plain values
//! are taken, others are left to the text itself. Must not know the window.

use super::compile::Compiled;
use super::model::{ArgValue, Document, MaskContent, ScoreContent};
use crate::analysis::access::access;
use crate::base::{BlockSize, Diagnostic, Source, SourceId};
use crate::ir::graph::{Input, Mod, ModKind, Op};
use crate::python::outline::{Entry, EntryKind, Outline, outline};
use crate::python::syntax::{self, ast};
use crate::python::trace::{Limits, TextSizes, TraceRequest, trace};
use ast::{Argument, BinOp, Body, Expr, ExprKind, Module, Stmt, StmtKind, UnaryOp};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Names that refer to other names are followed up to this depth.
const MAX_HOPS: usize = 16;

/// A text, looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pasted {
    /// At most a mask and a score mod.
    pub mods: Vec<PastedMod>,
    /// From the text's `create_block_mask`, if it calls one.
    pub sizes: Option<Sizes>,
    /// From the captured tensors that the mods read by their indices.
    pub tables: Tables,
    /// The first error of the text, or of its mods.
    pub wrong: Option<Diagnostic>,
}

/// The lengths of captured tensors that a mod reads at `q_idx`, `kv_idx`, `b` or `h` themselves, and their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Query tokens.
    pub q_len: Option<(usize, String)>,
    /// Key tokens.
    pub kv_len: Option<(usize, String)>,
    /// Entries of the batch.
    pub batch: Option<(usize, String)>,
    /// Query heads.
    pub heads: Option<(usize, String)>,
}

/// A mod of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct PastedMod {
    /// Function, lambda, variable or factory; empty: to be found.
    pub entry: String,
    /// A score mod, not a mask.
    pub score: bool,
    /// The text's arguments of the factory.
    pub args: BTreeMap<String, ArgValue>,
}

/// The arguments of `create_block_mask`; None for an argument that is not a plain number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sizes {
    /// Where it is called, from 1.
    pub line: usize,
    /// B; also None for Python's None.
    pub batch: Option<usize>,
    /// H; also None for Python's None.
    pub heads: Option<usize>,
    /// Q_LEN
    pub q_len: Option<usize>,
    /// KV_LEN
    pub kv_len: Option<usize>,
    /// BLOCK_SIZE
    pub block_size: Option<BlockSize>,
}

/// The sizes that a text's code is made for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeFor {
    /// Query tokens.
    pub q_len: Option<usize>,
    /// Key tokens.
    pub kv_len: Option<usize>,
    /// Query heads.
    pub heads: Option<usize>,
    /// Entries of the batch.
    pub batch: Option<usize>,
    /// The tables that say one of these, each once.
    pub tables: Vec<String>,
}

/// The limit of a text's own run to find its mods, in steps and in bytes of tensors; a text beyond it is read without a
/// run.
const STEPS: u64 = 1_000_000;
const TENSOR_BYTES: u64 = 256 << 20;

/// Errors that a look at a text does not tell: arguments that a layer gives, and the look's own limits.
const UNTOLD: [&str; 5] = ["missing-argument", "too-many-steps", "too-large", "too-slow", "no-mod"];

/// Whether a text cannot be read as Python.
pub fn is_broken(text: &str) -> bool {
    !syntax::parse(&Source::new("pasted", text), SourceId(0)).errors.is_empty()
}

/// Analyses a text; the same text only once, because a window asks in every frame.
pub fn read(text: &str) -> Pasted {
    thread_local! {
        static LAST: RefCell<Option<(String, Pasted)>> = const { RefCell::new(None) };
    }
    let known = LAST.with_borrow(|last| last.as_ref().filter(|(of, _)| of == text).map(|(_, found)| found.clone()));
    known.unwrap_or_else(|| {
        let found = looked_at(text);
        LAST.set(Some((text.to_string(), found.clone())));
        found
    })
}

fn looked_at(text: &str) -> Pasted {
    let source = Source::new("pasted", text);
    let outline = outline(&source);
    let mut mods = mods_of(&outline, text);
    // deeper nesting is not analysed: reading it needs a larger stack
    if syntax::nesting(&source) > syntax::SHALLOW {
        return Pasted { mods, ..Pasted::default() };
    }
    let parsed = syntax::parse(&source, SourceId(0));
    let sources = std::slice::from_ref(&source);
    let mut wrong = parsed.errors.first().map(|why| why.clone().with_sources(sources));
    let mut asked = None;
    let mut tables = Tables::default();
    for given in &mut mods {
        let kind = if given.score { ModKind::Score } else { ModKind::Mask };
        let limits = Limits { steps: STEPS, tensor_bytes: TENSOR_BYTES, ..Limits::default() };
        let traced = trace(&TraceRequest { limits, ..TraceRequest::new(source.clone(), "", kind) });
        if let Some(chosen) = traced.chosen {
            given.entry = chosen.entry;
        }
        asked = asked.or(traced.sizes);
        let told = |why: &&Diagnostic| why.is_error() && !UNTOLD.contains(&&*why.code);
        wrong = wrong.or_else(|| traced.diagnostics.iter().find(told).cloned());
        traced.result.iter().for_each(|made| tables.read_by(made));
    }
    let values = Values::of(&parsed.module);
    for given in &mut mods {
        if let Some((entry, args)) = values.factory_call(&given.entry, &outline) {
            (given.entry, given.args) = (entry, args);
        }
    }
    // a call inside a function that did not run is read from its text
    let sizes = asked.map(|s| Sizes::of(&s, &source)).or_else(|| values.sizes(&parsed.module, text));
    Pasted { mods, sizes, tables, wrong }
}

impl Tables {
    /// The tables that a mod reads.
    pub fn of(made: &Mod) -> Tables {
        let mut tables = Tables::default();
        tables.read_by(made);
        tables
    }

    /// The sizes that code is made for: those that its create_block_mask states, else the lengths of these tables. One head or
    /// entry in the call is a mask that serves all of them, not a number of them.
    pub fn made_for(&self, stated: &Sizes) -> MadeFor {
        let mut tables: Vec<String> = Vec::new();
        let mut size = |stated: Option<usize>, table: &Option<(usize, String)>| {
            stated.or_else(|| {
                let (len, name) = table.as_ref().filter(|(len, _)| *len > 0)?;
                if !tables.contains(name) {
                    tables.push(name.clone());
                }
                Some(*len)
            })
        };
        let several = |n: Option<usize>| n.filter(|n| *n > 1);
        let q_len = size(stated.q_len, &self.q_len);
        let kv_len = size(stated.kv_len, &self.kv_len);
        let heads = size(several(stated.heads), &self.heads);
        let batch = size(several(stated.batch), &self.batch);
        MadeFor { q_len, kv_len, heads, batch, tables }
    }

    /// Those that are shorter than a document.
    fn shorter_than(self, document: &Document) -> Tables {
        let short = |table: Option<(usize, String)>, has: usize| table.filter(|(len, _)| *len > 0 && *len < has);
        let (axes, settings) = (&document.axes, &document.settings);
        Tables {
            q_len: short(self.q_len, axes.q.len()),
            kv_len: short(self.kv_len, axes.kv().len()),
            batch: short(self.batch, settings.batch),
            heads: short(self.heads, settings.heads),
        }
    }

    /// Adds what a mod reads; the shortest table of each index counts, beyond which the mod would read what is not there.
    fn read_by(&mut self, made: &Mod) {
        for found in access(made) {
            let capture = made.graph.capture(found.capture);
            let shape = capture.tensor.shape();
            for load in &found.loads {
                let Op::Load(_, places) = &made.graph.node(load.node).op else { continue };
                for (place, len) in places.iter().zip(shape) {
                    let own = match made.graph.node(*place).op {
                        Op::Input(Input::QIdx) => &mut self.q_len,
                        Op::Input(Input::KvIdx) => &mut self.kv_len,
                        Op::Input(Input::B) => &mut self.batch,
                        Op::Input(Input::H) => &mut self.heads,
                        _ => continue,
                    };
                    if own.as_ref().is_none_or(|(known, _)| len < known) {
                        *own = Some((*len, capture.name.to_string()));
                    }
                }
            }
        }
    }
}

impl MadeFor {
    /// Query and key tokens; one of them serves for both.
    pub fn lengths(&self) -> Option<(usize, usize)> {
        Some((self.q_len.or(self.kv_len)?, self.kv_len.or(self.q_len)?))
    }
}

/// Sizes that a layer's own code is made for, where they are not the document's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnSizes {
    /// The layer or score mod.
    pub layer: u64,
    /// What the document's axes and settings would be.
    pub q_len: usize,
    /// Key tokens.
    pub kv_len: usize,
    /// Query heads.
    pub heads: usize,
    /// Entries of the batch.
    pub batch: usize,
    /// The table that says so by its entries; None: its create_block_mask does.
    pub table: Option<(usize, String)>,
}

/// The first layer whose code says other sizes: its create_block_mask does, or a table that it reads is shorter than the document.
pub fn own_sizes(document: &Document, compiled: &Compiled) -> Option<OwnSizes> {
    let settings = &document.settings;
    let [q, kv] = [document.axes.q.len(), document.axes.kv().len()];
    compiled.layers.iter().find_map(|layer| {
        let made = layer.result.as_ref().filter(|_| has_text(document, layer.id))?;
        let tables = Tables::of(made).shorter_than(document);
        let asked = layer.sizes.map(|sizes| Sizes::at(&sizes, 0)).unwrap_or_default();
        let own = tables.made_for(&asked);
        let new_q = own.q_len.or(own.kv_len.filter(|_| q == kv)).unwrap_or(q);
        let new_kv = own.kv_len.or((q == kv).then_some(new_q)).unwrap_or(kv);
        let (heads, batch) = (own.heads.unwrap_or(settings.heads), own.batch.unwrap_or(settings.batch));
        if (new_q, new_kv, heads, batch) == (q, kv, settings.heads, settings.batch) {
            return None;
        }
        let table = [tables.q_len, tables.kv_len, tables.heads, tables.batch].into_iter().flatten().next();
        Some(OwnSizes { layer: layer.id, q_len: new_q, kv_len: new_kv, heads, batch, table })
    })
}

/// Whether a layer or score mod is made of its user's code.
fn has_text(document: &Document, id: u64) -> bool {
    let mask = document.layer(id).map(|l| matches!(l.content, MaskContent::Text(_) | MaskContent::Linked(_)));
    let score = || document.score(id).map(|s| matches!(s.content, ScoreContent::Text(_) | ScoreContent::Linked(_)));
    mask.or_else(score).unwrap_or(false)
}

impl Sizes {
    /// Of a call that was met in a text.
    pub fn of(asked: &TextSizes, source: &Source) -> Sizes {
        Sizes::at(asked, source.line_column(asked.span.start).0)
    }

    fn at(asked: &TextSizes, line: usize) -> Sizes {
        let TextSizes { batch, heads, q_len, kv_len, block_size, .. } = *asked;
        Sizes { line, batch, heads, q_len, kv_len, block_size }
    }
}

/// The kinds of mods that a text has; of each the last one, for texts that cannot run.
fn mods_of(found: &Outline, text: &str) -> Vec<PastedMod> {
    let is_score = |entry: &Entry| match entry.kind {
        EntryKind::MaskMod => false,
        EntryKind::ScoreMod => true,
        EntryKind::Factory => {
            let span = entry.span.start as usize..entry.span.end as usize;
            let body = text.get(span).unwrap_or(text);
            entry.name.contains("score") || body.contains("(score,") || body.contains("lambda score")
        }
    };
    let last = |score: bool| found.entries.iter().rposition(|e| is_score(e) == score);
    let mut places: Vec<(usize, bool)> =
        [false, true].into_iter().filter_map(|score| Some((last(score)?, score))).collect();
    places.sort_unstable();
    let given =
        |(at, score): (usize, bool)| PastedMod { entry: found.entries[at].name.clone(), score, args: BTreeMap::new() };
    places.into_iter().map(given).collect()
}

/// The bindings of names, at the top of a text.
struct Values<'a> {
    /// None: assigned more than once, so unknown without running the text.
    assigned: BTreeMap<&'a str, Option<&'a Expr>>,
}

impl<'a> Values<'a> {
    fn of(module: &'a Module) -> Values<'a> {
        let mut assigned: BTreeMap<&str, Option<&Expr>> = BTreeMap::new();
        for statement in &module.body {
            let mut note = |target: &'a Expr, value: Option<&'a Expr>| {
                if let ExprKind::Name(name) = &target.kind {
                    assigned.entry(name).and_modify(|known| *known = None).or_insert(value);
                }
            };
            match &statement.kind {
                StmtKind::Assign { targets, value } => match &targets[..] {
                    [target] => note(target, Some(value)),
                    several => several.iter().for_each(|target| note(target, None)),
                },
                StmtKind::AnnAssign { target, value } => note(target, value.as_ref()),
                StmtKind::AugAssign { target, .. } => note(target, None),
                _ => {}
            }
        }
        Values { assigned }
    }

    /// A name's assigned value, through other names.
    fn behind(&self, mut e: &'a Expr) -> &'a Expr {
        for _ in 0..MAX_HOPS {
            let ExprKind::Name(name) = &e.kind else { break };
            let Some(Some(value)) = self.assigned.get(&**name) else { break };
            e = value;
        }
        e
    }

    /// The factory that a variable comes from and its arguments, where all of them are plain values.
    fn factory_call(&self, variable: &str, outline: &Outline) -> Option<(String, BTreeMap<String, ArgValue>)> {
        let mut e = self.behind((*self.assigned.get(variable)?)?);
        if let ExprKind::Call(callee, arguments) = &e.kind
            && called(callee) == Some("create_block_mask")
        {
            e = self.behind(argument(arguments, 0, "mask_mod")?);
        }
        let ExprKind::Call(callee, arguments) = &e.kind else { return None };
        let ExprKind::Name(name) = &callee.kind else { return None };
        let factory = outline.entries.iter().rev().find(|f| f.name == **name && f.kind == EntryKind::Factory)?;
        let mut args = BTreeMap::new();
        for (at, given) in arguments.iter().enumerate() {
            let (name, value) = match given {
                Argument::Positional(value) => (factory.params.get(at)?.name.clone(), value),
                Argument::Keyword(name, value) => (name.to_string(), value),
                Argument::Star(_) | Argument::DoubleStar(_) => return None,
            };
            args.insert(name, self.value(value)?);
        }
        Some((factory.name.clone(), args))
    }

    /// An expression as an argument of a document.
    fn value(&self, e: &'a Expr) -> Option<ArgValue> {
        Some(match &self.behind(e).kind {
            ExprKind::None => ArgValue::None,
            ExprKind::Bool(b) => ArgValue::Bool(*b),
            ExprKind::Int(n) => ArgValue::Int(*n),
            ExprKind::Float(x) => ArgValue::Float(*x),
            ExprKind::Str(text) => ArgValue::Text(text.to_string()),
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                ArgValue::List(items.iter().map(|item| self.value(item)).collect::<Option<_>>()?)
            }
            ExprKind::Unary(UnaryOp::Neg, inner) => match self.value(inner)? {
                ArgValue::Int(n) => ArgValue::Int(n.checked_neg()?),
                ArgValue::Float(x) => ArgValue::Float(-x),
                _ => return None,
            },
            ExprKind::Binary(..) => ArgValue::Int(self.whole(e)?),
            _ => return None,
        })
    }

    /// A whole number, also as a sum or product of such.
    fn whole(&self, e: &'a Expr) -> Option<i64> {
        match &self.behind(e).kind {
            ExprKind::Int(n) => Some(*n),
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.whole(a)?, self.whole(b)?);
                match op {
                    BinOp::Add => a.checked_add(b),
                    BinOp::Sub => a.checked_sub(b),
                    BinOp::Mul => a.checked_mul(b),
                    BinOp::FloorDiv if a >= 0 && b > 0 => Some(a / b),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// From the last call of `create_block_mask`, at the top of the text or in its functions.
    fn sizes(&self, module: &'a Module, text: &str) -> Option<Sizes> {
        let mut calls = Vec::new();
        statements(&module.body, &mut |e| {
            if let ExprKind::Call(callee, arguments) = &e.kind
                && called(callee) == Some("create_block_mask")
            {
                calls.push((e.span.start, arguments));
            }
        });
        let (at, arguments) = calls.pop()?;
        let number = |at: usize, name: &str| {
            let n = usize::try_from(self.whole(argument(arguments, at, name)?)?).ok()?;
            (n > 0).then_some(n)
        };
        let block_size = argument(arguments, 6, "BLOCK_SIZE").and_then(|e| match &self.behind(e).kind {
            ExprKind::Tuple(sides) | ExprKind::List(sides) => match &sides[..] {
                [q, kv] => {
                    let side = |e| usize::try_from(self.whole(e)?).ok().filter(|n| *n > 0);
                    Some(BlockSize { q: side(q)?, kv: side(kv)? })
                }
                _ => None,
            },
            _ => number(6, "BLOCK_SIZE").map(BlockSize::square),
        });
        Some(Sizes {
            line: text.get(..at as usize).map_or(0, |before| before.matches('\n').count()) + 1,
            batch: number(1, "B"),
            heads: number(2, "H"),
            q_len: number(3, "Q_LEN"),
            kv_len: number(4, "KV_LEN"),
            block_size,
        })
    }
}

/// The last part of a callee's name.
fn called(callee: &Expr) -> Option<&str> {
    match &callee.kind {
        ExprKind::Name(name) | ExprKind::Attribute(_, name) => Some(name),
        _ => None,
    }
}

/// An argument by place or name.
fn argument<'a>(arguments: &'a [Argument], place: usize, name: &str) -> Option<&'a Expr> {
    let named = arguments.iter().find_map(|a| match a {
        Argument::Keyword(n, e) if &**n == name => Some(e),
        _ => None,
    });
    named.or_else(|| match arguments.get(place) {
        Some(Argument::Positional(e)) => Some(e),
        _ => None,
    })
}

/// Every call's expression in statements, functions' bodies included, in text order.
fn statements<'a>(body: &'a [Stmt], found: &mut impl FnMut(&'a Expr)) {
    for statement in body {
        match &statement.kind {
            StmtKind::Function(def) => {
                if let Body::Block(body) = &def.body {
                    statements(body, found);
                }
            }
            StmtKind::Class(class) => statements(&class.body, found),
            StmtKind::Return(Some(e)) | StmtKind::Expr(e) => calls(e, found),
            StmtKind::Assign { value, .. } => calls(value, found),
            StmtKind::AnnAssign { value: Some(value), .. } => calls(value, found),
            StmtKind::If(branches) => branches.iter().for_each(|(_, body)| statements(body, found)),
            StmtKind::For { body, .. } | StmtKind::While { body, .. } => statements(body, found),
            StmtKind::With(with) => statements(&with.body, found),
            StmtKind::Try { body, .. } => statements(body, found),
            _ => {}
        }
    }
}

fn calls<'a>(e: &'a Expr, found: &mut impl FnMut(&'a Expr)) {
    if let ExprKind::Call(callee, arguments) = &e.kind {
        if let ExprKind::Attribute(object, _) = &callee.kind {
            calls(object, found);
        }
        for given in arguments {
            match given {
                Argument::Positional(e) | Argument::Keyword(_, e) | Argument::Star(e) | Argument::DoubleStar(e) => {
                    calls(e, found);
                }
            }
        }
        found(e);
    }
}
