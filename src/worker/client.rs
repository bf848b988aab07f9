//! The client's side of a worker: launching it, exchanging messages without blocking, detecting its end.
//!
//! Invariant: `send` and `poll` never block; after a worker's end there is exactly one `Died` event, and it is the last.
//! Must not know what requests do.

use crate::base::Diagnostic;
use crate::worker::process::{self, End};
use crate::worker::protocol::{PROTOCOL_VERSION, Reply, Request, RequestBody, ResponseBody, WorkerInfo};
use crate::worker::target::Target;
use crate::worker::transport::{self, Incoming, Payload};
use std::collections::VecDeque;
use std::io::{BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Called from another thread whenever an event has arrived.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// Bytes of a worker's stderr that are kept.
const LAST_WORDS: usize = 16 * 1024;
/// How long a dead worker's stderr is waited for.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(500);

/// Request numbers count up over all workers of this process, so that an old worker's answer is never taken for a new one's.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Something that came from the worker.
#[derive(Clone, Debug)]
pub enum Event {
    /// An answer or progress.
    Message {
        /// The request's number.
        id: u64,
        /// Its message.
        body: ResponseBody,
        /// Tensors that came with it.
        payloads: Vec<Payload>,
    },
    /// The worker has ended; nothing more comes from it.
    Died {
        /// Its exit status, its last output on stderr, and the error of its last message, if any.
        last_words: String,
    },
}

/// The result of one request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The result.
    pub reply: Reply,
    /// Tensors that came with it.
    pub payloads: Vec<Payload>,
}

/// One running worker. Dropping it kills the worker.
pub struct Client {
    target: Target,
    child: Arc<Mutex<Child>>,
    requests: Option<Sender<Request>>,
    events: Receiver<Event>,
    /// Taken from `events` by `wait` for another caller.
    backlog: VecDeque<Event>,
    alive: bool,
}

impl Client {
    /// Launches a worker. Errors: the command cannot be started.
    pub fn launch(target: &Target) -> Result<Client, Diagnostic> {
        Self::launch_with(target, Box::new(|| {}))
    }

    /// Launches a worker that calls `wake` whenever [`Client::poll`] would give something.
    pub fn launch_with(target: &Target, wake: Wake) -> Result<Client, Diagnostic> {
        let mut command = target.to_command()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = process::own_group(&mut command).spawn().map_err(|e| cannot_start(target, &e))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            process::kill_group(&mut child);
            return Err(Diagnostic::error("target-launch", "the worker was started without pipes"));
        };
        let child = Arc::new(Mutex::new(child));
        let (requests, outgoing) = channel();
        let (incoming, events) = channel();
        let words = Arc::new(LastWords::default());
        spawn("worker-stdin", move || write_requests(stdin, &outgoing))?;
        spawn("worker-stderr", {
            let words = words.clone();
            move || words.listen(stderr)
        })?;
        spawn("worker-stdout", {
            let reader = Reader { child: child.clone(), words, events: incoming, wake };
            move || reader.run(stdout)
        })?;
        let requests = Some(requests);
        Ok(Client { target: target.clone(), child, requests, events, backlog: VecDeque::new(), alive: true })
    }

    /// Where it runs.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Whether no `Died` has been given out yet.
    pub fn is_alive(&self) -> bool {
        self.alive
    }

    /// Sends a request and gives its number; the answer comes through `poll` or `wait`.
    pub fn send(&mut self, body: RequestBody) -> u64 {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        if let Some(requests) = &self.requests {
            // a closed channel means that the worker has ended, which `Died` reports
            let _ = requests.send(Request { id, body });
        }
        id
    }

    /// Everything that has arrived. Never blocks.
    pub fn poll(&mut self) -> Vec<Event> {
        let mut out: Vec<Event> = self.backlog.drain(..).collect();
        out.extend(self.events.try_iter());
        if out.iter().any(|e| matches!(e, Event::Died { .. })) {
            self.alive = false;
        }
        out
    }

    /// Blocks until request `id` is answered; events of other requests stay for `poll`.
    pub fn wait(&mut self, id: u64) -> Result<Answer, Vec<Diagnostic>> {
        self.wait_with(id, &mut |_| {})
    }

    /// The same, reporting its progress meanwhile.
    pub fn wait_with(
        &mut self,
        id: u64,
        on_progress: &mut dyn FnMut(&ResponseBody),
    ) -> Result<Answer, Vec<Diagnostic>> {
        let mut earlier = std::mem::take(&mut self.backlog);
        loop {
            let Some(event) = earlier.pop_front().or_else(|| self.events.recv().ok()) else {
                return Err(vec![died(&self.target, "it had already ended")]);
            };
            match event {
                Event::Message { id: from, body, payloads } if from == id => match body {
                    ResponseBody::Progress(_) => on_progress(&body),
                    ResponseBody::Done(reply) => {
                        self.backlog.extend(earlier);
                        return Ok(Answer { reply, payloads });
                    }
                    ResponseBody::Failed { why } => {
                        self.backlog.extend(earlier);
                        return Err(why);
                    }
                },
                Event::Died { last_words } => {
                    self.alive = false;
                    let why = died(&self.target, &last_words);
                    self.backlog.push_back(Event::Died { last_words });
                    return Err(vec![why]);
                }
                other => self.backlog.push_back(other),
            }
        }
    }

    /// Sends a greeting and waits for the reply. Errors: no Maskloom there, or one with another protocol.
    pub fn hello(&mut self) -> Result<WorkerInfo, Vec<Diagnostic>> {
        let id = self.send(RequestBody::Hello { protocol: PROTOCOL_VERSION });
        match self.wait(id)?.reply {
            Reply::Hello(info) => Ok(info),
            other => Err(vec![unexpected(&other)]),
        }
    }

    /// Kills the worker and everything it started: how work is cancelled. Far workers are asked to end first, because a
    /// killed `srun` would leave its job behind.
    pub fn kill(&mut self) {
        self.requests = None;
        let mut child = lock(&self.child);
        if self.target.is_local() {
            // the reader reaps it
            process::signal_group(&mut child, End::Now);
            return;
        }
        process::signal_group(&mut child, End::Ask);
        drop(child);
        let child = self.child.clone();
        let _ = spawn("worker-end", move || end_far_worker(&child));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Diagnostic for an answer of another kind than the request's.
pub fn unexpected(reply: &Reply) -> Diagnostic {
    let text = serde_json::to_string(reply).unwrap_or_default();
    let shown: String = text.chars().take(80).collect();
    Diagnostic::error("protocol-answer", format!("unexpected reply of the worker: {shown}"))
        .hint("both sides must be the same version of Maskloom")
}

/// Diagnostic for a worker that has ended.
pub fn died(target: &Target, last_words: &str) -> Diagnostic {
    let hint = if target.is_local() {
        "the document is unchanged; the next run starts a new worker"
    } else {
        "run the launch command in a terminal: it must start `maskloom worker` there without asking for anything"
    };
    Diagnostic::error("worker-died", format!("the worker on {target} ended: {last_words}")).hint(hint)
}

fn cannot_start(target: &Target, error: &std::io::Error) -> Diagnostic {
    let program = target.words().map(|w| w[0].clone()).unwrap_or_default();
    Diagnostic::error("target-launch", format!("cannot start `{program}`: {error}"))
        .hint("check that the program exists and is executable; the launch command is a program and its arguments")
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Diagnostic> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread
        .map(drop)
        .map_err(|e| Diagnostic::error("target-launch", format!("cannot start a thread to talk to the worker: {e}")))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_requests(mut stdin: ChildStdin, requests: &Receiver<Request>) {
    for request in requests {
        if transport::write_request(&mut stdin, &request).is_err() {
            return; // the reader notices the death and tells it
        }
    }
}

fn end_far_worker(child: &Mutex<Child>) {
    let patience = Instant::now() + Duration::from_secs(3);
    while Instant::now() < patience {
        if !matches!(lock(child).try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    process::kill_group(&mut lock(child));
}

/// The end of a worker's stderr.
#[derive(Default)]
struct LastWords {
    text: Mutex<VecDeque<u8>>,
    closed: Mutex<bool>,
}

impl LastWords {
    fn listen(&self, mut stderr: ChildStderr) {
        let mut buffer = [0; 4096];
        loop {
            match stderr.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => self.add(&buffer[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        *lock(&self.closed) = true;
    }

    fn add(&self, bytes: &[u8]) {
        let mut text = lock(&self.text);
        text.extend(bytes);
        let excess = text.len().saturating_sub(LAST_WORDS);
        text.drain(..excess);
    }

    /// Waits for the end of stderr, but not for long: a grandchild may hold it open.
    fn all(&self) -> String {
        let patience = Instant::now() + LAST_WORDS_WAIT;
        while !*lock(&self.closed) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(5));
        }
        let bytes: Vec<u8> = lock(&self.text).iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_string()
    }
}

struct Reader {
    child: Arc<Mutex<Child>>,
    words: Arc<LastWords>,
    events: Sender<Event>,
    wake: Wake,
}

impl Reader {
    fn run(self, stdout: ChildStdout) {
        let mut stdout = BufReader::with_capacity(1 << 16, stdout);
        let complaint = loop {
            match transport::read_response(&mut stdout) {
                Ok(Incoming::Message((response, payloads))) => {
                    self.tell(Event::Message { id: response.id, body: response.body, payloads });
                }
                Ok(Incoming::Noise(line)) => self.words.add(format!("{line}\n").as_bytes()),
                Ok(Incoming::End) => break None,
                Err(why) => break Some(why),
            }
        };
        let ending = self.reap(complaint.is_some());
        let words = self.words.all();
        let told = complaint.map(|c| format!("{}; ", c.message)).unwrap_or_default();
        let last_words = if words.is_empty() { format!("{told}{ending}") } else { format!("{told}{ending}\n{words}") };
        self.tell(Event::Died { last_words });
    }

    fn tell(&self, event: Event) {
        // there is no receiver when the client is gone
        let _ = self.events.send(event);
        (self.wake)();
    }

    /// After the end of its stdout a worker has a moment to end by itself, then it is killed.
    fn reap(&self, now: bool) -> String {
        let patience = Instant::now() + if now { Duration::ZERO } else { LAST_WORDS_WAIT };
        loop {
            let mut child = lock(&self.child);
            if let Ok(Some(status)) = child.try_wait() {
                return process::ending(status);
            }
            if Instant::now() >= patience {
                process::kill_group(&mut child);
                return "Maskloom stopped it".into();
            }
            drop(child);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Client {
        Client::launch(&Target::from_words(&["sh", "-c", script])).expect("sh starts")
    }

    #[test]
    fn a_death_is_told_once_with_its_last_words() {
        let mut client = shell("echo 'Welcome to gpu1'; echo 'no such GPU' >&2; exit 3");
        let id = client.send(RequestBody::Doctor);
        let why = client.wait(id).unwrap_err();
        assert_eq!(why[0].code, "worker-died");
        for words in ["exit status 3", "no such GPU", "Welcome to gpu1"] {
            assert!(why[0].message.contains(words), "{}", why[0].message);
        }
        assert_eq!(client.poll().len(), 1);
        assert!(client.poll().is_empty() && !client.is_alive());
        assert_eq!(client.wait(id).unwrap_err()[0].code, "worker-died");
    }

    #[test]
    fn garbage_from_a_worker_ends_it() {
        let mut client = shell("echo '{\"id\": 1}'; sleep 60");
        let id = client.send(RequestBody::Doctor);
        let why = client.wait(id).unwrap_err();
        assert!(why[0].message.contains("not a message of Maskloom"), "{}", why[0].message);
        // the message must not suggest another user or missing memory
        let told = &why[0].message;
        assert!(told.contains("Maskloom stopped it") && !told.contains("SIGKILL"), "{told}");
    }

    #[test]
    fn a_missing_program_is_a_diagnostic() {
        let why = Client::launch(&Target::new("no-such-program-of-ours worker")).err().expect("refused");
        assert_eq!(why.code, "target-launch");
    }

    #[test]
    fn answers_to_others_stay_for_poll() {
        let line = |id: u64| {
            let body = ResponseBody::Done(Reply::Bye {});
            serde_json::to_string(&super::super::protocol::Response { id, body, payloads: vec![] }).unwrap()
        };
        let big = u64::MAX - 1;
        let mut client = shell(&format!("echo '{}'; echo '{}'; sleep 60", line(big), line(big - 1)));
        client.wait(big - 1).unwrap();
        assert!(matches!(&client.poll()[..], [Event::Message { id, .. }] if *id == big));
        client.kill();
    }
}
