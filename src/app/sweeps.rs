//! A race over lengths: the open design at several shorter lengths, one race per length.
//!
//! Invariant: one length races at a time, the shortest first; a failing length is reported and does not stop the
//! others; a sweep belongs to its problem. Must not know panels.

use super::compile::Built;
use crate::base::Diagnostic;
use crate::problem::Problem;
use crate::problem::result::RunReport;
use crate::tasks::lengths;
use crate::worker::protocol::RunRequest;

/// One sweep.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    /// Counted with the races; never given twice.
    pub id: u64,
    /// The problem that it is shown for.
    pub of: Problem,
    /// The heads that race, and what of the design moves with the length.
    pub words: String,
    /// The shortest first.
    pub points: Vec<Point>,
    pub stopped: bool,
}

/// A length.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// Tokens of the longer side: about, until its document is made.
    pub tokens: usize,
    pub step: Step,
}

/// How far a length is.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Its document is being made.
    Making,
    Ready(Box<RunRequest>),
    Racing,
    Done(Box<RunReport>),
    /// Why there is no race at this length.
    Not(Diagnostic),
}

impl Sweep {
    pub(crate) fn new(id: u64, of: Problem, words: String, tokens: &[usize]) -> Sweep {
        let points = tokens.iter().map(|tokens| Point { tokens: *tokens, step: Step::Making }).collect();
        Sweep { id, of, words, points, stopped: false }
    }

    /// A length's document is ready, or does not exist. `request`: the run request.
    pub(crate) fn made(
        &mut self,
        at: usize,
        made: Result<Built, Diagnostic>,
        request: impl Fn(&Built, &Problem) -> RunRequest,
    ) {
        let step = match made {
            Err(why) => Step::Not(why),
            Ok(built) => match &built.problem {
                Ok(problem) => Step::Ready(Box::new(request(&built, problem))),
                Err(why) => Step::Not(first(why)),
            },
        };
        let tokens = match &step {
            Step::Ready(request) => request.problem.q_len.max(request.problem.kv_len),
            _ => self.points.get(at).map_or(0, |point| point.tokens),
        };
        let known = self.points.iter().enumerate().any(|(n, p)| {
            n != at && p.tokens == tokens && matches!(p.step, Step::Ready(_) | Step::Racing | Step::Done(_))
        });
        let Some(point) = self.points.get_mut(at) else { return };
        let again = || Diagnostic::note("same-length", "its axes have no shape between the lengths beside it");
        *point = Point { tokens, step: if known { Step::Not(again()) } else { step } };
    }

    /// The next length to race, which then races; None: one races already, or none is ready.
    pub(crate) fn next(&mut self) -> Option<(usize, Box<RunRequest>)> {
        if self.stopped || self.points.iter().any(|p| matches!(p.step, Step::Racing)) {
            return None;
        }
        let at = self.points.iter().position(|p| matches!(p.step, Step::Ready(_)))?;
        match std::mem::replace(&mut self.points[at].step, Step::Racing) {
            Step::Ready(request) => Some((at, request)),
            _ => None,
        }
    }

    /// A length's race is over.
    pub(crate) fn ended(&mut self, at: usize, what: Result<Box<RunReport>, Diagnostic>) {
        let Some(point) = self.points.get_mut(at) else { return };
        point.step = match what {
            Ok(report) => Step::Done(report),
            Err(why) => Step::Not(why),
        };
    }

    /// Nothing more is raced.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        for point in &mut self.points {
            if matches!(point.step, Step::Making | Step::Ready(_) | Step::Racing) {
                point.step = Step::Not(Diagnostic::note("cancelled", "stopped before it was raced"));
            }
        }
    }

    /// How many are over, of how many.
    pub(crate) fn progress(&self) -> (usize, usize) {
        let over = self.points.iter().filter(|p| matches!(p.step, Step::Done(_) | Step::Not(_))).count();
        (over, self.points.len())
    }

    pub(crate) fn is_over(&self) -> bool {
        let (over, all) = self.progress();
        over == all
    }

    /// The measurements: tokens and report.
    pub(crate) fn measured(&self) -> impl Iterator<Item = (usize, &RunReport)> {
        self.points.iter().filter_map(|point| match &point.step {
            Step::Done(report) => Some((point.tokens, &**report)),
            _ => None,
        })
    }
}

/// The text on the part of a design that changes with the length.
pub(crate) fn moves(document: &crate::document::model::Document) -> &'static str {
    match lengths::is_plain(document) {
        true => "sweep-plain",
        false => "sweep-grids",
    }
}

fn first(why: &[Diagnostic]) -> Diagnostic {
    let none =
        || Diagnostic::error("internal", "a document without a valid problem has an error").hint("please report this");
    why.first().cloned().unwrap_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::compile;
    use crate::base::Device;
    use crate::document::library;
    use crate::tasks::{plan, recorded};

    fn built() -> Built {
        compile::build(library::preset("sliding_window").expect("there").document().expect("loads"), None)
    }

    #[test]
    fn lengths_race_one_by_one_and_a_failure_stops_none() {
        let one = built();
        let problem = one.problem.as_ref().expect("a problem").clone();
        let mut sweep = Sweep::new(1, problem, String::new(), &[2048, 4096, 8192]);
        let request =
            |built: &Built, problem: &Problem| plan::run_request(problem, &built.document.settings, Device::Cpu);
        assert!(sweep.next().is_none(), "nothing is made yet");
        sweep.made(0, Err(Diagnostic::error("no-such-length", "none")), request);
        sweep.made(2, Ok(built()), request);
        let (at, asked) = sweep.next().expect("the longest is ready");
        assert_eq!((at, asked.problem.q_len), (2, 8192));
        // the same length again is no second point
        sweep.made(1, Ok(built()), request);
        assert!(sweep.next().is_none() && !sweep.is_over());
        let report = recorded::of(&one.document).first().expect("recorded").report.clone();
        sweep.ended(2, Ok(Box::new(report)));
        assert!(sweep.is_over());
        assert_eq!(sweep.measured().map(|(tokens, _)| tokens).collect::<Vec<_>>(), [8192]);
    }

    #[test]
    fn what_is_stopped_is_over() {
        let problem = built().problem.expect("a problem");
        let mut sweep = Sweep::new(1, problem, String::new(), &[4096, 8192]);
        sweep.stop();
        assert!(sweep.is_over() && sweep.next().is_none() && sweep.measured().count() == 0);
    }
}
