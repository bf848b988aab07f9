//! Panics of background work: each is counted, and reported to the user once.
//!
//! Invariant: a caught panic is never silent: the code that catches one reports it here. Must not know the work.

use crate::base::Diagnostic;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Messages that wait for a window, at most.
const WAITING: usize = 20;

/// The panics so far.
#[derive(Debug, Default)]
pub(crate) struct Mishaps {
    count: AtomicU64,
    waiting: Mutex<Vec<Diagnostic>>,
}

/// Those of this process.
static OURS: Mishaps = Mishaps { count: AtomicU64::new(0), waiting: Mutex::new(Vec::new()) };

impl Mishaps {
    fn note(&self, doing: &str, panic: &(dyn Any + Send)) -> Diagnostic {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("no reason given");
        let what = Diagnostic::error("internal", format!("Maskloom made a mistake while {doing}: {text}"))
            .hint("this is a bug of Maskloom: please report it with the document; the document is unchanged");
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING && !waiting.contains(&what) {
            waiting.push(what.clone());
        }
        what
    }

    /// Panics since the start.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Panics that no window has reported yet.
    pub(crate) fn take(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The counter of this process.
pub(crate) fn ours() -> &'static Mishaps {
    &OURS
}

/// A diagnostic for a panic: it is our mistake, and nothing of the user's is lost.
pub(crate) fn our_mistake(doing: &str, panic: &(dyn Any + Send)) -> Diagnostic {
    OURS.note(doing, panic)
}

/// Does work that may panic, which costs its result and no thread.
pub(crate) fn guarded<T>(doing: &str, work: impl FnOnce() -> T) -> Result<T, Diagnostic> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| our_mistake(doing, &*panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_counted_and_told_once_in_its_own_words() {
        let mishaps = Mishaps::default();
        for _ in 0..2 {
            let panic = catch_unwind(|| panic!("tile {}", 7)).unwrap_err();
            let what = mishaps.note("drawing", &*panic);
            assert!(what.message.ends_with("while drawing: tile 7") && what.is_error(), "{}", what.message);
        }
        assert_eq!((mishaps.count(), mishaps.take().len(), mishaps.take().len()), (2, 1, 0));
    }
}
