//! How far the count of blocks and cells is.
//!
//! Invariant: the share that is shown never goes back while one mask is counted: blocks are its first half, cells its second, whose
//! speed differs. Must not know what is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How a count is going.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CountProgress {
    /// Of the blocks, or of the cells once the blocks are known: the time so far and the finished share of these; and that of all.
    Working { at_cells: bool, waited: Duration, fraction: f64, whole: f64 },
    /// The user stopped it.
    Stopped,
}

/// The count in work, until it is answered or stopped.
#[derive(Debug, Default)]
pub(super) struct CountClock {
    began: Option<Instant>,
    /// The counting thread says so.
    pub at_cells: Arc<AtomicBool>,
    was_at_cells: bool,
    pub stopped: bool,
    /// The largest share so far, of all.
    whole: f64,
}

impl CountClock {
    /// From now on.
    pub(super) fn start() -> CountClock {
        CountClock { began: Some(Instant::now()), ..CountClock::default() }
    }

    /// Restarts when the counting of cells begins, because its speed differs. `fraction`: of blocks, or of cells.
    pub(super) fn follow(&mut self, fraction: f64) {
        if !self.was_at_cells && self.at_cells.load(Ordering::Relaxed) {
            self.was_at_cells = true;
            self.began = Some(Instant::now());
            // what was read may still be the share of the blocks
            self.whole = self.whole.max(0.5);
            return;
        }
        let whole = if self.was_at_cells { 0.5 + fraction / 2.0 } else { fraction / 2.0 };
        self.whole = self.whole.max(whole);
    }

    /// How far it is.
    pub(super) fn progress(&self, fraction: f64) -> CountProgress {
        if self.stopped {
            return CountProgress::Stopped;
        }
        let waited = self.began.map(|began| began.elapsed()).unwrap_or_default();
        CountProgress::Working { at_cells: self.was_at_cells, waited, fraction, whole: self.whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It said 75%, and then 17%.
    #[test]
    fn the_share_never_goes_back_when_cells_are_counted_after_blocks() {
        let mut clock = CountClock::start();
        let mut shown = Vec::new();
        let mut at = |clock: &mut CountClock, fraction: f64| {
            clock.follow(fraction);
            let CountProgress::Working { whole, .. } = clock.progress(fraction) else { panic!("it works") };
            shown.push(whole);
        };
        for fraction in [0.1, 0.75, 0.99] {
            at(&mut clock, fraction);
        }
        clock.at_cells.store(true, Ordering::Relaxed);
        for fraction in [0.99, 0.0, 0.17, 0.8, 1.0] {
            at(&mut clock, fraction);
        }
        assert!(shown.windows(2).all(|pair| pair[0] <= pair[1]), "{shown:?}");
        assert!(shown[1] < 0.5 && shown[5] < 0.6 && shown[7] == 1.0, "{shown:?}");
        clock.stopped = true;
        assert_eq!(clock.progress(0.5), CountProgress::Stopped);
    }
}
