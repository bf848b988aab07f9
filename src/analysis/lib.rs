//! The cells that a mask keeps, found from its graph: intervals, block lists, pictures, access patterns.
//!
//! Invariant: exact, without a dense matrix. Must not know documents, problems or devices.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as analysis;
use maskloom_base as base;
use maskloom_ir as ir;

pub mod access;
pub mod block_mask;
pub mod change;
pub mod classify;
pub mod examples;
pub mod intent;
pub mod interval;
pub mod lint;
pub mod lowered;
pub mod promises;
pub mod ranges;
pub mod raster;
pub mod repeats;
pub mod settled;
pub mod spread;
