//! Maskloom: a workbench for attention masks.
//!
//! Owns the module list. The order below is the layering: a module imports only from those above it, `app` and
//! `cli` never import each other, and `tests/integration/layering.rs` fails on a violation.

pub mod analysis;
pub mod app;
pub mod backends;
pub mod base;
pub mod cli;
pub mod document;
pub mod export;
#[cfg(test)]
#[path = "../tests/golden/mod.rs"]
mod golden;
pub mod ir;
pub mod problem;
pub mod python;
pub mod quality;
pub mod service;
pub mod trainers;
