//! Tensors between us and the Python worker: safetensors files in shared memory, or in the temporary folder.
//!
//! Invariant: files are in folders of our own that are removed when the session ends, and each file is removed after it
//! has been read. Must not know what the tensors are.

use crate::backends::inputs;
use crate::base::{Diagnostic, HostTensor, file_dtype};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use std::path::{Path, PathBuf};

/// Folders that both sides can read, the fastest first.
#[derive(Debug)]
pub(super) struct Exchange {
    folders: Vec<tempfile::TempDir>,
}

impl Exchange {
    /// Makes them. Errors: no temporary folder can be made.
    pub(super) fn new() -> Result<Exchange, Diagnostic> {
        let mut folders = Vec::new();
        let shared = Path::new("/dev/shm");
        if shared.is_dir() {
            folders.extend(folder_in(shared));
        }
        // containers often have 64 MB of shared memory only
        folders.extend(folder_in(&std::env::temp_dir()));
        if folders.is_empty() {
            let message = format!("cannot create a folder in {}", std::env::temp_dir().display());
            return Err(Diagnostic::error("torch-no-space", message).hint("set TMPDIR to a writable folder"));
        }
        Ok(Exchange { folders })
    }

    /// The folders' paths, for the other side to write to.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|f| f.path().to_path_buf()).collect()
    }

    /// Writes a file into the first folder that has room for it.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Diagnostic> {
        Ok(self.write_together(&[(name, bytes)])?.remove(0))
    }

    /// Writes files into one folder, the first that has room for all; gives their paths in order.
    pub(super) fn write_together(&self, files: &[(&str, &[u8])]) -> Result<Vec<PathBuf>, Diagnostic> {
        let mut reason = String::new();
        for folder in &self.folders {
            let paths: Vec<PathBuf> = files.iter().map(|(name, _)| folder.path().join(name)).collect();
            match paths.iter().zip(files).try_for_each(|(path, (_, bytes))| std::fs::write(path, bytes)) {
                Ok(()) => return Ok(paths),
                Err(why) => {
                    paths.iter().for_each(|p| drop(std::fs::remove_file(p)));
                    reason = format!("{}: {why}", folder.path().display());
                }
            }
        }
        let count: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        let message = format!("no space for {count} bytes for PyTorch ({reason})");
        Err(Diagnostic::error("torch-no-space", message).hint("free some space in the temporary folder, or set TMPDIR"))
    }

    /// Writes tensors as a safetensors file.
    pub(super) fn write_tensors(&self, name: &str, tensors: &[(&str, &HostTensor)]) -> Result<PathBuf, Diagnostic> {
        self.write(name, &to_bytes(tensors)?)
    }
}

fn folder_in(parent: &Path) -> Option<tempfile::TempDir> {
    tempfile::Builder::new().prefix("maskloom-torch-").tempdir_in(parent).ok()
}

/// A safetensors file's bytes.
pub(super) fn to_bytes(tensors: &[(&str, &HostTensor)]) -> Result<Vec<u8>, Diagnostic> {
    let data: Vec<Vec<u8>> = tensors.iter().map(|(_, t)| t.data().to_le_bytes()).collect();
    let mut views = Vec::new();
    for ((name, tensor), bytes) in tensors.iter().zip(&data) {
        let view =
            TensorView::new(file_dtype::to_file(tensor.dtype()), tensor.shape().to_vec(), bytes).map_err(broken)?;
        views.push((*name, view));
    }
    safetensors::serialize(views, None).map_err(broken)
}

/// Reads one tensor of a file's bytes; None when the file has none of that name.
pub(super) fn tensor(file: &SafeTensors, name: &str) -> Result<Option<HostTensor>, Diagnostic> {
    let Ok(view) = file.tensor(name) else { return Ok(None) };
    inputs::host_tensor(&view).map(Some)
}

/// Reads the file and removes it.
pub(super) fn take(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    let bytes = std::fs::read(path);
    let _ = std::fs::remove_file(path);
    bytes.map_err(|why| Diagnostic::error("torch-protocol", format!("{} cannot be read: {why}", path.display())))
}

pub(super) fn broken(why: safetensors::SafeTensorError) -> Diagnostic {
    Diagnostic::error("torch-protocol", format!("tensors sent between Maskloom and PyTorch are damaged: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::tensor::Data;

    #[test]
    fn tensors_come_back_and_nothing_stays() {
        let exchange = Exchange::new().expect("a folder");
        let given = HostTensor::new([2, 3], Data::BF16((0..6).map(|i| half::bf16::from_f32(i as f32)).collect()))
            .expect("a tensor");
        let path = exchange.write_tensors("a.safetensors", &[("q", &given)]).expect("written");
        let bytes = take(&path).expect("read");
        let file = SafeTensors::deserialize(&bytes).expect("a file");
        assert_eq!(tensor(&file, "q").expect("read"), Some(given));
        assert_eq!(tensor(&file, "lse").expect("read"), None);
        assert!(!path.exists());
        let folders = exchange.paths();
        drop(exchange);
        assert!(folders.iter().all(|f| !f.exists()));
    }
}
