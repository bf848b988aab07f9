//! Fused backward attention: tiles of keys sweep over the queries that attend to them; probabilities and their
//! gradients stay in the cache.
//!
//! Invariant: results are the same for any number of threads, because the problem's shape alone divides the work and
//! partial sums are added in order; pairs of tiles without kept cells are skipped. Must not know why a plan was chosen.

use super::backward_inputs::{Prepped, Queries};
use super::plan::{Plan, ROWS};
use crate::backends::gradients::{Gradients, rounded, shapes};
use crate::backends::mod_gradient::ModGradient;
use crate::backends::mods::{Mods, Place};
use crate::base::Diagnostic;
use crate::micro::{Aligned, Kernels, LANE_PAD, PANEL, Tile};
use crate::problem::Problem;
use rayon::prelude::*;
use std::ops::Range;

/// The smallest number of tasks, if the keys allow it.
const TASKS: usize = 16;
/// Keys that a tile of queries meets in one step, at most: what it brings into the cache serves all of them. Three panels, because
/// rows of a power of two elements would share few places of the first cache when a tile is read by its columns.
const GROUP: usize = 3 * PANEL;
/// Bytes that partial sums of captured tensors may take.
const PARTIAL_BYTES: usize = 1 << 29;

/// Everything that a sweep reads.
pub(super) struct Sweep<'a> {
    pub problem: &'a Problem,
    pub plan: &'a Plan,
    pub mods: &'a Mods,
    pub derivative: &'a ModGradient,
    pub kernels: Kernels,
    pub inputs: &'a Prepped,
}

/// The keys `kv` of one kv head, and where their gradients go.
struct Task<'a> {
    b: usize,
    kv_head: usize,
    kv: Range<usize>,
    dk: &'a mut [f32],
    dv: &'a mut [f32],
    /// [group][q_len][width of dq]
    dq: &'a mut [f32],
}

/// Buffers of one thread.
struct Scratch {
    scores: Aligned,
    plain: Aligned,
    gradients: Aligned,
    keep: Vec<u8>,
    dk: Aligned,
    dv: Aligned,
    buffer: Vec<f32>,
    tiles: Vec<(usize, bool)>,
    steps: Vec<Step>,
}

/// Keys of a group that a tile of queries meets at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    tile: usize,
    /// Panels, from the group's first.
    first: usize,
    end: usize,
    /// Whether the mask must be looked at.
    look: bool,
}

/// Gradients before they are rounded: rows padded to whole vectors.
pub(super) struct Raw {
    pub dq: Vec<f32>,
    pub dk: Vec<f32>,
    pub dv: Vec<f32>,
    pub captures: Vec<f64>,
}

/// The gradients as tensors of the problem's dtype. Errors: shapes that no tensor has.
pub(super) fn finished(problem: &Problem, derivative: &ModGradient, raw: Raw) -> Result<Gradients, Diagnostic> {
    let tensor = |shape: [usize; 4], wide: Vec<f32>, scale: f32| {
        rounded(problem.dtype, shape, scaled(narrow(wide, shape[3]), scale))
    };
    let [q, k, v] = shapes(problem);
    Ok(Gradients {
        dq: tensor(q, raw.dq, problem.scale() as f32)?,
        dk: tensor(k, raw.dk, 1.0)?,
        dv: tensor(v, raw.dv, 1.0)?,
        captures: derivative.tensors(&raw.captures)?,
    })
}

/// Elements that a thread takes at a time where each is touched once.
const SHARE: usize = 1 << 16;

/// The first `width` elements of rows that are padded to whole vectors.
fn narrow(wide: Vec<f32>, width: usize) -> Vec<f32> {
    let padded = width.next_multiple_of(LANE_PAD);
    if padded == width {
        return wide;
    }
    let mut out = vec![0.0; wide.len() / padded * width];
    let rows = out.par_chunks_exact_mut(width).zip(wide.par_chunks_exact(padded));
    rows.with_min_len(SHARE / padded).for_each(|(out, row)| out.copy_from_slice(&row[..width]));
    out
}

fn scaled(mut values: Vec<f32>, scale: f32) -> Vec<f32> {
    if scale != 1.0 {
        values.par_chunks_mut(SHARE).for_each(|part| part.iter_mut().for_each(|x| *x *= scale));
    }
    values
}

impl Sweep<'_> {
    /// Runs it. Errors: shapes that no tensor has.
    pub(super) fn run(&self) -> Result<Gradients, Diagnostic> {
        let raw = self.raw();
        finished(self.problem, self.derivative, raw)
    }

    /// The work itself.
    pub(super) fn raw(&self) -> Raw {
        let s = self.problem.spec();
        let (width, width_v) = (s.head_dim.next_multiple_of(LANE_PAD), s.head_dim_v.next_multiple_of(LANE_PAD));
        let heads = s.batch * s.kv_heads;
        let panels = s.kv_len.div_ceil(PANEL);
        let parts = TASKS.div_ceil(heads).clamp(1, panels);
        let keys = panels.div_ceil(parts) * PANEL;
        let parts = s.kv_len.div_ceil(keys);
        let per_part = self.problem.group() * s.q_len * width;
        let mut dk = vec![0.0; heads * s.kv_len * width];
        let mut dv = vec![0.0; heads * s.kv_len * width_v];
        // of every part of the keys, by heads
        let mut dqs: Vec<Vec<f32>> = (0..parts).map(|_| zeros(heads * per_part)).collect();
        let mut of_parts: Vec<_> = dqs.iter_mut().map(|dq| dq.chunks_mut(per_part)).collect();
        let mut tasks = Vec::with_capacity(heads * parts);
        let per_head = dk.chunks_mut(s.kv_len * width).zip(dv.chunks_mut(s.kv_len * width_v));
        for (head, (dk, dv)) in per_head.enumerate() {
            let pieces = dk.chunks_mut(keys * width).zip(dv.chunks_mut(keys * width_v));
            for (part, ((dk, dv), dq)) in pieces.zip(&mut of_parts).enumerate() {
                let kv = part * keys..((part + 1) * keys).min(s.kv_len);
                let dq = dq.next().expect("each part has every head");
                tasks.push(Task { b: head / s.kv_heads, kv_head: head % s.kv_heads, kv, dk, dv, dq });
            }
        }
        let captures = self.lanes(tasks);
        Raw { dq: summed(dqs), dk, dv, captures }
    }

    /// Runs the tasks in as many lanes as sums of captured tensors have room for; each lane goes through its own in order.
    fn lanes(&self, tasks: Vec<Task>) -> Vec<f64> {
        let elements = self.derivative.elements();
        let most = match elements {
            0 => tasks.len(),
            n => (PARTIAL_BYTES / (8 * n)).clamp(1, TASKS),
        };
        let count = most.min(tasks.len()).max(1);
        let mut lanes: Vec<Vec<Task>> = (0..count).map(|_| Vec::new()).collect();
        tasks.into_iter().enumerate().for_each(|(at, task)| lanes[at % count].push(task));
        let sums: Vec<Vec<f64>> = lanes
            .into_par_iter()
            .with_max_len(1)
            .map(|lane| {
                let (mut sums, mut scratch) = (vec![0.0; elements], self.scratch());
                lane.into_iter().for_each(|task| self.task(task, &mut scratch, &mut sums));
                sums
            })
            .collect();
        let mut all = vec![0.0; elements];
        sums.iter().for_each(|lane| all.iter_mut().zip(lane).for_each(|(all, x)| *all += x));
        all
    }

    fn scratch(&self) -> Scratch {
        let s = self.problem.spec();
        Scratch {
            scores: Aligned::zeros(ROWS * GROUP),
            plain: Aligned::zeros(ROWS * GROUP),
            gradients: Aligned::zeros(ROWS * GROUP),
            keep: vec![0; ROWS * GROUP],
            dk: Aligned::zeros(GROUP * s.head_dim.next_multiple_of(LANE_PAD)),
            dv: Aligned::zeros(GROUP * s.head_dim_v.next_multiple_of(LANE_PAD)),
            buffer: Vec::new(),
            tiles: Vec::new(),
            steps: Vec::new(),
        }
    }

    fn task(&self, task: Task, scratch: &mut Scratch, sums: &mut [f64]) {
        let s = self.problem.spec();
        let (width, width_v) = (self.inputs.width(), self.inputs.width_v());
        let Task { b, kv_head, kv, dk, dv, dq } = task;
        let groups = dk.chunks_mut(GROUP * width).zip(dv.chunks_mut(GROUP * width_v));
        for (n, (dk, dv)) in groups.enumerate() {
            let from = kv.start + n * GROUP;
            scratch.dk.fill(0.0);
            scratch.dv.fill(0.0);
            for member in 0..self.problem.group() {
                let h = kv_head * self.problem.group() + member;
                let mut steps = std::mem::take(&mut scratch.steps);
                self.steps((b, h), from..(from + GROUP).min(kv.end), &mut scratch.tiles, &mut steps);
                let dq = &mut dq[member * s.q_len * width..][..s.q_len * width];
                for step in &steps {
                    let q = step.tile * ROWS..(step.tile * ROWS + ROWS).min(s.q_len);
                    let place = Place { b, h, q, kv: from + step.first * PANEL..from + step.end * PANEL };
                    self.tile(&place, step, kv_head, dq, scratch, sums);
                }
                scratch.steps = steps;
            }
            dk.copy_from_slice(&scratch.dk[..dk.len()]);
            dv.copy_from_slice(&scratch.dv[..dv.len()]);
        }
    }

    /// What a group of keys meets, tile after tile; of a tile, panels of one kind beside each other at once.
    fn steps(&self, (b, h): (usize, usize), keys: Range<usize>, tiles: &mut Vec<(usize, bool)>, out: &mut Vec<Step>) {
        out.clear();
        for (panel, from) in keys.step_by(PANEL).enumerate() {
            self.plan.rows_of(b, h, from, (self.problem.q_len, self.problem.kv_len), tiles);
            out.extend(tiles.iter().map(|&(tile, look)| Step { tile, first: panel, end: panel + 1, look }));
        }
        out.sort_unstable_by_key(|step| (step.tile, step.first));
        out.dedup_by(|next, before| {
            let joins = next.tile == before.tile && next.first == before.end && next.look == before.look;
            if joins {
                before.end = next.end;
            }
            joins
        });
    }

    /// One tile of queries and the keys of a step.
    fn tile(&self, at: &Place, step: &Step, kv_head: usize, dq: &mut [f32], scratch: &mut Scratch, sums: &mut [f64]) {
        let s = self.problem.spec();
        let tile = Tile { rows: at.q.len(), columns: at.kv.len() };
        let cells = tile.rows * tile.columns;
        let keys = self.inputs.keys(at.b * s.kv_heads + kv_head, at.kv.clone());
        let queries: Queries = self.inputs.queries(at.b * s.heads + at.h, at.q.clone());
        let (width, width_v) = (self.inputs.width(), self.inputs.width_v());
        let (scores, gradients) = (&mut scratch.scores[..cells], &mut scratch.gradients[..cells]);
        self.kernels.scores(tile, width, queries.q, keys.kt, scores);
        self.kernels.scores(tile, width_v, queries.d_out, keys.vt, gradients);
        if self.derivative.needs_scores() {
            scratch.plain[..cells].copy_from_slice(scores);
        }
        self.mods.score(at, scores);
        if step.look {
            let keep = &mut scratch.keep[..cells];
            self.plan.keep(self.mods, at, keep);
            self.kernels.mask(scores, keep);
        }
        if at.kv.end > s.kv_len {
            let inside = s.kv_len - at.kv.start;
            scores.chunks_exact_mut(tile.columns).for_each(|row| row[inside..].fill(f32::NEG_INFINITY));
        }
        self.kernels.softmax_gradient(tile, scores, gradients, queries.lse, queries.delta);
        let first = step.first * PANEL;
        self.kernels.transposed_values(tile, width_v, scores, queries.d_out, &mut scratch.dv[first * width_v..]);
        let plain = &scratch.plain[..cells];
        self.derivative.apply(at, plain, gradients, sums, &mut scratch.buffer);
        self.kernels.transposed_values(tile, width, gradients, queries.q, &mut scratch.dk[first * width..]);
        let dq = &mut dq[at.q.start * width..at.q.end * width];
        self.kernels.values(tile, width, gradients, keys.k, &ONES, dq);
    }
}

/// Zeros to be added to, written on all cores. The system's own zeros are one page for all: to read one of them first and then to
/// write costs a second fault and, where several threads run, an interrupt of each of them.
pub(super) fn zeros(len: usize) -> Vec<f32> {
    let mut made = vec![0.0; len];
    made.par_chunks_mut(SHARE).for_each(|part| part.fill(0.0));
    made
}

/// The sum of arrays of one length, in their order.
fn summed(arrays: Vec<Vec<f32>>) -> Vec<f32> {
    let mut arrays = arrays.into_iter();
    let mut sum = arrays.next().unwrap_or_default();
    for other in arrays {
        let parts = sum.par_chunks_mut(SHARE).zip(other.par_chunks(SHARE));
        parts.for_each(|(sum, other)| sum.iter_mut().zip(other).for_each(|(sum, x)| *sum += x));
    }
    sum
}

const ONES: [f32; ROWS] = [1.0; ROWS];

impl Plan {
    /// The tiles of queries that see any of the panel of keys that begins at `from`, and whether the mask must be looked at
    /// there.
    fn rows_of(&self, b: usize, h: usize, from: usize, (q_len, kv_len): (usize, usize), out: &mut Vec<(usize, bool)>) {
        out.clear();
        let tiles = q_len.div_ceil(ROWS);
        match self {
            Plan::Full => out.extend((0..tiles).map(|tile| (tile, false))),
            Plan::Dense(_) => out.extend((0..tiles).map(|tile| (tile, true))),
            Plan::Causal { offset } => {
                let last = (from + PANEL).min(kv_len) as i64 - 1;
                for tile in 0..tiles {
                    let (first_row, last_row) = (tile * ROWS, ((tile + 1) * ROWS).min(q_len) - 1);
                    if last_row as i64 + offset >= from as i64 {
                        out.push((tile, (first_row as i64) + offset < last));
                    }
                }
            }
            Plan::Blocks(_, columns) => {
                for run in columns.runs(b, h, from / PANEL) {
                    let look = run.kind == crate::analysis::block_mask::BlockKind::Partial;
                    out.extend((run.start..run.end.min(tiles)).map(|tile| (tile, look)));
                }
            }
        }
    }
}
