//! The exported module of a problem, written where the Python worker can import it.
//!
//! Invariant: what is written is what a user exports, but for its name, which no earlier module of the session had. Must
//! not know what the worker does with it.

use super::exchange::Exchange;
use crate::base::Diagnostic;
use crate::export::{ModuleOptions, torch_module_with};
use crate::problem::Problem;
use std::path::PathBuf;

/// Writes the module and gives its path; None for a problem without mods. `number` tells it from others.
pub(super) fn write(problem: &Problem, number: u64, exchange: &Exchange) -> Result<Option<PathBuf>, Diagnostic> {
    if problem.mask.is_none() && problem.score.is_none() {
        return Ok(None);
    }
    let options = ModuleOptions { name: format!("maskloom_attention_{number}"), ..ModuleOptions::default() };
    let files = torch_module_with(problem, &options);
    let files: Vec<(&str, &[u8])> = files.iter().map(|f| (f.name.as_str(), f.bytes.as_slice())).collect();
    exchange.write_together(&files).map(|paths| paths.into_iter().next())
}
