//! Lengths of a mask and sizes of its blocks.
//!
//! Invariant: both lengths and both block sizes are positive and fit in 31 bits. Must not know what a mask is.

use super::Diagnostic;
use serde::{Deserialize, Serialize};

/// Longest sequence we accept, in tokens. Indices are i32 in kernels, and sums of two must not overflow.
pub const MAX_LENGTH: usize = 1 << 30;

/// Extent of a mask, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lengths {
    /// Query tokens (rows).
    pub q_len: usize,
    /// Key and value tokens (columns).
    pub kv_len: usize,
}

impl Lengths {
    /// Validated lengths. Errors: zero (PyTorch's words), or above [`MAX_LENGTH`].
    pub fn new(q_len: usize, kv_len: usize) -> Result<Self, Diagnostic> {
        for (what, len) in [("Query", q_len), ("Key", kv_len)] {
            if len == 0 {
                return Err(Diagnostic::error("zero-length", format!("{what} length must be greater than 0"))
                    .hint("set the sequence lengths in the problem settings, or use axes of at least one token"));
            }
            if len > MAX_LENGTH {
                return Err(Diagnostic::error(
                    "length-too-large",
                    format!("{what} length {len} is above the largest supported, {MAX_LENGTH} (2^30) tokens"),
                )
                .hint("shorten the axes; indices are 32-bit in kernels"));
            }
        }
        Ok(Self { q_len, kv_len })
    }

    /// The longer of both.
    pub fn longer(self) -> usize {
        self.q_len.max(self.kv_len)
    }

    /// Rows and columns of pixels of a picture whose longer side has `side` of them; at least one each.
    pub fn in_pixels(self, side: usize) -> [usize; 2] {
        let longer = self.longer().max(1) as u128;
        [self.q_len, self.kv_len].map(|n| (n as u128 * side as u128).div_ceil(longer).max(1) as usize)
    }
}

/// BLOCK_SIZE of a block mask, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockSize {
    /// `block_size_q`
    pub q: usize,
    /// `block_size_kv`
    pub kv: usize,
}

impl BlockSize {
    /// PyTorch's default, 128 x 128.
    pub const DEFAULT: BlockSize = BlockSize { q: 128, kv: 128 };

    /// A square block.
    pub fn square(size: usize) -> Self {
        Self { q: size, kv: size }
    }

    /// Rows and columns of blocks that cover `lengths`; the last ones may reach beyond them.
    pub fn grid(self, lengths: Lengths) -> (usize, usize) {
        (lengths.q_len.div_ceil(self.q), lengths.kv_len.div_ceil(self.kv))
    }
}

impl std::fmt::Display for BlockSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.q, self.kv)
    }
}
