//! ssh's own questions (a password, a new host key): asked by this program as ssh's helper, on the user's terminal or in a window.
//!
//! Invariant: a launched command has no terminal of its own, so it never waits for one that nobody sees; ssh asks through
//! SSH_ASKPASS, and the helper opens the terminal by its path. With neither terminal nor window ssh fails at once with its own
//! words. Must not know what is launched, nor how a window is drawn.

use crate::worker::{folders, leftovers};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// The name by which the program knows that it is ssh's helper.
pub const HELPER: &str = "maskloom-askpass";
/// The terminal that the helper asks on; [`WINDOW`]: it opens a window.
const TERMINAL: &str = "MASKLOOM_ASKPASS_TERMINAL";
/// See [`TERMINAL`].
const WINDOW: &str = "window";
/// Whether this process has a window, whose user looks at no terminal.
static IN_A_WINDOW: AtomicBool = AtomicBool::new(false);

/// From here on questions are asked in windows.
pub fn in_a_window() {
    IN_A_WINDOW.store(true, Ordering::Relaxed);
}

/// Exists beside the helper while a question is on the screen.
const OPEN: &str = "open";

/// What a launched command may ask with.
pub struct Asking {
    helper: Option<Helper>,
    /// Nothing may be asked, not even by a helper of the user's own.
    never: bool,
}

struct Helper {
    folder: tempfile::TempDir,
    _held: Option<std::fs::File>,
    terminal: PathBuf,
}

impl Asking {
    /// In a window of this process's user, or on the terminal of this process, if there is one.
    pub fn prepare() -> Asking {
        let place = if IN_A_WINDOW.load(Ordering::Relaxed) { Some(WINDOW.into()) } else { terminal() };
        Asking { helper: place.and_then(Helper::on), never: false }
    }

    /// For a command that asks nothing.
    pub fn never() -> Asking {
        Asking { helper: None, never: true }
    }

    /// Tells ssh of it.
    pub fn set(&self, command: &mut Command) {
        if self.never {
            command.env("SSH_ASKPASS_REQUIRE", "never");
        }
        let Some(helper) = &self.helper else { return };
        command.env("SSH_ASKPASS", helper.folder.path().join(HELPER)).env("SSH_ASKPASS_REQUIRE", "force");
        command.env(TERMINAL, &helper.terminal);
        // before 8.4 ssh asks its helper only if there seems to be a display
        if std::env::var_os("DISPLAY").is_none() {
            command.env("DISPLAY", "none:0");
        }
    }

    /// Whether a question waits for its answer.
    pub fn is_open(&self) -> bool {
        self.helper.as_ref().is_some_and(|helper| helper.folder.path().join(OPEN).exists())
    }
}

impl Helper {
    #[cfg(unix)]
    fn on(terminal: PathBuf) -> Option<Helper> {
        let cache = folders::cache()?;
        std::fs::create_dir_all(&cache).ok()?;
        let (folder, held) = leftovers::folder_in(&cache).ok()?;
        std::os::unix::fs::symlink(std::env::current_exe().ok()?, folder.path().join(HELPER)).ok()?;
        Some(Helper { folder, _held: held, terminal })
    }

    #[cfg(not(unix))]
    fn on(_: PathBuf) -> Option<Helper> {
        None
    }
}

/// The user's terminal: the one that messages go to.
#[cfg(unix)]
fn terminal() -> Option<PathBuf> {
    use crate::worker::process;
    // what is typed must reach us, too
    process::terminal_of(0)?;
    process::terminal_of(2)
}

#[cfg(not(unix))]
fn terminal() -> Option<PathBuf> {
    None
}

/// Whether this process was started as the helper.
pub fn is_helper() -> bool {
    std::env::args_os().next().is_some_and(|own| Path::new(&own).file_name().is_some_and(|name| name == HELPER))
}

/// The helper: asks the question and gives the answer; `window` asks in a window, and is told whether the answer is secret. None:
/// there is no answer, and ssh fails.
#[cfg(unix)]
pub fn answer(window: impl FnOnce(&str, bool) -> Option<String>) -> Option<String> {
    use crate::worker::process::{self, End};
    let question = std::env::args_os().nth(1)?.to_string_lossy().into_owned();
    let own = PathBuf::from(std::env::args_os().next()?);
    let open = own.with_file_name(OPEN);
    let _ = std::fs::write(&open, b"");
    let place = PathBuf::from(std::env::var_os(TERMINAL)?);
    let answered =
        if place == Path::new(WINDOW) { window(&question, is_secret(&question)) } else { ask(&place, &question) };
    let _ = std::fs::remove_file(&open);
    if answered.is_none() {
        // ssh takes no answer for an empty password, and would ask twice more
        process::end(std::os::unix::process::parent_id(), End::Ask);
    }
    answered
}

#[cfg(not(unix))]
pub fn answer(_: impl FnOnce(&str, bool) -> Option<String>) -> Option<String> {
    None
}

/// A yes may be seen.
#[cfg(unix)]
fn is_secret(question: &str) -> bool {
    !question.contains("yes/no")
}

#[cfg(unix)]
fn ask(terminal: &Path, question: &str) -> Option<String> {
    use crate::worker::process::Unseen;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::fs::OpenOptionsExt;
    let mut screen =
        std::fs::OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(terminal).ok()?;
    write!(screen, "\r{} ", question.trim_end()).and_then(|()| screen.flush()).ok()?;
    let unseen = if is_secret(question) { Unseen::new(&screen) } else { None };
    // whoever ends ssh ends its helper, and the terminal must show letters again
    if let Ok(mut signals) =
        signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP])
        && let Ok(same) = screen.try_clone()
    {
        let secret = is_secret(question);
        std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                if secret {
                    Unseen::show(&same);
                }
                std::process::exit(1);
            }
        });
    }
    let mut line = String::new();
    let read = BufReader::new(&screen).read_line(&mut line).ok()?;
    drop(unseen);
    (read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_string())
}
