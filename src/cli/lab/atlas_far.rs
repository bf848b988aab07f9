//! An atlas by several machines: each looks at the next call of its own copy of the capture when it is free.
//!
//! Invariant: every call is looked at once, and names its machine; a machine that is lost gives its call to another; machines whose
//! captures differ are refused. Must not know tables.

use crate::base::{BlockSize, Diagnostic};
use crate::cli::out::{self, Failure, Progress};
use crate::cli::spread::Queue;
use crate::cli::work::Worker;
use crate::quality::capture::{Call, Capture, Header};
use crate::tasks::journal::{self, Done, Journal};
use crate::tasks::lab::AtlasHead;
use crate::tasks::lab::page::far::{Heard, ask_call, ask_header, plain_answer};
use crate::worker::target::Target;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};

/// What is asked.
pub(super) struct Asked<'a> {
    pub targets: Vec<String>,
    /// On each of them.
    pub path: &'a Path,
    pub entry: usize,
    /// For calls without statistics.
    pub block: BlockSize,
    pub journal: Option<&'a Path>,
}

/// What a machine tells.
enum News {
    Call(String, Vec<AtlasHead>),
    Lost(String, Failure),
}

/// The capture's header as a capture, and the heads in its order, not grouped. Errors: no machine answers, the captures differ, a call
/// that nobody could look at.
pub(super) fn heads(asked: &Asked, wanted: &dyn Fn(&Call) -> bool) -> Result<(Capture, Vec<AtlasHead>), Failure> {
    let mut journal = asked.journal.map(Journal::open).transpose()?;
    let (header, workers) = connect(asked)?;
    let key = |call: &str| {
        let all = format!("{:?} {call} {} {:?}", header, asked.entry, asked.block);
        journal::name(all.as_bytes())
    };
    let capture = Capture::open(Box::new(header.clone()))?;
    let calls: Vec<&Call> = capture.calls().iter().filter(|call| wanted(call)).collect();
    let mut found: BTreeMap<String, Vec<AtlasHead>> = BTreeMap::new();
    for call in &calls {
        let known = journal.as_ref().and_then(|journal| journal.known.get(&key(&call.key)));
        let read = |done: &Done| done.rows.iter().map(|row| serde_json::from_value(row.clone()).ok()).collect();
        found.extend(known.and_then(read).map(|heads: Vec<AtlasHead>| (call.key.clone(), heads)));
    }
    if !found.is_empty() {
        let (n, all) = (found.len().to_string().into(), calls.len().to_string().into());
        out::note(&out::words().with("note-calls", &[("n", n), ("all", all)]));
    }
    let waiting = calls.iter().map(|call| call.key.clone()).filter(|call| !found.contains_key(call)).collect();
    let queue = Queue::new(waiting);
    let (reported, news) = channel();
    let (mut stopped, mut lost) = (None, None);
    std::thread::scope(|threads| {
        for (target, worker) in workers {
            let (reported, queue) = (reported.clone(), &queue);
            threads.spawn(move || work(asked, (&target, worker), queue, &reported));
        }
        drop(reported);
        let progress = Progress::new();
        for news in news {
            match news {
                News::Call(call, heads) => {
                    let rows = heads.iter().filter_map(|head| serde_json::to_value(head).ok()).collect();
                    let done = Done { key: key(&call), rows, right: true, why: Vec::new() };
                    if let Some(journal) = &mut journal
                        && let Err(why) = journal.add(&done)
                    {
                        stopped = stopped.take().or(Some(why));
                        queue.clear();
                    }
                    found.insert(call, heads);
                    progress.say(&format!("{} of {} calls", found.len(), calls.len()));
                }
                News::Lost(target, why) => {
                    out::note(&out::words().with("note-lost", &[("target", target.as_str().into())]));
                    lost = Some(why);
                }
            }
        }
    });
    if let Some(why) = stopped {
        return Err(why.into());
    }
    let missing = calls.iter().filter(|call| !found.contains_key(&call.key)).count();
    match lost {
        Some(why) if missing > 0 => Err(why),
        _ => {
            let rows = calls.iter().filter_map(|call| found.remove(&call.key)).flatten().collect();
            Ok((capture, rows))
        }
    }
}

/// Greets all machines at once and compares their captures.
fn connect(asked: &Asked) -> Result<(Header, Vec<(String, Worker)>), Failure> {
    type Found = Result<(Worker, Header), Failure>;
    let ask = |target: &String| -> Found {
        let mut worker = Worker::connect(target)?;
        match plain_answer(worker.desk(ask_header(asked.path))?)? {
            Heard::Header(header) => Ok((worker, *header)),
            _ => Err(Diagnostic::error("protocol-answer", "the worker gave another answer").into()),
        }
    };
    let answers: Vec<Found> = std::thread::scope(|threads| {
        let all: Vec<_> = asked.targets.iter().map(|target| threads.spawn(move || ask(target))).collect();
        all.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let (mut workers, mut first, mut failed) = (Vec::new(), None, None);
    for (target, answer) in asked.targets.iter().zip(answers) {
        match answer {
            Ok((worker, header)) => {
                let of = first.get_or_insert_with(|| header.clone());
                if *of != header {
                    let title = Target::new(target).title().to_string();
                    let message =
                        format!("{} on {title} is another capture than on the first target", asked.path.display());
                    let why = Diagnostic::error("atlas-captures", message);
                    return Err(why.hint("put the same file on every machine, or name one --target").into());
                }
                workers.push((target.clone(), worker));
            }
            Err(Failure::Reported(why)) => {
                let title = Target::new(target).title().to_string();
                out::note(&out::words().with("note-lost", &[("target", title.into())]));
                out::diagnostics(&why);
                failed = Some(Failure::Reported(why));
            }
            Err(other) => return Err(other),
        }
    }
    match (first, failed) {
        (Some(header), _) => Ok((header, workers)),
        (None, Some(why)) => Err(why),
        (None, None) => Err(Diagnostic::error("atlas-captures", "no target is named").into()),
    }
}

/// Calls one after another, until there are no more or the machine is lost.
fn work(asked: &Asked, (target, mut worker): (&str, Worker), queue: &Queue<String>, reported: &Sender<News>) {
    let title = Target::new(target).title().to_string();
    loop {
        let Some(call) = queue.next() else { return };
        let answer = worker.desk(ask_call(asked.path, &call, asked.entry, asked.block));
        let heads = match answer.and_then(|reported| Ok(plain_answer(reported)?)) {
            Ok(Heard::Call(mut heads)) => {
                heads.iter_mut().for_each(|head| head.machine = Some(title.clone()));
                heads
            }
            other => {
                queue.again(call);
                let why = other.err().unwrap_or_else(|| Diagnostic::error("protocol-answer", "another answer").into());
                return drop(reported.send(News::Lost(title, why)));
            }
        };
        let heard = reported.send(News::Call(call, heads)).is_ok();
        queue.over();
        if !heard {
            return;
        }
    }
}
