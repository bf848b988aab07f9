//! The list of an export's files, with the hash of each and the build that made them.
//!
//! Invariant: it is the last file of an export, and equal for equal files; it has no date. Must not know folders.

use crate::base::{ExportFile, ExportKind, identity};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The end of its name.
const ENDING: &str = "_manifest.json";

/// The manifest of these files, as `STEM_manifest.json`.
pub(super) fn manifest(stem: &str, design: &str, problem: &str, all: &[ExportFile]) -> ExportFile {
    let file = |f: &ExportFile| json!({ "name": f.name, "bytes": f.bytes.len(), "sha256": sha256(&f.bytes) });
    let files: Vec<Value> = all.iter().map(file).collect();
    let text = json!({ "maskloom": identity::build(), "design": design, "problem": problem, "files": files });
    ExportFile::new(
        ExportKind::Manifest,
        format!("{stem}{ENDING}"),
        format!("{text:#}\n"),
        "every file of the export with its SHA-256, and the build of Maskloom that made them",
    )
}

/// Files of an export that a user chose: their manifest lists no others.
pub fn only(chosen: &mut [ExportFile]) {
    let names: Vec<String> = chosen.iter().map(|f| f.name.clone()).collect();
    let Some(last) = chosen.last_mut().filter(|f| f.name.ends_with(ENDING)) else { return };
    let Ok(mut text) = serde_json::from_slice::<Value>(&last.bytes) else { return };
    if let Some(files) = text["files"].as_array_mut() {
        files.retain(|file| names.iter().any(|name| file["name"] == name.as_str()));
        last.bytes = format!("{text:#}\n").into_bytes();
    }
}

/// In hexadecimal digits, as `sha256sum` prints it.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_sha256sum() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let made = manifest("mine", "Mine", "f00", &[ExportFile::new(ExportKind::Module, "a/b.py", "abc", "")]);
        let read: Value = serde_json::from_slice(&made.bytes).expect("JSON");
        assert_eq!(made.name, "mine_manifest.json");
        assert_eq!(read["files"][0]["name"], "a/b.py");
        assert_eq!(read["files"][0]["sha256"], sha256(b"abc"));
        assert_eq!(read["maskloom"]["version"], identity::build().version);
    }

    #[test]
    fn a_part_of_an_export_has_a_manifest_of_this_part() {
        let all =
            ["config.json", "mask.py", "mask.png"].map(|name| ExportFile::new(ExportKind::Module, name, name, ""));
        let mut chosen = vec![all[1].clone(), manifest("mask", "Mask", "f00", &all)];
        only(&mut chosen);
        let alone = manifest("mask", "Mask", "f00", &all[1..2]);
        assert_eq!(chosen, [all[1].clone(), alone]);
    }
}
