//! From text to machine code: finds and calls NVRTC, caches, reads and links code.
//!
//! Invariant: a cubin belongs to exactly the text and options of its key. Must not launch anything.

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
