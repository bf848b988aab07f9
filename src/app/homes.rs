//! Which file a document is of that undo or redo brings back.
//!
//! Invariant: a document is known by its content alone, so that a file is never given to another one; what is unknown has no file.
//! Must not know tabs or how files are read.

use crate::document::file;
use crate::document::model::Document;
use crate::worker::seen::Seen;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// Documents that are remembered.
const KEPT: usize = 64;

/// Where a document was at home when another took its place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Home {
    pub path: Option<PathBuf>,
    /// What that file held when it was read or written last.
    pub seen: Option<Seen>,
    /// Whether the file held this very document.
    pub is_saved: bool,
}

/// The homes of the documents of one history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Homes {
    /// Oldest first.
    known: VecDeque<(u64, Home)>,
}

impl Homes {
    /// This document was read or written, or another is about to take its place.
    pub(crate) fn keep(&mut self, document: &Document, home: Home) {
        let key = key(document);
        let known = self.at(key);
        // it was saved in this state of the file, whatever was done and undone since
        let is_saved = home.is_saved || known.is_saved && (&known.path, &known.seen) == (&home.path, &home.seen);
        self.known.retain(|(known, _)| *known != key);
        self.known.push_back((key, Home { is_saved, ..home }));
        if self.known.len() > KEPT {
            self.known.pop_front();
        }
    }

    /// The home of a document that came back.
    pub(crate) fn of(&self, document: &Document) -> Home {
        self.at(key(document))
    }

    fn at(&self, key: u64) -> Home {
        self.known.iter().find(|(known, _)| *known == key).map(|(_, home)| home.clone()).unwrap_or_default()
    }
}

fn key(document: &Document) -> u64 {
    let mut hasher = DefaultHasher::new();
    file::to_json(document).hash(&mut hasher);
    hasher.finish()
}
