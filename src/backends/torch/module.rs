//! The exported module of a problem, written where the Python worker can import it.
//!
//! Invariant: the written module equals a user's export, except for its name, which is unique in the session. Must not
//! know what the worker does with it.

use super::ModuleText;
use super::exchange::Exchange;
use crate::base::Diagnostic;
use crate::problem::Problem;
use std::path::PathBuf;

/// Writes the module and returns its path; None for a problem without mods. `number` makes the name unique.
pub(super) fn write(
    problem: &Problem,
    module_text: ModuleText,
    number: u64,
    exchange: &Exchange,
) -> Result<Option<PathBuf>, Diagnostic> {
    if problem.mask.is_none() && problem.score.is_none() {
        return Ok(None);
    }
    let files = module_text(problem, &format!("maskloom_attention_{number}"));
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    exchange.write_together(&files).map(|paths| paths.into_iter().next())
}
