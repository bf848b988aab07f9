//! Plans of attention over several ranks: a request in, a plan out, both as JSON.
//!
//! Invariant: the same request gives the same text. Must not know torch.distributed.

use super::guard::computed;
use crate::parallel::json;
use crate::parallel::plan::Plan;
use pyo3::prelude::*;

/// The plan of a request, as `maskloom parallel --request F --json` prints it, without the divisions of others.
#[pyfunction]
pub(super) fn plan_parallel(py: Python<'_>, request: String) -> PyResult<String> {
    computed(py, || {
        let request = json::request(&request)?;
        Ok(json::plan(&request, &Plan::new(&request)).to_string())
    })
}
