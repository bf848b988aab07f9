//! The evaluation of one cell in steps: every sub-expression with its text and its value, for the Cell tab and `check
//! --at`.
//!
//! Invariant: values are the interpreter's. Source text is shown for one expression only, the outermost in its span;
//! expressions created by simplification are printed from the graph. Must not know how steps are shown.

use super::cell::{Cell, Uniforms, Value, values};
use super::graph::{Graph, Mod, NodeId, Op, Ty};
use super::print;
use super::schedule::post_order;
use crate::base::Span;
use std::collections::HashMap;

/// One sub-expression at one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Where it was written, into the mod's sources.
    pub span: Option<Span>,
    /// Its source text on one line; printed from the graph without one.
    pub text: String,
    /// Its value here.
    pub value: Value,
    /// Type of the value.
    pub ty: Ty,
    /// Its distance below the result, 0 for the result itself; the shortest of several.
    pub depth: usize,
    /// The node.
    pub node: NodeId,
    /// Whether the value is a float32, so that it is shown with float32's digits.
    pub single: bool,
    /// Whether it is a read of a captured tensor at an index outside it, replaced by the nearest element.
    pub clamped: bool,
}

impl Step {
    /// The value in Python's form, with the digits of its own precision.
    pub fn shown(&self) -> String {
        match self.value {
            Value::Float(x) if self.single && x.is_finite() => format!("{:?}", x as f32),
            value => value.to_string(),
        }
    }
}

/// Every sub-expression that the result needs, in evaluation order, the result last. Inputs and literals, whose values
/// are plain to see, are left out unless one is the result.
pub fn steps(mod_: &Mod, cell: &Cell) -> Vec<Step> {
    let graph = &mod_.graph;
    let values = values(graph, mod_.root, cell, Uniforms::default());
    let order = post_order(graph, &[mod_.root]);
    let depths = depths(graph, &order, mod_.root);
    // users come later: the last node of a span is the outermost
    let marked: HashMap<Span, NodeId> =
        order.iter().filter_map(|id| graph.node(*id).span.map(|span| (span, *id))).collect();
    let shown = |id: NodeId| id == mod_.root || !graph.node(id).op.operands().is_empty();
    order
        .into_iter()
        .filter(|id| shown(*id))
        .map(|node| {
            let span = graph.node(node).span.filter(|span| marked.get(span) == Some(&node));
            Step {
                span,
                text: text(mod_, node, span),
                value: values[node.0 as usize],
                ty: graph.ty(node),
                depth: depths[node.0 as usize],
                node,
                single: graph.ty(node) == Ty::Float && !graph.follows_score(node),
                clamped: clamped(graph, node, &values),
            }
        })
        .collect()
}

fn text(mod_: &Mod, node: NodeId, span: Option<Span>) -> String {
    let written = span.and_then(|span| {
        let text = mod_.sources.get(span.source.0 as usize)?.slice(span);
        (!text.is_empty()).then(|| text.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    written.unwrap_or_else(|| print::expression(&mod_.graph, node))
}

fn depths(graph: &Graph, order: &[NodeId], root: NodeId) -> Vec<usize> {
    let mut depths = vec![usize::MAX; graph.nodes().len()];
    depths[root.0 as usize] = 0;
    for id in order.iter().rev() {
        let below = depths[id.0 as usize].saturating_add(1);
        for operand in graph.node(*id).op.operands() {
            let depth = &mut depths[operand.0 as usize];
            *depth = below.min(*depth);
        }
    }
    depths
}

/// Whether a read's index is outside its tensor here, so that another element is read.
fn clamped(graph: &Graph, node: NodeId, values: &[Value]) -> bool {
    let Op::Load(capture, index) = &graph.node(node).op else { return false };
    let shape = graph.capture(*capture).tensor.shape();
    index.iter().zip(shape).any(|(i, n)| {
        let (at, n) = (values[i.0 as usize].as_int(), *n as i64);
        at < -n || at >= n
    })
}

#[cfg(test)]
mod tests {
    use crate::base::tensor::Data;
    use crate::base::{HostTensor, Source, SourceId};
    use crate::ir::cell::eval;
    use crate::ir::graph::{BinaryOp, Input, ModKind};
    use crate::ir::passes::simplify::simplify;
    use crate::ir::random::{self, Options};
    use crate::ir::steps::*;
    use smallvec::smallvec;

    fn check(mod_: &Mod, cell: Cell, want: &[&str]) {
        let line = |s: Step| {
            let note = if s.clamped { " (clamped)" } else { "" };
            format!("{}{} = {}{note}", "  ".repeat(s.depth), s.text, s.shown())
        };
        assert_eq!(steps(mod_, &cell).into_iter().map(line).collect::<Vec<_>>(), want);
    }

    #[test]
    fn each_expression_has_its_text_value_and_depth() {
        let mut g = Graph::new();
        let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
        let doc = g.add_capture("doc", HostTensor::vector(Data::I32(vec![0, 0, 1])));
        let (a, b) = (g.add(Op::Load(doc, smallvec![q]), None), g.add(Op::Load(doc, smallvec![k]), None));
        let (same, causal) = (g.binary(BinaryOp::Eq, a, b), g.binary(BinaryOp::Ge, q, k));
        let root = g.binary(BinaryOp::And, same, causal);
        let mod_ = Mod { kind: ModKind::Mask, graph: g, root, sources: Vec::new() };
        let want = [
            "    doc[q_idx] = 1 (clamped)",
            "    doc[kv_idx] = 0",
            "  doc[q_idx] == doc[kv_idx] = False",
            "  q_idx >= kv_idx = True",
            "(doc[q_idx] == doc[kv_idx]) & (q_idx >= kv_idx) = False",
        ];
        check(&mod_, Cell { q_idx: 7, kv_idx: 1, ..Cell::default() }, &want);
    }

    #[test]
    fn a_source_text_is_shown_once() {
        let text = "((q * 64) +\n  (k % 8)) // 8";
        let span = Some(Span::new(SourceId(0), 0, text.len() as u32));
        let mut g = Graph::new();
        let (q, k, big, eight) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.int(64), g.int(4));
        let product = g.binary(BinaryOp::Mul, q, big);
        let rest = g.binary(BinaryOp::Add, product, k);
        let block = g.add(Op::Binary(BinaryOp::FloorDiv, rest, eight), span);
        let root = g.binary(BinaryOp::Ge, block, k);
        let mod_ = Mod { kind: ModKind::Mask, graph: g, root, sources: vec![Source::new("a.py", text)] };
        let want = [
            "    q_idx * 16 = 48",
            "    kv_idx // 4 = 1",
            "  ((q * 64) + (k % 8)) // 8 = 49",
            "q_idx * 16 + kv_idx // 4 >= kv_idx = True",
        ];
        let cell = Cell { q_idx: 3, kv_idx: 5, ..Cell::default() };
        check(&simplify(&mod_), cell, &want);
    }

    #[test]
    fn the_last_step_is_the_result() {
        for seed in 0..60 {
            let options = Options { batch: 2, heads: 3, ..Options::new(40, 50) };
            let mod_ = random::score(seed, &options);
            let cell = Cell { b: 1, h: 2, q_idx: 17, kv_idx: 33, score: 0.5 };
            let steps = steps(&mod_, &cell);
            let last = steps.last().expect("at least the result");
            assert_eq!((last.value, last.depth, last.node), (eval(&mod_, &cell), 0, mod_.root));
            assert!(steps.iter().all(|s| s.ty == s.value.ty() && s.depth < 1000));
        }
    }
}
