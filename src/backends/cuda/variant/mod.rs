//! The kernel variant of a problem: a pure choice from shapes, mask, score and the device's limits.
//!
//! Invariant: the same problem and limits give the same variant. Must not touch a device.

pub(crate) mod arch;
pub(crate) mod backward;
pub(crate) mod bound;
pub(crate) mod exact;
pub(crate) mod limits;
pub(crate) mod spec;
mod tiles;
