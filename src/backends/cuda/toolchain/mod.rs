//! From text to machine code: NVRTC found and called, code kept in a cache, read and linked.
//!
//! Invariant: a cubin is of exactly the text and options that its key names. Must not launch anything.

pub(crate) mod backward;
pub(crate) mod cache;
pub(crate) mod compile;
pub(crate) mod eager_backward;
pub(crate) mod elf;
pub(crate) mod library;
pub(crate) mod link;
pub(crate) mod linked;
pub(crate) mod nvrtc;
pub(crate) mod ptxas;
