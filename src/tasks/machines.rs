//! Detached jobs of many machines: all are asked at once, each with a deadline.
//!
//! Invariant: nothing waits longer than the deadline, and nothing that was started for the question outlives it; a machine that does
//! not answer costs no other one its answer; no user is asked for a password here. Must not know how jobs are shown.

use crate::base::Diagnostic;
use crate::worker::jobs::{Jobs, News};
use crate::worker::patience::Patience;
use crate::worker::protocol::detached::{Ask, JobAnswer, JobInfo};
use crate::worker::target::Target;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// For a machine's list: a login over a slow line takes two seconds.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// A machine's jobs, or why they are not known.
pub type Listed = Result<Vec<JobInfo>, Diagnostic>;

/// Asks one machine.
pub fn jobs_of(target: &Target, deadline: Duration) -> Listed {
    let until = Instant::now() + deadline;
    let (wake, woken) = channel();
    let mut jobs = Jobs::new(target.clone(), Arc::new(move || _ = wake.send(())));
    jobs.set_patience(Patience { greeting: deadline, asks: target.is_local(), ..Patience::default() });
    // both at once: a round trip less
    let (hello, list) = (jobs.hello(), jobs.detached(Ask::List));
    loop {
        for event in jobs.poll() {
            match event.news {
                News::Failed { why } => return Err(first(why)),
                News::Detached(reported) if event.job == list => {
                    let JobAnswer::Listed { jobs } = *reported else { return Err(late(target, deadline)) };
                    return Ok(jobs);
                }
                News::Cancelled if event.job != hello => return Err(late(target, deadline)),
                _ => {}
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || woken.recv_timeout(left) == Err(RecvTimeoutError::Disconnected) {
            jobs.cancel_all();
            return Err(late(target, deadline));
        }
    }
}

/// Asks all of them at once; `told` hears each as it answers, by its place.
pub fn jobs_of_all(targets: &[Target], deadline: Duration, reported: &mut dyn FnMut(usize, Listed)) {
    std::thread::scope(|threads| {
        let (sender, answers) = channel();
        for (at, target) in targets.iter().enumerate() {
            let sender = sender.clone();
            threads.spawn(move || drop(sender.send((at, jobs_of(target, deadline)))));
        }
        drop(sender);
        answers.into_iter().for_each(|(at, listed)| reported(at, listed));
    });
}

fn first(why: Vec<Diagnostic>) -> Diagnostic {
    why.into_iter().next().unwrap_or_else(|| Diagnostic::error("worker-died", "the worker gave no reason"))
}

fn late(target: &Target, deadline: Duration) -> Diagnostic {
    let message = format!("{target} did not list its jobs within {} s", deadline.as_secs());
    Diagnostic::error("jobs-late", message).hint("a queue may take longer: ask it alone with --target, which waits")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_never_answers_costs_no_more_than_the_deadline() {
        let words: [&[&str]; 4] = [
            &["sleep", "600"],
            &["sh", "-c", "echo 'no route to host' >&2; exit 255"],
            // greets for ever and answers nothing
            &["sh", "-c", "while echo '{\"id\":0,\"body\":{\"say\":\"alive\"}}'; do sleep 0.1; done"],
            &["no-such-program-of-ours"],
        ];
        let targets: Vec<Target> = words.iter().map(|words| Target::from_words(words)).collect();
        let mut heard = vec![None; targets.len()];
        let began = Instant::now();
        jobs_of_all(&targets, Duration::from_millis(700), &mut |at, listed| {
            heard[at] = Some(listed.unwrap_err());
        });
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        let codes: Vec<String> = heard.into_iter().flatten().map(|why| why.code.to_string()).collect();
        assert!(["worker-died", "jobs-late"].contains(&&*codes[0]), "{codes:?}");
        assert_eq!(codes[1..], ["worker-died", "jobs-late", "target-launch"], "{codes:?}");
    }
}
