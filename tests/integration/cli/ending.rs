//! Ctrl-C: what a target's command has started goes with the program, or is named.
//!
//! Invariant: nothing that a test starts is left. Must not know how processes are found.

#![cfg(target_os = "linux")]

use super::Bench;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Asked, killed, and a slow machine.
const MOST: Duration = Duration::from_secs(3 + 1 + 10);
const SIGINT: i32 = 2;

/// Ignores the wish to end, and starts one that is stopped, one in a session of its own, and one that nobody is the parent of.
const TARGET: &str = "\
trap '' TERM INT HUP
sh -c 'echo $$ > stopped; kill -STOP $$; exec sleep 300' &
setsid sh -c 'echo $$ > session; exec sleep 300' &
(setsid sh -c 'echo $$ > orphan; exec sleep 300' &)
echo $$ > ignoring
exec sleep 300
";

/// Its state as the kernel tells it; None: it is gone.
fn state(id: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next().filter(|state| !"ZX".contains(*state))
}

#[track_caller]
fn until<T>(what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = seen() {
            return found;
        }
        assert!(Instant::now() < patience, "never seen: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(signal: &str, id: &str) {
    Command::new("kill").args([signal, id]).stderr(Stdio::null()).status().expect("kill");
}

/// A run on the target, and the numbers of what it has started.
fn started(bench: &Bench, names: &[&str]) -> (Child, Vec<String>) {
    bench.write("target", &format!("#!/bin/sh\n{TARGET}"));
    std::fs::set_permissions(bench.path("target"), std::fs::Permissions::from_mode(0o755)).expect("set");
    let mut command = bench.command(&["run", "band.json", "--target", "./target"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program");
    let number = |name: &&str| {
        let written = || std::fs::read_to_string(bench.path(name)).ok().filter(|text| text.ends_with('\n'));
        until(name, written).trim().to_string()
    };
    (child, names.iter().map(number).collect())
}

#[test]
fn an_interrupt_takes_along_what_ignores_it_what_is_stopped_and_what_has_a_session_of_its_own() {
    let bench = Bench::new();
    let (mut child, ids) = started(&bench, &["ignoring", "stopped", "session", "orphan"]);
    until("a stopped process", || (state(&ids[1]) == Some('T')).then_some(()));
    let asked = Instant::now();
    kill("-INT", &child.id().to_string());
    let status = until("the end of the program", || child.try_wait().expect("a child"));
    let took = asked.elapsed();
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    let left: Vec<_> = ids.iter().filter(|id| state(id).is_some()).cloned().collect();
    ids.iter().for_each(|id| kill("-KILL", id));
    assert_eq!(status.signal(), Some(SIGINT), "{status:?} {said}");
    assert!(took < MOST, "{took:?}");
    // whom the system has given another parent may be meant to stay: a master of ssh
    assert_eq!(left, [ids[3].clone()], "{ids:?} {said}");
    assert!(said.contains(&format!("still running: process {} (sleep)", ids[3])), "{said}");
    assert_eq!(said.matches("still running").count(), 1, "{said}");
}
