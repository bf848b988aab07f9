//! Buffers of f32 that begin at a cache line.
//!
//! Invariant: the first element lies at a multiple of 64 bytes for as long as the buffer lives. Must not know what is kept in them.

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, which is also the widest vector.
const LINE: usize = 64;

/// Zeros at first. A vector of the widest level that crosses two cache lines is loaded twice, so that buffers of the inner loops begin
/// at a line: a product of aligned buffers takes about a tenth less time.
#[derive(Debug)]
pub struct Aligned {
    held: Vec<f32>,
    first: usize,
    len: usize,
}

impl Aligned {
    /// `len` zeros, in memory that the system gives only when it is written to.
    pub fn zeros(len: usize) -> Aligned {
        let held = vec![0.0f32; len + LINE / size_of::<f32>()];
        // usize::MAX where an address has no such offset, which no system of ours does
        let first = held.as_ptr().align_offset(LINE).min(LINE / size_of::<f32>());
        Aligned { held, first, len }
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.held[self.first..self.first + self.len]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.held[self.first..self.first + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_begins_at_a_line_and_holds_what_was_written() {
        for len in [0, 1, 16, 1000, 1 << 20] {
            let mut buffer = Aligned::zeros(len);
            assert_eq!((buffer.len(), buffer.as_ptr() as usize % LINE), (len, 0));
            assert!(buffer.iter().all(|x| *x == 0.0));
            buffer.fill(2.0);
            let moved = buffer;
            assert!(moved.iter().all(|x| *x == 2.0) && (moved.as_ptr() as usize).is_multiple_of(LINE));
        }
    }
}
