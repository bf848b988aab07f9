//! The draft of the worker's place.
//!
//! Invariant: starts from the active worker. Must not know the worker, nor how it is shown.

use crate::app::connecting::LIMIT;
use crate::app::hosts::Names;
use crate::app::view::View;

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct ConnectDialog {
    pub command: String,
    pub python: String,
    /// Seconds that the worker may take to answer.
    pub seconds: u64,
    /// Names that are offered.
    pub names: Names,
    pub focused: bool,
}

impl ConnectDialog {
    /// Begins with the worker in force.
    pub(crate) fn new(view: &View) -> Self {
        let command = view.target.command.clone();
        let python = view.python.clone().unwrap_or_default();
        Self { command, python, seconds: LIMIT.as_secs(), names: Names::default(), focused: false }
    }

    /// Names have been read.
    pub(crate) fn put(&mut self, names: Names) {
        self.names = names;
    }
}
