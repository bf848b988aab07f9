//! Checks of the user's settings: variables that name something which does not exist or does not work.
//!
//! Invariant: an unset variable gives no check; an ignored one is reported, because silence would look as if it had
//! worked. Must not know the other checks.

use crate::worker::protocol::{Check, Health};
use crate::worker::user_python;
use std::path::{Path, PathBuf};

/// The results of the checks that replace a variable's value.
pub(super) struct Used<'a> {
    /// The NVRTC that runs use.
    pub nvrtc: Option<&'a Path>,
    /// The Python that was chosen.
    pub python: Option<&'a Path>,
}

/// One check for each variable without its intended effect.
pub(super) fn checks(used: &Used) -> Vec<Check> {
    let value = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let mut found = Vec::new();
    found.extend(value("MASKLOOM_NVRTC").and_then(|p| library("MASKLOOM_NVRTC", &p, used.nvrtc)));
    found.extend(value("MASKLOOM_CUDNN").and_then(|p| missing("MASKLOOM_CUDNN", &p)));
    found.extend(value("MASKLOOM_PYTHON").and_then(|p| interpreter("MASKLOOM_PYTHON", &p, used.python)));
    for name in ["MASKLOOM_PATTERNS", "MASKLOOM_PRESETS"] {
        found.extend(value(name).and_then(|p| missing(name, &p)));
    }
    found
}

fn reported(name: &str, what: String) -> Option<Check> {
    let mend = Some(format!("unset {name}"));
    Some(Check { name: name.into(), health: Health::Amber, found: what, mend })
}

fn missing(name: &str, path: &Path) -> Option<Check> {
    let what = match path.try_exists() {
        Ok(true) => return None,
        Ok(false) => "does not exist".to_string(),
        Err(why) => format!("cannot be looked at ({why})"),
    };
    reported(name, format!("{} {what}; it is ignored", path.display()))
}

fn library(name: &str, path: &Path, used: Option<&Path>) -> Option<Check> {
    let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_path_buf());
    if used.is_some_and(|u| real(u).starts_with(real(path)) || real(u) == real(path)) {
        return None;
    }
    let instead = used.map_or("no other was found".to_string(), |u| format!("{} is used instead", u.display()));
    let what = match (path.try_exists(), std::fs::read_dir(path)) {
        (Ok(false), _) => "does not exist".to_string(),
        (Err(why), _) => format!("cannot be looked at ({why})"),
        (Ok(true), Err(why)) if path.is_dir() => format!("cannot be listed ({why})"),
        _ => "contains no working NVRTC".to_string(),
    };
    reported(name, format!("{} {what}; {instead}", path.display()))
}

fn interpreter(name: &str, path: &Path, used: Option<&Path>) -> Option<Check> {
    if !path.is_file() {
        return reported(name, format!("{} is not a file; it is ignored", path.display()));
    }
    if used == Some(path) {
        return None;
    }
    match user_python::ask(path) {
        None => reported(name, format!("{} does not run as a Python; it is ignored", path.display())),
        // it answers and another was chosen, because that one has torch
        Some(_) => {
            let instead = used.map(|u| format!("; {} has it and is used", u.display())).unwrap_or_default();
            reported(name, format!("{} has no torch{instead}", path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_over_is_told_and_what_works_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("libnvrtc.so.13");
        std::fs::write(&there, "").unwrap();
        let gone = folder.path().join("gone");
        assert_eq!(library("X", &there, Some(&there)), None);
        assert_eq!(library("X", folder.path(), Some(&there)), None);
        let reported = library("X", &gone, Some(&there)).unwrap();
        assert!(
            reported.found.contains("gone does not exist") && reported.found.contains("libnvrtc.so.13 is used"),
            "{reported:?}"
        );
        assert_eq!(reported.mend.as_deref(), Some("unset X"));
        assert!(library("X", &there, None).unwrap().found.contains("no working NVRTC"));
        assert_eq!(missing("X", folder.path()), None);
        assert!(missing("X", &gone).unwrap().found.contains("ignored"));
        assert!(interpreter("X", &gone, None).unwrap().found.contains("not a file"));
        assert!(interpreter("X", &there, None).unwrap().found.contains("does not run as a Python"));
        assert_eq!(interpreter("X", &there, Some(&there)), None);
    }
}
