//! What an export promises as a whole: the same bytes each time, all files or the old ones, and the build that made them.

use super::Bench;
use std::collections::BTreeMap;
use std::path::Path;

/// Every file below a folder, hidden ones too.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(folder: &Path, above: &str, out: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry")) {
            let name = format!("{above}{}", entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                true => walk(&entry.path(), &format!("{name}/"), out),
                false => drop(out.insert(name, std::fs::read(entry.path()).expect("a file"))),
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(folder, "", &mut out);
    out
}

#[test]
fn two_exports_of_a_design_are_equal_byte_for_byte() {
    let bench = Bench::new();
    let export = |to: &str, epoch: &str| {
        Bench::ran(bench.command(&["export", "band.json", "--to", to]).env("SOURCE_DATE_EPOCH", epoch)).ok();
        content(&bench.path(to))
    };
    let first = export("first", "1000000000");
    assert!(first.len() > 25, "{:?}", first.keys());
    // the metadata of the block lists came in one of 24 orders
    for again in 0..6 {
        assert!(export(&format!("again{again}"), "1000000000") == first);
    }
    let report = |files: &BTreeMap<String, Vec<u8>>| String::from_utf8_lossy(&files["band_report.html"]).into_owned();
    assert!(report(&first).contains(" on 2001-09-09."));
    // a day that is none is today
    let later = export("later", "soon");
    let other: Vec<_> = first.keys().filter(|name| later.get(*name) != first.get(*name)).collect();
    assert_eq!(other, ["band_manifest.json", "band_report.html"]);
}

#[test]
fn an_export_is_whole_or_what_was_there_stays() {
    let bench = Bench::new();
    bench.run(&["export", "plain.json", "--name", "band", "--to", "out"]).ok();
    let old = content(&bench.path("out"));
    // a folder has the name of a file
    std::fs::remove_file(bench.path("out/band_report.html")).expect("is removed");
    std::fs::create_dir_all(bench.path("out/band_report.html/inside")).expect("is made");
    let before = content(&bench.path("out"));
    let refused = bench.run(&["export", "band.json", "--to", "out", "--force"]);
    refused.fails(1, &["error[cannot-write]", "band_report.html is a folder", "nothing was written"]);
    assert!(content(&bench.path("out")) == before);
    std::fs::remove_dir_all(bench.path("out/band_report.html")).expect("is removed");
    bench.run(&["export", "band.json", "--to", "out", "--force"]).ok();
    let new = content(&bench.path("out"));
    assert_eq!(new.keys().collect::<Vec<_>>(), old.keys().collect::<Vec<_>>());
    assert!(new != old);
}

/// A killed export leaves the old files, or the new ones once the next one has finished it; and nothing else, later.
#[cfg(unix)]
#[test]
fn a_killed_export_mixes_no_files() {
    use std::process::Stdio;
    use std::time::Instant;
    let bench = Bench::new();
    let export = |name: &str| bench.command(&["export", name, "--name", "band", "--to", "out", "--force"]);
    Bench::ran(&mut export("plain.json")).ok();
    let plain = content(&bench.path("out"));
    // kills are spread over what one export takes here
    let start = Instant::now();
    Bench::ran(&mut export("band.json")).ok();
    let whole = start.elapsed();
    let band = content(&bench.path("out"));
    let mut killed = 0;
    for n in 0..24_u32 {
        Bench::ran(&mut export("plain.json")).ok();
        assert!(content(&bench.path("out")) == plain, "what the last one left is gone");
        let mut running = export("band.json").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(whole * n / 24);
        let _ = running.kill();
        killed += usize::from(running.wait().expect("it ends").code().is_none());
        let left = content(&bench.path("out"));
        if left.keys().any(|name| name.starts_with(".maskloom-unfinished")) {
            continue;
        }
        let seen: BTreeMap<_, _> = left.into_iter().filter(|(name, _)| !name.starts_with(".maskloom-")).collect();
        assert!(seen == plain || seen == band, "after {n}");
    }
    assert!(killed > 3, "{killed}");
}

#[test]
fn what_is_written_says_which_build_wrote_it() {
    let bench = Bench::new();
    let version = bench.run(&["--version"]).ok().out;
    let words = version.trim().strip_prefix("maskloom ").expect("its name");
    let (number, build) = words.split_once(" (").expect("a build");
    assert_eq!(number, env!("CARGO_PKG_VERSION"));
    let parts: Vec<&str> = build.trim_end_matches(')').split(", ").collect();
    let commit =
        |text: &str| text == "unknown commit" || text.chars().all(|c| c.is_ascii_hexdigit()) && text.len() == 9;
    let reported =
        |parts: &[&str]| matches!(parts, [c, _] if commit(c)) || matches!(parts, [c, "dirty", _] if commit(c));
    assert!(reported(&parts), "{version}");
    bench.run(&["export", "band.json", "--to", "out"]).ok();
    let files = content(&bench.path("out"));
    let text = |name: &str| String::from_utf8_lossy(&files[name]).into_owned();
    let python: Vec<&String> = files.keys().filter(|name| name.ends_with(".py")).collect();
    assert!(python.len() > 10, "{python:?}");
    for name in python {
        assert!(text(name).contains("SPDX-License-Identifier: MIT"), "{name} says nothing of its licence");
    }
    for name in ["band.py", "band_diffusers.py", "band_report.html", "sidecar/sidecar.json"] {
        assert!(text(name).contains(words), "{name}: no `{words}`");
    }
    let manifest: serde_json::Value = serde_json::from_slice(&files["band_manifest.json"]).expect("JSON");
    let listed: Vec<&str> =
        manifest["files"].as_array().expect("files").iter().filter_map(|f| f["name"].as_str()).collect();
    assert_eq!(listed.len() + 1, files.len());
    assert!(listed.iter().all(|name| files.contains_key(*name)));
    assert_eq!(manifest["maskloom"]["version"], number);
    assert_eq!(
        manifest["maskloom"]["commit"].as_str().map(|c| &c[..9]),
        Some(parts[0]).filter(|p| *p != "unknown commit")
    );
    // so do runs and benchmarks, without the name of the machine
    let run = [
        "run",
        "band.json",
        "--device",
        "cpu",
        "--backend",
        "flex",
        "--rounds",
        "0",
        "--save-run",
        "run.json",
        "--json",
    ];
    let ran = bench.run(&run).ok().json();
    let saved: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(bench.path("run.json")).expect("a run")).expect("JSON");
    let bench_json = bench.run(&["bench", "blocks", "--lengths", "1024", "--budget", "1", "--json"]).ok().json();
    for environment in [&ran["environment"], &saved["report"]["environment"], &bench_json["environment"]] {
        assert_eq!(environment["maskloom"], words);
        assert!(environment.get("host").is_none(), "{environment}");
    }
}

/// An adapter runs only with the sidecar that it was exported with, and not in a folder that holds files of two exports.
#[test]
fn an_adapter_takes_no_files_of_another_export() {
    let Some(python) = crate::scripts::python_with(&["torch"]) else { return };
    let bench = Bench::new();
    bench.run(&["export", "band.json", "--to", "out"]).ok();
    let imported = || {
        let mut command = std::process::Command::new(&python.path);
        Bench::ran(
            command.args(["-c", "import band_diffusers; band_diffusers._runtime()"]).current_dir(bench.path("out")),
        )
    };
    imported().ok();
    // another build with the same runtime fits, another runtime does not, whatever it calls itself
    let file = "out/sidecar/maskloom_sidecar/__init__.py";
    let own = std::fs::read_to_string(bench.path(file)).expect("text");
    let line = |name: &str| own.lines().find(|line| line.starts_with(name)).expect("a line");
    bench.write(file, &own.replace(line("VERSION = "), "VERSION = \"0.1.0 (123456789, release)\""));
    imported().ok();
    bench.write(file, &own.replace(line("PACKAGE = "), "PACKAGE = \"0123456789abcdef\""));
    imported().fails(1, &["ImportError", "export both again"]);
    bench.write(file, &own);
    std::fs::create_dir(bench.path("out/.maskloom-unfinished")).expect("is made");
    imported().fails(1, &["ImportError", "holds files of two exports"]);
    let mut command = std::process::Command::new(&python.path);
    let loaded = Bench::ran(
        command
            .args(["-c", "pass"])
            .env("PYTHONPATH", bench.path("out/sidecar"))
            .env("MASKLOOM_SIDECAR", bench.path("out")),
    );
    assert!(loaded.ok().err.contains("holds files of two exports"), "the sidecar refuses it too");
}
