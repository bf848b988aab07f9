//! Files of the worker's machine: folders are listed, small files come, captures are looked at where they are.
//!
//! Invariant: nothing waits; no tensor travels; a file that came from there has no path here. Must not know how they are drawn.

use super::files;
use crate::app::dialogs;
use crate::app::drafts::Dialog;
use crate::app::opening::Opened;
use crate::app::session::JobFor;
use crate::app::state::State;
use crate::app::there::{CapturePlace, DeskNews, stays};
use crate::app::view::FileInputs;
use crate::app::workspace::Workspace;
use crate::base::Diagnostic;
use crate::tasks::lab::page::far::Client;
use crate::tasks::run_file::RunFile;
use crate::worker::jobs::News;
use crate::worker::protocol::folder::{FolderAsk, Listing};
use std::path::{Path, PathBuf};

/// Lists a folder there.
pub(super) fn list(state: &mut State, ask: FolderAsk) {
    let job = state.session.jobs.folder(ask.clone());
    state.session.started(JobFor::Folder(ask), job);
}

/// Opens a file there: a capture where it is, another one here.
pub(super) fn open(state: &mut State, path: &str) {
    if stays(path) {
        let far = Some(state.view.target.clone());
        state.session.capture = Some(CapturePlace { path: PathBuf::from(path), far });
        state.view.show(Workspace::Quality);
        return;
    }
    let job = state.session.jobs.file(path);
    state.session.started(JobFor::File(path.into()), job);
}

/// Asks for the tensors of a file there that is no capture: runs may take them as q, k and v.
pub(super) fn ask_tensors(state: &mut State, path: &Path) {
    let job = state.session.jobs.desk(Client::tensors(path));
    state.session.started(JobFor::Desk(None), job);
}

/// The worker's answer to one of these.
pub(super) fn heard(state: &mut State, of: JobFor, news: News) {
    match (of, news) {
        (JobFor::Folder(ask), News::Listed(listing)) => dialogs::listed(state, true, &ask, *listing),
        (JobFor::Folder(ask), news) => {
            let items = Err(reason(news));
            let listing = Listing { folder: ask.path.clone(), items, left_out: 0 };
            dialogs::listed(state, true, &ask, listing);
        }
        (JobFor::File(_), News::Fetched { path, bytes }) => state.session.errands.open_from_there(path, bytes),
        (JobFor::File(path), news) => failed(state, &path, vec![reason(news)]),
        (JobFor::Desk(asked), News::Desk { reported, payloads }) => {
            state.session.desk.push(DeskNews { asked, result: Ok((reported, payloads)) });
        }
        (JobFor::Desk(asked), News::Failed { why }) => state.session.desk.push(DeskNews { asked, result: Err(why) }),
        (JobFor::Desk(asked), news) => {
            state.session.desk.push(DeskNews { asked, result: Err(vec![reason(news)]) });
        }
        _ => {}
    }
}

fn reason(news: News) -> Diagnostic {
    match news {
        News::Failed { why } => why.into_iter().next(),
        News::Cancelled => Some(Diagnostic::error("cancelled", "the worker was stopped").hint("ask again")),
        _ => None,
    }
    .unwrap_or_else(|| Diagnostic::error("protocol-answer", "the worker gave another answer"))
}

fn failed(state: &mut State, path: &str, why: Vec<Diagnostic>) {
    let behind = state.dialog.take();
    let target = state.view.target.to_string();
    let title = state.words().with("failed-open-there", &[("path", path.into()), ("target", target.into())]);
    state.dialog = Some(Dialog::failure(&title, why, behind));
}

/// A file from there has been read: what is in it.
pub(super) fn opened(state: &mut State, path: &str, what: Result<Opened, Vec<Diagnostic>>) {
    let shown = PathBuf::from(format!("{}:{path}", state.view.target));
    let what = match what {
        Ok(what) => what,
        Err(why) => return failed(state, path, why),
    };
    match what {
        Opened::Document(document, _) => {
            // it is saved here, under a name of its own
            let before = super::open_document(state, *document);
            state.done(
                state.words().with(
                    "done-opened-there",
                    &[("path", shown.display().to_string().into()), ("before", before.into())],
                ),
            );
        }
        Opened::Run(text) => match RunFile::from_json(&text) {
            Ok(run) => files::open_run(state, shown, run),
            Err(why) => return failed(state, path, vec![why]),
        },
        Opened::Code(text) => super::layers::open_code(state, &shown.display().to_string(), &text),
        Opened::Imported(imported) => {
            let before = super::open_document(state, imported.document);
            imported.notes.into_iter().for_each(|note| state.tell(note));
            let path = shown.display().to_string();
            state.done(state.words().with("done-imported", &[("path", path.into()), ("before", before.into())]));
        }
        Opened::Config(_) => {
            let why = Diagnostic::error("file-there", "a trainer's configuration is changed where it is");
            return failed(state, path, vec![why.hint("copy it to this machine, or open Maskloom there")]);
        }
        Opened::Capture | Opened::Tensors(_) => return,
    }
    state.dialog = None;
}

/// A file there that is no capture: runs take its q, k and v, if it has three tensors.
pub(super) fn take_tensors(state: &mut State, path: &Path, tensors: &[String]) {
    if tensors.len() < 3 {
        let message = format!("{} on {} has {} tensors", path.display(), state.view.target, tensors.len());
        return state.tell(Diagnostic::error("inputs-file", message).hint("runs need q, k and v"));
    }
    let names = files::guess_names(tensors.iter().map(String::as_str));
    let layout = state.view.inputs.layout;
    let figures = [("path", path.display().to_string().into()), ("names", names.join(", ").into())];
    state.done(state.words().with("done-inputs", &figures));
    state.view.inputs = FileInputs { path: path.display().to_string(), names, layout, used: true };
    state.view.open_page();
}
