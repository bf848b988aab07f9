//! `maskloom watch`: check code again whenever it, or a module it imports, is saved.
//!
//! Invariant: ends only when it is told to (or its reader goes away); errors are shown and the watch goes on. Must not
//! know workers.

use super::check;
use super::out::{self, Failure};
use crate::service::environment::{Stamp, stamp};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Check FILE.py:ENTRY again at every save
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    check: check::Args,
    /// Stop after this many checks
    #[arg(long, value_name = "N")]
    times: Option<u64>,
}

/// How often files are looked at: a save is seen, checked and shown within a tenth of a second.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn watch(args: Args) -> Result<(), Failure> {
    let (mut watch, mut left) = (Watch::new(args.check), args.times);
    loop {
        let start = Instant::now();
        match watch.look(|| ()) {
            Ok(text) => out::text(&format!("{text}({:.0} ms)\n\n", ms(start)))?,
            Err(Failure::Told(why)) => out::diagnostics(&why),
            Err(other) => return Err(other),
        }
        if let Some(n) = &mut left {
            *n -= 1;
            if *n == 0 {
                return Ok(());
            }
        }
        watch.wait();
    }
}

/// A check that is made again when one of its files changes.
#[derive(Debug)]
pub(super) struct Watch {
    check: check::Args,
    paths: Vec<PathBuf>,
    /// When each was last written before the last check.
    before: Vec<Stamp>,
}

impl Watch {
    pub(super) fn new(check: check::Args) -> Watch {
        Watch { check, paths: Vec::new(), before: Vec::new() }
    }

    /// Checks, and gives the report with its picture; `traced` is called when the code is known to be right.
    pub(super) fn look(&mut self, traced: impl FnOnce()) -> Result<String, Failure> {
        // looked at first, so that a save during the check is seen after it
        (self.paths, self.before) = watched(&self.check);
        let (opened, compiled) = check::traced(&self.check)?;
        traced();
        check::found(&self.check, &opened, &compiled).map(|found| found.text(self.check.json))
    }

    /// Returns when a file has changed since it was looked at.
    pub(super) fn wait(&self) {
        while stamps(&self.paths) == self.before {
            std::thread::sleep(PAUSE);
        }
    }
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// The files that the check reads, and when each was last written.
fn watched(args: &check::Args) -> (Vec<PathBuf>, Vec<Stamp>) {
    let mut paths: Vec<PathBuf> = match super::opened::python(&args.file) {
        Some((path, _)) => vec![path],
        None => vec![PathBuf::from(&args.file)],
    };
    if let Ok(opened) = check::open(args) {
        // compiling asks for the modules that are imported
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
