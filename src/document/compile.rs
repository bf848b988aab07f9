//! Compiles layers to one mask and one score mod.
//!
//! Invariant: the result is a function of the document and the environment alone; a failing layer is reported and
//! skipped, the others stay; an unchanged layer is not traced again. Must not know backends.

use super::binding::Facts;
use super::code::{self, Code};
pub use super::environment::{BuiltIn, Environment};
use super::joining::{Part, join_masks};
use super::model::*;
use super::{painted, shapes};
use crate::analysis::intent::{self, Extent};
use crate::analysis::lint::{self, Sizes};
use crate::analysis::settled;
use crate::base::{Diagnostic, Lengths};
use crate::ir::graph::{Mod, ModKind, captured_bytes};
use crate::ir::passes::compose;
use crate::ir::passes::simplify::simplify;
use crate::python::{Chosen, TextSizes};
use std::collections::HashMap;
use std::sync::Arc;

/// The tracer's note that a mask depends on bits in which processors differ.
const LAST_BIT: &str = "last-bit";

/// The result of one layer or score mod.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerResult {
    /// Which.
    pub id: u64,
    /// Its own mod, before it is combined with the others; None if disabled. For a layer in error its last valid one,
    /// if this compiler has seen any.
    pub result: Option<Arc<Mod>>,
    /// Errors and warnings, with their sources.
    pub diagnostics: Vec<Diagnostic>,
    /// For code: the function chosen as the mod.
    pub chosen: Option<Chosen>,
    /// For code: the sizes of its own create_block_mask.
    pub sizes: Option<TextSizes>,
}

/// A compiled document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compiled {
    /// All enabled mask layers that compiled, joined; None: everything is kept.
    pub mask: Option<Arc<Mod>>,
    /// All enabled score mods that compiled, chained; None: scores stay.
    pub score: Option<Arc<Mod>>,
    /// One for each layer, then one for each score mod, in document order.
    pub layers: Vec<LayerResult>,
    /// The errors of the document as a whole, and what the environment passed over.
    pub diagnostics: Vec<Diagnostic>,
}

impl Compiled {
    /// All messages, document first.
    pub fn all_diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().chain(self.layers.iter().flat_map(|l| &l.diagnostics))
    }

    /// Whether something stops a run.
    pub fn has_errors(&self) -> bool {
        self.all_diagnostics().any(Diagnostic::is_error)
    }
}

/// Compiles once, remembering nothing.
pub fn compile(document: &Document, environment: &dyn Environment) -> Compiled {
    Compiler::default().compile(document, environment)
}

/// Compiles again and again, tracing only what changed.
#[derive(Debug, Default)]
pub struct Compiler {
    layers: HashMap<u64, Memo>,
    /// Each layer's last valid state, and its source.
    good: HashMap<u64, (Origin, Arc<Mod>)>,
    mask: Option<Joined>,
    score: Option<Joined>,
    traced: u64,
}

/// A layer's last source, and its result.
#[derive(Debug)]
struct Memo {
    from: From,
    result: Option<Arc<Mod>>,
    diagnostics: Vec<Diagnostic>,
    /// The messages about code at these sizes.
    linted: Option<(Sizes, Vec<Diagnostic>)>,
    /// The messages at these sizes that replace the tracer's notes on last bits.
    settled: Option<(Sizes, Vec<Diagnostic>)>,
}

impl Memo {
    fn reported(&mut self, sizes: Sizes) -> Made {
        if let From::Code(code) = &self.from
            && let Some(given) = &self.result
            && self.linted.as_ref().is_none_or(|(of, _)| *of != sizes)
        {
            let hidden = code.lone().iter().filter_map(|lone| lone.reported(sizes));
            let asked = code.said().1.map(|text| text_asked(&text, given)).unwrap_or_default();
            self.linted = Some((sizes, lint::lint(given, sizes).into_iter().chain(hidden).chain(asked).collect()));
        }
        let (open, mut all): (Vec<_>, Vec<_>) = self.diagnostics.iter().cloned().partition(|d| d.code == LAST_BIT);
        if let (From::Code(code), Some(given), false) = (&self.from, &self.result, open.is_empty()) {
            if self.settled.as_ref().is_none_or(|(of, _)| *of != sizes) {
                let reported = open.iter().filter_map(|note| settled::reported(note, given, code.doubts(), sizes));
                self.settled = Some((sizes, reported.collect()));
            }
            all.extend(self.settled.iter().flat_map(|(_, reported)| reported.iter().cloned()));
        }
        let place = |d: &Diagnostic| (d.code.clone(), d.labels.first().map(|l| l.span));
        // if the tracer decided it, it has reported it already
        let more = self
            .linted
            .iter()
            .flat_map(|(_, reported)| reported)
            .filter(|d| !self.diagnostics.iter().any(|o| place(o) == place(d)));
        all.extend(more.cloned());
        (self.result.clone(), all)
    }
}

/// What the text's own create_block_mask was given, against what its mask is.
fn text_asked(text: &TextSizes, given: &Mod) -> Vec<Diagnostic> {
    let extent = |given: Option<usize>, one: bool| match given {
        _ if one => Extent::One,
        Some(n) if n > 1 => Extent::Many(n),
        _ => Extent::Unknown,
    };
    let (batch, heads) = (extent(text.batch, text.broadcast[0]), extent(text.heads, text.broadcast[1]));
    let mut reported = intent::asked(given.depends(), batch, heads);
    if text.method {
        let message = "the mask is a bound method: PyTorch counts `self` among its parameters and refuses it";
        reported.push(
            Diagnostic::warning("mask-is-method", message)
                .hint("wrap it: `lambda b, h, q_idx, kv_idx: self.mask(b, h, q_idx, kv_idx)`, or define the mod in a method that returns it"),
        );
    }
    reported.into_iter().map(|d| Diagnostic { sources: given.sources.clone(), ..d.at(text.span, "") }).collect()
}

#[derive(Debug, PartialEq)]
enum From {
    Shape(MaskContent, Option<Lengths>),
    Curve(Vec<(f64, f64)>),
    Code(Box<Code>),
}

/// The parts of a joined mod, kept alive so that equal pointers mean equal mods.
#[derive(Debug)]
struct Joined {
    parts: Vec<Part>,
    result: Option<Arc<Mod>>,
}

type Made = (Option<Arc<Mod>>, Vec<Diagnostic>);

/// The owner of its content: the names of document and layer, the axes, and the pattern, file or kind of shape.
type Origin = (String, String, String, String);

fn origin(document: &Document, layer: &str, kind: String) -> Origin {
    let axes = format!("{} x {}", document.axes.q, document.axes.kv());
    (document.name.clone(), layer.to_string(), axes, kind)
}

/// The part that stays the same while a layer's arguments, text or shape are edited.
fn mask_kind(content: &MaskContent) -> String {
    match content {
        MaskContent::Pattern(code) => format!("pattern {}", code.name),
        MaskContent::Text(_) => "text".into(),
        MaskContent::Linked(code) => format!("linked {} {}", code.path, code.entry),
        MaskContent::Rectangle { .. } => "rectangle".into(),
        MaskContent::Band { .. } => "band".into(),
        MaskContent::Painted(_) => "painted".into(),
    }
}

fn score_kind(content: &ScoreContent) -> String {
    match content {
        ScoreContent::Pattern(code) => format!("pattern {}", code.name),
        ScoreContent::Text(_) => "text".into(),
        ScoreContent::Linked(code) => format!("linked {} {}", code.path, code.entry),
        ScoreContent::Curve { .. } => "curve".into(),
    }
}

/// What a run will hold of captured tensors, where that is much: a user may not expect it.
fn large_captures(compiled: &Compiled) -> Option<Diagnostic> {
    /// Bytes from which on it is told.
    const LARGE: u64 = 256 << 20;
    /// This program, the message to the worker and the worker hold them at once: 1.41 GiB were held for a bias of 256 MiB.
    const COPIES: f64 = 6.0;
    let bytes = captured_bytes([&compiled.mask, &compiled.score].into_iter().flatten().map(|of| &**of));
    let gib = bytes as f64 / (1u64 << 30) as f64;
    let message = format!(
        "captured tensors hold {gib:.2} GiB: a run takes about {:.1} GiB of memory for them on the machines of program and worker, and {gib:.2} GiB of a GPU",
        COPIES * gib
    );
    let hint = "a smaller dtype, one table for all heads or batch entries, or values that the mod computes take less";
    (bytes > LARGE).then(|| Diagnostic::warning("captured-memory", message).hint(hint))
}

impl Compiler {
    /// Compiles; layers whose content, arguments and texts are as they were keep their mod.
    pub fn compile(&mut self, document: &Document, environment: &dyn Environment) -> Compiled {
        let lengths = match document.axes.lengths() {
            Ok(lengths) => lengths,
            Err(why) => return Compiled { diagnostics: vec![why], ..Compiled::default() },
        };
        let sizes = Sizes { batch: document.settings.batch, heads: document.settings.heads, lengths };
        let facts = Facts { axes: &document.axes, settings: &document.settings };
        let is_there = |id: &u64| document.layer(*id).is_some() || document.score(*id).is_some();
        self.layers.retain(|id, _| is_there(id));
        self.good.retain(|id, _| is_there(id));
        let mut compiled = Compiled::default();
        let (mut masks, mut scores) = (Vec::new(), Vec::new());
        for layer in &document.layers {
            let made = self.mask_layer(layer, sizes, &facts, environment);
            let made = self.last_good(layer.id, origin(document, &layer.name, mask_kind(&layer.content)), made);
            let part = |of| Part { combine: layer.combine, heads: layer.heads.clone(), of };
            masks.extend(made.0.clone().map(part));
            compiled.layers.push(self.result_of(layer.id, made));
        }
        for score in &document.scores {
            let made = self.score_layer(score, sizes, &facts, environment);
            let made = self.last_good(score.id, origin(document, &score.name, score_kind(&score.content)), made);
            scores.extend(made.0.clone().map(|of| Part { combine: Combine::And, heads: None, of }));
            compiled.layers.push(self.result_of(score.id, made));
        }
        compiled.mask = joined(&mut self.mask, masks, join_masks);
        compiled.score = joined(&mut self.score, scores, |parts| {
            compose::chain_scores(&parts.iter().map(|p| &*p.of).collect::<Vec<_>>())
        });
        compiled.diagnostics = environment.passed_over();
        compiled.diagnostics.extend(large_captures(&compiled));
        compiled
    }

    fn result_of(&self, id: u64, (result, diagnostics): Made) -> LayerResult {
        let (chosen, sizes) = match self.layers.get(&id).map(|memo| &memo.from) {
            Some(From::Code(code)) => code.said().clone(),
            _ => (None, None),
        };
        LayerResult { id, result, diagnostics, chosen, sizes }
    }

    /// Number of layers traced over the life of this compiler.
    pub fn traced(&self) -> u64 {
        self.traced
    }

    /// Another document is compiled from now on: nothing of the one before is shown for it.
    pub fn forget(&mut self) {
        self.good.clear();
    }

    /// A layer in error keeps its last valid state while it is edited: its errors stop a run as before.
    fn last_good(&mut self, id: u64, origin: Origin, (result, diagnostics): Made) -> Made {
        if diagnostics.iter().any(Diagnostic::is_error) {
            let good = self.good.get(&id).filter(|(of, _)| *of == origin);
            return (result.or_else(|| good.map(|(_, given)| given.clone())), diagnostics);
        }
        match &result {
            Some(given) => drop(self.good.insert(id, (origin, given.clone()))),
            None => drop(self.good.remove(&id)),
        }
        (result, diagnostics)
    }

    fn mask_layer(&mut self, layer: &Layer, sizes: Sizes, facts: &Facts, env: &dyn Environment) -> Made {
        if !layer.enabled {
            return (None, Vec::new());
        }
        let code = match &layer.content {
            MaskContent::Pattern(pattern) => code::of_pattern(pattern, ModKind::Mask, facts, env),
            MaskContent::Text(text) => code::of_text(text, &layer.name, ModKind::Mask, facts, env),
            MaskContent::Linked(linked) => code::of_linked(linked, ModKind::Mask, facts, env),
            shape => {
                let lengths = matches!(shape, MaskContent::Painted(_)).then_some(sizes.lengths);
                return self.remembered(layer.id, From::Shape(shape.clone(), lengths), sizes, env);
            }
        };
        self.coded(layer.id, code, sizes, env)
    }

    fn score_layer(&mut self, layer: &ScoreLayer, sizes: Sizes, facts: &Facts, env: &dyn Environment) -> Made {
        if !layer.enabled {
            return (None, Vec::new());
        }
        let code = match &layer.content {
            ScoreContent::Pattern(pattern) => code::of_pattern(pattern, ModKind::Score, facts, env),
            ScoreContent::Text(text) => code::of_text(text, &layer.name, ModKind::Score, facts, env),
            ScoreContent::Linked(linked) => code::of_linked(linked, ModKind::Score, facts, env),
            ScoreContent::Curve { points } => {
                return self.remembered(layer.id, From::Curve(points.clone()), sizes, env);
            }
        };
        self.coded(layer.id, code, sizes, env)
    }

    fn coded(&mut self, id: u64, code: Result<Code, Diagnostic>, sizes: Sizes, env: &dyn Environment) -> Made {
        match code {
            Ok(code) => self.remembered(id, From::Code(Box::new(code)), sizes, env),
            Err(why) => (None, vec![why]),
        }
    }

    fn remembered(&mut self, id: u64, mut from: From, sizes: Sizes, env: &dyn Environment) -> Made {
        if let Some(memo) = self.layers.get_mut(&id)
            && memo.from == from
            && memo.from.modules_unchanged(env)
        {
            return memo.reported(sizes);
        }
        self.traced += 1;
        let (result, diagnostics) = from.make(env);
        let mut memo = Memo { from, result, diagnostics, linted: None, settled: None };
        let reported = memo.reported(sizes);
        self.layers.insert(id, memo);
        reported
    }
}

impl From {
    fn make(&mut self, env: &dyn Environment) -> Made {
        let made = match self {
            From::Code(code) => return code.trace(env),
            From::Curve(points) => shapes::curve(points),
            From::Shape(MaskContent::Rectangle { q, kv }, _) => Ok(shapes::rectangle(*q, *kv)),
            From::Shape(MaskContent::Band { lo, hi }, _) => Ok(shapes::band(*lo, *hi)),
            From::Shape(MaskContent::Painted(painted), Some(lengths)) => painted::painted_mask(painted, *lengths),
            From::Shape(..) => Err(Diagnostic::error("layer-content", "this layer has no shape").hint("remove it")),
        };
        match made {
            Ok(given) => (Some(Arc::new(simplify(&given))), Vec::new()),
            Err(why) => (None, vec![why]),
        }
    }

    fn modules_unchanged(&self, env: &dyn Environment) -> bool {
        if let From::Code(code) = self { code.modules_unchanged(env) } else { true }
    }
}

fn joined(last: &mut Option<Joined>, parts: Vec<Part>, join: impl FnOnce(&[Part]) -> Mod) -> Option<Arc<Mod>> {
    if parts.is_empty() {
        *last = None;
        return None;
    }
    if let Some(last) = last
        && last.parts.len() == parts.len()
        && last.parts.iter().zip(&parts).all(|(a, b)| a.same(b))
    {
        return last.result.clone();
    }
    let result = Some(Arc::new(simplify(&join(&parts))));
    *last = Some(Joined { parts, result: result.clone() });
    result
}

#[cfg(test)]
#[path = "compile_tests.rs"]
mod tests;
