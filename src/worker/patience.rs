//! How long a worker's client waits: for a greeting, and for a sign of life after it.
//!
//! Invariant: every wait for another process has an end. Must not know messages.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two signs of life of a worker, whatever it is doing.
pub const PULSE: Duration = Duration::from_secs(2);

/// Time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For the first message: a login, a queue, a container.
    pub greeting: Duration,
    /// Between signs of life after it.
    pub silence: Duration,
    /// For the end of the output of a worker that has ended.
    pub ending: Duration,
    /// Whether the launch may ask its user something: a password, a new host.
    pub asks: bool,
}

impl Default for Patience {
    /// The greeting's limit is `MASKLOOM_PATIENCE` seconds, 30 without it.
    fn default() -> Self {
        let asked = std::env::var("MASKLOOM_PATIENCE").ok().and_then(|text| text.trim().parse().ok());
        Self {
            greeting: Duration::from_secs(asked.unwrap_or(30)),
            silence: 10 * PULSE,
            ending: Duration::from_secs(2),
            asks: true,
        }
    }
}

/// What has come from a worker so far.
#[derive(Debug)]
pub(super) struct Vital {
    began: Mutex<Instant>,
    last: Mutex<Instant>,
    greeted: AtomicBool,
    /// The first request is a greeting, and it is not answered.
    asked: AtomicBool,
    /// Bytes of a message since the last sign of life.
    part: AtomicUsize,
}

/// So many bytes of a message are a sign of life: far less than any line carries in [`Patience::silence`], and more than a
/// babbling program gives. Signs of life of a worker are whole messages.
const PART: usize = 1024;

impl Vital {
    pub(crate) fn new() -> Vital {
        let now = Instant::now();
        let (began, last) = (Mutex::new(now), Mutex::new(now));
        Vital { began, last, greeted: false.into(), asked: false.into(), part: 0.into() }
    }

    /// A message has come.
    pub(crate) fn message(&self) {
        self.greeted.store(true, Ordering::Release);
        self.bytes(PART);
    }

    /// So many bytes of a message have come. Before the greeting only whole messages count.
    pub(crate) fn bytes(&self, count: usize) {
        if self.part.fetch_add(count, Ordering::Relaxed) + count >= PART {
            self.part.store(0, Ordering::Relaxed);
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
    }

    /// The first request is a greeting: whoever is there answers it at once, so that signs of life alone are not enough.
    pub(crate) fn asked(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// An answer has come.
    pub(crate) fn answered(&self) {
        self.asked.store(false, Ordering::Release);
    }

    /// The wait for a greeting begins again.
    pub(crate) fn again(&self) {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether a message has come.
    pub(crate) fn is_greeted(&self) -> bool {
        self.greeted.load(Ordering::Acquire)
    }

    /// What is missing for too long, in words.
    pub(crate) fn missing(&self, patience: &Patience) -> Option<String> {
        if !self.is_greeted() || self.asked.load(Ordering::Acquire) {
            let began = *self.began.lock().unwrap_or_else(PoisonError::into_inner);
            let late = began.elapsed() >= patience.greeting;
            return late.then(|| format!("no answer for {}", seconds(patience.greeting)));
        }
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        (last.elapsed() >= patience.silence).then(|| format!("no sign of life for {}", seconds(patience.silence)))
    }
}

fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 { format!("{} s", time.as_secs()) } else { format!("{:.1} s", time.as_secs_f64()) }
}
