//! The query rows that are compared with the reference.
//!
//! Invariant: the choice depends on the problem alone, so that two runs compare the same rows; every batch entry and
//! head is visited before any is visited again. Must not know results.

use crate::analysis::block_mask::BlockMask;
use crate::backends::mods::{Mods, Place};
use crate::problem::Problem;

/// One query row of one head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct Row {
    pub b: usize,
    pub h: usize,
    pub q: usize,
}

/// Below this number of multiply-adds every row is compared, for any limit.
const SMALL: u128 = 1 << 27;
/// Multiply-adds that the reference may cost: some seconds.
const LARGE: u128 = 1 << 34;
/// Cells that the search for fully masked rows may evaluate.
const PROBED_CELLS: usize = 1 << 23;
/// Rows of a row of blocks whose keys are counted.
const LOOKED_AT: usize = 5;
/// Fully masked rows added to a sample.
const EMPTY_ROWS: usize = 16;

/// As [`choose_rows_of`], without a block mask to find the rows with the most and fewest keys by.
pub fn choose_rows(problem: &Problem, limit: u32) -> Vec<Row> {
    choose_rows_of(problem, limit, None)
}

/// All rows of a small problem, otherwise about `limit` rows: the last and the first of every head if that leaves space
/// for others, edges of blocks, rows with the most and with the fewest keys, rows spread over the sequence and over
/// batch and heads, and fully masked rows if some are found.
pub fn choose_rows_of(problem: &Problem, limit: u32, blocks: Option<&BlockMask>) -> Vec<Row> {
    let s = problem.spec();
    let heads = s.batch * s.heads;
    let total = heads * s.q_len;
    let row_cost = (s.kv_len * (s.head_dim + s.head_dim_v)) as u128;
    let affordable = (LARGE / row_cost).max(32) as usize;
    let limit = (limit.max(1) as usize).min(affordable);
    if total <= limit || total as u128 * row_cost <= SMALL {
        return (0..total).map(|i| row_at(problem, i / s.q_len, i % s.q_len)).collect();
    }
    let ends = (limit / 8).min(heads);
    let mut rows: Vec<Row> = (0..ends).map(|i| row_at(problem, spread(i, heads), s.q_len - 1)).collect();
    rows.extend((0..ends).map(|i| row_at(problem, spread(i, heads), 0)));
    rows.extend(edges(problem).iter().take(limit / 4).enumerate().map(|(i, q)| row_at(problem, spread(i, heads), *q)));
    rows.extend(extremes(problem, blocks).into_iter().take(limit / 8));
    rows.extend(empty_rows(problem).into_iter().take(limit / 8));
    let first = rows.len();
    rows.extend((first..limit.max(first + limit / 4)).map(|i| row_at(problem, spread(i, heads), golden(i, s.q_len))));
    rows.sort_unstable();
    rows.dedup();
    rows
}

fn row_at(problem: &Problem, head: usize, q: usize) -> Row {
    Row { b: head / problem.heads, h: head % problem.heads, q }
}

/// Visits 0..n in a scattered order, all of them before any again.
fn spread(i: usize, n: usize) -> usize {
    let gcd = |mut a: usize, mut b: usize| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let near = (n as f64 * 0.618) as usize;
    let step = (near.max(1)..).find(|s| gcd(*s, n) == 1).unwrap_or(1);
    (i % n) * step % n
}

/// The i-th of evenly scattered positions in 0..n.
fn golden(i: usize, n: usize) -> usize {
    let fraction = (i as f64 * 0.618_033_988_749_895).fract();
    ((fraction * n as f64) as usize).min(n - 1)
}

/// Rows at which kernels go wrong: both sides of the borders of query tiles (64, 128 and 192 rows) near both ends and in
/// the middle, and of the end of the keys.
fn edges(problem: &Problem) -> Vec<usize> {
    let (q_len, kv_len) = (problem.q_len, problem.kv_len);
    let mut raw = vec![0, q_len - 1];
    for tile in [128, 64, 192] {
        let (last, middle) = ((q_len - 1) / tile * tile, q_len / 2 / tile * tile);
        raw.extend([tile - 1, tile, last, last.wrapping_sub(1), middle, middle.wrapping_sub(1)]);
    }
    raw.extend([1, q_len / 2, kv_len - 1, kv_len]);
    let mut out = Vec::new();
    for q in raw {
        if q < q_len && !out.contains(&q) {
            out.push(q);
        }
    }
    out
}

/// A row with the most and one with the fewest keys of each head that differs: of the rows of blocks that list the most
/// and the fewest blocks the one whose count is most extreme among a few.
fn extremes(problem: &Problem, blocks: Option<&BlockMask>) -> Vec<Row> {
    let Some(blocks) = blocks else { return Vec::new() };
    let (mods, size, s) = (Mods::new(problem), blocks.block_size().q, problem.spec());
    let (batch, heads) = blocks.distinct();
    let mut found = Vec::new();
    let mut cells = 0;
    for group in 0..batch * heads {
        let (b, h) = (group / heads, group % heads);
        let load = |row: usize| blocks.runs(b, h, row).map(|run| run.end - run.start).sum::<usize>();
        let loads: Vec<usize> = (0..blocks.grid().0).map(load).collect();
        let (Some(most), Some(fewest)) = (extreme(&loads, false), extreme(&loads, true)) else { continue };
        for (row, fewest) in [(most, false), (fewest, true)] {
            cells += LOOKED_AT * s.kv_len;
            if cells > PROBED_CELLS && !found.is_empty() {
                return found;
            }
            let (from, to) = (row * size, ((row + 1) * size).min(s.q_len));
            let rows: Vec<usize> = (0..LOOKED_AT).map(|i| from + i * (to - 1 - from) / (LOOKED_AT - 1)).collect();
            let counts: Vec<usize> = rows.iter().map(|q| kept(problem, &mods, Row { b, h, q: *q })).collect();
            found.extend(extreme(&counts, fewest).map(|at| Row { b, h, q: rows[at] }));
        }
    }
    found
}

/// The position of the smallest or the largest; the smallest is searched among those that are not 0, unless all are.
fn extreme(counts: &[usize], smallest: bool) -> Option<usize> {
    let order = |at: &usize| if smallest { (counts[*at] == 0, counts[*at]) } else { (false, usize::MAX - counts[*at]) };
    (0..counts.len()).min_by_key(order)
}

/// Keys that a row keeps.
fn kept(problem: &Problem, mods: &Mods, row: Row) -> usize {
    let mut keep = vec![0; problem.kv_len];
    mods.keep(&Place { b: row.b, h: row.h, q: row.q..row.q + 1, kv: 0..problem.kv_len }, &mut keep);
    keep.iter().filter(|k| **k != 0).count()
}

/// Some rows that keep nothing, found by probing scattered rows.
fn empty_rows(problem: &Problem) -> Vec<Row> {
    let mods = Mods::new(problem);
    if !mods.has_mask() {
        return Vec::new();
    }
    let s = problem.spec();
    let heads = s.batch * s.heads;
    let mut keep = vec![0; s.kv_len];
    let probes = (PROBED_CELLS / s.kv_len).min(s.q_len * heads).min(2048);
    let mut found = Vec::new();
    for i in 0..probes {
        let row = row_at(problem, spread(i, heads), golden(i, s.q_len));
        let place = Place { b: row.b, h: row.h, q: row.q..row.q + 1, kv: 0..s.kv_len };
        mods.keep(&place, &mut keep);
        if keep.iter().all(|k| *k == 0) {
            found.push(row);
            if found.len() == EMPTY_ROWS {
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::testing::{causal, problem, spec, with_mods};
    use std::collections::HashSet;

    #[test]
    fn a_small_problem_is_compared_whole() {
        let p = problem(2, 3, 3, 50, 60, 16);
        assert_eq!(choose_rows(&p, 10).len(), 300);
    }

    #[test]
    fn a_sample_covers_heads_edges_and_empty_rows() {
        let p = with_mods(spec(2, 8, 8, 9000, 4000, 64), Some(causal(-300)), None);
        let rows = choose_rows(&p, 256);
        assert!((200..=300).contains(&rows.len()), "{}", rows.len());
        assert_eq!(rows.iter().map(|r| (r.b, r.h)).collect::<HashSet<_>>().len(), 16);
        for q in [0, 8999, 127, 128, 4000] {
            assert!(rows.iter().any(|r| r.q == q), "{q}");
        }
        assert!(rows.iter().filter(|r| r.q < 300).count() >= 16);
        assert_eq!(rows, choose_rows(&p, 256));
        for (b, h) in (0..16).map(|i| (i / 8, i % 8)) {
            assert!([0, 8999].iter().all(|q| rows.contains(&Row { b, h, q: *q })), "{b} {h}");
        }
        // the last tiles of 64, 128 and 192 rows begin here
        for q in [8960, 8959, 8832, 8831] {
            assert!(rows.iter().any(|r| r.q == q), "{q}");
        }
    }

    #[test]
    fn rows_with_the_most_and_the_fewest_keys_are_in_the_sample() {
        // each row keeps 5 keys, but rows 2000..2128 keep nearly all and row 6001 one
        use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind};
        let mut g = Graph::new();
        let (q, kv) = (g.input(Input::QIdx), g.input(Input::KvIdx));
        let mut between = |x, lo: i64, hi: i64| {
            let (lo, hi) = (g.int(lo), g.int(hi));
            let (above, below) = (g.binary(BinaryOp::Ge, x, lo), g.binary(BinaryOp::Lt, x, hi));
            g.binary(BinaryOp::And, above, below)
        };
        let (wide, narrow) = (between(q, 2000, 2128), between(q, 6001, 6002));
        let (few, one) = (between(kv, 100, 105), between(kv, 100, 101));
        let usual = g.add(crate::ir::graph::Op::Where(narrow, one, few), None);
        let root = g.binary(BinaryOp::Or, wide, usual);
        let mask = Mod { kind: ModKind::Mask, graph: g, root, sources: Vec::new() };
        let p = with_mods(spec(1, 1, 1, 9000, 9000, 64), Some(mask), None);
        let shape = crate::analysis::block_mask::MaskShape::broadcast(p.lengths());
        let blocks = BlockMask::build(p.mask.as_deref(), shape, p.block_size, &crate::base::Control::new()).unwrap();
        let most = |rows: &[Row]| rows.iter().filter(|r| (2000..2128).contains(&r.q)).count();
        let with = choose_rows_of(&p, 64, Some(&blocks));
        assert!(extremes(&p, Some(&blocks)).iter().any(|r| (2000..2128).contains(&r.q)) && most(&with) > 0);
        assert!(with.len() <= 90, "{}", with.len());
    }

    #[test]
    fn spread_is_a_permutation() {
        for n in [1, 2, 7, 64, 96] {
            assert_eq!((0..n).map(|i| spread(i, n)).collect::<HashSet<_>>().len(), n);
        }
    }
}
