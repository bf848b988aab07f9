//! One head's attention scores or probabilities as a picture, on the host.
//!
//! Invariant: the picture shows the reference's formula (`q.k * scale`, score mod, mask, softmax); a pixel of one cell
//! is that cell; in larger pictures evenly spaced rows represent all rows if the whole would cost too much. Must not
//! know colours, windows or the protocol.

use super::Inputs;
use super::mods::{Mods, Place};
use super::reference::{cancelled, f32_range};
pub use crate::analysis::raster::Region;
use crate::base::{Control, Diagnostic};
use crate::problem::Problem;
use rayon::prelude::*;
use std::ops::Range;

/// The kind of map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Mean of the kept scores of a pixel, after scale and score mod; -inf where all are masked.
    Scores,
    /// Sum of the probabilities of a pixel; -inf if all are masked, zero if the kept ones are that small.
    Probabilities,
}

/// Multiply-adds that one map may cost: about a second on a few cores.
const BUDGET: u128 = 1 << 34;

/// Multiply-adds that a map costs where every row of every pixel is looked at.
pub fn cost(problem: &Problem, region: &Region) -> u128 {
    (region.q.len() * problem.kv_len) as u128 * problem.head_dim as u128
}

/// Rows of a line of pixels that are looked at, evenly spread, so that a map costs no more than `budget` multiply-adds.
pub(crate) fn rows_a_pixel(problem: &Problem, region: &Region, budget: u128) -> usize {
    let affordable = (budget / (problem.kv_len * problem.head_dim) as u128).max(1) as usize;
    (affordable / region.height.max(1)).max(1)
}

/// The pixels, row by row; -inf where every cell is masked, NaN in pixels whose rows keep nothing at all. Errors: `cancelled`.
pub fn map(
    problem: &Problem,
    inputs: &Inputs,
    region: &Region,
    values: Values,
    control: &Control,
) -> Result<Vec<f32>, Diagnostic> {
    let (dim, kv_len) = (problem.head_dim, problem.kv_len);
    let kv_head = region.b * problem.kv_heads + region.h / problem.group();
    let head = Head {
        problem,
        mods: &Mods::new(problem),
        region,
        values,
        q: f32_range(&inputs.q, (region.b * problem.heads + region.h) * problem.q_len * dim, problem.q_len * dim),
        k: f32_range(&inputs.k, kv_head * kv_len * dim, kv_len * dim),
    };
    let rows_a_pixel = rows_a_pixel(problem, region, BUDGET);
    let mut pixels = vec![f32::NAN; region.height * region.width];
    pixels.par_chunks_mut(region.width.max(1)).enumerate().for_each(|(at, line)| {
        if !control.is_cancelled() {
            head.line(at, rows_a_pixel, line);
        }
    });
    if control.is_cancelled() { Err(cancelled()) } else { Ok(pixels) }
}

/// Tokens of pixel `at` of `parts` over a range.
fn tokens(range: &Range<usize>, at: usize, parts: usize) -> Range<usize> {
    let edge = |n: usize| range.start + (n as u128 * range.len() as u128 / parts as u128) as usize;
    edge(at)..edge(at + 1)
}

struct Head<'a> {
    problem: &'a Problem,
    mods: &'a Mods,
    region: &'a Region,
    values: Values,
    /// [q_len][head_dim]
    q: Vec<f32>,
    /// [kv_len][head_dim]
    k: Vec<f32>,
}

/// The sums of one line of pixels.
struct Sums {
    sum: Vec<f64>,
    kept: Vec<u32>,
    /// Rows that keep something.
    rows: usize,
}

impl Head<'_> {
    fn line(&self, at: usize, most: usize, line: &mut [f32]) {
        let rows = tokens(&self.region.q, at, self.region.height);
        let shown = rows.len().min(most);
        let mut sums = Sums { sum: vec![0.0; line.len()], kept: vec![0; line.len()], rows: 0 };
        for i in 0..shown {
            self.row(rows.start + (2 * i + 1) * rows.len() / (2 * shown), &mut sums);
        }
        if sums.rows == 0 {
            return;
        }
        // the rows left out count like those looked at
        let weight = rows.len() as f64 / shown as f64;
        for ((pixel, sum), kept) in line.iter_mut().zip(&sums.sum).zip(&sums.kept) {
            *pixel = match self.values {
                _ if *kept == 0 => f32::NEG_INFINITY,
                Values::Probabilities => (sum * weight) as f32,
                Values::Scores => (sum / f64::from(*kept)) as f32,
            };
        }
    }

    fn row(&self, q: usize, sums: &mut Sums) {
        let mut scores = self.scores(q);
        let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if top == f32::NEG_INFINITY {
            return;
        }
        sums.rows += 1;
        if self.values == Values::Probabilities {
            let total: f64 = scores.iter().map(|s| f64::from((s - top).exp())).sum();
            // masked cells stay masked: a kept cell may also be zero
            let kept = scores.iter_mut().filter(|s| **s != f32::NEG_INFINITY);
            kept.for_each(|s| *s = (f64::from((*s - top).exp()) / total) as f32);
        }
        for col in 0..sums.sum.len() {
            for kv in tokens(&self.region.kv, col, self.region.width) {
                if scores[kv] != f32::NEG_INFINITY {
                    sums.sum[col] += f64::from(scores[kv]);
                    sums.kept[col] += 1;
                }
            }
        }
    }

    /// One row's scores over all keys; -inf where masked.
    fn scores(&self, q: usize) -> Vec<f32> {
        let (dim, scale) = (self.problem.head_dim, self.problem.scale() as f32);
        let place = Place { b: self.region.b, h: self.region.h, q: q..q + 1, kv: 0..self.problem.kv_len };
        let mut keep = vec![0; self.problem.kv_len];
        self.mods.keep(&place, &mut keep);
        let query = &self.q[q * dim..(q + 1) * dim];
        let score = |(k, keep): (&[f32], &u8)| if *keep == 0 { 0.0 } else { dot(query, k) * scale };
        let mut scores: Vec<f32> = self.k.chunks_exact(dim).zip(&keep).map(score).collect();
        self.mods.score(&place, &mut scores);
        scores.iter_mut().zip(&keep).filter(|(_, k)| **k == 0).for_each(|(s, _)| *s = f32::NEG_INFINITY);
        scores
    }
}

/// Eight sums at once, so that it runs in vectors.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a8.zip(b8) {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::inputs;
    use crate::backends::testing::{causal, distance_score, spec, with_mods};
    use crate::problem::ProblemSpec;

    fn whole(q: usize, kv: usize) -> Region {
        Region { b: 0, h: 1, q: 0..q, kv: 0..kv, height: q, width: kv }
    }

    #[test]
    fn probabilities_sum_to_one_a_row_and_empty_rows_are_nan() {
        let p = with_mods(spec(1, 2, 1, 9, 7, 5), Some(causal(-4)), Some(distance_score()));
        let given = inputs::random(&p, 1);
        let pixels = map(&p, &given, &whole(9, 7), Values::Probabilities, &Control::new()).expect("a map");
        for (q, row) in pixels.chunks(7).enumerate() {
            if q < 4 {
                assert!(row.iter().all(|x| x.is_nan()), "{q}");
            } else {
                let kept: Vec<f32> = row.iter().copied().filter(|x| x.is_finite()).collect();
                assert!((kept.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{q}: {row:?}");
                assert!(row.iter().enumerate().all(|(kv, x)| (*x > 0.0) == (kv <= q - 4)), "{q}: {row:?}");
            }
        }
        let small = Region { height: 2, width: 3, ..whole(9, 7) };
        let sums = map(&p, &given, &small, Values::Probabilities, &Control::new()).expect("a map");
        // five of nine rows keep something
        assert!((sums.iter().filter(|x| x.is_finite()).sum::<f32>() - 5.0).abs() < 1e-5, "{sums:?}");
    }

    #[test]
    fn a_kept_cell_without_probability_is_not_a_masked_one() {
        let sharp = ProblemSpec { scale: Some(1e5), ..spec(1, 2, 1, 9, 9, 4) };
        let p = with_mods(sharp, Some(causal(0)), None);
        let given = inputs::random(&p, 1);
        let pixels = map(&p, &given, &whole(9, 9), Values::Probabilities, &Control::new()).expect("a map");
        for (q, row) in pixels.chunks(9).enumerate() {
            assert!(row.iter().enumerate().all(|(kv, x)| (*x == f32::NEG_INFINITY) == (kv > q)), "{q}: {row:?}");
        }
        assert!(pixels.contains(&0.0), "{pixels:?}");
    }

    #[test]
    fn scores_are_those_of_the_formula() {
        let p = with_mods(spec(1, 2, 1, 6, 6, 4), Some(causal(0)), None);
        let given = inputs::random(&p, 2);
        let pixels = map(&p, &given, &whole(6, 6), Values::Scores, &Control::new()).expect("a map");
        let (q, k) = (given.q.to_f32_vec(), given.k.to_f32_vec());
        let want: f32 = (0..4).map(|d| q[(6 + 5) * 4 + d] * k[2 * 4 + d]).sum::<f32>() * 0.5;
        assert!((pixels[5 * 6 + 2] - want).abs() < 1e-6);
        assert_eq!(pixels[5], f32::NEG_INFINITY);
        let one = Region { height: 1, width: 1, ..whole(6, 6) };
        let mean = map(&p, &given, &one, Values::Scores, &Control::new()).expect("a map")[0];
        let kept: Vec<f32> = pixels.iter().copied().filter(|x| x.is_finite()).collect();
        assert!((mean - kept.iter().sum::<f32>() / 21.0).abs() < 1e-5);
    }
}
