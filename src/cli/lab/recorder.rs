//! `maskloom recorder`: writes the script that captures q, k and v of a running model.
//!
//! Invariant: nothing that is there is replaced unasked. Must not know what is captured.

use crate::base::Diagnostic;
use crate::cli::out::{self, Failure};
use crate::cli::table;
use crate::export::{ExportFile, RECORDER, recorder};
use crate::tasks::lab::sample_file;
use crate::tasks::placing;
use crate::worker::files;
use serde_json::json;
use std::path::PathBuf;

/// Write the script that captures q, k and v of a running model
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for maskloom_capture.py and the package that it imports
    #[arg(long, alias = "out", value_name = "DIR", default_value = ".")]
    to: PathBuf,
    /// Write a small capture to try the mask lab with instead: lm.safetensors
    #[arg(long)]
    sample: bool,
    /// Replace files that are there
    #[arg(long)]
    force: bool,
    /// One JSON object instead of lines
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn write(args: &Args) -> Result<(), Failure> {
    let made = if args.sample { vec![sample_file()] } else { recorder() };
    // an identical existing file is not in the way
    let other = |path: &PathBuf, bytes: &[u8]| path.exists() && !files::read(path).is_ok_and(|there| there == bytes);
    let there = made.iter().map(|file| (args.to.join(&file.name), file)).find(|(path, file)| other(path, &file.bytes));
    if let Some((path, _)) = there.filter(|_| !args.force) {
        let message = format!("there already, and not the same: {}; nothing was written", path.display());
        return Err(Diagnostic::error("recorder-exists", message)
            .hint("--force replaces it; --to names another")
            .into());
    }
    placing::place(&args.to, &made)?;
    if args.sample {
        return told(args, &made[0]);
    }
    let script = args.to.join(RECORDER);
    if args.json {
        let names: Vec<&str> = made.iter().map(|file| file.name.as_str()).collect();
        return out::json(&json!({ "script": out::path(&script), "files": names }));
    }
    let figures = [("n", made.len().to_string().into()), ("folder", out::path(&args.to).into())];
    let next = format!("python {} --out qkv.safetensors your_script.py", script.display());
    let next = out::line("recorder-next", &[("command", next.into())]);
    out::text(&(out::line("recorder-files", &figures) + &next))
}

/// Where the sample is.
fn told(args: &Args, made: &ExportFile) -> Result<(), Failure> {
    let path = args.to.join(&made.name);
    if args.json {
        return out::json(&json!({ "capture": out::path(&path) }));
    }
    let (path, size) = (path.display(), table::bytes(made.bytes.len() as u64));
    let next = out::line("recorder-next", &[("command", format!("maskloom atlas {path}").into())]);
    out::text(&format!("{path}  {size}  {}\n{next}", out::words().phrase(&made.what)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(to: &std::path::Path, force: bool) -> Args {
        Args { to: to.to_path_buf(), sample: false, force, json: true }
    }

    #[test]
    fn every_file_of_the_package_is_written_and_nothing_else_is_replaced_unasked() {
        let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/python/maskloom_capturing");
        let there = std::fs::read_dir(package).expect("a folder").map(|entry| entry.expect("an entry").path());
        let there: Vec<_> = there.filter(|path| path.extension().is_some_and(|e| e == "py")).collect();
        let home = tempfile::tempdir().expect("a folder");
        assert!(write(&args(home.path(), false)).is_ok());
        for path in &there {
            let copy = home.path().join("maskloom_capturing").join(path.file_name().expect("a name"));
            assert_eq!(std::fs::read(copy).expect("is written"), std::fs::read(path).expect("is there"));
        }
        assert_eq!(recorder().len(), there.len() + 1);
        // the same again is in nobody's way, a changed file is
        assert!(write(&args(home.path(), false)).is_ok());
        std::fs::write(home.path().join(RECORDER), "mine").expect("is written");
        assert!(write(&args(home.path(), false)).is_err());
        assert_eq!(std::fs::read_to_string(home.path().join(RECORDER)).expect("is there"), "mine");
        assert!(write(&args(home.path(), true)).is_ok());
        assert!(
            std::fs::read_to_string(home.path().join(RECORDER))
                .expect("is there")
                .starts_with("# SPDX-License-Identifier: MIT\n\"\"\"")
        );
    }
}
