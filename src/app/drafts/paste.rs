//! The draft of pasted FlexAttention code.
//!
//! Invariant: only a text. Must not know how code becomes layers, nor how it is shown.

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct PasteDialog {
    pub text: String,
    /// As a document of its own.
    pub replace: bool,
    pub focused: bool,
    /// What the text would become, and the text and choice that this is of.
    pub seen: Option<(String, bool, String)>,
}

impl PasteDialog {
    /// `replace`: as a document of its own.
    pub fn new(replace: bool) -> Self {
        Self { text: String::new(), replace, focused: false, seen: None }
    }
}
