//! The targets of names in documents: patterns, linked files, imported modules.
//!
//! Invariant: one name has the same text within one compilation. Must not know layers.

use super::library;
use crate::base::{Diagnostic, Source};

/// Where names in documents lead: patterns, linked files, imported modules.
pub trait Environment {
    /// The text of a pattern.
    fn pattern(&self, name: &str) -> Option<Source>;
    /// The text of a linked file.
    fn linked(&self, path: &str) -> Result<String, Diagnostic>;
    /// The text of a module that code imports.
    fn module(&self, dotted: &str) -> Option<Source>;
    /// What was to be read so far and was passed over: warnings.
    fn passed_over(&self) -> Vec<Diagnostic> {
        Vec::new()
    }
}

/// The embedded patterns, and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl Environment for BuiltIn {
    fn pattern(&self, name: &str) -> Option<Source> {
        library::pattern(name).map(library::Pattern::source)
    }

    fn linked(&self, path: &str) -> Result<String, Diagnostic> {
        Err(Diagnostic::error("linked-file", format!("`{path}` cannot be read here: linked files are not available"))
            .hint("open the document from a file, or paste the code into the document"))
    }

    fn module(&self, _dotted: &str) -> Option<Source> {
        None
    }
}
