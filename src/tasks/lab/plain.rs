//! A plain file of q, k and v as a capture of one call: what people save by hand.
//!
//! Invariant: nothing is invented: no layer's name, no mask, no tokens; a scale is 1/sqrt(head_dim) as everywhere. Must not know what
//! is measured.

use crate::base::tensor::Data;
use crate::base::{DType, Diagnostic, HostTensor, Layout};
use crate::quality::capture::Tensors;
use crate::tasks::imports::named::tensors_named;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The names of one tensor, the usual one first.
const NAMES: [[&str; 3]; 3] = [["q", "query", "Q"], ["k", "key", "K"], ["v", "value", "V"]];

/// q, k and, if it is there, v, in memory as [batch, heads, tokens, head_dim].
pub struct PlainFile {
    path: PathBuf,
    tensors: Vec<Plain>,
    calls: String,
}

struct Plain {
    name: &'static str,
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Whether a safetensors file has q and k under one of their names.
pub(super) fn has_names(file: &dyn Tensors) -> bool {
    let names = file.names();
    NAMES[..2].iter().all(|own| own.iter().any(|name| names.iter().any(|n| n == name)))
}

fn refused(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("plain-qkv", format!("{}: {why}", path.display()))
        .hint("save tensors named q, k and v, each [batch, heads, tokens, head_dim]; or capture a model (`maskloom recorder`)")
}

impl PlainFile {
    /// Reads the tensors. Errors: none of these names, other axes, lengths that do not belong together.
    pub fn open(path: &Path, layout: Layout) -> Result<PlainFile, Diagnostic> {
        let found = tensors_named(path, &NAMES.concat())?;
        let all = match &found[..] {
            [(name, stacked)] if name.is_empty() => stacked_parts(path, stacked)?,
            _ => NAMES
                .iter()
                .filter_map(|own| {
                    own.iter().find_map(|name| found.iter().find(|(n, _)| n == name)).map(|(_, t)| (own[0], t.clone()))
                })
                .collect(),
        };
        let tensors: Vec<(&'static str, HostTensor)> = all
            .into_iter()
            .map(|(name, t)| Ok((name, four_axes(path, name, t, layout)?)))
            .collect::<Result<_, Diagnostic>>()?;
        let shape = |wanted: &str| {
            let found = tensors.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, t)| t.shape().to_vec()).ok_or_else(|| refused(path, &format!("there is no `{wanted}`")))
        };
        let (q, k) = (shape("q")?, shape("k")?);
        let other = if layout == Layout::Bhsd {
            "; tensors of [batch, tokens, heads, head_dim] need --layout bshd"
        } else {
            ""
        };
        let belongs = q[0] == k[0] && q[3] == k[3] && k[1] > 0 && q[1].is_multiple_of(k[1]);
        let v = tensors.iter().find(|(name, _)| *name == "v").map_or(k.clone(), |(_, t)| t.shape().to_vec());
        if !belongs || v[..3] != k[..3] {
            return Err(refused(path, &format!("q {q:?}, k {k:?} and v {v:?} do not belong together{other}")));
        }
        let call = json!({
            "source": "plain tensors", "layer": 0, "name": "qkv", "batch": q[0], "heads": q[1], "kv_heads": k[1], "q_len": q[2],
            "kv_len": k[2], "head_dim": q[3],
        });
        let plain = |(name, t): (&'static str, HostTensor)| Plain {
            name,
            dtype: t.dtype(),
            shape: t.shape().to_vec(),
            bytes: t.data().to_le_bytes(),
        };
        let tensors = tensors.into_iter().map(plain).collect();
        Ok(PlainFile { path: path.to_path_buf(), tensors, calls: json!({ "qkv": call }).to_string() })
    }

    fn tensor(&self, name: &str) -> Option<&Plain> {
        let letter = name.strip_prefix("qkv.")?;
        self.tensors.iter().find(|own| own.name == letter)
    }
}

/// One array of three: [3, batch, heads, tokens, head_dim].
fn stacked_parts(path: &Path, stacked: &HostTensor) -> Result<Vec<(&'static str, HostTensor)>, Diagnostic> {
    let shape = stacked.shape();
    if shape.first() != Some(&3) || shape.len() < 3 {
        return Err(refused(
            path,
            &format!("one array of {shape:?} is not q, k and v in this order along its first axis"),
        ));
    }
    let bytes = stacked.data().to_le_bytes();
    let part = bytes.len() / 3;
    let one = |(at, name): (usize, &'static str)| {
        let data = Data::from_le_bytes(stacked.dtype(), &bytes[at * part..(at + 1) * part])?;
        Ok((name, HostTensor::new(&shape[1..], data)?))
    };
    ["q", "k", "v"].into_iter().enumerate().map(one).collect()
}

/// [heads, tokens, head_dim] is a batch of one, [tokens, head_dim] a head of one; the same with heads behind the tokens.
fn four_axes(path: &Path, name: &str, tensor: HostTensor, layout: Layout) -> Result<HostTensor, Diagnostic> {
    let shape = tensor.shape().to_vec();
    if !tensor.dtype().is_float() {
        return Err(refused(path, &format!("`{name}` holds {} numbers", tensor.dtype())));
    }
    match shape.len() {
        2 => tensor.reshaped([vec![1, 1], shape].concat()),
        3 | 4 => {
            let whole = tensor.reshaped([vec![1; 4 - shape.len()], shape].concat())?;
            if layout == Layout::Bshd { heads_before_tokens(&whole) } else { Ok(whole) }
        }
        _ => Err(refused(path, &format!("`{name}` is {shape:?}, not [batch, heads, tokens, head_dim]"))),
    }
}

/// [batch, tokens, heads, head_dim] as [batch, heads, tokens, head_dim].
fn heads_before_tokens(tensor: &HostTensor) -> Result<HostTensor, Diagnostic> {
    let &[batch, tokens, heads, dim] = tensor.shape() else { unreachable!("four axes") };
    let (bytes, row) = (tensor.data().to_le_bytes(), dim * tensor.dtype().size());
    let mut out = Vec::with_capacity(bytes.len());
    for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
        for t in 0..tokens {
            let at = ((b * tokens + t) * heads + h) * row;
            out.extend_from_slice(&bytes[at..at + row]);
        }
    }
    HostTensor::new([batch, heads, tokens, dim], Data::from_le_bytes(tensor.dtype(), &out)?)
}

impl Tensors for PlainFile {
    fn name(&self) -> String {
        self.path.file_name().map_or_else(|| self.path.display().to_string(), |n| n.to_string_lossy().into_owned())
    }

    fn metadata(&self, key: &str) -> Option<String> {
        (key == "maskloom").then(|| self.calls.clone())
    }

    fn about(&self, tensor: &str) -> Option<(DType, Vec<usize>)> {
        self.tensor(tensor).map(|t| (t.dtype, t.shape.clone()))
    }

    fn names(&self) -> Vec<String> {
        self.tensors.iter().map(|t| format!("qkv.{}", t.name)).collect()
    }

    fn bytes(&self, tensor: &str, from: usize, count: usize) -> Result<Vec<u8>, Diagnostic> {
        let found = self.tensor(tensor).ok_or_else(|| refused(&self.path, &format!("there is no `{tensor}`")))?;
        let size = found.dtype.size();
        let wanted = found.bytes.get(from * size..(from + count) * size);
        wanted.map(<[u8]>::to_vec).ok_or_else(|| refused(&self.path, &format!("`{tensor}` is shorter than its shape")))
    }
}
