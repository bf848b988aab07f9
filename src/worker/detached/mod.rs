//! Detached jobs: work that goes on when its client, and the line to it, are gone.
//!
//! Invariant: everything about a job is in its folder; a job is running only while its process lives, which is known by its number,
//! the boot and its start; jobs of other users are seen and not touched. Must not know clients.

pub mod folder;
pub mod run;
mod start;

use crate::base::Diagnostic;
use crate::worker::folders;
use crate::worker::protocol::detached::{Ask, JobAnswer, JobPart, JobState};
use folder::{Folder, all};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest wait for news of a job.
const LONGEST: Duration = Duration::from_secs(10);
/// Between two looks for news.
const LOOK: Duration = Duration::from_millis(10);

/// Answers a request about jobs of this machine.
pub fn answer(ask: Ask) -> Result<JobAnswer, Vec<Diagnostic>> {
    reported(ask).map_err(|why| vec![why])
}

fn reported(ask: Ask) -> Result<JobAnswer, Diagnostic> {
    let jobs = jobs()?;
    Ok(match ask {
        Ask::Start { batch } => JobAnswer::Started { id: start::start(&jobs, &batch)? },
        Ask::List => {
            let info = |job: &Folder| job.info().unwrap_or_else(|why| job.unread(&why));
            JobAnswer::Listed { jobs: all(&jobs)?.iter().map(info).collect() }
        }
        Ask::Read { id, after, wait } => JobAnswer::Part(Box::new(news(&Folder::find(&jobs, &id)?, after, wait)?)),
        Ask::Cancel { id } => JobAnswer::Cancelled(start::cancel(&Folder::find(&jobs, &id)?)?),
        Ask::Clear { id: Some(id) } => {
            clear(&Folder::find(&jobs, &id)?)?;
            JobAnswer::Cleared { jobs: 1 }
        }
        Ask::Clear { id: None } => {
            JobAnswer::Cleared { jobs: all(&jobs)?.iter().filter(|job| clear(job).is_ok()).count() }
        }
    })
}

fn jobs() -> Result<PathBuf, Diagnostic> {
    folders::jobs().ok_or_else(|| {
        Diagnostic::error("job-folder", "there is no home folder to keep jobs in")
            .hint("name one: MASKLOOM_CACHE=/path")
    })
}

/// What a client does not have yet; without any it is waited for a new piece or the end.
fn news(job: &Folder, after: usize, wait: u64) -> Result<JobPart, Diagnostic> {
    let until = Instant::now() + Duration::from_millis(wait).min(LONGEST);
    loop {
        // a sign that comes behind the answer is seen by the next look
        let signs = job.signs();
        let part = job.part(after)?;
        if !part.pieces.is_empty() || part.info.state != JobState::Running || Instant::now() >= until {
            return Ok(part);
        }
        while job.signs() == signs && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }
}

/// Removes a job that is over. Errors: it runs, or belongs to another user.
fn clear(job: &Folder) -> Result<(), Diagnostic> {
    let info = job.info()?;
    if !info.own {
        return Err(job.of_another());
    }
    if !info.state.is_over() && info.state != JobState::Elsewhere {
        let message = format!("the job {} is running", job.id());
        return Err(Diagnostic::error("job-running", message).hint(format!("maskloom cancel {} ends it", job.id())));
    }
    job.remove()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::worker::protocol::detached::{Batch, Piece, PieceEnd, Step, Work};
    use std::collections::BTreeMap;

    #[test]
    fn news_are_told_when_they_come_and_a_wait_has_an_end() {
        let jobs = tempfile::tempdir().unwrap();
        let work = Work::Command { words: vec!["presets".into()], files: BTreeMap::new() };
        let step = Step { label: String::new(), work };
        let batch = Batch { what: "atlas".into(), title: "t".into(), steps: vec![step], notes: Default::default() };
        let job = Folder::make(jobs.path(), &batch).unwrap();
        job.begin().unwrap();
        let began = Instant::now();
        assert!(news(&job, 0, 60).unwrap().pieces.is_empty() && began.elapsed() >= Duration::from_millis(60));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                let (out, err, files) = (String::new(), String::new(), BTreeMap::new());
                job.add(&Piece { step: 0, end: PieceEnd::Said { code: 0, out, err, files } }).unwrap();
                std::thread::sleep(Duration::from_millis(100));
                job.end(false).unwrap();
            });
            let began = Instant::now();
            assert_eq!(news(&job, 0, 9000).unwrap().pieces.len(), 1);
            assert_eq!(news(&job, 1, 9000).unwrap().info.state, JobState::Ended);
            assert!(began.elapsed() < Duration::from_secs(5), "nobody waits for the whole time");
        });
    }
}
