//! The inner loops of attention on a tile: q.k products, masking, softmax of rows, p.v products.
//!
//! Invariant: every public function checks its slices' extents before it uses pointers, and gives the same result on
//! every [`Level`] up to rounding. Must not know mods, blocks or threads. `unsafe` for the vector instructions of
//! `simd`.
#![allow(unsafe_code)]

mod aligned;
mod simd;

pub use aligned::Aligned;
pub use simd::Level;
#[cfg(target_arch = "x86_64")]
use simd::{Avx2, Avx512};
use simd::{Portable, Simd};

/// Columns of one packed panel of K transposed, `[head_dim][PANEL]`; widths of score tiles are multiples of it.
pub const PANEL: usize = 64;
/// Columns of V and of the output are padded to a multiple of this.
pub const LANE_PAD: usize = 16;

/// A tile of scores or probabilities: `rows` queries by `columns` keys, row-major without gaps.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    /// Queries.
    pub rows: usize,
    /// A multiple of [`PANEL`].
    pub columns: usize,
}

impl Tile {
    fn check(self, len: usize) {
        assert!(self.columns.is_multiple_of(PANEL) && len >= self.rows * self.columns, "tile exceeds its buffer");
    }
}

/// Running softmax of a tile of rows, with the unnormalised output next to it.
pub struct Running<'a> {
    /// Largest score of each row so far.
    pub max: &'a mut [f32],
    /// Sum of exp(score - max) of each row so far.
    pub sum: &'a mut [f32],
    /// The factor of each row's output before more is added.
    pub rescale: &'a mut [f32],
}

/// The kernels of one vector width.
#[derive(Clone, Copy)]
pub struct Kernels {
    level: Level,
    product: unsafe fn(&Product),
    mask: unsafe fn(*mut f32, *const u8, usize),
    softmax: unsafe fn(*mut f32, Tile, Option<&Largest>, &mut Running),
    softmax_gradient: unsafe fn(&GradientTile),
}

/// `out[r][c] = out[r][c] * factor[r] + sum over k of a[r][k] * b[k][c]`; without factors, `out` starts at zero.
/// B is cut into panels of `panel_columns` columns, each `[depth][panel_columns]`.
struct Product {
    a: *const f32,
    /// From one row of a to the next,
    a_stride: usize,
    /// and from one of its columns to the next.
    a_depth: usize,
    b: *const f32,
    panel_columns: usize,
    depth: usize,
    rows: usize,
    columns: usize,
    out: *mut f32,
    out_stride: usize,
    factor: *const f32,
    /// Null, or a row of [`Largest`] for each of `rows`, whose numbers grow to those of `out`.
    largest: *mut f32,
}

/// Numbers whose largest is that of a row of scores: a vector a row, as they fell out of the products.
#[derive(Debug)]
pub struct Largest(Aligned);

impl Largest {
    /// Room for the rows of a tile.
    pub fn new(rows: usize) -> Largest {
        Largest(Aligned::zeros(rows * LANE_PAD))
    }
}

impl Kernels {
    /// The widest kernels of this machine.
    pub fn detect() -> Kernels {
        Kernels::at(Level::detect())
    }

    /// The kernels of one level. The level must have come from [`Level::detect`] or be narrower.
    pub fn at(level: Level) -> Kernels {
        let (product, mask, softmax, softmax_gradient): (unsafe fn(&Product), _, _, _) = match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => (avx512::product, avx512::mask as _, avx512::softmax as _, avx512::softmax_gradient as _),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => (avx2::product, avx2::mask as _, avx2::softmax as _, avx2::softmax_gradient as _),
            Level::Portable => {
                (portable::product, portable::mask as _, portable::softmax as _, portable::softmax_gradient as _)
            }
        };
        Kernels { level, product, mask, softmax, softmax_gradient }
    }

    /// Which.
    pub fn level(self) -> Level {
        self.level
    }

    /// Scores of a tile: `q` is `[rows][depth]`, `panels` K transposed in panels, `scores` the tile.
    pub fn scores(self, tile: Tile, depth: usize, q: &[f32], panels: &[f32], scores: &mut [f32]) {
        self.all_scores(tile, depth, (q, panels), scores, std::ptr::null_mut());
    }

    /// The same, and the largest of each row, which is free while the scores are in registers.
    pub fn scores_and_largest(
        self,
        tile: Tile,
        depth: usize,
        of: (&[f32], &[f32]),
        scores: &mut [f32],
        largest: &mut Largest,
    ) {
        let lanes = &mut largest.0[..tile.rows * LANE_PAD];
        lanes.fill(f32::NEG_INFINITY);
        self.all_scores(tile, depth, of, scores, lanes.as_mut_ptr());
    }

    /// `largest`: null, or [`LANE_PAD`] numbers for each row.
    fn all_scores(
        self,
        tile: Tile,
        depth: usize,
        (q, panels): (&[f32], &[f32]),
        scores: &mut [f32],
        largest: *mut f32,
    ) {
        tile.check(scores.len());
        assert!(q.len() >= tile.rows * depth && panels.len() >= tile.columns * depth, "q or k exceeds its buffer");
        let product = Product {
            a: q.as_ptr(),
            a_stride: depth,
            a_depth: 1,
            b: panels.as_ptr(),
            panel_columns: PANEL,
            depth,
            rows: tile.rows,
            columns: tile.columns,
            out: scores.as_mut_ptr(),
            out_stride: tile.columns,
            factor: std::ptr::null(),
            largest,
        };
        // SAFETY: the level's instructions exist; extents were checked above.
        unsafe { (self.product)(&product) }
    }

    /// `out[r] = out[r] * rescale[r] + p[r] . v`: `p` is the tile, `v` `[columns][width]`, `out` `[rows][width]`.
    pub fn values(self, tile: Tile, width: usize, p: &[f32], v: &[f32], rescale: &[f32], out: &mut [f32]) {
        tile.check(p.len());
        assert!(width.is_multiple_of(LANE_PAD) && v.len() >= tile.columns * width, "v exceeds its buffer");
        assert!(out.len() >= tile.rows * width && rescale.len() >= tile.rows, "out exceeds its buffer");
        /// Keys a pass: their rows of V stay in the first cache while the rows of p go by.
        const DEPTH: usize = 128;
        assert!(tile.rows <= ONES.len(), "a tile has at most 256 rows");
        for from in (0..tile.columns).step_by(DEPTH) {
            let product = Product {
                a: p[from..].as_ptr(),
                a_stride: tile.columns,
                a_depth: 1,
                b: v[from * width..].as_ptr(),
                panel_columns: width,
                depth: DEPTH.min(tile.columns - from),
                rows: tile.rows,
                columns: width,
                out: out.as_mut_ptr(),
                out_stride: width,
                factor: if from == 0 { rescale.as_ptr() } else { ONES.as_ptr() },
                largest: std::ptr::null_mut(),
            };
            // SAFETY: the level's instructions exist; extents were checked above.
            unsafe { (self.product)(&product) }
        }
    }

    /// Sets scores to -inf where the mask byte is 0.
    pub fn mask(self, scores: &mut [f32], keep: &[u8]) {
        assert!(scores.len() == keep.len() && scores.len().is_multiple_of(PANEL), "mask and scores differ in length");
        // SAFETY: the level's instructions exist; both have the same length.
        unsafe { (self.mask)(scores.as_mut_ptr(), keep.as_ptr(), scores.len()) }
    }

    /// Scores become exp(score - new max); the running maxima and sums move on, and the rescale factors say by what.
    pub fn softmax(self, tile: Tile, scores: &mut [f32], running: &mut Running) {
        self.softmax_of(tile, scores, None, running);
    }

    /// The same of scores whose largest are known from [`scores_and_largest`](Self::scores_and_largest).
    pub fn softmax_of(self, tile: Tile, scores: &mut [f32], largest: Option<&Largest>, running: &mut Running) {
        tile.check(scores.len());
        let rows = [running.max.len(), running.sum.len(), running.rescale.len()];
        assert!(rows.iter().all(|n| *n >= tile.rows), "running softmax has fewer rows than the tile");
        assert!(largest.is_none_or(|of| of.0.len() >= tile.rows * LANE_PAD), "largest scores of fewer rows");
        // SAFETY: the level's instructions exist; extents were checked above.
        unsafe { (self.softmax)(scores.as_mut_ptr(), tile, largest, running) }
    }
}

/// The arguments of [`Kernels::softmax_gradient`].
struct GradientTile {
    tile: Tile,
    scores: *mut f32,
    gradients: *mut f32,
    lse: *const f32,
    delta: *const f32,
}

impl Kernels {
    /// `out[r] += sum over k of p[k][r] * b[k]` for the columns `r` of a tile `p` of `[depth][columns]`: the tile transposed
    /// times `b` of `[depth][width]`, into `out` of `[columns][width]`.
    pub fn transposed_values(self, tile: Tile, width: usize, p: &[f32], b: &[f32], out: &mut [f32]) {
        tile.check(p.len());
        assert!(width.is_multiple_of(LANE_PAD) && b.len() >= tile.rows * width, "b exceeds its buffer");
        assert!(out.len() >= tile.columns * width && tile.columns <= ONES.len(), "out exceeds its buffer");
        let product = Product {
            a: p.as_ptr(),
            a_stride: 1,
            a_depth: tile.columns,
            b: b.as_ptr(),
            panel_columns: width,
            depth: tile.rows,
            rows: tile.columns,
            columns: width,
            out: out.as_mut_ptr(),
            out_stride: width,
            factor: ONES.as_ptr(),
            largest: std::ptr::null_mut(),
        };
        // SAFETY: the level's instructions exist; extents were checked above.
        unsafe { (self.product)(&product) }
    }

    /// Scores become probabilities `exp(score - lse)`, and their gradients `p * (gradient - delta)`. A row whose lse is +inf
    /// has no probability.
    pub fn softmax_gradient(self, tile: Tile, scores: &mut [f32], gradients: &mut [f32], lse: &[f32], delta: &[f32]) {
        tile.check(scores.len().min(gradients.len()));
        assert!(lse.len() >= tile.rows && delta.len() >= tile.rows, "fewer rows than the tile");
        let (scores, gradients) = (scores.as_mut_ptr(), gradients.as_mut_ptr());
        let tile = GradientTile { tile, scores, gradients, lse: lse.as_ptr(), delta: delta.as_ptr() };
        // SAFETY: the level's instructions exist; extents were checked above.
        unsafe { (self.softmax_gradient)(&tile) }
    }
}

const ONES: [f32; 256] = [1.0; 256];

/// One module a vector width: the generic bodies compiled with its instructions.
macro_rules! version {
    ($name:ident, $simd:ty, $rows:literal, $vectors:literal $(, $feature:literal)?) => {
        mod $name {
            use super::*;
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn product(p: &Product) {
                // SAFETY: the caller vouches for instructions and extents.
                unsafe { super::product::<$simd, $rows, $vectors>(p) }
            }
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn mask(scores: *mut f32, keep: *const u8, len: usize) {
                // SAFETY: the caller vouches for instructions and extents.
                unsafe { super::mask::<$simd>(scores, keep, len) }
            }
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn softmax(scores: *mut f32, tile: Tile, of: Option<&Largest>, running: &mut Running) {
                // SAFETY: the caller vouches for instructions and extents.
                unsafe { super::softmax::<$simd>(scores, tile, of, running) }
            }
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn softmax_gradient(tile: &GradientTile) {
                // SAFETY: the caller vouches for instructions and extents.
                unsafe { super::softmax_gradient::<$simd>(tile) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
version!(avx512, Avx512, 6, 4, "avx512f,avx512bw,avx512dq,avx2,fma");
#[cfg(target_arch = "x86_64")]
version!(avx2, Avx2, 6, 2, "avx2,fma");
version!(portable, Portable, 4, 1);

#[inline(always)]
unsafe fn product<S: Simd, const R: usize, const V: usize>(p: &Product) {
    let panel_columns = p.panel_columns.min(p.columns);
    for panel in 0..p.columns / panel_columns {
        // SAFETY: the caller vouches that b holds every panel and out every column.
        let (b, out) = unsafe { (p.b.add(panel * p.depth * p.panel_columns), p.out.add(panel * panel_columns)) };
        let mut c = 0;
        while c + V * S::LANES <= panel_columns {
            // SAFETY: c stays inside the panel.
            unsafe { column_group::<S, R, V>(p, b.add(c), out.add(c)) };
            c += V * S::LANES;
        }
        while c < panel_columns {
            // SAFETY: columns are a multiple of LANE_PAD, so a whole vector is left.
            unsafe { column_group::<S, R, 1>(p, b.add(c), out.add(c)) };
            c += S::LANES;
        }
    }
}

/// All rows of V vectors of columns.
#[inline(always)]
unsafe fn column_group<S: Simd, const R: usize, const V: usize>(p: &Product, b: *const f32, out: *mut f32) {
    let mut r = 0;
    while r + R <= p.rows {
        // SAFETY: rows r..r+R exist.
        unsafe { block::<S, R, V>(p, r, b, out) };
        r += R;
    }
    // SAFETY: exactly the rows that are left.
    unsafe {
        match p.rows - r {
            5 => block::<S, 5, V>(p, r, b, out),
            4 => block::<S, 4, V>(p, r, b, out),
            3 => block::<S, 3, V>(p, r, b, out),
            2 => block::<S, 2, V>(p, r, b, out),
            1 => block::<S, 1, V>(p, r, b, out),
            _ => {}
        }
    }
}

/// R rows of V vectors, all in registers.
#[inline(always)]
unsafe fn block<S: Simd, const R: usize, const V: usize>(p: &Product, r: usize, b: *const f32, out: *mut f32) {
    // SAFETY: the caller vouches for the rows, columns and depth; every offset below stays inside them.
    unsafe {
        let a = p.a.add(r * p.a_stride);
        let out = out.add(r * p.out_stride);
        let mut acc = [[S::splat(0.0); V]; R];
        if !p.factor.is_null() {
            for (i, row) in acc.iter_mut().enumerate() {
                let factor = S::splat(*p.factor.add(r + i));
                for (j, value) in row.iter_mut().enumerate() {
                    *value = S::mul(factor, S::load(out.add(i * p.out_stride + j * S::LANES)));
                }
            }
        }
        for k in 0..p.depth {
            let row = b.add(k * p.panel_columns);
            let mut columns = [S::splat(0.0); V];
            for (j, column) in columns.iter_mut().enumerate() {
                *column = S::load(row.add(j * S::LANES));
            }
            for (i, acc) in acc.iter_mut().enumerate() {
                let x = S::splat(*a.add(i * p.a_stride + k * p.a_depth));
                for j in 0..V {
                    acc[j] = S::fma(x, columns[j], acc[j]);
                }
            }
        }
        for (i, acc) in acc.iter().enumerate() {
            for (j, acc) in acc.iter().enumerate() {
                S::store(out.add(i * p.out_stride + j * S::LANES), *acc);
            }
        }
        if !p.largest.is_null() {
            for (i, acc) in acc.iter().enumerate() {
                let largest = p.largest.add((r + i) * LANE_PAD);
                S::store(largest, acc.iter().fold(S::load(largest), |best, acc| S::max(*acc, best)));
            }
        }
    }
}

#[inline(always)]
unsafe fn mask<S: Simd>(scores: *mut f32, keep: *const u8, len: usize) {
    // SAFETY: len is a multiple of PANEL and so of LANES.
    unsafe {
        let hidden = S::splat(f32::NEG_INFINITY);
        let mut at = 0;
        while at < len {
            S::store(scores.add(at), S::select(keep.add(at), S::load(scores.add(at)), hidden));
            at += S::LANES;
        }
    }
}

#[inline(always)]
unsafe fn softmax<S: Simd>(scores: *mut f32, tile: Tile, largest: Option<&Largest>, running: &mut Running) {
    for r in 0..tile.rows {
        // SAFETY: row r lies inside the tile, and has LANE_PAD largest; columns are a multiple of PANEL and so of four vectors of 16.
        unsafe {
            let row = scores.add(r * tile.columns);
            let old = running.max[r];
            let new = old.max(match largest {
                Some(of) => S::largest(S::load(of.0.as_ptr().add(r * LANE_PAD))),
                None => row_max::<S>(row, tile.columns),
            });
            // a row that keeps nothing yet: any finite base gives exp(-inf) = 0
            let base = if new == f32::NEG_INFINITY { 0.0 } else { new };
            let rescale = if old == new { 1.0 } else { (old - base).exp() };
            let sum = exp_row::<S>(row, tile.columns, base);
            running.max[r] = new;
            running.rescale[r] = rescale;
            running.sum[r] = running.sum[r] * rescale + sum;
        }
    }
}

#[inline(always)]
unsafe fn softmax_gradient<S: Simd>(t: &GradientTile) {
    for r in 0..t.tile.rows {
        // SAFETY: row r lies inside both tiles, columns are a multiple of PANEL and so of LANES.
        unsafe {
            let (scores, gradients) = (t.scores.add(r * t.tile.columns), t.gradients.add(r * t.tile.columns));
            let (lse, delta) = (S::splat(*t.lse.add(r)), S::splat(*t.delta.add(r)));
            let mut at = 0;
            while at < t.tile.columns {
                let p = S::exp(S::sub(S::load(scores.add(at)), lse));
                S::store(scores.add(at), p);
                S::store(gradients.add(at), S::mul(p, S::sub(S::load(gradients.add(at)), delta)));
                at += S::LANES;
            }
        }
    }
}

#[inline(always)]
unsafe fn row_max<S: Simd>(row: *const f32, columns: usize) -> f32 {
    // SAFETY: the caller vouches for `columns` elements, a multiple of PANEL.
    unsafe {
        let mut best = [S::splat(f32::NEG_INFINITY); 4];
        let mut at = 0;
        while at < columns {
            for best in &mut best {
                *best = S::max(S::load(row.add(at)), *best);
                at += S::LANES;
            }
        }
        S::largest(S::max(S::max(best[0], best[1]), S::max(best[2], best[3])))
    }
}

#[inline(always)]
unsafe fn exp_row<S: Simd>(row: *mut f32, columns: usize, base: f32) -> f32 {
    // SAFETY: the caller vouches for `columns` elements, a multiple of PANEL.
    unsafe {
        let base = S::splat(base);
        let mut sums = [S::splat(0.0); 4];
        let mut at = 0;
        while at < columns {
            for sum in &mut sums {
                let p = S::exp(S::sub(S::load(row.add(at)), base));
                S::store(row.add(at), p);
                *sum = S::add(*sum, p);
                at += S::LANES;
            }
        }
        S::sum(S::add(S::add(sums[0], sums[1]), S::add(sums[2], sums[3])))
    }
}

#[cfg(test)]
mod tests;
