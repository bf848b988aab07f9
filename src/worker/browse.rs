//! The content of a folder of this machine, for choosing a file.
//!
//! Invariant: read only; folders first, then files of the wanted kinds, each by name; what is left out is counted. Must not know
//! what is chosen.

use crate::base::Diagnostic;
use crate::worker::files;
use crate::worker::protocol::folder::{FolderAsk, Item, Listing};
use std::path::{Path, PathBuf};

/// Most that are listed.
const MOST: usize = 500;
/// Most bytes of a file that travels.
const TRAVELS: u64 = 64 << 20;

/// Lists a folder.
pub fn list(ask: &FolderAsk) -> Listing {
    let folder = whole(&ask.path);
    let found = items(&folder, ask);
    let left_out = found.as_ref().map_or(0, |items| items.len().saturating_sub(MOST));
    let items = found.map(|mut items| {
        items.truncate(MOST);
        items
    });
    Listing { folder: folder.display().to_string(), items, left_out }
}

/// A small file that travels whole, and its path. Errors: it cannot be read, or is too large to travel.
pub fn read(path: &str) -> Result<(PathBuf, Vec<u8>), Diagnostic> {
    let path = whole(path);
    let (_, length) = files::open(&path)?;
    if length > TRAVELS {
        let message = format!("{} has {length} bytes: it stays on its machine", path.display());
        return Err(Diagnostic::error("file-stays", message)
            .hint("captures are opened where they are; copy other large files by scp"));
    }
    Ok((path.clone(), files::read(&path)?))
}

/// A path as it was typed: `~` is the home, and what is relative begins there.
fn whole(typed: &str) -> PathBuf {
    let home = || directories::BaseDirs::new().map_or_else(|| PathBuf::from("/"), |dirs| dirs.home_dir().to_path_buf());
    match typed.strip_prefix('~') {
        _ if typed.is_empty() => home(),
        Some("") => home(),
        Some(rest) if rest.starts_with(['/', '\\']) => home().join(&rest[1..]),
        _ if Path::new(typed).is_absolute() => PathBuf::from(typed),
        _ => home().join(typed),
    }
}

fn items(folder: &Path, ask: &FolderAsk) -> Result<Vec<Item>, Diagnostic> {
    let found = std::fs::read_dir(folder).map_err(|e| {
        Diagnostic::note("folder", format!("{} cannot be listed: {e}", folder.display())).hint("type another path")
    })?;
    let item = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        // a link is what it leads to; one that leads nowhere is a file that cannot be opened
        let about = std::fs::metadata(&path).ok();
        let is_file = !about.as_ref().is_some_and(|about| about.is_dir());
        let kind = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        let wanted = !is_file || ask.endings.is_empty() || ask.endings.contains(&kind);
        let bytes = if is_file { about.map_or(0, |about| about.len()) } else { 0 };
        (wanted && (ask.hidden || !name.starts_with('.'))).then_some(Item { is_file, name, bytes })
    };
    let mut items: Vec<Item> = found.filter_map(|e| item(e.ok()?)).collect();
    items.sort_unstable();
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(folder: &Path, hidden: bool) -> FolderAsk {
        FolderAsk { path: folder.display().to_string(), endings: vec!["py".into()], hidden }
    }

    fn names(listing: Listing) -> Vec<String> {
        listing.items.expect("listed").into_iter().map(|item| item.name).collect()
    }

    #[test]
    fn folders_come_first_and_other_files_not_at_all() {
        let home = tempfile::tempdir().unwrap();
        for name in ["b.py", "a.PY", "notes.txt", ".hidden.py"] {
            std::fs::write(home.path().join(name), "four").unwrap();
        }
        std::fs::create_dir(home.path().join("z")).unwrap();
        let listing = list(&ask(home.path(), false));
        assert_eq!((listing.left_out, listing.items.as_ref().unwrap()[1].bytes), (0, 4));
        assert_eq!(names(listing), ["z", "a.PY", "b.py"]);
        assert_eq!(names(list(&ask(home.path(), true))), ["z", ".hidden.py", "a.PY", "b.py"]);
        let gone = list(&ask(&home.path().join("gone"), false));
        assert!(gone.items.unwrap_err().message.contains("gone"));
    }

    #[test]
    fn a_folder_of_thousands_says_what_it_left_out_and_a_large_file_stays() {
        let home = tempfile::tempdir().unwrap();
        (0..MOST + 7).for_each(|n| std::fs::write(home.path().join(format!("{n}.py")), "").unwrap());
        let listing = list(&ask(home.path(), false));
        assert_eq!((listing.left_out, names(listing).len()), (7, MOST));
        let large = home.path().join("large");
        std::fs::File::create(&large).unwrap().set_len(TRAVELS + 1).unwrap();
        assert_eq!(read(&large.display().to_string()).unwrap_err().code, "file-stays");
        assert_eq!(read(&home.path().join("0.py").display().to_string()).unwrap().1, b"");
        assert!(whole("~/a").is_absolute() && whole("a/b").ends_with("a/b") && whole("a").is_absolute());
    }
}
