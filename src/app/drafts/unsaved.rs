//! The draft of the list of unsaved documents.
//!
//! Invariant: a question refers to the shown list. Must not know how documents are stored, nor how it is shown.

use crate::app::unsaved::Kept;
use std::path::PathBuf;

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct UnsavedDialog {
    /// None: not listed yet.
    pub list: Option<Vec<Kept>>,
    /// Whether anything is kept at all.
    pub keeps: bool,
    /// The document of the open question.
    pub asked: Option<PathBuf>,
}

impl UnsavedDialog {
    /// `keeps`: whether anything is kept at all.
    pub(crate) fn new(keeps: bool) -> Self {
        Self { list: None, keeps, asked: None }
    }

    /// They have been listed.
    pub(crate) fn put(&mut self, list: Vec<Kept>) {
        (self.list, self.asked) = (Some(list), None);
    }
}
