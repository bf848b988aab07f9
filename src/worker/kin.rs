//! What a target's command has started beside itself: sessions of their own that outlive it, and that hold its pipes open.
//!
//! Invariant: what had a parent among the command's own processes when it was seen ends after the command; what had lost its parent
//! before may be meant to stay, and is named at the end of the program if it still holds a pipe of the command. Must not know messages.

use super::descendants::{self, Process};
use super::process::{self, End};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long those that were killed are waited for: a process that holds a GPU goes slowly.
pub(super) const LAST: Duration = Duration::from_millis(500);
/// How long what was asked to end is waited for.
const WHEN_ASKED: Duration = Duration::from_millis(500);
/// How long the program waits at its end for commands that were asked to end: they are killed after 3 s.
const PATIENCE: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_millis(5);

/// Commands whose kin has not ended, and the pipes of all.
static OPEN: Mutex<(usize, Vec<PathBuf>)> = Mutex::new((0, Vec::new()));

fn open<T>(of: impl FnOnce(&mut (usize, Vec<PathBuf>)) -> T) -> T {
    of(&mut OPEN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The kin of one command.
#[derive(Debug)]
pub(super) struct Kin {
    leader: Option<Process>,
    seen: Vec<Process>,
    over: bool,
}

impl Kin {
    /// Of the leader of a group that was just started.
    pub(super) fn of(leader: u32, pipes: impl IntoIterator<Item = PathBuf>) -> Kin {
        open(|(commands, all)| {
            *commands += 1;
            all.extend(pipes);
        });
        Kin { leader: Process::of(leader), seen: Vec::new(), over: false }
    }

    /// Remembers what there is now: a stray is found only while its parents live.
    pub(super) fn look(&mut self) {
        // another process may have its number by now
        let leader = self.leader.iter().filter(|leader| leader.lives()).map(|leader| leader.id);
        let new = descendants::strays(leader);
        self.seen.retain(|one| one.is_ours() && !new.contains(one));
        self.seen.extend(new);
    }

    #[cfg(test)]
    pub(super) fn has_seen(&self) -> bool {
        !self.seen.is_empty()
    }

    #[cfg(test)]
    pub(super) fn forget(&mut self) {
        self.seen.clear();
    }

    /// Asks what was seen to end.
    pub(super) fn ask(&mut self) {
        self.look();
        self.seen.iter().for_each(|one| process::end_stray(one, End::Ask));
    }

    /// Ends what was seen. The command has ended.
    pub(super) fn end(&mut self) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        self.ask();
        wait(WHEN_ASKED, || !self.seen.iter().any(Process::is_ours));
        self.seen.iter().for_each(|one| process::end_stray(one, End::Now));
        wait(LAST, || !self.seen.iter().any(Process::is_ours));
        open(|(commands, _)| *commands -= 1);
    }
}

/// Waits until something is over, or for so long.
pub(super) fn wait(patience: Duration, mut is_over: impl FnMut() -> bool) {
    let until = Instant::now() + patience;
    while !is_over() && Instant::now() < until {
        std::thread::sleep(LOOK);
    }
}

/// A pipe, as both of its ends name it. None: the system does not tell.
#[cfg(unix)]
pub(super) fn pipe(end: &impl std::os::fd::AsRawFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", end.as_raw_fd())).ok()
}

#[cfg(not(unix))]
pub(super) fn pipe<T>(_: &T) -> Option<PathBuf> {
    None
}

/// At the end of the program: waits for the commands that it has asked to end, and names what they leave.
pub fn settle() {
    wait(PATIENCE, || open(|(commands, _)| *commands == 0));
    name_left();
}

/// Names what was left by commands of this program: one that holds no pipe of theirs may be meant to stay.
pub(super) fn name_left() {
    let pipes = open(|(_, pipes)| std::mem::take(pipes));
    if !pipes.is_empty() {
        name("it had left its target's session", descendants::left().into_iter().filter(|one| one.holds(&pipes)));
    }
}

/// Says what goes on, and why it may.
pub(super) fn name(why: &str, left: impl IntoIterator<Item = Process>) {
    for Process { id, name, .. } in left.into_iter().filter(Process::lives) {
        // nobody may read it
        let _ = writeln!(std::io::stderr(), "still running: process {id} ({name}): {why}; `kill {id}` ends it");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn what_was_seen_before_it_became_a_job_goes_on() {
        let mut command = Command::new("sh");
        // between a fork and the new program's start a process has its parent's environment
        command.args(["-c", "exec 3<&0; setsid sh -c 'echo $$; read go; MASKLOOM_JOB=7 exec sleep 60' <&3 & wait"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut leader = process::own_group(&mut command).spawn().expect("sh");
        let mut line = String::new();
        BufReader::new(leader.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let job = Process::of(line.trim().parse().expect("a number")).expect("it runs");
        let mut kin = Kin::of(leader.id(), []);
        kin.look();
        assert!(kin.has_seen() && job.is_ours());
        leader.stdin.take().expect("piped").write_all(b"go\n").expect("it reads");
        wait(Duration::from_secs(20), || !job.is_ours());
        kin.end();
        process::end_stray(&job, End::Now);
        process::kill_group(&mut leader);
        std::thread::sleep(Duration::from_millis(50));
        assert!(job.lives());
        process::end(job.id, End::Now);
    }
}
