//! Attention emulated in the problem's dtype: the effect of rounding alone, row by row.
//!
//! Invariant: `eager` rounds where PyTorch's eager formula materialises a tensor of the dtype (scores, scaled scores,
//! modified scores, probabilities, output), `fused` where a fused kernel does (probabilities before they are divided by
//! their sum, output); otherwise both compute in f32. Must not be used as a result.

use super::sway::{Shift, jumps};
use super::{Computed, Head, Reference, Row, rms, row_at, run_rows};
use crate::backends::Inputs;
use crate::backends::mods::Place;
use crate::base::{Control, DType, Diagnostic};
use crate::problem::Problem;
use half::{bf16, f16};

/// How far emulated rows are from exact ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rounding {
    /// `[rows]`: root mean square of the output's error; 0 if the emulation gives no number.
    pub out: Vec<f64>,
}

/// Both emulations, on the rows of a reference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Emulated {
    /// For the textbook formula in the dtype.
    pub eager: Rounding,
    /// For kernels that keep scores in float32.
    pub fused: Rounding,
    /// `[rows]`: absolute error of the lse computed in float32.
    pub lse: Vec<f64>,
    /// `[rows]`: absolute error of the largest score computed in float32.
    pub max_scores: Vec<f64>,
    /// `[rows]`, if the score mod has steps or poles: the effect of a score's own rounding on the row. Otherwise empty.
    pub sways: Vec<Sway>,
}

/// The change of a row if its scores differ from the exact ones by float32's rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sway {
    /// Root mean square of the output's difference.
    pub rms: f64,
    /// For one element, the largest.
    pub element: f64,
    /// For the lse.
    pub lse: f64,
    /// For the largest score.
    pub max_score: f64,
}

/// One row's results other than the eager output.
#[derive(Clone, Default)]
struct Ends {
    fused: Vec<f64>,
    lse: f64,
    max_score: f64,
}

/// Emulates the rows that `exact` has. Errors: `cancelled`.
pub fn emulated(
    problem: &Problem,
    inputs: &Inputs,
    exact: &Reference,
    control: &Control,
) -> Result<Emulated, Diagnostic> {
    let Computed { out, ends, .. } = run_rows(problem, inputs, exact.rows.clone(), control, row_rounded)?;
    let width = problem.head_dim_v;
    let mut found = Emulated::default();
    for (i, end) in ends.iter().enumerate() {
        let want = &exact.out[i * width..(i + 1) * width];
        found.eager.out.push(error(&out[i * width..(i + 1) * width], want));
        found.fused.out.push(error(&end.fused, want));
        found.lse.push(or_nothing(end.lse - exact.lse[i]));
        found.max_scores.push(or_nothing(end.max_score - exact.max_scores[i]));
    }
    if jumps(problem) {
        found.sways = vec![Sway::default(); exact.rows.len()];
        for shift in [Shift::Above, Shift::Below] {
            let row = |head: &Head, row: Row, q: &[f32], out: &mut [f64]| row_at(head, row, q, out, Some(shift));
            let moved = run_rows(problem, inputs, exact.rows.clone(), control, row)?;
            for (i, (sway, end)) in found.sways.iter_mut().zip(&moved.ends).enumerate() {
                let (got, want) = (&moved.out[i * width..(i + 1) * width], &exact.out[i * width..(i + 1) * width]);
                sway.rms = sway.rms.max(error(got, want));
                let largest = got.iter().zip(want).map(|(g, w)| or_nothing(g - w)).fold(0.0, f64::max);
                sway.element = sway.element.max(largest);
                sway.lse = sway.lse.max(or_nothing(end.lse - exact.lse[i]));
                sway.max_score = sway.max_score.max(or_nothing(end.max_score - exact.max_scores[i]));
            }
        }
    }
    Ok(found)
}

fn error(got: &[f64], want: &[f64]) -> f64 {
    let differences: Vec<f64> = got.iter().zip(want).map(|(g, w)| g - w).collect();
    or_nothing(rms(&differences))
}

/// An overflow of the emulation, or infinities on both sides, measure nothing.
fn or_nothing(difference: f64) -> f64 {
    if difference.is_finite() { difference.abs() } else { 0.0 }
}

/// The nearest value of the dtype.
pub(crate) fn rounded(dtype: DType, x: f32) -> f32 {
    match dtype {
        DType::BF16 => bf16::from_f32(x).to_f32(),
        DType::F16 => f16::from_f32(x).to_f32(),
        _ => x,
    }
}

fn row_rounded(head: &Head, row: Row, q: &[f32], out: &mut [f64]) -> Ends {
    let (dim, kv_len, dtype) = (head.problem.head_dim, head.problem.kv_len, head.problem.dtype);
    let scale = head.problem.scale() as f32;
    let round = |x: f32| rounded(dtype, x);
    let place = Place { b: row.b, h: row.h, q: row.q..row.q + 1, kv: 0..kv_len };
    let products: Vec<f32> = head.k.chunks_exact(dim).map(|k| q.iter().zip(k).map(|(a, b)| a * b).sum()).collect();
    let mut keep = vec![0; kv_len];
    head.mods.keep(&place, &mut keep);
    let masked = |scores: &mut [f32]| {
        head.mods.score(&place, scores);
        scores.iter_mut().zip(&keep).filter(|(_, keep)| **keep == 0).for_each(|(s, _)| *s = f32::NEG_INFINITY);
    };
    let mut precise: Vec<f32> = products.iter().map(|p| p * scale).collect();
    masked(&mut precise);
    let mut coarse: Vec<f32> = products.iter().map(|p| round(round(*p) * scale)).collect();
    masked(&mut coarse);
    coarse.iter_mut().for_each(|s| *s = round(*s));
    let eager = Softmax::of(&coarse);
    let mut sums = vec![0f32; out.len()];
    if eager.top > f32::NEG_INFINITY {
        weighted(&coarse, head.v, &mut sums, |s| round((s - eager.top).exp() / eager.sum));
    }
    out.iter_mut().zip(&sums).for_each(|(o, x)| *o = f64::from(round(*x)));
    let fused = Softmax::of(&precise);
    let mut sums = vec![0f32; out.len()];
    if fused.top > f32::NEG_INFINITY {
        weighted(&precise, head.v, &mut sums, |s| round((s - fused.top).exp()));
        sums.iter_mut().for_each(|x| *x /= fused.sum);
    }
    Ends {
        fused: sums.iter().map(|x| f64::from(round(*x))).collect(),
        lse: f64::from(fused.top + fused.sum.ln()),
        max_score: f64::from(fused.top),
    }
}

struct Softmax {
    top: f32,
    sum: f32,
}

impl Softmax {
    fn of(scores: &[f32]) -> Softmax {
        let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if top == f32::NEG_INFINITY {
            return Softmax { top, sum: 0.0 };
        }
        Softmax { top, sum: scores.iter().map(|s| (s - top).exp()).sum() }
    }
}

/// Adds up the values, each by the weight of its score.
fn weighted(scores: &[f32], v: &[f32], out: &mut [f32], weight: impl Fn(f32) -> f32) {
    for (score, v) in scores.iter().zip(v.chunks_exact(out.len())) {
        let p = weight(*score);
        if p != 0.0 {
            out.iter_mut().zip(v).for_each(|(o, v)| *o += p * v);
        }
    }
}
