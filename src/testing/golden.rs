//! Golden texts in `tests/golden`: emitted CUDA, diagnostics, tables of the terminal.
//!
//! Invariant: a text that differs fails and its difference is shown; `UPDATE_EXPECT=1 cargo test --lib golden` writes the files
//! again. Must not know the texts' meaning.

use expect_test::expect_file;
use std::path::PathBuf;

fn folder() -> PathBuf {
    crate::repository().join("tests/golden")
}

/// Panics unless `found` is what the file of that name holds.
pub fn check(name: &str, found: &str) {
    expect_file![folder().join(name)].assert_eq(found);
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
