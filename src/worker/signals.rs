//! What a signal that ends this process does first: it ends the workers that this process has started.
//!
//! Invariant: the process ends as it would without this, with the same status, and within `PATIENCE`; nothing of a worker's group
//! is left. A worker that reads its stdin would see the end by itself; a launch command need not. Must not know what workers do.

use crate::worker::process::{self, End};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long workers that were asked to end are waited for: a killed `srun` would leave its job behind.
const PATIENCE: Duration = Duration::from_secs(3);

/// The groups of workers that have not been reaped.
static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
/// A signal is ending this process.
static ENDING: AtomicBool = AtomicBool::new(false);

fn groups() -> MutexGuard<'static, BTreeSet<u32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on a signal that ends this process ends its workers first.
pub fn end_workers_too() {
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else { return };
    let wait = move || {
        let first = signals.forever().next();
        if let Some(signal) = first {
            ENDING.store(true, Ordering::Release);
            groups().iter().for_each(|group| process::end_group(*group, End::Ask));
            let patience = Instant::now() + PATIENCE;
            // their readers reap them meanwhile; whoever asks twice waits no longer
            while !groups().is_empty() && Instant::now() < patience && signals.pending().next().is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
            groups().iter().for_each(|group| process::end_group(*group, End::Now));
            let _ = emulate_default_handler(signal);
        }
    };
    // without a thread signals end this process alone
    drop(std::thread::Builder::new().name("signals".into()).spawn(wait));
}

/// Whether this process is about to end by a signal: a worker's end is no news any more.
pub fn is_ending() -> bool {
    ENDING.load(Ordering::Acquire)
}

/// A worker was started as the leader of this group.
pub fn started(group: u32) {
    groups().insert(group);
}

/// It is about to be reaped.
pub fn ended(group: u32) {
    groups().remove(&group);
}
