//! Statistics of a block mask: blocks, cells, empty rows, wasted work, load.
//!
//! Invariant: exact, over all batch entries and heads. Cells are counted only in partial blocks. Residuals that were
//! counted before are reused. With the sums of the previous mask, only the changed part is counted.

use super::{BlockMask, PackedRun, Rows};
use crate::analysis::change::{Asked, Change};
use crate::analysis::classify::Exact;
use crate::analysis::interval::Cells;
use crate::base::Control;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;
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
    /// PyTorch 2.11's `BlockMask.sparsity()`, in percent: computed blocks against the cells inside the lengths. It is
    /// negative if blocks reach further beyond the lengths than is skipped. See [`Stats::padded_sparsity`].
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

impl Stats {
    /// PyTorch 2.15's `BlockMask.sparsity()`, in percent: the share of skipped blocks, with lengths padded to whole
    /// blocks. Equal to `sparsity` if the block sizes divide the lengths.
    pub fn padded_sparsity(&self) -> f64 {
        100.0 * self.empty as f64 / (self.full + self.partial + self.empty).max(1) as f64
    }

    /// Both in words: `86.8%`, or, if blocks reach beyond the lengths, `0.0% (PyTorch 2.15; 2.11 says -66.2%, because
    /// its blocks reach beyond the lengths)`.
    pub fn sparsity_words(&self) -> String {
        sparsity_words(self.sparsity, Some(self.padded_sparsity()))
    }
}

/// Sums of one row of blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowSum {
    full: u64,
    partial: u64,
    computed_cells: u128,
    kept: u128,
    empty_rows: u64,
}

/// Sums that are kept for the mask that comes next, at most.
const REMEMBERED: usize = 1 << 18;

/// A mask with known sums, and the places where it differs from the counted mask.
#[derive(Clone, Copy)]
pub(super) struct Past<'a> {
    mask: &'a BlockMask,
    sums: &'a [RowSum],
    change: &'a Change,
}

impl<'a> Past<'a> {
    /// None if the sums were not stored.
    pub(super) fn new(mask: &'a BlockMask, change: &'a Change) -> Option<Self> {
        Some(Self { mask, sums: mask.inner.sums.get()?, change })
    }
}

/// A thread's scratch data for counting.
struct Eyes<'a> {
    /// None: everything is kept.
    exact: Option<Exact<'a>>,
    past: Option<PastEyes<'a>>,
}

struct PastEyes<'a> {
    past: Past<'a>,
    exact: Option<Exact<'a>>,
    asked: Asked<'a>,
}

impl<'a> Eyes<'a> {
    fn new(mask: &'a BlockMask, past: Option<Past<'a>>) -> Self {
        let exact = |mask: &'a BlockMask| mask.inner.mask.as_ref().map(Exact::new);
        let past = past.map(|past| PastEyes { past, exact: exact(past.mask), asked: past.change.ask() });
        Self { exact: exact(mask), past }
    }
}

/// A block sparsity as tables and the window say it: what PyTorch 2.15 prints, and where 2.11 prints another number that
/// too, with the reason. `padded` None: a file of an older version, which holds 2.11's alone.
pub fn sparsity_words(lengths: f64, padded: Option<f64>) -> String {
    match padded {
        Some(padded) if (padded - lengths).abs() < 0.05 => format!("{padded:.1}%"),
        Some(padded) => {
            format!("{padded:.1}% (PyTorch 2.15; 2.11 says {lengths:.1}%, because its blocks reach beyond the lengths)")
        }
        None if lengths < 0.0 => format!("{lengths:.1}% (PyTorch 2.11, because its blocks reach beyond the lengths)"),
        None => format!("{lengths:.1}% (PyTorch 2.11)"),
    }
}

/// The sums, and their parts if these are few enough to be stored. None: cancelled.
pub(super) fn stats(mask: &BlockMask, past: Option<Past<'_>>, control: &Control) -> Option<(Stats, Vec<RowSum>)> {
    let rows = mask.grid().0;
    let heads = mask.distinct().1;
    let own: Vec<usize> = mask.own_groups().collect();
    let (all, tasks) = (mask.inner.groups.len() * rows, own.len() * rows);
    let done = AtomicUsize::new(0);
    // groups of another dependence on b and h are other groups
    let past = past.filter(|past| past.mask.distinct() == mask.distinct() && past.sums.len() == all);
    let sums: Vec<RowSum> = (0..tasks)
        .into_par_iter()
        .with_min_len(16)
        .map_init(
            || Eyes::new(mask, past),
            |eyes, n| {
                let (group, row) = (own[n / rows], n % rows);
                let at = RowAt { mask, rows: &mask.inner.groups[group], row, b: group / heads, h: group % heads };
                let sum = match at.sum_after(eyes, group * rows + row, control)? {
                    Some(sum) => sum,
                    None => at.sum(eyes.exact.as_mut(), control)?,
                };
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                control.set_progress(done as f64 / tasks as f64);
                Some(sum)
            },
        )
        .collect::<Option<_>>()?;
    // the others repeat them
    let place = |group: usize| own.partition_point(|n| *n < group) * rows;
    let of = |first: &usize| sums[place(*first)..place(*first) + rows].iter().copied();
    let sums: Vec<RowSum> = mask.inner.alike.iter().flat_map(of).collect();
    let total = total(mask, &sums);
    Some((total, if all <= REMEMBERED { sums } else { Vec::new() }))
}

fn total(mask: &BlockMask, sums: &[RowSum]) -> Stats {
    let ((rows, cols), shape) = (mask.grid(), mask.shape());
    // groups that are not stored repeat the stored ones
    let repeats = (shape.batch * shape.heads / mask.inner.groups.len()) as u64;
    let mut out = Stats { load: Load { min: u64::MAX, ..Load::default() }, ..Stats::default() };
    let mut computed_cells = 0u128;
    for s in sums {
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
    out
}

struct RowAt<'a> {
    mask: &'a BlockMask,
    rows: &'a Rows,
    row: usize,
    b: usize,
    h: usize,
}

impl RowAt<'_> {
    /// The token rows.
    fn tokens(&self) -> Range<usize> {
        let (size, lengths) = (self.mask.block_size(), self.mask.shape().lengths);
        self.row * size.q..((self.row + 1) * size.q).min(lengths.q_len)
    }

    /// The tokens of a run of blocks along kv.
    fn span(&self, start: u32, end: u32) -> Range<usize> {
        let (size, lengths) = (self.mask.block_size(), self.mask.shape().lengths);
        start as usize * size.kv..(end as usize * size.kv).min(lengths.kv_len)
    }

    /// Blocks, and the cells of full ones; the cells of partial blocks are to be added.
    fn listed(&self) -> RowSum {
        let (rows, mut sum) = (self.tokens().len() as u128, RowSum::default());
        for run in self.rows.row(self.row) {
            let (blocks, cells) =
                (u64::from(run.end() - run.start), rows * self.span(run.start, run.end()).len() as u128);
            sum.computed_cells += cells;
            if run.full() {
                sum.full += blocks;
                sum.kept += cells;
            } else {
                sum.partial += blocks;
            }
        }
        sum
    }

    /// None when it was cancelled.
    fn sum(&self, mut exact: Option<&mut Exact<'_>>, control: &Control) -> Option<RowSum> {
        let (size, q) = (self.mask.block_size(), self.tokens());
        let mut sum = self.listed();
        let mut seen = vec![0u64; q.len().div_ceil(64)];
        for run in self.rows.row(self.row) {
            let span = self.span(run.start, run.end());
            let Some(exact) = exact.as_mut().filter(|_| !run.full()) else {
                if !run.full() {
                    sum.kept += q.len() as u128 * span.len() as u128;
                }
                seen.fill(u64::MAX);
                continue;
            };
            for block in span.clone().step_by(size.kv) {
                if control.is_cancelled() {
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

    /// The same from the sums of the mask before, the `n`-th of which is this row's. The outer None: cancelled; the inner:
    /// it is not known whether rows have become empty.
    fn sum_after(&self, eyes: &mut Eyes<'_>, n: usize, control: &Control) -> Option<Option<RowSum>> {
        let Some(past) = eyes.past.as_mut() else { return Some(None) };
        let (known, q) = (past.past.sums[n], self.tokens());
        let cells = |kv: Range<usize>| Cells::new(self.b, self.h, q.clone(), kv);
        if past.asked.leaves(&cells(0..self.mask.shape().lengths.kv_len)) {
            return Some(Some(known));
        }
        let runs = self.rows.row(self.row);
        if !runs.iter().any(|run| run.full()) {
            return Some(None);
        }
        let before = past.past.mask.rows_of(self.b, self.h).row(self.row);
        let kept = |kind: Option<bool>, exact: Option<&mut Exact<'_>>, cells: &Cells| match (kind, exact) {
            (None, _) => 0,
            (Some(false), Some(exact)) => i128::from(exact.count(cells).kept),
            _ => i128::from(cells.area()),
        };
        // the old sum of changed blocks, compared with the new one
        let mut more = 0i128;
        for (start, end, [was, is]) in segments(before, runs) {
            let partial = was == Some(false) || is == Some(false);
            // whole runs where only full and empty blocks meet
            let step = if partial { 1 } else { end - start };
            for block in (start..end).step_by(step as usize) {
                if control.is_cancelled() {
                    return None;
                }
                let cells = cells(self.span(block, (block + step).min(end)));
                if was == is && (!partial || past.asked.leaves(&cells)) {
                    continue;
                }
                more += kept(is, eyes.exact.as_mut(), &cells) - kept(was, past.exact.as_mut(), &cells);
            }
        }
        let kept = (known.kept as i128 + more) as u128;
        Some(Some(RowSum { kept, ..self.listed() }))
    }
}

/// The same blocks in two rows of runs: from, to, and whether each is full; None: empty.
fn segments<'r>(
    a: &'r [PackedRun],
    b: &'r [PackedRun],
) -> impl Iterator<Item = (u32, u32, [Option<bool>; 2])> + use<'r> {
    let mut cuts: Vec<u32> = a.iter().chain(b).flat_map(|run| [run.start, run.end()]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let kind = |runs: &[PackedRun], at: &mut usize, start: u32| {
        *at += runs[*at..].iter().take_while(|run| run.end() <= start).count();
        runs.get(*at).filter(|run| run.start <= start).map(|run| run.full())
    };
    let (mut i, mut j) = (0, 0);
    (1..cuts.len()).map(move |n| {
        let (start, end) = (cuts[n - 1], cuts[n]);
        (start, end, [kind(a, &mut i, start), kind(b, &mut j, start)])
    })
}
