//! Tensors in safetensors (and NumPy) files: captured tensors in, block masks and outputs out, and what a file of q, k, v holds.
//!
//! Invariant: a broken file is a diagnostic that names it. Must not know what the tensors are for.

use super::{files, npy};
use crate::backends::inputs;
use crate::base::tensor::Data;
use crate::base::{DType, Diagnostic, HostTensor, Layout, file_dtype};
use crate::document::model::Document;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::path::Path;

/// All tensors of a `.safetensors` file, or the array of a `.npy` file, by name.
pub fn read(path: &Path) -> Result<Vec<(String, HostTensor)>, Diagnostic> {
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
    Diagnostic::error("safetensors", format!("{} is no safetensors file: {why}", path.display()))
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

/// What a file says about the shapes of a run.
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
    /// Reads the shapes of the tensors for q, k, v. None where they are not there or not 4-D: reading them for a run
    /// tells what is wrong in words.
    pub fn read(path: &Path, names: &[String; 3], layout: Layout) -> Result<Option<InputShapes>, Diagnostic> {
        let bytes = files::read(path)?;
        let file = SafeTensors::deserialize(&bytes).map_err(|e| broken(path, &e.to_string()))?;
        let dims = |name: &String| -> Option<([usize; 4], Dtype)> {
            let view = file.tensor(name).ok()?;
            let [a, b, c, d]: [usize; 4] = view.shape().try_into().ok()?;
            Some((if layout == Layout::Bhsd { [a, b, c, d] } else { [a, c, b, d] }, view.dtype()))
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

    /// Sets batch, heads, head_dim and dtype to the file's; says what changed. Lengths are the axes' own affair: they
    /// belong to the mask.
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
    }
}
