//! The module layering of ARCHITECTURE.md, read from the sources: whole files, tests included.
//!
//! Invariant: the check fails on an import that the table below does not name. Must not know what modules do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Each top-level module and those that it may import. The engine is `base` to `quality`; the front is `python` and `document`.
const MAY_IMPORT: [(&str, &[&str]); 13] = [
    ("base", &[]),
    ("ir", &["base"]),
    ("analysis", &["base", "ir"]),
    ("problem", &["base", "ir", "analysis"]),
    ("backends", &["base", "ir", "analysis", "problem"]),
    ("quality", &["base", "ir", "analysis", "problem", "backends"]),
    ("python", &["base", "ir"]),
    ("document", &["base", "ir", "analysis", "problem", "python"]),
    ("trainers", &["base", "ir", "analysis", "problem", "python", "document"]),
    ("export", &["base", "ir", "analysis", "problem", "backends", "quality", "python", "document", "trainers"]),
    (
        "service",
        &["base", "ir", "analysis", "problem", "backends", "quality", "python", "document", "trainers", "export"],
    ),
    (
        "app",
        &[
            "base", "ir", "analysis", "problem", "backends", "quality", "python", "document", "trainers", "export",
            "service",
        ],
    ),
    (
        "cli",
        &[
            "base", "ir", "analysis", "problem", "backends", "quality", "python", "document", "trainers", "export",
            "service",
        ],
    ),
];

/// Files that the program starts from: they may import everything.
const ROOTS: [&str; 2] = ["lib", "main"];

fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("src is readable") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// A source file without its comments; strings stay, because no path of ours stands in one.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("source is UTF-8");
    text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The paths below `crate::`, groups opened: `crate::{a::x, b::{y, z}}` gives `a::x`, `b::y`, `b::z`.
fn crate_paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        open_group(&code[at + "crate::".len()..], &mut Vec::new(), &mut found);
    }
    found
}

/// Reads one path at the start of `text`, behind `before`; gives what is left of the text.
fn open_group<'a>(text: &'a str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let mut rest = text.trim_start();
    let depth = before.len();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            rest = group.trim_start();
            while !rest.is_empty() && !rest.starts_with('}') {
                rest = open_group(rest, before, found).trim_start();
                rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
            }
            rest = rest.strip_prefix('}').unwrap_or(rest);
            break;
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if end == 0 {
            // `*`, or what is no path: one character further, so that every text comes to an end
            found.push(before.clone());
            rest = rest.get(1..).unwrap_or("");
            break;
        }
        before.push(rest[..end].to_string());
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(further) => rest = further.trim_start(),
            None => {
                found.push(before.clone());
                break;
            }
        }
    }
    before.truncate(depth);
    // `as name`
    let skipped = rest.trim_start();
    match skipped.strip_prefix("as ") {
        Some(named) => named.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_' || c == ' '),
        None => rest,
    }
}

fn own_module(relative: &Path) -> String {
    relative.iter().next().expect("a name").to_string_lossy().trim_end_matches(".rs").to_string()
}

fn violations(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    rust_files(root, &mut files);
    let mut bad = Vec::new();
    for file in files {
        let relative = file.strip_prefix(root).expect("under src");
        let own = own_module(relative);
        if ROOTS.contains(&own.as_str()) {
            continue;
        }
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == own) else {
            bad.push(format!("{} stands in no layer", relative.display()));
            continue;
        };
        let code = code(&file);
        for path in crate_paths(&code) {
            let known = MAY_IMPORT.iter().any(|(name, _)| *name == path[0]);
            if known && path[0] != own && !allowed.contains(&path[0].as_str()) {
                bad.push(format!("{} ({own}) imports crate::{}", relative.display(), path[0]));
            }
        }
        bad.extend(forbidden_words(&own, relative, &code));
    }
    bad.sort();
    bad.dedup();
    bad
}

/// egui only in app; cudarc only in backends/cuda; the parser only in python/syntax; file access only where ARCHITECTURE.md says.
fn forbidden_words(own: &str, file: &Path, code: &str) -> Vec<String> {
    let mut bad = Vec::new();
    let mut check = |word: &str, allowed: bool| {
        if !allowed && code.contains(word) {
            bad.push(format!("{} uses {word}", file.display()));
        }
    };
    check("egui::", own == "app");
    check("cudarc::", file.starts_with("backends/cuda"));
    check("ruff_python", file.starts_with("python/syntax"));
    check("std::fs", touches_files(own, file) || is_test(file));
    bad
}

/// Whether a file holds nothing but tests: tests may read what they are about.
fn is_test(file: &Path) -> bool {
    file.iter().any(|part| part == "tests" || part.to_string_lossy().ends_with("tests.rs"))
}

/// The places of ARCHITECTURE.md, "Where files are touched".
fn touches_files(own: &str, file: &Path) -> bool {
    const FILES: [&str; 3] =
        ["backends/cuda/toolchain/cache.rs", "backends/cuda/toolchain/library.rs", "backends/cuda/cudnn/library.rs"];
    ["app", "cli", "service"].contains(&own)
        || FILES.iter().any(|allowed| file == Path::new(allowed))
        || file.starts_with("backends/torch")
}

#[test]
fn modules_import_only_what_the_table_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let bad = violations(&root);
    assert!(bad.is_empty(), "layering violated:\n{}", bad.join("\n"));
}

#[test]
fn the_check_sees_a_violation_in_a_test_too() {
    let dir = tempfile::tempdir().expect("temporary folder");
    std::fs::create_dir_all(dir.path().join("base")).expect("folder");
    std::fs::create_dir_all(dir.path().join("new")).expect("folder");
    let text = "use crate::{\n    base::Span,\n    ir::{graph, cell},\n};\n#[cfg(test)]\nmod tests {\n    use crate::document::model;\n    \
                fn f() { let _ = std::fs::read(\"x\"); }\n}\n";
    std::fs::write(dir.path().join("base/bad.rs"), text).expect("written");
    std::fs::write(dir.path().join("new/mod.rs"), "").expect("written");
    let bad = violations(dir.path());
    let want = [
        "base/bad.rs (base) imports crate::document",
        "base/bad.rs (base) imports crate::ir",
        "base/bad.rs uses std::fs",
        "new/mod.rs stands in no layer",
    ];
    assert_eq!(bad, want);
}

/// Files named in ARCHITECTURE.md's table of `unsafe`.
fn unsafe_table() -> BTreeSet<String> {
    let page = include_str!("../../ARCHITECTURE.md");
    let table = page.split("## Where `unsafe` stands").nth(1).expect("the page has the table");
    let row = |line: &str| line.strip_prefix("| `").and_then(|l| l.split('`').next()).map(String::from);
    table.lines().filter_map(row).collect()
}

#[test]
fn unsafe_stands_where_the_architecture_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let with_unsafe = |file: &&PathBuf| {
        let code = code(file);
        ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"].iter().any(|word| code.contains(word))
    };
    let name = |file: &PathBuf| file.strip_prefix(&root).expect("under src").to_string_lossy().replace('\\', "/");
    let found: BTreeSet<String> = files.iter().filter(with_unsafe).map(name).collect();
    assert_eq!(found, unsafe_table());
}

#[test]
fn no_source_file_is_longer_than_600_lines() {
    let mut files = Vec::new();
    rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let lines = |file: &PathBuf| std::fs::read_to_string(file).expect("UTF-8").lines().count();
    let long: Vec<_> = files.iter().map(|f| (f, lines(f))).filter(|(_, n)| *n > 600).collect();
    assert!(long.is_empty(), "{long:?}");
}

/// The folder of a module's path: `ir::passes::lift` lies in `ir/passes`. Found by what exists, because a path goes on into items.
fn folder_of(root: &Path, path: &[String]) -> Option<String> {
    let mut at = PathBuf::new();
    for part in path {
        if root.join(&at).join(part).is_dir() {
            at.push(part);
        } else {
            break;
        }
    }
    (!at.as_os_str().is_empty()).then(|| at.to_string_lossy().into_owned())
}

/// Pairs of folders of which neither lies in the other and each imports the other.
fn circles(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    rust_files(root, &mut files);
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|f| !is_test(f)) {
        let relative = file.strip_prefix(root).expect("under src");
        let module: Vec<String> =
            relative.with_extension("").iter().map(|p| p.to_string_lossy().into_owned()).collect();
        let Some(from) = folder_of(root, &module) else { continue };
        let code = code(file);
        let code = code.split("#[cfg(test)]\nmod ").next().unwrap_or("").replace("$crate::", "crate::");
        for path in crate_paths(&code).into_iter().chain(super_paths(&code, &module)) {
            if let Some(to) = folder_of(root, &path)
                && !Path::new(&to).starts_with(&from)
                && !Path::new(&from).starts_with(&to)
            {
                arrows.entry(from.clone()).or_default().insert(to);
            }
        }
    }
    let both = |a: &String, b: &String| arrows.get(b).is_some_and(|of| of.contains(a));
    let pairs = arrows.iter().flat_map(|(a, of)| of.iter().filter(move |b| a < *b).map(move |b| (a, b)));
    pairs.filter(|(a, b)| both(a, b)).map(|(a, b)| format!("{a} <-> {b}")).collect()
}

/// Paths that begin with `super::`, as paths below the crate.
fn super_paths(code: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let bare: Vec<String> = module.iter().filter(|p| *p != "mod").cloned().collect();
    for (at, _) in code.match_indices("super::") {
        if code[..at].ends_with("::") {
            continue;
        }
        let mut rest = &code[at..];
        let mut here = bare.clone();
        while let Some(further) = rest.strip_prefix("super::") {
            here.pop();
            rest = further;
        }
        let mut paths = Vec::new();
        open_group(rest, &mut Vec::new(), &mut paths);
        found.extend(paths.into_iter().map(|path| here.iter().cloned().chain(path).collect()));
    }
    found
}

#[test]
fn no_two_folders_import_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let found: Vec<String> = circles(&root);
    assert!(found.is_empty(), "folders import each other:\n{}", found.join("\n"));
}

#[test]
fn every_file_says_what_it_owns() {
    let mut files = Vec::new();
    rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let silent: Vec<_> =
        files.iter().filter(|f| !std::fs::read_to_string(f).expect("UTF-8").starts_with("//!")).collect();
    assert!(silent.is_empty(), "files without an opening //! line: {silent:?}");
}

#[test]
fn no_wgpu_in_the_lock_file() {
    let lock = include_str!("../../Cargo.lock");
    assert!(!lock.contains("name = \"wgpu"), "wgpu is in Cargo.lock");
}
