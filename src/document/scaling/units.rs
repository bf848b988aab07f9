//! The units of a code layer's parameters: tokens, rows, columns or frames of a grid, whole frames, or other things.
//!
//! Invariant: decided by the value that a parameter follows, by the end of its range, by its value, and by its help, in
//! this order; code without help is decided by names. Must not know the scale.

use crate::base::Source;
use crate::document::binding::{Bound, Facts, ParamDoc};
use crate::document::code::{find_entry, pattern_source};
use crate::document::compile::Environment;
use crate::document::controls::shown;
use crate::document::model::*;
use crate::python::outline::{Entry, EntryKind, outline};
use std::collections::BTreeMap;

/// The unit of a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unit {
    /// Query tokens, or distances between them.
    Queries,
    /// Key tokens.
    Keys,
    /// Tokens of either axis: consecutive pieces, whose sum matters.
    Pieces,
    /// Cells along a side of the grid: 0 frames, 1 rows, 2 columns.
    Side(usize),
    /// Whole frames, in tokens.
    Frames,
    /// Top, left, bottom, right in cells of the grid.
    Boxes,
    /// A fact of the document, which the value may follow.
    Fact(String),
}

/// A parameter that moves with the axes.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    /// Of the layer or score mod.
    pub id: u64,
    /// From the layer's own parameter down through patterns in patterns.
    pub path: Vec<String>,
    /// The value in force.
    pub value: ArgValue,
    pub unit: Unit,
    /// Whether it must stay odd.
    pub odd: bool,
}

/// Every parameter that moves.
pub(super) fn parameters(document: &Document, env: &dyn Environment) -> Vec<Parameter> {
    let mut reader = Reader { document, env, found: Vec::new() };
    for layer in document.layers.iter().filter(|l| l.enabled) {
        match &layer.content {
            MaskContent::Pattern(code) => reader.pattern(layer.id, &[], code),
            MaskContent::Text(code) => reader.text(layer.id, code),
            MaskContent::Linked(code) => reader.linked(layer.id, code),
            MaskContent::Rectangle { .. } | MaskContent::Band { .. } | MaskContent::Painted(_) => {}
        }
    }
    for score in document.scores.iter().filter(|s| s.enabled) {
        match &score.content {
            ScoreContent::Pattern(code) => reader.pattern(score.id, &[], code),
            ScoreContent::Text(code) => reader.text(score.id, code),
            ScoreContent::Linked(code) => reader.linked(score.id, code),
            ScoreContent::Curve { .. } => {}
        }
    }
    reader.found
}

/// Gives a parameter of a copy its value.
pub(super) fn set(document: &mut Document, parameter: &Parameter, value: ArgValue) {
    let Some((first, inner)) = parameter.path.split_first() else { return };
    let mask = document.layers.iter_mut().find(|l| l.id == parameter.id).and_then(|l| match &mut l.content {
        MaskContent::Pattern(code) => Some(&mut code.args),
        MaskContent::Text(code) => Some(&mut code.args),
        MaskContent::Linked(code) => Some(&mut code.args),
        _ => None,
    });
    let score = document.scores.iter_mut().find(|s| s.id == parameter.id).and_then(|s| match &mut s.content {
        ScoreContent::Pattern(code) => Some(&mut code.args),
        ScoreContent::Text(code) => Some(&mut code.args),
        ScoreContent::Linked(code) => Some(&mut code.args),
        ScoreContent::Curve { .. } => None,
    });
    if let Some(args) = mask.or(score) {
        set_in(args, first, inner, value);
    }
}

fn set_in(args: &mut BTreeMap<String, ArgValue>, name: &str, inner: &[String], value: ArgValue) {
    match (inner.split_first(), args.get_mut(name)) {
        (None, _) => drop(args.insert(name.to_string(), value)),
        (Some((next, rest)), Some(ArgValue::Mask { mask })) => set_in(&mut mask.args, next, rest, value),
        (Some(_), _) => {}
    }
}

struct Reader<'a> {
    document: &'a Document,
    env: &'a dyn Environment,
    found: Vec<Parameter>,
}

impl Reader<'_> {
    fn pattern(&mut self, id: u64, path: &[String], code: &CodeRef) {
        let Ok(source) = pattern_source(&code.name, self.env) else { return };
        self.source(id, path, &source, &code.name, &code.args);
    }

    fn text(&mut self, id: u64, code: &TextCode) {
        self.source(id, &[], &Source::new("text", code.source.as_str()), &code.entry, &code.args);
    }

    fn linked(&mut self, id: u64, code: &LinkedCode) {
        let Ok(text) = self.env.linked(&code.path) else { return };
        self.source(id, &[], &Source::new(code.path.as_str(), text), &code.entry, &code.args);
    }

    fn source(&mut self, id: u64, path: &[String], source: &Source, entry: &str, args: &BTreeMap<String, ArgValue>) {
        let outline = outline(source);
        let Some(entry) = find_entry(&outline, entry).filter(|e| e.kind == EntryKind::Factory) else { return };
        for param in &entry.params {
            let path: Vec<String> = path.iter().cloned().chain([param.name.clone()]).collect();
            let given = args.get(&param.name);
            if let Some(ArgValue::Mask { mask }) = given {
                self.pattern(id, &path, mask);
                continue;
            }
            let doc = ParamDoc::parse(&param.doc, &param.name);
            let facts = Facts { axes: &self.document.axes, settings: &self.document.settings };
            // a followed value changes with the document
            if given.is_none() && doc.follows.as_ref().is_some_and(|name| facts.value(name).is_some()) {
                continue;
            }
            let Some(value) = given.cloned().or_else(|| param.default.as_ref().and_then(shown)) else { continue };
            let of = Named { name: &param.name, doc: &doc, entry, value: &value };
            if let Some(unit) = of.unit(self.document) {
                let odd = doc.help.split(|c: char| !c.is_alphabetic()).any(|word| word == "odd");
                self.found.push(Parameter { id, path, value, unit, odd });
            }
        }
    }
}

/// A parameter with all that is known of it.
struct Named<'a> {
    name: &'a str,
    doc: &'a ParamDoc,
    entry: &'a Entry,
    value: &'a ArgValue,
}

/// Words in names that count tokens, if no help gives the unit.
const OF_TOKENS: [&str; 16] = [
    "window", "len", "prefix", "token", "size", "offset", "start", "end", "span", "chunk", "stride", "block", "sink",
    "radius", "bound", "width",
];

impl Named<'_> {
    fn unit(&self, document: &Document) -> Option<Unit> {
        if !counts(self.value) {
            return None;
        }
        let frame = whole_frames(self.value, document);
        self.followed().or_else(|| self.ranged(frame)).or_else(|| self.reported(frame)).or_else(|| self.named(frame))
    }

    fn followed(&self) -> Option<Unit> {
        Some(Unit::Fact(self.doc.follows.clone()?))
    }

    /// By the end of its range: a length of the document, or another parameter.
    fn ranged(&self, frame: bool) -> Option<Unit> {
        let Some((_, Bound::Name(end), _)) = &self.doc.range else { return None };
        match end.as_str() {
            "q_len" | "kv_len" if frame => Some(Unit::Frames),
            "q_len" => Some(Unit::Queries),
            "kv_len" => Some(Unit::Keys),
            other => {
                let of = self.entry.params.iter().find(|p| p.name == other)?;
                let follows = ParamDoc::parse(&of.doc, &of.name).follows?;
                side(follows.rsplit_once('.')?.1).map(Unit::Side)
            }
        }
    }

    /// By its help.
    fn reported(&self, frame: bool) -> Option<Unit> {
        let help = self.doc.help.to_lowercase();
        let words: Vec<&str> = help.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let early = |word: &str| words.iter().take(3).any(|w| *w == word);
        if help.contains("top, left, bottom") {
            return Some(Unit::Boxes);
        }
        if help.is_empty() || early("blocks") {
            return None;
        }
        if early("tokens") && frame {
            return Some(Unit::Frames);
        }
        if early("tokens") && early("each") || help.contains("tokens of each") {
            return Some(Unit::Pieces);
        }
        let tokens = early("tokens") || early("keys") || help.ends_with("in tokens") || help.contains("text token of");
        if tokens || help.starts_with("indices of") {
            return Some(Unit::Keys);
        }
        self.suffix().or_else(|| (early("rows") || early("columns")).then_some(Unit::Side(1)))
    }

    /// By its name, without help. A default counts as a value that was set: a copy that is another mask is not taken.
    fn named(&self, frame: bool) -> Option<Unit> {
        if !self.doc.help.is_empty() {
            return None;
        }
        let name = self.name.to_lowercase();
        let tokens = OF_TOKENS.iter().any(|word| name.contains(word));
        let by_name = if name.contains("frame") || tokens && frame { Some(Unit::Frames) } else { None };
        self.suffix().or(by_name).or_else(|| tokens.then_some(Unit::Keys))
    }

    fn suffix(&self) -> Option<Unit> {
        side(self.name.rsplit_once('_')?.1).map(Unit::Side)
    }
}

fn side(letter: &str) -> Option<usize> {
    ["t", "h", "w"].iter().position(|l| *l == letter)
}

/// Whether a value is a number, or a list of numbers without a "none" among them.
fn counts(value: &ArgValue) -> bool {
    match value {
        ArgValue::Int(n) => *n > 0,
        ArgValue::Float(x) => *x > 0.0,
        ArgValue::List(items) => items.iter().all(|i| matches!(i, ArgValue::Int(0)) || counts(i)),
        ArgValue::None | ArgValue::Bool(_) | ArgValue::Text(_) | ArgValue::Python { .. } | ArgValue::Mask { .. } => {
            false
        }
        ArgValue::Tensor { .. } => true,
    }
}

/// Whether a number is that of one or more whole frames of the document's video.
fn whole_frames(value: &ArgValue, document: &Document) -> bool {
    let ArgValue::Int(n) = value else { return false };
    let segments = document.axes.q.segments.iter().chain(&document.axes.kv().segments);
    let frames = segments.filter(|s| s.grid.len() == 3).map(|s| (s.grid[1] * s.grid[2]) as i64);
    frames.into_iter().any(|frame| *n % frame == 0)
}
