//! Everything that can prove something runs: in `.ci/run` on each change, or in its run with all cases, which the forge's job
//! `weekly` starts. The tests and scripts that exist are compared with what these texts start.
//!
//! Invariant: what is added and started by nothing fails here. Must not know what tests check.

use maskloom::worker::user_python::PACKAGES;
use maskloom_testing::needs::NEEDS;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const RUN: &str = include_str!("../../.ci/run");
const FORGE: &str = include_str!("../../.github/workflows/ci.yml");

/// Scripts that no machine of the forge can run, with the reason.
const BY_HAND: [(&str, &str); 5] = [
    ("calls", "times calls of exported kernels on a GPU"),
    ("on_a_card", "trains on a GPU"),
    ("package_costs_on_a_card", "times calls on a GPU"),
    ("package_on_a_card", "attends on a GPU"),
    ("ranks_on_cards", "times plans on several GPUs"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below a folder whose names end in `ending`, with their texts.
fn texts(folder: &str, ending: &str) -> Vec<(PathBuf, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).expect("readable").map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|own| own == ending) {
                let text = std::fs::read_to_string(&path).expect("UTF-8");
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// A text without the lines that begin as comments.
fn code(text: &str) -> String {
    let comment =
        |line: &str| ["//", "#"].iter().any(|mark| line.trim_start().starts_with(mark) && !line.contains("#["));
    text.lines().filter(|line| !comment(line)).map(|line| format!("{line}\n")).collect()
}

/// The Rust sources of tests and of the program.
fn rust() -> Vec<(PathBuf, String)> {
    let mut found = texts("src", "rs");
    found.extend(["tests/integration", "tests/gpu"].iter().flat_map(|folder| texts(folder, "rs")));
    found.retain(|(path, _)| !path.ends_with(file!()));
    found
}

/// Python files of `tests/python` by name.
fn scripts() -> BTreeMap<String, String> {
    let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    texts("tests/python", "py").iter().map(|(path, text)| (name(path), text.clone())).collect()
}

/// Names of modules that a Python text imports, those of code in its strings too, or lists as `MODULES`.
fn imported(text: &str) -> BTreeSet<String> {
    let words = |list: &str| list.split(',').map(|word| word.trim().to_string()).collect::<Vec<_>>();
    let of_line = |line: &str| {
        let line = line.trim();
        match (line.strip_prefix("import "), line.strip_prefix("from "), line.strip_prefix("MODULES = (")) {
            (Some(names), ..) => words(names),
            (_, Some(from), _) => words(from.split(" import ").next().unwrap_or_default()),
            (.., Some(names)) => words(&names.replace(['"', ')'], "")),
            _ => Vec::new(),
        }
    };
    text.lines().flat_map(of_line).collect()
}

/// Each script with the file that starts it, or the script that imports it.
fn started(scripts: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut callers: Vec<(String, String)> = vec![(".ci/run".into(), code(RUN)), ("ci.yml".into(), code(FORGE))];
    let short = |path: &Path| path.strip_prefix(root()).expect("below the root").display().to_string();
    callers.extend(rust().iter().map(|(path, text)| (short(path), code(text))));
    let mut found = BTreeMap::new();
    for name in scripts.keys() {
        let words = [format!("\"{name}.py\""), format!("tests/python/{name}.py")];
        if let Some((caller, _)) = callers.iter().find(|(_, text)| words.iter().any(|word| text.contains(word))) {
            found.insert(name.clone(), caller.clone());
        }
    }
    loop {
        let importer = |name: &String| found.keys().find(|by| imported(&scripts[*by]).contains(name)).cloned();
        let more: Vec<_> = scripts.keys().filter(|name| !found.contains_key(*name)).collect();
        let more: Vec<_> =
            more.into_iter().filter_map(|name| Some((name.clone(), format!("{}.py", importer(name)?)))).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

#[test]
fn every_script_is_started_by_a_test_or_by_ci() {
    let scripts = scripts();
    let started = started(&scripts);
    assert!(scripts.len() > 20 && started.len() > 20, "the folder was read: {started:?}");
    started.iter().for_each(|(name, by)| println!("{name}.py: {by}"));
    let by_hand: BTreeSet<&str> = BY_HAND.iter().map(|(name, _)| *name).collect();
    let idle: BTreeSet<&str> = scripts.keys().filter(|name| !started.contains_key(*name)).map(String::as_str).collect();
    assert_eq!(
        idle, by_hand,
        "left: scripts of tests/python that nothing starts; right: those that need what no forge has"
    );
    // it sees one
    let one = BTreeMap::from([("nobody_starts_this".to_string(), "import torch\n".to_string())]);
    assert!(super::proofs::started(&one).is_empty());
}

/// Functions of a Python text at its left margin: name and whether it has parameters.
fn functions(text: &str) -> Vec<(&str, bool)> {
    text.lines()
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("def ")?.split_once('(')?;
            Some((name, !rest.starts_with(')')))
        })
        .collect()
}

/// The checks that `behaviour.py` finds by itself: functions of two words or more, without parameters.
fn is_check(name: &str, parameters: bool) -> bool {
    !parameters && !name.starts_with('_') && name.trim_matches('_').contains('_')
}

#[test]
fn every_function_of_a_script_is_called() {
    let scripts = scripts();
    let all: String = scripts.values().map(|text| code(text)).collect();
    let calls = |name: &str| {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let whole = |at: usize| !all[..at].ends_with(word) && !all[at + name.len()..].starts_with(word);
        all.match_indices(name).filter(|(at, _)| whole(*at)).count()
    };
    let found_by_name = imported(&scripts["behaviour"]);
    let mut idle = Vec::new();
    for (script, text) in &scripts {
        for (name, parameters) in functions(text) {
            let found = found_by_name.contains(script) && is_check(name, parameters);
            if !found && calls(name) < 2 {
                idle.push(format!("{script}.py: {name}"));
            }
        }
    }
    assert!(idle.is_empty(), "defined and not called: {idle:#?}");
}

#[test]
fn scripts_that_say_skipped_do_not_end_as_a_success() {
    for (name, text) in scripts() {
        let says = text.contains("skipped: ");
        assert!(
            !says || text.contains("sys.exit(77)") || text.contains("77 if missing"),
            "{name}.py ends with 0 where it skips"
        );
    }
    for (path, text) in rust() {
        let says = code(&text).contains("println!(\"skipped");
        assert!(!says || path.ends_with("testing/needs.rs"), "{}: say it by needs::missing", path.display());
    }
}

/// README's command runs every target of every package, so that an ignored test is all that it leaves out.
#[test]
fn every_ignored_test_runs_each_week() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("UTF-8");
    let command = readme.lines().find(|line| line.starts_with("cargo test")).expect("the README's second command");
    assert!(["cargo test", "cargo test --workspace"].contains(&command), "{command} leaves tests out");
    let ignored: Vec<String> = rust()
        .iter()
        .flat_map(|(path, text)| {
            let lines: Vec<&str> = text.lines().collect();
            let at = |(at, line): (usize, &&str)| line.trim().starts_with("#[ignore").then_some(at);
            let found: Vec<usize> = lines.iter().enumerate().filter_map(at).collect();
            let name = |at: usize| {
                assert!(lines[at].contains("= \""), "{}: an ignored test says why", path.display());
                let test = lines[at..].iter().find(|line| line.trim().starts_with("fn ")).expect("a function");
                test.trim().trim_start_matches("fn ").split('(').next().unwrap_or_default().to_string()
            };
            found.into_iter().map(name).collect::<Vec<_>>()
        })
        .collect();
    ignored.iter().for_each(|name| println!("{name}: each week"));
    assert!(ignored.len() > 4, "the tree was read: {ignored:?}");
    let run = code(RUN);
    assert!(run.contains("bash -c \"$(readme_test_command) -- --ignored\""), ".ci/run starts the ignored tests");
    assert!(run.contains("[ -z \"${MASKLOOM_ALL_CASES:-}\" ] || step \"tests that are ignored otherwise\" every_test"));
    let weekly = FORGE.split("\n  weekly:\n").nth(1).expect("the forge has the job");
    let weekly: Vec<&str> = weekly.lines().take_while(|line| line.starts_with("   ")).collect();
    let has = |word: &str| weekly.iter().any(|line| line.contains(word));
    assert!(has("if: github.event_name == 'schedule'") && has("MASKLOOM_ALL_CASES=1 bash .ci/run"), "{weekly:?}");
    assert!(FORGE.contains("  schedule:\n    - cron:"), "the forge starts the job by the clock");
}

/// The folder and name of a module's file, as its `mod` line names it.
fn module(path: &Path) -> (PathBuf, String) {
    let folder = path.parent().expect("a folder");
    if path.ends_with("mod.rs") {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        return (folder.parent().expect("a folder").to_path_buf(), name);
    }
    (folder.to_path_buf(), path.file_stem().expect("a name").to_string_lossy().into_owned())
}

#[test]
fn every_source_with_tests_is_compiled() {
    let sources = rust();
    let mut lost = Vec::new();
    for (path, _) in &sources {
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        if ["lib.rs", "main.rs"].contains(&file.as_str()) {
            continue;
        }
        let (folder, name) = module(path);
        let declares =
            |text: &str| text.contains(&format!("mod {name};")) || text.contains(&format!("#[path = \"{file}\"]"));
        let roots = ["mod.rs", "lib.rs", "main.rs"].map(|root| folder.join(root));
        let above = [roots.to_vec(), vec![folder.with_extension("rs")]].concat();
        let inside = |(other, text): &&(PathBuf, String)| {
            (above.contains(other) || other.parent() == Some(folder.as_path())) && other != path && declares(text)
        };
        if !sources.iter().any(|source| inside(&source)) {
            lost.push(path.strip_prefix(root()).expect("below the root"));
        }
    }
    assert!(lost.is_empty(), "no module declares: {lost:?}");
}

/// The words that follow a mark on the lines of `.ci/run`.
fn of_run(mark: &str) -> Vec<&'static str> {
    RUN.lines().filter_map(|line| line.trim().strip_prefix(mark)?.split_whitespace().next()).collect()
}

#[test]
fn every_need_of_a_test_is_promised_by_ci() {
    let promised: BTreeSet<&str> = of_run("promised ").into_iter().collect();
    let needs: BTreeSet<&str> = NEEDS.into_iter().filter(|need| *need != "gpu").collect();
    assert_eq!(
        promised, needs,
        "left: .ci/run; right: the needs of tests, of which a machine of the forge lacks a GPU"
    );
    let page = std::fs::read_to_string(root().join("docs/environment.md")).expect("UTF-8");
    assert!(page.contains(&format!("names out of `{}`", NEEDS.join(","))), "docs/environment.md lists {NEEDS:?}");
    let list = RUN.lines().find_map(|line| line.strip_prefix("python_packages=\"")).expect("the packages");
    let installed: BTreeSet<&str> = list.trim_end_matches('"').split(' ').collect();
    for (path, text) in rust() {
        for (at, mark) in text.match_indices("python_with(&[") {
            let asked = text[at + mark.len()..].split(']').next().unwrap_or_default();
            for name in asked.split(',').map(|name| name.trim().trim_matches('"')) {
                assert!(installed.contains(name) && PACKAGES.contains(&name), "{}: {name}", path.display());
            }
        }
    }
}

/// The check of licences is left to a job of its own where cargo-deny is missing.
#[test]
fn the_forge_checks_licences() {
    let job = FORGE.split("\n  licences:\n").nth(1).expect("the forge has the job");
    assert!(job.contains("EmbarkStudios/cargo-deny-action"), "{job}");
}
