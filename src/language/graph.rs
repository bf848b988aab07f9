//! The expression graph of a mod: hash-consed nodes over the indices b, h, q_idx, kv_idx and, for scores, the score.
//!
//! Invariant: nodes are in topological order (operands before users), well typed, and no two are equal; `Graph::verify`
//! checks it. Must not know Python, devices or masks' lengths.

use crate::base::{DType, HostTensor, Source, Span};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Index of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub u32);

/// Index of a captured tensor in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CaptureId(pub u32);

/// Index into the uniform buffer of a lifted graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UniformId(pub u32);

/// Type of a node: bool, int (i64 on the host, i32 in kernels) or float (f64 in the reference, f32 elsewhere).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Ty {
    Bool,
    Int,
    Float,
}

/// What a mod is a function of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Input {
    /// Batch index, Int.
    B,
    /// Query head index, Int.
    H,
    /// Query token index, Int.
    QIdx,
    /// Key and value token index, Int.
    KvIdx,
    /// The score before the mod, Float; only in score mods.
    Score,
}

impl Input {
    /// The name that its parameter has in printed text.
    pub fn name(self) -> &'static str {
        match self {
            Input::B => "b",
            Input::H => "h",
            Input::QIdx => "q_idx",
            Input::KvIdx => "kv_idx",
            Input::Score => "score",
        }
    }
}

/// Operations on one operand. Float functions take and give Float; casts are explicit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum UnaryOp {
    /// Int or Float.
    Neg,
    /// Int or Float.
    Abs,
    /// Bool: logical not. Int: bitwise not (`~x == -x - 1`).
    Not,
    Exp,
    Exp2,
    Log,
    Log2,
    Log1p,
    Expm1,
    Sqrt,
    Rsqrt,
    Sin,
    Cos,
    Tanh,
    /// tanh by the hardware's approximate instruction on the GPU; plain tanh elsewhere.
    TanhApprox,
    Sigmoid,
    Erf,
    /// Float to Float.
    Floor,
    Ceil,
    Round,
    Trunc,
    /// Bool or Int to Float.
    ToFloat,
    /// Bool to Int (0 or 1), or Float to Int (truncates toward zero).
    ToInt,
    /// Int or Float to Bool (`x != 0`).
    ToBool,
}

/// Operations on two operands of one type, unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum BinaryOp {
    /// Int or Float.
    Add,
    Sub,
    Mul,
    /// Float only: true division.
    Div,
    /// Int or Float; floors toward negative infinity, as in Python. Int division by zero gives 0.
    FloorDiv,
    /// Int only; rounds toward zero (`div(rounding_mode="trunc")`). By zero gives 0.
    TruncDiv,
    /// Int or Float; sign of the divisor, as in Python. Int modulo zero gives 0.
    Mod,
    /// Float only.
    Pow,
    Atan2,
    /// Int or Float; NaN propagates, as torch.minimum does.
    Min,
    Max,
    /// Bool: logical. Int: bitwise.
    And,
    Or,
    Xor,
    /// Int only. Amounts outside 0..=31 are clamped into it.
    Shl,
    Shr,
    /// Any type, to Bool.
    Eq,
    Ne,
    /// Int or Float, to Bool.
    Lt,
    Le,
    Gt,
    Ge,
}

impl BinaryOp {
    /// Whether the result is Bool whatever the operands are.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }

    /// Whether operands may be swapped.
    pub fn is_commutative(self) -> bool {
        use BinaryOp::*;
        matches!(self, Add | Mul | Min | Max | And | Or | Xor | Eq | Ne)
    }
}

/// One operation. Floats are kept by their bits so that nodes hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Op {
    /// One of the mod's parameters.
    Input(Input),
    /// A bool literal.
    Bool(bool),
    /// An int literal.
    Int(i64),
    /// A float literal by its IEEE bits (`f64::to_bits`).
    Float(u64),
    /// An int from the uniform buffer; only in lifted graphs.
    UniformInt(UniformId),
    /// A float from the uniform buffer; only in lifted graphs.
    UniformFloat(UniformId),
    /// One operand.
    Unary(UnaryOp, NodeId),
    /// Two operands.
    Binary(BinaryOp, NodeId, NodeId),
    /// `torch.where(condition, a, b)`: Bool, then two of one type.
    Where(NodeId, NodeId, NodeId),
    /// One element of a captured tensor, as many Int indices as it has dimensions; each wraps once when negative and is
    /// then clamped into bounds ([`crate::base::tensor::clamp_index`]). Bool, Int or Float after the tensor's dtype.
    Load(CaptureId, SmallVec<[NodeId; 4]>),
}

impl Op {
    /// Operands in order.
    pub fn operands(&self) -> SmallVec<[NodeId; 4]> {
        match self {
            Op::Unary(_, a) => SmallVec::from_slice(&[*a]),
            Op::Binary(_, a, b) => SmallVec::from_slice(&[*a, *b]),
            Op::Where(c, a, b) => SmallVec::from_slice(&[*c, *a, *b]),
            Op::Load(_, index) => index.clone(),
            _ => SmallVec::new(),
        }
    }

    /// The same operation on other operands.
    #[must_use]
    pub fn map_operands(&self, mut f: impl FnMut(NodeId) -> NodeId) -> Op {
        match self {
            Op::Unary(op, a) => Op::Unary(*op, f(*a)),
            Op::Binary(op, a, b) => Op::Binary(*op, f(*a), f(*b)),
            Op::Where(c, a, b) => Op::Where(f(*c), f(*a), f(*b)),
            Op::Load(capture, index) => Op::Load(*capture, index.iter().map(|i| f(*i)).collect()),
            other => other.clone(),
        }
    }
}

/// A node: its operation, type and, where it came from text, the place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// What it computes.
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
}

/// Type that reading a tensor of this dtype gives.
pub fn load_ty(dtype: DType) -> Ty {
    match dtype {
        DType::Bool => Ty::Bool,
        d if d.is_float() => Ty::Float,
        _ => Ty::Int,
    }
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
pub struct Graph {
    nodes: Vec<Node>,
    captures: Vec<Capture>,
    #[serde(skip)]
    index: HashMap<Op, NodeId>,
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

    /// One captured tensor.
    pub fn capture(&self, id: CaptureId) -> &Capture {
        &self.captures[id.0 as usize]
    }

    /// Adds a captured tensor, or finds the equal one already there (same values; the first name stays).
    pub fn add_capture(&mut self, name: &str, tensor: HostTensor) -> CaptureId {
        let same = |c: &Capture| c.tensor.same_storage(&tensor) || c.tensor == tensor;
        if let Some(at) = self.captures.iter().position(same) {
            return CaptureId(at as u32);
        }
        let mut unique = name.to_string();
        let mut n = 1;
        while self.captures.iter().any(|c| c.name == unique) {
            n += 1;
            unique = format!("{name}_{n}");
        }
        self.captures.push(Capture { name: unique, tensor });
        CaptureId(self.captures.len() as u32 - 1)
    }

    /// Adds a node, or finds the equal one. The first span stays. Panics in debug builds when it is ill-typed.
    pub fn add(&mut self, op: Op, span: Option<Span>) -> NodeId {
        if self.index.len() != self.nodes.len() {
            // the index does not travel through serde
            self.index = self.nodes.iter().enumerate().map(|(i, n)| (n.op.clone(), NodeId(i as u32))).collect();
        }
        if let Some(id) = self.index.get(&op) {
            return *id;
        }
        let ty = match self.type_of(&op) {
            Ok(ty) => ty,
            Err(why) => panic!("ill-typed node {op:?}: {why}"),
        };
        let id = NodeId(self.nodes.len() as u32);
        self.index.insert(op.clone(), id);
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
        let mut map: Vec<NodeId> = vec![NodeId(u32::MAX); needed.len()];
        for at in (0..needed.len()).filter(|at| needed[*at]) {
            let node = &other.nodes[at];
            map[at] = match substitute(self, &node.op) {
                Some(id) => id,
                None => {
                    let mut op = node.op.map_operands(|o| map[o.0 as usize]);
                    if let Op::Load(capture, _) = &mut op {
                        let from = other.capture(*capture);
                        *capture = self.add_capture(&from.name, from.tensor.clone());
                    }
                    self.add(op, node.span)
                }
            };
        }
        map[root.0 as usize]
    }
}

fn unary_type(op: UnaryOp, a: Ty) -> Result<Ty, String> {
    use UnaryOp::*;
    match (op, a) {
        (Neg | Abs, Ty::Int | Ty::Float) => Ok(a),
        (Not, Ty::Bool | Ty::Int) => Ok(a),
        (ToFloat, Ty::Bool | Ty::Int) => Ok(Ty::Float),
        (ToInt, Ty::Bool | Ty::Float) => Ok(Ty::Int),
        (ToBool, Ty::Int | Ty::Float) => Ok(Ty::Bool),
        (Neg | Abs | Not | ToFloat | ToInt | ToBool, _) => Err(format!("{op:?} of {a:?}")),
        (_, Ty::Float) => Ok(Ty::Float),
        _ => Err(format!("{op:?} of {a:?}")),
    }
}

fn binary_type(op: BinaryOp, a: Ty, b: Ty) -> Result<Ty, String> {
    use BinaryOp::*;
    if a != b {
        return Err(format!("{op:?} of {a:?} and {b:?}"));
    }
    match (op, a) {
        (Add | Sub | Mul | FloorDiv | Mod | Min | Max, Ty::Int | Ty::Float) => Ok(a),
        (Div | Pow | Atan2, Ty::Float) => Ok(a),
        (TruncDiv | Shl | Shr, Ty::Int) => Ok(a),
        (And | Or | Xor, Ty::Bool | Ty::Int) => Ok(a),
        (Eq | Ne, _) | (Lt | Le | Gt | Ge, Ty::Int | Ty::Float) => Ok(Ty::Bool),
        _ => Err(format!("{op:?} of {a:?}")),
    }
}

/// What kind of function a mod is.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_graph_that_travelled_still_finds_equal_nodes() {
        let mut graph = Graph::new();
        let q = graph.input(Input::QIdx);
        let mut back: Graph = serde_json::from_str(&serde_json::to_string(&graph).unwrap()).unwrap();
        assert_eq!(back.input(Input::QIdx), q);
        assert_eq!(back.nodes().len(), 1);
    }
}
