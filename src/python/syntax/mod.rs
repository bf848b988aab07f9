//! Parses the text of a mod into our own tree.
//!
//! Invariant: only this folder uses ruff's parser; it never fails for any text: it returns a tree and a list of errors,
//! and text that nests too deeply is refused before any recursion. Must not know values.

pub(crate) mod annotation;
pub mod ast;
pub(crate) mod binds;
mod convert;
mod convert_stmt;
mod kept;
mod nesting;
pub(crate) mod walk;
mod words;

pub use self::ast::{Module, Name};
pub use self::kept::SHALLOW;
#[cfg(any(test, feature = "testing"))]
pub use self::kept::counted;
pub use self::nesting::MAX_NESTING;
pub use self::words::{Word, words};

use crate::base::{Diagnostic, Source, SourceId};

/// The result of parsing.
pub struct Parsed {
    /// The tree; with errors, the tree of the valid parts.
    pub module: Module,
    /// Syntax errors, first to last.
    pub errors: Vec<Diagnostic>,
}

/// The largest number of reported errors.
const MAX_ERRORS: usize = 8;

/// How deeply a text nests, before it is parsed: what decides how much stack the rest needs.
pub fn nesting(source: &Source) -> usize {
    nesting::nesting(&source.text)
}

/// Parses `source`; spans name it `id`. Needs a stack in proportion to [`nesting`].
pub fn parse(source: &Source, id: SourceId) -> Parsed {
    let depth = nesting(source);
    if depth > MAX_NESTING {
        let error =
            Diagnostic::error("nesting-too-deep", format!("the text nests more than {MAX_NESTING} levels deep"))
                .hint("assign parts of it to names, or build it in a loop");
        return Parsed { module: Module::default(), errors: vec![error] };
    }
    convert::parse(source, id, depth, MAX_ERRORS)
}

#[cfg(test)]
mod tests;
