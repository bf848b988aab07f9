//! The draft of the palette.
//!
//! Invariant: the chosen row is one of those that the text finds. Must not know what can be found, nor how it is shown.

/// The draft.
#[derive(Clone, Debug, Default)]
pub(crate) struct PaletteDialog {
    pub text: String,
    pub chosen: usize,
}
