//! Which query rows are compared with the reference.
//!
//! Invariant: the choice depends on the problem alone, so that two runs compare the same rows; every batch entry and
//! head is visited before any a second time. Must not know results.

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

/// Multiply-adds below which every row is compared, whatever the limit says.
const SMALL: u128 = 1 << 27;
/// Multiply-adds that the reference may cost: some seconds.
const LARGE: u128 = 1 << 34;
/// Cells that the search for fully masked rows may evaluate.
const PROBED_CELLS: usize = 1 << 23;
/// Fully masked rows added to a sample.
const EMPTY_ROWS: usize = 16;

/// All rows of a small problem, else about `limit` rows: edges of the sequence and of blocks, rows spread over the
/// sequence and over batch and heads, and rows that keep nothing where some are found.
pub fn choose_rows(problem: &Problem, limit: u32) -> Vec<Row> {
    let s = problem.spec();
    let heads = s.batch * s.heads;
    let total = heads * s.q_len;
    let row_cost = (s.kv_len * (s.head_dim + s.head_dim_v)) as u128;
    let affordable = (LARGE / row_cost).max(32) as usize;
    let limit = (limit.max(1) as usize).min(affordable);
    if total <= limit || total as u128 * row_cost <= SMALL {
        return (0..total).map(|i| row_at(problem, i / s.q_len, i % s.q_len)).collect();
    }
    let mut rows: Vec<Row> =
        edges(problem).iter().take(limit / 2).enumerate().map(|(i, q)| row_at(problem, spread(i, heads), *q)).collect();
    rows.extend(empty_rows(problem).into_iter().take(limit / 4));
    let first = rows.len();
    rows.extend((first..limit).map(|i| row_at(problem, spread(i, heads), golden(i, s.q_len))));
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

/// Rows at which kernels go wrong: the ends, and both sides of block borders and of the end of the keys.
fn edges(problem: &Problem) -> Vec<usize> {
    let (q_len, kv_len) = (problem.q_len, problem.kv_len);
    let last_block = (q_len - 1) / 128 * 128;
    let raw =
        [0, q_len - 1, 1, 127, 128, 63, 64, last_block, last_block.saturating_sub(1), q_len / 2, kv_len - 1, kv_len];
    let mut out = Vec::new();
    for q in raw {
        if q < q_len && !out.contains(&q) {
            out.push(q);
        }
    }
    out
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
        assert!((200..=256).contains(&rows.len()), "{}", rows.len());
        assert_eq!(rows.iter().map(|r| (r.b, r.h)).collect::<HashSet<_>>().len(), 16);
        for q in [0, 8999, 127, 128, 4000] {
            assert!(rows.iter().any(|r| r.q == q), "{q}");
        }
        assert!(rows.iter().filter(|r| r.q < 300).count() >= 16);
        assert_eq!(rows, choose_rows(&p, 256));
    }

    #[test]
    fn spread_is_a_permutation() {
        for n in [1, 2, 7, 64, 96] {
            assert_eq!((0..n).map(|i| spread(i, n)).collect::<HashSet<_>>().len(), n);
        }
    }
}
