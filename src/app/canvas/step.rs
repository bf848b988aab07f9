//! Where and how the pointer's step is made: cells and borders at a place.
//!
//! Invariant: an edge is on a border of a segment or frame where one is near, else between cells. Must not know tools.

use super::view::ScreenFromWorld;
use crate::app::region::border;
use crate::base::{BlockSize, Lengths};
use crate::document::model::Axis;
use egui::Pos2;

/// Points that the pointer moves at least to draw a rectangle or a band.
pub(super) const DRAG: f32 = 3.0;
/// Points from which on edges and corners go to the border of a segment or frame.
pub(super) const SNAP: f64 = 7.0;

/// Where and how a step is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    /// The transform of this frame.
    pub map: &'a ScreenFromWorld,
    /// Extent of the mask.
    pub lengths: Lengths,
    /// Cells that are painted.
    pub cell: BlockSize,
    /// The meaning of rows and columns, to whose borders edges go; None: they stay on the cells.
    pub axes: Option<[&'a Axis; 2]>,
    /// Revision of the scene.
    pub revision: u64,
    /// Seconds.
    pub now: f64,
}

impl Step<'_> {
    /// Rows and columns of cells.
    pub(super) fn grid(&self) -> [u32; 2] {
        let (rows, cols) = self.cell.grid(self.lengths);
        [rows as u32, cols as u32]
    }

    /// The cell at a point, possibly outside the mask.
    pub(super) fn cell_at(&self, at: Pos2) -> [i64; 2] {
        self.cell_of(self.map.world(at))
    }

    /// The cell of a place in tokens.
    pub(super) fn cell_of(&self, [q, kv]: [f64; 2]) -> [i64; 2] {
        [(q / self.cell.q as f64).floor() as i64, (kv / self.cell.kv as f64).floor() as i64]
    }

    /// The borders that a place is so near to that it is meant to be on them, of rows and of columns.
    pub(super) fn borders(&self, at: [f64; 2]) -> [Option<usize>; 2] {
        let Some(axes) = self.axes else { return [None, None] };
        let scales = [self.map.q.scale, self.map.kv.scale];
        [0, 1].map(|side| border(axes[side], at[side], SNAP / scales[side]))
    }

    /// Rows or columns between two places: to their borders where these are near, else whole cells.
    pub(super) fn between(&self, side: usize, a: f64, b: f64) -> [usize; 2] {
        let (cell, len) = ([self.cell.q, self.cell.kv][side], [self.lengths.q_len, self.lengths.kv_len][side]);
        let near = |at: f64| self.borders([at, at])[side];
        let whole = |at: f64, more: f64| (((at / cell as f64).floor() + more).max(0.0) as usize).saturating_mul(cell);
        let (lo, hi) = (a.min(b), a.max(b));
        let [from, to] = [near(lo).unwrap_or(whole(lo, 0.0)), near(hi).unwrap_or(whole(hi, 1.0))].map(|n| n.min(len));
        if from < to { [from, to] } else { [whole(lo, 0.0), whole(hi, 1.0)].map(|n| n.min(len)) }
    }

    /// A rectangle of cells in tokens.
    pub(super) fn tokens(&self, [q0, q1, kv0, kv1]: [u32; 4]) -> [[usize; 2]; 2] {
        let range =
            |lo: u32, hi: u32, cell: usize, len: usize| [(lo as usize * cell).min(len), (hi as usize * cell).min(len)];
        [range(q0, q1, self.cell.q, self.lengths.q_len), range(kv0, kv1, self.cell.kv, self.lengths.kv_len)]
    }
}
