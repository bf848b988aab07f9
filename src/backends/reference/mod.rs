//! The f64 reference: attention exactly as FlexAttention defines it, on the whole problem or on sampled rows.
//!
//! Invariant: `s = q.k * scale`, then the score mod, then the mask, then softmax, all in f64; a fully masked row has
//! output 0, lse -inf and the largest score -inf. Must not share arithmetic with any backend.

mod emulated;
pub mod gradient;
mod oracle;
mod sample;
mod sway;

pub use oracle::check_mods;
pub use sample::{Row, choose_rows, choose_rows_of};

use super::Inputs;
use super::mods::{Mods, Place};
use crate::base::tensor::Data;
use crate::base::{Control, Diagnostic, HostTensor};
use crate::problem::Problem;
use rayon::prelude::*;

#[cfg(test)]
pub(crate) use emulated::rounded;
pub use emulated::{Emulated, Rounding, Sway, emulated};
pub use sway::Shift;

/// The right attention for some rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    /// Which rows, ascending.
    pub rows: Vec<Row>,
    /// `[rows][head_dim_v]`
    pub out: Vec<f64>,
    /// `[rows]`, natural log.
    pub lse: Vec<f64>,
    /// `[rows]`: the largest score; NaN if one is NaN.
    pub max_scores: Vec<f64>,
    /// `[rows]`: what rounding is measured by.
    pub scales: Vec<Scale>,
    /// All rows of the problem.
    pub rows_total: u64,
}

/// The size of a row's numbers, by which its errors are judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scale {
    /// Keys that the row keeps.
    pub kept: u64,
    /// Effective number of keys: one over the sum of squared probabilities. 0 if none is kept.
    pub effective: f64,
    /// `[head_dim_v]`: root of the output's square and of the sum of squared terms `p * v` that it is made of. An output
    /// that is small because its terms cancel still carries their rounding.
    pub out: Vec<f64>,
    /// Mean of the absolute scores by their probabilities, plus the largest score's: the magnitude at which a float32
    /// score is rounded.
    pub score: f64,
}

impl Scale {
    /// Root mean square over the row's elements.
    pub fn rms(&self) -> f64 {
        rms(&self.out)
    }
}

/// Root mean square; 0 of nothing.
pub(crate) fn rms(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().map(|x| x * x).sum();
    (sum / values.len().max(1) as f64).sqrt()
}

/// Computes `rows` in f64. Errors: `cancelled`.
pub fn reference(
    problem: &Problem,
    inputs: &Inputs,
    rows: Vec<Row>,
    control: &Control,
) -> Result<Reference, Diagnostic> {
    let Computed { rows, out, ends } = run_rows(problem, inputs, rows, control, row_f64)?;
    let rows_total = (problem.batch * problem.heads * problem.q_len) as u64;
    let mut exact = Reference { rows, out, rows_total, ..Reference::default() };
    for end in ends {
        exact.lse.push(end.lse);
        exact.max_scores.push(end.max_score);
        exact.scales.push(end.scale);
    }
    Ok(exact)
}

/// One kv head of one batch entry as f32 (exact for every input dtype), and the problem's mods.
pub(super) struct Head<'a> {
    pub problem: &'a Problem,
    pub mods: &'a Mods,
    /// [kv_len][head_dim]
    pub k: &'a [f32],
    /// [kv_len][head_dim_v]
    pub v: &'a [f32],
    /// [kv_len]: mean square of each key's value.
    value_squares: &'a [f32],
    /// [head_dim_v]: root mean square of each element over the keys, over that of all.
    channels: &'a [f64],
}

/// A row's results other than its output.
#[derive(Clone, Debug, Default, PartialEq)]
struct RowEnd {
    lse: f64,
    max_score: f64,
    scale: Scale,
}

/// Rows in ascending order, without repetitions, with their outputs [rows][head_dim_v] and what else each gave.
pub(super) struct Computed<T> {
    pub rows: Vec<Row>,
    pub out: Vec<f64>,
    pub ends: Vec<T>,
}

/// Rows grouped by the kv head that they read; `row` writes one row's output and gives the rest.
pub(super) fn run_rows<T: Clone + Default + Send>(
    problem: &Problem,
    inputs: &Inputs,
    mut rows: Vec<Row>,
    control: &Control,
    row: impl Fn(&Head, Row, &[f32], &mut [f64]) -> T + Sync,
) -> Result<Computed<T>, Diagnostic> {
    rows.sort_unstable();
    rows.dedup();
    let s = problem.spec();
    let (width, dim) = (s.head_dim_v, s.head_dim);
    let mods = Mods::new(problem);
    let mut out = vec![0.0; rows.len() * width];
    let mut ends = vec![T::default(); rows.len()];
    let key = |r: &Row| (r.b, r.h / problem.group());
    let mut from = 0;
    while from < rows.len() {
        let (b, kv_head) = key(&rows[from]);
        let to = from + rows[from..].partition_point(|r| key(r) == (b, kv_head));
        let at = b * s.kv_heads + kv_head;
        let k = f32_range(&inputs.k, at * s.kv_len * dim, s.kv_len * dim);
        let v = f32_range(&inputs.v, at * s.kv_len * width, s.kv_len * width);
        let (value_squares, channels) = sizes(&v, width);
        let head = Head { problem, mods: &mods, k: &k, v: &v, value_squares: &value_squares, channels: &channels };
        let results = out[from * width..to * width].par_chunks_mut(width).zip(&mut ends[from..to]);
        results.zip(&rows[from..to]).for_each(|((out, end), r)| {
            if control.is_cancelled() {
                return;
            }
            let q = f32_range(&inputs.q, ((r.b * s.heads + r.h) * s.q_len + r.q) * dim, dim);
            *end = row(&head, *r, &q, out);
        });
        if control.is_cancelled() {
            return Err(cancelled());
        }
        from = to;
    }
    Ok(Computed { rows, out, ends })
}

/// Mean squares of the keys' values, and the relative size of each element.
fn sizes(v: &[f32], width: usize) -> (Vec<f32>, Vec<f64>) {
    let mut channels = vec![0.0; width];
    let mut squares = Vec::with_capacity(v.len() / width);
    for value in v.chunks_exact(width) {
        let mut sum = 0.0;
        for (channel, x) in channels.iter_mut().zip(value) {
            let square = f64::from(*x) * f64::from(*x);
            *channel += square;
            sum += square;
        }
        squares.push((sum / width as f64) as f32);
    }
    let mean = channels.iter().sum::<f64>() / width as f64;
    channels.iter_mut().for_each(|c| *c = if mean > 0.0 { (*c / mean).sqrt() } else { 1.0 });
    (squares, channels)
}

/// The work was asked to stop.
pub(super) fn cancelled() -> Diagnostic {
    Diagnostic::error("cancelled", "the run was cancelled").hint("run it again")
}

/// Elements `from..from + count` as f32.
pub(super) fn f32_range(tensor: &HostTensor, from: usize, count: usize) -> Vec<f32> {
    let range = from..from + count;
    match tensor.data() {
        Data::F32(v) => v[range].to_vec(),
        Data::F16(v) => v[range].iter().map(|x| x.to_f32()).collect(),
        Data::BF16(v) => v[range].iter().map(|x| x.to_f32()).collect(),
        _ => range.map(|i| tensor.float_at(i) as f32).collect(),
    }
}

fn row_f64(head: &Head, row: Row, q: &[f32], out: &mut [f64]) -> RowEnd {
    row_at(head, row, q, out, None)
}

/// A row in f64, with exact scores or scores changed by float32's largest rounding before the mod.
fn row_at(head: &Head, row: Row, q: &[f32], out: &mut [f64], shift: Option<Shift>) -> RowEnd {
    let (dim, kv_len, scale) = (head.problem.head_dim, head.problem.kv_len, head.problem.scale());
    let q: Vec<f64> = q.iter().map(|x| f64::from(*x)).collect();
    let place = Place { b: row.b, h: row.h, q: row.q..row.q + 1, kv: 0..kv_len };
    let mut scores: Vec<f64> = head.k.chunks_exact(dim).map(|k| dot(&q, k) * scale).collect();
    if let Some(shift) = shift {
        sway::shifted(head, &q, &mut scores, shift);
    }
    head.mods.score_f64(&place, &mut scores);
    let mut keep = vec![0; kv_len];
    head.mods.keep(&place, &mut keep);
    for (score, keep) in scores.iter_mut().zip(&keep) {
        if *keep == 0 {
            *score = f64::NEG_INFINITY;
        }
    }
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    out.fill(0.0);
    let any_nan = scores.iter().any(|s| s.is_nan());
    if top == f64::NEG_INFINITY && !any_nan {
        let scale = Scale { out: vec![0.0; out.len()], ..Scale::default() };
        return RowEnd { lse: f64::NEG_INFINITY, max_score: f64::NEG_INFINITY, scale };
    }
    let mut sums = Sums::default();
    for ((score, v), square) in scores.iter().zip(head.v.chunks_exact(out.len())).zip(head.value_squares) {
        let p = (score - top).exp();
        if p != 0.0 {
            out.iter_mut().zip(v).for_each(|(o, v)| *o += p * f64::from(*v));
            sums.add(p, *score, f64::from(*square));
        } else if *score > f64::NEG_INFINITY {
            sums.kept += 1;
        }
    }
    out.iter_mut().for_each(|o| *o /= sums.p);
    let max_score = if any_nan { f64::NAN } else { top };
    RowEnd { lse: top + sums.p.ln(), max_score, scale: sums.scale(top, out, head.channels) }
}

/// The sum of a row's probabilities, before they are divided by it.
#[derive(Default)]
struct Sums {
    kept: u64,
    p: f64,
    squares: f64,
    /// For `p^2` times the mean square of the value.
    terms: f64,
    scores: f64,
}

impl Sums {
    fn add(&mut self, p: f64, score: f64, value_square: f64) {
        self.kept += 1;
        self.p += p;
        self.squares += p * p;
        self.terms += p * p * value_square;
        self.scores += p * score.abs();
    }

    fn scale(&self, top: f64, out: &[f64], channels: &[f64]) -> Scale {
        let spread = self.terms.sqrt() / self.p;
        Scale {
            kept: self.kept,
            effective: self.p * self.p / self.squares,
            out: out.iter().zip(channels).map(|(o, c)| o.hypot(spread * c)).collect(),
            score: self.scores / self.p + top.abs(),
        }
    }
}

/// Eight sums at once, so that it runs in vectors.
fn dot(a: &[f64], b: &[f32]) -> f64 {
    let mut sums = [0.0; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * f64::from(*y)).sum();
    for (x, y) in a8.zip(b8) {
        for i in 0..8 {
            sums[i] += x[i] * f64::from(y[i]);
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::inputs;
    use crate::backends::testing::{causal, problem, spec, with_mods};
    use crate::base::DType;

    fn all(problem: &Problem, inputs: &Inputs) -> Reference {
        let rows = choose_rows(problem, u32::MAX);
        reference(problem, inputs, rows, &Control::new()).expect("not cancelled")
    }

    #[test]
    fn attention_of_two_keys_is_what_the_formula_says() {
        let p = problem(1, 1, 1, 1, 2, 1);
        let one = |x: Vec<f32>| HostTensor::new([1, 1, x.len(), 1], Data::F32(x)).expect("a tensor");
        let given = Inputs { q: one(vec![2.0]), k: one(vec![1.0, -1.0]), v: one(vec![10.0, 20.0]) };
        let r = all(&p, &given);
        let (a, b) = (2f64.exp(), (-2f64).exp());
        assert!((r.out[0] - (a * 10.0 + b * 20.0) / (a + b)).abs() < 1e-12);
        assert!((r.lse[0] - (a + b).ln()).abs() < 1e-12);
        assert_eq!(r.max_scores, [2.0]);
    }

    #[test]
    fn a_row_that_keeps_nothing_gives_zero_and_minus_infinity() {
        // kv_idx <= q_idx - 4: the first four rows are empty
        let p = with_mods(spec(1, 2, 1, 9, 7, 5), Some(causal(-4)), None);
        let r = all(&p, &inputs::random(&p, 1));
        assert_eq!(r.rows.len(), 18);
        for (i, row) in r.rows.iter().enumerate() {
            let empty = row.q < 4;
            assert_eq!(r.lse[i] == f64::NEG_INFINITY, empty, "{row:?}");
            assert_eq!(r.max_scores[i] == f64::NEG_INFINITY, empty, "{row:?}");
            assert!(r.max_scores[i] <= r.lse[i], "{row:?}");
            assert_eq!(r.out[i * 5..(i + 1) * 5].iter().all(|x| *x == 0.0), empty);
        }
        // row 4 sees key 0 alone
        let v = inputs::random(&p, 1).v;
        assert!((r.out[4 * 5 + 2] - v.float_at(2)).abs() < 1e-12);
    }

    #[test]
    fn emulated_eager_errs_as_its_dtype_does() {
        let errors = [DType::F32, DType::F16, DType::BF16].map(|dtype| {
            let p =
                with_mods(crate::problem::ProblemSpec { dtype, ..spec(1, 2, 1, 40, 50, 32) }, Some(causal(10)), None);
            let given = inputs::random(&p, 3);
            let exact = all(&p, &given);
            let found = emulated(&p, &given, &exact, &Control::new()).expect("not cancelled");
            let largest = |rounding: &Rounding| rounding.out.iter().fold(0.0, |a: f64, b| a.max(*b));
            assert!(largest(&found.eager) >= 0.8 * largest(&found.fused), "scores are rounded too");
            largest(&found.eager)
        });
        assert!(errors[0] < 2e-6 && errors[0] > 0.0, "{errors:?}");
        assert!(errors[1] > errors[0] && errors[1] < 5e-3, "{errors:?}");
        assert!(errors[2] > errors[1] && errors[2] < 5e-2, "{errors:?}");
    }

    #[test]
    fn cancelling_stops_it() {
        let p = problem(1, 1, 1, 8, 8, 8);
        let control = Control::new();
        control.cancel();
        let rows = choose_rows(&p, 8);
        assert_eq!(reference(&p, &inputs::random(&p, 0), rows, &control).unwrap_err().code, "cancelled");
    }
}
