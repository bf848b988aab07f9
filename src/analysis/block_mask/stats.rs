//! What a block mask amounts to: blocks, cells, empty rows, wasted work, load.
//!
//! Invariant: exact, over all batch entries and heads. Cells are counted only in partial blocks, by remains already seen
//! where possible.

use super::{BlockMask, Rows};
use crate::analysis::classify::Exact;
use crate::analysis::interval::Cells;
use crate::base::Control;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Computed kv blocks a row of query blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Load {
    pub min: u64,
    pub max: u64,
    pub mean: f64,
}

/// Sums over all batch entries and heads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Blocks in which mask_mod need not be evaluated.
    pub full: u64,
    /// Blocks in which it must.
    pub partial: u64,
    /// Blocks that are skipped.
    pub empty: u64,
    /// PyTorch's `BlockMask.sparsity()`, in percent; below zero when blocks hang over.
    pub sparsity: f64,
    /// Cells that the mask keeps.
    pub kept_cells: u128,
    /// Kept cells over all cells, 0..=1.
    pub density: f64,
    /// Cells of computed blocks (inside the lengths) over all cells, 0..=1.
    pub computed: f64,
    /// Query rows that keep nothing: their output is 0 and their lse -inf.
    pub empty_rows: u64,
    /// Share of the computed cells that the mask drops, 0..=1.
    pub wasted: f64,
    /// Computed blocks a row of query blocks.
    pub load: Load,
}

/// Sums of one row of blocks.
#[derive(Clone, Copy, Default)]
struct RowSum {
    full: u64,
    partial: u64,
    computed_cells: u128,
    kept: u128,
    empty_rows: u64,
}

pub(super) fn stats(mask: &BlockMask, control: &Control) -> Option<Stats> {
    let (rows, cols) = mask.grid();
    let shape = mask.shape();
    let heads = mask.distinct().1;
    let tasks = mask.inner.groups.len() * rows;
    let done = AtomicUsize::new(0);
    let sums: Vec<RowSum> = (0..tasks)
        .into_par_iter()
        .with_min_len(16)
        .map_init(
            || mask.inner.mask.as_ref().map(Exact::new),
            |exact, n| {
                let (group, row) = (n / rows, n % rows);
                let at = RowAt { mask, rows: &mask.inner.groups[group], row, b: group / heads, h: group % heads };
                let sum = at.sum(exact.as_mut(), control)?;
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                control.set_progress(done as f64 / tasks as f64);
                Some(sum)
            },
        )
        .collect::<Option<_>>()?;
    // groups that are not stored repeat those that are
    let repeats = (shape.batch * shape.heads / mask.inner.groups.len()) as u64;
    let mut out = Stats { load: Load { min: u64::MAX, ..Load::default() }, ..Stats::default() };
    let mut computed_cells = 0u128;
    for s in &sums {
        out.full += s.full * repeats;
        out.partial += s.partial * repeats;
        out.kept_cells += s.kept * u128::from(repeats);
        out.empty_rows += s.empty_rows * repeats;
        computed_cells += s.computed_cells * u128::from(repeats);
        out.load.min = out.load.min.min(s.full + s.partial);
        out.load.max = out.load.max.max(s.full + s.partial);
    }
    let groups = shape.batch as u128 * shape.heads as u128;
    let cells = (groups * shape.lengths.q_len as u128 * shape.lengths.kv_len as u128) as f64;
    let blocks = (out.full + out.partial) as f64;
    out.empty = (groups * rows as u128 * cols as u128) as u64 - out.full - out.partial;
    out.sparsity = 100.0 * (1.0 - blocks * (mask.block_size().q * mask.block_size().kv) as f64 / cells);
    out.density = out.kept_cells as f64 / cells;
    out.computed = computed_cells as f64 / cells;
    out.wasted = if computed_cells == 0 { 0.0 } else { 1.0 - out.kept_cells as f64 / computed_cells as f64 };
    out.load.mean = blocks / (groups * rows as u128) as f64;
    Some(out)
}

struct RowAt<'a> {
    mask: &'a BlockMask,
    rows: &'a Rows,
    row: usize,
    b: usize,
    h: usize,
}

impl RowAt<'_> {
    /// None when it was cancelled.
    fn sum(&self, mut exact: Option<&mut Exact<'_>>, control: &Control) -> Option<RowSum> {
        let (size, lengths) = (self.mask.block_size(), self.mask.shape().lengths);
        let q = self.row * size.q..((self.row + 1) * size.q).min(lengths.q_len);
        let mut sum = RowSum::default();
        let mut seen = vec![0u64; q.len().div_ceil(64)];
        for run in self.rows.row(self.row) {
            let blocks = u64::from(run.end() - run.start);
            let span = run.start as usize * size.kv..(run.end() as usize * size.kv).min(lengths.kv_len);
            let cells = q.len() as u128 * span.len() as u128;
            sum.computed_cells += cells;
            if run.full() {
                sum.full += blocks;
                sum.kept += cells;
                seen.fill(u64::MAX);
                continue;
            }
            sum.partial += blocks;
            let Some(exact) = exact.as_mut() else {
                sum.kept += cells;
                seen.fill(u64::MAX);
                continue;
            };
            for (n, block) in span.clone().step_by(size.kv).enumerate() {
                if n % 64 == 0 && control.is_cancelled() {
                    return None;
                }
                let kv = block..(block + size.kv).min(span.end);
                let count = exact.count(&Cells::new(self.b, self.h, q.clone(), kv));
                sum.kept += u128::from(count.kept);
                seen.iter_mut().zip(&count.rows).for_each(|(s, r)| *s |= r);
            }
        }
        sum.empty_rows = (0..q.len()).filter(|row| seen[row / 64] >> (row % 64) & 1 == 0).count() as u64;
        Some(sum)
    }
}
