//! Lines to other machines: how often one is opened, and the lists of many machines at once.

#![cfg(target_os = "linux")]

use super::Bench;
use super::targets::{Far, SSH, quoted};
use std::time::{Duration, Instant};

/// How often the line was opened since the last look.
fn logins(far: &Far) -> usize {
    let path = far.bench.path("logins");
    let count = std::fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    let _ = std::fs::remove_file(path);
    count
}

#[test]
fn one_login_is_enough_for_a_list_a_picture_and_a_job() {
    let far = Far::new();
    let note = format!("echo login >> {}", quoted(&far.bench.path("logins").display().to_string()));
    far.line("ssh", &note, SSH);
    far.add("a", "ssh").ok();
    assert_eq!(logins(&far), 2, "to put the worker there, and to try it");
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/captures/lm.safetensors");
    far.run(&["atlas", capture, "--target", "a"]).ok();
    assert_eq!(logins(&far), 1, "a login over a slow line takes longer than the picture");
    let id = far.detach("300", "1");
    far.run(&["attach", &id, "--target", "a"]).ok();
    far.run(&["jobs", "--target", "a"]).ok();
    assert_eq!(logins(&far), 3, "one for each command");
}

#[test]
fn presets_are_recorded_on_a_target_without_waiting_and_the_runs_come_into_the_file() {
    let far = Far::new();
    far.add("a", "ssh").ok();
    let record = ["presets", "record", "sliding_window", "causal", "--into", "runs.json", "--device", "cpu"];
    let record = [&record[..], &["--rounds", "1", "--backend", "flex", "--target", "a", "--detach"]].concat();
    let reported = far.run(&record).ok().out;
    let id = reported.split_whitespace().nth(1).expect("a number").to_string();
    assert!(!far.bench.path("runs.json").exists(), "nothing waits for the end");
    let cancelled = far.run(&["cancel", &id, "--target", "a"]).ok().out;
    assert!(cancelled.contains("of 2 results are kept"), "{cancelled}");
}

#[test]
fn jobs_of_all_targets_are_listed_and_a_dead_line_costs_its_own_answer_alone() {
    let far = Far::new();
    far.add("a", "ssh").ok();
    let id = far.detach("300", "1");
    far.job(&id, |job| job["state"] == "ended");
    for (name, first) in [("gone", "echo 'No route to host' >&2; exit 255"), ("mute", "exec sleep 600")] {
        far.line("line", "", SSH);
        let words = format!("{} {name}", quoted(&far.bench.path("line").display().to_string()));
        far.run(&["target", "add", name, &words]).ok();
        std::fs::rename(far.bench.path("line"), far.bench.path(&format!("line-{name}"))).expect("renamed");
        let list = far.bench.path("config/targets.json");
        let text = std::fs::read_to_string(&list).expect("a list");
        std::fs::write(&list, text.replace("/line\"", &format!("/line-{name}\""))).expect("written");
        far.line(&format!("line-{name}"), first, "");
    }
    let own = ["run", "band.json", "--device", "cpu", "--rounds", "1", "--backend", "flex", "--detach", "--json"];
    let here = far.run(&own).ok().json()["job"].as_str().expect("a number").to_string();
    let began = Instant::now();
    let reported = far.run(&["jobs", "--wait", "3"]).ok().out;
    assert!(began.elapsed() < Duration::from_secs(20), "all are asked at once, each with an end");
    for part in [&id, &here, "this machine", "gone: not reachable: ", "No route to host", "mute: not reachable: "] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    let json = far.run(&["jobs", "--wait", "3", "--json"]).ok().json();
    let silent: Vec<&str> =
        json["unreachable"].as_array().expect("a list").iter().filter_map(|of| of["target"].as_str()).collect();
    assert_eq!(silent, ["gone", "mute"]);
    assert!(!far.run(&["jobs", "--here"]).ok().out.contains(&id));
    let why = far.run(&["jobs", "--target", "gone"]);
    why.fails(1, &["error[worker-died]", "No route to host"]);
    Bench::ran(far.command(&["cancel", &here]).env("MASKLOOM_PATIENCE", "5")).ok();
}

#[test]
fn an_atlas_by_several_machines_is_that_of_one_and_is_taken_up_after_a_kill() {
    let far = Far::new();
    for name in ["a", "b"] {
        far.add(name, "ssh").ok();
    }
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/captures/lm.safetensors");
    let here = far.run(&["atlas", capture, "--json"]).ok().json();
    // the third machine dies with its first call in hand
    let own = env!("CARGO_BIN_EXE_maskloom");
    let reads = r#"while read -r line; do case $line in *'"of":"call"'*) exit 9 ;; esac; printf '%s\n' "$line"; done"#;
    let dying = far.program("dying", &format!("{reads} | '{own}' worker"));
    let dying = dying.display().to_string();
    let several =
        ["atlas", capture, "--target", "a", "--target", "b", "--target", &dying, "--journal", "atlas.jsonl", "--json"];
    let mut there = far.run(&several).ok().json();
    let heads = there["heads"].as_array_mut().expect("heads");
    assert!(heads.iter().all(|head| ["a", "b"].contains(&head["target"].as_str().expect("a machine"))), "{heads:?}");
    heads.iter_mut().for_each(|head| drop(head.as_object_mut().expect("an object").remove("target")));
    assert_eq!(there["heads"], here["heads"]);
    let again = far.run(&several[..several.len() - 1]).ok();
    assert!(again.err.contains("calls are in the journal") && again.out.contains("machine"), "{}", again.out);
    // another file under the same path is another capture
    std::fs::copy(capture, far.bench.path("x.safetensors")).expect("copied");
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/captures/video.safetensors");
    std::fs::copy(other, far.home().join("x.safetensors")).expect("copied");
    far.line("moved", "cd \"$HOME\"", SSH);
    far.add("c", "moved").ok();
    far.run(&["atlas", "x.safetensors", "--target", "a", "--target", "c"]).fails(1, &["error[atlas-captures]"]);
    far.run(&["atlas", capture, "--target", "a", "--target", "b", "--detach"]).fails(2, &["error[detach-targets]"]);
}
