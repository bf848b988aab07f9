//! The measures of a mask during editing: block masses are known, and an edit evaluates only the blocks that it
//! changed.
//!
//! Invariant: after any number of edits the row masses equal those of a fresh count, up to float32 rounding. A full
//! block's row masses come from memory if they were stored; a partial block's come from its cells. Must not know why
//! the mask changed.

use super::attend::Kept;
use super::cancelled;
use super::masses::Masses;
use super::measure::{HeadCost, MassKept};
use super::scores::{ROWS, RowScratch, STEP, Scorer, sum};
use crate::analysis::block_mask::{BlockKind, BlockMask};
use crate::analysis::change::Change;
use crate::analysis::interval::Cells;
use crate::base::{Control, Diagnostic};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// A head with its masses, shared with other readers. Cheap to clone.
#[derive(Clone)]
pub struct LiveHead {
    /// The packed head.
    pub scorer: Arc<Scorer>,
    /// Its masses, with rows where memory allowed.
    pub masses: Arc<Masses>,
    /// Masses of each row of blocks from the largest on, summed up: what the best blocks keep. [q blocks][kv blocks + 1]
    best: Arc<[f32]>,
    /// Judged rows of each row of blocks.
    judged: Arc<[u32]>,
}

impl LiveHead {
    /// Sorts the block masses once.
    pub fn new(scorer: Scorer, masses: Masses) -> LiveHead {
        let (rows, columns) = masses.grid();
        let mut best = Vec::with_capacity(rows * (columns + 1));
        for i in 0..rows {
            let mut row = masses.row(i).to_vec();
            row.sort_unstable_by(|a, b| b.total_cmp(a));
            let mut total = 0.0f64;
            best.push(0.0);
            best.extend(row.iter().map(|x| {
                total += f64::from(*x);
                total as f32
            }));
        }
        let judged = (0..rows).map(|i| masses.judged(i) as u32).collect();
        LiveHead { scorer: Arc::new(scorer), masses: Arc::new(masses), best: best.into(), judged }
    }
}

/// The measures of one head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineHead {
    /// Mass kept.
    pub mass: MassKept,
    /// As in [`super::measure::Measures`].
    #[serde(with = "crate::base::float")]
    pub ceiling: f64,
    /// Visited blocks; the efficiency is not counted during editing and is 1.
    pub cost: HeadCost,
}

/// State of one head under the present mask.
struct State {
    rows: Vec<f64>,
    counts: Vec<u32>,
}

/// The heads of a layer under a mask that is edited.
pub struct Live {
    heads: Arc<Vec<LiveHead>>,
    kept: Kept,
    states: Vec<State>,
}

/// One changed block: its row and column of blocks, and its mass before and now.
#[derive(Clone, Copy)]
struct Changed {
    i: usize,
    j: usize,
    old: Option<BlockKind>,
    new: Option<BlockKind>,
}

/// Errors: the work was stopped, so that some of its parts are missing.
fn finished(control: &Control) -> Result<(), Diagnostic> {
    if control.is_cancelled() { Err(cancelled()) } else { Ok(()) }
}

impl Live {
    /// Counts everything once. The mask's blocks must have the size of the masses. Errors: `cancelled`.
    pub fn new(heads: Arc<Vec<LiveHead>>, blocks: BlockMask, control: &Control) -> Result<Live, Diagnostic> {
        let kept = Kept::new(blocks);
        let states = heads.par_iter().map(|head| State::new(head, &kept, control)).collect();
        finished(control)?;
        Ok(Live { heads, kept, states })
    }

    /// The mask that is judged.
    pub fn blocks(&self) -> &BlockMask {
        &self.kept.blocks
    }

    /// The heads.
    pub fn heads(&self) -> &Arc<Vec<LiveHead>> {
        &self.heads
    }

    /// Mass kept of each row of a head; NaN if it is not measured.
    pub fn rows(&self, head: usize) -> Vec<f32> {
        let lse = &self.heads[head].masses.lse;
        let of = |(m, lse): (&f64, &f64)| if lse.is_finite() { m.clamp(0.0, 1.0) as f32 } else { f32::NAN };
        self.states[head].rows.iter().zip(lse).map(of).collect()
    }

    /// Switches to another mask, evaluating only the places in `change`; returns the number of changed blocks over all
    /// heads. Errors: `cancelled`; the measures are then of neither mask, and only a new one is right.
    pub fn edit(&mut self, blocks: BlockMask, change: &Change, control: &Control) -> Result<usize, Diagnostic> {
        let after = Kept::new(blocks);
        let before = &self.kept;
        let count = |(head, state): (&LiveHead, &mut State)| {
            let changed = changed(before, &after, change, head.scorer.head().place, head.masses.lengths);
            state.apply(head, before, &after, &changed, control);
            changed.len()
        };
        let total = self.heads.par_iter().zip(&mut self.states).map(count).sum();
        self.kept = after;
        finished(control)?;
        Ok(total)
    }

    /// The measures of all heads.
    pub fn line(&self) -> Vec<LineHead> {
        let of = |n: usize| {
            let (head, state) = (&self.heads[n], &self.states[n]);
            let (rows, columns) = head.masses.grid();
            let total: f64 = head.judged.iter().map(|n| f64::from(*n)).sum::<f64>().max(1.0);
            let best = |i: usize| f64::from(head.best[i * (columns + 1) + state.counts[i] as usize]);
            let ceiling = (0..rows).map(|i| f64::from(head.judged[i]) * best(i)).sum::<f64>() / total;
            let blocks = state.counts.iter().map(|n| *n as usize).sum();
            let cost = HeadCost { blocks, all_blocks: rows * columns, efficiency: 1.0 };
            LineHead { mass: MassKept::of(&self.rows(n)), ceiling: ceiling.min(1.0), cost }
        };
        (0..self.heads.len()).into_par_iter().map(of).collect()
    }
}

/// Blocks whose cells may differ between two masks of one extent, for one head.
fn changed(
    before: &Kept,
    after: &Kept,
    change: &Change,
    (b, h): (usize, usize),
    lengths: crate::base::Lengths,
) -> Vec<Changed> {
    let size = after.blocks.block_size();
    let (rows, columns) = after.blocks.grid();
    let mut asked = change.ask();
    let mut found = Vec::new();
    let (mut old, mut new) = (vec![None; columns], vec![None; columns]);
    for i in 0..rows {
        let q = i * size.q..((i + 1) * size.q).min(lengths.q_len);
        if asked.leaves(&Cells::new(b, h, q.clone(), 0..lengths.kv_len)) {
            continue;
        }
        for (kinds, of) in [(&mut old, before), (&mut new, after)] {
            kinds.fill(None);
            of.blocks.runs(b, h, i).for_each(|r| kinds[r.start..r.end].fill(Some(r.kind)));
        }
        for j in 0..columns {
            let both = old[j] == Some(BlockKind::Partial) && new[j] == Some(BlockKind::Partial);
            let kv = j * size.kv..((j + 1) * size.kv).min(lengths.kv_len);
            if old[j] != new[j] || (both && !asked.leaves(&Cells::new(b, h, q.clone(), kv))) {
                found.push(Changed { i, j, old: old[j], new: new[j] });
            }
        }
    }
    found
}

/// Buffers for the cells of a block.
#[derive(Default)]
struct Scratch {
    query: Vec<f32>,
    tile: Vec<f32>,
    keep: Vec<u8>,
    running: RowScratch,
}

impl State {
    fn new(head: &LiveHead, kept: &Kept, control: &Control) -> State {
        let (rows, _) = head.masses.grid();
        let (b, h) = head.scorer.head().place;
        let mut state = State { rows: vec![0.0; head.masses.lengths.q_len], counts: vec![0; rows] };
        let height = head.masses.block.q;
        let tasks = state.rows.par_chunks_mut(height).zip(&mut state.counts).enumerate();
        tasks.for_each_init(Scratch::default, |scratch, (i, (rows, count))| {
            if control.is_cancelled() {
                return;
            }
            for run in kept.blocks.runs(b, h, i) {
                *count += (run.end - run.start) as u32;
                for j in run.start..run.end {
                    head.add(kept, (i, j), run.kind, 1.0, rows, scratch);
                }
            }
        });
        state
    }

    fn apply(&mut self, head: &LiveHead, before: &Kept, after: &Kept, changed: &[Changed], control: &Control) {
        let height = head.masses.block.q;
        let by_row: Vec<&[Changed]> = changed.chunk_by(|a, b| a.i == b.i).collect();
        let mut parts: Vec<Option<(&mut [f64], &mut u32)>> =
            self.rows.chunks_mut(height).zip(&mut self.counts).map(Some).collect();
        let tasks: Vec<_> = by_row.into_iter().map(|of| (of, parts[of[0].i].take().expect("each row once"))).collect();
        tasks.into_par_iter().for_each_init(Scratch::default, |scratch, (changed, (rows, count))| {
            if control.is_cancelled() {
                return;
            }
            for c in changed {
                if let Some(kind) = c.old {
                    head.add(before, (c.i, c.j), kind, -1.0, rows, scratch);
                    *count -= 1;
                }
                if let Some(kind) = c.new {
                    head.add(after, (c.i, c.j), kind, 1.0, rows, scratch);
                    *count += 1;
                }
            }
        });
    }
}

impl LiveHead {
    /// Adds a block's mass to its rows, `sign` times.
    fn add(
        &self,
        kept: &Kept,
        (i, j): (usize, usize),
        kind: BlockKind,
        sign: f64,
        rows: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let (size, lengths) = (self.masses.block, self.masses.lengths);
        if kind == BlockKind::Full
            && let Some(known) = &self.masses.rows
        {
            let (_, columns) = self.masses.grid();
            let first = i * size.q;
            for (r, row) in rows.iter_mut().enumerate() {
                *row += sign * f64::from(known[(first + r) * columns + j]);
            }
            return;
        }
        let kv = j * size.kv..((j + 1) * size.kv).min(lengths.kv_len);
        let look = (kind == BlockKind::Partial).then_some(kept);
        for from in (0..rows.len()).step_by(ROWS) {
            let part = from..(from + ROWS).min(rows.len());
            let q = i * size.q + part.start..i * size.q + part.end;
            self.cells(look, q, kv.clone(), sign, &mut rows[part], scratch);
        }
    }

    /// The same of at most [`ROWS`] rows, from their cells.
    fn cells(
        &self,
        look: Option<&Kept>,
        q: Range<usize>,
        kv: Range<usize>,
        sign: f64,
        rows: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let (b, h) = self.scorer.head().place;
        let lse = &self.masses.lse[q.clone()];
        let mut at = kv.start;
        while at < kv.end {
            let end = (at / STEP * STEP + STEP).min(kv.end);
            let (from, columns) = Scorer::columns(&(at..end));
            scratch.tile.resize(scratch.tile.len().max(q.len() * columns), 0.0);
            let cells = &mut scratch.tile[..q.len() * columns];
            self.scorer.tile(&q, from, columns, &mut scratch.query, cells);
            self.scorer.probabilities(lse, columns, cells, &mut scratch.running);
            scratch.keep.resize(q.len() * (end - at), 1);
            match look {
                Some(kept) => kept.cells(b, h, q.clone(), at..end, &mut scratch.keep),
                None => scratch.keep.fill(1),
            }
            let pairs = cells.chunks_exact_mut(columns).zip(scratch.keep.chunks_exact(end - at));
            for (row, (p, keep)) in rows.iter_mut().zip(pairs) {
                let p = &mut p[at - from..end - from];
                p.iter_mut().zip(keep).for_each(|(p, keep)| *p *= f32::from(*keep));
                *row += sign * f64::from(sum(p));
            }
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::block_mask::MaskShape;
    use crate::base::BlockSize;
    use crate::ir::graph::Mod;
    use crate::ir::random::{self, Options};
    use crate::quality::head::{Head, Own};
    use crate::quality::masses;
    use crate::quality::measure::Judge;
    use crate::quality::testing::head;

    fn live_head(head: &Head, block: BlockSize, keep_rows: bool) -> LiveHead {
        let masses = masses::masses(head, block, keep_rows, &Control::new()).unwrap();
        LiveHead::new(Scorer::new(head), masses)
    }

    fn blocks(mask: &Mod, heads: usize, head: &Head, block: BlockSize) -> BlockMask {
        let shape = MaskShape { batch: 1, heads, lengths: head.lengths() };
        BlockMask::build(Some(mask), shape, block, &Control::new()).unwrap()
    }

    fn check(live: &Live, heads: &[Head], block: BlockSize) {
        for ((n, head), line) in heads.iter().enumerate().zip(live.line()) {
            let masses = masses::masses(head, block, false, &Control::new()).unwrap();
            let judge = Judge::new(Scorer::new(head), masses, &Control::new()).unwrap();
            let wanted = judge.judge(&Kept::new(live.blocks().clone()), &Control::new()).unwrap();
            for (a, b) in live.rows(n).iter().zip(&wanted.rows) {
                assert!((a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-5, "{n}: {a} {b}");
            }
            let m = &wanted.measures;
            assert!((line.mass.mean - m.mass.mean).abs() < 1e-6 && (line.mass.p5 - m.mass.p5).abs() < 1e-5);
            assert!((line.ceiling - m.ceiling).abs() < 1e-5, "{} {}", line.ceiling, m.ceiling);
            assert_eq!(line.cost.blocks, m.cost.blocks);
        }
    }

    #[test]
    fn after_edits_the_line_is_that_of_a_count_anew() {
        for (keep_rows, block) in [(true, BlockSize::square(32)), (false, BlockSize { q: 80, kv: 24 })] {
            let heads: Vec<Head> = (0..2)
                .map(|h| Head {
                    place: (0, h),
                    own: [Own::None, Own::Causal][h].clone(),
                    ..head(h as u64, 150, 150, 8, 2.0)
                })
                .collect();
            let made = heads.iter().map(|head| live_head(head, block, keep_rows)).collect();
            let options = Options { heads: 2, ..Options::new(150, 150) };
            let first = blocks(&random::mask(1, &options), 2, &heads[0], block);
            let mut live = Live::new(Arc::new(made), first, &Control::new()).expect("not stopped");
            check(&live, &heads, block);
            for seed in 2..6 {
                let (next, change) =
                    live.blocks().rebuild(Some(&random::mask(seed, &options)), &Control::new()).unwrap();
                live.edit(next, &change, &Control::new()).expect("not stopped");
            }
            check(&live, &heads, block);
        }
    }

    #[test]
    fn work_that_was_stopped_gives_no_measures() {
        let made = head(3, 128, 128, 8, 1.0);
        let block = BlockSize::square(16);
        let of = |seed| blocks(&random::mask(seed, &Options::new(128, 128)), 1, &made, block);
        let heads = Arc::new(vec![live_head(&made, block, true)]);
        let stopped = Control::new();
        stopped.cancel();
        assert_eq!(Live::new(heads.clone(), of(1), &stopped).err().expect("stopped").code, "cancelled");
        let mut live = Live::new(heads, of(1), &Control::new()).expect("not stopped");
        let (next, change) =
            live.blocks().rebuild(Some(&random::mask(2, &Options::new(128, 128))), &Control::new()).unwrap();
        assert_eq!(live.edit(next, &change, &stopped).unwrap_err().code, "cancelled");
    }

    #[test]
    fn an_edit_looks_at_the_changed_blocks_only() {
        let made = head(3, 128, 128, 8, 1.0);
        let block = BlockSize::square(16);
        let window = crate::analysis::examples::sliding_window(40);
        let painted = |k: i64| {
            let mut b = crate::analysis::examples::Builder::new();
            let (q, kv) = (b.q, b.k);
            let (row, column) = (b.below(q, 16), b.below(kv, k));
            let rectangle = b.and(row, column);
            let rectangle = b.mask(rectangle);
            crate::ir::passes::compose::or_masks(&[&window, &rectangle])
        };
        let first = blocks(&painted(16), 1, &made, block);
        let heads = Arc::new(vec![live_head(&made, block, true)]);
        let mut live = Live::new(heads, first, &Control::new()).expect("not stopped");
        let (next, change) = live.blocks().rebuild(Some(&painted(64)), &Control::new()).unwrap();
        assert_eq!(live.edit(next, &change, &Control::new()).expect("not stopped"), 3);
        check(&live, std::slice::from_ref(&made), block);
    }
}
