//! The operations' meaning, case by case.

use super::*;
use crate::base::tensor::Data;
use crate::base::{Source, SourceId, Span};
use crate::language::graph::ModKind;
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
    let float = |op, x| unary(op, Value::Float(x));
    assert_eq!(float(ToInt, -2.7), Value::Int(-2));
    assert_eq!(float(ToInt, f64::NAN), Value::Int(0));
    assert_eq!((float(Round, 2.5), float(Round, -0.5)), (Value::Float(2.0), Value::Float(0.0)));
    assert_eq!(float(ToBool, f64::NAN), Value::Bool(true));
    assert_eq!(unary(Not, Value::Int(5)), Value::Int(-6));
    assert_eq!(binary(BinaryOp::Shl, Value::Int(1), Value::Int(40)), Value::Int(1 << 31));
    assert_eq!(binary(BinaryOp::Shr, Value::Int(-5), Value::Int(1)), Value::Int(-3));
    assert_eq!(binary(BinaryOp::Min, Value::Float(1.0), Value::Float(f64::NAN)), Value::Float(f64::NAN));
    assert_eq!(binary(BinaryOp::Eq, Value::Float(f64::NAN), Value::Float(f64::NAN)), Value::Bool(false));
}
