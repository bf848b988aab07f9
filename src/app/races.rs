//! Running and finished races, and their documents.
//!
//! Invariant: only races of the open document are shown: others are kept here, and return with their problem. The
//! worker's messages go to the race that requested them. Must not know panels.

use super::compile::Built;
use crate::base::BackendName;
use crate::problem::Problem;
use crate::problem::result::{BackendReport, Outcome, Phase, RunReport, Timing};
use crate::tasks::run_file::{RunFile, Thumbnail};
use crate::worker::protocol::RunRequest;
use std::path::PathBuf;
use std::sync::Arc;

/// What a race is asked to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The document's backends; on a CPU, of a heavy document, a smaller copy.
    Race,
    /// The document's backends on all of it.
    Whole,
    /// The same as a job that goes on without the window.
    Detached,
    /// The user's own PyTorch alone, with gradients; on a CPU, of a heavy document, a smaller copy.
    OwnGradients,
}

/// Whose gradients [`Wanted::OwnGradients`] checks.
pub(crate) const OWN: [BackendName; 2] = [BackendName::TorchSdpa, BackendName::TorchFlex];

/// Races of other documents that are kept, at most.
const KEPT: usize = 12;
/// Races that can be looked back at, at most.
pub(super) const PAST: usize = 40;

/// A race, running or over.
#[derive(Clone, Debug)]
pub(crate) struct Race {
    /// Counts races; never given twice.
    pub id: u64,
    /// The request, and its origin; None for a run file.
    pub request: Option<(RunRequest, Arc<Built>)>,
    /// The problem that it is shown for: that of the request, or the larger one of which it is a smaller copy.
    pub of: Option<Problem>,
    /// The document open at the request: the raced one, or the original of the smaller copy.
    pub whole: Option<Arc<Built>>,
    /// If it raced a smaller copy: a description of the copy.
    pub copy: Option<Arc<SmallerCopy>>,
    /// The results so far, in the requested order.
    pub reports: Vec<BackendReport>,
    /// At its end.
    pub report: Option<Box<RunReport>>,
    /// Whether the document has changed since in a way that matters.
    pub stale: bool,
    /// The run file that it was read from, and its path.
    pub file: Option<(PathBuf, Box<RunFile>)>,
}

impl Race {
    /// Whether it measured all of the problem that it is shown for.
    pub(crate) fn is_whole(&self) -> bool {
        self.copy.is_none()
    }

    /// Whether it is from a file whose document makes another problem today than it made when it ran.
    fn is_of_another(&self) -> bool {
        let (Some(of), Some((_, run))) = (&self.of, &self.file) else { return false };
        self.is_whole() && run.is_of(of.spec()) == Some(false)
    }

    /// A backend that is being timed has these samples so far.
    pub(crate) fn time(&mut self, backend: BackendName, timing: Timing) {
        let report = self.reports.iter_mut().find(|r| r.backend == backend).map(|r| &mut r.outcome);
        if let Some(Outcome::Done { timings, .. }) = report {
            timings.put(Phase::Forward, timing);
        }
    }

    /// A report replaces the one of the same backend.
    pub(crate) fn put(&mut self, report: BackendReport) {
        match self.reports.iter_mut().find(|r| r.backend == report.backend) {
            Some(old) => *old = report,
            None => self.reports.push(report),
        }
    }
}

/// The measurements of a smaller copy's race, and its similarity to the original.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SmallerCopy {
    /// `1024 x 1024 tokens, 4 heads`.
    pub words: String,
    /// The same of the whole.
    pub of: String,
    /// Share of cells that it keeps.
    pub kept: f64,
    /// The same of the whole.
    pub kept_of: f64,
    /// Its kept cells as a small picture; None: everything.
    pub picture: Option<Thumbnail>,
}

/// A race that is over, kept to be looked back at.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    pub id: u64,
    /// The document's name.
    pub design: String,
    /// When it ended, in UTC.
    pub at: String,
    /// Whether it is of an earlier window.
    pub before: bool,
    /// `8192 x 8192 tokens, 32 heads`; those of the copy, if one was raced.
    pub sizes: String,
    pub report: Box<RunReport>,
}

impl Past {
    /// The samples of a backend that was right.
    pub(crate) fn right(&self, backend: BackendName) -> Option<&Timing> {
        let report = self.report.backends.iter().find(|r| r.backend == backend)?;
        report.outcome.right()
    }

    /// The backend that was fastest, in milliseconds.
    pub(crate) fn fastest(&self) -> Option<(BackendName, f64)> {
        let names = self.report.backends.iter().map(|r| r.backend);
        let timed = names.filter_map(|name| Some((name, self.right(name)?.median_ms)));
        timed.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Races of other documents, and the numbers of all.
#[derive(Debug, Default)]
pub(crate) struct Races {
    /// Those that are over, oldest first.
    past: Vec<Past>,
    /// Oldest first.
    others: Vec<Race>,
    /// The newest race over lengths.
    pub sweep: Option<super::sweeps::Sweep>,
    last: u64,
}

impl Races {
    /// Races that are over, oldest first.
    pub(crate) fn past(&self) -> &[Past] {
        &self.past
    }

    /// A race is over: it can be looked back at.
    pub(crate) fn keep(&mut self, past: Past) {
        self.past.push(past);
        let extra = self.past.len().saturating_sub(PAST);
        self.past.drain(..extra);
    }

    /// Races of earlier windows come before those of this one.
    pub(crate) fn remember(&mut self, read: impl FnOnce(&mut dyn FnMut() -> u64) -> Vec<Past>) {
        let mut last = self.last;
        let mut next = || {
            last += 1;
            last
        };
        let earlier = read(&mut next);
        self.last = last;
        self.past.splice(0..0, earlier);
    }

    /// A number for a race that begins.
    pub(crate) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Another document is open: the raced one is the previous one.
    pub(crate) fn leave(&mut self, shown: &mut Option<Race>) {
        if let Some(race) = shown.take() {
            self.others.push(race);
            let extra = self.others.len().saturating_sub(KEPT);
            self.others.drain(..extra);
        }
    }

    /// The document that showed this race last is open again: it comes back before others of the same problem.
    pub(crate) fn prefer(&mut self, id: Option<u64>) {
        if let Some(at) = self.others.iter().position(|race| Some(race.id) == id) {
            let race = self.others.remove(at);
            self.others.push(race);
        }
    }

    /// Where a race is, shown or not.
    pub(crate) fn find<'a>(&'a mut self, shown: &'a mut Option<Race>, id: u64) -> Option<&'a mut Race> {
        shown.iter_mut().chain(&mut self.others).find(|race| race.id == id)
    }

    /// The document has been compiled: to this problem, or to none. A race of exactly this problem comes back; one of another
    /// is stale.
    pub(crate) fn follow(&mut self, shown: &mut Option<Race>, built: &Built) {
        let problem = built.problem.as_ref().ok();
        // one that was just opened is of this problem, and stays before older ones of the same
        if let Some(race) = shown
            && race.of.is_none()
            && race.file.as_ref().is_some_and(|(_, run)| *run.whole() == built.document)
        {
            race.of = problem.cloned();
        }
        let fits = |race: &Race| problem.is_some() && race.of.as_ref() == problem;
        if !shown.as_ref().is_some_and(fits)
            && let Some(at) = self.others.iter().rposition(fits)
        {
            let race = self.others.remove(at);
            self.leave(shown);
            *shown = Some(race);
        }
        let Some(race) = shown else { return };
        if race.of.is_some() {
            race.stale = race.of.as_ref() != problem || race.is_of_another();
        }
    }

    /// A race without an end leaves no half table; results of single backends stay, marked by the missing end.
    pub(crate) fn end(&mut self, shown: &mut Option<Race>, id: u64) {
        let empty = |race: &Race| race.id == id && race.reports.is_empty();
        if shown.as_ref().is_some_and(empty) {
            *shown = None;
        }
        self.others.retain(|race| !empty(race));
    }
}
