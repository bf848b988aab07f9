//! Results of a sweep as they come, in a file that a later sweep takes up.
//!
//! Invariant: a result is on the disk before it counts; half a line (a kill, a power cut) is passed over; a point is known by its
//! whole request but its device, so that a changed sweep takes nothing of another. Must not know how points are run.

use crate::base::{Device, Diagnostic};
use crate::worker::files;
use crate::worker::protocol::RunRequest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A point that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The point.
    pub key: String,
    /// Its rows.
    pub rows: Vec<Value>,
    /// Whether every backend was right.
    pub right: bool,
    /// What went wrong, a backend each.
    #[serde(default)]
    pub why: Vec<String>,
}

/// The file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// What it has.
    pub known: BTreeMap<String, Done>,
}

/// Whether this may be a line of ours that was not written to its end: its beginning, or bytes that a power cut left empty.
fn is_part(line: &[u8]) -> bool {
    const BEGIN: &[u8] = b"{\"key\":\"";
    let is_whole = serde_json::from_slice::<Value>(line).is_ok();
    (BEGIN.starts_with(line) || line.starts_with(BEGIN)) && !is_whole || line.iter().all(|byte| *byte == 0)
}

/// The name of a point: the same on every machine.
pub fn key(request: &RunRequest) -> String {
    let same = RunRequest { device: Device::Cpu, ..request.clone() };
    name(&serde_json::to_vec(&same).unwrap_or_default())
}

/// The name of what these bytes say.
pub fn name(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_string()
}

impl Journal {
    /// Opens or makes it, for this process alone. Errors: it cannot be written, another process has it, or it is another file.
    pub fn open(path: &Path) -> Result<Journal, Diagnostic> {
        let cannot = |e: std::io::Error| files::cannot_write(path, &e);
        let (mut file, text) = files::open_to_add(path, |file| match file.try_lock() {
            Err(std::fs::TryLockError::WouldBlock) => {
                let message = format!("another sweep writes to {}", path.display());
                Err(Diagnostic::error("journal-busy", message).hint("wait for it, or give another --journal"))
            }
            _ => Ok(()),
        })?;
        let mut known = BTreeMap::new();
        let mut others = false;
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice::<Done>(line) {
                Ok(done) => drop(known.insert(done.key.clone(), done)),
                Err(_) => others |= !is_part(line),
            }
        }
        // one line of another program is a whole file too, and nobody wants results behind it
        if others && known.is_empty() {
            let message = format!("{} is no journal of a sweep", path.display());
            return Err(Diagnostic::error("journal-other", message).hint("name a new file"));
        }
        // behind half a line begins a new one
        if text.last().is_some_and(|byte| *byte != b'\n') {
            file.write_all(b"\n").map_err(cannot)?;
        }
        Ok(Journal { path: path.to_path_buf(), file, known })
    }

    /// Adds a point. Errors: it cannot be written.
    pub fn add(&mut self, done: &Done) -> Result<(), Diagnostic> {
        let mut line = serde_json::to_vec(done)
            .map_err(|e| Diagnostic::error("journal-write", format!("a point cannot be written: {e}")))?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        written.map_err(|e| files::cannot_write(&self.path, &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(key: &str) -> Done {
        Done { key: key.into(), rows: vec![serde_json::json!({"median_ms": 1.5})], right: true, why: Vec::new() }
    }

    #[test]
    fn a_journal_is_taken_up_behind_half_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut first = Journal::open(&path).unwrap();
        first.add(&done("a")).unwrap();
        assert_eq!(Journal::open(&path).unwrap_err().code, "journal-busy");
        drop(first);
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"key\":\"b\",").unwrap();
        let mut second = Journal::open(&path).unwrap();
        assert_eq!(second.known.keys().collect::<Vec<_>>(), ["a"]);
        second.add(&done("c")).unwrap();
        drop(second);
        assert_eq!(Journal::open(&path).unwrap().known.values().cloned().collect::<Vec<_>>(), [done("a"), done("c")]);
    }

    #[test]
    fn another_file_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.jsonl");
        for theirs in [
            "my notes\nof today",
            "{\"text\": \"a data set of one line\"}",
            "one line",
            "{\"key\":\"a\",\"value\":1}\n",
        ] {
            std::fs::write(&path, theirs).unwrap();
            assert_eq!(Journal::open(&path).unwrap_err().code, "journal-other", "{theirs}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), theirs);
        }
        for ours in ["", "{\"k", "{\"key\":\"ab", "\0\0\0"] {
            std::fs::write(&path, ours).unwrap();
            assert!(Journal::open(&path).unwrap().known.is_empty(), "{ours:?}");
        }
    }

    /// A device never ends, and a file may state any length.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_has_no_end_is_no_journal() {
        let folder = tempfile::tempdir().unwrap();
        let (zero, large) = (folder.path().join("zero.jsonl"), folder.path().join("large.jsonl"));
        std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
        File::create(&large).unwrap().set_len(1 << 40).unwrap();
        let code = |path: &Path| Journal::open(path).unwrap_err().code;
        assert_eq!((code(&zero), code(Path::new("/dev/full"))), ("not-a-file".into(), "not-a-file".into()));
        assert_eq!((code(&large), code(folder.path())), ("file-too-large".into(), "cannot-write".into()));
    }
}
