//! A mod as a PyTorch function: `def mask_mod(b, h, q_idx, kv_idx):` or `def score_mod(score, b, h, q_idx, kv_idx):`.
//!
//! Invariant: under FlexAttention the text has the meaning of the graph: ints floor and do not wrap, reads stay inside
//! their tensors, half floats are read as float32. Sub-expressions used more than once are computed once. Must not know
//! where tensors are stored.

use super::expression::{Printer, Tight, infix, next};
use super::names::{self, Names};
use super::narrow::{self, Ranges};
use crate::ir::cell::Value;
use crate::ir::graph::{BinaryOp, Graph, Mod, ModKind, NodeId, Op};
use crate::ir::schedule;
use std::collections::HashMap;

/// Longest expression on one line.
const WIDTH: usize = 84;
/// Most operands of one `&`, `|` or `+` before it is cut by a local: text is printed recursively.
const CHAIN: usize = 48;

/// A mod as a function. Captured tensors are read as global names, which `names` keeps.
pub fn function(name: &str, of: &Mod, names: &mut Names, ranges: Ranges) -> String {
    let graph = &of.graph;
    let needed = schedule::needed(graph, &[of.root]);
    let mut captures = vec![String::new(); graph.captures().len()];
    for id in &needed {
        if let Op::Load(capture, _) = graph.node(*id).op {
            let read = graph.capture(capture);
            captures[capture.0 as usize] = names.tensor(&read.name, &read.tensor);
        }
    }
    let parameters = match of.kind {
        ModKind::Mask => "b, h, q_idx, kv_idx",
        ModKind::Score => "score, b, h, q_idx, kv_idx",
    };
    let mut writer = Writer {
        of,
        captures,
        ranges,
        wide: narrow::widened(graph, ranges),
        uses: uses(graph, &needed, of.root),
        locals: HashMap::new(),
        body: String::new(),
    };
    writer.statements(names.clone());
    format!("def {name}({parameters}):\n{}", writer.body)
}

/// How often each node is read; the root once more.
fn uses(graph: &Graph, needed: &[NodeId], root: NodeId) -> Vec<usize> {
    let mut uses = vec![0; graph.nodes().len()];
    uses[root.0 as usize] = 1;
    for id in needed {
        graph.node(*id).op.operands().iter().for_each(|o| uses[o.0 as usize] += 1);
    }
    uses
}

struct Writer<'a> {
    of: &'a Mod,
    captures: Vec<String>,
    ranges: Ranges<'a>,
    wide: Vec<Option<NodeId>>,
    uses: Vec<usize>,
    locals: HashMap<NodeId, String>,
    body: String,
}

impl Writer<'_> {
    fn op(&self, id: NodeId) -> &Op {
        &self.of.graph.node(id).op
    }

    fn statements(&mut self, mut names: Names) {
        let order = schedule::post_order(&self.of.graph, &[self.of.root]);
        let links = self.links(&order);
        // nodes that would be written, locals counting as one
        let mut weight = vec![1usize; self.of.graph.nodes().len()];
        for id in order {
            let operands = self.op(id).operands();
            if operands.is_empty() || id == self.of.root {
                continue;
            }
            let of = |o: &NodeId| if self.locals.contains_key(o) { 1 } else { weight[o.0 as usize] };
            let size = 1 + operands.iter().map(of).sum::<usize>();
            weight[id.0 as usize] = size;
            let uses = self.uses[id.0 as usize];
            let shared = uses > 1 && (size > 3 || uses > 2 && size > 1);
            // a link of a chain is written by the chain's last one
            if shared || (!links[id.0 as usize] && self.inline(id, Tight::Any).len() > WIDTH) {
                let name = names.fresh(&names::local(self.of, id));
                let text = self.broken(id);
                self.body.push_str(&format!("    {name} = {text}\n"));
                self.locals.insert(id, name);
            }
        }
        let root = self.root();
        self.body.push_str(&format!("    return {root}\n"));
    }

    /// Nodes that are the left operand of the same `&`, `|` or `+` and of nothing else.
    fn links(&self, order: &[NodeId]) -> Vec<bool> {
        let mut links = vec![false; self.of.graph.nodes().len()];
        let mut length = vec![1usize; links.len()];
        for id in order {
            let Op::Binary(op @ (BinaryOp::And | BinaryOp::Or | BinaryOp::Add), left, _) = self.op(*id) else {
                continue;
            };
            let same = matches!(self.op(*left), Op::Binary(other, ..) if other == op);
            if same && self.uses[left.0 as usize] == 1 && length[left.0 as usize] < CHAIN {
                links[left.0 as usize] = true;
                length[id.0 as usize] = length[left.0 as usize] + 1;
            }
        }
        links
    }

    fn with_printer<T>(&self, f: impl FnOnce(&Printer) -> T) -> T {
        let locals = |id: NodeId| self.locals.get(&id).map(String::as_str);
        f(&Printer {
            graph: &self.of.graph,
            captures: &self.captures,
            locals: &locals,
            range: Some(self.ranges),
            wide: &self.wide,
            widened: None,
            depth: usize::MAX,
        })
    }

    fn inline(&self, id: NodeId, place: Tight) -> String {
        self.with_printer(|p| p.text(id, place))
    }

    /// The expression of a node; a long chain has one operand a line.
    fn broken(&self, id: NodeId) -> String {
        let text = self.with_printer(|p| p.definition(id, Tight::Any));
        let Op::Binary(op @ (BinaryOp::And | BinaryOp::Or | BinaryOp::Add), ..) = self.op(id) else { return text };
        if text.len() <= WIDTH {
            return text;
        }
        let (sign, tight) = infix(*op).expect("written between its operands");
        let mut parts = Vec::new();
        let mut at = id;
        loop {
            match self.op(at) {
                Op::Binary(same, left, right) if same == op && (at == id || !self.locals.contains_key(&at)) => {
                    parts.push(self.inline(*right, next(tight)));
                    at = *left;
                }
                _ => break,
            }
        }
        parts.push(self.inline(at, tight));
        parts.reverse();
        format!("(\n        {}\n    )", parts.join(&format!("\n        {sign} ")))
    }

    /// The returned value: a tensor even if the mod is constant.
    fn root(&self) -> String {
        match Value::of_literal(self.op(self.of.root)) {
            Some(Value::Bool(true)) => "q_idx.new_ones((), dtype=torch.bool)".to_string(),
            Some(Value::Bool(false)) => "q_idx.new_zeros((), dtype=torch.bool)".to_string(),
            Some(_) => format!("torch.full_like(score, {})", self.inline(self.of.root, Tight::Any)),
            None => self.broken(self.of.root),
        }
    }
}
