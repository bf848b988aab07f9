//! The draft of pasted FlexAttention code.
//!
//! Invariant: only a text and what was found in it. Must not know how code becomes layers, nor how it is shown.

use crate::base::Diagnostic;

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct PasteDialog {
    pub text: String,
    /// As a new document.
    pub replace: bool,
    pub focused: bool,
    /// The result of the text, and the text and choice of this result.
    pub seen: Option<Seen>,
}

/// What a text would add.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub text: String,
    pub replace: bool,
    pub words: String,
    /// Its first error, and since when the text is this one.
    pub wrong: Option<Diagnostic>,
    pub since: f64,
}

impl PasteDialog {
    /// `replace`: as a new document.
    pub(crate) fn new(replace: bool) -> Self {
        Self { text: String::new(), replace, focused: false, seen: None }
    }
}
