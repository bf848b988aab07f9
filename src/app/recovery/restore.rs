//! Reads what windows that ended have kept.
//!
//! Invariant: a file that cannot be read is told and renamed, never overwritten, and never prevents the start; a window's folder goes
//! into the hands that remove it only when all that it holds was read or has been renamed. Must not know when anything is written.

use super::slots::Slot;
use super::{KeptTab, LIST, List, MOST, OLD_DOCUMENT, OLD_PLACE, Recovered, Stored, VIEW, file_of};
use crate::base::Diagnostic;
use crate::document::file;
use crate::document::history::History;
use crate::document::model::Document;
use crate::worker::files;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Reads the settings, and the documents of all windows that ended; the newest window's come first. Gives the folders that are taken
/// over, and those that must stay.
pub(super) fn read(folder: &Path, out: &mut Recovered) -> (Vec<Slot>, Vec<Slot>) {
    let view = folder.join(VIEW);
    match held(&view) {
        Ok(held) => out.view = held.unwrap_or_default(),
        Err(why) => drop(set_aside(&view, &view, &why, out)),
    }
    let (mut taken_over, mut unread) = (Vec::new(), Vec::new());
    for slot in Slot::left(folder, &mut out.reported).into_iter().rev() {
        // what has no room is left for another window
        if out.tabs.len() < MOST {
            let whole = read_slot(folder, &slot.folder, out);
            if whole { &mut taken_over } else { &mut unread }.push(slot);
        }
    }
    read_old(folder, out);
    (taken_over, unread)
}

/// Whether all of a window's folder is in hand: read, or set aside out of it.
fn read_slot(root: &Path, folder: &Path, out: &mut Recovered) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let aside = |file: &str| root.join(format!("{name}-{file}"));
    let list: List = match held(&folder.join(LIST)) {
        Ok(list) => list.unwrap_or_default(),
        Err(why) => return set_aside(folder, &aside("all"), &why, out),
    };
    let (first, mut whole) = (out.tabs.is_empty(), true);
    for (at, (id, place)) in list.tabs.into_iter().enumerate() {
        let path = folder.join(file_of(id));
        match text_of(&path).and_then(|text| text.map(|text| opened(&text)).transpose()) {
            Ok(Some((document, history))) => {
                if first && at <= list.active {
                    out.active = out.tabs.len();
                }
                out.tabs.push(KeptTab { document, history, place });
            }
            Ok(None) => {}
            Err(why) => whole &= set_aside(&path, &aside(&file_of(id)), &why, out),
        }
    }
    whole
}

fn opened(text: &str) -> Result<(Document, History), String> {
    let stored: Stored = serde_json::from_str(text).map_err(|e| e.to_string())?;
    Ok((document(&stored.document)?, History::restored(stored.history)))
}

fn document(text: &str) -> Result<Document, String> {
    file::from_json(text).map_err(|why| why.first().map(|d| d.message.clone()).unwrap_or_default())
}

/// The one document that older versions kept. It is kept anew from here on.
fn read_old(folder: &Path, out: &mut Recovered) {
    let path = folder.join(OLD_DOCUMENT);
    match text_of(&path).and_then(|text| text.map(|text| document(&text)).transpose()) {
        Ok(None) => {}
        Ok(Some(document)) => {
            let place = held(&folder.join(OLD_PLACE)).ok().flatten().unwrap_or_default();
            out.tabs.push(KeptTab { document, history: History::new(), place });
            // under another name it is there until its owner removes it
            drop(std::fs::rename(&path, free(&path.with_extension("old.json"))));
        }
        Err(why) => drop(set_aside(&path, &path, &why, out)),
    }
}

/// What a file holds; None: there is no such file.
fn held<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    text_of(path)?.map(|text| serde_json::from_str(&text).map_err(|e| e.to_string())).transpose()
}

/// The text of a file; None: there is no such file.
fn text_of(path: &Path) -> Result<Option<String>, String> {
    let text = files::is_there(path).and_then(|there| there.then(|| files::read_named_text(path)).transpose());
    text.map_err(|why| why.message)
}

/// An unreadable file may be valuable to its owner: it is renamed, not overwritten. Whether it is.
fn set_aside(path: &Path, aside: &Path, why: &str, out: &mut Recovered) -> bool {
    let aside = free(&aside.with_extension("unreadable.json"));
    let moved = std::fs::rename(path, &aside).is_ok();
    let place = if moved { &aside } else { path };
    let message = format!("the state of the last session cannot be read: {why}");
    out.reported.push(Diagnostic::warning("recovery", message).hint(format!("its file is {}", place.display())));
    moved
}

/// A name that nothing has yet: this one, or with a number.
fn free(path: &Path) -> PathBuf {
    let is_free = |path: &PathBuf| matches!(path.symlink_metadata(), Err(e) if files::is_nothing(&e));
    let numbered = (2..100).map(|n| path.with_extension(format!("{n}.json")));
    std::iter::once(path.to_path_buf()).chain(numbered).find(is_free).unwrap_or_else(|| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::recovery::{Place, Recovery, Tab};
    use crate::app::state::empty_document;
    use crate::app::view::View;

    fn named(name: &str) -> Document {
        Document { name: name.into(), ..empty_document("tokens 8") }
    }

    /// A window that kept two documents and ended; its folder.
    fn kept(home: &Path) -> PathBuf {
        let (a, b, none, place) = (named("a"), named("b"), History::new(), Place { dirty: true, ..Place::default() });
        let tab = |id, document| Tab { id, mark: 1, document, history: &none, place: place.clone() };
        let (mut recovery, _) = Recovery::open(Some(home.to_path_buf()));
        recovery.follow(0.0, true, (&[tab(1, &a), tab(2, &b)], 0), &View::default()).unwrap();
        recovery.finish();
        recovery.slot.as_ref().unwrap().folder.clone()
    }

    /// A start, whose documents are then kept anew: their names and what was told.
    fn start(home: &Path) -> (Vec<String>, Vec<Diagnostic>) {
        let (mut recovery, recovered) = Recovery::open(Some(home.to_path_buf()));
        let none = History::new();
        let one = |(id, kept): (usize, &'_ KeptTab)| (id as u64, kept.document.clone(), kept.place.clone());
        let kept: Vec<(u64, Document, Place)> = recovered.tabs.iter().enumerate().map(one).collect();
        let mut tabs = Vec::new();
        for (id, document, place) in &kept {
            tabs.push(Tab { id: *id, mark: 1, document, history: &none, place: place.clone() });
        }
        recovery.follow(0.0, true, (&tabs, 0), &recovered.view).unwrap();
        recovery.finish();
        (recovered.tabs.iter().map(|tab| tab.document.name.clone()).collect(), recovered.reported)
    }

    /// Files below a folder that hold these bytes.
    fn holding(folder: &Path, bytes: &[u8]) -> usize {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .map(|at| if at.is_dir() { holding(&at, bytes) } else { usize::from(std::fs::read(&at).unwrap() == bytes) })
            .sum()
    }

    /// Its folder was removed when the other documents had been written anew.
    #[test]
    fn a_document_or_a_list_that_cannot_be_read_is_told_and_outlives_its_folder() {
        for (file, back) in [("document-2.json", vec!["a"]), (LIST, vec![])] {
            let home = tempfile::tempdir().unwrap();
            let slot = kept(home.path());
            // no text: read, and refused before it is parsed
            std::fs::write(slot.join(file), b"\xff\xfe valuable").unwrap();
            let (names, reported) = start(home.path());
            assert_eq!((names, reported.len()), (back.iter().map(ToString::to_string).collect(), 1), "{reported:?}");
            assert!(reported[0].message.contains("UTF-8") && !slot.exists(), "{reported:?}");
            assert_eq!(holding(home.path(), b"\xff\xfe valuable"), 1, "{file}");
            assert_eq!(start(home.path()).1, []);
        }
    }

    #[test]
    fn what_cannot_be_set_aside_stays_where_it_is() {
        let home = tempfile::tempdir().unwrap();
        let slot = kept(home.path());
        std::fs::write(slot.join("document-2.json"), b"\xff valuable").unwrap();
        let aside = slot.file_name().unwrap().to_string_lossy().into_owned() + "-document-2.unreadable.json";
        // a file is not renamed to the name of a folder
        for taken in
            std::iter::once(aside.clone()).chain((2..100).map(|n| aside.replace(".json", &format!(".{n}.json"))))
        {
            std::fs::create_dir(home.path().join(taken)).unwrap();
        }
        let (names, reported) = start(home.path());
        assert_eq!((names, reported.len()), (vec!["a".to_string()], 1));
        let place = slot.join("document-2.json");
        assert!(reported[0].hint.as_ref().unwrap().contains(&place.display().to_string()), "{reported:?}");
        assert_eq!(std::fs::read(place).unwrap(), b"\xff valuable");
    }

    #[test]
    fn settings_that_cannot_be_read_are_not_overwritten_nor_are_those_before() {
        let home = tempfile::tempdir().unwrap();
        for (n, bytes) in [&b"\xff one"[..], b"{ two", b"\xff three"].iter().enumerate() {
            std::fs::write(home.path().join(VIEW), bytes).unwrap();
            assert_eq!(start(home.path()).1.len(), 1);
            assert_eq!(holding(home.path(), bytes), 1, "{n}");
        }
        for bytes in [&b"\xff one"[..], b"{ two", b"\xff three"] {
            assert_eq!(holding(home.path(), bytes), 1);
        }
    }
}
