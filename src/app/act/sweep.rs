//! A race over lengths: creating, racing and ending it.
//!
//! Invariant: nothing waits; the worker races one length at a time; the worker's inputs after a sweep do not count as
//! the open document's inputs. Must not know how a sweep is drawn.

use crate::app::compile::Built;
use crate::app::session::JobFor;
use crate::app::state::State;
use crate::app::sweeps::{Sweep, moves};
use crate::app::workspace::Workspace;
use crate::base::{Device, Diagnostic};
use crate::document::scaling::Groups;
use crate::problem::Problem;
use crate::tasks::smaller::{self, HEADS};
use crate::tasks::{lengths, plan};
use crate::worker::jobs::News;
use crate::worker::protocol::RunRequest;

/// Starts one of the open document.
pub(super) fn start(state: &mut State) {
    state.view.show(Workspace::Race);
    let Some(built) = state.session.built.clone().filter(|_| !state.session.is_behind(state.revision)) else {
        return state
            .tell(Diagnostic::warning("sweep", "the document is still being compiled").hint("try again in a moment"));
    };
    let problem = match &built.problem {
        Ok(problem) => problem.clone(),
        Err(why) => return why.iter().for_each(|d| state.tell(d.clone())),
    };
    let settings = &built.document.settings;
    if settings.backends.is_empty() {
        let why = Diagnostic::error("no-backends", "no backend is selected for the race");
        return state.tell(why.hint("select at least one under Who races"));
    }
    let on_cpu = state.session.device(&state.document) == Device::Cpu;
    let groups = match on_cpu && !problem.mask_per_head() {
        true => Groups::fewer(settings, HEADS),
        false => Groups::of(settings),
    };
    let mut tokens = lengths::lengths(problem.q_len.max(problem.kv_len));
    if on_cpu {
        // lengths that a processor races in seconds
        let whole = problem.spec();
        let heavy = |tokens: usize| {
            let share = tokens as f64 / whole.q_len.max(whole.kv_len) as f64;
            let mut one = whole.clone();
            (one.heads, one.kv_heads, one.batch) = (groups.heads, groups.kv_heads, groups.batch);
            one.q_len = (whole.q_len as f64 * share).ceil() as usize;
            one.kv_len = (whole.kv_len as f64 * share).ceil() as usize;
            smaller::is_heavy(&one)
        };
        let shortest = tokens.first().copied();
        tokens.retain(|tokens| !heavy(*tokens) || Some(*tokens) == shortest);
    }
    let said = state.words();
    let moves = said.text(moves(&built.document));
    let figures = [("n", groups.heads.into()), ("all", settings.heads.into()), ("moves", moves.into())];
    let words = said.with(if groups.heads == settings.heads { "sweep-heads" } else { "sweep-some-heads" }, &figures);
    let id = state.session.races.next();
    let base = state.path.as_ref().and_then(|p| p.parent()).map(Into::into);
    state.session.races.sweep = Some(Sweep::new(id, problem, words, &tokens));
    state.session.errands.lengths(id, built, base, tokens, groups);
}

/// A length's document has been made.
pub(super) fn made(state: &mut State, id: u64, at: usize, what: Result<Box<Built>, Diagnostic>) {
    let (device, rounds) = (state.session.device(&state.document), state.view.rounds);
    let python = state.view.python.clone();
    let request = |built: &Built, problem: &Problem| -> RunRequest {
        let mut request = plan::run_request(problem, &built.document.settings, device);
        request.options.rounds = rounds;
        request.python = python.clone();
        request
    };
    let Some(sweep) = state.session.races.sweep.as_mut().filter(|sweep| sweep.id == id && !sweep.stopped) else {
        return;
    };
    sweep.made(at, what.map(|built| *built), request);
    next(state);
}

/// Races the next length, unless one races.
fn next(state: &mut State) {
    if state.session.is_racing() {
        return;
    }
    let Some(sweep) = &mut state.session.races.sweep else { return };
    let id = sweep.id;
    let Some((at, request)) = sweep.next() else { return };
    // the worker forgets the inputs of the race that is shown
    state.session.forget_map();
    state.session.on_worker = None;
    let job = state.session.jobs.run(*request);
    state.session.started(JobFor::Sweep(id, at), job);
}

/// A length's race is over.
pub(super) fn ended(state: &mut State, id: u64, at: usize, news: News) {
    if let Some(sweep) = state.session.races.sweep.as_mut().filter(|sweep| sweep.id == id) {
        match news {
            News::Ran { report, .. } => sweep.ended(at, Ok(report)),
            News::Failed { why } => {
                let silent = || Diagnostic::error("sweep", "the worker returned no reason");
                sweep.ended(at, Err(why.into_iter().next().unwrap_or_else(silent)));
            }
            News::Cancelled => sweep.stop(),
            _ => {}
        }
    }
    next(state);
}
