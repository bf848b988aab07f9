//! Capture files on disk: a safetensors header read once, tensors read in part.
//!
//! Invariant: memory holds the header and the requested data. A truncated file is reported with the number of missing
//! bytes. Must not know the tensors' meaning.

use crate::base::{DType, Diagnostic, file_dtype};
use crate::quality::capture::Tensors;
use crate::worker::files;
use safetensors::tensor::Metadata;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Longest header that is read: a hundred thousand tensors stay below.
const MOST_HEADER: u64 = 256 << 20;

/// An open capture file.
pub struct CaptureFile {
    path: PathBuf,
    file: Mutex<File>,
    metadata: Metadata,
    start: u64,
}

impl CaptureFile {
    /// Reads the header. Errors: no such file, not a safetensors file, an unfinished or truncated one.
    pub fn open(path: &Path) -> Result<CaptureFile, Diagnostic> {
        let (mut file, length) = files::open(path)?;
        let shown = path.display();
        let broken = |why: String| {
            Diagnostic::error("safetensors", format!("{shown} is not a safetensors file: {why}"))
                .hint("maskloom_capture.py writes captures")
        };
        if length < 8 {
            return Err(broken(format!("it has {length} bytes")));
        }
        let mut stated = [0; 8];
        file.read_exact(&mut stated).map_err(|e| broken(e.to_string()))?;
        let stated = u64::from_le_bytes(stated);
        if stated == 0 {
            return Err(Diagnostic::error(
                "capture-unfinished",
                format!("{shown} is an unfinished capture without readable data"),
            )
            .hint("the captured program ended before its first layer was written; capture again"));
        }
        if stated > length.saturating_sub(8) || stated > MOST_HEADER {
            let why = format!("its header states {stated} bytes, the file has {length}");
            return Err(if stated > MOST_HEADER { broken(why) } else { cut_off(path, &why) });
        }
        let mut header = vec![0; stated as usize];
        file.read_exact(&mut header).map_err(|e| broken(e.to_string()))?;
        let metadata: Metadata = serde_json::from_slice(&header).map_err(|e| broken(e.to_string()))?;
        let end = metadata.tensors().values().map(|t| t.data_offsets.1).max().unwrap_or(0) as u64;
        if stated + 8 + end > length {
            let missing = stated + 8 + end - length;
            return Err(cut_off(path, &format!("{missing} of {} bytes are missing", stated + 8 + end)));
        }
        Ok(CaptureFile { path: path.to_path_buf(), file: Mutex::new(file), metadata, start: stated + 8 })
    }
}

fn cut_off(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("capture-cut-off", format!("{} is cut off: {why}", path.display()))
        .hint("copy it again, or capture again on a disk with more space")
}

impl Tensors for CaptureFile {
    fn name(&self) -> String {
        self.path.file_name().map_or_else(|| self.path.display().to_string(), |n| n.to_string_lossy().into_owned())
    }

    fn metadata(&self, key: &str) -> Option<String> {
        self.metadata.metadata().as_ref()?.get(key).cloned()
    }

    fn about(&self, tensor: &str) -> Option<(DType, Vec<usize>)> {
        let info = self.metadata.info(tensor)?;
        Some((file_dtype::from_file(info.dtype)?, info.shape.clone()))
    }

    fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    fn bytes(&self, tensor: &str, from: usize, count: usize) -> Result<Vec<u8>, Diagnostic> {
        let reported =
            |why: String| Diagnostic::error("cannot-read", format!("{}: {tensor}: {why}", self.path.display()));
        let info = self.metadata.info(tensor).ok_or_else(|| reported("there is no such tensor".into()))?;
        let (dtype, _) = self.about(tensor).ok_or_else(|| reported("its element type is unknown".into()))?;
        let (start, end) = info.data_offsets;
        let (first, last) = (start + from * dtype.size(), start + (from + count) * dtype.size());
        if last > end {
            return Err(reported(format!("elements {from}..{} are beyond its end", from + count)));
        }
        let mut bytes = vec![0; last - first];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file.seek(SeekFrom::Start(self.start + first as u64)).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|e| reported(e.to_string()).hint("was the file changed while it was open? open it again"))?;
        Ok(bytes)
    }
}
