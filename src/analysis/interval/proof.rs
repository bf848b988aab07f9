//! Float masks near their boundaries: a decision by intervals over a block holds in every cell.

use super::{Cells, Program};
use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};
use crate::ir::cell::{Cell, eval};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, NodeId, Op, Ty, UnaryOp};
use crate::ir::random::Rng;
use smallvec::smallvec;

/// Blocks that must be decided, so that the proof is one.
const DECIDED: usize = 20_000;
/// Side of a block at most.
const SIDE: usize = 5;
/// Farthest corner of a block.
const FAR: usize = 300;

struct Maker {
    graph: Graph,
    rng: Rng,
}

impl Maker {
    fn number(&mut self) -> NodeId {
        let x = *self.rng.pick(&[0.1, 0.3, 0.7, 1.3, 2.7, 1.0 / 3.0, 0.5, -0.7, 10.0, 100.7, 16_777_216.0, 1e-3, 3e38]);
        self.graph.float(x)
    }

    /// A float32 of the indices; every fourth by way of a captured tensor.
    fn leaf(&mut self) -> NodeId {
        let input = *self.rng.pick(&[Input::QIdx, Input::KvIdx]);
        let index = self.graph.input(input);
        if self.rng.chance(25) {
            let values: Vec<f32> = (0..FAR + SIDE).map(|i| i as f32 / 100.0 + self.rng.unit() as f32 * 1e-3).collect();
            let table = self.graph.add_capture("table", HostTensor::vector(Data::F32(values)));
            return self.graph.add(Op::Load(table, smallvec![index]), None);
        }
        self.graph.unary(UnaryOp::ToFloat, index)
    }

    fn float(&mut self, depth: usize) -> NodeId {
        use BinaryOp::*;
        use UnaryOp::*;
        if depth == 0 {
            return self.leaf();
        }
        let a = self.float(depth - 1);
        match self.rng.below(9) {
            0..=3 => {
                let by = self.number();
                let op = *self.rng.pick(&[Mul, Div, Add, Sub, Mul, Div, FloorDiv, Mod, Fmod, Pow, Min, Max]);
                self.graph.binary(op, a, by)
            }
            4 | 5 => {
                let b = self.float(depth - 1);
                let op = *self.rng.pick(&[Add, Sub, Sub, Mul, Div, Min, Max, Atan2, Pow, Mod]);
                self.graph.binary(op, a, b)
            }
            6 => {
                let op = *self.rng.pick(&[
                    Neg,
                    Abs,
                    Exp,
                    Exp2,
                    Log,
                    Log2,
                    Log1p,
                    Expm1,
                    Sqrt,
                    Rsqrt,
                    Sin,
                    Cos,
                    Tanh,
                    Sigmoid,
                    Erf,
                    Floor,
                    Ceil,
                    Round,
                    Trunc,
                    As(DType::F16),
                    As(DType::BF16),
                    As(DType::F32),
                ]);
                self.graph.unary(op, a)
            }
            7 => {
                let double = self.graph.unary(ToDouble, a);
                let by = self.number();
                let by = self.graph.unary(ToDouble, by);
                let op = *self.rng.pick(&[Add, Sub, Mul, Div]);
                let sum = self.graph.binary(op, double, by);
                self.graph.unary(ToFloat, sum)
            }
            _ => {
                let cast = *self.rng.pick(&[ToInt, ToInt32]);
                let whole = self.graph.unary(cast, a);
                let dtype = *self.rng.pick(&[DType::U8, DType::I8, DType::I16, DType::I32, DType::I64]);
                let kept = self.graph.unary(As(dtype), whole);
                self.graph.unary(ToFloat, kept)
            }
        }
    }

    /// A comparison with its boundary through or along the block at (q, k): its right side is the left side's value
    /// there, or differs by a unit in the last place.
    fn mask(mut self, q: usize, k: usize) -> Option<Mod> {
        use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
        let depth = 1 + self.rng.below(3);
        let left = self.float(depth);
        let op = *self.rng.pick(&[Lt, Le, Gt, Ge, Eq, Ne]);
        let right = if self.rng.chance(75) {
            let probe = Mod { kind: ModKind::Score, graph: self.graph.clone(), root: left, sources: Vec::new() };
            let at = eval(&probe, &cell(q, k)).as_float() as f32;
            if !at.is_finite() {
                return None;
            }
            let steps = self.rng.between(-1, 1);
            let near = if at == 0.0 { at } else { f32::from_bits((i64::from(at.to_bits()) + steps) as u32) };
            self.graph.float(f64::from(near))
        } else {
            let depth = self.rng.below(3);
            self.float(depth)
        };
        let root = self.graph.binary(op, left, right);
        debug_assert_eq!(self.graph.ty(root), Ty::Bool);
        Some(Mod { kind: ModKind::Mask, graph: self.graph, root, sources: Vec::new() })
    }
}

fn cell(q: usize, k: usize) -> Cell {
    Cell { q_idx: q as i64, kv_idx: k as i64, ..Cell::default() }
}

#[test]
fn what_intervals_decide_of_float_masks_holds_in_every_cell() {
    let (mut decided, mut full, mut empty) = (0, 0, 0);
    let mut seed = 0;
    while decided < DECIDED {
        seed += 1;
        assert!(seed < 40_000, "intervals decide too little: {decided} blocks");
        let mut rng = Rng::new(seed);
        let (q, k) = (rng.below(FAR), rng.below(FAR));
        let Some(mask) = (Maker { graph: Graph::new(), rng: rng.clone() }).mask(q, k) else { continue };
        let program = Program::new(&mask);
        let mut scratch = program.scratch();
        for _ in 0..8 {
            let near = |rng: &mut Rng, at: usize| (at + rng.below(9)).saturating_sub(4).min(FAR - 1);
            let (from_q, from_k) = (near(&mut rng, q), near(&mut rng, k));
            let (rows, columns) = (1 + rng.below(SIDE), 1 + rng.below(SIDE));
            let cells = Cells::new(0, 0, from_q..from_q + rows, from_k..from_k + columns);
            let Some(value) = program.truth(&cells, &mut scratch).value() else { continue };
            decided += 1;
            *(if value { &mut full } else { &mut empty }) += 1;
            for (q, k) in (from_q..from_q + rows).flat_map(|q| (from_k..from_k + columns).map(move |k| (q, k))) {
                let kept = eval(&mask, &cell(q, k)).as_bool();
                let text = crate::ir::print::expression(&mask.graph, mask.root);
                assert_eq!(kept, value, "seed {seed}, {text} at {q}, {k} in {cells:?}");
            }
        }
    }
    assert!(full > DECIDED / 10 && empty > DECIDED / 10, "{full} full and {empty} empty");
}
