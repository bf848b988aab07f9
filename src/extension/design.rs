//! A document of the workbench as mods in PyTorch's language.
//!
//! Invariant: the printed functions have the meaning of the document's graph. Reads no file: text comes in. Must not
//! know where the document is stored.

use super::guard::computed;
use crate::base::{Diagnostic, HostTensor};
use crate::document::compile::{BuiltIn, compile};
use crate::document::model::{Axes, Axis, Document};
use crate::document::{edit, file, from_document, library, resize};
use crate::ir::print::{self, Names};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A captured tensor: its name in the text, dtype, shape and little-endian bytes.
type Tensor<'py> = (String, String, Vec<usize>, Bound<'py, PyBytes>);

/// The functions and sizes of a document.
#[pyclass(frozen, module = "maskloom._native", get_all)]
pub(super) struct Design {
    name: String,
    /// Python text that defines `mask_mod` and `score_mod` where there are any.
    text: String,
    has_mask: bool,
    has_score: bool,
    lengths: (usize, usize),
    batch: usize,
    heads: (usize, usize),
    block_size: (usize, usize),
    scale: Option<f64>,
    tensors: Tensors,
}

/// The tensors that the text reads as globals.
#[pyclass(frozen, module = "maskloom._native")]
#[derive(Clone)]
pub(super) struct Tensors {
    pub(super) of: Vec<(String, HostTensor)>,
}

#[pymethods]
impl Tensors {
    /// (name, dtype, shape, bytes) of each.
    fn all<'py>(&self, py: Python<'py>) -> Vec<Tensor<'py>> {
        let one = |(name, tensor): &(String, HostTensor)| {
            let bytes = PyBytes::new(py, &tensor.data().to_le_bytes());
            (name.clone(), tensor.dtype().torch_name().to_string(), tensor.shape().to_vec(), bytes)
        };
        self.of.iter().map(one).collect()
    }
}

/// A count as people type it: `8k`, `8_192`. None: it is none.
#[pyfunction]
pub(super) fn count(text: &str) -> Option<usize> {
    crate::base::words::count(text)
}

/// Reads a document, or the preset of that name, with other lengths where given.
#[pyfunction]
pub(super) fn design(
    py: Python<'_>,
    text: Option<String>,
    preset: Option<String>,
    lengths: Option<(usize, usize)>,
) -> PyResult<Design> {
    computed(py, || {
        let mut document = match (text, preset) {
            (Some(text), _) => file::from_json(&text).map_err(first)?,
            (None, name) => preset_of(&name.unwrap_or_default())?,
        };
        if let Some((q_len, kv_len)) = lengths {
            let axes = with_lengths(&document.axes, q_len, kv_len)?;
            let change = resize::set_axes(&document, axes, resize::Resize::Scale)?;
            edit::apply(&mut document, change)?;
        }
        let compiled = compile(&document, &BuiltIn);
        let problem = from_document(&document, &compiled).map_err(first)?;
        let mut names = Names::reserving(&["torch", "math", "mask_mod", "score_mod"]);
        let mut printed =
            |name: &str, of: Option<&_>| of.map(|of| print::function(name, of, &mut names, &print::any_range));
        let texts = [printed("mask_mod", problem.mask.as_deref()), printed("score_mod", problem.score.as_deref())];
        let text =
            texts.iter().flatten().fold(String::from("import math\n\nimport torch\n"), |all, one| all + "\n\n" + one);
        Ok(Design {
            name: document.name.clone(),
            text,
            has_mask: texts[0].is_some(),
            has_score: texts[1].is_some(),
            lengths: (problem.q_len, problem.kv_len),
            batch: problem.batch,
            heads: (problem.heads, problem.kv_heads),
            block_size: (problem.block_size.q, problem.block_size.kv),
            scale: problem.scale,
            tensors: Tensors { of: names.tensors },
        })
    })
}

fn first(all: Vec<Diagnostic>) -> Diagnostic {
    let one = all.into_iter().find(Diagnostic::is_error);
    one.unwrap_or_else(|| Diagnostic::error("design", "the design cannot be read"))
}

fn preset_of(name: &str) -> Result<Document, Diagnostic> {
    let found = library::preset(name).ok_or_else(|| {
        Diagnostic::error("unknown-preset", format!("there is no preset `{name}`"))
            .hint("`maskloom presets` lists them; a file's name ends in .json")
    })?;
    found.document().map_err(first)
}

/// The axes with other lengths, where each has one plain segment.
fn with_lengths(axes: &Axes, q_len: usize, kv_len: usize) -> Result<Axes, Diagnostic> {
    let mut new = axes.clone();
    new.q = with_length(&axes.q, q_len)?;
    new.kv = match (&axes.kv, q_len == kv_len) {
        (None, true) => None,
        _ => Some(with_length(axes.kv(), kv_len)?),
    };
    Ok(new)
}

fn with_length(axis: &Axis, tokens: usize) -> Result<Axis, Diagnostic> {
    match &axis.segments[..] {
        [only] if only.grid.len() == 1 => {
            let mut axis = axis.clone();
            axis.segments[0].grid = vec![tokens];
            Ok(axis)
        }
        _ => Err(Diagnostic::error("axis-segments", format!("lengths: the axis `{axis}` has segments and grids"))
            .hint("change the axis in the workbench, or leave lengths out")),
    }
}
