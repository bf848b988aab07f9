//! What a signal that ends this process does first: it ends the workers that this process has started.
//!
//! Invariant: the process ends as it would without this, with the same status. A worker that reads its stdin would see the
//! end by itself; a launch command need not. Must not know what workers do.

use crate::worker::process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The groups of workers that have not been reaped.
static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn groups() -> MutexGuard<'static, BTreeSet<u32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on a signal that ends this process ends its workers first.
pub fn end_workers_too() {
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else { return };
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            groups().iter().for_each(|group| process::end_group(*group));
            let _ = emulate_default_handler(signal);
        }
    };
    // without a thread signals end this process alone
    drop(std::thread::Builder::new().name("signals".into()).spawn(wait));
}

/// A worker was started as the leader of this group.
pub fn started(group: u32) {
    groups().insert(group);
}

/// It is about to be reaped.
pub fn ended(group: u32) {
    groups().remove(&group);
}
