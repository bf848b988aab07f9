//! Where each running window keeps its documents: a folder of its own, locked as long as the window runs.
//!
//! Invariant: no two windows write into one folder; a folder without a lock was left by a window that ended or was killed,
//! and one later window takes it over. Must not know what the files hold.

use crate::base::Diagnostic;
use crate::worker::{files, folders};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const FOLDER: &str = "sessions";
const LOCK: &str = "lock";

/// A folder of one window, and what keeps it locked.
#[derive(Debug)]
pub(super) struct Slot {
    pub folder: PathBuf,
    held: Option<Held>,
}

/// A lock. It ends here, also where a child that is just being started has the file open for a moment.
#[derive(Debug)]
struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        // else it ends with the last that has the file open
        let _ = self.0.unlock();
    }
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

    /// Those that no window holds, oldest first; from here on they are held. Reported: what cannot be looked at, so that the
    /// documents in it are not restored.
    pub(super) fn left(root: &Path, reported: &mut Vec<Diagnostic>) -> Vec<Slot> {
        let all = root.join(FOLDER);
        let found = folders::entries(&all).unwrap_or_else(|why| {
            reported.push(unseen(&all, &why));
            Vec::new()
        });
        let mut free = Vec::new();
        for folder in found {
            // one that another window has just removed is no folder either
            match std::fs::metadata(&folder).and_then(|about| if about.is_dir() { locked(&folder) } else { Ok(None) }) {
                Ok(held @ Some(_)) => free.push(Slot { folder, held }),
                Ok(None) => {}
                Err(e) if files::is_nothing(&e) => {}
                Err(e) => reported.push(unseen(&folder, &e.to_string())),
            }
        }
        free
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

fn unseen(folder: &Path, why: &str) -> Diagnostic {
    let message = format!("documents that an earlier window left in {} are not restored: {why}", folder.display());
    Diagnostic::warning("recovery", message).hint("they stay there; the next start looks again")
}

/// The lock of a folder; None: another window has it. Errors: it cannot be locked, or the file system has no locks (then nothing
/// is ever taken over).
fn locked(folder: &Path) -> std::io::Result<Option<Held>> {
    let file = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Held(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// The same for a folder of our own: without a lock it is used all the same.
fn lock(folder: &Path) -> Option<Held> {
    locked(folder).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is reported.
    fn left(root: &Path) -> Vec<Slot> {
        let mut reported = Vec::new();
        let left = Slot::left(root, &mut reported);
        assert_eq!(reported, []);
        left
    }

    #[test]
    fn what_cannot_be_looked_at_is_told() {
        let home = tempfile::tempdir().unwrap();
        assert!(left(home.path()).is_empty(), "a first start has no folder");
        std::fs::write(home.path().join(FOLDER), "no folder").unwrap();
        let mut reported = Vec::new();
        assert!(Slot::left(home.path(), &mut reported).is_empty());
        assert!(reported.len() == 1 && reported[0].message.contains("not restored"), "{reported:?}");
        std::fs::remove_file(home.path().join(FOLDER)).unwrap();
        // a folder where the lock should be cannot be opened for writing
        std::fs::create_dir_all(home.path().join(FOLDER).join("1").join(LOCK)).unwrap();
        reported.clear();
        assert!(Slot::left(home.path(), &mut reported).is_empty() && reported.len() == 1, "{reported:?}");
        // nor can what is behind a link that leads to itself be told from a folder; a file beside the folders is none
        #[cfg(unix)]
        std::os::unix::fs::symlink("2", home.path().join(FOLDER).join("2")).unwrap();
        std::fs::write(home.path().join(FOLDER).join("3"), "no folder").unwrap();
        reported.clear();
        assert!(Slot::left(home.path(), &mut reported).is_empty());
        assert_eq!(reported.len(), if cfg!(unix) { 2 } else { 1 }, "{reported:?}");
    }

    /// A child has every file of its parent open until its own program begins.
    #[test]
    fn a_folder_is_free_although_a_child_has_its_lock_open() {
        let home = tempfile::tempdir().unwrap();
        let slot = Slot::new(home.path()).unwrap();
        let child = slot.held.as_ref().unwrap().0.try_clone().unwrap();
        drop(slot);
        assert_eq!(left(home.path()).len(), 1);
        drop(child);
    }

    #[test]
    fn a_folder_is_taken_over_only_after_its_window() {
        let home = tempfile::tempdir().unwrap();
        let first = Slot::new(home.path()).unwrap();
        let second = Slot::new(home.path()).unwrap();
        assert_ne!(first.folder, second.folder);
        assert!(left(home.path()).is_empty());
        let place = first.folder.clone();
        drop(first);
        let found = left(home.path());
        assert_eq!(found.iter().map(|slot| &slot.folder).collect::<Vec<_>>(), [&place]);
        assert!(left(home.path()).is_empty(), "one window has it now");
        found.into_iter().for_each(Slot::remove);
        assert!(!place.exists() && second.folder.exists());
    }
}
