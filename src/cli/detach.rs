//! Work that goes on without this program: how commands start it, and how it is followed.
//!
//! Invariant: nothing about a job is kept here; a broken line is taken up again where the results stopped. Must not know what the
//! results mean.

use super::out::{self, Failure, Progress};
use super::work::Worker;
use crate::base::{Diagnostic, words};
use crate::tasks::steps;
use crate::words::Words;
use crate::worker::launch::Launch;
use crate::worker::protocol::detached::{Ask, Batch, JobAnswer, JobInfo, JobState, Piece, PieceEnd};
use crate::worker::target::{Target, option};
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For which an answer waits for news of a job, milliseconds: as often progress is shown.
const WAIT: u64 = 500;
/// Longest wait before a broken line is tried again.
const LONGEST: Duration = Duration::from_secs(30);

/// A job that was started.
pub(super) struct Started {
    pub id: String,
    pub target: String,
}

/// Starts a job. Errors: the target ends what it started when the line ends.
pub(super) fn start(target: &str, worker: &mut Worker, batch: Batch) -> Result<Started, Failure> {
    let launch = Launch::of(&Target::new(target))?;
    let program = Path::new(&launch.words[0]).file_name().unwrap_or_default();
    if ["srun", "salloc"].iter().any(|queue| program == *queue) {
        let message = "a job step of Slurm ends with its srun: nothing goes on there without it";
        return Err(Diagnostic::error("detach-slurm", message)
            .hint("`maskloom sweep --slurm DIR` submits an array job; or give the target the words of a login to the node")
            .into());
    }
    match worker.detached(Ask::Start { batch: Box::new(batch) })? {
        JobAnswer::Started { id } => Ok(Started { id, target: target.trim().to_string() }),
        other => Err(unexpected(&other)),
    }
}

impl Started {
    /// Says how to come back to it.
    pub(super) fn tell(&self, as_json: bool) -> Result<(), Failure> {
        let at = option(&self.target);
        let attach = format!("maskloom attach {}{at}", self.id);
        if as_json {
            return out::json(&json!({ "job": self.id, "target": self.target, "attach": attach }));
        }
        let whom = Target::new(&self.target);
        let target = ("target", whom.to_string().into());
        let lines = [
            out::line("job-started", &[("id", self.id.as_str().into()), target]),
            out::line("job-results", &[("command", attach.into())]),
            out::line("job-end", &[("command", format!("maskloom cancel {}{at}", self.id).into())]),
        ];
        out::text(&lines.join("  "))
    }
}

pub(super) fn unexpected(reported: &JobAnswer) -> Failure {
    Diagnostic::error("protocol-answer", format!("unexpected reply of the worker: {reported:?}"))
        .hint("both sides must be the same version of Maskloom")
        .into()
}

/// Everything about a job that is over.
pub(super) struct Followed {
    pub batch: Batch,
    pub pieces: Vec<Piece>,
    pub info: JobInfo,
}

/// Waits for the end of a job, through a worker that is greeted or a new one; a line that breaks is tried again and again. `now`: gives
/// what is there instead.
pub(super) fn follow(target: &str, worker: Option<Worker>, id: &str, now: bool) -> Result<Followed, Failure> {
    let progress = Progress::new();
    let (mut batch, mut pieces) = (None, Vec::new());
    let mut worker = Some(worker.map_or_else(|| Worker::connect(target), Ok)?);
    let (mut pause, mut reported) = (Duration::from_secs(1), false);
    loop {
        let ask = Ask::Read { id: id.into(), after: pieces.len(), wait: if now { 0 } else { WAIT } };
        let part = match &mut worker {
            Some(worker) => worker.detached(ask),
            None => Worker::connect(target).and_then(|new| {
                let asked = worker.insert(new).detached(ask);
                pause = Duration::from_secs(1);
                asked
            }),
        };
        let part = match part {
            Ok(JobAnswer::Part(part)) => *part,
            Ok(other) => return Err(unexpected(&other)),
            Err(Failure::Reported(why)) if is_cut(&why) && !target.trim().is_empty() => {
                worker = None;
                let figures = [("target", target.into()), ("n", pause.as_secs().to_string().into())];
                out::note(&out::words().with("note-cut", &figures));
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST);
                continue;
            }
            Err(other) => return Err(other),
        };
        batch = part.batch.map(|batch| *batch).or(batch);
        pieces.extend(part.pieces);
        let info = part.info;
        if part.more {
            continue;
        }
        if info.state != JobState::Running || now {
            drop(progress);
            let batch = batch.ok_or_else(|| Diagnostic::error("protocol-answer", "the job came without its work"))?;
            return Ok(Followed { batch, pieces, info });
        }
        if !std::mem::replace(&mut reported, true) && !std::io::stderr().is_terminal() {
            let figures = [("id", info.id.as_str().into()), ("line", line(out::words(), &info).into())];
            out::note(&out::words().with("note-job", &figures));
        }
        progress.say(&line(out::words(), &info));
    }
}

/// Whether a line broke, which says nothing about the job.
fn is_cut(why: &[Diagnostic]) -> bool {
    why.iter().any(|why| ["worker-died", "target-unreachable", "target-silent"].contains(&&*why.code))
}

/// `3 of 12, 25%, about 3 min left: timing flex`
pub(super) fn line(said: &'static Words, info: &JobInfo) -> String {
    let figures = [("count", count(said, info).into()), ("share", words::percent(info.fraction).into())];
    let line = match info.left() {
        None => said.with("job-share", &figures),
        Some(left) => {
            let [count, share] = figures;
            said.with("job-share-left", &[count, share, ("left", steps::left(said, left).into())])
        }
    };
    if info.now.is_empty() { line } else { said.with("job-now", &[("line", line.into()), ("now", (&info.now).into())]) }
}

/// `3 of 12`
pub(super) fn count(said: &'static Words, info: &JobInfo) -> String {
    said.with("job-count", &[("done", info.done.to_string().into()), ("steps", info.steps.to_string().into())])
}

/// How results are shown.
pub(super) struct Show {
    pub json: bool,
    /// For a job of `presets record`: the file.
    pub into: Option<PathBuf>,
    pub target: String,
}

/// The diagnostics of failed steps.
pub(super) fn failures(pieces: &[Piece]) -> Vec<Diagnostic> {
    let of = |piece: &Piece| match &piece.end {
        PieceEnd::Failed { why } => why.clone(),
        _ => Vec::new(),
    };
    pieces.iter().flat_map(of).collect()
}
