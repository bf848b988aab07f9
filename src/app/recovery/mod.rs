//! The open documents with their undo, unsaved documents, and the window's settings, stored with the user's other data so
//! that they can be restored.
//!
//! Invariant: each window writes into a folder of its own (`slots`); a file is written completely or not at all, on another
//! thread, about a second after a change; what another window left is removed only after it was written anew. Must not know what is
//! shown.

mod restore;
mod slots;

use self::slots::Slot;
use super::unsaved::{self, Bytes};
use super::view::View;
use crate::base::Diagnostic;
use crate::document::file;
use crate::document::history::{History, KeptHistory};
use crate::document::model::Document;
use crate::document::title::Title;
use crate::worker::files;
use crate::worker::seen::Seen;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Seconds between a change and its being kept.
const DELAY: f64 = 1.0;
/// Most bytes of undo that are kept of a document.
const UNDO: usize = 4 << 20;
/// Open documents that a start restores; more are listed among the unsaved ones, or lie in their own files.
const MOST: usize = 40;
/// The one document of versions that kept no more.
const OLD_DOCUMENT: &str = "last.json";
const OLD_PLACE: &str = "last-place.json";
const VIEW: &str = "window.json";
const LIST: &str = "tabs.json";

/// Where a document belongs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Place {
    #[serde(with = "crate::base::kept_path")]
    pub path: Option<PathBuf>,
    /// What that file held when it was read or written last.
    pub seen: Option<Seen>,
    /// Whether it has changes that no file has.
    pub dirty: bool,
    /// Whether it has none but that its file was deleted.
    pub gone: bool,
    /// A trainer's configuration to merge into.
    #[serde(with = "crate::base::kept_path")]
    pub config: Option<PathBuf>,
    /// Its file among the unsaved documents.
    #[serde(with = "crate::base::kept_path")]
    pub kept_as: Option<PathBuf>,
}

/// An open document, as it is to be kept.
pub(crate) struct Tab<'a> {
    /// The same as long as it is open.
    pub id: u64,
    /// Another after every change.
    pub mark: u64,
    pub document: &'a Document,
    pub history: &'a History,
    pub place: Place,
}

/// An open document that was kept.
#[derive(Debug)]
pub(crate) struct KeptTab {
    pub document: Document,
    pub history: History,
    pub place: Place,
}

/// The restored state.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub view: View,
    /// Left to right.
    pub tabs: Vec<KeptTab>,
    /// The place of the one in work.
    pub active: usize,
    /// The newest document that was kept unsaved, by its file's name.
    pub unsaved: Option<String>,
    /// The unreadable part.
    pub reported: Vec<Diagnostic>,
}

/// Which documents are open, left to right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct List {
    active: usize,
    tabs: Vec<(u64, Place)>,
}

/// A document's file.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// The document file's text.
    document: String,
    #[serde(default)]
    history: KeptHistory,
}

/// Keeps them.
#[derive(Default)]
pub(crate) struct Recovery {
    folder: Option<PathBuf>,
    slot: Option<Slot>,
    /// What other windows left, until it is written anew.
    taken_over: Vec<Slot>,
    /// What they left and cannot be read whole: it stays, and no other window restores it meanwhile.
    _unread: Vec<Slot>,
    writer: Option<Writer>,
    /// The documents that need no keeping until they change: id and mark.
    kept: Vec<(u64, u64)>,
    /// Whether these are in files. An untouched first screen is in none until there is something to keep beside it.
    in_files: bool,
    kept_list: Option<List>,
    kept_view: Option<View>,
    due: Option<f64>,
    /// Whether something could not be written since all of it was.
    failed: bool,
}

enum Job {
    /// Made on the writer's thread: a large document takes its time.
    Write(PathBuf, Bytes),
    /// The same where the first of the two is no longer there: looking may take long too.
    WriteIfGone(PathBuf, PathBuf, Bytes),
    /// Removes a file.
    Drop(PathBuf),
    /// Removes what was taken over, unless something before could not be written.
    Remove(Vec<Slot>),
}

struct Writer {
    jobs: Sender<Job>,
    errors: Receiver<Diagnostic>,
    thread: JoinHandle<()>,
}

impl Recovery {
    /// Reads the state stored in `folder`; None stores nothing.
    pub(crate) fn open(folder: Option<PathBuf>) -> (Recovery, Recovered) {
        let mut recovered = Recovered::default();
        let (mut slot, mut taken_over, mut unread) = (None, Vec::new(), Vec::new());
        if let Some(folder) = &folder {
            (taken_over, unread) = restore::read(folder, &mut recovered);
            recovered.unsaved = unsaved::newest(folder, &mut recovered.reported);
            match Slot::new(folder) {
                Ok(made) => slot = Some(made),
                Err(e) => {
                    let message = format!("open documents cannot be kept for the next start: {e}");
                    let place = format!("the folder is {}", folder.display());
                    recovered.reported.push(Diagnostic::warning("recovery", message).hint(place));
                }
            }
        }
        let writer = folder.as_ref().and_then(|_| Writer::start());
        let (kept, kept_list, kept_view, due) = (Vec::new(), None, None, None);
        let recovery = Recovery {
            folder,
            slot,
            taken_over,
            _unread: unread,
            writer,
            kept,
            in_files: false,
            kept_list,
            kept_view,
            due,
            failed: false,
        };
        (recovery, recovered)
    }

    /// Where everything is kept; None: nowhere.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Keeps a document that another takes the place of. `again`: the file that it came back from. Gives its file's name.
    pub(crate) fn set_aside(
        &mut self,
        document: &Document,
        last: Option<&Title>,
        path: Option<&Path>,
        again: Option<PathBuf>,
    ) -> Option<String> {
        let writer = self.writer.as_ref()?;
        let (file, bytes) = unsaved::keep(self.folder.as_deref()?, document, last, path, again);
        let name = file.file_name()?.to_string_lossy().into_owned();
        writer.send(Job::Write(file, bytes));
        Some(name)
    }

    /// The same, and waits for it. Errors: why it is not kept.
    pub(crate) fn set_aside_now(
        &mut self,
        document: &Document,
        last: Option<&Title>,
        path: Option<&Path>,
        again: Option<PathBuf>,
    ) -> Result<(), Diagnostic> {
        // what failed before may be another file
        self.failed |= self.writer.as_ref().is_some_and(|w| w.errors.try_iter().last().is_some());
        self.set_aside(document, last, path, again).ok_or_else(nowhere)?;
        let written = self.written();
        self.failed |= written.is_err();
        written
    }

    /// Keeps a document that its file holds, should that file be gone.
    pub(crate) fn set_aside_if_gone(&mut self, document: &Document, last: Option<&Title>, own: &Path) {
        if let (Some(writer), Some(root)) = (&self.writer, self.folder.as_deref()) {
            let (file, bytes) = unsaved::keep(root, document, last, Some(own), None);
            writer.send(Job::WriteIfGone(own.to_path_buf(), file, bytes));
        }
    }

    /// Nothing of these needs keeping until it changes: an untouched first screen.
    pub(crate) fn assume(&mut self, tabs: &[Tab<'_>], active: usize, view: &View) {
        if self.taken_over.is_empty() {
            self.kept = tabs.iter().map(|tab| (tab.id, tab.mark)).collect();
            self.kept_list = Some(List::of(tabs, active));
        }
        self.kept_view = Some(view.clone());
    }

    /// Stores changes, some time after the change, or `at_once`. Returns the seconds until it is due.
    pub(crate) fn follow(
        &mut self,
        now: f64,
        at_once: bool,
        (tabs, active): (&[Tab<'_>], usize),
        view: &View,
    ) -> Result<Option<f64>, Diagnostic> {
        let failed = self.writer.as_ref().and_then(|w| w.errors.try_iter().last());
        self.failed |= failed.is_some();
        let told = failed.map_or(Ok(None), Err);
        // at the end there is no later time to write the rest
        if told.is_err() && !at_once {
            return told;
        }
        let list = List::of(tabs, active);
        let marks = marks(tabs);
        let new_tabs = self.slot.is_some() && (self.kept != marks || self.kept_list.as_ref() != Some(&list));
        let new_view = self.kept_view.as_ref() != Some(view);
        if self.folder.is_none() || !new_tabs && !new_view {
            self.due = None;
            return told;
        }
        let due = *self.due.get_or_insert(now + DELAY);
        if now < due && !at_once {
            return Ok(Some(due - now));
        }
        self.due = None;
        if new_tabs {
            self.keep_tabs(tabs, list);
            self.kept = marks;
        }
        if new_view {
            self.keep_view(view);
            self.kept_view = Some(view.clone());
        }
        told
    }

    /// Writes what is open and not in files yet, and waits for it. Errors: why not all of it is kept for the next start.
    pub(crate) fn keep_now(&mut self, tabs: &[Tab<'_>], active: usize) -> Result<(), Diagnostic> {
        self.failed |= self.writer.as_ref().is_some_and(|w| w.errors.try_iter().last().is_some());
        if std::mem::take(&mut self.failed) {
            // whatever it was: all is written again
            (self.in_files, self.kept_list) = (false, None);
        }
        if self.slot.is_none() || self.writer.is_none() {
            return Err(nowhere());
        }
        let (list, marks) = (List::of(tabs, active), marks(tabs));
        if self.kept != marks || self.kept_list.as_ref() != Some(&list) {
            self.keep_tabs(tabs, list);
            self.kept = marks;
        }
        let written = self.written();
        self.failed = written.is_err();
        written
    }

    /// Waits until all is written. Errors: what could not be.
    fn written(&mut self) -> Result<(), Diagnostic> {
        let Some(Writer { jobs, errors, thread }) = self.writer.take() else { return Err(nowhere()) };
        drop(jobs);
        let ended = thread.join().map_err(|_| nowhere());
        self.writer = Writer::start();
        ended.and_then(|()| errors.try_iter().last().map_or(Ok(()), Err))
    }

    /// Writes the documents that changed, then the list of all, and removes files that the list does not name.
    fn keep_tabs(&mut self, tabs: &[Tab<'_>], list: List) {
        let (Some(slot), Some(writer)) = (&self.slot, &self.writer) else { return };
        let in_files = std::mem::replace(&mut self.in_files, true);
        for tab in tabs.iter().filter(|tab| !in_files || !self.kept.contains(&(tab.id, tab.mark))) {
            let (document, history) = (tab.document.clone(), tab.history.kept(UNDO));
            let bytes = move || stored(&document, history);
            writer.send(Job::Write(slot.folder.join(file_of(tab.id)), Box::new(bytes)));
        }
        let copy = list.clone();
        let bytes = move || serde_json::to_vec(&copy);
        writer.send(Job::Write(slot.folder.join(LIST), Box::new(bytes)));
        let closed = self.kept.iter().filter(|(id, _)| tabs.iter().all(|tab| tab.id != *id));
        closed.for_each(|(id, _)| writer.send(Job::Drop(slot.folder.join(file_of(*id)))));
        writer.send(Job::Remove(std::mem::take(&mut self.taken_over)));
        self.kept_list = Some(list);
    }

    /// After [`Recovery::finish`], files are written again.
    pub(crate) fn write_again(&mut self) {
        self.slot.iter_mut().for_each(Slot::hold);
        if self.writer.is_none() {
            self.writer = self.folder.as_ref().and_then(|_| Writer::start());
        }
    }

    /// Keeps the window's settings at once.
    pub(crate) fn keep_view(&self, view: &View) {
        if let (Some(folder), Some(writer)) = (&self.folder, &self.writer) {
            let copy = view.clone();
            let bytes = move || serde_json::to_vec_pretty(&copy);
            writer.send(Job::Write(folder.join(VIEW), Box::new(bytes)));
        }
    }

    /// Waits until everything is written, and lets the next window take it over. At the end only.
    pub(crate) fn finish(&mut self) {
        if let Some(writer) = self.writer.take() {
            drop(writer.jobs);
            let _ = writer.thread.join();
        }
        self.slot.iter_mut().for_each(Slot::release);
    }
}

impl List {
    fn of(tabs: &[Tab<'_>], active: usize) -> List {
        List { active, tabs: tabs.iter().map(|tab| (tab.id, tab.place.clone())).collect() }
    }
}

fn nowhere() -> Diagnostic {
    Diagnostic::error("recovery", "open documents cannot be kept for the next start")
}

fn marks(tabs: &[Tab<'_>]) -> Vec<(u64, u64)> {
    tabs.iter().map(|tab| (tab.id, tab.mark)).collect()
}

fn file_of(id: u64) -> String {
    format!("document-{id}.json")
}

fn stored(document: &Document, history: KeptHistory) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Stored { document: file::to_json(document), history })
}

impl Writer {
    /// A writer that has ended takes nothing any more.
    fn send(&self, job: Job) {
        let _ = self.jobs.send(job);
    }

    fn start() -> Option<Writer> {
        let (jobs, queue) = channel::<Job>();
        let (reported, errors) = channel();
        let work = move || {
            while let Ok(first) = queue.recv() {
                let mut batch = vec![first];
                for next in queue.try_iter() {
                    if let Job::Write(path, _) = &next {
                        // only the newest of each file is worth writing
                        batch.retain(|job| !matches!(job, Job::Write(old, _) if old == path));
                    }
                    batch.push(next);
                }
                do_all(batch, &reported);
            }
        };
        let thread = std::thread::Builder::new().name("recovery".into()).spawn(work).ok()?;
        Some(Writer { jobs, errors, thread })
    }
}

fn do_all(batch: Vec<Job>, reported: &Sender<Diagnostic>) {
    let mut whole = true;
    for job in batch {
        let job = match job {
            Job::WriteIfGone(own, path, bytes) => match std::fs::metadata(&own) {
                Err(why) if files::is_nothing(&why) => Job::Write(path, bytes),
                _ => continue,
            },
            other => other,
        };
        match job {
            Job::WriteIfGone(..) => {}
            Job::Write(path, bytes) => {
                let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
                let made = bytes().map_err(|e| {
                    Diagnostic::error("recovery", format!("{} cannot be kept for the next start: {e}", path.display()))
                });
                let written = made.and_then(|bytes| files::save_under(folder, &name.to_string_lossy(), &bytes));
                if let Err(why) = written {
                    whole = false;
                    let _ = reported.send(why);
                }
            }
            Job::Drop(path) => drop(std::fs::remove_file(path)),
            Job::Remove(slots) if whole => slots.into_iter().for_each(Slot::remove),
            // the next window takes them over
            Job::Remove(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::state::empty_document;
    use crate::app::workspace::Workspace;
    use crate::document::edit::Edit;

    fn tab<'a>(id: u64, mark: u64, document: &'a Document, history: &'a History, place: &Place) -> Tab<'a> {
        Tab { id, mark, document, history, place: place.clone() }
    }

    fn names(tabs: &[KeptTab]) -> Vec<&str> {
        tabs.iter().map(|tab| tab.document.name.as_str()).collect()
    }

    fn named(name: &str) -> Document {
        let mut document = empty_document("tokens 8");
        document.name = name.into();
        document
    }

    #[test]
    fn what_is_kept_comes_back_and_garbage_is_set_aside() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("new/folder");
        let (mut recovery, recovered) = Recovery::open(Some(folder.clone()));
        assert!(recovered.tabs.is_empty() && recovered.reported.is_empty());
        let (mut first, second) = (empty_document("text 7 | image 3x4"), named("second"));
        let (mut history, none) = (History::new(), History::new());
        history.apply(&mut first, Edit::Rename("first".into()), 0.0).unwrap();
        let view = View { workspace: Workspace::Code, rounds: 3, ..View::default() };
        let place =
            Place { path: Some("/a/b.json".into()), seen: Some(Seen::of(b"x")), dirty: true, ..Place::default() };
        let own = Place::default();
        let tabs = || [tab(4, 9, &first, &history, &place), tab(2, 1, &second, &none, &own)];
        assert_eq!(recovery.follow(0.0, false, (&tabs(), 1), &view).unwrap(), Some(DELAY));
        assert_eq!(recovery.follow(2.0, false, (&tabs(), 1), &view).unwrap(), None);
        recovery.finish();
        let (mut recovery, mut recovered) = Recovery::open(Some(folder.clone()));
        assert_eq!((recovered.view.clone(), recovered.active), (view.clone(), 1));
        assert_eq!(names(&recovered.tabs), ["first", "second"]);
        let back = &mut recovered.tabs[0];
        assert_eq!((&back.document, &back.place), (&first, &place));
        assert_eq!(back.history.undo(&mut back.document).map(|step| step.title), Some(Title::Rename));
        assert_ne!(back.document.name, "first");

        // a document that was closed does not come back
        recovery.follow(0.0, true, (&tabs()[..1], 0), &view).unwrap();
        recovery.follow(0.0, true, (&tabs()[1..], 0), &view).unwrap();
        recovery.finish();
        let (mut recovery, recovered) = Recovery::open(Some(folder.clone()));
        assert_eq!(names(&recovered.tabs), ["second"]);
        recovery.follow(0.0, true, (&tabs(), 0), &view).unwrap();
        recovery.finish();
        let broken = recovery.slot.as_ref().unwrap().folder.join(file_of(4));
        std::fs::write(&broken, "{").unwrap();
        let (_, recovered) = Recovery::open(Some(folder.clone()));
        assert_eq!((names(&recovered.tabs), recovered.reported[0].code.as_ref()), (vec!["second"], "recovery"));
        let aside = std::fs::read_dir(&folder).unwrap().filter_map(|e| e.ok()?.file_name().into_string().ok());
        assert_eq!(aside.filter(|name| name.ends_with("document-4.unreadable.json")).count(), 1);
        assert!(!broken.exists());
    }

    /// Where serde refused such a name, an empty list took the place of the last one, and no tab came back.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_whose_name_is_no_text_costs_no_tab_and_no_setting() {
        use std::os::unix::ffi::OsStringExt;
        let odd = || Some(PathBuf::from(std::ffi::OsString::from_vec(b"/a/caf\xe9.json".to_vec())));
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().to_path_buf();
        let (a, b, none) = (named("a"), named("b"), History::new());
        let view = View { rounds: 3, recent: odd().into_iter().collect(), ..View::default() };
        for place in [
            Place { path: odd(), dirty: true, ..Place::default() },
            Place { config: odd(), dirty: true, ..Place::default() },
        ] {
            let (mut recovery, _) = Recovery::open(Some(folder.clone()));
            let tabs = [tab(1, 1, &a, &none, &place), tab(2, 1, &b, &none, &Place::default())];
            recovery.follow(0.0, true, (&tabs, 0), &view).unwrap();
            let kept = recovery.set_aside(&a, None, odd().as_deref(), None).unwrap();
            recovery.keep_view(&view);
            recovery.finish();
            assert_eq!(unsaved::read(&unsaved::place(&folder, &kept)).unwrap(), (a.clone(), odd()));
            let (mut recovery, recovered) = Recovery::open(Some(folder.clone()));
            assert!(recovered.reported.is_empty(), "{:?}", recovered.reported);
            assert_eq!((names(&recovered.tabs), &recovered.tabs[0].place), (vec!["a", "b"], &place));
            assert_eq!(recovered.view, view);
            recovery.follow(0.0, true, (&[], 0), &view).unwrap();
            recovery.finish();
        }
    }

    #[test]
    fn two_windows_keep_what_each_has_and_the_next_start_brings_both() {
        let home = tempfile::tempdir().unwrap();
        let folder = Some(home.path().to_path_buf());
        let (view, none, place) = (View::default(), History::new(), Place { dirty: true, ..Place::default() });
        let (a, b) = (named("a"), named("b"));
        let (mut first, _) = Recovery::open(folder.clone());
        let (mut second, recovered) = Recovery::open(folder.clone());
        assert!(recovered.tabs.is_empty());
        first.follow(0.0, true, (&[tab(1, 1, &a, &none, &place)], 0), &view).unwrap();
        second.follow(0.0, true, (&[tab(1, 1, &b, &none, &place)], 0), &view).unwrap();
        // one ends, the other goes on: a third start takes over what no window has
        second.finish();
        let (mut third, recovered) = Recovery::open(folder.clone());
        assert_eq!(names(&recovered.tabs), ["b"]);
        // the third is killed before it wrote anything: nothing is gone
        first.finish();
        third.slot.as_mut().unwrap().release();
        drop(third);
        let (mut fourth, recovered) = Recovery::open(folder.clone());
        assert_eq!(names(&recovered.tabs), ["b", "a"]);
        let tabs = [tab(1, 1, &b, &none, &place), tab(2, 1, &a, &none, &place)];
        fourth.follow(0.0, true, (&tabs, 1), &view).unwrap();
        fourth.finish();
        let (_, recovered) = Recovery::open(folder);
        assert_eq!((names(&recovered.tabs), recovered.active), (vec!["b", "a"], 1));
        assert_eq!(std::fs::read_dir(home.path().join("sessions")).unwrap().count(), 2);
    }

    /// Only the second was in a file, and the first was gone after a start.
    #[test]
    fn an_untouched_first_screen_comes_back_beside_what_was_done() {
        let home = tempfile::tempdir().unwrap();
        let folder = Some(home.path().to_path_buf());
        let (first, second, none, place) = (named("first"), named("second"), History::new(), Place::default());
        let (mut recovery, _) = Recovery::open(folder.clone());
        let tabs = [tab(1, 1, &first, &none, &place), tab(2, 1, &second, &none, &place)];
        recovery.assume(&tabs[..1], 0, &View::default());
        assert_eq!(recovery.follow(0.0, true, (&tabs[..1], 0), &View::default()).unwrap(), None);
        assert!(!recovery.slot.as_ref().unwrap().folder.join(LIST).exists(), "nothing was done yet");
        recovery.follow(0.0, true, (&tabs, 1), &View::default()).unwrap();
        recovery.finish();
        let (_, recovered) = Recovery::open(folder);
        assert_eq!((names(&recovered.tabs), recovered.active), (vec!["first", "second"], 1));
    }

    #[test]
    fn the_document_of_an_older_version_comes_back_once() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(OLD_DOCUMENT), file::to_json(&named("old"))).unwrap();
        std::fs::write(home.path().join(OLD_PLACE), r#"{"path": "/a.json", "dirty": true}"#).unwrap();
        let (_, recovered) = Recovery::open(Some(home.path().to_path_buf()));
        assert_eq!(names(&recovered.tabs), ["old"]);
        assert_eq!(
            (recovered.tabs[0].place.path.as_deref(), recovered.tabs[0].place.dirty),
            (Some(Path::new("/a.json")), true)
        );
        let (_, recovered) = Recovery::open(Some(home.path().to_path_buf()));
        assert!(recovered.tabs.is_empty());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told() {
        let home = tempfile::tempdir().unwrap();
        let blocked = home.path().join("file");
        std::fs::write(&blocked, "").unwrap();
        let (mut recovery, recovered) = Recovery::open(Some(blocked.join("inside")));
        assert_eq!(recovered.reported[0].code, "recovery");
        recovery.follow(0.0, true, (&[], 0), &View::default()).unwrap();
        let mut reported = Ok(None);
        for _ in 0..500 {
            reported = recovery.follow(9.0, true, (&[], 0), &View::default());
            if reported.is_err() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(reported.unwrap_err().code, "cannot-write");
    }
}
