//! A sweep through a cluster of Ray: this program travels to its nodes, and each task does one point.
//!
//! Invariant: Ray schedules, not we; a result counts when it is in the journal, if there is one. Must not know how points are made.

use super::out::{self, Failure, Progress};
use super::point;
use super::spread::{End, Point};
use crate::base::{Device, Diagnostic};
use crate::tasks::journal::{self, Done, Journal};
use crate::worker::far::program::Program;
use crate::worker::process::{self, End as Ending};
#[cfg(unix)]
use crate::worker::signals;
use crate::worker::user_python;
use serde::Deserialize;
use serde_json::json;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What runs beside Ray.
const SCRIPT: &str = include_str!("../../assets/python/maskloom_ray.py");
/// Lines of Ray's own words that are kept.
const KEPT: usize = 20;

/// A line of the script.
#[derive(Deserialize)]
struct Line {
    point: usize,
    node: String,
    #[serde(default)]
    done: String,
    #[serde(default)]
    failed: String,
}

/// Runs every point that the journal does not have. Errors: no Ray, or its cluster is not there.
pub(super) fn run(
    address: &str,
    points: &[Point],
    device: Option<Device>,
    journal: Option<&Path>,
) -> Result<Vec<End>, Failure> {
    let mut journal = journal.map(Journal::open).transpose()?;
    let keys: Vec<String> = points.iter().map(|point| journal::key(&point.request)).collect();
    let known = |key: &String| journal.as_ref().and_then(|journal| journal.known.get(key).cloned());
    let mut ends: Vec<Option<End>> = keys.iter().map(|key| known(key).map(Ok)).collect();
    let waiting: Vec<usize> = (0..points.len()).filter(|n| ends[*n].is_none()).collect();
    if waiting.len() < points.len() {
        let (n, all) = (points.len() - waiting.len(), points.len());
        out::note(&out::words().with("note-points", &[("n", n.to_string().into()), ("all", all.to_string().into())]));
    }
    if waiting.is_empty() {
        return Ok(ends.into_iter().flatten().collect());
    }
    let program = Program::chosen(None)?;
    let asked = json!({
        "address": address, "program": program.path, "hash": program.hash, "gpu": device.map(|device| device != Device::Cpu),
    });
    let mut lines = vec![asked.to_string()];
    for n in &waiting {
        lines.push(json!({ "point": n, "text": point::text(&points[*n], device)? }).to_string());
    }
    let progress = Progress::new();
    progress.say(&format!("connecting to Ray at {address}"));
    let said = started(&python()?, lines, |line| {
        let Some(point) = points.get(line.point) else { return Ok(()) };
        let end = match serde_json::from_str::<Done>(&line.done) {
            Ok(mut done) => {
                done.rows.iter_mut().for_each(|row| row["target"] = json!(format!("ray: {}", line.node)));
                if let Some(journal) = &mut journal {
                    journal.add(&done)?;
                }
                Ok(done)
            }
            Err(_) => {
                let message = format!("at {}: the task on {} failed: {}", point.label, line.node, line.failed.trim());
                Err(vec![
                    Diagnostic::error("ray-task", message).hint("`maskloom run` with these values shows the reason"),
                ])
            }
        };
        ends[line.point] = Some(end);
        progress.say(&format!("{} of {} points", ends.iter().flatten().count(), points.len()));
        Ok(())
    })?;
    drop(progress);
    if ends.iter().all(Option::is_none) {
        let why = Diagnostic::error("ray-failed", format!("Ray at {address} ran nothing: {said}"));
        return Err(why
            .hint("--ray local starts workers on this machine; --ray auto finds a cluster that runs here")
            .into());
    }
    let left = |point: &Point| {
        let message = format!("at {}: Ray ended before it: {said}", point.label);
        vec![
            Diagnostic::error("ray-failed", message)
                .hint("with --journal F.jsonl the same command takes up the missing points"),
        ]
    };
    Ok(ends.into_iter().zip(points).map(|(end, point)| end.unwrap_or_else(|| Err(left(point)))).collect())
}

/// A Python that has Ray.
fn python() -> Result<PathBuf, Diagnostic> {
    let has = |path: &PathBuf| {
        let mut asked = Command::new(path);
        asked.args(["-c", "import importlib.util as u, sys; sys.exit(u.find_spec('ray') is None)"]);
        asked.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    user_python::candidates().into_iter().find(has).ok_or_else(|| {
        Diagnostic::error("ray-missing", "no Python with Ray was found")
            .hint("python3 -m pip install ray; MASKLOOM_PYTHON names the interpreter")
    })
}

/// Runs the script to its end. Gives the last of what it said beside its lines.
fn started(
    python: &Path,
    lines: Vec<String>,
    mut hear: impl FnMut(Line) -> Result<(), Diagnostic>,
) -> Result<String, Failure> {
    let mut command = Command::new(python);
    command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = process::own_group(&mut command).spawn().map_err(|e| {
        Diagnostic::error("ray-missing", format!("cannot start {}: {e}", python.display()))
            .hint("MASKLOOM_PYTHON names the interpreter")
    })?;
    #[cfg(unix)]
    signals::started(child.id());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Diagnostic::error("ray-missing", "Python was started without pipes").into());
    };
    let writing = std::thread::spawn(move || lines.iter().try_for_each(|line| writeln!(stdin, "{line}")));
    let words = std::thread::spawn(move || last_lines(stderr));
    let mut failed = None;
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        // Ray prints on stdout, too
        let Ok(line) = serde_json::from_str::<Line>(&line) else { continue };
        if let Err(why) = hear(line) {
            failed = Some(why);
            process::signal_group(&mut child, Ending::Ask);
            break;
        }
    }
    #[cfg(unix)]
    signals::ended(child.id());
    let _ = child.wait();
    #[cfg(unix)]
    signals::wait_for_the_end();
    let _ = writing.join();
    let said = words.join().unwrap_or_default();
    failed.map_or(Ok(said), |why| Err(why.into()))
}

fn last_lines(stderr: impl Read) -> String {
    let mut kept = VecDeque::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
        kept.push_back(line);
        if kept.len() > KEPT {
            kept.pop_front();
        }
    }
    // an exception's own words are its last line
    kept.pop_back().unwrap_or_else(|| "it said nothing".into())
}
