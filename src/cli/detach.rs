//! Work that goes on without this program: how commands start it, and how it is followed.
//!
//! Invariant: nothing about a job is kept here; a broken line is taken up again where the results stopped. Must not know what the
//! results mean.

use super::out::{self, Failure, Progress};
use super::work::Worker;
use crate::base::{Diagnostic, words};
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
        out::text(&format!(
            "job {} on {whom}\n  results: {attach}\n  end it: maskloom cancel {}{at}\n",
            self.id, self.id
        ))
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
                out::note(&format!("the line to {target} is cut; it is tried again in {} s", pause.as_secs()));
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
            out::note(&format!("job {}: {}", info.id, line(&info)));
        }
        progress.say(&line(&info));
    }
}

/// Whether a line broke, which says nothing about the job.
fn is_cut(why: &[Diagnostic]) -> bool {
    why.iter().any(|why| ["worker-died", "target-unreachable", "target-silent"].contains(&&*why.code))
}

/// `3 of 12, 25%, about 3 min left: timing flex`
pub(super) fn line(info: &JobInfo) -> String {
    let left = info.left().map(|left| format!(", {left}"));
    let now = if info.now.is_empty() { String::new() } else { format!(": {}", info.now) };
    format!("{} of {}, {}{}{now}", info.done, info.steps, words::percent(info.fraction), left.unwrap_or_default())
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
