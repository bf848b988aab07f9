//! The structure of ARCHITECTURE.md, read from the sources and the crates' manifests: whole files, tests included.
//!
//! Invariant: Cargo is the table of layers; what Cargo cannot say is checked here: circles inside a crate, words, `unsafe`, lengths of
//! files. Must not know what modules do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Crates that stand in one crate's Cargo.toml alone, by how their names begin.
const ONLY_IN: [(&str, &str); 10] = [
    ("egui", "app"),
    ("eframe", "app"),
    ("winit", "app"),
    ("glutin", "app"),
    ("rfd", "app"),
    ("cudarc", "backends"),
    ("libloading", "backends"),
    ("ruff_", "python"),
    ("pyo3", "extension"),
    ("clap", "."),
];

/// Files that the program starts from: they may import everything.
const ROOTS: [&str; 2] = ["lib", "main"];

pub(crate) fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) {
    files_below(dir, &["rs"], out);
}

/// Files whose names end in one of these.
fn files_below(dir: &Path, endings: &[&str], out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("readable") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            files_below(&path, endings, out);
        } else if path.extension().is_some_and(|e| endings.iter().any(|ending| e == *ending)) {
            out.push(path);
        }
    }
}

/// A source file without its comments; strings stay, because no path of ours is in one.
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

/// Reads one path at the start of `text`, after `before`; returns the rest of the text.
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
            // `*`, or no path: one character further, so that every text ends
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
        let code = code(&file);
        bad.extend(forbidden_words(&own, relative, &code));
    }
    bad.sort();
    bad.dedup();
    bad
}

/// The code that carries out the window's actions runs on its thread, where nothing waits: errands read and write
/// files.
const ON_THE_WINDOWS_THREAD: [&str; 6] =
    ["app/act", "app/dialogs", "app/drafts", "app/editor", "app/panels", "app/tabs"];
/// Calls that wait for a disk.
const WAITS: [&str; 8] = [
    "std::fs",
    "fs::read",
    "fs::write",
    "File::open",
    "files::read(",
    "files::read_text(",
    "files::save(",
    "files::save_under(",
];

/// Calls of [`WAITS`] in a source of those folders, outside the closures of errands.
fn waits(file: &Path, code: &str) -> Vec<String> {
    if !ON_THE_WINDOWS_THREAD.iter().any(|folder| file.starts_with(folder)) || is_test(file) {
        return Vec::new();
    }
    let code = without_errands(without_tests(code));
    WAITS.iter().filter(|call| code.contains(*call)).map(|call| format!("{} waits: {call}", file.display())).collect()
}

/// A source without the closures that errands run on another thread: `errands.write(move || {...})`.
fn without_errands(code: &str) -> String {
    const BEGINS: &str = "errands.write(move || {";
    let (mut rest, mut out) = (code, String::new());
    while let Some(at) = rest.find(BEGINS) {
        out.push_str(&rest[..at]);
        let body = &rest[at + BEGINS.len()..];
        let mut depth = 1;
        let end = body.char_indices().find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth == 0
        });
        rest = end.map_or("", |(end, _)| &body[end + 1..]);
    }
    out + rest
}

#[test]
fn nothing_waits_for_a_disk_on_the_windows_thread() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let bad = files.iter().flat_map(|file| waits(file.strip_prefix(&root).expect("under src"), &code(file)));
    let bad: Vec<String> = bad.collect();
    assert!(bad.is_empty(), "{bad:#?}");
    // it sees one
    let seen = |text: &str| waits(Path::new("app/act/files.rs"), text).len();
    assert_eq!(seen("fn f() { std::fs::remove_file(p); }"), 1);
    assert_eq!(seen("fn f() { files::save(&p, b); errands.write(move || { if x { files::save_under(a) } }); }"), 1);
    assert_eq!(seen("fn f() { errands.write(move || { if x { files::save(&p, b) } }); g(); }"), 0);
    assert!(waits(Path::new("app/errands.rs"), "std::fs::read(p)").is_empty());
}

/// egui only in app; cudarc only in backends/cuda; the parser only in python/syntax; file access only in the files of
/// ARCHITECTURE.md; no clock in the code that defines a text's meaning.
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
    // a text means the same on every machine
    check("std::time", !["ir", "python"].contains(&own) || is_test(file));
    bad
}

/// Whether a file contains only tests: tests may read their subject.
fn is_test(file: &Path) -> bool {
    file.iter().any(|part| part == "tests" || part.to_string_lossy().ends_with("tests.rs"))
}

/// The places of ARCHITECTURE.md, "Modules with file access".
fn touches_files(own: &str, file: &Path) -> bool {
    const FILES: [&str; 4] = [
        "backends/cuda/toolchain/cache.rs",
        "backends/cuda/toolchain/library.rs",
        "backends/cuda/cudnn/library.rs",
        "backends/room.rs",
    ];
    ["app", "cli", "worker", "tasks", "testing"].contains(&own)
        || FILES.iter().any(|allowed| file == Path::new(allowed))
        || file.starts_with("backends/torch")
}

#[test]
fn what_one_part_alone_may_use_is_used_there_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let bad = violations(&root);
    assert!(bad.is_empty(), "layering violated:\n{}", bad.join("\n"));
}

#[test]
fn the_check_sees_a_violation_in_a_test_too() {
    let dir = tempfile::tempdir().expect("temporary folder");
    std::fs::create_dir_all(dir.path().join("base")).expect("folder");
    let text = "use crate::base::Span;\n#[cfg(test)]\nmod tests {\n    fn f() { let _ = (std::fs::read(\"x\"), egui::Id::NULL); }\n}\n";
    std::fs::write(dir.path().join("base/bad.rs"), text).expect("written");
    assert_eq!(violations(dir.path()), ["base/bad.rs uses egui::", "base/bad.rs uses std::fs"]);
}

/// What a crate depends on although [`ONLY_IN`] gives it to another.
fn strangers(own: &str, manifest: &str) -> Vec<String> {
    let is_of_another = |name: &str| ONLY_IN.iter().any(|(begin, of)| name.starts_with(begin) && *of != own);
    let window = |name: &str| name == "maskloom-app" && own != ".";
    let outside_of_tests = crate::manifest::names_in(manifest, |title| !title.contains("dev-"));
    outside_of_tests.into_iter().filter(|name| is_of_another(name) || window(name)).map(String::from).collect()
}

#[test]
fn no_crate_below_the_window_knows_it_and_none_but_backends_knows_the_driver() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = std::fs::read_dir(root.join("src")).expect("readable").map(|entry| entry.expect("entry").path());
    let crates: Vec<PathBuf> = folders.filter(|path| path.is_dir() && !path.ends_with("cli")).collect();
    assert!(crates.len() >= 14, "{crates:?}");
    for folder in crates {
        let own = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("every folder but cli is a crate");
        assert!(manifest.contains(&format!("name = \"maskloom-{own}\"")), "{own} is called otherwise");
        assert_eq!(strangers(&own, &manifest), Vec::<String>::new(), "{own}");
    }
    assert_eq!(strangers(".", include_str!("../../Cargo.toml")), Vec::<String>::new());
    // it sees them
    let wrong = "[dependencies]\nmaskloom-app = { workspace = true }\ncudarc = { workspace = true }\n[dev-dependencies]\nclap = \"1\"\n";
    assert_eq!(strangers("ir", wrong), ["maskloom-app", "cudarc"]);
}

/// Files named in ARCHITECTURE.md's table of `unsafe`.
fn unsafe_table() -> BTreeSet<String> {
    let page = include_str!("../../ARCHITECTURE.md");
    let table = page.split("## Files with `unsafe`").nth(1).expect("the page has the table");
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = ["rs", "cu", "cuh", "h", "py", "sh", "md"];
    ["src", "kernels", "assets", "tests", "docs"]
        .iter()
        .for_each(|dir| files_below(&root.join(dir), &sources, &mut files));
    assert!(files.iter().any(|f| f.ends_with("kernels/eager.cu")), "kernels are read too");
    // written by the program from the presets, a section for each
    files.retain(|file| !file.ends_with("docs/gallery/README.md"));
    let lines = |file: &PathBuf| std::fs::read_to_string(file).expect("UTF-8").lines().count();
    let long: Vec<_> = files.iter().map(|f| (f, lines(f))).filter(|(_, n)| *n > 600).collect();
    assert!(long.is_empty(), "{long:?}");
}

/// The module that a path leads to, as far as there are files: the rest of a path names items.
fn module_of(root: &Path, path: &[String]) -> Vec<String> {
    let mut at = PathBuf::new();
    let exists = |at: &Path| root.join(at).is_dir() || root.join(at).with_extension("rs").is_file();
    let mut found = Vec::new();
    for part in path {
        at.push(part);
        if !exists(&at) {
            break;
        }
        found.push(part.clone());
    }
    found
}

/// Source text without its inline tests; the text after `#[cfg(test)] mod name;` is read.
fn without_tests(code: &str) -> &str {
    let inline = |at: &usize| {
        let rest = code[*at..].trim_start_matches("#[cfg(test)]\nmod ");
        rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').starts_with(" {")
    };
    let first = code.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at).find(inline);
    &code[..first.unwrap_or(code.len())]
}

/// In each folder, which of its rooms (files and folders) import which others.
fn arrows(root: &Path) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut files = Vec::new();
    rust_files(root, &mut files);
    let mut arrows: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for file in files.iter().filter(|f| !is_test(f.strip_prefix(root).expect("under src"))) {
        let relative = file.strip_prefix(root).expect("under src").with_extension("");
        let names: Vec<String> = relative.iter().map(|p| p.to_string_lossy().into_owned()).collect();
        let module: Vec<String> = names.iter().filter(|p| *p != "mod" && *p != "lib").cloned().collect();
        if ROOTS.contains(&names[0].as_str()) {
            continue;
        }
        let code = code(file);
        let code = without_tests(&code).replace("$crate::", "crate::");
        for path in crate_paths(&code).into_iter().chain(super_paths(&code, &names)) {
            let to = module_of(root, &path);
            let shared = module.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (module.get(shared), to.get(shared)) {
                let folder = module[..shared].join("/");
                arrows.entry(folder).or_default().entry(a.clone()).or_default().insert(b.clone());
            }
        }
    }
    arrows
}

/// The rooms that lead back to themselves, in sets: of any length.
pub(crate) fn circles(arrows: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reached = |from: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(room) = next.pop() {
            for to in arrows.get(&room).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    next.push(to.clone());
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&String, BTreeSet<String>> = arrows.keys().map(|room| (room, reached(room))).collect();
    let both = |a: &String, b: &String| reach[a].contains(b) && reach.get(b).is_some_and(|of| of.contains(a));
    arrows
        .keys()
        .filter(|a| reach[a].contains(*a))
        .map(|a| arrows.keys().filter(|b| both(a, b)).cloned().collect())
        .collect()
}

/// Paths that begin with `super::`, as paths below the crate.
fn super_paths(code: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let bare: Vec<String> = module.iter().filter(|p| *p != "mod" && *p != "lib").cloned().collect();
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

/// Circles inside a folder, with what makes the thing itself recursive; a circle that is not named here is a fault.
/// Without rooms: whichever they are.
const RECURSIVE: &[(&str, &[&str], &str)] = &[
    ("python/library", &[], "functions of functions call any function; moves compute places, and computing moves"),
    ("python/machine", &[], "the grammar of Python is recursive"),
    ("python/symbolic", &["functions", "tensors"], "a row of the table reads dimensions as its other rows do"),
    ("python/syntax", &["convert", "convert_stmt"], "the grammar of Python is recursive"),
    ("python/trace", &["entry", "given"], "an argument may be a factory, which is run as the entry is"),
    ("tasks/conform", &[], "a case of gradients is a case of outputs with more to compare"),
];

#[test]
fn rooms_import_each_other_only_where_the_thing_is_recursive() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for (folder, arrows) in arrows(&root) {
        found.extend(circles(&arrows).into_iter().map(|rooms| (folder.clone(), rooms)));
    }
    let known = |(folder, rooms): &&(String, Vec<String>)| {
        RECURSIVE.iter().any(|(of, named, _)| of == folder && (named.is_empty() || rooms.iter().eq(named.iter())))
    };
    let new: Vec<_> = found.iter().filter(|circle| !known(circle)).collect();
    assert!(new.is_empty(), "rooms import each other: {new:#?}");
    let is_gone = |(of, named, _): &&(&str, &[&str], &str)| {
        !found.iter().any(|(folder, rooms)| folder == of && (named.is_empty() || rooms.iter().eq(named.iter())))
    };
    let gone: Vec<_> = RECURSIVE.iter().filter(is_gone).collect();
    assert!(gone.is_empty(), "the table names circles that are gone: {gone:#?}");
}

/// Pairs of neighbouring folders that import each other, over any number of others.
fn circles_of_folders(root: &Path) -> Vec<String> {
    let mut folders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut files = Vec::new();
    rust_files(root, &mut files);
    let folder_of = |module: &[String]| -> Option<String> {
        let is_folder = |n: &usize| root.join(module[..*n].iter().collect::<PathBuf>()).is_dir();
        (1..=module.len()).rev().find(is_folder).map(|n| module[..n].join("/"))
    };
    let within = |a: &str, b: &str| Path::new(a).starts_with(b) || Path::new(b).starts_with(a);
    for file in files.iter().filter(|f| !is_test(f.strip_prefix(root).expect("under src"))) {
        let relative = file.strip_prefix(root).expect("under src").with_extension("");
        let names: Vec<String> = relative.iter().map(|p| p.to_string_lossy().into_owned()).collect();
        let code = code(file);
        let code = without_tests(&code).replace("$crate::", "crate::");
        let module: Vec<String> = names.iter().filter(|p| *p != "mod" && *p != "lib").cloned().collect();
        let Some(from) = folder_of(&module) else { continue };
        for path in crate_paths(&code).into_iter().chain(super_paths(&code, &names)) {
            if let Some(to) = folder_of(&module_of(root, &path)).filter(|to| !within(to, &from)) {
                folders.entry(from.clone()).or_default().insert(to);
            }
        }
    }
    circles(&folders).into_iter().map(|rooms| rooms.join(" <-> ")).collect()
}

#[test]
fn no_folders_import_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let found = circles_of_folders(&root);
    assert!(found.is_empty(), "folders import each other:\n{}", found.join("\n"));
}

#[test]
fn a_circle_of_three_folders_is_seen_also_behind_a_module_of_tests() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let text = |to: &str| {
        format!(
            "#[cfg(test)]\nmod far_tests;\nuse crate::app::{to}::x;\n#[cfg(test)]\nmod tests {{\n    use crate::cli::y;\n}}\n"
        )
    };
    for (own, to) in [("act", "dialogs"), ("dialogs", "panels"), ("panels", "act")] {
        std::fs::create_dir_all(dir.path().join("app").join(own)).expect("folder");
        std::fs::write(dir.path().join("app").join(own).join("mod.rs"), text(to)).expect("written");
    }
    assert_eq!(circles_of_folders(dir.path()), ["app/act <-> app/dialogs <-> app/panels"]);
    let rooms: Vec<String> = ["act", "dialogs", "panels"].map(String::from).to_vec();
    assert_eq!(circles(&arrows(dir.path())["app"]), [rooms].into());
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

/// Fields with paths that serde is left alone with, in types that it writes.
fn paths_as_serde_writes_them(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut serialized, mut inside, mut before) = (false, false, "");
    for line in code.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("#[derive(") {
            serialized = trimmed.contains("Serialize");
        } else if ["struct ", "enum "]
            .iter()
            .any(|kind| line.trim_start_matches("pub(crate) ").trim_start_matches("pub ").starts_with(kind))
        {
            (inside, serialized) = (serialized && !line.ends_with(';'), false);
        } else if line == "}" {
            inside = false;
        }
        let is_kept = before.contains("kept_path") || before.contains("serde(skip)");
        if inside && trimmed.contains("PathBuf") && !trimmed.starts_with("#[") && !is_kept {
            found.push(trimmed);
        }
        before = trimmed;
    }
    found
}

/// serde refuses a path that is no text, and the whole object with it: a list of open documents, the window's settings.
#[test]
fn a_path_that_is_kept_may_have_any_name() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"));
    let seen = paths_as_serde_writes_them(
        "#[derive(Debug, Serialize)]\npub(crate) struct A {\n    a: u8,\n    b: Option<PathBuf>,\n}\n#[derive(Debug)]\nstruct B {\n    \
         c: PathBuf,\n}\n#[derive(Serialize)]\nenum C {\n    D {\n        #[serde(with = \"base::kept_path\")]\n        e: PathBuf,\n    },\n    \
         F(PathBuf),\n}\n",
    );
    assert_eq!(seen, ["b: Option<PathBuf>,", "F(PathBuf),"]);
    let mut files = Vec::new();
    rust_files(&tree.join("src"), &mut files);
    let mut strays = Vec::new();
    for file in files.iter().filter(|file| !file.ends_with("base/kept_path.rs")) {
        strays.extend(
            paths_as_serde_writes_them(&code(file)).into_iter().map(|line| format!("{}: {line}", file.display())),
        );
    }
    assert!(strays.is_empty(), "use #[serde(with = \"crate::base::kept_path\")]:\n{}", strays.join("\n"));
}

/// What a reader is told of where numbers come from has one home.
const SOURCES: [&str; 9] = [
    "random q and k",
    "not measured here",
    "q and k of {",
    "one pixel is",
    "\"shares are exact\"",
    "before the last change",
    "Made by ",
    "recorded on {",
    "measured on {",
];

#[test]
fn the_words_for_where_numbers_come_from_stand_in_one_file() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    rust_files(&tree.join("src"), &mut files);
    files_below(&tree.join("python/maskloom"), &["py"], &mut files);
    let mut home = 0;
    let mut strays = Vec::new();
    for file in files {
        let own = file.strip_prefix(tree).expect("below the tree");
        let text = code(&file);
        let text = if is_test(own) { "" } else { without_tests(&text) };
        let said = SOURCES.iter().filter(|words| text.contains(**words));
        match own == Path::new("src/base/provenance.rs") {
            true => home += said.count(),
            false => strays.extend(said.map(|words| format!("{}: {words}", own.display()))),
        }
    }
    assert!(strays.is_empty(), "use base::Provenance:\n{}", strays.join("\n"));
    assert_eq!(home, SOURCES.len(), "the list no longer knows its words");
}
