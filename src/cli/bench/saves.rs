//! Rows of `bench language`: the time from a save until the watched code is traced again, counted and drawn.
//!
//! Invariant: the watch is that of `maskloom watch`; the time runs from the end of the save to the traced mask, and to
//! the finished report. Must not know how files are watched.

use super::Args;
use crate::base::Diagnostic;
use crate::cli::check;
use crate::cli::out::Failure;
use crate::cli::watch::Watch;
use clap::{Args as _, FromArgMatches};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A factory of usual length, which is checked at every keystroke.
pub(super) const LONG: &str = include_str!("long_factory.py");
/// Largest number of timed saves.
const MOST: usize = 60;

/// The saved text, with another window each time.
fn text(window: usize) -> String {
    LONG.replace("window: int = 3", &format!("window: int = {}", 3 + window % 7))
}

/// The rows: median and 95th percentile of the time from a save to its mask, and to its picture.
pub(super) fn rows(args: &Args) -> Result<Vec<Value>, Failure> {
    let folder =
        tempfile::tempdir().map_err(|e| Diagnostic::error("cannot-write", format!("no folder for the saves: {e}")))?;
    let path = folder.path().join("saved.py");
    save(&path, 0)?;
    let command = check::Args::augment_args(clap::Command::new("check"));
    let matches = command.try_get_matches_from(["check".as_ref(), path.as_os_str()]);
    let parsed = matches.and_then(|m| check::Args::from_arg_matches(&m));
    let parsed = parsed.map_err(|e| Diagnostic::error("bad-arguments", e.to_string()))?;
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || {
        let mut watch = Watch::new(parsed);
        loop {
            let mut traced = Instant::now();
            let report = watch.look(|| traced = Instant::now());
            // writing the report is part of what a user waits for
            let report = report.map(|found| found.render().len());
            // ends with the receiver
            if done.send(report.map(|_| [traced, Instant::now()])).is_err() {
                return;
            }
            watch.wait();
        }
    });
    let next = || finished.recv_timeout(Duration::from_secs(10));
    let late = || Diagnostic::error("not-seen", "a save was not seen within ten seconds");
    next().map_err(|_| late())??;
    let (mut samples, started) = ([Vec::new(), Vec::new()], Instant::now());
    while samples[0].len() < MOST && (samples[0].len() < 20 || started.elapsed() < Duration::from_millis(args.budget)) {
        // at no fixed phase of the watch
        std::thread::sleep(Duration::from_micros(20_000 + 7_919 * (samples[0].len() as u64 % 11)));
        save(&path, samples[0].len() + 1)?;
        let saved = Instant::now();
        let seen = next().map_err(|_| late())??;
        for (at, samples) in seen.into_iter().zip(&mut samples) {
            samples.push(at.duration_since(saved).as_secs_f64() * 1e3);
        }
    }
    let [traced, drawn] = samples;
    Ok(vec![
        super::row_with_late("save to mask", traced, json!({ "step": "save", "bar_ms": 100 })),
        super::row_with_late("save to picture", drawn, json!({ "step": "save" })),
    ])
}

fn save(path: &Path, window: usize) -> Result<(), Failure> {
    let why = |e: std::io::Error| Diagnostic::error("cannot-write", format!("cannot write {}: {e}", path.display()));
    // as editors save: written to another file and moved into place
    let beside = path.with_extension("new");
    std::fs::write(&beside, text(window)).and_then(|()| std::fs::rename(&beside, path)).map_err(why)?;
    Ok(())
}
