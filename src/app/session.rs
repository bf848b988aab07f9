//! Data derived from the document: the compiled mods, counted blocks, runs, maps, kernels, the worker.
//!
//! Invariant: everything here can be rebuilt; polling never waits; a result records its origin, so that a stale one is
//! never shown as current. Must not know panels.

use super::background::{Latest, Wake};
use super::canvas::Canvas;
use super::canvas::heat::HeatData;
use super::captured::Captured;
use super::compile::{self, Built, CountQuestion, Counted, Question};
use super::counting::{CountClock, CountProgress};
use super::differing::{self, Differing};
use super::errands::Errands;
use super::far_jobs::FarJobs;
use super::races::{Race, Races, Wanted};
use super::there::{Asked, CapturePlace, DeskNews};
use super::watch::{self, Watch};
use crate::base::{Control, Device, Diagnostic};
use crate::document::model::Document;
use crate::problem::Problem;
use crate::problem::result::{KernelArtefact, RunStep};
use crate::tasks::comparing;
use crate::tasks::verdicts::{Place, Verdict};
use crate::worker::jobs::{JobId, Jobs};
use crate::worker::protocol::folder::FolderAsk;
use crate::worker::protocol::{DoctorReport, MapRequest, WorkerInfo};
use crate::worker::target::Target;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The purpose of a job, and the origin of its answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JobFor {
    Hello,
    /// The race of this number.
    Run(u64),
    /// A length of the race over lengths of this number.
    Sweep(u64, usize),
    /// A map of the inputs of the race of this number.
    Map(u64, MapRequest),
    /// The same for the canvas.
    Numbers(u64, MapRequest),
    /// The kernel of this problem.
    Compile(Box<Problem>),
    Doctor,
    /// A question about jobs that go on without the window.
    Detached,
    /// A folder of the worker's machine.
    Folder(FolderAsk),
    /// A file of it.
    File(String),
    /// A question to the worker's desk; about the mask on a capture: which one.
    Desk(Asked),
}

impl JobFor {
    pub(crate) fn kind(&self) -> JobKind {
        match self {
            JobFor::Hello => JobKind::Hello,
            JobFor::Run(_) | JobFor::Sweep(..) => JobKind::Run,
            JobFor::Map(..) | JobFor::Numbers(..) => JobKind::Map,
            JobFor::Compile(_) => JobKind::Compile,
            JobFor::Doctor => JobKind::Doctor,
            JobFor::Detached => JobKind::Detached,
            JobFor::Folder(_) | JobFor::File(_) => JobKind::Files,
            JobFor::Desk(_) => JobKind::Desk,
        }
    }
}

/// Kinds of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    Hello,
    Run,
    Map,
    Compile,
    Doctor,
    Detached,
    Files,
    Desk,
}

impl JobKind {
    /// The text on what it does.
    pub(crate) fn title(self) -> &'static str {
        match self {
            JobKind::Hello => "doing-hello",
            JobKind::Run => "doing-run",
            JobKind::Map => "doing-map",
            JobKind::Compile => "doing-compile",
            JobKind::Doctor => "doing-doctor",
            JobKind::Detached => "doing-detached",
            JobKind::Files => "doing-files",
            JobKind::Desk => "doing-desk",
        }
    }
}

/// A job that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub job: JobId,
    pub kind: JobKind,
    pub of: JobFor,
    pub since: Instant,
    /// How far it is, in the worker's words.
    pub step: RunStep,
}

/// An attention map.
#[derive(Clone, Debug)]
pub(crate) struct MapPicture {
    /// The race whose inputs it is of.
    pub race: u64,
    /// The request that it answers.
    pub request: MapRequest,
    pub height: usize,
    pub width: usize,
    /// Row by row; NaN where rows keep nothing.
    pub pixels: Vec<f32>,
    /// Counts the maps; never given twice.
    pub number: u64,
}

/// The picture's document: the newest one, or the last one without errors.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub built: Arc<Built>,
    /// Names of the layers in error since the picture became outdated; empty: the picture is up to date.
    pub before: Vec<String>,
}

/// A mask that the present one is compared with: a document as it was at some moment.
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    /// Counts them; never given twice.
    pub number: u64,
    /// The open document that it was.
    pub of: u64,
    pub name: String,
    pub built: Arc<Built>,
    pub lengths: crate::base::Lengths,
    /// The kept and the computed cells, as shares, if counted.
    pub counted: Option<[f64; 2]>,
}

/// Who takes a document at a place; no answer while it is being found.
pub(crate) struct Verdicts {
    /// The document's number and revision.
    pub of: [u64; 2],
    pub place: Place,
    pub answer: Option<Result<Vec<Verdict>, Diagnostic>>,
    /// Stops the search.
    pub control: Control,
}

/// Why there is no smaller copy to race.
#[derive(Clone, Debug)]
pub(crate) struct NoCopy {
    /// The revision of the document.
    pub revision: u64,
    pub why: Diagnostic,
}

/// A kernel that was compiled on demand.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub artefact: Box<KernelArtefact>,
    pub problem: Problem,
    pub stale: bool,
}

/// The loss of the mask, for the headline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LossFigure {
    /// The figure, and its meaning.
    pub value: String,
    pub detail: String,
    /// Lines of the tooltip.
    pub more: Vec<String>,
    /// Whether it belongs to an older mask, or is unknown.
    pub weak: bool,
}

/// All of it.
pub(crate) struct Session {
    /// The newest compiled document; None until the first is there.
    pub built: Option<Arc<Built>>,
    /// The document of the picture; None while the open document has always had errors.
    pub shown: Option<Shown>,
    /// The compared mask.
    pub compared: Option<Compared>,
    /// Counts the documents that were open.
    pub number: u64,
    /// Raised whenever mask, score mod or lengths change.
    pub picture: u64,
    pub counted: Option<Counted>,
    /// The open document's newest race.
    pub race: Option<Race>,
    pub races: Races,
    /// The race whose inputs the worker has.
    pub on_worker: Option<u64>,
    /// A capture that the Quality page is to open.
    pub capture: Option<CapturePlace>,
    /// What the worker's desk has said, for that page.
    pub desk: Vec<DeskNews>,
    /// Where the capture script was saved.
    pub recorder: Option<PathBuf>,
    /// The call of a capture that is open there.
    pub captured: Option<Arc<Captured>>,
    /// Its heads with their attention masses.
    pub heads: Option<super::area::Heads>,
    /// The loss of the mask on it.
    pub loss: Option<LossFigure>,
    pub map: Option<MapPicture>,
    /// The map requested and not received, or refused.
    pub map_asked: Option<(u64, MapRequest)>,
    pub map_error: Option<Vec<Diagnostic>>,
    /// The canvas's map: the race, the request, the numbers.
    pub numbers: Option<(u64, MapRequest, Arc<HeatData>)>,
    /// The last request, and the reason why its map is missing.
    pub numbers_asked: Option<(u64, MapRequest)>,
    pub numbers_error: Option<Diagnostic>,
    /// The area that is being counted, and of what.
    pub counting_area: Option<(super::region::Region, super::area::Of)>,
    /// The cells in which the mask differs from the compared one.
    pub differing: Differing,
    /// Maps so far.
    maps: u64,
    pub kernel: Option<Kernel>,
    pub kernel_error: Option<Vec<Diagnostic>>,
    /// A race starts as soon as the newest document is compiled.
    pub run_when_built: Option<Wanted>,
    /// A smaller copy is being made for this.
    pub shrinking: Option<Wanted>,
    /// Stops that.
    pub shrink: Control,
    pub no_copy: Option<NoCopy>,
    /// Who takes the document, if somebody looked.
    pub verdicts: Option<Verdicts>,
    pub doctor: Option<Box<DoctorReport>>,
    pub worker: Option<Box<WorkerInfo>>,
    pub worker_error: Option<Vec<Diagnostic>>,
    pub jobs: Jobs,
    pub far: FarJobs,
    pub jobs_running: Vec<Running>,
    pub canvas: Canvas,
    pub errands: Errands,
    pub(super) compile: Latest<Question, Built>,
    count: Latest<CountQuestion, Counted>,
    asked: Option<(u64, u64, Option<PathBuf>)>,
    counting: Option<(u64, crate::base::BlockSize, usize, usize)>,
    /// The count in work, until it is answered or stopped.
    count_clock: CountClock,
    watch: Watch,
    /// What it looks at.
    watched: Vec<PathBuf>,
    /// Looks at the document's own file.
    own: Watch,
    /// At which file and after which change it was looked into.
    looked: Option<(PathBuf, u64)>,
    wake: Wake,
}

impl Session {
    /// Nothing derived yet, no worker started.
    pub(crate) fn new(target: Target, wake: Wake) -> Self {
        Self {
            built: None,
            shown: None,
            compared: None,
            number: 0,
            picture: 0,
            counted: None,
            race: None,
            races: Races::default(),
            on_worker: None,
            capture: None,
            desk: Vec::new(),
            recorder: None,
            captured: None,
            heads: None,
            loss: None,
            map: None,
            map_asked: None,
            map_error: None,
            numbers: None,
            numbers_asked: None,
            counting_area: None,
            differing: Differing::default(),
            numbers_error: None,
            maps: 0,
            kernel: None,
            kernel_error: None,
            run_when_built: None,
            shrinking: None,
            shrink: Control::new(),
            no_copy: None,
            verdicts: None,
            doctor: None,
            worker: None,
            worker_error: None,
            jobs: Jobs::new(target, wake.clone()),
            far: FarJobs::default(),
            jobs_running: Vec::new(),
            canvas: Canvas::default(),
            errands: Errands::new(wake.clone()),
            compile: compile::compile_thread(wake.clone()),
            count: compile::count_thread(wake.clone()),
            asked: None,
            counting: None,
            count_clock: CountClock::default(),
            watch: Watch::new(wake.clone(), watch::AT_ONCE),
            watched: Vec::new(),
            own: Watch::new(wake.clone(), watch::SOON),
            looked: None,
            wake,
        }
    }

    /// Requests missing data for the document and takes finished results. Returns whether something new arrived.
    pub(crate) fn follow(&mut self, document: &Document, revision: u64, path: Option<&Path>) -> bool {
        let base = path.and_then(Path::parent).map(Path::to_path_buf);
        let wanted = (revision, self.watch.changes(), base);
        if self.asked.as_ref() != Some(&wanted) {
            let (revision, files, base) = wanted.clone();
            let number = self.number;
            self.compile.ask(Question { revision, number, document: document.clone(), base, files });
            self.asked = Some(wanted);
        }
        let mut news = false;
        if let Some(built) = self.compile.poll() {
            self.take(built);
            news = true;
        }
        self.ask_count();
        self.count_clock.follow(self.count.progress().unwrap_or(0.0));
        if let Some(counted) = self.count.poll() {
            self.counted = Some(counted);
            news = true;
        }
        news
    }

    /// Looks into the document's own file if it is another or has changed.
    pub(crate) fn follow_file(&mut self, path: Option<&Path>) {
        self.own.files(&path.map(Path::to_path_buf).into_iter().collect::<Vec<_>>());
        let wanted = path.map(|path| (path.to_path_buf(), self.own.changes()));
        if self.looked != wanted {
            self.looked.clone_from(&wanted);
            wanted.into_iter().for_each(|(path, _)| self.errands.look(path));
        }
    }

    /// Takes a compiled document over.
    pub(crate) fn take(&mut self, built: Built) {
        if built.number != self.number {
            // of a document that was open before
            return;
        }
        // a file that is gone is waited for: what is read without it names it no more
        let mut watched = built.watched.clone();
        if built.problem.is_err() {
            watched.extend(std::mem::take(&mut self.watched));
            watched.sort();
            watched.dedup();
        }
        self.watch.files(&watched);
        self.watched = watched;
        let spec = built.problem.as_ref().ok().map(|p| p.spec());
        if let Some(kernel) = &mut self.kernel {
            kernel.stale = spec != Some(kernel.problem.spec());
        }
        self.races.follow(&mut self.race, &built);
        let built = Arc::new(built);
        self.built = Some(built.clone());
        self.show(built);
    }

    /// A layer in error is never omitted from the picture: its previous state stays, and is labelled so.
    fn show(&mut self, built: Arc<Built>) {
        let (broken, standing) = built.broken();
        let shown = match &self.shown {
            _ if broken.is_empty() || standing => Some(Shown { built, before: broken }),
            Some(last) => Some(Shown { built: last.built.clone(), before: broken }),
            None => None,
        };
        let same = |a: &Shown, b: &Shown| a.built.same_picture(&b.built);
        if !self.shown.as_ref().zip(shown.as_ref()).is_some_and(|(a, b)| same(a, b)) {
            self.picture += 1;
        }
        self.shown = shown;
    }

    /// Another document is open: data derived from the previous one do not apply.
    pub(crate) fn another_document(&mut self) {
        self.number += 1;
        self.shrink.cancel();
        self.shrinking = None;
        self.races.leave(&mut self.race);
        (self.built, self.shown, self.counted) = (None, None, None);
        self.watched.clear();
        (self.kernel, self.kernel_error, self.no_copy, self.run_when_built) = (None, None, None, None);
        self.verdicts = None;
        // its file may be that of another tab, which has seen a state of it that this one has not
        self.looked = None;
        self.canvas.another_document();
        self.forget_map();
    }

    /// A race by its number, of any document.
    pub(crate) fn find_race(&mut self, id: u64) -> Option<&mut Race> {
        self.races.find(&mut self.race, id)
    }

    /// A race has ended without numbers.
    pub(crate) fn end_race(&mut self, id: u64) {
        self.races.end(&mut self.race, id);
    }

    /// No map exists or was requested.
    pub(crate) fn forget_map(&mut self) {
        (self.map, self.map_asked, self.map_error) = (None, None, None);
        (self.numbers, self.numbers_asked, self.numbers_error) = (None, None, None);
    }

    /// A number for a map that has come.
    pub(crate) fn next_map(&mut self) -> u64 {
        self.maps += 1;
        self.maps
    }

    fn ask_count(&mut self) {
        let Some(Shown { built, before }) = &self.shown else { return };
        // an outdated picture has no numbers
        let (Some(lengths), true) = (built.lengths, before.is_empty()) else { return };
        let settings = &built.document.settings;
        let wanted = (self.picture, settings.block_size, settings.batch, settings.heads);
        if self.counting == Some(wanted) {
            return;
        }
        self.counting = Some(wanted);
        self.count_clock = CountClock::start();
        self.count.ask(CountQuestion {
            picture: self.picture,
            mask: built.compiled.mask.clone(),
            lengths,
            batch: settings.batch,
            heads: settings.heads,
            block_size: settings.block_size,
            plans: built.problem.as_ref().ok().map(|problem| problem.plans().clone()),
            at_cells: self.count_clock.at_cells.clone(),
        });
    }

    /// The progress of counting the shown mask.
    pub(crate) fn count_progress(&self) -> CountProgress {
        self.count_clock.progress(self.count.progress().unwrap_or(0.0))
    }

    /// Stops the count; the picture does not depend on it.
    pub(crate) fn stop_count(&mut self) {
        self.count.stop();
        self.count_clock.stopped = true;
    }

    /// Counts after all.
    pub(crate) fn count_again(&mut self) {
        self.counting = None;
    }

    /// Whether the shown picture comes from an older document.
    pub(crate) fn is_behind(&self, revision: u64) -> bool {
        self.built.as_ref().is_none_or(|built| built.revision != revision)
    }

    /// Counted blocks of the shown mask.
    pub(crate) fn current_stats(&self) -> Option<&Counted> {
        let shown = self.shown.as_ref().filter(|shown| shown.before.is_empty())?;
        let size = shown.built.document.settings.block_size;
        self.counted.as_ref().filter(|c| c.picture == self.picture && c.block_size == size)
    }

    /// Compares with the present mask, of this open document, from now on. Returns its name; None while no mask without errors is
    /// shown.
    pub(crate) fn compare_with_this(&mut self, of: u64) -> Option<String> {
        let Shown { built, before } = self.shown.clone()?;
        let lengths = built.lengths.filter(|_| before.is_empty())?;
        let stats = self.current_stats().and_then(|counted| counted.result.as_ref().ok());
        let counted = stats.map(|stats| [stats.density, stats.computed]);
        let number = self.compared.as_ref().map_or(1, |last| last.number + 1);
        let name = built.document.name.clone();
        self.compared = Some(Compared { number, of, name: name.clone(), built, lengths, counted });
        Some(name)
    }

    /// What a list of differing cells is to be of now; None: nothing is compared at equal lengths.
    pub(crate) fn differing_of(&self) -> Option<differing::Of> {
        let (other, shown) = (self.compared.as_ref()?, self.shown.as_ref()?);
        let same = shown.built.lengths == Some(other.lengths);
        same.then_some([other.number, shown.built.number, shown.built.revision])
    }

    /// Counts the differing cells where they are shown.
    pub(crate) fn follow_difference(&mut self, is_shown: bool) {
        let question = |of| {
            let (now, then) = (&self.shown.as_ref()?.built, &self.compared.as_ref()?.built);
            let (a, b) = (&now.document.settings, &then.document.settings);
            let axes = &now.document.axes;
            Some(differing::Question {
                of,
                masks: [now, then].map(|built| built.compiled.mask.clone()),
                extents: [a.batch.max(b.batch), a.heads.max(b.heads)],
                parts: [comparing::parts(&axes.q), comparing::parts(axes.kv())],
            })
        };
        let of = self.differing_of().filter(|_| is_shown);
        self.differing.follow(of, question, self.wake.clone());
    }

    /// Reads linked files again.
    pub(crate) fn read_again(&mut self) {
        self.watch.raise();
    }

    /// The job in work that the user should see.
    pub(crate) fn running(&self) -> Option<&Running> {
        self.jobs_running.iter().find(|r| r.kind == JobKind::Run).or(self.jobs_running.first())
    }

    /// Whether a race is in work.
    pub(crate) fn is_racing(&self) -> bool {
        self.has(JobKind::Run)
    }

    /// Whether such a job is in work.
    pub(crate) fn has(&self, kind: JobKind) -> bool {
        self.jobs_running.iter().any(|r| r.kind == kind)
    }

    /// Notes a job that was started.
    pub(crate) fn started(&mut self, of: JobFor, job: JobId) {
        let (kind, since) = (of.kind(), Instant::now());
        self.jobs_running.push(Running { job, kind, of, since, step: RunStep::default() });
    }

    /// Wakes the window.
    pub(crate) fn wake(&self) -> Wake {
        self.wake.clone()
    }

    /// Another worker: everything that belongs to the old one is forgotten.
    pub(crate) fn connect(&mut self, target: Target) {
        self.adopt(Jobs::new(target, self.wake.clone()));
        self.hello();
    }

    /// A worker that has answered takes the place of the old one, of which everything is forgotten.
    pub(crate) fn adopt(&mut self, jobs: Jobs) {
        self.jobs.cancel_all();
        self.jobs_running.clear();
        self.jobs = jobs;
        (self.worker, self.worker_error, self.doctor) = (None, None, None);
        self.on_worker = None;
        (self.far, self.desk) = (FarJobs::default(), Vec::new());
        self.forget_map();
    }

    /// Asks the worker who it is.
    pub(crate) fn hello(&mut self) {
        let job = self.jobs.hello();
        self.started(JobFor::Hello, job);
    }

    /// The device that a run would use.
    pub(crate) fn device(&self, document: &Document) -> Device {
        let nobody = WorkerInfo::default();
        let info = self.worker.as_deref().unwrap_or(&nobody);
        crate::tasks::plan::choose_device(None, document, info)
    }
}
