//! Named tensors as a safetensors file.
//!
//! Invariant: every bit of every tensor is in the file. Must not know what the tensors are.

use crate::base::{Diagnostic, ExportFile, ExportKind, HostTensor, file_dtype};
use safetensors::tensor::TensorView;
use std::collections::BTreeMap;

/// Named tensors as a safetensors file. Errors: two of one name.
pub fn tensor_file(
    kind: ExportKind,
    name: String,
    tensors: &[(String, HostTensor)],
    what: &str,
) -> Result<ExportFile, Diagnostic> {
    tensor_file_with(kind, name, tensors, &BTreeMap::new(), what)
}

/// The same with further text in the file's header. Errors: two of one name.
pub fn tensor_file_with(
    kind: ExportKind,
    name: String,
    tensors: &[(String, HostTensor)],
    metadata: &BTreeMap<String, String>,
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
    let file = safetensors::serialize(views, None).map_err(failed)?;
    Ok(ExportFile::new(kind, name.clone(), with_metadata(file, metadata), what))
}

/// A safetensors file with text in its header. The library would take it as a map without an order, and write it in another
/// order each time.
fn with_metadata(file: Vec<u8>, metadata: &BTreeMap<String, String>) -> Vec<u8> {
    /// Bytes of the header's length, and what it is a multiple of.
    const WORD: usize = 8;
    if metadata.is_empty() {
        return file;
    }
    let (length, rest) = file.split_first_chunk::<WORD>().expect("a file of tensors has a header");
    let (tensors, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let tensors = tensors.trim_ascii().strip_prefix(b"{").expect("a header is an object");
    let comma = if tensors == b"}" { "" } else { "," };
    let text = serde_json::to_string(metadata).expect("a map of texts");
    let mut header = [format!("{{\"__metadata__\":{text}{comma}").as_bytes(), tensors].concat();
    header.resize(header.len().next_multiple_of(WORD), b' ');
    [&(header.len() as u64).to_le_bytes(), &header[..], data].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::tensor::Data;
    use safetensors::SafeTensors;

    #[test]
    fn a_files_metadata_is_in_order_and_its_tensors_are_read_back() {
        let tensor = HostTensor::new(vec![3], Data::I32(vec![1, 2, 3])).expect("a tensor");
        let names = ["kv_len", "q_len", "a", "ä", "block_size_kv", "\"quoted\""];
        let metadata: BTreeMap<String, String> = names.map(|name| (name.to_string(), format!("{name} \\ 1"))).into();
        for tensors in [vec![("t".to_string(), tensor.clone())], vec![]] {
            let made =
                tensor_file_with(ExportKind::Blocks, "t.safetensors".into(), &tensors, &metadata, "").expect("made");
            let (_, header) = SafeTensors::read_metadata(&made.bytes).expect("a header");
            let read: BTreeMap<_, _> = header.metadata().clone().expect("metadata").into_iter().collect();
            assert_eq!(read, metadata);
            let file = SafeTensors::deserialize(&made.bytes).expect("a file");
            assert_eq!(file.len(), tensors.len());
            assert!(tensors.is_empty() || file.tensor("t").expect("there").data() == tensor.data().to_le_bytes());
            let text = String::from_utf8_lossy(&made.bytes).into_owned();
            let places: Vec<_> = metadata.keys().map(|key| text.find(&serde_json::json!(key).to_string())).collect();
            assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
        }
    }
}
