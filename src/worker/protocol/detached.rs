//! Messages about detached jobs: work that goes on when its client is gone.
//!
//! Invariant: a job is told whole by its folder on the machine where it runs; a client has nothing to remember but its number. Must
//! not know how a job runs.

use super::RunRequest;
use crate::base::Diagnostic;
use crate::base::control::Left;
use crate::problem::result::RunReport;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// A request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "want")]
pub enum Ask {
    /// Start a job: answered with its number when it runs.
    Start {
        /// The work.
        batch: Box<Batch>,
    },
    /// Every job of this machine.
    List,
    /// The pieces of a job from one on, and its state.
    Read {
        /// Its number.
        id: String,
        /// Pieces that the client has.
        after: usize,
        /// Milliseconds for which the answer may wait for a new piece or the end, so that nobody has to ask again and again.
        #[serde(default)]
        wait: u64,
    },
    /// End a job.
    Cancel {
        /// Its number.
        id: String,
    },
    /// Remove jobs that have ended: one, or all.
    Clear {
        /// Its number.
        id: Option<String>,
    },
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "told")]
pub enum JobAnswer {
    /// To `Start`.
    Started {
        /// Its number.
        id: String,
    },
    /// To `List`, the newest last.
    Listed {
        /// All of them.
        jobs: Vec<JobInfo>,
    },
    /// To `Read`.
    Part(Box<JobPart>),
    /// To `Cancel`: the state that it is in now.
    Cancelled(JobInfo),
    /// To `Clear`: so many were removed.
    Cleared {
        /// How many.
        jobs: usize,
    },
}

/// The work of a job: steps, one after another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Batch {
    /// The command that made it: `run`, `sweep`, `record`, `quality`, `atlas`.
    pub what: String,
    /// For people: `sweep of Causal, 12 points`.
    pub title: String,
    /// In order.
    pub steps: Vec<Step>,
    /// What the client needs to show the results; given back as it is.
    #[serde(default)]
    pub notes: Value,
}

impl Ask {
    /// Bytes of the tensors that its races capture.
    pub fn captured_bytes(&self) -> u64 {
        let Ask::Start { batch } = self else { return 0 };
        let of = |step: &Step| match &step.work {
            Work::Race { request } => request.problem.captured_bytes(),
            Work::Command { .. } => 0,
        };
        batch.steps.iter().map(of).sum()
    }
}

/// A step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// For people: `seq 4096`.
    pub label: String,
    /// Its work.
    pub work: Work,
}

/// The work of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Work {
    /// A race.
    Race {
        /// As of [`super::RequestBody::Run`].
        request: Box<RunRequest>,
    },
    /// A command of this program, in the job's own folder.
    Command {
        /// Its arguments.
        words: Vec<String>,
        /// Files that it reads there, by name: their text.
        files: BTreeMap<String, String>,
    },
}

/// The result of a step, as it is appended to the job's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Piece {
    /// Which step.
    pub step: usize,
    /// Its result.
    pub end: PieceEnd,
}

/// How a step ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "end")]
pub enum PieceEnd {
    /// A race is over.
    Ran {
        /// Everything measured.
        report: Box<RunReport>,
    },
    /// A command is over.
    Said {
        /// Its status.
        code: i32,
        /// Its stdout.
        out: String,
        /// Its stderr.
        err: String,
        /// Files that it wrote, by name: base64.
        files: BTreeMap<String, String>,
    },
    /// The step failed.
    Failed {
        /// Why.
        why: Vec<Diagnostic>,
    },
}

/// How it is with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Its process lives.
    Running,
    /// Every step was tried.
    Ended,
    /// A user ended it.
    Cancelled,
    /// Its process is gone and did not say why: killed, or the machine was started again.
    Lost,
    /// It was started on another machine that shares this folder, which cannot be asked from here.
    Elsewhere,
}

impl JobState {
    /// Whether nothing more comes.
    pub fn is_over(self) -> bool {
        matches!(self, JobState::Ended | JobState::Cancelled | JobState::Lost)
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            JobState::Running => "running",
            JobState::Ended => "ended",
            JobState::Cancelled => "cancelled",
            JobState::Lost => "ended without a word (killed, or the machine was started again)",
            JobState::Elsewhere => "on another machine",
        }
    }
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct JobInfo {
    pub id: String,
    pub what: String,
    pub title: String,
    pub state: JobState,
    /// Steps in all, and how many are over.
    pub steps: usize,
    pub done: usize,
    /// Share of all its work, 0 to 1.
    pub fraction: f64,
    /// What it does now.
    pub now: String,
    /// Seconds since it began; of one that is over, how long it took.
    pub seconds: f64,
    /// Host that it runs on.
    pub host: String,
    /// Whether it belongs to the user who asks.
    pub own: bool,
}

impl JobInfo {
    /// How long it still takes, as far as it can be said: `about 3 min left`.
    pub fn left(&self) -> Option<Left> {
        Left::of(Duration::from_secs_f64(self.seconds.max(0.0)), self.fraction)
    }
}

/// Pieces of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobPart {
    /// Its state.
    pub info: JobInfo,
    /// The work, with the first part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Box<Batch>>,
    /// The next pieces.
    pub pieces: Vec<Piece>,
    /// Whether more are there already.
    pub more: bool,
}
