//! Cancel and progress for long work.
//!
//! Invariant: work that may take longer than a frame receives a [`Control`] and checks it often. Must not know threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Shared between the caller and the code that does the work; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Control {
    cancelled: Arc<AtomicBool>,
    /// Progress in millionths.
    progress: Arc<AtomicU32>,
}

impl Control {
    /// A control that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the work should stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Says how far the work is, 0..=1.
    pub fn set_progress(&self, fraction: f64) {
        self.progress.store((fraction.clamp(0.0, 1.0) * 1e6) as u32, Ordering::Relaxed);
    }

    /// How far the work is, 0..=1.
    pub fn progress(&self) -> f64 {
        f64::from(self.progress.load(Ordering::Relaxed)) / 1e6
    }
}

/// How long something still takes, in a unit that suits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Left {
    AlmostDone,
    Seconds(u64),
    Minutes(u64),
    Hours(u64),
}

impl Left {
    /// By the time so far, once there is something to judge by.
    pub fn of(waited: Duration, fraction: f64) -> Option<Left> {
        if fraction < 0.001 {
            return None;
        }
        let left = waited.as_secs_f64() * (1.0 - fraction) / fraction;
        Some(match left {
            ..1.0 => Left::AlmostDone,
            1.0..120.0 => Left::Seconds(left.round_ties_even() as u64),
            120.0..7200.0 => Left::Minutes((left / 60.0).round_ties_even() as u64),
            _ => Left::Hours((left / 3600.0).round_ties_even() as u64),
        })
    }
}

/// `about 12 s left`
impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Left::AlmostDone => f.write_str("almost done"),
            Left::Seconds(n) => write!(f, "about {n} s left"),
            Left::Minutes(n) => write!(f, "about {n} min left"),
            Left::Hours(n) => write!(f, "about {n} h left"),
        }
    }
}
