//! Tiles of a head's scores: `q.k * scale`, softcap, score mod, the model's own mask; -inf beyond the keys.
//!
//! Invariant: every measure of this folder takes its scores from here, so that measures differ only in their sums. Must
//! not know the measured mask.

use super::head::{Head, Own};
use crate::ir::tiles::Program;
use crate::micro::{Aligned, Kernels, LANE_PAD, PANEL, Running, Tile};
use std::ops::Range;

/// Query rows of a tile, at most.
pub(crate) const ROWS: usize = 64;
/// Keys of a tile, at most: a multiple of [`PANEL`].
pub(crate) const STEP: usize = 256;

/// A head packed for sweeps. Shared between threads.
pub struct Scorer {
    head: Head,
    /// K transposed in panels, [panel][dim][PANEL], zeros beyond the keys.
    panels: Aligned,
    /// V with whole panels of rows and whole vectors of columns; empty without v.
    values: Aligned,
    kernels: Kernels,
    score: Option<Program>,
}

impl Scorer {
    /// Packs k and v.
    pub fn new(head: &Head) -> Scorer {
        let (dim, kv_len) = (head.dim(), head.lengths().kv_len);
        let columns = kv_len.next_multiple_of(PANEL);
        let mut panels = Aligned::zeros(columns * dim);
        for (n, key) in head.k().chunks_exact(dim).enumerate() {
            let panel = &mut panels[n / PANEL * PANEL * dim..];
            key.iter().enumerate().for_each(|(e, x)| panel[e * PANEL + n % PANEL] = *x);
        }
        let width = head.dim_v().next_multiple_of(LANE_PAD);
        let mut values = Aligned::zeros(if head.v().is_some() { columns * width } else { 0 });
        if let Some(v) = head.v() {
            let rows = values.chunks_exact_mut(width).zip(v.chunks_exact(head.dim_v()));
            rows.for_each(|(to, from)| to[..from.len()].copy_from_slice(from));
        }
        let score = head.score.as_deref().map(Program::new);
        Scorer { head: head.clone(), panels, values, kernels: Kernels::detect(), score }
    }

    /// The head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Bytes of the packed copies and of the tensors themselves.
    pub fn bytes(&self) -> usize {
        let own = self.head.q().len() + self.head.k().len() + self.head.v().map_or(0, <[f32]>::len);
        4 * (own + self.panels.len() + self.values.len())
    }

    /// The inner loops.
    pub(crate) fn kernels(&self) -> Kernels {
        self.kernels
    }

    /// Columns of packed v.
    pub(crate) fn width(&self) -> usize {
        self.head.dim_v().next_multiple_of(LANE_PAD)
    }

    /// Packed rows of v from key `from` on.
    pub(crate) fn values(&self, from: usize) -> &[f32] {
        &self.values[from * self.width()..]
    }

    /// The first key of a tile that holds `kv`, and the columns of that tile.
    pub(crate) fn columns(kv: &Range<usize>) -> (usize, usize) {
        let from = kv.start / PANEL * PANEL;
        (from, (kv.end - from).next_multiple_of(PANEL))
    }

    /// Scores of at most [`ROWS`] rows and the tile of keys `from..from + columns`, row-major in `out`.
    pub(crate) fn tile(&self, rows: &Range<usize>, from: usize, columns: usize, query: &mut Vec<f32>, out: &mut [f32]) {
        let (dim, kv_len) = (self.head.dim(), self.head.lengths().kv_len);
        let tile = Tile { rows: rows.len(), columns };
        let scale = self.head.scale as f32;
        query.clear();
        query.extend(self.head.q()[rows.start * dim..rows.end * dim].iter().map(|x| x * scale));
        self.kernels.scores(tile, dim, query, &self.panels[from * dim..], out);
        let out = &mut out[..rows.len() * columns];
        if let Some(cap) = self.head.softcap {
            out.iter_mut().for_each(|s| *s = cap * (*s / cap).tanh());
        }
        if let Some(score) = &self.score {
            let (b, h) = self.head.place;
            score.score_tile(b, h, rows.clone(), from..from + columns, out);
        }
        let inside = columns.min(kv_len - from);
        for (row, q) in out.chunks_exact_mut(columns).zip(rows.clone()) {
            row[inside..].fill(f32::NEG_INFINITY);
            self.own(q, from, &mut row[..inside]);
        }
    }

    /// The model's own mask and bias.
    fn own(&self, q: usize, from: usize, row: &mut [f32]) {
        let at = q * self.head.lengths().kv_len + from;
        match &self.head.own {
            Own::None => {}
            Own::Causal => {
                let seen = (q + 1).saturating_sub(from).min(row.len());
                row[seen..].fill(f32::NEG_INFINITY);
            }
            Own::Keep(table) => {
                let hidden = row.iter_mut().zip(&table[at..]).filter(|(_, keep)| **keep == 0);
                hidden.for_each(|(s, _)| *s = f32::NEG_INFINITY);
            }
            Own::Bias(table) => row.iter_mut().zip(&table[at..]).for_each(|(s, x)| *s += x),
        }
    }

    /// Turns a tile of scores into probabilities against known `lse` of its rows, in place. A row whose lse is not finite has none.
    pub(crate) fn probabilities(&self, lse: &[f64], columns: usize, tile: &mut [f32], scratch: &mut RowScratch) {
        let rows = tile.len() / columns;
        scratch.start(rows);
        for (max, lse) in scratch.max.iter_mut().zip(lse) {
            *max = if lse.is_finite() { *lse as f32 } else { f32::INFINITY };
        }
        for (row, lse) in tile.chunks_exact_mut(columns).zip(lse) {
            if !lse.is_finite() {
                row.fill(f32::NEG_INFINITY);
            }
        }
        self.kernels.softmax(Tile { rows, columns }, tile, &mut scratch.running());
        // what the float32 base and the float64 lse differ by
        for ((row, base), lse) in tile.chunks_exact_mut(columns).zip(&scratch.max).zip(lse) {
            let by = if lse.is_finite() { (f64::from(*base) - lse).exp() as f32 } else { 0.0 };
            row.iter_mut().for_each(|p| *p *= by);
        }
    }
}

/// A running softmax of a tile's rows.
#[derive(Debug, Default)]
pub(crate) struct RowScratch {
    pub max: Vec<f32>,
    pub sum: Vec<f32>,
    pub rescale: Vec<f32>,
}

impl RowScratch {
    /// Nothing seen yet.
    pub(crate) fn start(&mut self, rows: usize) {
        for (of, value) in [(&mut self.max, f32::NEG_INFINITY), (&mut self.sum, 0.0), (&mut self.rescale, 1.0)] {
            of.clear();
            of.resize(rows, value);
        }
    }

    pub(crate) fn running(&mut self) -> Running<'_> {
        Running { max: &mut self.max, sum: &mut self.sum, rescale: &mut self.rescale }
    }

    /// Log-sum-exp of a row; -inf if it keeps nothing, NaN if a score was NaN or +inf.
    pub(crate) fn lse(&self, row: usize) -> f64 {
        let (max, sum) = (self.max[row], self.sum[row]);
        if sum.is_nan() || max == f32::INFINITY {
            f64::NAN
        } else if sum == 0.0 {
            f64::NEG_INFINITY
        } else {
            f64::from(max) + f64::from(sum).ln()
        }
    }
}

/// The sum of a slice in sixteen lanes.
pub(crate) fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 16];
    let chunks = values.chunks_exact(16);
    let rest: f32 = chunks.remainder().iter().sum();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x;
        }
    }
    lanes.iter().sum::<f32>() + rest
}
