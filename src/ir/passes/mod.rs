//! Passes from graph to graph: simplification, composition, lifting, approximation, derivatives.
//!
//! Invariant: a pass keeps the graph's meaning, except for the change in its name. Must not know its callers.

pub mod approximate;
pub mod compose;
pub mod derive;
pub mod difference;
pub mod lift;
pub mod simplify;
pub mod ways;
