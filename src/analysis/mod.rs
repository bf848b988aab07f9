//! The cells that a mask keeps, found from its graph: intervals, block lists, pictures, access patterns.
//!
//! Invariant: exact, without a dense matrix. Must not know documents, problems or devices.

pub mod access;
pub mod block_mask;
pub mod change;
pub mod classify;
pub mod examples;
pub mod interval;
pub mod lint;
pub mod ranges;
pub mod raster;
pub mod settled;
