//! Printed functions, held to their text.

use crate::base::tensor::Data;
use crate::base::{DType, HostTensor, Source, SourceId, Span};
use crate::ir::cell::eval;
use crate::ir::graph::{BinaryOp, Graph, Mod, ModKind, NodeId, Op, UnaryOp};
use crate::ir::print::*;
use crate::ir::random::{self, Options, Rng};
use crate::python::{TraceRequest, trace};
use smallvec::smallvec;

fn check(kind: ModKind, build: impl FnOnce(&mut Graph) -> NodeId, want: &str) {
    let mut graph = Graph::new();
    let root = build(&mut graph);
    let of = Mod { kind, graph, root, sources: Vec::new() };
    let ranges = |id: NodeId| match of.graph.node(id).op {
        Op::Input(_) => (0, 99),
        _ => any_range(id),
    };
    let got = function("f", &of, &mut Names::default(), &ranges);
    assert_eq!(got.trim_end(), want.trim_end(), "\n{got}");
}

fn indices(g: &mut Graph) -> (NodeId, NodeId) {
    (g.input(crate::ir::graph::Input::QIdx), g.input(crate::ir::graph::Input::KvIdx))
}

fn numbers(n: usize, dtype: DType) -> HostTensor {
    let zeros = vec![0u8; n * dtype.size()];
    HostTensor::vector(Data::from_le_bytes(dtype, &zeros).expect("whole elements"))
}

#[test]
fn a_band_reads_as_people_write_it() {
    let want = "def f(b, h, q_idx, kv_idx):\n    return (q_idx - kv_idx >= 0) & (q_idx - kv_idx <= 40)\n";
    let build = |g: &mut Graph| {
        let (q, k) = indices(g);
        let (distance, zero, width) = (g.binary(BinaryOp::Sub, q, k), g.int(0), g.int(40));
        let (a, b) = (g.binary(BinaryOp::Ge, distance, zero), g.binary(BinaryOp::Le, distance, width));
        g.binary(BinaryOp::And, a, b)
    };
    check(ModKind::Mask, build, want);
}

#[test]
fn shared_work_is_done_once_under_a_telling_name() {
    let want = "def f(b, h, q_idx, kv_idx):
    separation = (q_idx - kv_idx).abs()
    return (separation <= 40) & (separation % 4 == 0)
";
    let build = |g: &mut Graph| {
        let (q, k) = indices(g);
        let distance = g.binary(BinaryOp::Sub, q, k);
        let far = g.unary(UnaryOp::Abs, distance);
        let (width, four, zero) = (g.int(40), g.int(4), g.int(0));
        let (near, rest) = (g.binary(BinaryOp::Le, far, width), g.binary(BinaryOp::Mod, far, four));
        let even = g.binary(BinaryOp::Eq, rest, zero);
        g.binary(BinaryOp::And, near, even)
    };
    check(ModKind::Mask, build, &want.replace("(q_idx - kv_idx).abs()", "torch.abs(q_idx - kv_idx)"));
}

#[test]
fn reads_that_may_leave_their_tensor_are_clamped() {
    let want = "def f(b, h, q_idx, kv_idx):
    return long[q_idx] + short[kv_idx.clamp(max=7)] + short[(q_idx - kv_idx).clamp(-8, 7)] == short[3]
";
    let build = |g: &mut Graph| {
        let (q, k) = indices(g);
        let long = g.add_capture("long", numbers(100, DType::I32));
        let short = g.add_capture("short", numbers(8, DType::I64));
        let (distance, three) = (g.binary(BinaryOp::Sub, q, k), g.int(3));
        let mut read = |capture, at| g.add(Op::Load(capture, smallvec![at]), None);
        let (a, b, c, d) = (read(long, q), read(short, k), read(short, distance), read(short, three));
        let sum = g.binary(BinaryOp::Add, a, b);
        let sum = g.binary(BinaryOp::Add, sum, c);
        g.binary(BinaryOp::Eq, sum, d)
    };
    check(ModKind::Mask, build, want);
}

#[test]
fn floats_meet_ints_as_in_torch() {
    let want = "def f(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx) * -0.5 + half[q_idx.clamp(max=3)].to(torch.float32) * cap
";
    let build = |g: &mut Graph| {
        let (q, k) = indices(g);
        let half = g.add_capture("half", numbers(4, DType::BF16));
        let cap = g.add_capture("cap", HostTensor::new([], Data::F32(vec![2.0])).expect("one"));
        let distance = g.binary(BinaryOp::Sub, q, k);
        let (distance, slope) = (g.unary(UnaryOp::ToFloat, distance), g.float(-0.5));
        let bias = g.binary(BinaryOp::Mul, distance, slope);
        let score = g.input(crate::ir::graph::Input::Score);
        let sum = g.binary(BinaryOp::Add, score, bias);
        let (read, cap) = (g.add(Op::Load(half, smallvec![q]), None), g.add(Op::Load(cap, smallvec![]), None));
        let more = g.binary(BinaryOp::Mul, read, cap);
        g.binary(BinaryOp::Add, sum, more)
    };
    check(ModKind::Score, build, want);
}

#[test]
fn long_chains_have_a_line_for_each_part() {
    let want = "def f(b, h, q_idx, kv_idx):
    return (
        (q_idx >= 0) & (kv_idx < 1000)
        | (q_idx >= 1) & (kv_idx < 1001)
        | (q_idx >= 2) & (kv_idx < 1002)
        | (q_idx >= 3) & (kv_idx < 1003)
    )
";
    let build = |g: &mut Graph| {
        let (q, k) = indices(g);
        let part = |g: &mut Graph, n: i64| {
            let (from, to) = (g.int(n), g.int(1000 + n));
            let (a, b) = (g.binary(BinaryOp::Ge, q, from), g.binary(BinaryOp::Lt, k, to));
            g.binary(BinaryOp::And, a, b)
        };
        let first = part(g, 0);
        (1..4).fold(first, |all, n| {
            let next = part(g, n);
            g.binary(BinaryOp::Or, all, next)
        })
    };
    check(ModKind::Mask, build, want);
}

#[test]
fn thousands_of_parts_neither_overflow_nor_nest() {
    let mut g = Graph::new();
    let (q, k) = indices(&mut g);
    let mut root = g.binary(BinaryOp::Ge, q, k);
    for n in 0..5000 {
        let n = g.int(n);
        let part = g.binary(BinaryOp::Ne, q, n);
        root = g.binary(if n.0.is_multiple_of(3) { BinaryOp::Or } else { BinaryOp::And }, root, part);
    }
    let of = Mod { kind: ModKind::Mask, graph: g, root, sources: Vec::new() };
    let text = function("f", &of, &mut Names::default(), &any_range);
    assert!(text.lines().all(|line| line.len() < 140), "{text}");
}

#[test]
fn constants_are_tensors() {
    check(
        ModKind::Mask,
        |g| g.bool(true),
        "def f(b, h, q_idx, kv_idx):\n    return q_idx.new_ones((), dtype=torch.bool)",
    );
    let want = "def f(score, b, h, q_idx, kv_idx):\n    return torch.full_like(score, float(\"-inf\"))";
    check(ModKind::Score, |g| g.float(f64::NEG_INFINITY), want);
}

#[test]
fn the_users_own_names_stay() {
    let text = "    gap = q_idx - kv_idx  # tokens\n    return (gap > 1) & (gap < 9) & (gap != 4)\n";
    let mut g = Graph::new();
    let (q, k) = indices(&mut g);
    let start = text.find("q_idx").expect("there") as u32;
    let span = Span::new(SourceId(0), start, start + "q_idx - kv_idx".len() as u32);
    let gap = g.add(Op::Binary(BinaryOp::Sub, q, k), Some(span));
    let parts = [(BinaryOp::Gt, 1), (BinaryOp::Lt, 9), (BinaryOp::Ne, 4)].map(|(op, n)| {
        let n = g.int(n);
        g.binary(op, gap, n)
    });
    let root = g.binary(BinaryOp::And, parts[0], parts[1]);
    let root = g.binary(BinaryOp::And, root, parts[2]);
    let of = Mod { kind: ModKind::Mask, graph: g, root, sources: vec![Source::new("mine.py", text)] };
    let got = function("f", &of, &mut Names::default(), &any_range);
    assert!(got.contains("    gap = q_idx - kv_idx\n    return (gap > 1) & (gap < 9) & (gap != 4)"), "{got}");
}

#[test]
fn names_are_identifiers_and_differ() {
    let mut names = Names::reserving(&["device"]);
    let given = ["q_idx", "self.table[0]", "3d", "device", "class", "", "x", "x"].map(|n| names.fresh(n));
    assert_eq!(given, ["q_idx_2", "self_table_0_", "t_3d", "device_2", "class_2", "t", "x", "x_2"]);
    let tensor = |x| HostTensor::vector(Data::F32(vec![x]));
    assert_eq!(names.tensor("z", &tensor(0.0)), "z");
    assert_eq!(names.tensor("other", &tensor(0.0)), "z");
    assert_eq!(names.tensor("z", &tensor(-0.0)), "z_2");
}

#[test]
fn printed_mods_trace_back_to_the_same() {
    for seed in 0..150 {
        let options = Options { batch: 2, heads: 3, depth: 3 + (seed % 2) as u32, ..Options::new(40, 50) };
        for of in [random::mask(seed, &options), random::score(seed, &options)] {
            let mut names = Names::default();
            let text = format!("import torch\n\n{}", function("f", &of, &mut names, &any_range));
            let mut request = TraceRequest::new(Source::new("printed.py", text.as_str()), "f", of.kind);
            request.globals = names.tensors;
            let traced = trace(&request);
            let again = traced.result.unwrap_or_else(|| panic!("seed {seed}: {:?}\n{text}", traced.diagnostics));
            let mut rng = Rng::new(seed);
            for _ in 0..30 {
                let cell = random::cell(&mut rng, [2, 3, 40, 50]);
                assert_eq!(eval(&again, &cell), eval(&of, &cell), "seed {seed} at {cell:?}\n{text}");
            }
        }
    }
}
