//! The gradients' gate compared with planted defects, in large and in small gradients, and with plain rounding.
//!
//! The right gradients are the reference's own, rounded to the dtype, then damaged; no kernel runs. dq without a key
//! tile is computed here from the formula.

use super::*;
use crate::backends::Inputs;
use crate::backends::gradients::{self, CaptureGradient, Seeds};
use crate::backends::inputs;
use crate::backends::reference::gradient::{Arithmetic, Sample, gradients as exact, yardsticks};
use crate::backends::testing::{causal, spec, with_mods};
use crate::base::Control;
use crate::base::tensor::Data;
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, Op, UnaryOp};
use crate::problem::ProblemSpec;
use std::ops::Range;

const TILE: usize = 64;
const N: usize = 300;
const DIM: usize = 32;
const HEADS: usize = 2;

/// `score + slopes[h] * (kv_idx - q_idx)`
fn slopes() -> Mod {
    let mut g = Graph::new();
    let slopes = g.add_capture("slopes", HostTensor::vector(Data::F32(vec![0.02, 0.3])));
    let [h, q, kv, score] = [Input::H, Input::QIdx, Input::KvIdx, Input::Score].map(|i| g.input(i));
    let slope = g.add(Op::Load(slopes, smallvec::smallvec![h]), None);
    let distance = g.binary(BinaryOp::Sub, kv, q);
    let distance = g.unary(UnaryOp::ToFloat, distance);
    let bias = g.binary(BinaryOp::Mul, slope, distance);
    let root = g.binary(BinaryOp::Add, score, bias);
    Mod { kind: ModKind::Score, graph: g, root, sources: Vec::new() }
}

struct Bench {
    problem: Problem,
    given: Inputs,
    seeds: Seeds,
    want: GradientReference,
    coarse: Vec<GradientReference>,
}

impl Bench {
    /// Causal attention with learned slopes; `sizes` of q and of the output's gradient, and that of the second head.
    fn new(dtype: DType, q_size: f32, (seed_size, second): (f32, f32)) -> Bench {
        let shape = ProblemSpec { dtype, ..spec(1, HEADS, 1, N, N, DIM) };
        let problem = with_mods(shape, Some(causal(0)), Some(slopes()));
        let (mut given, mut seeds) = (inputs::random(&problem, 3), gradients::random(&problem, 3));
        let scaled = |t: &HostTensor, by: &dyn Fn(usize) -> f32| {
            let values = t.to_f32_vec().iter().enumerate().map(|(i, x)| x * by(i)).collect();
            gradients::rounded(t.dtype(), t.shape(), values).expect("its own shape")
        };
        given.q = scaled(&given.q, &|_| q_size);
        seeds.d_out = scaled(&seeds.d_out, &|i| if i < N * DIM { seed_size } else { seed_size * second });
        let sample = Sample::whole(&problem);
        let made = |how| exact(&problem, &given, &seeds, &sample, how, &Control::new()).expect("a derivative");
        let want = made(Arithmetic::Exact);
        let coarse = yardsticks(&problem).into_iter().map(made).collect();
        Bench { problem, given, seeds, want, coarse }
    }

    /// Gradients as they come out right, with a change of each before they are rounded.
    fn got(&self, change: impl Fn(&str, &mut [f64])) -> Gradients {
        self.of(&self.want, change)
    }

    fn of(&self, from: &GradientReference, change: impl Fn(&str, &mut [f64])) -> Gradients {
        let pair = &from.pairs[0];
        let shapes = gradients::shapes(&self.problem);
        let one = |name: &str, values: &[f64], shape: [usize; 4]| {
            let mut values = values.to_vec();
            change(name, &mut values);
            let single = values.iter().map(|x| *x as f32).collect();
            gradients::rounded(self.problem.dtype, shape, single).expect("as many as the shape says")
        };
        let mut captured = from.captures.clone();
        change("slopes", &mut captured);
        let gradient = HostTensor::vector(Data::F32(captured.iter().map(|x| *x as f32).collect()));
        Gradients {
            dq: one("dq", &pair.dq, shapes[0]),
            dk: one("dk", &pair.dk, shapes[1]),
            dv: one("dv", &pair.dv, shapes[2]),
            captures: vec![CaptureGradient { name: "slopes".into(), gradient }],
        }
    }

    fn faults(&self, got: &Gradients) -> Vec<String> {
        let bars = Bars::new(&self.problem, &self.want, &self.coarse);
        let errors = judge(&self.problem, got, &bars).expect("comparable");
        assert_eq!(errors.len(), 4);
        errors.iter().filter_map(GradientError::words).collect()
    }

    /// One key tile's part of dq of a head's rows, from the formula in float64.
    fn share(&self, h: usize, keys: Range<usize>) -> Vec<f64> {
        let p = &self.problem;
        let row = |t: &HostTensor, at: usize| -> Vec<f64> { (0..DIM).map(|e| t.float_at(at * DIM + e)).collect() };
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let slope = [0.02f32, 0.3][h];
        let mut share = vec![0.0; N * DIM];
        for q_idx in 0..N {
            let (q, d_out) = (row(&self.given.q, h * N + q_idx), row(&self.seeds.d_out, h * N + q_idx));
            // what does not follow from the score is rounded
            let bias = |kv: usize| f64::from(slope * (kv as f32 - q_idx as f32));
            let scores: Vec<f64> =
                (0..=q_idx).map(|kv| dot(&q, &row(&self.given.k, kv)) * p.scale() + bias(kv)).collect();
            let top = scores.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = scores.iter().map(|s| (s - top).exp()).sum();
            let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp() / sum).collect();
            let dp: Vec<f64> = (0..=q_idx).map(|kv| dot(&d_out, &row(&self.given.v, kv))).collect();
            let delta = dot(&weights, &dp);
            for kv in keys.clone().filter(|kv| *kv <= q_idx) {
                let ds = weights[kv] * (dp[kv] - delta) * p.scale();
                let to = &mut share[q_idx * DIM..(q_idx + 1) * DIM];
                to.iter_mut().zip(row(&self.given.k, kv)).for_each(|(to, k)| *to += ds * k);
            }
        }
        share
    }

    fn caught(&self, what: &str, name: &str, change: impl Fn(&mut [f64])) {
        let got = self.got(|own, values| {
            if own == name {
                change(values);
            }
        });
        let faults = self.faults(&got);
        let blamed = if name == "slopes" { "dcap.slopes" } else { name };
        let p = &self.problem;
        assert!(faults.len() == 1 && faults[0].starts_with(blamed), "{what}, {name} in {}: {faults:?}", p.dtype);
    }

    /// Every defect of the list.
    fn defects(&self) {
        assert_eq!(self.faults(&self.got(|_, _| {})), [""; 0], "right gradients");
        for coarse in &self.coarse {
            assert_eq!(self.faults(&self.of(coarse, |_, _| {})), [""; 0], "emulated gradients");
        }
        // from the formula, which is the reference's own
        let all = self.share(1, 0..N);
        let own = &self.want.pairs[0].dq[N * DIM..];
        assert!(all.iter().zip(own).all(|(a, b)| (a - b).abs() <= 1e-9 * largest_of(own)));
        for (h, tile) in [(0, 0..TILE), (1, 128..128 + TILE), (1, 256..N)] {
            let share = self.share(h, tile);
            self.caught("a lost tile of keys", "dq", |dq| {
                dq[h * N * DIM..].iter_mut().zip(&share).for_each(|(x, lost)| *x -= lost);
            });
        }
        let without = |rows: Range<usize>| {
            let mut values = self.seeds.d_out.to_f32_vec();
            values[rows.start * DIM..rows.end * DIM].fill(0.0);
            let d_out = gradients::rounded(self.problem.dtype, self.seeds.d_out.shape(), values).expect("its shape");
            let (seeds, sample) = (Seeds { d_out, d_lse: None, deterministic: false }, Sample::whole(&self.problem));
            exact(&self.problem, &self.given, &seeds, &sample, Arithmetic::Exact, &Control::new()).expect("runs")
        };
        for first in [0, 128, N, N + 192] {
            let lost = without(first..first + TILE);
            self.caught("a lost tile of queries", "dk", |dk| dk.copy_from_slice(&lost.pairs[0].dk));
            self.caught("a lost tile of queries", "dv", |dv| dv.copy_from_slice(&lost.pairs[0].dv));
        }
        for key in [0, 7, 150, N - 1] {
            for name in ["dk", "dv"] {
                self.caught("another sign of one key", name, |x| {
                    x[key * DIM..(key + 1) * DIM].iter_mut().for_each(|x| *x = -*x);
                });
            }
        }
        for row in [9, N - 1, N + 20, 2 * N - 1] {
            self.caught("another sign of one query", "dq", |x| {
                x[row * DIM..(row + 1) * DIM].iter_mut().for_each(|x| *x = -*x);
            });
        }
        // what rounding to 16 bits hides in every single row is larger
        let single = self.problem.dtype == DType::F32;
        for name in ["dq", "dk", "dv"] {
            for by in if single { [1.01, 0.99] } else { [1.1, 0.9] } {
                self.caught("another scale", name, |x| x.iter_mut().for_each(|x| *x *= by));
            }
        }
        let largest = largest_of(&self.want.captures);
        let first = self.want.captures.iter().position(|x| x.abs() == largest).expect("one is the largest");
        self.caught("another sign of one slope", "slopes", |x| x[first] = -x[first]);
        if single {
            for head in 0..HEADS {
                self.caught("another scale of a head", "dq", |x| {
                    x[head * N * DIM..(head + 1) * N * DIM].iter_mut().for_each(|x| *x *= 1.01);
                });
            }
            self.caught("another scale", "slopes", |x| x.iter_mut().for_each(|x| *x *= 1.05));
        }
        for name in ["dq", "dk", "dv", "slopes"] {
            self.caught("zeros", name, |x| x.fill(0.0));
            self.caught("no number", name, |x| x[1] = f64::NAN);
        }
    }
}

#[test]
fn planted_defects_are_caught_in_every_dtype() {
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        Bench::new(dtype, 1.0, (1.0, 1.0)).defects();
    }
}

#[test]
fn they_are_caught_where_all_gradients_are_small() {
    for (dtype, size) in [(DType::F32, 1e-6), (DType::BF16, 1e-6)] {
        Bench::new(dtype, 1.0, (size, 1.0)).defects();
    }
}

#[test]
fn they_are_caught_where_one_heads_gradients_are_small() {
    Bench::new(DType::F32, 1.0, (1.0, 0.02)).defects();
}

#[test]
fn they_are_caught_where_few_keys_take_most() {
    Bench::new(DType::F32, 3.0, (1.0, 1.0)).defects();
}

/// Where a score lies on a corner of the score mod, rounding decides on which side a kernel sees it, and so by which of
/// two slopes it multiplies.
#[test]
fn rounding_a_score_over_a_corner_is_no_fault() {
    let plain = ProblemSpec { dtype: DType::F32, ..spec(1, 1, 1, 3, 4, 16) };
    let of = |score: Mod| with_mods(plain.clone(), None, Some(score));
    let corner = |at: f64| {
        let mut g = Graph::new();
        let (score, most) = (g.input(Input::Score), g.float(at));
        let root = g.binary(BinaryOp::Min, score, most);
        Mod { kind: ModKind::Score, graph: g, root, sources: Vec::new() }
    };
    let given = inputs::random(&of(corner(0.0)), 5);
    let row = |t: &HostTensor, at: usize| (0..16).map(|e| t.float_at(at * 16 + e)).collect::<Vec<f64>>();
    let dot: f64 = row(&given.q, 1).iter().zip(row(&given.k, 2)).map(|(a, b)| a * b).sum();
    let problem = of(corner(dot * of(corner(0.0)).scale()));
    let (seeds, sample) = (gradients::random(&problem, 5), Sample::whole(&problem));
    let made = |how| exact(&problem, &given, &seeds, &sample, how, &Control::new()).expect("a derivative");
    let want = made(Arithmetic::Exact);
    let faults = |from: &GradientReference, factor: f64, coarse: &[GradientReference]| {
        let shapes = gradients::shapes(&problem);
        let one = |values: &[f64], shape: [usize; 4]| {
            let values = values.iter().map(|x| (x * factor) as f32).collect();
            gradients::rounded(DType::F32, shape, values).expect("as many as the shape says")
        };
        let pair = &from.pairs[0];
        let (dq, dk, dv) = (one(&pair.dq, shapes[0]), one(&pair.dk, shapes[1]), one(&pair.dv, shapes[2]));
        let got = Gradients { dq, dk, dv, captures: Vec::new() };
        let errors = judge(&problem, &got, &Bars::new(&problem, &want, coarse)).expect("comparable");
        errors.iter().filter(|e| e.words().is_some()).count()
    };
    let sides: Vec<GradientReference> = yardsticks(&problem).into_iter().map(made).collect();
    assert_eq!(sides.len(), 2);
    for side in &sides {
        assert_eq!(faults(side, 1.0, &sides), 0);
        assert_eq!(faults(side, 1.0, &[]), 2, "dq and dk differ by the slope");
    }
    assert_eq!(faults(&want, 1.0, &sides), 0);
    assert_eq!(faults(&want, 2.0, &sides), 3, "other faults are seen");
    let smooth = of({
        let mut g = Graph::new();
        let score = g.input(Input::Score);
        let root = g.unary(UnaryOp::Tanh, score);
        Mod { kind: ModKind::Score, graph: g, root, sources: Vec::new() }
    });
    assert!(yardsticks(&smooth).is_empty(), "no step, nothing to allow for");
}

/// A running softmax rounds probabilities before it knows their sum. Where few keys have most of a row, how these are
/// rounded decides delta's error.
#[test]
fn other_roundings_of_the_forward_pass_are_no_fault() {
    for (scale, n, keys, dim) in [(1.0, 16, 8, 64), (0.6, 64, 4, 24), (1.0, 64, 64, 24)] {
        let spec = ProblemSpec { dtype: DType::BF16, scale: Some(scale), ..spec(1, 128, 128, n, keys, dim) };
        let problem = Problem::new(spec).expect("a valid problem");
        let (given, seeds) = (inputs::random(&problem, 7), gradients::random(&problem, 7));
        let sample = Sample::whole(&problem);
        let made = |how| exact(&problem, &given, &seeds, &sample, how, &Control::new()).expect("gradients");
        let (want, coarse) = (made(Arithmetic::Exact), yardsticks(&problem).into_iter().map(made).collect::<Vec<_>>());
        let bars = Bars::new(&problem, &want, &coarse);
        for step in 1..12 {
            let errors = judge(&problem, &whole(&problem, &made(Arithmetic::Larger(100 + step * 62 % 100))), &bars);
            let faults: Vec<_> = errors.expect("comparable").iter().filter_map(GradientError::words).collect();
            assert!(faults.is_empty(), "{keys} keys, step {step}: {faults:?}");
        }
    }
}

/// The gradients of all pairs, one kv head a query head.
fn whole(problem: &Problem, from: &GradientReference) -> Gradients {
    let one = |of: fn(&PairGradients) -> &Vec<f64>, shape: [usize; 4]| {
        let values = from.pairs.iter().flat_map(of).map(|x| *x as f32).collect();
        gradients::rounded(problem.dtype, shape, values).expect("as many as the shape says")
    };
    let [dq, dk, dv] = gradients::shapes(problem);
    Gradients { dq: one(|p| &p.dq, dq), dk: one(|p| &p.dk, dk), dv: one(|p| &p.dv, dv), captures: Vec::new() }
}

/// One row of an array, or rows of `width`, judged in float32 (`unit` 0) or in 16 bits.
struct Rows<'a> {
    got: &'a [f64],
    want: &'a [f64],
    coarse: &'a [&'a [f64]],
    noise: &'a [Noise],
    width: usize,
    floor: f64,
}

impl Rows<'_> {
    fn judged(&self, unit: f64) -> GradientError {
        let (name, got, coarse) = ("dx".to_string(), self.got.to_vec(), self.coarse.to_vec());
        let (want, width, noise, floor) = (self.want, self.width, self.noise, self.floor);
        Array { name, got, want, coarse, width, noise, floor }.judged(unit)
    }
}

const WHOLE: Rows = Rows { got: &[1.0, -2.0], want: &[1.0, -2.0], coarse: &[], noise: &[], width: 0, floor: 0.0 };

#[test]
fn an_arrays_limit_is_the_sum_of_its_parts() {
    let least = f64::from(f32::MIN_POSITIVE);
    let allowed = |rows: Rows| rows.judged(0.0).allowed;
    let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-15, "{found}, not {wanted}");
    // a ten-thousandth of the largest element, by its size
    near(allowed(WHOLE), 2e-4 + least);
    near(allowed(Rows { floor: 0.25, ..WHOLE }), 2e-4 + 0.25);
    // twice the emulated error, of the worst emulation
    let coarse: [&[f64]; 2] = [&[1.5, -2.0], &[1.0, -2.75]];
    near(allowed(Rows { coarse: &coarse, ..WHOLE }), 2e-4 + 2.0 * 0.75);
    // once where delta's own error, of the worst row, is larger
    let noise = [Noise { rms: 9.0, largest: 1.0 }, Noise { rms: 9.0, largest: 0.5 }];
    near(allowed(Rows { coarse: &coarse, noise: &noise, ..WHOLE }), 2e-4 + 0.75 + 1.0);
    // what overflowed is no measure
    let coarse: [&[f64]; 1] = [&[f64::INFINITY, -2.5]];
    near(allowed(Rows { coarse: &coarse, ..WHOLE }), 2e-4 + 2.0 * 0.5);
    let found = Rows { got: &[1.5, -2.25], ..WHOLE }.judged(0.0);
    assert_eq!((found.name.as_str(), found.max_abs, found.largest), ("dx", 0.5, 2.0));
    assert_eq!((found.widest, found.fault), (found.allowed, None));
    // zeros may be off by the smallest number of float32
    assert_eq!(allowed(Rows { got: &[0.0; 2], want: &[0.0; 2], ..WHOLE }), least);
}

#[test]
fn what_is_no_number_is_a_fault_where_the_reference_has_one() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let of = |got: &[f64], want: &[f64]| Rows { got, want, ..WHOLE }.judged(0.0);
    assert_eq!(of(&[1.0, nan], &[1.0, -2.0]).fault.as_deref(), Some("element 1 is NaN instead of -2"));
    assert_eq!(of(&[-inf, nan], &[1.0, -2.0]).fault.as_deref(), Some("element 0 is -inf instead of 1"));
    assert_eq!(of(&[1.0, 2.0], &[1.0, inf]).fault.as_deref(), Some("element 1 is 2 instead of inf"));
    assert_eq!(of(&[1.0, -inf], &[1.0, inf]).fault.as_deref(), Some("element 1 is -inf instead of inf"));
    let same = of(&[1.5, inf, nan], &[1.0, inf, nan]);
    assert_eq!((same.fault, same.max_abs, same.largest), (None, 0.5, 1.0));
}

#[test]
fn a_rows_limit_is_the_sum_of_its_parts() {
    // rows of two elements; the second has the root mean square 5, and 1000 is the largest element
    const ROOT_OF_41: f64 = 6.403_124_237_432_849;
    let want = [1000.0, 0.0, 3.0, ROOT_OF_41];
    let bad = |by: f64, unit: f64, rows: Rows| {
        let got = [1000.0, 0.0, 3.0 + by, ROOT_OF_41 - by];
        Rows { got: &got, want: &want, width: 2, ..rows }.judged(unit).fault
    };
    // the largest error of the second row that is no fault
    let limit = |unit: f64, rows: &dyn Fn() -> Rows<'static>, wanted: f64| {
        assert_eq!(bad(wanted * 0.9999, unit, rows()), None, "{wanted}");
        let fault = bad(wanted * 1.0001, unit, rows()).unwrap_or_else(|| panic!("{wanted} is beyond no limit"));
        let error = format!("row 1 has an error of {wanted:.1e}; the limit is {wanted:.1e}");
        assert_eq!(fault, error);
    };
    // float32: two thousandths of its size, and a hundred-thousandth of the largest
    limit(0.0, &|| WHOLE, 0.01 + 0.01);
    limit(0.0, &|| Rows { floor: 0.25, ..WHOLE }, 0.02 + 0.25);
    // 16 bits: twice its roundoff, and a ten-thousandth of the largest
    limit(1.0 / 256.0, &|| WHOLE, 10.0 / 256.0 + 0.1);
    // four times the emulated error of the row, of the worst emulation
    const NONE: &[f64] = &[1000.0, 0.0, 3.0, ROOT_OF_41];
    const HALF: &[f64] = &[900.0, 50.0, 3.5, ROOT_OF_41 - 0.5];
    const INFINITE: &[f64] = &[1000.0, 0.0, f64::INFINITY, ROOT_OF_41];
    limit(0.0, &|| Rows { coarse: &[NONE, HALF, INFINITE], ..WHOLE }, 0.02 + 4.0 * 0.5);
    // or of delta's own
    const NOISE: &[Noise] = &[Noise { rms: 9.0, largest: 0.0 }, Noise { rms: 0.75, largest: 99.0 }];
    limit(0.0, &|| Rows { coarse: &[NONE, HALF], noise: NOISE, ..WHOLE }, 0.02 + 4.0 * 0.75);
    // rows are not judged where the array has none
    let got = [1000.0, 0.0, 3.0, -ROOT_OF_41];
    assert_eq!(Rows { got: &got, want: &want, ..WHOLE }.judged(0.0).fault, None);
    // numbers below the smallest of float32 are zeros
    let tiny = f64::from(f32::MIN_POSITIVE);
    let of = |got: f64| Rows { got: &[got, -got], want: &[0.0, 0.0], width: 2, ..WHOLE }.judged(0.0).fault;
    assert!(of(tiny).is_none() && of(1.5 * tiny).is_some());
}

/// dq and dk are differences of products with v, so that dv's size bounds their rounding; dv's own terms do not cancel.
#[test]
fn vanishing_dq_and_dk_may_be_off_by_rounding_of_dv() {
    let problem = with_mods(spec(1, 1, 1, 2, 3, 2), None, None);
    let (given, seeds, sample) = (inputs::random(&problem, 3), gradients::random(&problem, 3), Sample::whole(&problem));
    let mut want = exact(&problem, &given, &seeds, &sample, Arithmetic::Exact, &Control::new()).expect("gradients");
    let pair = &mut want.pairs[0];
    (pair.dq, pair.dk, pair.dv) = (vec![0.0; 4], vec![0.0; 6], vec![-5e4; 6]);
    (pair.noise, pair.key_noise) = (Vec::new(), Vec::new());
    let errors = judge(&problem, &whole(&problem, &want), &Bars::new(&problem, &want, &[])).expect("comparable");
    let least = f64::from(f32::MIN_POSITIVE);
    // eight steps of float32 at 1, times 50,000; a ten-thousandth of 50,000
    let floor = 8.0 * 2f64.powi(-23) * 5e4 + least;
    assert_eq!(errors.iter().map(|e| e.allowed).collect::<Vec<_>>(), [floor, floor, 1e-4 * 5e4 + least]);
}

#[test]
fn captured_tensors_are_judged_one_after_the_other() {
    let noise = |largest| Noise { rms: 0.0, largest };
    let want = GradientReference {
        captures: vec![1.0, 2.0, 4.0, 0.0, -8.0],
        terms: vec![0.0, 0.0, 0.0, 1e6, 5.0],
        capture_noise: [0.5, 0.0, 0.25, 0.0, 0.0].map(noise).to_vec(),
        ..GradientReference::default()
    };
    let coarse = [GradientReference { captures: vec![1.0, 2.0, 4.0, 0.0, -8.125], ..GradientReference::default() }];
    let bars = Bars { want: &want, coarse: &coarse, unit: 0.0 };
    let of = |tensors: &[&[f32]]| {
        let one = |(n, values): (usize, &&[f32])| CaptureGradient {
            name: format!("c{n}"),
            gradient: HostTensor::vector(Data::F32(values.to_vec())),
        };
        let empty = HostTensor::vector(Data::F32(Vec::new()));
        let captures = tensors.iter().enumerate().map(one).collect();
        captured(&Gradients { dq: empty.clone(), dk: empty.clone(), dv: empty, captures }, &bars)
    };
    let found = of(&[&[1.0, 2.5], &[4.0], &[0.0, -8.0]]);
    assert_eq!(found.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["dcap.c0", "dcap.c1", "dcap.c2"]);
    assert_eq!(found.iter().map(|e| (e.max_abs, e.largest)).collect::<Vec<_>>(), [(0.5, 2.0), (0.0, 4.0), (0.0, 8.0)]);
    let epsilon = 2f64.powi(-23);
    for (found, wanted) in found.iter().zip([0.5 + 2e-4, 0.25 + 4e-4, 0.25 + 8e-4 + 64.0 * epsilon * 1e6]) {
        assert!((found.allowed - wanted).abs() < 1e-12, "{found:?} {wanted}");
    }
    // more elements than the reference has
    assert_eq!(
        of(&[&[1.0, 2.0, 4.0, 0.0, -8.0, 99.0], &[7.0]]).iter().map(|e| e.max_abs).collect::<Vec<_>>(),
        [0.0; 2]
    );
}

/// Two batch entries of four heads over two kv heads, whose gradients all differ.
#[test]
fn each_pair_of_batch_entry_and_kv_head_is_judged_at_its_own_place() {
    use crate::backends::reference::gradient::Pair;
    let problem = with_mods(spec(2, 4, 2, 5, 6, 3), None, None);
    let (given, seeds) = (inputs::random(&problem, 3), gradients::random(&problem, 3));
    let made = |sample: &Sample| {
        exact(&problem, &given, &seeds, sample, Arithmetic::Exact, &Control::new()).expect("gradients")
    };
    let want = made(&Sample::whole(&problem));
    let right = whole(&problem, &want);
    let faults = |got: &Gradients, want: &GradientReference| -> Vec<String> {
        let errors = judge(&problem, got, &Bars::new(&problem, want, &[])).expect("comparable");
        errors.iter().filter_map(GradientError::words).map(|words| words[..2].to_string()).collect()
    };
    assert_eq!(faults(&right, &want), [""; 0]);
    let changed = |of: &HostTensor, at: usize| {
        let mut values = of.to_f32_vec();
        values[at] += 1.0;
        HostTensor::new(of.shape(), Data::F32(values)).expect("its shape")
    };
    // the pair of the entry 1 and the kv head 0 alone: the query heads 0 and 1 of the entry 1
    let rows: Vec<usize> = (0..2 * 5).collect();
    let one = made(&Sample { pairs: vec![(Pair { b: 1, kv_head: 0 }, rows)], whole: false });
    for at in 0..2 * 4 * 5 * 3 {
        let got = Gradients { dq: changed(&right.dq, at), ..right.clone() };
        assert_eq!(faults(&got, &want), ["dq"], "{at}");
        assert_eq!(faults(&got, &one).len(), usize::from((60..90).contains(&at)), "{at}");
    }
    for at in 0..2 * 2 * 6 * 3 {
        let got = Gradients { dk: changed(&right.dk, at), dv: changed(&right.dv, at), ..right.clone() };
        assert_eq!(faults(&got, &want), ["dk", "dv"], "{at}");
        assert_eq!(faults(&got, &one).len(), if (36..54).contains(&at) { 2 } else { 0 }, "{at}");
    }
    let turned = HostTensor::new([2, 4, 3, 5], right.dq.data().clone()).expect("as many");
    let why =
        judge(&problem, &Gradients { dq: turned, ..right }, &Bars::new(&problem, &want, &[])).expect_err("a shape");
    assert_eq!((&*why.code, &*why.message), ("gradient-shape", "dq has shape [2, 4, 3, 5] instead of [2, 4, 5, 3]"));
}
