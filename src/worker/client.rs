//! The client's side of a worker: launching it, exchanging messages without blocking, detecting its end.
//!
//! Invariant: `send` and `poll` never block; after a worker's end there is exactly one `Died` event, and it is the last.
//! Must not know what requests do.

use crate::base::Diagnostic;
use crate::worker::asking::Asking;
use crate::worker::far::shell::way_out;
use crate::worker::kin::{self, Kin};
use crate::worker::launch::{Launch, Opening};
use crate::worker::named;
use crate::worker::patience::{Patience, Vital};
use crate::worker::process::{self, End};
use crate::worker::protocol::{PROTOCOL_VERSION, Reply, Request, RequestBody, ResponseBody, WorkerInfo};
#[cfg(unix)]
use crate::worker::signals;
use crate::worker::target::Target;
use crate::worker::transport::{self, Incoming, Payload};
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Called from another thread whenever an event has arrived.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// Bytes of a worker's stderr that are kept.
const LAST_WORDS: usize = 16 * 1024;
/// How often a worker is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Lines in a row that are no messages, after which a worker counts as another program.
const MOST_NOISE: usize = 10_000;
/// How long a dead worker's stderr is waited for.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(500);

/// Request numbers count up over all workers of this process, so that an old worker's answer is never taken for a new one's. They
/// begin anywhere, so that no login prints one by chance.
static NEXT_ID: LazyLock<AtomicU64> = LazyLock::new(|| {
    let any = RandomState::new().build_hasher().finish();
    // below what a number of JSON holds exactly, and far from small ones
    AtomicU64::new((1 << 51) | (any >> 14))
});

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
        /// Whether it was stopped because it kept silent.
        silent: bool,
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
    vital: Arc<Vital>,
    kin: Option<Arc<Mutex<Kin>>>,
    /// Whether something was sent.
    asked: bool,
}

impl Client {
    /// Launches a worker. Errors: the command cannot be started.
    pub fn launch(target: &Target) -> Result<Client, Diagnostic> {
        Self::launch_with(target, Patience::default(), Box::new(|| {}))
    }

    /// Launches a worker that calls `wake` whenever [`Client::poll`] would give something, and that has ended when it
    /// keeps silent for longer than `patience` allows.
    pub fn launch_with(target: &Target, patience: Patience, wake: Wake) -> Result<Client, Diagnostic> {
        let launch = Launch::of(target)?;
        let mut command = Command::new(&launch.words[0]);
        command.args(&launch.words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let asking = if target.is_local() || !patience.asks { Asking::never() } else { Asking::prepare() };
        asking.set(&mut command);
        let mut child = process::own_group(&mut command).spawn().map_err(|e| cannot_start(target, &e))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            process::kill_group(&mut child);
            return Err(Diagnostic::error("target-launch", "the worker was started without pipes"));
        };
        #[cfg(unix)]
        signals::started(child.id());
        let kin = (!target.is_local()).then(|| {
            let pipes = [kin::pipe(&stdin), kin::pipe(&stdout), kin::pipe(&stderr)];
            Arc::new(Mutex::new(Kin::of(child.id(), pipes.into_iter().flatten())))
        });
        let child = Arc::new(Mutex::new(child));
        let (requests, outgoing) = channel();
        let (incoming, events) = channel();
        let words = Arc::new(LastWords::default());
        let (opened, shell) = channel();
        let ready = launch.opening.as_ref().map(|opening| Ready { mark: opening.ready.clone(), opened });
        let opening = launch.opening.map(|opening| (opening, shell));
        spawn("worker-stderr", {
            let words = words.clone();
            move || words.listen(stderr)
        })?;
        let (vital, over) = (Arc::new(Vital::new()), Arc::new(AtomicBool::new(false)));
        let reader = Arc::new(Reader {
            child: child.clone(),
            words,
            events: incoming,
            wake,
            vital: vital.clone(),
            over,
            asking: Mutex::new(asking),
            first: NEXT_ID.load(Ordering::Relaxed),
            kin: kin.clone(),
        });
        spawn("worker-stdin", {
            // a writer that outlives the reader tells nobody
            let reader = Arc::downgrade(&reader);
            move || {
                write_requests(stdin, opening, &outgoing, transport::MAX_HEADER, |id, why| {
                    let body = ResponseBody::Failed { why: vec![why] };
                    let told = Event::Message { id, body, payloads: Vec::new() };
                    if let Some(reader) = reader.upgrade() {
                        reader.tell(told);
                    }
                });
            }
        })?;
        spawn("worker-watch", {
            let watch = reader.clone();
            move || watch.watch(&patience)
        })?;
        spawn("worker-stdout", move || reader.run(stdout, ready))?;
        let requests = Some(requests);
        let (target, backlog) = (target.clone(), VecDeque::new());
        Ok(Client { target, child, requests, events, backlog, alive: true, vital, kin, asked: false })
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
        if !std::mem::replace(&mut self.asked, true) && matches!(body, RequestBody::Hello { .. }) {
            self.vital.asked();
        }
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
                return Err(vec![died(&self.target, "it had already ended", false)]);
            };
            match event {
                Event::Message { id: from, body, payloads } if from == id => match body {
                    ResponseBody::Alive => {}
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
                Event::Died { last_words, silent } => {
                    self.alive = false;
                    let why = died(&self.target, &last_words, silent);
                    self.backlog.push_back(Event::Died { last_words, silent });
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
        // what has left the group is found only while its parents live, and the end of its input may end them
        self.kin.iter().for_each(|kin| lock(kin).look());
        self.requests = None;
        let mut child = lock(&self.child);
        if self.target.is_local() {
            // the reader reaps it
            process::signal_group(&mut child, End::Now);
            return;
        }
        process::signal_group(&mut child, End::Ask);
        drop(child);
        let (child, kin) = (self.child.clone(), self.kin.clone());
        let _ = spawn("worker-end", move || {
            if let Some(kin) = &kin {
                lock(kin).ask();
            }
            end_far_worker(&child);
        });
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A failure never has no words: a worker of another program or version may give none.
fn with_a_reason(body: ResponseBody) -> ResponseBody {
    match body {
        ResponseBody::Failed { why } if why.is_empty() => {
            let why = Diagnostic::error("protocol-answer", "the worker says that it failed, and gives no reason");
            ResponseBody::Failed { why: vec![why.hint("both sides must be the same version of Maskloom")] }
        }
        other => other,
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
pub fn died(target: &Target, last_words: &str, silent: bool) -> Diagnostic {
    let hint = if silent {
        "try the launch command in a terminal: it must start `maskloom worker` there without asking for anything; for a \
         queue give it more time (MASKLOOM_PATIENCE, in seconds)"
    } else if target.is_local() {
        "the document is unchanged; the next run starts a new worker"
    } else {
        "run the launch command in a terminal: it must start `maskloom worker` there without asking for anything"
    };
    let refused = named::of_command(&target.command).filter(|_| !silent).and_then(|named| {
        let words = Target::from_words(&named.words).command;
        way_out(last_words, &words).filter(|_| named.words.first().is_some_and(|first| first.ends_with("ssh")))
    });
    let hint = refused.as_deref().unwrap_or(hint);
    let how = if silent { "was stopped" } else { "ended" };
    Diagnostic::error("worker-died", format!("the worker on {target} {how}: {last_words}")).hint(hint)
}

fn cannot_start(target: &Target, error: &std::io::Error) -> Diagnostic {
    let program = Launch::of(target).map(|launch| launch.words[0].clone()).unwrap_or_default();
    let why = Diagnostic::error("target-launch", format!("cannot start `{program}`: {error}"));
    // one word may be meant as a name
    match named::list().map(|list| list.find(&target.command).err().and_then(|none| none.hint)) {
        Ok(Some(hint)) if named::is_name(&target.command) => {
            why.hint(format!("if a target with a name is meant: {hint}"))
        }
        _ => why
            .hint("check that the program exists and is executable; the launch command is a program and its arguments"),
    }
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

/// A shell in front of the worker is told to become it, and is waited for: it might take requests for commands. A request that
/// no worker would read is refused here: it is never answered there.
fn write_requests(
    mut stdin: impl Write,
    opening: Option<(Opening, Receiver<()>)>,
    requests: &Receiver<Request>,
    limit: u64,
    refuse: impl Fn(u64, Diagnostic),
) {
    if let Some((opening, shell)) = opening {
        let reported = stdin.write_all(opening.script.as_bytes()).and_then(|()| stdin.flush());
        if reported.is_err() || shell.recv().is_err() {
            return;
        }
    }
    for request in requests {
        match transport::write_request_within(&mut stdin, &request, limit) {
            Ok(()) => {}
            Err(why) if why.code == transport::TOO_LARGE => refuse(request.id, why),
            // the reader notices the death and tells it
            Err(_) => return,
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
    vital: Arc<Vital>,
    /// Its end was told.
    over: Arc<AtomicBool>,
    /// Until it is greeted.
    asking: Mutex<Asking>,
    /// The least number that a request to it can have.
    first: u64,
    /// Of a target's command.
    kin: Option<Arc<Mutex<Kin>>>,
}

/// The mark by which a shell says that its stdin is the worker's.
struct Ready {
    mark: String,
    opened: Sender<()>,
}

/// A worker's stdout, every byte of which is a sign of life.
struct Heard<'a>(ChildStdout, &'a Vital);

impl Read for Heard<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.bytes(read);
        Ok(read)
    }
}

impl Reader {
    fn run(&self, stdout: ChildStdout, mut ready: Option<Ready>) {
        let mut stdout = BufReader::with_capacity(1 << 16, Heard(stdout, &self.vital));
        let (mut noise, mut answered) = (0, false);
        let sent = |id| (self.first..NEXT_ID.load(Ordering::Relaxed)).contains(&id);
        let complaint = loop {
            let read = match &ready {
                // a login may print what looks like a message
                Some(_) => transport::read_noise(&mut stdout).map(|line| line.map_or(Incoming::End, Incoming::Noise)),
                None if answered => transport::read_response(&mut stdout),
                None => transport::read_greeting(&mut stdout, self.vital.is_greeted(), sent),
            };
            match read {
                Ok(Incoming::Message((response, payloads))) => {
                    noise = 0;
                    if !self.vital.is_greeted() {
                        *lock(&self.asking) = Asking::never();
                    }
                    self.vital.message();
                    if !matches!(response.body, ResponseBody::Alive) {
                        answered = true;
                        self.vital.answered();
                        self.tell(Event::Message { id: response.id, body: with_a_reason(response.body), payloads });
                    }
                }
                Ok(Incoming::Noise(_)) if noise > MOST_NOISE => break Some("it prints lines without an end".into()),
                Ok(Incoming::Noise(line)) if ready.as_ref().is_some_and(|ready| line.contains(&ready.mark)) => {
                    ready.take().map(|ready| ready.opened.send(()));
                }
                Ok(Incoming::Noise(line)) => {
                    noise += 1;
                    self.words.add(format!("{line}\n").as_bytes());
                }
                Ok(Incoming::End) => break None,
                Err(why) => break Some(why.message),
            }
        };
        // after the end of its stdout a worker has a moment to end by itself
        let patience = Instant::now() + if complaint.is_some() { Duration::ZERO } else { LAST_WORDS_WAIT };
        while !process::has_ended(&mut lock(&self.child)) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(5));
        }
        let runs = || !process::has_ended(&mut lock(&self.child));
        let complaint = complaint.or_else(|| runs().then(|| "it closed its output".into()));
        self.end(false, |ending| complaint.map(|c| format!("{c}; {ending}")).unwrap_or(ending.into()));
    }

    /// Until its end is told: gives a worker up that keeps silent, or whose output something else holds open.
    fn watch(&self, patience: &Patience) {
        let mut ended: Option<Instant> = None;
        while !self.over.load(Ordering::Acquire) {
            std::thread::sleep(LOOK);
            self.kin.iter().for_each(|kin| lock(kin).look());
            if process::has_ended(&mut lock(&self.child)) {
                let since = *ended.get_or_insert_with(Instant::now);
                if since.elapsed() >= patience.ending {
                    return self
                        .end(false, |child| format!("{}; something that it started holds its output open", child));
                }
            } else if lock(&self.asking).is_open() {
                // a question to the user is on the screen
                self.vital.again();
            } else if let Some(missing) = self.vital.missing(patience) {
                return self.end(true, |_| missing);
            }
        }
    }

    /// Ends it with all that it started and tells it, once. `how` is given the way in which it ended.
    fn end(&self, silent: bool, how: impl FnOnce(&str) -> String) {
        if self.over.swap(true, Ordering::AcqRel) {
            return;
        }
        let ended = process::has_ended(&mut lock(&self.child));
        process::signal_group(&mut lock(&self.child), End::Now);
        #[cfg(unix)]
        signals::ended(lock(&self.child).id());
        let status = process::kill_group(&mut lock(&self.child));
        if let Some(kin) = &self.kin {
            lock(kin).end();
        }
        let ending = status.filter(|_| ended).map_or_else(|| "Maskloom stopped it".into(), process::ending);
        #[cfg(unix)]
        signals::wait_for_the_end();
        let (how, words) = (how(&ending), self.words.all());
        let last_words = if words.is_empty() { how } else { format!("{how}\n{words}") };
        self.tell(Event::Died { last_words, silent });
    }

    fn tell(&self, event: Event) {
        // there is no receiver when the client is gone
        let _ = self.events.send(event);
        (self.wake)();
    }
}

#[cfg(all(test, unix))]
#[path = "client_tests.rs"]
mod tests;
