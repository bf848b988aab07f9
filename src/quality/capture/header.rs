//! What a capture says of itself, without its tensors: it travels where they stay.
//!
//! Invariant: a capture of a header tells the same of its calls as the file does, and holds no element. Must not know lines.

use super::Tensors;
use crate::base::{DType, Diagnostic};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The entries of the metadata that captures have.
const ENTRIES: [&str; 3] = ["maskloom", "maskloom_capture", "layout"];

/// Name, metadata, and the tensors' types and shapes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    name: String,
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, (DType, Vec<usize>)>,
}

impl Header {
    /// Of a file.
    pub(super) fn of(file: &dyn Tensors) -> Header {
        let entry = |key: &str| Some((key.to_string(), file.metadata(key)?));
        Header {
            name: file.name(),
            metadata: ENTRIES.into_iter().filter_map(entry).collect(),
            tensors: file.names().into_iter().filter_map(|name| Some((name.clone(), file.about(&name)?))).collect(),
        }
    }
}

impl Tensors for Header {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn metadata(&self, key: &str) -> Option<String> {
        self.metadata.get(key).cloned()
    }

    fn about(&self, tensor: &str) -> Option<(DType, Vec<usize>)> {
        self.tensors.get(tensor).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }

    fn bytes(&self, tensor: &str, _: usize, _: usize) -> Result<Vec<u8>, Diagnostic> {
        let message = format!("{tensor} of {} stays on its machine", self.name);
        Err(Diagnostic::error("capture-stays", message)
            .hint("copy the capture to this machine to read its tensors here"))
    }
}
