//! A shell on another machine, over the pipe of any command: it is told a script, and its answer is awaited before the next.
//!
//! Invariant: nothing is sent before the answer to what was sent last, so that a shell that reads ahead takes nothing that is
//! meant for its commands; every wait has an end; what a login prints is passed over; dropping it ends the command. Must not
//! know what the scripts do.

use crate::base::Diagnostic;
use crate::worker::asking::Asking;
use crate::worker::far::script;
use crate::worker::kin::{self, Kin};
use crate::worker::patience::Patience;
use crate::worker::process::{self, End};
#[cfg(unix)]
use crate::worker::signals;
use crate::worker::target::Target;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For the answer to a script that does little.
pub const SOON: Duration = Duration::from_secs(30);
/// Bytes that are written at once, between looks at the time.
const PIECE: usize = 1 << 16;
/// Longest line that is read, bytes.
const LONGEST: u64 = 1 << 20;
/// Lines of noise that are kept.
const KEPT: usize = 12;
/// Between looks at a question that may be on the screen.
const LOOK: Duration = Duration::from_millis(200);
/// Lines that wait to be looked at.
const WAITING: usize = 64;
/// Bytes of one answer: a probe has some hundreds.
const MOST: usize = 16 << 20;

/// For a command to end when its shell's input has ended, over a slow line, and when it was asked to.
const AT_ITS_END: Duration = Duration::from_millis(1000);
const WHEN_ASKED: Duration = Duration::from_secs(3);

/// A shell there.
pub struct Shell {
    words: Vec<String>,
    child: Child,
    /// Pieces to be written; the other end says when one is.
    writer: Sender<Vec<u8>>,
    written: Receiver<bool>,
    lines: Receiver<String>,
    /// The end of its stderr, and lines that are no answer.
    heard: Arc<Mutex<VecDeque<String>>>,
    asking: Asking,
    /// No answer has come yet: a login, a queue.
    fresh: bool,
    kin: Kin,
    /// Since when the command is seen to have ended.
    over: Option<Instant>,
}

/// The answer to a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The lines that it printed.
    pub lines: Vec<String>,
    /// Its status.
    pub status: i32,
}

impl Answer {
    /// The value of `key=value`.
    pub fn value(&self, key: &str) -> Option<&str> {
        let of = |line: &'_ String| -> bool { line.split_once('=').is_some_and(|(k, _)| k == key) };
        self.lines.iter().find(|line| of(line)).map(|line| line[key.len() + 1..].trim()).filter(|text| !text.is_empty())
    }
}

impl Shell {
    /// Starts it. Errors: the command cannot be started.
    pub fn open(words: &[String]) -> Result<Shell, Diagnostic> {
        let all = script::shell(words);
        let asking = Asking::prepare();
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        asking.set(&mut command);
        let mut child = process::own_group(&mut command).spawn().map_err(|e| {
            Diagnostic::error("target-launch", format!("cannot start `{}`: {e}", all[0]))
                .hint("check that the program exists and is executable: the command is a program and its arguments")
        })?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            process::kill_group(&mut child);
            return Err(Diagnostic::error("target-launch", "the command was started without pipes"));
        };
        #[cfg(unix)]
        signals::started(child.id());
        let pipes = [kin::pipe(&stdin), kin::pipe(&stdout), kin::pipe(&stderr)];
        let kin = Kin::of(child.id(), pipes.into_iter().flatten());
        let heard = Arc::new(Mutex::new(VecDeque::new()));
        let (writer, pieces) = channel();
        let (done, written) = channel();
        // endless lines wait here, not in memory
        let (line, lines) = sync_channel(WAITING);
        std::thread::spawn(move || write(stdin, &pieces, &done));
        std::thread::spawn(move || listen(stdout, |text| line.send(text).is_ok()));
        let kept = heard.clone();
        std::thread::spawn(move || listen(stderr, |text| keep(&kept, text)));
        Ok(Shell { words: words.to_vec(), child, writer, written, lines, heard, asking, fresh: true, kin, over: None })
    }

    /// Runs a script and gives what it printed. Errors: no answer in time, or the end of the command.
    pub fn run(&mut self, text: &str, limit: Duration) -> Result<Answer, Diagnostic> {
        let nonce = script::nonce();
        self.begin(text, &nonce)?;
        self.finish(&nonce, limit)
    }

    /// Runs a script that reads these bytes from its stdin once it has called `ready`. `on_way` hears how many are written.
    pub fn feed(
        &mut self,
        text: &str,
        bytes: &[u8],
        limit: Duration,
        on_way: &mut dyn FnMut(usize),
    ) -> Result<Answer, Diagnostic> {
        let nonce = script::nonce();
        let with_ready = format!("ready() {{ printf '\\n%s%s\\n' maskloom-ready- {nonce}; }}\n{text}");
        self.begin(&with_ready, &nonce)?;
        let (ready, end) = (script::ready(&nonce), ending(&nonce));
        let mut until = Instant::now() + self.patience(SOON);
        loop {
            let line = self.line(&mut until)?;
            if line.contains(&ready) {
                break;
            }
            if let Some(status) = status_in(&line, &end) {
                // it did not want them
                return Ok(Answer { lines: Vec::new(), status });
            }
        }
        for (n, piece) in bytes.chunks(PIECE).enumerate() {
            self.write(piece.to_vec(), limit)?;
            on_way((n * PIECE + piece.len()).min(bytes.len()));
        }
        self.collect(&end, limit)
    }

    /// One compound command: it has been read to its end before it does anything.
    fn begin(&mut self, text: &str, nonce: &str) -> Result<(), Diagnostic> {
        let raw = script::RAW;
        let whole = format!(
            "{{ {raw}; printf '\\n%s%s\\n' maskloom-begin- {nonce}; ( {text}\n); printf '\\n%s%s=%s\\n' maskloom-end- {nonce} \"$?\"; }}\n"
        );
        let limit = self.patience(SOON);
        self.write(whole.into_bytes(), limit)
    }

    fn finish(&mut self, nonce: &str, limit: Duration) -> Result<Answer, Diagnostic> {
        let (begin, mut until) = (format!("maskloom-begin-{nonce}"), Instant::now() + self.patience(limit));
        loop {
            let line = self.line(&mut until)?;
            if line.contains(&begin) {
                break;
            }
            keep(&self.heard, line);
        }
        self.fresh = false;
        self.collect(&ending(nonce), limit)
    }

    fn collect(&mut self, end: &str, limit: Duration) -> Result<Answer, Diagnostic> {
        let mut until = Instant::now() + self.patience(limit);
        let (mut lines, mut bytes) = (Vec::new(), 0);
        loop {
            let line = self.line(&mut until)?;
            if let Some(status) = status_in(&line, end) {
                self.fresh = false;
                return Ok(Answer { lines, status });
            }
            bytes += line.len() + 1;
            lines.push(line);
            if bytes > MOST {
                return Err(self.silent());
            }
        }
    }

    /// A login and a queue take as long as the user allows, whatever the script.
    fn patience(&self, limit: Duration) -> Duration {
        if self.fresh { Patience::default().greeting } else { limit }
    }

    /// The next line. Errors: the time is over, also for one that prints all the time.
    fn line(&mut self, until: &mut Instant) -> Result<String, Diagnostic> {
        loop {
            if self.is_over() {
                return Err(self.ended());
            }
            match self.lines.recv_timeout(LOOK) {
                Ok(line) if Instant::now() < *until => return Ok(line),
                Ok(line) => {
                    keep(&self.heard, line);
                    return Err(self.silent());
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                // while a question is on the screen nothing else is waited for
                Err(RecvTimeoutError::Timeout) if self.asking.is_open() => *until = (*until).max(Instant::now() + SOON),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= *until => return Err(self.silent()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn write(&mut self, piece: Vec<u8>, limit: Duration) -> Result<(), Diagnostic> {
        if self.writer.send(piece).is_err() {
            return Err(self.ended());
        }
        let until = Instant::now() + limit;
        loop {
            match self.written.recv_timeout(LOOK) {
                Ok(true) => return Ok(()),
                Ok(false) | Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => return Err(self.silent()),
                Err(RecvTimeoutError::Timeout) if self.is_over() => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Whether the command has ended and its last lines have come: what it has started may hold its pipes open for ever.
    fn is_over(&mut self) -> bool {
        if !process::has_ended(&mut self.child) {
            self.kin.look();
            return false;
        }
        self.over.get_or_insert_with(Instant::now);
        self.is_held()
    }

    fn is_held(&self) -> bool {
        self.over.is_some_and(|since| since.elapsed() >= Patience::default().ending)
    }

    fn ends_within(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !process::has_ended(&mut self.child) {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    fn command(&self) -> String {
        Target::from_words(&self.words).command
    }

    fn said(&self) -> String {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.iter().map(|line| format!("\n  {line}")).collect()
    }

    /// The command ended, with what it said.
    fn ended(&mut self) -> Diagnostic {
        let had = self.ends_within(Duration::from_millis(500));
        process::signal_group(&mut self.child, End::Now);
        #[cfg(unix)]
        signals::ended(self.child.id());
        let status = process::kill_group(&mut self.child);
        #[cfg(unix)]
        signals::wait_for_the_end();
        self.kin.end();
        let mut how = status.filter(|_| had).map_or_else(|| "its output ended".into(), process::ending);
        if self.is_held() {
            how.push_str("; something that it started holds its output open");
        }
        // the last lines of its stderr are on their way
        std::thread::sleep(Duration::from_millis(50));
        let said = self.said();
        let command = self.command();
        let message = format!("`{command}` gave no shell, or lost it: {how}{said}");
        let hint = way_out(&said, &command)
            .unwrap_or_else(|| format!("try `{command} sh` in a terminal: it must give a POSIX shell"));
        Diagnostic::error("target-unreachable", message).hint(hint)
    }

    fn silent(&self) -> Diagnostic {
        let message = format!("no answer from a shell of `{}`{}", self.command(), self.said());
        Diagnostic::error("target-silent", message).hint(format!(
            "try `{} sh` in a terminal: it must give a POSIX shell; for a queue give it more time (MASKLOOM_PATIENCE, in seconds)",
            self.command()
        ))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // the end of its input ends a shell; who launched it follows and leaves nothing there: a killed srun keeps its allocation
        self.kin.look();
        self.writer = channel().0;
        if !self.ends_within(AT_ITS_END) {
            process::signal_group(&mut self.child, End::Ask);
            self.ends_within(WHEN_ASKED);
        }
        process::signal_group(&mut self.child, End::Now);
        #[cfg(unix)]
        signals::ended(self.child.id());
        process::kill_group(&mut self.child);
        self.kin.end();
    }
}

/// What helps against the usual words of ssh.
pub(in crate::worker) fn way_out(said: &str, command: &str) -> Option<String> {
    let has = |words: &str| said.contains(words);
    if has("has changed and you have requested strict checking") || has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        return Some(
            "the host's key is another than before: compare its fingerprint with one from whoever runs the host, and only then \
             remove the old key with the command above (ssh-keygen -R)"
                .into(),
        );
    }
    if has("Host key verification failed") || has("authenticity of host") {
        return Some(format!("the host is new here: run `{command} true` in a terminal once and answer its question"));
    }
    if has("Permission denied") {
        return Some(format!(
            "run `{command} true` in a terminal: it must not ask for a password (ssh-copy-id, ssh-add), or run this command in a terminal, where it may ask"
        ));
    }
    if has("sh") && (has("not recognized") || has("not found") || has("No such file")) {
        return Some("a target must have a POSIX shell named `sh`".into());
    }
    None
}

fn ending(nonce: &str) -> String {
    format!("maskloom-end-{nonce}=")
}

fn status_in(line: &str, end: &str) -> Option<i32> {
    line.split_once(end)?.1.trim().parse().ok()
}

fn keep(heard: &Mutex<VecDeque<String>>, line: String) -> bool {
    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    if !line.trim().is_empty() {
        heard.push_back(line.trim_end().chars().take(300).collect());
    }
    if heard.len() > KEPT {
        heard.pop_front();
    }
    true
}

fn write(mut stdin: ChildStdin, pieces: &Receiver<Vec<u8>>, done: &Sender<bool>) {
    for piece in pieces {
        let written = stdin.write_all(&piece).and_then(|()| stdin.flush()).is_ok();
        if done.send(written).is_err() || !written {
            return;
        }
    }
}

fn listen(from: impl Read, mut heard: impl FnMut(String) -> bool) {
    let mut from = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        match from.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                if !heard(text.trim_end_matches(['\n', '\r']).to_string()) {
                    return;
                }
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use sha2::Digest;

    /// `sh` is appended to the words: `--` makes it an argument that is not used.
    fn open(script: &str) -> Shell {
        Shell::open(&["sh", "-c", script, "--"].map(String::from)).unwrap()
    }

    #[test]
    fn scripts_are_answered_one_after_another_whatever_a_login_prints() {
        let mut shell = open("echo '{ motd }'; printf 'no newline'; exec sh");
        let one = shell.run("echo a=1; echo b=' two words '; exit 3", SOON).unwrap();
        assert_eq!(
            (one.value("a"), one.value("b"), one.value("c"), one.status),
            (Some("1"), Some("two words"), None, 3)
        );
        let bytes: Vec<u8> = (0..200_000u32).flat_map(|n| n.to_le_bytes()).collect();
        let mut seen = 0;
        let fed = shell.feed("ready; head -c 800000 | sha256sum", &bytes, SOON, &mut |n| seen = n).unwrap();
        let sum: String = sha2::Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((seen, fed.status), (800_000, 0));
        assert!(fed.lines.iter().any(|line| line.starts_with(&sum)), "{fed:?}");
        assert_eq!(shell.run("echo c=3", SOON).unwrap().value("c"), Some("3"));
    }

    #[test]
    fn a_script_that_wants_no_bytes_gets_none() {
        let mut shell = open("exec sh");
        assert_eq!(shell.feed("exit 7", b"never", SOON, &mut |_| {}).unwrap().status, 7);
        assert_eq!(shell.run("echo a=1", SOON).unwrap().value("a"), Some("1"));
    }

    #[test]
    fn a_launcher_is_never_killed_before_its_shell_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("ended");
        // as srun does: it starts a shell somewhere, and tidies up behind it
        let launcher = format!("sh; echo tidied > '{}'", note.display());
        let mut shell = open(&launcher);
        assert_eq!(shell.run("echo a=1", SOON).unwrap().value("a"), Some("1"));
        drop(shell);
        assert_eq!(std::fs::read_to_string(&note).unwrap(), "tidied\n");
        // one that does not heed the end of its input is asked
        let mut deaf = open(&format!("trap 'echo asked > \"{}\"; exit' TERM; sh; sleep 60 & wait", note.display()));
        deaf.run("true", SOON).unwrap();
        drop(deaf);
        assert_eq!(std::fs::read_to_string(&note).unwrap(), "asked\n");
    }

    /// What wrote its number there.
    #[cfg(target_os = "linux")]
    fn started(note: &std::path::Path) -> worker::descendants::Process {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let written = std::fs::read_to_string(note).unwrap_or_default();
            if let Some(number) = written.strip_suffix('\n') {
                return worker::descendants::Process::of(number.parse().unwrap()).expect("it runs");
            }
            assert!(Instant::now() < until, "it never started");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_login_starts_in_a_session_of_its_own_goes_with_the_shell() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("stray");
        let login = |heed: &str| {
            format!("setsid sh -c '{heed} echo $$ > \"{}\"; while :; do sleep 1; done' & exec sh", note.display())
        };
        // one that is asked, and one that does not heed it
        for heed in ["", "trap \"\" TERM;"] {
            let mut shell = open(&login(heed));
            let stray = started(&note);
            shell.run("true", SOON).unwrap();
            assert!(stray.lives());
            let begun = Instant::now();
            drop(shell);
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
            // a killed process is seen for a moment
            std::thread::sleep(Duration::from_millis(100));
            assert!(!stray.lives(), "{stray:?}");
            std::fs::remove_file(&note).unwrap();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_command_that_has_ended_is_told_though_something_holds_its_pipes() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("stray");
        // the command ends with its group, in which the stray is until it has a session of its own
        let at = note.display();
        let stray = format!(
            "setsid sh -c 'echo $$ > \"{at}\"; exec sleep 300' & while ! [ -s \"{at}\" ]; do sleep 0.01; done;"
        );
        let refused = open(&format!("{stray} echo 'no such pod' >&2; exit 3")).run("true", SOON).unwrap_err();
        process::end_stray(&started(&note), End::Now);
        std::fs::remove_file(&note).unwrap();
        // nothing is written, so that only the wait for an answer can tell
        let mut silent = open(&format!("{stray} exit 4"));
        silent.fresh = false;
        let held = silent.finish("x", 60 * SOON).unwrap_err();
        assert!(held.message.contains("holds its output open"), "{held}");
        process::end_stray(&started(&note), End::Now);
        std::fs::remove_file(&note).unwrap();
        // while a program is copied, for which half an hour is allowed
        let mut shell = open(&format!("{stray} exec sh"));
        let stray = started(&note);
        let begun = Instant::now();
        let lost = shell.feed("ready; kill -KILL $$", &[7; 1 << 10], 60 * SOON, &mut |_| {}).unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        std::thread::sleep(Duration::from_millis(100));
        assert!(!stray.lives(), "it was seen before its parent went");
        for (why, status) in [(&refused, "exit status 3"), (&held, "exit status 4"), (&lost, "killed by signal 9")] {
            assert_eq!(why.code, "target-unreachable", "{why}");
            assert!(why.message.contains(status), "{why}");
        }
    }

    #[test]
    fn an_end_and_a_silence_are_told_with_what_was_said() {
        let why = open("echo 'Host key verification failed.' >&2; exit 255").run("true", SOON).unwrap_err();
        assert!(why.code == "target-unreachable" && why.message.contains("exit status 255"), "{why}");
        assert!(why.hint.unwrap().contains("answer its question"));
        let mut shell = open("echo 'in a queue' >&2; exec sleep 60");
        shell.fresh = false;
        let why = shell.finish("x", Duration::from_millis(600)).unwrap_err();
        assert!(why.code == "target-silent" && why.message.contains("in a queue"), "{why}");
        // one that prints all the time never was silent, and had no end
        for babble in ["exec yes", "exec tr '\\0' x </dev/zero"] {
            let mut shell = open(babble);
            shell.fresh = false;
            let begun = Instant::now();
            let why = shell.finish("x", Duration::from_millis(600)).unwrap_err();
            assert!(why.code == "target-silent" && begun.elapsed() < Duration::from_secs(20), "{why}");
        }
        assert_eq!(Shell::open(&["no-such-program-of-ours".into()]).err().unwrap().code, "target-launch");
    }
}
