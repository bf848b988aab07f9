//! Golden texts in the files next to this one: emitted CUDA, diagnostics, tables of the terminal.
//!
//! Invariant: a text that differs fails with its first differing line; `MASKLOOM_BLESS=1 cargo test --lib golden`
//! writes the files again. Must not know the texts' meaning.

use std::path::PathBuf;

fn folder() -> PathBuf {
    crate::repository().join("tests/golden")
}

fn blesses() -> bool {
    std::env::var_os("MASKLOOM_BLESS").is_some_and(|value| !value.is_empty())
}

/// Panics unless `found` is what the file of that name holds.
#[track_caller]
pub fn check(name: &str, found: &str) {
    let path = folder().join(name);
    if blesses() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        std::fs::write(&path, found).expect("the golden file is written");
        return;
    }
    let held = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    if held == found {
        return;
    }
    let same = held.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(the end)").to_string();
    panic!(
        "tests/golden/{name} differs from line {} on:\n  held:  {}\n  found: {}\nMASKLOOM_BLESS=1 cargo test --lib golden writes it anew",
        same + 1,
        line(&held),
        line(found)
    );
}

/// Panics unless the folder holds these files and no others.
#[track_caller]
pub fn only(below: &str, names: &[String]) {
    let mut held: Vec<String> = std::fs::read_dir(folder().join(below))
        .expect("the golden files are there")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let mut names = names.to_vec();
    held.sort();
    names.sort();
    assert_eq!(held, names, "files of tests/golden/{below}");
}
