//! What leaves Maskloom: trainers' `config.json`, PyTorch modules, block-mask tensors, pictures, reports.
//!
//! Invariant: every export returns bytes and says what they are; nothing here writes a file. Must not know the worker or
//! the window.

mod about;
mod adapters;
pub mod advice;
mod blocks;
pub mod bundle;
pub mod config;
mod json_edit;
pub mod module;
pub mod picture;
mod ranges;
mod report;
mod sidecar;
mod tensors;
pub mod trainer;

pub use blocks::block_mask;
pub use bundle::{Bundle, ExportOptions, export_all, file_stem, preset};
pub use config::{ConfigExport, ConfigRequest, Trainer, config};
pub use module::{ModuleOptions, OtherLengths, torch_module, torch_module_with};
pub use picture::{PictureOptions, picture};
pub use report::report;
pub use sidecar::sidecar;
pub use tensors::tensor_file;

/// A file that an export would write.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportFile {
    /// File name; below the export folder, with `/` where it has a folder of its own.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What it is, in a few words, for the preview.
    pub what: String,
}

impl ExportFile {
    /// A file.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>, what: impl Into<String>) -> ExportFile {
        ExportFile { name: name.into(), bytes: bytes.into(), what: what.into() }
    }
}
