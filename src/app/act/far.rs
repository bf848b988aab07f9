//! Jobs that go on without the window: they are started, listed, opened and ended.
//!
//! Invariant: nothing waits; a job's results open as a run file does. Must not know how they are drawn.

use crate::app::far_jobs::{JobWish, Reading};
use crate::app::races::Wanted;
use crate::app::session::JobFor;
use crate::app::state::State;
use crate::base::Diagnostic;
use crate::document::model::Document;
use crate::problem::result::RunReport;
use crate::tasks::detached::RunNotes;
use crate::tasks::run_file::{RUN_VERSION, RunFile};
use crate::worker::protocol::RunRequest;
use crate::worker::protocol::detached::{Ask, PieceEnd, Told, Work};
use std::path::PathBuf;

fn ask(state: &mut State, ask: Ask) {
    let job = state.session.jobs.detached(ask);
    state.session.started(JobFor::Detached, job);
}

/// Carries a wish out.
pub(super) fn wish(state: &mut State, wish: JobWish) {
    match wish {
        JobWish::List => {
            state.session.far.ask();
            ask(state, Ask::List);
        }
        JobWish::Open(id) => {
            state.session.far.read(&id);
            ask(state, Ask::Read { id, after: 0 });
        }
        JobWish::Cancel(id) => ask(state, Ask::Cancel { id }),
        JobWish::Clear => ask(state, Ask::Clear { id: None }),
    }
}

/// Starts the race of the open document as a job.
pub(super) fn detach(state: &mut State) {
    let Some(built) = state.session.built.clone() else { return };
    if state.session.is_behind(state.revision) || built.problem.is_err() {
        return super::asking::cannot(state);
    }
    let Some(request) = super::asking::request(state, &built, Wanted::Whole) else { return };
    let document = &built.document;
    let notes = RunNotes {
        name: document.name.clone(),
        baseline: None,
        max_scores: false,
        copy: None,
        document: Some(document.clone()),
    };
    ask(state, Ask::Start { batch: Box::new(notes.batch(request)) });
}

/// The worker's answer.
pub(super) fn told(state: &mut State, told: Told) {
    match told {
        Told::Started { id } => {
            state.done(format!("The race goes on as job {id}, also without this window. Jobs lists it."));
            wish(state, JobWish::List);
        }
        Told::Listed { jobs } => state.session.far.put(jobs),
        Told::Part(part) => {
            if let Some(id) = part.more.then(|| part.info.id.clone()) {
                let after = state.session.far.reading.as_ref().map_or(0, |r| r.pieces.len()) + part.pieces.len();
                state.session.far.part(*part);
                if state.session.far.reading.is_some() {
                    ask(state, Ask::Read { id, after });
                }
            } else if let Some(reading) = state.session.far.part(*part) {
                open(state, reading);
            }
        }
        Told::Cancelled(info) => {
            state.done(format!(
                "Job {} is {}; {} of {} results are kept.",
                info.id,
                info.state.words(),
                info.done,
                info.steps
            ));
            state.session.far.note(&info);
        }
        Told::Cleared { jobs } => {
            state.done(format!("{jobs} jobs are removed."));
            wish(state, JobWish::List);
        }
    }
}

/// A question had no answer.
pub(super) fn failed(state: &mut State, why: Vec<Diagnostic>) {
    state.session.far.reading = None;
    state.session.far.error = why.first().cloned();
    why.into_iter().for_each(|why| state.tell(why));
}

/// Shows the race of a job, with the document that it ran.
fn open(state: &mut State, reading: Reading) {
    match run_of(reading) {
        Ok((path, run)) => {
            super::files::open_run(state, path, run);
            state.dialog = None;
        }
        Err(why) => why.into_iter().for_each(|why| state.tell(why)),
    }
}

/// The run file of a job's race. Errors: it failed, or came from a program that did not send the document.
fn run_of(reading: Reading) -> Result<(PathBuf, RunFile), Vec<Diagnostic>> {
    let broken = |why: String| vec![Diagnostic::error("job-file", format!("job {}: {why}", reading.id))];
    let batch = reading.batch.ok_or_else(|| broken("its work did not come".into()))?;
    let notes: RunNotes = serde_json::from_value(batch.notes).map_err(|why| broken(why.to_string()))?;
    let step = batch.steps.into_iter().next().map(|step| step.work);
    let Some(Work::Race { request }) = step else { return Err(broken("it is no race".into())) };
    match reading.pieces.into_iter().next().map(|piece| piece.end) {
        Some(PieceEnd::Ran { report }) => {
            let name = PathBuf::from(format!("job {}", reading.id));
            let document = notes.document.ok_or_else(|| broken("it was started without its document".into()))?;
            Ok((name, RunFile { copy_of: notes.copy.map(Box::new), ..file(document, *request, *report) }))
        }
        Some(PieceEnd::Failed { why }) => Err(why),
        _ => Err(broken("it has no result yet".into())),
    }
}

fn file(document: Document, request: RunRequest, report: RunReport) -> RunFile {
    RunFile {
        maskloom_run: RUN_VERSION,
        document,
        fingerprint: Some(request.problem.fingerprint()),
        conditions: crate::tasks::run_file::Conditions::of(&request),
        report,
        pictures: Vec::new(),
        copy_of: None,
    }
}
