//! What waits to be copied to the clipboard.
//!
//! Invariant: a picture is taken when menus and dialogs are gone. Must not know what the parts show.

/// A part of the window whose picture can be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The mask with its rulers.
    Canvas,
    /// The page at the side: bars, plots, tables.
    Page,
}

/// Frames until menus and dialogs are gone.
const WAIT: u8 = 2;

/// What waits for the end of a frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Waiting {
    /// The picture of a part, and frames until it is taken.
    pub shot: Option<(Part, u8)>,
    /// A text for the clipboard.
    pub text: Option<String>,
}

impl Waiting {
    pub(crate) fn picture(&mut self, part: Part) {
        self.shot = Some((part, WAIT));
    }
}
