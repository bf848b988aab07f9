//! From the graph to register code: what is computed once a tile, once a row, once a column and once a cell.
//!
//! Invariant: an instruction's arguments are written by an earlier one, at its own or an outer space. Must not know lane
//! widths.

use crate::language::graph::{BinaryOp, CaptureId, Graph, Input, Mod, NodeId, Op, Ty, UnaryOp};
use crate::language::interpret::Value;
use crate::language::schedule::{Level, Schedule};
use smallvec::SmallVec;

/// Where a value lives and how often it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// One for the tile.
    Tile,
    /// One for each row of the tile.
    Row,
    /// One for each column of the tile.
    Column,
    /// One for each column, anew in every row.
    Cell,
}

/// A register: its type is the node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reg {
    pub space: Space,
    pub at: u32,
}

/// What an instruction does, with the types resolved.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    Constant(Value),
    Input(Input),
    IntUnary(UnaryOp),
    FloatUnary(UnaryOp),
    BoolNot,
    IntToFloat,
    BoolToFloat,
    BoolToInt,
    FloatToInt,
    IntToBool,
    FloatToBool,
    IntBinary(BinaryOp),
    FloatBinary(BinaryOp),
    BoolBinary(BinaryOp),
    IntCompare(BinaryOp),
    FloatCompare(BinaryOp),
    WhereInt,
    WhereFloat,
    WhereBool,
    Load(CaptureId),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Instr {
    pub act: Act,
    pub out: Reg,
    pub out_ty: Ty,
    pub args: SmallVec<[Reg; 4]>,
}

/// How many registers of each type a space has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub ints: usize,
    pub floats: usize,
    pub bools: usize,
}

/// Register code of a mod.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub tile: Vec<Instr>,
    pub row: Vec<Instr>,
    pub column: Vec<Instr>,
    pub cell: Vec<Instr>,
    /// Registers by space, in the order of [`Space`].
    pub counts: [Counts; 4],
    pub root: Reg,
    /// Where the scores of a row go before its instructions run.
    pub score: Option<Reg>,
}

impl Code {
    pub fn new(mod_: &Mod) -> Code {
        Lower::new(&mod_.graph, mod_.root).run()
    }
}

fn space_of(level: Level) -> Space {
    match level {
        Level::Uniform | Level::BatchHead => Space::Tile,
        Level::Query => Space::Row,
        Level::KeyValue => Space::Column,
        Level::Cell | Level::Score => Space::Cell,
    }
}

struct Lower<'a> {
    graph: &'a Graph,
    root: NodeId,
    schedule: Schedule,
    regs: Vec<Option<Reg>>,
    /// The last cell instruction that reads each node; its register is free afterwards.
    last_use: Vec<usize>,
    free: [Vec<u32>; 3],
    code: Code,
}

impl<'a> Lower<'a> {
    fn new(graph: &'a Graph, root: NodeId) -> Self {
        let n = graph.nodes().len();
        let nowhere = Reg { space: Space::Tile, at: 0 };
        Self {
            graph,
            root,
            schedule: Schedule::new(graph, &[root]),
            regs: vec![None; n],
            last_use: vec![0; n],
            free: Default::default(),
            code: Code {
                tile: Vec::new(),
                row: Vec::new(),
                column: Vec::new(),
                cell: Vec::new(),
                counts: Default::default(),
                root: nowhere,
                score: None,
            },
        }
    }

    fn run(mut self) -> Code {
        let cells: Vec<NodeId> = {
            let mut cells = [self.schedule.at(Level::Cell), self.schedule.at(Level::Score)].concat();
            cells.sort_unstable();
            cells
        };
        for (at, id) in cells.iter().enumerate() {
            for operand in self.graph.node(*id).op.operands() {
                self.last_use[operand.0 as usize] = at;
            }
        }
        self.last_use[self.root.0 as usize] = usize::MAX;
        for level in [Level::Uniform, Level::BatchHead, Level::Query, Level::KeyValue] {
            for id in self.schedule.at(level).to_vec() {
                let out = self.fresh(space_of(level), self.graph.ty(id));
                self.emit(id, out);
            }
        }
        for (at, id) in cells.into_iter().enumerate() {
            // the result register is taken before the arguments' are given back: no kernel reads what it writes
            let out = self.take(self.graph.ty(id));
            self.emit(id, out);
            self.release(id, at);
        }
        self.code.root = self.reg(self.root);
        self.code
    }

    fn reg(&self, id: NodeId) -> Reg {
        self.regs[id.0 as usize].expect("operands are lowered before users")
    }

    fn fresh(&mut self, space: Space, ty: Ty) -> Reg {
        let counts = &mut self.code.counts[space as usize];
        let count = match ty {
            Ty::Int => &mut counts.ints,
            Ty::Float => &mut counts.floats,
            Ty::Bool => &mut counts.bools,
        };
        *count += 1;
        Reg { space, at: *count as u32 - 1 }
    }

    fn take(&mut self, ty: Ty) -> Reg {
        match self.free[ty as usize].pop() {
            Some(at) => Reg { space: Space::Cell, at },
            None => self.fresh(Space::Cell, ty),
        }
    }

    fn release(&mut self, id: NodeId, at: usize) {
        let mut operands = self.graph.node(id).op.operands();
        operands.sort_unstable();
        operands.dedup();
        for operand in operands {
            let reg = self.reg(operand);
            if reg.space == Space::Cell && self.last_use[operand.0 as usize] == at {
                self.free[self.graph.ty(operand) as usize].push(reg.at);
            }
        }
    }

    fn emit(&mut self, id: NodeId, out: Reg) {
        self.regs[id.0 as usize] = Some(out);
        let node = self.graph.node(id);
        if node.op == Op::Input(Input::Score) {
            self.code.score = Some(out);
            return;
        }
        let args = node.op.operands().iter().map(|o| self.reg(*o)).collect();
        let instr = Instr { act: self.act(&node.op), out, out_ty: node.ty, args };
        match out.space {
            Space::Tile => self.code.tile.push(instr),
            Space::Row => self.code.row.push(instr),
            Space::Column => self.code.column.push(instr),
            Space::Cell => self.code.cell.push(instr),
        }
    }

    fn act(&self, op: &Op) -> Act {
        match op {
            Op::Input(input) => Act::Input(*input),
            Op::Unary(op, a) => unary_act(*op, self.graph.ty(*a)),
            Op::Binary(op, a, _) => binary_act(*op, self.graph.ty(*a)),
            Op::Where(_, a, _) => match self.graph.ty(*a) {
                Ty::Int => Act::WhereInt,
                Ty::Float => Act::WhereFloat,
                Ty::Bool => Act::WhereBool,
            },
            Op::Load(capture, _) => Act::Load(*capture),
            // lifted graphs are for kernels; their uniforms have no values here
            Op::UniformInt(_) => Act::Constant(Value::Int(0)),
            Op::UniformFloat(_) => Act::Constant(Value::Float(0.0)),
            literal => Act::Constant(Value::of_literal(literal).expect("only literals are left")),
        }
    }
}

fn unary_act(op: UnaryOp, a: Ty) -> Act {
    match (op, a) {
        (UnaryOp::ToFloat, Ty::Bool) => Act::BoolToFloat,
        (UnaryOp::ToFloat, _) => Act::IntToFloat,
        (UnaryOp::ToInt, Ty::Bool) => Act::BoolToInt,
        (UnaryOp::ToInt, _) => Act::FloatToInt,
        (UnaryOp::ToBool, Ty::Int) => Act::IntToBool,
        (UnaryOp::ToBool, _) => Act::FloatToBool,
        (_, Ty::Bool) => Act::BoolNot,
        (op, Ty::Int) => Act::IntUnary(op),
        (op, Ty::Float) => Act::FloatUnary(op),
    }
}

fn binary_act(op: BinaryOp, a: Ty) -> Act {
    match a {
        Ty::Bool => Act::BoolBinary(op),
        Ty::Int if op.is_comparison() => Act::IntCompare(op),
        Ty::Int => Act::IntBinary(op),
        Ty::Float if op.is_comparison() => Act::FloatCompare(op),
        Ty::Float => Act::FloatBinary(op),
    }
}
