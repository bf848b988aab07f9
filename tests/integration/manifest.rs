//! Checks of Cargo.toml: every dependency is used, and a line gives its purpose.
//!
//! Invariant: a dependency that only enables features of another has a line that says so. Must not know versions.

use std::path::Path;

const MANIFEST: &str = include_str!("../../Cargo.toml");

/// (name, the comment above it) of every dependency.
fn dependencies() -> Vec<(String, String)> {
    let (mut found, mut inside, mut comment) = (Vec::new(), false, String::new());
    for line in MANIFEST.lines() {
        if line.starts_with('[') {
            inside = line.contains("dependencies]");
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
            out.push_str(&std::fs::read_to_string(entry).expect("UTF-8"));
        }
    }
}

#[test]
fn every_dependency_is_used_and_says_why() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    ["src", "tests"].iter().for_each(|dir| sources(&root.join(dir), &mut text));
    let used = |name: &str| {
        let name = name.replace('-', "_");
        [format!("{name}::"), format!("use {name} "), format!("use {name};")].iter().any(|word| text.contains(word))
    };
    let dependencies = dependencies();
    assert!(dependencies.len() > 20, "the manifest was read: {dependencies:?}");
    let unused: Vec<_> =
        dependencies.iter().filter(|(name, why)| !used(name) && !why.starts_with("Only for its features")).collect();
    assert!(unused.is_empty(), "unused: {unused:?}");
    let silent: Vec<_> = dependencies.iter().filter(|(_, why)| why.is_empty()).collect();
    assert!(silent.is_empty(), "no line says why: {silent:?}");
}
