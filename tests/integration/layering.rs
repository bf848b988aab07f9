//! The module layering of ARCHITECTURE.md, read from the sources.

use std::path::{Path, PathBuf};

/// Left to right: a module imports only from those before it. `app` and `cli` stand side by side.
const LAYERS: [&str; 10] =
    ["base", "language", "analysis", "document", "problem", "export", "backends", "service", "app", "cli"];

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

/// Modules named after `crate::` in a line, `crate::{a::x, b::y}` included.
fn crate_modules(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("crate::") {
        let rest = &line[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push(std::mem::take(&mut word)),
                    c if depth == 0 => word.push(c),
                    _ => {}
                }
            }
            found.push(word);
        } else {
            found.push(rest.to_string());
        }
    }
    let first =
        |p: &String| p.trim().split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or("").to_string();
    found.iter().map(first).collect()
}

fn violations(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    rust_files(root, &mut files);
    let mut bad = Vec::new();
    for file in files {
        let relative = file.strip_prefix(root).expect("under src");
        let own = relative.iter().next().expect("a name").to_string_lossy().trim_end_matches(".rs").to_string();
        let Some(own_layer) = LAYERS.iter().position(|l| *l == own) else { continue };
        let text = std::fs::read_to_string(&file).expect("source is UTF-8");
        // a `use` may spread over lines: join them up to the semicolon
        let joined = text.replace('\n', " ");
        for module in crate_modules(&joined) {
            let Some(layer) = LAYERS.iter().position(|l| *l == module) else { continue };
            if layer > own_layer || (own == "cli" && module == "app") {
                bad.push(format!("{} ({own}) imports crate::{module}", relative.display()));
            }
        }
        bad.extend(forbidden_words(&own, relative, &text));
    }
    bad.sort();
    bad.dedup();
    bad
}

/// egui only in app; cudarc and libloading's GPU libraries only in backends/cuda; file I/O only where ARCHITECTURE.md says.
fn forbidden_words(own: &str, file: &Path, text: &str) -> Vec<String> {
    let mut bad = Vec::new();
    let code: String = text
        .split("#[cfg(test)]")
        .next()
        .unwrap_or("")
        .lines()
        .filter(|l| !l.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut check = |word: &str, allowed: bool| {
        if !allowed && code.contains(word) {
            bad.push(format!("{} uses {word}", file.display()));
        }
    };
    check("egui::", own == "app");
    check("cudarc::", file.starts_with("backends/cuda"));
    check("ruff_python", file.starts_with("language/syntax") || file == Path::new("language/syntax.rs"));
    // tests may read what they are about
    let is_test = file.iter().any(|part| part == "tests" || part.to_string_lossy().ends_with("tests.rs"));
    let io_allowed = is_test || ["app", "cli", "service"].contains(&own) || file == Path::new("backends/cuda/cache.rs");
    let looks_for_libraries = file.to_string_lossy().starts_with("backends/cuda/library");
    check("std::fs", io_allowed || file.starts_with("backends/torch") || looks_for_libraries);
    bad
}

#[test]
fn modules_import_only_from_their_left() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let bad = violations(&root);
    assert!(bad.is_empty(), "layering violated:\n{}", bad.join("\n"));
}

#[test]
fn the_check_sees_a_violation() {
    let dir = tempfile::tempdir().expect("temporary folder");
    std::fs::create_dir(dir.path().join("base")).expect("folder");
    let text = "use crate::{\n    language::graph,\n    base::Span,\n};\nfn f() { let _ = std::fs::read(\"x\"); }\n";
    std::fs::write(dir.path().join("base/bad.rs"), text).expect("written");
    let bad = violations(dir.path());
    assert_eq!(bad, ["base/bad.rs (base) imports crate::language", "base/bad.rs uses std::fs"]);
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
