//! The draft of the palette.
//!
//! Invariant: the selected row is one of the matches. Must not know what can be found, nor how it is shown.

/// The draft.
#[derive(Clone, Debug, Default)]
pub(crate) struct PaletteDialog {
    pub text: String,
    pub chosen: usize,
}
