//! The user's own cuDNN: found, loaded, and asked for attention.
//!
//! Invariant: a missing library or symbol is a diagnostic. Must not know block lists.

pub(crate) mod api;
pub(crate) mod library;
pub(crate) mod sdpa;
