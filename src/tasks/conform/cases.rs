//! Reference cases: a JSON list of problems, and next to it a safetensors file with PyTorch's results.
//!
//! Invariant: a file of another form is a diagnostic that names the place; nothing is guessed. Must not know how cases
//! are checked.

use crate::base::tensor::Data;
use crate::base::{BlockSize, Diagnostic, HostTensor, Lengths};
use crate::worker::tensors::TensorFile;
use crate::worker::{files, tensors};
use serde::Deserialize;
use serde_json::Value;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One case, by the names of the file.
#[derive(Clone, Debug, Deserialize)]
#[allow(non_snake_case)] // PyTorch's B, H
pub(super) struct Case {
    /// Prefix of its arrays.
    pub name: String,
    /// None: everything is kept.
    pub mask: Option<ModSpec>,
    /// None: scores stay.
    pub score: Option<ModSpec>,
    /// Batch entries.
    pub B: usize,
    /// Query heads.
    pub H: usize,
    /// Key and value heads.
    pub Hkv: usize,
    /// Query tokens.
    pub q_len: usize,
    /// Key tokens.
    pub kv_len: usize,
    /// 0: masks only.
    pub head_dim: usize,
    /// Names of captured tensors.
    #[serde(default)]
    pub captured: Vec<String>,
    /// Whether the mask was built with B, or broadcast.
    #[serde(default)]
    pub mask_per_batch: bool,
    /// Whether the mask was built with H, or broadcast.
    #[serde(default)]
    pub mask_per_head: bool,
    /// None: 1/sqrt(head_dim).
    #[serde(default)]
    pub scale: Option<f64>,
    /// Block sizes (q, kv) of which BlockMasks are listed.
    #[serde(default)]
    pub blocks: Vec<(usize, usize)>,
    /// Captured tensors whose gradients are listed; None: the case lists no gradients.
    #[serde(default)]
    pub grads: Option<Vec<String>>,
    /// Whether a gradient of the lse is given too.
    #[serde(default)]
    pub dlse: bool,
    /// Kept cells of the dense mask.
    #[serde(default)]
    pub mask_true: Option<u64>,
    /// `sparsity_QxK` and all the others.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// A mod: a function of a package, or a text of the case's own.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ModSpec {
    /// `module:function` of the attn-gym package.
    #[serde(default)]
    pub gym: Option<String>,
    /// Text in which the captured tensors are globals.
    #[serde(default)]
    pub source: Option<String>,
    /// The name in the text.
    #[serde(default)]
    pub entry: Option<String>,
    /// Arguments of the factory; `{"tensor": n}`, `{"mod": spec}`, lists are tuples.
    #[serde(default)]
    pub kwargs: BTreeMap<String, Value>,
    /// Whether the function makes the mod. By default a package's does, and a text's does if it has arguments.
    #[serde(default)]
    pub factory: Option<bool>,
}

impl Case {
    /// Validated lengths.
    pub(super) fn lengths(&self) -> Result<Lengths, Diagnostic> {
        Lengths::new(self.q_len, self.kv_len)
    }

    /// Batch entries and heads of the mask: 1 if it was broadcast.
    pub(super) fn mask_groups(&self) -> (usize, usize) {
        (if self.mask_per_batch { self.B } else { 1 }, if self.mask_per_head { self.H } else { 1 })
    }

    /// The result of `BlockMask.sparsity()` at this block size.
    pub(super) fn sparsity(&self, size: BlockSize) -> Option<f64> {
        self.rest.get(&format!("sparsity_{size}")).and_then(Value::as_f64)
    }

    /// The same for lengths that blocks reach beyond, as PyTorch 2.15 counts them.
    pub(super) fn padded_sparsity(&self, size: BlockSize) -> Option<f64> {
        self.rest.get(&format!("ragged_sparsity_{size}")).and_then(Value::as_f64)
    }

    /// Names of q, k and v in the arrays' file.
    pub(super) fn input_names(&self) -> [String; 3] {
        if self.grads.is_some() {
            return ["q", "k", "v"].map(|n| format!("{}.{n}", self.name));
        }
        let shape = format!("{}.{}.{}.{}.{}.{}", self.B, self.H, self.Hkv, self.q_len, self.kv_len, self.head_dim);
        ["q", "k", "v"].map(|n| format!("in.{shape}.{n}"))
    }
}

/// The arrays of the cases. Each is read on use.
pub(super) struct Arrays {
    /// Where they are.
    pub path: PathBuf,
    file: TensorFile,
    /// The inputs alone, converted to float32; written on first use, removed with this value.
    float32: OnceCell<(tempfile::TempDir, PathBuf)>,
}

impl Arrays {
    /// Opens `CASES.safetensors` next to `CASES.json`.
    pub(super) fn beside(cases: &Path) -> Result<Arrays, Diagnostic> {
        let path = cases.with_extension("safetensors");
        let file = TensorFile::open(&path).map_err(|d| match d.code.as_ref() {
            "safetensors" => broken(&path, &d.message),
            _ => d.hint("the arrays must be next to the cases, under the same name"),
        })?;
        Ok(Arrays { path: std::path::absolute(&path).unwrap_or(path), file, float32: OnceCell::new() })
    }

    /// One array, if it is there.
    pub(super) fn find(&self, name: &str) -> Result<Option<HostTensor>, Diagnostic> {
        self.file.find(name)
    }

    /// A file with q, k and v of all cases in float32, which represents their rounded values exactly.
    pub(super) fn float32_inputs(&self) -> Result<&Path, Diagnostic> {
        if self.float32.get().is_none() {
            let made = self.write_float32()?;
            let _ = self.float32.set(made);
        }
        Ok(self.float32.get().map_or(self.path.as_path(), |(_, path)| path))
    }

    fn write_float32(&self) -> Result<(tempfile::TempDir, PathBuf), Diagnostic> {
        let mut inputs: Vec<(String, HostTensor)> = Vec::new();
        for name in self.file.names().into_iter().filter(|name| is_input(name)) {
            let given = self.get(&name)?;
            inputs.push((name, HostTensor::new(given.shape(), Data::F32(given.to_f32_vec()))?));
        }
        let folder = tempfile::tempdir().map_err(|e| {
            Diagnostic::error("cannot-write", format!("cannot create a temporary folder: {e}"))
                .hint("set TMPDIR to a writable folder")
        })?;
        let path = folder.path().join("inputs.safetensors");
        files::save(&path, &tensors::write(inputs.iter().map(|(name, t)| (name.clone(), t)))?)?;
        Ok((folder, path))
    }

    /// One array that must be there.
    pub(super) fn get(&self, name: &str) -> Result<HostTensor, Diagnostic> {
        self.find(name)?.ok_or_else(|| broken(&self.path, &format!("it contains no `{name}`")))
    }
}

/// Whether an array is an input or a gradient that is given, by its name.
fn is_input(name: &str) -> bool {
    name.starts_with("in.") || [".q", ".k", ".v", ".do", ".dlse"].iter().any(|end| name.ends_with(end))
}

fn broken(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("conform-arrays", format!("{} cannot be used: {why}", path.display()))
        .hint("record it again together with its cases")
}

/// Reads `CASES.json`. Errors: not there, not JSON, not a list of cases.
pub(super) fn read(path: &Path) -> Result<Vec<Case>, Diagnostic> {
    let text = files::read_text(path)?;
    let bad = |why: String| {
        Diagnostic::error("conform-cases", format!("{} is not a list of reference cases: {why}", path.display()))
            .hint("a case has name, mask, score, B, H, Hkv, q_len, kv_len, head_dim, blocks, ...")
    };
    let cases: Vec<Case> = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
    if cases.is_empty() {
        return Err(bad("it is empty".into()));
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_with_its_defaults_and_a_bad_file_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let text = r#"[{"name": "x", "mask": {"source": "m = 1", "entry": "m"}, "score": null, "B": 2, "H": 4, "Hkv": 2,
            "q_len": 3, "kv_len": 5, "head_dim": 8, "mask_per_head": true, "blocks": [[64, 128]], "sparsity_64x128": -2.5}]"#;
        std::fs::write(&path, text).unwrap();
        let case = read(&path).unwrap().remove(0);
        assert_eq!((case.mask_groups(), case.scale, case.mask_true), ((1, 4), None, None));
        assert_eq!(case.sparsity(BlockSize { q: 64, kv: 128 }), Some(-2.5));
        assert_eq!(case.input_names()[1], "in.2.4.2.3.5.8.k");
        std::fs::write(&path, "[{\"name\": 3}]").unwrap();
        let why = read(&path).unwrap_err();
        assert_eq!(why.code, "conform-cases");
        assert!(why.message.contains("line 1"), "{}", why.message);
        std::fs::write(&path, "[]").unwrap();
        assert_eq!(read(&path).unwrap_err().code, "conform-cases");
        assert_eq!(Arrays::beside(&path).err().unwrap().code, "no-such-file");
    }
}
