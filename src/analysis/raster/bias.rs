//! Pictures of a score mod: its result for a score of zero, as the mean of a few cells per pixel.
//!
//! Invariant: a pixel of one cell is exact. A mean uses cells that the mask keeps, unless it keeps none of many sampled
//! cells. Non-finite samples are excluded from a mean unless all are non-finite.

use super::{Effort, NO_SCORE, Raster, Region};
use crate::analysis::interval::{Cells, Program, Value};
use crate::base::Control;
use crate::ir::graph::Mod;
use crate::ir::tiles;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Cells sampled along each side of a pixel.
const SIDE: usize = 2;
/// The same if the mask keeps none of those.
const MORE: usize = 8;
/// Columns of a pixel up to which whole rows are evaluated, which is quicker than cell by cell.
const NARROW: usize = 64;

/// The budget for finding fully masked pixels.
const ROUGHLY: Effort = Effort { picture: 60_000, pixel: 12 };

/// A mask, and the share that it keeps of each pixel.
#[derive(Clone, Copy)]
struct Kept<'a> {
    mask: &'a Raster,
    shares: &'a [f32],
}

/// A score_mod ready to be drawn.
#[derive(Debug)]
pub struct BiasRaster {
    program: Program,
    cells: tiles::Program,
}

impl BiasRaster {
    /// Compiles a score_mod.
    pub fn new(score: Arc<Mod>) -> Self {
        Self { program: Program::new(&score), cells: tiles::Program::new(&score) }
    }

    /// The mod's result for a score of zero in a part of a row. Panics if `out` has another length.
    pub fn row(&self, b: usize, h: usize, q: usize, kv: Range<usize>, out: &mut [f32]) {
        out.fill(0.0);
        self.cells.score_tile(b, h, q..q + 1, kv, out);
    }

    /// Mean of the mod for a score of zero in each pixel, row by row; zero if it was cancelled.
    pub fn tile(&self, region: &Region, control: &Control) -> Vec<f32> {
        self.means(region, None, control)
    }

    /// The same over cells that a mask keeps; None if it keeps none.
    pub fn tile_of_kept(&self, region: &Region, mask: Option<&Raster>, control: &Control) -> Vec<Option<f32>> {
        let Some(mask) = mask else { return self.tile(region, control).into_iter().map(Some).collect() };
        let shares = mask.picture(region, ROUGHLY, control).pixels;
        let means = self.means(region, Some(Kept { mask, shares: &shares }), control);
        means.into_iter().zip(&shares).map(|(mean, share)| (*share > 0.0).then_some(mean)).collect()
    }

    fn means(&self, region: &Region, kept: Option<Kept<'_>>, control: &Control) -> Vec<f32> {
        let Region { b, h, q, kv, height, width } = region.clone();
        let mut pixels = vec![0.0f32; height * width];
        if region.is_empty() {
            return pixels;
        }
        let single = q.len() == height && kv.len() == width;
        let narrow = kv.len() <= NARROW * width;
        pixels.par_chunks_mut(width).enumerate().for_each_init(
            || self.program.scratch(),
            |scratch, (row, line)| {
                if control.is_cancelled() {
                    return;
                }
                if single {
                    return self.cells.score_tile(b, h, q.start + row..q.start + row + 1, kv.clone(), line);
                }
                if narrow {
                    return self.line(region, row, kept, line);
                }
                for (col, pixel) in line.iter_mut().enumerate() {
                    let Some(kept) = of_pixel(kept, row * width + col) else { continue };
                    let cells = region.cells(&(row..row + 1), &(col..col + 1));
                    *pixel = match self.program.evaluate_with_score(&cells, NO_SCORE, scratch) {
                        Value::Float(f) if f.value().is_some() => f.lo as f32,
                        _ => self.mean(&cells, kept),
                    };
                }
            },
        );
        pixels
    }

    /// A row of pixels, from whole rows of cells.
    fn line(&self, region: &Region, row: usize, kept: Option<Kept<'_>>, out: &mut [f32]) {
        let (kv, b, h) = (&region.kv, region.b, region.h);
        let whole = region.cells(&(row..row + 1), &(0..region.width));
        let rows: Vec<usize> = along(whole.q, SIDE).collect();
        let mut scores = vec![0.0f32; kv.len() * rows.len()];
        let mut keeps = vec![1u8; scores.len()];
        for ((q, scores), keeps) in rows.iter().zip(scores.chunks_mut(kv.len())).zip(keeps.chunks_mut(kv.len())) {
            self.cells.score_tile(b, h, *q..q + 1, kv.clone(), scores);
            if let Some(Kept { mask, .. }) = kept {
                mask.mask().tile(&Cells::new(b, h, *q..q + 1, kv.clone()), keeps);
            }
        }
        for (col, pixel) in out.iter_mut().enumerate() {
            let Some(kept) = of_pixel(kept, row * region.width + col) else { continue };
            let cells = region.cells(&(row..row + 1), &(col..col + 1));
            let at = |token: usize| (0..rows.len()).map(move |n| n * kv.len() + token - kv.start);
            let value = |at: usize| (keeps[at] != 0).then(|| scores[at]);
            let few = mean(along(cells.kv, SIDE).flat_map(at).filter_map(value));
            let all = || mean((cells.kv.0 as usize..=cells.kv.1 as usize).flat_map(at).filter_map(value));
            *pixel = few.or_else(all).unwrap_or_else(|| self.mean(&cells, kept));
        }
    }

    /// The mean over a few cells of a box, of the kept ones if the mask keeps some of many.
    fn mean(&self, cells: &Cells, mask: Option<&Raster>) -> f32 {
        let few = places(cells, SIDE);
        let Some(mask) = mask else { return self.mean_of(cells, &few) };
        let keeps = |place: &&[usize; 2]| {
            let mut out = [0u8];
            mask.mask().tile(&one(cells, **place), &mut out);
            out[0] != 0
        };
        let kept = |all: Vec<[usize; 2]>| -> Option<Vec<[usize; 2]>> {
            let kept: Vec<[usize; 2]> = all.iter().filter(keeps).copied().collect();
            (!kept.is_empty()).then_some(kept)
        };
        let found = kept(few.clone()).or_else(|| kept(places(cells, MORE)));
        self.mean_of(cells, &found.unwrap_or(few))
    }

    fn mean_of(&self, cells: &Cells, places: &[[usize; 2]]) -> f32 {
        let (b, h) = (cells.b.0 as usize, cells.h.0 as usize);
        let value = |[q, kv]: [usize; 2]| {
            let mut out = [0.0f32];
            self.cells.score_tile(b, h, q..q + 1, kv..kv + 1, &mut out);
            out[0]
        };
        mean(places.iter().copied().map(value)).unwrap_or(0.0)
    }
}

/// The mean of the finite values; one of the others if none is finite; None of an empty list.
fn mean(values: impl Iterator<Item = f32>) -> Option<f32> {
    let (mut sum, mut finite, mut other) = (0.0f64, 0u32, None);
    for value in values {
        if value.is_finite() {
            sum += f64::from(value);
            finite += 1;
        } else {
            other = Some(value);
        }
    }
    if finite == 0 { other } else { Some((sum / f64::from(finite)) as f32) }
}

/// At most `n` places spread over a range.
fn along((lo, hi): (i64, i64), n: usize) -> impl Iterator<Item = usize> + Clone {
    let (start, len) = (lo as usize, (hi - lo + 1) as usize);
    let n = n.min(len);
    (0..n).map(move |i| start + (2 * i + 1) * len / (2 * n))
}

/// Places spread over a box, at most `side` along each side.
fn places(cells: &Cells, side: usize) -> Vec<[usize; 2]> {
    let columns = along(cells.kv, side);
    along(cells.q, side).flat_map(|q| columns.clone().map(move |kv| [q, kv])).collect()
}

/// The mask of a pixel that keeps some cells, none for one that keeps all; None for a fully masked pixel.
fn of_pixel(kept: Option<Kept<'_>>, at: usize) -> Option<Option<&Raster>> {
    match kept {
        None => Some(None),
        Some(kept) if kept.shares[at] <= 0.0 => None,
        Some(kept) if kept.shares[at] >= 1.0 => Some(None),
        Some(kept) => Some(Some(kept.mask)),
    }
}

/// The box of one cell.
fn one(cells: &Cells, [q, kv]: [usize; 2]) -> Cells {
    Cells { q: (q as i64, q as i64), kv: (kv as i64, kv as i64), ..*cells }
}
