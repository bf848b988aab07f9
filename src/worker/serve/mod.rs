//! The worker: handles requests one after another, and does all work on devices.
//!
//! Invariant: every request is answered by exactly one `Done` or `Failed`; when its stdin closes, the process ends at
//! once, also during work; only the protocol reaches its stdout. Must not know its clients.

mod aside;
mod child;
mod compile;
mod info;
mod map;
mod racers;
mod run;

pub use aside::{Desk, NoDesk};

use crate::base::{Diagnostic, identity};
use crate::worker::examine;
use crate::worker::patience::PULSE;
use crate::worker::process;
use crate::worker::protocol::{
    OTHER_VERSION, PROTOCOL_VERSION, Reply, Request, RequestBody, Response, ResponseBody, RunRequest,
};
use crate::worker::transport::{self, Incoming, Payload};
use aside::Ways;
use std::io::{BufReader, Read, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// `maskloom worker`: serves stdin and stdout until stdin closes.
pub fn main(desk: Box<dyn Desk>) -> ExitCode {
    let stdout = match process::take_stdout() {
        Ok(stdout) => stdout,
        Err(e) => {
            eprintln!("error[worker-stdout]: the worker cannot keep its stdout for the protocol: {e}");
            return ExitCode::FAILURE;
        }
    };
    // the reader ends the process even while a kernel runs: no orphan keeps a GPU busy
    match serve(std::io::stdin(), stdout, PULSE, desk, || std::process::exit(0)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{}", why.render());
            ExitCode::FAILURE
        }
    }
}

/// Serves one client until `Shutdown` or the end of its requests, at which `at_end` is called, at once and on another
/// thread. A sign of life is written after every `pulse`, whatever is being done. Errors: answers cannot be written any
/// more.
pub fn serve(
    requests: impl Read + Send + 'static,
    answers: impl Write + Send,
    pulse: Duration,
    desk: Box<dyn Desk>,
    at_end: impl FnOnce() + Send + 'static,
) -> Result<(), Diagnostic> {
    let ((work_in, queue), (aside, asides)) = (channel(), channel());
    std::thread::spawn(move || {
        listen(requests, &Ways { work: work_in, aside });
        at_end();
    });
    let answers = Mutex::new(answers);
    let (answers, over_now) = (&answers, &AtomicBool::new(false));
    let (over, end) = channel::<()>();
    std::thread::scope(|threads| {
        threads.spawn(move || live(answers, pulse, end));
        threads.spawn(move || aside::answer(threads, &asides, (answers, over_now), desk));
        let served = work(queue, answers);
        over_now.store(true, Ordering::Release);
        drop(over);
        served
    })
}

/// Answers requests one after another.
fn work<W: Write>(queue: Receiver<Result<Request, (u64, Diagnostic)>>, answers: &Mutex<W>) -> Result<(), Diagnostic> {
    let mut worker = Worker { answers, id: 0, kept: None, gpus: racers::Gpus::default() };
    for incoming in queue {
        match incoming {
            Ok(request) => {
                if worker.handle(request)? == Then::End {
                    break;
                }
            }
            Err((id, why)) => worker.answer(id, ResponseBody::Failed { why: vec![why] }, &[])?,
        }
    }
    Ok(())
}

/// Writes signs of life until the end. Where they cannot be written any more, the next answer tells it.
fn live<W: Write>(answers: &Mutex<W>, pulse: Duration, end: Receiver<()>) {
    while end.recv_timeout(pulse) == Err(RecvTimeoutError::Timeout) {
        let alive = Response { id: 0, body: ResponseBody::Alive, payloads: Vec::new() };
        if transport::write_response(&mut *lock(answers), &alive, &[]).is_err() {
            return;
        }
    }
}

fn lock<W>(answers: &Mutex<W>) -> MutexGuard<'_, W> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads requests until their end. A header that cannot be read is answered, and the next one is tried.
fn listen(requests: impl Read, queue: &Ways) {
    let mut requests = BufReader::with_capacity(1 << 16, requests);
    loop {
        let next = match transport::read_request(&mut requests) {
            Ok(Incoming::End) => return,
            Ok(Incoming::Noise(line)) if line.trim().is_empty() => continue,
            Ok(Incoming::Noise(line)) => {
                let why = Diagnostic::error("protocol-header", format!("this is not a request: {line}"));
                Err((0, why.hint("the window and the command line start `maskloom worker`; it is not used by hand")))
            }
            Ok(Incoming::Message(request)) => Ok(request),
            Err((id, why)) if [transport::CUT_SHORT, transport::BROKEN].contains(&&*why.code) => {
                let _ = queue.send(Err((id, why)));
                return;
            }
            Err(broken) => Err(broken),
        };
        if queue.send(next).is_err() {
            return;
        }
    }
}

#[derive(PartialEq, Eq)]
enum Then {
    Continue,
    End,
}

struct Worker<'a, W: Write> {
    answers: &'a Mutex<W>,
    /// Request in work.
    id: u64,
    /// Problem and inputs of the last run.
    kept: Option<run::Kept>,
    /// GPUs opened so far.
    gpus: racers::Gpus,
}

/// The result of a request.
type Outcome = Result<(Reply, Vec<Payload>), Vec<Diagnostic>>;

impl<W: Write> Worker<'_, W> {
    fn handle(&mut self, request: Request) -> Result<Then, Diagnostic> {
        self.id = request.id;
        let then = if matches!(request.body, RequestBody::Shutdown) { Then::End } else { Then::Continue };
        match self.work(request.body) {
            Ok((reply, payloads)) => self.answer(request.id, ResponseBody::Done(reply), &payloads)?,
            Err(why) => self.answer(request.id, ResponseBody::Failed { why }, &[])?,
        }
        Ok(then)
    }

    fn work(&mut self, body: RequestBody) -> Outcome {
        match body {
            RequestBody::Hello { protocol } => hello(protocol),
            RequestBody::Doctor => Ok((Reply::Doctor(examine::examine()), Vec::new())),
            RequestBody::Shutdown => Ok((Reply::Bye {}, Vec::new())),
            RequestBody::Run(request) => self.run(*request),
            RequestBody::Map(request) => map::map(self.kept.as_ref(), &mut self.gpus, &request),
            RequestBody::Compile(request) => compile::compile(*request),
            RequestBody::CompileText { source, arch, form } => compile::compile_text(&source, &arch, form),
            RequestBody::Detached(_) | RequestBody::Folder(_) | RequestBody::File { .. } | RequestBody::Desk { .. } => {
                Err(vec![Diagnostic::error("protocol-answer", "this request is answered beside the work")])
            }
        }
    }

    fn run(&mut self, request: RunRequest) -> Outcome {
        let before = self.kept.take();
        let (id, answers) = (self.id, self.answers);
        let mut broken = None;
        let ran = run::run(request, before, &mut self.gpus, &mut |step| {
            let body = ResponseBody::Progress(step);
            let said =
                transport::write_response(&mut *lock(answers), &Response { id, body, payloads: Vec::new() }, &[]);
            broken = broken.take().or(said.err());
        })?;
        if let Some(why) = broken {
            return Err(vec![why]);
        }
        self.kept = Some(ran.kept);
        Ok((Reply::Run(Box::new(ran.report)), ran.payloads))
    }

    fn answer(&mut self, id: u64, body: ResponseBody, payloads: &[Payload]) -> Result<(), Diagnostic> {
        transport::write_response(&mut *lock(self.answers), &Response { id, body, payloads: Vec::new() }, payloads)
    }
}

fn hello(protocol: u32) -> Outcome {
    if protocol == PROTOCOL_VERSION {
        return Ok((Reply::Hello(info::worker_info()), Vec::new()));
    }
    let version = identity::build();
    let message = format!("this worker (Maskloom {version}) speaks protocol {PROTOCOL_VERSION}, not {protocol}");
    Err(vec![Diagnostic::error(OTHER_VERSION, message).hint("install the same version of Maskloom on both machines")])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(requests: Vec<u8>) -> Vec<(Response, Vec<Payload>)> {
        let mut out = Vec::new();
        serve(std::io::Cursor::new(requests), &mut out, PULSE, Box::new(NoDesk), || ()).expect("served");
        let mut reader = &out[..];
        let mut all = Vec::new();
        while let Ok(Incoming::Message(message)) = transport::read_response(&mut reader) {
            all.push(message);
        }
        // a busy machine takes longer than a pulse
        all.retain(|(response, _)| !matches!(response.body, ResponseBody::Alive));
        all
    }

    fn line(id: u64, body: RequestBody) -> Vec<u8> {
        let mut bytes = Vec::new();
        transport::write_request(&mut bytes, &Request { id, body }).unwrap();
        bytes
    }

    #[test]
    fn every_request_has_one_answer_and_garbage_has_one_too() {
        let mut requests = line(5, RequestBody::Hello { protocol: PROTOCOL_VERSION });
        requests.extend(b"what is this\n{\"id\": 6}\n");
        requests.extend(line(7, RequestBody::Hello { protocol: 0 }));
        requests.extend(line(8, RequestBody::Shutdown));
        requests.extend(line(9, RequestBody::Doctor));
        let answers = answers(requests);
        let ids: Vec<u64> = answers.iter().map(|(r, _)| r.id).collect();
        assert_eq!(ids, [5, 0, 6, 7, 8], "one that cannot be read is answered by its number");
        let ResponseBody::Done(Reply::Hello(info)) = &answers[0].0.body else { panic!("{:?}", answers[0]) };
        assert!(info.devices.iter().any(|d| d.device == crate::base::Device::Cpu));
        let ResponseBody::Failed { why } = &answers[3].0.body else { panic!("{:?}", answers[3]) };
        assert_eq!(why[0].code, "protocol-version");
    }

    #[test]
    fn a_request_cut_short_is_told() {
        let mut requests = line(1, RequestBody::Doctor);
        requests.truncate(10);
        let answers = answers(requests);
        assert!(matches!(&answers[0].0.body, ResponseBody::Failed { why } if why[0].code == transport::CUT_SHORT));
    }

    #[test]
    fn a_header_that_speaks_of_an_ended_stream_does_not_end_the_worker() {
        let mut requests = b"{\"stream ended\": 1}\n".to_vec();
        requests.extend(line(2, RequestBody::Hello { protocol: PROTOCOL_VERSION }));
        let ids: Vec<u64> = answers(requests).iter().map(|(r, _)| r.id).collect();
        assert_eq!(ids, [0, 2]);
    }
}
