//! Process functions that the standard library lacks: killing a whole group, reserving stdout for the protocol, threads
//! with low priority, questions on a terminal without an echo.
//!
//! Invariant: only groups made by [`own_group`] are killed, and what they have started. Must not know what the processes do.
#![allow(unsafe_code)] // libc's kill, waitid, setsid, dup, dup2 and setpriority have no safe form in the standard library

use super::descendants;
#[cfg(unix)]
use std::fs::File;
use std::io;
use std::process::{Child, Command};

/// Makes the command the leader of a new session and process group, so that killing it also kills its children, and a
/// question that it asks on the terminal fails at once: in a background group the system would stop it for ever.
pub fn own_group(command: &mut Command) -> &mut Command {
    command.env(descendants::CLIENT, descendants::marks());
    #[cfg(unix)]
    {
        let leave = || {
            // SAFETY: setsid may be called between fork and exec; it fails only for a leader, which a new process is not.
            unsafe { libc::setsid() };
            Ok(())
        };
        // SAFETY: the closure allocates nothing and calls only setsid.
        unsafe { std::os::unix::process::CommandExt::pre_exec(command, leave) };
    }
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

/// Sends a signal to everything in the group of a child made with [`own_group`]; its end takes along what it has started outside
/// of the group. Does not wait: a process that holds a GPU may take a second to go.
pub fn signal_group(child: &mut Child, end: End) {
    // what has left the group is found only while its parents live
    let strays = if end == End::Now { descendants::strays([child.id()]) } else { Vec::new() };
    #[cfg(unix)]
    if leader(child) != Leader::Reaped {
        // the child has not been reaped, so its id, which is its group's, is still its own
        end_group(child.id(), end);
    }
    if end == End::Now {
        let _ = child.kill();
    }
    strays.iter().for_each(|stray| end_stray(stray, end));
}

/// Kills a child made with [`own_group`] and everything in its group, also what a child that has ended left there, and
/// reaps it.
pub fn kill_group(child: &mut Child) -> Option<std::process::ExitStatus> {
    signal_group(child, End::Now);
    child.wait().ok()
}

/// Asks a group made with [`own_group`], whose leader is not reaped, to end, or ends it.
#[cfg(unix)]
pub(super) fn end_group(leader: u32, end: End) {
    let group = -(leader as libc::pid_t);
    for signal in signals(end) {
        // SAFETY: plain system call; the caller knows that the leader's id is still its own.
        unsafe { libc::kill(group, *signal) };
    }
}

#[cfg(unix)]
fn signals(end: End) -> &'static [i32] {
    match end {
        // what was stopped hears the first one only when it goes on
        End::Ask => &[libc::SIGTERM, libc::SIGCONT],
        End::Now => &[libc::SIGKILL],
    }
}

/// Whether a child has ended. It is not reaped, so that its group can still be killed.
pub fn has_ended(child: &mut Child) -> bool {
    #[cfg(unix)]
    return leader(child) != Leader::Running;
    #[cfg(not(unix))]
    return !matches!(child.try_wait(), Ok(None));
}

#[cfg(unix)]
#[derive(PartialEq, Eq)]
enum Leader {
    Running,
    Ended,
    Reaped,
}

#[cfg(unix)]
fn leader(child: &Child) -> Leader {
    let wish = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: siginfo_t is plain data, for which zeros are a value.
    let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: a plain system call into a live siginfo_t; WNOWAIT leaves the child as it is.
    let said = unsafe { libc::waitid(libc::P_PID, child.id() as libc::id_t, &mut found, wish) };
    // SAFETY: waitid has filled it in, or left the zeros of a child that runs.
    match (said, unsafe { found.si_pid() }) {
        (0, 0) => Leader::Running,
        (0, _) => Leader::Ended,
        _ => Leader::Reaped,
    }
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

/// The path of the terminal that a descriptor of this process is: `/dev/pts/3`.
#[cfg(unix)]
pub fn terminal_of(descriptor: i32) -> Option<std::path::PathBuf> {
    let mut name = [0 as libc::c_char; 256];
    // SAFETY: the buffer is as long as is said; ttyname_r ends the name with a zero where it succeeds.
    if unsafe { libc::ttyname_r(descriptor, name.as_mut_ptr(), name.len()) } != 0 {
        return None;
    }
    // SAFETY: see above.
    let name = unsafe { std::ffi::CStr::from_ptr(name.as_ptr()) };
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name.to_bytes());
    Some(name.into())
}

/// The user who runs this process.
#[cfg(unix)]
pub fn user() -> u32 {
    // SAFETY: it always succeeds.
    unsafe { libc::geteuid() }
}

/// Asks a process to end, or ends it. Returns whether there was one of this user's.
#[cfg(unix)]
pub fn end(process: u32, how: End) -> bool {
    // SAFETY: plain system call; the caller knows that the number is still that process's.
    let send = |signal: &i32| unsafe { libc::kill(process as libc::pid_t, *signal) } == 0;
    process > 1 && signals(how).iter().all(send)
}

/// The same for a process that was found, if it is still there and has not become a job.
pub fn end_stray(stray: &descendants::Process, how: End) {
    if stray.is_ours() {
        end(stray.id, how);
    }
}

/// Processes of such systems are ended by their `Child` alone.
#[cfg(not(unix))]
pub fn end(_: u32, _: End) -> bool {
    false
}

/// A terminal that does not show what is typed, until this is dropped.
#[cfg(unix)]
pub struct Unseen(std::os::fd::RawFd, libc::termios);

#[cfg(unix)]
impl Unseen {
    /// None: it is no terminal.
    pub fn new(terminal: &File) -> Option<Unseen> {
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(terminal);
        // SAFETY: termios is plain data, for which zeros are a value.
        let mut before: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: an open descriptor and a live termios.
        if unsafe { libc::tcgetattr(descriptor, &mut before) } != 0 {
            return None;
        }
        let mut unseen = before;
        unseen.c_lflag &= !libc::ECHO;
        unseen.c_lflag |= libc::ECHONL;
        // SAFETY: as above.
        unsafe { libc::tcsetattr(descriptor, libc::TCSAFLUSH, &unseen) };
        Some(Unseen(descriptor, before))
    }

    /// Shows what is typed, whatever was before.
    pub fn show(terminal: &File) {
        if let Some(mut unseen) = Unseen::new(terminal) {
            unseen.1.c_lflag |= libc::ECHO;
            unseen.1.c_lflag &= !libc::ECHONL;
        }
    }
}

#[cfg(unix)]
impl Drop for Unseen {
    fn drop(&mut self) {
        // SAFETY: a termios that tcgetattr gave; a descriptor that was closed is an error and changes nothing.
        unsafe { libc::tcsetattr(self.0, libc::TCSAFLUSH, &self.1) };
    }
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
    fn a_terminal_shows_letters_again() {
        use std::os::fd::{AsRawFd, FromRawFd};
        let (mut ours, mut theirs) = (0, 0);
        let nothing = std::ptr::null_mut();
        // SAFETY: two live integers; no name, settings or size.
        let made = unsafe { libc::openpty(&mut ours, &mut theirs, nothing, nothing.cast(), nothing.cast()) };
        assert_eq!(made, 0);
        // SAFETY: openpty has just made both, and nothing else owns them.
        let (_ours, terminal) = unsafe { (File::from_raw_fd(ours), File::from_raw_fd(theirs)) };
        let echoes = || {
            // SAFETY: termios is plain data, for which zeros are a value.
            let mut now: libc::termios = unsafe { std::mem::zeroed() };
            // SAFETY: an open descriptor and a live termios.
            assert_eq!(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &mut now) }, 0);
            now.c_lflag & libc::ECHO != 0
        };
        assert!(echoes() && terminal_of(terminal.as_raw_fd()).is_some_and(|path| path.exists()));
        let unseen = Unseen::new(&terminal).expect("a terminal");
        assert!(!echoes());
        // a helper that is killed
        Unseen::show(&terminal);
        assert!(echoes());
        drop(unseen);
        assert!(echoes() && terminal_of(File::open("/dev/null").expect("there").as_raw_fd()).is_none());
    }

    /// A shell that says the number of what it has started.
    #[cfg(target_os = "linux")]
    fn shell(text: &str) -> (Child, descendants::Process) {
        use std::io::{BufRead, BufReader};
        let mut command = Command::new("sh");
        command.args(["-c", text]).stdout(Stdio::piped());
        let mut child = own_group(&mut command).spawn().expect("sh");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let stray = descendants::Process::of(line.trim().parse().expect("a number")).expect("it runs");
        (child, stray)
    }

    #[cfg(target_os = "linux")]
    fn goes(process: &descendants::Process) -> bool {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while process.lives() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        !process.lives()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn killing_a_group_takes_along_what_left_it_for_a_session_of_its_own_but_no_job() {
        let (mut child, stray) = shell("setsid sh -c 'echo $$; exec sleep 60' & wait");
        assert_eq!(descendants::strays([child.id()]).iter().map(|one| one.id).collect::<Vec<_>>(), [stray.id]);
        kill_group(&mut child);
        assert!(goes(&stray), "{stray:?}");
        let (mut child, job) = shell("MASKLOOM_JOB=7 setsid sh -c 'echo $$; exec sleep 60' & wait");
        // while a program takes the place of another the kernel shows no environment
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !descendants::strays([child.id()]).is_empty() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(descendants::strays([child.id()]), []);
        kill_group(&mut child);
        assert!(job.lives() && !descendants::left().iter().any(|one| one.id == job.id));
        end(job.id, End::Now);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_has_lost_its_parent_is_still_known_as_ours() {
        let (mut child, stray) = shell("setsid sh -c 'echo $$; exec sleep 60' &");
        let _ = child.wait();
        assert!(
            descendants::strays([child.id()]).is_empty() && descendants::left().iter().any(|one| one.id == stray.id)
        );
        end_stray(&stray, End::Ask);
        assert!(goes(&stray));
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
