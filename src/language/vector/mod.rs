//! A mod evaluated over tiles of cells.
//!
//! Invariant: every cell equals what [`super::interpret`] gives there (scores in f32 to rounding). Must not know what
//! the tiles are for.

use super::graph::{Mod, ModKind};
use super::interpret::{self, Cell};
use std::ops::Range;

/// A mod ready to be evaluated over tiles; shared between threads.
#[derive(Clone, Debug)]
pub struct Program {
    mod_: Mod,
}

impl Program {
    /// Prepares a mod.
    pub fn new(mod_: &Mod) -> Program {
        Program { mod_: mod_.clone() }
    }

    /// Mask or score.
    pub fn kind(&self) -> ModKind {
        self.mod_.kind
    }

    /// The mask over `q` x `kv`, row-major, 0 or 1 a cell. Panics when `out` is not that long, or for a score mod.
    pub fn mask_tile(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, out: &mut [u8]) {
        assert_eq!(out.len(), q.len() * kv.len(), "one byte a cell");
        self.each_cell(b, h, q, kv, |at, mut cell| {
            cell.score = 0.0;
            out[at] = u8::from(interpret::eval(&self.mod_, &cell).as_bool());
        });
    }

    /// The score mod over `q` x `kv`, row-major, in place. Panics when `scores` is not that long, or for a mask mod.
    pub fn score_tile(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, scores: &mut [f32]) {
        assert_eq!(scores.len(), q.len() * kv.len(), "one score a cell");
        self.each_cell(b, h, q, kv, |at, mut cell| {
            cell.score = f64::from(scores[at]);
            scores[at] = interpret::eval(&self.mod_, &cell).as_float() as f32;
        });
    }

    /// The same in f64, for the reference.
    pub fn score_tile_f64(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, scores: &mut [f64]) {
        assert_eq!(scores.len(), q.len() * kv.len(), "one score a cell");
        self.each_cell(b, h, q, kv, |at, mut cell| {
            cell.score = scores[at];
            scores[at] = interpret::eval(&self.mod_, &cell).as_float();
        });
    }

    fn each_cell(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, mut f: impl FnMut(usize, Cell)) {
        let width = kv.len();
        for (row, q_idx) in q.enumerate() {
            for (column, kv_idx) in kv.clone().enumerate() {
                let cell = Cell { b: b as i64, h: h as i64, q_idx: q_idx as i64, kv_idx: kv_idx as i64, score: 0.0 };
                f(row * width + column, cell);
            }
        }
    }
}
