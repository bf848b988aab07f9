//! What is derived from the document: the compiled mods, counted blocks, runs, maps, kernels, the worker.
//!
//! Invariant: everything here can be rebuilt; polling never waits; a result knows what it was made from, so that a stale
//! one is never shown as current. Must not know panels.

use super::background::{Latest, Wake};
use super::canvas::Canvas;
use super::compile::{self, Built, CountQuestion, Counted, Question};
use super::errands::Errands;
use super::watch::Watch;
use crate::base::{Device, Diagnostic};
use crate::document::model::Document;
use crate::problem::Problem;
use crate::problem::result::{BackendReport, KernelArtefact, RunReport};
use crate::service::jobs::{JobId, Jobs};
use crate::service::protocol::{DoctorReport, MapRequest, RunRequest, WorkerInfo};
use crate::service::run_file::RunFile;
use crate::service::target::Target;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    Hello,
    Run,
    Map,
    Compile,
    Doctor,
}

impl JobKind {
    /// As the status bar says it.
    pub fn title(self) -> &'static str {
        match self {
            JobKind::Hello => "starting the worker",
            JobKind::Run => "running",
            JobKind::Map => "computing the attention map",
            JobKind::Compile => "compiling the kernel",
            JobKind::Doctor => "examining the setup",
        }
    }
}

/// A job that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub job: JobId,
    pub kind: JobKind,
    pub since: Instant,
    /// What is being done, in the worker's words.
    pub what: String,
    /// 0..=1; 0 where nothing is told.
    pub fraction: f32,
}

/// A race, running or over.
#[derive(Clone, Debug)]
pub(crate) struct Race {
    /// What was asked for, and what it was made from; None for a run file.
    pub request: Option<(RunRequest, Arc<Built>)>,
    /// The problem that it is shown for: that of the request, or the larger one of which it is a smaller copy.
    pub of: Option<Problem>,
    /// What is known so far, in the order asked for.
    pub reports: Vec<BackendReport>,
    /// At its end.
    pub report: Option<Box<RunReport>>,
    /// Whether the document has changed since in a way that matters.
    pub stale: bool,
    /// The run file that it was read from, and its path.
    pub file: Option<(PathBuf, Box<RunFile>)>,
}

/// An attention map.
#[derive(Clone, Debug)]
pub(crate) struct MapPicture {
    pub request: MapRequest,
    pub height: usize,
    pub width: usize,
    /// Row by row; NaN where rows keep nothing.
    pub pixels: Vec<f32>,
    /// Counts the maps.
    pub number: u64,
}

/// A kernel that was compiled on demand.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub artefact: Box<KernelArtefact>,
    pub problem: Problem,
    pub stale: bool,
}

/// All of it.
pub(crate) struct Session {
    /// The newest compiled document; None until the first is there.
    pub built: Option<Arc<Built>>,
    /// Raised whenever mask, score mod or lengths change.
    pub picture: u64,
    pub counted: Option<Counted>,
    pub race: Option<Race>,
    pub map: Option<MapPicture>,
    /// The map asked for and not there yet, or refused.
    pub map_asked: Option<MapRequest>,
    pub map_error: Option<Vec<Diagnostic>>,
    pub kernel: Option<Kernel>,
    pub kernel_error: Option<Vec<Diagnostic>>,
    /// What the kernel asked for is compiled from.
    pub kernel_asked: Option<Problem>,
    /// A race starts as soon as the newest document is compiled: of all of it or not.
    pub run_when_built: Option<bool>,
    /// A smaller copy is being made.
    pub shrinking: bool,
    pub doctor: Option<Box<DoctorReport>>,
    pub worker: Option<Box<WorkerInfo>>,
    pub worker_error: Option<Vec<Diagnostic>>,
    pub jobs: Jobs,
    pub jobs_running: Vec<Running>,
    pub canvas: Canvas,
    pub errands: Errands,
    compile: Latest<Question, Built>,
    count: Latest<CountQuestion, Counted>,
    asked: Option<(u64, u64, Option<PathBuf>)>,
    counting: Option<(u64, crate::base::BlockSize, usize, usize)>,
    /// The count in work, until it is answered or stopped.
    count_clock: CountClock,
    watch: Watch,
    wake: Wake,
}

/// How a count is going.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CountProgress {
    /// Of the blocks, or of the cells when the blocks are known; how long, and how far.
    Working { at_cells: bool, waited: Duration, fraction: f64 },
    /// The user stopped it.
    Stopped,
}

#[derive(Debug, Default)]
struct CountClock {
    began: Option<Instant>,
    at_cells: Arc<AtomicBool>,
    was_at_cells: bool,
    stopped: bool,
}

impl CountClock {
    /// Starts anew when the cells begin to be counted: their pace is another.
    fn follow(&mut self) {
        if !self.was_at_cells && self.at_cells.load(Ordering::Relaxed) {
            self.was_at_cells = true;
            self.began = Some(Instant::now());
        }
    }
}

impl Session {
    /// Nothing derived yet, no worker started.
    pub fn new(target: Target, wake: Wake) -> Self {
        Self {
            built: None,
            picture: 0,
            counted: None,
            race: None,
            map: None,
            map_asked: None,
            map_error: None,
            kernel: None,
            kernel_error: None,
            kernel_asked: None,
            run_when_built: None,
            shrinking: false,
            doctor: None,
            worker: None,
            worker_error: None,
            jobs: Jobs::new(target, wake.clone()),
            jobs_running: Vec::new(),
            canvas: Canvas::default(),
            errands: Errands::new(wake.clone()),
            compile: compile::compile_thread(wake.clone()),
            count: compile::count_thread(wake.clone()),
            asked: None,
            counting: None,
            count_clock: CountClock::default(),
            watch: Watch::new(wake.clone()),
            wake,
        }
    }

    /// Asks for what the document needs and takes what has come. Returns whether something new is there.
    pub fn follow(&mut self, document: &Document, revision: u64, path: Option<&Path>) -> bool {
        let base = path.and_then(Path::parent).map(Path::to_path_buf);
        let wanted = (revision, self.watch.changes(), base);
        if self.asked.as_ref() != Some(&wanted) {
            let (revision, files, base) = wanted.clone();
            self.compile.ask(Question { revision, document: document.clone(), base, files });
            self.asked = Some(wanted);
        }
        let mut news = false;
        if let Some(built) = self.compile.poll() {
            self.take(built);
            news = true;
        }
        self.ask_count();
        self.count_clock.follow();
        if let Some(counted) = self.count.poll() {
            self.counted = Some(counted);
            news = true;
        }
        news
    }

    fn take(&mut self, built: Built) {
        if !self.built.as_ref().is_some_and(|old| old.same_picture(&built)) {
            self.picture += 1;
        }
        self.watch.files(&built.watched);
        let spec = built.problem.as_ref().ok().map(|p| p.spec());
        if let Some(race) = &mut self.race
            && race.of.is_none()
            && race.file.as_ref().is_some_and(|(_, run)| run.document == built.document)
        {
            race.of = built.problem.as_ref().ok().cloned();
        }
        if let Some(race) = &mut self.race
            && let Some(of) = &race.of
        {
            race.stale = spec != Some(of.spec());
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.stale = spec != Some(kernel.problem.spec());
        }
        self.built = Some(Arc::new(built));
    }

    fn ask_count(&mut self) {
        let Some(built) = &self.built else { return };
        let (Some(lengths), settings) = (built.lengths, &built.document.settings) else { return };
        let wanted = (self.picture, settings.block_size, settings.batch, settings.heads);
        if self.counting == Some(wanted) {
            return;
        }
        self.counting = Some(wanted);
        self.count_clock = CountClock { began: Some(Instant::now()), ..CountClock::default() };
        self.count.ask(CountQuestion {
            picture: self.picture,
            mask: built.compiled.mask.clone(),
            lengths,
            batch: settings.batch,
            heads: settings.heads,
            block_size: settings.block_size,
            at_cells: self.count_clock.at_cells.clone(),
        });
    }

    /// How the count of what is shown now is going.
    pub fn count_progress(&self) -> CountProgress {
        let clock = &self.count_clock;
        if clock.stopped {
            return CountProgress::Stopped;
        }
        let waited = clock.began.map(|began| began.elapsed()).unwrap_or_default();
        CountProgress::Working { at_cells: clock.was_at_cells, waited, fraction: self.count.progress().unwrap_or(0.0) }
    }

    /// Gives the count up; what is drawn does not depend on it.
    pub fn stop_count(&mut self) {
        self.count.stop();
        self.count_clock.stopped = true;
    }

    /// Counts after all.
    pub fn count_again(&mut self) {
        self.counting = None;
    }

    /// Whether what is shown was made from an older document.
    pub fn is_behind(&self, revision: u64) -> bool {
        self.built.as_ref().is_none_or(|built| built.revision != revision)
    }

    /// Counted blocks of what is shown now.
    pub fn current_stats(&self) -> Option<&Counted> {
        let size = self.built.as_ref()?.document.settings.block_size;
        self.counted.as_ref().filter(|c| c.picture == self.picture && c.block_size == size)
    }

    /// Reads linked files again.
    pub fn read_again(&mut self) {
        self.watch.raise();
    }

    /// The job in work that the user should see.
    pub fn running(&self) -> Option<&Running> {
        self.jobs_running.iter().find(|r| r.kind == JobKind::Run).or(self.jobs_running.first())
    }

    /// Whether a race is in work.
    pub fn is_racing(&self) -> bool {
        self.has(JobKind::Run)
    }

    /// Whether such a job is in work.
    pub fn has(&self, kind: JobKind) -> bool {
        self.jobs_running.iter().any(|r| r.kind == kind)
    }

    /// Notes a job that was started.
    pub fn started(&mut self, kind: JobKind, job: JobId) {
        let what = kind.title().to_string();
        self.jobs_running.push(Running { job, kind, since: Instant::now(), what, fraction: 0.0 });
    }

    /// What calls the window back.
    pub fn wake(&self) -> Wake {
        self.wake.clone()
    }

    /// Another worker: everything that belongs to the old one is forgotten.
    pub fn connect(&mut self, target: Target) {
        self.adopt(Jobs::new(target, self.wake.clone()));
        self.hello();
    }

    /// A worker that has answered takes the place of the old one, of which everything is forgotten.
    pub fn adopt(&mut self, jobs: Jobs) {
        self.jobs.cancel_all();
        self.jobs_running.clear();
        self.jobs = jobs;
        (self.worker, self.worker_error, self.doctor) = (None, None, None);
        (self.map, self.map_asked, self.map_error) = (None, None, None);
    }

    /// Asks the worker who it is.
    pub fn hello(&mut self) {
        let job = self.jobs.hello();
        self.started(JobKind::Hello, job);
    }

    /// The device that a run would use.
    pub fn device(&self, document: &Document) -> Device {
        let nobody = WorkerInfo::default();
        let info = self.worker.as_deref().unwrap_or(&nobody);
        crate::service::plan::choose_device(None, document, info)
    }
}
