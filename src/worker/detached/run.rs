//! The process of a job: does the steps one after another in workers of its own.
//!
//! Invariant: a step that fails, or whose worker dies, is a result like others, and the next one follows; every result is on the
//! disk before the next step begins. Must not know clients.

use super::folder::{Folder, Progress};
use crate::base::Diagnostic;
use crate::worker::jobs::{Jobs, News};
use crate::worker::process;
use crate::worker::protocol::detached::{Piece, PieceEnd, Step, Work};
#[cfg(unix)]
use crate::worker::signals;
use crate::worker::target::Target;
use crate::worker::{files, folders};
use base64::Engine;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two notes of progress on the disk.
const NOTE: Duration = Duration::from_millis(500);
/// Most bytes of a command's output that are kept, and of a file that it wrote.
const OUTPUT: usize = 16 << 20;

/// `maskloom job FOLDER`: does what the folder says.
pub fn main(folder: &Path) -> ExitCode {
    match run(&Folder::at(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{}", why.render());
            ExitCode::FAILURE
        }
    }
}

fn run(job: &Folder) -> Result<(), Diagnostic> {
    let batch = job.batch()?;
    if job.began()?.is_some() {
        let message = format!("the job {} was begun before", job.id());
        return Err(Diagnostic::error("job-begun", message).hint("start a new one"));
    }
    job.begin()?;
    let mut jobs = Jobs::new(Target::local(), Arc::new(|| ()));
    for (n, step) in batch.steps.iter().enumerate() {
        job.progress(&Progress { step: n, fraction: 0.0, now: step.label.clone() });
        let end = one(job, n, step, &mut jobs);
        job.add(&Piece { step: n, end })?;
    }
    job.end(false)
}

/// Does one step.
pub fn one(job: &Folder, n: usize, step: &Step, jobs: &mut Jobs) -> PieceEnd {
    match &step.work {
        Work::Race { request } => {
            let running = jobs.run((**request).clone());
            let mut noted = Instant::now();
            let ended = jobs.wait(running, &mut |news| {
                let News::Progress(on) = news else { return };
                if noted.elapsed() >= NOTE {
                    noted = Instant::now();
                    let now = if step.label.is_empty() {
                        on.what.to_string()
                    } else {
                        format!("{}: {}", step.label, on.what)
                    };
                    job.progress(&Progress { step: n, fraction: on.fraction.into(), now });
                }
            });
            match ended {
                News::Ran { report, .. } => PieceEnd::Ran { report },
                News::Failed { why } => PieceEnd::Failed { why },
                other => PieceEnd::Failed {
                    why: vec![Diagnostic::error(
                        "protocol-answer",
                        format!("unexpected reply of the worker: {other:?}"),
                    )],
                },
            }
        }
        Work::Command { words, files } => match command(job, n, words, files) {
            Ok(end) => end,
            Err(why) => PieceEnd::Failed { why: vec![why] },
        },
    }
}

/// A command of this program in a folder of its own, with what it says and writes.
fn command(job: &Folder, n: usize, words: &[String], given: &BTreeMap<String, String>) -> Result<PieceEnd, Diagnostic> {
    let at = job.path().join(format!("step-{n}"));
    std::fs::create_dir_all(&at).map_err(|e| files::cannot_write(&at, &e))?;
    for (name, text) in given {
        if !is_plain(name) {
            let message = format!("`{name}` is no name of a file");
            return Err(Diagnostic::error("job-file", message).hint("a job's files have plain names"));
        }
        files::save(&at.join(name), text.as_bytes())?;
    }
    let make = |name: &str| {
        let path = job.path().join(format!("{name}-{n}"));
        std::fs::File::create(&path).map_err(|e| files::cannot_write(&path, &e)).map(|file| (path, file))
    };
    let ((out, out_file), (err, err_file)) = (make("out")?, make("err")?);
    let own = std::env::current_exe()
        .map_err(|e| Diagnostic::error("job-start", format!("cannot find the running program: {e}")))?;
    let mut started = Command::new(own);
    started.args(words).current_dir(&at).stdin(Stdio::null()).stdout(out_file).stderr(err_file);
    let mut child = process::own_group(&mut started)
        .spawn()
        .map_err(|e| Diagnostic::error("job-start", format!("the command did not start: {e}")))?;
    #[cfg(unix)]
    signals::started(child.id());
    let status = child.wait();
    #[cfg(unix)]
    {
        signals::ended(child.id());
        // a command that ended with the job has no result
        signals::wait_for_the_end();
    }
    let status = status.map_err(|e| Diagnostic::error("job-start", format!("the command was lost: {e}")))?;
    let mut said = text(&err);
    if status.code().is_none() {
        said.push_str(&process::ending(status));
    }
    let (written, left) = written(&at, &given.keys().map(String::as_str).collect());
    said.push_str(&left);
    Ok(PieceEnd::Said { code: status.code().unwrap_or(1), out: text(&out), err: said, files: written })
}

/// The end of a command's output.
fn text(path: &Path) -> String {
    let bytes = files::read(path).unwrap_or_default();
    let from = bytes.len().saturating_sub(OUTPUT);
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

/// What the command wrote beside what it was given, and in words what of it is not sent.
fn written(at: &Path, given: &BTreeSet<&str>) -> (BTreeMap<String, String>, String) {
    let (mut found, mut left) = (BTreeMap::new(), String::new());
    let mut keep = |name: &str, why: &str| {
        left.push_str(&format!("\n{name} of the job is not sent: {why}; it is in {}\n", at.display()));
    };
    let entries = folders::entries(at).unwrap_or_else(|why| {
        keep("what the command wrote", &why);
        Vec::new()
    });
    for path in entries.iter().filter(|path| path.is_file()) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if given.contains(name) {
            continue;
        }
        if path.metadata().is_ok_and(|about| about.len() > OUTPUT as u64) {
            keep(name, &format!("it has more than {} MiB", OUTPUT >> 20));
            continue;
        }
        match files::read(path) {
            Ok(bytes) => drop(found.insert(name.into(), base64::engine::general_purpose::STANDARD.encode(bytes))),
            Err(why) => keep(name, &why.message),
        }
    }
    (found, left)
}

/// A name that stays in its folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}
