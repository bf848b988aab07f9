//! The CUDA backends: the emitter, the compiler's loader, the kernel cache and the device side.
//!
//! Invariant: kernels accept only validated problems; every traced mod compiles; a missing driver or NVRTC is a
//! diagnostic, never a panic. Must not know the worker's protocol or the window.

mod backend;
pub mod bundle;
pub(crate) mod choose;
pub(crate) mod cudnn;
pub(crate) mod device;
pub mod embedded;
pub(crate) mod emit;
mod experiment;
mod finer;
#[cfg(test)]
mod golden_tests;
pub(crate) mod launch;
pub(crate) mod lists;
pub mod predict;
#[cfg(test)]
mod spill_tests;
pub(crate) mod toolchain;
pub(crate) mod variant;
pub mod verdict;

pub use self::device::driver::{GpuInfo, Probe, nvrtc_too_new, probe};
pub use self::device::errors::{CONTEXT_LOST, OUT_OF_MEMORY};
pub use self::device::gpu::Gpu;
pub use self::device::nvml::driver_version;
pub use self::launch::map::map;
pub use self::toolchain::cache::{Cache, Listed};
pub use self::toolchain::compile::{COMPILE_ERROR, Compiled, Compiler, Form, Program, compile, options, program};
pub use self::toolchain::library::{Candidate, Places};
pub use self::toolchain::nvrtc::{Nvrtc, nvrtc_for, nvrtc_for_driver};
pub use self::variant::arch::Arch;
pub use self::variant::limits::Limits;
pub use self::variant::spec::{Kernel, KernelSpec, MaskKind, ScoreKind};
pub use backend::{backend, backends};

/// The version of the cuDNN that `sdpa` would use, as `9.19`. Errors: the reason why there is none, and a fix.
pub fn cudnn_version() -> Result<String, crate::base::Diagnostic> {
    cudnn::api::Cudnn::get().map(cudnn::api::Cudnn::version_text)
}
