//! Exports: trainers' `config.json`, PyTorch modules, block-mask tensors, pictures, reports.
//!
//! Invariant: every export returns bytes with a description; nothing here writes a file. Must not know the worker or
//! the window.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as export;
use maskloom_analysis as analysis;
#[cfg(test)]
use maskloom_backends as backends;
use maskloom_base as base;
use maskloom_document as document;
use maskloom_ir as ir;
use maskloom_problem as problem;
use maskloom_trainers as trainers;

mod about;
mod adapters;
mod blocks;
pub mod bundle;
pub mod figure;
mod following;
mod lines;
pub mod lowered;
pub mod module;
pub mod picture;
mod plate;
mod ranges;
mod recorder;
mod report;
mod share;
mod sidecar;
mod tensors;
#[cfg(test)]
mod torch_gradient_tests;
#[cfg(test)]
mod torch_tests;
#[cfg(test)]
mod width_tests;

pub use crate::base::tensor_file;
pub use crate::base::{ExportFile, ExportKind};
pub use blocks::block_mask;
pub use bundle::{Bundle, ExportOptions, export_all, file_stem, preset};
pub use module::{ModuleOptions, OtherLengths, names, torch_module, torch_module_with};
pub use picture::{PictureOptions, picture};
pub use recorder::{SCRIPT as RECORDER, recorder};
pub use report::{ReportRequest, report};
pub use share::{ShareRequest, share};
pub use sidecar::sidecar;

/// The module of a problem under a separate name, as files by name: the user's own PyTorch runs it in a race.
pub fn module_text(problem: &problem::Problem, name: &str) -> Vec<(String, Vec<u8>)> {
    let options = ModuleOptions { name: name.to_string(), ..ModuleOptions::default() };
    torch_module_with(problem, &options).into_iter().map(|file| (file.name, file.bytes)).collect()
}
