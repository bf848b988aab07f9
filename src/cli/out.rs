//! What leaves the command line: stdout, stderr and failures.
//!
//! Invariant: stdout is written here only; a closed pipe ends the command quietly, a full disk is told.

use crate::base::Diagnostic;
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

/// Why a command ends without success.
#[derive(Debug)]
pub enum Failure {
    /// Status 1; may be empty when everything has been told already.
    Told(Vec<Diagnostic>),
    /// Status 2.
    WrongUse(Diagnostic),
    /// Whoever read our output has gone: `maskloom ... | head`.
    ReaderGone,
    /// A status of its own.
    Exit(ExitCode),
}

impl From<Diagnostic> for Failure {
    fn from(why: Diagnostic) -> Self {
        Failure::Told(vec![why])
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(why: Vec<Diagnostic>) -> Self {
        Failure::Told(why)
    }
}

/// Writes text to stdout.
pub fn text(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|e| match e.kind() {
        ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Diagnostic::error("cannot-write", format!("cannot write the output: {e}"))
            .hint("redirect it to a disk with space")
            .into(),
    })
}

/// Writes one JSON object to stdout.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string_pretty(value)
        .map_err(|e| Diagnostic::error("json-output", format!("the result cannot be written as JSON: {e}")))?;
    text(&(line + "\n"))
}

/// Diagnostics on stderr; nothing can be done if it is closed.
pub fn diagnostics(all: &[Diagnostic]) {
    all.iter().for_each(|d| note(&d.render()));
}

/// A line on stderr.
pub fn note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// One line of progress on a terminal, written over itself; nothing elsewhere.
pub struct Progress {
    shown: bool,
}

impl Progress {
    /// Shows nothing yet.
    pub fn new() -> Progress {
        Progress { shown: std::io::stderr().is_terminal() }
    }

    /// Replaces the line.
    pub fn say(&self, line: &str) {
        if self.shown {
            let line: String = line.chars().take(100).collect();
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K{line}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.say("");
    }
}
