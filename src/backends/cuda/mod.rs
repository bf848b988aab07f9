//! The CUDA backends: the emitter, the compiler's loader, the kernel cache and the device side.
//!
//! Invariant: kernels take only validated problems; whatever traces, compiles; a missing driver or NVRTC is a diagnostic,
//! never a panic. Must not know the worker's protocol or the window.

mod backend;
mod bitmap;
mod bound;
mod bundle;
mod cache;
mod choose;
mod compile;
mod cudnn;
mod cudnn_sdpa;
mod decode;
mod decode_plan;
mod device;
mod driver;
mod eager;
mod elf;
mod emit;
mod emit_ops;
#[cfg(test)]
mod emit_run_tests;
#[cfg(test)]
mod emit_tests;
mod errors;
mod exact;
mod flash;
mod fold;
mod hoist;
mod hopper;
#[cfg(test)]
mod hopper_run_tests;
mod kept;
mod layout;
mod library;
mod library_cudnn;
mod limits;
mod link;
mod linked;
mod map;
mod mods;
mod nvrtc;
mod params;
mod pieces;
mod plan;
mod ptxas;
mod ranges;
mod runner;
mod source;
mod spec;
#[cfg(test)]
mod spill_tests;
mod staged;
mod tensor_map;
mod tensors;

pub use backend::{backend, backends};
pub use bundle::{USUAL_ARCHITECTURES, kernel_bundle};
pub use cache::{Cache, Listed};
pub use compile::{COMPILE_ERROR, Compiled, Compiler, Form, Program, compile, options, program};
pub use device::Gpu;
pub use driver::{GpuInfo, Probe, nvrtc_too_new, probe};
pub use errors::{CONTEXT_LOST, OUT_OF_MEMORY};
pub use library::{Candidate, Places};
pub use limits::Limits;
pub use map::map;
pub use nvrtc::{Nvrtc, nvrtc_for, nvrtc_for_driver};
pub use spec::{Kernel, KernelSpec, MaskKind, ScoreKind};

/// The version of the cuDNN that `sdpa` would use, as `9.19`. Errors: why there is none, and the way to get it.
pub fn cudnn_version() -> Result<String, crate::base::Diagnostic> {
    cudnn::Cudnn::get().map(cudnn::Cudnn::version_text)
}
