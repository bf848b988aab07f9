//! Which rank has which blocks of queries and of keys, and the order of the tokens that follows.
//!
//! Invariant: every block has one rank; a rank's blocks ascend, so that a last block that is not whole is the last of
//! its rank. Must not know masks.

use crate::base::{BlockSize, Lengths};
use crate::request::Request;

/// The ranks of all blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Ranks, some of which may have no block.
    pub ranks: usize,
    /// Extent in tokens.
    pub lengths: Lengths,
    /// Tokens of a block.
    pub block_size: BlockSize,
    /// The rank of each query block.
    pub q_rank: Vec<u16>,
    /// The rank of each key block.
    pub kv_rank: Vec<u16>,
}

/// How blocks are moved together: so many query blocks and so many key blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grain {
    pub q: usize,
    pub kv: usize,
}

impl Grain {
    /// The smallest that keeps queries and keys of the same tokens together, in at most so many chunks.
    pub(crate) fn of(request: &Request, most: usize) -> Grain {
        let BlockSize { q, kv } = request.block_size();
        let (mut grain, tokens) = match request.coupled() {
            true => {
                let both = q / gcd(q, kv) * kv;
                (Grain { q: both / q, kv: both / kv }, both)
            }
            false => (Grain { q: 1, kv: 1 }, q.min(kv)),
        };
        let longest = request.lengths().q_len.max(request.lengths().kv_len);
        let times = longest.div_ceil(tokens).div_ceil(most).max(1);
        (grain.q, grain.kv) = (grain.q * times, grain.kv * times);
        grain
    }

    /// Chunks of queries and of keys.
    pub(crate) fn chunks(self, request: &Request) -> (usize, usize) {
        let (rows, cols) = request.block_size().grid(request.lengths());
        (rows.div_ceil(self.q), cols.div_ceil(self.kv))
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Split {
    /// From the ranks of chunks.
    pub(crate) fn of_chunks(request: &Request, grain: Grain, q: &[u16], kv: &[u16]) -> Split {
        let (rows, cols) = request.block_size().grid(request.lengths());
        Split {
            ranks: request.ranks(),
            lengths: request.lengths(),
            block_size: request.block_size(),
            q_rank: (0..rows).map(|block| q[block / grain.q]).collect(),
            kv_rank: (0..cols).map(|block| kv[block / grain.kv]).collect(),
        }
    }

    /// The query blocks of a rank, ascending.
    pub fn q_blocks(&self, rank: usize) -> Vec<u32> {
        of_rank(&self.q_rank, rank)
    }

    /// The key blocks of a rank, ascending.
    pub fn kv_blocks(&self, rank: usize) -> Vec<u32> {
        of_rank(&self.kv_rank, rank)
    }

    /// Query tokens of a rank.
    pub fn q_len(&self, rank: usize) -> usize {
        tokens(&self.q_blocks(rank), self.block_size.q, self.lengths.q_len)
    }

    /// Key tokens of a rank.
    pub fn kv_len(&self, rank: usize) -> usize {
        tokens(&self.kv_blocks(rank), self.block_size.kv, self.lengths.kv_len)
    }

    /// The query tokens in the order of ranks: `x[indices]` has each rank's tokens side by side.
    pub fn indices(&self) -> Vec<u32> {
        let of = |rank| positions(&self.q_blocks(rank), self.block_size.q, self.lengths.q_len);
        (0..self.ranks).flat_map(of).collect()
    }

    /// The inverse of [`Split::indices`].
    pub fn restore(&self) -> Vec<u32> {
        inverse(&self.indices())
    }

    /// The key tokens in the order of ranks.
    pub fn kv_indices(&self) -> Vec<u32> {
        let of = |rank| positions(&self.kv_blocks(rank), self.block_size.kv, self.lengths.kv_len);
        (0..self.ranks).flat_map(of).collect()
    }

    /// The inverse of [`Split::kv_indices`].
    pub fn kv_restore(&self) -> Vec<u32> {
        inverse(&self.kv_indices())
    }
}

fn of_rank(ranks: &[u16], rank: usize) -> Vec<u32> {
    (0..ranks.len() as u32).filter(|block| ranks[*block as usize] as usize == rank).collect()
}

fn inverse(order: &[u32]) -> Vec<u32> {
    let mut out = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, token)| out[*token as usize] = at as u32);
    out
}

/// Tokens of a block, fewer in the last one.
pub(crate) fn block_tokens(block: usize, size: usize, length: usize) -> usize {
    size.min(length - block * size)
}

/// Tokens of some blocks.
pub(crate) fn tokens(blocks: &[u32], size: usize, length: usize) -> usize {
    blocks.iter().map(|block| block_tokens(*block as usize, size, length)).sum()
}

/// The tokens of some blocks in their order.
pub(crate) fn positions(blocks: &[u32], size: usize, length: usize) -> Vec<u32> {
    let of = |block: &u32| {
        let first = *block as usize * size;
        first as u32..(first + block_tokens(*block as usize, size, length)) as u32
    };
    blocks.iter().flat_map(of).collect()
}
