//! The expression graph of a mod: hash-consed nodes over the indices b, h, q_idx, kv_idx and, for scores, the score.
//!
//! Invariant: nodes are in topological order (operands before users), well typed, and no two are equal; `Graph::verify`
//! checks it. Must not know Python, devices or masks' lengths.

mod ops;

pub use self::ops::{BinaryOp, Input, Op, Ty, UnaryOp, Width, load_ty};

use self::ops::{binary_type, unary_type};
use super::made::Made;
use crate::base::{HostTensor, Source, Span};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// Index of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub u32);

/// Index of a captured tensor in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CaptureId(pub u32);

/// Index into the uniform buffer of a lifted graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UniformId(pub u32);

/// A node: its operation, type and, if it comes from text, the place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its operation.
    pub op: Op,
    /// Type of the value.
    pub ty: Ty,
    /// Where it was written, into the mod's `sources`.
    pub span: Option<Span>,
}

/// A tensor that a mod reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// The name it had in the text.
    pub name: String,
    /// Its values.
    pub tensor: HostTensor,
    /// The factory's computation of it, if it may need gradients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Arc<Made>>,
}

/// Which inputs a node depends on, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Depends(pub u8);

impl Depends {
    /// Depends on nothing: a constant, a uniform or a load at constant indices.
    pub const NONE: Depends = Depends(0);

    /// Only this input.
    pub fn of(input: Input) -> Depends {
        Depends(1 << input as u8)
    }

    /// Whether `input` is in the set.
    pub fn on(self, input: Input) -> bool {
        self.0 & (1 << input as u8) != 0
    }

    /// The union.
    #[must_use]
    pub fn with(self, other: Depends) -> Depends {
        Depends(self.0 | other.0)
    }

    /// Whether every input of `self` is in `other`.
    pub fn within(self, other: Depends) -> bool {
        self.0 & !other.0 == 0
    }
}

/// A hash-consed arena of nodes and the tensors they read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Graph {
    nodes: Vec<Node>,
    captures: Vec<Capture>,
    #[serde(skip)]
    index: HashMap<Op, NodeId>,
    /// Which nodes are floats that follow from the score.
    #[serde(skip)]
    scored: Vec<bool>,
    /// The last number that a captured tensor of this name got: thousands of one name are not looked through anew.
    #[serde(skip)]
    numbered: HashMap<String, u32>,
}

/// The serialised part of a graph; the rest follows from it.
#[derive(Deserialize)]
struct Stored {
    nodes: Vec<Node>,
    captures: Vec<Capture>,
}

impl From<Stored> for Graph {
    fn from(Stored { nodes, captures }: Stored) -> Graph {
        let index = nodes.iter().enumerate().map(|(i, n)| (n.op.clone(), NodeId(i as u32))).collect();
        let mut graph = Graph { nodes: Vec::with_capacity(nodes.len()), captures, index, ..Graph::default() };
        for node in nodes {
            let scored =
                node.op.operands().iter().all(|o| (o.0 as usize) < graph.nodes.len()) && graph.follows(&node.op);
            graph.scored.push(scored);
            graph.nodes.push(node);
        }
        graph
    }
}

impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes && self.captures == other.captures
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// All nodes, operands before users.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// Type of a node.
    pub fn ty(&self, id: NodeId) -> Ty {
        self.node(id).ty
    }

    /// Captured tensors.
    pub fn captures(&self) -> &[Capture] {
        &self.captures
    }

    /// The numbers of all captured tensors.
    pub fn ids_of_captures(&self) -> impl Iterator<Item = CaptureId> + use<> {
        (0..self.captures.len() as u32).map(CaptureId)
    }

    /// One captured tensor.
    pub fn capture(&self, id: CaptureId) -> &Capture {
        &self.captures[id.0 as usize]
    }

    /// Adds a captured tensor, or finds an equal existing one (same values; the first name stays). Floats are equal
    /// only if they share memory, because two learned tensors may have equal initial values.
    pub fn add_capture(&mut self, name: &str, tensor: HostTensor) -> CaptureId {
        let learns = tensor.dtype().is_float();
        let same = |c: &Capture| c.tensor.same_storage(&tensor) || (!learns && c.tensor == tensor);
        if let Some(at) = self.captures.iter().position(same) {
            return CaptureId(at as u32);
        }
        let mut unique = name.to_string();
        while self.captures.iter().any(|c| c.name == unique) {
            let last = self.numbered.entry(name.to_string()).or_insert(1);
            *last += 1;
            unique = format!("{name}_{last}");
        }
        self.captures.push(Capture { name: unique, tensor, made: None });
        CaptureId(self.captures.len() as u32 - 1)
    }

    /// Adds a captured tensor of another graph, with the factory's computation of it.
    pub fn take_capture(&mut self, from: &Capture) -> CaptureId {
        let id = self.add_capture(&from.name, from.tensor.clone());
        if let (slot @ None, Some(made)) = (&mut self.captures[id.0 as usize].made, &from.made) {
            *slot = Some(made.clone());
        }
        id
    }

    /// The same graph over other tensors, one for each captured tensor in their order. Errors: a number, shape or dtype
    /// differs.
    pub fn rebound(&self, tensors: Vec<HostTensor>) -> Result<Graph, String> {
        let alike = |(own, new): (&Capture, &HostTensor)| {
            own.tensor.shape() == new.shape() && own.tensor.dtype() == new.dtype()
        };
        if self.captures.len() != tensors.len() || !self.captures.iter().zip(&tensors).all(alike) {
            return Err("the tensors are not those of this graph".to_string());
        }
        let mut graph = self.clone();
        for (own, tensor) in graph.captures.iter_mut().zip(tensors) {
            *own = Capture { name: std::mem::take(&mut own.name), tensor, made: None };
        }
        Ok(graph)
    }

    /// The captured tensors of a graph that is no longer needed.
    pub fn into_tensors(self) -> impl Iterator<Item = HostTensor> {
        self.captures.into_iter().map(|capture| capture.tensor)
    }

    /// Says what captured tensors were computed from.
    pub fn set_made(&mut self, id: CaptureId, made: Made) {
        self.captures[id.0 as usize].made = Some(Arc::new(made));
    }

    /// Adds a node, or finds the equal one. The first span stays. Panics in debug builds when it is ill-typed.
    pub fn add(&mut self, op: Op, span: Option<Span>) -> NodeId {
        if let Some(id) = self.index.get(&op) {
            return *id;
        }
        let ty = match self.type_of(&op) {
            Ok(ty) => ty,
            Err(why) => panic!("ill-typed node {op:?}: {why}"),
        };
        let id = NodeId(self.nodes.len() as u32);
        self.index.insert(op.clone(), id);
        self.scored.push(self.follows(&op));
        self.nodes.push(Node { op, ty, span });
        id
    }

    /// Shorthand: an input.
    pub fn input(&mut self, input: Input) -> NodeId {
        self.add(Op::Input(input), None)
    }

    /// Shorthand: an int literal.
    pub fn int(&mut self, value: i64) -> NodeId {
        self.add(Op::Int(value), None)
    }

    /// Shorthand: a float literal.
    pub fn float(&mut self, value: f64) -> NodeId {
        self.add(Op::Float(value.to_bits()), None)
    }

    /// Shorthand: a bool literal.
    pub fn bool(&mut self, value: bool) -> NodeId {
        self.add(Op::Bool(value), None)
    }

    /// Shorthand: one operand.
    pub fn unary(&mut self, op: UnaryOp, a: NodeId) -> NodeId {
        self.add(Op::Unary(op, a), None)
    }

    /// Shorthand: two operands.
    pub fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        self.add(Op::Binary(op, a, b), None)
    }

    /// Type that an operation would have here, or why it has none.
    pub fn type_of(&self, op: &Op) -> Result<Ty, String> {
        use Ty::*;
        for operand in op.operands() {
            if operand.0 as usize >= self.nodes.len() {
                return Err(format!("operand {operand:?} does not exist yet"));
            }
        }
        match op {
            Op::Input(Input::Score) | Op::Float(_) | Op::UniformFloat(_) => Ok(Float),
            Op::Input(_) | Op::Int(_) | Op::UniformInt(_) => Ok(Int),
            Op::Bool(_) => Ok(Bool),
            Op::Unary(op, a) => unary_type(*op, self.ty(*a)),
            Op::Binary(op, a, b) => binary_type(*op, self.ty(*a), self.ty(*b)),
            Op::Where(c, a, b) => match (self.ty(*c), self.ty(*a), self.ty(*b)) {
                (Bool, x, y) if x == y => Ok(x),
                (c, x, y) => Err(format!("where({c:?}, {x:?}, {y:?})")),
            },
            Op::Load(capture, index) => {
                let capture = self.captures.get(capture.0 as usize).ok_or("no such capture")?;
                if index.len() != capture.tensor.shape().len() || index.iter().any(|i| self.ty(*i) != Int) {
                    return Err(format!("load of {:?} with {} indices", capture.tensor.shape(), index.len()));
                }
                Ok(load_ty(capture.tensor.dtype()))
            }
        }
    }

    /// Whether a float node follows from the score through floats, so that it has the score's own precision.
    pub fn follows_score(&self, id: NodeId) -> bool {
        self.scored[id.0 as usize]
    }

    fn follows(&self, op: &Op) -> bool {
        let scored = |id: &NodeId| self.scored[id.0 as usize];
        match op {
            Op::Input(Input::Score) => true,
            Op::Unary(UnaryOp::ToInt | UnaryOp::ToInt32 | UnaryOp::ToBool, _) => false,
            Op::Unary(_, a) => scored(a),
            Op::Binary(op, a, b) => !op.is_comparison() && (scored(a) || scored(b)),
            Op::Where(_, a, b) => scored(a) || scored(b),
            Op::Input(_) | Op::Bool(_) | Op::Int(_) | Op::Float(_) => false,
            Op::UniformInt(_) | Op::UniformFloat(_) | Op::Load(..) => false,
        }
    }

    /// The precision of an operation on floats here; for a cast from int or bool, that of its result. `Single` for
    /// operations without floats.
    pub fn width(&self, op: &Op) -> Width {
        let of = |id: &NodeId, double: bool| match (double, self.scored[id.0 as usize]) {
            (true, _) => Width::Double,
            (false, true) => Width::Score,
            (false, false) => Width::Single,
        };
        let is_double = |id: &NodeId| self.ty(*id) == Ty::Double;
        match op {
            Op::Unary(UnaryOp::ToDouble, _) => Width::Double,
            Op::Unary(UnaryOp::ToFloat, a) => of(a, false),
            Op::Unary(_, a) => of(a, is_double(a)),
            Op::Binary(_, a, b) | Op::Where(_, a, b) if self.scored[a.0 as usize] => of(a, is_double(b)),
            Op::Binary(_, _, b) | Op::Where(_, _, b) => of(b, is_double(b)),
            Op::Input(Input::Score) => Width::Score,
            _ => Width::Single,
        }
    }

    /// Checks the invariant: order, types, no duplicates. For debug builds, between passes.
    pub fn verify(&self) -> Result<(), String> {
        let mut seen = HashMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if node.op.operands().iter().any(|o| o.0 as usize >= at) {
                return Err(format!("node {at} uses a later node: {:?}", node.op));
            }
            let ty = self.type_of(&node.op).map_err(|why| format!("node {at}: {why}"))?;
            if ty != node.ty {
                return Err(format!("node {at} says {:?}, is {ty:?}", node.ty));
            }
            if let Some(first) = seen.insert(&node.op, at) {
                return Err(format!("nodes {first} and {at} are equal: {:?}", node.op));
            }
        }
        Ok(())
    }

    /// Which inputs each node depends on.
    pub fn depends(&self) -> Vec<Depends> {
        let mut out: Vec<Depends> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let own = if let Op::Input(input) = node.op { Depends::of(input) } else { Depends::NONE };
            out.push(node.op.operands().iter().fold(own, |d, o| d.with(out[o.0 as usize])));
        }
        out
    }

    /// Copies what `root` of `other` needs into this graph. `substitute` may answer for a node of `other` with a node
    /// of this graph instead (to rename inputs, say).
    pub fn import(
        &mut self,
        other: &Graph,
        root: NodeId,
        mut substitute: impl FnMut(&mut Graph, &Op) -> Option<NodeId>,
    ) -> NodeId {
        let mut needed = vec![false; root.0 as usize + 1];
        needed[root.0 as usize] = true;
        for at in (0..needed.len()).rev() {
            if needed[at] {
                other.nodes[at].op.operands().iter().for_each(|o| needed[o.0 as usize] = true);
            }
        }
        let needed = (0..needed.len()).filter(|at| needed[*at]).map(|at| NodeId(at as u32));
        let map = self.rewrite(other, needed, |graph, id, op| {
            let node = other.node(id);
            substitute(graph, &node.op).unwrap_or_else(|| graph.add(op, node.span))
        });
        map[root.0 as usize]
    }

    /// Visits nodes of `other`, operands before users, and returns the corresponding node of this graph for each.
    /// `make` receives a node and its operation on the corresponding operands, and adds it unchanged or as another
    /// operation. Unvisited nodes have no corresponding node.
    pub fn rewrite(
        &mut self,
        other: &Graph,
        nodes: impl IntoIterator<Item = NodeId>,
        mut make: impl FnMut(&mut Graph, NodeId, Op) -> NodeId,
    ) -> Vec<NodeId> {
        let mut map = vec![NodeId(u32::MAX); other.nodes.len()];
        for id in nodes {
            let op = self.reading(other, other.node(id).op.map_operands(|o| map[o.0 as usize]));
            map[id.0 as usize] = make(self, id, op);
        }
        map
    }

    /// An operation of `other` that reads the tensors of this graph, which takes them over.
    pub fn reading(&mut self, other: &Graph, mut op: Op) -> Op {
        if let Op::Load(capture, _) = &mut op {
            let from = other.capture(*capture);
            *capture = self.take_capture(from);
        }
        op
    }

    /// All nodes' names, operands before users.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }
}

/// The kind of a mod's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModKind {
    /// `mask_mod(b, h, q_idx, kv_idx) -> bool`
    Mask,
    /// `score_mod(score, b, h, q_idx, kv_idx) -> float`
    Score,
}

/// A traced mod: its graph, the node that is its result (Bool for masks, Float for scores), and the texts that the
/// nodes' spans point into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mod {
    /// Mask or score.
    pub kind: ModKind,
    /// Everything it computes.
    pub graph: Graph,
    /// Its result.
    pub root: NodeId,
    /// Texts, indexed by `SourceId`.
    pub sources: Vec<Source>,
}

impl Mod {
    /// Which inputs the result depends on.
    pub fn depends(&self) -> Depends {
        self.graph.depends()[self.root.0 as usize]
    }
}

/// Bytes of the tensors that mods read, each once, in their own dtypes.
pub fn captured_bytes<'m>(mods: impl Iterator<Item = &'m Mod>) -> u64 {
    let mut seen: Vec<&HostTensor> = Vec::new();
    for held in mods.flat_map(|of| of.graph.captures()) {
        if !seen.iter().any(|other| other.same_storage(&held.tensor)) {
            seen.push(&held.tensor);
        }
    }
    seen.iter().map(|tensor| (tensor.numel() * tensor.dtype().size()) as u64).sum()
}

#[cfg(test)]
mod tests {
    use crate::ir::graph::*;

    #[test]
    fn equal_nodes_are_one_node() {
        let mut graph = Graph::new();
        let (q, k) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
        let a = graph.binary(BinaryOp::Sub, q, k);
        let b = graph.binary(BinaryOp::Sub, q, k);
        assert_eq!(a, b);
        assert_eq!(graph.nodes().len(), 3);
        graph.verify().unwrap();
        assert!(graph.depends()[a.0 as usize].on(Input::KvIdx));
        assert!(!graph.depends()[q.0 as usize].on(Input::KvIdx));
    }

    #[test]
    fn only_tensors_that_are_alike_take_anothers_place() {
        use crate::base::tensor::Data;
        let mut graph = Graph::new();
        let vector = |values: Vec<i32>| HostTensor::vector(Data::I32(values));
        graph.add_capture("t", vector(vec![1, 2]));
        let bound = graph.rebound(vec![vector(vec![7, 8])]).expect("alike");
        assert_eq!((bound.captures()[0].name.as_str(), &bound.captures()[0].tensor), ("t", &vector(vec![7, 8])));
        let other_dtype = HostTensor::vector(Data::F32(vec![7.0, 8.0]));
        for wrong in [vec![], vec![vector(vec![7])], vec![other_dtype], vec![vector(vec![7, 8]), vector(vec![7, 8])]] {
            assert!(graph.rebound(wrong).is_err());
        }
    }

    #[test]
    fn a_graph_that_travelled_still_finds_equal_nodes() {
        let mut graph = Graph::new();
        let q = graph.input(Input::QIdx);
        let mut back: Graph = serde_json::from_str(&serde_json::to_string(&graph).unwrap()).unwrap();
        assert_eq!(back.input(Input::QIdx), q);
        assert_eq!(back.nodes().len(), 1);
    }
}
