//! Pictures of a score mod: what it makes of a score of zero, as the mean of a few cells a pixel.
//!
//! Invariant: a pixel of one cell is exact. Non-finite samples are left out of a mean unless all are non-finite.

use super::{NO_SCORE, tokens};
use crate::analysis::interval::{Cells, Program, Value};
use crate::base::Control;
use crate::language::graph::Mod;
use crate::language::vector;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Cells sampled along each side of a pixel.
const SIDE: usize = 2;

/// A score_mod ready to be drawn.
#[derive(Debug)]
pub struct BiasRaster {
    program: Program,
    cells: vector::Program,
}

impl BiasRaster {
    /// Compiles a score_mod.
    pub fn new(score: Arc<Mod>) -> Self {
        Self { program: Program::new(&score), cells: vector::Program::new(&score) }
    }

    /// Mean of the mod of a score of zero in each pixel, row by row; zero where it was cancelled.
    pub fn tile(
        &self,
        b: usize,
        h: usize,
        q: Range<usize>,
        kv: Range<usize>,
        height: usize,
        width: usize,
        control: &Control,
    ) -> Vec<f32> {
        let mut pixels = vec![0.0f32; height * width];
        if q.is_empty() || kv.is_empty() || pixels.is_empty() {
            return pixels;
        }
        if q.len() == height && kv.len() == width {
            let rows = pixels.par_chunks_mut(width).enumerate();
            rows.for_each(|(row, line)| {
                if !control.is_cancelled() {
                    self.cells.score_tile(b, h, q.start + row..q.start + row + 1, kv.clone(), line);
                }
            });
            return pixels;
        }
        pixels.par_chunks_mut(width).enumerate().for_each_init(
            || self.program.scratch(),
            |scratch, (row, line)| {
                if control.is_cancelled() {
                    return;
                }
                let q = tokens(&q, row, row + 1, height);
                for (col, pixel) in line.iter_mut().enumerate() {
                    let kv = tokens(&kv, col, col + 1, width);
                    let cells = Cells::new(b, h, q.clone(), kv.clone());
                    *pixel = match self.program.evaluate_with_score(&cells, NO_SCORE, scratch) {
                        Value::Float(f) if f.value().is_some() => f.lo as f32,
                        _ => self.mean(b, h, &q, &kv),
                    };
                }
            },
        );
        pixels
    }

    fn mean(&self, b: usize, h: usize, q: &Range<usize>, kv: &Range<usize>) -> f32 {
        let places = |r: &Range<usize>| -> Vec<usize> {
            let n = SIDE.min(r.len());
            (0..n).map(|i| r.start + (2 * i + 1) * r.len() / (2 * n)).collect()
        };
        let (mut sum, mut finite, mut other) = (0.0f64, 0u32, 0.0f32);
        for q in places(q) {
            for kv in places(kv) {
                let mut out = [0.0f32];
                self.cells.score_tile(b, h, q..q + 1, kv..kv + 1, &mut out);
                if out[0].is_finite() {
                    sum += f64::from(out[0]);
                    finite += 1;
                } else {
                    other = out[0];
                }
            }
        }
        if finite == 0 { other } else { (sum / f64::from(finite)) as f32 }
    }
}
