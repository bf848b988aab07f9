//! Texts of a shared design's page, as facts: labels, and values that have words.
//!
//! Invariant: the English words of each stand here; another language is told by who makes the page. Must not know languages, nor the
//! page's form.

use crate::base::Provenance;
use crate::base::words::MEMORY;
use crate::problem::verdict::{Ran, Versus};
use std::fmt;

/// A text of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Text<'a> {
    /// A label.
    Label(Label),
    /// What is the same in every language: numbers and names.
    Plain(String),
    /// So many heads of a width.
    Heads(usize, usize),
    /// Query heads over key heads of a width.
    HeadsOver(usize, usize, usize),
    /// A sparsity in words, at a BLOCK_SIZE.
    SparsityAt(String, String),
    /// Where numbers come from.
    From(&'a Provenance),
    /// The same as a title.
    Title(&'a Provenance),
    /// Who ran.
    Ran(&'a Ran),
    /// A ratio and who it is of.
    Versus(&'a Versus, &'a Ran),
    /// Against what errors are measured, and what memory counts.
    Measures,
}

/// Labels of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// `the mask`
    Mask,
    /// `the mask: queries down, keys right; + and - zoom, arrows move, 0 shows all`
    Keys,
    /// `Queries down, keys to the right. Wheel or + and - zoom, drag or arrows move, 0 shows all.`
    Hint,
    /// `Code`
    Code,
    /// `Provenance`
    Provenance,
    /// `nothing kept`
    Nothing,
    /// `kept`
    Kept,
    /// `% kept`
    Share,
    /// `to`
    To,
    /// `picture`
    Picture,
    /// `made by`
    MadeBy,
    /// `at`
    At,
    /// `method`
    Method,
    /// `the expression graph of the design, evaluated by intervals; no dense mask`
    Graph,
    /// `design`
    Design,
    /// `this file holds it: `maskloom FILE.html` or Open reads it back`
    Held,
    /// `tokens`
    Tokens,
    /// `query axis`
    QueryAxis,
    /// `key axis`
    KeyAxis,
    /// `batch`
    Batch,
    /// `heads`
    Heads,
    /// `format`
    Format,
    /// `cells kept`
    CellsKept,
    /// `sparsity of blocks`
    Sparsity,
    /// `full blocks`
    FullBlocks,
    /// `partial blocks`
    PartialBlocks,
    /// `empty blocks`
    EmptyBlocks,
    /// `backend`
    Backend,
    /// `what ran`
    Ran,
    /// `median ms`
    Median,
    /// `spread`
    Spread,
    /// `versus`
    Versus,
    /// `memory`
    Memory,
    /// `largest error`
    LargestError,
    /// `allowed`
    Allowed,
    /// `kernel`
    Kernel,
    /// `Forward only.`
    ForwardOnly,
    /// `Backward pass`
    Backward,
    /// `backward ms`
    BackwardTime,
    /// `forward + backward ms`
    BothTimes,
    /// `worst gradient`
    Worst,
    /// `its error`
    ItsError,
    /// `refused`
    Refused,
    /// `failed`
    Failed,
    /// `wrong`
    Wrong,
    /// `baseline`
    Baseline,
    /// `the card before timing`
    CardBefore,
    /// `the card after timing`
    CardAfter,
}

impl Label {
    /// All of them.
    pub const ALL: [Label; 48] = [
        Label::Mask,
        Label::Keys,
        Label::Hint,
        Label::Code,
        Label::Provenance,
        Label::Nothing,
        Label::Kept,
        Label::Share,
        Label::To,
        Label::Picture,
        Label::MadeBy,
        Label::At,
        Label::Method,
        Label::Graph,
        Label::Design,
        Label::Held,
        Label::Tokens,
        Label::QueryAxis,
        Label::KeyAxis,
        Label::Batch,
        Label::Heads,
        Label::Format,
        Label::CellsKept,
        Label::Sparsity,
        Label::FullBlocks,
        Label::PartialBlocks,
        Label::EmptyBlocks,
        Label::Backend,
        Label::Ran,
        Label::Median,
        Label::Spread,
        Label::Versus,
        Label::Memory,
        Label::LargestError,
        Label::Allowed,
        Label::Kernel,
        Label::ForwardOnly,
        Label::Backward,
        Label::BackwardTime,
        Label::BothTimes,
        Label::Worst,
        Label::ItsError,
        Label::Refused,
        Label::Failed,
        Label::Wrong,
        Label::Baseline,
        Label::CardBefore,
        Label::CardAfter,
    ];

    /// In English.
    pub fn words(self) -> &'static str {
        match self {
            Label::Mask => "the mask",
            Label::Keys => "the mask: queries down, keys right; + and - zoom, arrows move, 0 shows all",
            Label::Hint => "Queries down, keys to the right. Wheel or + and - zoom, drag or arrows move, 0 shows all.",
            Label::Code => "Code",
            Label::Provenance => "Provenance",
            Label::Nothing => "nothing kept",
            Label::Kept => "kept",
            Label::Share => "% kept",
            Label::To => " to ",
            Label::Picture => "picture",
            Label::MadeBy => "made by",
            Label::At => "at",
            Label::Method => "method",
            Label::Graph => "the expression graph of the design, evaluated by intervals; no dense mask",
            Label::Design => "design",
            Label::Held => "this file holds it: `maskloom FILE.html` or Open reads it back",
            Label::Tokens => "tokens",
            Label::QueryAxis => "query axis",
            Label::KeyAxis => "key axis",
            Label::Batch => "batch",
            Label::Heads => "heads",
            Label::Format => "format",
            Label::CellsKept => "cells kept",
            Label::Sparsity => "sparsity of blocks",
            Label::FullBlocks => "full blocks",
            Label::PartialBlocks => "partial blocks",
            Label::EmptyBlocks => "empty blocks",
            Label::Backend => "backend",
            Label::Ran => "what ran",
            Label::Median => "median ms",
            Label::Spread => "spread",
            Label::Versus => "versus",
            Label::Memory => "memory",
            Label::LargestError => "largest error",
            Label::Allowed => "allowed",
            Label::Kernel => "kernel",
            Label::ForwardOnly => "Forward only.",
            Label::Backward => "Backward pass",
            Label::BackwardTime => "backward ms",
            Label::BothTimes => "forward + backward ms",
            Label::Worst => "worst gradient",
            Label::ItsError => "its error",
            Label::Refused => "refused",
            Label::Failed => "failed",
            Label::Wrong => "wrong",
            Label::Baseline => "baseline",
            Label::CardBefore => "the card before timing",
            Label::CardAfter => "the card after timing",
        }
    }
}

/// In English.
impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Text::Label(label) => f.write_str(label.words()),
            Text::Plain(text) => f.write_str(text),
            Text::Heads(heads, dim) => write!(f, "{heads} of {dim}"),
            Text::HeadsOver(heads, kv, dim) => write!(f, "{heads} query heads over {kv} kv heads, of {dim}"),
            Text::SparsityAt(words, size) => write!(f, "{words} at BLOCK_SIZE {size}"),
            Text::From(from) => from.fmt(f),
            Text::Title(from) => f.write_str(&from.title()),
            Text::Ran(ran) => ran.fmt(f),
            Text::Versus(versus, ran) => f.write_str(&versus.words_of(&ran.to_string())),
            Text::Measures => {
                write!(f, "Errors are measured against {}. Memory: {MEMORY}.", Provenance::Reference)
            }
        }
    }
}
