//! Gradients in float64: dq, dk, dv and those of captured tensors, like autograd of the reference's own formula.
//!
//! Invariant: `dS = P * (dP - delta)` with `delta = sum(dO * O) - dlse`, then the score mod's derivative; a masked cell
//! adds nothing, and a fully masked row has zeros. The mask's selection is not differentiated. Must not share
//! arithmetic with any backend.

mod noise;

use super::emulated::rounded;
use super::sway::{Shift, bends, reach};
use super::{cancelled, f32_range};
use crate::backends::Inputs;
use crate::backends::gradients::Seeds;
use crate::backends::mod_gradient::ModGradient;
use crate::backends::mods::{Mods, Place};
use crate::backends::room;
use crate::base::{Control, DType, Diagnostic, HostTensor};
use crate::problem::Problem;
pub use noise::Noise;
use rayon::prelude::*;

/// Multiply-adds that the reference may cost.
const LARGE: u128 = 1 << 31;
/// Elements of dk and dv that it may hold, but for one pair in any case.
const HELD: usize = 1 << 25;
/// Parts that the rows of a pair are divided into, whatever the number of threads, so that sums have one order.
const PARTS: usize = 8;

/// One batch entry and one of its kv heads, with the query heads that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct Pair {
    pub b: usize,
    pub kv_head: usize,
}

/// The compared part: query rows of some pairs. Gradients are linear in their seeds, so if the seeds are zero in all
/// other rows, those rows add nothing, and all keys and captured tensors are compared completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Pairs, and rows of each, `group * q_len` in number, in order.
    pub pairs: Vec<(Pair, Vec<usize>)>,
    /// Whether these are all rows of all pairs.
    pub whole: bool,
}

/// The right gradients, for some pairs.
#[derive(Clone, Debug, Default)]
pub struct GradientReference {
    /// One for each pair.
    pub pairs: Vec<PairGradients>,
    /// For the elements of all captured tensors with gradients.
    pub captures: Vec<f64>,
    /// The sizes of the terms that each of these is the sum of, added up: what vanishes is no more exact than they are.
    pub terms: Vec<f64>,
    /// What rounding the output costs each of these through delta. Emulation draws it once, which says little of a tensor of
    /// few elements.
    pub capture_noise: Vec<Noise>,
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
    /// `[group][q_len]`: the effect of rounding on each row of dq.
    pub noise: Vec<Noise>,
    /// `[kv_len]`: the same of dk.
    pub key_noise: Vec<Noise>,
    captures: Vec<f64>,
    terms: Vec<f64>,
    /// Squares.
    capture_noise: Vec<f64>,
}

impl Sample {
    /// All rows of a problem.
    pub fn whole(problem: &Problem) -> Sample {
        let s = problem.spec();
        let rows: Vec<usize> = (0..problem.group() * s.q_len).collect();
        let pairs = (0..s.batch * s.kv_heads).map(|i| (pair(problem, i), rows.clone())).collect();
        Sample { pairs, whole: true }
    }

    /// All rows if affordable, otherwise scattered rows of as many scattered pairs as fit in memory: one per part of
    /// equal length, so that every query tile has one if there are as many rows as tiles.
    pub fn affordable(problem: &Problem) -> Sample {
        Self::within(problem, LARGE, HELD, room::left)
    }

    /// Bytes of the references of all [`yardsticks`], and what computing the last of them takes for a while.
    pub fn bytes(&self, problem: &Problem) -> u64 {
        let [each, one] = bytes(problem);
        u64::try_from(each * self.pairs.len() as u128 + one).unwrap_or(u64::MAX)
    }

    fn within(problem: &Problem, large: u128, held: usize, free: impl FnOnce() -> Option<u64>) -> Sample {
        let s = problem.spec();
        let (total, each) = (s.batch * s.kv_heads, problem.group() * s.q_len);
        let row = 5 * (s.kv_len * s.head_dim.max(s.head_dim_v)) as u128;
        let rows = (large / row.max(1)) as usize;
        let pairs = (held / (s.kv_len * (s.head_dim + s.head_dim_v)).max(1)).clamp(1, total);
        let [each_pair, one] = bytes(problem);
        let free = if room::is_small(each_pair * pairs as u128 + one) { None } else { free() };
        // the backends need the other half
        let fit = free.map(|free| (u128::from(free / 2).saturating_sub(one) / each_pair).max(1) as usize);
        let pairs = fit.map_or(pairs, |fit| pairs.min(fit));
        if pairs == total && rows >= total * each {
            return Self::whole(problem);
        }
        let count = (rows / pairs).clamp(1, each);
        // another place within its part for each pair and part
        let at = |n: usize, i: usize| {
            let (start, end) = (i * each / count, (i + 1) * each / count);
            start + (n * 31 + i * 17) % (end - start)
        };
        let scattered = |n: usize| {
            let (start, end) = (n * total / pairs, (n + 1) * total / pairs);
            start + n % (end - start)
        };
        let chosen: Vec<usize> = (0..pairs).map(scattered).collect();
        let of = |(n, i): (usize, &usize)| (pair(problem, *i), (0..count).map(|i| at(n, i)).collect());
        Sample { pairs: chosen.iter().enumerate().map(of).collect(), whole: false }
    }

    /// Seeds that are zero in all other rows.
    pub fn only(&self, problem: &Problem, seeds: &Seeds) -> Result<Seeds, Diagnostic> {
        if self.whole {
            return Ok(seeds.clone());
        }
        let s = problem.spec();
        let mut kept = vec![false; s.batch * s.heads * s.q_len];
        for (pair, rows) in &self.pairs {
            let first = (pair.b * s.heads + pair.kv_head * problem.group()) * s.q_len;
            rows.iter().for_each(|row| kept[first + row] = true);
        }
        let only = |t: &HostTensor, width: usize| {
            let mut values = t.to_f32_vec();
            for (row, _) in kept.iter().enumerate().filter(|(_, kept)| !**kept) {
                values[row * width..(row + 1) * width].fill(0.0);
            }
            backends::gradients::rounded(t.dtype(), t.shape(), values)
        };
        let d_lse = seeds.d_lse.as_ref().map(|t| only(t, 1)).transpose()?;
        Ok(Seeds { d_out: only(&seeds.d_out, s.head_dim_v)?, d_lse, deterministic: seeds.deterministic })
    }
}

/// Bytes that a pair takes in all references, and those that computing one pair of one takes for a while.
fn bytes(problem: &Problem) -> [u128; 2] {
    let s = problem.spec();
    let rows = (problem.group() * s.q_len) as u128;
    let (keys, dim, dim_v) = (s.kv_len as u128, s.head_dim as u128, s.head_dim_v as u128);
    let noise = size_of::<Noise>() as u128;
    let held = 8 * (rows * dim + keys * (dim + dim_v)) + noise * (rows + keys);
    let part = 8 * keys * (2 * dim + dim_v) + noise * keys;
    let references = 1 + yardsticks(problem).len() as u128;
    [references * held, PARTS as u128 * part + 8 * (rows * dim + keys * (dim + dim_v))]
}

fn pair(problem: &Problem, i: usize) -> Pair {
    Pair { b: i / problem.kv_heads, kv_head: i % problem.kv_heads }
}

/// How the arithmetic rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// No rounding.
    Exact,
    /// Rounding where PyTorch's eager formula materialises a tensor of the problem's dtype: for comparison, never a
    /// result.
    Eager,
    /// Rounding where fused kernels round: the output that delta is made of, P and dS as they enter products. Also for
    /// comparison.
    Fused,
    /// The same after a forward pass whose probabilities were this many hundredths as large when they were rounded: a running
    /// softmax rounds them before it knows their sum. P is rounded before dS is made of it, as by `backward_hopper`.
    #[cfg(test)]
    Larger(u32),
    /// No rounding, with scores that differ from the exact ones by float32's rounding: a measure for score mods with
    /// steps or poles.
    Beside(Shift),
}

impl Arithmetic {
    /// Of a fused one: by how much its probabilities are too large when they are rounded.
    fn larger(self) -> Option<f64> {
        match self {
            Arithmetic::Fused => Some(1.0),
            #[cfg(test)]
            Arithmetic::Larger(by) => Some(f64::from(by) / 100.0),
            _ => None,
        }
    }
}

/// The arithmetics whose errors say what a backend may differ by: rounding to the dtype, if that is not float32; scores
/// beside the exact ones, if the score mod or its derivative has steps.
pub fn yardsticks(problem: &Problem) -> Vec<Arithmetic> {
    let half = [Arithmetic::Eager, Arithmetic::Fused].into_iter().filter(|_| problem.dtype != DType::F32);
    let bends = bends(problem);
    half.chain([Shift::Above, Shift::Below].map(Arithmetic::Beside).into_iter().filter(|_| bends)).collect()
}

/// Computes the gradients of `sample`, of seeds that are zero elsewhere. Errors: `cancelled`; the score mod has no derivative.
pub fn gradients(
    problem: &Problem,
    inputs: &Inputs,
    seeds: &Seeds,
    sample: &Sample,
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
        dtype: (!matches!(arithmetic, Arithmetic::Exact | Arithmetic::Beside(_))).then_some(s.dtype),
        fused: arithmetic.larger(),
        beside: if let Arithmetic::Beside(shift) = arithmetic { Some(shift) } else { None },
    };
    let mut made = Vec::with_capacity(sample.pairs.len());
    for (pair, rows) in &sample.pairs {
        made.push(work.pair(*pair, rows, control)?);
    }
    let none = || vec![0.0; work.derivative.elements()];
    let (mut sums, mut sizes, mut squares) = (none(), none(), none());
    for pair in &made {
        add(&mut sums, &pair.captures);
        add(&mut sizes, &pair.terms);
        add(&mut squares, &pair.capture_noise);
    }
    squares.iter_mut().for_each(|x| *x = x.sqrt());
    let capture_noise = work.derivative.sizes_back(&squares).into_iter().map(|largest| Noise { rms: 0.0, largest });
    Ok(GradientReference {
        pairs: made,
        captures: work.derivative.led_back(&sums),
        terms: work.derivative.sizes_back(&sizes),
        capture_noise: capture_noise.collect(),
        pairs_total: s.batch * s.kv_heads,
    })
}

struct Work<'a> {
    problem: &'a Problem,
    inputs: &'a Inputs,
    seeds: &'a Seeds,
    mods: Mods,
    derivative: ModGradient,
    /// The dtype to which materialised values are rounded; None: no rounding.
    dtype: Option<DType>,
    /// Whether scores, P and dP stay exact until products take them, and how much too large the forward pass rounds P.
    fused: Option<f64>,
    /// The side of the exact scores on which those before the mod are.
    beside: Option<Shift>,
}

/// k and v of a pair in f64.
struct Keys {
    k: Vec<f64>,
    v: Vec<f64>,
}

/// The results of some rows of a pair.
struct Part {
    noise: Vec<Noise>,
    /// Squares.
    key_noise: Vec<Noise>,
    /// Squares of what rounding dS costs each element of dk.
    dk_noise: Vec<f64>,
    dk: Vec<f64>,
    dv: Vec<f64>,
    captures: Vec<f64>,
    terms: Vec<f64>,
    /// Squares.
    capture_noise: Vec<f64>,
}

impl Work<'_> {
    fn round(&self, x: f64) -> f64 {
        self.dtype.map_or(x, |dtype| f64::from(rounded(dtype, x as f32)))
    }

    /// Rounds what only the eager formula materialises.
    fn stored(&self, x: f64) -> f64 {
        if self.fused.is_some() { x } else { self.round(x) }
    }

    fn pair(&self, pair: Pair, chosen: &[usize], control: &Control) -> Result<PairGradients, Diagnostic> {
        let (p, s) = (self.problem, self.problem.spec());
        let wide = |t, from, count| f32_range(t, from, count).into_iter().map(f64::from).collect::<Vec<f64>>();
        let at = (pair.b * s.kv_heads + pair.kv_head) * s.kv_len;
        let keys = Keys {
            k: wide(&self.inputs.k, at * s.head_dim, s.kv_len * s.head_dim),
            v: wide(&self.inputs.v, at * s.head_dim_v, s.kv_len * s.head_dim_v),
        };
        // an emulation is one draw and needs no bounds
        let bounded = if self.unit().is_some() { keys.k.len() } else { 0 };
        let mut found = vec![0.0; chosen.len() * s.head_dim];
        // added up in order
        let each = chosen.len().div_ceil(PARTS).max(1);
        let parts: Vec<Part> = found
            .par_chunks_mut(each * s.head_dim)
            .zip(chosen.par_chunks(each))
            .map(|(dq, rows)| {
                let mut part = Part {
                    noise: Vec::with_capacity(rows.len()),
                    key_noise: vec![Noise::default(); s.kv_len],
                    dk_noise: vec![0.0; bounded],
                    dk: vec![0.0; keys.k.len()],
                    dv: vec![0.0; keys.v.len()],
                    captures: vec![0.0; self.derivative.elements()],
                    terms: vec![0.0; self.derivative.elements()],
                    capture_noise: vec![0.0; self.derivative.elements()],
                };
                for (row, dq) in rows.iter().zip(dq.chunks_exact_mut(s.head_dim)) {
                    if control.is_cancelled() {
                        break;
                    }
                    let h = pair.kv_head * p.group() + row / s.q_len;
                    let noise = self.row((pair.b, h, row % s.q_len), &keys, dq, &mut part);
                    part.noise.push(noise);
                }
                part
            })
            .collect();
        if control.is_cancelled() {
            return Err(cancelled());
        }
        let mut dq = vec![0.0; p.group() * s.q_len * s.head_dim];
        for (row, found) in chosen.iter().zip(found.chunks_exact(s.head_dim)) {
            dq[row * s.head_dim..][..s.head_dim].copy_from_slice(found);
        }
        let mut noise = vec![Noise::default(); p.group() * s.q_len];
        let reported = parts.iter().flat_map(|part| &part.noise);
        chosen.iter().zip(reported).for_each(|(row, x)| noise[*row] = *x);
        let mut made = PairGradients {
            pair,
            noise,
            key_noise: vec![Noise::default(); s.kv_len],
            dq,
            dk: vec![0.0; keys.k.len()],
            dv: vec![0.0; keys.v.len()],
            captures: vec![0.0; self.derivative.elements()],
            terms: vec![0.0; self.derivative.elements()],
            capture_noise: vec![0.0; self.derivative.elements()],
        };
        let mut dk_noise = vec![0.0; bounded];
        for part in parts {
            add(&mut dk_noise, &part.dk_noise);
            add(&mut made.dk, &part.dk);
            add(&mut made.dv, &part.dv);
            made.key_noise.iter_mut().zip(&part.key_noise).for_each(|(to, x)| to.add(*x));
            add(&mut made.captures, &part.captures);
            add(&mut made.terms, &part.terms);
            add(&mut made.capture_noise, &part.capture_noise);
        }
        for (noise, own) in made.key_noise.iter_mut().zip(dk_noise.chunks_exact(s.head_dim)) {
            noise.add_largest(own);
        }
        made.key_noise.iter_mut().for_each(|x| *x = x.each(f64::sqrt));
        for x in made.dq.iter_mut().chain(&mut made.dk).chain(&mut made.dv) {
            *x = self.round(*x);
        }
        Ok(made)
    }

    /// One query row: its dq, and its additions to the rest. Returns its noise.
    fn row(&self, (b, h, q_idx): (usize, usize, usize), keys: &Keys, dq: &mut [f64], part: &mut Part) -> Noise {
        let s = self.problem.spec();
        let (dim, width, scale) = (s.head_dim, s.head_dim_v, self.problem.scale());
        let at = (b * s.heads + h) * s.q_len + q_idx;
        let q: Vec<f64> = f32_range(&self.inputs.q, at * dim, dim).into_iter().map(f64::from).collect();
        let d_out: Vec<f64> = f32_range(&self.seeds.d_out, at * width, width).into_iter().map(f64::from).collect();
        let place = Place { b, h, q: q_idx..q_idx + 1, kv: 0..s.kv_len };
        let plain = keys.k.chunks_exact(dim).map(|k| {
            let score = self.stored(self.stored(dot(&q, k)) * scale);
            score + self.beside.map_or(0.0, |shift| reach(&q, dot(k, k).sqrt(), score, scale, shift))
        });
        let plain: Vec<f64> = plain.collect();
        let mut p = plain.clone();
        self.mods.score_f64(&place, &mut p);
        let mut keep = vec![0; s.kv_len];
        self.mods.keep(&place, &mut keep);
        for (score, keep) in p.iter_mut().zip(&keep) {
            *score = if *keep == 0 { f64::NEG_INFINITY } else { self.stored(*score) };
        }
        let top = p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if top == f64::NEG_INFINITY && !p.iter().any(|x| x.is_nan()) {
            return Noise::default();
        }
        p.iter_mut().for_each(|x| *x = (*x - top).exp());
        let sum: f64 = p.iter().sum();
        p.iter_mut().for_each(|x| *x = self.stored(*x / sum));
        let mut ds: Vec<f64> = keys.v.chunks_exact(width).map(|v| self.stored(dot(&d_out, v))).collect();
        let off = self.off_of_delta((&p, &ds), keys, &d_out);
        let noise = off.map_or(Noise::default(), |off| {
            self.on_captures(&place, &plain, &p, off, &mut part.capture_noise);
            self.through_delta(&place, &plain, &p, (off, keys, &q), &mut part.key_noise)
        });
        // delta as the softmax's own derivative has it: sum of P * dP, which is that of dO * O
        let kept = || p.iter().zip(&ds).zip(&keep).filter(|(_, keep)| **keep != 0);
        let delta: f64 = match self.fused {
            Some(larger) => self.delta_of_output(larger, (&p, &keep), keys, &d_out),
            None => kept().map(|((p, dp), _)| p * dp).sum(),
        };
        let d_lse = self.seeds.d_lse.as_ref().map_or(0.0, |t| t.float_at(at));
        if self.dtype.is_none() && self.derivative.elements() > 0 {
            let size = |((dp, p), keep): ((&f64, &f64), &u8)| {
                if *keep == 0 { 0.0 } else { p * (dp.abs() + delta.abs() + d_lse.abs()) }
            };
            let sizes: Vec<f64> = ds.iter().zip(&p).zip(&keep).map(size).collect();
            self.derivative.apply_sizes(&place, &plain, &sizes, &mut part.terms);
        }
        let early = self.fused.is_some_and(|larger| larger != 1.0);
        for ((ds, p), keep) in ds.iter_mut().zip(&p).zip(&keep) {
            let p = if early { self.round(*p) } else { *p };
            *ds = if *keep == 0 { 0.0 } else { self.stored(p * (*ds - delta + d_lse)) };
        }
        p.iter_mut().for_each(|x| *x = self.round(*x));
        for (dv, (p, keep)) in part.dv.chunks_exact_mut(width).zip(p.iter().zip(&keep)) {
            if *keep != 0 {
                dv.iter_mut().zip(&d_out).for_each(|(to, x)| *to += p * x);
            }
        }
        self.derivative.apply_f64(&place, &plain, &mut ds, &mut part.captures);
        let noise = self.of_terms(noise, &ds, keys, &q, &mut part.dk_noise);
        for (ds, (k, dk)) in ds.iter().zip(keys.k.chunks_exact(dim).zip(part.dk.chunks_exact_mut(dim))) {
            let ds = self.round(ds * scale);
            if ds != 0.0 {
                dq.iter_mut().zip(k).for_each(|(to, x)| *to += ds * x);
                dk.iter_mut().zip(&q).for_each(|(to, x)| *to += ds * x);
            }
        }
        noise
    }

    /// Delta of a row as kernels make it: of the output in the problem's dtype, made of probabilities rounded when they were
    /// `larger` times as large.
    fn delta_of_output(&self, larger: f64, (p, keep): (&[f64], &[u8]), keys: &Keys, d_out: &[f64]) -> f64 {
        let width = d_out.len();
        let mut out = vec![0.0; width];
        for ((p, _), v) in p.iter().zip(keep).zip(keys.v.chunks_exact(width)).filter(|((_, keep), _)| **keep != 0) {
            let p = self.round(p * larger) / larger;
            out.iter_mut().zip(v).for_each(|(to, x)| *to += p * x);
        }
        out.iter().zip(d_out).map(|(o, d)| self.round(*o) * d).sum()
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
    use crate::base::tensor::Data;

    fn exact(p: &Problem, inputs: &Inputs, seeds: &Seeds) -> GradientReference {
        gradients(p, inputs, seeds, &Sample::whole(p), Arithmetic::Exact, &Control::new()).expect("a derivative")
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
        let right = exact(&p, &own, &seeds);
        let off = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        for arithmetic in [Arithmetic::Eager, Arithmetic::Fused] {
            let whole = Sample::whole(&p);
            let emulated = gradients(&p, &own, &seeds, &whole, arithmetic, &Control::new()).expect("a derivative");
            let error = off(&emulated.pairs[0].dk, &right.pairs[0].dk);
            assert!(error > 1e-4 && error < 0.1, "{arithmetic:?}: {error}");
        }
    }

    #[test]
    fn a_sample_gives_what_the_whole_gives_of_its_seeds() {
        let p = with_mods(spec(2, 4, 2, 70, 50, 8), Some(modulo_rows(4, 1)), Some(distance_score()));
        let sample = Sample::within(&p, 5 * 50 * 8 * 24, 50 * 16 * 3, || None);
        assert!(!sample.whole && sample.pairs.len() == 3, "{sample:?}");
        for (_, rows) in &sample.pairs {
            assert_eq!(rows.len(), 8);
            // one of each part, so that no two tiles of 18 rows in a row go without
            assert!(rows.iter().enumerate().all(|(i, row)| (i * 140 / 8..(i + 1) * 140 / 8).contains(row)), "{rows:?}");
        }
        let (own, seeds) = (inputs::random(&p, 9), given::random(&p, 9));
        let only = sample.only(&p, &seeds).expect("of the same shape");
        let some = gradients(&p, &own, &only, &sample, Arithmetic::Exact, &Control::new()).expect("a derivative");
        let all = exact(&p, &own, &only);
        let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-12);
        for found in &some.pairs {
            let want = all.pairs.iter().find(|w| w.pair == found.pair).expect("all are there");
            assert!(same(&found.dq, &want.dq) && same(&found.dk, &want.dk) && same(&found.dv, &want.dv));
            assert!(found.dv.iter().any(|x| *x != 0.0));
        }
        assert_eq!(Sample::affordable(&p), Sample::whole(&p));
        let long = with_mods(spec(1, 2, 1, 32768, 32768, 64), None, None);
        let sample = Sample::affordable(&long);
        let rows: usize = sample.pairs.iter().map(|(_, rows)| rows.len()).sum();
        assert!((150..300).contains(&rows), "{rows}");
    }

    #[test]
    fn the_reference_takes_fewer_pairs_where_memory_is_short() {
        let p = with_mods(
            crate::problem::ProblemSpec { dtype: DType::BF16, ..spec(1, 8, 8, 16384, 16384, 128) },
            None,
            None,
        );
        let within = |free: Option<u64>| Sample::within(&p, LARGE, HELD, || free);
        let [all, few, one] = [None, Some(2 << 30), Some(1 << 20)].map(within);
        assert_eq!((all.pairs.len(), one.pairs.len()), (8, 1));
        assert!((1..8).contains(&few.pairs.len()) && few.bytes(&p) <= 1 << 30, "{}", few.bytes(&p));
        assert!(one.bytes(&p) > 400 << 20, "parts of dk and dv are held at once");
        let small = with_mods(spec(1, 2, 1, 64, 64, 16), None, None);
        assert!(Sample::within(&small, LARGE, HELD, || panic!("not asked")).whole);
    }
}
