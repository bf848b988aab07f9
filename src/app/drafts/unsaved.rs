//! The draft of the list of documents that no file has.
//!
//! Invariant: what is asked about is of the list that is shown. Must not know how documents are kept, nor how it is shown.

use crate::app::unsaved::Kept;
use std::path::PathBuf;

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct UnsavedDialog {
    /// None: not listed yet.
    pub list: Option<Vec<Kept>>,
    /// Whether anything is kept at all.
    pub keeps: bool,
    /// The one that is asked about.
    pub asked: Option<PathBuf>,
}

impl UnsavedDialog {
    /// `keeps`: whether anything is kept at all.
    pub fn new(keeps: bool) -> Self {
        Self { list: None, keeps, asked: None }
    }

    /// They have been listed.
    pub fn put(&mut self, list: Vec<Kept>) {
        (self.list, self.asked) = (Some(list), None);
    }
}
