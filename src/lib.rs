//! Maskloom: a workbench for attention masks.
//!
//! Owns the command line and names the crates below it; Cargo is the table of layers: a crate imports only what its
//! Cargo.toml names. `app` (the window) and `cli` never import each other.

pub mod cli;
pub use maskloom_analysis as analysis;
pub use maskloom_backends as backends;
pub use maskloom_base as base;
pub use maskloom_document as document;
pub use maskloom_export as export;
pub use maskloom_ir as ir;
pub use maskloom_problem as problem;
pub use maskloom_python as python;
pub use maskloom_quality as quality;
pub use maskloom_service as service;
pub use maskloom_trainers as trainers;
