//! Eager attention's backward pass: probabilities and their gradients are materialised, pass by pass, as in the plain
//! formula.
//!
//! Invariant: every pass goes over all B x Hq x Q_LEN x KV_LEN cells in memory; nothing is fused or skipped. Sums of
//! captured tensors are added head by head, in order. Must not know masks: a cell with probability zero adds nothing.

use super::backward::{Raw, zeros};
use super::backward_inputs::Prepped;
use super::plan::ROWS;
use crate::backends::mod_gradient::ModGradient;
use crate::backends::mods::Place;
use crate::micro::{Kernels, PANEL, Tile};
use crate::problem::Problem;
use rayon::prelude::*;

/// Bytes that partial sums of captured tensors may take.
const PARTIAL_BYTES: usize = 1 << 29;

/// The inputs of the passes.
pub(super) struct Passes<'a> {
    pub problem: &'a Problem,
    pub derivative: &'a ModGradient,
    pub kernels: Kernels,
    pub inputs: &'a Prepped,
    /// [heads][q_len][columns]
    pub probabilities: &'a [f32],
    /// Keys padded to whole panels.
    pub columns: usize,
}

impl Passes<'_> {
    /// All passes.
    pub(super) fn run(&self) -> Raw {
        let s = self.problem.spec();
        let mut gradients = vec![0.0; self.probabilities.len()];
        self.gradients_of_probabilities(&mut gradients);
        self.gradients_of_scores(&mut gradients);
        let dv = self.by_key(self.probabilities, self.inputs.width_v(), |head, q| self.inputs.queries(head, q).d_out);
        let captures = self.through_the_mod(&mut gradients);
        let dk = self.by_key(&gradients, self.inputs.width(), |head, q| self.inputs.queries(head, q).q);
        let mut dq = zeros(s.batch * s.heads * s.q_len * self.inputs.width());
        self.by_query(&gradients, &mut dq);
        Raw { dq, dk, dv, captures }
    }

    /// Tiles of [`ROWS`] rows of every head: the head, the first row, and its cells.
    fn tiles<'b>(
        &self,
        cells: &'b mut [f32],
    ) -> impl IndexedParallelIterator<Item = (usize, Vec<(usize, &'b mut [f32])>)> {
        let (q_len, columns) = (self.problem.q_len, self.columns);
        cells.par_chunks_mut(q_len * columns).enumerate().map(move |(head, cells)| {
            let tiles = cells.chunks_mut(ROWS * columns).enumerate().map(|(n, cells)| (n * ROWS, cells));
            (head, tiles.collect())
        })
    }

    fn kv_head(&self, head: usize) -> usize {
        let s = self.problem.spec();
        head / s.heads * s.kv_heads + head % s.heads / self.problem.group()
    }

    /// `dP = dO V^T`
    fn gradients_of_probabilities(&self, cells: &mut [f32]) {
        self.tiles(cells).for_each(|(head, tiles)| {
            let keys = self.inputs.all_keys(self.kv_head(head));
            for (from, cells) in tiles {
                let tile = Tile { rows: cells.len() / self.columns, columns: self.columns };
                let queries = self.inputs.queries(head, from..from + tile.rows);
                self.kernels.scores(tile, self.inputs.width_v(), queries.d_out, keys.vt, cells);
            }
        });
    }

    /// `dS = P * (dP - delta)`
    fn gradients_of_scores(&self, cells: &mut [f32]) {
        self.tiles(cells).for_each(|(head, tiles)| {
            for (from, cells) in tiles {
                let rows = cells.len() / self.columns;
                let delta = self.inputs.queries(head, from..from + rows).delta;
                let first = (head * self.problem.q_len + from) * self.columns;
                let p = self.probabilities[first..first + cells.len()].chunks_exact(self.columns);
                for ((row, p), delta) in cells.chunks_exact_mut(self.columns).zip(p).zip(delta) {
                    row.iter_mut().zip(p).for_each(|(x, p)| *x = if *p == 0.0 { 0.0 } else { p * (*x - delta) });
                }
            }
        });
    }

    /// Through the score mod's derivative, with what captured elements get.
    fn through_the_mod(&self, cells: &mut [f32]) -> Vec<f64> {
        let s = self.problem.spec();
        let elements = self.derivative.elements();
        let one = |(head, tiles): (usize, Vec<(usize, &mut [f32])>), sums: &mut [f64]| {
            let keys = self.inputs.all_keys(self.kv_head(head));
            let (mut plain, mut buffer) = (Vec::new(), Vec::new());
            for (from, cells) in tiles {
                let tile = Tile { rows: cells.len() / self.columns, columns: self.columns };
                let q = from..from + tile.rows;
                plain.resize(cells.len(), 0.0);
                if self.derivative.needs_scores() {
                    let queries = self.inputs.queries(head, q.clone());
                    self.kernels.scores(tile, self.inputs.width(), queries.q, keys.kt, &mut plain);
                }
                let place = Place { b: head / s.heads, h: head % s.heads, q, kv: 0..self.columns };
                self.derivative.apply(&place, &plain, cells, sums, &mut buffer);
            }
        };
        let mut all = vec![0.0; elements];
        let heads = s.batch * s.heads;
        if elements * heads * 8 > PARTIAL_BYTES {
            let tiles: Vec<_> = self.tiles(cells).collect();
            tiles.into_iter().for_each(|head| one(head, &mut all));
            return all;
        }
        let parts: Vec<Vec<f64>> = self
            .tiles(cells)
            .map(|head| {
                let mut sums = vec![0.0; elements];
                one(head, &mut sums);
                sums
            })
            .collect();
        parts.iter().for_each(|part| all.iter_mut().zip(part).for_each(|(all, x)| *all += x));
        all
    }

    /// `dQ = dS K`, without the scale.
    fn by_query(&self, cells: &[f32], dq: &mut [f32]) {
        let (q_len, width) = (self.problem.q_len, self.inputs.width());
        let heads = cells.par_chunks(q_len * self.columns).zip(dq.par_chunks_mut(q_len * width)).enumerate();
        heads.for_each(|(head, (cells, dq))| {
            let keys = self.inputs.all_keys(self.kv_head(head));
            for (cells, dq) in cells.chunks(ROWS * self.columns).zip(dq.chunks_mut(ROWS * width)) {
                let tile = Tile { rows: cells.len() / self.columns, columns: self.columns };
                self.kernels.values(tile, width, cells, keys.k, &[1.0; ROWS], dq);
            }
        });
    }

    /// The cells transposed times rows of queries, summed over the heads of a group: [kv heads][kv_len][width].
    fn by_key<'b>(
        &'b self,
        cells: &[f32],
        width: usize,
        rows: impl Fn(usize, std::ops::Range<usize>) -> &'b [f32] + Sync,
    ) -> Vec<f32> {
        let s = self.problem.spec();
        let mut out = vec![0.0; s.batch * s.kv_heads * s.kv_len * width];
        out.par_chunks_mut(s.kv_len * width).enumerate().for_each(|(kv_head, out)| {
            let (mut part, mut corner) = (vec![0.0; PANEL * width], vec![0.0; ROWS * PANEL]);
            for (panel, out) in out.chunks_mut(PANEL * width).enumerate() {
                part.fill(0.0);
                for member in 0..self.problem.group() {
                    let h = kv_head % s.kv_heads * self.problem.group() + member;
                    let head = kv_head / s.kv_heads * s.heads + h;
                    for from in (0..s.q_len).step_by(ROWS) {
                        let q = from..(from + ROWS).min(s.q_len);
                        let first = (head * s.q_len + from) * self.columns + panel * PANEL;
                        for (n, corner) in corner.chunks_exact_mut(PANEL).take(q.len()).enumerate() {
                            corner.copy_from_slice(&cells[first + n * self.columns..][..PANEL]);
                        }
                        let tile = Tile { rows: q.len(), columns: PANEL };
                        let cells = &corner[..q.len() * PANEL];
                        self.kernels.transposed_values(tile, width, cells, rows(head, q), &mut part);
                    }
                }
                out.copy_from_slice(&part[..out.len()]);
            }
        });
        out
    }
}
