//! The cells of partial blocks as bits, equal blocks sharing one bitmap.
//!
//! Invariant: bit `q * block_size.kv + kv` of a bitmap says whether that cell, counted from the block's corner, is kept;
//! cells beyond the lengths are not. Must not know kernels: they have layouts of their own.

use super::{BlockKind, BlockMask};
use crate::analysis::classify::{Exact, Verdict};
use crate::analysis::interval::{Cells, Key};
use crate::base::{Control, Diagnostic};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// Bitmaps of all stored batch entries and heads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmaps {
    /// Words of one bitmap.
    pub words: usize,
    /// The distinct bitmaps, one after the other.
    pub bits: Vec<u64>,
    /// Where the partial blocks of each row begin in `ids`, for row (b * heads + h) * rows + q_block; one more at the end.
    pub offsets: Vec<u32>,
    /// The bitmap of each partial block, in ascending order of kv block within a row.
    pub ids: Vec<u32>,
}

/// Bytes of distinct bitmaps that are kept.
const MOST_BYTES: usize = 1 << 30;

impl Bitmaps {
    /// The bitmap of a partial block by its place in `ids`.
    pub fn bitmap(&self, partial: usize) -> &[u64] {
        let id = self.ids[partial] as usize;
        &self.bits[id * self.words..(id + 1) * self.words]
    }

    /// How many bitmaps are stored.
    pub fn distinct(&self) -> usize {
        self.bits.len() / self.words.max(1)
    }
}

pub(super) fn bitmaps(mask: &BlockMask, control: &Control) -> Result<Bitmaps, Diagnostic> {
    let (rows, _) = mask.grid();
    let (batch, heads) = mask.distinct();
    let tasks: Vec<(usize, usize, usize)> =
        (0..batch * heads * rows).map(|n| (n / rows / heads, n / rows % heads, n % rows)).collect();
    let size = mask.block_size();
    let mut out = Bitmaps { words: (size.q * size.kv).div_ceil(64), offsets: vec![0], ..Bitmaps::default() };
    let mut known: HashMap<Arc<[u64]>, u32> = HashMap::new();
    // a part of the rows at a time, so that no more bitmaps wait to be compared than a few
    for part in tasks.chunks(256) {
        let found: Vec<Option<Vec<Arc<[u64]>>>> = part
            .par_iter()
            .map_init(|| Packer::new(mask), |packer, (b, h, row)| packer.row(mask, *b, *h, *row, control))
            .collect();
        for row in found {
            for bits in row.ok_or_else(super::build::cancelled)? {
                let next = known.len() as u32;
                let id = *known.entry(bits).or_insert_with_key(|bits| {
                    out.bits.extend_from_slice(bits);
                    next
                });
                out.ids.push(id);
            }
            out.offsets.push(out.ids.len() as u32);
        }
        if out.bits.len() * 8 > MOST_BYTES {
            let message = format!(
                "the partial blocks of this mask differ so much that their bitmaps need over {} MiB",
                MOST_BYTES >> 20
            );
            return Err(Diagnostic::error("bitmaps-too-large", message).hint("evaluate the mask_mod there instead"));
        }
    }
    Ok(out)
}

struct Packer<'a> {
    exact: Option<Exact<'a>>,
    known: HashMap<Key, Arc<[u64]>>,
}

impl<'a> Packer<'a> {
    fn new(mask: &'a BlockMask) -> Self {
        Self { exact: mask.inner.mask.as_ref().map(Exact::new), known: HashMap::new() }
    }

    /// The partial blocks of a row; None when it was cancelled.
    fn row(&mut self, mask: &BlockMask, b: usize, h: usize, row: usize, control: &Control) -> Option<Vec<Arc<[u64]>>> {
        if control.is_cancelled() {
            return None;
        }
        let (size, lengths) = (mask.block_size(), mask.shape().lengths);
        let q = row * size.q..((row + 1) * size.q).min(lengths.q_len);
        let partial = mask.runs(b, h, row).filter(|run| run.kind == BlockKind::Partial);
        let blocks = partial.flat_map(|run| run.start..run.end);
        let cells =
            |block: usize| Cells::new(b, h, q.clone(), block * size.kv..((block + 1) * size.kv).min(lengths.kv_len));
        Some(blocks.map(|block| self.pack(&cells(block), size.q * size.kv, size.kv)).collect())
    }

    fn pack(&mut self, cells: &Cells, area: usize, width: usize) -> Arc<[u64]> {
        let mixed = self.exact.as_mut().is_some_and(|exact| exact.classify(cells) == Verdict::Mixed);
        let key = self.exact.as_mut().filter(|_| mixed).and_then(|exact| exact.residual(cells));
        if let Some(known) = key.as_ref().and_then(|key| self.known.get(key)) {
            return known.clone();
        }
        let columns = (cells.kv.1 - cells.kv.0 + 1) as usize;
        let mut bits = vec![0u64; area.div_ceil(64)];
        let everything = vec![1; cells.area() as usize];
        let kept: &[u8] = self.exact.as_mut().map_or(&everything, |exact| exact.cells(cells));
        for (row, line) in kept.chunks(columns).enumerate() {
            for (col, _) in line.iter().enumerate().filter(|(_, cell)| **cell != 0) {
                let bit = row * width + col;
                bits[bit / 64] |= 1 << (bit % 64);
            }
        }
        let bits: Arc<[u64]> = bits.into();
        if let Some(key) = key.filter(|_| self.known.len() < 4096) {
            self.known.insert(key, bits.clone());
        }
        bits
    }
}
