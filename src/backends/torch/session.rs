//! One Python process with the user's PyTorch, driven by JSON lines.
//!
//! Invariant: one request at a time, each with a time limit; at the limit, at a device fault and at the end the whole
//! process group is killed. A dead process is started again by the next `ensure`. Must not know problems or backends.

use super::exchange::Exchange;
use super::group;
use crate::base::{Device, Diagnostic, HostTensor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SCRIPT: &str = include_str!("../../../assets/python/maskloom_torch.py");
/// The modules that the script imports from its folder.
const BESIDE: &str = include_str!("../../../assets/python/maskloom_beside.py");
const CLOCK: &str = include_str!("../../../assets/python/maskloom_clock.py");
const CUDNN: &str = include_str!("../../../assets/python/maskloom_cudnn.py");
const GRADIENTS: &str = include_str!("../../../assets/python/maskloom_gradients.py");
const JOB: &str = include_str!("../../../assets/python/maskloom_job.py");
const MEMORY: &str = include_str!("../../../assets/python/maskloom_memory.py");

/// Importing torch from a cold disk takes tens of seconds.
const START: Duration = Duration::from_secs(240);
/// Python itself says a first line before it imports anything of weight.
const FIRST_LINE: Duration = Duration::from_secs(20);
/// Number of bytes of stderr kept for a report.
const LAST_WORDS: usize = 4096;

/// The installed packages, and the device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Versions by name: `torch`, `torch cuda`, `triton`, `flash-attn`, `diffusers`, `python`, ... of installed ones.
    pub versions: BTreeMap<String, String>,
    /// `NVIDIA H200`, `cpu (2 threads)`.
    pub device_name: String,
    /// Whether this PyTorch sees a GPU.
    pub cuda: bool,
    /// Whether FlashAttention-4 is there for flex_attention.
    pub flex_flash: bool,
    /// Whether cudnn.flex_attention can be imported.
    #[serde(default)]
    pub cudnn_flex: bool,
    /// The GPU's compute capability, 90 for 9.0.
    #[serde(default)]
    pub capability: Option<u32>,
}

/// The worker and the data sent to it.
pub(super) struct Session {
    python: PathBuf,
    device: Device,
    process: Option<Process>,
    pub(super) exchange: Exchange,
    script: PathBuf,
    next_id: u64,
    /// Counts processes: handles of an earlier one are void.
    generation: u64,
    /// The inputs that the process holds.
    inputs: Option<[HostTensor; 3]>,
    facts: Facts,
    /// Limit for the first line of a process.
    first: Duration,
    /// Set with the first line.
    heard: Heard,
}

/// Whether a Python that is being started has said a line: whoever waits for it can go on without it until then.
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<AtomicBool>);

impl Heard {
    /// Whether it has.
    pub fn is(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Process {
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<String>,
    /// Until when it must have said a line; None once it has.
    silent_until: Option<Instant>,
    words: Arc<Mutex<Vec<u8>>>,
}

#[derive(Deserialize)]
struct Answer {
    id: u64,
    ok: Option<Value>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    code: String,
    message: String,
    hint: String,
    #[serde(default)]
    fatal: bool,
    #[serde(default)]
    refusal: bool,
}

impl Session {
    /// Starts Python and imports torch. Errors: no Python, no torch, no GPU for it.
    pub(super) fn start(python: PathBuf, device: Device, heard: Heard) -> Result<Session, Diagnostic> {
        let mut session = Session::new(python, device, FIRST_LINE)?;
        session.heard = heard;
        session.ensure()?;
        Ok(session)
    }

    /// The same with a limit for its first line.
    #[cfg(test)]
    pub(super) fn start_within(python: PathBuf, device: Device, first: Duration) -> Result<Session, Diagnostic> {
        let mut session = Session::new(python, device, first)?;
        session.ensure()?;
        Ok(session)
    }

    fn new(python: PathBuf, device: Device, first: Duration) -> Result<Session, Diagnostic> {
        let exchange = Exchange::new()?;
        let files = [
            ("maskloom_torch.py", SCRIPT.as_bytes()),
            ("maskloom_beside.py", BESIDE.as_bytes()),
            ("maskloom_clock.py", CLOCK.as_bytes()),
            ("maskloom_cudnn.py", CUDNN.as_bytes()),
            ("maskloom_gradients.py", GRADIENTS.as_bytes()),
            ("maskloom_job.py", JOB.as_bytes()),
            ("maskloom_memory.py", MEMORY.as_bytes()),
        ];
        let script = exchange.write_together(&files)?.remove(0);
        Ok(Session {
            python,
            device,
            process: None,
            exchange,
            script,
            next_id: 0,
            generation: 0,
            inputs: None,
            facts: Facts::default(),
            first,
            heard: Heard::default(),
        })
    }

    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// A number that no request and no other caller gets.
    pub(super) fn next_number(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Starts the process if none runs.
    pub(super) fn ensure(&mut self) -> Result<(), Diagnostic> {
        if self.process.is_some() {
            return Ok(());
        }
        let mut command = Command::new(&self.python);
        command.arg("-u").arg(&self.script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = group::own_group(&mut command).spawn().map_err(|why| no_python(&self.python, &why.to_string()))?;
        let mut process = Process::of(child)?;
        process.silent_until = Some(Instant::now() + self.first);
        self.process = Some(process);
        self.generation += 1;
        self.inputs = None;
        let hello = json!({ "device": self.device.to_string(), "folders": self.exchange.paths() });
        let facts = self.ask("starting PyTorch", "hello", hello, START)?;
        self.facts = read_answer(facts)?;
        Ok(())
    }

    /// Hands q, k and v over, unless the process has them.
    pub(super) fn give_inputs(&mut self, qkv: [&HostTensor; 3], limit: Duration) -> Result<(), Diagnostic> {
        if self.inputs.as_ref().is_some_and(|have| have.iter().zip(qkv).all(|(a, b)| a.same_storage(b))) {
            return Ok(());
        }
        let path = self.exchange.write_tensors("inputs.safetensors", &[("q", qkv[0]), ("k", qkv[1]), ("v", qkv[2])])?;
        let asked = self.ask("passing tensors to PyTorch", "inputs", json!({ "path": path }), limit);
        let _ = std::fs::remove_file(path);
        asked?;
        self.inputs = Some(qkv.map(HostTensor::clone));
        Ok(())
    }

    /// Sends one request and waits for its answer. `what` is for messages. Errors: what PyTorch said, the time limit, or
    /// the process's last words.
    pub(super) fn ask(
        &mut self,
        what: &str,
        kind: &str,
        mut body: Value,
        limit: Duration,
    ) -> Result<Value, Diagnostic> {
        let id = self.next_number();
        body["id"] = json!(id);
        body["do"] = json!(kind);
        let until = Instant::now() + limit;
        let Some(process) = &mut self.process else { return Err(gone(what)) };
        let sent = writeln!(process.stdin, "{body}").and_then(|()| process.stdin.flush());
        let answer = match sent {
            Ok(()) => process.wait(id, until, &self.heard),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        match answer {
            Ok(Answer { ok: Some(value), .. }) => Ok(value),
            Ok(Answer { error: Some(why), .. }) => {
                if why.fatal {
                    self.process = None;
                }
                let reported = Diagnostic::error(why.code, why.message).hint(why.hint);
                Err(if why.refusal { reported.refused() } else { reported })
            }
            Ok(_) => Err(Diagnostic::error("torch-protocol", "PyTorch's worker returned an empty reply")),
            Err(RecvTimeoutError::Timeout) => {
                let silent = self.process.take().is_some_and(|process| process.silent_until.is_some());
                if silent {
                    let message =
                        format!("{} has said nothing for {} s", self.python.display(), self.first.as_secs_f32());
                    return Err(Diagnostic::error("torch-silent", message)
                        .hint("check that this Python starts in a terminal, or set MASKLOOM_PYTHON to another"));
                }
                let message = format!("{what} took longer than {} s and was stopped", limit.as_secs());
                Err(Diagnostic::error("torch-timeout", message).hint("try a shorter sequence, or race without torch:*"))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let died = self.process.take().map(Process::autopsy).unwrap_or_default();
                Err(Diagnostic::error("torch-died", format!("the Python process died while {what}{died}"))
                    .hint("run it again; if it dies again, check that `import torch` works in that Python"))
            }
        }
    }
}

/// An answer's fields, or a protocol error.
pub(super) fn read_answer<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Diagnostic> {
    serde_json::from_value(value)
        .map_err(|why| Diagnostic::error("torch-protocol", format!("unexpected reply of PyTorch's worker: {why}")))
}

fn gone(what: &str) -> Diagnostic {
    Diagnostic::error("torch-died", format!("the Python process is gone; {what} is no longer possible"))
        .hint("run it again")
}

/// No interpreter could be started.
pub(super) fn no_python(path: &std::path::Path, why: &str) -> Diagnostic {
    Diagnostic::error("no-python", format!("{} cannot be started: {why}", path.display()))
        .hint("install Python 3.10 or newer with torch, or set MASKLOOM_PYTHON (only torch:* backends need it)")
}

impl Process {
    fn of(mut child: Child) -> Result<Process, Diagnostic> {
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            group::kill(&mut child);
            return Err(Diagnostic::error("torch-protocol", "Python's pipes are missing"));
        };
        let (tell, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let words = Arc::new(Mutex::new(Vec::new()));
        let kept = words.clone();
        std::thread::spawn(move || keep_last(stderr, &kept));
        Ok(Process { child, stdin, answers, silent_until: None, words })
    }

    fn wait(&mut self, id: u64, until: Instant, heard: &Heard) -> Result<Answer, RecvTimeoutError> {
        loop {
            let until = self.silent_until.map_or(until, |silent| until.min(silent));
            let line = self.answers.recv_timeout(until.saturating_duration_since(Instant::now()))?;
            self.silent_until = None;
            heard.set();
            // other lines on this channel are late answers, which are ignored
            if let Some(answer) = serde_json::from_str::<Answer>(&line).ok().filter(|a| a.id == id) {
                return Ok(answer);
            }
        }
    }

    /// Its exit status, and the end of its output, for a message.
    fn autopsy(mut self) -> String {
        // stderr closes a moment after stdout
        std::thread::sleep(Duration::from_millis(100));
        let status = self.child.try_wait().ok().flatten().map(|s| format!(" ({s})")).unwrap_or_default();
        let words = self.words.lock().map(|w| String::from_utf8_lossy(&w).into_owned()).unwrap_or_default();
        let last: Vec<&str> = words.lines().rev().filter(|l| !l.trim().is_empty()).take(4).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        if last.is_empty() { status } else { format!("{status}; its last words: {}", last.join(" / ")) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        group::kill(&mut self.child);
    }
}

fn keep_last(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 {
            return;
        }
        let Ok(mut kept) = kept.lock() else { return };
        kept.extend_from_slice(&buffer[..count]);
        let surplus = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..surplus);
    }
}
