//! Files of the worker's machine, as far as the window looks at them: where a capture is, and what a worker's desk has said.
//!
//! Invariant: what belongs to another connection is never shown as this one's. Must not know how it is drawn.

use crate::base::Diagnostic;
use crate::tasks::lab::page::look::Question;
use crate::worker::target::Target;
use crate::worker::transport::Payload;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where a capture is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CapturePlace {
    pub path: PathBuf,
    /// The machine; None: this one.
    pub far: Option<Target>,
}

impl CapturePlace {
    /// On this machine.
    pub(crate) fn here(path: &Path) -> CapturePlace {
        CapturePlace { path: path.to_path_buf(), far: None }
    }
}

/// The question about the mask that an answer is to; None: another question.
pub(crate) type Asked = Option<Box<Question>>;

/// What a worker's desk has said.
#[derive(Debug)]
pub(crate) struct DeskNews {
    pub asked: Asked,
    pub result: Result<(Value, Vec<Payload>), Vec<Diagnostic>>,
}

/// Endings of files whose tensors stay where they are.
const STAY: [&str; 5] = ["safetensors", "npz", "npy", "pt", "pth"];

/// Whether a file of this name is looked at where it is, and does not travel.
pub(crate) fn stays(path: &str) -> bool {
    let ending = Path::new(path).extension().map(|ending| ending.to_string_lossy().to_lowercase());
    ending.is_some_and(|ending| STAY.contains(&&*ending))
}
