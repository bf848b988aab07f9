//! The writes of an export: its files into a folder, and the one value into a trainer's configuration.
//!
//! Invariant: nothing is replaced without consent; a configuration is changed only if it equals the shown one, after a
//! copy of it was written next to it, and no such copy is ever overwritten. Must not know dialogs.

use super::exporting::Merged;
use crate::base::{Diagnostic, ExportFile};
use crate::tasks::{manifest, placing};
use crate::worker::files;
use std::path::{Path, PathBuf};

/// The files to write.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub folder: PathBuf,
    pub files: Vec<ExportFile>,
    /// The configuration to change in its place.
    pub merged: Option<Merged>,
    /// Files that exist are replaced.
    pub overwrite: bool,
}

/// The result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Written {
    /// Nothing yet: these files exist.
    InTheWay(Vec<String>),
    All {
        files: usize,
        folder: PathBuf,
        config: Option<Changed>,
    },
}

/// A configuration that has the new value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Changed {
    pub path: PathBuf,
    /// The copy of the old file; None: it already had the value and was not changed.
    pub backup: Option<PathBuf>,
}

/// Writes it.
pub(crate) fn write(order: &Order) -> Result<Written, Diagnostic> {
    let existing = placing::in_the_way(&order.folder, &order.files);
    if !order.overwrite && !existing.is_empty() {
        let inside = |path: &PathBuf| path.strip_prefix(&order.folder).unwrap_or(path).display().to_string();
        return Ok(Written::InTheWay(existing.iter().map(inside).collect()));
    }
    if let Some(merged) = &order.merged {
        still_as_shown(merged)?;
    }
    let mut chosen = order.files.clone();
    manifest::only(&mut chosen);
    placing::place(&order.folder, &chosen)?;
    let config = order.merged.as_ref().map(change).transpose()?;
    Ok(Written::All { files: order.files.len(), folder: order.folder.clone(), config })
}

fn still_as_shown(merged: &Merged) -> Result<(), Diagnostic> {
    if files::read(&merged.path)? == merged.before {
        return Ok(());
    }
    let message = format!("{} has changed since it was shown; nothing was written", merged.path.display());
    Err(Diagnostic::error("config-changed", message).hint("the new difference is shown: check it, then write again"))
}

fn change(merged: &Merged) -> Result<Changed, Diagnostic> {
    let path = merged.path.clone();
    if merged.before == merged.after {
        return Ok(Changed { path, backup: None });
    }
    let backup = back_up(&path, &merged.before)?;
    files::save(&path, &merged.after)?;
    Ok(Changed { path, backup: Some(backup) })
}

/// `config.json.bak`, or the next free number after it; an existing one with the same bytes is reused.
fn back_up(path: &Path, bytes: &[u8]) -> Result<PathBuf, Diagnostic> {
    let name = |n: u32| {
        let mut name = path.as_os_str().to_os_string();
        name.push(".bak");
        if n > 1 {
            name.push(n.to_string());
        }
        PathBuf::from(name)
    };
    for n in 1..=u32::from(u16::MAX) {
        let backup = name(n);
        if !backup.exists() {
            files::save(&backup, bytes)?;
            return Ok(backup);
        }
        if files::read(&backup).is_ok_and(|old| old == bytes) {
            return Ok(backup);
        }
    }
    let message = format!("there are too many copies of {}", path.display());
    Err(Diagnostic::error("config-backup", message).hint("remove old .bak files; nothing was changed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(folder: &Path, config: &Path, before: &str, after: &str) -> Order {
        let merged = Merged { path: config.into(), before: before.into(), after: after.into() };
        let files = vec![ExportFile::new(crate::base::ExportKind::Module, "mask.py", "x", "")];
        Order { folder: folder.into(), files, merged: Some(merged), overwrite: false }
    }

    #[test]
    fn a_configuration_is_changed_where_it_lies_and_no_backup_is_lost() {
        let home = tempfile::tempdir().unwrap();
        let (config, out) = (home.path().join("config.json"), home.path().join("out"));
        let text = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
        std::fs::write(&config, "one").unwrap();
        let done = write(&order(&out, &config, "one", "two")).unwrap();
        let changed = Changed { path: config.clone(), backup: Some(home.path().join("config.json.bak")) };
        assert_eq!(done, Written::All { files: 1, folder: out.clone(), config: Some(changed) });
        assert_eq!((text("config.json"), text("config.json.bak")), ("two".into(), "one".into()));
        // a second change keeps the first copy
        let again = Order { overwrite: true, ..order(&out, &config, "two", "three") };
        write(&again).unwrap();
        assert_eq!((text("config.json.bak"), text("config.json.bak2")), ("one".into(), "two".into()));
        // the same bytes need no third
        std::fs::write(&config, "one").unwrap();
        write(&Order { overwrite: true, ..order(&out, &config, "one", "two") }).unwrap();
        assert!(!home.path().join("config.json.bak3").exists());
        // nor a file that already has the value
        let same = Order { overwrite: true, ..order(&out, &config, "two", "two") };
        let Written::All { config: Some(changed), .. } = write(&same).unwrap() else { panic!() };
        assert_eq!(changed.backup, None);
    }

    #[test]
    fn nothing_is_written_over_what_was_not_shown() {
        let home = tempfile::tempdir().unwrap();
        let (config, out) = (home.path().join("config.json"), home.path().join("out"));
        std::fs::write(&config, "edited meanwhile").unwrap();
        assert_eq!(write(&order(&out, &config, "one", "two")).unwrap_err().code, "config-changed");
        assert!(!out.exists());
        std::fs::create_dir(&out).unwrap();
        std::fs::write(out.join("mask.py"), "mine").unwrap();
        assert_eq!(write(&order(&out, &config, "one", "two")).unwrap(), Written::InTheWay(vec!["mask.py".into()]));
        assert_eq!(std::fs::read_to_string(&config).unwrap(), "edited meanwhile");
    }
}
