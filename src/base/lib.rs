//! The common vocabulary of all other modules: spans, diagnostics, lengths, dtypes and host tensors.
//!
//! Invariant: nothing here does I/O or knows about masks. Must not import any other module of the crate.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as base;

pub mod control;
pub mod diagnostic;
pub mod dtype;
pub mod export_file;
pub mod file_dtype;
pub mod float;
pub mod identity;
pub mod kept_path;
pub mod memory;
pub mod names;
pub mod nearest;
pub mod provenance;
pub mod rng;
pub mod shape;
pub mod span;
pub mod tensor;
mod tensor_file;
pub mod words;

pub use control::Control;
pub use diagnostic::{Diagnostic, Label, Rewrite, Severity};
pub use dtype::DType;
pub use export_file::{ExportFile, ExportKind};
pub use identity::Build;
pub use names::{BackendName, Device, Layout};
pub use provenance::Provenance;
pub use shape::{BlockSize, Lengths};
pub use span::{Source, SourceId, Span};
pub use tensor::HostTensor;
pub use tensor_file::{tensor_file, tensor_file_with};
