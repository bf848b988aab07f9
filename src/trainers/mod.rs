//! Trainers' and models' own files, read, and advice on what to set in them.
//!
//! Invariant: nothing is said of a setting that was not read or measured. Writes nothing.

pub mod advice;
pub mod config;
mod flat_edit;
pub(crate) mod json_edit;
pub mod read;
mod settings_file;

pub use config::{ConfigExport, ConfigRequest, Trainer, config};
