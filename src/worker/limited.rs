//! Running a helper program with a time limit.
//!
//! Invariant: returns within the limit for any program; its whole process group is then gone. Must not know what runs.

use crate::worker::process;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// A program's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whether it ended by itself with status 0.
    pub success: bool,
    /// Standard output, at most 1 MiB.
    pub stdout: String,
    /// Standard error, at most 1 MiB.
    pub stderr: String,
}

const MOST: u64 = 1 << 20;

/// Runs a command without stdin and returns its output. None: it cannot start, or was killed at the time limit.
pub fn run(mut command: Command, limit: Duration) -> Option<Said> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = process::own_group(&mut command).spawn().ok()?;
    let stdout = listen(child.stdout.take()?);
    let stderr = listen(child.stderr.take()?);
    let patience = Instant::now() + limit;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if Instant::now() < patience => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                process::kill_group(&mut child);
                break None;
            }
        }
    };
    // a grandchild may hold the pipes open
    let grace = Duration::from_millis(500);
    let (stdout, stderr) = (stdout.recv_timeout(grace), stderr.recv_timeout(grace));
    status.map(|s| Said {
        success: s.success(),
        stdout: stdout.unwrap_or_default(),
        stderr: stderr.unwrap_or_default(),
    })
}

fn listen(from: impl Read + Send + 'static) -> std::sync::mpsc::Receiver<String> {
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.take(MOST).read_to_end(&mut bytes);
        let _ = tell.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    heard
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_is_heard_or_stopped() {
        let said = run(sh("echo out; echo err >&2; exit 1"), Duration::from_secs(10)).expect("ran");
        assert_eq!(said, Said { success: false, stdout: "out\n".into(), stderr: "err\n".into() });
        let start = Instant::now();
        assert_eq!(run(sh("sleep 60 & sleep 60"), Duration::from_millis(50)), None);
        assert!(start.elapsed() < Duration::from_secs(50));
        assert_eq!(run(Command::new("no-such-program-of-ours"), Duration::from_secs(1)), None);
    }
}
