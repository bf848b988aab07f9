//! The blocks by kv block: for each kv block the q blocks that list it, run-length coded like the rows.
//!
//! Invariant: contains exactly the blocks of its mask; work and memory are proportional to the runs of both sides,
//! never to the grid. Must not know PyTorch's arrays, which are written from it.

use super::{BlockMask, BlockRun, PackedRun, Rows};
use smallvec::SmallVec;

/// Columns of a block mask, for backward passes and for PyTorch's `q_indices`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transposed {
    heads: usize,
    batch: usize,
    groups: Vec<Rows>,
}

impl Transposed {
    pub(super) fn new(mask: &BlockMask) -> Self {
        let (rows, cols) = mask.grid();
        let (batch, heads) = mask.distinct();
        Self { batch, heads, groups: mask.inner.groups.iter().map(|group| columns(group, rows, cols)).collect() }
    }

    /// Runs of q blocks that list this kv block, ascending. `b` and `h` are taken modulo the stored numbers.
    pub fn runs(&self, b: usize, h: usize, kv_block: usize) -> impl Iterator<Item = BlockRun> + '_ {
        self.rows_of(b, h).row(kv_block).iter().map(|run| run.unpack())
    }

    pub(super) fn rows_of(&self, b: usize, h: usize) -> &Rows {
        &self.groups[(b % self.batch) * self.heads + h % self.heads]
    }

    /// Bytes of the stored runs.
    pub fn memory(&self) -> usize {
        self.groups.iter().map(|g| g.offsets.len() * 4 + g.runs.len() * 8).sum()
    }
}

/// A column whose last run is still growing: its start, and whether it is full.
type Open = Option<(u32, bool)>;

/// Goes through the rows and looks only at columns whose kind differs from the row before.
fn columns(group: &Rows, rows: usize, cols: usize) -> Rows {
    let mut open: Vec<Open> = vec![None; cols];
    let mut done: Vec<SmallVec<[PackedRun; 2]>> = vec![SmallVec::new(); cols];
    let mut before: &[PackedRun] = &[];
    for row in 0..=rows {
        let now = if row < rows { group.row(row) } else { &[] };
        changes(before, now, |from, to, kind| {
            for col in from as usize..to as usize {
                if let Some((start, full)) = open[col].take() {
                    done[col].push(PackedRun::new(start, row as u32, full));
                }
                open[col] = kind.map(|full| (row as u32, full));
            }
        });
        before = now;
    }
    let mut offsets = vec![0];
    let mut runs = Vec::with_capacity(done.iter().map(SmallVec::len).sum());
    for column in &done {
        runs.extend_from_slice(column);
        offsets.push(runs.len() as u32);
    }
    Rows { offsets, runs }
}

/// Calls `changed` with every range of columns whose kind is another in `now` than in `before`, and the new kind.
fn changes(before: &[PackedRun], now: &[PackedRun], mut changed: impl FnMut(u32, u32, Option<bool>)) {
    let (mut i, mut j, mut at) = (0, 0, 0);
    while i < before.len() || j < now.len() {
        let (old, old_end) = kind_at(before.get(i), at);
        let (new, new_end) = kind_at(now.get(j), at);
        let end = old_end.min(new_end);
        if old != new {
            changed(at, end, new);
        }
        at = end;
        i += usize::from(before.get(i).is_some_and(|run| run.end() <= at));
        j += usize::from(now.get(j).is_some_and(|run| run.end() <= at));
    }
}

/// The kind at a column given the next run that does not end before it, and how far it reaches.
fn kind_at(run: Option<&PackedRun>, at: u32) -> (Option<bool>, u32) {
    match run {
        None => (None, u32::MAX),
        Some(run) if at < run.start => (None, run.start),
        Some(run) => (Some(run.full()), run.end()),
    }
}
