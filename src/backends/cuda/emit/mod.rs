//! From a graph to the CUDA text that NVRTC compiles, and to the bytes of the struct that the text reads.
//!
//! Invariant: the text has the meaning of the interpreter. Must not know its compiler.

pub(crate) mod families;
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
mod spans;
#[cfg(test)]
pub(crate) mod tests;
