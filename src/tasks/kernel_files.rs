//! The kernel bundle for an export, compiled here.
//!
//! Invariant: it uses the NVRTC and the cache of runs; no GPU is needed. Must not know its callers.

use crate::backends::cuda::bundle::{BundleRequest, kernel_bundle};
use crate::backends::cuda::{self, Cache, Nvrtc};
use crate::base::Diagnostic;
use crate::export::ExportFile;
use crate::problem::Problem;

pub use crate::backends::cuda::bundle::USUAL_ARCHITECTURES;

/// The files that let PyTorch run our kernel for a problem, for each architecture (`sm_80`, `sm_90a`, ...). Errors: no
/// NVRTC, the kernel's refusal, the compiler's message.
pub fn kernel_files(
    problem: &Problem,
    stem: &str,
    archs: &[&str],
    deterministic: bool,
) -> Result<Vec<ExportFile>, Diagnostic> {
    let nvrtc = match cuda::probe().driver {
        Some(driver) => cuda::nvrtc_for_driver(driver),
        None => Nvrtc::get(),
    }?;
    let names = crate::export::names(problem);
    let request = BundleRequest { stem, names: &names, archs, deterministic };
    kernel_bundle(problem, request, nvrtc, Cache::user().as_ref())
}
