//! Compiling in a child process: a compiler that crashes or never ends destroys no GPU context and no inputs.
//!
//! Invariant: the child is in the worker's process group and reads its stdin, so that it ends with the worker; one that crashes, falls
//! silent or never ends is told within its limits, and killed. Must not know what is compiled.

use crate::backends::cuda::{Compiled, Compiler, Form, Nvrtc};
use crate::base::Diagnostic;
use crate::worker::patience::PULSE;
use crate::worker::process;
use crate::worker::protocol::{Reply, Request, RequestBody, ResponseBody};
use crate::worker::transport::{self, Incoming};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// A compiler in a child, where this process can start one; else NVRTC in this process.
pub(super) fn compiler(nvrtc: &'static Nvrtc) -> Arc<dyn Compiler> {
    match own_program() {
        Some(program) => Arc::new(InChild { nvrtc, program }),
        None => Arc::new(Here(nvrtc)),
    }
}

/// The running program, if it is ours: a test's binary would run its tests again.
fn own_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    (program.file_stem()? == "maskloom").then_some(program)
}

struct Here(&'static Nvrtc);

impl Compiler for Here {
    fn version(&self) -> String {
        Compiler::version(self.0)
    }

    fn compile(&self, source: &str, arch: &str, form: Form) -> Result<Compiled, Diagnostic> {
        self.0.compile(source, arch, form)
    }
}

struct InChild {
    /// Which library the child shall open, and its version.
    nvrtc: &'static Nvrtc,
    program: PathBuf,
}

impl Compiler for InChild {
    fn version(&self) -> String {
        Compiler::version(self.nvrtc)
    }

    fn compile(&self, source: &str, arch: &str, form: Form) -> Result<Compiled, Diagnostic> {
        let mut command = Command::new(&self.program);
        command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped());
        if self.nvrtc.path().is_absolute() {
            command.env("MASKLOOM_NVRTC", self.nvrtc.path());
        }
        asked(command, RequestBody::CompileText { source: source.into(), arch: arch.into(), form }, Limits::USUAL)
    }
}

/// How long a compiler may take.
#[derive(Clone, Copy)]
struct Limits {
    /// Between two signs of life of its process.
    silence: Duration,
    /// For one kernel: the longest that we know takes about a minute.
    whole: Duration,
}

impl Limits {
    const USUAL: Limits =
        Limits { silence: Duration::from_secs(10 * PULSE.as_secs()), whole: Duration::from_secs(600) };
}

type Answer = Result<Compiled, Diagnostic>;

/// Starts a compiler, asks it once, and ends it.
fn asked(mut command: Command, body: RequestBody, limits: Limits) -> Answer {
    let mut child = command.spawn().map_err(|e| broken(&format!("it cannot start: {e}")))?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (tell, heard) = channel();
    if let Some((stdin, stdout)) = pipes {
        // ends with the child's pipes
        std::thread::spawn(move || ask(stdin, BufReader::new(stdout), body, &tell));
    }
    let result = answer(&heard, limits);
    // after an answer it waits for the next request, which never comes
    let _ = child.kill();
    let ended = child.wait();
    match result {
        Ok(Some(answer)) => answer,
        Ok(None) => Err(broken(&ended.map_or_else(|e| e.to_string(), process::ending))),
        Err(Silent::Life) => Err(broken(&format!(
            "it has given no sign of life for {} s, and was stopped",
            limits.silence.as_secs_f32()
        ))),
        Err(Silent::End) => {
            let message =
                format!("NVRTC has not compiled a kernel within {} s, and was stopped", limits.whole.as_secs_f32());
            Err(Diagnostic::error("compiler-endless", message)
                .hint("another NVRTC may do it: `maskloom doctor` shows the one in use, MASKLOOM_NVRTC selects another; please report the mask"))
        }
    }
}

/// Which limit has passed.
enum Silent {
    Life,
    End,
}

/// What a compiler's process says: a sign of life, or its answer; None: it ended without one.
enum Heard {
    Life,
    Answer(Option<Answer>),
}

fn answer(heard: &Receiver<Heard>, limits: Limits) -> Result<Option<Answer>, Silent> {
    let until = Instant::now() + limits.whole;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match heard.recv_timeout(left.min(limits.silence)) {
            Ok(Heard::Life) if Instant::now() >= until => return Err(Silent::End),
            Ok(Heard::Life) => {}
            Ok(Heard::Answer(answer)) => return Ok(answer),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                return Err(if left <= limits.silence { Silent::End } else { Silent::Life });
            }
        }
    }
}

fn broken(how: &str) -> Diagnostic {
    Diagnostic::error("compiler-died", format!("the process that compiles kernels gave no reply: {how}"))
        .hint("run it again; `maskloom doctor` shows the NVRTC in use, MASKLOOM_NVRTC selects another")
}

/// Asks, and passes on everything that is heard.
fn ask(mut stdin: ChildStdin, mut stdout: impl BufRead, body: RequestBody, tell: &Sender<Heard>) {
    if transport::write_request(&mut stdin, &Request { id: 1, body }).is_err() {
        let _ = tell.send(Heard::Answer(None));
        return;
    }
    loop {
        let heard = match transport::read_response(&mut stdout) {
            Ok(Incoming::Noise(_)) => Heard::Life,
            Ok(Incoming::End) | Err(_) => Heard::Answer(None),
            Ok(Incoming::Message((response, payloads))) => match response.body {
                ResponseBody::Progress(_) | ResponseBody::Alive => Heard::Life,
                ResponseBody::Failed { why } => Heard::Answer(why.into_iter().next().map(Err)),
                ResponseBody::Done(Reply::CompileText { log, ms }) => {
                    let cubin = payloads.into_iter().next();
                    Heard::Answer(cubin.map(|(_, cubin)| Ok(Compiled { cubin, log, ms })))
                }
                ResponseBody::Done(_) => Heard::Answer(None),
            },
        };
        let ended = matches!(heard, Heard::Answer(_));
        // nobody listens to a child that was given up
        if tell.send(heard).is_err() || ended {
            return;
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::worker::protocol::Response;

    /// What a compiler that is a shell script comes to, and how long it took.
    fn of(script: &str, limits: Limits) -> (Diagnostic, Duration) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let began = Instant::now();
        let body = RequestBody::CompileText { source: "x".into(), arch: "sm_80".into(), form: Form::Kernel };
        (asked(command, body, limits).expect_err("no kernel"), began.elapsed())
    }

    const SHORT: Limits = Limits { silence: Duration::from_millis(300), whole: Duration::from_millis(900) };

    #[test]
    fn a_compiler_that_crashes_falls_silent_or_never_ends_is_told() {
        let (crashed, took) = of("read line; kill -SEGV $$", SHORT);
        assert!(crashed.code == "compiler-died" && crashed.message.contains("SIGSEGV"), "{crashed}");
        assert!(took < Duration::from_secs(5), "{took:?}");
        let (silent, took) = of("exec sleep 60", SHORT);
        assert!(silent.code == "compiler-died" && silent.message.contains("no sign of life for 0.3 s"), "{silent}");
        assert!(took < Duration::from_secs(5), "{took:?}");
        let mut line = Vec::new();
        let alive = Response { id: 1, body: ResponseBody::Alive, payloads: Vec::new() };
        transport::write_response(&mut line, &alive, &[]).expect("into memory");
        let line = String::from_utf8(line).expect("a line of JSON");
        let life = format!("while true; do echo '{}'; sleep 0.1; done", line.trim());
        let (endless, took) = of(&life, SHORT);
        assert_eq!(endless.code, "compiler-endless", "{endless}");
        assert!(took < Duration::from_secs(5), "{took:?}");
    }

    #[test]
    fn a_compiler_that_ends_without_an_answer_is_told() {
        let (ended, _) = of("read line; exit 3", SHORT);
        assert!(ended.code == "compiler-died" && ended.message.contains('3'), "{ended}");
    }
}
