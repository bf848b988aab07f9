//! Installs missing parts after the user agreed: NVRTC with pip, into Maskloom's own folder.
//!
//! Invariant: nothing outside that folder and its staging folder changes, and the folder contains a complete NVRTC or
//! its previous content. Must not know how the user is asked.

use crate::backends::cuda;
use crate::base::Diagnostic;
use crate::worker::target::quote;
use crate::worker::{folders, limited, user_python};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a download may take.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchPlan {
    python: PathBuf,
    package: &'static str,
    folder: PathBuf,
}

impl FetchPlan {
    fn arguments(&self, folder: &Path) -> Vec<String> {
        let folder = folder.display().to_string();
        let fixed = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--upgrade", "--target"];
        fixed.iter().map(|w| w.to_string()).chain([folder, self.package.to_string()]).collect()
    }

    /// The command as one would type it.
    pub fn words(&self) -> String {
        let words = std::iter::once(self.python.display().to_string()).chain(self.arguments(&self.folder));
        words.map(|w| quote(&w)).collect::<Vec<_>>().join(" ")
    }

    /// Where it goes.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// How NVRTC would be fetched here. Errors: no Python to run pip with, no home folder.
pub fn nvrtc_plan() -> Result<FetchPlan, Diagnostic> {
    let folder = folders::nvrtc().ok_or_else(|| {
        Diagnostic::error("no-folder", "no home folder was found for NVRTC")
            .hint("install NVRTC yourself and set MASKLOOM_NVRTC to its library")
    })?;
    let python = user_python::find().ok_or_else(|| {
        Diagnostic::error("no-python", "no Python was found to run pip")
            .hint("install Python 3, or set MASKLOOM_NVRTC to libnvrtc.so of a CUDA toolkit")
    })?;
    Ok(FetchPlan { python: python.path, package: nvrtc_package(), folder })
}

/// The newest wheel whose kernels this machine's driver can load: a driver runs those of its own major version and
/// older.
fn nvrtc_package() -> &'static str {
    match cuda::probe().driver {
        Some((major, _)) if major < 13 => "nvidia-cuda-nvrtc-cu12",
        _ => "nvidia-cuda-nvrtc",
    }
}

/// Installs it and returns the folder. pip writes into a staging folder, which replaces the folder only after a
/// complete download. Errors: the reason why pip failed.
pub fn fetch_nvrtc(plan: &FetchPlan) -> Result<PathBuf, Diagnostic> {
    let staging = plan.folder.with_extension("part");
    let done = fetch_into(plan, &staging);
    // gone already when it has taken the folder's place
    let _ = std::fs::remove_dir_all(&staging);
    done.map(|()| plan.folder.clone()).map_err(|why| {
        Diagnostic::error("fetch-failed", format!("NVRTC could not be installed: {why}"))
            .hint(format!("run it yourself: {}", plan.words()))
    })
}

fn fetch_into(plan: &FetchPlan, staging: &Path) -> Result<(), String> {
    let at = |path: &Path| format!("{}: ", path.display());
    let _ = std::fs::remove_dir_all(staging);
    std::fs::create_dir_all(staging).map_err(|e| at(staging) + &e.to_string())?;
    let mut command = Command::new(&plan.python);
    command.args(plan.arguments(staging));
    let said = limited::run(command, PATIENCE).ok_or("pip did not start, or did not end")?;
    if !said.success {
        return Err(reason(&said.stderr, &plan.python));
    }
    if !holds_nvrtc(staging).map_err(|e| at(staging) + &e.to_string())? {
        return Err("pip reported success, but NVRTC is missing".into());
    }
    match std::fs::remove_dir_all(&plan.folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(at(&plan.folder) + &e.to_string()),
        _ => {}
    }
    std::fs::rename(staging, &plan.folder).map_err(|e| at(&plan.folder) + &e.to_string())
}

/// Whether a folder contains NVRTC's library. Errors: it cannot be listed.
fn holds_nvrtc(folder: &Path) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let library = name.starts_with("libnvrtc.") || (name.starts_with("nvrtc64_") && name.ends_with(".dll"));
        if library || (entry.path().is_dir() && holds_nvrtc(&entry.path())?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The reason why pip failed, in a line: the usual causes, otherwise its last output.
fn reason(stderr: &str, python: &Path) -> String {
    let has = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    if has(&["No module named pip", "No module named 'pip'"]) {
        return format!(
            "{} has no pip: install python3-pip, or set MASKLOOM_PYTHON to another Python",
            python.display()
        );
    }
    if has(&["No space left on device", "Disk quota exceeded"]) {
        return "the disk is full: NVRTC needs about 220 MB in Maskloom's folder, and the same in TMPDIR during installation".into();
    }
    if has(&["Retrying (", "NewConnectionError", "Name or service not known", "name resolution", "ProxyError"]) {
        return "the package index is unreachable: no network, or a proxy that pip does not use".into();
    }
    if has(&["Permission denied"]) {
        return "a folder is not writable".into();
    }
    let last: Vec<&str> = stderr.lines().filter(|l| !l.trim().is_empty()).collect();
    last[last.len().saturating_sub(3)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A replacement of Python, which receives pip's target folder in `$folder`.
    #[cfg(unix)]
    fn stand_in(root: &Path, text: &str) -> FetchPlan {
        let fake = root.join("python3");
        let find = "for last; do folder=\"$prev\"; prev=\"$last\"; done";
        std::fs::write(&fake, format!("#!/bin/sh\n{find}\n{text}\n")).unwrap();
        std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        FetchPlan { python: fake, package: "nvidia-cuda-nvrtc", folder: root.join("a b/nvrtc") }
    }

    #[cfg(unix)]
    #[test]
    fn a_fetch_runs_pip_and_takes_the_folders_place_only_when_whole() {
        let root = tempfile::tempdir().unwrap();
        let whole = "mkdir -p \"$folder/nvidia/lib\"; echo one > \"$folder/nvidia/lib/libnvrtc.so.13\"";
        let plan = stand_in(root.path(), whole);
        let library = || std::fs::read_to_string(plan.folder().join("nvidia/lib/libnvrtc.so.13")).unwrap();
        assert_eq!(fetch_nvrtc(&plan).unwrap(), plan.folder());
        assert_eq!(library(), "one\n");
        assert!(plan.words().contains("--target '") && plan.words().ends_with("nvidia-cuda-nvrtc"), "{}", plan.words());
        // a newer one replaces it, a broken download does not
        fetch_nvrtc(&stand_in(root.path(), &whole.replace("one", "two"))).unwrap();
        assert_eq!(library(), "two\n");
        for text in [whole.replace("one", "half") + "; exit 1", "echo nothing made".into()] {
            assert_eq!(fetch_nvrtc(&stand_in(root.path(), &text)).unwrap_err().code, "fetch-failed");
            assert_eq!(library(), "two\n");
            assert!(!root.path().join("a b/nvrtc.part").exists());
        }
        let gone = FetchPlan { python: root.path().join("none"), ..plan.clone() };
        assert!(fetch_nvrtc(&gone).unwrap_err().message.contains("did not start"));
    }

    #[test]
    fn what_stopped_pip_is_told_by_its_cause() {
        let of = |stderr: &str| reason(stderr, Path::new("/x/python3"));
        assert!(of("/x/python3: No module named pip").contains("/x/python3 has no pip"));
        let full = "shutil.Error: [('a', 'b', \"[Errno 28] No space left on device: 'a'\")]";
        assert!(of(full).contains("the disk is full"));
        let retries =
            "WARNING: Retrying (Retry(total=4)) after connection broken\nERROR: No matching distribution found";
        assert!(of(retries).contains("is unreachable"));
        assert_eq!(of("one\n\ntwo\nthree\nERROR: four\n"), "two; three; ERROR: four");
    }
}
