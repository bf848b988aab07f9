//! From FlexAttention text to one expression graph, and from the graph to values and text.
//!
//! Invariant: one graph defines the mask; picture, block lists, results, kernels and exports come from it. Does no I/O:
//! other files' source arrives through a trait. Must not know about documents, problems or devices.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as python;
use maskloom_base as base;
use maskloom_ir as ir;

mod candidates;
mod diagnose;
mod exports;
pub mod library;
pub mod machine;
mod met;
mod notes;
pub mod outline;
pub(crate) mod prelude;
#[cfg(test)]
mod printed_tests;
mod request;
pub mod surroundings;
mod symbolic;
pub mod syntax;
pub mod tensors;
pub mod trace;
pub mod value;

pub use self::trace::{Arg, Call, Chosen, Limits, ModuleLoader, NoModules, TextSizes, TraceRequest, Traced, trace};
