//! The user's own cuDNN: finding it, loading it, and computing attention with it.
//!
//! Invariant: a missing library or symbol is a diagnostic. Must not know block lists.

pub(crate) mod api;
pub(crate) mod library;
pub(crate) mod sdpa;
