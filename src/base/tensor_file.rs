//! Named tensors as a safetensors file.
//!
//! Invariant: every bit of every tensor is in the file. Must not know what the tensors are.

use crate::base::{Diagnostic, ExportFile, HostTensor, file_dtype};
use safetensors::tensor::TensorView;
use std::collections::HashMap;

/// Named tensors as a safetensors file. Errors: two of one name.
pub fn tensor_file(name: String, tensors: &[(String, HostTensor)], what: &str) -> Result<ExportFile, Diagnostic> {
    tensor_file_with(name, tensors, None, what)
}

/// The same with further text in the file's header. Errors: two of one name.
pub fn tensor_file_with(
    name: String,
    tensors: &[(String, HostTensor)],
    metadata: Option<HashMap<String, String>>,
    what: &str,
) -> Result<ExportFile, Diagnostic> {
    let bytes: Vec<Vec<u8>> = tensors.iter().map(|(_, t)| t.data().to_le_bytes()).collect();
    let failed = |why: safetensors::SafeTensorError| {
        Diagnostic::error("safetensors", format!("{name} cannot be written: {why}"))
            .hint("rename the captured tensors, or export fewer")
    };
    let views = tensors.iter().zip(&bytes).map(|((name, tensor), bytes)| {
        TensorView::new(file_dtype::to_file(tensor.dtype()), tensor.shape().to_vec(), bytes)
            .map(|view| (name.as_str(), view))
    });
    let views = views.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let file = safetensors::serialize(views, metadata).map_err(failed)?;
    Ok(ExportFile::new(name.clone(), file, what))
}
