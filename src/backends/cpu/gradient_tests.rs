//! Gradients of the CPU backends compared with the f64 reference: ragged lengths, GQA, odd head dims, fully masked rows
//! and keys, score mods and captured tensors; and their independence of the number of threads.

use super::*;
use crate::backends::gradients::{self, Gradients, Seeds};
use crate::backends::inputs;
use crate::backends::reference::gradient::{Arithmetic, Sample, gradients as exact};
use crate::backends::testing::{causal, distance_score, modulo_rows, problem, spec, with_mods};
use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, Op, UnaryOp};
use crate::problem::ProblemSpec;
use smallvec::smallvec;

/// Largest error over the largest value.
fn relative(got: &HostTensor, want: &[f64]) -> f64 {
    assert_eq!(got.numel(), want.len());
    let largest = want.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
    let error = want.iter().enumerate().fold(0.0, |a: f64, (i, x)| {
        let error = (got.float_at(i) - x).abs();
        assert!(error.is_finite(), "element {i} is {}", got.float_at(i));
        a.max(error)
    });
    if largest == 0.0 { error } else { error / largest }
}

/// Every supporting backend within the limit; returns the names of those that ran.
fn check(problem: &Problem, seeds: &Seeds, bar: f64) -> Vec<BackendName> {
    let given = inputs::random(problem, 11);
    let pairs = Sample::whole(problem);
    let want = exact(problem, &given, seeds, &pairs, Arithmetic::Exact, &Control::new()).expect("a derivative");
    let all = |of: fn(&backends::reference::gradient::PairGradients) -> &Vec<f64>| -> Vec<f64> {
        want.pairs.iter().flat_map(|p| of(p).clone()).collect()
    };
    let mut ran = Vec::new();
    for mut backend in backends() {
        if backend.supports_gradients(problem).is_err() {
            continue;
        }
        let mut prepared = backend.prepare(problem, &given).expect("supported");
        let got = prepared.gradients(seeds).expect("it runs");
        let name = prepared.kernel();
        for (what, got, want) in
            [("dq", &got.dq, all(|p| &p.dq)), ("dk", &got.dk, all(|p| &p.dk)), ("dv", &got.dv, all(|p| &p.dv))]
        {
            assert!(relative(got, &want) <= bar, "{name}: {what} is off by {}", relative(got, &want));
        }
        let mut captured = &want.captures[..];
        for found in &got.captures {
            let (own, rest) = captured.split_at(found.gradient.numel());
            assert!(relative(&found.gradient, own) <= bar, "{name}: {} is off", found.name);
            captured = rest;
        }
        assert!(captured.is_empty());
        let again = prepared.gradients(seeds).expect("it runs");
        assert_eq!(bits(&got), bits(&again), "{name}");
        ran.push(backend.name());
    }
    ran
}

fn bits(g: &Gradients) -> Vec<Vec<u8>> {
    g.named().into_iter().map(|(_, t)| t.data().to_le_bytes()).collect()
}

#[test]
fn ragged_lengths_groups_and_odd_head_dims() {
    use BackendName::{Eager, FlashAttention2, Flex, Sdpa};
    for (q_len, kv_len, dim) in [(1, 1, 1), (1, 300, 64), (65, 63, 24), (130, 257, 80)] {
        let p = problem(2, 4, 2, q_len, kv_len, dim);
        assert_eq!(check(&p, &gradients::random(&p, 1), 2e-5), [Eager, Sdpa, FlashAttention2, Flex]);
    }
    let p = with_mods(ProblemSpec { head_dim_v: 20, ..spec(1, 2, 1, 70, 90, 48) }, Some(causal(3)), None);
    assert_eq!(check(&p, &gradients::random(&p, 1), 2e-5), [Eager, Sdpa, Flex]);
}

#[test]
fn masks_with_empty_rows_and_the_gradient_of_the_lse() {
    use BackendName::{Eager, Flex, Sdpa};
    for mask in [modulo_rows(5, 3), causal(-130), causal(0)] {
        let p = with_mods(spec(1, 4, 2, 200, 200, 32), Some(mask), None);
        let lse = (0..4 * 200).map(|i| (i % 13) as f32 / 8.0 - 0.5).collect();
        let d_lse = HostTensor::new([1, 4, 200], Data::F32(lse)).expect("a tensor");
        let seeds = Seeds { d_lse: Some(d_lse), ..gradients::random(&p, 2) };
        let ran = check(&p, &seeds, 2e-5);
        assert!([Eager, Sdpa, Flex].iter().all(|name| ran.contains(name)), "{ran:?}");
        // rows that keep nothing
        let mut flex = backend(Flex).expect("there is one");
        let found = flex.prepare(&p, &inputs::random(&p, 3)).and_then(|mut r| r.gradients(&seeds)).expect("it runs");
        let blocks: Vec<usize> = (0..200).filter(|q| (0..200).all(|kv| !p_keeps(&p, *q, kv))).collect();
        assert!(blocks.iter().all(|q| (0..32).all(|e| found.dq.float_at(q * 32 + e) == 0.0)));
    }
}

fn p_keeps(p: &Problem, q: usize, kv: usize) -> bool {
    let cell = crate::ir::cell::Cell { q_idx: q as i64, kv_idx: kv as i64, ..Default::default() };
    crate::ir::cell::eval(p.mask.as_deref().expect("a mask"), &cell).as_bool()
}

/// `tanh(score * gate[h] / 4) * 4 + table[q_idx - kv_idx] * bias[b, kv_idx] + dense[q_idx, kv_idx]`
fn learned(q_len: usize, kv_len: usize) -> Mod {
    let mut g = Graph::new();
    let numbers = |n: usize, by: f32| -> Vec<f32> { (0..n).map(|i| ((i * 37 % 23) as f32 - 11.0) * by).collect() };
    let gate = g.add_capture("gate", HostTensor::vector(Data::F32(vec![0.9, 1.1, 0.7, 1.3])));
    let table = g.add_capture("table", HostTensor::vector(Data::F32(numbers(50, 0.02))));
    let bias = HostTensor::new([2, kv_len], Data::F32(numbers(2 * kv_len, 0.05))).expect("a tensor");
    let bias = g.add_capture("bias", bias);
    let dense = HostTensor::new([q_len, kv_len], Data::F32(numbers(q_len * kv_len, 0.01))).expect("a tensor");
    let dense = g.add_capture("dense", dense);
    let [b, h, q, kv] = [Input::B, Input::H, Input::QIdx, Input::KvIdx].map(|i| g.input(i));
    let score = g.input(Input::Score);
    let gate = g.add(Op::Load(gate, smallvec![h]), None);
    let (quarter, four) = (g.float(0.25), g.float(4.0));
    let scaled = g.binary(BinaryOp::Mul, score, gate);
    let scaled = g.binary(BinaryOp::Mul, scaled, quarter);
    let bent = g.unary(UnaryOp::Tanh, scaled);
    let bent = g.binary(BinaryOp::Mul, bent, four);
    let distance = g.binary(BinaryOp::Sub, q, kv);
    let table = g.add(Op::Load(table, smallvec![distance]), None);
    let bias = g.add(Op::Load(bias, smallvec![b, kv]), None);
    let product = g.binary(BinaryOp::Mul, table, bias);
    let dense = g.add(Op::Load(dense, smallvec![q, kv]), None);
    let sum = g.binary(BinaryOp::Add, bent, product);
    let root = g.binary(BinaryOp::Add, sum, dense);
    Mod { kind: ModKind::Score, graph: g, root, sources: Vec::new() }
}

#[test]
fn score_mods_and_captured_tensors() {
    use BackendName::{Eager, Flex};
    let p = with_mods(spec(2, 4, 2, 150, 170, 32), Some(causal(20)), Some(learned(150, 170)));
    assert_eq!(check(&p, &gradients::random(&p, 4), 5e-5), [Eager, Flex]);
    let p = with_mods(spec(1, 2, 2, 100, 100, 16), None, Some(distance_score()));
    assert_eq!(check(&p, &gradients::random(&p, 4), 2e-5), [Eager, Flex]);
}

/// `score * gate[h] + sin(wide[kv_idx]) * table[q_idx]` with float64 `wide`: its derivatives are doubles, next to
/// singles.
fn with_doubles(kv_len: usize) -> Mod {
    let mut g = Graph::new();
    let numbers = |n: usize| (0..n).map(move |i| ((i * 37 % 23) as f64 - 11.0) * 0.07);
    let wide = g.add_capture("wide", HostTensor::vector(Data::F64(numbers(kv_len).collect())));
    let gate = g.add_capture("gate", HostTensor::vector(Data::F64(vec![0.8, 1.2])));
    let table = g.add_capture("table", HostTensor::vector(Data::F32(numbers(60).map(|x| x as f32).collect())));
    let [h, q, kv] = [Input::H, Input::QIdx, Input::KvIdx].map(|i| g.input(i));
    let score = g.input(Input::Score);
    let read = |g: &mut Graph, tensor, at| g.add(Op::Load(tensor, smallvec![at]), None);
    let (wide, gate, table) = (read(&mut g, wide, kv), read(&mut g, gate, h), read(&mut g, table, q));
    let (score, table) = (g.unary(UnaryOp::ToDouble, score), g.unary(UnaryOp::ToDouble, table));
    let bent = g.unary(UnaryOp::Sin, wide);
    let (product, scaled) = (g.binary(BinaryOp::Mul, bent, table), g.binary(BinaryOp::Mul, score, gate));
    let sum = g.binary(BinaryOp::Add, scaled, product);
    let root = g.unary(UnaryOp::ToFloat, sum);
    Mod { kind: ModKind::Score, graph: g, root, sources: Vec::new() }
}

#[test]
fn float64_tensors_get_their_gradients() {
    use BackendName::{Eager, Flex};
    let p = with_mods(spec(1, 2, 1, 60, 70, 16), Some(causal(15)), Some(with_doubles(70)));
    assert_eq!(check(&p, &gradients::random(&p, 4), 2e-5), [Eager, Flex]);
}

#[test]
fn halves_are_rounded_once() {
    for (dtype, bar) in [(DType::BF16, 2e-2), (DType::F16, 3e-3)] {
        let p = with_mods(ProblemSpec { dtype, ..spec(1, 2, 1, 90, 120, 32) }, Some(causal(10)), None);
        assert_eq!(check(&p, &gradients::random(&p, 6), bar).len(), 3);
    }
}

#[test]
fn one_thread_gives_what_several_give() {
    let p = with_mods(spec(1, 4, 2, 300, 320, 32), Some(causal(0)), Some(learned(300, 320)));
    let (given, seeds) = (inputs::random(&p, 5), gradients::random(&p, 5));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut flex = backend(BackendName::Flex).expect("there is one");
            bits(&flex.prepare(&p, &given).and_then(|mut r| r.gradients(&seeds)).expect("it runs"))
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn seeds_of_another_shape_are_refused() {
    let p = problem(1, 2, 2, 8, 8, 16);
    let other = problem(1, 2, 2, 9, 8, 16);
    let mut flex = backend(BackendName::Flex).expect("there is one");
    let mut ready = flex.prepare(&p, &inputs::random(&p, 1)).expect("supported");
    let why = ready.gradients(&gradients::random(&other, 1)).expect_err("another length");
    assert!(why.code == "seed-shape" && why.message.contains("[1, 2, 9, 16]") && why.hint.is_some());
}
