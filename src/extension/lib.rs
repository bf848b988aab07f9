//! The compiled module `maskloom._native` of the Python package.
//!
//! Invariant: Python's lock is never held while something is computed, and a panic becomes an exception. It takes
//! addresses of memory that its caller keeps alive: `python/maskloom` alone calls it, users never do. A leaf: nothing
//! imports it. Must not know PyTorch's objects, the window or the worker.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as extension;
use maskloom_analysis as analysis;
use maskloom_backends as backends;
use maskloom_base as base;
use maskloom_document as document;
use maskloom_ir as ir;
use maskloom_parallel as parallel;
use maskloom_problem as problem;
use maskloom_python as python;

mod attention;
mod blocks;
mod design;
mod explain;
mod guard;
mod kernels;
mod mask;
mod memory;
mod ranks;

use pyo3::prelude::*;

/// What `python/maskloom` calls.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    guard::listen();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Refused", module.py().get_type::<guard::Refused>())?;
    module.add("Panicked", module.py().get_type::<guard::Panicked>())?;
    module.add_class::<mask::Mask>()?;
    module.add_class::<blocks::Blocks>()?;
    module.add_class::<attention::Attention>()?;
    module.add_class::<kernels::Pass>()?;
    module.add_class::<kernels::Launches>()?;
    module.add_class::<design::Design>()?;
    module.add_class::<design::Tensors>()?;
    module.add_function(wrap_pyfunction!(mask::translate, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::build, module)?)?;
    module.add_function(wrap_pyfunction!(attention::prepare, module)?)?;
    module.add_function(wrap_pyfunction!(kernels::forward_pass, module)?)?;
    module.add_function(wrap_pyfunction!(kernels::backward_pass, module)?)?;
    module.add_function(wrap_pyfunction!(kernels::merge_pass, module)?)?;
    module.add_function(wrap_pyfunction!(kernels::block_mask_pass, module)?)?;
    module.add_function(wrap_pyfunction!(design::design, module)?)?;
    module.add_function(wrap_pyfunction!(design::count, module)?)?;
    module.add_function(wrap_pyfunction!(ranks::plan_parallel, module)?)?;
    module.add_function(wrap_pyfunction!(explain::explain, module)?)?;
    module.add_function(wrap_pyfunction!(explain::printed, module)?)?;
    module.add_function(wrap_pyfunction!(explain::picture, module)?)?;
    module.add_function(wrap_pyfunction!(explain::shared_page, module)?)?;
    module.add_function(wrap_pyfunction!(guard::room, module)?)?;
    module.add_function(wrap_pyfunction!(guard::panic_on_purpose, module)?)
}
