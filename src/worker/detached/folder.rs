//! The folder of a job: what it shall do, who does it, how far it is, its results, its end.
//!
//! Invariant: a result is on the disk before the next step begins, a line for each; half a line (a power cut) is passed over; other
//! files are replaced whole. A number that is no name of ours never becomes a path. Must not know how a job runs.

use crate::base::Diagnostic;
use crate::worker::descendants::Process;
use crate::worker::protocol::detached::{Batch, JobInfo, JobPart, JobState, Piece, PieceEnd};
use crate::worker::{files, folders, machine};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most pieces of one answer, and about how many bytes.
const PIECES: usize = 64;
const BYTES: usize = 4 << 20;

/// A job's folder.
#[derive(Clone, Debug)]
pub struct Folder {
    at: PathBuf,
}

/// Whose process does it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// Its process.
    pub pid: u32,
    /// When that process began, as the kernel counts it; 0: unknown.
    pub start: u64,
    /// Which boot of the machine.
    pub boot: String,
    /// Its host.
    pub host: String,
    /// Seconds since 1970.
    pub at: u64,
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The step in work.
    pub step: usize,
    /// Its share, 0 to 1.
    pub fraction: f64,
    /// In words.
    pub now: String,
}

/// Its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// A user ended it.
    pub cancelled: bool,
    /// Seconds since 1970.
    pub at: u64,
}

/// The folders of every job below this folder, the oldest first; none where there is no such folder yet. Errors: it cannot be listed.
pub fn all(jobs: &Path) -> Result<Vec<Folder>, Diagnostic> {
    let found = folders::entries(jobs).map_err(|why| {
        Diagnostic::error("jobs-unlisted", format!("the jobs in {} cannot be listed: {why}", jobs.display()))
            .hint("give this user the right to read the folder, or name another: MASKLOOM_CACHE=/path")
    })?;
    let named = |at: &PathBuf| at.file_name().is_some_and(|name| is_id(&name.to_string_lossy()));
    // one without a work yet is just being made
    let jobs = found.into_iter().filter(named).filter(|at| !matches!(at.join("job.json").try_exists(), Ok(false)));
    Ok(jobs.map(|at| Folder { at }).collect())
}

/// `20261127-071502-3fa9c2`
fn is_id(text: &str) -> bool {
    (8..=40).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase() || b == b'-')
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Folder {
    /// A new one with its work.
    pub fn make(jobs: &Path, batch: &Batch) -> Result<Folder, Diagnostic> {
        std::fs::create_dir_all(jobs).map_err(|e| files::cannot_write(jobs, &e))?;
        let at = loop {
            let at = jobs.join(fresh());
            match std::fs::create_dir(&at) {
                Ok(()) => break at,
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => std::thread::sleep(Duration::from_millis(1)),
                Err(e) => return Err(files::cannot_write(&at, &e)),
            }
        };
        let folder = Folder { at };
        folder.write("job.json", batch).inspect_err(|_| drop(std::fs::remove_dir_all(&folder.at)))?;
        Ok(folder)
    }

    /// One that is there.
    pub fn at(path: &Path) -> Folder {
        Folder { at: path.to_path_buf() }
    }

    /// By its number, or the beginning of one. Errors: there is none, or several.
    pub fn find(jobs: &Path, id: &str) -> Result<Folder, Diagnostic> {
        let mut found: Vec<Folder> = all(jobs)?.into_iter().filter(|job| job.id().starts_with(id)).collect();
        if let Some(exact) = found.iter().position(|job| job.id() == id) {
            return Ok(found.swap_remove(exact));
        }
        match (found.len(), id.is_empty()) {
            (1, false) => Ok(found.remove(0)),
            (0, _) | (_, true) => {
                Err(Diagnostic::error("job-unknown", format!("there is no job `{id}` on this machine"))
                    .hint("`maskloom jobs` lists them; those of a target need --target"))
            }
            _ => Err(Diagnostic::error("job-unknown", format!("{} jobs begin with `{id}`", found.len()))
                .hint("give more of its number")),
        }
    }

    /// Its number.
    pub fn id(&self) -> String {
        self.at.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.at
    }

    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), Diagnostic> {
        let bytes = serde_json::to_vec(value)
            .map_err(|e| Diagnostic::error("job-file", format!("the job cannot be written: {e}")))?;
        files::save(&self.at.join(name), &bytes)
    }

    /// One of its files; None: it is not written yet. Errors: it cannot be read.
    fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Diagnostic> {
        let path = self.at.join(name);
        if !files::is_there(&path)? {
            return Ok(None);
        }
        let text = files::read_named_text(&path)?;
        serde_json::from_str(&text).map(Some).map_err(|e| {
            Diagnostic::error("job-file", format!("the job {} cannot be read: {name}: {e}", self.id()))
                .hint("another version of Maskloom may have written it")
        })
    }

    /// Its work. Errors: it cannot be read.
    pub fn batch(&self) -> Result<Batch, Diagnostic> {
        let missing = || files::cannot_read(&self.at.join("job.json"), &std::io::ErrorKind::NotFound.into());
        self.read("job.json")?.ok_or_else(missing)
    }

    /// This process does it from now on.
    pub fn begin(&self) -> Result<(), Diagnostic> {
        let pid = std::process::id();
        let (start, boot) = (Process::of(pid).map_or(0, |own| own.began()), boot());
        self.write("began.json", &Began { pid, start, boot, host: machine::host(), at: now() })
    }

    /// Who does it; None: nobody yet.
    pub fn began(&self) -> Result<Option<Began>, Diagnostic> {
        self.read("began.json")
    }

    /// Says how far it is. A full disk costs the words alone.
    pub fn progress(&self, progress: &Progress) {
        let _ = self.write("progress.json", progress);
    }

    /// Adds a result. Errors: it cannot be written.
    pub fn add(&self, piece: &Piece) -> Result<(), Diagnostic> {
        let path = self.at.join("pieces.jsonl");
        let mut line = serde_json::to_vec(piece)
            .map_err(|e| Diagnostic::error("job-file", format!("a result cannot be written: {e}")))?;
        line.push(b'\n');
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(&line).and_then(|()| file.sync_data()))
            .map_err(|e| files::cannot_write(&path, &e))
    }

    /// It is over.
    pub fn end(&self, cancelled: bool) -> Result<(), Diagnostic> {
        self.write("end.json", &Ended { cancelled, at: now() })
    }

    /// The pieces behind the first `after`, within the limits of one answer, and whether there are more; all are counted. Errors: they
    /// cannot be read.
    fn pieces(&self, after: usize) -> Result<(Vec<Piece>, bool, usize), Diagnostic> {
        let path = self.at.join("pieces.jsonl");
        if !files::is_there(&path)? {
            return Ok((Vec::new(), false, 0));
        }
        let mut lines = BufReader::new(files::open(&path)?.0);
        let (mut found, mut bytes, mut count) = (Vec::new(), 0, 0);
        let mut line = Vec::new();
        loop {
            line.clear();
            lines.read_until(b'\n', &mut line).map_err(|e| files::cannot_read(&path, &e))?;
            if line.last() != Some(&b'\n') {
                break;
            }
            let room = found.len() < PIECES && bytes < BYTES;
            if count >= after && room {
                bytes += line.len();
                found.push(serde_json::from_slice(&line).unwrap_or_else(|e| broken(count, &e)));
            }
            count += 1;
        }
        let more = count > after + found.len();
        Ok((found, more, count))
    }

    /// What changes when a piece or the end is written: the length of the one, and whether the other is there.
    pub fn signs(&self) -> (u64, bool) {
        let length = std::fs::metadata(self.at.join("pieces.jsonl")).map_or(0, |about| about.len());
        (length, self.at.join("end.json").exists())
    }

    /// What a client does not have yet.
    pub fn part(&self, after: usize) -> Result<JobPart, Diagnostic> {
        // the state first: a piece that comes in between is told with the next part
        let info = self.info()?;
        let (pieces, more, _) = self.pieces(after)?;
        let batch = if after == 0 { Some(Box::new(self.batch()?)) } else { None };
        Ok(JobPart { info, batch, pieces, more })
    }

    /// How it is.
    pub fn info(&self) -> Result<JobInfo, Diagnostic> {
        let (batch, began, ended) = (self.batch()?, self.began()?, self.read::<Ended>("end.json")?);
        // words alone
        let progress: Progress = self.read("progress.json").ok().flatten().unwrap_or_default();
        let (_, _, done) = self.pieces(usize::MAX)?;
        let state = match (&began, &ended) {
            (_, Some(end)) if end.cancelled => JobState::Cancelled,
            (_, Some(_)) => JobState::Ended,
            (Some(began), None) if began.host != machine::host() => JobState::Elsewhere,
            (Some(began), None) if lives(began) => JobState::Running,
            _ => JobState::Lost,
        };
        let steps = batch.steps.len();
        let inside = if progress.step >= done && state == JobState::Running { progress.fraction } else { 0.0 };
        let until = match (&ended, state) {
            (Some(end), _) => end.at,
            (None, JobState::Lost) => self.last_written().unwrap_or_else(now),
            _ => now(),
        };
        Ok(JobInfo {
            id: self.id(),
            what: batch.what,
            title: batch.title,
            state,
            steps,
            done,
            fraction: ((done as f64 + inside) / steps.max(1) as f64).clamp(0.0, 1.0),
            now: if state == JobState::Running { progress.now } else { String::new() },
            seconds: began.as_ref().map_or(0, |began| until.saturating_sub(began.at)) as f64,
            host: began.map(|began| began.host).unwrap_or_default(),
            own: self.is_own(),
        })
    }

    /// One whose work cannot be read: it is there, and says why.
    pub fn unread(&self, why: &Diagnostic) -> JobInfo {
        JobInfo {
            id: self.id(),
            what: String::new(),
            title: why.message.clone(),
            state: JobState::Lost,
            steps: 0,
            done: 0,
            fraction: 0.0,
            now: String::new(),
            seconds: 0.0,
            host: String::new(),
            own: self.is_own(),
        }
    }

    fn last_written(&self) -> Option<u64> {
        let newest =
            std::fs::read_dir(&self.at).ok()?.flatten().filter_map(|e| e.metadata().ok()?.modified().ok()).max();
        newest?.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
    }

    #[cfg(unix)]
    fn is_own(&self) -> bool {
        use crate::worker::process::user;
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(&self.at).is_ok_and(|about| about.uid() == user())
    }

    #[cfg(not(unix))]
    fn is_own(&self) -> bool {
        true
    }

    /// Diagnostic for a job that is left alone.
    pub fn of_another(&self) -> Diagnostic {
        Diagnostic::error("job-of-another", format!("the job {} belongs to another user", self.id()))
            .hint("only its user can end or remove it")
    }

    /// Removes it.
    pub fn remove(&self) -> Result<(), Diagnostic> {
        std::fs::remove_dir_all(&self.at).map_err(|e| files::cannot_write(&self.at, &e))
    }
}

/// A line that is whole and no piece: another version wrote it.
fn broken(at: usize, error: &serde_json::Error) -> Piece {
    let why = Diagnostic::error("job-file", format!("result {at} of the job cannot be read: {error}"));
    Piece { step: at, end: PieceEnd::Failed { why: vec![why] } }
}

fn fresh() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mixed = blake3::hash(format!("{}{}{}", since.as_nanos(), std::process::id(), machine::host()).as_bytes());
    let random: String = mixed.as_bytes()[..3].iter().map(|byte| format!("{byte:02x}")).collect();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    format!("{year}{month:02}{day:02}-{:02}{:02}{:02}-{random}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The date of a day since 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= lengths[month] {
        left -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, left + 1)
}

fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
}

/// Whether the process is still the same one.
pub fn lives(began: &Began) -> bool {
    began.boot == boot() && Process::of(began.pid).is_some_and(|now| now.began() == began.start)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::worker::protocol::detached::{Step, Work};
    use std::collections::BTreeMap;

    fn batch(steps: usize) -> Batch {
        let work = Work::Command { words: vec!["presets".into()], files: BTreeMap::new() };
        let steps = vec![Step { label: "one".into(), work }; steps];
        Batch { what: "atlas".into(), title: "an atlas".into(), steps, notes: serde_json::json!({"a": 1}) }
    }

    fn piece(step: usize, bytes: usize) -> Piece {
        let (out, err, files) = ("x".repeat(bytes), String::new(), BTreeMap::new());
        Piece { step, end: PieceEnd::Said { code: 0, out, err, files } }
    }

    #[test]
    fn a_job_is_told_by_its_folder_alone() {
        let jobs = tempfile::tempdir().unwrap();
        let job = Folder::make(jobs.path(), &batch(4)).unwrap();
        assert_eq!(job.info().unwrap().state, JobState::Lost, "nobody does it");
        job.begin().unwrap();
        job.add(&piece(0, 3)).unwrap();
        job.progress(&Progress { step: 1, fraction: 0.5, now: "timing flex".into() });
        let info = Folder::find(jobs.path(), &job.id()[..18]).unwrap().info().unwrap();
        assert_eq!((info.state, info.done, info.fraction), (JobState::Running, 1, 0.375));
        assert!(info.now == "timing flex" && info.own && info.host == machine::host());
        // half a line of a power cut is no piece
        let mut file = std::fs::OpenOptions::new().append(true).open(job.at.join("pieces.jsonl")).unwrap();
        file.write_all(b"{\"step\":1,").unwrap();
        let part = job.part(0).unwrap();
        assert_eq!((part.pieces.len(), part.more, part.batch.unwrap().notes["a"].as_i64()), (1, false, Some(1)));
        assert!(job.part(1).unwrap().pieces.is_empty());
        job.end(false).unwrap();
        assert_eq!(job.info().unwrap().state, JobState::Ended);
    }

    #[test]
    fn jobs_that_cannot_be_listed_or_read_are_no_empty_list() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(all(&home.path().join("none yet")).unwrap().len(), 0);
        let file = home.path().join("a file");
        std::fs::write(&file, "x").unwrap();
        let why = all(&file).unwrap_err();
        assert!(why.code == "jobs-unlisted" && why.message.contains("a file"), "{why:?}");
        assert_eq!(Folder::find(&file, "2").unwrap_err().code, "jobs-unlisted");
        let job = Folder::make(home.path(), &batch(1)).unwrap();
        std::fs::write(job.at.join("job.json"), "half a fi").unwrap();
        let found = all(home.path()).unwrap();
        let why = found[0].info().unwrap_err();
        assert!(found.len() == 1 && found[0].unread(&why).title.contains("cannot be read"), "{why:?}");
    }

    #[test]
    fn a_file_of_a_job_that_cannot_be_read_is_told_and_not_taken_for_none() {
        for name in ["began.json", "end.json", "pieces.jsonl"] {
            let home = tempfile::tempdir().unwrap();
            let job = Folder::make(home.path(), &batch(2)).unwrap();
            job.begin().unwrap();
            job.add(&piece(0, 1)).unwrap();
            let _ = std::fs::remove_file(job.at.join(name));
            // a folder of this name cannot be read as a file
            std::fs::create_dir(job.at.join(name)).unwrap();
            let why = job.info().unwrap_err();
            assert!(why.message.contains(name), "{why:?}");
            assert_eq!(job.part(0).unwrap_err(), why);
            assert!(job.unread(&why).title.contains(name));
        }
        let home = tempfile::tempdir().unwrap();
        let job = Folder::make(home.path(), &batch(2)).unwrap();
        std::fs::write(job.at.join("began.json"), "{").unwrap();
        assert!(job.began().unwrap_err().message.contains("began.json"), "it may run: it is not begun again");
    }

    #[test]
    fn another_boot_another_process_and_another_host_are_not_taken_for_it() {
        let jobs = tempfile::tempdir().unwrap();
        let job = Folder::make(jobs.path(), &batch(1)).unwrap();
        job.begin().unwrap();
        let began = job.began().unwrap().unwrap();
        assert!(lives(&began));
        for other in [
            Began { boot: "another".into(), ..began.clone() },
            Began { start: began.start + 1, ..began.clone() },
            Began { pid: 4_194_303, ..began.clone() },
        ] {
            job.write("began.json", &other).unwrap();
            assert_eq!(job.info().unwrap().state, JobState::Lost, "{other:?}");
        }
        job.write("began.json", &Began { host: "gpu2".into(), ..began }).unwrap();
        assert_eq!(job.info().unwrap().state, JobState::Elsewhere);
    }

    #[test]
    fn long_results_come_in_parts() {
        let jobs = tempfile::tempdir().unwrap();
        let job = Folder::make(jobs.path(), &batch(100)).unwrap();
        (0..70).for_each(|n| job.add(&piece(n, if n < 3 { BYTES / 2 } else { 1 })).unwrap());
        let (mut seen, mut parts) = (Vec::new(), 0);
        loop {
            let part = job.part(seen.len()).unwrap();
            seen.extend(part.pieces.iter().map(|piece| piece.step));
            parts += 1;
            if !part.more {
                break;
            }
        }
        assert_eq!((seen, parts), ((0..70).collect::<Vec<_>>(), 3));
    }

    #[test]
    fn numbers_are_unique_and_never_paths() {
        let jobs = tempfile::tempdir().unwrap();
        let ids: std::collections::BTreeSet<String> =
            (0..20).map(|_| Folder::make(jobs.path(), &batch(1)).unwrap().id()).collect();
        assert!(ids.len() == 20 && ids.iter().all(|id| is_id(id)), "{ids:?}");
        for bad in ["../x", "", "no-such-job", "/etc"] {
            assert_eq!(Folder::find(jobs.path(), bad).unwrap_err().code, "job-unknown", "{bad}");
        }
        assert_eq!(Folder::find(jobs.path(), "2").unwrap_err().code, "job-unknown");
        assert_eq!([date(0), date(20_784), date(11_016)], [(1970, 1, 1), (2026, 11, 27), (2000, 2, 29)]);
    }
}
