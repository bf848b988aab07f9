//! Tensors in safetensors (and NumPy) files: captured tensors in, block masks and outputs out, and the content of a
//! file with q, k, v.
//!
//! Invariant: a broken file is a diagnostic that names it. Must not know the tensors' use.

use crate::backends::inputs;
use crate::backends::room;
use crate::base::tensor::Data;
use crate::base::{DType, Diagnostic, HostTensor, Layout, file_dtype};
use crate::document::model::Document;
use crate::worker::{files, npy};
use safetensors::tensor::{Metadata, TensorView};
use safetensors::{Dtype, SafeTensors};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Dtype, shape and little-endian bytes of a tensor in a file.
type Raw = (Dtype, Vec<usize>, Vec<u8>);

/// A safetensors file of which only the header has been read: its tensors are read one by one, so that taking one out of a
/// large file costs what that one holds.
pub struct TensorFile {
    path: PathBuf,
    file: Mutex<File>,
    metadata: Metadata,
    /// Where the data begins.
    start: u64,
}

impl TensorFile {
    /// Reads the header. Errors: no such file, not a safetensors file, or one that is shorter than stated.
    pub fn open(path: &Path) -> Result<TensorFile, Diagnostic> {
        let (mut file, length) = files::open(path)?;
        let mut fill = |bytes: &mut [u8]| file.read_exact(bytes).map_err(|e| broken(path, &e.to_string()));
        let mut stated = [0; 8];
        if length >= 8 {
            fill(&mut stated)?;
        }
        let stated = u64::from_le_bytes(stated);
        if stated == 0 || stated > length - 8 {
            return Err(broken(path, "its header is longer than the file"));
        }
        let mut header = vec![0; stated as usize];
        fill(&mut header)?;
        let metadata: Metadata = serde_json::from_slice(&header).map_err(|e| broken(path, &e.to_string()))?;
        let end = metadata.tensors().values().map(|t| t.data_offsets.1).max().unwrap_or(0) as u64;
        if stated + 8 + end != length {
            return Err(broken(path, "its data does not have the length that its header states"));
        }
        Ok(TensorFile { path: path.to_path_buf(), file: Mutex::new(file), metadata, start: stated + 8 })
    }

    /// Names of all tensors.
    pub fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    /// One tensor's raw dtype, shape and bytes; None if the name is missing. Errors: the file cannot be read.
    fn raw(&self, name: &str) -> Result<Option<Raw>, Diagnostic> {
        let Some(info) = self.metadata.info(name) else { return Ok(None) };
        let (from, to) = info.data_offsets;
        let mut bytes = vec![0; to.saturating_sub(from)];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file.seek(SeekFrom::Start(self.start + from as u64)).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|e| broken(&self.path, &e.to_string()))?;
        Ok(Some((info.dtype, info.shape.clone(), bytes)))
    }

    /// One tensor, if it is there. Errors: a dtype that we do not have, or the file cannot be read.
    pub fn find(&self, name: &str) -> Result<Option<HostTensor>, Diagnostic> {
        let Some((dtype, shape, bytes)) = self.raw(name)? else { return Ok(None) };
        let view = TensorView::new(dtype, shape, &bytes).map_err(|e| broken(&self.path, &e.to_string()))?;
        inputs::host_tensor(&view).map(Some)
    }
}

/// The bytes of a safetensors file with only the named tensors of a file. If one of them is missing: the whole file, so
/// that the error can list its content.
pub fn read_some(path: &Path, names: &[String]) -> Result<Vec<u8>, Diagnostic> {
    let file = TensorFile::open(path)?;
    let mut found = Vec::new();
    for name in names {
        match file.raw(name)? {
            Some(raw) => found.push((name.clone(), raw)),
            None => return files::read(path),
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found.dedup_by(|a, b| a.0 == b.0);
    let mut views = Vec::new();
    for (name, (dtype, shape, bytes)) in &found {
        let view = TensorView::new(*dtype, shape.clone(), bytes).map_err(|e| broken(path, &e.to_string()))?;
        views.push((name.clone(), view));
    }
    safetensors::serialize(views, None).map_err(|e| broken(path, &e.to_string()))
}

/// All tensors of a `.safetensors` file, or the array of a `.npy` file, by name.
pub fn read(path: &Path) -> Result<Vec<(String, HostTensor)>, Diagnostic> {
    // the file and its tensors are held at once
    let stated = std::fs::metadata(path).map_or(0, |about| about.len());
    room::check(&format!("reading {}", path.display()), stated.saturating_mul(2))?;
    let bytes = files::read(path)?;
    if path.extension().is_some_and(|e| e == "npy") {
        // such a file holds one array, which is called as the file
        let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        return Ok(vec![(name, npy::parse(path, &bytes)?)]);
    }
    let file = SafeTensors::deserialize(&bytes).map_err(|e| broken(path, &e.to_string()))?;
    let mut tensors = Vec::new();
    for (name, view) in file.tensors() {
        tensors.push((name, inputs::host_tensor(&view)?));
    }
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(tensors)
}

fn broken(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("safetensors", format!("{} is not a safetensors file: {why}", path.display()))
        .hint("write it with safetensors.torch.save_file({\"name\": tensor}, path)")
}

/// The bytes of a file with these tensors.
pub fn write<'a>(tensors: impl IntoIterator<Item = (String, &'a HostTensor)>) -> Result<Vec<u8>, Diagnostic> {
    let all: Vec<(String, DType, Vec<usize>, Vec<u8>)> =
        tensors.into_iter().map(|(name, t)| (name, t.dtype(), t.shape().to_vec(), t.data().to_le_bytes())).collect();
    write_raw(all.iter().map(|(name, dtype, shape, bytes)| (name.clone(), *dtype, shape.as_slice(), bytes.as_slice())))
}

/// The same from raw little-endian bytes.
pub fn write_raw<'a>(
    tensors: impl IntoIterator<Item = (String, DType, &'a [usize], &'a [u8])>,
) -> Result<Vec<u8>, Diagnostic> {
    let cannot = |e: safetensors::SafeTensorError| {
        Diagnostic::error("safetensors", format!("the tensors cannot be written: {e}"))
    };
    let mut views = Vec::new();
    for (name, dtype, shape, bytes) in tensors {
        views.push((name, TensorView::new(file_dtype::to_file(dtype), shape.to_vec(), bytes).map_err(cannot)?));
    }
    safetensors::serialize(views, None).map_err(cannot)
}

/// The shapes of a run in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct InputShapes {
    pub batch: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub q_len: usize,
    pub kv_len: usize,
    pub head_dim: usize,
    pub head_dim_v: usize,
    pub dtype: Option<DType>,
}

impl InputShapes {
    /// Reads the shapes of the tensors for q, k, v. None if they are missing or not 4-D: reading them for a run reports
    /// the error.
    pub fn read(path: &Path, names: &[String; 3], layout: Layout) -> Result<Option<InputShapes>, Diagnostic> {
        let file = TensorFile::open(path)?;
        let dims = |name: &String| -> Option<([usize; 4], Dtype)> {
            let about = file.metadata.info(name)?;
            let [a, b, c, d]: [usize; 4] = about.shape[..].try_into().ok()?;
            Some((if layout == Layout::Bhsd { [a, b, c, d] } else { [a, c, b, d] }, about.dtype))
        };
        let (Some((q, dtype)), Some((k, _)), Some((v, _))) = (dims(&names[0]), dims(&names[1]), dims(&names[2])) else {
            return Ok(None);
        };
        let dtype = file_dtype::from_file(dtype).filter(|dtype| [DType::BF16, DType::F16, DType::F32].contains(dtype));
        Ok(Some(InputShapes {
            batch: q[0],
            heads: q[1],
            kv_heads: k[1],
            q_len: q[2],
            kv_len: k[2],
            head_dim: q[3],
            head_dim_v: v[3],
            dtype,
        }))
    }

    /// Sets batch, heads, head_dim and dtype to the file's; returns the changes in words. Lengths belong to the axes,
    /// because they are part of the mask.
    pub fn fit(&self, document: &mut Document) -> Vec<String> {
        let s = &mut document.settings;
        let mut changes = Vec::new();
        let mut set = |name: &str, field: &mut usize, value: usize| {
            if *field != value {
                changes.push(format!("{name} {value}"));
                *field = value;
            }
        };
        set("batch", &mut s.batch, self.batch);
        set("heads", &mut s.heads, self.heads);
        set("kv_heads", &mut s.kv_heads, self.kv_heads);
        set("head_dim", &mut s.head_dim, self.head_dim);
        s.head_dim_v = Some(self.head_dim_v).filter(|v| *v != self.head_dim);
        if let Some(dtype) = self.dtype.filter(|d| *d != s.dtype) {
            changes.push(format!("dtype {dtype}"));
            s.dtype = dtype;
        }
        changes
    }
}

/// A tensor from a payload.
pub fn tensor(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<HostTensor, Diagnostic> {
    HostTensor::new(shape, Data::from_le_bytes(dtype, bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_its_shapes_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("qkv.safetensors");
        let zeros = |shape: [usize; 4]| {
            HostTensor::new(shape, Data::F16(vec![half::f16::ONE; shape.iter().product()])).unwrap()
        };
        let (q, k, v) = (zeros([1, 4, 6, 8]), zeros([1, 2, 5, 8]), zeros([1, 2, 5, 16]));
        let bytes = write([("q".to_string(), &q), ("k".into(), &k), ("v".into(), &v)]).unwrap();
        files::save(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap(), [("k".to_string(), k), ("q".into(), q), ("v".into(), v)]);
        let names = ["q", "k", "v"].map(String::from);
        let shapes = InputShapes::read(&path, &names, Layout::Bhsd).unwrap().unwrap();
        assert_eq!((shapes.heads, shapes.kv_heads, shapes.q_len, shapes.kv_len), (4, 2, 6, 5));
        assert_eq!((shapes.head_dim_v, shapes.dtype), (16, Some(DType::F16)));
        let swapped = InputShapes::read(&path, &names, Layout::Bshd).unwrap().unwrap();
        assert_eq!((swapped.heads, swapped.q_len), (6, 4));
        std::fs::write(&path, b"nonsense").unwrap();
        assert_eq!(read(&path).unwrap_err().code, "safetensors");
        assert_eq!(TensorFile::open(&path).err().unwrap().code, "safetensors");
    }

    #[test]
    fn one_tensor_is_read_without_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.safetensors");
        let of = |x: f32, n: usize| HostTensor::new([n], Data::F32(vec![x; n])).unwrap();
        let all: Vec<_> = (0..50).map(|i| (format!("t{i}"), of(i as f32, 1000 + i))).collect();
        files::save(&path, &write(all.iter().map(|(n, t)| (n.clone(), t))).unwrap()).unwrap();
        let file = TensorFile::open(&path).unwrap();
        assert_eq!(file.names().len(), 50);
        assert_eq!(file.find("t7").unwrap(), Some(of(7.0, 1007)));
        assert_eq!(file.find("none").unwrap(), None);
        let names = ["t7", "t9", "t7"].map(String::from);
        let some = read_some(&path, &names).unwrap();
        assert!(some.len() < 9000, "{} bytes of {}", some.len(), std::fs::metadata(&path).unwrap().len());
        assert_eq!(SafeTensors::deserialize(&some).unwrap().len(), 2);
        // a missing name: everything, so that the content can be listed
        let missing = read_some(&path, &["none".to_string()]).unwrap();
        assert_eq!(missing.len() as u64, std::fs::metadata(&path).unwrap().len());
        // damage
        let bytes = std::fs::read(&path).unwrap();
        for cut in [3, 100, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            assert_eq!(TensorFile::open(&path).err().unwrap().code, "safetensors", "{cut}");
        }
    }
}
