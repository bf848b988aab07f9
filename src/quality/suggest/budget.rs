//! Block lists for a target: the number of largest blocks to take, row by row or anywhere.
//!
//! Invariant: protected blocks are taken first and count; the others are taken by mass, so that no list of the same
//! size keeps more.

use super::{Material, Protect, Wanted};
use crate::quality::live::LiveHead;

/// Blocks of a head that are taken in any case.
pub(super) fn forced(material: &Material, wanted: &Wanted) -> Vec<u8> {
    let (lengths, size) = (material.lengths(), material.block());
    let (rows, columns) = size.grid(lengths);
    let Protect { diagonal, sinks, text, first_frame } = wanted.protect;
    let mut found = vec![0; rows * columns];
    for i in 0..rows {
        let q = i * size.q..((i + 1) * size.q).min(lengths.q_len);
        for j in 0..columns {
            let kv = j * size.kv..((j + 1) * size.kv).min(lengths.kv_len);
            let beside = wanted.grid.is_some_and(|grid| {
                let tokens = grid.tokens();
                let outside = |of: &std::ops::Range<usize>| of.start < tokens.start || of.end > tokens.end;
                text && (outside(&q) || outside(&kv))
            });
            let frame = wanted.grid.is_some_and(|grid| {
                let [frames, h, w] = grid.extents;
                first_frame && frames > 1 && kv.start < grid.start + h * w && kv.end > grid.start
            });
            let crossed = diagonal && q.start < kv.end && kv.start < q.end;
            let hidden = material.causal && kv.start >= q.end;
            found[i * columns + j] = u8::from(!hidden && ((sinks && j == 0) || crossed || beside || frame));
        }
    }
    found
}

/// One block that may be taken.
pub(super) struct Block {
    pub head: usize,
    pub at: usize,
    /// Summed mass over its rows.
    pub mass: f64,
}

/// Blocks of some heads that hold mass, largest first.
pub(super) fn ranked(heads: &[&LiveHead]) -> Vec<Block> {
    let mut all = Vec::new();
    for (head, of) in heads.iter().enumerate() {
        let (rows, columns) = of.masses.grid();
        for i in 0..rows {
            let judged = of.masses.judged(i) as f64;
            let row = of.masses.row(i).iter().enumerate().filter(|(_, m)| **m > 0.0);
            all.extend(row.map(|(j, m)| Block { head, at: i * columns + j, mass: judged * f64::from(*m) }));
        }
    }
    all.sort_unstable_by(|a, b| b.mass.total_cmp(&a.mass));
    all
}
