//! Unsaved documents that were replaced: stored with the user's other data until they are discarded.
//!
//! Invariant: each entry is a whole document with its origin; entries are removed only by the user, or beyond fifty.
//! Must not know the window.

use crate::base::Diagnostic;
use crate::document::file;
use crate::document::model::Document;
use crate::document::title::Title;
use crate::worker::{files, folders};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The newest that stay.
pub(crate) const MOST: usize = 50;
const FOLDER: &str = "unsaved";

/// The content of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Stored {
    name: String,
    /// The last thing that was done to it, as undo calls it.
    last: Option<Title>,
    /// Seconds since 1970.
    at: u64,
    /// The file that has an older state of it.
    #[serde(default, with = "crate::base::kept_path")]
    path: Option<PathBuf>,
    /// The document file's text.
    document: String,
}

/// One of them, as a list shows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub file: PathBuf,
    pub name: String,
    pub last: Option<Title>,
    pub at: u64,
    pub path: Option<PathBuf>,
}

/// Makes the bytes of a file, later. Errors are no file: an empty one would take the place of the last that was whole.
pub(crate) type Bytes = Box<dyn FnOnce() -> serde_json::Result<Vec<u8>> + Send>;

/// The path of a stored document, and its content. `again`: the file from which it was restored.
pub(crate) fn keep(
    root: &Path,
    document: &Document,
    last: Option<&Title>,
    path: Option<&Path>,
    again: Option<PathBuf>,
) -> (PathBuf, Bytes) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // a name of a later time than all there are, so that names sort as they were kept
    let names = listed(root).unwrap_or_default();
    let newest = names.last().and_then(|p| p.file_stem()?.to_str()?.parse::<u128>().ok()).unwrap_or(0);
    let number = now.as_nanos().max(newest + 1);
    let file = again.unwrap_or_else(|| root.join(FOLDER).join(format!("{number:020}.json")));
    let copy = document.clone();
    let (last, path, at) = (last.cloned(), path.map(Path::to_path_buf), now.as_secs());
    let bytes = move || {
        let stored = Stored { name: copy.name.clone(), last, at, path, document: file::to_json(&copy) };
        serde_json::to_vec(&stored)
    };
    (file, Box::new(bytes))
}

/// The file of this name.
pub(crate) fn place(root: &Path, name: &str) -> PathBuf {
    root.join(FOLDER).join(name)
}

/// The files, oldest first. Errors: the folder cannot be listed.
fn listed(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut names = folders::entries(&root.join(FOLDER))?;
    names.retain(|p| p.extension().is_some_and(|e| e == "json"));
    Ok(names)
}

/// The newest one's name, after those beyond the limit were removed; None if there is none, or none can be listed, which is reported.
pub(crate) fn newest(root: &Path, reported: &mut Vec<Diagnostic>) -> Option<String> {
    let mut names = listed(root).unwrap_or_else(|why| {
        reported.push(unlisted(root, &why));
        Vec::new()
    });
    let more = names.len().saturating_sub(MOST);
    for old in names.drain(..more) {
        // a file that cannot be removed stays
        let _ = std::fs::remove_file(old);
    }
    Some(names.last()?.file_name()?.to_string_lossy().into_owned())
}

fn unlisted(root: &Path, why: &str) -> Diagnostic {
    let message = format!("the documents kept in {} cannot be listed: {why}", root.join(FOLDER).display());
    Diagnostic::warning("unsaved", message).hint("they stay there; the next start looks again")
}

/// All of them, newest first. One that cannot be read is named by its file. Errors: they cannot be listed.
pub(crate) fn list(root: &Path) -> Result<Vec<Kept>, Diagnostic> {
    let one = |file: PathBuf| match stored(&file) {
        // a file that is gone has no state of it
        Ok(s) => Kept { file, name: s.name, last: s.last, at: s.at, path: s.path.filter(|path| path.exists()) },
        Err(why) => {
            Kept { name: file.display().to_string(), last: Some(Title::Said(why.message)), at: 0, path: None, file }
        }
    };
    Ok(listed(root).map_err(|why| unlisted(root, &why))?.into_iter().rev().map(one).collect())
}

fn stored(file: &Path) -> Result<Stored, Diagnostic> {
    let text = files::read_named_text(file)?;
    serde_json::from_str(&text).map_err(|e| {
        Diagnostic::error("unsaved", format!("{} cannot be read: {e}", file.display()))
            .hint("the file is kept; discard it in the list")
    })
}

/// The document that a file keeps, and the file that has an older state of it.
pub(crate) fn read(file: &Path) -> Result<(Document, Option<PathBuf>), Vec<Diagnostic>> {
    let stored = stored(file).map_err(|why| vec![why])?;
    Ok((file::from_json(&stored.document)?, stored.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::state::empty_document;

    fn write(root: &Path, name: &str) -> PathBuf {
        let mut document = empty_document("text 3 | image 2x2");
        document.name = name.into();
        let (file, bytes) = keep(root, &document, Some(&Title::Paint), Some(Path::new("/a/b.json")), None);
        files::save_under(file.parent().unwrap(), &file.file_name().unwrap().to_string_lossy(), &bytes().unwrap())
            .unwrap();
        file
    }

    #[test]
    fn what_is_kept_is_listed_newest_first_and_read_whole() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!((newest(home.path(), &mut Vec::new()), list(home.path())), (None, Ok(vec![])));
        let first = write(home.path(), "first");
        let second = write(home.path(), "second");
        assert_eq!(
            newest(home.path(), &mut Vec::new()),
            Some(second.file_name().unwrap().to_string_lossy().into_owned())
        );
        let names: Vec<_> = list(home.path()).unwrap().into_iter().map(|k| (k.name, k.last)).collect();
        assert_eq!(names, [("second".into(), Some(Title::Paint)), ("first".into(), Some(Title::Paint))]);
        let (document, path) = read(&first).unwrap();
        assert_eq!((document.name.as_str(), document.axes.q.len(), path), ("first", 7, Some("/a/b.json".into())));
        std::fs::write(&second, "{").unwrap();
        assert_eq!(read(&second).unwrap_err()[0].code, "unsaved");
        assert!(list(home.path()).unwrap()[0].name.ends_with(".json"), "named by its file");
    }

    #[test]
    fn what_cannot_be_listed_is_no_empty_list() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(FOLDER), "no folder").unwrap();
        let mut reported = Vec::new();
        assert_eq!(newest(home.path(), &mut reported), None);
        assert_eq!(list(home.path()), Err(reported.remove(0)));
    }

    #[test]
    fn the_newest_fifty_stay() {
        let home = tempfile::tempdir().unwrap();
        let files: Vec<_> = (0..MOST + 2).map(|n| write(home.path(), &n.to_string())).collect();
        newest(home.path(), &mut Vec::new());
        assert!(!files[1].exists() && files[2].exists() && list(home.path()).unwrap().len() == MOST);
    }
}
