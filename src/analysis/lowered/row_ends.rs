//! Rows as an odd number of ends: the keys before the first one, then those between each further pair.
//!
//! Invariant: a row's ends ascend and lie within its keys; a row with fewer ranges repeats its last end. Must not know who reads them.

use super::Lowered;
use crate::base::HostTensor;
use crate::base::tensor::Data;
use crate::base::words::{bytes, grouped};
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

impl Lowered {
    /// The ends of all rows, as many a row as the longest one needs.
    pub fn row_ends(&self) -> RowEnds {
        let (shape, q_len) = (self.shape, self.shape.lengths.q_len);
        let all_rows = || self.spans.iter().flat_map(|s| s.rows());
        let count = all_rows().map(|row| 1 + 2 * pairs(row).1.len()).max().unwrap_or(1);
        let rows = shape.batch * q_len;
        let mut ends = vec![0i32; shape.heads * count * rows];
        for (at, row) in all_rows().enumerate() {
            let (pair, q) = (at / q_len, at % q_len);
            let (b, h) = (pair / shape.heads, pair % shape.heads);
            let place = |n: usize| (h * count + n) * rows + b * q_len + q;
            let (first, others) = pairs(row);
            let own = std::iter::once(first).chain(others.iter().flat_map(|r| [r.start, r.end]));
            let last = row.last().map_or(0, |r| r.end);
            for (n, end) in own.chain(std::iter::repeat(last)).take(count).enumerate() {
                ends[place(n)] = end as i32;
            }
        }
        let ends =
            HostTensor::new([shape.heads, count, rows], Data::I32(ends)).expect("its shape has as many elements");
        RowEnds { ends, batch: shape.batch }
    }
}

/// How many of the first keys a row keeps, and its other ranges.
fn pairs(row: &[Range<u32>]) -> (u32, &[Range<u32>]) {
    match row {
        [first, others @ ..] if first.start == 0 => (first.end, others),
        others => (0, others),
    }
}
