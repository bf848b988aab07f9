//! The names of two functions of one file: `FILE.py:MASK,SCORE`, or a file with one mask_mod and one score_mod.
//!
//! Invariant: never one of two names that were given. Must not know files or documents.

use super::out::Failure;
use crate::base::Diagnostic;
use crate::python::outline::{EntryKind, Outline};

/// Whether an entry names the two mods of an exported module.
pub(super) fn is_whole_module(entry: &str) -> bool {
    matches!(split(entry)[..], ["mask_mod", "score_mod"] | ["score_mod", "mask_mod"])
}

fn split(entry: &str) -> Vec<&str> {
    entry.split(',').map(str::trim).collect()
}

/// The two functions that an entry names, or, without an entry, the only two of a text where one is a mask_mod and one a
/// score_mod. None: one function is meant. Errors: the names are not two.
pub(super) fn names<'a>(entry: &'a str, outline: &'a Outline) -> Result<Option<[&'a str; 2]>, Failure> {
    if entry.is_empty() {
        let [first, second] = &outline.entries[..] else { return Ok(None) };
        let one_of_each = matches!(
            (first.kind, second.kind),
            (EntryKind::MaskMod, EntryKind::ScoreMod) | (EntryKind::ScoreMod, EntryKind::MaskMod)
        );
        let meant = one_of_each && first.likely && second.likely;
        return Ok(meant.then_some([first.name.as_str(), second.name.as_str()]));
    }
    match split(entry)[..] {
        [_] => Ok(None),
        [first, second] if !first.is_empty() && !second.is_empty() && first != second => Ok(Some([first, second])),
        _ => {
            let message = format!("`{entry}` does not name two functions");
            let hint = "name one mask_mod and one score_mod: FILE.py:MASK,SCORE; and_masks and or_masks join masks";
            Err(Failure::WrongUse(Diagnostic::error("entry-pair", message).hint(hint)))
        }
    }
}
