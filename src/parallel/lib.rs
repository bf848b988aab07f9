//! Plans of attention over several GPUs: which rank computes which query blocks, and which keys travel.
//!
//! Invariant: exact. The cells of all ranks' local masks are the cells of the mask, and none is computed twice. A plan
//! is the same for the same input. Must not know PyTorch, devices, documents or the window.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as parallel;
use maskloom_analysis as analysis;
use maskloom_base as base;
use maskloom_ir as ir;
use maskloom_problem as problem;

pub mod cost;
pub mod figures;
pub mod json;
pub mod links;
pub mod local;
pub mod needs;
pub mod paths;
pub mod plan;
pub mod request;
pub mod rivals;
pub mod rows;
pub mod samples;
mod search;
pub mod split;

#[cfg(test)]
mod tests;
