//! The CUDA backends: the emitter, the compiler's loader, the kernel cache and the device side.
//!
//! Invariant: kernels take only validated problems; whatever traces, compiles; a missing driver or NVRTC is a diagnostic,
//! never a panic. Must not know the worker's protocol or the window.

mod cache;
mod choose;
mod compile;
mod emit;
mod emit_ops;
#[cfg(test)]
mod emit_tests;
mod layout;
mod library;
mod mods;
mod nvrtc;
mod plan;
mod ptxas;
mod source;
mod spec;

pub use cache::{Cache, Listed};
pub use compile::{COMPILE_ERROR, Compiled, Compiler, Program, compile, options};
pub use library::{Candidate, Places};
pub use nvrtc::Nvrtc;
pub use spec::{Kernel, KernelSpec, Limits, MaskKind, ScoreKind};
