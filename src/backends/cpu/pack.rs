//! k and v in the form of the inner loops: K transposed in panels, V padded to whole vectors, both f32.
//!
//! Invariant: padding is zero, so that products over it are harmless. Must not know masks.

use super::element::Element;
use crate::micro::{LANE_PAD, PANEL};
use rayon::prelude::*;

/// Packed k and v of every kv head.
pub(super) struct Packed {
    kt: Vec<f32>,
    v: Vec<f32>,
    shape: Shape,
}

/// Extents of one kv head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Kv heads over all batch entries.
    pub heads: usize,
    pub kv_len: usize,
    pub head_dim: usize,
    pub head_dim_v: usize,
}

impl Shape {
    /// Keys padded to whole panels.
    pub(super) fn columns(self) -> usize {
        self.kv_len.next_multiple_of(PANEL)
    }

    /// Columns of V padded to whole vectors.
    pub(super) fn width(self) -> usize {
        self.head_dim_v.next_multiple_of(LANE_PAD)
    }
}

impl Packed {
    /// Room for packed heads; zeros where padding will stay.
    pub(super) fn new(shape: Shape) -> Packed {
        let columns = shape.heads * shape.columns();
        Packed { kt: vec![0.0; columns * shape.head_dim], v: vec![0.0; columns * shape.width()], shape }
    }

    /// Extents.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Fills from k and v, panel by panel on all cores.
    pub(super) fn fill<T: Element>(&mut self, k: &[T], v: &[T]) {
        let s = self.shape;
        let panels = s.columns() / PANEL;
        let kt = self.kt.par_chunks_mut(PANEL * s.head_dim);
        let rows = self.v.par_chunks_mut(PANEL * s.width());
        kt.zip(rows).enumerate().for_each(|(at, (kt, rows))| {
            let (head, from) = (at / panels, at % panels * PANEL);
            let tokens = PANEL.min(s.kv_len - from);
            let first = head * s.kv_len + from;
            let k = &k[first * s.head_dim..][..tokens * s.head_dim];
            for (column, k) in k.chunks_exact(s.head_dim).enumerate() {
                for (e, x) in k.iter().enumerate() {
                    kt[e * PANEL + column] = x.to_f32();
                }
            }
            let v = &v[first * s.head_dim_v..][..tokens * s.head_dim_v];
            for (row, v) in rows.chunks_exact_mut(s.width()).zip(v.chunks_exact(s.head_dim_v)) {
                row.iter_mut().zip(v).for_each(|(to, x)| *to = x.to_f32());
            }
        });
    }

    /// Panels of `columns` keys from `from` (a multiple of [`PANEL`]) of a head.
    pub(super) fn panels(&self, head: usize, from: usize, columns: usize) -> &[f32] {
        let dim = self.shape.head_dim;
        &self.kt[(head * self.shape.columns() + from) * dim..][..columns * dim]
    }

    /// Rows of V for the same keys.
    pub(super) fn values(&self, head: usize, from: usize, columns: usize) -> &[f32] {
        let width = self.shape.width();
        &self.v[(head * self.shape.columns() + from) * width..][..columns * width]
    }
}
