//! Whether a large allocation fits into this machine's memory.
//!
//! Invariant: it is called before allocating, because a system that overcommits kills the process instead of failing
//! the allocation. Must not allocate. `unsafe` for one call of the C library.
#![allow(unsafe_code)]

use crate::backends::room;
use crate::base::{BackendName, Diagnostic};
use crate::problem::Problem;

/// Assumed if the system does not report it.
const UNKNOWN: u128 = 8 << 30;

/// Refuses what does not fit into what is free: by the rule of `room`, and where the system tells nothing of it, what would take
/// more than two thirds of the machine's memory.
pub(crate) fn check(backend: BackendName, what: &str, bytes: u128) -> Result<(), Diagnostic> {
    if room::is_small(bytes) {
        return Ok(());
    }
    let limit = room::left().map_or_else(|| total() / 3 * 2, u128::from);
    if bytes <= limit {
        return Ok(());
    }
    let gib = |b: u128| b as f64 / f64::from(1 << 30);
    let message =
        format!("{backend} needs {:.1} GiB for {what}; {:.1} GiB are free on this machine", gib(bytes), gib(limit));
    Err(Diagnostic::error("out-of-memory", message).hint(way_out(backend)))
}

/// Flex takes the least of all: to whom it refused, no other backend helps.
fn way_out(backend: BackendName) -> &'static str {
    match backend {
        BackendName::Flex => "shorten the sequence, batch or heads",
        _ => "use flex, which never holds Q_LEN x KV_LEN values, or shorten the sequence, batch or heads",
    }
}

/// f32 copies of k and v, the output, and the inputs themselves.
pub(crate) fn working_bytes(problem: &Problem) -> u128 {
    let s = problem.spec();
    let dims = (s.head_dim + s.head_dim_v) as u128;
    let kv = s.batch as u128 * s.kv_heads as u128 * s.kv_len as u128 * dims * 4;
    let q = s.batch as u128 * s.heads as u128 * s.q_len as u128 * dims * s.dtype.size() as u128;
    2 * kv + q
}

/// Bytes of physical memory.
#[cfg(unix)]
fn total() -> u128 {
    // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    if pages > 0 && size > 0 { pages as u128 * size as u128 } else { UNKNOWN }
}

#[cfg(not(unix))]
fn total() -> u128 {
    UNKNOWN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_fit_is_refused_with_both_sizes() {
        assert!(check(BackendName::Eager, "scores", 1 << 20).is_ok());
        let refusal = check(BackendName::Eager, "scores", 1 << 60).unwrap_err();
        assert_eq!(refusal.code, "out-of-memory");
        assert!(refusal.message.starts_with("eager needs 1073741824.0 GiB for scores"), "{}", refusal.message);
        let hint = |backend| check(backend, "copies", 1 << 60).unwrap_err().hint.expect("a way out");
        assert!(hint(BackendName::Eager).contains("use flex") && !hint(BackendName::Flex).contains("use flex"));
    }
}
