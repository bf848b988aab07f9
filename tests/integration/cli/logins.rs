//! What the login of a target prints and starts: lines that look like messages, and sessions of their own that keep its pipes.

#![cfg(target_os = "linux")]

use super::Bench;
use super::targets::{Far, SSH, quoted};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A login may start an agent that keeps the pipe: in a session of its own it outlives whoever kills groups alone.
#[test]
fn what_a_login_has_started_ends_with_the_program_or_is_named() {
    let far = Far::new();
    let note = far.bench.path("strays");
    let agent = format!("setsid sh -c 'echo $$ >> \"{}\"; exec sleep 300'", note.display());
    let strays = || std::fs::read_to_string(&note).unwrap_or_default().lines().map(String::from).collect::<Vec<_>>();
    let lives = |id: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    };
    let run = ["run", "band.json", "--device", "cpu", "--rounds", "1", "--backend", "flex", "--target", "a"];
    far.line("ssh", &format!("{agent} &"), SSH);
    far.add("a", "ssh").ok();
    let added = strays();
    assert!(added.len() >= 2 && !added.iter().any(lives), "{added:?}");
    far.run(&run).ok();
    assert!(strays().len() > added.len() && !strays().iter().any(lives), "{:?}", strays());
    // whom the system has given another parent may be meant to stay
    std::fs::remove_file(&note).expect("there");
    far.line("ssh", &format!("({agent} &)"), SSH);
    let reported = far.run(&["target", "update", "a"]).ok();
    let left = strays();
    let named = |id: &String| reported.err.contains(&format!("still running: process {id} (sleep)"));
    assert!(!left.is_empty() && left.iter().all(|id| named(id) == lives(id)), "{left:?} {}", reported.err);
    left.iter().for_each(|id| drop(Command::new("kill").args(["-KILL", id]).status()));
    // a login that fails is told at once, whatever holds its output
    far.line("ssh", &format!("{agent} & echo 'no such pod' >&2; exit 3"), SSH);
    let begun = Instant::now();
    far.add("b", "ssh").fails(1, &["error[target-unreachable]", "exit status 3", "no such pod"]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    strays().iter().for_each(|id| drop(Command::new("kill").args(["-KILL", id]).stderr(Stdio::null()).status()));
}

/// A command that starts a worker itself has no shell that says when the login is over.
#[test]
fn a_login_of_a_plain_command_may_print_what_looks_like_a_message() {
    let bench = Bench::new();
    let own = quoted(env!("CARGO_BIN_EXE_maskloom"));
    let words = [r#"{"id":1}"#, r#"{"id":1,"body":{"say":"failed","why":[]}}"#, r#"motd {"id":2} "#];
    for words in words {
        let login = format!("printf %s {}; exec {own} worker", quoted(words));
        for end in ["", "echo; "] {
            let target = format!("sh -c {}", quoted(&login.replace("exec", &format!("{end}exec"))));
            let json = bench.run(&["doctor", "--json", "--target", &target]).json();
            assert!(json["checks"].as_array().is_some_and(|all| !all.is_empty()), "{words}: {json}");
        }
    }
}
