//! The files of an export in a folder: all of them, or those that were there before.
//!
//! Invariant: every file is written and flushed beside its place, and every place is looked at, before the first one is
//! replaced; a failure puts back what was there. A killed run leaves the old files, or [`UNFINISHED`] with the new ones, and
//! then the next export into the folder finishes it. Must not know the files' meaning.

use crate::base::{Diagnostic, ExportFile};
use crate::worker::{files, leftovers};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Holds, during the moment in which files are renamed, those that are not yet in their places. The exported Python refuses
/// a folder that has it.
pub const UNFINISHED: &str = ".maskloom-unfinished";
/// In a staged folder: the new files, at their places.
const NEW: &str = "new";
/// In a staged folder: the replaced files, by their number.
const OLD: &str = "old";
/// Waits for other exports into the same folder, at most: each wait is for one of them.
const ATTEMPTS: usize = 64;

/// The files that exist already, with their paths.
pub fn in_the_way(folder: &Path, all: &[ExportFile]) -> Vec<PathBuf> {
    all.iter().map(|f| folder.join(&f.name)).filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// Writes them, and makes the folder. Errors: nothing was written; they name the place.
pub fn place(folder: &Path, all: &[ExportFile]) -> Result<(), Diagnostic> {
    if !folder.exists() {
        return place_new(folder, all);
    }
    finish(folder)?;
    let places = all.iter().map(|f| Place::of(folder, &f.name)).collect::<Result<Vec<_>, _>>()?;
    let (stage, held) = leftovers::folder_in(folder).map_err(|e| files::cannot_write(folder, &e))?;
    let staged = stage_all(&stage.path().join(NEW), all)?;
    keep_old(&stage.path().join(OLD), &places)?;
    for (staged, place) in staged.iter().zip(&places) {
        if let Some(old) = &place.permissions {
            std::fs::set_permissions(staged, old.clone()).map_err(|e| files::cannot_write(&place.path, &e))?;
        }
    }
    let begun = begin(folder, stage.path())?;
    let result = replace_all(&begun, all, &places);
    let _ = std::fs::remove_dir_all(&begun);
    drop((stage, held));
    files::flush_folder(folder);
    result
}

/// A folder that does not exist yet appears with all of its files.
fn place_new(folder: &Path, all: &[ExportFile]) -> Result<(), Diagnostic> {
    let above = folder.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(above).map_err(|e| files::cannot_write(above, &e))?;
    let (stage, held) = leftovers::folder_in(above).map_err(|e| files::cannot_write(above, &e))?;
    stage_all(stage.path(), all)?;
    if let Err(why) = std::fs::rename(stage.path(), folder) {
        // another run of this moment has made it
        return if folder.is_dir() { place_beside(folder, all) } else { Err(files::cannot_write(folder, &why)) };
    }
    files::flush_folder(above);
    drop((stage.keep(), held));
    Ok(())
}

/// Into a folder that was not there when somebody looked: what it has by now was not asked about, and stays.
fn place_beside(folder: &Path, all: &[ExportFile]) -> Result<(), Diagnostic> {
    let same = |f: &ExportFile| files::read(&folder.join(&f.name)).is_ok_and(|there| there == f.bytes);
    let other: Vec<&ExportFile> = all.iter().filter(|f| !same(f)).collect();
    if other.is_empty() {
        return Ok(());
    }
    let taken = |f: &&ExportFile| folder.join(&f.name).symlink_metadata().is_ok();
    let differing: Vec<&str> = other.into_iter().filter(taken).map(|f| f.name.as_str()).collect();
    if differing.is_empty() {
        return place(folder, all);
    }
    let message = format!(
        "{} was made by another run meanwhile, with other files of these names: {}; nothing was written",
        folder.display(),
        differing.join(", ")
    );
    Err(Diagnostic::error("written-meanwhile", message)
        .hint("look at what is there and run it again, or name another folder"))
}

/// Where a file goes.
struct Place {
    /// A link's target: the link stays a link.
    path: PathBuf,
    /// Those of the file that is there.
    permissions: Option<std::fs::Permissions>,
}

impl Place {
    /// Errors: a folder or a device has the name, a file has the name of a folder above it, or the file is protected.
    fn of(folder: &Path, name: &str) -> Result<Place, Diagnostic> {
        let named = folder.join(name);
        let taken = |path: &Path, what: &str| {
            let message = format!("{} is {what}; nothing was written", path.display());
            Diagnostic::error("cannot-write", message).hint("move it away, or export into another folder")
        };
        let above = named.ancestors().skip(1).take_while(|above| above.starts_with(folder));
        if let Some(above) = above.into_iter().find(|above| above.exists() && !above.is_dir()) {
            return Err(taken(above, "a file, and a folder of the export has this name"));
        }
        let path = std::fs::canonicalize(&named).unwrap_or(named);
        let there = match std::fs::metadata(&path) {
            Ok(there) => there,
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Place { path, permissions: None }),
            Err(why) => return Err(files::cannot_write(&path, &why)),
        };
        if there.is_dir() {
            return Err(taken(&path, "a folder, and a file of the export has this name"));
        }
        if !there.is_file() {
            return Err(taken(&path, "no plain file"));
        }
        if there.permissions().readonly() {
            return Err(files::cannot_write(&path, &ErrorKind::PermissionDenied.into()));
        }
        Ok(Place { path, permissions: Some(there.permissions()) })
    }
}

/// Writes every file below a folder that nobody reads yet; returns their paths.
fn stage_all(folder: &Path, all: &[ExportFile]) -> Result<Vec<PathBuf>, Diagnostic> {
    let staged = |f: &ExportFile| {
        let path = folder.join(&f.name);
        let write = || {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            let mut file = File::create_new(&path)?;
            file.write_all(&f.bytes)?;
            file.sync_all()
        };
        write().map_err(|e| files::cannot_write(&path, &e))?;
        Ok(path)
    };
    all.iter().map(staged).collect()
}

/// A second name for every file that is replaced, to put it back under.
fn keep_old(folder: &Path, places: &[Place]) -> Result<(), Diagnostic> {
    let failed = |e| files::cannot_write(folder, &e);
    std::fs::create_dir_all(folder).map_err(failed)?;
    for (n, place) in places.iter().enumerate().filter(|(_, place)| place.permissions.is_some()) {
        let kept = folder.join(n.to_string());
        // some file systems have no second names, and a link may lead to another one
        std::fs::hard_link(&place.path, &kept)
            .or_else(|_| std::fs::copy(&place.path, &kept).map(drop))
            .map_err(failed)?;
    }
    Ok(())
}

/// From here on a killed run has placed its files, as soon as the next one finishes it. Returns where they lie.
fn begin(folder: &Path, stage: &Path) -> Result<PathBuf, Diagnostic> {
    let begun = folder.join(UNFINISHED);
    for attempt in 1.. {
        match std::fs::rename(stage, &begun) {
            Ok(()) => break,
            // another export of this moment
            Err(_) if begun.exists() && attempt < ATTEMPTS => finish(folder)?,
            Err(why) => return Err(files::cannot_write(&begun, &why)),
        }
    }
    Ok(begun)
}

/// Renames every file into its place; at the first failure all old files come back.
fn replace_all(begun: &Path, all: &[ExportFile], places: &[Place]) -> Result<(), Diagnostic> {
    for (n, (f, place)) in all.iter().zip(places).enumerate() {
        let Err(why) = replace(&begun.join(NEW).join(&f.name), &place.path) else { continue };
        for (n, place) in places[..n].iter().enumerate().rev() {
            let _ = match place.permissions {
                Some(_) => replace(&begun.join(OLD).join(n.to_string()), &place.path),
                None => std::fs::remove_file(&place.path),
            };
        }
        return Err(files::cannot_write(&place.path, &why));
    }
    Ok(())
}

/// A file takes the place of another, on any file system.
fn replace(from: &Path, to: &Path) -> std::io::Result<()> {
    to.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    match std::fs::rename(from, to) {
        Err(why) if why.kind() == ErrorKind::CrossesDevices => files::replace(to, &std::fs::read(from)?),
        done => done,
    }
}

/// Finishes the export of a run that was killed while it renamed its files; waits for one that is still running.
///
/// Errors: a file cannot be placed.
fn finish(folder: &Path) -> Result<(), Diagnostic> {
    let begun = folder.join(UNFINISHED);
    if !begun.is_dir() {
        return Ok(());
    }
    let held = match File::open(&begun) {
        // its run has ended since it was seen
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.ok(),
    };
    if let Some(held) = &held {
        // a file system without locks: as if nobody held it
        let _ = held.lock();
        if !is_still(held, &begun) {
            return Ok(());
        }
    }
    let new = begun.join(NEW);
    for name in names_below(&new).map_err(|e| files::cannot_write(&begun, &e))? {
        let place = Place::of(folder, &name)?;
        replace(&new.join(&name), &place.path).map_err(|e| files::cannot_write(&place.path, &e))?;
    }
    match std::fs::remove_dir_all(&begun) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(files::cannot_write(&begun, &why)),
        _ => Ok(()),
    }
}

/// Whether a folder that was opened still has its name: its run may have ended meanwhile, and what has the name now is another run's.
fn is_still(held: &File, named: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |of: std::io::Result<std::fs::Metadata>| of.ok().map(|m| (m.dev(), m.ino()));
        id(held.metadata()) == id(named.symlink_metadata())
    }
    #[cfg(not(unix))]
    held.metadata().is_ok_and(|_| named.is_dir())
}

/// Names of all files below a folder, with `/`; none if there is no such folder.
fn names_below(folder: &Path) -> std::io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type()?.is_dir() {
            true => names.extend(names_below(&entry.path())?.into_iter().map(|below| format!("{name}/{below}"))),
            false => names.push(name),
        }
    }
    Ok(names)
}

#[cfg(test)]
#[path = "placing_tests.rs"]
mod tests;
