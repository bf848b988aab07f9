//! Jobs on the worker's machine that go on without this window, as far as the window has heard of them.
//!
//! Invariant: nothing is remembered over a restart or another worker: a job's folder on its machine tells all of it. Must not know
//! how a job runs, nor how it is drawn.

use crate::base::Diagnostic;
use crate::tasks::machines::Listed;
use crate::worker::protocol::detached::{Batch, JobInfo, JobPart, JobState, Piece};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Between two looks at the list.
const LOOK: Duration = Duration::from_secs(2);
/// Between two questions to the other targets: each is a login.
const AGAIN: Duration = Duration::from_secs(30);

/// A wish about such jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobWish {
    /// The list anew.
    List,
    /// The results of one.
    Open(String),
    /// The end of one.
    Cancel(String),
    /// That jobs which are over go, with their results.
    Clear,
    /// The lists of the other targets.
    Others,
}

/// What is known.
#[derive(Debug, Default)]
pub(crate) struct FarJobs {
    /// The newest first; None before the first answer.
    pub listed: Option<Vec<JobInfo>>,
    /// Why the last question had no answer.
    pub error: Option<Diagnostic>,
    /// When the list was asked for.
    asked: Option<Instant>,
    /// The job whose results are on their way.
    pub reading: Option<Reading>,
    /// Of the other targets.
    pub others: Others,
}

/// Jobs of targets that this window is not connected to.
#[derive(Debug, Default)]
pub(crate) struct Others {
    /// Each with its jobs, or why they are not known; this machine has no name.
    pub listed: BTreeMap<String, Listed>,
    /// When they were asked, and whether all have answered.
    asked: Option<(Instant, bool)>,
}

impl Others {
    /// Whether they are to be asked now.
    pub(crate) fn is_due(&self) -> bool {
        self.asked.is_none_or(|(since, over)| over && since.elapsed() > AGAIN)
    }

    /// Whether some have not answered.
    pub(crate) fn is_waiting(&self) -> bool {
        self.asked.is_some_and(|(_, over)| !over)
    }

    /// They are asked.
    pub(crate) fn ask(&mut self) {
        self.asked = Some((Instant::now(), false));
    }

    /// One has answered, the newest job last; None: all have.
    pub(crate) fn put(&mut self, target: Option<String>, listed: Listed) {
        match target {
            Some(target) => drop(self.listed.insert(target, listed.map(|jobs| jobs.into_iter().rev().collect()))),
            None => self.asked = self.asked.map(|(since, _)| (since, true)),
        }
    }
}

/// Results on their way.
#[derive(Debug)]
pub(crate) struct Reading {
    pub id: String,
    pub batch: Option<Box<Batch>>,
    pub pieces: Vec<Piece>,
}

/// What a part of results leads to.
#[derive(Debug)]
pub(crate) enum Read {
    /// These are all.
    Whole(Reading),
    /// More are there, from this piece on.
    More { id: String, after: usize },
    /// Nobody waits for them any more.
    Unwanted,
}

impl FarJobs {
    /// How long the list may stay as it is; None: it is to be asked for now.
    pub(crate) fn rest(&self) -> Option<Duration> {
        LOOK.checked_sub(self.asked?.elapsed()).filter(|rest| !rest.is_zero())
    }

    /// It is asked for.
    pub(crate) fn ask(&mut self) {
        self.asked = Some(Instant::now());
    }

    /// A list has come, the newest job last.
    pub(crate) fn put(&mut self, jobs: Vec<JobInfo>) {
        (self.listed, self.error) = (Some(jobs.into_iter().rev().collect()), None);
    }

    /// A job is as it is told.
    pub(crate) fn note(&mut self, info: &JobInfo) {
        let known = self.listed.iter_mut().flatten().find(|job| job.id == info.id);
        known.into_iter().for_each(|job| *job = info.clone());
    }

    /// Results are wanted; those of another job are not any more.
    pub(crate) fn read(&mut self, id: &str) {
        self.reading = Some(Reading { id: id.into(), batch: None, pieces: Vec::new() });
    }

    /// A part of results has come.
    pub(crate) fn part(&mut self, part: JobPart) -> Read {
        self.note(&part.info);
        let Some(mut reading) = self.reading.take_if(|reading| reading.id == part.info.id) else {
            return Read::Unwanted;
        };
        reading.batch = part.batch.or(reading.batch);
        reading.pieces.extend(part.pieces);
        if !part.more {
            return Read::Whole(reading);
        }
        let (id, after) = (reading.id.clone(), reading.pieces.len());
        self.reading = Some(reading);
        Read::More { id, after }
    }
}

/// Whether its results are a race that the window can show.
pub(crate) fn is_race(job: &JobInfo) -> bool {
    job.what == "run" && job.done > 0
}

/// Whether this user can end it.
pub(crate) fn can_end(job: &JobInfo) -> bool {
    job.own && job.state == JobState::Running
}

/// A job for tests.
#[cfg(test)]
pub(crate) fn job(id: &str, state: JobState) -> JobInfo {
    let (what, title, host) = ("run".into(), format!("run of {id}"), "gpu1".into());
    let (steps, done, fraction, seconds) = (1, 1, 1.0, 3.0);
    JobInfo { id: id.into(), what, title, state, steps, done, fraction, now: String::new(), seconds, host, own: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_targets_are_asked_again_only_when_all_have_answered() {
        let mut others = Others::default();
        assert!(others.is_due() && !others.is_waiting());
        others.ask();
        assert!(!others.is_due() && others.is_waiting());
        others.put(Some("a".into()), Ok(vec![job("x", JobState::Ended), job("y", JobState::Running)]));
        others.put(Some("b".into()), Err(Diagnostic::error("worker-died", "no route to host")));
        assert!(others.is_waiting());
        others.put(None, Ok(Vec::new()));
        assert!(!others.is_waiting() && !others.is_due(), "not before the time");
        assert_eq!(others.listed["a"].as_ref().unwrap()[0].id, "y");
        assert!(others.listed["b"].is_err());
    }

    #[test]
    fn results_of_a_job_that_is_no_longer_wanted_are_dropped() {
        let mut jobs = FarJobs::default();
        assert!(jobs.rest().is_none());
        jobs.ask();
        assert!(jobs.rest().is_some_and(|rest| rest <= LOOK));
        jobs.put(vec![job("a", JobState::Ended), job("b", JobState::Running)]);
        assert_eq!(jobs.listed.as_ref().expect("listed")[0].id, "b");
        jobs.read("a");
        jobs.read("b");
        let part = |id: &str, more| JobPart { info: job(id, JobState::Ended), batch: None, pieces: Vec::new(), more };
        assert!(matches!(jobs.part(part("a", false)), Read::Unwanted));
        assert!(matches!(jobs.part(part("b", true)), Read::More { id, after: 0 } if id == "b"));
        assert!(matches!(jobs.part(part("b", false)), Read::Whole(reading) if reading.id == "b"));
        // and the list has heard that it is over
        assert!(jobs.listed.iter().flatten().all(|job| job.state == JobState::Ended));
        assert!(matches!(jobs.part(part("b", false)), Read::Unwanted));
    }
}
