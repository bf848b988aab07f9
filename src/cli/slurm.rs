//! A sweep as one array job of Slurm: a folder with the points, the script, and a result for each.
//!
//! Invariant: the folder alone tells what is done; the same command shows it, and submits nothing twice unless it is asked to; Slurm
//! schedules, not we. Must not know how points are made.

use super::arguments;
use super::out::{self, Failure};
use super::point;
use super::spread::{End, Point};
use crate::base::{Device, Diagnostic};
use crate::tasks::journal::{self, Done};
use crate::worker::far::script::quoted;
use crate::worker::files;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The flags.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "As an array job")]
pub(super) struct SlurmArgs {
    /// Submit the sweep to Slurm as one array job; points and results are in this folder, which every node must see. The same
    /// command shows the results
    #[arg(long, value_name = "DIR", conflicts_with_all = ["targets", "journal", "detach"])]
    pub slurm: Option<PathBuf>,
    /// Submit again the points that have no result
    #[arg(long, requires = "slurm")]
    pub again: bool,
    /// A word for sbatch, such as --sbatch=--gres=gpu:1; may be repeated
    #[arg(long = "sbatch", value_name = "WORD", requires = "slurm", allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// What came of it.
pub(super) enum Array {
    /// It waits or runs.
    Submitted,
    /// The results so far, one for each point.
    Ends(Vec<End>),
}

/// Submits the points, or gives their results. Errors: the folder is another sweep's, or Slurm refuses.
pub(super) fn array(
    args: &SlurmArgs,
    folder: &Path,
    points: &[Point],
    device: Option<Device>,
) -> Result<Array, Failure> {
    let at = std::path::absolute(folder).map_err(|e| files::cannot_write(folder, &e))?;
    let keys: Vec<String> = points.iter().map(|point| journal::key(&point.request)).collect();
    let known = at.join("array.sh").exists();
    if known && keys != said_keys(&at)? {
        let why = Diagnostic::error("slurm-folder", format!("{} holds another sweep", at.display()));
        return Err(Failure::WrongUse(why.hint("give each sweep a folder of its own")));
    }
    let ends: Vec<Option<Done>> = (0..points.len()).map(|n| done(&at, n, &keys[n])).collect::<Result<_, _>>()?;
    let missing: Vec<usize> = (0..points.len()).filter(|n| ends[*n].is_none()).collect();
    let queued = if known && !missing.is_empty() { queued(&at)? } else { BTreeSet::new() };
    let lost: Vec<usize> = missing.iter().copied().filter(|n| !queued.contains(n)).collect();
    if known && (!args.again || lost.is_empty()) {
        if !missing.is_empty() {
            let job = submitted(&at)?;
            let (there, last) = (points.len() - missing.len(), job.lines().last().unwrap_or_default());
            let others = match (lost.len(), missing.len() - lost.len()) {
                (0, waiting) => format!("{waiting} wait or run (`squeue -j {last}`)"),
                (_, 0) => format!("`squeue -j {last}` shows the others, and --again submits them again"),
                (lost, waiting) => {
                    format!("{waiting} wait or run (`squeue -j {last}`), and --again submits the {lost} others again")
                }
            };
            out::note(&format!("{there} of {} points are there; {others}", points.len()));
        }
        let end = |(n, done): (usize, Option<Done>)| done.ok_or_else(|| vec![unfinished(&at, n, &points[n])]);
        return Ok(Array::Ends(ends.into_iter().enumerate().map(end).collect()));
    }
    if !known {
        for (n, point) in points.iter().enumerate() {
            files::save_with_folders(&at.join(format!("points/{n}.json")), point::text(point, device)?.as_bytes())?;
        }
        files::save(&at.join("keys"), (keys.join("\n") + "\n").as_bytes())?;
    }
    submit(args, &at, &lost)?;
    Ok(Array::Submitted)
}

/// The numbers of its jobs, the newest last; none before the first.
fn submitted(at: &Path) -> Result<String, Diagnostic> {
    text_at(&at.join("submitted")).map(Option::unwrap_or_default)
}

/// The text of a file; None if there is none. Errors: it is there and cannot be read.
fn text_at(path: &Path) -> Result<Option<String>, Diagnostic> {
    files::is_there(path)?.then(|| files::read_text(path)).transpose()
}

/// Points that wait or run, as far as the queue can be asked.
fn queued(at: &Path) -> Result<BTreeSet<usize>, Diagnostic> {
    let jobs = submitted(at)?.lines().collect::<Vec<_>>().join(",");
    let mut squeue = Command::new("squeue");
    squeue.args(["--noheader", "--array", "--format=%K"]).arg(format!("--jobs={jobs}"));
    // a job that is long over is an error to it, and means the same as an empty queue
    let said = squeue.output().map(|said| said.stdout).unwrap_or_default();
    Ok(String::from_utf8_lossy(&said).split_whitespace().filter_map(|n| n.parse().ok()).collect())
}

fn said_keys(at: &Path) -> Result<Vec<String>, Diagnostic> {
    Ok(files::read_text(&at.join("keys"))?.lines().map(String::from).collect())
}

/// The result of a point; None while there is none. A part of one has no newline. Errors: it is there and cannot be read.
fn done(at: &Path, n: usize, key: &str) -> Result<Option<Done>, Diagnostic> {
    let Some(text) = text_at(&at.join(format!("done/{n}.json")))? else { return Ok(None) };
    Ok(serde_json::from_str::<Done>(&text).ok().filter(|done| text.ends_with('\n') && done.key == key))
}

fn unfinished(at: &Path, n: usize, point: &Point) -> Diagnostic {
    let said = std::fs::read_to_string(at.join(format!("logs/{n}"))).unwrap_or_default();
    let last: Vec<&str> = said.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    let said: String = last.iter().rev().map(|line| format!("\n  {line}")).collect();
    Diagnostic::error("slurm-missing", format!("at {}: no result{said}", point.label))
        .hint("--again submits the missing points again")
}

/// One array job with these indices.
fn submit(args: &SlurmArgs, at: &Path, missing: &[usize]) -> Result<(), Failure> {
    let program = std::env::current_exe()
        .map_err(|e| Diagnostic::error("slurm-submit", format!("cannot find the running program: {e}")))?;
    let indices = missing.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    for folder in ["done", "logs"] {
        std::fs::create_dir_all(at.join(folder)).map_err(|e| files::cannot_write(at, &e))?;
    }
    let (folder, program) = (quoted(&arguments::as_text(at)?), quoted(&arguments::as_text(&program)?));
    // written beside and renamed: a killed task leaves no half result
    let script = format!(
        "#!/bin/sh\ncd {folder} || exit 1\nn=$SLURM_ARRAY_TASK_ID\nexec 2>\"logs/$n\"\n{program} point \"points/$n.json\" >\"done/.$n.$$\" && \
         mv -f \"done/.$n.$$\" \"done/$n.json\"\nstatus=$?\nrm -f \"done/.$n.$$\"\nexit $status\n"
    );
    files::save(&at.join("array.sh"), script.as_bytes())?;
    let mut sbatch = Command::new("sbatch");
    sbatch.args(["--parsable", "--job-name=maskloom", "--output=/dev/null"]).arg(format!("--array={indices}"));
    sbatch.args(&args.words).arg(at.join("array.sh"));
    let before = submitted(at)?;
    // a sweep that was submitted before stays one
    let undo = || {
        if before.is_empty() {
            drop(std::fs::remove_file(at.join("array.sh")));
        }
    };
    let said = sbatch.output().map_err(|e| {
        undo();
        Diagnostic::error("slurm-submit", format!("cannot start sbatch: {e}"))
            .hint("run this on a machine of the cluster from which jobs are submitted")
    })?;
    let (answer, complaint) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    if !said.status.success() {
        undo();
        let message = format!("sbatch refused the array job: {}", complaint.trim());
        return Err(Diagnostic::error("slurm-submit", message).hint("words for it are given by --sbatch=WORD").into());
    }
    let job = answer.trim().split(';').next().unwrap_or_default().to_string();
    files::save(&at.join("submitted"), format!("{before}{job}\n").as_bytes())?;
    out::note(&format!("array job {job}: {} points; the same command shows the results", missing.len()));
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A link to itself is there, and nobody can read it.
    #[test]
    fn a_result_that_cannot_be_read_is_not_a_missing_one() {
        let sweep = tempfile::tempdir().unwrap();
        std::fs::create_dir(sweep.path().join("done")).unwrap();
        let path = sweep.path().join("done/0.json");
        assert!(done(sweep.path(), 0, "key").unwrap().is_none());
        std::fs::write(&path, "{\"key\": ").unwrap();
        assert!(done(sweep.path(), 0, "key").unwrap().is_none(), "a part of one");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&path, &path).unwrap();
        assert_eq!(done(sweep.path(), 0, "key").unwrap_err().code, "cannot-read");
        std::os::unix::fs::symlink("submitted", sweep.path().join("submitted")).unwrap();
        assert!(submitted(sweep.path()).is_err() && queued(sweep.path()).is_err());
    }
}
