//! Exports: trainers' `config.json`, PyTorch modules, block-mask tensors, pictures, reports.
//!
//! Invariant: every export returns bytes with a description; nothing here writes a file. Must not know the worker or
//! the window.

mod about;
mod adapters;
mod blocks;
pub mod bundle;
mod following;
pub mod kernels;
mod kernels_backward;
mod lines;
pub mod module;
pub mod picture;
mod plate;
mod ranges;
mod recorder;
mod report;
mod sidecar;
mod tensors;
#[cfg(test)]
mod torch_gradient_tests;
#[cfg(test)]
mod torch_tests;
#[cfg(test)]
mod width_tests;

pub use crate::base::ExportFile;
pub use blocks::block_mask;
pub use bundle::{Bundle, ExportOptions, export_all, file_stem, preset};
pub use module::{ModuleOptions, OtherLengths, torch_module, torch_module_with};
pub use picture::{PictureOptions, picture};
pub use recorder::{SCRIPT as RECORDER, recorder};
pub use report::{ReportRequest, report};
pub use sidecar::sidecar;
pub use tensors::tensor_file;

/// The module of a problem under a separate name, as files by name: the user's own PyTorch runs it in a race.
pub fn module_text(problem: &crate::problem::Problem, name: &str) -> Vec<(String, Vec<u8>)> {
    let options = ModuleOptions { name: name.to_string(), ..ModuleOptions::default() };
    torch_module_with(problem, &options).into_iter().map(|file| (file.name, file.bytes)).collect()
}
