//! Eager attention emulated in the problem's dtype: what rounding alone costs.
//!
//! Invariant: rounds where PyTorch's eager formula materialises a tensor of the dtype (scores, scaled scores, modified
//! scores, probabilities, output) and computes in f32 in between. Must not be used as a result.

use super::{Head, Reference, Row, RowEnd, run_rows};
use crate::backends::Inputs;
use crate::backends::compare::{Deviation, deviation_of_rows};
use crate::backends::mods::Place;
use crate::base::{Control, DType, Diagnostic};
use crate::problem::Problem;
use half::{bf16, f16};

/// Its difference from `exact`, on the rows that `exact` has. Errors: `cancelled`.
pub fn emulated_eager(
    problem: &Problem,
    inputs: &Inputs,
    exact: &Reference,
    control: &Control,
) -> Result<Deviation, Diagnostic> {
    let got = run_rows(problem, inputs, exact.rows.clone(), control, row_rounded)?;
    Ok(deviation_of_rows(&got, exact))
}

fn rounded(dtype: DType, x: f32) -> f32 {
    match dtype {
        DType::BF16 => bf16::from_f32(x).to_f32(),
        DType::F16 => f16::from_f32(x).to_f32(),
        _ => x,
    }
}

fn row_rounded(head: &Head, row: Row, q: &[f32], out: &mut [f64]) -> RowEnd {
    let (dim, kv_len, dtype) = (head.problem.head_dim, head.problem.kv_len, head.problem.dtype);
    let scale = head.problem.scale() as f32;
    let round = |x: f32| rounded(dtype, x);
    let place = Place { b: row.b, h: row.h, q: row.q..row.q + 1, kv: 0..kv_len };
    let score = |k: &[f32]| round(round(q.iter().zip(k).map(|(a, b)| a * b).sum()) * scale);
    let mut scores: Vec<f32> = head.k.chunks_exact(dim).map(score).collect();
    head.mods.score(&place, &mut scores);
    let mut keep = vec![0; kv_len];
    head.mods.keep(&place, &mut keep);
    for (score, keep) in scores.iter_mut().zip(&keep) {
        *score = if *keep == 0 { f32::NEG_INFINITY } else { round(*score) };
    }
    let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    out.fill(0.0);
    let any_nan = scores.iter().any(|s| s.is_nan());
    if top == f32::NEG_INFINITY && !any_nan {
        return RowEnd::EMPTY;
    }
    let sum: f32 = scores.iter().map(|s| (s - top).exp()).sum();
    let mut row_out = vec![0f32; out.len()];
    for (score, v) in scores.iter().zip(head.v.chunks_exact(out.len())) {
        let p = round((score - top).exp() / sum);
        if p != 0.0 {
            row_out.iter_mut().zip(v).for_each(|(o, v)| *o += p * v);
        }
    }
    out.iter_mut().zip(&row_out).for_each(|(o, x)| *o = f64::from(round(*x)));
    let max_score = if any_nan { f64::NAN } else { f64::from(top) };
    RowEnd { lse: f64::from(top + sum.ln()), max_score }
}
