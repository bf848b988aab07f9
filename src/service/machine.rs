//! This machine in words: host, cpu, memory.
//!
//! Invariant: reading changes nothing; what cannot be found out is left out. Must not know GPUs.

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

/// Versions and hardware by name, for run files and benchmarks.
pub fn environment() -> BTreeMap<String, String> {
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    BTreeMap::from([
        ("maskloom".to_string(), format!("{} ({build})", env!("CARGO_PKG_VERSION"))),
        ("host".to_string(), host()),
        ("os".to_string(), format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        ("cpu".to_string(), cpu_name()),
        ("date".to_string(), today()),
    ])
}

/// Today in UTC, `2026-11-21`.
pub fn today() -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_778), (2026, 11, 21));
        assert!(cpu_name().contains("threads"));
    }
}
