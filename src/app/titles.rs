//! What open documents are called where one name belongs to several.
//!
//! Invariant: two open documents never have one title; a name that no other has is the title. Must not know where titles are shown.

use super::session::Compared;
use super::state::State;
use crate::words::Words;
use std::path::{Path, PathBuf};

/// A name, and the file that the document is of.
pub(crate) type Named = (String, Option<PathBuf>);

/// The titles of these, in their order: with the folder, or with the place among those of the same name.
pub(crate) fn told_apart(words: &Words, all: &[Named]) -> Vec<String> {
    let title = |(at, (name, path)): (usize, &Named)| {
        let same: Vec<usize> = (0..all.len()).filter(|other| all[*other].0 == *name).collect();
        if same.len() < 2 {
            return name.clone();
        }
        let folders: Vec<Option<String>> = same.iter().map(|other| folder(all[*other].1.as_deref())).collect();
        let own = folder(path.as_deref());
        match own.filter(|own| folders.iter().filter(|folder| folder.as_ref() == Some(own)).count() == 1) {
            Some(folder) => words.with("title-folder", &[("name", (&**name).into()), ("folder", folder.into())]),
            None => {
                let n = same.iter().position(|other| *other == at).unwrap_or(0) + 1;
                words.with("title-number", &[("name", (&**name).into()), ("n", n.into()), ("all", same.len().into())])
            }
        }
    };
    all.iter().enumerate().map(title).collect()
}

/// The name of the folder that holds a file.
fn folder(path: Option<&Path>) -> Option<String> {
    Some(path?.parent()?.file_name()?.to_string_lossy().into_owned())
}

impl State {
    /// What the document that is compared with is called beside the one in work.
    pub(crate) fn name_of(&self, other: &Compared) -> String {
        if other.of == self.id || other.name != self.document.name {
            return other.name.clone();
        }
        let tabs = self.tabs();
        let named: Vec<Named> = tabs.iter().map(|tab| (tab.document.name.clone(), tab.place.path.clone())).collect();
        match tabs.iter().position(|tab| tab.id == other.of && tab.document.name == other.name) {
            Some(at) => told_apart(self.words(), &named).swap_remove(at),
            // its tab is closed, or it has another name by now
            None => self.words().with("title-other", &[("name", (&*other.name).into())]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn documents_of_one_name_are_told_by_their_folders_or_by_their_place() {
        let of = |all: &[(&str, &str)]| {
            let file = |path: &&str| (!path.is_empty()).then(|| PathBuf::from(path));
            let all: Vec<Named> = all.iter().map(|(name, path)| (name.to_string(), file(path))).collect();
            told_apart(Words::of(Language::English), &all)
        };
        assert_eq!(of(&[("a", "/x/a.json"), ("b", "")]), ["a", "b"]);
        assert_eq!(of(&[("a", "/x/a.json"), ("a", "/y/a.json")]), ["a (x)", "a (y)"]);
        assert_eq!(of(&[("a", ""), ("b", ""), ("a", "")]), ["a (1 of 2)", "b", "a (2 of 2)"]);
        assert_eq!(
            of(&[("a", "/x/a.json"), ("a", "/z/x/a.json"), ("a", "/y/a")]),
            ["a (1 of 3)", "a (2 of 3)", "a (y)"]
        );
    }
}
