//! The documents compared with the tree: every environment variable is listed, every link leads to a file.
//!
//! Invariant: the test reads the tree itself, not a list. Must not know the documents' content.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below a folder whose names end in one of these.
fn files(dir: &Path, endings: &[&str], out: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(dir).expect("readable").map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            files(&path, endings, out);
        } else if path.extension().is_some_and(|e| endings.iter().any(|ending| e == *ending)) {
            out.push(path);
        }
    }
}

/// The variables that a text names.
fn variables(text: &str) -> BTreeSet<String> {
    const PREFIX: &str = "MASKLOOM_";
    let name = |(at, _)| {
        let rest: &str = &text[at..];
        let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c == '_')).unwrap_or(rest.len());
        rest[..end].trim_end_matches('_').to_string()
    };
    text.match_indices(PREFIX).map(name).filter(|name| name.len() > PREFIX.len()).collect()
}

#[test]
fn every_environment_variable_is_listed() {
    let mut paths = vec![root().join(".ci/run"), root().join(".ci/window"), root().join("build.rs")];
    for dir in ["src", "assets", "tests", "kernels"] {
        files(&root().join(dir), &["rs", "py", "cu", "cuh", "h"], &mut paths);
    }
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("UTF-8");
    let mut used: BTreeSet<String> =
        paths.iter().filter(|p| !p.ends_with(file!())).flat_map(|p| variables(&read(p))).collect();
    // no variables: an export puts the program's build and the runtime's hash in their places
    assert!(used.remove("MASKLOOM_VERSION") && used.remove("MASKLOOM_PACKAGE"));
    assert!(used.len() > 20, "the tree was read: {used:?}");
    let listed = variables(&read(&root().join("docs/environment.md")));
    assert_eq!(used, listed, "left: the tree; right: docs/environment.md");
}

#[test]
fn every_link_of_the_documents_leads_to_a_file() {
    let mut pages = Vec::new();
    files(&root().join("docs"), &["md"], &mut pages);
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
            .map(|page| root().join(page)),
    );
    let mut broken = Vec::new();
    for page in &pages {
        let text = std::fs::read_to_string(page).expect("UTF-8");
        let links = text.match_indices("](").chain(text.match_indices("src=\""));
        for (at, found) in links {
            let target = text[at + found.len()..].split([')', '#', '"']).next().unwrap_or_default();
            let outside = target.is_empty() || target.contains("://");
            if !outside && !page.parent().expect("a folder").join(target).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// A recipe that names a file which is gone sends a contributor into nothing.
#[test]
fn every_path_of_the_recipes_exists() {
    let mut named = 0;
    for page in ["CONTRIBUTING.md", "ARCHITECTURE.md"] {
        let text = std::fs::read_to_string(root().join(page)).expect("a page");
        for path in text.split('`').skip(1).step_by(2) {
            let starts = ["src/", "tests/", "docs/", "assets/", "presets/", "kernels/", ".ci/"];
            let one = path.split([' ', ':', ',']).next().unwrap_or_default();
            // a pattern such as NAME.py stands for many
            if !starts.iter().any(|s| one.starts_with(s)) || one.contains(['*', '{']) || one.contains("NAME") {
                continue;
            }
            named += 1;
            assert!(root().join(one.trim_end_matches('/')).exists(), "{page} names `{one}`, which is not there");
        }
    }
    assert!(named > 50, "{named} paths were found");
}

/// Recipes name files by the end of their paths, too.
#[test]
fn every_source_of_the_recipes_exists() {
    let mut all = Vec::new();
    for dir in ["src", "tests", "python", "fuzz", ".ci", "assets"] {
        files(&root().join(dir), &["rs", "py"], &mut all);
    }
    let is_there = |name: &str| all.iter().any(|path| path.ends_with(name));
    let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).expect("a page");
    let quoted = text.split('`').skip(1).step_by(2).flat_map(|words| words.split([' ', ':', '(']));
    let names: Vec<&str> = quoted
        .filter(|name| [".rs", ".py"].iter().any(|end| name.ends_with(end)) && !name.contains(['*', '{']))
        .filter(|name| !name.contains("NAME") && !name.starts_with("target/"))
        .collect();
    let gone: Vec<&&str> = names.iter().filter(|name| !is_there(name)).collect();
    assert!(names.len() > 40 && gone.is_empty(), "of {} files, not there: {gone:?}", names.len());
}

#[test]
fn the_map_of_the_kernels_has_each_of_their_files() {
    let map = std::fs::read_to_string(root().join("docs/kernels/README.md")).expect("a page");
    let mut kernels = Vec::new();
    files(&root().join("kernels"), &["cu", "cuh"], &mut kernels);
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let missing: Vec<String> = kernels.iter().map(name).filter(|name| !map.contains(&format!("`{name}`"))).collect();
    assert!(kernels.len() > 20 && missing.is_empty(), "docs/kernels/README.md lacks {missing:?}");
}

/// What it is, a moving picture, a chart, how to get it, three links: without scrolling far.
#[test]
fn the_readme_fits_one_screen() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("UTF-8");
    let (lines, words) = (text.lines().count(), text.split_whitespace().count());
    assert!(
        lines <= 50 && words <= 500,
        "{lines} lines, {words} words: move what is not for the first minute to docs/guide/scope.md"
    );
    let before = text.split("\n## ").next().expect("the first screen");
    let needed = [
        "images/stroke.gif",
        "images/means.svg",
        "cargo run --release",
        "cargo test\n",
        "pip install .",
        "(docs/SUMMARY.md)",
        "(docs/gallery/README.md)",
        "(docs/python.md)",
    ];
    for one in needed {
        assert!(before.contains(one), "the first screen has no {one}");
    }
}

#[test]
fn a_version_of_the_changelog_has_twenty_lines() {
    let text = std::fs::read_to_string(root().join("CHANGELOG.md")).expect("UTF-8");
    for version in text.split("\n## ").skip(1) {
        let lines = version.lines().filter(|line| line.starts_with("- ") || line.starts_with("  ")).count();
        let name = version.lines().next().unwrap_or_default();
        assert!((1..=20).contains(&lines), "{name}: {lines} lines");
    }
}
