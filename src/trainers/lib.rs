//! Reads the files of trainers and models, and recommends settings for them.
//!
//! Invariant: every statement about a setting was read or measured. Writes nothing.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as trainers;
use maskloom_base as base;
use maskloom_document as document;
use maskloom_problem as problem;

pub mod advice;
pub mod config;
pub mod effects;
mod flat_edit;
pub(crate) mod json_edit;
pub mod known;
pub mod meaning;
pub mod own_masks;
mod programs;
pub mod read;
mod settings_file;

pub use config::{ConfigExport, ConfigRequest, Trainer, config};
