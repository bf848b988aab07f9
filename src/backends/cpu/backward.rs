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
use crate::micro::{Kernels, LANE_PAD, PANEL, Tile};
use crate::problem::Problem;
use rayon::prelude::*;
use std::ops::Range;

/// The smallest number of tasks, if the keys allow it.
const TASKS: usize = 16;
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
    scores: Vec<f32>,
    plain: Vec<f32>,
    gradients: Vec<f32>,
    keep: Vec<u8>,
    dk: Vec<f32>,
    dv: Vec<f32>,
    buffer: Vec<f32>,
    tiles: Vec<(usize, bool)>,
}

/// Gradients before they are rounded: rows padded to whole vectors.
pub(super) struct Raw {
    pub dq: Vec<f32>,
    pub dk: Vec<f32>,
    pub dv: Vec<f32>,
    pub captures: Vec<f64>,
}

/// The gradients as tensors of the problem's dtype. Errors: shapes that no tensor has.
pub(super) fn finished(problem: &Problem, derivative: &ModGradient, raw: &Raw) -> Result<Gradients, Diagnostic> {
    let tensor = |shape: [usize; 4], wide: &[f32], scale: f32| {
        let (width, padded) = (shape[3], shape[3].next_multiple_of(LANE_PAD));
        let values = wide.chunks_exact(padded).flat_map(|row| row[..width].iter().map(|x| x * scale));
        rounded(problem.dtype, shape, values.collect())
    };
    let [q, k, v] = shapes(problem);
    Ok(Gradients {
        dq: tensor(q, &raw.dq, problem.scale() as f32)?,
        dk: tensor(k, &raw.dk, 1.0)?,
        dv: tensor(v, &raw.dv, 1.0)?,
        captures: derivative.tensors(&raw.captures)?,
    })
}

impl Sweep<'_> {
    /// Runs it. Errors: shapes that no tensor has.
    pub(super) fn run(&self) -> Result<Gradients, Diagnostic> {
        let raw = self.raw();
        finished(self.problem, self.derivative, &raw)
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
        let mut dq = vec![0.0; heads * parts * per_part];
        let mut tasks = Vec::with_capacity(heads * parts);
        let per_head = dk.chunks_mut(s.kv_len * width).zip(dv.chunks_mut(s.kv_len * width_v));
        for (head, ((dk, dv), dq)) in per_head.zip(dq.chunks_mut(parts * per_part)).enumerate() {
            let pieces = dk.chunks_mut(keys * width).zip(dv.chunks_mut(keys * width_v)).zip(dq.chunks_mut(per_part));
            for (part, ((dk, dv), dq)) in pieces.enumerate() {
                let kv = part * keys..((part + 1) * keys).min(s.kv_len);
                tasks.push(Task { b: head / s.kv_heads, kv_head: head % s.kv_heads, kv, dk, dv, dq });
            }
        }
        let captures = self.lanes(tasks);
        // the parts of each head, in order
        let mut sum = vec![0.0; heads * per_part];
        let each = s.q_len * width;
        sum.par_chunks_mut(each).enumerate().for_each(|(at, sum)| {
            let (head, member) = (at / self.problem.group(), at % self.problem.group());
            for part in 0..parts {
                let from = &dq[(head * parts + part) * per_part + member * each..][..each];
                sum.iter_mut().zip(from).for_each(|(sum, x)| *sum += x);
            }
        });
        Raw { dq: sum, dk, dv, captures }
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
            scores: vec![0.0; ROWS * PANEL],
            plain: vec![0.0; ROWS * PANEL],
            gradients: vec![0.0; ROWS * PANEL],
            keep: vec![0; ROWS * PANEL],
            dk: vec![0.0; PANEL * s.head_dim.next_multiple_of(LANE_PAD)],
            dv: vec![0.0; PANEL * s.head_dim_v.next_multiple_of(LANE_PAD)],
            buffer: Vec::new(),
            tiles: Vec::new(),
        }
    }

    fn task(&self, task: Task, scratch: &mut Scratch, sums: &mut [f64]) {
        let s = self.problem.spec();
        let (width, width_v) = (self.inputs.width(), self.inputs.width_v());
        let Task { b, kv_head, kv, dk, dv, dq } = task;
        let panels = dk.chunks_mut(PANEL * width).zip(dv.chunks_mut(PANEL * width_v));
        for (n, (dk, dv)) in panels.enumerate() {
            let from = kv.start + n * PANEL;
            scratch.dk.fill(0.0);
            scratch.dv.fill(0.0);
            for member in 0..self.problem.group() {
                let h = kv_head * self.problem.group() + member;
                let mut tiles = std::mem::take(&mut scratch.tiles);
                self.plan.rows_of(b, h, from, (s.q_len, s.kv_len), &mut tiles);
                let dq = &mut dq[member * s.q_len * width..][..s.q_len * width];
                for (tile, look) in &tiles {
                    let q = tile * ROWS..(tile * ROWS + ROWS).min(s.q_len);
                    let place = Place { b, h, q, kv: from..from + PANEL };
                    self.tile(&place, kv_head, *look, dq, scratch, sums);
                }
                scratch.tiles = tiles;
            }
            dk.copy_from_slice(&scratch.dk[..dk.len()]);
            dv.copy_from_slice(&scratch.dv[..dv.len()]);
        }
    }

    /// One tile of queries and one panel of keys.
    fn tile(&self, at: &Place, kv_head: usize, look: bool, dq: &mut [f32], scratch: &mut Scratch, sums: &mut [f64]) {
        let s = self.problem.spec();
        let tile = Tile { rows: at.q.len(), columns: PANEL };
        let cells = tile.rows * PANEL;
        let keys = self.inputs.keys(at.b * s.kv_heads + kv_head, at.kv.start);
        let queries: Queries = self.inputs.queries(at.b * s.heads + at.h, at.q.clone());
        let (width, width_v) = (self.inputs.width(), self.inputs.width_v());
        let (scores, gradients) = (&mut scratch.scores[..cells], &mut scratch.gradients[..cells]);
        self.kernels.scores(tile, width, queries.q, keys.kt, scores);
        self.kernels.scores(tile, width_v, queries.d_out, keys.vt, gradients);
        if self.derivative.needs_scores() {
            scratch.plain[..cells].copy_from_slice(scores);
        }
        self.mods.score(at, scores);
        if look {
            let keep = &mut scratch.keep[..cells];
            self.plan.keep(self.mods, at, keep);
            self.kernels.mask(scores, keep);
        }
        if at.kv.end > s.kv_len {
            scores.chunks_exact_mut(PANEL).for_each(|row| row[s.kv_len - at.kv.start..].fill(f32::NEG_INFINITY));
        }
        self.kernels.softmax_gradient(tile, scores, gradients, queries.lse, queries.delta);
        self.kernels.transposed_values(tile, width_v, scores, queries.d_out, &mut scratch.dv);
        let plain = &scratch.plain[..cells];
        self.derivative.apply(at, plain, gradients, sums, &mut scratch.buffer);
        self.kernels.transposed_values(tile, width, gradients, queries.q, &mut scratch.dk);
        let dq = &mut dq[at.q.start * width..at.q.end * width];
        self.kernels.values(tile, width, gradients, keys.k, &ONES, dq);
    }
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
