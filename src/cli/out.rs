//! The output of the command line: stdout, stderr and failures.
//!
//! Invariant: only this file writes to stdout; a closed pipe ends the command silently, a full disk is reported.

use super::table::{form, in_form};
use crate::base::Diagnostic;
use crate::base::words::visible;
use crate::words::{Language, Value as Figure, Words};
use crate::worker::far::script::quoted;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The reason why a command ends without success.
#[derive(Debug)]
pub enum Failure {
    /// Status 1; may be empty if everything was printed already.
    Reported(Vec<Diagnostic>),
    /// Status 2.
    WrongUse(Diagnostic),
    /// The reader of our output is gone: `maskloom ... | head`.
    ReaderGone,
    /// A specific status.
    Exit(ExitCode),
}

impl From<Diagnostic> for Failure {
    fn from(why: Diagnostic) -> Self {
        Failure::Reported(vec![why])
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(why: Vec<Diagnostic>) -> Self {
        Failure::Reported(why)
    }
}

/// What was passed over so far, for the JSON object.
static PASSED_OVER: Mutex<Vec<Value>> = Mutex::new(Vec::new());

/// Whether anything was written to stdout.
static WROTE: AtomicBool = AtomicBool::new(false);

/// Writes text to stdout.
pub(super) fn text(text: &str) -> Result<(), Failure> {
    WROTE.store(true, Ordering::Relaxed);
    let shown = if wants_json() { text.into() } else { visible(&in_form(text, form())).into_owned() };
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(shown.as_bytes()).and_then(|()| stdout.flush()).map_err(|e| match e.kind() {
        ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Diagnostic::error("cannot-write", format!("cannot write the output: {e}"))
            .hint("redirect it to a disk with space")
            .into(),
    })
}

/// A path as a JSON object has it. serde refuses names that are not UTF-8, and `json!` panics where it does.
pub(super) fn path(path: &Path) -> String {
    path.display().to_string()
}

/// A word of a command line that can be copied: in quotes where a shell needs them.
pub(super) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/:@+,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text.into() } else { quoted(text) }
}

/// Writes one JSON object to stdout.
pub(super) fn json(value: &impl Serialize) -> Result<(), Failure> {
    // a value of its own type keeps the order of its fields
    let written = match passed_over() {
        none if none.is_empty() => serde_json::to_string_pretty(value),
        all => serde_json::to_value(value).and_then(|value| serde_json::to_string_pretty(&with(value, all))),
    };
    let line =
        written.map_err(|e| Diagnostic::error("json-output", format!("the result cannot be written as JSON: {e}")))?;
    text(&(line + "\n"))
}

/// Remembers what the command goes on without, such as a file that cannot be read: its JSON objects have it under `passed_over`.
pub(super) fn remember(all: &[Diagnostic]) {
    let mut known = PASSED_OVER.lock().unwrap_or_else(PoisonError::into_inner);
    for one in all.iter().map(diagnostic_json) {
        if !known.contains(&one) {
            known.push(one);
        }
    }
}

fn passed_over() -> Vec<Value> {
    PASSED_OVER.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn with(mut value: Value, passed_over: Vec<Value>) -> Value {
    if let (Value::Object(object), false) = (&mut value, passed_over.is_empty()) {
        object.insert("passed_over".into(), passed_over.into());
    }
    value
}

/// Writes one JSON object to stdout, on a line of its own.
pub(super) fn json_line(value: &Value) -> Result<(), Failure> {
    text(&format!("{}\n", with(value.clone(), passed_over())))
}

/// What a reader is told in: English where a script reads.
pub(super) fn words() -> &'static Words {
    Words::of(if wants_json() { Language::English } else { Language::chosen() })
}

/// A line in the reader's language, by its id.
pub(super) fn line(id: &str, figures: &[(&str, Figure<'_>)]) -> String {
    words().with(id, figures) + "\n"
}

/// Diagnostics on stderr; nothing can be done if it is closed.
pub(super) fn diagnostics(all: &[Diagnostic]) {
    all.iter().for_each(|reported| note(&rendered(reported)));
}

/// A diagnostic. In another language than English a sentence stands above it; what scripts read has none.
pub(super) fn rendered(reported: &Diagnostic) -> String {
    let said = words();
    let way_out = said.way_out(&reported.code, reported.hint.as_deref());
    let own = said.refusal(&reported.code).into_iter().chain(way_out.as_deref());
    own.map(|line| format!("{line}\n")).collect::<String>() + &reported.render()
}

/// Whether the command line asks for JSON.
pub(super) fn wants_json() -> bool {
    std::env::args_os().skip(1).any(|arg| arg == "--json")
}

/// The reason of a failed command: on stderr, and for scripts as one JSON object if nothing else was written.
pub(super) fn failed(all: &[Diagnostic]) {
    diagnostics(all);
    if !wants_json() || all.is_empty() || WROTE.load(Ordering::Relaxed) {
        return;
    }
    let _ = json(&failure_json(all));
}

/// A failure as scripts read it.
pub(super) fn failure_json(all: &[Diagnostic]) -> Value {
    let shown: Vec<Value> = all.iter().map(diagnostic_json).collect();
    json!({ "error": shown.first(), "diagnostics": shown })
}

fn diagnostic_json(reported: &Diagnostic) -> Value {
    let place = reported.line_column().map(|(line, column)| json!({ "line": line, "column": column }));
    json!({ "code": reported.code, "severity": format!("{:?}", reported.severity).to_lowercase(), "message": reported.message,
            "hint": reported.hint, "place": place })
}

/// A line on stderr.
pub(super) fn note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// One line of progress that overwrites itself on a terminal; nothing elsewhere.
pub(super) struct Progress {
    shown: bool,
}

impl Progress {
    /// Shows nothing yet.
    pub(super) fn new() -> Progress {
        Progress { shown: std::io::stderr().is_terminal() }
    }

    /// Never shows anything.
    pub(super) fn none() -> Progress {
        Progress { shown: false }
    }

    /// Replaces the line.
    pub(super) fn say(&self, line: &str) {
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
