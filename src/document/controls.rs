//! A code layer's parameters as controls: value, source of the value, range, help.
//!
//! Invariant: every parameter of the signature has exactly one control, in order; reading them runs no code. Must not
//! know how a control looks.

use super::binding::{Bound, Facts, ParamDoc};
use super::code::{find_entry, pattern_source};
use super::compile::Environment;
use super::model::*;
use crate::base::{Diagnostic, Source};
use crate::python::Arg;
use crate::python::outline::{EntryKind, Param, ParamKind, outline};
use std::collections::BTreeMap;

/// Where a control's value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// Set in the document.
    Given,
    /// It follows this name of the document, as `image.h`.
    Follows(String),
    /// The signature's default.
    Default,
    /// Neither set nor defaulted: the layer cannot run without it.
    Missing,
}

/// Range of a numeric control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Smallest value a slider offers.
    pub min: f64,
    /// Largest value a slider offers.
    pub max: f64,
    /// Distance between offered values; None: 1 for ints, any for floats.
    pub step: Option<f64>,
}

/// One parameter of a code layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// The parameter's name.
    pub name: String,
    /// The accepted type.
    pub kind: ParamKind,
    /// The present value; None if it is a default that cannot be shown (a tensor, a function, an expression).
    pub value: Option<ArgValue>,
    /// Where the value comes from.
    pub origin: Origin,
    /// Offered by its docstring, or else guessed from its default, for numbers.
    pub range: Option<Range>,
    /// Its help.
    pub help: String,
    /// The value that it would follow if it were not set.
    pub follows: Option<String>,
}

/// Controls of a layer or score mod, and the help of its factory. Empty for layers without code. Errors: its text cannot
/// be had.
pub fn controls(document: &Document, id: u64, env: &dyn Environment) -> Result<(String, Vec<Control>), Diagnostic> {
    let facts = Facts { axes: &document.axes, settings: &document.settings };
    let mask = document.layer(id).map(|l| (&l.name, code_of(&l.content)));
    let score = document.score(id).map(|s| (&s.name, score_code_of(&s.content)));
    let Some((name, Some(code))) = mask.or(score) else { return Ok((String::new(), Vec::new())) };
    match code {
        AnyCode::Pattern(code) => Ok(controls_of(&pattern_source(&code.name, env)?, &code.name, &code.args, &facts)),
        AnyCode::Text(code) => {
            Ok(controls_of(&Source::new(name.as_str(), code.source.as_str()), &code.entry, &code.args, &facts))
        }
        AnyCode::Linked(code) => {
            let source = Source::new(code.path.as_str(), env.linked(&code.path)?);
            Ok(controls_of(&source, &code.entry, &code.args, &facts))
        }
    }
}

enum AnyCode<'a> {
    Pattern(&'a CodeRef),
    Text(&'a TextCode),
    Linked(&'a LinkedCode),
}

fn code_of(content: &MaskContent) -> Option<AnyCode<'_>> {
    match content {
        MaskContent::Pattern(code) => Some(AnyCode::Pattern(code)),
        MaskContent::Text(code) => Some(AnyCode::Text(code)),
        MaskContent::Linked(code) => Some(AnyCode::Linked(code)),
        _ => None,
    }
}

fn score_code_of(content: &ScoreContent) -> Option<AnyCode<'_>> {
    match content {
        ScoreContent::Pattern(code) => Some(AnyCode::Pattern(code)),
        ScoreContent::Text(code) => Some(AnyCode::Text(code)),
        ScoreContent::Linked(code) => Some(AnyCode::Linked(code)),
        ScoreContent::Curve { .. } => None,
    }
}

fn controls_of(
    source: &Source,
    entry: &str,
    args: &BTreeMap<String, ArgValue>,
    facts: &Facts,
) -> (String, Vec<Control>) {
    let outline = outline(source);
    let Some(entry) = find_entry(&outline, entry).filter(|e| e.kind == EntryKind::Factory) else {
        return (String::new(), Vec::new());
    };
    let mut controls: Vec<Control> = entry.params.iter().map(|param| control(param, args, facts)).collect();
    let values: BTreeMap<String, f64> =
        controls.iter().filter_map(|c| Some((c.name.clone(), number(c.value.as_ref()?)?))).collect();
    for (control, param) in controls.iter_mut().zip(&entry.params) {
        let doc = ParamDoc::parse(&param.doc, &param.name);
        control.range = doc.range.and_then(|(lo, hi, step)| {
            let at = |bound: Bound| match bound {
                Bound::Number(number) => Some(number),
                Bound::Name(name) => values.get(&name).copied().or_else(|| facts.value(&name).map(|v| v as f64)),
            };
            let (min, max) = (at(lo)?, at(hi)?);
            (min <= max).then_some(Range { min, max, step })
        });
        control.range = control.range.or_else(|| guessed(control.kind, param, facts));
    }
    (entry.doc.clone(), controls)
}

fn control(param: &Param, args: &BTreeMap<String, ArgValue>, facts: &Facts) -> Control {
    let doc = ParamDoc::parse(&param.doc, &param.name);
    let followed = doc.follows.as_ref().and_then(|name| facts.value(name));
    let (value, origin) = match (args.get(&param.name), followed, &param.default) {
        (Some(given), ..) => (Some(given.clone()), Origin::Given),
        (None, Some(value), _) => {
            (Some(ArgValue::Int(value)), Origin::Follows(doc.follows.clone().unwrap_or_default()))
        }
        (None, None, Some(default)) => (shown(default), Origin::Default),
        (None, None, None) => (None, Origin::Missing),
    };
    // if the signature has no type, the value has one
    let kind = match (param.kind, &value) {
        (ParamKind::Any, Some(ArgValue::Int(_))) => ParamKind::Int,
        (ParamKind::Any, Some(ArgValue::Float(_))) => ParamKind::Float,
        (kind, _) => kind,
    };
    let name = param.name.clone();
    Control { name, kind, value, origin, range: None, help: doc.help, follows: doc.follows }
}

/// Words in the names of parameters that count tokens.
const OF_TOKENS: [&str; 11] =
    ["window", "len", "prefix", "token", "size", "offset", "start", "end", "span", "chunk", "stride"];

/// A range for a number without one in its docstring: likely values around the default. Others can be typed.
fn guessed(kind: ParamKind, param: &Param, facts: &Facts) -> Option<Range> {
    let tokens = || facts.axes.lengths().map_or(4096.0, |l| l.q_len.max(l.kv_len) as f64);
    let counts_tokens = OF_TOKENS.iter().any(|word| param.name.to_lowercase().contains(word));
    let (min, max, step) = match (kind, &param.default) {
        (ParamKind::Int, None) => (0.0, if counts_tokens { tokens() } else { 64.0 }, Some(1.0)),
        (_, Some(Arg::Int(n))) if matches!(kind, ParamKind::Int | ParamKind::Any) => {
            let n = *n as f64;
            let far = if counts_tokens || n.abs() > 64.0 { tokens() } else { 16.0 * n.abs().max(4.0) };
            // -1 and similar values mean "none"
            (n.min(if n > 0.0 { 1.0 } else { 0.0 }), far.max(2.0 * n), Some(1.0))
        }
        (_, Some(Arg::Float(x))) if x.is_finite() => (x.min(0.0) * 4.0, (x.abs() * 4.0).max(1.0), None),
        _ => return None,
    };
    (min < max).then_some(Range { min, max, step })
}

fn number(value: &ArgValue) -> Option<f64> {
    match value {
        ArgValue::Int(value) => Some(*value as f64),
        ArgValue::Float(value) => Some(*value),
        _ => None,
    }
}

/// A default as a value of the document, if it is one.
pub(super) fn shown(default: &Arg) -> Option<ArgValue> {
    Some(match default {
        Arg::Bool(value) => ArgValue::Bool(*value),
        Arg::Int(value) => ArgValue::Int(*value),
        Arg::Float(value) => ArgValue::Float(*value),
        Arg::Str(value) => ArgValue::Text(value.clone()),
        Arg::List(items) | Arg::Tuple(items) => ArgValue::List(items.iter().map(shown).collect::<Option<_>>()?),
        Arg::Tensor(tensor) => ArgValue::Tensor { tensor: tensor.clone() },
        Arg::None => ArgValue::None,
        Arg::Python(text) => ArgValue::Python { python: text.clone() },
        Arg::Mod { .. } => return None,
    })
}

#[cfg(test)]
#[path = "controls_tests.rs"]
mod tests;
