//! Reads and writes files without ever losing data: written under another name, flushed, and renamed into place.
//!
//! Invariant: a failed save leaves the old file complete and no other file; what a killed one leaves beside it is removed
//! later (`leftovers`); every failure is a diagnostic that names
//! the file. Must not know the files' meaning.

use crate::backends::room;
use crate::base::Diagnostic;
use crate::worker::leftovers;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Largest text file read: a document with painted strokes and captured tensors stays far below.
pub const MAX_TEXT: u64 = 1 << 30;
/// Largest file of another kind that is read whole.
const MAX_BYTES: u64 = 16 << 30;

/// Writes a file whole or not at all. Things that are no plain files (`/dev/stdout`) are written straight.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    // a link stays a link: its target is replaced
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    match std::fs::metadata(&path) {
        Ok(meta) if meta.is_dir() => Err(is_a_folder(&path)),
        Ok(meta) if is_pipe(&meta) && !has_a_reader(&path) => {
            Err(Diagnostic::error("cannot-write", format!("{} is a pipe from which nothing reads", path.display()))
                .hint("start its reader first, or give the name of a file"))
        }
        Ok(meta) if !meta.is_file() => write_straight(&path, bytes).map_err(|e| cannot_write(&path, &e)),
        _ => replace(&path, bytes).map_err(|e| cannot_write(&path, &e)),
    }
}

/// Whether a file could be saved here now, before work of hours whose results it is for. Errors: as of [`save`].
pub fn can_save(path: &Path) -> Result<(), Diagnostic> {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    match std::fs::metadata(&path) {
        Ok(meta) if meta.is_dir() => Err(is_a_folder(&path)),
        // opened and closed it would end a reader that waits
        Ok(meta) if !meta.is_file() => Ok(()),
        Ok(meta) if meta.permissions().readonly() => Err(cannot_write(&path, &ErrorKind::PermissionDenied.into())),
        _ => leftovers::file_in(folder_of(&path)).map(drop).map_err(|e| cannot_write(&path, &e)),
    }
}

fn is_a_folder(path: &Path) -> Diagnostic {
    Diagnostic::error("cannot-write", format!("{} is a folder", path.display())).hint("give the name of a file")
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file and first makes the folders above it.
pub fn save_with_folders(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|e| cannot_write(parent, &e))?;
    }
    save(path, bytes)
}

/// The same for a file of this name in a folder. Gives its path.
pub fn save_under(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, Diagnostic> {
    let path = folder.join(name);
    save_with_folders(&path, bytes)?;
    Ok(path)
}

/// Opening a pipe without one would wait for ever.
#[cfg(unix)]
fn has_a_reader(pipe: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(pipe).is_ok()
}

#[cfg(not(unix))]
fn has_a_reader(_: &Path) -> bool {
    true
}

fn write_straight(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(bytes)?;
    file.flush()
}

/// Written beside its place, flushed, and renamed.
pub fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = folder_of(path);
    let mut beside = leftovers::file_in(folder)?;
    beside.write_all(bytes)?;
    if let Ok(old) = std::fs::metadata(path) {
        // a rename would pass over a file that the user protected
        if old.permissions().readonly() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        beside.as_file().set_permissions(old.permissions())?;
    }
    beside.as_file().sync_all()?;
    beside.persist(path).map_err(|e| e.error)?;
    flush_folder(folder);
    Ok(())
}

/// After a power cut the renamed files are there. A folder that cannot be flushed is no failure: its files are written.
pub fn flush_folder(folder: &Path) {
    if cfg!(unix) {
        let _ = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
    }
}

/// Why a file or folder cannot be written.
pub fn cannot_write(path: &Path, error: &std::io::Error) -> Diagnostic {
    let shown = path.display();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Diagnostic::error("disk-full", format!("cannot write {shown}: no space left on the disk"))
                .hint("free some space or save elsewhere; the old file is unchanged")
        }
        ErrorKind::NotFound => Diagnostic::error("cannot-write", format!("cannot write {shown}: no such folder"))
            .hint("create the folder first, or save elsewhere"),
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory if path.ancestors().any(Path::is_file) => {
            Diagnostic::error("cannot-write", format!("cannot write {shown}: a file stands where a folder is needed"))
                .hint("move it away, or save elsewhere")
        }
        _ => {
            // the name of the file beside it says nothing to anybody
            let error = error.to_string();
            let error = error.split(" at path \"").next().unwrap_or_default();
            Diagnostic::error("cannot-write", format!("cannot write {shown}: {error}"))
                .hint("check the permissions, or save elsewhere; the old file is unchanged")
        }
    }
}

/// What may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinds {
    /// Files on a disk.
    Files,
    /// And pipes that the shell has opened for this process: `<(...)` and `/dev/stdin`. A named pipe could be waited for
    /// for ever.
    GivenPipes,
}

/// Bytes of a file. Errors: not there, no file (a device, a pipe, a folder), above 16 GiB.
pub fn read(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    read_within(path, Kinds::GivenPipes, MAX_BYTES)
}

/// A file to read from here and there, and its length in bytes. Errors: as of [`read`].
pub fn open(path: &Path) -> Result<(std::fs::File, u64), Diagnostic> {
    let file = opened(path, Kinds::Files)?;
    let length = file.metadata().map_err(|e| cannot_read(path, &e))?.len();
    Ok((file, length))
}

/// Text of a file. Errors: not there, no file, not UTF-8, above [`MAX_TEXT`].
pub fn read_text(path: &Path) -> Result<String, Diagnostic> {
    text(path, read_within(path, Kinds::GivenPipes, MAX_TEXT)?)
}

/// Text of a file that a document or a folder names, not the user: no pipe of this process is meant. Errors: as of
/// [`read_text`].
pub fn read_named_text(path: &Path) -> Result<String, Diagnostic> {
    text(path, read_within(path, Kinds::Files, MAX_TEXT)?)
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|_| {
        Diagnostic::error("not-text", format!("{} is not UTF-8 text", path.display())).hint("was another file meant?")
    })
}

/// Counts what is read: a file may be longer than it says.
fn read_within(path: &Path, kinds: Kinds, limit: u64) -> Result<Vec<u8>, Diagnostic> {
    taken(&opened(path, kinds)?, path, limit)
}

fn taken(file: &std::fs::File, path: &Path, limit: u64) -> Result<Vec<u8>, Diagnostic> {
    let stated = file.metadata().map_or(0, |about| about.len());
    let too_large = || {
        let message = format!("{} is longer than {limit} bytes, the limit for files of its kind", path.display());
        Diagnostic::error("file-too-large", message).hint("was another file meant?")
    };
    if stated > limit {
        return Err(too_large());
    }
    room::check(&path.display().to_string(), stated)?;
    let mut bytes = Vec::with_capacity(stated as usize);
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|e| cannot_read(path, &e))?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

/// Looks at the kind of a file before it is opened: opening a pipe may take for ever, and a device never ends.
fn opened(path: &Path, kinds: Kinds) -> Result<std::fs::File, Diagnostic> {
    let about = std::fs::metadata(path).map_err(|e| cannot_read(path, &e))?;
    if about.is_dir() {
        return Err(cannot_read(path, &ErrorKind::IsADirectory.into()));
    }
    let given = || kinds == Kinds::GivenPipes && ["/dev/", "/proc/self/fd/"].iter().any(|at| path.starts_with(at));
    let readable = about.is_file() || is_pipe(&about) && given();
    if !readable {
        return Err(not_a_file(path).hint("give a file; on the command line `<(COMMAND)` and /dev/stdin work too"));
    }
    std::fs::File::open(path).map_err(|e| cannot_read(path, &e))
}

fn not_a_file(path: &Path) -> Diagnostic {
    Diagnostic::error("not-a-file", format!("{} is no file, but a device, a socket or a named pipe", path.display()))
}

/// A file that this process adds to, made if there is none, with its bytes. Errors: it cannot be written, it is no file on a disk,
/// above [`MAX_TEXT`].
pub fn open_to_add(
    path: &Path,
    before: impl FnOnce(&std::fs::File) -> Result<(), Diagnostic>,
) -> Result<(std::fs::File, Vec<u8>), Diagnostic> {
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        return Err(not_a_file(path).hint("give the name of a file"));
    }
    let cannot = |e: std::io::Error| cannot_write(path, &e);
    let mut file = std::fs::OpenOptions::new().read(true).create(true).append(true).open(path).map_err(cannot)?;
    before(&file)?;
    file.seek(SeekFrom::Start(0)).map_err(cannot)?;
    let bytes = taken(&file, path, MAX_TEXT)?;
    Ok((file, bytes))
}

/// Reads, changes and writes a file while no other process of ours does: what another one has added stays. Makes its folder. Errors:
/// the folder cannot be made, those of `change`.
pub fn alone<T>(path: &Path, change: impl FnOnce() -> Result<T, Diagnostic>) -> Result<T, Diagnostic> {
    let folder = folder_of(path);
    std::fs::create_dir_all(folder).map_err(|e| cannot_write(folder, &e))?;
    // without locks on this file system two programs at once may lose a change
    let held = std::fs::File::open(folder).ok();
    let _locked = held.as_ref().map(std::fs::File::lock);
    change()
}

#[cfg(unix)]
fn is_pipe(about: &std::fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&about.file_type())
}

#[cfg(not(unix))]
fn is_pipe(_: &std::fs::Metadata) -> bool {
    false
}

/// Whether there is something at a path. Errors: that cannot be known.
pub fn is_there(path: &Path) -> Result<bool, Diagnostic> {
    match std::fs::metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if is_nothing(&e) => Ok(false),
        Err(e) => Err(cannot_read(path, &e)),
    }
}

/// Whether an error says that there is nothing of a name.
pub fn is_nothing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

/// Diagnostic for a file that cannot be read.
pub fn cannot_read(path: &Path, error: &std::io::Error) -> Diagnostic {
    let shown = path.display();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Diagnostic::error("no-such-file", format!("there is no file {shown}")).hint(if path.extension().is_some() {
                "check the path"
            } else {
                "check the path; `maskloom presets` lists the built-in presets"
            })
        }
        ErrorKind::IsADirectory => {
            Diagnostic::error("cannot-read", format!("{shown} is a folder")).hint("give the name of a file")
        }
        _ if is_circle(error) => {
            Diagnostic::error("cannot-read", format!("{shown} is a link that leads back to itself"))
                .hint("give the name of the file that was meant")
        }
        _ => Diagnostic::error("cannot-read", format!("cannot read {shown}: {error}")).hint("check the permissions"),
    }
}

/// Whether an error says that links lead in a circle.
fn is_circle(error: &std::io::Error) -> bool {
    cfg!(unix) && error.raw_os_error() == Some(CIRCLE)
}

#[cfg(unix)]
const CIRCLE: i32 = libc::ELOOP;
#[cfg(not(unix))]
const CIRCLE: i32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_save_replaces_the_whole_file_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        save(&path, b"a long first version").unwrap();
        save(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(names(folder.path()), ["a.json"]);
    }

    /// Permissions are the matter only where nothing else is.
    #[cfg(unix)]
    #[test]
    fn a_folder_a_file_in_the_way_and_a_circle_of_links_are_told_as_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (file, circle) = (folder.path().join("a.json"), folder.path().join("circle"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&circle, &circle).unwrap();
        let told = |why: Diagnostic, words: &str| {
            assert!(why.message.contains(words), "{why}");
            assert!(why.hint.as_deref().is_some_and(|hint| !hint.contains("permissions")), "{why}");
        };
        told(read(folder.path()).unwrap_err(), "is a folder");
        let beside = std::io::Error::new(ErrorKind::PermissionDenied, "denied (13) at path \"/a/.maskloom-x1\"");
        assert_eq!(cannot_write(&file, &beside).message, format!("cannot write {}: denied (13)", file.display()));
        told(read(&circle).unwrap_err(), "leads back to itself");
        assert_eq!(read(&file.join("b.json")).unwrap_err().code, "no-such-file");
        told(save(&file.join("b.json"), b"x").unwrap_err(), "a file stands where a folder is needed");
        told(save_with_folders(&file.join("c/b.json"), b"x").unwrap_err(), "a file stands where a folder is needed");
        assert_eq!(std::fs::read(&file).unwrap(), b"old");
    }

    #[test]
    fn failures_name_the_file_and_keep_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no/such/folder/a.json");
        assert_eq!(save(&missing, b"x").unwrap_err().code, "cannot-write");
        assert_eq!(save(folder.path(), b"x").unwrap_err().code, "cannot-write");
        assert_eq!(read_text(&missing).unwrap_err().code, "no-such-file");
        let path = folder.path().join("kept.json");
        std::fs::write(&path, "old").unwrap();
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&path, permissions).unwrap();
        assert_eq!(save(&path, b"new").unwrap_err().code, "cannot-write");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["kept.json"]);
        std::fs::write(folder.path().join("b"), [0xff, 0xfe]).unwrap();
        assert_eq!(read_text(&folder.path().join("b")).unwrap_err().code, "not-text");
    }

    #[test]
    fn whether_a_file_can_be_saved_is_known_before_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("old"), "old").unwrap();
        assert_eq!((can_save(&at("new")), can_save(&at("old"))), (Ok(()), Ok(())));
        assert_eq!(names(folder.path()), ["old"]);
        assert_eq!(std::fs::read(at("old")).unwrap(), b"old");
        for (path, words) in [
            (folder.path().to_path_buf(), "is a folder"),
            (at("none/new"), "no such folder"),
            (at("old/new"), "cannot write"),
        ] {
            let why = can_save(&path).unwrap_err();
            assert!(why.message.contains(words), "{}", why.message);
        }
        let mut protected = std::fs::metadata(at("old")).unwrap().permissions();
        protected.set_readonly(true);
        std::fs::set_permissions(at("old"), protected).unwrap();
        assert_eq!(can_save(&at("old")).unwrap_err().code, "cannot-write");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_and_named_pipes_are_neither_read_nor_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, zero) = (folder.path().join("pipe"), folder.path().join("zero.json"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
        for path in [&pipe, &zero, Path::new("/dev/zero"), Path::new("/dev/full")] {
            assert_eq!(read_text(path).unwrap_err().code, "not-a-file", "{}", path.display());
            assert_eq!(read(path).unwrap_err().code, "not-a-file");
            assert_eq!(open(path).err().unwrap().code, "not-a-file");
        }
        assert_eq!(save(&pipe, b"x").unwrap_err().code, "cannot-write");
        // a pipe that this process has is read, unless a document names it
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"given").unwrap();
        drop(writer);
        let given = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(read_named_text(Path::new(&given)).unwrap_err().code, "not-a-file");
        assert_eq!(read_text(Path::new(&given)).unwrap(), "given");
        // what has no length still has a limit
        assert_eq!(read_within(Path::new("/proc/cpuinfo"), Kinds::Files, 10).unwrap_err().code, "file-too-large");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_as_one() {
        assert_eq!(save(Path::new("/dev/full"), b"x").unwrap_err().code, "disk-full");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        save(&link, b"new").unwrap();
        assert_eq!(std::fs::read(&real).unwrap(), b"new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
