//! Work on a target without waiting for it, for the window and the command line.
//!
//! Invariant: nothing here blocks; every job ends in exactly one event that [`News::is_end`], after any number of
//! progress. Compiles run in a worker of their own, so that killing a stale one leaves GPU contexts and inputs alone.
//! Must not know the window or the command line.

use crate::backends::cuda::CONTEXT_LOST;
use crate::base::Diagnostic;
use crate::base::tensor::Data;
use crate::problem::result::{GradientOutcome, KernelArtefact, Outcome, RunReport, RunStep};
use crate::worker::client::{self, Event};
use crate::worker::named;
use crate::worker::patience::Patience;
use crate::worker::protocol::detached::{Ask, JobAnswer};
use crate::worker::protocol::folder::{FolderAsk, Listing};
use crate::worker::protocol::{
    CompileRequest, DoctorReport, MapRequest, OTHER_VERSION, PROTOCOL_VERSION, Reply, RequestBody, ResponseBody,
    RunRequest, WorkerInfo,
};
use crate::worker::supervisor::Supervisor;
use crate::worker::target::Target;
use crate::worker::transport::Payload;
use std::sync::Arc;

/// Names a job, over all targets of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(u64);

/// Something happened to a job.
#[derive(Clone, Debug)]
pub struct JobEvent {
    /// Which.
    pub job: JobId,
    /// What.
    pub news: News,
}

/// An event.
#[derive(Clone, Debug)]
pub enum News {
    /// On the way.
    Progress(RunStep),
    /// The target answered [`Jobs::hello`].
    Hello(Box<WorkerInfo>),
    /// A race is over.
    Ran {
        /// Everything measured.
        report: Box<RunReport>,
        /// With `keep_outputs`: `BACKEND.out`, `BACKEND.lse` and `BACKEND.max_scores`.
        payloads: Vec<Payload>,
    },
    /// A map is there.
    Mapped {
        /// Rows of pixels.
        height: usize,
        /// Columns of pixels.
        width: usize,
        /// Row by row; NaN where rows keep nothing.
        pixels: Vec<f32>,
    },
    /// A kernel is compiled.
    Compiled(Box<KernelArtefact>),
    /// The doctor's report.
    Examined(Box<DoctorReport>),
    /// About detached jobs.
    Detached(Box<JobAnswer>),
    /// The content of a folder.
    Listed(Box<Listing>),
    /// A file with its path there.
    Fetched {
        /// Its whole path there.
        path: String,
        /// All of it.
        bytes: Vec<u8>,
    },
    /// The answer of the desk, with its numbers.
    Desk {
        /// The answer.
        reported: serde_json::Value,
        /// What it refers to.
        payloads: Vec<Payload>,
    },
    /// It failed; a dead worker's last words are in the diagnostic `worker-died`.
    Failed {
        /// Why.
        why: Vec<Diagnostic>,
    },
    /// It was cancelled, or a newer compile took its place, or the worker was cancelled for another job.
    Cancelled,
}

impl News {
    /// Whether it is a job's last event.
    pub fn is_end(&self) -> bool {
        !matches!(self, News::Progress(_))
    }
}

/// Jobs on one target. Workers start with the first job that needs them, and again after a death.
pub struct Jobs {
    target: Target,
    main: Lane,
    compiler: Lane,
    next: u64,
    ready: Vec<JobEvent>,
}

/// One worker and the jobs that wait for it.
struct Lane {
    supervisor: Supervisor,
    waiting: Vec<(u64, JobId)>,
}

impl Jobs {
    /// For a target; nothing is launched yet. `wake` is called from another thread when [`Jobs::poll`] has something.
    pub fn new(target: Target, wake: Arc<dyn Fn() + Send + Sync>) -> Jobs {
        let lane = || Lane { supervisor: Supervisor::new(target.clone(), wake.clone()), waiting: Vec::new() };
        Jobs { main: lane(), compiler: lane(), target, next: 1, ready: Vec::new() }
    }

    /// How long workers that start from here on may keep silent.
    pub fn set_patience(&mut self, patience: Patience) {
        self.main.supervisor.set_patience(patience);
        self.compiler.supervisor.set_patience(patience);
    }

    /// Where they run.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Who is there and with which devices: ends in [`News::Hello`].
    pub fn hello(&mut self) -> JobId {
        self.start(false, RequestBody::Hello { protocol: PROTOCOL_VERSION })
    }

    /// A race: ends in [`News::Ran`].
    pub fn run(&mut self, request: RunRequest) -> JobId {
        self.start(false, RequestBody::Run(Box::new(request)))
    }

    /// A map of the last run's inputs: ends in [`News::Mapped`].
    pub fn map(&mut self, request: MapRequest) -> JobId {
        self.start(false, RequestBody::Map(request))
    }

    /// Compiles; a compile that is still running is killed and ends in [`News::Cancelled`]. Ends in [`News::Compiled`].
    pub fn compile(&mut self, request: CompileRequest) -> JobId {
        self.cancel_lane(true);
        self.start(true, RequestBody::Compile(Box::new(request)))
    }

    /// Examines the installed software: ends in [`News::Examined`].
    pub fn doctor(&mut self) -> JobId {
        // a worker at work is not waited for
        let busy = !self.main.waiting.is_empty();
        self.start(busy, RequestBody::Doctor)
    }

    /// About work that goes on without this process: ends in [`News::Detached`].
    pub fn detached(&mut self, ask: Ask) -> JobId {
        self.start(false, RequestBody::Detached(ask))
    }

    /// The content of a folder there: ends in [`News::Listed`].
    pub fn folder(&mut self, ask: FolderAsk) -> JobId {
        self.start(false, RequestBody::Folder(ask))
    }

    /// A small file there: ends in [`News::Fetched`].
    pub fn file(&mut self, path: &str) -> JobId {
        self.start(false, RequestBody::File { path: path.into() })
    }

    /// A question about a capture there: ends in [`News::Desk`].
    pub fn desk(&mut self, about: serde_json::Value) -> JobId {
        self.start(false, RequestBody::Desk { about })
    }

    /// Whether a job has not ended yet.
    pub fn is_busy(&self) -> bool {
        !(self.main.waiting.is_empty() && self.compiler.waiting.is_empty() && self.ready.is_empty())
    }

    /// Everything that has happened since the last call. Never blocks.
    pub fn poll(&mut self) -> Vec<JobEvent> {
        self.listen(false);
        self.listen(true);
        std::mem::take(&mut self.ready)
    }

    fn listen(&mut self, compiling: bool) {
        let lane = if compiling { &mut self.compiler } else { &mut self.main };
        let mut lost = false;
        for event in lane.supervisor.poll() {
            for event in lane.hear(event, &self.target) {
                lost |= lost_its_gpu(&event.news);
                self.ready.push(event);
            }
        }
        if lost {
            // only a new process gets a new context
            lane.supervisor.cancel();
            self.ready.extend(lane.waiting.drain(..).map(|(_, job)| JobEvent { job, news: News::Cancelled }));
        }
    }

    /// Blocks until the job ends and returns its last event, passing on every other one meanwhile. For the command
    /// line.
    pub fn wait(&mut self, job: JobId, on_progress: &mut dyn FnMut(&News)) -> News {
        let mut others = Vec::new();
        let mut end = None;
        while end.is_none() {
            // the whole batch is looked at: what comes behind the end belongs to others
            for event in self.poll() {
                if event.job != job {
                    others.push(event);
                } else if event.news.is_end() {
                    end = Some(event.news);
                } else {
                    on_progress(&event.news);
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.ready.extend(others);
        end.expect("the loop ended with it")
    }

    /// Cancels a job by killing its worker, with which other jobs of that worker end too. The inputs of the last run are
    /// lost, unless the job is a compile.
    pub fn cancel(&mut self, job: JobId) {
        for compiling in [false, true] {
            let lane = if compiling { &self.compiler } else { &self.main };
            if lane.waiting.iter().any(|(_, j)| *j == job) {
                self.cancel_lane(compiling);
            }
        }
    }

    /// Cancels everything.
    pub fn cancel_all(&mut self) {
        self.cancel_lane(false);
        self.cancel_lane(true);
    }

    fn cancel_lane(&mut self, compiling: bool) {
        let lane = if compiling { &mut self.compiler } else { &mut self.main };
        if lane.waiting.is_empty() {
            return;
        }
        lane.supervisor.cancel();
        let cancelled = lane.waiting.drain(..).map(|(_, job)| JobEvent { job, news: News::Cancelled });
        self.ready.extend(cancelled);
    }

    fn start(&mut self, compiling: bool, body: RequestBody) -> JobId {
        let job = JobId(self.next);
        self.next += 1;
        // a worker that has died in the meantime is replaced, not asked
        self.listen(compiling);
        let lane = if compiling { &mut self.compiler } else { &mut self.main };
        match lane.supervisor.send(body) {
            Ok(request) => lane.waiting.push((request, job)),
            Err(why) => self.ready.push(JobEvent { job, news: News::Failed { why: vec![why] } }),
        }
        job
    }
}

impl Lane {
    fn hear(&mut self, event: Event, target: &Target) -> Vec<JobEvent> {
        match event {
            Event::Message { body: ResponseBody::Alive, .. } => Vec::new(),
            Event::Message { id, body, payloads } => {
                let Some(at) = self.waiting.iter().position(|(request, _)| *request == id) else { return Vec::new() };
                let job = self.waiting[at].1;
                let news = mended(news(body, payloads), target);
                if news.is_end() {
                    self.waiting.remove(at);
                }
                vec![JobEvent { job, news }]
            }
            Event::Died { last_words, silent } => {
                let failed = |(_, job)| {
                    let why = vec![client::died(target, &last_words, silent)];
                    JobEvent { job, news: News::Failed { why } }
                };
                self.waiting.drain(..).map(failed).collect()
            }
        }
    }
}

/// Whether something failed in a way that leaves its worker's GPU context unusable.
fn lost_its_gpu(news: &News) -> bool {
    let lost = |why: &Diagnostic| why.code == CONTEXT_LOST;
    match news {
        News::Failed { why } => why.iter().any(lost),
        News::Ran { report, .. } => {
            report.backends.iter().any(|b| matches!(&b.outcome, Outcome::Failed { why } if lost(why)))
                || report.gradients.iter().any(|b| matches!(&b.outcome, GradientOutcome::Failed { why } if lost(why)))
        }
        _ => false,
    }
}

fn news(body: ResponseBody, payloads: Vec<Payload>) -> News {
    match body {
        ResponseBody::Alive => unreachable!("no job's"),
        ResponseBody::Progress(step) => News::Progress(step),
        ResponseBody::Failed { why } => News::Failed { why },
        ResponseBody::Done(reply) => match reply {
            Reply::Hello(info) => News::Hello(Box::new(info)),
            Reply::Run(report) => News::Ran { report, payloads },
            Reply::Compile(artefact) => News::Compiled(artefact),
            Reply::Doctor(report) => News::Examined(Box::new(report)),
            Reply::Detached(reported) => News::Detached(Box::new(reported)),
            Reply::Folder(listing) => News::Listed(listing),
            Reply::File { path } => {
                let bytes = payloads.into_iter().next().map(|(_, bytes)| bytes).unwrap_or_default();
                News::Fetched { path, bytes }
            }
            Reply::Desk { reported } => News::Desk { reported, payloads },
            Reply::Map { height, width } => map_news(height, width, &payloads),
            other @ (Reply::Bye {} | Reply::CompileText { .. }) => {
                News::Failed { why: vec![client::unexpected(&other)] }
            }
        },
    }
}

/// A worker of another version on a target with a name: the command that replaces it.
fn mended(news: News, target: &Target) -> News {
    let News::Failed { why } = news else { return news };
    let is_old = |why: &Diagnostic| why.code == OTHER_VERSION && named::of_command(&target.command).is_some();
    let hint = || format!("maskloom target update {target} puts this program's version there");
    News::Failed { why: why.into_iter().map(|why| if is_old(&why) { why.hint(hint()) } else { why }).collect() }
}

fn map_news(height: usize, width: usize, payloads: &[Payload]) -> News {
    let pixels = payloads.first().and_then(|(info, bytes)| match Data::from_le_bytes(info.dtype, bytes) {
        Ok(Data::F32(pixels)) if height.checked_mul(width) == Some(pixels.len()) => Some(pixels),
        _ => None,
    });
    match pixels {
        Some(pixels) => News::Mapped { height, width, pixels },
        None => News::Failed { why: vec![client::unexpected(&Reply::Map { height, width })] },
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn end(jobs: &mut Jobs, job: JobId) -> News {
        jobs.wait(job, &mut |_| {})
    }

    #[test]
    fn a_worker_that_dies_fails_its_jobs_with_its_last_words() {
        let target = Target::from_words(&["sh", "-c", "echo 'no such GPU' >&2; exit 3"]);
        let mut jobs = Jobs::new(target, Arc::new(|| ()));
        for _ in 0..2 {
            let (first, second) = (jobs.hello(), jobs.hello());
            for job in [first, second] {
                let News::Failed { why } = end(&mut jobs, job) else { panic!("not failed") };
                assert!(why[0].code == "worker-died" && why[0].message.contains("no such GPU"), "{}", why[0]);
            }
            assert!(!jobs.is_busy());
        }
    }

    #[test]
    fn a_target_that_cannot_start_fails_the_job() {
        let mut jobs = Jobs::new(Target::new("no-such-program-of-ours"), Arc::new(|| ()));
        let job = jobs.doctor();
        let News::Failed { why } = end(&mut jobs, job) else { panic!("not failed") };
        assert_eq!(why[0].code, "target-launch");
    }

    #[test]
    fn cancelling_ends_the_job_at_once() {
        let mut jobs = Jobs::new(Target::from_words(&["sleep", "60"]), Arc::new(|| ()));
        let (job, doctor) = (jobs.hello(), jobs.doctor());
        jobs.cancel(job);
        assert!(matches!(&jobs.poll()[..], [JobEvent { job: j, news: News::Cancelled }] if *j == job));
        assert!(jobs.is_busy());
        jobs.cancel_all();
        assert!(matches!(&jobs.poll()[..], [JobEvent { job: j, news: News::Cancelled }] if *j == doctor));
    }
}
