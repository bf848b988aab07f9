//! A head's output and row sums, whole or under a mask: the sweep of a block-sparse kernel in float32 with float64 sums of rows.
//!
//! Invariant: a cell counts exactly if its block is listed and, in a partial block, the mask keeps it. Must not know
//! the use of the outputs.

use super::cancelled;
use super::scores::{ROWS, RowScratch, STEP, Scorer};
use crate::analysis::block_mask::{BlockKind, BlockMask};
use crate::base::{Control, Diagnostic};
use crate::ir::tiles::Program;
use crate::micro::{PANEL, Tile};
use rayon::prelude::*;
use std::ops::Range;

/// A mask ready to be judged: its blocks, and the mod for the cells of partial ones. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its blocks.
    pub blocks: BlockMask,
    program: Option<Program>,
}

impl Kept {
    /// Compiles the mod.
    pub fn new(blocks: BlockMask) -> Kept {
        let program = blocks.mask_mod().map(|m| Program::new(m));
        Kept { blocks, program }
    }

    /// A byte a cell; all 1 without a mask.
    pub fn cells(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, out: &mut [u8]) {
        match &self.program {
            Some(program) => program.mask_tile(b, h, q, kv, out),
            None => out.fill(1),
        }
    }
}

/// The result of a sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attended {
    /// Natural log-sum-exp of the kept scores of each row, without the sink; -inf if none is kept, NaN if one is
    /// broken.
    pub lse: Vec<f64>,
    /// `[q_len][dim_v]`, including the sink; empty if it was not requested.
    pub out: Vec<f32>,
    /// Cells that took part.
    pub kept_cells: u64,
    /// Cells of the blocks that were visited.
    pub executed_cells: u64,
}

struct Task<'a> {
    rows: Range<usize>,
    lse: &'a mut [f64],
    out: &'a mut [f32],
}

#[derive(Default)]
struct Scratch {
    query: Vec<f32>,
    tile: Vec<f32>,
    keep: Vec<u8>,
    out: Vec<f32>,
    running: RowScratch,
    cells: [u64; 2],
}

/// Sweeps over all keys, or over those in `kept`; outputs only with `values`. Errors: `cancelled`.
pub fn attend(scorer: &Scorer, kept: Option<&Kept>, values: bool, control: &Control) -> Result<Attended, Diagnostic> {
    let lengths = scorer.head().lengths();
    let dim_v = if values { scorer.head().dim_v() } else { 0 };
    let mut lse = vec![0.0; lengths.q_len];
    let mut out = vec![0.0; lengths.q_len * dim_v];
    // tiles must not straddle rows of blocks
    let height = kept.map_or(ROWS, |k| k.blocks.block_size().q);
    let mut tasks = Vec::new();
    let (mut lse_left, mut out_left) = (lse.as_mut_slice(), out.as_mut_slice());
    let mut at = 0;
    while at < lengths.q_len {
        let end = (at + ROWS).min((at / height + 1) * height).min(lengths.q_len);
        let (mine, rest) = lse_left.split_at_mut(end - at);
        let (own, others) = out_left.split_at_mut((end - at) * dim_v);
        tasks.push(Task { rows: at..end, lse: mine, out: own });
        (lse_left, out_left, at) = (rest, others, end);
    }
    let cells = tasks
        .into_par_iter()
        .map_init(Scratch::default, |scratch, task| {
            scratch.cells = [0; 2];
            if !control.is_cancelled() {
                tile_row(scorer, kept, scratch, task);
            }
            scratch.cells
        })
        .reduce(|| [0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
    if control.is_cancelled() {
        return Err(cancelled());
    }
    Ok(Attended { lse, out, kept_cells: cells[0], executed_cells: cells[1] })
}

fn tile_row(scorer: &Scorer, kept: Option<&Kept>, scratch: &mut Scratch, task: Task) {
    let (width, dim_v) = (scorer.width(), scorer.head().dim_v());
    let values = !task.out.is_empty();
    let kv_len = scorer.head().lengths().kv_len;
    scratch.running.start(task.rows.len());
    scratch.out.clear();
    scratch.out.resize(if values { task.rows.len() * width } else { 0 }, 0.0);
    match kept {
        None => (0..kv_len).step_by(STEP).for_each(|from| {
            step(scorer, None, scratch, &task.rows, from..(from + STEP).min(kv_len), values);
        }),
        Some(mask) => {
            let size = mask.blocks.block_size();
            let (b, h) = scorer.head().place;
            for run in mask.blocks.runs(b, h, task.rows.start / size.q) {
                let span = run.start * size.kv..(run.end * size.kv).min(kv_len);
                let look = (run.kind == BlockKind::Partial).then_some(mask);
                // whole panels, so that a step never holds more than its buffer
                let mut at = span.start;
                while at < span.end {
                    let end = (at / PANEL * PANEL + STEP).min(span.end);
                    step(scorer, look, scratch, &task.rows, at..end, values);
                    at = end;
                }
            }
        }
    }
    for (r, lse) in task.lse.iter_mut().enumerate() {
        *lse = scratch.running.lse(r);
        if values {
            let sink = scorer.head().sink.map_or(0.0, |sink| (f64::from(sink) - *lse).exp());
            let factor = if *lse == f64::NEG_INFINITY {
                0.0
            } else {
                (1.0 / (f64::from(scratch.running.sum[r]) * (1.0 + sink))) as f32
            };
            let row = &scratch.out[r * width..r * width + dim_v];
            task.out[r * dim_v..(r + 1) * dim_v].iter_mut().zip(row).for_each(|(to, x)| *to = x * factor);
        }
    }
}

/// Scores, mask, softmax and values of some keys.
fn step(
    scorer: &Scorer,
    mask: Option<&Kept>,
    scratch: &mut Scratch,
    rows: &Range<usize>,
    keys: Range<usize>,
    values: bool,
) {
    let (from, columns) = Scorer::columns(&keys);
    let tile = Tile { rows: rows.len(), columns };
    let cells = tile.rows * columns;
    scratch.tile.resize(scratch.tile.len().max(cells), 0.0);
    let scores = &mut scratch.tile[..cells];
    scorer.tile(rows, from, columns, &mut scratch.query, scores);
    let (b, h) = scorer.head().place;
    let inside = keys.len() as u64 * rows.len() as u64;
    scratch.cells[1] += inside;
    match mask {
        None => scratch.cells[0] += inside,
        Some(mask) => {
            scratch.keep.resize(rows.len() * keys.len(), 0);
            mask.cells(b, h, rows.clone(), keys.clone(), &mut scratch.keep);
            let pairs = scores.chunks_exact_mut(columns).zip(scratch.keep.chunks_exact(keys.len()));
            for (row, keep) in pairs {
                for (s, keep) in row[keys.start - from..].iter_mut().zip(keep) {
                    scratch.cells[0] += u64::from(*keep);
                    if *keep == 0 {
                        *s = f32::NEG_INFINITY;
                    }
                }
            }
        }
    }
    for row in scores.chunks_exact_mut(columns) {
        row[..keys.start - from].fill(f32::NEG_INFINITY);
        row[keys.end - from..].fill(f32::NEG_INFINITY);
    }
    scorer.kernels().softmax(tile, scores, &mut scratch.running.running());
    if values {
        let width = scorer.width();
        scorer.kernels().values(tile, width, scores, scorer.values(from), &scratch.running.rescale, &mut scratch.out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::block_mask::MaskShape;
    use crate::analysis::examples;
    use crate::base::BlockSize;
    use crate::ir::cell::{Cell, eval};
    use crate::ir::random;
    use crate::quality::head::{Head, Own};
    use crate::quality::testing::{dense_under, head};

    fn check(head: &Head, mask: &crate::ir::graph::Mod, block: BlockSize) {
        let shape = MaskShape::broadcast(head.lengths());
        let blocks = BlockMask::build(Some(mask), shape, block, &Control::new()).unwrap();
        let stats = blocks.stats();
        let found = attend(&Scorer::new(head), Some(&Kept::new(blocks)), true, &Control::new()).unwrap();
        let keeps = |q: usize, kv: usize| {
            eval(mask, &Cell { b: 0, h: 0, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 }).as_bool()
        };
        let wanted = dense_under(head, keeps);
        for (q, (a, b)) in found.lse.iter().zip(&wanted.lse).enumerate() {
            assert!(a == b || (a - b).abs() < 2e-5, "{q}: {a} {b}");
        }
        for (at, (a, b)) in found.out.iter().zip(&wanted.out).enumerate() {
            assert!((f64::from(*a) - b).abs() < 1e-5, "{at}: {a} {b}");
        }
        assert_eq!(u128::from(found.kept_cells), stats.kept_cells);
    }

    #[test]
    fn outputs_under_masks_are_those_of_a_plain_computation() {
        for seed in 0..6 {
            let (q, kv) = [(70, 90), (128, 128), (33, 200)][seed as usize % 3];
            let mask = random::mask(seed, &random::Options::new(q, kv));
            let block =
                [BlockSize::square(16), BlockSize { q: 48, kv: 24 }, BlockSize { q: 128, kv: 100 }][seed as usize % 3];
            let plain = head(seed, q, kv, 12, 2.0);
            check(&plain, &mask, block);
            check(&Head { own: Own::Causal, sink: Some(0.7), ..plain }, &examples::sliding_window(20), block);
        }
    }
}
