//! The derivative of a score mod as a graph: by the score, and by every element of a captured tensor that it reads.
//!
//! Invariant: each formula is PyTorch's own, including ties, infinities and NaN: a factor of zero in PyTorch is a
//! factor of zero here, and no term is dropped because it seems to be zero. A mask is a selection and has no
//! derivative. Must not know the use of the result.

mod rules;
#[cfg(test)]
mod tests;

pub use rules::{Derivative, Formula, derivative, slope};

use crate::base::Diagnostic;
use crate::ir::graph::{BinaryOp, CaptureId, Graph, Input, Mod, ModKind, NodeId, Op, Ty, UnaryOp};
use crate::ir::made::Made;
use crate::ir::passes::simplify::simplify;
use rules::Rule;
use smallvec::SmallVec;

/// A score mod's derivative. The nodes live in `graph`; a gradient of the mod's result is multiplied by them.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// All of them, with their operands.
    pub graph: Graph,
    /// The derivative by the score. A literal 1 for a mod that only adds to the score.
    pub score: NodeId,
    /// One for each read of a float tensor through which a gradient goes.
    pub reads: Vec<ReadGradient>,
}

/// The gradient of the captured element of one read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadGradient {
    /// The tensor, as the mod numbers it. In [`Derived::graph`] it may have another number, or none.
    pub capture: CaptureId,
    /// Where it is read: as many ints as it has dimensions, before wrap and clamp.
    pub index: SmallVec<[NodeId; 4]>,
    /// The derivative by that element.
    pub value: NodeId,
}

impl Derived {
    /// The derivative by the score if it is the same number everywhere.
    pub fn constant(&self) -> Option<f64> {
        match self.graph.node(self.score).op {
            Op::Float(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// The tensors that get a gradient, as the mod numbers them, each once.
    pub fn captures(&self) -> Vec<CaptureId> {
        let mut all: Vec<CaptureId> = self.reads.iter().map(|read| read.capture).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// One of its nodes as a separate mod.
    pub fn part(&self, root: NodeId) -> Mod {
        Mod { kind: ModKind::Score, graph: self.graph.clone(), root, sources: Vec::new() }
    }
}

/// The derivative of a score mod by the score and by the captured tensors for which `wanted` returns yes. Errors: it is
/// a mask, or PyTorch does not differentiate an operation on the gradient's path.
pub fn derive(score: &Mod, wanted: impl Fn(CaptureId) -> bool) -> Result<Derived, Diagnostic> {
    if score.kind != ModKind::Score {
        return Err(Diagnostic::error("no-derivative", "a mask_mod selects cells and has no derivative")
            .hint("derive the score_mod"));
    }
    let mut sweep = Sweep::new(score, &wanted);
    sweep.run(score)?;
    let derived = sweep.finish(score);
    for id in derived.captures() {
        let held = score.graph.capture(id);
        if let Some(Made::Lost(lost)) = held.made.as_deref() {
            return Err(placed(lost.refusal(&held.name), score));
        }
    }
    Ok(derived)
}

/// One reverse sweep: the gradient of every node, from the result back to the inputs.
struct Sweep {
    graph: Graph,
    /// Which nodes have the score or a wanted element behind them.
    learns: Vec<bool>,
    /// The gradient of each node so far.
    gradients: Vec<Option<NodeId>>,
}

impl Sweep {
    fn new(score: &Mod, wanted: &impl Fn(CaptureId) -> bool) -> Sweep {
        let mut learns: Vec<bool> = Vec::with_capacity(score.graph.nodes().len());
        for node in score.graph.nodes() {
            let behind = |id: &NodeId| learns[id.0 as usize];
            let goes_on = match &node.op {
                Op::Input(Input::Score) => true,
                Op::Load(capture, _) => node.ty.is_float() && wanted(*capture),
                Op::Unary(UnaryOp::Stop, _) => false,
                Op::Where(_, a, b) => node.ty.is_float() && (behind(a) || behind(b)),
                op => node.ty.is_float() && op.operands().iter().any(behind),
            };
            learns.push(goes_on);
        }
        Sweep { graph: score.graph.clone(), gradients: vec![None; learns.len()], learns }
    }

    fn run(&mut self, score: &Mod) -> Result<(), Diagnostic> {
        let root = score.root.0 as usize;
        if !self.learns[root] {
            return Ok(());
        }
        self.gradients[root] = Some(self.graph.float(1.0));
        for at in (0..=root).rev() {
            if let (true, Some(gradient)) = (self.learns[at], self.gradients[at]) {
                self.back(score, NodeId(at as u32), gradient)?;
            }
        }
        Ok(())
    }

    /// Shares the gradient of the largest of several values evenly among the equal largest ones.
    fn share(&mut self, id: NodeId, leaves: &[NodeId], gradient: NodeId) {
        use BinaryOp::{Add, Div, Eq};
        let double = self.graph.ty(id) == Ty::Double;
        let typed = |graph: &mut Graph, x: f64| {
            let number = graph.float(x);
            if double { graph.unary(UnaryOp::ToDouble, number) } else { number }
        };
        let (zero, one) = (typed(&mut self.graph, 0.0), typed(&mut self.graph, 1.0));
        let tops: Vec<NodeId> = leaves.iter().map(|leaf| self.graph.binary(Eq, *leaf, id)).collect();
        let mut count = zero;
        for top in &tops {
            let counted = self.graph.add(Op::Where(*top, one, zero), None);
            count = self.graph.binary(Add, count, counted);
        }
        for (leaf, top) in leaves.iter().zip(tops) {
            let kept = self.graph.add(Op::Where(top, gradient, zero), None);
            let part = self.graph.binary(Div, kept, count);
            if self.learns[leaf.0 as usize] {
                self.add(*leaf, part);
            }
        }
    }

    /// Hands the gradient of a node on to its operands.
    fn back(&mut self, score: &Mod, id: NodeId, gradient: NodeId) -> Result<(), Diagnostic> {
        let op = score.graph.node(id).op.clone();
        if let Some(leaves) = shared_extreme(&score.graph, id) {
            self.share(id, &leaves, gradient);
            return Ok(());
        }
        let operands = op.operands();
        let given = match derivative(&op) {
            Derivative::Ends => return Ok(()),
            Derivative::Missing(name) => return Err(missing(score, id, name)),
            Derivative::Of(parts) => parts,
        };
        for (operand, formula) in operands.iter().zip(given) {
            let (Some(formula), true) = (formula, self.learns[operand.0 as usize]) else { continue };
            let part = formula(&mut Rule { graph: &mut self.graph, op: &op, result: id, gradient });
            self.add(*operand, part);
        }
        Ok(())
    }

    fn add(&mut self, to: NodeId, part: NodeId) {
        debug_assert_eq!(self.graph.ty(to), self.graph.ty(part));
        let slot = &mut self.gradients[to.0 as usize];
        *slot = Some(match *slot {
            Some(before) => joined(&mut self.graph, before, part),
            None => part,
        });
    }

    /// The remaining graph: the wanted nodes, each simplified, in one graph.
    fn finish(self, score: &Mod) -> Derived {
        let mut made = Derived { graph: Graph::new(), score: NodeId(0), reads: Vec::new() };
        let mut keep = |root: NodeId| {
            let part = Mod { kind: ModKind::Score, graph: self.graph.clone(), root, sources: score.sources.clone() };
            let part = simplify(&part);
            made.graph.import(&part.graph, part.root, |_, _| None)
        };
        let nodes = score.graph.nodes().iter().enumerate();
        let score_at = nodes.clone().find(|(_, node)| node.op == Op::Input(Input::Score)).map(|(at, _)| at);
        let by_score = score_at.and_then(|at| self.gradients[at]).map(&mut keep);
        let mut reads = Vec::new();
        for (at, node) in nodes {
            if let (Op::Load(capture, index), Some(gradient)) = (&node.op, self.gradients[at]) {
                let value = keep(gradient);
                reads.push(ReadGradient { capture: *capture, index: index.iter().map(|i| keep(*i)).collect(), value });
            }
        }
        made.score = by_score.unwrap_or_else(|| made.graph.float(0.0));
        made.reads = reads;
        debug_assert_eq!(made.graph.verify(), Ok(()));
        made
    }
}

fn is_zero(graph: &Graph, id: NodeId) -> bool {
    match graph.node(id).op {
        Op::Float(bits) => f64::from_bits(bits) == 0.0,
        Op::Unary(UnaryOp::ToDouble, number) => is_zero(graph, number),
        _ => false,
    }
}

/// The sum of two gradients. Those of a choice's two branches need no sum, because one of them is zero. If both are the
/// same, as of `where(c, score + bias, score)`, simplification leaves no choice either.
fn joined(graph: &mut Graph, a: NodeId, b: NodeId) -> NodeId {
    let one = |a: NodeId, b: NodeId| match (&graph.node(a).op, &graph.node(b).op) {
        (Op::Where(c, yes, none), Op::Where(d, nothing, no))
            if c == d && [none, nothing].iter().all(|x| is_zero(graph, **x)) =>
        {
            Some(Op::Where(*c, *yes, *no))
        }
        _ => None,
    };
    match one(a, b).or_else(|| one(b, a)) {
        Some(choice) => graph.add(choice, None),
        None => graph.binary(BinaryOp::Add, a, b),
    }
}

/// All elements of a maximum or minimum of many: torch.amax shares its gradient evenly, torch.maximum by halves. The
/// former is written as `max(m, m)` of a chain from the left, which begins with `max(x, x)`.
pub fn shared_extreme(graph: &Graph, id: NodeId) -> Option<Vec<NodeId>> {
    let Op::Binary(op @ (BinaryOp::Max | BinaryOp::Min), mut at, same) = graph.node(id).op else { return None };
    if at != same {
        return None;
    }
    let mut leaves = Vec::new();
    loop {
        match graph.node(at).op {
            Op::Binary(own, rest, leaf) if own == op && rest != leaf => {
                leaves.push(leaf);
                at = rest;
            }
            Op::Binary(own, first, _) if own == op && !leaves.is_empty() => {
                leaves.push(first);
                leaves.reverse();
                return Some(leaves);
            }
            _ => return None,
        }
    }
}

/// PyTorch refuses this operation's derivative, too.
fn missing(score: &Mod, id: NodeId, name: &str) -> Diagnostic {
    let message = format!("PyTorch has no derivative of {name}, and the gradient of this score_mod goes through it");
    let reported = Diagnostic::error("no-derivative", message)
        .hint("exclude it from the gradient with `.detach()`, or write torch.div(a, b, rounding_mode=\"floor\")");
    let reported = match score.graph.node(id).span {
        Some(span) => reported.at(span, "here"),
        None => reported,
    };
    placed(reported, score)
}

/// With the mod's texts, and the line in the message: tables show no more than that.
fn placed(reported: Diagnostic, score: &Mod) -> Diagnostic {
    let mut reported = Diagnostic { sources: score.sources.clone(), ..reported };
    let source = reported.labels.first().and_then(|label| reported.sources.get(label.span.source.0 as usize));
    if let (Some((line, _)), Some(source)) = (reported.line_column(), source) {
        reported.message = format!("{} (line {line} of {})", reported.message, source.name);
    }
    reported
}

/// The place of a read in its tensor, flattened, as a float64: what evaluators of scores can give.
pub fn flat_index(derived: &Derived, read: &ReadGradient, shape: &[usize]) -> Mod {
    use crate::ir::graph::BinaryOp::{Add, Lt, Max, Min, Mul};
    let mut graph = derived.graph.clone();
    let mut flat = graph.int(0);
    for (index, n) in read.index.iter().zip(shape) {
        let (zero, extent, last) = (graph.int(0), graph.int(*n as i64), graph.int(*n as i64 - 1));
        let below = graph.binary(Lt, *index, zero);
        let wrapped = graph.binary(Add, *index, extent);
        let wrapped = graph.add(Op::Where(below, wrapped, *index), None);
        let clamped = graph.binary(Max, wrapped, zero);
        let clamped = graph.binary(Min, clamped, last);
        let row = graph.binary(Mul, flat, extent);
        flat = graph.binary(Add, row, clamped);
    }
    let root = graph.unary(UnaryOp::ToDouble, flat);
    debug_assert_eq!(graph.ty(root), Ty::Double);
    simplify(&Mod { kind: ModKind::Score, graph, root, sources: Vec::new() })
}
