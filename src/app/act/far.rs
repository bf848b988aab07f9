//! Jobs that go on without the window: they are started, listed, opened and ended.
//!
//! Invariant: nothing waits; a job's results open as a run file does. Must not know how they are drawn.

use crate::app::compile::Built;
use crate::app::drafts::Dialog;
use crate::app::far_jobs::{JobWish, Read, Reading};
use crate::app::races::Wanted;
use crate::app::session::JobFor;
use crate::app::state::State;
use crate::base::Diagnostic;
use crate::tasks::detached::RunNotes;
use crate::tasks::run_file::RunFile;
use crate::tasks::steps;
use crate::worker::protocol::detached::{Ask, JobAnswer, PieceEnd, Work};
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
            ask(state, Ask::Read { id, after: 0, wait: 0 });
        }
        JobWish::Cancel(id) => ask(state, Ask::Cancel { id }),
        JobWish::Clear => ask(state, Ask::Clear { id: None }),
        JobWish::Others => {
            state.session.far.others.ask();
            state.session.errands.jobs_of_targets(state.view.target.clone());
        }
    }
}

/// Starts the race of `built` as a job.
pub(super) fn detach(state: &mut State, built: &Built) {
    let Some(request) = super::asking::request(state, built, Wanted::Detached) else { return };
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
pub(super) fn reported(state: &mut State, reported: JobAnswer) {
    match reported {
        JobAnswer::Started { id } => {
            state.done(state.words().with("done-detached", &[("id", id.into())]));
            wish(state, JobWish::List);
        }
        JobAnswer::Listed { jobs } => state.session.far.put(jobs),
        JobAnswer::Part(part) => match state.session.far.part(*part) {
            Read::More { id, after } => ask(state, Ask::Read { id, after, wait: 0 }),
            Read::Whole(reading) => open(state, reading),
            Read::Unwanted => {}
        },
        JobAnswer::Cancelled(info) => {
            state.done(state.words().with(
                "done-job",
                &[
                    ("id", (&*info.id).into()),
                    ("state", state.words().text(steps::job(info.state)).into()),
                    ("done", info.done.into()),
                    ("steps", info.steps.into()),
                ],
            ));
            state.session.far.note(&info);
        }
        JobAnswer::Cleared { jobs } => {
            state.done(state.words().with("done-jobs-removed", &[("jobs", jobs.into())]));
            wish(state, JobWish::List);
        }
    }
}

/// A question had no answer. The open list shows why, and asks again; elsewhere it is told.
pub(super) fn failed(state: &mut State, why: Vec<Diagnostic>) {
    state.session.far.reading = None;
    state.session.far.error = why.first().cloned();
    if !matches!(state.dialog, Some(Dialog::Jobs)) {
        why.into_iter().for_each(|why| state.tell(why));
    }
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
            Ok((name, RunFile { copy_of: notes.copy.map(Box::new), ..RunFile::bare(document, &request, *report) }))
        }
        Some(PieceEnd::Failed { why }) => Err(why),
        _ => Err(broken("it has no result yet".into())),
    }
}
