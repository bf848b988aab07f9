//! Gradients in float64: dq, dk, dv and those of captured tensors, as autograd has them of the reference's own formula.
//!
//! Invariant: `dS = P * (dP - delta)` with `delta = sum(dO * O) - dlse`, then the score mod's derivative; a cell that the
//! mask leaves out gives nothing, and a row that keeps nothing has zeros. The mask's selection is not differentiated. Must
//! not share arithmetic with any backend.

use super::emulated::rounded;
use super::{cancelled, f32_range};
use crate::backends::Inputs;
use crate::backends::gradients::Seeds;
use crate::backends::mod_gradient::ModGradient;
use crate::backends::mods::{Mods, Place};
use crate::base::{Control, DType, Diagnostic};
use crate::problem::Problem;
use rayon::prelude::*;

/// Multiply-adds that the reference may cost, but for one pair in any case.
const LARGE: u128 = 1 << 34;

/// One batch entry and one of its kv heads, with the query heads that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct Pair {
    pub b: usize,
    pub kv_head: usize,
}

/// What gradients should be, for some pairs.
#[derive(Clone, Debug, Default)]
pub struct GradientReference {
    /// One for each pair.
    pub pairs: Vec<PairGradients>,
    /// Of all captured elements, where every pair is among them.
    pub captures: Option<Vec<f64>>,
    /// All pairs of the problem.
    pub pairs_total: usize,
}

/// Gradients of one pair.
#[derive(Clone, Debug)]
pub struct PairGradients {
    /// Which.
    pub pair: Pair,
    /// `[group][q_len][head_dim]`
    pub dq: Vec<f64>,
    /// `[kv_len][head_dim]`
    pub dk: Vec<f64>,
    /// `[kv_len][head_dim_v]`
    pub dv: Vec<f64>,
    captures: Vec<f64>,
}

/// The pairs that are compared: all of a small problem, else as many as are affordable, scattered; at least one.
pub fn choose_pairs(problem: &Problem) -> Vec<Pair> {
    let s = problem.spec();
    let total = s.batch * s.kv_heads;
    let cost = 5 * (problem.group() * s.q_len) as u128 * (s.kv_len * s.head_dim.max(s.head_dim_v)) as u128;
    let count = ((LARGE / cost.max(1)) as usize).clamp(1, total);
    let at = |i: usize| if count == total { i } else { (i * total / count + i % 2) % total };
    let mut pairs: Vec<Pair> =
        (0..count).map(at).map(|i| Pair { b: i / s.kv_heads, kv_head: i % s.kv_heads }).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// How the arithmetic rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Not at all.
    Exact,
    /// Where PyTorch's eager formula materialises a tensor of the problem's dtype: a yardstick, never a result.
    Eager,
}

/// Computes the gradients of `pairs`. Errors: `cancelled`; the score mod has no derivative.
pub fn gradients(
    problem: &Problem,
    inputs: &Inputs,
    seeds: &Seeds,
    pairs: &[Pair],
    arithmetic: Arithmetic,
    control: &Control,
) -> Result<GradientReference, Diagnostic> {
    let s = problem.spec();
    let work = Work {
        problem,
        inputs,
        seeds,
        mods: Mods::new(problem),
        derivative: ModGradient::new(problem)?,
        dtype: if arithmetic == Arithmetic::Exact { None } else { Some(s.dtype) },
    };
    let mut made = Vec::with_capacity(pairs.len());
    for pair in pairs {
        made.push(work.pair(*pair, control)?);
    }
    let all = pairs.len() == s.batch * s.kv_heads;
    let captures = all.then(|| {
        let mut sums = vec![0.0; work.derivative.elements()];
        for pair in &made {
            sums.iter_mut().zip(&pair.captures).for_each(|(sum, x)| *sum += x);
        }
        sums
    });
    Ok(GradientReference { pairs: made, captures, pairs_total: s.batch * s.kv_heads })
}

struct Work<'a> {
    problem: &'a Problem,
    inputs: &'a Inputs,
    seeds: &'a Seeds,
    mods: Mods,
    derivative: ModGradient,
    /// What is materialised is rounded to it; None: nothing is.
    dtype: Option<DType>,
}

/// k and v of a pair in f64.
struct Keys {
    k: Vec<f64>,
    v: Vec<f64>,
}

/// What some rows of a pair give.
struct Part {
    dk: Vec<f64>,
    dv: Vec<f64>,
    captures: Vec<f64>,
}

impl Work<'_> {
    fn round(&self, x: f64) -> f64 {
        self.dtype.map_or(x, |dtype| f64::from(rounded(dtype, x as f32)))
    }

    fn pair(&self, pair: Pair, control: &Control) -> Result<PairGradients, Diagnostic> {
        let (p, s) = (self.problem, self.problem.spec());
        let wide = |t, from, count| f32_range(t, from, count).into_iter().map(f64::from).collect::<Vec<f64>>();
        let at = (pair.b * s.kv_heads + pair.kv_head) * s.kv_len;
        let keys = Keys {
            k: wide(&self.inputs.k, at * s.head_dim, s.kv_len * s.head_dim),
            v: wide(&self.inputs.v, at * s.head_dim_v, s.kv_len * s.head_dim_v),
        };
        let rows = p.group() * s.q_len;
        let mut dq = vec![0.0; rows * s.head_dim];
        // a fixed number of parts, added up in order
        let each = rows.div_ceil(8).max(1);
        let parts: Vec<Part> = dq
            .par_chunks_mut(each * s.head_dim)
            .enumerate()
            .map(|(n, dq)| {
                let mut part = Part {
                    dk: vec![0.0; keys.k.len()],
                    dv: vec![0.0; keys.v.len()],
                    captures: vec![0.0; self.derivative.elements()],
                };
                for (i, dq) in dq.chunks_exact_mut(s.head_dim).enumerate() {
                    if control.is_cancelled() {
                        break;
                    }
                    let row = n * each + i;
                    let h = pair.kv_head * p.group() + row / s.q_len;
                    self.row((pair.b, h, row % s.q_len), &keys, dq, &mut part);
                }
                part
            })
            .collect();
        if control.is_cancelled() {
            return Err(cancelled());
        }
        let mut made = PairGradients {
            pair,
            dq,
            dk: vec![0.0; keys.k.len()],
            dv: vec![0.0; keys.v.len()],
            captures: vec![0.0; self.derivative.elements()],
        };
        for part in parts {
            add(&mut made.dk, &part.dk);
            add(&mut made.dv, &part.dv);
            add(&mut made.captures, &part.captures);
        }
        for x in made.dq.iter_mut().chain(&mut made.dk).chain(&mut made.dv) {
            *x = self.round(*x);
        }
        Ok(made)
    }

    /// One query row: what it gives dq, and adds to the rest.
    fn row(&self, (b, h, q_idx): (usize, usize, usize), keys: &Keys, dq: &mut [f64], part: &mut Part) {
        let s = self.problem.spec();
        let (dim, width, scale) = (s.head_dim, s.head_dim_v, self.problem.scale());
        let at = (b * s.heads + h) * s.q_len + q_idx;
        let q: Vec<f64> = f32_range(&self.inputs.q, at * dim, dim).into_iter().map(f64::from).collect();
        let d_out: Vec<f64> = f32_range(&self.seeds.d_out, at * width, width).into_iter().map(f64::from).collect();
        let place = Place { b, h, q: q_idx..q_idx + 1, kv: 0..s.kv_len };
        let plain: Vec<f64> = keys.k.chunks_exact(dim).map(|k| self.round(self.round(dot(&q, k)) * scale)).collect();
        let mut p = plain.clone();
        self.mods.score_f64(&place, &mut p);
        let mut keep = vec![0; s.kv_len];
        self.mods.keep(&place, &mut keep);
        for (score, keep) in p.iter_mut().zip(&keep) {
            *score = if *keep == 0 { f64::NEG_INFINITY } else { self.round(*score) };
        }
        let top = p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if top == f64::NEG_INFINITY && !p.iter().any(|x| x.is_nan()) {
            return;
        }
        p.iter_mut().for_each(|x| *x = (*x - top).exp());
        let sum: f64 = p.iter().sum();
        p.iter_mut().for_each(|x| *x = self.round(*x / sum));
        let mut ds: Vec<f64> = keys.v.chunks_exact(width).map(|v| self.round(dot(&d_out, v))).collect();
        // delta as the softmax's own derivative has it: sum of P * dP, which is that of dO * O
        let kept = || p.iter().zip(&ds).zip(&keep).filter(|(_, keep)| **keep != 0);
        let delta: f64 = kept().map(|((p, dp), _)| p * dp).sum();
        let d_lse = self.seeds.d_lse.as_ref().map_or(0.0, |t| t.float_at(at));
        for ((ds, p), keep) in ds.iter_mut().zip(&p).zip(&keep) {
            *ds = if *keep == 0 { 0.0 } else { self.round(p * (*ds - delta + d_lse)) };
        }
        for (dv, (p, keep)) in part.dv.chunks_exact_mut(width).zip(p.iter().zip(&keep)) {
            if *keep != 0 {
                dv.iter_mut().zip(&d_out).for_each(|(to, x)| *to += p * x);
            }
        }
        self.derivative.apply_f64(&place, &plain, &mut ds, &mut part.captures);
        for (ds, (k, dk)) in ds.iter().zip(keys.k.chunks_exact(dim).zip(part.dk.chunks_exact_mut(dim))) {
            let ds = self.round(ds * scale);
            if ds != 0.0 {
                dq.iter_mut().zip(k).for_each(|(to, x)| *to += ds * x);
                dk.iter_mut().zip(&q).for_each(|(to, x)| *to += ds * x);
            }
        }
    }
}

fn add(to: &mut [f64], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, x)| *to += x);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a8.zip(b8) {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::reference::{choose_rows, reference};
    use crate::backends::testing::{distance_score, modulo_rows, spec, with_mods};
    use crate::backends::{gradients as given, inputs};
    use crate::base::HostTensor;
    use crate::base::tensor::Data;

    fn exact(p: &Problem, inputs: &Inputs, seeds: &Seeds) -> GradientReference {
        gradients(p, inputs, seeds, &choose_pairs(p), Arithmetic::Exact, &Control::new()).expect("a derivative")
    }

    /// `sum(do * out) + sum(dlse * lse)` by the reference's own forward pass.
    fn loss(p: &Problem, inputs: &Inputs, seeds: &Seeds) -> f64 {
        let r = reference(p, inputs, choose_rows(p, u32::MAX), &Control::new()).expect("not cancelled");
        let out: f64 = r.out.iter().enumerate().map(|(i, x)| x * seeds.d_out.float_at(i)).sum();
        let lse = |t: &HostTensor| -> f64 {
            let finite = r.lse.iter().enumerate().filter(|(_, x)| x.is_finite());
            finite.map(|(i, x)| x * t.float_at(i)).sum()
        };
        out + seeds.d_lse.as_ref().map_or(0.0, lse)
    }

    #[test]
    fn gradients_are_what_differences_of_the_forward_pass_say() {
        let p = with_mods(spec(1, 4, 2, 9, 11, 5), Some(modulo_rows(4, 1)), Some(distance_score()));
        let own = inputs::random(&p, 5);
        let lse = HostTensor::new([1, 4, 9], Data::F32((0..36).map(|i| (i % 7) as f32 / 8.0 - 0.25).collect()));
        let seeds = Seeds { d_lse: Some(lse.expect("a tensor")), ..given::random(&p, 5) };
        let found = exact(&p, &own, &seeds);
        assert_eq!((found.pairs.len(), found.pairs_total), (2, 2));
        let step = 1.0 / 256.0;
        let moved = |of: &HostTensor, at: usize, by: f32| {
            let mut t = of.clone();
            if let Data::F32(v) = t.data_mut() {
                v[at] += by;
            }
            t
        };
        let slope = |make: &dyn Fn(f32) -> Inputs| {
            (loss(&p, &make(step), &seeds) - loss(&p, &make(-step), &seeds)) / f64::from(2.0 * step)
        };
        for (n, pair) in found.pairs.iter().enumerate() {
            for at in 0..pair.dq.len() {
                let make = |by| Inputs { q: moved(&own.q, n * pair.dq.len() + at, by), ..own.clone() };
                assert!((slope(&make) - pair.dq[at]).abs() < 2e-4, "dq {at}: {} {}", slope(&make), pair.dq[at]);
            }
            for at in 0..pair.dk.len() {
                let make = |by| Inputs { k: moved(&own.k, n * pair.dk.len() + at, by), ..own.clone() };
                assert!((slope(&make) - pair.dk[at]).abs() < 2e-4, "dk {at}: {} {}", slope(&make), pair.dk[at]);
                let make = |by| Inputs { v: moved(&own.v, n * pair.dv.len() + at, by), ..own.clone() };
                assert!((slope(&make) - pair.dv[at]).abs() < 2e-4, "dv {at}: {} {}", slope(&make), pair.dv[at]);
            }
            // rows 1 and 5 keep nothing
            for row in [1, 5, 9 + 1] {
                assert!(pair.dq[row * 5..row * 5 + 5].iter().all(|x| *x == 0.0));
            }
        }
    }

    #[test]
    fn emulated_rounding_errs_as_its_dtype_does() {
        let p = with_mods(crate::problem::ProblemSpec { dtype: DType::BF16, ..spec(1, 1, 1, 40, 40, 16) }, None, None);
        let (own, seeds) = (inputs::random(&p, 2), given::random(&p, 2));
        let pairs = choose_pairs(&p);
        let emulated = gradients(&p, &own, &seeds, &pairs, Arithmetic::Eager, &Control::new()).expect("a derivative");
        let right = exact(&p, &own, &seeds);
        let off = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        let error = off(&emulated.pairs[0].dk, &right.pairs[0].dk);
        assert!(error > 1e-4 && error < 0.1, "{error}");
    }
}
