//! Tells the program its commit and its profile.
//!
//! Invariant: without git, in a tarball and on another system the build succeeds, and the commit is unknown. A packager
//! states it as MASKLOOM_COMMIT. Only the root package has this script, so that a commit compiles no other crate again.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program is made of. A change in one of them makes the tree dirty, a change elsewhere does not.
const SOURCES: [&str; 7] = ["src", "kernels", "assets", "presets", "Cargo.toml", "Cargo.lock", "build.rs"];

fn main() {
    let home = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    println!("cargo::rerun-if-env-changed=MASKLOOM_COMMIT");
    SOURCES.iter().for_each(|source| println!("cargo::rerun-if-changed={source}"));
    let (commit, dirty) = match std::env::var("MASKLOOM_COMMIT") {
        Ok(stated) => (stated, false),
        Err(_) => from_git(&home).unwrap_or_default(),
    };
    println!("cargo::rustc-env=BUILD_COMMIT={}", commit.trim());
    println!("cargo::rustc-env=BUILD_DIRTY={dirty}");
    println!("cargo::rustc-env=BUILD_PROFILE={}", profile().unwrap_or_else(|| "unknown".into()));
}

/// The commit that is checked out, and whether [`SOURCES`] differ from it; None if this is no checkout of its own.
fn from_git(home: &Path) -> Option<(String, bool)> {
    let git = |arguments: &[&str]| {
        let ran = Command::new("git").arg("-C").arg(home).args(arguments).output().ok()?;
        ran.status.success().then(|| String::from_utf8_lossy(&ran.stdout).trim().to_string())
    };
    // a tarball unpacked inside another repository has that one's commits
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != home.canonicalize().ok()? {
        return None;
    }
    let folder = home.join(git(&["rev-parse", "--git-dir"])?);
    for changing in ["HEAD", "index", "logs/HEAD"] {
        let path = folder.join(changing);
        // a path that does not exist would run this script at each build
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = git(&[&["status", "--porcelain", "--untracked-files=no", "--"], &SOURCES[..]].concat())?;
    Some((commit, !changed.is_empty()))
}

/// The profile is told as `debug` or `release` alone; the folder has its own name: `target/dist/build/maskloom-1234/out`.
fn profile() -> Option<String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR")?);
    let folder = out.ancestors().find(|folder| folder.ends_with("build"))?.parent()?;
    Some(folder.file_name()?.to_string_lossy().into_owned())
}
