//! Files and folders that exist only while something is saved: how they are named, held and cleared away.
//!
//! Invariant: who makes one holds its lock until it is renamed or removed, and a lock ends with its process. What bears such a
//! name and is not locked was left by a killed run, and is removed at the next save into its folder. Must not know what is
//! saved.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How the names begin; [`RANDOM`] letters and digits follow.
const PREFIX: &str = ".maskloom-";
/// See [`PREFIX`].
const RANDOM: usize = 6;
/// Attempts to make one before another process removes it.
const ATTEMPTS: usize = 8;

/// A new file in a folder, locked.
pub fn file_in(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    sweep_once(folder);
    for _ in 0..ATTEMPTS {
        let made = builder(0o666).tempfile_in(folder)?;
        // a file system without locks has no other process that could take it for a leftover
        let locked = made.as_file().lock();
        if locked.is_err() || made.path().exists() {
            return Ok(made);
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

/// A new folder in a folder, and what keeps it locked.
pub fn folder_in(folder: &Path) -> std::io::Result<(tempfile::TempDir, Option<File>)> {
    sweep_once(folder);
    for _ in 0..ATTEMPTS {
        let made = builder(0o777).tempdir_in(folder)?;
        let held = File::open(made.path()).ok().filter(|handle| handle.lock().is_ok());
        if held.is_none() || made.path().exists() {
            return Ok((made, held));
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

/// As an ordinary new file or folder: the user's umask takes its share.
fn builder(mode: u32) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).rand_bytes(RANDOM);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    builder
}

/// The first save into a folder clears away what killed runs left in it.
fn sweep_once(folder: &Path) {
    static SWEPT: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    let whole = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if swept.get_or_insert_default().insert(whole) {
        drop(swept);
        sweep(folder);
    }
}

/// Removes what killed runs left in a folder; what cannot be removed stays.
pub fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if !is_ours(&entry.file_name().to_string_lossy()) || entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            continue;
        }
        let path = entry.path();
        let Ok(handle) = File::open(&path) else { continue };
        match handle.try_lock() {
            Ok(()) => {
                let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

fn is_ours(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.len() == RANDOM && rest.bytes().all(|letter| letter.is_ascii_alphanumeric()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn leftovers_go_and_what_is_held_or_has_another_name_stays() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        std::fs::write(at(".maskloom-eR0rYt"), "left").unwrap();
        std::fs::create_dir_all(at(".maskloom-abc123/new/sidecar")).unwrap();
        std::fs::write(at(".maskloom-abc123/new/sidecar/a.py"), "left").unwrap();
        for name in [".maskloom-notes", ".maskloom-eR0rY!", "maskloom-eR0rYt", ".maskloom-long123"] {
            std::fs::write(at(name), "the user's").unwrap();
        }
        std::os::unix::fs::symlink(at("maskloom-eR0rYt"), at(".maskloom-linked")).unwrap();
        let (file, (folder, held)) = (file_in(home.path()).unwrap(), folder_in(home.path()).unwrap());
        assert!(held.is_some());
        sweep(home.path());
        assert!(file.path().exists() && folder.path().exists(), "what a running save holds stays");
        drop((file, held));
        sweep(home.path());
        let mut left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        let users = [".maskloom-eR0rY!", ".maskloom-linked", ".maskloom-long123", ".maskloom-notes", "maskloom-eR0rYt"];
        // `notes` has five letters, `linked` is a link
        assert_eq!(left, users);
    }
}
