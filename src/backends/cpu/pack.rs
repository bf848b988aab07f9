//! k and v in the form of the inner loops: K transposed in panels, V padded to whole vectors, both f32.
//!
//! Invariant: padding is zero, so that products over it are harmless. Must not know masks.

use super::element::Element;
use crate::micro::{Aligned, LANE_PAD, PANEL};
use rayon::prelude::*;

/// Packed k and v of every kv head.
pub(super) struct Packed {
    kt: Aligned,
    v: Aligned,
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
        Packed { kt: Aligned::zeros(columns * shape.head_dim), v: Aligned::zeros(columns * shape.width()), shape }
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
            transposed(k, s.head_dim, kt);
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

/// One panel of keys transposed: from `[at most PANEL][dim]` to `[dim][PANEL]`. Columns without a key keep what they have.
pub(super) fn transposed<T: Element>(k: &[T], dim: usize, out: &mut [f32]) {
    /// Elements of each side that are turned at once, so that whole vectors are read and written.
    const SIDE: usize = LANE_PAD;
    for (at, rows) in k.chunks(SIDE * dim).enumerate() {
        let column = at * SIDE;
        let whole = if rows.len() == SIDE * dim { dim / SIDE * SIDE } else { 0 };
        for from in (0..whole).step_by(SIDE) {
            let mut turned = [[0.0; SIDE]; SIDE];
            for (i, row) in rows.chunks_exact(dim).enumerate() {
                for (j, x) in row[from..from + SIDE].iter().enumerate() {
                    turned[j][i] = x.to_f32();
                }
            }
            for (j, turned) in turned.iter().enumerate() {
                out[(from + j) * PANEL + column..][..SIDE].copy_from_slice(turned);
            }
        }
        for (i, row) in rows.chunks_exact(dim).enumerate() {
            (whole..dim).for_each(|e| out[e * PANEL + column + i] = row[e].to_f32());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_of_any_width_and_length_are_transposed() {
        for (keys, dim) in [(64, 64), (64, 40), (17, 16), (1, 5), (50, 80)] {
            let k: Vec<f32> = (0..keys * dim).map(|i| i as f32 + 1.0).collect();
            let mut out = vec![0.0; dim * PANEL];
            transposed(&k, dim, &mut out);
            let want = |e: usize, column: usize| if column < keys { k[column * dim + e] } else { 0.0 };
            assert!((0..dim * PANEL).all(|i| out[i] == want(i / PANEL, i % PANEL)), "{keys} keys of {dim}");
        }
    }
}
