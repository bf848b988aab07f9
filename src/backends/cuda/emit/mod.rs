//! From a graph to the CUDA text that NVRTC compiles, and the bytes of the struct that the text reads.
//!
//! Invariant: the text computes what the interpreter does. Must not know who compiles it.

pub(crate) mod fold;
pub(crate) mod functions;
pub(crate) mod gradient;
#[cfg(test)]
mod gradient_tests;
pub(crate) mod hoist;
pub(crate) mod layout;
pub(crate) mod mods;
pub(crate) mod ops;
#[cfg(test)]
pub(crate) mod run_tests;
pub(crate) mod source;
#[cfg(test)]
pub(crate) mod tests;
