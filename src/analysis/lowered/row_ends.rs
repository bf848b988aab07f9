//! Rows as an odd number of ends: the keys before the first one, then those between each further pair.
//!
//! Invariant: a row's ends ascend and lie within its keys; a row with fewer ranges repeats its last end. Must not know who reads them.

use super::spans;
use crate::analysis::block_mask::BlockMask;
use crate::base::tensor::Data;
use crate::base::words::{bytes, grouped};
use crate::base::{Control, Diagnostic, HostTensor};
use std::ops::Range;

/// The ends of all rows.
#[derive(Clone, Debug, PartialEq)]
pub struct RowEnds {
    /// int32 `[heads, ends, batch * q_len]`; heads and batch are 1 where the mask does not differ by them.
    pub ends: HostTensor,
    /// Batch entries in it.
    pub batch: usize,
}

impl RowEnds {
    /// Heads in it.
    pub fn heads(&self) -> usize {
        self.ends.shape()[0]
    }

    /// Ends of a row.
    pub fn count(&self) -> usize {
        self.ends.shape()[1]
    }

    /// Its bytes with the rows of `batch` entries.
    pub fn bytes(&self, batch: usize) -> u64 {
        self.ends.numel() as u64 * 4 / self.batch as u64 * batch.max(self.batch) as u64
    }

    /// `3 ends a row (nfunc), 96 KiB`.
    pub fn words(&self, batch: usize) -> String {
        format!("nfunc {}, {}", grouped(self.count() as u128), bytes(self.bytes(batch)))
    }
}

/// The ends of a mask's rows. Errors: a row has more than `most` ranges, it was cancelled.
pub fn row_ends(blocks: &BlockMask, most: usize, control: &Control) -> Result<RowEnds, Diagnostic> {
    let (shape, lengths) = (blocks.shape(), blocks.shape().lengths);
    let mut found = Vec::new();
    for h in 0..shape.heads {
        for b in 0..shape.batch {
            found.push(spans(blocks, (b, h), most, control)?);
        }
    }
    let count = found.iter().flat_map(|s| s.rows()).map(|row| 1 + 2 * pairs(row).1.len()).max().unwrap_or(1);
    let rows = shape.batch * lengths.q_len;
    let mut ends = vec![0i32; shape.heads * count * rows];
    for (at, own) in found.iter().enumerate() {
        let (h, b) = (at / shape.batch, at % shape.batch);
        for (q, row) in own.rows().enumerate() {
            let place = |n: usize| (h * count + n) * rows + b * lengths.q_len + q;
            let (first, others) = pairs(row);
            let all = std::iter::once(first).chain(others.iter().flat_map(|r| [r.start, r.end]));
            let last = row.last().map_or(0, |r| r.end);
            for (n, end) in all.chain(std::iter::repeat(last)).take(count).enumerate() {
                ends[place(n)] = end as i32;
            }
        }
    }
    let ends = HostTensor::new([shape.heads, count, rows], Data::I32(ends))?;
    Ok(RowEnds { ends, batch: shape.batch })
}

/// How many of the first keys a row keeps, and its other ranges.
fn pairs(row: &[Range<u32>]) -> (u32, &[Range<u32>]) {
    match row {
        [first, others @ ..] if first.start == 0 => (first.end, others),
        others => (0, others),
    }
}
