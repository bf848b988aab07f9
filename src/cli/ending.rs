//! The endings of files that a command writes.
//!
//! Invariant: a file's bytes are what its ending says. Another ending is refused before anything is computed; a name without
//! one says nothing, and `/dev/stdout` is such a name. Must not know formats.

use clap::builder::{PathBufValueParser, TypedValueParser};
use std::path::{Path, PathBuf};

/// Reads the path of a file with one of these endings.
pub(super) fn one_of(known: &'static [&'static str]) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(move |path| match of(&path) {
        Some(ending) if !known.contains(&ending.as_str()) => {
            let known: Vec<String> = known.iter().map(|ending| format!(".{ending}")).collect();
            Err(format!("no .{ending} file is written here; the ending is {}", known.join(" or ")))
        }
        _ => Ok(path),
    })
}

/// A path's ending in small letters.
pub(super) fn of(path: &Path) -> Option<String> {
    Some(path.extension()?.to_string_lossy().to_lowercase())
}
