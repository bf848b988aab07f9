//! Eager attention: the scores of the whole problem are materialised, pass by pass, as in the plain formula.
//!
//! Invariant: every pass goes over all B x Hq x Q_LEN x KV_LEN scores in memory; nothing is fused or skipped. Only for
//! problems that fit; [`score_bytes`] is their size.

use super::backward::finished;
use super::backward_inputs::{Extents, Prepped, Rows};
use super::eager_backward::Passes;
use super::element::{Element, with_element};
use super::fused::{RowEnd, output_tensors};
use super::pack::{Packed, Shape};
use super::passes::{self, Runner};
use super::plan::{DenseMask, ROWS};
use crate::backends::gradients::{Gradients, Seeds};
use crate::backends::mod_gradient::ModGradient;
use crate::backends::mods::{Mods, Place};
use crate::backends::{Inputs, Output, Prepared};
use crate::base::Diagnostic;
use crate::micro::{Kernels, PANEL, Running, Tile};
use crate::problem::Problem;
use crate::problem::facts::{KernelFacts, KernelReport, Library, MaskRead};
use rayon::prelude::*;

/// Bytes of the materialised scores, padding included.
pub(super) fn score_bytes(problem: &Problem) -> u128 {
    let columns = problem.kv_len.next_multiple_of(PANEL);
    [problem.batch, problem.heads, problem.q_len, columns, 4].iter().map(|n| *n as u128).product()
}

/// Builds the runner.
pub(super) fn prepare(problem: &Problem, inputs: &Inputs) -> Result<Box<dyn Prepared>, Diagnostic> {
    let shared = problem.captured_bytes();
    with_element!(problem.dtype, T => Ok(Box::new(Runner::new(shared, || Eager::<T>::new(problem, inputs)))))
}

struct Eager<T> {
    problem: Problem,
    inputs: Inputs,
    mods: Mods,
    mask: Option<DenseMask>,
    kernels: Kernels,
    packed: Packed,
    /// [heads][q_len][columns]
    scores: Vec<f32>,
    out: Vec<T>,
    ends: Vec<RowEnd>,
}

impl<T: Element> Eager<T> {
    fn new(problem: &Problem, inputs: &Inputs) -> Self {
        let s = problem.spec();
        let shape =
            Shape { heads: s.batch * s.kv_heads, kv_len: s.kv_len, head_dim: s.head_dim, head_dim_v: s.head_dim_v };
        let mods = Mods::new(problem);
        let rows = s.batch * s.heads * s.q_len;
        Eager {
            problem: problem.clone(),
            inputs: inputs.clone(),
            mask: mods.has_mask().then(|| DenseMask::new(problem, &mods)),
            mods,
            kernels: Kernels::detect(),
            packed: Packed::new(shape),
            scores: vec![0.0; rows * shape.columns()],
            out: vec![T::POISON; rows * s.head_dim_v],
            ends: vec![RowEnd::POISON; rows],
        }
    }

    /// Calls `f` for every tile of [`ROWS`] rows of all scores.
    fn pass(&self, scores: &mut [f32], f: impl Fn(&Place, Tile, &mut [f32]) + Sync) {
        let s = self.problem.spec();
        let columns = self.packed.shape().columns();
        scores.par_chunks_mut(s.q_len * columns).enumerate().for_each(|(head, scores)| {
            scores.par_chunks_mut(ROWS * columns).enumerate().for_each(|(at, scores)| {
                let rows = scores.len() / columns;
                let q = at * ROWS..at * ROWS + rows;
                let place = Place { b: head / s.heads, h: head % s.heads, q, kv: 0..columns };
                f(&place, Tile { rows, columns }, scores);
            });
        });
    }

    fn kv_head(&self, place: &Place) -> usize {
        place.b * self.problem.kv_heads + place.h / self.problem.group()
    }

    fn products(&self, q: &[T], place: &Place, tile: Tile, scores: &mut [f32]) {
        let s = self.problem.spec();
        let first = ((place.b * s.heads + place.h) * s.q_len + place.q.start) * s.head_dim;
        let scale = self.problem.scale() as f32;
        let rows: Vec<f32> = q[first..first + tile.rows * s.head_dim].iter().map(|x| x.to_f32() * scale).collect();
        let panels = self.packed.panels(self.kv_head(place), 0, tile.columns);
        self.kernels.scores(tile, s.head_dim, &rows, panels, scores);
    }

    /// -inf in masked cells and beyond the keys.
    fn hide(&self, place: &Place, tile: Tile, scores: &mut [f32]) {
        if let Some(mask) = &self.mask {
            let mut keep = vec![0; scores.len()];
            mask.tile(place, &mut keep);
            self.kernels.mask(scores, &keep);
        }
        let kv_len = self.problem.kv_len;
        scores.chunks_exact_mut(tile.columns).for_each(|row| row[kv_len..].fill(f32::NEG_INFINITY));
    }

    /// Scores become probabilities.
    fn softmax(&self, scores: &mut [f32], ends: &mut [RowEnd]) {
        let columns = self.packed.shape().columns();
        scores.par_chunks_mut(columns).zip(ends).for_each(|(row, end)| {
            let (mut max, mut sum, mut rescale) = ([f32::NEG_INFINITY], [0.0], [0.0]);
            let mut running = Running { max: &mut max, sum: &mut sum, rescale: &mut rescale };
            self.kernels.softmax(Tile { rows: 1, columns }, row, &mut running);
            let (found, factor) = RowEnd::of(max[0], sum[0]);
            row.iter_mut().for_each(|p| *p *= factor);
            *end = found;
        });
    }

    fn values(&self, scores: &[f32], out: &mut [T]) {
        let s = self.problem.spec();
        let (columns, width) = (self.packed.shape().columns(), self.packed.shape().width());
        let heads = scores.par_chunks(s.q_len * columns).zip(out.par_chunks_mut(s.q_len * s.head_dim_v));
        heads.enumerate().for_each(|(head, (scores, out))| {
            let tiles = scores.par_chunks(ROWS * columns).zip(out.par_chunks_mut(ROWS * s.head_dim_v));
            tiles.for_each(|(p, out)| {
                let tile = Tile { rows: p.len() / columns, columns };
                let kv_head = head / s.heads * s.kv_heads + head % s.heads / self.problem.group();
                let mut wide = vec![0.0; tile.rows * width];
                let v = self.packed.values(kv_head, 0, columns);
                self.kernels.values(tile, width, p, v, &[1.0; ROWS], &mut wide);
                for (out, wide) in out.chunks_exact_mut(s.head_dim_v).zip(wide.chunks_exact(width)) {
                    out.iter_mut().zip(wide).for_each(|(to, x)| *to = T::from_f32(*x));
                }
            });
        });
    }
}

impl<T: Element> passes::Passes for Eager<T> {
    fn kernel(&self) -> KernelReport {
        let words = format!("cpu eager {} f32 d{}", self.kernels.level().name(), self.problem.head_dim);
        let mask = if self.problem.mask.is_some() { MaskRead::Blocks } else { MaskRead::Nothing };
        KernelReport { words, facts: KernelFacts::ours(Library::MaskloomCpu, mask) }
    }

    fn poison(&mut self) {
        self.out.fill(T::POISON);
        self.ends.fill(RowEnd::POISON);
    }

    fn forward(&mut self) -> Result<(), Diagnostic> {
        let wrong = || Diagnostic::error("input-dtype", "q, k and v must be of the problem's dtype");
        let (q, k, v) = (T::slice(&self.inputs.q), T::slice(&self.inputs.k), T::slice(&self.inputs.v));
        let (q, k, v) = (q.ok_or_else(wrong)?, k.ok_or_else(wrong)?, v.ok_or_else(wrong)?);
        self.packed.fill(k, v);
        let mut scores = std::mem::take(&mut self.scores);
        self.pass(&mut scores, |place, tile, scores| self.products(q, place, tile, scores));
        if self.mods.has_score() {
            self.pass(&mut scores, |place, _, scores| self.mods.score(place, scores));
        }
        self.pass(&mut scores, |place, tile, scores| self.hide(place, tile, scores));
        let (mut out, mut ends) = (std::mem::take(&mut self.out), std::mem::take(&mut self.ends));
        self.softmax(&mut scores, &mut ends);
        self.values(&scores, &mut out);
        (self.scores, self.out, self.ends) = (scores, out, ends);
        Ok(())
    }

    fn results(&self) -> Result<Output, Diagnostic> {
        output_tensors(&self.problem, self.out.clone(), &self.ends, self.problem.max_scores)
    }

    fn backward(&mut self, seeds: &Seeds) -> Result<Gradients, Diagnostic> {
        seeds.check(&self.problem)?;
        let derivative = ModGradient::new(&self.problem)?;
        let lse: Vec<f32> = self.ends.iter().map(|end| end.lse).collect();
        let mut inputs = Prepped::new(Extents::of(&self.problem));
        inputs.fill_from(&self.inputs, &Rows::new(&self.out, &lse, seeds, self.problem.scale() as f32)?)?;
        let passes = Passes {
            problem: &self.problem,
            derivative: &derivative,
            kernels: self.kernels,
            inputs: &inputs,
            probabilities: &self.scores,
            columns: self.packed.shape().columns(),
        };
        finished(&self.problem, &derivative, passes.run())
    }
}
