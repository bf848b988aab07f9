//! Runs register code over a tile.
//!
//! Invariant: every register is written before it is read, so scratch memory is reused without clearing. Must not know
//! graphs.

use super::kernels::{self, Src};
use super::lower::{Act, Class, Code, Counts, Instr, Reg, Space};
use crate::base::HostTensor;
use crate::base::tensor::Data;
use crate::ir::cell::Value;
use crate::ir::graph::{BinaryOp, Graph, Input, UnaryOp};
use crate::ir::ops::lanes::{FloatLane, IntLane};
use std::ops::Range;

/// Lanes that run at once: registers of this many lanes stay in the first-level cache.
const LANES: usize = 2048;

/// A captured tensor as lanes.
#[derive(Debug)]
pub(super) enum Table<I> {
    Ints(Vec<I>),
    Singles(Vec<f32>),
    Doubles(Vec<f64>),
    Bools(Vec<u8>),
}

impl<I: IntLane> Table<I> {
    fn new(tensor: &HostTensor) -> Self {
        match tensor.data() {
            Data::Bool(v) => Table::Bools(v.iter().map(|x| u8::from(*x != 0)).collect()),
            Data::F64(v) => Table::Doubles(v.clone()),
            _ if tensor.dtype().is_float() => Table::Singles(tensor.to_f32_vec()),
            _ => Table::Ints((0..tensor.numel()).map(|i| I::from_i64(tensor.int_at(i))).collect()),
        }
    }
}

/// All captured tensors of a graph as lanes.
pub(super) fn tables<I: IntLane>(graph: &Graph) -> Vec<(Vec<usize>, Table<I>)> {
    graph.captures().iter().map(|c| (c.tensor.shape().to_vec(), Table::new(&c.tensor))).collect()
}

/// Registers of one space.
#[derive(Debug, Default)]
pub(super) struct Bank<I> {
    ints: Vec<Vec<I>>,
    singles: Vec<Vec<f32>>,
    doubles: Vec<Vec<f64>>,
    bools: Vec<Vec<u8>>,
}

impl<I: IntLane> Bank<I> {
    fn resize(&mut self, counts: Counts, lanes: usize) {
        grow(&mut self.ints, counts.ints, lanes);
        grow(&mut self.singles, counts.singles, lanes);
        grow(&mut self.doubles, counts.doubles, lanes);
        grow(&mut self.bools, counts.bools, lanes);
    }
}

fn grow<T: Copy + Default>(registers: &mut Vec<Vec<T>>, count: usize, lanes: usize) {
    if registers.len() < count {
        registers.resize_with(count, Vec::new);
    }
    for register in registers.iter_mut().filter(|r| r.len() < lanes) {
        register.resize(lanes, T::default());
    }
}

/// A float in registers: its place, and the definition of exact operations.
pub(super) trait Held: FloatLane {
    fn registers<I>(bank: &Bank<I>) -> &[Vec<Self>];
    fn registers_mut<I>(bank: &mut Bank<I>) -> &mut [Vec<Self>];
    fn table<I>(table: &Table<I>) -> Option<&[Self]>;
    fn unary(op: UnaryOp, exact: bool, out: &mut [Self], a: Src<Self>);
    fn binary(op: BinaryOp, exact: bool, out: &mut [Self], a: Src<Self>, b: Src<Self>);
}

impl Held for f32 {
    fn registers<I>(bank: &Bank<I>) -> &[Vec<f32>] {
        &bank.singles
    }

    fn registers_mut<I>(bank: &mut Bank<I>) -> &mut [Vec<f32>] {
        &mut bank.singles
    }

    fn table<I>(table: &Table<I>) -> Option<&[f32]> {
        if let Table::Singles(table) = table { Some(table) } else { None }
    }

    fn unary(op: UnaryOp, exact: bool, out: &mut [f32], a: Src<f32>) {
        if exact { kernels::single_unary(op, out, a) } else { kernels::float_unary(op, out, a) }
    }

    fn binary(op: BinaryOp, exact: bool, out: &mut [f32], a: Src<f32>, b: Src<f32>) {
        if exact { kernels::single_binary(op, out, a, b) } else { kernels::float_binary(op, out, a, b) }
    }
}

impl Held for f64 {
    fn registers<I>(bank: &Bank<I>) -> &[Vec<f64>] {
        &bank.doubles
    }

    fn registers_mut<I>(bank: &mut Bank<I>) -> &mut [Vec<f64>] {
        &mut bank.doubles
    }

    fn table<I>(table: &Table<I>) -> Option<&[f64]> {
        if let Table::Doubles(table) = table { Some(table) } else { None }
    }

    fn unary(op: UnaryOp, _: bool, out: &mut [f64], a: Src<f64>) {
        kernels::float_unary(op, out, a);
    }

    fn binary(op: BinaryOp, _: bool, out: &mut [f64], a: Src<f64>, b: Src<f64>) {
        kernels::float_binary(op, out, a, b);
    }
}

/// Scratch memory for one thread.
#[derive(Debug, Default)]
pub(super) struct Scratch<I> {
    /// By [`Space`].
    banks: [Bank<I>; 4],
}

/// Which cells.
#[derive(Clone)]
pub(super) struct Tile {
    pub b: usize,
    pub h: usize,
    pub q: Range<usize>,
    pub kv: Range<usize>,
}

/// A row of the output: written by a mask, or rewritten by a score mod.
pub(super) enum Rows<'a> {
    Mask { out: &'a mut [u8], stride: usize },
    Single { scores: &'a mut [f32], stride: usize },
    Double { scores: &'a mut [f64], stride: usize },
}

/// One run of code over one tile.
pub(super) struct Run<'a, I> {
    pub code: &'a Code,
    pub tables: &'a [(Vec<usize>, Table<I>)],
    pub scratch: &'a mut Scratch<I>,
    pub tile: Tile,
}

/// Where an instruction writes: a register, or the caller's memory for the last one.
enum Out<'a, I> {
    Ints(&'a mut [I]),
    Singles(&'a mut [f32]),
    Doubles(&'a mut [f64]),
    Bools(&'a mut [u8]),
}

impl<I: IntLane> Run<'_, I> {
    /// Evaluates the whole tile into `rows`.
    pub(super) fn all(mut self, mut rows: Rows<'_>) {
        let (height, width) = (self.tile.q.len(), self.tile.kv.len());
        let lanes = width.min(LANES);
        let counts = &self.code.counts;
        for (space, n) in [(Space::Tile, 1), (Space::Row, height), (Space::Column, lanes), (Space::Cell, lanes)] {
            self.scratch.banks[space as usize].resize(counts[space as usize], n);
        }
        let code = self.code;
        code.tile.iter().for_each(|instr| self.step(instr, 0, 1, 0));
        code.row.iter().for_each(|instr| self.step(instr, 0, height, 0));
        for from in (0..width).step_by(LANES) {
            let lanes = (width - from).min(LANES);
            code.column.iter().for_each(|instr| self.step(instr, 0, lanes, from));
            for row in 0..height {
                match &mut rows {
                    Rows::Mask { out, stride } => self.mask_row(row, lanes, &mut out[row * *stride + from..][..lanes]),
                    Rows::Single { scores, stride } => {
                        self.score_row(row, lanes, &mut scores[row * *stride + from..][..lanes], |s| Out::Singles(s));
                    }
                    Rows::Double { scores, stride } => {
                        self.score_row(row, lanes, &mut scores[row * *stride + from..][..lanes], |s| Out::Doubles(s));
                    }
                }
            }
        }
    }

    fn mask_row(&mut self, row: usize, lanes: usize, out: &mut [u8]) {
        match self.code.cell.split_last() {
            Some((last, rest)) if self.code.root.space == Space::Cell => {
                rest.iter().for_each(|instr| self.step(instr, row, lanes, 0));
                self.act(last, row, lanes, 0, Out::Bools(out));
            }
            _ => kernels::map1(out, self.bools(self.code.root, Seen { from: Space::Cell, row, lanes }), |x| x),
        }
    }

    fn score_row<F: Held>(&mut self, row: usize, lanes: usize, scores: &mut [F], out: impl Fn(&mut [F]) -> Out<'_, I>) {
        if let Some(score) = self.code.score {
            let bank = &mut self.scratch.banks[Space::Cell as usize];
            F::registers_mut(bank)[score.at as usize][..lanes].copy_from_slice(scores);
        }
        match self.code.cell.split_last() {
            Some((last, rest)) if self.code.root.space == Space::Cell => {
                rest.iter().for_each(|instr| self.step(instr, row, lanes, 0));
                self.act(last, row, lanes, 0, out(scores));
            }
            _ => kernels::map1(scores, self.floats(self.code.root, Seen { from: Space::Cell, row, lanes }), |x| x),
        }
    }

    /// Runs an instruction into its register.
    fn step(&mut self, instr: &Instr, row: usize, lanes: usize, from: usize) {
        let (bank, at) = (instr.out.space as usize, instr.out.at as usize);
        // moved out while it is written, so that the arguments can be borrowed; an instruction never reads its result
        macro_rules! into {
            ($registers:ident, $out:path) => {{
                let mut out = std::mem::take(&mut self.scratch.banks[bank].$registers[at]);
                self.act(instr, row, lanes, from, $out(&mut out[..lanes]));
                self.scratch.banks[bank].$registers[at] = out;
            }};
        }
        match instr.class {
            Class::Int => into!(ints, Out::Ints),
            Class::Single => into!(singles, Out::Singles),
            Class::Double => into!(doubles, Out::Doubles),
            Class::Bool => into!(bools, Out::Bools),
        }
    }

    fn act(&self, instr: &Instr, row: usize, lanes: usize, from: usize, out: Out<'_, I>) {
        let seen = Seen { from: instr.out.space, row, lanes };
        match out {
            Out::Ints(out) => self.int_act(instr, seen, from, out),
            Out::Singles(out) => self.float_act(instr, seen, out),
            Out::Doubles(out) => self.float_act(instr, seen, out),
            Out::Bools(out) => self.bool_act(instr, seen, out),
        }
    }

    fn int_act(&self, instr: &Instr, seen: Seen, from: usize, out: &mut [I]) {
        let int = |n: usize| self.ints(instr.args[n], seen);
        match (&instr.act, instr.reads) {
            (Act::Constant(value), _) => out.fill(I::from_i64(value.as_int())),
            (Act::Input(input), _) => self.input(*input, from, out),
            (Act::IntUnary(op), _) => kernels::int_unary(*op, out, int(0)),
            (Act::IntBinary(op), _) => kernels::int_binary(*op, out, int(0), int(1)),
            (Act::BoolToInt, _) => kernels::map1(out, self.bools(instr.args[0], seen), |x| I::from_i64(i64::from(x))),
            (Act::FloatToInt, Class::Double) => {
                kernels::map1(out, self.floats::<f64>(instr.args[0], seen), |x| x.to_int())
            }
            (Act::FloatToInt, _) => kernels::map1(out, self.floats::<f32>(instr.args[0], seen), |x| x.to_int()),
            (Act::FloatToInt32, Class::Double) => {
                kernels::map1(out, self.floats::<f64>(instr.args[0], seen), |x| x.to_int32());
            }
            (Act::FloatToInt32, _) => kernels::map1(out, self.floats::<f32>(instr.args[0], seen), |x| x.to_int32()),
            (Act::Where, _) => kernels::choose(out, self.bools(instr.args[0], seen), int(1), int(2)),
            (Act::Load(capture), _) => {
                let Table::Ints(table) = &self.tables[capture.0 as usize].1 else { unreachable!("a table of ints") };
                self.load(instr, seen, out, table, I::default());
            }
            (act, _) => unreachable!("{act:?} into ints"),
        }
    }

    fn float_act<F: Held>(&self, instr: &Instr, seen: Seen, out: &mut [F]) {
        let float = |n: usize| self.floats::<F>(instr.args[n], seen);
        match (&instr.act, instr.reads) {
            (Act::Constant(value), _) => out.fill(F::from_f64(value.as_float())),
            (Act::FloatUnary(op), _) => F::unary(*op, instr.exact, out, float(0)),
            (Act::FloatBinary(op), _) => F::binary(*op, instr.exact, out, float(0), float(1)),
            (Act::IntToFloat, _) => kernels::map1(out, self.ints(instr.args[0], seen), |x| F::from_int(x)),
            (Act::BoolToFloat, _) => {
                kernels::map1(out, self.bools(instr.args[0], seen), |x| F::from_f64(f64::from(x)));
            }
            (Act::FloatToFloat, Class::Double) => {
                kernels::map1(out, self.floats::<f64>(instr.args[0], seen), |x| F::from_f64(x));
            }
            (Act::FloatToFloat, _) => {
                kernels::map1(out, self.floats::<f32>(instr.args[0], seen), |x| F::from_f64(f64::from(x)));
            }
            (Act::Where, _) => kernels::choose(out, self.bools(instr.args[0], seen), float(1), float(2)),
            (Act::Load(capture), _) => {
                let table = F::table(&self.tables[capture.0 as usize].1).expect("a table of its dtype");
                self.load(instr, seen, out, table, F::default());
            }
            (act, _) => unreachable!("{act:?} into floats"),
        }
    }

    fn bool_act(&self, instr: &Instr, seen: Seen, out: &mut [u8]) {
        let int = |n: usize| self.ints(instr.args[n], seen);
        let bool = |n: usize| self.bools(instr.args[n], seen);
        match (&instr.act, instr.reads) {
            (Act::Constant(value), _) => out.fill(u8::from(*value == Value::Bool(true))),
            (Act::IntCompare(op), _) => kernels::compare(*op, out, int(0), int(1)),
            (Act::FloatCompare(_) | Act::FloatToBool, Class::Double) => self.test::<f64>(instr, seen, out),
            (Act::FloatCompare(_) | Act::FloatToBool, _) => self.test::<f32>(instr, seen, out),
            (Act::BoolBinary(op), _) => kernels::bool_binary(*op, out, bool(0), bool(1)),
            (Act::BoolNot, _) => kernels::map1(out, bool(0), |x| x ^ 1),
            (Act::IntToBool, _) => kernels::map1(out, int(0), |x| u8::from(x != I::default())),
            (Act::Where, _) => kernels::choose(out, bool(0), bool(1), bool(2)),
            (Act::Load(capture), _) => {
                let Table::Bools(table) = &self.tables[capture.0 as usize].1 else { unreachable!("a table of bools") };
                self.load(instr, seen, out, table, 0);
            }
            (act, _) => unreachable!("{act:?} into bools"),
        }
    }

    /// A truth value from floats.
    fn test<F: Held>(&self, instr: &Instr, seen: Seen, out: &mut [u8]) {
        let float = |n: usize| self.floats::<F>(instr.args[n], seen);
        match &instr.act {
            Act::FloatCompare(op) => kernels::compare(*op, out, float(0), float(1)),
            _ => kernels::map1(out, float(0), |x| u8::from(x != F::default())),
        }
    }

    fn input(&self, input: Input, from: usize, out: &mut [I]) {
        let start = match input {
            Input::B => return out.fill(I::from_i64(self.tile.b as i64)),
            Input::H => return out.fill(I::from_i64(self.tile.h as i64)),
            Input::QIdx => self.tile.q.start,
            Input::KvIdx => self.tile.kv.start + from,
            Input::Score => unreachable!("scores are copied in"),
        };
        out.iter_mut().enumerate().for_each(|(i, out)| *out = I::from_i64((start + i) as i64));
    }

    fn load<T: Copy>(&self, instr: &Instr, seen: Seen, out: &mut [T], table: &[T], zero: T) {
        let Act::Load(capture) = &instr.act else { unreachable!("{:?} is no load", instr.act) };
        let index: smallvec::SmallVec<[Src<I>; 4]> = instr.args.iter().map(|a| self.ints(*a, seen)).collect();
        kernels::gather(out, table, &self.tables[capture.0 as usize].0, &index, zero);
    }

    fn ints(&self, reg: Reg, seen: Seen) -> Src<'_, I> {
        source(reg, &self.scratch.banks[reg.space as usize].ints, seen)
    }

    fn floats<F: Held>(&self, reg: Reg, seen: Seen) -> Src<'_, F> {
        source(reg, F::registers(&self.scratch.banks[reg.space as usize]), seen)
    }

    fn bools(&self, reg: Reg, seen: Seen) -> Src<'_, u8> {
        source(reg, &self.scratch.banks[reg.space as usize].bools, seen)
    }
}

/// The source of a register read.
#[derive(Clone, Copy)]
struct Seen {
    /// The space of the reading instruction.
    from: Space,
    row: usize,
    lanes: usize,
}

/// A register as an argument.
fn source<T: Copy>(reg: Reg, registers: &[Vec<T>], seen: Seen) -> Src<'_, T> {
    let register = &registers[reg.at as usize];
    match reg.space {
        Space::Tile => Src::One(register[0]),
        Space::Row if seen.from != Space::Row => Src::One(register[seen.row]),
        _ => Src::Many(&register[..seen.lanes]),
    }
}
