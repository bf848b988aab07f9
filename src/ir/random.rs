//! Random well-typed mods, for property tests and for `conform --random`.
//!
//! Invariant: the same seed and options give the same mod on every machine. Must not know the tests.

pub use crate::base::rng::Rng;

use super::graph::{BinaryOp, Graph, Input, Mod, ModKind, NodeId, Op, Ty, UnaryOp};
use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};
use half::{bf16, f16};
use smallvec::smallvec;
use std::sync::LazyLock;

/// The allowed features of the mods, and their cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Batch entries.
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    /// Query tokens.
    pub q_len: usize,
    /// Key and value tokens.
    pub kv_len: usize,
    /// Nesting of the expressions; 3 or 4 gives typical mods, 6 large ones.
    pub depth: u32,
    /// Only what gives the same answer on every backend: indices of loads stay in bounds, divisors are not zero, ints
    /// stay far inside i32, masks decide on floats that f32 holds exactly, scores are continuous where not masked.
    /// Otherwise every operation there is, at any operand.
    pub portable: bool,
}

impl Options {
    /// One batch entry and head, moderate nesting.
    pub fn new(q_len: usize, kv_len: usize) -> Options {
        Options { batch: 1, heads: 1, q_len, kv_len, depth: 3, portable: true }
    }
}

/// A random mask mod.
pub fn mask(seed: u64, options: &Options) -> Mod {
    let mut make = Maker::new(seed, options);
    let mut root = make.pattern();
    for _ in 0..make.rng.below(3) {
        let other = if make.rng.chance(60) { make.pattern() } else { make.bool(options.depth) };
        let op = *make.rng.pick(&[BinaryOp::And, BinaryOp::And, BinaryOp::Or, BinaryOp::Xor]);
        root = make.graph.binary(op, root, other);
    }
    if make.rng.chance(10) {
        root = make.graph.unary(UnaryOp::Not, root);
    }
    make.finish(ModKind::Mask, root)
}

/// A random score mod; it may mask by -inf.
pub fn score(seed: u64, options: &Options) -> Mod {
    let mut make = Maker::new(seed, options);
    let mut root = make.graph.input(Input::Score);
    for _ in 0..1 + make.rng.below(3) {
        root = make.score_step(root);
    }
    // last, because -inf through a sine is NaN
    if make.rng.chance(30) {
        let (keep, low) = (make.pattern(), make.graph.float(f64::NEG_INFINITY));
        root = make.graph.add(Op::Where(keep, root, low), None);
    }
    if !options.portable && make.rng.chance(50) {
        let other = make.float(options.depth, Some(root));
        root = make.graph.binary(BinaryOp::Add, root, other);
    }
    make.finish(ModKind::Score, root)
}

/// Portable ints stay within this.
const FAR: i64 = 1 << 24;

/// An int node and the largest magnitude that it can have.
#[derive(Clone, Copy)]
struct Int {
    id: NodeId,
    most: i64,
}

struct Maker<'a> {
    rng: Rng,
    graph: Graph,
    options: &'a Options,
}

impl<'a> Maker<'a> {
    fn new(seed: u64, options: &'a Options) -> Self {
        Self { rng: Rng::new(seed ^ 0x6d61_736b_6c6f_6f6d), graph: Graph::new(), options }
    }

    fn finish(self, kind: ModKind, root: NodeId) -> Mod {
        debug_assert_eq!(self.graph.verify(), Ok(()));
        Mod { kind, graph: self.graph, root, sources: Vec::new() }
    }

    fn longest(&self) -> i64 {
        self.options.q_len.max(self.options.kv_len) as i64
    }

    fn q(&mut self) -> NodeId {
        self.graph.input(Input::QIdx)
    }

    fn kv(&mut self) -> NodeId {
        self.graph.input(Input::KvIdx)
    }

    /// Typical masks: these have full and empty blocks, which random expressions rarely have.
    fn pattern(&mut self) -> NodeId {
        use BinaryOp::*;
        let (q, kv) = (self.q(), self.kv());
        let width = self.rng.between(1, self.longest());
        let width = self.graph.int(width);
        let distance = self.graph.binary(Sub, q, kv);
        match self.rng.below(8) {
            0 => self.graph.binary(Ge, q, kv),
            1 => self.graph.binary(Le, distance, width),
            2 => {
                let distance = self.graph.unary(UnaryOp::Abs, distance);
                self.graph.binary(Lt, distance, width)
            }
            3 => {
                let (a, b) = (self.graph.binary(FloorDiv, q, width), self.graph.binary(FloorDiv, kv, width));
                let op = *self.rng.pick(&[Eq, Ge]);
                self.graph.binary(op, a, b)
            }
            4 => self.same_document(q, kv),
            5 => {
                let causal = self.graph.binary(Ge, q, kv);
                let prefix = self.graph.binary(Lt, kv, width);
                self.graph.binary(Or, causal, prefix)
            }
            6 => {
                let rest = self.graph.binary(Mod, distance, width);
                let zero = self.graph.int(0);
                self.graph.binary(Eq, rest, zero)
            }
            _ => self.bool(self.options.depth),
        }
    }

    fn same_document(&mut self, q: NodeId, kv: NodeId) -> NodeId {
        let mut document = 0;
        let ids: Vec<i32> = (0..self.longest())
            .map(|_| {
                document += i32::from(self.rng.chance(8));
                document
            })
            .collect();
        let table = self.graph.add_capture("doc", HostTensor::vector(Data::I32(ids)));
        let (a, b) =
            (self.graph.add(Op::Load(table, smallvec![q]), None), self.graph.add(Op::Load(table, smallvec![kv]), None));
        self.graph.binary(BinaryOp::Eq, a, b)
    }

    fn bool(&mut self, depth: u32) -> NodeId {
        use BinaryOp::*;
        if depth == 0 {
            let (q, kv) = (self.q(), self.kv());
            let op = *self.rng.pick(&[Lt, Le, Gt, Ge, Eq, Ne]);
            return self.graph.binary(op, q, kv);
        }
        match self.rng.below(12) {
            0..=4 => {
                let (a, b) = (self.int(depth - 1).id, self.int(depth - 1).id);
                let op = *self.rng.pick(&[Lt, Le, Gt, Ge, Eq, Ne]);
                self.graph.binary(op, a, b)
            }
            5 | 6 => {
                let (a, b) = (self.bool(depth - 1), self.bool(depth - 1));
                let op = *self.rng.pick(&[And, Or, Xor, Eq, Ne]);
                self.graph.binary(op, a, b)
            }
            7 => {
                let a = self.bool(depth - 1);
                self.graph.unary(UnaryOp::Not, a)
            }
            8 => {
                let (c, a, b) = (self.bool(depth - 1), self.bool(depth - 1), self.bool(depth - 1));
                self.graph.add(Op::Where(c, a, b), None)
            }
            9 => self.load(Ty::Bool, depth).0,
            10 => {
                let a = self.int(depth - 1).id;
                self.graph.unary(UnaryOp::ToBool, a)
            }
            _ if !self.options.portable && self.rng.chance(25) => {
                let (a, b) = (self.double(depth, None), self.double(depth, None));
                let op = *self.rng.pick(&[Lt, Le, Gt, Ge, Eq]);
                self.graph.binary(op, a, b)
            }
            _ => {
                let (a, b) = (self.float(depth - 1, None), self.float(depth - 1, None));
                let op = *self.rng.pick(&[Lt, Le, Gt, Ge]);
                self.graph.binary(op, a, b)
            }
        }
    }

    fn leaf(&mut self) -> Int {
        let longest = self.longest();
        let (batch, heads) = (self.options.batch as i64, self.options.heads as i64);
        let (input, most) = match self.rng.below(8) {
            0..=2 => (Input::QIdx, longest),
            3..=5 => (Input::KvIdx, longest),
            6 if heads > 1 => (Input::H, heads),
            6 | 7 if batch > 1 => (Input::B, batch),
            _ => {
                let value = self.rng.between(-3, longest);
                return Int { id: self.graph.int(value), most: value.abs() };
            }
        };
        Int { id: self.graph.input(input), most }
    }

    fn int(&mut self, depth: u32) -> Int {
        if depth == 0 {
            return self.leaf();
        }
        let made = match self.rng.below(12) {
            0..=3 => self.sum_or_bound(depth),
            4..=6 => self.by_constant(depth),
            7 if !self.options.portable && self.rng.chance(40) => {
                let a = self.int(depth - 1);
                let dtype = *self.rng.pick(&[DType::U8, DType::I8, DType::I16, DType::I32, DType::I64]);
                Int { id: self.graph.unary(UnaryOp::As(dtype), a.id), most: a.most }
            }
            7 => {
                let a = self.int(depth - 1);
                let op = *self.rng.pick(&[UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Not]);
                Int { id: self.graph.unary(op, a.id), most: a.most.saturating_add(1) }
            }
            8 => {
                let c = self.bool(depth - 1);
                let (a, b) = (self.int(depth - 1), self.int(depth - 1));
                Int { id: self.graph.add(Op::Where(c, a.id, b.id), None), most: a.most.max(b.most) }
            }
            9 => {
                let (id, most) = self.load(Ty::Int, depth);
                Int { id, most }
            }
            10 => {
                let a = self.bool(depth - 1);
                Int { id: self.graph.unary(UnaryOp::ToInt, a), most: 1 }
            }
            _ => self.by_anything(depth),
        };
        if made.most > FAR && self.options.portable {
            let n = self.rng.between(2, self.longest().max(2));
            let by = self.graph.int(n);
            return Int { id: self.graph.binary(BinaryOp::Mod, made.id, by), most: n };
        }
        made
    }

    fn sum_or_bound(&mut self, depth: u32) -> Int {
        use BinaryOp::*;
        let (a, b) = (self.int(depth - 1), self.int(depth - 1));
        let op = *self.rng.pick(&[Add, Sub, Sub, Min, Max, Mul, And, Or, Xor]);
        let most = match op {
            Mul => a.most.saturating_mul(b.most),
            And | Or | Xor => a.most.max(b.most).saturating_mul(2),
            _ => a.most.saturating_add(b.most),
        };
        Int { id: self.graph.binary(op, a.id, b.id), most }
    }

    fn by_constant(&mut self, depth: u32) -> Int {
        use BinaryOp::*;
        let a = self.int(depth - 1);
        let (op, n) = match self.rng.below(7) {
            0 | 1 => (FloorDiv, self.divisor()),
            2 | 3 => (Mod, self.divisor()),
            4 => (TruncDiv, self.divisor()),
            5 => (Shr, self.rng.between(0, 6)),
            _ => (Shl, self.rng.between(0, 4)),
        };
        let most = match op {
            Mod => n.abs(),
            Shl => a.most.saturating_mul(1 << n),
            _ => a.most.saturating_add(1),
        };
        let by = self.graph.int(n);
        Int { id: self.graph.binary(op, a.id, by), most }
    }

    fn divisor(&mut self) -> i64 {
        match self.rng.below(4) {
            0 | 1 => 1 << self.rng.between(0, 6),
            2 if !self.options.portable => self.rng.between(-9, 9),
            _ => self.rng.between(1, self.longest().max(2)),
        }
    }

    /// Division and shifts by any value; portable ones by a positive value.
    fn by_anything(&mut self, depth: u32) -> Int {
        use BinaryOp::*;
        let (a, b) = (self.int(depth - 1), self.int(depth - 1));
        if !self.options.portable {
            let op = *self.rng.pick(&OF_INTS);
            return Int { id: self.graph.binary(op, a.id, b.id), most: i64::MAX };
        }
        let magnitude = self.graph.unary(UnaryOp::Abs, b.id);
        let one = self.graph.int(1);
        let positive = self.graph.binary(Add, magnitude, one);
        let op = *self.rng.pick(&[FloorDiv, Mod]);
        Int { id: self.graph.binary(op, a.id, positive), most: a.most.max(b.most.saturating_add(1)) }
    }

    /// A read of a new captured tensor of one or two dimensions, and the largest magnitude in it.
    fn load(&mut self, ty: Ty, depth: u32) -> (NodeId, i64) {
        let rank = 1 + self.rng.below(2);
        let shape: Vec<usize> = (0..rank).map(|_| 1 + self.rng.below(self.longest() as usize * 2)).collect();
        let shape = if rank == 2 { vec![shape[0].min(64), shape[1].min(64)] } else { shape };
        let (data, most) = self.data(ty, shape.iter().product());
        let tensor = HostTensor::new(shape.clone(), data).expect("as many elements as the shape says");
        let capture = self.graph.add_capture("t", tensor);
        let index = shape.iter().map(|n| self.index(*n, depth)).collect();
        (self.graph.add(Op::Load(capture, index), None), most)
    }

    fn index(&mut self, n: usize, depth: u32) -> NodeId {
        let index = self.int(depth.saturating_sub(2)).id;
        if !self.options.portable && self.rng.chance(60) {
            return index;
        }
        let n = self.graph.int(n as i64);
        self.graph.binary(BinaryOp::Mod, index, n)
    }

    fn data(&mut self, ty: Ty, n: usize) -> (Data, i64) {
        let rng = &mut self.rng;
        match (ty, rng.below(3)) {
            (Ty::Bool, _) => (Data::Bool((0..n).map(|_| u8::from(rng.chance(50))).collect()), 1),
            (Ty::Int, 0) => (Data::I64((0..n).map(|_| rng.between(-50, 99)).collect()), 99),
            (Ty::Int, 1) => (Data::I32((0..n).map(|_| rng.between(0, 20) as i32).collect()), 20),
            (Ty::Int, _) => (Data::U8((0..n).map(|_| rng.between(0, 255) as u8).collect()), 255),
            // eighths: exact in every width
            (Ty::Float, 0) => (Data::F32((0..n).map(|_| rng.between(-32, 32) as f32 / 8.0).collect()), 4),
            (Ty::Float, 1) => {
                (Data::F16((0..n).map(|_| f16::from_f64(rng.between(-32, 32) as f64 / 8.0)).collect()), 4)
            }
            (Ty::Double, _) => (Data::F64((0..n).map(|_| rng.between(-32, 32) as f64 / 10.0).collect()), 4),
            (Ty::Float, _) => {
                (Data::BF16((0..n).map(|_| bf16::from_f64(rng.between(-32, 32) as f64 / 8.0)).collect()), 4)
            }
        }
    }

    /// A float: of ints and dyadic constants where portable, so that f32 holds it exactly; anything otherwise.
    fn float(&mut self, depth: u32, score: Option<NodeId>) -> NodeId {
        use BinaryOp::*;
        if depth == 0 {
            if let Some(score) = score.filter(|_| self.rng.chance(40)) {
                return score;
            }
            let a = self.leaf().id;
            return self.graph.unary(UnaryOp::ToFloat, a);
        }
        match self.rng.below(if self.options.portable { 5 } else { 11 }) {
            0 => {
                let a = self.float(depth - 1, score);
                let by = self.graph.float(0.5);
                self.graph.binary(Mul, a, by)
            }
            1 => {
                let (a, b) = (self.float(depth - 1, score), self.float(depth - 1, score));
                let op = *self.rng.pick(&[Add, Sub, Min, Max]);
                self.graph.binary(op, a, b)
            }
            2 => self.load(Ty::Float, depth).0,
            3 => {
                let a = self.float(depth - 1, score);
                let op = *self.rng.pick(&[UnaryOp::Abs, UnaryOp::Neg, UnaryOp::Floor, UnaryOp::Ceil]);
                self.graph.unary(op, a)
            }
            4 => {
                let (c, a) = (self.bool(depth - 1), self.float(depth - 1, score));
                let b = self.constant();
                self.graph.add(Op::Where(c, a, b), None)
            }
            5 | 6 => {
                let (a, b) = (self.float(depth - 1, score), self.float(depth - 1, score));
                let op = *self.rng.pick(&OF_FLOATS);
                self.graph.binary(op, a, b)
            }
            7 => {
                let a = self.float(depth - 1, score);
                let op = *self.rng.pick(&FUNCTIONS);
                self.graph.unary(op, a)
            }
            8 => {
                let a = self.float(depth - 1, score);
                let dtype = *self.rng.pick(&[DType::F16, DType::BF16, DType::F32]);
                self.graph.unary(UnaryOp::As(dtype), a)
            }
            9 => {
                let double = self.double(depth, score);
                self.graph.unary(UnaryOp::ToFloat, double)
            }
            _ => {
                let a = self.float(depth - 1, score);
                let cast = if self.rng.chance(50) { UnaryOp::ToInt } else { UnaryOp::ToInt32 };
                let whole = self.graph.unary(cast, a);
                self.graph.unary(UnaryOp::ToFloat, whole)
            }
        }
    }

    /// A float64: of floats, ints, numbers and captured tensors.
    fn double(&mut self, depth: u32, score: Option<NodeId>) -> NodeId {
        use BinaryOp::*;
        let a = if self.rng.chance(50) { self.float(depth - 1, score) } else { self.int(depth - 1).id };
        let a = self.graph.unary(UnaryOp::ToDouble, a);
        let b = match self.rng.below(3) {
            0 => self.load(Ty::Double, depth).0,
            _ => {
                let number = self.constant();
                self.graph.unary(UnaryOp::ToDouble, number)
            }
        };
        let op = *self.rng.pick(&[Add, Sub, Mul, Div, FloorDiv, Mod, Fmod, Min, Max]);
        self.graph.binary(op, a, b)
    }

    fn constant(&mut self) -> NodeId {
        let wild = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.1, 1e-300];
        let value = if !self.options.portable && self.rng.chance(50) {
            *self.rng.pick(&wild)
        } else {
            self.rng.between(-16, 16) as f64 / 4.0
        };
        self.graph.float(value)
    }

    /// One thing that score mods do to a score; continuous in it, and of moderate size.
    fn score_step(&mut self, score: NodeId) -> NodeId {
        use BinaryOp::*;
        match self.rng.below(7) {
            0 => {
                let slope = self.graph.float([0.125, 0.25, 0.0625][self.rng.below(3)]);
                let (q, kv) = (self.q(), self.kv());
                let distance = self.graph.binary(Sub, kv, q);
                let distance = self.graph.unary(UnaryOp::ToFloat, distance);
                let bias = self.graph.binary(Mul, distance, slope);
                self.graph.binary(Add, score, bias)
            }
            1 => {
                let cap = self.rng.between(1, 50) as f64;
                let cap = self.graph.float(cap);
                let scaled = self.graph.binary(Div, score, cap);
                let bent = self.graph.unary(UnaryOp::Tanh, scaled);
                self.graph.binary(Mul, bent, cap)
            }
            2 => {
                let bias = self.load(Ty::Float, 3).0;
                self.graph.binary(Add, score, bias)
            }
            3 => {
                let c = self.rng.between(1, 12) as f64 / 8.0;
                let c = self.graph.float(c);
                self.graph.binary(Mul, score, c)
            }
            4 => {
                let (c, bias) = (self.bool(2), self.rng.between(-8, 8) as f64 / 4.0);
                let (bias, zero) = (self.graph.float(bias), self.graph.float(0.0));
                let bias = self.graph.add(Op::Where(c, bias, zero), None);
                self.graph.binary(Add, score, bias)
            }
            5 => {
                let op = *self.rng.pick(&[UnaryOp::Sigmoid, UnaryOp::Sin, UnaryOp::Cos, UnaryOp::Erf, UnaryOp::Abs]);
                let bent = self.graph.unary(op, score);
                let two = self.graph.float(2.0);
                self.graph.binary(Mul, bent, two)
            }
            _ => {
                let op = *self.rng.pick(&[Min, Max]);
                let bound = self.rng.between(-12, 12) as f64 / 4.0;
                let bound = self.graph.float(bound);
                self.graph.binary(op, score, bound)
            }
        }
    }
}

/// Functions of floats that are drawn.
static FUNCTIONS: LazyLock<Vec<UnaryOp>> =
    LazyLock::new(|| UnaryOp::all().into_iter().filter(|op| op.row().drawn).collect());
/// Operations on any two ints, if the mod need not be portable.
static OF_INTS: LazyLock<Vec<BinaryOp>> =
    LazyLock::new(|| BinaryOp::ALL.iter().copied().filter(|op| op.row().drawn_of_ints).collect());
/// The same of floats.
static OF_FLOATS: LazyLock<Vec<BinaryOp>> =
    LazyLock::new(|| BinaryOp::ALL.iter().copied().filter(|op| op.row().drawn_of_floats).collect());

/// A cell of these extents (batch, heads, queries, keys), with a score between -3 and 3.
pub fn cell(rng: &mut Rng, [batch, heads, q_len, kv_len]: [usize; 4]) -> ir::cell::Cell {
    ir::cell::Cell {
        b: rng.below(batch) as i64,
        h: rng.below(heads) as i64,
        q_idx: rng.below(q_len) as i64,
        kv_idx: rng.below(kv_len) as i64,
        score: rng.unit() * 6.0 - 3.0,
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::cell::{Cell, Value, eval};
    use crate::ir::random::*;

    #[test]
    fn a_seed_gives_one_mod_and_seeds_differ() {
        let options = Options { batch: 2, heads: 4, ..Options::new(60, 50) };
        assert_eq!(mask(7, &options), mask(7, &options));
        assert_eq!(score(7, &options), score(7, &options));
        assert_ne!(mask(7, &options).graph, mask(8, &options).graph);
    }

    #[test]
    fn random_mods_divide_and_ask_for_truth_in_every_way() {
        use crate::ir::graph::{BinaryOp, Op, Ty, UnaryOp};
        let options = Options { depth: 4, portable: false, ..Options::new(60, 50) };
        let (mut divisors, mut asked) = (std::collections::BTreeSet::new(), 0);
        for seed in 0..200 {
            let graph = mask(seed, &options).graph;
            for node in graph.nodes() {
                match node.op {
                    Op::Binary(BinaryOp::FloorDiv | BinaryOp::Mod, _, by) => {
                        divisors.extend(if let Op::Int(n) = graph.node(by).op { Some(n) } else { None });
                    }
                    Op::Unary(UnaryOp::ToBool, a) if graph.ty(a) == Ty::Int => asked += 1,
                    _ => {}
                }
            }
        }
        assert!(divisors.range(2..).count() > 10 && divisors.range(..0).count() > 2, "{divisors:?}");
        assert!(asked > 0);
    }

    #[test]
    fn portable_mods_keep_their_promises() {
        let options = Options { batch: 2, heads: 3, depth: 4, ..Options::new(70, 90) };
        for seed in 0..200 {
            let (mask, score) = (mask(seed, &options), score(seed, &options));
            let mut rng = Rng::new(seed);
            for _ in 0..10 {
                let cell = cell(&mut rng, [2, 3, 70, 90]);
                eval(&mask, &cell).as_bool();
                let Value::Float(x) = eval(&score, &cell) else { panic!("not a score") };
                assert!(!x.is_nan() && x != f64::INFINITY, "seed {seed} gives {x}");
                for mod_ in [&mask, &score] {
                    for step in ir::steps::steps(mod_, &cell) {
                        if let Value::Int(x) = step.value {
                            assert!(x.abs() < 1 << 30, "seed {seed}: {} = {x}", step.text);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn masks_are_neither_all_full_nor_all_empty() {
        let options = Options::new(40, 40);
        let mixed = (0..50)
            .filter(|seed| {
                let mask = mask(*seed, &options);
                let kept = (0..400).filter(|i| {
                    eval(&mask, &Cell { q_idx: i / 20 * 2, kv_idx: i % 20 * 2, ..Cell::default() }).as_bool()
                });
                (1..400).contains(&kept.count())
            })
            .count();
        assert!(mixed > 35, "{mixed} of 50");
    }
}
