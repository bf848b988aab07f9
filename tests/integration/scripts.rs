//! The user's Python, and the scripts of `tests/python` that tests run with it.
//!
//! Invariant: a script that ends with 77 missed something, which is a skip and never a success; every other status but 0 is a
//! failure. Must not know what scripts check.

use crate::cli::Bench;
use maskloom::worker::user_python::{self, PACKAGES, Python};
use maskloom_testing::needs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The exit status of a script that misses something, as automake has it.
const MISSING: i32 = 77;

/// The Python to use if it has these packages; else the skip is listed.
pub(crate) fn python_with(packages: &[&str]) -> Option<Python> {
    let unasked = packages.iter().find(|name| !PACKAGES.contains(name));
    assert_eq!(unasked, None, "no Python is asked for it, so that none would ever be found");
    let found = user_python::find().filter(|p| packages.iter().all(|name| p.packages.contains_key(*name)));
    if found.is_none() {
        needs::missing(need(packages), &format!("no Python with {}; set MASKLOOM_PYTHON", packages.join(", ")));
    }
    found
}

/// What promises these packages: the need of the one that is installed last.
fn need(packages: &[&str]) -> &'static str {
    if packages.iter().any(|name| !["torch", "attn-gym"].contains(name)) {
        return "models";
    }
    if packages.contains(&"attn-gym") { "gym" } else { "torch" }
}

/// A script of `tests/python`, to be run by this Python without a network.
pub(crate) fn script(python: &Python, name: &str) -> Command {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python");
    let mut command = Command::new(&python.path);
    // tests run beside each other: threads of one that wait for those of another cost a sixth of the time of all
    let alone = [("OMP_NUM_THREADS", "1"), ("HF_HUB_OFFLINE", "1")];
    command.arg(format!("{path}/{name}")).envs(alone);
    command
}

/// What a script printed that succeeded; `None` where it misses something, which is listed.
#[track_caller]
pub(crate) fn said(command: &mut Command) -> Option<String> {
    said_with("models", command)
}

/// The same of a script that misses `need`.
#[track_caller]
pub(crate) fn said_with(need: &str, command: &mut Command) -> Option<String> {
    words(need, &command.output().expect("Python runs"))
}

#[track_caller]
fn words(need: &str, ran: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    if ran.status.code() == Some(MISSING) {
        let why = text.lines().rfind(|line| line.starts_with("skipped: ")).unwrap_or("skipped: without a reason");
        needs::missing(need, why.trim_start_matches("skipped: "));
        return None;
    }
    assert!(ran.status.success(), "{text}{}", String::from_utf8_lossy(&ran.stderr));
    Some(text)
}

/// A folder with a preset exported over 80 tokens.
pub(crate) fn exported(bench: &Bench, preset: &str, args: &[&str]) -> PathBuf {
    let size: &[&str] = if args.contains(&"--axes") { &[] } else { &["--seq", "80"] };
    let args = [&["export", preset, "--heads", "2", "--kv-heads", "2", "--to", "out"], size, args].concat();
    bench.run(&args).ok();
    bench.path("out")
}

#[test]
fn packages_name_the_need_that_promises_them() {
    assert_eq!(need(&["torch"]), "torch");
    assert_eq!(need(&["torch", "attn-gym"]), "gym");
    assert_eq!(need(&["torch", "diffusers"]), "models");
}
