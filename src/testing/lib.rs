//! What tests of all crates share: requirements that may be missing, kept cases of property tests, golden texts, names of variants.
//!
//! Invariant: a dependency of tests alone; no program links it. Must not know any other crate.

pub mod cases;
pub mod golden;
pub mod names;
pub mod needs;

use std::path::PathBuf;

/// The root of the repository, from which tests read their data.
pub fn repository() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}
