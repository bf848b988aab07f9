//! Inputs of a backward pass in the form of its inner loops: f32, rows padded to whole vectors, keys and values also
//! transposed in panels, and lse and delta for each query row.
//!
//! Invariant: padding is zero, so that products over it are harmless; a fully masked row has lse +inf, so that its
//! probabilities are zero. Must not know masks.

use super::element::Element;
use super::pack::transposed;
use crate::backends::Inputs;
use crate::backends::gradients::Seeds;
use crate::base::Diagnostic;
use crate::base::tensor::Data;
use crate::micro::{Aligned, LANE_PAD, PANEL};
use crate::problem::Problem;
use rayon::prelude::*;
use std::ops::Range;

/// Extents of a problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extents {
    /// Kv heads and query heads over all batch entries.
    pub kv_heads: usize,
    pub heads: usize,
    pub q_len: usize,
    pub kv_len: usize,
    pub head_dim: usize,
    pub head_dim_v: usize,
}

impl Extents {
    /// Those of a problem.
    pub(super) fn of(problem: &Problem) -> Extents {
        let s = problem.spec();
        Extents {
            kv_heads: s.batch * s.kv_heads,
            heads: s.batch * s.heads,
            q_len: s.q_len,
            kv_len: s.kv_len,
            head_dim: s.head_dim,
            head_dim_v: s.head_dim_v,
        }
    }
}

impl<'a, T: Element> Rows<'a, T> {
    /// From a forward pass's results and their gradients. Errors: seeds of another dtype.
    pub(super) fn new(out: &'a [T], lse: &'a [f32], seeds: &'a Seeds, scale: f32) -> Result<Rows<'a, T>, Diagnostic> {
        let wrong = || Diagnostic::error("seed-dtype", "do must be of the problem's dtype, and dlse float32");
        let d_lse = match seeds.d_lse.as_ref().map(|t| t.data()) {
            None => &[],
            Some(Data::F32(v)) => &v[..],
            Some(_) => return Err(wrong()),
        };
        Ok(Rows { out, lse, d_out: T::slice(&seeds.d_out).ok_or_else(wrong)?, d_lse, scale })
    }
}

/// Packed inputs of all heads.
pub(super) struct Prepped {
    extents: Extents,
    kt: Aligned,
    k: Aligned,
    vt: Aligned,
    q: Aligned,
    d_out: Aligned,
    lse: Vec<f32>,
    delta: Vec<f32>,
}

/// Panels of keys of a head.
pub(super) struct Keys<'a> {
    /// [panels][width][PANEL]
    pub kt: &'a [f32],
    /// [panels * PANEL][width]
    pub k: &'a [f32],
    /// [panels][width_v][PANEL]
    pub vt: &'a [f32],
}

/// Some rows of a head.
pub(super) struct Queries<'a> {
    /// [rows][width], scaled.
    pub q: &'a [f32],
    /// [rows][width_v]
    pub d_out: &'a [f32],
    pub lse: &'a [f32],
    pub delta: &'a [f32],
}

/// The rows' forward results and the gradients of these results.
pub(super) struct Rows<'a, T> {
    pub out: &'a [T],
    pub lse: &'a [f32],
    pub d_out: &'a [T],
    /// Empty: nothing was made of the lse.
    pub d_lse: &'a [f32],
    pub scale: f32,
}

impl Prepped {
    /// Room for all of it.
    pub(super) fn new(extents: Extents) -> Prepped {
        let columns = extents.kv_heads * extents.kv_len.next_multiple_of(PANEL);
        let rows = extents.heads * extents.q_len;
        let (width, width_v) = (padded(extents.head_dim), padded(extents.head_dim_v));
        Prepped {
            extents,
            kt: Aligned::zeros(columns * width),
            k: Aligned::zeros(columns * width),
            vt: Aligned::zeros(columns * width_v),
            q: Aligned::zeros(rows * width),
            d_out: Aligned::zeros(rows * width_v),
            lse: vec![0.0; rows],
            delta: vec![0.0; rows],
        }
    }

    /// Columns of q and k padded to whole vectors.
    pub(super) fn width(&self) -> usize {
        padded(self.extents.head_dim)
    }

    /// For v.
    pub(super) fn width_v(&self) -> usize {
        padded(self.extents.head_dim_v)
    }

    /// Fills it from the inputs. Errors: inputs of another dtype than the rows'.
    pub(super) fn fill_from<T: Element>(&mut self, inputs: &Inputs, rows: &Rows<T>) -> Result<(), Diagnostic> {
        let wrong = || Diagnostic::error("input-dtype", "q, k and v must be of the problem's dtype");
        let (q, k, v) = (T::slice(&inputs.q), T::slice(&inputs.k), T::slice(&inputs.v));
        self.fill(q.ok_or_else(wrong)?, k.ok_or_else(wrong)?, v.ok_or_else(wrong)?, rows);
        Ok(())
    }

    /// Fills it, on all cores.
    pub(super) fn fill<T: Element>(&mut self, q: &[T], k: &[T], v: &[T], rows: &Rows<T>) {
        let e = self.extents;
        let (width, width_v) = (self.width(), self.width_v());
        let panels = e.kv_len.div_ceil(PANEL);
        let kt = self.kt.par_chunks_mut(PANEL * width).zip(self.k.par_chunks_mut(PANEL * width));
        kt.zip(self.vt.par_chunks_mut(PANEL * width_v)).enumerate().for_each(|(at, ((kt, wide), vt))| {
            let (head, from) = (at / panels, at % panels * PANEL);
            let tokens = PANEL.min(e.kv_len - from);
            let first = head * e.kv_len + from;
            let k = &k[first * e.head_dim..][..tokens * e.head_dim];
            transposed(k, e.head_dim, kt);
            for (wide, k) in wide.chunks_exact_mut(width).zip(k.chunks_exact(e.head_dim)) {
                wide.iter_mut().zip(k).for_each(|(to, x)| *to = x.to_f32());
            }
            transposed(&v[first * e.head_dim_v..][..tokens * e.head_dim_v], e.head_dim_v, vt);
        });
        let wide = self.q.par_chunks_mut(width).zip(self.d_out.par_chunks_mut(width_v));
        let ends = self.lse.par_iter_mut().zip(&mut self.delta);
        wide.zip(ends).enumerate().with_min_len(64).for_each(|(row, ((wide_q, wide_d), (lse, delta)))| {
            let own = &q[row * e.head_dim..][..e.head_dim];
            wide_q.iter_mut().zip(own).for_each(|(to, x)| *to = x.to_f32() * rows.scale);
            let range = row * e.head_dim_v..(row + 1) * e.head_dim_v;
            let d_out = &rows.d_out[range.clone()];
            wide_d.iter_mut().zip(d_out).for_each(|(to, x)| *to = x.to_f32());
            let product: f32 = d_out.iter().zip(&rows.out[range]).map(|(d, o)| d.to_f32() * o.to_f32()).sum();
            *delta = product - rows.d_lse.get(row).copied().unwrap_or(0.0);
            *lse = if rows.lse[row] == f32::NEG_INFINITY { f32::INFINITY } else { rows.lse[row] };
        });
    }

    /// Whole panels of keys.
    pub(super) fn keys(&self, head: usize, keys: Range<usize>) -> Keys<'_> {
        let (width, width_v) = (self.width(), self.width_v());
        let first = head * self.extents.kv_len.next_multiple_of(PANEL) + keys.start;
        Keys {
            kt: &self.kt[first * width..][..keys.len() * width],
            k: &self.k[first * width..][..keys.len() * width],
            vt: &self.vt[first * width_v..][..keys.len() * width_v],
        }
    }

    /// All panels of keys of a head.
    pub(super) fn all_keys(&self, head: usize) -> Keys<'_> {
        self.keys(head, 0..self.extents.kv_len.next_multiple_of(PANEL))
    }

    /// Rows of a query head.
    pub(super) fn queries(&self, head: usize, q: Range<usize>) -> Queries<'_> {
        let (from, to) = (head * self.extents.q_len + q.start, head * self.extents.q_len + q.end);
        let (width, width_v) = (self.width(), self.width_v());
        Queries {
            q: &self.q[from * width..to * width],
            d_out: &self.d_out[from * width_v..to * width_v],
            lse: &self.lse[from..to],
            delta: &self.delta[from..to],
        }
    }
}

fn padded(dim: usize) -> usize {
    dim.next_multiple_of(LANE_PAD)
}
