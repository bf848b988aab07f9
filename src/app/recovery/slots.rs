//! Where each running window keeps its documents: a folder of its own, locked as long as the window runs.
//!
//! Invariant: no two windows write into one folder; a folder without a lock was left by a window that ended or was killed,
//! and one later window takes it over. Must not know what the files hold.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const FOLDER: &str = "sessions";
const LOCK: &str = "lock";

/// A folder of one window, and what keeps it locked.
#[derive(Debug)]
pub(super) struct Slot {
    pub folder: PathBuf,
    held: Option<File>,
}

impl Slot {
    /// A new one below `root`.
    pub(super) fn new(root: &Path) -> std::io::Result<Slot> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        // names sort by their beginning; processes and windows of one process differ
        let all = root.join(FOLDER);
        std::fs::create_dir_all(&all)?;
        for number in 0.. {
            let folder = all.join(format!("{now:020}-{}-{number}", std::process::id()));
            match std::fs::create_dir(&folder) {
                Ok(()) => return Ok(Slot { held: lock(&folder), folder }),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        unreachable!("some number is free")
    }

    /// Those that no window holds, oldest first; from here on they are held.
    pub(super) fn left(root: &Path) -> Vec<Slot> {
        let Ok(found) = std::fs::read_dir(root.join(FOLDER)) else { return Vec::new() };
        let mut folders: Vec<PathBuf> = found.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.is_dir()).collect();
        folders.sort_unstable();
        let free = |folder: PathBuf| lock(&folder).map(|file| Slot { folder, held: Some(file) });
        folders.into_iter().filter_map(free).collect()
    }

    /// Another window may take it over.
    pub(super) fn release(&mut self) {
        self.held = None;
    }

    /// The window goes on with it.
    pub(super) fn hold(&mut self) {
        if self.held.is_none() {
            self.held = lock(&self.folder);
        }
    }

    /// Removes it with all that it holds.
    pub(super) fn remove(self) {
        // what cannot be removed is found again by the next window
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The lock of a folder; None: another window has it, or the file system has no locks (then nothing is ever taken over).
fn lock(folder: &Path) -> Option<File> {
    let file = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK)).ok()?;
    match file.try_lock() {
        Ok(()) => Some(file),
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_taken_over_only_after_its_window() {
        let home = tempfile::tempdir().unwrap();
        let first = Slot::new(home.path()).unwrap();
        let second = Slot::new(home.path()).unwrap();
        assert_ne!(first.folder, second.folder);
        assert!(Slot::left(home.path()).is_empty());
        let place = first.folder.clone();
        drop(first);
        let left = Slot::left(home.path());
        assert_eq!(left.iter().map(|slot| &slot.folder).collect::<Vec<_>>(), [&place]);
        assert!(Slot::left(home.path()).is_empty(), "one window has it now");
        left.into_iter().for_each(Slot::remove);
        assert!(!place.exists() && second.folder.exists());
    }
}
