//! The content of a folder, for choosing a file without a system dialog.
//!
//! Invariant: read only; folders first, then files of the wanted kinds, each by name. Must not know what is chosen.

use crate::base::Diagnostic;
use std::path::{Path, PathBuf};

/// Most that are listed.
const MOST: usize = 500;

/// Something in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    /// Folders come first.
    pub is_file: bool,
    pub name: String,
}

/// A folder and its content.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listing {
    pub folder: PathBuf,
    pub items: Result<Vec<Item>, Diagnostic>,
}

/// Reads a folder; files only of these extensions, hidden ones not at all.
pub(crate) fn list(folder: &Path, extensions: &[&str]) -> Listing {
    Listing { folder: folder.to_path_buf(), items: items(folder, extensions) }
}

fn items(folder: &Path, extensions: &[&str]) -> Result<Vec<Item>, Diagnostic> {
    let found = std::fs::read_dir(folder).map_err(|e| {
        Diagnostic::note("folder", format!("{} cannot be listed: {e}", folder.display())).hint("type another path")
    })?;
    let item = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        let is_file = !path.is_dir();
        let kind = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        let wanted = !name.starts_with('.') && (!is_file || extensions.contains(&kind.as_str()));
        wanted.then_some(Item { is_file, name })
    };
    let mut items: Vec<Item> = found.filter_map(|e| item(e.ok()?)).collect();
    items.sort_unstable();
    items.truncate(MOST);
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_first_and_other_files_not_at_all() {
        let home = tempfile::tempdir().unwrap();
        for name in ["b.py", "a.PY", "notes.txt", ".hidden.py"] {
            std::fs::write(home.path().join(name), "").unwrap();
        }
        std::fs::create_dir(home.path().join("z")).unwrap();
        let names = |listing: Listing| listing.items.map(|i| i.into_iter().map(|i| i.name).collect::<Vec<_>>());
        assert_eq!(names(list(home.path(), &["py"])).unwrap(), ["z", "a.PY", "b.py"]);
        assert_eq!(names(list(&home.path().join("none"), &["py"])).unwrap_err().code, "folder");
    }
}
