//! Maskloom's own folders on the user's system.
//!
//! Invariant: a query creates nothing. Must not know their content.

use crate::base::Diagnostic;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

fn project() -> Option<directories::ProjectDirs> {
    directories::ProjectDirs::from("", "", "maskloom")
}

fn from_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// The user's own patterns (`*.py`): `MASKLOOM_PATTERNS`, or `patterns` in the data folder.
pub fn patterns() -> Option<PathBuf> {
    from_variable("MASKLOOM_PATTERNS").or_else(|| Some(project()?.data_local_dir().join("patterns")))
}

/// The user's own presets (`*.json`): `MASKLOOM_PRESETS`, or `presets` in the data folder.
pub fn presets() -> Option<PathBuf> {
    from_variable("MASKLOOM_PRESETS").or_else(|| Some(project()?.data_local_dir().join("presets")))
}

/// The folder that a variable names and that cannot be read: nothing is found in it. The system's folder in its place may be
/// missing.
pub fn wrong(variable: &str) -> Option<Diagnostic> {
    let Some(folder) = from_variable(variable) else {
        let folder = if variable == "MASKLOOM_PRESETS" { presets()? } else { patterns()? };
        let message = format!("nothing is taken from {}: {}", folder.display(), entries(&folder).err()?);
        let hint = format!("give this user the right to read the folder, or set {variable} to another");
        return Some(Diagnostic::warning("folder-unread", message).hint(hint));
    };
    let why = unreadable(&folder)?;
    let message = format!("nothing is taken from {}, which {variable} names: {why}", folder.display());
    Some(Diagnostic::warning("folder-variable", message).hint(format!("make the folder, or set {variable} to another")))
}

/// Why a folder cannot be listed.
pub fn unreadable(folder: &Path) -> Option<String> {
    let why = std::fs::read_dir(folder).err()?;
    Some(match why.kind() {
        ErrorKind::NotFound => "there is no such folder".into(),
        ErrorKind::NotADirectory => "it is no folder".into(),
        _ => why.to_string(),
    })
}

/// What a folder has, sorted; nothing where there is no such folder. Errors: why it cannot be listed, or listed whole.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) if e.kind() == ErrorKind::NotADirectory => return Err("it is no folder".into()),
        other => other.map_err(|e| e.to_string())?,
    };
    let found = listed.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut found = found.map_err(|e| e.to_string())?;
    found.sort_unstable();
    Ok(found)
}

/// Where captures that come with Maskloom are written to.
pub fn samples() -> Option<PathBuf> {
    Some(project()?.data_local_dir().join("samples"))
}

/// The path of an NVRTC that Maskloom installed.
pub fn nvrtc() -> Option<PathBuf> {
    Some(project()?.data_local_dir().join("nvrtc"))
}

/// The cache: `MASKLOOM_CACHE`, or the system's.
pub fn cache() -> Option<PathBuf> {
    from_variable("MASKLOOM_CACHE").or_else(|| Some(project()?.cache_dir().to_path_buf()))
}

/// The list of targets with a name: `MASKLOOM_TARGETS`, or `targets.json` in the configuration folder.
pub fn targets() -> Option<PathBuf> {
    from_variable("MASKLOOM_TARGETS").or_else(|| Some(project()?.config_dir().join("targets.json")))
}

/// Detached jobs of this machine.
pub fn jobs() -> Option<PathBuf> {
    Some(cache()?.join("jobs"))
}
