//! Runs register code over a tile.
//!
//! Invariant: every register is written before it is read, so scratch memory is reused without clearing. Must not know
//! graphs.

use super::kernels::{self, Src};
use super::lower::{Act, Code, Counts, Instr, Reg, Space};
use crate::base::HostTensor;
use crate::base::tensor::Data;
use crate::language::graph::{Graph, Input, Ty};
use crate::language::interpret::Value;
use crate::language::interpret::lanes::{FloatLane, IntLane};
use std::ops::Range;

/// Lanes that run at once: registers of this many lanes stay in the first-level cache.
const LANES: usize = 2048;

/// A captured tensor as lanes.
#[derive(Debug)]
pub(super) enum Table<I, F> {
    Ints(Vec<I>),
    Floats(Vec<F>),
    Bools(Vec<u8>),
}

impl<I: IntLane, F: FloatLane> Table<I, F> {
    fn new(tensor: &HostTensor) -> Self {
        match tensor.data() {
            Data::Bool(v) => Table::Bools(v.iter().map(|x| u8::from(*x != 0)).collect()),
            _ if tensor.dtype().is_float() => {
                Table::Floats((0..tensor.numel()).map(|i| F::from_f64(tensor.float_at(i))).collect())
            }
            _ => Table::Ints((0..tensor.numel()).map(|i| I::from_i64(tensor.int_at(i))).collect()),
        }
    }
}

/// All captured tensors of a graph as lanes.
pub(super) fn tables<I: IntLane, F: FloatLane>(graph: &Graph) -> Vec<(Vec<usize>, Table<I, F>)> {
    graph.captures().iter().map(|c| (c.tensor.shape().to_vec(), Table::new(&c.tensor))).collect()
}

/// Registers of one space.
#[derive(Debug, Default)]
struct Bank<I, F> {
    ints: Vec<Vec<I>>,
    floats: Vec<Vec<F>>,
    bools: Vec<Vec<u8>>,
}

impl<I: IntLane, F: FloatLane> Bank<I, F> {
    fn resize(&mut self, counts: Counts, lanes: usize) {
        grow(&mut self.ints, counts.ints, lanes);
        grow(&mut self.floats, counts.floats, lanes);
        grow(&mut self.bools, counts.bools, lanes);
    }
}

fn grow<T: Copy + Default>(registers: &mut Vec<Vec<T>>, count: usize, lanes: usize) {
    registers.resize_with(count, Vec::new);
    for register in registers.iter_mut().filter(|r| r.len() < lanes) {
        register.resize(lanes, T::default());
    }
}

/// Scratch memory for one thread.
#[derive(Debug, Default)]
pub(super) struct Scratch<I, F> {
    /// By [`Space`].
    banks: [Bank<I, F>; 4],
}

/// Which cells.
#[derive(Clone)]
pub(super) struct Tile {
    pub b: usize,
    pub h: usize,
    pub q: Range<usize>,
    pub kv: Range<usize>,
}

/// A row of the output: what a mask writes, or a score mod rewrites.
pub(super) enum Rows<'a, F> {
    Mask { out: &'a mut [u8], stride: usize },
    Score { scores: &'a mut [F], stride: usize },
}

/// One run of code over one tile.
pub(super) struct Run<'a, I, F> {
    pub code: &'a Code,
    pub tables: &'a [(Vec<usize>, Table<I, F>)],
    pub scratch: &'a mut Scratch<I, F>,
    pub tile: Tile,
}

/// Where an instruction writes: a register, or the caller's memory for the last one.
enum Out<'a, I, F> {
    Ints(&'a mut [I]),
    Floats(&'a mut [F]),
    Bools(&'a mut [u8]),
}

impl<I: IntLane, F: FloatLane> Run<'_, I, F> {
    /// Evaluates the whole tile into `rows`.
    pub fn all(mut self, mut rows: Rows<'_, F>) {
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
                    Rows::Score { scores, stride } => {
                        self.score_row(row, lanes, &mut scores[row * *stride + from..][..lanes]);
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

    fn score_row(&mut self, row: usize, lanes: usize, scores: &mut [F]) {
        if let Some(score) = self.code.score {
            self.scratch.banks[Space::Cell as usize].floats[score.at as usize][..lanes].copy_from_slice(scores);
        }
        match self.code.cell.split_last() {
            Some((last, rest)) if self.code.root.space == Space::Cell => {
                rest.iter().for_each(|instr| self.step(instr, row, lanes, 0));
                self.act(last, row, lanes, 0, Out::Floats(scores));
            }
            _ => kernels::map1(scores, self.floats(self.code.root, Seen { from: Space::Cell, row, lanes }), |x| x),
        }
    }

    /// Runs an instruction into its register.
    fn step(&mut self, instr: &Instr, row: usize, lanes: usize, from: usize) {
        let (bank, at) = (instr.out.space as usize, instr.out.at as usize);
        // taken out while it is written, so that the arguments can be borrowed; an instruction never reads its result
        match instr.out_ty {
            Ty::Int => {
                let mut out = std::mem::take(&mut self.scratch.banks[bank].ints[at]);
                self.act(instr, row, lanes, from, Out::Ints(&mut out[..lanes]));
                self.scratch.banks[bank].ints[at] = out;
            }
            Ty::Float => {
                let mut out = std::mem::take(&mut self.scratch.banks[bank].floats[at]);
                self.act(instr, row, lanes, from, Out::Floats(&mut out[..lanes]));
                self.scratch.banks[bank].floats[at] = out;
            }
            Ty::Bool => {
                let mut out = std::mem::take(&mut self.scratch.banks[bank].bools[at]);
                self.act(instr, row, lanes, from, Out::Bools(&mut out[..lanes]));
                self.scratch.banks[bank].bools[at] = out;
            }
        }
    }

    fn act(&self, instr: &Instr, row: usize, lanes: usize, from: usize, out: Out<'_, I, F>) {
        let seen = Seen { from: instr.out.space, row, lanes };
        let int = |n: usize| self.ints(instr.args[n], seen);
        let float = |n: usize| self.floats(instr.args[n], seen);
        let bool = |n: usize| self.bools(instr.args[n], seen);
        match out {
            Out::Ints(out) => match &instr.act {
                Act::Constant(value) => out.fill(I::from_i64(value.as_int())),
                Act::Input(input) => self.input(*input, from, out),
                Act::IntUnary(op) => kernels::int_unary(*op, out, int(0)),
                Act::IntBinary(op) => kernels::int_binary(*op, out, int(0), int(1)),
                Act::BoolToInt => kernels::map1(out, bool(0), |x| I::from_i64(i64::from(x))),
                Act::FloatToInt => kernels::map1(out, float(0), |x| x.to_int()),
                Act::WhereInt => kernels::choose(out, bool(0), int(1), int(2)),
                _ => self.load(instr, seen, Out::Ints(out)),
            },
            Out::Floats(out) => match &instr.act {
                Act::Constant(value) => out.fill(F::from_f64(value.as_float())),
                Act::FloatUnary(op) => kernels::float_unary(*op, out, float(0)),
                Act::FloatBinary(op) => kernels::float_binary(*op, out, float(0), float(1)),
                Act::IntToFloat => kernels::map1(out, int(0), |x| F::from_int(x)),
                Act::BoolToFloat => kernels::map1(out, bool(0), |x| F::from_f64(f64::from(x))),
                Act::WhereFloat => kernels::choose(out, bool(0), float(1), float(2)),
                _ => self.load(instr, seen, Out::Floats(out)),
            },
            Out::Bools(out) => match &instr.act {
                Act::Constant(value) => out.fill(u8::from(*value == Value::Bool(true))),
                Act::IntCompare(op) => kernels::compare(*op, out, int(0), int(1)),
                Act::FloatCompare(op) => kernels::compare(*op, out, float(0), float(1)),
                Act::BoolBinary(op) => kernels::bool_binary(*op, out, bool(0), bool(1)),
                Act::BoolNot => kernels::map1(out, bool(0), |x| x ^ 1),
                Act::IntToBool => kernels::map1(out, int(0), |x| u8::from(x != I::default())),
                Act::FloatToBool => kernels::map1(out, float(0), |x| u8::from(x != F::default())),
                Act::WhereBool => kernels::choose(out, bool(0), bool(1), bool(2)),
                _ => self.load(instr, seen, Out::Bools(out)),
            },
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

    fn load(&self, instr: &Instr, seen: Seen, out: Out<'_, I, F>) {
        let Act::Load(capture) = &instr.act else { unreachable!("{:?} into {:?}", instr.act, instr.out_ty) };
        let (shape, table) = &self.tables[capture.0 as usize];
        let index: smallvec::SmallVec<[Src<I>; 4]> = instr.args.iter().map(|a| self.ints(*a, seen)).collect();
        match (out, table) {
            (Out::Ints(out), Table::Ints(table)) => kernels::gather(out, table, shape, &index, I::default()),
            (Out::Floats(out), Table::Floats(table)) => kernels::gather(out, table, shape, &index, F::default()),
            (Out::Bools(out), Table::Bools(table)) => kernels::gather(out, table, shape, &index, 0),
            _ => unreachable!("a load has its tensor's type"),
        }
    }

    fn ints(&self, reg: Reg, seen: Seen) -> Src<'_, I> {
        source(reg, &self.scratch.banks[reg.space as usize].ints, seen)
    }

    fn floats(&self, reg: Reg, seen: Seen) -> Src<'_, F> {
        source(reg, &self.scratch.banks[reg.space as usize].floats, seen)
    }

    fn bools(&self, reg: Reg, seen: Seen) -> Src<'_, u8> {
        source(reg, &self.scratch.banks[reg.space as usize].bools, seen)
    }
}

/// From where a register is read.
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
