//! An area of the canvas in figures: kept cells, blocks, waste, bytes.
//!
//! Invariant: the figures are of the design, head and area that they name; what is sampled says so. Must not know how it is drawn.

use super::compile::Built;
use crate::analysis::raster::{self, Picture, Region};
use crate::base::{Control, Lengths};

/// Blocks that are counted one by one, at most.
const MOST: usize = 400_000;

/// Rows and columns of tokens, half open.
pub(crate) type Place = [[usize; 2]; 2];

/// A selected area.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Area {
    pub place: Place,
    /// None: they are being counted.
    pub figures: Option<Figures>,
}

/// What it holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    /// Number and revision of the document, and the head, that they are of.
    pub of: Of,
    /// Kept cells over all cells of the area.
    pub kept: f64,
    /// Whether `kept` is exact.
    pub exact: bool,
    /// Blocks that touch it; None: more than are counted.
    pub blocks: Option<Blocks>,
}

/// Document, revision, batch entry, head.
pub(crate) type Of = [u64; 4];

/// Blocks of BLOCK_SIZE that touch an area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Blocks {
    pub full: usize,
    pub partial: usize,
    pub empty: usize,
    /// Dropped cells that are computed, over all computed cells.
    pub waste: f64,
    /// Bytes of keys and values that the computed blocks read, for one head.
    pub bytes: f64,
}

/// Counts an area; a fraction of a second at most.
pub(super) fn figures(built: &Built, lengths: Lengths, place: Place, of: Of, control: &Control) -> Figures {
    let [q, kv] = place;
    let (b, h) = (of[2] as usize, of[3] as usize);
    let settings = &built.document.settings;
    let picture = |q: [usize; 2], kv: [usize; 2], height: usize, width: usize| {
        let region = Region { b, h, q: q[0]..q[1], kv: kv[0]..kv[1], height, width };
        raster::picture(built.compiled.mask.as_ref(), &region, control)
    };
    let Picture { pixels: whole, mut exact } = picture(q, kv, 1, 1);
    let mut share = f64::from(whole[0]);
    let size = settings.block_size;
    // only whole blocks: the last ones reach beyond the tokens, and are cut there
    let around = |[from, to]: [usize; 2], size: usize, all: usize| {
        let (first, last) = (from / size, to.min(all).div_ceil(size));
        (first..last).map(move |n| [n * size, ((n + 1) * size).min(all)]).collect::<Vec<_>>()
    };
    let (rows, columns) = (around(q, size.q, lengths.q_len), around(kv, size.kv, lengths.kv_len));
    let count = rows.len().saturating_mul(columns.len());
    let blocks = (count > 0 && count <= MOST).then(|| {
        let mut found = Blocks { full: 0, partial: 0, empty: 0, waste: 0.0, bytes: 0.0 };
        let (mut computed, mut kept) = (0.0, 0.0);
        let dims = (settings.head_dim + settings.head_dim_v.unwrap_or(settings.head_dim)) as f64;
        let (shares, counted) = shares_of(&rows, &columns, &picture);
        for (row, line) in rows.iter().zip(shares.chunks(columns.len())) {
            for (column, share) in columns.iter().zip(line) {
                let (high, wide) = ((row[1] - row[0]) as f64, (column[1] - column[0]) as f64);
                match share {
                    s if *s <= 0.0 => found.empty += 1,
                    s => {
                        if *s >= 1.0 {
                            found.full += 1
                        } else {
                            found.partial += 1
                        }
                        computed += high * wide;
                        kept += high * wide * f64::from(*s);
                        found.bytes += wide * dims * settings.dtype.size() as f64;
                    }
                }
            }
        }
        // an area of whole blocks holds what they hold
        let edges = |all: &[[usize; 2]]| [all[0][0], all[all.len() - 1][1]];
        if counted && !exact && (edges(&rows), edges(&columns)) == (q, kv) {
            (share, exact) = (kept / ((q[1] - q[0]) * (kv[1] - kv[0])) as f64, true);
        }
        found.waste = if computed > 0.0 { 1.0 - kept / computed } else { 0.0 };
        found
    });
    Figures { of, kept: share, exact, blocks }
}

/// The kept share of each block, and whether all are exact: whole ones in one picture, the cut ones at the ends in strips of their own.
fn shares_of(
    rows: &[[usize; 2]],
    columns: &[[usize; 2]],
    picture: &dyn Fn([usize; 2], [usize; 2], usize, usize) -> Picture,
) -> (Vec<f32>, bool) {
    let uneven = |all: &[[usize; 2]]| {
        let (first, last) = (all[0], all[all.len() - 1]);
        if all.len() > 1 && last[1] - last[0] != first[1] - first[0] { all.len() - 1 } else { all.len() }
    };
    let (mut out, mut exact) = (vec![0.0; rows.len() * columns.len()], true);
    let (whole_rows, whole_columns) = (uneven(rows), uneven(columns));
    for (from, to) in [(0, whole_rows), (whole_rows, rows.len())] {
        for (left, right) in [(0, whole_columns), (whole_columns, columns.len())] {
            if from == to || left == right {
                continue;
            }
            let (q, kv) = ([rows[from][0], rows[to - 1][1]], [columns[left][0], columns[right - 1][1]]);
            let drawn = picture(q, kv, to - from, right - left);
            exact &= drawn.exact;
            for (n, share) in drawn.pixels.into_iter().enumerate() {
                out[(from + n / (right - left)) * columns.len() + left + n % (right - left)] = share;
            }
        }
    }
    (out, exact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::compile::build;
    use crate::base::BlockSize;
    use crate::document::library;
    use crate::ir::cell::Cell;
    use crate::ir::cell::eval;

    #[test]
    fn figures_are_those_of_every_cell_counted() {
        let mut document = library::preset("sliding_window").expect("there").document().expect("loads");
        document.axes.q.segments[0].grid = vec![200];
        document.settings.block_size = BlockSize { q: 32, kv: 48 };
        let built = build(document, None);
        let lengths = built.lengths.expect("lengths");
        let mask = built.compiled.mask.clone().expect("a mask");
        let keeps = |q: usize, kv: usize| {
            eval(&mask, &Cell { b: 0, h: 0, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 }).as_bool()
        };
        let count = |q: [usize; 2], kv: [usize; 2]| {
            (q[0]..q[1]).map(|q| (kv[0]..kv[1]).filter(|kv| keeps(q, *kv)).count()).sum::<usize>()
        };
        for place in [[[0, 200], [0, 200]], [[10, 50], [20, 90]], [[150, 200], [96, 200]], [[5, 6], [150, 151]]] {
            let found = figures(&built, lengths, place, [0; 4], &Control::new());
            let [q, kv] = place;
            let cells = ((q[1] - q[0]) * (kv[1] - kv[0])) as f64;
            assert!(found.exact && (found.kept - count(q, kv) as f64 / cells).abs() < 1e-6, "{place:?}: {found:?}");
            let (mut kinds, mut computed, mut kept, mut keys) = ([0; 3], 0, 0, 0);
            for row in q[0] / 32..q[1].div_ceil(32) {
                for column in kv[0] / 48..kv[1].div_ceil(48) {
                    let (rows, columns) =
                        ([row * 32, (row * 32 + 32).min(200)], [column * 48, (column * 48 + 48).min(200)]);
                    let (all, n) = ((rows[1] - rows[0]) * (columns[1] - columns[0]), count(rows, columns));
                    kinds[if n == 0 { 2 } else { usize::from(n < all) }] += 1;
                    if n > 0 {
                        (computed, kept, keys) = (computed + all, kept + n, keys + columns[1] - columns[0]);
                    }
                }
            }
            let blocks = found.blocks.expect("counted");
            assert_eq!([blocks.full, blocks.partial, blocks.empty], kinds, "{place:?}");
            let waste = if computed > 0 { 1.0 - kept as f64 / computed as f64 } else { 0.0 };
            assert!((blocks.waste - waste).abs() < 1e-5, "{place:?}: {} {waste}", blocks.waste);
            let s = &built.document.settings;
            assert_eq!(blocks.bytes, (keys * 2 * s.head_dim * s.dtype.size()) as f64);
        }
    }
}
