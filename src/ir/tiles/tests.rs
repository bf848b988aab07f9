//! Tiles compared with the interpreter, over random mods.

use crate::base::tensor::Data;
use crate::base::{HostTensor, Lengths};
use crate::ir::cell::{Cell, eval};
use crate::ir::graph::{BinaryOp, Graph, Input, Op};
use crate::ir::random::{self, Options, Rng};
use crate::ir::tiles::*;

fn cell(b: usize, h: usize, q: usize, kv: usize, score: f64) -> Cell {
    Cell { b: b as i64, h: h as i64, q_idx: q as i64, kv_idx: kv as i64, score }
}

fn tiles(rng: &mut Rng, options: &Options) -> (usize, usize, Range<usize>, Range<usize>) {
    let (q, kv) = (rng.below(options.q_len), rng.below(options.kv_len));
    let q = q..q + rng.below(options.q_len - q + 1);
    let kv = kv..kv + rng.below(options.kv_len - kv + 1);
    (rng.below(options.batch), rng.below(options.heads), q, kv)
}

#[test]
fn mask_tiles_equal_the_interpreter() {
    for portable in [true, false] {
        let options = Options { batch: 2, heads: 3, depth: 4, portable, ..Options::new(45, 61) };
        for seed in 0..200 {
            let mask = random::mask(seed, &options);
            let program = Program::new(&mask);
            let mut rng = Rng::new(seed);
            let (b, h, q, kv) = tiles(&mut rng, &options);
            let mut out = vec![7; q.len() * kv.len()];
            program.mask_tile(b, h, q.clone(), kv.clone(), &mut out);
            for (at, got) in out.iter().enumerate() {
                let (q, kv) = (q.start + at / kv.len(), kv.start + at % kv.len());
                let want = eval(&mask, &cell(b, h, q, kv, 0.0)).as_bool();
                assert_eq!(*got, u8::from(want), "seed {seed} at {b}, {h}, {q}, {kv}");
            }
        }
    }
}

/// `(q - kv) * h + score`: the score is read after a register has become free, which is not its own.
#[test]
fn a_score_that_is_read_late_is_the_score() {
    use crate::ir::graph::{Graph, ModKind, UnaryOp};
    let mut g = Graph::new();
    let (q, kv, h) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.input(Input::H));
    let distance = g.binary(BinaryOp::Sub, q, kv);
    let distance = g.unary(UnaryOp::ToFloat, distance);
    let slope = g.unary(UnaryOp::ToFloat, h);
    let bias = g.binary(BinaryOp::Mul, distance, slope);
    let score = g.input(Input::Score);
    let root = g.binary(BinaryOp::Add, bias, score);
    let program = Program::new(&Mod { kind: ModKind::Score, graph: g, root, sources: Vec::new() });
    let mut out = [10.0f32; 6];
    program.score_tile(0, 2, 4..6, 1..4, &mut out);
    assert_eq!(out, [16.0, 14.0, 12.0, 18.0, 16.0, 14.0]);
}

#[test]
fn score_tiles_equal_the_interpreter() {
    for portable in [true, false] {
        let options = Options { batch: 2, heads: 3, depth: 4, portable, ..Options::new(25, 31) };
        for seed in 0..200 {
            let score = random::score(seed, &options);
            let program = Program::new(&score);
            let mut rng = Rng::new(seed);
            let (b, h, q, kv) = tiles(&mut rng, &options);
            let start: Vec<f64> = (0..q.len() * kv.len()).map(|_| f64::from(rng.unit() as f32 * 8.0 - 4.0)).collect();
            let (mut exact, mut single) = (start.clone(), start.iter().map(|x| *x as f32).collect::<Vec<_>>());
            program.score_tile_f64(b, h, q.clone(), kv.clone(), &mut exact);
            program.score_tile(b, h, q.clone(), kv.clone(), &mut single);
            for (at, got) in exact.iter().enumerate() {
                let (q, kv) = (q.start + at / kv.len(), kv.start + at % kv.len());
                let want = eval(&score, &cell(b, h, q, kv, start[at])).as_float();
                assert!(*got == want || (got.is_nan() && want.is_nan()), "seed {seed}: {got} is not {want}");
                if portable {
                    let (got, bound) = (f64::from(single[at]), 1e-4 * (1.0 + want.abs()));
                    assert!(got == want || (got - want).abs() <= bound, "seed {seed}: {got} is not {want}");
                }
            }
        }
    }
}

#[test]
fn wide_tiles_run_in_pieces() {
    let mut graph = Graph::new();
    let (q, kv) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
    let root = graph.binary(BinaryOp::Ge, q, kv);
    let causal = Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() };
    let lengths = Lengths::new(130, 5001).unwrap();
    let dense = dense_mask(&causal, 1, 2, lengths);
    assert_eq!(dense.len(), 2 * 130 * 5001);
    for (at, got) in dense.iter().enumerate() {
        assert_eq!(*got == 1, at / 5001 % 130 >= at % 5001);
    }
}

#[test]
fn ints_that_leave_32_bits_are_computed_in_64() {
    let mut graph = Graph::new();
    let (q, kv) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
    let (product, limit) = (graph.binary(BinaryOp::Mul, q, kv), graph.int(5_000_000_000));
    let root = graph.binary(BinaryOp::Gt, product, limit);
    let mask = Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() };
    let mut out = [0; 2];
    Program::new(&mask).mask_tile(0, 0, 100_000..100_001, 49_999..50_002, &mut [0; 3]);
    Program::new(&mask).mask_tile(0, 0, 100_000..100_001, 50_000..50_002, &mut out);
    assert_eq!(out, [0, 1]);
}

/// Bounds decide most masks' blocks: their tensors are then never read as a whole.
#[test]
fn captured_ints_are_read_when_a_tile_is_evaluated() {
    let mut graph = Graph::new();
    let ids = graph.add_capture("doc", HostTensor::vector(Data::I64(vec![3, 1 << 40])));
    let (q, limit) = (graph.input(Input::QIdx), graph.int(9));
    let id = graph.add(Op::Load(ids, [q].into_iter().collect()), None);
    let root = graph.binary(BinaryOp::Lt, id, limit);
    let program = Program::new(&Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() });
    assert!(program.inner.narrow_to.get().is_none());
    let mut out = [7; 2];
    program.mask_tile(0, 0, 0..2, 0..1, &mut out);
    assert_eq!((out, program.inner.narrow_to.get()), ([1, 0], Some(&0)), "2^40 does not fit into 32 bits");
}

#[test]
fn constant_division_of_narrow_lanes_floors_exactly() {
    use super::kernels::{Src, int_binary};
    let mut rng = Rng::new(1);
    for _ in 0..2000 {
        let by = (1 + i64::from(rng.next_u64() as i32 & i32::MAX)) >> rng.below(31);
        let by = by.clamp(1, i64::from(i32::MAX)) as i32;
        let near = |rng: &mut Rng| {
            let multiple = i64::from(by) * (rng.next_u64() as i32 as i64 >> rng.below(31)) + rng.between(-1, 1);
            multiple.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
        };
        let a = [near(&mut rng), near(&mut rng), i32::MIN, i32::MAX, rng.next_u64() as i32, -1, 0];
        let (mut quotients, mut remainders) = ([0; 7], [0; 7]);
        int_binary(BinaryOp::FloorDiv, &mut quotients, Src::Many(&a), Src::One(by));
        int_binary(BinaryOp::Mod, &mut remainders, Src::Many(&a), Src::One(by));
        for (lane, a) in a.iter().enumerate() {
            assert_eq!((quotients[lane], remainders[lane]), (a.div_euclid(by), a.rem_euclid(by)), "{a} by {by}");
        }
    }
}
