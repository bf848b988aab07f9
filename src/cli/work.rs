//! A target's worker, as commands use it: it starts, receives requests and returns replies.
//!
//! Invariant: each missing requirement of the target is printed once, on stderr. Must not know the requests.

use super::out::{self, Failure, Progress};
use crate::base::{Device, Diagnostic, identity};
use crate::document::model::Document;
use crate::problem::result::{BackendReport, KernelArtefact, Outcome, RunReport, RunStep};
use crate::tasks::lab::launched::Carrier;
use crate::tasks::plan;
use crate::worker::jobs::{Jobs, News};
use crate::worker::named;
use crate::worker::patience::Patience;
use crate::worker::protocol::detached::{Ask, JobAnswer};
use crate::worker::protocol::{CompileRequest, DoctorReport, MapRequest, RunRequest, WorkerInfo};
use crate::worker::target::Target;
use crate::worker::transport::Payload;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Where to run.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Where {
    /// cpu, cuda or cuda:N; the default is the best device
    #[arg(long, value_parser = super::arguments::device)]
    pub device: Option<Device>,
    /// Name of a target (`maskloom target list`), or the launch command of a worker, such as "ssh gpu1 maskloom worker"
    #[arg(long, value_name = "NAME|COMMAND", default_value = "")]
    pub target: String,
}

/// A greeted worker.
pub(super) struct Worker {
    jobs: Jobs,
    /// Whether its progress stays unsaid: several work at once.
    pub quiet: bool,
    pub info: WorkerInfo,
}

impl Worker {
    /// Launches and greets it.
    pub(super) fn connect(target: &str) -> Result<Worker, Failure> {
        let mut jobs = Jobs::new(Target::new(target), Arc::new(|| ()));
        let job = jobs.hello();
        let waiting = telling_silence(jobs.target());
        let answer = jobs.wait(job, &mut |_| {});
        drop(waiting);
        match answer {
            News::Hello(info) => {
                tell_version(target, &info);
                Ok(Worker { jobs, quiet: false, info: *info })
            }
            other => Err(failure(other)),
        }
    }

    /// Chooses the device; if it is the CPU because no better one exists, prints the reason.
    pub(super) fn device(&self, asked: Option<Device>, document: &Document) -> Device {
        let device = plan::choose_device(asked, document, &self.info);
        if device == Device::Cpu && asked.is_none() {
            self.tell_notes();
        }
        device
    }

    /// Missing requirements, each with the command that fixes it.
    pub(super) fn tell_notes(&self) {
        let unusable = self.info.devices.iter().filter_map(|d| d.unusable.clone());
        out::diagnostics(&unusable.chain(self.info.notes.iter().cloned()).collect::<Vec<_>>());
    }

    /// Whether it still answers; one that has ended is started again.
    pub(super) fn answers(&mut self) -> bool {
        let job = self.jobs.hello();
        matches!(self.jobs.wait(job, &mut |_| {}), News::Hello(_))
    }

    /// Races, with progress on the terminal.
    pub(super) fn run(&mut self, request: RunRequest) -> Result<(RunReport, Vec<Payload>), Failure> {
        let progress = if self.quiet { Progress::none() } else { Progress::new() };
        let job = self.jobs.run(request);
        let end = self.jobs.wait(job, &mut |news| {
            if let News::Progress(RunStep { what, fraction, report, .. }) = news {
                let done = report.as_deref().map(|r| format!(": {}", short(r))).unwrap_or_default();
                progress.say(&format!("{:3.0}%  {what}{done}", 100.0 * fraction));
            }
        });
        drop(progress);
        match end {
            News::Ran { report, payloads } => Ok((*report, payloads)),
            other => Err(failure(other)),
        }
    }

    /// A picture of one head of the last run.
    pub(super) fn map(&mut self, request: MapRequest) -> Result<Vec<f32>, Failure> {
        let job = self.jobs.map(request);
        match self.jobs.wait(job, &mut |_| {}) {
            News::Mapped { pixels, .. } => Ok(pixels),
            other => Err(failure(other)),
        }
    }

    /// About work that goes on without this program.
    pub(super) fn detached(&mut self, ask: Ask) -> Result<JobAnswer, Failure> {
        let job = self.jobs.detached(ask);
        match self.jobs.wait(job, &mut |_| {}) {
            News::Detached(reported) => Ok(*reported),
            other => Err(failure(other)),
        }
    }

    /// A question about a capture there, and its answer.
    pub(super) fn desk(&mut self, about: serde_json::Value) -> Result<serde_json::Value, Failure> {
        let job = self.jobs.desk(about);
        match self.jobs.wait(job, &mut |_| {}) {
            News::Desk { reported, .. } => Ok(reported),
            other => Err(failure(other)),
        }
    }

    /// Compiles one kernel.
    pub(super) fn compile(&mut self, request: CompileRequest) -> Result<KernelArtefact, Failure> {
        let job = self.jobs.compile(request);
        match self.jobs.wait(job, &mut |_| {}) {
            News::Compiled(artefact) => Ok(*artefact),
            other => Err(failure(other)),
        }
    }

    /// Examines its machine.
    pub(super) fn doctor(&mut self) -> Result<DoctorReport, Failure> {
        let job = self.jobs.doctor();
        let (ended, waiting) = channel::<()>();
        std::thread::spawn(move || {
            if waiting.recv_timeout(Duration::from_secs(5)) == Err(RecvTimeoutError::Timeout) {
                out::note(out::words().text("note-examining"));
            }
        });
        let answer = self.jobs.wait(job, &mut |_| {});
        drop(ended);
        match answer {
            News::Examined(report) => Ok(*report),
            other => Err(failure(other)),
        }
    }
}

/// A worker of another build may measure differently.
fn tell_version(target: &str, info: &WorkerInfo) {
    let (own, there) = (identity::build().to_string(), &info.version);
    if own != *there && named::of_command(target).is_some() {
        let message = format!("the worker on {target} is {there}, this program {own}");
        let update = format!("maskloom target update {target} puts this one there");
        out::diagnostics(&[Diagnostic::note("target-version", message).hint(update)]);
    }
}

/// Until what is returned is dropped, it is waited for an answer: after some seconds a line says so.
pub(super) fn telling_silence(whom: &Target) -> Sender<()> {
    let ((answered, waiting), whom) = (channel(), whom.clone());
    std::thread::spawn(move || tell_silence(&whom, &waiting));
    answered
}

/// Tells after some seconds that there is no answer, and how long it is waited for.
fn tell_silence(whom: &Target, waiting: &Receiver<()>) {
    const TOLD: Duration = Duration::from_secs(5);
    let limit = Patience::default().greeting;
    if limit > TOLD && waiting.recv_timeout(TOLD) == Err(RecvTimeoutError::Timeout) {
        let (reported, limit) = (TOLD.as_secs(), limit.as_secs());
        let figures = [("target", whom.to_string()), ("n", reported.to_string()), ("limit", limit.to_string())];
        out::note(&out::words().with("note-silent", &figures.map(|(name, text)| (name, text.into()))));
    }
}

impl Carrier for Worker {
    type Error = Failure;

    fn run(&mut self, request: RunRequest) -> Result<(RunReport, Vec<Payload>), Failure> {
        Worker::run(self, request)
    }

    fn map(&mut self, request: MapRequest) -> Result<Vec<f32>, Failure> {
        Worker::map(self, request)
    }
}

fn short(report: &BackendReport) -> String {
    match &report.outcome {
        Outcome::Done { timings, .. } => {
            timings.forward().map_or("ran".into(), |t| super::table::milliseconds(t.median_ms))
        }
        Outcome::Refused { .. } => "refused".into(),
        Outcome::Failed { .. } => "failed".into(),
    }
}

fn failure(news: News) -> Failure {
    match news {
        News::Failed { why } => why.into(),
        News::Cancelled => Diagnostic::error("cancelled", "the work was cancelled").hint("run it again").into(),
        other => Diagnostic::error("protocol-answer", format!("unexpected reply of the worker: {other:?}"))
            .hint("both sides must be the same version of Maskloom")
            .into(),
    }
}
