//! Gradients of flex and eager compared with the f64 reference: lengths, head dims, groups, layouts, masks, score mods,
//! captured tensors, the gradient of the lse, and one order of addition.

use super::cases::Case;
use super::check::{Device, causal, empty_rows, make, problem, soft_cap, spec, window};
use maskloom::backends::gradients::{self, Gradients, Seeds};
use maskloom::backends::inputs;
use maskloom::backends::reference::gradient::{Arithmetic, PairGradients, Sample, gradients as exact};
use maskloom::base::tensor::Data;
use maskloom::base::{BackendName, Control, DType, HostTensor, Layout};
use maskloom::ir::graph::{BinaryOp, Input, Mod, ModKind, Op, UnaryOp};
use maskloom::problem::{Problem, ProblemSpec};
use std::sync::Arc;

/// All of them.
pub(crate) const ALL: &[Case] = &[
    ("gradients_of_plain_attention", plain),
    ("gradients_with_masks", masks),
    ("gradients_with_score_mods", score_mods),
    ("gradients_of_captured_tensors", captured),
    ("gradients_in_time", timing),
];

/// Root of the squared error over that of the squares.
fn relative(got: &HostTensor, want: &[f64]) -> f64 {
    assert_eq!(got.numel(), want.len());
    let error: f64 = want.iter().enumerate().map(|(i, x)| (got.float_at(i) - x).powi(2)).sum();
    let size: f64 = want.iter().map(|x| x * x).sum();
    assert!(error.is_finite(), "a gradient is not finite");
    if size == 0.0 { error.sqrt() } else { (error / size).sqrt() }
}

fn run(device: &Device, name: BackendName, p: &Problem, seeds: &Seeds) -> Gradients {
    let mut backend = device.backends().into_iter().find(|b| b.name() == name).expect("there is one");
    backend.supports_gradients(p).unwrap_or_else(|why| panic!("{why}"));
    let mut ready = backend.prepare(p, &inputs::random(p, 11)).unwrap_or_else(|why| panic!("{why}"));
    let found = ready.gradients(seeds).unwrap_or_else(|why| panic!("{why}"));
    if name == BackendName::Eager || seeds.deterministic {
        // no sum depends on an order, those of captured tensors neither
        for _ in 0..3 {
            let again = ready.gradients(seeds).unwrap_or_else(|why| panic!("{why}"));
            let same = found.named().into_iter().zip(again.named()).all(|((_, a), (_, b))| a.data() == b.data());
            assert!(same, "{name}'s gradients have other bits the next time");
        }
    }
    found
}

/// Every gradient of both backends within the bar of its format.
fn check(device: &Device, what: &str, p: &Problem, d_lse: bool) {
    for name in [BackendName::Flex, BackendName::Eager] {
        check_one(device, name, &format!("{what} {name}"), p, (d_lse, false));
    }
}

fn check_one(device: &Device, name: BackendName, what: &str, p: &Problem, (d_lse, deterministic): (bool, bool)) {
    let rows = p.batch * p.heads * p.q_len;
    let lse = || (0..rows).map(|i| (i % 13) as f32 / 8.0 - 0.5).collect();
    let d_lse = d_lse.then(|| HostTensor::new([p.batch, p.heads, p.q_len], Data::F32(lse())).expect("a tensor"));
    let seeds = Seeds { d_lse, deterministic, ..gradients::random(p, 3) };
    let got = run(device, name, p, &seeds);
    let want = exact(p, &inputs::random(p, 11), &seeds, &Sample::whole(p), Arithmetic::Exact, &Control::new());
    let want = want.expect("a derivative");
    let all = |of: fn(&PairGradients) -> &Vec<f64>| want.pairs.iter().flat_map(|x| of(x).clone()).collect::<Vec<_>>();
    let bar = if p.dtype == DType::BF16 { 1.5e-2 } else { 2e-3 };
    let own = [("dq", &got.dq, all(|x| &x.dq)), ("dk", &got.dk, all(|x| &x.dk)), ("dv", &got.dv, all(|x| &x.dv))];
    let mut reported = String::new();
    let mut worst = 0.0f64;
    for (name, got, want) in own {
        let error = relative(got, &want);
        reported += &format!(" {name} {error:.1e}");
        worst = worst.max(error);
    }
    let mut rest = &want.captures[..];
    for found in &got.captures {
        let (own, others) = rest.split_at(found.gradient.numel());
        let error = relative(&found.gradient, own);
        reported += &format!(" {} {error:.1e}", found.name);
        worst = worst.max(error);
        rest = others;
    }
    println!("    {what}:{reported}");
    assert!(rest.is_empty() && worst <= bar, "{what}:{reported}");
}

fn plain(device: &Device) {
    for (q_len, kv_len) in [(1, 1), (65, 63), (128, 128), (130, 257), (300, 17), (511, 513)] {
        for dim in [64, 128, 256] {
            let p = problem(spec(2, 4, 2, q_len, kv_len, dim));
            check(device, &format!("{q_len}x{kv_len} d{dim}"), &p, dim == 64);
        }
    }
    for (dim, dim_v) in [(20, 20), (32, 64), (80, 80), (96, 40), (128, 64), (192, 128), (200, 72)] {
        let p = problem(ProblemSpec { head_dim_v: dim_v, dtype: DType::F16, ..spec(1, 2, 1, 200, 150, dim) });
        check(device, &format!("d{dim}/{dim_v} f16"), &p, false);
    }
}

fn masks(device: &Device) {
    for (name, mask) in
        [("causal", causal(0)), ("window", window(70)), ("empty rows", empty_rows()), ("far", causal(-150))]
    {
        for dim in [64, 128, 256] {
            for layout in [Layout::Bhsd, Layout::Bshd] {
                let p = ProblemSpec { layout, mask: Some(mask.clone()), ..spec(2, 4, 2, 500, 450, dim) };
                check(device, &format!("{name} d{dim} {layout:?}"), &problem(p), true);
            }
        }
    }
}

fn score_mods(device: &Device) {
    for dim in [64, 128, 256] {
        let p = ProblemSpec { mask: Some(causal(0)), score: Some(soft_cap()), ..spec(1, 4, 2, 400, 400, dim) };
        check(device, &format!("soft cap d{dim}"), &problem(p), false);
    }
}

/// `score * gate[h] + table[q_idx - kv_idx] + bias[b, kv_idx]`; without a gate `score` alone.
fn learned(gated: bool, kv_len: usize) -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let numbers = |n: usize, by: f32| -> Vec<f32> { (0..n).map(|i| ((i * 37 % 23) as f32 - 11.0) * by).collect() };
        let table = g.add_capture("table", HostTensor::vector(Data::F32(numbers(50, 0.02))));
        let bias = HostTensor::new([2, kv_len], Data::F32(numbers(2 * kv_len, 0.05))).expect("a tensor");
        let bias = g.add_capture("bias", bias);
        let [b, h, q, kv] = [Input::B, Input::H, Input::QIdx, Input::KvIdx].map(|i| g.input(i));
        let mut first = g.input(Input::Score);
        // a tensor added to whole rows has the gradient 0 except for rounding: a gate multiplies
        if gated {
            let gate = g.add_capture("gate", HostTensor::vector(Data::F32(vec![0.9, 1.1, 0.7, 1.3])));
            let gate = g.add(Op::Load(gate, [h].into_iter().collect()), None);
            first = g.binary(BinaryOp::Mul, first, gate);
        }
        let distance = g.binary(BinaryOp::Sub, q, kv);
        let distance = g.unary(UnaryOp::Abs, distance);
        let table = g.add(Op::Load(table, [distance].into_iter().collect()), None);
        let bias = g.add(Op::Load(bias, [b, kv].into_iter().collect()), None);
        let sum = g.binary(BinaryOp::Add, first, table);
        g.binary(BinaryOp::Add, sum, bias)
    })
}

fn captured(device: &Device) {
    let with = |gated, dim| {
        let score: Option<Arc<Mod>> = Some(learned(gated, 300));
        problem(ProblemSpec { mask: Some(causal(20)), score, ..spec(2, 4, 2, 280, 300, dim) })
    };
    for gated in [false, true] {
        for dim in [64, 128, 192, 256] {
            let (what, p) = (format!("learned, gated {gated}, d{dim}"), with(gated, dim));
            check(device, &what, &p, false);
            check_one(device, BackendName::Flex, &format!("{what} deterministic"), &p, (false, true));
        }
    }
    for dim in [64, 128, 192] {
        let p = problem(ProblemSpec {
            mask: Some(causal(20)),
            score: Some(gates(280, 300)),
            ..spec(2, 4, 2, 280, 300, dim)
        });
        check(device, &format!("gates of queries and keys, d{dim}"), &p, true);
    }
}

/// `score * rows[h, q_idx] * keys[kv_idx]`
fn gates(q_len: usize, kv_len: usize) -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let numbers = |n: usize| -> Vec<f32> { (0..n).map(|i| (i * 37 % 23) as f32 * 0.05 + 0.5).collect() };
        let rows = HostTensor::new([4, q_len], Data::F32(numbers(4 * q_len))).expect("a tensor");
        let (rows, keys) =
            (g.add_capture("rows", rows), g.add_capture("keys", HostTensor::vector(Data::F32(numbers(kv_len)))));
        let [h, q, kv, score] = [Input::H, Input::QIdx, Input::KvIdx, Input::Score].map(|i| g.input(i));
        let rows = g.add(Op::Load(rows, [h, q].into_iter().collect()), None);
        let keys = g.add(Op::Load(keys, [kv].into_iter().collect()), None);
        let first = g.binary(BinaryOp::Mul, score, rows);
        g.binary(BinaryOp::Mul, first, keys)
    })
}

fn timing(device: &Device) {
    for (name, mask) in [("full", None), ("causal", Some(causal(0))), ("window", Some(window(1024)))] {
        let p = problem(ProblemSpec { mask, ..spec(4, 16, 16, 8192, 8192, 128) });
        let mut flex = device.backends().into_iter().find(|b| b.name() == BackendName::Flex).expect("there is one");
        let mut ready = flex.prepare(&p, &inputs::random(&p, 1)).expect("prepared");
        let mut times = ready.time_backward(&gradients::random(&p, 1), 9).expect("timed").passes_ms;
        times.sort_by(f64::total_cmp);
        println!("    {name} 4 x 16 x 8192 x 128: backward {:.3} ms", times[4]);
        assert!(times[0] > 0.0);
    }
}
