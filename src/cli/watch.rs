//! `maskloom watch`: checks code again whenever the file, or a module that it imports, is saved.
//!
//! Invariant: it ends only after --times checks or when its reader is gone; errors are shown and the watch continues. With --json
//! stdout has one line of JSON for each check and nothing else.
//! Must not know workers.

use super::check::{self, Found};
use super::out::{self, Failure};
use crate::tasks::environment::{Stamp, stamp};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Check FILE.py:ENTRY again at every save
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    check: check::Args,
    /// Stop after this many checks; the exit status is that of the last
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    times: Option<u64>,
}

/// The interval of looking at files: a save is seen, checked and shown within a tenth of a second.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs the command.
pub(super) fn watch(args: Args) -> Result<(), Failure> {
    let (mut watch, mut left) = (Watch::new(args.check), args.times);
    let mut right;
    loop {
        let start = Instant::now();
        match watch.look(|| ()) {
            Ok(found) => {
                right = true;
                watch.tell(&found, ms(start))?;
            }
            Err(Failure::Reported(why)) => {
                right = false;
                out::diagnostics(&why);
                if watch.check.json {
                    out::json_line(&out::failure_json(&why))?;
                }
            }
            Err(other) => return Err(other),
        }
        if let Some(n) = &mut left {
            *n -= 1;
            if *n == 0 {
                return if right { Ok(()) } else { Err(Failure::Reported(Vec::new())) };
            }
        }
        watch.wait();
    }
}

/// A check that is repeated when one of its files changes.
#[derive(Debug)]
pub(super) struct Watch {
    check: check::Args,
    paths: Vec<PathBuf>,
    /// The modification times before the last check.
    before: Vec<Stamp>,
}

impl Watch {
    pub(super) fn new(check: check::Args) -> Watch {
        Watch { check, paths: Vec::new(), before: Vec::new() }
    }

    /// Checks, and returns what was found; `traced` is called when the code has compiled.
    pub(super) fn look(&mut self, traced: impl FnOnce()) -> Result<Found, Failure> {
        // times are read first, so that a save during the check is seen after it
        (self.paths, self.before) = watched(&self.check);
        let (opened, compiled) = check::traced(&self.check)?;
        traced();
        check::found(&self.check, &opened, &compiled)
    }

    /// The report of one check.
    fn tell(&self, found: &Found, took_ms: f64) -> Result<(), Failure> {
        if !self.check.json {
            return out::text(&format!("{}({took_ms:.0} ms)\n\n", found.render()));
        }
        let mut line = found.json();
        line["took_ms"] = serde_json::json!(took_ms);
        out::json_line(&line)
    }

    /// Returns when a file has changed since its time was read.
    pub(super) fn wait(&self) {
        while stamps(&self.paths) == self.before {
            std::thread::sleep(PAUSE);
        }
    }
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// The files that the check reads, with their modification times.
fn watched(args: &check::Args) -> (Vec<PathBuf>, Vec<Stamp>) {
    let mut paths: Vec<PathBuf> = match super::opened::python(&args.file) {
        Some((path, _)) => vec![path],
        None => vec![PathBuf::from(&args.file)],
    };
    if let Ok(opened) = check::open(args) {
        // compiling requests the imported modules
        crate::document::compile::compile(&opened.document, &opened.files);
        paths.extend(opened.files.watched());
    }
    paths.extend(args.code.tensors.iter().cloned());
    let before = stamps(&paths);
    (paths, before)
}

fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    paths.iter().map(|p| stamp(p)).collect()
}
