//! Masks and score mods from recordings.
//!
//! Invariant: a recording is text of single operations in the language that `python` traces, so that a recorded
//! function and a written one have the same meaning. Must not know how it was recorded.

use super::guard::{computed, refused};
use super::memory::{self, Given};
use crate::base::{Diagnostic, HostTensor, Source};
use crate::ir::graph::{Input, Mod, ModKind};
use crate::python::{Call, TraceRequest, trace};
use pyo3::prelude::*;
use std::sync::Arc;

/// A traced mod.
#[pyclass(frozen, module = "maskloom._native")]
pub(super) struct Mask {
    pub(super) of: Arc<Mod>,
}

impl Drop for Mask {
    /// A training makes such a mask in each step: the memory of its tensors is the next one's.
    fn drop(&mut self) {
        if let Some(own) = Arc::get_mut(&mut self.of) {
            let graph = std::mem::take(&mut own.graph);
            graph.into_tensors().filter_map(HostTensor::into_data).for_each(memory::spare);
        }
    }
}

#[pymethods]
impl Mask {
    /// Names of the captured tensors, in their order.
    fn captures(&self) -> Vec<String> {
        self.of.graph.captures().iter().map(|c| c.name.clone()).collect()
    }

    /// Whether its cells differ between batch entries, and between heads.
    fn depends(&self) -> (bool, bool) {
        let depends = self.of.depends();
        (depends.on(Input::B), depends.on(Input::H))
    }

    /// The same mod over other tensors of the same shapes and dtypes, in the order of `captures`.
    fn rebound(&self, py: Python<'_>, tensors: Vec<Given>) -> PyResult<Mask> {
        computed(py, || {
            let tensors = tensors.into_iter().map(memory::tensor).collect::<Result<Vec<_>, _>>()?;
            let graph = self.of.graph.rebound(tensors).map_err(|why| Diagnostic::error("recording", why))?;
            let of = Mod { kind: self.of.kind, graph, root: self.of.root, sources: self.of.sources.clone() };
            Ok(Mask { of: Arc::new(of) })
        })
    }
}

/// The mod of a recording: its text, in which `recorded` is the function, and the tensors that it names.
#[pyfunction]
pub(super) fn translate(
    py: Python<'_>,
    text: String,
    score: bool,
    names: Vec<String>,
    tensors: Vec<Given>,
) -> PyResult<Mask> {
    let kind = if score { ModKind::Score } else { ModKind::Mask };
    let traced = computed(py, || {
        let tensors = tensors.into_iter().map(memory::tensor).collect::<Result<Vec<_>, _>>()?;
        let mut request = TraceRequest::new(Source::new("recording", text), "recorded", kind);
        request.globals = names.into_iter().zip(tensors).collect();
        request.call = Call::Mod;
        Ok(trace(&request))
    })?;
    // PyTorch refuses a mask_mod that returns ints, which text may have
    let fatal = |reported: &Diagnostic| reported.is_error() || reported.code == "mask-not-bool";
    match (traced.diagnostics.iter().find(|reported| fatal(reported)), traced.result) {
        (None, Some(of)) => Ok(Mask { of: Arc::new(of) }),
        (Some(reported), _) => Err(refused(reported)),
        (None, None) => Err(refused(&Diagnostic::error("recording", "the recording could not be read"))),
    }
}
