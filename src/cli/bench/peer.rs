//! The user's PyTorch as a peer of a benchmark: a Python process that makes dense masks on request.
//!
//! Invariant: it works only while a reply is awaited, so that it never takes cores from the measured code; it ends with
//! its handle. Must not know what is measured.

use crate::base::Diagnostic;
use crate::worker::{process, user_python};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const SCRIPT: &str = include_str!("create_mask.py");

/// Importing torch, or one large mask on a slow machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// A running Python.
pub(super) struct Peer {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    /// PyTorch's version.
    pub version: String,
    /// Folders of its imports.
    pub folders: Vec<PathBuf>,
}

impl Peer {
    /// Starts the user's Python with PyTorch on this number of threads. Errors: there is none, or it does not start.
    pub(super) fn start(threads: usize) -> Result<Peer, Diagnostic> {
        let found = user_python::find().filter(|p| p.packages.contains_key("torch"));
        let Some(python) = found else {
            let why = Diagnostic::warning("no-torch", "no Python with PyTorch was found for the comparison");
            return Err(why.hint("activate an environment that has torch, or set MASKLOOM_PYTHON"));
        };
        let mut command = Command::new(&python.path);
        command.args(["-I", "-u", "-c", SCRIPT, &threads.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let failed = || Diagnostic::warning("no-torch", format!("{} does not start", python.path.display()));
        let mut child = process::own_group(&mut command).spawn().map_err(|_| failed())?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else { return Err(failed()) };
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        let mut peer = Peer { child, stdin, lines, version: String::new(), folders: python.folders };
        let hello = peer.answer()?;
        peer.version = hello["torch"].as_str().unwrap_or("?").to_string();
        Ok(peer)
    }

    /// Makes a mask of a text once: kept cells of each row and of each column. Errors: Python's message.
    pub(super) fn prepare(&mut self, text: &str, length: usize) -> Result<(Vec<u64>, Vec<u64>), Diagnostic> {
        let answer = self.ask(&json!({ "text": text, "q_len": length, "kv_len": length }))?;
        let counts = |field: &str| serde_json::from_value(answer[field].clone()).unwrap_or_default();
        Ok((counts("rows"), counts("columns")))
    }

    /// Makes it again: milliseconds.
    pub(super) fn time(&mut self) -> Result<f64, Diagnostic> {
        let answer = self.ask(&json!({ "time": true }))?;
        answer["ms"].as_f64().ok_or_else(|| Diagnostic::warning("peer", "PyTorch gave no time"))
    }

    fn ask(&mut self, request: &Value) -> Result<Value, Diagnostic> {
        let gone = |why: std::io::Error| Diagnostic::warning("peer", format!("the Python process is gone: {why}"));
        writeln!(self.stdin, "{request}").map_err(gone)?;
        self.stdin.flush().map_err(gone)?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Value, Diagnostic> {
        let line = self.lines.recv_timeout(PATIENCE);
        let line = line.map_err(|_| Diagnostic::warning("peer", "the Python process does not answer"))?;
        let answer: Value = serde_json::from_str(&line)
            .map_err(|_| Diagnostic::warning("peer", format!("the Python process said: {line}")))?;
        match answer["error"].as_str() {
            Some(why) => Err(Diagnostic::warning("peer", format!("PyTorch: {why}"))),
            None => Ok(answer),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        process::kill_group(&mut self.child);
    }
}
