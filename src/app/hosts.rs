//! Machines to connect to: those that answered before, targets with a name, and the names in the user's ssh configuration.
//!
//! Invariant: the newest first, each once; patterns of the ssh configuration are not machines. Must not know the
//! worker.

use crate::base::Diagnostic;
use crate::worker::files;
use crate::worker::named::{self, Named};
use crate::worker::target::Target;
use serde::{Deserialize, Serialize};

/// Most that are remembered.
const KEPT: usize = 12;
/// Most names that are read; a configuration with more is generated.
const NAMES: usize = 200;

/// A machine that answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    pub target: Target,
    /// Python with PyTorch, there; None: found by the worker.
    #[serde(default)]
    pub python: Option<String>,
}

/// Puts one in front of the others. This machine needs no place among them.
pub(crate) fn remember(hosts: &mut Vec<Host>, target: &Target, python: Option<&str>) {
    if target.is_local() {
        return;
    }
    hosts.retain(|host| host.target != *target);
    hosts.insert(0, Host { target: target.clone(), python: python.map(String::from) });
    hosts.truncate(KEPT);
}

/// The names of machines in an ssh configuration, in its order.
pub(crate) fn ssh_names(config: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in config.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let (key, rest) = line.trim().split_once([' ', '\t', '=']).unwrap_or_default();
        if !key.eq_ignore_ascii_case("host") {
            continue;
        }
        let is_name = |word: &&str| !word.is_empty() && !word.contains(['*', '?', '!', '"']);
        for name in rest.split([' ', '\t', '=']).filter(is_name) {
            if !names.iter().any(|known| known == name) && names.len() < NAMES {
                names.push(name.to_string());
            }
        }
    }
    names
}

/// Names that are offered to connect to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Of the list of targets, each with what is there in words.
    pub targets: Vec<(String, String)>,
    /// Of the ssh configuration.
    pub ssh: Vec<String>,
    /// What could not be read.
    pub unread: Vec<Diagnostic>,
}

/// Those of this user's files. Reads files: not for the window's thread.
pub(crate) fn read_names() -> Names {
    let mut names = Names::default();
    let config = directories::BaseDirs::new().map(|dirs| dirs.home_dir().join(".ssh/config"));
    match config.map(|path| files::is_there(&path).and_then(|there| there.then(|| files::read_text(&path)).transpose()))
    {
        Some(Ok(Some(text))) => names.ssh = ssh_names(&text),
        Some(Err(why)) => names.unread.push(why),
        Some(Ok(None)) | None => {}
    }
    let words = |of: Named| {
        let line = Target::from_words(&of.words);
        (of.name, format!("{line}: {}, {}.", of.found.system_words(), of.found.gpu_words()))
    };
    match named::list() {
        Ok(list) => names.targets = list.targets.into_iter().map(words).collect(),
        Err(why) => names.unread.push(why),
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_patterns_are_not() {
        let config = "# mine\nHost gpu1 gpu2\n  HostName 10.0.0.1\nhost=box\n\tHost *.lan !bad jump # a comment\nMatch host x\nHost gpu1\n";
        assert_eq!(ssh_names(config), ["gpu1", "gpu2", "box", "jump"]);
        assert!(ssh_names("HostName a\nHostKeyAlias b").is_empty());
    }

    #[test]
    fn machines_are_remembered_once_newest_first() {
        let mut hosts = Vec::new();
        for command in ["ssh a maskloom worker", "ssh b maskloom worker", "ssh a maskloom worker", ""] {
            remember(&mut hosts, &Target::new(command), Some("/py"));
        }
        let commands: Vec<&str> = hosts.iter().map(|h| h.target.title()).collect();
        assert_eq!(commands, ["ssh a maskloom worker", "ssh b maskloom worker"]);
        (0..40).for_each(|n| remember(&mut hosts, &Target::new(format!("ssh {n} w")), None));
        assert_eq!(hosts.len(), KEPT);
    }
}
