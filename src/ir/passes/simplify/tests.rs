//! Simplified mods have the values of the originals, and the expected form.

use super::simplify;
use crate::base::HostTensor;
use crate::base::tensor::Data;
use crate::ir::cell::{Cell, Value, eval};
use crate::ir::graph::BinaryOp::*;
use crate::ir::graph::{Graph, Input, Mod, ModKind, NodeId, Op, UnaryOp};
use crate::ir::print::expression;
use crate::ir::random::{self, Options, Rng};
use smallvec::smallvec;

fn check(build: impl FnOnce(&mut Build) -> NodeId, want: &str) {
    let mut b = Build::new();
    let root = build(&mut b);
    let kind = if b.g.ty(root) == ir::graph::Ty::Float { ModKind::Score } else { ModKind::Mask };
    let given = Mod { kind, graph: b.g, root, sources: Vec::new() };
    let made = simplify(&given);
    assert_eq!(expression(&made.graph, made.root), want, "from {}", expression(&given.graph, given.root));
    for (q, k) in [(0, 0), (3, 90), (90, 3), (41, 41), (17, 16), (63, 64)] {
        for score in [0.0, -0.0, 1.5, f64::NAN, f64::NEG_INFINITY] {
            let cell = Cell { b: 1, h: 2, q_idx: q, kv_idx: k, score };
            assert!(same_bits(eval(&given, &cell), eval(&made, &cell)), "{want} at {cell:?}");
        }
    }
}

struct Build {
    g: Graph,
    q: NodeId,
    k: NodeId,
    d: NodeId,
}

impl Build {
    fn new() -> Build {
        let mut g = Graph::new();
        let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
        let d = g.binary(Sub, q, k);
        Build { g, q, k, d }
    }

    fn op(&mut self, op: ir::graph::BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        self.g.binary(op, a, b)
    }

    fn by(&mut self, op: ir::graph::BinaryOp, a: NodeId, b: i64) -> NodeId {
        let b = self.g.int(b);
        self.g.binary(op, a, b)
    }

    fn not(&mut self, a: NodeId) -> NodeId {
        self.g.unary(UnaryOp::Not, a)
    }

    fn causal(&mut self) -> NodeId {
        self.g.binary(Ge, self.q, self.k)
    }
}

fn same_bits(a: Value, b: Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
        (a, b) => a.ty() == b.ty() && a == b,
    }
}

#[test]
fn random_mods_keep_every_bit() {
    for seed in 0..600 {
        let options = Options {
            batch: 2,
            heads: 3,
            depth: 3 + (seed % 3) as u32,
            portable: seed % 2 == 0,
            ..Options::new(70, 90)
        };
        for given in [random::mask(seed, &options), random::score(seed, &options)] {
            let made = simplify(&given);
            assert_eq!(made.graph.verify(), Ok(()));
            let mut rng = Rng::new(seed);
            for n in 0..40 {
                let cell = Cell {
                    b: rng.below(2) as i64,
                    h: rng.below(3) as i64,
                    q_idx: rng.below(70) as i64,
                    kv_idx: rng.below(90) as i64,
                    score: match n {
                        0 => f64::NAN,
                        1 => -0.0,
                        2 => f64::NEG_INFINITY,
                        _ => rng.unit() * 6.0 - 3.0,
                    },
                };
                let (want, got) = (eval(&given, &cell), eval(&made, &cell));
                assert!(
                    same_bits(want, got),
                    "seed {seed} at {cell:?}: {want} became {got}\n{}\n{}",
                    expression(&given.graph, given.root),
                    expression(&made.graph, made.root)
                );
            }
        }
    }
}

#[test]
fn simplifying_twice_changes_nothing() {
    for seed in 0..200 {
        let options = Options { batch: 2, heads: 3, depth: 4, ..Options::new(70, 90) };
        let once = simplify(&random::mask(seed, &options));
        assert_eq!(simplify(&once).graph.nodes(), once.graph.nodes(), "seed {seed}");
    }
}

#[test]
fn an_int_against_a_fraction_is_an_int_against_the_next_one() {
    for (op, want) in [(Lt, "q_idx < 3"), (Ge, "q_idx >= 3"), (Le, "q_idx <= 2"), (Gt, "q_idx > 2")] {
        check(
            |b| {
                let (q, bound) = (b.g.unary(UnaryOp::ToFloat, b.q), b.g.float(2.5));
                b.op(op, q, bound)
            },
            want,
        );
    }
}

#[test]
fn a_truth_value_against_a_known_one_is_itself_or_its_opposite() {
    for (op, known, want) in [
        (Xor, true, "q_idx < kv_idx"),
        (Eq, false, "q_idx < kv_idx"),
        (Xor, false, "q_idx >= kv_idx"),
        (Eq, true, "q_idx >= kv_idx"),
    ] {
        check(
            |b| {
                let (causal, known) = (b.causal(), b.g.bool(known));
                b.op(op, causal, known)
            },
            want,
        );
    }
}

#[test]
fn a_choice_within_a_choice_of_the_same_is_made_once() {
    let near = |b: &mut Build| b.by(Le, b.d, 4);
    let choice = |b: &mut Build, c, x, y| b.g.add(Op::Where(c, x, y), None);
    let far = |b: &mut Build, x| b.by(Ge, x, 9);
    check(
        |b| {
            let c = near(b);
            let inner = choice(b, c, b.q, b.d);
            let outer = choice(b, c, inner, b.k);
            far(b, outer)
        },
        "torch.where(q_idx - kv_idx <= 4, q_idx, kv_idx) >= 9",
    );
    check(
        |b| {
            let c = near(b);
            let inner = choice(b, c, b.d, b.k);
            let outer = choice(b, c, b.q, inner);
            far(b, outer)
        },
        "torch.where(q_idx - kv_idx <= 4, q_idx, kv_idx) >= 9",
    );
    // of truth values: nothing where the condition holds
    check(
        |b| {
            let (c, nothing, causal) = (near(b), b.g.bool(false), b.causal());
            choice(b, c, nothing, causal)
        },
        "(q_idx - kv_idx > 4) & (q_idx >= kv_idx)",
    );
}

#[test]
fn a_number_outside_of_a_table_reads_its_edge() {
    check(
        |b| {
            let table = HostTensor::new([2, 100], Data::I32((0..200).collect())).expect("a table");
            let (table, at) = (b.g.add_capture("t", table), b.g.int(40));
            let read = b.g.add(Op::Load(table, smallvec![at, b.q]), None);
            b.op(Ge, read, b.k)
        },
        "t[1, q_idx] >= kv_idx",
    );
}

#[test]
fn a_learned_tensor_keeps_both_of_its_reads() {
    // of the larger of two equal ones each gets half of the gradient: one read alone would get all of it
    let of = |kind| {
        let mut b = Build::new();
        let table = b.g.add_capture("t", HostTensor::vector(Data::F32(vec![5.0, 6.0])));
        let read = b.g.add(Op::Load(table, smallvec![b.q]), None);
        let larger = b.op(Max, read, read);
        let root = match kind {
            ModKind::Score => larger,
            ModKind::Mask => b.op(Ge, larger, read),
        };
        let made = simplify(&Mod { kind, graph: b.g, root, sources: Vec::new() });
        expression(&made.graph, made.root)
    };
    assert!(of(ModKind::Score).contains("max"), "{}", of(ModKind::Score));
    assert!(!of(ModKind::Mask).contains("max"), "{}", of(ModKind::Mask));
}

#[test]
fn literals_fold_where_32_bits_hold_them() {
    check(|b| b.by(Add, b.q, 3).pipe(|x| b.by(Add, x, 4)).pipe(|x| b.op(Ge, x, b.k)), "q_idx + 7 >= kv_idx");
    check(
        |b| {
            let (huge, two) = (b.g.int(1 << 30), b.g.int(4));
            let product = b.op(Mul, huge, two);
            let far = b.op(Mul, b.q, product);
            b.op(Ge, far, b.k)
        },
        "q_idx * (1073741824 * 4) >= kv_idx",
    );
    check(
        |b| {
            let (x, y) = (b.g.float(0.1), b.g.float(0.2));
            let sum = b.op(Add, x, y);
            let score = b.g.input(Input::Score);
            b.op(Mul, score, sum)
        },
        "score * 0.30000001192092896",
    );
}

#[test]
fn comparisons_are_normalised() {
    check(|b| b.op(Le, b.k, b.q), "q_idx >= kv_idx");
    check(|b| b.by(Ge, b.d, 0), "q_idx >= kv_idx");
    check(|b| b.by(Sub, b.d, 5).pipe(|x| b.by(Le, x, 40)), "q_idx - kv_idx <= 45");
    check(|b| b.g.int(5).pipe(|five| b.op(Lt, five, b.k)), "kv_idx > 5");
    check(|b| b.by(Ge, b.q, 0), "True");
    check(|b| b.by(Mod, b.q, 8).pipe(|x| b.by(Lt, x, 8)), "True");
    check(
        |b| {
            let (far, half) = (b.g.unary(UnaryOp::Abs, b.d), b.g.float(2.5));
            let far = b.g.unary(UnaryOp::ToFloat, far);
            b.op(Le, far, half)
        },
        "torch.abs(q_idx - kv_idx) <= 2",
    );
    check(
        |b| {
            let bit = b.causal();
            let bit = b.g.unary(UnaryOp::ToInt, bit);
            b.by(Eq, bit, 0)
        },
        "q_idx < kv_idx",
    );
}

#[test]
fn division_by_constants_is_undone_where_it_cancels() {
    check(
        |b| {
            let at = b.by(Mul, b.q, 64);
            let rest = b.by(Mod, b.k, 64);
            let sum = b.op(Add, at, rest);
            let block = b.by(FloorDiv, sum, 64);
            b.op(Ge, block, b.k)
        },
        "q_idx >= kv_idx",
    );
    check(
        |b| b.by(FloorDiv, b.q, 8).pipe(|x| b.by(FloorDiv, x, 4)).pipe(|x| b.op(Ge, x, b.k)),
        "q_idx // 32 >= kv_idx",
    );
    check(|b| b.by(Mod, b.q, 64).pipe(|x| b.by(Mod, x, 16)).pipe(|x| b.op(Ge, x, b.k)), "q_idx % 16 >= kv_idx");
    check(|b| b.by(TruncDiv, b.q, 8).pipe(|x| b.op(Ge, x, b.k)), "q_idx // 8 >= kv_idx");
    check(|b| b.by(Mod, b.q, 1).pipe(|x| b.op(Eq, x, b.k)), "kv_idx == 0");
}

#[test]
fn truth_values_absorb_each_other() {
    check(
        |b| {
            let (causal, yes) = (b.causal(), b.g.bool(true));
            let both = b.op(And, yes, causal);
            let near = b.by(Le, b.d, 9);
            let any = b.op(Or, causal, near);
            b.op(And, both, any)
        },
        "q_idx >= kv_idx",
    );
    check(|b| b.causal().pipe(|x| b.not(x)).pipe(|x| b.not(x)), "q_idx >= kv_idx");
    check(|b| b.causal().pipe(|x| b.not(x)), "q_idx < kv_idx");
    check(
        |b| {
            let causal = b.causal();
            let other = b.not(causal);
            b.op(And, causal, other)
        },
        "False",
    );
    check(
        |b| {
            let (causal, near) = (b.causal(), b.by(Le, b.d, 9));
            let both = b.op(And, causal, near);
            b.not(both)
        },
        "(q_idx < kv_idx) | (q_idx - kv_idx > 9)",
    );
    // the negations would cost something here
    check(
        |b| {
            let table = b.g.add_capture("keep", HostTensor::vector(Data::Bool(vec![1, 0, 1])));
            let (x, y) =
                (b.g.add(Op::Load(table, smallvec![b.q]), None), b.g.add(Op::Load(table, smallvec![b.k]), None));
            let both = b.op(And, x, y);
            b.not(both)
        },
        "~(keep[q_idx] & keep[kv_idx])",
    );
    check(
        |b| {
            let (c, yes, near) = (b.causal(), b.g.bool(true), b.by(Le, b.d, 9));
            b.g.add(Op::Where(c, yes, near), None)
        },
        "(q_idx >= kv_idx) | (q_idx - kv_idx <= 9)",
    );
}

#[test]
fn floats_keep_their_signed_zeros_and_nans() {
    let score = |b: &mut Build| b.g.input(Input::Score);
    check(|b| score(b).pipe(|s| (s, b.g.float(0.0))).pipe(|(s, z)| b.op(Add, s, z)), "score + 0.0");
    check(|b| score(b).pipe(|s| (s, b.g.float(0.0))).pipe(|(s, z)| b.op(Sub, s, z)), "score");
    check(|b| score(b).pipe(|s| (s, b.g.float(1.0))).pipe(|(s, z)| b.op(Div, s, z)), "score");
    check(|b| score(b).pipe(|s| (s, b.g.float(0.0))).pipe(|(s, z)| b.op(Mul, s, z)), "score * 0.0");
    check(|b| score(b).pipe(|s| b.op(Sub, s, s)), "score - score");
    check(|b| score(b).pipe(|s| (s, b.g.float(2.5))).pipe(|(s, z)| b.op(Sub, s, z)), "score - 2.5");
    check(|b| score(b).pipe(|s| b.op(Eq, s, s)), "score == score");
}

#[test]
fn what_is_not_needed_goes() {
    let mut b = Build::new();
    let unused = b.g.add_capture("unused", HostTensor::vector(Data::I32(vec![1; 9])));
    b.g.add(Op::Load(unused, smallvec![b.q]), None);
    let table = b.g.add_capture("cap", HostTensor::vector(Data::I32(vec![4, 5])));
    let one = b.g.int(-1);
    let cap = b.g.add(Op::Load(table, smallvec![one]), None);
    let root = b.op(Ge, b.q, cap);
    let made = simplify(&Mod { kind: ModKind::Mask, graph: b.g, root, sources: Vec::new() });
    assert!(made.graph.captures().is_empty() && made.graph.nodes().len() == 3);
    assert_eq!(expression(&made.graph, made.root), "q_idx >= 5");
}

#[test]
fn a_chain_of_thousands_ends() {
    let mut b = Build::new();
    let mut root = b.causal();
    for n in 0..4000 {
        let part = b.by(Ne, b.q, n);
        root = b.op(if n % 5 == 0 { Or } else { And }, root, part);
    }
    let given = Mod { kind: ModKind::Mask, graph: b.g, root, sources: Vec::new() };
    // `bench language` measures its time
    let made = simplify(&given);
    assert_eq!(made.graph.verify(), Ok(()));
}

trait Pipe: Sized {
    fn pipe<T>(self, f: impl FnOnce(Self) -> T) -> T {
        f(self)
    }
}

impl<T> Pipe for T {}
