//! Attention mass of a head by block and by row: one sweep with a running softmax, never a dense matrix.
//!
//! Invariant: a row's masses sum to one unless full attention keeps no key there (lse -inf) or a score was NaN or +inf
//! (lse NaN); such rows are excluded from the means and counted. Must not know the measured mask.

use super::cancelled;
use super::head::Head;
use super::scores::{ROWS, RowScratch, STEP, Scorer, sum};
use crate::base::{BlockSize, Control, Diagnostic, Lengths};
use crate::micro::Tile;
use rayon::prelude::*;

/// Mass of a head.
#[derive(Clone, Debug, PartialEq)]
pub struct Masses {
    /// Tokens.
    pub lengths: Lengths,
    /// BLOCK_SIZE of the blocks.
    pub block: BlockSize,
    /// [q blocks][kv blocks]: mean over the judged rows of a query block of the mass in a key block.
    pub blocks: Vec<f32>,
    /// Natural log-sum-exp of each row's scores, without the sink; see the invariant.
    pub lse: Vec<f64>,
    /// Largest score of each row.
    pub max: Vec<f32>,
    /// [q_len][kv blocks]: mass of each row in each key block, if requested.
    pub rows: Option<Vec<f32>>,
    /// The factor by which a block's mass may be larger or smaller than stated: 1 for sums made here, above 1 for a
    /// capture's rounded ones.
    pub rounding: f64,
}

/// Bytes that row masses of so many heads take.
pub fn row_bytes(lengths: Lengths, block: BlockSize, heads: usize) -> u128 {
    lengths.q_len as u128 * block.grid(lengths).1 as u128 * heads as u128 * 4
}

impl Masses {
    /// Rows and columns of blocks.
    pub fn grid(&self) -> (usize, usize) {
        self.block.grid(self.lengths)
    }

    /// Rows of a query block that are judged.
    pub fn judged(&self, q_block: usize) -> usize {
        let rows = q_block * self.block.q..((q_block + 1) * self.block.q).min(self.lengths.q_len);
        self.lse[rows].iter().filter(|lse| lse.is_finite()).count()
    }

    /// Rows of which full attention keeps nothing.
    pub fn empty_rows(&self) -> usize {
        self.lse.iter().filter(|lse| **lse == f64::NEG_INFINITY).count()
    }

    /// Rows with a NaN or an infinite score.
    pub fn broken_rows(&self) -> usize {
        self.lse.iter().filter(|lse| lse.is_nan() || **lse == f64::INFINITY).count()
    }

    /// One row of blocks.
    pub fn row(&self, q_block: usize) -> &[f32] {
        let (_, columns) = self.grid();
        &self.blocks[q_block * columns..(q_block + 1) * columns]
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        4 * (self.blocks.len() + self.max.len() + self.rows.as_ref().map_or(0, Vec::len)) + 8 * self.lse.len()
    }

    /// The rows that cannot be measured, in words; None if all can.
    pub fn troubles(&self) -> Option<String> {
        let (empty, broken) = (self.empty_rows(), self.broken_rows());
        let first = |bad: fn(&f64) -> bool| self.lse.iter().position(bad).unwrap_or(0);
        let mut words = Vec::new();
        if broken > 0 {
            let row = first(|lse| lse.is_nan() || *lse == f64::INFINITY);
            words.push(format!(
                "{broken} rows have a NaN or an infinite score, the first is q_idx {row}: they are skipped (float16 overflows above 65504)"
            ));
        }
        if empty > 0 {
            let row = first(|lse| *lse == f64::NEG_INFINITY);
            words.push(format!(
                "the model itself keeps no key in {empty} rows, the first is q_idx {row}: they are skipped"
            ));
        }
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// The part of the result that one row of blocks fills.
struct Task<'a> {
    q_block: usize,
    blocks: &'a mut [f32],
    lse: &'a mut [f64],
    max: &'a mut [f32],
    rows: Option<&'a mut [f32]>,
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    query: Vec<f32>,
    tile: Vec<f32>,
    parts: Vec<f32>,
    sums: Vec<f64>,
    running: RowScratch,
}

/// Masses of a head; with `keep_rows` those of every row too. Errors: `cancelled`.
pub fn masses(head: &Head, block: BlockSize, keep_rows: bool, control: &Control) -> Result<Masses, Diagnostic> {
    of_scorer(&Scorer::new(head), block, keep_rows, control)
}

/// The same of a head that is packed already.
pub fn of_scorer(scorer: &Scorer, block: BlockSize, keep_rows: bool, control: &Control) -> Result<Masses, Diagnostic> {
    let lengths = scorer.head().lengths();
    let (rows, columns) = block.grid(lengths);
    let mut found = Masses {
        lengths,
        block,
        blocks: vec![0.0; rows * columns],
        lse: vec![0.0; lengths.q_len],
        max: vec![0.0; lengths.q_len],
        rows: keep_rows.then(|| vec![0.0; lengths.q_len * columns]),
        rounding: 1.0,
    };
    let kept: Vec<Option<&mut [f32]>> = match &mut found.rows {
        Some(all) => all.chunks_mut(block.q * columns).map(Some).collect(),
        None => (0..rows).map(|_| None).collect(),
    };
    let parts = found.blocks.chunks_mut(columns).zip(found.lse.chunks_mut(block.q)).zip(found.max.chunks_mut(block.q));
    let tasks: Vec<Task> = parts
        .zip(kept)
        .enumerate()
        .map(|(q_block, (((blocks, lse), max), rows))| Task { q_block, blocks, lse, max, rows })
        .collect();
    tasks.into_par_iter().for_each_init(Scratch::default, |scratch, task| {
        if !control.is_cancelled() {
            block_row(scorer, block, scratch, task);
        }
    });
    if control.is_cancelled() { Err(cancelled()) } else { Ok(found) }
}

/// One row of blocks, at most [`ROWS`] rows at a time.
fn block_row(scorer: &Scorer, block: BlockSize, scratch: &mut Scratch, mut task: Task) {
    let columns = task.blocks.len();
    let (start, count) = (task.q_block * block.q, task.lse.len());
    scratch.sums.clear();
    scratch.sums.resize(columns, 0.0);
    let mut judged = 0usize;
    for from in (0..count).step_by(ROWS) {
        let rows = from..(from + ROWS).min(count);
        sweep(scorer, block.kv, start + rows.start..start + rows.end, scratch);
        for (r, at) in rows.enumerate() {
            let lse = scratch.running.lse(r);
            (task.lse[at], task.max[at]) = (lse, scratch.running.max[r]);
            if !lse.is_finite() {
                continue;
            }
            judged += 1;
            let parts = &mut scratch.parts[r * columns..(r + 1) * columns];
            let total = 1.0 / scratch.running.sum[r];
            for (part, sum) in parts.iter_mut().zip(&mut scratch.sums) {
                *part *= total;
                *sum += f64::from(*part);
            }
            if let Some(rows) = &mut task.rows {
                rows[at * columns..(at + 1) * columns].copy_from_slice(parts);
            }
        }
    }
    let weight = 1.0 / judged.max(1) as f64;
    task.blocks.iter_mut().zip(&scratch.sums).for_each(|(to, sum)| *to = (sum * weight) as f32);
}

/// Leaves `exp(score - max)` summed by key block in `parts`, [rows][kv blocks], and the running softmax at its end.
fn sweep(scorer: &Scorer, block_kv: usize, rows: std::ops::Range<usize>, scratch: &mut Scratch) {
    let kv_len = scorer.head().lengths().kv_len;
    let blocks = kv_len.div_ceil(block_kv);
    let Scratch { query, tile, parts, running, .. } = scratch;
    tile.resize(ROWS * STEP, 0.0);
    parts.clear();
    parts.resize(rows.len() * blocks, 0.0);
    running.start(rows.len());
    for from in (0..kv_len).step_by(STEP) {
        let keys = from..(from + STEP).min(kv_len);
        let (from, columns) = Scorer::columns(&keys);
        let cells = &mut tile[..rows.len() * columns];
        scorer.tile(&rows, from, columns, query, cells);
        scorer.kernels().softmax(Tile { rows: rows.len(), columns }, cells, &mut running.running());
        for (r, (row, parts)) in cells.chunks_exact(columns).zip(parts.chunks_exact_mut(blocks)).enumerate() {
            let first = keys.start / block_kv;
            if running.rescale[r] != 1.0 {
                parts[..=first].iter_mut().for_each(|p| *p *= running.rescale[r]);
            }
            let mut at = keys.start;
            while at < keys.end {
                let end = ((at / block_kv + 1) * block_kv).min(keys.end);
                parts[at / block_kv] += sum(&row[at - from..end - from]);
                at = end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::head::Own;
    use crate::quality::testing::{dense, head};

    fn check(name: &str, head: &Head, block: BlockSize) {
        let found = masses(head, block, true, &Control::new()).unwrap();
        let wanted = dense(head);
        let (rows, columns) = found.grid();
        let kv_len = head.lengths().kv_len;
        for (q, p) in wanted.p.chunks(kv_len).enumerate() {
            let lse = wanted.lse[q];
            assert!(lse == found.lse[q] || (lse - found.lse[q]).abs() < 2e-5, "{name} {q}: {lse} {}", found.lse[q]);
            for j in 0..columns {
                let sum: f64 = p[j * block.kv..((j + 1) * block.kv).min(kv_len)].iter().sum();
                let one = f64::from(found.rows.as_ref().unwrap()[q * columns + j]);
                assert!((sum - one).abs() < 3e-6, "{name} {q},{j}: {sum} {one}");
            }
        }
        for i in 0..rows {
            let q = i * block.q..((i + 1) * block.q).min(head.lengths().q_len);
            let judged = q.clone().filter(|q| wanted.lse[*q].is_finite()).count();
            assert_eq!(judged, found.judged(i));
            for j in 0..columns {
                let kv = j * block.kv..((j + 1) * block.kv).min(kv_len);
                let sum: f64 = q.clone().map(|q| wanted.p[q * kv_len..][kv.clone()].iter().sum::<f64>()).sum();
                let mean = sum / judged.max(1) as f64;
                assert!((mean - f64::from(found.row(i)[j])).abs() < 3e-6, "{name} {i},{j}");
            }
        }
    }

    #[test]
    fn masses_are_those_of_a_plain_softmax_in_float64() {
        for (seed, (q, kv), dim, block) in [
            (1, (70, 70), 8, (16, 16)),
            (2, (130, 300), 64, (32, 100)),
            (3, (9, 513), 24, (128, 48)),
            (4, (65, 64), 3, (1, 7)),
        ] {
            let block = BlockSize { q: block.0, kv: block.1 };
            check("plain", &head(seed, q, kv, dim, 2.0), block);
            let causal = Head { own: Own::Causal, softcap: Some(3.0), ..head(seed + 9, q, kv, dim, 3.0) };
            check("causal", &causal, block);
        }
    }

    #[test]
    fn rising_scores_keep_earlier_sums_right() {
        // every step brings a new maximum
        let (n, dim) = (700, 4);
        let k: Vec<f32> = (0..n * dim).map(|i| (i / dim) as f32 * 0.02).collect();
        let head = Head::new((3, n), dim, vec![0.7; 3 * dim], k, None).unwrap();
        check("rising", &head, BlockSize { q: 2, kv: 130 });
    }

    #[test]
    fn rows_that_keep_nothing_and_broken_ones_are_told_and_left_out() {
        let mut q = head(5, 40, 40, 8, 1.0).q().to_vec();
        (q[3 * 8], q[7 * 8]) = (f32::NAN, f32::INFINITY);
        let keep: Vec<u8> = (0..1600).map(|at| u8::from(at / 40 != 11)).collect();
        let made = Head::new((40, 40), 8, q, head(6, 40, 40, 8, 1.0).k().to_vec(), None).unwrap();
        let made = Head { own: Own::Keep(keep.into()), ..made };
        let found = masses(&made, BlockSize::square(16), false, &Control::new()).unwrap();
        assert_eq!((found.empty_rows(), found.broken_rows()), (1, 2));
        let words = found.troubles().unwrap();
        assert!(words.contains("2 rows have a NaN or an infinite score, the first is q_idx 3"), "{words}");
        assert!(words.contains("keeps no key in 1 rows, the first is q_idx 11"), "{words}");
        assert_eq!([found.judged(0), found.judged(1), found.judged(2)], [13, 16, 8]);
        assert!((found.row(0).iter().sum::<f32>() - 1.0).abs() < 1e-5 && found.blocks.iter().all(|x| x.is_finite()));
    }

    #[test]
    fn cancelled_work_stops() {
        let control = Control::new();
        control.cancel();
        let stopped = masses(&head(7, 64, 64, 8, 1.0), BlockSize::square(16), false, &control);
        assert_eq!(stopped.unwrap_err().code, "cancelled");
    }
}
