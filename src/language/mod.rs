//! From FlexAttention text to one expression graph, and from the graph to values and text.
//!
//! Invariant: one graph is the mask; picture, block lists, results, kernels and exports come from it. Does no I/O: other
//! files' source arrives through a trait. Must not know about documents, problems or devices.

pub mod approximate;
pub mod builtins;
mod candidates;
pub mod compose;
mod diagnose;
mod entry;
pub mod eval;
mod given;
pub mod graph;
pub mod host;
pub mod interpret;
pub mod lift;
mod met;
mod notes;
pub mod outline;
pub(crate) mod prelude;
pub mod print;
pub mod random;
mod result;
pub mod schedule;
pub mod simplify;
pub mod steps;
mod symbolic;
pub mod syntax;
pub mod trace;
pub mod value;
pub mod vector;

pub use trace::{Arg, Call, Chosen, Limits, ModuleLoader, NoModules, TextSizes, TraceRequest, Traced, trace};
