//! Files of torch.save: a dense mask, a BlockMask, or a dictionary that contains one.
//!
//! Invariant: no code of the file runs. Only the part of a storage that its tensor covers is read. Must not know
//! documents.

use super::archive;
use super::cells::Cells;
use super::pickle::{self, Value};
use super::read::{self, Lists};
use crate::base::tensor::Data;
use crate::base::{BlockSize, DType, Diagnostic, HostTensor};
use std::path::Path;

const BLOCK_MASK: &str = "torch.nn.attention.flex_attention.BlockMask";

/// The mask of a file. Errors: it holds none, or is of a kind that is not known.
pub(super) fn mask(path: &Path, bytes: &[u8], block_size: Option<BlockSize>) -> Result<Cells, Diagnostic> {
    let broken = |why: &str| {
        Diagnostic::error("import-torch", format!("{} contains no readable mask: {why}", path.display()))
            .hint("torch.save(mask, path) with a bool tensor or a BlockMask; or safetensors.torch.save_file({\"mask\": mask}, path)")
    };
    let (archive, root, value) = saved(path, bytes, &broken)?;
    let file = File { root: &root, archive: &archive };
    let found = file.find(&value, 0).ok_or_else(|| {
        broken("it contains no tensor and no BlockMask, or several tensors without a name like `mask`")
    })?;
    match found {
        Found::Mask(name, tensor) => {
            let tensor = file.tensor(tensor).map_err(|why| broken(&why))?;
            if name == "`attention_mask`"
                && let Some(cells) = read::padding(path, &tensor)?
            {
                return Ok(cells);
            }
            read::of_tensor(path, &format!("{name} of {}", path.display()), &tensor)
        }
        Found::Blocks(object) => {
            let tensor = |name: &str| match object.get(name) {
                None | Some(Value::None) => Ok(None),
                Some(value) => file.tensor(value).map(Some).map_err(|why| broken(&why)),
            };
            let pair = |name: &str| object.get(name).and_then(Value::ints).filter(|n| n.len() == 2);
            let block = pair("BLOCK_SIZE").map(|b| BlockSize { q: b[0], kv: b[1] });
            let lengths = pair("seq_lengths");
            let lists = Lists {
                block_size: block.or(block_size),
                q_len: lengths.as_ref().map(|l| l[0]),
                kv_len: lengths.as_ref().map(|l| l[1]),
            };
            read::block_lists(path, &tensor, &lists)
        }
    }
}

/// The archive, the folder inside of it, and what was saved.
type Saved<'a> = (archive::Archive<'a>, String, Value);

/// Opens a file. Errors: it is not one of torch.save, as `broken` says.
fn saved<'a>(path: &'a Path, bytes: &'a [u8], broken: &dyn Fn(&str) -> Diagnostic) -> Result<Saved<'a>, Diagnostic> {
    if !bytes.starts_with(b"PK") {
        return Err(broken("it is not in the current format of torch.save"));
    }
    let archive = archive::Archive::open(path, bytes)?;
    let pickled = archive.names().find(|name| name.ends_with("/data.pkl") || *name == "data.pkl");
    let pickled = pickled.ok_or_else(|| broken("it has no data.pkl"))?;
    let text = archive.member(pickled)?.unwrap_or_default();
    let root = pickled.trim_end_matches("data.pkl").to_string();
    if archive.member(&format!("{root}byteorder"))?.is_some_and(|order| order.starts_with(b"big")) {
        return Err(broken("its numbers are big-endian"));
    }
    let value = pickle::read(&text).map_err(|why| broken(&why))?;
    Ok((archive, root, value))
}

/// The tensors of a saved dictionary under these names; a tensor alone has the name "".
pub(super) fn named(path: &Path, bytes: &[u8], wanted: &[&str]) -> Result<Vec<(String, HostTensor)>, Diagnostic> {
    let broken = |why: &str| {
        Diagnostic::error("tensors-file", format!("{} cannot be read: {why}", path.display()))
            .hint("torch.save({\"q\": q, \"k\": k, \"v\": v}, path)")
    };
    let (archive, root, value) = saved(path, bytes, &broken)?;
    let file = File { root: &root, archive: &archive };
    let read = |name: &str, value: &Value| {
        file.tensor(value).map(|t| (name.to_string(), t)).map_err(|why| broken(&format!("`{name}`: {why}")))
    };
    if is_tensor(&value) {
        return Ok(vec![read("", &value)?]);
    }
    wanted.iter().filter_map(|name| value.get(name).filter(|v| is_tensor(v)).map(|v| read(name, v))).collect()
}

/// The mask in a file.
enum Found<'a> {
    Mask(String, &'a Value),
    Blocks(&'a Value),
}

struct File<'a> {
    root: &'a str,
    archive: &'a archive::Archive<'a>,
}

impl File<'_> {
    fn find<'a>(&self, value: &'a Value, depth: usize) -> Option<Found<'a>> {
        match value {
            Value::Made(name, _) if &**name == BLOCK_MASK => Some(Found::Blocks(value)),
            Value::Dict(_) if value.get("kv_indices").is_some() => Some(Found::Blocks(value)),
            _ if is_tensor(value) => Some(Found::Mask("the tensor".into(), value)),
            Value::Dict(entries) if depth < 3 => {
                let named = entries
                    .iter()
                    .find(|(k, v)| is_tensor(v) && k.text().is_some_and(|k| k.to_lowercase().contains("mask")));
                if let Some((key, tensor)) = named {
                    return Some(Found::Mask(format!("`{}`", key.text().unwrap_or_default()), tensor));
                }
                let inner: Vec<Found> = entries.iter().filter_map(|(_, v)| self.find(v, depth + 1)).collect();
                let blocks = inner.iter().position(|f| matches!(f, Found::Blocks(_)));
                match (blocks, inner.len()) {
                    (Some(at), _) => inner.into_iter().nth(at),
                    (None, 1) => inner.into_iter().next(),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `_rebuild_tensor_v2(storage, offset, size, stride, ...)`
    fn tensor(&self, value: &Value) -> Result<HostTensor, String> {
        let Value::Made(name, parts) = value else { return Err("an array is not a tensor".into()) };
        if &**name == "torch._utils._rebuild_parameter" {
            return self.tensor(parts.first().ok_or("a parameter is empty")?);
        }
        let wrong = || "a tensor is written in an unknown way".to_string();
        let [Value::Stored(stored), offset, size, stride, ..] = &parts[..] else { return Err(wrong()) };
        let stored = stored.list().ok_or_else(wrong)?;
        let [_, Value::Name(kind), key, ..] = stored else { return Err(wrong()) };
        let dtype = dtype(kind).ok_or_else(|| format!("a tensor of {kind} is not a mask"))?;
        let (shape, strides) = (size.ints().ok_or_else(wrong)?, stride.ints().ok_or_else(wrong)?);
        let offset = offset.int().and_then(|n| usize::try_from(n).ok()).ok_or_else(wrong)?;
        let member = format!("{}data/{}", self.root, key.text().ok_or_else(wrong)?);
        let data = self.archive.member(&member).map_err(|d| d.message)?.ok_or("a storage is missing")?;
        let bytes =
            gathered(&data, dtype.size(), offset, &shape, &strides).ok_or("a tensor reaches beyond its storage")?;
        let data = Data::from_le_bytes(dtype, &bytes).map_err(|d| d.message)?;
        HostTensor::new(shape, data).map_err(|d| d.message)
    }
}

fn is_tensor(value: &Value) -> bool {
    matches!(value, Value::Made(name, _) if name.starts_with("torch._utils._rebuild_tensor") || &**name == "torch._utils._rebuild_parameter")
}

fn dtype(storage: &str) -> Option<DType> {
    let name = match storage.strip_prefix("torch.")?.strip_suffix("Storage")? {
        "Bool" => "bool",
        "Byte" => return None,
        "Char" => "int8",
        "Int" => "int32",
        "Long" => "int64",
        "Half" => "float16",
        "BFloat16" => "bfloat16",
        "Float" => "float32",
        "Double" => "float64",
        _ => return None,
    };
    DType::ALL.into_iter().find(|d| d.torch_name() == name)
}

/// Elements row by row, for any strides.
fn gathered(data: &[u8], size: usize, offset: usize, shape: &[usize], strides: &[usize]) -> Option<Vec<u8>> {
    if shape.len() != strides.len() {
        return None;
    }
    let count = shape.iter().try_fold(1usize, |all, n| all.checked_mul(*n))?;
    if count > super::cells::MOST {
        return None;
    }
    let mut out = Vec::with_capacity(count * size);
    let mut index = vec![0usize; shape.len()];
    for _ in 0..count {
        let at = index.iter().zip(strides).try_fold(offset, |at, (i, s)| at.checked_add(i.checked_mul(*s)?))?;
        out.extend_from_slice(data.get(at.checked_mul(size)?..(at + 1).checked_mul(size)?)?);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    Some(out)
}
