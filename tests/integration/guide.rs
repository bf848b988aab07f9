//! The user's guide compared with the program: its commands run, the pages are listed, the formats' keys are named. All of docs/ is one
//! book, whose order is docs/SUMMARY.md; `.ci/book` builds it.
//!
//! Invariant: a block that begins with three backticks and `sh run` is carried out line by line in a folder of its own, after the page's
//! `file=` blocks were written into it; of other blocks the flags must exist. Must not know what the commands print.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

fn guide() -> PathBuf {
    docs().join("guide")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// Pages of the book in its order, as paths in docs/.
fn book() -> Vec<String> {
    let summary = read(&docs().join("SUMMARY.md"));
    let page =
        |line: &str| Some(line.trim_start().strip_prefix("- [")?.split("](").nth(1)?.strip_suffix(')')?.to_string());
    summary.lines().filter_map(page).collect()
}

/// English pages of the guide in the order of the book, as names in docs/guide.
fn listed() -> Vec<String> {
    let name = |page: &String| page.strip_prefix("guide/").filter(|name| !name.contains('/')).map(str::to_string);
    book().iter().filter_map(name).collect()
}

/// Pages of this folder and of those in it, as paths in docs/.
fn pages_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    let pages = entries.flat_map(|path| match path.is_dir() {
        true => pages_in(&path),
        false => path.strip_prefix(docs()).map(|page| vec![page.to_string_lossy().into_owned()]).expect("inside"),
    });
    pages.filter(|page| page.ends_with(".md") && page != "SUMMARY.md").collect()
}

/// The fenced blocks of a page: words after the backticks, text without its indentation.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let indent = line.len() - line.trim_start().len();
        let inside = lines.by_ref().take_while(|line| line.trim_start() != "```");
        let text: Vec<&str> = inside.map(|line| line.get(indent..).unwrap_or_default()).collect();
        found.push((info.to_string(), text.join("\n") + "\n"));
    }
    found
}

/// A line of a page in the shell, with this program first on the PATH.
fn shell(folder: &Path, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_maskloom"));
    let own = program.parent().expect("a folder").to_path_buf();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&others))).expect("a PATH");
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder).stdin(Stdio::null()).env("PATH", path);
    for gone in ["DISPLAY", "WAYLAND_DISPLAY", "MASKLOOM_PRESETS", "MASKLOOM_PATTERNS"] {
        command.env_remove(gone);
    }
    command.env("MASKLOOM_CACHE", folder.join("cache")).output().expect("sh starts")
}

/// Carries a page out; gives the number of commands that ran.
fn carried_out(name: &str) -> usize {
    let page = read(&guide().join(name));
    let folder = tempfile::tempdir().expect("a folder");
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/captures/lm.safetensors");
    std::fs::copy(capture, folder.path().join("lm.safetensors")).expect("copied");
    let mut ran = 0;
    for (info, text) in blocks(&page) {
        if let Some(file) = info.split("file=").nth(1) {
            std::fs::write(folder.path().join(file), &text).expect("written");
        }
        let is_run = info == "sh run";
        if info != "sh" && !is_run {
            continue;
        }
        for line in text.lines() {
            let is_ours = line.starts_with("maskloom ");
            assert!(is_ours || !is_run, "{name}: only commands of ours are marked run: {line}");
            if !is_ours {
                continue;
            }
            // without the mark it needs a card or other programs, and only its flags are read
            let line = if is_run { line.to_string() } else { format!("{line} --help") };
            let done = shell(folder.path(), &line);
            let reported = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{name}: {line}\n{}\n{reported}", String::from_utf8_lossy(&done.stdout));
            ran += usize::from(is_run);
        }
    }
    ran
}

#[test]
fn every_command_of_the_guide_runs() {
    let pages = listed();
    assert!(pages.len() > 9, "SUMMARY.md was read: {pages:?}");
    // two at a time: small machines have two processors
    let ran: usize = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| pages.iter().skip(half).step_by(2));
        let threads = halves.map(|half| scope.spawn(move || half.map(|page| carried_out(page)).sum::<usize>()));
        threads.into_iter().map(|thread| thread.join().expect("its assertions hold")).sum()
    });
    assert!(ran > 25, "{ran} commands ran");
}

#[test]
fn every_page_is_in_the_book_once() {
    let (mut listed, mut pages) = (book(), pages_in(&docs()));
    listed.sort();
    pages.sort();
    assert_eq!(listed, pages, "left: SUMMARY.md, right: the folder");
}

/// What a page leads to within the tree: where it stands, and the path.
fn links(page: &str) -> Vec<PathBuf> {
    let folder = docs().join(page).parent().expect("a folder").to_path_buf();
    let text = read(&docs().join(page));
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    let own = targets.filter(|target| !target.is_empty() && !target.contains(':'));
    own.map(|target| folder.join(target)).collect()
}

#[test]
fn no_link_of_the_book_leaves_it() {
    let docs = docs().canonicalize().expect("there");
    let mut seen = 0;
    for page in book() {
        for target in links(&page) {
            let whole = target.canonicalize().unwrap_or_else(|why| panic!("{page}: {}: {why}", target.display()));
            assert!(whole.starts_with(&docs), "{page} leads to {}, which the book has not", target.display());
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen} links were read");
}

/// Pages in other languages, as names in docs/guide: listed below the page that they say again.
fn translated() -> Vec<String> {
    let name = |page: &String| page.strip_prefix("guide/").filter(|name| name.contains('/')).map(str::to_string);
    book().iter().filter_map(name).collect()
}

/// Their commands are those of the English page, which run; their rows are as many, or more for what a language needs.
#[test]
fn pages_in_other_languages_have_the_same_commands_and_name_each_other() {
    let pages = translated();
    assert_eq!(pages, ["zh", "es", "hi"].map(|code| format!("{code}/troubleshooting.md")));
    let english = read(&guide().join("troubleshooting.md"));
    let rows = |page: &str| page.lines().filter(|line| line.starts_with("| ")).count();
    for name in &pages {
        let page = read(&guide().join(name));
        assert_eq!(blocks(&page), blocks(&english), "{name}");
        assert!((rows(&english)..rows(&english) + 2).contains(&rows(&page)), "{name}");
        assert!(english.contains(&format!("]({name})")) && page.contains("](../troubleshooting.md)"), "{name}");
        for other in pages.iter().filter(|other| *other != name) {
            assert!(page.contains(&format!("](../{other})")), "{name} does not lead to {other}");
        }
    }
}

#[test]
fn the_formats_page_names_every_key_of_the_schema() {
    let page = read(&guide().join("formats.md"));
    let schema = shell(&guide(), "maskloom schema --json").stdout;
    let schema: serde_json::Value = serde_json::from_slice(&schema).expect("JSON");
    let top = &schema["properties"];
    let keys = |of: &serde_json::Value| of.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    let mut wanted = [keys(top), keys(&top["settings"]["properties"])].concat();
    for list in ["layers", "scores"] {
        let item = &top[list]["items"]["properties"];
        wanted.extend(keys(item));
        for kind in item["content"]["oneOf"].as_array().expect("kinds") {
            wanted.extend(keys(&kind["properties"]));
            wanted.push(kind["properties"]["kind"]["const"].as_str().expect("a kind").to_string());
        }
    }
    let ways = top["layers"]["items"]["properties"]["combine"]["oneOf"].as_array().expect("ways to combine");
    wanted.extend(ways.iter().map(|way| way["const"].as_str().expect("a way").to_string()));
    let missing: Vec<_> = wanted.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(wanted.len() > 40 && missing.is_empty(), "{missing:?}");
}

#[test]
fn every_command_is_named_in_the_book() {
    let pages: String = book().iter().map(|page| read(&docs().join(page))).collect();
    let commands = crate::cli::commands();
    let missing: Vec<_> = commands.iter().filter(|name| !pages.contains(&format!("maskloom {name}"))).collect();
    assert!(missing.is_empty(), "no page of the book names {missing:?}");
}
