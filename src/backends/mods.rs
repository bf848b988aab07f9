//! The mods of a problem, prepared for evaluation over tiles.
//!
//! Invariant: the reference and every CPU backend share one evaluation, so that they differ in arithmetic only. Must
//! not know how scores are computed.

use crate::ir::tiles::Program;
use crate::problem::Problem;
use std::ops::Range;

/// Mask and score mod of a problem; either may be absent. Shared between threads.
pub(crate) struct Mods {
    mask: Option<Program>,
    score: Option<Program>,
}

/// The place of a tile: one head's query rows times keys.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub b: usize,
    pub h: usize,
    pub q: Range<usize>,
    pub kv: Range<usize>,
}

impl Mods {
    /// Compiles both.
    pub(crate) fn new(problem: &Problem) -> Mods {
        Mods { mask: problem.mask.as_deref().map(Program::new), score: problem.score.as_deref().map(Program::new) }
    }

    /// Whether there is a score mod.
    pub(crate) fn has_score(&self) -> bool {
        self.score.is_some()
    }

    /// Whether there is a mask.
    pub(crate) fn has_mask(&self) -> bool {
        self.mask.is_some()
    }

    /// 0 or 1 a cell, row-major; all 1 without a mask. Does not know the lengths: cells beyond them are the caller's.
    pub(crate) fn keep(&self, at: &Place, out: &mut [u8]) {
        match &self.mask {
            Some(mask) => mask.mask_tile(at.b, at.h, at.q.clone(), at.kv.clone(), out),
            None => out.fill(1),
        }
    }

    /// Applies the score mod in place, if there is one.
    pub(crate) fn score(&self, at: &Place, scores: &mut [f32]) {
        if let Some(score) = &self.score {
            score.score_tile(at.b, at.h, at.q.clone(), at.kv.clone(), scores);
        }
    }

    /// The same in f64.
    pub(crate) fn score_f64(&self, at: &Place, scores: &mut [f64]) {
        if let Some(score) = &self.score {
            score.score_tile_f64(at.b, at.h, at.q.clone(), at.kv.clone(), scores);
        }
    }
}
