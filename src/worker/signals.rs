//! What a signal that ends this process does first: it ends the workers that this process has started.
//!
//! Invariant: the process ends as it would without this, with the same status, and within `PATIENCE` and `kin::LAST`; nothing of a
//! worker's group is left, and nothing that it has started, or it is named as `kin` does. A worker that reads its stdin would see the
//! end by itself; a launch command need not. Must not know what workers do.

use crate::worker::descendants::{self, Process};
use crate::worker::kin;
use crate::worker::process::{self, End};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long workers that were asked to end are waited for: a killed `srun` would leave its job behind.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(5);

/// The groups of workers that have not been reaped.
static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
/// A signal is ending this process.
static ENDING: AtomicBool = AtomicBool::new(false);

fn leaders() -> Vec<u32> {
    groups().iter().copied().collect()
}

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
            // whoever asks twice waits no longer
            end_all(|| signals.pending().next().is_some());
            let _ = emulate_default_handler(signal);
        }
    };
    // without a thread signals end this process alone
    drop(std::thread::Builder::new().name("signals".into()).spawn(wait));
}

fn end_all(mut asked_again: impl FnMut() -> bool) {
    // a stray is found only while its parents live
    let mut strays = descendants::strays(leaders());
    leaders().iter().for_each(|group| process::end_group(*group, End::Ask));
    strays.iter().for_each(|stray| process::end_stray(stray, End::Ask));
    // the readers of the workers reap them meanwhile
    kin::wait(PATIENCE, || is_over(&strays) || asked_again());
    strays.extend(descendants::strays(leaders()));
    leaders().iter().for_each(|group| process::end_group(*group, End::Now));
    strays.iter().for_each(|stray| process::end_stray(stray, End::Now));
    kin::wait(kin::LAST, || is_over(&strays));
    kin::name("the system does not let it go", leaders().into_iter().filter_map(Process::of));
    kin::name_left();
}

fn is_over(strays: &[Process]) -> bool {
    groups().is_empty() && !strays.iter().any(Process::is_ours)
}

/// Where this process is about to end by a signal, the calling thread waits for that end: a worker's end is no news any more.
pub fn wait_for_the_end() {
    while ENDING.load(Ordering::Acquire) {
        std::thread::sleep(LOOK);
    }
}

/// A worker was started as the leader of this group.
pub fn started(group: u32) {
    groups().insert(group);
}

/// It is about to be reaped.
pub fn ended(group: u32) {
    groups().remove(&group);
}
