//! Starting and ending a job.
//!
//! Invariant: a job is told as started only when its process has said that it runs; only a process that is surely the job's is ended.
//! Must not know the work.

use super::folder::{Folder, lives};
use crate::base::Diagnostic;
use crate::worker::descendants;
use crate::worker::files;
use crate::worker::process::{self, End};
use crate::worker::protocol::detached::{Batch, JobInfo, JobState};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// For a job's process to say that it runs, and to end.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// Starts a job in a session of its own. Gives its number.
pub(super) fn start(jobs: &Path, batch: &Batch) -> Result<String, Diagnostic> {
    let own = std::env::current_exe()
        .map_err(|e| Diagnostic::error("job-start", format!("cannot find the running program: {e}")))?;
    let job = Folder::make(jobs, batch)?;
    let log = std::fs::File::create(job.path().join("log")).map_err(|e| files::cannot_write(job.path(), &e))?;
    let mut command = Command::new(own);
    command.arg("job").arg(job.path()).current_dir(job.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    // it goes on when its client and the worker end
    command.env(descendants::JOB, job.id());
    let failed = |why: String| {
        let _ = job.remove();
        Diagnostic::error("job-start", format!("the job did not start: {why}"))
            .hint("run the same command without --detach to see more")
    };
    let mut child = process::own_group(&mut command).spawn().map_err(|e| failed(e.to_string()))?;
    let until = Instant::now() + PATIENCE;
    while job.began()?.is_none() {
        if process::has_ended(&mut child) && job.began()?.is_none() {
            let said = std::fs::read_to_string(job.path().join("log")).unwrap_or_default();
            let status = child.wait().map_or_else(|e| e.to_string(), process::ending);
            return Err(failed(format!("{status} {}", said.trim())));
        }
        if Instant::now() >= until {
            process::kill_group(&mut child);
            return Err(failed(format!("no word from it for {} s", PATIENCE.as_secs())));
        }
        std::thread::sleep(LOOK);
    }
    // whoever asks longer than the job lives must not see a dead process that is not reaped
    std::thread::spawn(move || child.wait());
    Ok(job.id())
}

/// Ends a job. One that is over stays as it is.
pub(super) fn cancel(job: &Folder) -> Result<JobInfo, Diagnostic> {
    let info = job.info()?;
    if !info.own {
        return Err(job.of_another());
    }
    match (info.state, job.began()?) {
        (JobState::Elsewhere, _) => {
            let message = format!("the job {} runs on {}, which cannot be reached from here", job.id(), info.host);
            return Err(Diagnostic::error("job-elsewhere", message).hint("cancel it on that machine"));
        }
        (JobState::Running, Some(began)) => {
            let until = Instant::now() + PATIENCE;
            end(began.pid, End::Ask);
            while lives(&began) {
                if Instant::now() >= until {
                    end(began.pid, End::Now);
                }
                std::thread::sleep(LOOK);
                if Instant::now() >= until + PATIENCE {
                    let message = format!("the job {} cannot be ended: its process {} stays", job.id(), began.pid);
                    return Err(
                        Diagnostic::error("job-stuck", message).hint("a process that waits for a device ends with it")
                    );
                }
            }
            // it may have come to its own end meanwhile
            if job.info()?.state == JobState::Lost {
                job.end(true)?;
            }
        }
        _ => {}
    }
    job.info()
}

#[cfg(unix)]
fn end(pid: u32, how: End) {
    process::end(pid, how);
}

#[cfg(not(unix))]
fn end(_: u32, _: End) {}
