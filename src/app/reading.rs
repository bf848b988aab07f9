//! Captured tensors from files.
//!
//! Invariant: a tensor above the document's limit is refused before it is read. Must not know the tensors' use.

use super::action::TensorsFor;
use crate::base::tensor::Data;
use crate::base::{Diagnostic, HostTensor};
use crate::quality::capture::Tensors;
use crate::tasks::lab::{self, CaptureFile};
use crate::worker::tensors;
use std::path::Path;

/// Largest file that goes into a document: it is saved with it.
const MAX_BYTES: u64 = 64 << 20;

/// The requested part of a file.
pub(super) fn tensors(asked: &TensorsFor) -> Result<Vec<(String, HostTensor)>, Diagnostic> {
    match &asked.argument {
        Some((_, name)) if !name.is_empty() && lab::is_capture(&asked.path).unwrap_or(false) => {
            read_one(&asked.path, name)
        }
        _ => read(&asked.path),
    }
}

/// The tensors of a file.
fn read(path: &Path) -> Result<Vec<(String, HostTensor)>, Diagnostic> {
    let length = std::fs::metadata(path).map_or(0, |m| m.len());
    if length > MAX_BYTES {
        let message = format!("{} has {length} bytes; tensors of a document have at most {MAX_BYTES}", path.display());
        return Err(Diagnostic::error("tensors-too-large", message).hint("save only the tensors that the code reads"));
    }
    tensors::read(path)
}

/// One tensor of a file whose others are not read: a capture is larger than what goes into a document.
fn read_one(path: &Path, name: &str) -> Result<Vec<(String, HostTensor)>, Diagnostic> {
    let file = CaptureFile::open(path)?;
    let Some((dtype, shape)) = file.about(name) else {
        let message = format!("{} contains no tensor named `{name}`", path.display());
        return Err(Diagnostic::error("tensor-name", message).hint(format!("it contains: {}", file.names().join(", "))));
    };
    let count: usize = shape.iter().product();
    let length = (count * dtype.size()) as u64;
    if length > MAX_BYTES {
        let message = format!("{name} has {length} bytes; tensors of a document have at most {MAX_BYTES}");
        return Err(Diagnostic::error("tensors-too-large", message).hint("choose a smaller one"));
    }
    let data = Data::from_le_bytes(dtype, &file.bytes(name, 0, count)?)?;
    Ok(vec![(name.to_string(), HostTensor::new(shape, data)?)])
}
