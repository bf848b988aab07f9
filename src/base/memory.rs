//! The memory that this process holds in large pieces: an allocator that counts them, and what some work held at most.
//!
//! Invariant: a number is given only where the program installed the allocator. The counts are the process's: work that
//! runs at the same time is counted too. Must not allocate. `unsafe` for the allocator's own calls.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Smaller pieces are not counted, so that they cost nothing: a mask, scores and tensors are larger.
const LEAST: usize = 16 << 10;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// The system's allocator, with pieces of 16 KiB and more counted. A program installs it as its `global_allocator`.
#[derive(Debug)]
pub struct Counting;

fn taken(bytes: usize) {
    if bytes >= LEAST {
        INSTALLED.store(true, Relaxed);
        let held = HELD.fetch_add(bytes, Relaxed) + bytes;
        MOST.fetch_max(held, Relaxed);
    }
}

fn given_back(bytes: usize) {
    if bytes >= LEAST {
        HELD.fetch_sub(bytes, Relaxed);
    }
}

// SAFETY: every call is the system allocator's own, with the same arguments; the counts touch no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the trait, which is the system's.
        let at = unsafe { System.alloc(layout) };
        if !at.is_null() {
            taken(layout.size());
        }
        at
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let at = unsafe { System.alloc_zeroed(layout) };
        if !at.is_null() {
            taken(layout.size());
        }
        at
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) };
        given_back(layout.size());
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        let now = unsafe { System.realloc(at, layout, size) };
        if !now.is_null() {
            // the old piece may live until the new one is filled
            taken(size);
            given_back(layout.size());
        }
        now
    }
}

/// What was held when some work began, and what it held at most since.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    before: usize,
}

impl Meter {
    /// Begins.
    pub fn start() -> Meter {
        Meter { before: HELD.load(Relaxed) }
    }

    /// Forgets what was held in between and given back.
    pub fn forget(&self) {
        MOST.store(HELD.load(Relaxed), Relaxed);
    }

    /// The most bytes held at a time since [`Meter::forget`] beyond those at the start; None where nothing is counted.
    pub fn most(&self) -> Option<u64> {
        INSTALLED.load(Relaxed).then(|| MOST.load(Relaxed).saturating_sub(self.before) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The allocator's own calls, as a program makes them: Miri sees every byte of them.
    #[test]
    fn large_pieces_are_counted_while_they_are_held_and_small_ones_never() {
        let meter = Meter::start();
        let (small, large) = (LEAST / 2, 3 * LEAST);
        let layout = |size| Layout::from_size_align(size, 16).expect("a layout");
        // SAFETY: sizes are above zero; each piece is given back once, with the layout that it has then.
        unsafe {
            let at = Counting.alloc_zeroed(layout(small));
            assert!((0..small).all(|n| *at.add(n) == 0));
            let before = HELD.load(Relaxed);
            let at = Counting.realloc(at, layout(small), large);
            assert!(HELD.load(Relaxed) >= before + large && *at.add(small - 1) == 0);
            let other = Counting.alloc(layout(large));
            other.write_bytes(7, large);
            assert!(meter.most().expect("counted") >= 2 * large as u64);
            Counting.dealloc(at, layout(large));
            Counting.dealloc(other, layout(large));
        }
        meter.forget();
        assert!(meter.most().expect("counted") < large as u64);
    }
}
