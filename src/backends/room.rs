//! Memory that is free on this machine, asked before something large is held: a system that overcommits ends the process instead.
//!
//! Invariant: where the system tells nothing, nothing is refused here. One rule for backends, worker and the Python package. Must not
//! know what is held.

use crate::base::Diagnostic;
use std::path::{Path, PathBuf};

/// Bytes below which nobody asks.
const LARGE: u64 = 256 << 20;

/// Refuses what does not fit, in figures.
pub fn check(what: &str, bytes: u64) -> Result<(), Diagnostic> {
    within(what, bytes, left)
}

/// Bytes that this process may still take; None where the system does not say.
pub fn left() -> Option<u64> {
    free(Path::new("/"))
}

/// Whether so much is small enough that nobody asks.
pub fn is_small(bytes: u128) -> bool {
    bytes <= u128::from(LARGE)
}

fn within(what: &str, bytes: u64, free: impl FnOnce() -> Option<u64>) -> Result<(), Diagnostic> {
    let Some(free) = Some(bytes).filter(|bytes| *bytes > LARGE).and_then(|_| free()).filter(|free| bytes > *free)
    else {
        return Ok(());
    };
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    let message = format!("{what} takes {:.1} GiB; {:.1} GiB are free on this machine", gib(bytes), gib(free));
    Err(Diagnostic::error("out-of-memory", message)
        .hint("end other programs, or take less: a smaller dtype, shorter axes, fewer heads"))
}

/// Bytes that this process may still take: of the machine, and of every group of processes (a container) that it is in.
fn free(root: &Path) -> Option<u64> {
    let text = |path: PathBuf| std::fs::read_to_string(path).ok();
    let about = text(root.join("proc/meminfo"))?;
    let kib = about
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    let machine = kib?.saturating_mul(1024);
    let own = text(root.join("proc/self/cgroup")).unwrap_or_default();
    let groups = own.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(":/")?;
        let version = match controllers {
            "" => &UNIFIED,
            _ if controllers.split(',').any(|one| one == "memory") => &OLD,
            _ => return None,
        };
        // the group's own limit, and those of all groups around it; a container often sees its group as the root alone
        let around = Path::new(group).ancestors().filter_map(|at| version.left(&root.join(version.at).join(at)));
        around.min()
    });
    Some(groups.fold(machine, u64::min))
}

/// The files of one version of the kernel's control groups.
struct Version {
    at: &'static str,
    limit: &'static str,
    used: &'static str,
    /// What is kept of files and goes when memory is needed, in `memory.stat`.
    files: &'static str,
}

const UNIFIED: Version =
    Version { at: "sys/fs/cgroup", limit: "memory.max", used: "memory.current", files: "inactive_file " };
const OLD: Version = Version {
    at: "sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    files: "total_inactive_file ",
};

impl Version {
    /// What a group with a limit may still take.
    fn left(&self, group: &Path) -> Option<u64> {
        let number = |name: &str| std::fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        let limit = number(self.limit)?;
        let stat = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let files = stat.lines().find_map(|line| line.strip_prefix(self.files)?.trim().parse::<u64>().ok());
        let used = number(self.used)?.saturating_sub(files.unwrap_or(0));
        Some(limit.saturating_sub(used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_figures_and_small_things_are_not_asked_about() {
        assert!(within("a file", LARGE, || panic!("not asked")).is_ok());
        assert!(within("a file", 3 << 30, || None).is_ok() && within("a file", 3 << 30, || Some(3 << 30)).is_ok());
        let why = within("a file", 3 << 30, || Some(1 << 30)).unwrap_err();
        assert_eq!(why.message, "a file takes 3.0 GiB; 1.0 GiB are free on this machine");
    }

    #[test]
    fn a_container_leaves_less_than_its_machine() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(free(root.path()), None);
        write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
        assert_eq!(free(root.path()), Some(8000 * 1024));
        write("proc/self/cgroup", "0::/jobs/7\n");
        write("sys/fs/cgroup/jobs/memory.max", "5000\n");
        write("sys/fs/cgroup/jobs/memory.current", "3000\n");
        write("sys/fs/cgroup/jobs/memory.stat", "anon 2000\ninactive_file 500\n");
        write("sys/fs/cgroup/jobs/7/memory.max", "max\n");
        write("sys/fs/cgroup/jobs/7/memory.current", "2000\n");
        assert_eq!(free(root.path()), Some(2500));
        // the first version, whose group is not seen from inside the container: the root is
        write("proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/docker/1f\n");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "6000\n");
        write("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n");
        write("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 700\n");
        assert_eq!(free(root.path()), Some(1700));
        // no limit is a number beyond any machine there
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(free(root.path()), Some(8000 * 1024));
    }
}
