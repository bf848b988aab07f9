//! Compiling in a child process: a compiler that crashes or never ends destroys no GPU context and no inputs.
//!
//! Invariant: the child is in the worker's process group and reads its stdin, so that it ends with the worker. Must not
//! know what is compiled.

use crate::backends::cuda::{Compiled, Compiler, Form, Nvrtc};
use crate::base::Diagnostic;
use crate::worker::process;
use crate::worker::protocol::{Reply, Request, RequestBody, ResponseBody};
use crate::worker::transport::{self, Incoming};
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

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
        let mut child = command.spawn().map_err(|e| broken(&format!("it cannot start: {e}")))?;
        let result = ask(&mut child, RequestBody::CompileText { source: source.into(), arch: arch.into(), form });
        // after an answer it waits for the next request, which never comes
        let _ = child.kill();
        let ended = child.wait();
        result.unwrap_or_else(|| {
            let how = ended.map_or_else(|e| e.to_string(), process::ending);
            Err(broken(&how))
        })
    }
}

fn broken(how: &str) -> Diagnostic {
    Diagnostic::error("compiler-died", format!("the process that compiles kernels gave no reply: {how}"))
        .hint("run it again; `maskloom doctor` shows the NVRTC in use, MASKLOOM_NVRTC selects another")
}

/// The answer, or None when there was none.
fn ask(child: &mut Child, body: RequestBody) -> Option<Result<Compiled, Diagnostic>> {
    let mut stdin: ChildStdin = child.stdin.take()?;
    let mut stdout = BufReader::new(child.stdout.take()?);
    transport::write_request(&mut stdin, &Request { id: 1, body }).ok()?;
    loop {
        match transport::read_response(&mut stdout).ok()? {
            Incoming::Noise(_) => {}
            Incoming::End => return None,
            Incoming::Message((response, payloads)) => match response.body {
                ResponseBody::Progress(_) | ResponseBody::Alive => {}
                ResponseBody::Failed { why } => return why.into_iter().next().map(Err),
                ResponseBody::Done(Reply::CompileText { log, ms }) => {
                    let (_, cubin) = payloads.into_iter().next()?;
                    return Some(Ok(Compiled { cubin, log, ms }));
                }
                ResponseBody::Done(_) => return None,
            },
        }
    }
}
