//! Fetching what is missing, after the user agreed: NVRTC with pip, into Maskloom's own folder.
//!
//! Invariant: nothing outside that folder changes. Must not know how the user is asked.

use crate::backends::cuda;
use crate::base::Diagnostic;
use crate::service::target::quote;
use crate::service::{folders, limited, python};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a download may take.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// What would be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchPlan {
    python: PathBuf,
    package: &'static str,
    folder: PathBuf,
}

impl FetchPlan {
    fn arguments(&self) -> Vec<String> {
        let folder = self.folder.display().to_string();
        let fixed = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--upgrade", "--target"];
        fixed.iter().map(|w| w.to_string()).chain([folder, self.package.to_string()]).collect()
    }

    /// The command as one would type it.
    pub fn words(&self) -> String {
        let words = std::iter::once(self.python.display().to_string()).chain(self.arguments());
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
        Diagnostic::error("no-folder", "there is no home folder to put NVRTC into")
            .hint("install NVRTC yourself and set MASKLOOM_NVRTC to its library")
    })?;
    let python = python::find().ok_or_else(|| {
        Diagnostic::error("no-python", "no Python was found to run pip with")
            .hint("install Python 3, or set MASKLOOM_NVRTC to libnvrtc.so of a CUDA toolkit")
    })?;
    Ok(FetchPlan { python: python.path, package: nvrtc_package(), folder })
}

/// The newest wheel whose kernels this machine's driver can load: a driver runs those of its own major version and older.
fn nvrtc_package() -> &'static str {
    match cuda::probe().driver {
        Some((major, _)) if major < 13 => "nvidia-cuda-nvrtc-cu12",
        _ => "nvidia-cuda-nvrtc",
    }
}

/// Fetches it, and gives the folder. Errors: pip's last words.
pub fn fetch_nvrtc(plan: &FetchPlan) -> Result<PathBuf, Diagnostic> {
    let failed = |why: String| {
        Diagnostic::error("fetch-failed", format!("NVRTC could not be fetched: {why}"))
            .hint(format!("run it yourself: {}", plan.words()))
    };
    std::fs::create_dir_all(&plan.folder).map_err(|e| failed(format!("{}: {e}", plan.folder.display())))?;
    let mut command = Command::new(&plan.python);
    command.args(plan.arguments());
    let said = limited::run(command, PATIENCE).ok_or_else(|| failed("pip did not end".into()))?;
    if said.success {
        return Ok(plan.folder.clone());
    }
    let last: Vec<&str> = said.stderr.lines().filter(|l| !l.trim().is_empty()).collect();
    Err(failed(last[last.len().saturating_sub(3)..].join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_fetch_runs_pip_into_the_own_folder_and_tells_its_failure() {
        let root = tempfile::tempdir().unwrap();
        let fake = root.path().join("python3");
        let plan =
            FetchPlan { python: fake.clone(), package: "nvidia-cuda-nvrtc", folder: root.path().join("a b/nvrtc") };
        let script = |text: &str| {
            std::fs::write(&fake, text).unwrap();
            std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        script(
            "#!/bin/sh\nfor last; do folder=\"$prev\"; prev=\"$last\"; done\necho hi > \"$folder/libnvrtc.so.13\"\n",
        );
        assert!(fetch_nvrtc(&plan).unwrap().join("libnvrtc.so.13").exists());
        assert!(plan.words().contains("--target '") && plan.words().ends_with("nvidia-cuda-nvrtc"), "{}", plan.words());
        script("#!/bin/sh\necho 'no network' >&2\nexit 1\n");
        assert!(fetch_nvrtc(&plan).unwrap_err().message.contains("no network"));
    }
}
