//! A requested worker that has not answered yet: the previous worker stays until it does.
//!
//! Invariant: waiting ends by an answer, a failure, the user or the stated time. Must not know dialogs.

use super::background::Wake;
use crate::base::Diagnostic;
use crate::worker::jobs::{JobId, Jobs, News};
use crate::worker::patience::Patience;
use crate::worker::protocol::WorkerInfo;
use crate::worker::target::Target;
use std::time::{Duration, Instant};

/// How long a worker may take to answer, unless more is allowed.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// By how much the client's own limit is later than the one that is counted here.
const GRACE: Duration = Duration::from_secs(5);

/// Waiting for a worker.
pub(crate) struct Connecting {
    pub target: Target,
    /// Python for `torch:*` there.
    pub python: Option<String>,
    pub since: Instant,
    pub limit: Duration,
    jobs: Jobs,
    job: JobId,
}

/// The result of waiting.
pub(crate) enum Answer {
    /// It is there.
    Worker(Box<WorkerInfo>),
    Failed(Vec<Diagnostic>),
}

impl Connecting {
    /// Launches a worker and requests its description.
    pub(crate) fn start(target: Target, python: Option<String>, limit: Duration, wake: Wake) -> Connecting {
        let mut jobs = Jobs::new(target.clone(), wake);
        // later starts of this worker may take as long
        jobs.set_patience(Patience { greeting: limit + GRACE, ..Patience::default() });
        let job = jobs.hello();
        Connecting { target, python, since: Instant::now(), limit, jobs, job }
    }

    /// The result, which ends the waiting.
    pub(crate) fn poll(&mut self) -> Option<Answer> {
        for event in self.jobs.poll() {
            if event.job != self.job {
                continue;
            }
            match event.news {
                News::Hello(info) => return Some(Answer::Worker(info)),
                News::Failed { why } => return Some(Answer::Failed(why)),
                News::Cancelled => return Some(Answer::Failed(vec![silent(&self.target, self.since.elapsed())])),
                _ => {}
            }
        }
        if self.since.elapsed() < self.limit {
            return None;
        }
        self.jobs.cancel_all();
        Some(Answer::Failed(vec![silent(&self.target, self.limit)]))
    }

    /// The worker that has answered.
    pub(crate) fn into_jobs(self) -> Jobs {
        self.jobs
    }
}

/// A worker that was given up.
pub(crate) fn silent(target: &Target, waited: Duration) -> Diagnostic {
    let message = format!("the worker on {target} did not answer within {} s and was stopped", waited.as_secs());
    Diagnostic::error("worker-silent", message)
        .hint("try the command in a terminal: it must start `maskloom worker` without asking for a password; for a queue wait more seconds")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn end(mut waiting: Connecting) -> Answer {
        loop {
            if let Some(answer) = waiting.poll() {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_worker_that_never_answers_is_given_up_after_the_stated_time() {
        let limit = Duration::from_millis(1200);
        let waiting = Connecting::start(Target::from_words(&["sleep", "600"]), None, limit, Arc::new(|| ()));
        let Answer::Failed(why) = end(waiting) else { panic!("there is no worker") };
        assert_eq!(why[0].code, "worker-silent");
        assert!(why[0].message.contains("in 1 s"), "{}", why[0].message);
        let dead = Connecting::start(Target::from_words(&["false"]), None, LIMIT, Arc::new(|| ()));
        let Answer::Failed(why) = end(dead) else { panic!("there is no worker") };
        assert_eq!(why[0].code, "worker-died");
    }
}
