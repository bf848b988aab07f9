//! Pictures of a mask or a bias at any zoom: each pixel's kept share, or mean score.
//!
//! Invariant: only cells of the rectangle are evaluated. A pixel is exact unless the picture is flagged; in a flagged
//! picture the pixels decided by intervals are exact, and a sampled pixel is never shown fully empty or full. The same
//! picture is the same on any number of threads. Must not know colours, blocks or windows.

mod bias;
mod kinds;
mod share;

pub use bias::BiasRaster;

use super::classify::{Exact, Mask, Verdict};
use super::interval::{Cells, Floats, KeyMap};
use crate::base::{Control, Lengths};
use crate::ir::graph::Mod;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Boxes up to this many cells are evaluated cell by cell.
const CELLS: u64 = 1024;
/// How much a picture may spend on pixels that intervals alone do not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Box evaluations in all.
    pub picture: usize,
    /// Box evaluations for one pixel, at most; a few are always spent.
    pub pixel: usize,
}

impl Effort {
    /// A picture to look at.
    pub const FULL: Effort = Effort { picture: 400_000, pixel: 300 };
    /// A first impression.
    pub const SKETCH: Effort = Effort { picture: 12_000, pixel: 40 };
}

/// Rows of pixels in one task.
const BAND: usize = 32;
/// Tasks into which a picture's undecided pixels are divided, roughly.
const PARTS: usize = 64;

/// The kept share of each pixel, 0..=1, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// `height * width` shares; zero if it was cancelled.
    pub pixels: Vec<f32>,
    /// Whether every share is exact; otherwise some were sampled.
    pub exact: bool,
}

/// A mask ready to be drawn; shared between threads.
#[derive(Debug)]
pub struct Raster {
    mask: Mask,
}

/// Which tokens a picture shows, and the pixels that divide them evenly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Batch entry.
    pub b: usize,
    /// Head.
    pub h: usize,
    /// Rows.
    pub q: Range<usize>,
    /// Columns.
    pub kv: Range<usize>,
    /// Pixels over the rows.
    pub height: usize,
    /// Pixels over the columns.
    pub width: usize,
}

/// Tokens of pixels `from..to` of `parts` over a range: those of each pixel, which are at least one. Where pixels are smaller
/// than tokens, the last pixel's token may begin before the place at which the next pixel begins.
fn tokens(range: &Range<usize>, from: usize, to: usize, parts: usize) -> Range<usize> {
    let at = |n: usize| range.start + (n as u128 * range.len() as u128 / parts as u128) as usize;
    let first = |n: usize| at(n).min(range.end - 1);
    first(from)..at(to).max(first(to - 1) + 1)
}

impl Region {
    /// All of one batch entry and head.
    pub fn whole([b, h]: [usize; 2], lengths: Lengths, [height, width]: [usize; 2]) -> Self {
        Self { b, h, q: 0..lengths.q_len, kv: 0..lengths.kv_len, height, width }
    }

    fn cells(&self, rows: &Range<usize>, cols: &Range<usize>) -> Cells {
        let q = tokens(&self.q, rows.start, rows.end, self.height);
        Cells::new(self.b, self.h, q, tokens(&self.kv, cols.start, cols.end, self.width))
    }

    fn is_empty(&self) -> bool {
        self.q.is_empty() || self.kv.is_empty() || self.height == 0 || self.width == 0
    }
}

/// The picture of a mask; without one everything is kept. Cancelled, it returns early with the rest zero.
pub fn picture(mask: Option<&Arc<Mod>>, region: &Region, control: &Control) -> Picture {
    match mask {
        Some(mask) => Raster::new(Arc::clone(mask)).picture(region, Effort::FULL, control),
        None => Picture { pixels: vec![1.0; region.height * region.width], exact: true },
    }
}

impl Raster {
    /// Compiles a mask_mod.
    pub fn new(mask: Arc<Mod>) -> Self {
        Self { mask: Mask::new(mask) }
    }

    /// The mask that it draws.
    pub fn mask(&self) -> &Mask {
        &self.mask
    }

    /// The kept share of each pixel, row by row. Cancelled, it returns early with the rest zero.
    pub fn tile(&self, region: &Region, control: &Control) -> Vec<f32> {
        self.picture(region, Effort::FULL, control).pixels
    }

    /// The same with the flag, spending more or less on shares.
    pub fn picture(&self, region: &Region, effort: Effort, control: &Control) -> Picture {
        let width = region.width;
        let mut pixels = vec![0.0; region.height * width];
        if region.is_empty() {
            return Picture { pixels, exact: true };
        }
        let mixed = self.decide(region, &mut pixels, control);
        let budget = (effort.picture / mixed.len().max(1)).clamp(6, effort.pixel.max(6));
        let done = AtomicUsize::new(0);
        // a sharer's memory decides which of two alike pixels is sampled, so its pixels must not follow the number of threads
        let parts = mixed.par_chunks((mixed.len() / PARTS).clamp(64, 1024));
        let shares: Vec<Vec<(f32, bool)>> = parts
            .map(|part| {
                let mut sharer = Sharer { exact: Exact::new(&self.mask), memo: KeyMap::default() };
                let share = |at: &usize| {
                    if control.is_cancelled() {
                        return (0.0, false);
                    }
                    let (row, col) = (at / width, at % width);
                    control.set_progress(done.fetch_add(1, Ordering::Relaxed) as f64 / mixed.len() as f64);
                    sharer.share(&region.cells(&(row..row + 1), &(col..col + 1)), budget)
                };
                part.iter().map(share).collect()
            })
            .collect();
        let shares = shares.concat();
        mixed.iter().zip(&shares).for_each(|(at, (share, _))| pixels[*at] = *share);
        Picture { pixels, exact: shares.iter().all(|(_, exact)| *exact) }
    }

    /// Fills what intervals or few cells decide; returns the other pixels.
    fn decide(&self, region: &Region, pixels: &mut [f32], control: &Control) -> Vec<usize> {
        let bands = pixels.par_chunks_mut(BAND * region.width).enumerate();
        let mixed: Vec<Vec<usize>> = bands
            .map_init(
                || Exact::new(&self.mask),
                |exact, (band, pixels)| {
                    let first = band * BAND;
                    let rows = first..(first + BAND).min(region.height);
                    let mut walk = Walk { region, control, exact, first, pixels, mixed: Vec::new() };
                    walk.descend(rows, 0..region.width);
                    walk.mixed
                },
            )
            .collect();
        mixed.concat()
    }
}

struct Walk<'w, 'e, 'm> {
    region: &'w Region,
    control: &'w Control,
    exact: &'e mut Exact<'m>,
    /// First row of pixels of the band.
    first: usize,
    pixels: &'w mut [f32],
    mixed: Vec<usize>,
}

impl Walk<'_, '_, '_> {
    fn descend(&mut self, rows: Range<usize>, cols: Range<usize>) {
        if self.control.is_cancelled() {
            return;
        }
        let cells = self.region.cells(&rows, &cols);
        match self.exact.classify(&cells) {
            Verdict::Empty => {}
            Verdict::Full => self.fill(&rows, &cols),
            Verdict::Mixed if cells.area() <= CELLS && rows.len() * cols.len() <= CELLS as usize => {
                self.cell_by_cell(&cells, &rows, &cols);
            }
            Verdict::Mixed if rows.len() == 1 && cols.len() == 1 => {
                self.mixed.push(rows.start * self.region.width + cols.start);
            }
            Verdict::Mixed => self.children(rows, cols),
        }
    }

    fn children(&mut self, rows: Range<usize>, cols: Range<usize>) {
        let halves = |r: &Range<usize>, cut: bool| -> smallvec::SmallVec<[Range<usize>; 2]> {
            let middle = r.start + r.len().next_power_of_two() / 2;
            if cut { smallvec::smallvec![r.start..middle, middle..r.end] } else { smallvec::smallvec![r.clone()] }
        };
        let (cut_rows, cut_cols) = (
            rows.len() > 1 && 2 * rows.len() > cols.len(),
            cols.len() > 1 && (2 * cols.len() > rows.len() || rows.len() == 1),
        );
        for part in halves(&rows, cut_rows) {
            for col in halves(&cols, cut_cols) {
                self.descend(part.clone(), col);
            }
        }
    }

    fn fill(&mut self, rows: &Range<usize>, cols: &Range<usize>) {
        for row in rows.clone() {
            let at = (row - self.first) * self.region.width;
            self.pixels[at + cols.start..at + cols.end].fill(1.0);
        }
    }

    /// Evaluates every cell of a small box and gives each pixel its own share.
    fn cell_by_cell(&mut self, cells: &Cells, rows: &Range<usize>, cols: &Range<usize>) {
        let kept = self.exact.cells(cells).to_vec();
        let wide = (cells.kv.1 - cells.kv.0 + 1) as usize;
        let (q0, k0) = (cells.q.0 as usize, cells.kv.0 as usize);
        for row in rows.clone() {
            let q = tokens(&self.region.q, row, row + 1, self.region.height);
            for col in cols.clone() {
                let kv = tokens(&self.region.kv, col, col + 1, self.region.width);
                let line = |q: usize| &kept[(q - q0) * wide + kv.start - k0..(q - q0) * wide + kv.end - k0];
                let sum: u32 = q.clone().flat_map(line).map(|c| u32::from(*c)).sum();
                let share = sum as f32 / (q.len() * kv.len()) as f32;
                self.pixels[(row - self.first) * self.region.width + col] = share;
            }
        }
    }
}

/// Shares of single pixels, with a memory of remains already seen.
struct Sharer<'m> {
    exact: Exact<'m>,
    memo: KeyMap<(f32, bool)>,
}

/// Value of a score of zero, for callers that draw a bias.
pub(crate) const NO_SCORE: Floats = Floats { lo: 0.0, hi: 0.0, nan: false };

#[cfg(test)]
mod tests;
