//! From one graph to another: simplified, composed, lifted, made approximate.
//!
//! Invariant: what a pass gives means what it was given, but for what its name says. Must not know who asks.

pub mod approximate;
pub mod compose;
pub mod derive;
pub mod difference;
pub mod lift;
pub mod simplify;
pub mod ways;
