//! One point of a sweep by itself, as a task of Slurm or Ray runs it: read whole, done, and written as one line.
//!
//! Invariant: a point brings its document and request with it, so that a task needs no other file. Must not know queues.

use super::out::{self, Failure};
use super::race;
use super::spread::Point;
use super::work::Worker;
use crate::base::{Device, Diagnostic};
use crate::tasks::journal::{self, Done};
use crate::worker::{files, machine};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::PathBuf;

/// Run one point of a sweep and print its result as one line
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// File of a point, as `sweep` writes it
    file: PathBuf,
}

/// A point as it travels.
#[derive(Serialize, Deserialize)]
pub(super) struct Alone {
    pub point: Point,
    pub device: Option<Device>,
}

/// Its text.
pub(super) fn text(point: &Point, device: Option<Device>) -> Result<String, Diagnostic> {
    #[derive(Serialize)]
    struct Lent<'a> {
        point: &'a Point,
        device: Option<Device>,
    }
    serde_json::to_string(&Lent { point, device })
        .map_err(|e| Diagnostic::error("sweep-point", format!("a point cannot be written: {e}")))
}

/// Runs the command.
pub(super) fn point(args: &Args) -> Result<(), Failure> {
    let broken = |e| Diagnostic::error("sweep-point", format!("{} is no point of a sweep: {e}", args.file.display()));
    let alone: Alone = serde_json::from_str(&files::read_text(&args.file)?).map_err(broken)?;
    let mut worker = Worker::connect("")?;
    let mut request = alone.point.request.clone();
    request.device = worker.device(alone.device, &alone.point.document);
    let (report, _) = worker.run(request.clone())?;
    let mut rows = race::rows(&alone.point.document.name, &request.problem, &report);
    rows.iter_mut().for_each(|row| row["target"] = json!(machine::host()));
    let done = Done {
        key: journal::key(&alone.point.request),
        rows,
        right: race::succeeded(&report),
        why: race::shortfalls(&report),
    };
    let line = serde_json::to_string(&done)
        .map_err(|e| Diagnostic::error("sweep-point", format!("the result cannot be written: {e}")))?;
    out::text(&(line + "\n"))
}
