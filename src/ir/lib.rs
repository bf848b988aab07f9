//! The expression graph of a mask or score mod, and all code that needs only the graph.
//!
//! Invariant: one graph defines the mask; picture, block lists, results, kernels and exports come from it. Must not
//! know Python, documents, problems or devices.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as ir;
use maskloom_base as base;

pub mod bounds;
pub mod cell;
pub mod graph;
pub mod made;
pub mod ops;
pub mod passes;
pub mod print;
pub mod random;
pub mod schedule;
pub mod steps;
pub mod text;
pub mod tiles;
