//! All planning of a launch: which tiles are visited, in which order, cut where, and which of their cells are kept.
//!
//! Invariant: every kept cell is visited exactly once. Must not touch a device.

pub(crate) mod bitmap;
pub(crate) mod decode_plan;
pub(crate) mod kept;
pub(crate) mod of_problem;
pub(crate) mod pieces;
pub(crate) mod plan;
pub(crate) mod ranges;
pub(crate) mod transposed;
