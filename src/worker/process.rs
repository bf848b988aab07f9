//! Process functions that the standard library lacks: killing a whole group, reserving stdout for the protocol, threads
//! with low priority.
//!
//! Invariant: only groups made by [`own_group`] are killed. Must not know what the processes do.
#![allow(unsafe_code)] // libc's kill, dup, dup2 and setpriority have no safe form in the standard library

#[cfg(unix)]
use std::fs::File;
use std::io;
use std::process::{Child, Command};

/// Makes the command the leader of a new process group, so that killing it also kills its children.
pub fn own_group(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}

/// The signal that ends a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// SIGTERM: it may still tidy up, or pass the wish on (srun).
    Ask,
    /// SIGKILL.
    Now,
}

/// Sends a signal to everything in the group of a child made with [`own_group`]. Does not wait: a process that holds a
/// GPU may take a second to go.
pub fn signal_group(child: &mut Child, end: End) {
    #[cfg(unix)]
    if matches!(child.try_wait(), Ok(None)) {
        let signal = if end == End::Ask { libc::SIGTERM } else { libc::SIGKILL };
        // SAFETY: plain system call; the child has not been reaped, so its id, which is its group's, is still its own.
        unsafe { libc::kill(-(child.id() as libc::pid_t), signal) };
    }
    if end == End::Now {
        let _ = child.kill();
    }
}

/// Kills a child made with [`own_group`] and everything in its group, and reaps it.
pub fn kill_group(child: &mut Child) {
    signal_group(child, End::Now);
    let _ = child.wait();
}

/// Lowers the priority of the calling thread below the usual one, such as that of the thread that draws. Does nothing
/// if threads have no own priority.
pub fn calm_thread() {
    #[cfg(target_os = "linux")]
    {
        /// Above the priority of the process, which itself may have been set.
        const STEP: libc::c_int = 5;
        // SAFETY: plain system calls on the calling thread; on Linux 0 is the thread, not the process.
        unsafe {
            let now = libc::getpriority(libc::PRIO_PROCESS, 0);
            libc::setpriority(libc::PRIO_PROCESS, 0, now + STEP);
        }
    }
}

/// Takes stdout away from the rest of the process: gives it to the caller, and points file descriptor 1 at stderr, so
/// that no library's print can corrupt the protocol.
#[cfg(unix)]
pub fn take_stdout() -> io::Result<File> {
    use std::os::fd::FromRawFd;
    // SAFETY: dup has no preconditions; the result is checked.
    let kept = unsafe { libc::dup(1) };
    if kept < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `kept` was just made by dup and nothing else owns it.
    let file = unsafe { File::from_raw_fd(kept) };
    // SAFETY: both are valid descriptors or dup2 reports an error, which is checked.
    if unsafe { libc::dup2(2, 1) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // a child that inherited the copy would hold the protocol open after our death
    // SAFETY: `kept` is open; F_SETFD takes an int.
    unsafe { libc::fcntl(kept, libc::F_SETFD, libc::FD_CLOEXEC) };
    Ok(file)
}

/// On systems on which descriptors cannot be moved, stdout itself.
#[cfg(not(unix))]
pub fn take_stdout() -> io::Result<io::Stdout> {
    Ok(io::stdout())
}

/// Why a process ended, in words: `exit status 1`, `killed by signal 9 (SIGKILL)`.
pub fn ending(status: std::process::ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            libc::SIGKILL => " (SIGKILL: killed by a user or program, or out of memory)",
            libc::SIGSEGV => " (SIGSEGV)",
            libc::SIGABRT => " (SIGABRT)",
            libc::SIGTERM => " (SIGTERM)",
            _ => "",
        };
        return format!("killed by signal {signal}{name}");
    }
    match status.code() {
        Some(code) => format!("exit status {code}"),
        None => "it ended".into(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Stdio;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_calm_thread_leaves_the_others_as_they_are() {
        // SAFETY: a plain system call on the calling thread.
        let now = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let before = now();
        let inside = std::thread::spawn(move || {
            calm_thread();
            now()
        });
        let inside = inside.join().expect("no panic");
        assert!(inside > before || before >= 19, "{before} {inside}");
        assert_eq!(now(), before);
    }

    #[test]
    fn killing_a_group_takes_grandchildren_along() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo started; wait"]).stdout(Stdio::piped());
        let mut child = own_group(&mut command).spawn().expect("sh");
        let mut out = child.stdout.take().expect("piped");
        let mut started = [0; 8];
        out.read_exact(&mut started).expect("started");
        kill_group(&mut child);
        // the grandchild held the pipe open; its end shows that it is gone too
        let mut rest = Vec::new();
        out.read_to_end(&mut rest).expect("end of stream");
        assert!(rest.is_empty());
    }
}
