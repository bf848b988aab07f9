//! Ends the Python worker together with all processes that it started (mostly compilers).
//!
//! Invariant: only groups made by [`own_group`] are killed, and only before their leader is reaped. Must not know what
//! the processes do. `unsafe` for one call of the C library: the standard library cannot signal a group.
#![allow(unsafe_code)]

use std::process::{Child, Command};

/// Makes the command the leader of a new process group.
pub(super) fn own_group(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}

/// Kills a child made with [`own_group`] and its group, and reaps it.
pub(super) fn kill(child: &mut Child) {
    #[cfg(unix)]
    if matches!(child.try_wait(), Ok(None)) {
        // SAFETY: plain system call; the child has not been reaped, so its id, which is its group's, is still its own.
        unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
    }
    let _ = child.kill();
    let _ = child.wait();
}
