//! What a process has started, as Linux tells it: also what has left its group for a session of its own.
//!
//! Invariant: a process that was found is told apart from a later one with its number, and a job that goes on without a client is
//! nobody's descendant. Elsewhere than on Linux nobody has any. Must not know why somebody asks.

use std::ffi::OsString;
use std::path::PathBuf;

/// The variable that a job and all that it starts have in their environment: whose it is.
pub const JOB: &str = "MASKLOOM_JOB";
/// The variable that everything has which this program starts: which processes of this program stand above it.
pub const CLIENT: &str = "MASKLOOM_CLIENT";

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Its program, as the kernel calls it.
    pub name: String,
    began: u64,
    group: u32,
    session: u32,
}

impl Process {
    /// None: there is none, or it is dead and not reaped.
    pub fn of(id: u32) -> Option<Process> {
        let stat = std::fs::read_to_string(about(id).join("stat")).ok()?;
        // fields are counted behind the name in brackets
        let (head, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        if matches!(fields.first(), Some(&"Z" | &"X")) {
            return None;
        }
        Some(Process {
            id,
            name: head.split_once('(')?.1.to_string(),
            began: fields.get(19)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
        })
    }

    /// When it began, in the kernel's ticks.
    pub fn began(&self) -> u64 {
        self.began
    }

    /// Whether it is still there.
    pub fn lives(&self) -> bool {
        Process::of(self.id).is_some_and(|now| now.began == self.began)
    }

    /// Whether it lives and ends with this process. Between a fork and the new program's start a job has its parent's environment:
    /// what was found then is asked again before it is ended.
    pub fn is_ours(&self) -> bool {
        self.lives() && self.variable(JOB).is_none_or(|job| Some(job) == own_job())
    }

    /// Whether it has one of these files open, as its descriptors name them.
    pub fn holds(&self, files: &[PathBuf]) -> bool {
        let open = std::fs::read_dir(about(self.id).join("fd")).into_iter().flatten().flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|file| files.contains(&file))
    }

    /// What a variable of its environment was when it began.
    fn variable(&self, name: &str) -> Option<Vec<u8>> {
        let environment = std::fs::read(about(self.id).join("environ")).ok()?;
        let value = |entry: &[u8]| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
        environment.split(|byte| *byte == 0).find_map(value)
    }

    /// Its children. A job that it has started goes on by itself and is none.
    fn children(&self) -> Vec<Process> {
        let threads = std::fs::read_dir(about(self.id).join("task")).into_iter().flatten().flatten();
        let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        let ids: Vec<u32> =
            lists.flat_map(|list| list.split(' ').filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect();
        let own = |child: &Process| child.session != child.id || child.variable(JOB) == self.variable(JOB);
        ids.into_iter().filter_map(Process::of).filter(own).collect()
    }
}

/// The job that this process is a part of.
fn own_job() -> Option<Vec<u8>> {
    std::env::var_os(JOB).map(OsString::into_encoded_bytes)
}

fn about(id: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{id}"))
}

/// A process with all that it has started, and what that has started.
fn line_of(id: u32) -> Vec<Process> {
    let mut line: Vec<Process> = Process::of(id).into_iter().collect();
    let mut at = 0;
    while at < line.len() {
        let children = line[at].children();
        line.extend(children);
        at += 1;
    }
    line
}

/// What these leaders of groups have started outside of their groups.
pub fn strays(leaders: impl IntoIterator<Item = u32>) -> Vec<Process> {
    let outside = |leader: u32| line_of(leader).into_iter().filter(move |one| one.group != leader);
    leaders.into_iter().flat_map(outside).collect()
}

/// What this process has started and nobody will end: its parent is none of ours any more.
pub fn left() -> Vec<Process> {
    let (mark, job) = (mark(), own_job());
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(Process::of);
    let marked = |one: &Process| {
        let marks = one.variable(CLIENT).unwrap_or_default();
        marks.split(|byte| *byte == b',').any(|of| of == mark.as_bytes())
    };
    let ours = line_of(std::process::id());
    all.filter(|one| marked(one) && one.variable(JOB) == job && !ours.contains(one)).collect()
}

/// The value of [`CLIENT`] for what this process starts.
pub fn marks() -> OsString {
    let mut marks = std::env::var_os(CLIENT).unwrap_or_default();
    marks.push(if marks.is_empty() { "" } else { "," });
    marks.push(mark());
    marks
}

/// This process, told apart from others with its number.
fn mark() -> String {
    let own = std::process::id();
    format!("{own}-{}", Process::of(own).map_or(0, |own| own.began))
}
