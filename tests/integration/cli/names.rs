//! Files whose names are no UTF-8 text, in each place that takes a file: the file of that name is meant, or the name is refused.
//!
//! A name made readable is another file's name, and serde ends the program at one that is no text.

use super::{Bench, Ran};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

/// `café` in Latin-1, with an ending.
fn odd(ending: &str) -> OsString {
    let mut bytes = b"caf\xe9".to_vec();
    bytes.extend_from_slice(ending.as_bytes());
    OsString::from_vec(bytes)
}

fn ran(bench: &Bench, args: &[&str], more: &[&OsStr]) -> Ran {
    Bench::ran(bench.command(args).args(more))
}

#[test]
fn what_is_written_has_the_name_that_was_given_and_the_json_is_whole() {
    let bench = Bench::new();
    let run = ["run", "band.json", "--device", "cpu", "--rounds", "1", "--backend", "flex"];
    bench.run(&[&run[..], &["--save-run", "run.json"]].concat()).ok();
    bench.run(&["recorder", "--sample", "--to", "sample"]).ok();
    let capture = "sample/lm.safetensors";
    let long: Vec<&str> = run.iter().copied().chain(["--save-run"]).collect();
    let out: Vec<&str> = run.iter().copied().chain(["--out"]).collect();
    for (args, ending) in [
        (&["render", "band.json", "--out"][..], ".png"),
        (&["render", "band.json", "--out"], ".svg"),
        (&["share", "band.json", "--out"], ".html"),
        (&["share", "band.json", "--out"], ".svg"),
        (&["blocks", "band.json", "--out"], ".safetensors"),
        (&["import", "band.json", "--to"], ".json"),
        (&["export", "band.json", "--to"], ""),
        (&["recorder", "--to"], "-recorder"),
        (&["recorder", "--sample", "--to"], "-sample"),
        (&["bench", "recorded", "--chart"], "-chart.svg"),
        (&["report", "run.json", "--out"], ".md"),
        (&["report", "run.json", "--out"], ".csv"),
        (&["report", "run.json", "--out"], "-run.svg"),
        (&["atlas", capture, "--page"], "-atlas.html"),
        (&["atlas", capture, "--out"], "-atlas.png"),
        (&["suggest", capture, "--page"], "-suggest.html"),
        (&["suggest", capture, "--out"], "-proposals"),
        (&long[..], "-run.json"),
        (&out[..], "-out.safetensors"),
    ] {
        let name = odd(ending);
        let said = ran(&bench, args, &[&name, OsStr::new("--json")]).ok();
        assert!(said.json().is_object(), "{args:?}: {}", said.out);
        assert!(bench.path("").join(&name).exists(), "{args:?} wrote no {}", name.display());
    }
    let listed = Bench::ran(
        bench.command(&["kernels", "list", "--json"]).env("MASKLOOM_CACHE", bench.path("").join(odd("-cache"))),
    )
    .ok();
    assert!(listed.json()["folder"].as_str().is_some_and(|folder| folder.ends_with("-cache/kernels")));
}

#[test]
fn what_cannot_be_passed_on_under_its_name_is_refused_by_it() {
    let bench = Bench::new();
    std::fs::copy(bench.path("band.json"), bench.path("").join(odd(".json"))).expect("copied");
    std::fs::write(bench.path("").join(odd(".safetensors")), "").expect("written");
    std::fs::create_dir(bench.path("").join(odd(""))).expect("made");
    let (json, tensors, folder) = (odd(".json"), odd(".safetensors"), odd("/picture.png"));
    for (args, more) in [
        (&["conform", "--grad"][..], &[&json][..]),
        (&["quality", "band.json"], &[&tensors, &"--detach".into()]),
        (&["quality", "band.json", "none.safetensors", "--detach", "--picture"], &[&folder]),
        (&["sweep", "band.json", "--lengths", "64", "--device", "cpu", "--slurm"], &[&odd("-slurm")]),
    ] {
        let more: Vec<&OsStr> = more.iter().map(|name| name.as_os_str()).collect();
        ran(&bench, args, &more).fails(1, &["error[path-not-text]", "is not UTF-8"]);
    }
    // no preset, command or document: said, with the status of wrong use
    ran(&bench, &[], &[&json]).fails(2, &["invalid UTF-8"]);
    ran(&bench, &["check"], &[&json]).fails(2, &["invalid UTF-8"]);
    ran(&bench, &[], &[&json, OsStr::new("--frob")]).fails(2, &["error"]);
}

/// A race of hours printed nothing, because the folder for its file was not there.
#[test]
fn results_are_on_the_screen_before_they_are_saved_and_a_place_is_looked_for_before_them() {
    let bench = Bench::new();
    let run = ["run", "band.json", "--device", "cpu", "--rounds", "1", "--backend", "flex"];
    for flag in ["--save-run", "--out"] {
        let name = if flag == "--out" { "none/r.safetensors" } else { "none/r.json" };
        let early = bench.run(&[&run[..], &[flag, name]].concat()).fails(1, &["error[cannot-write]", "no such folder"]);
        assert!(early.out.is_empty(), "{}", early.out);
        let full = bench.run(&[&run[..], &[flag, "/dev/full"]].concat()).fails(1, &["error[disk-full]"]);
        assert!(full.out.contains("flex"), "{}", full.out);
    }
    bench.run(&["recorder", "--sample", "--to", "s"]).ok();
    for args in
        [&["atlas", "s/lm.safetensors", "--out"][..], &["quality", "band.json", "s/lm.safetensors", "--picture"]]
    {
        bench.run(&[args, &["none/p.png"]].concat()).fails(1, &["error[cannot-write]", "no such folder"]);
    }
}

/// `report --out F.csv --json` wrote JSON under the name of a table, and said nothing.
#[test]
fn a_report_is_of_the_kind_of_its_name_also_with_json() {
    let bench = Bench::new();
    bench
        .run(&["run", "band.json", "--device", "cpu", "--rounds", "1", "--backend", "flex", "--save-run", "run.json"])
        .ok();
    for (name, begins) in [("r.md", "# Band"), ("r.csv", "backend,"), ("r.svg", "<svg")] {
        let said = bench.run(&["report", "run.json", "--out", name, "--json"]).ok().json();
        assert_eq!(said["files"][0], name);
        let text = std::fs::read_to_string(bench.path(name)).expect("written");
        assert!(text.contains(begins) && !text.starts_with('{'), "{name}: {}", &text[..60]);
    }
    let compared = bench.run(&["report", "run.json", "--compare", "run.json", "--out", "c.csv", "--json"]).ok();
    assert_eq!(compared.json()["files"][0], "c.csv");
}
