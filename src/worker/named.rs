//! Targets that have a name: the words that reach them, what was found there, and the worker that was put there.
//!
//! Invariant: the list is read, changed and written under one lock, so that two programs lose nothing of each other; a list that
//! cannot be read is refused and never written over. Must not know how a target is reached.

use crate::base::Diagnostic;
use crate::base::nearest::nearest;
use crate::worker::{files, folders};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version of the file.
const VERSION: u32 = 1;
/// Longest name, letters.
const LONGEST: usize = 64;

/// A target with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its name: one word.
    pub name: String,
    /// Program and arguments that give a pipe to it: `ssh`, `gpu1`.
    pub words: Vec<String>,
    /// What was found there.
    pub found: Found,
    /// The worker that was put there.
    pub worker: Installed,
}

/// What is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// `Linux`
    pub system: String,
    /// `x86_64`
    pub arch: String,
    /// `glibc 2.36`, `musl`; empty: unknown.
    pub libc: String,
    /// Its host name.
    pub host: String,
    /// Who one is there.
    pub user: String,
    /// NVIDIA's driver.
    pub driver: Option<String>,
    /// Names of GPUs.
    pub gpus: Vec<String>,
    /// A path of NVRTC.
    pub nvrtc: Option<String>,
    /// Python and its version: `/usr/bin/python3 3.11.2`.
    pub python: Option<String>,
    /// The folder that is ours there.
    pub folder: String,
    /// Bytes free in it.
    pub free: u64,
}

/// A worker that was put there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Installed {
    /// The program's path there.
    pub path: String,
    /// Its SHA-256.
    pub hash: String,
    /// Its bytes.
    pub bytes: u64,
    /// What it says of itself: `0.1.0 (825843d5c, release)`.
    pub build: String,
}

/// The whole list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct List {
    maskloom_targets: u32,
    /// Names this user's machine to targets that it shares with others.
    pub client: String,
    /// In the order of their names.
    pub targets: Vec<Named>,
}

impl List {
    fn empty() -> List {
        let mut text = [0u8; 8];
        let fresh = format!("{:?}{}", std::time::SystemTime::now(), std::process::id());
        text.copy_from_slice(&blake3::hash(fresh.as_bytes()).as_bytes()[..8]);
        let client = text.iter().map(|byte| format!("{byte:02x}")).collect();
        List { maskloom_targets: VERSION, client, targets: Vec::new() }
    }

    /// A target by its name.
    pub fn get(&self, name: &str) -> Option<&Named> {
        self.targets.iter().find(|target| target.name == name)
    }

    /// The same, or why there is none. Errors: no such name.
    pub fn find(&self, name: &str) -> Result<&Named, Diagnostic> {
        self.get(name).ok_or_else(|| {
            let all: Vec<&str> = self.targets.iter().map(|target| target.name.as_str()).collect();
            let hint = match nearest(name, all.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if all.is_empty() => format!("maskloom target add {name} \"ssh HOST\" adds one"),
                None => format!("there are: {}", all.join(", ")),
            };
            Diagnostic::error("target-unknown", format!("there is no target `{name}`")).hint(hint)
        })
    }

    /// Puts a target in its place; one of the same name goes.
    pub fn put(&mut self, target: Named) {
        self.targets.retain(|other| other.name != target.name);
        self.targets.push(target);
        self.targets.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

/// The list as it is. Errors: a file that is no such list.
pub fn list() -> Result<List, Diagnostic> {
    match folders::targets() {
        Some(path) => read(&path),
        None => Ok(List::empty()),
    }
}

fn read(path: &Path) -> Result<List, Diagnostic> {
    if !files::is_there(path)? {
        return Ok(List::empty());
    }
    let broken = |why: String| {
        Diagnostic::error("target-list", format!("{} is no list of targets: {why}", path.display()))
            .hint("mend the file or move it away; `maskloom target add` writes a new one")
    };
    let list: List = serde_json::from_str(&files::read_text(path)?).map_err(|e| broken(e.to_string()))?;
    if list.maskloom_targets != VERSION {
        return Err(broken(format!("it has version {}, and this program reads {VERSION}", list.maskloom_targets)));
    }
    Ok(list)
}

/// Changes the list. Errors: it cannot be read or written.
pub fn change<T>(with: impl FnOnce(&mut List) -> T) -> Result<T, Diagnostic> {
    let path = folders::targets().ok_or_else(|| {
        Diagnostic::error("target-list", "there is no home folder to keep the list of targets in")
            .hint("name a file: MASKLOOM_TARGETS=/path/targets.json")
    })?;
    change_in(&path, with)
}

fn change_in<T>(path: &Path, with: impl FnOnce(&mut List) -> T) -> Result<T, Diagnostic> {
    files::alone(path, || {
        let mut list = read(path)?;
        let reported = with(&mut list);
        let text = serde_json::to_vec_pretty(&list)
            .map_err(|e| Diagnostic::error("target-list", format!("the list of targets cannot be written: {e}")))?;
        files::save(path, &text)?;
        Ok(reported)
    })
}

/// Whether a text could be a name, which a launch command of several words is not.
pub fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.len() <= LONGEST && text.chars().all(plain) && !text.starts_with(['-', '.'])
}

/// Errors: not a name.
pub fn check_name(name: &str) -> Result<(), Diagnostic> {
    if is_name(name) {
        return Ok(());
    }
    let message = format!("`{name}` is no name of a target");
    Err(Diagnostic::error("target-name", message)
        .hint(format!("a name has letters, digits, `-`, `_` and `.`, at most {LONGEST}: gpu1")))
}

/// The target that a launch command names, if it names one.
pub fn of_command(command: &str) -> Option<Named> {
    is_name(command).then(list)?.ok()?.get(command).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Named {
        let words = ["ssh", "a b'c"].map(String::from).to_vec();
        Named { name: name.into(), words, found: Found::default(), worker: Installed::default() }
    }

    #[test]
    fn names_are_words() {
        for good in ["gpu1", "a", "h100.lan", "my_box-2"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "a b", "a'b", "$(x)", "-a", "a;b", "a/b", ".hidden", "é", &"a".repeat(65)] {
            assert_eq!(check_name(bad).unwrap_err().code, "target-name", "{bad}");
        }
    }

    #[test]
    fn changes_of_many_programs_at_once_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/targets.json");
        let client = change_in(&path, |list| list.client.clone()).unwrap();
        std::thread::scope(|threads| {
            for n in 0..8 {
                let path = &path;
                threads.spawn(move || change_in(path, |list| list.put(named(&format!("g{n}")))).unwrap());
            }
        });
        let list = read(&path).unwrap();
        assert_eq!((list.targets.len(), &list.client), (8, &client));
        assert_eq!(list.find("g3").unwrap().words[1], "a b'c");
        assert!(list.find("g33").unwrap_err().hint.unwrap().contains("`g3"));
    }

    #[test]
    fn a_list_that_cannot_be_read_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("targets.json");
        for text in ["{", "[]", "{\"maskloom_targets\": 9, \"client\": \"x\", \"targets\": []}"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(change_in(&path, |list| list.targets.clear()).unwrap_err().code, "target-list");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    /// A link to itself is there, and nobody can look at it.
    #[cfg(unix)]
    #[test]
    fn a_list_that_cannot_be_looked_at_is_not_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("targets.json");
        std::os::unix::fs::symlink(&path, &path).unwrap();
        assert_eq!(read(&path).unwrap_err().code, "cannot-read");
        assert_eq!(change_in(&path, |list| list.targets.clear()).unwrap_err().code, "cannot-read");
        assert!(read(&path.join("below")).is_err());
        assert!(read(&folder.path().join("none.json")).is_ok());
    }
}
