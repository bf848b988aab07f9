//! Opening, saving and exporting.
//!
//! Invariant: a file is written completely or not at all; a failure is a dialog that names the file, and the document
//! is unchanged. Must not know the dialogs' appearance.

use super::act;
use crate::app::action::Action;
use crate::app::drafts::Dialog;
use crate::app::drafts::export::Done as ExportDone;
use crate::app::errands::Done;
use crate::app::mishaps::guarded;
use crate::app::opening::Opened;
use crate::app::races::{Race, SmallerCopy};
use crate::app::sharing::PageWish;
use crate::app::state::{NEVER, State};
use crate::app::there::CapturePlace;
use crate::app::view::FileInputs;
use crate::app::workspace::Workspace;
use crate::app::writing::{Changed, Written};
use crate::base::Diagnostic;
use crate::document::file;
use crate::document::model::Document;
use crate::export::{ExportFile, RECORDER, file_stem, recorder};
use crate::tasks::placing;
use crate::tasks::run_file::{CopyOf, RunFile};
use crate::tasks::smaller;
use crate::worker::seen::{self, Seen};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Saves the document as it is now.
pub(super) fn save_to(state: &mut State, path: PathBuf) {
    let path = with_extension(path, "json");
    let path = std::path::absolute(&path).unwrap_or(path);
    let (document, revision) = (state.document.clone(), state.revision);
    let seen = state.seen.clone().filter(|_| state.path.as_ref() == Some(&path));
    state.session.errands.write(move || {
        let result = seen::save_over(&path, file::to_json(&document).as_bytes(), seen.as_ref());
        Done::Saved { path, revision, result }
    });
}

/// It was saved, or not.
pub(super) fn saved(state: &mut State, path: PathBuf, revision: u64, result: Result<Seen, Diagnostic>) {
    let seen = match result {
        Ok(seen) => seen,
        Err(why) => {
            if why.code == seen::CHANGED_OUTSIDE {
                state.session.errands.look(path);
            }
            return failed(state, state.words().text("failed-save"), vec![why]);
        }
    };
    state.view.remember(&path);
    state.done(state.words().with("done-saved", &[("path", path.display().to_string().into())]));
    // another document may have taken its place meanwhile
    if revision >= state.begun {
        state.saved = revision;
        state.path = Some(path);
        (state.seen, state.outside) = (Some(seen), None);
        if revision == state.revision {
            state.came_home();
        }
        if let Some(kept) = state.kept_as.take() {
            act(state, Action::Discard(kept));
        }
    }
    close_saving(state);
}

/// Saves the last run.
pub(super) fn save_run_to(state: &mut State, path: PathBuf) {
    let Some(race) = &state.session.race else { return };
    let Some(report) = &race.report else { return };
    let run = match (&race.request, &race.file) {
        (Some((request, built)), _) => {
            let mut run = RunFile::new(&built.document, &built.compiled, request, (**report).clone());
            run.copy_of = copy_of(race).map(Box::new);
            run
        }
        (None, Some((_, run))) => (**run).clone(),
        (None, None) => return,
    };
    let path = with_extension(path, "json");
    state.session.errands.write(move || {
        let result = run.save(&path);
        Done::RunSaved { path, result }
    });
}

/// It was saved, or not.
pub(super) fn run_saved(state: &mut State, path: &Path, result: Result<(), Diagnostic>) {
    match result {
        Ok(()) => {
            state.done(state.words().with("done-saved-run", &[("path", path.display().to_string().into())]));
            close_saving(state);
        }
        Err(why) => failed(state, state.words().text("failed-save-run"), vec![why]),
    }
}

/// Saves the capture script, and next to it the package that it imports.
pub(super) fn save_recorder_to(state: &mut State, path: PathBuf) {
    let path = with_extension(path, "py");
    state.session.errands.write(move || {
        let beside = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf();
        let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let named =
            |file: ExportFile| if file.name == RECORDER { ExportFile { name: own.clone(), ..file } } else { file };
        let made: Vec<ExportFile> = recorder().into_iter().map(named).collect();
        let result = placing::place(&beside, &made);
        Done::RecorderSaved { path, result }
    });
}

/// It was saved, or not.
pub(super) fn recorder_saved(state: &mut State, path: PathBuf, result: Result<(), Diagnostic>) {
    match result {
        Ok(()) => {
            state.done(state.words().with("done-saved-script", &[("path", path.display().to_string().into())]));
            state.session.recorder = Some(path);
            close_saving(state);
        }
        Err(why) => failed(state, state.words().text("failed-save-script"), vec![why]),
    }
}

/// Saves the design as a page.
pub(super) fn save_html_to(state: &mut State, path: PathBuf) {
    let Some(wish) = PageWish::of(state) else { return };
    let path = with_extension(path, "html");
    state.session.errands.write(move || {
        let made = guarded("making the page", || wish.make()).and_then(|made| made);
        let result = made.and_then(|page| seen::save_over(&path, &page.bytes, None).map(drop));
        Done::HtmlSaved { path, result }
    });
}

/// It was saved, or not.
pub(super) fn html_saved(state: &mut State, path: &Path, result: Result<(), Diagnostic>) {
    match result {
        Ok(()) => {
            state.done(state.words().with("done-saved-html", &[("path", path.display().to_string().into())]));
            close_saving(state);
        }
        Err(why) => failed(state, state.words().text("failed-save-html"), vec![why]),
    }
}

/// A dialog that saves is done when it has worked.
fn close_saving(state: &mut State) {
    if state.dialog.as_ref().is_some_and(Dialog::saves) {
        state.dialog = None;
    }
}

/// A document comes back that was kept unsaved.
pub(super) fn reopened(
    state: &mut State,
    kept: PathBuf,
    what: Result<(Box<Document>, Option<PathBuf>), Vec<Diagnostic>>,
) {
    match what {
        Err(why) => failed(state, state.words().text("failed-document"), why),
        Ok((document, path)) => {
            let name = document.name.clone();
            super::open_document(state, *document);
            (state.path, state.kept_as, state.saved) = (path, Some(kept), NEVER);
            state.dialog = None;
            state.done(state.words().with("done-restored", &[("name", name.into())]));
        }
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
        Err(why) => {
            return failed(
                state,
                &state.words().with("failed-open", &[("path", path.display().to_string().into())]),
                why,
            );
        }
    };
    match what {
        // a second tab of one file would take the first one's saves for another program's
        Opened::Document(..) if super::documents::show_file(state, &path) => {
            state.done(state.words().with("done-open-already", &[("path", path.display().to_string().into())]));
        }
        Opened::Document(document, seen) => {
            let before = super::open_document(state, *document);
            (state.path, state.seen) = (Some(path.clone()), Some(seen));
            state.came_home();
            state.done(
                state
                    .words()
                    .with("done-opened", &[("path", path.display().to_string().into()), ("before", before.into())]),
            );
        }
        Opened::Imported(imported) => {
            let before = super::open_document(state, imported.document);
            imported.notes.into_iter().for_each(|note| state.tell(note));
            state.done(
                state
                    .words()
                    .with("done-imported", &[("path", path.display().to_string().into()), ("before", before.into())]),
            );
        }
        Opened::Code(text) => super::layers::open_code(state, &path.display().to_string(), &text),
        Opened::Config(text) => {
            let (dialog, is_one) = Dialog::trainer(path.clone(), &text);
            state.dialog = Some(dialog);
            if is_one {
                state.view.remember(&path);
            }
            return;
        }
        Opened::Run(text) => match RunFile::from_json(&text) {
            Ok(run) => open_run(state, path.clone(), run),
            Err(why) => {
                return failed(
                    state,
                    &state.words().with("failed-open", &[("path", path.display().to_string().into())]),
                    vec![why],
                );
            }
        },
        Opened::Capture => {
            state.session.capture = Some(CapturePlace::here(&path));
            state.view.show(Workspace::Quality);
        }
        Opened::Tensors(tensors) => {
            let names = guess_names(tensors.iter().map(|t| t.0.as_str()));
            let layout = state.view.inputs.layout;
            let text = state.words().with(
                "done-inputs",
                &[("path", path.display().to_string().into()), ("names", names.join(", ").into())],
            );
            state.view.inputs = FileInputs { path: path.display().to_string(), names, layout, used: true };
            state.view.open_page();
            state.done(text);
        }
    }
    state.view.remember(&path);
    state.dialog = None;
}

/// The document that a race of a smaller copy is of.
fn copy_of(race: &Race) -> Option<CopyOf> {
    let (copy, whole) = race.copy.as_ref().zip(race.whole.as_ref())?;
    Some(CopyOf { document: whole.document.clone(), kept: copy.kept_of })
}

/// A recorded run with its document: the original, if a smaller copy of it ran.
pub(super) fn open_run(state: &mut State, path: PathBuf, run: RunFile) {
    super::open_document(state, run.whole().clone());
    let id = state.session.races.next();
    state.session.race = Some(Race {
        id,
        request: None,
        of: None,
        whole: None,
        copy: run.copy_of.as_ref().map(|of| Arc::new(smaller_copy(&run, of))),
        reports: run.report.backends.clone(),
        report: Some(Box::new(run.report.clone())),
        stale: false,
        file: Some((path.clone(), Box::new(run.clone()))),
    });
    state.view.show(Workspace::Race);
    let (axes, settings) = (&run.document.axes, &run.document.settings);
    let sizes = smaller::told(state.words(), settings.batch, [axes.q.len(), axes.kv().len()], settings.heads);
    let what = match &run.copy_of {
        Some(_) => state.words().with("done-run-copy", &[("sizes", sizes.into())]),
        None => sizes,
    };
    let figures =
        [("path", path.display().to_string().into()), ("name", (&*run.whole().name).into()), ("what", what.into())];
    state.done(state.words().with("done-run", &figures));
}

fn smaller_copy(run: &RunFile, of: &CopyOf) -> SmallerCopy {
    SmallerCopy {
        words: smaller::sizes(&run.document),
        of: smaller::sizes(&of.document),
        kept: run.report.work.density,
        kept_of: of.kept,
        picture: run.pictures.iter().find(|p| p.title == "mask").cloned(),
    }
}

/// Which tensors of a file are q, k and v.
pub(super) fn guess_names<'a>(names: impl Iterator<Item = &'a str>) -> [String; 3] {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    let guess = |letter: &str, word: &str| {
        let exact = names.iter().find(|n| **n == letter || **n == word);
        let end = |n: &&&str| n.ends_with(&format!(".{letter}")) || n.ends_with(&format!("_{letter}"));
        exact.or(names.iter().find(end)).or(names.iter().find(|n| n.contains(word))).unwrap_or(&letter).to_string()
    };
    [guess("q", "query"), guess("k", "key"), guess("v", "value")]
}

/// An export was written, or stopped.
pub(super) fn written(state: &mut State, what: Result<Written, Diagnostic>) {
    state.export.writing = false;
    if !matches!(what, Ok(Written::InTheWay(_))) {
        // the configuration is another now, by this export or by someone else
        state.export.make_anew();
    }
    let (count, folder, config) = match what {
        Err(why) => return failed(state, state.words().text("failed-export"), vec![why]),
        Ok(Written::InTheWay(existing)) => return state.export.existing = existing,
        Ok(Written::All { files, folder, config }) => (files, folder, config),
    };
    if let Some((of, path)) = state.export.choices().and_then(|c| Some((c.of?, c.config_path()))) {
        state.config = path.or(state.config.take());
        let done = ExportDone {
            of,
            files: count,
            folder: folder.clone(),
            stem: file_stem(&state.document.name),
            config: config.clone(),
        };
        state.export.finish(done);
    }
    let files = state.words().with("export-files", &[("n", count.into())]);
    let reported = match config {
        None => state
            .words()
            .with("done-exported", &[("files", files.into()), ("folder", folder.display().to_string().into())]),
        Some(Changed { path, backup: Some(backup) }) => {
            let name = backup.file_name().unwrap_or_default().to_string_lossy().into_owned();
            state.words().with(
                "done-changed",
                &[
                    ("path", path.display().to_string().into()),
                    ("name", name.into()),
                    ("files", files.into()),
                    ("folder", folder.display().to_string().into()),
                ],
            )
        }
        Some(Changed { path, backup: None }) => state.words().with(
            "done-had-setting",
            &[
                ("path", path.display().to_string().into()),
                ("files", files.into()),
                ("folder", folder.display().to_string().into()),
            ],
        ),
    };
    // the page shows the message itself if it is in front
    if state.view.is_at(Workspace::Export) { state.notices.note(reported, state.now) } else { state.done(reported) }
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
