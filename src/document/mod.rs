//! The document that the user edits and saves, its compilation to mods and a problem, and undo.
//!
//! Invariant: the document alone defines the mask; all other data is derived and can be rebuilt. Does no I/O: linked
//! files arrive through a trait. Must not know devices, the worker or the window.

pub mod axis;
mod binding;
pub(crate) use binding::{attribute_of, find_segment};
mod code;
pub mod compile;
pub mod controls;
pub mod edit;
pub mod environment;
pub mod file;
pub mod heads;
pub mod history;
pub(crate) mod joining;
pub mod library;
#[cfg(test)]
mod lint_tests;
pub mod model;
mod painted;
pub mod pasted;
#[cfg(test)]
mod pattern_tests;
pub mod resize;
pub mod scaling;
mod shape;
pub mod shapes;
#[cfg(test)]
pub(crate) mod testing;
mod to_problem;

pub use to_problem::from_document;
