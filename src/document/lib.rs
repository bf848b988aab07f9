//! The document that the user edits and saves, its compilation to mods and a problem, and undo.
//!
//! Invariant: the document alone defines the mask; all other data is derived and can be rebuilt. Does no I/O: linked
//! files arrive through a trait. Must not know devices, the worker or the window.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as document;
use maskloom_analysis as analysis;
use maskloom_base as base;
use maskloom_ir as ir;
use maskloom_problem as problem;
use maskloom_python as python;

pub mod axis;
mod binding;
pub use binding::{attribute_of, find_segment};
mod code;
pub mod compile;
pub mod controls;
pub mod edit;
pub mod environment;
pub mod file;
pub mod heads;
pub mod history;
pub mod joining;
mod labels;
pub mod library;
#[cfg(test)]
mod lint_tests;
pub mod model;
pub mod page;
mod painted;
pub mod pasted;
#[cfg(test)]
mod pasted_tests;
#[cfg(test)]
mod pattern_tests;
pub mod reorder;
pub mod resize;
pub mod scaling;
mod schema;
mod schema_parts;
pub mod shapes;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod title;
mod to_problem;
mod tree;

pub use to_problem::from_document;
