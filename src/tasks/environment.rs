//! Where names in documents lead on this machine: the user's patterns, linked files, imported modules.
//!
//! Invariant: relative paths are relative to the document; the user's own pattern of a name goes before the built-in one;
//! what is read is remembered, so that compiling at every frame reads no files, until [`Files::forget`]. Must not know what the texts mean.

use crate::base::{Diagnostic, Source};
use crate::document::compile::{BuiltIn, Environment};
use crate::python::surroundings;
use crate::worker::{files, folders, user_python};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

/// Reads texts from files.
#[derive(Debug, Default)]
pub struct Files {
    /// The document's folder; None: the current one.
    base: Option<PathBuf>,
    /// Folders that imports are looked up in, after the document's.
    packages: Vec<PathBuf>,
    read: RefCell<HashMap<PathBuf, Result<String, Diagnostic>>>,
    /// Files that are there, were wanted, and cannot be read.
    unread: RefCell<BTreeMap<PathBuf, Diagnostic>>,
}

impl Files {
    /// For a document in `base` (None: the current folder). `packages` are folders of modules (`DIR/attn_gym/...`), or
    /// packages themselves (`.../attn_gym`).
    pub fn new(base: Option<PathBuf>, packages: Vec<PathBuf>) -> Files {
        Files { base, packages, ..Files::default() }
    }

    /// For the document at `path`.
    pub fn beside(path: &Path) -> Files {
        Files::new(path.parent().map(Path::to_path_buf), Vec::new())
    }

    /// Reads everything again at the next use.
    pub fn forget(&self) {
        self.read.borrow_mut().clear();
        self.unread.borrow_mut().clear();
    }

    /// Every file that was read: what to watch.
    pub fn watched(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.read.borrow().keys().cloned().collect();
        paths.sort();
        paths
    }

    fn text(&self, path: &Path) -> Result<String, Diagnostic> {
        if let Some(known) = self.read.borrow().get(path) {
            return known.clone();
        }
        // notebooks, prompts and diffs are read as the Python in them
        let text = files::read_named_text(path).map(|text| surroundings::bare(&text).into_owned());
        self.read.borrow_mut().insert(path.to_path_buf(), text.clone());
        text
    }

    /// None is remembered: what reads it goes on without it, or with another of its name.
    fn source(&self, path: &Path) -> Option<Source> {
        match self.text(path) {
            Ok(text) => Some(Source::new(path.display().to_string(), text)),
            Err(why) => {
                self.pass_over(path, &why.message);
                None
            }
        }
    }

    fn pass_over(&self, path: &Path, why: &str) {
        let hint = format!("mend or remove {}; what is named like it elsewhere is taken", path.display());
        let told = Diagnostic::warning("file-passed-over", format!("passed over: {why}")).hint(hint);
        self.unread.borrow_mut().insert(path.into(), told);
    }

    /// Whether there is a file. One that cannot be looked at is told.
    fn is_file(&self, path: &Path) -> bool {
        match std::fs::metadata(path) {
            Ok(about) => about.is_file(),
            Err(e) => {
                if !files::is_nothing(&e) {
                    self.pass_over(path, &format!("{}: {e}", path.display()));
                }
                false
            }
        }
    }

    /// A module's file in a folder that holds it, or in the package itself.
    fn module_in(&self, folder: &Path, dotted: &str) -> Option<Source> {
        let mut parts: Vec<&str> = dotted.split('.').collect();
        if parts.iter().any(|p| p.is_empty() || p.contains(['/', '\\'])) {
            return None;
        }
        if folder.file_name().is_some_and(|n| n == parts[0]) && self.is_file(&folder.join("__init__.py")) {
            parts.remove(0);
        }
        let at = parts.iter().fold(folder.to_path_buf(), |path, part| path.join(part));
        let file = (!parts.is_empty()).then(|| at.with_extension("py"));
        file.filter(|f| self.is_file(f))
            .and_then(|f| self.source(&f))
            .or_else(|| Some(at.join("__init__.py")).filter(|f| self.is_file(f)).and_then(|f| self.source(&f)))
    }
}

/// Packages that are looked up in the user's Python if no named folder contains them.
const OF_PYTHON: [&str; 1] = ["attn_gym"];

/// Folders that the user's Python imports from: asked once, and only for such a package.
static OF_PYTHON_FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();

fn python_folders() -> Vec<PathBuf> {
    user_python::find().map(|p| p.folders).unwrap_or_default()
}

impl Files {
    fn installed<'f>(&self, dotted: &str, folders: impl FnOnce() -> &'f Vec<PathBuf>) -> Option<Source> {
        let top = dotted.split('.').next()?;
        OF_PYTHON.contains(&top).then(folders)?.iter().find_map(|folder| self.module_in(folder, dotted))
    }
}

impl Environment for Files {
    fn pattern(&self, name: &str) -> Option<Source> {
        let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        let own = folders::patterns().filter(|_| plain).map(|f| f.join(format!("{name}.py")));
        own.filter(|p| self.is_file(p)).and_then(|p| self.source(&p)).or_else(|| BuiltIn.pattern(name))
    }

    fn linked(&self, path: &str) -> Result<String, Diagnostic> {
        let base = self.base.clone().unwrap_or_default();
        self.text(&base.join(path))
    }

    fn module(&self, dotted: &str) -> Option<Source> {
        let own = self.base.clone().unwrap_or_else(|| ".".into());
        let near = std::iter::once(&own).chain(&self.packages).find_map(|folder| self.module_in(folder, dotted));
        near.or_else(|| self.installed(dotted, || OF_PYTHON_FOLDERS.get_or_init(python_folders)))
    }

    fn passed_over(&self) -> Vec<Diagnostic> {
        let folders = self.packages.iter().filter_map(|folder| {
            let why = folders::unreadable(folder)?;
            let message = format!("no module is taken from {}: {why}", folder.display());
            let hint = "--package names the folder that holds the package, or the package itself";
            Some(Diagnostic::warning("package-folder", message).hint(hint))
        });
        folders.chain(self.unread.borrow().values().cloned()).collect()
    }
}

/// Distinguishes two states of a file without reading it: its time and its length. Time alone is too coarse: an editor
/// that empties a file and fills it again does both within one tick of the file system's clock.
pub type Stamp = Option<(SystemTime, u64)>;

/// The stamp of a file now; None when it cannot be looked at.
pub fn stamp(path: &Path) -> Stamp {
    let about = std::fs::metadata(path).ok()?;
    Some((about.modified().ok()?, about.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link to itself is there, and nobody can look at it.
    #[cfg(unix)]
    #[test]
    fn a_module_that_cannot_be_looked_at_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.py");
        std::os::unix::fs::symlink(&path, &path).unwrap();
        let files = Files::new(Some(folder.path().to_path_buf()), Vec::new());
        assert!(files.module("mine").is_none() && files.module("other").is_none());
        let told: Vec<String> = files.passed_over().into_iter().map(|d| d.message).collect();
        assert!(told.len() == 1 && told[0].contains("mine.py"), "{told:?}");
    }

    #[test]
    fn a_package_of_masks_is_found_where_python_has_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("attn_gym/masks")).unwrap();
        std::fs::write(folder.path().join("attn_gym/masks/causal.py"), "causal").unwrap();
        std::fs::write(folder.path().join("other.py"), "other").unwrap();
        let (files, folders) = (Files::new(None, Vec::new()), vec![folder.path().to_path_buf()]);
        let text = |dotted: &str| files.installed(dotted, || &folders).map(|s| s.text.to_string());
        assert_eq!(text("attn_gym.masks.causal").as_deref(), Some("causal"));
        assert_eq!(text("attn_gym.masks.none"), None);
        // nothing else is taken from there
        assert_eq!(text("other"), None);
    }

    #[test]
    fn names_lead_to_files_and_changes_are_seen_after_forgetting() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("mine.py", "one");
        write("lib/gym/__init__.py", "gym");
        write("lib/gym/masks/causal.py", "causal");
        let env =
            Files::new(Some(folder.path().into()), vec![folder.path().join("lib"), folder.path().join("lib/gym")]);
        assert_eq!(env.linked("mine.py").unwrap(), "one");
        write("mine.py", "two");
        assert_eq!(env.linked("mine.py").unwrap(), "one");
        env.forget();
        assert_eq!(env.linked("mine.py").unwrap(), "two");
        assert_eq!(env.linked("none.py").unwrap_err().code, "no-such-file");
        let text = |dotted: &str| env.module(dotted).map(|s| s.text.to_string());
        assert_eq!(text("gym").as_deref(), Some("gym"));
        assert_eq!(text("gym.masks.causal").as_deref(), Some("causal"));
        assert_eq!(text("mine").as_deref(), Some("two"));
        assert_eq!((text("gym.masks"), text("..etc"), text("")), (None, None, None));
        let package = Files::new(None, vec![folder.path().join("lib/gym")]);
        assert!(package.module("gym.masks.causal").is_some() && package.module("gym").is_some());
        assert!(env.pattern("causal").unwrap().text.contains("def causal"));
        assert!(env.watched().iter().any(|p| p.ends_with("mine.py")));
    }
}
