//! Asking the worker, and what its answers do.
//!
//! Invariant: nothing waits; a job's failure is told once, with its way out; results stay until newer ones come. Must not
//! know how results are drawn.

use crate::app::compile::Built;
use crate::app::session::{JobKind, Kernel, MapPicture, Race};
use crate::app::smaller;
use crate::app::state::{State, Tab};
use crate::base::{BackendName, Device, Diagnostic};
use crate::problem::result::BackendReport;
use crate::service::jobs::News;
use crate::service::plan;
use crate::service::protocol::MapRequest;
use std::sync::Arc;

/// Starts a race. On a CPU a heavy document is raced as a smaller copy, unless `whole`.
pub(super) fn run(state: &mut State, whole: bool) {
    (state.view.tab, state.view.bottom) = (Tab::Timing, true);
    let Some(built) = state.session.built.clone() else { return };
    if state.session.is_behind(state.revision) {
        // the newest document is still being compiled: the race starts when it is there
        state.session.run_when_built = Some(whole);
        return;
    }
    let on_cpu = state.session.device(&state.document) == Device::Cpu;
    let heavy = built.problem.as_ref().is_ok_and(|p| smaller::is_heavy(p.spec()));
    if on_cpu && heavy && !whole && !state.view.inputs.used {
        state.session.shrinking = true;
        let base = state.path.as_ref().and_then(|p| p.parent()).map(Into::into);
        return state.session.errands.shrink(built, base);
    }
    start(state, built.clone(), built);
}

/// A smaller copy is ready.
pub(super) fn run_smaller(state: &mut State, revision: u64, copy: Option<Box<Built>>) {
    state.session.shrinking = false;
    let Some(built) = state.session.built.clone().filter(|built| built.revision == revision) else {
        // the document has changed meanwhile
        return run(state, false);
    };
    match copy {
        Some(copy) => start(state, Arc::from(copy), built),
        None => start(state, built.clone(), built),
    }
}

/// Races `built`, which is `of` itself or its smaller copy.
fn start(state: &mut State, built: Arc<Built>, of: Arc<Built>) {
    let device = state.session.device(&state.document);
    let mut request = match plan::run_request(&built.document, &built.compiled, device) {
        Ok(request) => request,
        Err(why) => {
            state.view.tab = Tab::Problems;
            return why.into_iter().for_each(|d| state.tell(d));
        }
    };
    if request.backends.is_empty() {
        let why = Diagnostic::error("no-backends", "no backend is chosen to race");
        return state.tell(why.hint("tick at least one on the right, under Backends"));
    }
    request.inputs = state.input_source();
    request.rounds = state.view.rounds;
    request.python = state.view.python.clone();
    (state.session.map, state.session.map_asked, state.session.map_error) = (None, None, None);
    let of = of.problem.as_ref().ok().cloned();
    let asked = Some((request.clone(), built));
    state.session.race = Some(Race { request: asked, of, reports: Vec::new(), report: None, stale: false, file: None });
    let job = state.session.jobs.run(request);
    state.session.started(JobKind::Run, job);
}

/// Ends what the user sees in work.
pub(super) fn cancel(state: &mut State) {
    if let Some(running) = state.session.running().cloned() {
        state.session.jobs.cancel(running.job);
    }
    state.session.run_when_built = None;
}

/// Asks for a map, unless this very one is there, asked for, or refused.
pub(super) fn request_map(state: &mut State, request: MapRequest) {
    if state.session.map_asked.as_ref() == Some(&request) || state.session.has(JobKind::Run) {
        return;
    }
    state.session.map_asked = Some(request.clone());
    state.session.map_error = None;
    let job = state.session.jobs.map(request);
    state.session.started(JobKind::Map, job);
}

/// Compiles a kernel without running it.
pub(super) fn compile(state: &mut State, backend: BackendName, arch: Option<String>) {
    (state.view.tab, state.view.bottom) = (Tab::Code, true);
    let Some(built) = state.session.built.clone() else { return };
    match plan::compile_request(&built.document, &built.compiled, backend, arch) {
        Ok(request) => {
            state.session.kernel_error = None;
            state.session.kernel_asked = built.problem.as_ref().ok().cloned();
            let job = state.session.jobs.compile(request);
            state.session.started(JobKind::Compile, job);
        }
        Err(why) => state.session.kernel_error = Some(why),
    }
}

/// Looks at the worker's machine.
pub(super) fn examine(state: &mut State) {
    (state.view.tab, state.view.bottom) = (Tab::Doctor, true);
    let job = state.session.jobs.doctor();
    state.session.started(JobKind::Doctor, job);
}

/// Takes what the worker has said.
pub(super) fn listen(state: &mut State) {
    for event in state.session.jobs.poll() {
        let Some(at) = state.session.jobs_running.iter().position(|r| r.job == event.job) else { continue };
        let kind = state.session.jobs_running[at].kind;
        if event.news.is_end() {
            state.session.jobs_running.remove(at);
        }
        match event.news {
            News::Progress { what, fraction, report } => {
                let running = &mut state.session.jobs_running[at];
                (running.what, running.fraction) = (what, fraction);
                if let (Some(report), Some(race)) = (report, &mut state.session.race) {
                    put(&mut race.reports, *report);
                }
            }
            News::Hello(info) => hello(state, info),
            News::Ran { report, .. } => {
                let failed = report.backends.len();
                if let Some(race) = &mut state.session.race {
                    race.reports = report.backends.clone();
                    race.report = Some(report);
                }
                if failed == 0 {
                    state.done("The run is over.");
                }
            }
            News::Mapped { height, width, pixels } => {
                if let Some(request) = state.session.map_asked.clone() {
                    let number = state.session.map.as_ref().map_or(0, |m| m.number + 1);
                    state.session.map = Some(MapPicture { request, height, width, pixels, number });
                }
            }
            News::Compiled(artefact) => {
                if let Some(problem) = state.session.kernel_asked.clone() {
                    state.session.kernel = Some(Kernel { artefact, problem, stale: false });
                }
            }
            News::Examined(report) => state.session.doctor = Some(report),
            News::Failed { why } => failed(state, kind, why),
            News::Cancelled => cancelled(state, kind),
        }
    }
    if let Some(whole) = state.session.run_when_built
        && !state.session.is_behind(state.revision)
    {
        state.session.run_when_built = None;
        run(state, whole);
    }
}

pub(super) fn hello(state: &mut State, info: Box<crate::service::protocol::WorkerInfo>) {
    if !state.view.target.is_local() {
        state.done(format!("Connected to {}.", info.host));
    }
    for note in &info.notes {
        // said once on a machine; the list of messages has it every time
        let known = state.view.told.contains(&note.message);
        state.notices.tell(note.clone(), state.now);
        if known {
            state.notices.dismiss_last();
        } else {
            state.view.told.push(note.message.clone());
        }
    }
    state.session.worker_error = None;
    state.session.worker = Some(info);
}

/// A report replaces the one of the same backend.
fn put(reports: &mut Vec<BackendReport>, report: BackendReport) {
    match reports.iter_mut().find(|r| r.backend == report.backend) {
        Some(old) => *old = report,
        None => reports.push(report),
    }
}

fn failed(state: &mut State, kind: JobKind, why: Vec<Diagnostic>) {
    match kind {
        JobKind::Hello => state.session.worker_error = Some(why.clone()),
        // these show their errors where the result would be
        JobKind::Map => return state.session.map_error = Some(why),
        JobKind::Compile => return state.session.kernel_error = Some(why),
        JobKind::Run => end_race(state),
        JobKind::Doctor => {}
    }
    why.into_iter().for_each(|d| state.tell(d));
}

fn cancelled(state: &mut State, kind: JobKind) {
    match kind {
        JobKind::Run => {
            end_race(state);
            state.done("The run was cancelled.");
        }
        JobKind::Map => state.session.map_asked = None,
        _ => {}
    }
}

/// A race that came to nothing leaves no half table; what was known of single backends stays, marked by the missing end.
fn end_race(state: &mut State) {
    if state.session.race.as_ref().is_some_and(|r| r.reports.is_empty()) {
        state.session.race = None;
    }
}
