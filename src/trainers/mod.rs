//! Reads the files of trainers and models, and recommends settings for them.
//!
//! Invariant: every statement about a setting was read or measured. Writes nothing.

pub mod advice;
pub mod config;
mod flat_edit;
pub(crate) mod json_edit;
pub mod read;
mod settings_file;

pub use config::{ConfigExport, ConfigRequest, Trainer, config};
