//! What commands say of code that they were given: which function they chose, and the sizes that the text itself sets.
//!
//! Invariant: facts until they are told in a language; JSON has the English words. Must not know how a function is chosen.

use crate::base::BlockSize;
use crate::words::{Language, Value, Words};

/// One remark.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Remark {
    /// The function that was found further in.
    Taken(String),
    /// The function, who probably makes the mask that is meant, and the functions that may be named instead.
    Chosen { entry: String, meant: Option<String>, others: Vec<String> },
    /// A mask_mod and a score_mod of one file.
    Pair(String, String),
    /// The sizes of the text's own create_block_mask.
    Sizes { line: usize, sizes: Vec<Size> },
    /// Those of the tables that the code reads, by their names.
    Tables { names: Vec<String>, sizes: Vec<Size> },
}

/// A size that a text sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Size {
    /// Queries and keys.
    Tokens(usize, usize),
    Batch(usize),
    Heads(usize),
    Blocks(BlockSize),
}

impl Remark {
    /// In words.
    pub(super) fn told(&self, said: &'static Words) -> String {
        match self {
            Remark::Taken(entry) => said.with("remark-taken", &[("entry", entry.into())]),
            Remark::Chosen { entry, meant, others } => {
                let others = others.iter().map(|other| format!("`{other}`")).collect::<Vec<_>>().join(", ");
                let figures = [("entry", entry.into()), ("others", Value::from(others))];
                match meant {
                    None => said.with("remark-chosen", &figures),
                    Some(maker) => {
                        let [entry, others] = figures;
                        said.with("remark-chosen-made", &[entry, others, ("maker", maker.into())])
                    }
                }
            }
            Remark::Pair(mask, score) => {
                said.with("remark-pair", &[("mask", mask.into()), ("score", Value::from(score))])
            }
            Remark::Sizes { line, sizes } => {
                let figures = [("line", line.to_string().into()), ("sizes", listed(said, sizes).into())];
                said.with("remark-sizes", &figures)
            }
            Remark::Tables { names, sizes } => {
                let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                said.with("remark-tables", &[("names", names.into()), ("sizes", listed(said, sizes).into())])
            }
        }
    }

    /// In English.
    pub(super) fn words(&self) -> String {
        self.told(Words::of(Language::English))
    }
}

/// Sizes, one after the other.
fn listed(said: &'static Words, sizes: &[Size]) -> String {
    let one = |other: String, size: &Size| match other.is_empty() {
        true => size.told(said),
        false => said.with("list-comma", &[("one", other.into()), ("other", size.told(said).into())]),
    };
    sizes.iter().fold(String::new(), one)
}

impl Size {
    fn told(self, said: &'static Words) -> String {
        let number = |n: usize| Value::from(n.to_string());
        match self {
            Size::Tokens(q, kv) => said.with("size-tokens", &[("q", number(q)), ("kv", number(kv))]),
            Size::Batch(n) => said.with("size-batch", &[("n", number(n))]),
            Size::Heads(n) => said.with("size-heads", &[("n", number(n))]),
            Size::Blocks(size) => said.with("size-blocks", &[("size", size.to_string().into())]),
        }
    }
}
