//! Checks whether files that were read have changed, off the window's thread.
//!
//! Invariant: a save is seen within some hundredths of a second, at no cost while no file is watched. Must not know the
//! files' meaning.

use super::background::Wake;
use crate::tasks::environment::{Stamp, stamp};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often files are looked at whose change shall be seen at once: code in work.
pub(super) const AT_ONCE: Duration = Duration::from_millis(20);
/// How often others are.
pub(super) const SOON: Duration = Duration::from_millis(500);

/// A thread that looks at files.
pub(super) struct Watch {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Counts changes.
    changes: AtomicU64,
}

#[derive(Default)]
struct State {
    files: Vec<(PathBuf, Stamp)>,
    closed: bool,
}

impl Watch {
    /// Starts the thread, which looks after each `pause`; `wake` is called after a change.
    pub(crate) fn new(wake: Wake, pause: Duration) -> Watch {
        let shared = Arc::new(Shared::default());
        let mine = shared.clone();
        let thread = std::thread::Builder::new().name("watch".into()).spawn(move || mine.run(&wake, pause));
        // without a thread (the system has no more) files are read again on request
        drop(thread);
        Watch { shared }
    }

    /// Watches these from now on; those watched already keep the time that is known of them.
    pub(crate) fn files(&self, paths: &[PathBuf]) {
        let mut state = self.shared.lock();
        if state.files.iter().map(|(p, _)| p).eq(paths) {
            return;
        }
        let old = std::mem::take(&mut state.files);
        let known = |path: &Path| old.iter().find(|(p, _)| p == path).map(|(_, at)| *at);
        state.files = paths.iter().map(|p| (p.clone(), known(p).unwrap_or_else(|| stamp(p)))).collect();
        self.shared.changed.notify_all();
    }

    /// How many changes there were.
    pub(crate) fn changes(&self) -> u64 {
        self.shared.changes.load(Ordering::Acquire)
    }

    /// Counts as a change.
    pub(crate) fn raise(&self) {
        self.shared.changes.fetch_add(1, Ordering::AcqRel);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, wake: &Wake, pause: Duration) {
        let mut state = self.lock();
        while !state.closed {
            state = if state.files.is_empty() {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0
            };
            let mut changed = false;
            for (path, at) in &mut state.files {
                let now = stamp(path);
                changed |= *at != now;
                *at = now;
            }
            if changed {
                self.changes.fetch_add(1, Ordering::AcqRel);
                drop(state);
                wake();
                state = self.lock();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::SystemTime;

    #[test]
    fn a_save_is_seen_at_once_and_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mod.py");
        std::fs::write(&path, "one").unwrap();
        let (tell, reported) = channel();
        let tell = Mutex::new(tell);
        let watch = Watch::new(
            Arc::new(move || {
                let _ = tell.lock().unwrap().send(());
            }),
            AT_ONCE,
        );
        watch.files(std::slice::from_ref(&path));
        assert!(reported.recv_timeout(Duration::from_millis(100)).is_err());
        let later = SystemTime::now() + Duration::from_secs(5);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        reported.recv_timeout(Duration::from_secs(5)).expect("the change is told");
        assert_eq!(watch.changes(), 1);
        // a second write within one tick of the clock
        std::fs::write(&path, "longer").unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        reported.recv_timeout(Duration::from_secs(5)).expect("another length is told");
        let seen = watch.changes();
        watch.raise();
        assert!(watch.changes() > seen);
        std::fs::remove_file(&path).unwrap();
        reported.recv_timeout(Duration::from_secs(5)).expect("a file that goes is a change");
    }
}
