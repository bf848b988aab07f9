//! Points of a sweep on one machine or several: each takes the next point when it is free.
//!
//! Invariant: every point ends once, with rows or with a reason; a machine that is lost gives its point to another and takes no more;
//! a point whose worker dies twice is the point's fault. Must not know how points are made.

use super::out::{self, Failure, Progress};
use super::race;
use super::work::Worker;
use crate::base::{Device, Diagnostic};
use crate::document::model::Document;
use crate::problem::ProblemSpec;
use crate::problem::result::RunReport;
use crate::tasks::journal::{self, Done, Journal};
use crate::worker::protocol::RunRequest;
use crate::worker::target::Target;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Deaths of workers at one point, after which it is given up.
const DEATHS: u32 = 2;
/// Between looks for work that a lost machine gives back.
const LOOK: Duration = Duration::from_millis(20);

/// A point.
#[derive(Serialize, Deserialize)]
pub(super) struct Point {
    /// `seq 4096, heads 8`
    pub label: String,
    /// For the choice of a device.
    pub document: Document,
    /// But for its device.
    pub request: RunRequest,
}

/// Where points are run.
pub(super) struct Spread {
    pub targets: Vec<String>,
    pub device: Option<Device>,
    pub journal: Option<PathBuf>,
}

/// How a point ended.
pub(super) type End = Result<Done, Vec<Diagnostic>>;

/// What a machine tells.
enum News {
    End(usize, End),
    /// It is lost, for this reason.
    Lost(String, Vec<Diagnostic>),
    /// It cannot go on for a reason that is no machine's.
    Stop(Failure),
}

/// What waits for a machine. Who is free waits for the others' ends: one that is lost gives its work back.
pub(super) struct Queue<T>(Mutex<(VecDeque<T>, usize)>);

impl<T> Queue<T> {
    pub(super) fn new(waiting: VecDeque<T>) -> Queue<T> {
        Queue(Mutex::new((waiting, 0)))
    }

    fn lock(&self) -> MutexGuard<'_, (VecDeque<T>, usize)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next one, for which [`Queue::over`] or [`Queue::again`] is called; None: all are over.
    pub(super) fn next(&self) -> Option<T> {
        loop {
            let mut state = self.lock();
            if let Some(next) = state.0.pop_front() {
                state.1 += 1;
                return Some(next);
            }
            if state.1 == 0 {
                return None;
            }
            drop(state);
            std::thread::sleep(LOOK);
        }
    }

    /// One is over.
    pub(super) fn over(&self) {
        self.lock().1 -= 1;
    }

    /// One is for another machine.
    pub(super) fn again(&self, one: T) {
        let mut state = self.lock();
        state.0.push_front(one);
        state.1 -= 1;
    }

    /// None is wanted any more.
    pub(super) fn clear(&self) {
        self.lock().0.clear();
    }
}

/// Rows that name their machine.
pub(super) fn rows(name: &str, target: &str, problem: &ProblemSpec, report: &RunReport) -> Vec<Value> {
    let mut rows = race::rows(name, problem, report);
    rows.iter_mut().for_each(|row| row["target"] = json!(Target::new(target).title()));
    rows
}

impl Spread {
    /// Runs every point that the journal does not have. Errors: no machine answers, or the journal cannot be written.
    pub(super) fn run(&self, points: &[Point]) -> Result<Vec<End>, Failure> {
        let mut journal = self.journal.as_deref().map(Journal::open).transpose()?;
        let keys: Vec<String> = points.iter().map(|point| journal::key(&point.request)).collect();
        let known = |key: &String| journal.as_ref().and_then(|journal| journal.known.get(key).cloned());
        let mut ends: Vec<Option<End>> = keys.iter().map(|key| known(key).map(Ok)).collect();
        let waiting: VecDeque<(usize, u32)> =
            (0..points.len()).filter(|n| ends[*n].is_none()).map(|n| (n, 0)).collect();
        let had = points.len() - waiting.len();
        if had > 0 {
            let (n, all) = (had.to_string().into(), points.len().to_string().into());
            out::note(&out::words().with("note-points", &[("n", n), ("all", all)]));
        }
        if waiting.is_empty() {
            return Ok(ends.into_iter().flatten().collect());
        }
        let (queue, several) = (Queue::new(waiting), self.targets.len() > 1);
        let (reported, news) = channel();
        let mut stopped = None;
        std::thread::scope(|scope| {
            for target in &self.targets {
                let (reported, queue) = (reported.clone(), &queue);
                let machine = Machine { target, device: self.device, points, keys: &keys, several };
                scope.spawn(move || machine.connect(queue, &reported));
            }
            drop(reported);
            let progress = if several { Progress::new() } else { Progress::none() };
            for news in news {
                match news {
                    News::End(n, end) => {
                        if let (Some(journal), Ok(done)) = (&mut journal, &end)
                            && let Err(why) = journal.add(done)
                        {
                            stopped = stopped.take().or(Some(why.into()));
                            queue.clear();
                        }
                        ends[n] = Some(end);
                        let over = ends.iter().flatten().count();
                        progress.say(&format!("{over} of {} points", points.len()));
                    }
                    News::Lost(target, why) => {
                        out::note(&out::words().with("note-lost", &[("target", target.to_string().into())]));
                        out::diagnostics(&why);
                    }
                    News::Stop(why) => {
                        stopped = stopped.take().or(Some(why));
                        queue.clear();
                    }
                }
            }
        });
        match stopped {
            Some(why) => Err(why),
            None => Ok(ends
                .into_iter()
                .zip(points)
                .map(|(end, point)| end.unwrap_or_else(|| Err(vec![left(point)])))
                .collect()),
        }
    }
}

/// A point that no machine could take.
fn left(point: &Point) -> Diagnostic {
    Diagnostic::error("sweep-lost", format!("at {}: every machine was lost before it", point.label))
        .hint("with --journal F.jsonl the same command takes up the missing points")
}

/// One machine and what it may take.
struct Machine<'a> {
    target: &'a str,
    device: Option<Device>,
    points: &'a [Point],
    keys: &'a [String],
    several: bool,
}

impl Machine<'_> {
    fn connect(&self, queue: &Queue<(usize, u32)>, reported: &Sender<News>) {
        match Worker::connect(self.target) {
            Ok(worker) => self.work(worker, queue, reported),
            Err(Failure::Reported(why)) if self.several => drop(reported.send(News::Lost(self.title(), why))),
            Err(other) => drop(reported.send(News::Stop(other))),
        }
    }

    fn title(&self) -> String {
        Target::new(self.target).title().to_string()
    }

    fn work(&self, mut worker: Worker, queue: &Queue<(usize, u32)>, reported: &Sender<News>) {
        worker.quiet = self.several;
        while let Some((n, deaths)) = queue.next() {
            let point = &self.points[n];
            let mut request = point.request.clone();
            request.device = worker.device(self.device, &point.document);
            let end = match worker.run(request.clone()) {
                Ok((report, _)) => {
                    let rows = rows(&point.document.name, self.target, &request.problem, &report);
                    Ok(Done {
                        key: self.keys[n].clone(),
                        rows,
                        right: race::succeeded(&report),
                        why: race::shortfalls(&report),
                    })
                }
                Err(Failure::Reported(why)) if why.iter().any(|why| why.code == "worker-died") => {
                    if deaths + 1 < DEATHS {
                        queue.again((n, deaths + 1));
                        if !worker.answers() {
                            return drop(reported.send(News::Lost(self.title(), why)));
                        }
                        continue;
                    }
                    Err(why)
                }
                Err(Failure::Reported(why)) => Err(why),
                Err(other) => {
                    let _ = reported.send(News::Stop(other));
                    return queue.over();
                }
            };
            let heard = reported.send(News::End(n, end)).is_ok();
            queue.over();
            if !heard {
                return;
            }
        }
    }
}
