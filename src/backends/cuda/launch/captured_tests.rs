//! Gradients of captured tensors in every way of reading, on the machine of `backward_tests.rs`.
//!
//! Invariant: each kernel's are compared with the float64 reference. Prints skipped without a C++ compiler.

use super::backward_tests::{Case, IN_ORDER, case, check, half, learned, scored, spec, with_holes};
use super::hopper_tests::{masked, scattered};
use crate::backends::cuda::choose::tests::{causal, make};
use crate::backends::cuda::variant::spec::MaskKind;
use crate::base::tensor::Data;
use crate::base::{HostTensor, Layout};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, Op};
use crate::ir::text::parse;
use crate::problem::ProblemSpec;
use std::sync::Arc;

/// `score + gate[h] + rows[q_idx] . keys[kv_idx]`, of more elements than a thread has registers for their sums. Keys from 128 to
/// 256 are infinite.
fn dot(q_len: usize, kv_len: usize) -> Arc<Mod> {
    const ELEMENTS: usize = 20;
    make(ModKind::Score, |g| {
        let [h, q, kv, score] = [Input::H, Input::QIdx, Input::KvIdx, Input::Score].map(|i| g.input(i));
        let [gate, rows, keys] = [("gate", 2, 1), ("rows", q_len, ELEMENTS), ("keys", kv_len, ELEMENTS)].map(|held| {
            let (name, n, elements) = held;
            let value = |i: usize| match name == "keys" && (128..256).contains(&(i / elements)) {
                true => f32::INFINITY,
                false => ((i * 29 + 7) % 32) as f32 / 64.0 - 0.2,
            };
            let values = Data::F32((0..n * elements).map(value).collect());
            g.add_capture(name, HostTensor::new([n, elements], values).expect("a tensor"))
        });
        let read = |g: &mut Graph, held, at, element: usize| {
            let element = g.int(element as i64);
            g.add(Op::Load(held, [at, element].into_iter().collect()), None)
        };
        let gate = read(g, gate, h, 0);
        let mut sum = g.binary(BinaryOp::Add, score, gate);
        for element in 0..ELEMENTS {
            let (row, key) = (read(g, rows, q, element), read(g, keys, kv, element));
            let product = g.binary(BinaryOp::Mul, row, key);
            sum = g.binary(BinaryOp::Add, sum, product);
        }
        sum
    })
}

/// Which element a cell adds depends on its score alone.
fn by_score() -> Arc<Mod> {
    let table = HostTensor::vector(Data::F32(vec![0.5, -0.25]));
    let read = parse("(add score (load table (where (gt score 0.1) 1 0)))", &[("table", table)]);
    Arc::new(read.expect("a graph"))
}

#[test]
fn captured_tensors_get_their_gradients() {
    let own = |q_len, kv_len, dim| ProblemSpec {
        layout: Layout::Bshd,
        ..ProblemSpec::plain(2, (2, 1), (q_len, kv_len), dim)
    };
    let adds = |s: ProblemSpec| scored(learned(s.q_len, s.kv_len, false), s);
    let gated = |s: ProblemSpec| scored(learned(s.q_len, s.kv_len, true), s);
    check([
        case("d64 adds", adds(masked(with_holes(), own(100, 300, 64))), MaskKind::Bitmap),
        case("d128 adds", adds(half(spec(70, 140, 128))), MaskKind::None),
        case("d256 adds", adds(masked(causal(), spec(100, 100, 256))), MaskKind::Bitmap),
        case("d64 by the score", scored(by_score(), own(100, 150, 64)), MaskKind::None),
        case("d24 adds, causal", adds(half(masked(causal(), spec(150, 150, 24)))), MaskKind::Bitmap),
        case("d64 gated", gated(masked(scattered(), own(100, 100, 64))), MaskKind::Bitmap),
        case("d128 gated", gated(masked(causal(), half(spec(70, 140, 128)))), MaskKind::Interval),
        case("d192 gated", gated(masked(with_holes(), own(70, 140, 192))), MaskKind::Bitmap),
        Case {
            arch: "sm_80",
            ..case("d64 gated, Ampere", gated(masked(scattered(), own(100, 100, 64))), MaskKind::Bitmap)
        },
        Case { arch: "sm_86", ..case("d256 gated, Ampere", gated(half(spec(70, 100, 256))), MaskKind::None) },
    ]);
}

#[test]
fn reads_that_are_alike_get_their_gradients_one_after_the_other() {
    let many =
        |what, s: ProblemSpec| case(what, scored(dot(s.q_len, s.kv_len), masked(with_holes(), s)), MaskKind::Bitmap);
    let text = many("d64", spec(150, 300, 64)).ready(1).draft.text;
    assert_eq!((text.matches("add_by_query(19, ").count(), text.matches("add_by_key(19, ").count()), (1, 1));
    check([
        many("d64 dot", spec(150, 300, 64)),
        many("d128 dot", half(spec(150, 300, 128))),
        Case { ways: IN_ORDER, ..many("d64 dot in order", spec(70, 150, 64)) },
        Case { arch: "sm_86", ..many("d256 dot", spec(70, 300, 256)) },
    ]);
}
