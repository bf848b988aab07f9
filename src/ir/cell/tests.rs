//! The operations' meaning, case by case.

use crate::base::tensor::Data;
use crate::base::{Source, SourceId, Span};
use crate::ir::cell::*;
use crate::ir::graph::ModKind;
use crate::ir::steps::steps;
use smallvec::smallvec;

#[test]
fn steps_come_in_evaluation_order_with_their_text() {
    let source = Source::new("mod.py", "lambda b, h, q, k: (q - k <= 40) & (q >= k)");
    let span = |text: &str| {
        let start = source.text.find(text).expect("there") as u32;
        Some(Span::new(SourceId(0), start, start + text.len() as u32))
    };
    let mut graph = Graph::new();
    let (q, k, width) = (graph.input(Input::QIdx), graph.input(Input::KvIdx), graph.int(40));
    let causal = graph.add(Op::Binary(BinaryOp::Ge, q, k), span("q >= k"));
    let distance = graph.add(Op::Binary(BinaryOp::Sub, q, k), None);
    let near = graph.add(Op::Binary(BinaryOp::Le, distance, width), span("q - k <= 40"));
    let root = graph.add(Op::Binary(BinaryOp::And, near, causal), None);
    let mod_ = Mod { kind: ModKind::Mask, graph, root, sources: vec![source] };
    let steps = steps(&mod_, &Cell { q_idx: 50, kv_idx: 3, ..Cell::default() });
    let shown: Vec<String> = steps.iter().map(|s| format!("{} = {}", s.text, s.value)).collect();
    assert_eq!(
        shown,
        [
            "q_idx - kv_idx = 47",
            "q - k <= 40 = False",
            "q >= k = True",
            "(q_idx - kv_idx <= 40) & (q_idx >= kv_idx) = False",
        ]
    );
}

#[test]
fn a_shared_sub_expression_is_one_step() {
    let mut graph = Graph::new();
    let (q, k) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
    let distance = graph.binary(BinaryOp::Sub, q, k);
    let root = graph.binary(BinaryOp::Mul, distance, distance);
    let mod_ = Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() };
    assert_eq!(steps(&mod_, &Cell::default()).len(), 2);
}

#[test]
fn loads_wrap_once_and_clamp_and_empty_tensors_read_zero() {
    let table = HostTensor::new([2, 3], Data::I32(vec![0, 1, 2, 10, 11, 12])).unwrap();
    let read = |r, c| load(&table, &[r, c]).as_int();
    assert_eq!((read(1, 2), read(-1, -1), read(9, 0), read(-9, 1)), (12, 12, 10, 1));
    let mut graph = Graph::new();
    let k = graph.input(Input::KvIdx);
    let empty = graph.add_capture("e", HostTensor::vector(Data::F32(Vec::new())));
    let root = graph.add(Op::Load(empty, smallvec![k]), None);
    assert_eq!(eval_with(&graph, root, &Cell::default(), Uniforms::default()), Value::Float(0.0));
}

#[test]
fn casts_round_and_saturate_as_defined() {
    use UnaryOp::*;
    let float = |op, x| unary(op, Value::Float(x), Width::Single);
    let binary = |op, a, b| binary(op, a, b, Width::Single);
    assert_eq!(float(ToInt, -2.7), Value::Int(-2));
    assert_eq!(float(ToInt, f64::NAN), Value::Int(i64::MIN));
    assert_eq!((float(Round, 2.5), float(Round, -0.5)), (Value::Float(2.0), Value::Float(0.0)));
    assert_eq!(float(ToBool, f64::NAN), Value::Bool(true));
    assert_eq!(unary(Not, Value::Int(5), Width::Single), Value::Int(-6));
    assert_eq!(binary(BinaryOp::Shl, Value::Int(1), Value::Int(40)), Value::Int(1 << 40));
    assert_eq!(binary(BinaryOp::Shr, Value::Int(-5), Value::Int(1)), Value::Int(-3));
    assert_eq!(binary(BinaryOp::Min, Value::Float(1.0), Value::Float(f64::NAN)), Value::Float(f64::NAN));
    assert_eq!(binary(BinaryOp::Eq, Value::Float(f64::NAN), Value::Float(f64::NAN)), Value::Bool(false));
}

/// `q * 0.3 > k` and the like: PyTorch rounds every step to float32.
#[test]
fn floats_that_do_not_follow_from_the_score_are_float32() {
    let mut g = Graph::new();
    let (q, score) = (g.input(Input::QIdx), g.input(Input::Score));
    let (tenth, third) = (g.float(0.1), g.float(0.3));
    let float = g.unary(UnaryOp::ToFloat, q);
    let place = g.binary(BinaryOp::Mul, float, tenth);
    let scaled = g.binary(BinaryOp::Mul, score, tenth);
    let sum = g.binary(BinaryOp::Add, scaled, place);
    let reached = g.binary(BinaryOp::Eq, place, third);
    let cell = Cell { q_idx: 3, score: 0.7, ..Cell::default() };
    let at = |id| eval_with(&g, id, &cell, Uniforms::default());
    // in float64 3 * 0.1 is above 0.3
    assert_eq!((at(place), at(reached)), (Value::Float(f64::from(0.3f32)), Value::Bool(true)));
    assert_eq!(at(scaled), Value::Float(0.7 * 0.1));
    assert_eq!(at(sum), Value::Float(0.7 * 0.1 + f64::from(0.3f32)));
    assert!(g.follows_score(sum) && g.follows_score(scaled) && !g.follows_score(place) && !g.follows_score(reached));
}

#[test]
fn a_large_int_is_rounded_once() {
    let x = (1i64 << 54) + (1 << 30) + 1;
    assert_eq!(unary(UnaryOp::ToFloat, Value::Int(x), Width::Single), Value::Float(f64::from(x as f32)));
    assert_ne!(x as f32, x as f64 as f32, "two roundings would give another float");
}

#[test]
fn elements_of_narrow_dtypes_wrap_and_round() {
    use crate::base::DType::*;
    let int = |dtype, x| unary(UnaryOp::As(dtype), Value::Int(x), Width::Single);
    assert_eq!(
        (int(U8, -1), int(I8, 128), int(I16, 40_000), int(I32, 1 << 31)),
        (Value::Int(255), Value::Int(-128), Value::Int(-25_536), Value::Int(-(1 << 31)))
    );
    let float = |dtype, x| unary(UnaryOp::As(dtype), Value::Float(x), Width::Single);
    assert_eq!(
        (float(BF16, 257.0), float(F16, 2049.0), float(F32, 0.1)),
        (Value::Float(256.0), Value::Float(2048.0), Value::Float(f64::from(0.1f32)))
    );
}

#[test]
fn nan_equals_nan_alone_and_zeros_are_equal() {
    let float = Value::Float;
    assert_eq!((float(f64::NAN), float(0.0)), (float(f64::NAN), float(-0.0)));
    assert!(float(f64::NAN) != float(1.0) && float(1.0) != float(f64::NAN) && Value::Int(1) != float(1.0));
}
