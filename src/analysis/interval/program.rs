//! A graph compiled for evaluation over boxes.
//!
//! Invariant: instructions are grouped by their inputs (constants, b and h, q_idx, kv_idx, both) and keep their
//! topological order, so that a scratch re-evaluates only the groups whose range changed. Must not know about blocks.

use super::apply::{binary, same_operands, unary};
use super::float::Floats;
use super::residual::Mixer;
use super::table::{Index, Table};
use super::{Cells, Form, Ints, Truth, Value};
use crate::base::tensor::clamp_index;
use crate::ir::graph::{BinaryOp, CaptureId, Depends, Graph, Input, Mod, NodeId, Op, Ty, UnaryOp, Width, load_ty};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, OnceLock};

/// A compiled graph; shared between threads.
#[derive(Debug)]
pub struct Program {
    pub(super) ops: Vec<Op>,
    /// Whether the floats of each are float32.
    single: Vec<bool>,
    /// Ends of the groups: constants, b and h, q_idx, kv_idx, both.
    ends: [usize; 5],
    pub(super) root: usize,
    /// The value of a node that settles the root: false under a chain of `and`, true under a chain of `or`.
    settles: Vec<Option<bool>>,
    /// The q_idx and the kv_idx group's values that the last group reads, and whether remembering them pays.
    outputs: [Outputs; 2],
    graph: Arc<Graph>,
    tables: Vec<OnceLock<Arc<Table>>>,
}

/// The values that a group passes to the last one.
#[derive(Debug, Default)]
struct Outputs {
    slots: Vec<usize>,
    remember: bool,
}

/// Instructions that a group must have before its results are remembered rather than computed again.
const WORTH: usize = 3;
/// Ranges that are remembered, at most.
const REMEMBERED: usize = 1 << 15;

/// Group results by the range they were computed for.
type Remembered = HashMap<(i64, i64), SmallVec<[Value; 4]>, BuildHasherDefault<Mixer>>;

/// Values of the last evaluation; one a thread.
#[derive(Clone, Debug)]
pub struct Scratch {
    pub(super) values: Vec<Value>,
    cells: Option<Cells>,
    score: Floats,
    /// For the q_idx and the kv_idx group, at the current b and h.
    remembered: [Remembered; 2],
    /// Whether those groups' inner values are those of `cells` and not only their outputs.
    whole: [bool; 2],
}

#[cfg(test)]
impl Scratch {
    /// The last box that was evaluated.
    pub(crate) fn cells(&self) -> Option<&Cells> {
        self.cells.as_ref()
    }
}

/// Group of a node by its inputs.
fn group(d: Depends) -> usize {
    match (d.on(Input::QIdx), d.on(Input::KvIdx) || d.on(Input::Score)) {
        (true, true) => 4,
        (false, true) => 3,
        (true, false) => 2,
        (false, false) => usize::from(d != Depends::NONE),
    }
}

impl Program {
    /// Compiles what the mod's result needs.
    pub fn new(of: &Mod) -> Self {
        Self::of_graph(Arc::new(of.graph.clone()), of.root)
    }

    /// Compiles what `root` needs.
    pub fn of_graph(graph: Arc<Graph>, root: NodeId) -> Self {
        let nodes = graph.nodes();
        let depends = graph.depends();
        let mut needed = vec![false; root.0 as usize + 1];
        needed[root.0 as usize] = true;
        for at in (0..needed.len()).rev().filter(|at| *at < nodes.len()) {
            if needed[at] {
                nodes[at].op.operands().iter().for_each(|o| needed[o.0 as usize] = true);
            }
        }
        let mut order: Vec<usize> = (0..needed.len()).filter(|at| needed[*at]).collect();
        order.sort_by_key(|at| group(depends[*at])); // stable: operands stay before users
        let mut slot = vec![NodeId(u32::MAX); needed.len()];
        let mut ops = Vec::with_capacity(order.len());
        let mut single = Vec::with_capacity(order.len());
        let mut ends = [0; 5];
        for at in order {
            slot[at] = NodeId(ops.len() as u32);
            ops.push(nodes[at].op.map_operands(|o| slot[o.0 as usize]));
            single.push(graph.width(&nodes[at].op) == Width::Single);
            ends[group(depends[at])..].iter_mut().for_each(|e| *e = ops.len());
        }
        let tables = graph.captures().iter().map(|_| OnceLock::new()).collect();
        let root = slot[root.0 as usize].0 as usize;
        let settles = settles(&ops, root);
        let outputs = [outputs(&ops, root, &ends, 2), outputs(&ops, root, &ends, 3)];
        Self { root, ops, single, ends, settles, outputs, graph, tables }
    }

    /// Fresh scratch for this program.
    pub fn scratch(&self) -> Scratch {
        Scratch {
            values: vec![Value::Bool(Truth::BOTH); self.ops.len()],
            cells: None,
            score: Floats::ANY,
            remembered: Default::default(),
            whole: [false; 2],
        }
    }

    /// The possible results over the box.
    pub fn evaluate(&self, cells: &Cells, scratch: &mut Scratch) -> Value {
        self.evaluate_with_score(cells, Floats::ANY, scratch)
    }

    /// The same for a score mod with an incoming score in a range.
    pub fn evaluate_with_score(&self, cells: &Cells, score: Floats, scratch: &mut Scratch) -> Value {
        let last = scratch.cells;
        let head = last.is_none_or(|l| l.b != cells.b || l.h != cells.h);
        if head || score != scratch.score {
            scratch.remembered.iter_mut().for_each(HashMap::clear);
        }
        let new_kv = head || last.is_none_or(|l| l.kv != cells.kv) || score != scratch.score;
        scratch.cells = Some(*cells);
        scratch.score = score;
        if last.is_none() {
            self.run(0..self.ends[0], cells, scratch);
        }
        if head {
            self.run(self.ends[0]..self.ends[1], cells, scratch);
        }
        if head || last.is_none_or(|l| l.q != cells.q) {
            self.recall(0, cells.q, cells, scratch);
        }
        if new_kv {
            self.recall(1, cells.kv, cells, scratch);
        }
        for at in self.ends[3]..self.ends[4] {
            let value = self.step(at, cells, scratch);
            scratch.values[at] = value;
            if self.settles[at].is_some() && value.truth().value() == self.settles[at] {
                scratch.values[self.root] = value;
                break;
            }
        }
        scratch.values[self.root]
    }

    fn run(&self, slots: std::ops::Range<usize>, cells: &Cells, scratch: &mut Scratch) {
        for at in slots {
            scratch.values[at] = self.step(at, cells, scratch);
        }
    }

    /// The q_idx (0) or kv_idx (1) group for a range, from memory if this is faster.
    fn recall(&self, which: usize, range: (i64, i64), cells: &Cells, scratch: &mut Scratch) {
        let slots = self.ends[which + 1]..self.ends[which + 2];
        let outputs = &self.outputs[which];
        if !outputs.remember {
            scratch.whole[which] = true;
            return self.run(slots, cells, scratch);
        }
        if let Some(known) = scratch.remembered[which].get(&range) {
            outputs.slots.iter().zip(known).for_each(|(at, value)| scratch.values[*at] = *value);
            scratch.whole[which] = false;
            return;
        }
        self.run(slots, cells, scratch);
        scratch.whole[which] = true;
        if scratch.remembered[which].len() >= REMEMBERED {
            scratch.remembered[which].clear();
        }
        let values = outputs.slots.iter().map(|at| scratch.values[*at]).collect();
        scratch.remembered[which].insert(range, values);
    }

    /// Makes every node's value that of the last evaluated box, where memory gave only some.
    pub(super) fn complete(&self, cells: &Cells, scratch: &mut Scratch) {
        for which in 0..2 {
            if !std::mem::replace(&mut scratch.whole[which], true) {
                self.run(self.ends[which + 1]..self.ends[which + 2], cells, scratch);
            }
        }
    }

    /// The group of a node by its inputs: constants, b and h, q_idx, kv_idx, both.
    pub(super) fn group_of(&self, at: usize) -> usize {
        self.ends.iter().take_while(|end| **end <= at).count()
    }

    /// Whether a node is a bool, once anything has been evaluated.
    pub(super) fn is_bool(&self, at: usize) -> bool {
        match &self.ops[at] {
            Op::Bool(_) => true,
            Op::Unary(UnaryOp::Not, a) => self.is_bool(a.0 as usize),
            Op::Unary(op, _) => *op == UnaryOp::ToBool,
            Op::Binary(op, a, _) => op.is_comparison() || self.is_bool(a.0 as usize),
            Op::Where(_, a, _) => self.is_bool(a.0 as usize),
            Op::Load(capture, _) => load_ty(self.graph.capture(*capture).tensor.dtype()) == Ty::Bool,
            Op::Input(_) | Op::Int(_) | Op::Float(_) | Op::UniformInt(_) | Op::UniformFloat(_) => false,
        }
    }

    /// Only what depends on q_idx (and on less), for a scratch that is used for nothing else and stays with one b and h.
    pub(super) fn run_rows(&self, cells: &Cells, scratch: &mut Scratch) {
        let from = if scratch.cells.replace(*cells).is_none() { 0 } else { self.ends[1] };
        self.run(from..self.ends[2], cells, scratch);
    }

    /// Only what depends on kv_idx, after `evaluate` of a box of the same b and h; the rest is then out of date.
    pub(super) fn run_columns(&self, cells: &Cells, scratch: &mut Scratch) {
        self.run(self.ends[2]..self.ends[3], cells, scratch);
    }

    /// Whether every int that the result needs stays within these ends over the box.
    pub fn ints_within(&self, cells: &Cells, (least, most): (i64, i64)) -> bool {
        let mut scratch = self.scratch();
        (0..self.ops.len()).all(|at| {
            let value = self.step(at, cells, &scratch);
            scratch.values[at] = value;
            !matches!(value, Value::Int(int) if int.lo < least || int.hi > most)
        })
    }

    /// The possible values of a bool result over the box.
    pub fn truth(&self, cells: &Cells, scratch: &mut Scratch) -> Truth {
        self.evaluate(cells, scratch).truth()
    }

    fn step(&self, at: usize, cells: &Cells, scratch: &Scratch) -> Value {
        let values = &scratch.values;
        let value = |id: &NodeId| &values[id.0 as usize];
        match &self.ops[at] {
            Op::Input(input) => input_value(*input, cells, scratch.score),
            Op::Bool(v) => Value::Bool(Truth::of(*v)),
            Op::Int(v) => Value::Int(Ints::constant(*v)),
            Op::Float(bits) => Value::Float(Floats::constant(f64::from_bits(*bits))),
            Op::UniformInt(_) => Value::Int(Ints::ANY),
            Op::UniformFloat(_) => Value::Float(Floats::ANY),
            Op::Unary(op, a) => unary(*op, value(a), cells, self.single[at]),
            Op::Binary(op, a, b) if a == b => same_operands(*op, value(a), cells, self.single[at]),
            Op::Binary(op, a, b) => binary(*op, value(a), value(b), cells, self.single[at]),
            Op::Where(c, a, b) => {
                let kept = select(value(c).truth(), value(a), value(b));
                if self.single[at] { kept.single() } else { kept }
            }
            Op::Load(capture, index) => {
                let index = index.iter().map(|i| values[i.0 as usize].int());
                self.load(*capture, index)
            }
        }
    }

    /// An element of a captured tensor at these indices.
    pub(super) fn load(&self, capture: CaptureId, index: impl Iterator<Item = Ints>) -> Value {
        let tensor = &self.graph.capture(capture).tensor;
        let reach: Index = index.zip(tensor.shape()).map(|(i, n)| reachable(i, *n)).collect();
        if tensor.numel() == 0 {
            return match load_ty(tensor.dtype()) {
                Ty::Bool => Value::Bool(Truth::FALSE),
                Ty::Int => Value::Int(Ints::constant(0)),
                Ty::Float | Ty::Double => Value::Float(Floats::constant(0.0)),
            };
        }
        if reach.iter().all(|(lo, hi)| lo == hi) {
            let flat = reach.iter().zip(tensor.shape()).fold(0, |flat, ((i, _), n)| flat * n + i);
            return match load_ty(tensor.dtype()) {
                Ty::Bool => Value::Bool(Truth::of(tensor.int_at(flat) != 0)),
                Ty::Int => Value::Int(Ints::constant(tensor.int_at(flat))),
                Ty::Float | Ty::Double => Value::Float(Floats::constant(tensor.float_at(flat))),
            };
        }
        self.tables[capture.0 as usize].get_or_init(|| Table::shared(tensor)).range(&reach)
    }
}

/// Which nodes settle the root by one of their values: the operands of its chain of `and` or of `or`.
fn settles(ops: &[Op], root: usize) -> Vec<Option<bool>> {
    let mut out = vec![None; ops.len()];
    let Op::Binary(chain @ (BinaryOp::And | BinaryOp::Or), ..) = &ops[root] else { return out };
    let mut stack = vec![root];
    while let Some(at) = stack.pop() {
        match &ops[at] {
            Op::Binary(op, a, b) if op == chain => stack.extend([a.0 as usize, b.0 as usize]),
            _ => {}
        }
        out[at] = Some(*chain == BinaryOp::Or);
    }
    out
}

/// The nodes of a group that later groups or the caller read.
fn outputs(ops: &[Op], root: usize, ends: &[usize; 5], group: usize) -> Outputs {
    let inside = ends[group - 1]..ends[group];
    let mut read = vec![false; ops.len()];
    read[root] = true;
    ops[ends[group]..].iter().flat_map(Op::operands).for_each(|o| read[o.0 as usize] = true);
    Outputs { slots: inside.clone().filter(|at| read[*at]).collect(), remember: inside.len() >= WORTH }
}

/// Elements of a dimension that an index range reaches after the wrap and the clamp.
fn reachable(i: Ints, n: usize) -> (usize, usize) {
    if i.lo < 0 && i.hi >= 0 {
        return (0, n.saturating_sub(1)); // the negative part wraps to the end, the rest starts at 0
    }
    // huge negative indices clamp to 0 with any addend
    let clamp = |v: i64| clamp_index(v.max(-(1 << 60)), n);
    (clamp(i.lo), clamp(i.hi))
}

fn input_value(input: Input, cells: &Cells, score: Floats) -> Value {
    let index = |range: (i64, i64), q: i64, kv: i64| {
        let form = Some(Form { q, kv, c: 0 });
        Value::Int(if range.0 == range.1 { Ints::constant(range.0) } else { Ints { lo: range.0, hi: range.1, form } })
    };
    match input {
        Input::B => Value::Int(Ints::range(cells.b.0, cells.b.1)),
        Input::H => Value::Int(Ints::range(cells.h.0, cells.h.1)),
        Input::QIdx => index(cells.q, 1, 0),
        Input::KvIdx => index(cells.kv, 0, 1),
        Input::Score => Value::Float(score),
    }
}

fn select(condition: Truth, a: &Value, b: &Value) -> Value {
    match condition.value() {
        Some(true) => *a,
        Some(false) => *b,
        None => match (a, b) {
            (Value::Bool(a), Value::Bool(b)) => Value::Bool(a.join(*b)),
            (Value::Int(a), Value::Int(b)) => Value::Int(a.join(*b)),
            _ => Value::Float(a.float().join(b.float())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::examples::Builder;

    #[test]
    fn a_choice_is_one_of_both_until_its_condition_is_known() {
        let (t, f, both) = (Truth::TRUE, Truth::FALSE, Truth::BOTH);
        let ints = [Ints::range(1, 2), Ints::range(5, 9)].map(Value::Int);
        let floats = [Floats::range(1.0, 2.0), Floats::range(5.0, 9.0)].map(Value::Float);
        let bools = [t, f].map(Value::Bool);
        for [a, b] in [ints, floats, bools] {
            assert_eq!((select(t, &a, &b), select(f, &a, &b)), (a, b));
        }
        assert_eq!(select(both, &ints[0], &ints[1]), Value::Int(Ints::range(1, 9)));
        assert_eq!(select(both, &floats[0], &floats[1]), Value::Float(Floats::range(1.0, 9.0)));
        assert_eq!(select(both, &bools[0], &bools[1]), Value::Bool(both));
        assert_eq!(select(both, &bools[0], &bools[0]), Value::Bool(t));
        assert_eq!(select(both, &bools[1], &bools[1]), Value::Bool(f));
    }

    #[test]
    fn an_index_reaches_the_elements_that_its_values_do() {
        for n in 1..6 {
            for lo in -12..12 {
                for hi in lo..12 {
                    let all: Vec<usize> = (lo..=hi).map(|i| clamp_index(i, n)).collect();
                    let (first, last) = reachable(Ints::range(lo, hi), n);
                    let (least, most) = (*all.iter().min().expect("one"), *all.iter().max().expect("one"));
                    assert!(first <= least && most <= last && last < n, "{lo}..={hi} of {n}");
                    // negative indices count from the end: with others besides they may be any
                    assert!(lo < 0 && hi >= 0 || (first, last) == (least, most), "{lo}..={hi} of {n}");
                }
            }
        }
        assert_eq!((reachable(Ints::range(i64::MIN, -1), 7), reachable(Ints::range(3, i64::MAX), 7)), ((0, 6), (3, 6)));
    }

    #[test]
    fn what_is_remembered_of_one_score_is_not_told_of_another() {
        // (score + 1) * 2 - 3
        let mut g = Builder::new();
        let score = g.graph.input(Input::Score);
        let [one, two, three] = [1.0, 2.0, 3.0].map(|x| g.graph.float(x));
        let more = g.add(score, one);
        let twice = g.mul(more, two);
        let root = g.sub(twice, three);
        let program = Program::new(&g.mask(root));
        let mut scratch = program.scratch();
        let (here, there) = (Cells::new(0, 0, 0..4, 0..4), Cells::new(0, 0, 0..4, 4..8));
        let mut of =
            |cells: &Cells, lo: f64, hi: f64| program.evaluate_with_score(cells, Floats::range(lo, hi), &mut scratch);
        let range = |lo, hi| Value::Float(Floats::range(lo, hi));
        assert_eq!((of(&here, 0.0, 1.0), of(&here, 10.0, 11.0)), (range(-1.0, 1.0), range(19.0, 21.0)));
        assert_eq!((of(&there, 10.0, 11.0), of(&there, 0.0, 1.0)), (range(19.0, 21.0), range(-1.0, 1.0)));
        assert_eq!((of(&here, 0.0, 1.0), of(&here, 0.0, 1.0)), (range(-1.0, 1.0), range(-1.0, 1.0)));
    }

    #[test]
    fn a_value_less_itself_is_nothing() {
        // of q * q intervals know a range alone
        let mut g = Builder::new();
        let square = g.mul(g.q, g.q);
        let less = g.graph.add(Op::Binary(BinaryOp::Sub, square, square), None);
        let root = g.at_most(less, 0);
        let program = Program::new(&g.mask(root));
        let truth = program.truth(&Cells::new(0, 0, 3..9, 0..4), &mut program.scratch());
        assert_eq!(truth, Truth::TRUE);
    }

    #[test]
    fn every_int_on_the_way_to_the_result_stays_within_its_ends() {
        // (q - 5) * 2 < kv: the ints are q from 0 to 9, 5, -5 to 4, 2, -10 to 8 and kv from 0 to 3
        let mut g = Builder::new();
        let five = g.int(5);
        let less = g.sub(g.q, five);
        let two = g.int(2);
        let twice = g.mul(less, two);
        let root = g.lt(twice, g.k);
        let program = Program::new(&g.mask(root));
        let within = |ends| program.ints_within(&Cells::new(0, 0, 0..10, 0..4), ends);
        assert_eq!([within((-10, 9)), within((-9, 9)), within((-10, 8))], [true, false, false]);
    }
}
