//! Requests to the worker, and the effects of its replies.
//!
//! Invariant: nothing waits; a job's failure is reported once, with a suggested fix; results stay until newer ones
//! arrive. Must not know how results are drawn.

use super::{asking, far, there};
use crate::app::compile::Built;
use crate::app::errands::{Done, Shrunk};
use crate::app::numbers;
use crate::app::past;
use crate::app::races::{Past, Race, SmallerCopy, Wanted};
use crate::app::session::{JobFor, JobKind, Kernel, MapPicture, NoCopy, Verdicts};
use crate::app::state::State;
use crate::app::tabs::cannot_run;
use crate::app::workspace::{Aside, Workspace};
use crate::base::{BackendName, Control, Device, Diagnostic};
use crate::tasks::plan;
use crate::tasks::smaller::{self, is_heavy};
use crate::tasks::verdicts::{Place, Verdict};
use crate::worker::jobs::News;
use crate::worker::machine;
use crate::worker::protocol::MapRequest;
use std::path::Path;
use std::sync::Arc;

/// Starts a race.
pub(super) fn run(state: &mut State, wanted: Wanted) {
    if wanted != Wanted::Detached {
        state.view.show(Workspace::Race);
    }
    if state.session.is_behind(state.revision) {
        // the newest document is still being compiled: the race starts when it is there
        state.session.run_when_built = Some(wanted);
        return;
    }
    let Some(built) = state.session.built.clone() else { return };
    if built.problem.is_err() {
        return cannot(state);
    }
    if wanted == Wanted::Detached {
        return far::detach(state, &built);
    }
    let on_cpu = state.session.device(&state.document) == Device::Cpu;
    let heavy = built.problem.as_ref().is_ok_and(|p| is_heavy(p.spec()));
    state.session.no_copy = None;
    if on_cpu && heavy && wanted != Wanted::Whole && !state.view.inputs.used {
        state.session.shrinking = Some(wanted);
        state.session.shrink = Control::new();
        let base = state.path.as_ref().and_then(|p| p.parent()).map(Into::into);
        let counted = state.session.current_stats().and_then(|c| c.result.as_ref().ok()).map(|s| s.density);
        let control = state.session.shrink.clone();
        return state.session.errands.shrink(built, base, counted, control);
    }
    start(state, built.clone(), built, None, wanted);
}

/// The reason why the document cannot run: Problems lists its errors, the message shows the first. The message
/// disappears by itself, because it would outlive the fix.
fn cannot(state: &mut State) {
    state.view.show_aside(Aside::Problems);
    if let Some(words) = cannot_run(state) {
        state.tell(Diagnostic::warning("cannot-run", words));
    }
}

/// A smaller copy is ready, or does not exist.
pub(super) fn run_smaller(state: &mut State, [number, revision]: [u64; 2], made: Result<Box<Shrunk>, Diagnostic>) {
    if number != state.session.number {
        // the copy of another document: no longer needed
        return;
    }
    let Some(wanted) = state.session.shrinking.take() else { return };
    let Some(built) = state.session.built.clone().filter(|built| built.revision == revision) else {
        // the document has changed meanwhile
        return run(state, wanted);
    };
    match made {
        Ok(made) => {
            let Shrunk { built: copy, about } = *made;
            start(state, Arc::new(copy), built, Some(about), wanted);
        }
        Err(why) if why.code == "cancelled" => {}
        Err(why) => state.session.no_copy = Some(NoCopy { revision, why }),
    }
}

/// Finds out who takes the document at a place.
pub(super) fn find_verdicts(state: &mut State, place: Place) {
    let Some(built) = state.session.built.clone() else { return };
    if let Some(before) = &state.session.verdicts {
        before.control.cancel();
    }
    let (of, control) = ([built.number, built.revision], Control::new());
    state.session.verdicts = Some(Verdicts { of, place: place.clone(), answer: None, control: control.clone() });
    state.session.errands.verdicts(built, place, control);
}

/// The answer to that, unless another one is wanted by now.
pub(super) fn verdicts_found(state: &mut State, of: [u64; 2], place: &Place, found: Result<Vec<Verdict>, Diagnostic>) {
    if let Some(wanted) = state.session.verdicts.as_mut().filter(|v| v.of == of && v.place == *place) {
        wanted.answer = Some(found);
    }
}

/// Races `built`, which is `of` itself or its smaller copy.
fn start(state: &mut State, built: Arc<Built>, of: Arc<Built>, copy: Option<SmallerCopy>, wanted: Wanted) {
    let Some(request) = asking::request(state, &built, wanted) else { return };
    state.session.forget_map();
    let (whole, copy) = (Some(of.clone()), copy.map(Arc::new));
    let of = of.problem.as_ref().ok().cloned();
    let (id, asked) = (state.session.races.next(), Some((request.clone(), built)));
    let (reports, report, stale, file) = (Vec::new(), None, false, None);
    state.session.race = Some(Race { id, request: asked, of, whole, copy, reports, report, stale, file });
    state.session.on_worker = Some(id);
    let job = state.session.jobs.run(request);
    state.session.started(JobFor::Run(id), job);
}

/// Ends what the user sees in work.
pub(super) fn cancel(state: &mut State) {
    if let Some(running) = state.session.running().cloned() {
        state.session.jobs.cancel(running.job);
    }
    state.session.shrink.cancel();
    state.session.run_when_built = None;
}

/// Requests a map of a race's inputs, unless this map exists, was requested, or was refused.
pub(super) fn request_map(state: &mut State, race: u64, request: MapRequest) {
    let wanted = (race, request);
    let session = &mut state.session;
    // the worker has the inputs of its last run only
    let there = session.on_worker == Some(race) && session.race.as_ref().is_some_and(|r| r.id == race);
    if !there || session.map_asked.as_ref() == Some(&wanted) || session.has(JobKind::Run) {
        return;
    }
    session.map_asked = Some(wanted.clone());
    session.map_error = None;
    let job = session.jobs.map(wanted.1.clone());
    session.started(JobFor::Map(race, wanted.1), job);
}

/// Asks for the numbers that the canvas wants; one question at a time, so that a drag does not fill the worker.
pub(super) fn request_numbers(state: &mut State, race: u64, request: MapRequest) {
    let wanted = (race, request);
    let session = &mut state.session;
    if session.has(JobKind::Map) || session.has(JobKind::Run) || session.numbers_asked.as_ref() == Some(&wanted) {
        return;
    }
    session.numbers_asked = Some(wanted.clone());
    session.numbers_error = None;
    let job = session.jobs.map(wanted.1.clone());
    session.started(JobFor::Numbers(race, wanted.1), job);
}

/// Compiles a kernel without running it.
pub(super) fn compile(state: &mut State, backend: BackendName, arch: Option<String>) {
    state.view.show(Workspace::Code);
    state.compiles += 1;
    let Some(built) = state.session.built.clone() else { return };
    match &built.problem {
        Ok(problem) => {
            state.session.kernel_error = None;
            let job = state.session.jobs.compile(plan::compile_request(problem, backend, arch));
            state.session.started(JobFor::Compile(Box::new(problem.clone())), job);
        }
        Err(why) => state.session.kernel_error = Some(why.clone()),
    }
}

/// Looks at the worker's machine.
pub(super) fn examine(state: &mut State) {
    state.view.show_aside(Aside::Setup);
    let job = state.session.jobs.doctor();
    state.session.started(JobFor::Doctor, job);
}

/// Receives the worker's answer.
pub(super) fn listen(state: &mut State) {
    for event in state.session.jobs.poll() {
        let Some(at) = state.session.jobs_running.iter().position(|r| r.job == event.job) else { continue };
        let of = state.session.jobs_running[at].of.clone();
        // a long race calls for the user, who may look elsewhere
        const LONG: std::time::Duration = std::time::Duration::from_secs(10);
        let running = &state.session.jobs_running[at];
        state.calls |= running.kind == JobKind::Run
            && running.since.elapsed() > LONG
            && matches!(event.news, News::Ran { .. } | News::Failed { .. });
        match event.news {
            News::Progress(mut step) => {
                let (report, so_far) = (step.report.take(), std::mem::take(&mut step.so_far));
                state.session.jobs_running[at].step = step;
                if let JobFor::Run(id) = of
                    && let Some(race) = state.session.find_race(id)
                {
                    report.into_iter().for_each(|report| race.put(*report));
                    so_far.into_iter().for_each(|(backend, timing)| race.time(backend, timing));
                }
            }
            news => {
                state.session.jobs_running.remove(at);
                ended(state, of, news);
            }
        }
    }
    if let Some(wanted) = state.session.run_when_built
        && !state.session.is_behind(state.revision)
    {
        state.session.run_when_built = None;
        run(state, wanted);
    }
}

/// A job's last word goes to what the job was for.
pub(in crate::app) fn ended(state: &mut State, of: JobFor, news: News) {
    match (of, news) {
        (JobFor::Sweep(id, at), news) => super::sweep::ended(state, id, at, news),
        (JobFor::Run(id), News::Ran { report, .. }) => {
            // the next run has shown that a worker which ended is replaced
            state.notices.dismiss_mended(&["worker-died"]);
            if let Some(race) = state.session.find_race(id) {
                race.reports = report.backends.clone();
                race.report = Some(report.clone());
                let document = race.request.as_ref().map(|(_, built)| &built.document);
                let (design, sizes) = document.map_or_else(Default::default, |d| (d.name.clone(), smaller::sizes(d)));
                let past = Past { id, at: machine::moment(), before: false, design, sizes, report };
                if let Some(root) = state.recovery.folder().map(Path::to_path_buf) {
                    let kept = past.clone();
                    state.session.errands.write(move || Done::RaceKept(past::keep(&root, &kept)));
                }
                state.session.races.keep(past);
            }
        }
        (JobFor::Map(race, request), News::Mapped { height, width, pixels }) => {
            // another race may have been started since, or another document opened
            if state.session.race.as_ref().is_some_and(|r| r.id == race) {
                let number = state.session.next_map();
                state.session.map = Some(MapPicture { race, request, height, width, pixels, number });
            }
        }
        (JobFor::Numbers(race, request), News::Mapped { height, width, pixels }) => {
            let of = state.session.race.as_ref().filter(|r| r.id == race).and_then(|r| r.request.as_ref());
            if let Some(inputs) = of.map(|(of, _)| of.inputs.clone()) {
                let number = state.session.next_map();
                let map = MapPicture { race, request: request.clone(), height, width, pixels, number };
                state.session.numbers = Some((race, request, Arc::new(numbers::data(state.words(), &map, &inputs))));
            }
        }
        (JobFor::Compile(problem), News::Compiled(artefact)) => {
            let now = state.session.built.as_ref().and_then(|b| b.problem.as_ref().ok());
            let stale = now != Some(&*problem);
            state.session.kernel = Some(Kernel { artefact, problem: *problem, stale });
        }
        (JobFor::Detached, News::Detached(reported)) => far::reported(state, *reported),
        (of @ (JobFor::Folder(_) | JobFor::File(_) | JobFor::Desk(_)), news) => there::heard(state, of, news),
        (_, News::Hello(info)) => hello(state, info),
        (_, News::Examined(report)) => state.session.doctor = Some(report),
        (of, News::Failed { why }) => failed(state, of, why),
        (of, News::Cancelled) => cancelled(state, of),
        // a reply to another request, or one that is not the end
        (
            _,
            News::Ran { .. }
            | News::Mapped { .. }
            | News::Compiled(_)
            | News::Detached(_)
            | News::Progress(_)
            | News::Listed(_)
            | News::Fetched { .. }
            | News::Desk { .. },
        ) => {}
    }
}

pub(super) fn hello(state: &mut State, info: Box<crate::worker::protocol::WorkerInfo>) {
    if !state.view.target.is_local() {
        state.done(state.words().with("done-connected", &[("host", (&*info.host).into())]));
    }
    for note in &info.notes {
        // shown once on a machine; the list of messages has it every time
        let known = state.view.reported.contains(&note.message);
        state.notices.tell(note.clone(), state.now);
        if known {
            state.notices.dismiss_last();
        } else {
            state.view.reported.push(note.message.clone());
        }
    }
    state.session.worker_error = None;
    state.session.worker = Some(info);
}

fn failed(state: &mut State, of: JobFor, why: Vec<Diagnostic>) {
    match of {
        JobFor::Hello => state.session.worker_error = Some(why.clone()),
        // these show their errors in place of the result
        JobFor::Map(race, request) => {
            if state.session.map_asked.as_ref() == Some(&(race, request)) {
                state.session.map_error = Some(why);
            }
            return;
        }
        JobFor::Numbers(..) => return state.session.numbers_error = why.into_iter().next(),
        JobFor::Compile(_) => return state.session.kernel_error = Some(why),
        JobFor::Detached => return far::failed(state, why),
        JobFor::Run(id) => state.session.end_race(id),
        // taken before, by the race over lengths
        JobFor::Doctor | JobFor::Sweep(..) | JobFor::Folder(_) | JobFor::File(_) | JobFor::Desk(_) => {}
    }
    why.into_iter().for_each(|d| state.tell(d));
}

fn cancelled(state: &mut State, of: JobFor) {
    match of {
        JobFor::Run(id) => {
            state.session.end_race(id);
            state.done(state.words().text("done-cancelled"));
        }
        JobFor::Map(race, request) if state.session.map_asked == Some((race, request.clone())) => {
            state.session.map_asked = None;
        }
        JobFor::Numbers(..) => state.session.numbers_asked = None,
        _ => {}
    }
}
