//! The user's Python: its path, and its relevant packages.
//!
//! Invariant: reads package metadata only; never imports torch (seconds) and never installs. Must not know the
//! packages' use.

use crate::base::Diagnostic;
use crate::worker::limited;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A Python and its installed packages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Python {
    /// The interpreter.
    #[serde(default)]
    pub path: PathBuf,
    /// Its version.
    pub version: String,
    /// Versions of installed packages of [`PACKAGES`].
    pub packages: BTreeMap<String, String>,
    /// Folders it imports from.
    pub folders: Vec<PathBuf>,
}

/// Requested packages.
pub const PACKAGES: [&str; 9] = [
    "torch",
    "triton",
    "flash-attn",
    "flash-attn-3",
    "diffusers",
    "transformers",
    "attn-gym",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-nvrtc-cu12",
];

const ASK: &str = "
import json, sys, importlib.metadata as m
def version(name):
    try: return m.version(name)
    except Exception: return None
found = {n: version(n) for n in sys.argv[1:]}
print(json.dumps({'version': sys.version.split()[0], 'folders': [p for p in sys.path if p],
                  'packages': {k: v for k, v in found.items() if v}}))
";

/// Interpreters worth asking, the most deliberate choice first: `MASKLOOM_PYTHON`, the active environment, then PATH.
pub fn candidates() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let mut found: Vec<PathBuf> = variable("MASKLOOM_PYTHON").into_iter().collect();
    for root in ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable) {
        found.push(root.join(if cfg!(windows) { "python.exe" } else { "bin/python" }));
    }
    for name in ["python3", "python"] {
        found.extend(on_path(name));
    }
    found.retain(|p| p.is_file());
    let mut seen = Vec::new();
    found.retain(|p| {
        let fresh = !seen.contains(p);
        seen.push(p.clone());
        fresh
    });
    found
}

/// The first program of this name on PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let name = if cfg!(windows) { format!("{name}.exe") } else { name.to_string() };
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|p| p.is_file())
}

/// How long an interpreter may take to list its packages.
const ANSWER: Duration = Duration::from_secs(15);

/// Interpreters that have not answered in this process: nobody waits for them twice.
static SILENT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Whether it was waited for in vain.
pub fn is_silent(path: &Path) -> bool {
    SILENT.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|known| known == path)
}

/// The interpreter that `MASKLOOM_PYTHON` names, if it was waited for in vain.
pub fn chosen_but_silent() -> Option<Diagnostic> {
    let chosen = std::env::var_os("MASKLOOM_PYTHON").map(PathBuf::from).filter(|path| is_silent(path))?;
    let message = format!("{} (MASKLOOM_PYTHON) has said nothing for {} s", chosen.display(), ANSWER.as_secs());
    Some(
        Diagnostic::error("torch-silent", message)
            .hint("check that this Python starts in a terminal, or unset MASKLOOM_PYTHON"),
    )
}

/// Asks one interpreter. None: it does not answer within some seconds.
pub fn ask(path: &Path) -> Option<Python> {
    ask_within(path, ANSWER)
}

fn ask_within(path: &Path, limit: Duration) -> Option<Python> {
    if is_silent(path) {
        return None;
    }
    let mut command = Command::new(path);
    command.args(["-I", "-c", ASK]).args(PACKAGES);
    let began = Instant::now();
    let Some(said) = limited::run(command, limit) else {
        if began.elapsed() >= limit {
            SILENT.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_path_buf());
        }
        return None;
    };
    let said = Some(said).filter(|s| s.success)?;
    let mut python: Python = serde_json::from_str(said.stdout.lines().last()?).ok()?;
    python.path = path.to_path_buf();
    Some(python)
}

/// The interpreter to use: the first candidate with torch, else the first that answers.
pub fn find() -> Option<Python> {
    let mut first = None;
    for candidate in candidates() {
        let Some(python) = ask(&candidate) else { continue };
        if python.packages.contains_key("torch") {
            return Some(python);
        }
        first.get_or_insert(python);
    }
    first
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_is_read_and_a_silent_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let fake = folder.path().join("python3");
        let script = "#!/bin/sh\necho noise\necho '{\"version\": \"3.11.2\", \"packages\": {\"torch\": \"2.11\"}, \"folders\": [\"/x\"]}'\n";
        std::fs::write(&fake, script).unwrap();
        std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let python = ask(&fake).expect("answers");
        assert_eq!((python.version.as_str(), python.packages["torch"].as_str()), ("3.11.2", "2.11"));
        assert_eq!(ask(Path::new("/bin/true")), None);
        assert!(!is_silent(Path::new("/bin/true")), "it has answered, with nothing");
        // a silent one is waited for once
        let silent = folder.path().join("silent");
        std::fs::write(&silent, "#!/bin/sh\nexec sleep 60\n").unwrap();
        std::fs::set_permissions(&silent, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let began = Instant::now();
        assert_eq!(ask_within(&silent, Duration::from_millis(400)), None);
        assert_eq!((ask(&silent), is_silent(&silent)), (None, true));
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}
