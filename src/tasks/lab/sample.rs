//! A capture that ships with Maskloom, for users without one.
//!
//! Invariant: the file is written completely, and again if it differs from the shipped one. Must not know who opens it.

use crate::base::Diagnostic;
use crate::export::{ExportFile, ExportKind};
use crate::worker::{files, folders};
use std::path::{Path, PathBuf};

/// Two layers of a small causal language model on 512 bytes of source text; `tests/data/captures/README.md` describes
/// its training.
const SAMPLE: &[u8] = include_bytes!("../../../tests/data/captures/lm.safetensors");
/// Its name among the user's data.
const NAME: &str = "small_language_model.safetensors";

/// Its path; writes it there first if it is missing. Errors: it cannot be written.
pub fn sample() -> Result<PathBuf, Diagnostic> {
    let folder = folders::samples().ok_or_else(|| {
        Diagnostic::error("no-folder", "this system has no folder for the data of programs")
            .hint("set XDG_DATA_HOME, or open a capture of your own")
    })?;
    sample_in(&folder)
}

/// The same as a file to be placed, under the name that the guide calls it by.
pub fn sample_file() -> ExportFile {
    ExportFile::new(
        ExportKind::Recorder,
        "lm.safetensors",
        SAMPLE,
        "q, k and v of two layers of a small language model",
    )
}

fn sample_in(folder: &Path) -> Result<PathBuf, Diagnostic> {
    let path = folder.join(NAME);
    if files::read(&path).is_ok_and(|there| there == SAMPLE) {
        return Ok(path);
    }
    files::save_under(folder, NAME, SAMPLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::lab;

    #[test]
    fn the_sample_is_written_once_mended_and_opens() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("samples");
        let path = sample_in(&folder).expect("written");
        assert_eq!(lab::open(&path).expect("a capture").calls().len(), 2);
        std::fs::write(&path, "half").expect("written");
        assert_eq!(sample_in(&folder).expect("again"), path);
        assert_eq!(std::fs::read(&path).expect("there"), SAMPLE);
    }
}
