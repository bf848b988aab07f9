//! All planning of a launch: the visited tiles, their order, their pieces, and their kept cells.
//!
//! Invariant: every kept cell is visited exactly once. Must not touch a device.

pub(crate) mod bitmap;
pub(crate) mod by_arrival;
pub(crate) mod decode_plan;
pub(crate) mod in_order;
pub(crate) mod kept;
pub(crate) mod of_problem;
mod packed;
pub(crate) mod parts;
pub(crate) mod pieces;
pub(crate) mod plan;
pub(crate) mod ranges;
pub(crate) mod schedule;
pub(crate) mod transposed;
pub(crate) mod words;
