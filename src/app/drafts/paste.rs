//! The draft of pasted FlexAttention code.
//!
//! Invariant: only a text. Must not know how code becomes layers, nor how it is shown.

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct PasteDialog {
    pub text: String,
    /// As a new document.
    pub replace: bool,
    pub focused: bool,
    /// The result of the text, and the text and choice of this result.
    pub seen: Option<(String, bool, String)>,
}

impl PasteDialog {
    /// `replace`: as a new document.
    pub(crate) fn new(replace: bool) -> Self {
        Self { text: String::new(), replace, focused: false, seen: None }
    }
}
