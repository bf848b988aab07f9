//! Pictures of a score mod: what it makes of a score of zero, as the mean of a few cells a pixel.
//!
//! Invariant: a pixel of one cell is exact. Non-finite samples are left out of a mean unless all are non-finite.

use super::{NO_SCORE, Region};
use crate::analysis::interval::{Cells, Program, Value};
use crate::base::Control;
use crate::language::graph::Mod;
use crate::language::vector;
use rayon::prelude::*;
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
    pub fn tile(&self, region: &Region, control: &Control) -> Vec<f32> {
        let Region { b, h, q, kv, height, width } = region.clone();
        let mut pixels = vec![0.0f32; height * width];
        if region.is_empty() {
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
                for (col, pixel) in line.iter_mut().enumerate() {
                    let cells = region.cells(&(row..row + 1), &(col..col + 1));
                    *pixel = match self.program.evaluate_with_score(&cells, NO_SCORE, scratch) {
                        Value::Float(f) if f.value().is_some() => f.lo as f32,
                        _ => self.mean(&cells),
                    };
                }
            },
        );
        pixels
    }

    fn mean(&self, cells: &Cells) -> f32 {
        let places = |(lo, hi): (i64, i64)| -> Vec<usize> {
            let (start, len) = (lo as usize, (hi - lo + 1) as usize);
            let n = SIDE.min(len);
            (0..n).map(|i| start + (2 * i + 1) * len / (2 * n)).collect()
        };
        let (b, h) = (cells.b.0 as usize, cells.h.0 as usize);
        let (mut sum, mut finite, mut other) = (0.0f64, 0u32, 0.0f32);
        for q in places(cells.q) {
            for kv in places(cells.kv) {
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
