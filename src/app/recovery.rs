//! The last document, unsaved documents, and the window's settings, stored with the user's other data so that they can
//! be restored.
//!
//! Invariant: written completely or not at all, on another thread, about a second after a change; an unreadable file is
//! set aside and never prevents the start. Must not know what is shown.

use super::unsaved;
use super::view::View;
use crate::base::Diagnostic;
use crate::document::file;
use crate::document::model::Document;
use crate::worker::files;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Seconds between a change and its being kept.
const DELAY: f64 = 1.0;
const DOCUMENT: &str = "last.json";
const PLACE: &str = "last-place.json";
const VIEW: &str = "window.json";

/// Where the document of the last session belongs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Place {
    pub path: Option<PathBuf>,
    /// Whether it has changes that no file has.
    pub dirty: bool,
    /// A trainer's configuration to merge into.
    pub config: Option<PathBuf>,
}

/// The restored state.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub view: View,
    pub document: Option<(Document, Place)>,
    /// The newest document that was kept unsaved, by its file's name.
    pub unsaved: Option<String>,
    /// The unreadable part.
    pub told: Vec<Diagnostic>,
}

/// Keeps them.
pub(crate) struct Recovery {
    folder: Option<PathBuf>,
    writer: Option<Writer>,
    kept_revision: Option<(u64, Place)>,
    kept_view: Option<View>,
    due: Option<f64>,
}

/// Makes a file's bytes on the writer's thread: a large document takes its time.
type Bytes = Box<dyn FnOnce() -> Vec<u8> + Send>;

struct Writer {
    files: Sender<(PathBuf, Bytes)>,
    errors: Receiver<Diagnostic>,
    thread: JoinHandle<()>,
}

impl Recovery {
    /// Reads the state stored in `folder`; None stores nothing.
    pub fn open(folder: Option<PathBuf>) -> (Recovery, Recovered) {
        let mut recovered = Recovered::default();
        if let Some(folder) = &folder {
            read(folder, &mut recovered);
            recovered.unsaved = unsaved::newest(folder);
        }
        let writer = folder.as_ref().and_then(|_| Writer::start());
        (Recovery { folder, writer, kept_revision: None, kept_view: None, due: None }, recovered)
    }

    /// Where everything is kept; None: nowhere.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Keeps a document that another takes the place of. `again`: the file that it came back from. Gives its file's name.
    pub fn set_aside(
        &mut self,
        document: &Document,
        last: Option<&str>,
        path: Option<&Path>,
        again: Option<PathBuf>,
    ) -> Option<String> {
        let writer = self.writer.as_ref()?;
        let (file, bytes) = unsaved::keep(self.folder.as_deref()?, document, last, path, again);
        let name = file.file_name()?.to_string_lossy().into_owned();
        writer.send(file, bytes);
        Some(name)
    }

    /// The content of the files.
    pub fn assume(&mut self, revision: u64, place: Place, view: &View) {
        self.kept_revision = Some((revision, place));
        self.kept_view = Some(view.clone());
    }

    /// Stores changes, some time after the change, or `at_once`. Returns the seconds until it is due.
    pub fn follow(
        &mut self,
        now: f64,
        at_once: bool,
        document: (&Document, u64, Place),
        view: &View,
    ) -> Result<Option<f64>, Diagnostic> {
        let (document, revision, place) = document;
        let Some(folder) = self.folder.clone() else { return Ok(None) };
        let new_document = self.kept_revision.as_ref() != Some(&(revision, place.clone()));
        let new_view = self.kept_view.as_ref() != Some(view);
        if let Some(why) = self.writer.as_ref().and_then(|w| w.errors.try_iter().last()) {
            return Err(why);
        }
        if !new_document && !new_view {
            self.due = None;
            return Ok(None);
        }
        let due = *self.due.get_or_insert(now + DELAY);
        if now < due && !at_once {
            return Ok(Some(due - now));
        }
        self.due = None;
        let Some(writer) = &self.writer else { return Ok(None) };
        if new_document {
            let copy = document.clone();
            writer.send(folder.join(DOCUMENT), move || file::to_json(&copy).into_bytes());
            let copy = place.clone();
            writer.send(folder.join(PLACE), move || serde_json::to_vec(&copy).unwrap_or_default());
            self.kept_revision = Some((revision, place));
        }
        if new_view {
            self.keep_view(view);
            self.kept_view = Some(view.clone());
        }
        Ok(None)
    }

    /// After [`Recovery::finish`], files are written again.
    pub fn write_again(&mut self) {
        if self.writer.is_none() {
            self.writer = self.folder.as_ref().and_then(|_| Writer::start());
        }
    }

    /// Keeps the window's settings at once.
    pub fn keep_view(&self, view: &View) {
        if let (Some(folder), Some(writer)) = (&self.folder, &self.writer) {
            let copy = view.clone();
            writer.send(folder.join(VIEW), move || serde_json::to_vec_pretty(&copy).unwrap_or_default());
        }
    }

    /// The next start opens no document.
    pub fn forget_document(&self) {
        if let Some(folder) = &self.folder {
            // a file that is not there, or cannot be removed
            [DOCUMENT, PLACE].into_iter().for_each(|name| drop(std::fs::remove_file(folder.join(name))));
        }
    }

    /// Waits until everything is written. At the end only.
    pub fn finish(&mut self) {
        if let Some(writer) = self.writer.take() {
            drop(writer.files);
            let _ = writer.thread.join();
        }
    }
}

impl Writer {
    /// A writer that has ended takes nothing any more.
    fn send(&self, path: PathBuf, bytes: impl FnOnce() -> Vec<u8> + Send + 'static) {
        let _ = self.files.send((path, Box::new(bytes)));
    }

    fn start() -> Option<Writer> {
        let (files, queue) = channel::<(PathBuf, Bytes)>();
        let (told, errors) = channel();
        let work = move || {
            while let Ok(first) = queue.recv() {
                // only the newest of each file is worth writing
                let mut batch = vec![first];
                for next in queue.try_iter() {
                    batch.retain(|(path, _)| *path != next.0);
                    batch.push(next);
                }
                for (path, bytes) in batch {
                    let (folder, name) = (path.parent(), path.file_name());
                    let (Some(folder), Some(name)) = (folder, name) else { continue };
                    if let Err(why) = files::save_under(folder, &name.to_string_lossy(), &bytes()) {
                        let _ = told.send(why);
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("recovery".into()).spawn(work).ok()?;
        Some(Writer { files, errors, thread })
    }
}

fn read(folder: &Path, out: &mut Recovered) {
    if let Some(text) = text_of(&folder.join(VIEW), out) {
        match serde_json::from_str(&text) {
            Ok(view) => out.view = view,
            Err(e) => set_aside(&folder.join(VIEW), &e.to_string(), out),
        }
    }
    let Some(text) = text_of(&folder.join(DOCUMENT), out) else { return };
    let place = text_of(&folder.join(PLACE), out).and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default();
    match file::from_json(&text) {
        Ok(document) => out.document = Some((document, place)),
        Err(why) => {
            let first = why.first().map(|d| d.message.clone()).unwrap_or_default();
            set_aside(&folder.join(DOCUMENT), &first, out);
        }
    }
}

fn text_of(path: &Path, out: &mut Recovered) -> Option<String> {
    if !path.exists() {
        return None;
    }
    files::read_text(path).map_err(|why| out.told.push(why)).ok()
}

/// An unreadable file may be valuable to its owner: it is renamed, not overwritten.
fn set_aside(path: &Path, why: &str, out: &mut Recovered) {
    let aside = path.with_extension("unreadable.json");
    let moved = std::fs::rename(path, &aside).is_ok();
    let place = if moved { aside } else { path.to_path_buf() };
    let message = format!("the state of the last session cannot be read: {why}");
    out.told.push(Diagnostic::warning("recovery", message).hint(format!("its file is {}", place.display())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::state::empty_document;
    use crate::app::workspace::Workspace;

    #[test]
    fn what_is_kept_comes_back_and_garbage_is_set_aside() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("new/folder");
        let (mut recovery, recovered) = Recovery::open(Some(folder.clone()));
        assert!(recovered.document.is_none() && recovered.told.is_empty());
        let document = empty_document("text 7 | image 3x4");
        let view = View { workspace: Workspace::Code, rounds: 3, ..View::default() };
        let place = Place { path: Some("/a/b.json".into()), dirty: true, config: None };
        let wait = recovery.follow(0.0, false, (&document, 1, place.clone()), &view).unwrap();
        assert_eq!(wait, Some(DELAY));
        assert_eq!(recovery.follow(2.0, false, (&document, 1, place.clone()), &view).unwrap(), None);
        recovery.finish();
        let (_, recovered) = Recovery::open(Some(folder.clone()));
        assert_eq!(recovered.view, view);
        assert_eq!(recovered.document, Some((document, place)));

        std::fs::write(folder.join(DOCUMENT), "{").unwrap();
        let (_, recovered) = Recovery::open(Some(folder.clone()));
        assert!(recovered.document.is_none() && recovered.told[0].code == "recovery");
        assert!(folder.join("last.unreadable.json").exists() && !folder.join(DOCUMENT).exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told() {
        let home = tempfile::tempdir().unwrap();
        let blocked = home.path().join("file");
        std::fs::write(&blocked, "").unwrap();
        let (mut recovery, _) = Recovery::open(Some(blocked.join("inside")));
        let document = empty_document("tokens 8");
        let place = Place::default();
        recovery.follow(0.0, true, (&document, 1, place.clone()), &View::default()).unwrap();
        let mut told = Ok(None);
        for _ in 0..500 {
            told = recovery.follow(9.0, true, (&document, 1, place.clone()), &View::default());
            if told.is_err() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(told.unwrap_err().code, "cannot-write");
    }
}
