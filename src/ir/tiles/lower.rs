//! Lowers the graph to register code: instructions per tile, per row, per column and per cell.
//!
//! Invariant: an instruction's arguments are written by an earlier one, at its own or an outer level, with the class
//! that it reads. Must not know lane widths of ints.

use crate::ir::cell::Value;
use crate::ir::graph::{BinaryOp, CaptureId, Graph, Input, Mod, NodeId, Op, Ty, UnaryOp, Width};
use crate::ir::schedule::{Level, Schedule};
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
    /// One for each column, computed again in every row.
    Cell,
}

/// The content of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Int,
    Single,
    Double,
    Bool,
}

/// A register: its class is that of the instruction that writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reg {
    pub space: Space,
    pub at: u32,
}

/// The action of an instruction, with resolved types.
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
    /// By way of 32 bits.
    FloatToInt32,
    /// From the other float class.
    FloatToFloat,
    IntToBool,
    FloatToBool,
    IntBinary(BinaryOp),
    FloatBinary(BinaryOp),
    BoolBinary(BinaryOp),
    IntCompare(BinaryOp),
    FloatCompare(BinaryOp),
    Where,
    Load(CaptureId),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Instr {
    pub act: Act,
    pub out: Reg,
    pub class: Class,
    /// Class of the float arguments.
    pub reads: Class,
    /// Whether the lanes are PyTorch's float32, on which cells are decided, and not a score in single precision.
    pub exact: bool,
    pub args: SmallVec<[Reg; 4]>,
}

/// How many registers of each class a space has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub ints: usize,
    pub singles: usize,
    pub doubles: usize,
    pub bools: usize,
}

impl Counts {
    fn of(&mut self, class: Class) -> &mut usize {
        match class {
            Class::Int => &mut self.ints,
            Class::Single => &mut self.singles,
            Class::Double => &mut self.doubles,
            Class::Bool => &mut self.bools,
        }
    }
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
    /// Scores are of class `score`.
    pub(super) fn new(mod_: &Mod, score: Class) -> Code {
        Lower::new(&mod_.graph, mod_.root, score).run()
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
    score: Class,
    schedule: Schedule,
    regs: Vec<Option<Reg>>,
    /// The same values in the other float class; not those of cells, which are converted for each reader.
    converted: Vec<Option<Reg>>,
    /// The last cell instruction that reads each node; its register is free afterwards.
    last_use: Vec<usize>,
    free: [Vec<u32>; 4],
    /// Registers that only the instruction being made reads.
    passing: Vec<(Class, u32)>,
    code: Code,
}

impl<'a> Lower<'a> {
    fn new(graph: &'a Graph, root: NodeId, score: Class) -> Self {
        let n = graph.nodes().len();
        let nowhere = Reg { space: Space::Tile, at: 0 };
        Self {
            graph,
            root,
            score,
            schedule: Schedule::new(graph, &[root]),
            regs: vec![None; n],
            converted: vec![None; n],
            last_use: vec![0; n],
            free: Default::default(),
            passing: Vec::new(),
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
            // the scores are copied in before anything runs: nothing that comes before them may use their register
            cells.sort_unstable_by_key(|id| (self.graph.node(*id).op != Op::Input(Input::Score), *id));
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
                if !is_number(&self.graph.node(id).op) {
                    let out = self.fresh(space_of(level), self.class(id));
                    self.emit(id, out);
                }
            }
        }
        for (at, id) in cells.into_iter().enumerate() {
            // the result register is allocated before the arguments' are freed: no kernel reads a register that it
            // writes
            let out = self.take(self.class(id));
            self.emit(id, out);
            self.release(id, at);
        }
        self.code.root = match self.graph.ty(self.root) {
            // a float64 tensor's derivative is a double for scores of any dtype
            Ty::Float | Ty::Double => self.reg_as(self.root, self.score),
            Ty::Bool | Ty::Int => self.reg(self.root),
        };
        self.code
    }

    /// The class in which a node is computed.
    fn class(&self, id: NodeId) -> Class {
        match self.graph.ty(id) {
            Ty::Bool => Class::Bool,
            Ty::Int => Class::Int,
            Ty::Double => Class::Double,
            Ty::Float if self.graph.follows_score(id) => self.score,
            Ty::Float => Class::Single,
        }
    }

    /// The class of the floats that an operation reads.
    fn reads(&self, op: &Op) -> Class {
        match (op, self.graph.width(op)) {
            (Op::Unary(UnaryOp::ToDouble, a), _) if is_number(&self.graph.node(*a).op) => Class::Double,
            (Op::Unary(UnaryOp::ToFloat | UnaryOp::ToDouble, a), _) if self.graph.ty(*a).is_float() => self.class(*a),
            (_, Width::Single) => Class::Single,
            (_, Width::Score) => self.score,
            (_, Width::Double) => Class::Double,
        }
    }

    fn reg(&self, id: NodeId) -> Reg {
        self.regs[id.0 as usize].expect("operands are lowered before users")
    }

    /// A float in a register of this class.
    fn reg_as(&mut self, id: NodeId, class: Class) -> Reg {
        let is_number = is_number(&self.graph.node(id).op);
        if !is_number && self.class(id) == class {
            return self.reg(id);
        }
        let known = match is_number && class == Class::Single {
            true => self.regs[id.0 as usize],
            false => self.converted[id.0 as usize],
        };
        if let Some(reg) = known {
            return reg;
        }
        if is_number {
            let out = self.fresh(Space::Tile, class);
            let act = self.act(&self.graph.node(id).op);
            self.push(Instr { act, out, class, reads: class, exact: true, args: SmallVec::new() });
            let slot = if class == Class::Single { &mut self.regs } else { &mut self.converted };
            slot[id.0 as usize] = Some(out);
            return out;
        }
        let (from, reads) = (self.reg(id), self.class(id));
        let out = match from.space {
            Space::Cell => self.take(class),
            outer => self.fresh(outer, class),
        };
        self.push(Instr {
            act: Act::FloatToFloat,
            out,
            class,
            reads,
            exact: true,
            args: SmallVec::from_slice(&[from]),
        });
        match out.space {
            Space::Cell => self.passing.push((class, out.at)),
            _ => self.converted[id.0 as usize] = Some(out),
        }
        out
    }

    fn fresh(&mut self, space: Space, class: Class) -> Reg {
        let count = self.code.counts[space as usize].of(class);
        *count += 1;
        Reg { space, at: *count as u32 - 1 }
    }

    fn take(&mut self, class: Class) -> Reg {
        match self.free[class as usize].pop() {
            Some(at) => Reg { space: Space::Cell, at },
            None => self.fresh(Space::Cell, class),
        }
    }

    fn release(&mut self, id: NodeId, at: usize) {
        for (class, at) in std::mem::take(&mut self.passing) {
            self.free[class as usize].push(at);
        }
        let mut operands = self.graph.node(id).op.operands();
        operands.sort_unstable();
        operands.dedup();
        for operand in operands.into_iter().filter(|o| !is_number(&self.graph.node(*o).op)) {
            let reg = self.reg(operand);
            if reg.space == Space::Cell && self.last_use[operand.0 as usize] == at {
                self.free[self.class(operand) as usize].push(reg.at);
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
        let (class, reads) = (self.class(id), self.reads(&node.op));
        let mut args = SmallVec::new();
        for operand in node.op.operands() {
            args.push(if self.graph.ty(operand).is_float() { self.reg_as(operand, reads) } else { self.reg(operand) });
        }
        let exact = !self.graph.follows_score(id);
        self.push(Instr { act: self.act(&node.op), out, class, reads, exact, args });
    }

    fn push(&mut self, instr: Instr) {
        match instr.out.space {
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
            Op::Where(..) => Act::Where,
            Op::Load(capture, _) => Act::Load(*capture),
            // lifted graphs are for kernels; their uniforms have no values here
            Op::UniformInt(_) => Act::Constant(Value::Int(0)),
            Op::UniformFloat(_) => Act::Constant(Value::Float(0.0)),
            Op::Bool(_) | Op::Int(_) | Op::Float(_) => Act::Constant(Value::of_literal(op).expect("a literal")),
        }
    }
}

/// Whether a node is a float without a fixed class: each reader takes it in its own.
fn is_number(op: &Op) -> bool {
    matches!(op, Op::Float(_) | Op::UniformFloat(_))
}

fn unary_act(op: UnaryOp, a: Ty) -> Act {
    match (op, a) {
        (UnaryOp::ToFloat | UnaryOp::ToDouble, Ty::Bool) => Act::BoolToFloat,
        (UnaryOp::ToFloat | UnaryOp::ToDouble, Ty::Int) => Act::IntToFloat,
        (UnaryOp::ToFloat | UnaryOp::ToDouble, Ty::Float | Ty::Double) => Act::FloatToFloat,
        (UnaryOp::ToInt, Ty::Bool) => Act::BoolToInt,
        (UnaryOp::ToInt, _) => Act::FloatToInt,
        (UnaryOp::ToInt32, _) => Act::FloatToInt32,
        (UnaryOp::ToBool, Ty::Int) => Act::IntToBool,
        (UnaryOp::ToBool, _) => Act::FloatToBool,
        (_, Ty::Bool) => Act::BoolNot,
        (op, Ty::Int) => Act::IntUnary(op),
        (op, Ty::Float | Ty::Double) => Act::FloatUnary(op),
    }
}

fn binary_act(op: BinaryOp, a: Ty) -> Act {
    match a {
        Ty::Bool => Act::BoolBinary(op),
        Ty::Int if op.is_comparison() => Act::IntCompare(op),
        Ty::Int => Act::IntBinary(op),
        Ty::Float | Ty::Double if op.is_comparison() => Act::FloatCompare(op),
        Ty::Float | Ty::Double => Act::FloatBinary(op),
    }
}
