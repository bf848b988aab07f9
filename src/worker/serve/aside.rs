//! Requests that are answered beside the work in hand: jobs, folders and captures of the machine.
//!
//! Invariant: a race never waits for them, nor they for a race; of the questions to the desk the newest is answered, and the ones
//! before it end as cancelled. Must not know what the desk knows.

use super::{Outcome, lock};
use crate::base::{Control, DType, Diagnostic};
use crate::worker::protocol::{PayloadInfo, Reply, Request, RequestBody, Response, ResponseBody};
use crate::worker::transport::{self, Payload};
use crate::worker::{browse, detached};
use serde_json::Value;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::Duration;

/// Between looks at whether the worker is over.
const LOOK: Duration = Duration::from_millis(100);

/// Answers about captures: the layers above the worker know them.
pub trait Desk: Send {
    /// Answers a question. Errors: `cancelled`, and those of the question.
    fn answer(&mut self, ask: Value, control: &Control) -> Result<(Value, Vec<Payload>), Vec<Diagnostic>>;
}

/// A worker that knows nothing of captures.
pub struct NoDesk;

impl Desk for NoDesk {
    fn answer(&mut self, _: Value, _: &Control) -> Result<(Value, Vec<Payload>), Vec<Diagnostic>> {
        let why = Diagnostic::error("protocol-answer", "this worker opens no captures");
        Err(vec![why.hint("start `maskloom worker`")])
    }
}

/// Whether a request is answered beside the work.
pub(super) fn is_aside(body: &RequestBody) -> bool {
    use RequestBody::{Desk, Detached, File, Folder};
    matches!(body, Detached(_) | Folder(_) | File { .. } | Desk { .. })
}

/// Answers them until there are no more.
pub(super) fn answer<'scope, 'env, W: Write + Send>(
    threads: &'scope Scope<'scope, 'env>,
    requests: &Receiver<Request>,
    (answers, over): (&'scope Mutex<W>, &AtomicBool),
    desk: Box<dyn Desk>,
) {
    let (sender, questions) = channel();
    threads.spawn(move || attend(desk, &questions, answers));
    let mut newest = Control::new();
    loop {
        let Request { id, body } = match requests.recv_timeout(LOOK) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) if !over.load(Ordering::Acquire) => continue,
            Err(_) => break,
        };
        match body {
            RequestBody::Desk { about } => {
                newest.cancel();
                newest = Control::new();
                // the desk lives as long as this sender
                let _ = sender.send((id, about, newest.clone()));
            }
            // some wait for a job's news
            other => drop(threads.spawn(move || write(answers, id, plain(other)))),
        }
    }
    newest.cancel();
}

fn attend<W: Write>(mut desk: Box<dyn Desk>, questions: &Receiver<(u64, Value, Control)>, answers: &Mutex<W>) {
    for (id, ask, control) in questions {
        let cancelled = || Err(vec![Diagnostic::error("cancelled", "a newer question has come")]);
        let reported = if control.is_cancelled() { cancelled() } else { desk.answer(ask, &control) };
        write(answers, id, reported.map(|(reported, numbers)| (Reply::Desk { reported }, numbers)));
    }
}

fn plain(body: RequestBody) -> Outcome {
    match body {
        RequestBody::Detached(ask) => detached::answer(ask).map(|reported| (Reply::Detached(reported), Vec::new())),
        RequestBody::Folder(ask) => Ok((Reply::Folder(Box::new(browse::list(&ask))), Vec::new())),
        RequestBody::File { path } => {
            let (path, bytes) = browse::read(&path).map_err(|why| vec![why])?;
            let info = PayloadInfo { name: "file".into(), dtype: DType::U8, shape: vec![bytes.len()] };
            Ok((Reply::File { path: path.display().to_string() }, vec![(info, bytes)]))
        }
        _ => Err(vec![Diagnostic::error("protocol-answer", "this request is not answered beside the work")]),
    }
}

fn write<W: Write>(answers: &Mutex<W>, id: u64, outcome: Outcome) {
    let (body, payloads) = match outcome {
        Ok((reply, payloads)) => (ResponseBody::Done(reply), payloads),
        Err(why) => (ResponseBody::Failed { why }, Vec::new()),
    };
    // where answers cannot be written any more, the next one of the work tells it
    let response = Response { id, body, payloads: Vec::new() };
    if let Err(why) = transport::write_response(&mut *lock(answers), &response, &payloads)
        && why.code == "protocol-payload"
    {
        let failed = Response { id, body: ResponseBody::Failed { why: vec![why] }, payloads: Vec::new() };
        let _ = transport::write_response(&mut *lock(answers), &failed, &[]);
    }
}

/// Where requests go: those of the work, and those beside it.
pub(super) struct Ways {
    pub work: Sender<Result<Request, (u64, Diagnostic)>>,
    pub aside: Sender<Request>,
}

impl Ways {
    /// Sends it on. Errors: nobody listens any more.
    pub(super) fn send(&self, next: Result<Request, (u64, Diagnostic)>) -> Result<(), ()> {
        match next {
            Ok(request) if is_aside(&request.body) => self.aside.send(request).map_err(drop),
            other => self.work.send(other).map_err(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::serve;
    use super::*;
    use crate::worker::patience::PULSE;
    use crate::worker::protocol::folder::FolderAsk;
    use crate::worker::transport::Incoming;
    use std::io::{BufReader, Read};

    /// Answers `slow` only when it is stopped, and everything else at once.
    struct Slow;

    impl Desk for Slow {
        fn answer(&mut self, ask: Value, control: &Control) -> Result<(Value, Vec<Payload>), Vec<Diagnostic>> {
            while ask == "slow" && !control.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
            if control.is_cancelled() {
                Err(vec![Diagnostic::error("cancelled", "stopped")])
            } else {
                Ok((ask, Vec::new()))
            }
        }
    }

    #[test]
    fn folders_are_listed_while_the_desk_works_and_its_newest_question_ends_the_one_before() {
        let (ours, theirs) = std::io::pipe().expect("a pipe");
        let (answers, reported) = std::io::pipe().expect("a pipe");
        let worker = std::thread::spawn(move || serve(ours, reported, PULSE, Box::new(Slow), || ()));
        let mut requests = theirs;
        let mut answers = BufReader::new(answers);
        let mut ask =
            |id: u64, body: RequestBody| transport::write_request(&mut requests, &Request { id, body }).unwrap();
        fn next(answers: &mut BufReader<impl Read>) -> (u64, ResponseBody) {
            loop {
                match transport::read_response(answers).unwrap() {
                    Incoming::Message((response, _)) if matches!(response.body, ResponseBody::Alive) => {}
                    Incoming::Message((response, _)) => return (response.id, response.body),
                    other => panic!("{other:?}"),
                }
            }
        }
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("a.json"), "{}").unwrap();
        let folder = FolderAsk { path: home.path().display().to_string(), endings: Vec::new(), hidden: false };
        ask(1, RequestBody::Desk { about: "slow".into() });
        ask(2, RequestBody::Folder(folder));
        let (id, body) = next(&mut answers);
        assert!(
            id == 2 && matches!(&body, ResponseBody::Done(Reply::Folder(l)) if l.items.as_ref().unwrap().len() == 1)
        );
        ask(3, RequestBody::File { path: home.path().join("a.json").display().to_string() });
        let (id, body) = next(&mut answers);
        assert!(id == 3 && matches!(&body, ResponseBody::Done(Reply::File { path }) if path.ends_with("a.json")));
        ask(4, RequestBody::Desk { about: "quick".into() });
        let (id, body) = next(&mut answers);
        assert!(id == 1 && matches!(&body, ResponseBody::Failed { why } if why[0].code == "cancelled"));
        let (id, body) = next(&mut answers);
        assert!(id == 4 && matches!(&body, ResponseBody::Done(Reply::Desk { reported }) if *reported == "quick"));
        // an end ends what still works
        ask(5, RequestBody::Desk { about: "slow".into() });
        ask(6, RequestBody::Shutdown);
        let ends = [next(&mut answers).0, next(&mut answers).0];
        assert!(ends.contains(&5) && ends.contains(&6), "{ends:?}");
        worker.join().unwrap().unwrap();
    }
}
