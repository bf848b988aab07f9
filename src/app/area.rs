//! An area of the canvas in figures: kept cells, blocks, waste, bytes, attention mass.
//!
//! Invariant: the figures are of the design, head and area that they name; what is sampled says so. Must not know how it is drawn.

use super::compile::Built;
use super::region::Region;
use crate::analysis::raster::{self, Picture};
use crate::base::{Control, Lengths, Provenance};
use crate::quality::attend::Kept;
use crate::quality::live::LiveHead;
use crate::quality::loss::{self, Shows};
use std::sync::Arc;

/// Blocks that are counted one by one, at most.
const MOST: usize = 400_000;
/// Cells whose attention is added up, at most: about a second.
const MOST_CELLS: u128 = 1 << 26;

/// A selected area.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Area {
    pub region: Region,
    /// None: they are being counted.
    pub figures: Option<Figures>,
}

/// What it holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    /// What they are of.
    pub of: Of,
    /// Kept cells over all cells of the area.
    pub kept: f64,
    /// Whether `kept` is exact.
    pub exact: bool,
    /// Blocks that touch it; None: more than are counted.
    pub blocks: Option<Blocks>,
    /// The attention that falls on it; None: no capture has this head, or its cells are too many.
    pub mass: Option<Mass>,
}

/// Document, revision, batch entry, head, open capture.
pub(crate) type Of = [u64; 5];

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

/// Attention of the head on the area, without the mask.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mass {
    /// Mean over the area's queries of the probability that falls inside it.
    pub all: f64,
    /// Of which the mask drops so much.
    pub lost: f64,
    /// Whose q and k.
    pub source: Provenance,
}

/// Heads of the open capture.
#[derive(Clone)]
pub(crate) struct Heads {
    /// Counts them; never given twice.
    pub number: u64,
    pub heads: Arc<Vec<LiveHead>>,
    /// Their numbers in the model.
    pub numbers: Vec<usize>,
    pub source: Provenance,
}

/// Counts an area; about a second at most.
pub(super) fn figures(
    built: &Built,
    lengths: Lengths,
    region: &Region,
    captured: Option<&Heads>,
    of: Of,
    control: &Control,
) -> Figures {
    let picture = |q: [usize; 2], kv: [usize; 2], height: usize, width: usize| {
        let (b, h) = (of[2] as usize, of[3] as usize);
        let shown = raster::Region { b, h, q: q[0]..q[1], kv: kv[0]..kv[1], height, width };
        raster::picture(built.compiled.mask.as_ref(), &shown, control)
    };
    let (blocks, known) = blocks(built, lengths, region, &picture).unzip();
    let (kept, exact) = known.flatten().map_or_else(|| share(region, &picture), |share| (share, true));
    let mass = captured.and_then(|captured| mass(built, lengths, region, captured, of[3] as usize, control));
    Figures { of, kept, exact, blocks, mass }
}

type Draw<'a> = dyn Fn([usize; 2], [usize; 2], usize, usize) -> Picture + 'a;

/// Kept cells over all cells, part by part, and whether that is exact.
fn share(region: &Region, picture: &Draw<'_>) -> (f64, bool) {
    let (mut kept, mut exact) = (0.0, true);
    for [q, kv] in region.parts.iter() {
        let drawn = picture(*q, *kv, 1, 1);
        exact &= drawn.exact;
        kept += f64::from(drawn.pixels[0]) * ((q[1] - q[0]) as f64 * (kv[1] - kv[0]) as f64);
    }
    (kept / region.cells() as f64, exact)
}

/// The blocks that touch it; and the kept share, where it is made of whole blocks and each was counted.
fn blocks(built: &Built, lengths: Lengths, region: &Region, picture: &Draw<'_>) -> Option<(Blocks, Option<f64>)> {
    let settings = &built.document.settings;
    let size = settings.block_size;
    let [q, kv] = region.place;
    // the last ones reach beyond the tokens, and are cut there
    let around = |[from, to]: [usize; 2], size: usize, all: usize| {
        let (first, last) = (from / size, to.min(all).div_ceil(size));
        (first..last).map(move |n| [n * size, ((n + 1) * size).min(all)]).collect::<Vec<_>>()
    };
    let (rows, columns) = (around(q, size.q, lengths.q_len), around(kv, size.kv, lengths.kv_len));
    let count = rows.len().saturating_mul(columns.len());
    if count == 0 || count > MOST {
        return None;
    }
    let covered = covered(region, &rows, &columns);
    let mut found = Blocks { full: 0, partial: 0, empty: 0, waste: 0.0, bytes: 0.0 };
    let (mut computed, mut kept, mut whole) = (0.0, 0.0, true);
    let dims = (settings.head_dim + settings.head_dim_v.unwrap_or(settings.head_dim)) as f64;
    let (shares, counted) = shares_of(&rows, &columns, picture);
    for (at, (share, covered)) in shares.iter().zip(&covered).enumerate().filter(|(_, (_, covered))| **covered > 0) {
        let (row, column) = (rows[at / columns.len()], columns[at % columns.len()]);
        let (high, wide) = ((row[1] - row[0]) as f64, (column[1] - column[0]) as f64);
        whole &= *covered as f64 == high * wide;
        match share {
            s if *s <= 0.0 => {
                found.empty += 1;
                continue;
            }
            s if *s >= 1.0 => found.full += 1,
            _ => found.partial += 1,
        }
        computed += high * wide;
        kept += high * wide * f64::from(*share);
        found.bytes += wide * dims * settings.dtype.size() as f64;
    }
    found.waste = if computed > 0.0 { 1.0 - kept / computed } else { 0.0 };
    Some((found, (whole && counted).then(|| kept / region.cells() as f64)))
}

/// Cells of the area in each block.
fn covered(region: &Region, rows: &[[usize; 2]], columns: &[[usize; 2]]) -> Vec<u64> {
    let mut out = vec![0; rows.len() * columns.len()];
    let common = |a: [usize; 2], b: [usize; 2]| a[1].min(b[1]).saturating_sub(a[0].max(b[0])) as u64;
    // the places of blocks that a side touches
    let touched = |side: [usize; 2], blocks: &[[usize; 2]]| {
        let from = blocks.partition_point(|block| block[1] <= side[0]);
        from..blocks.partition_point(|block| block[0] < side[1])
    };
    for [q, kv] in region.parts.iter() {
        for row in touched(*q, rows) {
            for column in touched(*kv, columns) {
                out[row * columns.len() + column] += common(*q, rows[row]) * common(*kv, columns[column]);
            }
        }
    }
    out
}

/// Adds up the attention of a captured head.
fn mass(
    built: &Built,
    lengths: Lengths,
    region: &Region,
    captured: &Heads,
    h: usize,
    control: &Control,
) -> Option<Mass> {
    let head = &captured.heads[captured.numbers.iter().position(|number| *number == h)?];
    let problem = built.problem.as_ref().ok()?;
    if head.masses.lengths != lengths || region.cells() > MOST_CELLS {
        return None;
    }
    let kept = Kept::new(problem.block_mask(problem.block_size, control).ok()?);
    let place = head.scorer.head().place;
    let sum = |shows: Shows| {
        let mut sum = 0.0;
        for [q, kv] in region.parts.iter() {
            let (height, width) = (q[1] - q[0], 1);
            let part = raster::Region { b: place.0, h: place.1, q: q[0]..q[1], kv: kv[0]..kv[1], height, width };
            let rows = loss::by_cell(&head.scorer, &head.masses, &kept, &part, shows, control).ok()?;
            sum += rows.into_iter().map(f64::from).sum::<f64>();
        }
        Some(sum)
    };
    let mut queries: Vec<usize> = region.parts.iter().flat_map(|part| part[0][0]..part[0][1]).collect();
    queries.sort_unstable();
    queries.dedup();
    let judged = queries.into_iter().filter(|q| head.masses.lse[*q].is_finite()).count();
    let mean = |sum: f64| sum / judged as f64;
    let (all, lost) = (sum(Shows::All)?, sum(Shows::Lost)?);
    (judged > 0).then(|| Mass { all: mean(all), lost: mean(lost), source: captured.source.clone() })
}

/// The kept share of each block, and whether all are exact: whole ones in one picture, the cut ones at the ends in strips of their own.
fn shares_of(rows: &[[usize; 2]], columns: &[[usize; 2]], picture: &Draw<'_>) -> (Vec<f32>, bool) {
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
            let region = Region::rectangle(place);
            let found = figures(&built, lengths, &region, None, [0; 5], &Control::new());
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
        // a drawn area: only its own cells and blocks count
        let outline = vec![[3.0, 2.0], [190.0, 20.0], [120.0, 180.0]];
        let drawn = Region::around(outline, BlockSize::square(1), &[vec![], vec![]], lengths).expect("cells");
        let found = figures(&built, lengths, &drawn, None, [0; 5], &Control::new());
        let kept: usize = drawn.parts.iter().map(|[q, kv]| count(*q, *kv)).sum();
        assert!(found.exact && (found.kept - kept as f64 / drawn.cells() as f64).abs() < 1e-6, "{found:?}");
        let touches = |row: usize, column: usize| {
            let common = |a: [usize; 2], b: [usize; 2]| a[0].max(b[0]) < a[1].min(b[1]);
            let block = [[row * 32, row * 32 + 32], [column * 48, column * 48 + 48]];
            drawn.parts.iter().any(|part| common(part[0], block[0]) && common(part[1], block[1]))
        };
        let all = (0..7).flat_map(|row| (0..5).map(move |column| (row, column)));
        let (mut kinds, mut touched) = ([0; 3], 0);
        for (row, column) in all.filter(|(row, column)| touches(*row, *column)) {
            touched += 1;
            let (rows, columns) = ([row * 32, (row * 32 + 32).min(200)], [column * 48, (column * 48 + 48).min(200)]);
            let (cells, n) = ((rows[1] - rows[0]) * (columns[1] - columns[0]), count(rows, columns));
            kinds[if n == 0 { 2 } else { usize::from(n < cells) }] += 1;
        }
        let blocks = found.blocks.expect("counted");
        assert!(touched < 35 && [blocks.full, blocks.partial, blocks.empty] == kinds, "{blocks:?} {kinds:?}");
    }
}
