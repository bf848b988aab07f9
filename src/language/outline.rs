//! What a text offers without running it: its mods and factories, their parameters and help.
//!
//! Invariant: reads only the tree; nothing is executed. Must not know values or graphs.

use super::trace::Arg;
use crate::base::{Diagnostic, Source, Span};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A function of (b, h, q_idx, kv_idx).
    MaskMod,
    /// A function of (score, b, h, q_idx, kv_idx).
    ScoreMod,
    /// A function that returns a mod.
    Factory,
}

/// What a parameter takes.
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
    /// Where it is declared.
    pub span: Span,
}

/// A function that can be traced.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// A factory's parameters; for a mod those beyond the 4 or 5.
    pub params: Vec<Param>,
    /// The docstring's text before `Args:`.
    pub doc: String,
    /// The whole definition.
    pub span: Span,
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
pub fn outline(_source: &Source) -> Outline {
    Outline::default()
}
