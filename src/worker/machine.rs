//! A description of this machine: host, CPU, memory.
//!
//! Invariant: reading changes nothing; unknown facts are omitted. Must not know GPUs.

use crate::base::identity;
use crate::problem::facts::Busy;
use std::collections::BTreeMap;

/// Name of the host, or `localhost`.
pub fn host() -> String {
    let named = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let named = named.or_else(|| std::env::var("HOSTNAME").ok()).or_else(|| std::env::var("COMPUTERNAME").ok());
    named.map(|n| n.trim().to_string()).filter(|n| !n.is_empty()).unwrap_or_else(|| "localhost".into())
}

/// Threads that the cpu backends use.
pub fn threads() -> usize {
    rayon::current_num_threads()
}

/// `AMD EPYC 9454 (2 threads, avx2)`.
pub fn cpu_name() -> String {
    let model = cpu_model().unwrap_or_else(|| std::env::consts::ARCH.into());
    let features = features();
    let features = if features.is_empty() { String::new() } else { format!(", {}", features.join(" ")) };
    format!("{model} ({} threads{features})", threads())
}

fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// The vector extensions that matter to the cpu backends.
pub fn features() -> Vec<&'static str> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        let avx512 = std::arch::is_x86_feature_detected!("avx512f");
        let avx2 = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
        if avx512 {
            found.push("avx512");
        } else if avx2 {
            found.push("avx2");
        }
    }
    #[cfg(target_arch = "aarch64")]
    found.push("neon");
    found
}

/// Bytes of main memory; 0 where unknown.
pub fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|l| l.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.trim().parse().ok());
    kib.map_or(0, |k: u64| k * 1024)
}

/// The version of NVIDIA's driver, where the kernel tells it: `580.95.05`.
pub fn nvidia_driver() -> Option<String> {
    driver_in(&std::fs::read_to_string("/proc/driver/nvidia/version").ok()?)
}

/// The first word of digits and dots in the line of the kernel module.
fn driver_in(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
    let version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    line.split_whitespace().find(version).map(String::from)
}

/// Versions and hardware by name, for run files and benchmarks. These are shared: the machine's own name is not in them.
pub fn environment() -> BTreeMap<String, String> {
    BTreeMap::from([
        ("maskloom".to_string(), identity::build().to_string()),
        ("os".to_string(), format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        ("cpu".to_string(), cpu_name()),
        ("date".to_string(), today()),
    ])
}

/// Today in UTC, `2026-11-21`.
pub fn today() -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    day_of(seconds)
}

/// Now in UTC, `2026-11-21 08:05:09`.
pub fn moment() -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{} {hour:02}:{minute:02}:{second:02}", day_of(seconds))
}

/// The day that an export says: today, or that of SOURCE_DATE_EPOCH, so that the same design is exported as the same bytes.
/// A run has the day on which it ran.
pub fn day_of_export() -> String {
    let stated = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.trim().parse().ok());
    stated.filter(|seconds| *seconds < END_OF_YEARS).map_or_else(today, day_of)
}

/// Seconds from 1970 to the year 10000, whose dates have another form.
const END_OF_YEARS: u64 = 253_402_300_800;

fn day_of(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Gregorian date of a day counted from 1970-01-01.
fn civil(mut day: u64) -> (u64, u64, u64) {
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= months[month] {
        day -= months[month];
        month += 1;
    }
    (year, month as u64 + 1, day + 1)
}

/// Processor time since the system started, in its own ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    /// For all processors together, including idle ones.
    all: u64,
    /// The busy part.
    busy: u64,
    /// For this process and its descendants.
    own: u64,
    cores: usize,
}

/// Watches what other programs do while something is timed on the processors.
#[derive(Default)]
pub struct LoadWatch {
    since: Option<Ticks>,
}

impl LoadWatch {
    /// Begins to watch, once.
    pub fn begin(&mut self) {
        self.since = self.since.or_else(ticks);
    }

    /// The load of other programs since then; None if it left enough processors for `threads`, or is unknown.
    pub fn end(&self, threads: usize) -> Option<Busy> {
        others(self.since?, ticks()?, threads)
    }
}

fn others(since: Ticks, now: Ticks, threads: usize) -> Option<Busy> {
    let passed = now.all.checked_sub(since.all).filter(|all| *all >= 10 * now.cores as u64)?;
    let theirs = now.busy.saturating_sub(since.busy).saturating_sub(now.own.saturating_sub(since.own));
    let others = theirs as f64 / passed as f64 * now.cores as f64;
    let crowded = others > 0.1 * now.cores as f64 && others + threads as f64 > now.cores as f64;
    crowded.then_some(Busy { others, cores: now.cores })
}

/// None if the system does not report it.
fn ticks() -> Option<Ticks> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let first: Vec<u64> = text.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    // user, nice, system, idle, waiting for disks, and interrupts; guests are in user already
    let [.., _] = first.get(..8)? else { return None };
    let all: u64 = first[..8].iter().sum();
    let cores = text.lines().filter(|l| l.starts_with("cpu") && !l.starts_with("cpu ")).count();
    Some(Ticks { all, busy: all - first[3] - first[4], own: own_ticks()?, cores })
}

/// For this process, its descendants, and those of them that have ended.
fn own_ticks() -> Option<u64> {
    // process, parent, ticks
    let about = |entry: std::fs::DirEntry| -> Option<(u32, u32, u64)> {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = fields.get(11..15)?.iter().filter_map(|n| n.parse::<u64>().ok()).sum();
        Some((id, fields.get(1)?.parse().ok()?, ticks))
    };
    let all: Vec<_> = std::fs::read_dir("/proc").ok()?.flatten().filter_map(about).collect();
    let mut own = vec![std::process::id()];
    let mut at = 0;
    while at < own.len() {
        let parent = own[at];
        own.extend(all.iter().filter(|p| p.1 == parent).map(|p| p.0));
        at += 1;
    }
    Some(all.iter().filter(|p| own.contains(&p.0)).map(|p| p.2).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_count_where_they_take_processors_that_are_wanted() {
        let since = Ticks { all: 1000, busy: 400, own: 100, cores: 2 };
        let after = |busy: u64, own: u64| Ticks { all: 2000, busy: 400 + busy, own: 100 + own, cores: 2 };
        assert_eq!(others(since, after(900, 880), 2), None);
        assert_eq!(others(since, after(1000, 400), 2), Some(Busy { others: 1.2, cores: 2 }));
        // one thread finds another processor if one is busy
        assert_eq!(others(since, after(500, 100), 1), None);
        assert_eq!(others(since, Ticks { all: 1001, ..since }, 2), None, "too short to tell");
        #[cfg(target_os = "linux")]
        assert!(ticks().is_some_and(|t| t.cores > 0 && t.own <= t.busy && t.busy <= t.all));
    }

    #[test]
    fn the_kernel_tells_the_drivers_version() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22-I3-AM02)\n\
                    GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n";
        assert_eq!(driver_in(open).as_deref(), Some("580.95.05"));
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n";
        assert_eq!(driver_in(closed).as_deref(), Some("535.183.01"));
        assert_eq!(driver_in("GCC version: 12.3.0"), None);
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_778), (2026, 11, 21));
        assert_eq!(day_of(END_OF_YEARS - 1), "9999-12-31");
        assert!(cpu_name().contains("threads"));
    }
}
