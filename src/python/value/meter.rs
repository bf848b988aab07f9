//! Work that builtins do element by element: comparing, hashing, copying, printing.
//!
//! Invariant: it is counted where it is done, and the next charge of steps takes it over. A builtin that has done too much for one
//! call is told so, and its result is refused by that charge. Must not know the limits of a text.

use std::cell::Cell;

/// Work of about a step's time.
const OF_A_STEP: u64 = 8;
/// Most work between two charges: about a second.
const MOST: u64 = 1 << 26;

thread_local! {
    static DONE: Cell<u64> = const { Cell::new(0) };
}

/// Counts so many elements.
pub(crate) fn work(elements: usize) {
    DONE.set(DONE.get().saturating_add(elements as u64));
}

/// Counts the bytes of a text that are compared, copied or hashed.
pub(crate) fn bytes(bytes: usize) {
    work(bytes / 64);
}

/// Whether the work since the last charge is too much: what is computed now is refused.
pub(crate) fn exhausted() -> bool {
    DONE.get() > MOST
}

/// Lets the next charge refuse: a result is not known.
pub(crate) fn exhaust() {
    DONE.set(MOST + 1);
}

/// The steps of the work since the last charge; None where it was too much.
pub(crate) fn steps() -> Option<u64> {
    let done = DONE.take();
    (done <= MOST).then_some(done / OF_A_STEP)
}
