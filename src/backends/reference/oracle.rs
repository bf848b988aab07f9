//! Compares the evaluator that the reference, the CPU backends and the kernels' bitmaps share with the interpreter,
//! which is the definition and is used by no backend.
//!
//! Invariant: a difference ends the race with the cell's place and both values; no result is compared with a reference
//! whose mods are in doubt. Short rows are compared cell by cell; in long rows the cells where evaluators go wrong
//! (both ends, borders of tiles and vectors, the diagonal, every place where the row changes between kept and masked,
//! within the budget) and scattered cells. Must not know attention.

use super::sample::Row;
use crate::backends::mods::{Mods, Place};
use crate::base::{Control, Diagnostic};
use crate::ir::cell::{self, Cell};
use crate::ir::graph::Mod;
use crate::problem::Problem;
use rayon::prelude::*;

/// Cells that the interpreter evaluates for a mask and for a score mod: a second or two on two cores.
const BUDGET: usize = 1 << 20;
/// Cells of a row that are looked at in any case.
const LEAST: usize = 256;

/// The shared evaluator of one kind of mod, or in tests a wrong one.
pub(super) trait Evaluator: Sync {
    /// As [`Mods::keep`].
    fn keep(&self, at: &Place, out: &mut [u8]);
    /// As [`Mods::score_f64`].
    fn score(&self, at: &Place, scores: &mut [f64]);
}

impl Evaluator for Mods {
    fn keep(&self, at: &Place, out: &mut [u8]) {
        Mods::keep(self, at, out);
    }
    fn score(&self, at: &Place, scores: &mut [f64]) {
        self.score_f64(at, scores);
    }
}

/// Compares both evaluators on cells of `rows`. Errors: `cancelled`, `oracle-disagrees` with the first cell in which they
/// differ.
pub fn check_mods(problem: &Problem, rows: &[Row], control: &Control) -> Result<(), Diagnostic> {
    check_with(problem, rows, &Mods::new(problem), control)
}

pub(super) fn check_with(
    problem: &Problem,
    rows: &[Row],
    shared: &dyn Evaluator,
    control: &Control,
) -> Result<(), Diagnostic> {
    if problem.mask.is_none() && problem.score.is_none() {
        return Ok(());
    }
    let cells = (BUDGET / rows.len().max(1)).max(LEAST);
    let different = rows.par_iter().find_map_first(|row| {
        if control.is_cancelled() {
            return Some(super::cancelled());
        }
        let mask = problem.mask.as_deref().and_then(|mask| masked(problem, mask, *row, shared, cells));
        mask.or_else(|| problem.score.as_deref().and_then(|score| scored(problem, score, *row, shared, cells)))
    });
    different.map_or(Ok(()), Err)
}

fn masked(problem: &Problem, mask: &Mod, row: Row, shared: &dyn Evaluator, cells: usize) -> Option<Diagnostic> {
    let mut keep = vec![0; problem.kv_len];
    shared.keep(&place(problem, row), &mut keep);
    let changes = (1..keep.len()).filter(|at| keep[*at] != keep[at - 1]);
    columns(problem, row, cells, changes).into_iter().find_map(|kv| {
        let says = cell::eval(mask, &cell(row, kv, 0.0)).as_bool();
        let word = |kept: bool| if kept { "keeps" } else { "masks" };
        let got = keep[kv] != 0;
        (got != says).then(|| disagree("mask", row, kv, word(says), word(got)))
    })
}

fn scored(problem: &Problem, score: &Mod, row: Row, shared: &dyn Evaluator, cells: usize) -> Option<Diagnostic> {
    let before: Vec<f64> = (0..problem.kv_len).map(|kv| some_score(row, kv)).collect();
    let mut after = before.clone();
    shared.score(&place(problem, row), &mut after);
    columns(problem, row, cells, std::iter::empty()).into_iter().find_map(|kv| {
        let (got, says) = (after[kv], cell::eval(score, &cell(row, kv, before[kv])).as_float());
        let same = got == says || (got.is_nan() && says.is_nan()) || (got - says).abs() <= 1e-9 * (1.0 + says.abs());
        let after = |x: f64| format!("makes {x} of {}", before[kv]);
        (!same).then(|| disagree("score mod", row, kv, &after(says), &after(got)))
    })
}

fn place(problem: &Problem, row: Row) -> Place {
    Place { b: row.b, h: row.h, q: row.q..row.q + 1, kv: 0..problem.kv_len }
}

fn cell(row: Row, kv: usize, score: f64) -> Cell {
    Cell { b: row.b as i64, h: row.h as i64, q_idx: row.q as i64, kv_idx: kv as i64, score }
}

/// The keys that are looked at: all of a short row, else at most about `cells`, some of each kind.
fn columns(problem: &Problem, row: Row, cells: usize, changes: impl Iterator<Item = usize>) -> Vec<usize> {
    let n = problem.kv_len;
    if n <= cells {
        return (0..n).collect();
    }
    let mut found: Vec<usize> = changes.take(cells / 4).flat_map(|at| [at - 1, at]).collect();
    let shifted = (row.q + n).saturating_sub(problem.q_len);
    for at in [0, n - 1, row.q, shifted] {
        found.extend((at.saturating_sub(2)..at + 3).filter(|kv| *kv < n));
    }
    let borders = n / 64;
    let step = borders.div_ceil(cells / 8).max(1);
    found.extend((1..=borders).step_by(step).flat_map(|i| [64 * i - 1, 64 * i]).filter(|kv| *kv < n));
    // one in each of equal parts, scattered within it by the row
    let parts = cells / 4;
    found.extend((0..parts).map(|i| {
        let (from, to) = (n * i / parts, n * (i + 1) / parts);
        from + scatter(row, i) as usize % (to - from).max(1)
    }));
    found.sort_unstable();
    found.dedup();
    found
}

/// A number that looks random, of the row and a position.
fn scatter(row: Row, at: usize) -> u64 {
    let mut z =
        (row.b as u64) << 48 ^ (row.h as u64) << 36 ^ (row.q as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at as u64;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A score between -8 and 8, a sixteenth of them 0.
fn some_score(row: Row, kv: usize) -> f64 {
    let z = scatter(row, kv);
    if z & 15 == 0 { 0.0 } else { f64::from(((z >> 11) as u32 as f32) / (1u64 << 28) as f32 - 8.0) }
}

fn disagree(what: &str, row: Row, kv: usize, says: &str, got: &str) -> Diagnostic {
    let Row { b, h, q } = row;
    let message = format!(
        "at b {b}, h {h}, q_idx {q}, kv_idx {kv} the {what} {says} by its definition, but {got} in the evaluation of the backends and the \
         reference"
    );
    Diagnostic::error("oracle-disagrees", message)
        .hint("results with this mod are not reliable; this is a bug of Maskloom, please report it with the document")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::reference::choose_rows;
    use crate::backends::testing::{causal, distance_score, modulo_rows, spec, with_mods};

    /// The right evaluator but for one cell.
    struct WrongAt {
        right: Mods,
        row: Row,
        kv: usize,
    }

    impl WrongAt {
        fn hits(&self, at: &Place) -> bool {
            at.b == self.row.b && at.h == self.row.h && at.q.contains(&self.row.q)
        }
    }

    impl Evaluator for WrongAt {
        fn keep(&self, at: &Place, out: &mut [u8]) {
            self.right.keep(at, out);
            if self.hits(at) {
                out[self.kv] ^= 1;
            }
        }
        fn score(&self, at: &Place, scores: &mut [f64]) {
            self.right.score_f64(at, scores);
            if self.hits(at) {
                scores[self.kv] += 1e-3;
            }
        }
    }

    fn verdict(problem: &Problem, row: Row, kv: usize, rows: &[Row]) -> Option<String> {
        let wrong = WrongAt { right: Mods::new(problem), row, kv };
        check_with(problem, rows, &wrong, &Control::new()).err().map(|why| {
            assert_eq!(why.code, "oracle-disagrees");
            why.message
        })
    }

    #[test]
    fn a_wrong_cell_of_the_shared_evaluator_is_named() {
        for (mask, score, what) in
            [(Some(modulo_rows(5, 3)), None, "mask"), (None, Some(distance_score()), "score mod")]
        {
            let p = with_mods(spec(1, 2, 1, 60, 90, 8), mask, score);
            let rows = choose_rows(&p, u32::MAX);
            assert_eq!(check_mods(&p, &rows, &Control::new()), Ok(()));
            let said = verdict(&p, Row { b: 0, h: 1, q: 41 }, 17, &rows).expect("every cell is looked at");
            assert!(said.contains(&format!("b 0, h 1, q_idx 41, kv_idx 17 the {what}")), "{said}");
        }
    }

    #[test]
    fn of_long_rows_the_borders_are_looked_at() {
        let p = with_mods(spec(1, 1, 1, 40_000, 40_000, 8), Some(causal(0)), None);
        let rows: Vec<Row> = (0..64).map(|i| Row { b: 0, h: 0, q: 625 * i }).collect();
        assert_eq!(check_mods(&p, &rows, &Control::new()), Ok(()));
        for kv in [0, 625 * 8, 625 * 8 + 1, 63, 64, 39_999] {
            assert!(verdict(&p, rows[8], kv, &rows).is_some(), "{kv}");
        }
        // a wrong run of cells has its own borders
        struct Run(Mods);
        impl Evaluator for Run {
            fn keep(&self, at: &Place, out: &mut [u8]) {
                self.0.keep(at, out);
                out[30_001..30_003].fill(1);
            }
            fn score(&self, at: &Place, scores: &mut [f64]) {
                self.0.score_f64(at, scores);
            }
        }
        let why = check_with(&p, &rows, &Run(Mods::new(&p)), &Control::new()).unwrap_err();
        assert!(why.message.contains("kv_idx 30001 the mask masks by its definition"), "{}", why.message);
    }
}
