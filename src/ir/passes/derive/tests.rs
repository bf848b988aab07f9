//! Derivatives of random score mods compared with differences, and refusals.

use super::*;
use crate::base::{HostTensor, Source, SourceId, Span, tensor::Data};
use crate::ir::cell::{Cell, Uniforms, Value, eval, eval_with};
use crate::ir::graph::{BinaryOp, Graph};
use crate::ir::random::{self, Options, Rng};

fn at(derived: &Derived, node: NodeId, cell: &Cell) -> Value {
    eval_with(&derived.graph, node, cell, Uniforms::default())
}

/// The slope of `f` at 0, where two step sizes agree on it.
fn slope(f: impl Fn(f64) -> f64, step: f64) -> Option<f64> {
    let central = |h: f64| (f(h) - f(-h)) / (2.0 * h);
    let (far, near) = (central(step), central(step / 4.0));
    let sides = ((f(step) - f(0.0)) / step, (f(0.0) - f(-step)) / step);
    let smooth = |a: f64, b: f64, by: f64| (a - b).abs() <= by * (1.0 + a.abs());
    (near.is_finite() && smooth(far, near, 1e-3) && smooth(sides.0, sides.1, 3e-2)).then_some(near)
}

/// The same mod with one element of a captured tensor moved.
fn moved(given: &Mod, capture: CaptureId, flat: usize, by: f64) -> Mod {
    let mut graph = Graph::new();
    for (at, held) in given.graph.captures().iter().enumerate() {
        let tensor = if at == capture.0 as usize {
            let mut tensor = held.tensor.clone();
            match tensor.data_mut() {
                Data::F32(v) => v[flat] += by as f32,
                Data::F64(v) => v[flat] += by,
                _ => panic!("a tensor of halves or ints"),
            }
            tensor
        } else {
            held.tensor.clone()
        };
        assert_eq!(graph.add_capture(&held.name, tensor).0 as usize, at);
    }
    for node in given.graph.nodes() {
        graph.add(node.op.clone(), None);
    }
    Mod { graph, ..given.clone() }
}

fn flat_of(derived: &Derived, read: &ReadGradient, tensor: &HostTensor, cell: &Cell) -> usize {
    let index: Vec<i64> = read.index.iter().map(|i| at(derived, *i, cell).as_int()).collect();
    let flat = tensor.clamped_offset(&index);
    let place = flat_index(derived, read, tensor.shape());
    assert_eq!(eval(&place, cell), Value::Float(flat as f64));
    flat
}

#[test]
fn derivatives_are_what_differences_say() {
    let (mut by_score, mut by_element) = (0, 0);
    for seed in 0..400 {
        let options = Options { batch: 2, heads: 3, depth: 3, portable: seed % 4 != 0, ..Options::new(40, 50) };
        let given = random::score(seed, &options);
        let Ok(derived) = derive(&given, |_| true) else { continue };
        let mut rng = Rng::new(seed);
        for _ in 0..6 {
            let (b, h) = (rng.below(2) as i64, rng.below(3) as i64);
            let (q_idx, kv_idx) = (rng.below(40) as i64, rng.below(50) as i64);
            let cell = Cell { b, h, q_idx, kv_idx, score: 6.0 * rng.unit() - 3.0 };
            let by = |d: f64| eval(&given, &Cell { score: cell.score + d, ..cell }).as_float();
            let stops =
                given.graph.nodes().iter().any(|n| matches!(n.op, Op::Unary(UnaryOp::Stop | UnaryOp::As(_), _)));
            if let (Some(want), false) = (slope(by, 1e-4), stops) {
                let got = at(&derived, derived.score, &cell).as_float();
                assert!((got - want).abs() <= 2e-3 * (1.0 + want.abs()), "seed {seed} {cell:?}: {got} against {want}");
                by_score += 1;
            }
            by_element += elements(&given, &derived, &cell, seed, stops);
        }
    }
    assert!(by_score > 1000 && by_element > 150, "{by_score} by the score and {by_element} by elements");
}

/// Checks every element that is read at a cell; how many.
fn elements(given: &Mod, derived: &Derived, cell: &Cell, seed: u64, stops: bool) -> usize {
    let mut checked = 0;
    for read in &derived.reads {
        let tensor = &given.graph.capture(read.capture).tensor;
        let exact = matches!(tensor.data(), Data::F32(_) | Data::F64(_)) && tensor.numel() > 0 && !stops;
        let flat = flat_of(derived, read, tensor, cell);
        // another read may take the same element
        let all: f64 = derived
            .reads
            .iter()
            .filter(|r| r.capture == read.capture && flat_of(derived, r, tensor, cell) == flat)
            .map(|r| at(derived, r.value, cell).as_float())
            .sum();
        let by = |d: f64| eval(&moved(given, read.capture, flat, d), cell).as_float();
        if let (true, Some(want)) = (exact, exact.then(|| slope(by, 1.0 / 128.0)).flatten()) {
            assert!((all - want).abs() <= 1e-2 * (1.0 + want.abs()), "seed {seed} {cell:?}: {all} against {want}");
            checked += 1;
        }
    }
    checked
}

#[test]
fn a_mod_that_only_adds_has_the_constant_1() {
    // score - slopes[h] * (q_idx - kv_idx)
    let mut g = Graph::new();
    let slopes = g.add_capture("slopes", HostTensor::vector(Data::F32(vec![0.5, 0.25])));
    let (h, q, kv, score) = (g.input(Input::H), g.input(Input::QIdx), g.input(Input::KvIdx), g.input(Input::Score));
    let slope = g.add(Op::Load(slopes, SmallVec::from_slice(&[h])), None);
    let distance = g.binary(BinaryOp::Sub, q, kv);
    let distance = g.unary(UnaryOp::ToFloat, distance);
    let bias = g.binary(BinaryOp::Mul, slope, distance);
    let root = g.binary(BinaryOp::Sub, score, bias);
    let score = Mod { kind: ModKind::Score, graph: g, root, sources: Vec::new() };
    let derived = derive(&score, |_| true).expect("it has a derivative");
    assert_eq!(derived.constant(), Some(1.0));
    assert_eq!(derived.captures(), [CaptureId(0)]);
    assert!(derive(&score, |_| false).expect("it has one").reads.is_empty());
}

#[test]
fn a_choice_whose_branches_all_add_has_the_constant_1() {
    use crate::ir::graph::Input;
    let mut g = Graph::new();
    let [score, q, kv] = [Input::Score, Input::QIdx, Input::KvIdx].map(|i| g.input(i));
    let bias = g.float(0.25);
    let biased = g.binary(BinaryOp::Add, score, bias);
    let inside = g.binary(BinaryOp::Lt, q, kv);
    let root = g.add(Op::Where(inside, biased, score), None);
    let of = |graph: Graph, root| Mod { kind: ModKind::Score, graph, root, sources: Vec::new() };
    let derived = derive(&of(g.clone(), root), |_| true).expect("derivable");
    assert_eq!(derived.constant(), Some(1.0), "{:?}", derived.graph);
    // the two branches of another are told apart
    let (one, double) = (g.float(1.0), g.binary(BinaryOp::Add, score, biased));
    for (yes, no, values) in [(score, one, [1.0, 0.0]), (one, score, [0.0, 1.0]), (double, score, [2.0, 1.0])] {
        let root = g.add(Op::Where(inside, yes, no), None);
        let derived = derive(&of(g.clone(), root), |_| true).expect("derivable");
        for (q, value) in [(0, values[0]), (5, values[1])] {
            let cell = Cell { b: 0, h: 0, q_idx: q, kv_idx: 3, score: 0.5 };
            assert_eq!(at(&derived, derived.score, &cell), Value::Float(value), "{:?}", derived.graph);
        }
    }
}

#[test]
fn masks_and_floor_division_are_refused_in_words() {
    let mut graph = Graph::new();
    let (score, two) = (graph.input(Input::Score), graph.float(2.0));
    let text = "def mod(score):\n    return score // 2.0\n";
    let at = Span::new(SourceId(0), 27, 39);
    let root = graph.add(Op::Binary(BinaryOp::FloorDiv, score, two), Some(at));
    let halves = Mod { kind: ModKind::Score, graph, root, sources: vec![Source::new("halves.py", text)] };
    let why = derive(&halves, |_| true).expect_err("PyTorch refuses it");
    assert!(why.code == "no-derivative" && why.message.contains("`//`") && why.hint.is_some());
    assert!(why.message.ends_with("(line 2 of halves.py)"), "{}", why.message);
    let mask = random::mask(1, &Options::new(8, 8));
    assert_eq!(derive(&mask, |_| true).expect_err("a mask").code, "no-derivative");
}
