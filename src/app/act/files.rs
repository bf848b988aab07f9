//! Opening, saving and exporting.
//!
//! Invariant: a file is written whole or not at all; a failure is a dialog that names the file, and nothing of the
//! document is lost. Must not know dialogs' looks.

use crate::app::dialogs::{self, Dialog};
use crate::app::opening::Opened;
use crate::app::session::Race;
use crate::app::state::{FileInputs, State};
use crate::base::Diagnostic;
use crate::document::file;
use crate::service::files;
use crate::service::run_file::RunFile;
use std::path::{Path, PathBuf};

/// Saves the document.
pub(super) fn save_to(state: &mut State, path: PathBuf) {
    let path = with_extension(path, "json");
    match files::save(&path, file::to_json(&state.document).as_bytes()) {
        Ok(()) => {
            state.saved = state.revision;
            state.view.remember(&path);
            state.done(format!("Saved {}", path.display()));
            state.path = Some(path);
            state.dialog = None;
        }
        Err(why) => failed(state, "The document could not be saved", vec![why]),
    }
}

/// Saves the last run.
pub(super) fn save_run_to(state: &mut State, path: &Path) {
    let Some(race) = &state.session.race else { return };
    let Some(report) = &race.report else { return };
    let run = match (&race.request, &race.file) {
        (Some((request, built)), _) => RunFile::new(&built.document, &built.compiled, request, (**report).clone()),
        (None, Some((_, run))) => (**run).clone(),
        (None, None) => return,
    };
    let path = with_extension(path.to_path_buf(), "json");
    match run.save(&path) {
        Ok(()) => {
            state.done(format!("Saved the run {}", path.display()));
            state.dialog = None;
        }
        Err(why) => failed(state, "The run could not be saved", vec![why]),
    }
}

/// A name without an extension gets one.
fn with_extension(path: PathBuf, extension: &str) -> PathBuf {
    if path.extension().is_some() { path } else { path.with_extension(extension) }
}

fn failed(state: &mut State, title: &str, why: Vec<Diagnostic>) {
    let behind = state.dialog.take();
    state.dialog = Some(Dialog::failure(title, why, behind));
}

/// A file was read.
pub(super) fn opened(state: &mut State, path: PathBuf, what: Result<Opened, Vec<Diagnostic>>) {
    let what = match what {
        Ok(what) => what,
        Err(why) => return failed(state, &format!("{} could not be opened", path.display()), why),
    };
    match what {
        Opened::Document(document) => {
            super::replace_document(state, *document);
            (state.path, state.saved) = (Some(path.clone()), state.revision);
            state.done(format!("Opened {}. Undo brings the document before back.", path.display()));
        }
        Opened::Imported(imported) => {
            super::replace_document(state, imported.document);
            imported.notes.into_iter().for_each(|note| state.tell(note));
            state.done(format!("Imported {}. Undo brings the document before back.", path.display()));
        }
        Opened::Code(text) => {
            let fresh = state.is_pristine();
            let mods = crate::app::opening::mods_of(&text);
            state.history.pointer_down();
            let old = super::layers::ids(&state.document);
            let scores = mods.iter().any(|m| m.1);
            let masks = mods.iter().any(|m| !m.1) || mods.is_empty();
            for (wanted, score) in [(masks, false), (scores, true)] {
                if wanted {
                    super::layers::link_code(state, path.display().to_string(), score);
                }
            }
            if fresh {
                super::layers::remove(state, old);
            }
            state.history.pointer_up();
        }
        Opened::Config(text) => {
            state.dialog = Some(Dialog::trainer(path.clone(), &text));
            state.view.remember(&path);
            return;
        }
        Opened::Run(text) => match RunFile::from_json(&text) {
            Ok(run) => open_run(state, path.clone(), run),
            Err(why) => return failed(state, &format!("{} could not be opened", path.display()), vec![why]),
        },
        Opened::Tensors(tensors) => {
            let names = guess_names(tensors.iter().map(|t| t.0.as_str()));
            let layout = state.view.inputs.layout;
            let text = format!("Runs take q, k and v from {}: {}.", path.display(), names.join(", "));
            state.view.inputs = FileInputs { path: path.display().to_string(), names, layout, used: true };
            state.view.right = true;
            state.done(text);
        }
    }
    state.view.remember(&path);
    state.dialog = None;
}

/// A recorded run with its document.
fn open_run(state: &mut State, path: PathBuf, run: RunFile) {
    super::replace_document(state, run.document.clone());
    state.session.race = Some(Race {
        request: None,
        of: None,
        reports: run.report.backends.clone(),
        report: Some(Box::new(run.report.clone())),
        stale: false,
        file: Some((path.clone(), Box::new(run))),
    });
    state.view.bottom = true;
    state.view.tab = crate::app::state::Tab::Timing;
    state.done(format!("Opened the run {}", path.display()));
}

/// Which tensors of a file are q, k and v.
fn guess_names<'a>(names: impl Iterator<Item = &'a str>) -> [String; 3] {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    let guess = |letter: &str, word: &str| {
        let exact = names.iter().find(|n| **n == letter || **n == word);
        let end = |n: &&&str| n.ends_with(&format!(".{letter}")) || n.ends_with(&format!("_{letter}"));
        exact.or(names.iter().find(end)).or(names.iter().find(|n| n.contains(word))).unwrap_or(&letter).to_string()
    };
    [guess("q", "query"), guess("k", "key"), guess("v", "value")]
}

/// Writes an export. Existing files are asked about first.
pub(super) fn export(state: &mut State, folder: &Path, files: Vec<(String, Vec<u8>)>, overwrite: bool) {
    let existing: Vec<String> = files.iter().map(|f| f.0.clone()).filter(|name| folder.join(name).exists()).collect();
    if !overwrite && !existing.is_empty() {
        return dialogs::ask_overwrite(state, existing);
    }
    for (name, bytes) in &files {
        if let Err(why) = files::save_under(folder, name, bytes) {
            return failed(state, "The export stopped", vec![why]);
        }
    }
    state.dialog = None;
    state.done(format!("Exported {} files to {}", files.len(), folder.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_guessed_from_common_habits() {
        let guess = |names: &[&str]| guess_names(names.iter().copied()).join(" ");
        assert_eq!(guess(&["q", "k", "v", "out"]), "q k v");
        assert_eq!(guess(&["query", "key", "value"]), "query key value");
        assert_eq!(
            guess(&["layer0.step1.q", "layer0.step1.k", "layer0.step1.v"]),
            "layer0.step1.q layer0.step1.k layer0.step1.v"
        );
        assert_eq!(guess(&["x"]), "q k v");
    }
}
