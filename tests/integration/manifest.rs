//! Checks of the manifests: every dependency is used by the crate that names it, and a line of the workspace gives its purpose.
//!
//! Invariant: a dependency that only enables features of another has a line that says so. Must not know versions.

use std::path::Path;

const MANIFEST: &str = include_str!("../../Cargo.toml");

/// (name, the comment above it) of every dependency of the workspace.
fn dependencies() -> Vec<(String, String)> {
    let (mut found, mut inside, mut comment) = (Vec::new(), false, String::new());
    for line in MANIFEST.lines() {
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
        } else if let Some(text) = line.strip_prefix('#') {
            comment = if text.starts_with(" ---") { String::new() } else { text.trim().to_string() };
        } else if let (true, Some((name, _))) = (inside, line.split_once(" = ")) {
            found.push((name.to_string(), std::mem::take(&mut comment)));
        }
    }
    found
}

fn sources(dir: &Path, out: &mut String) {
    for entry in std::fs::read_dir(dir).expect("readable").map(|e| e.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, out);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(entry).expect("UTF-8");
            text.lines().filter(|l| !l.trim_start().starts_with("//")).for_each(|line| {
                out.push_str(line);
                out.push('\n');
            });
        }
    }
}

/// The names in a manifest's tables of dependencies, those of tests included.
fn named(manifest: &str) -> Vec<&str> {
    names_in(manifest, |_| true)
}

/// The names in the tables of a crate's own dependencies whose titles are wanted.
pub(crate) fn names_in(manifest: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]") && line != "[workspace.dependencies]" && is_wanted(line);
        } else if let (true, Some((name, _))) = (inside, line.split_once(" = ")) {
            names.push(name);
        }
    }
    names
}

/// Whether sources name a crate.
fn uses(text: &str, name: &str) -> bool {
    let name = name.replace('-', "_");
    [format!("{name}::"), format!("use {name} "), format!("use {name};")].iter().any(|word| text.contains(word))
}

/// The crates' folders with their manifests; the root package's own sources are `cli`, the two files beside it and the tests.
fn crates() -> Vec<(String, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = std::fs::read_dir(root.join("src")).expect("readable").map(|entry| entry.expect("entry").path());
    let of = |folder: std::path::PathBuf| {
        let mut text = String::new();
        sources(&folder, &mut text);
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        (folder.file_name().expect("a name").to_string_lossy().into_owned(), manifest, text)
    };
    let mut all: Vec<_> = folders.filter(|path| path.is_dir() && !path.ends_with("cli")).map(of).collect();
    let mut text = String::new();
    ["src/cli", "tests"].iter().for_each(|dir| sources(&root.join(dir), &mut text));
    ["lib", "main"].iter().for_each(|file| {
        text.push_str(&std::fs::read_to_string(root.join(format!("src/{file}.rs"))).expect("UTF-8"));
    });
    all.push((".".into(), MANIFEST.into(), text));
    all
}

#[test]
fn every_dependency_is_used_and_says_why() {
    let dependencies = dependencies();
    assert!(dependencies.len() > 40, "the manifest was read: {dependencies:?}");
    let why = |name: &str| dependencies.iter().find(|(other, _)| other == name).map_or("", |(_, why)| why.as_str());
    let silent: Vec<_> =
        dependencies.iter().filter(|(name, why)| why.is_empty() && !name.starts_with("maskloom-")).collect();
    assert!(silent.is_empty(), "no line says why: {silent:?}");
    let all = crates();
    let mut unused = Vec::new();
    for (own, manifest, text) in &all {
        let is_idle = |name: &&str| !uses(text, name) && !why(name).starts_with("Only for its features");
        unused.extend(named(manifest).into_iter().filter(is_idle).map(|name| format!("{own}: {name}")));
    }
    assert!(unused.is_empty(), "unused: {unused:?}");
    let is_named = |name: &str| all.iter().any(|(_, manifest, _)| named(manifest).contains(&name));
    let left: Vec<_> = dependencies.iter().filter(|(name, _)| !is_named(name)).collect();
    assert!(left.is_empty(), "no crate takes it: {left:?}");
}
