//! What a file held when it was read or written, so that a save never passes over what another program wrote since.
//!
//! Invariant: two contents are told apart by their hash, never by a time. Must not know the files' meaning.

use crate::base::Diagnostic;
use crate::worker::files;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;

/// The code of the refusal to write over another program's change.
pub const CHANGED_OUTSIDE: &str = "changed-outside";

/// A file's content, as far as it can be told apart from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    bytes: u64,
    hash: String,
}

impl Seen {
    /// Of a content.
    pub fn of(bytes: &[u8]) -> Seen {
        Seen { bytes: bytes.len() as u64, hash: blake3::hash(bytes).to_hex().to_string() }
    }

    /// Of a file that is known to be gone: no content is this.
    pub fn gone() -> Seen {
        Seen { bytes: 0, hash: String::new() }
    }

    /// Of a file as it is now; None: there is none. Errors: it cannot be read.
    pub fn at(path: &Path) -> Result<Option<Seen>, Diagnostic> {
        match std::fs::metadata(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            _ => files::read(path).map(|bytes| Some(Seen::of(&bytes))),
        }
    }
}

/// Writes a file as [`files::save`] does, if it still holds what was `seen` in it or is gone. Without `seen` it is
/// written whatever it holds. Returns what it holds now. Errors: [`CHANGED_OUTSIDE`]; it cannot be written.
pub fn save_over(path: &Path, bytes: &[u8], seen: Option<&Seen>) -> Result<Seen, Diagnostic> {
    let now = if seen.is_some() { Seen::at(path)? } else { None };
    if now.is_some() && now.as_ref() != seen && now != Some(Seen::of(bytes)) {
        let message = format!("{} was changed by another program since it was opened", path.display());
        return Err(Diagnostic::error(CHANGED_OUTSIDE, message)
            .hint("reload it, keep this document and write over it, or save under another name"));
    }
    files::save(path, bytes)?;
    Ok(Seen::of(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_program_wrote_is_not_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        assert_eq!(Seen::at(&path), Ok(None));
        let first = save_over(&path, b"mine", None).unwrap();
        assert_eq!(Seen::at(&path), Ok(Some(first.clone())));
        let second = save_over(&path, b"mine again", Some(&first)).unwrap();
        std::fs::write(&path, "theirs").unwrap();
        let refused = save_over(&path, b"mine at last", Some(&second)).unwrap_err();
        assert_eq!(refused.code, CHANGED_OUTSIDE);
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        // the same content from elsewhere is no loss, and neither is a file that is gone
        std::fs::write(&path, "mine at last").unwrap();
        let third = save_over(&path, b"mine at last", Some(&second)).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(save_over(&path, b"mine at last", Some(&third)), Ok(third));
        // what stands where a file was known to be gone is another program's, also where it is empty
        std::fs::write(&path, "").unwrap();
        let refused = save_over(&path, b"mine", Some(&Seen::gone())).unwrap_err();
        assert_eq!(refused.code, CHANGED_OUTSIDE);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(save_over(&path, b"mine", Some(&Seen::gone())), Ok(Seen::of(b"mine")));
    }
}
