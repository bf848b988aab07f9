//! A race as a detached job: its batch, and what comes back with its result for the one who shows it.
//!
//! Invariant: the command line and the window write the same notes, so that each shows the other's jobs. Must not know how jobs run.

use crate::base::BackendName;
use crate::document::model::Document;
use crate::tasks::run_file::CopyOf;
use crate::worker::protocol::RunRequest;
use crate::worker::protocol::detached::{Batch, Step, Work};
use serde::{Deserialize, Serialize};

/// What showing a race needs beside its report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunNotes {
    /// The design's name.
    pub name: String,
    /// The backend that times are compared with; None: the slowest.
    pub baseline: Option<BackendName>,
    /// Whether the largest scores are printed.
    pub max_scores: bool,
    /// What it is a smaller copy of.
    pub copy: Option<CopyOf>,
    /// The design that ran; None: a job of an older program.
    #[serde(default)]
    pub document: Option<Document>,
}

impl RunNotes {
    /// The work with these notes.
    pub fn batch(&self, request: RunRequest) -> Batch {
        let step = Step { label: String::new(), work: Work::Race { request: Box::new(request) } };
        let notes = serde_json::to_value(self).unwrap_or_default();
        Batch { what: "run".into(), title: format!("run of {}", self.name), steps: vec![step], notes }
    }
}
