//! One expression as Python text.
//!
//! Invariant: parentheses follow Python's precedence (`&` binds tighter than `==`). Must not know statements.

use crate::base::DType;
use crate::base::tensor::clamp_index;
use crate::ir::cell::Value;
use crate::ir::graph::{BinaryOp, Graph, NodeId, Op, Ty, UnaryOp};
pub(super) use crate::ir::ops::rows::Tight;
use crate::ir::ops::rows::{BinaryText, UnaryText};

/// How names and deep expressions are written.
pub(super) struct Printer<'a> {
    pub graph: &'a Graph,
    /// Names of captured tensors.
    pub captures: &'a [String],
    /// Names of nodes that are locals by now.
    pub locals: &'a dyn Fn(NodeId) -> Option<&'a str>,
    /// The range of an int node, inclusive; None if reads are printed without clamps, for people.
    pub range: Option<&'a dyn Fn(NodeId) -> (i64, i64)>,
    /// The operand of a node that becomes int64, so that int32 does not wrap; none in text for people.
    pub wide: &'a [Option<NodeId>],
    /// That operand, within its node.
    pub widened: Option<NodeId>,
    /// Nesting after which `...` is written; `usize::MAX` for text that must run.
    pub depth: usize,
}

/// A node as Python on one line, for people: nesting beyond what one can read is shortened to `...`.
pub fn expression(graph: &Graph, id: NodeId) -> String {
    let captures: Vec<String> = graph.captures().iter().map(|c| c.name.clone()).collect();
    // sharing makes a tree exponentially larger than its graph: shorten until it is readable
    for depth in [24, 12, 8, 6, 4, 3] {
        let printer =
            Printer { graph, captures: &captures, locals: &|_| None, range: None, wide: &[], widened: None, depth };
        if printer.size(id, depth) <= 200 {
            return printer.text(id, Tight::Any);
        }
    }
    Printer { graph, captures: &captures, locals: &|_| None, range: None, wide: &[], widened: None, depth: 2 }
        .text(id, Tight::Any)
}

impl Printer<'_> {
    /// Number of nodes that would be written, counted up to a little more than is readable.
    fn size(&self, id: NodeId, depth: usize) -> usize {
        let mut left = 400usize;
        self.count(id, depth, &mut left);
        400 - left
    }

    fn count(&self, id: NodeId, depth: usize, left: &mut usize) {
        *left = left.saturating_sub(1);
        if depth > 0 && *left > 0 {
            self.graph.node(id).op.operands().iter().for_each(|o| self.count(*o, depth - 1, left));
        }
    }

    /// The expression of a node, in parentheses if it binds less tightly than its place requires. A node that is a
    /// local is its name.
    pub(super) fn text(&self, id: NodeId, place: Tight) -> String {
        if self.widened == Some(id) {
            let narrow = Printer { widened: None, ..*self }.text(id, Tight::Atom);
            return format!("{narrow}.to(torch.int64)");
        }
        match (self.locals)(id) {
            Some(name) => name.to_string(),
            None => self.definition(id, place),
        }
    }

    /// The same, though the node itself be a local.
    pub(super) fn definition(&self, id: NodeId, place: Tight) -> String {
        let node = self.graph.node(id);
        if self.depth == 0 && !node.op.operands().is_empty() {
            return "...".to_string();
        }
        let widened = self.wide.get(id.0 as usize).copied().flatten();
        let inner = Printer { depth: self.depth.saturating_sub(1), widened, ..*self };
        let (text, tight) = inner.plain(&node.op);
        if tight < place { format!("({text})") } else { text }
    }

    fn plain(&self, op: &Op) -> (String, Tight) {
        match op {
            Op::Input(input) => (input.name().to_string(), Tight::Atom),
            Op::Bool(_) | Op::Int(_) | Op::Float(_) => literal(Value::of_literal(op).expect("a literal")),
            Op::UniformInt(id) => (format!("ints[{}]", id.0), Tight::Atom),
            Op::UniformFloat(id) => (format!("floats[{}]", id.0), Tight::Atom),
            Op::Unary(op, a) => self.unary(*op, *a),
            Op::Binary(op, a, b) => self.binary(*op, *a, *b),
            Op::Where(c, a, b) => {
                let numbers = self.literal(*a).is_some() && self.literal(*b).is_some();
                let cast = if numbers && self.graph.ty(*a) == Ty::Double { "float64" } else { "" };
                let [c, a, b] = [c, a, b].map(|x| self.text(*x, Tight::Any));
                let chosen = |a: &str| format!("torch.where({c}, {a}, {b})");
                if cast.is_empty() {
                    return (chosen(&a), Tight::Atom);
                }
                // two numbers alone would be float32
                (chosen(&format!("{c}.new_full((), {a}, dtype=torch.{cast})")), Tight::Atom)
            }
            Op::Load(capture, index) => {
                let tensor = &self.graph.capture(*capture).tensor;
                let index: Vec<String> =
                    index.iter().zip(tensor.shape()).map(|(i, extent)| self.index(*i, *extent)).collect();
                let name = &self.captures[capture.0 as usize];
                let read = if index.is_empty() { name.clone() } else { format!("{name}[{}]", index.join(", ")) };
                // small integers would wrap and uint8 would index as a mask; half floats would round at every step: the
                // graph says where they do
                let cast = match tensor.dtype() {
                    DType::U8 | DType::I8 | DType::I16 => ".to(torch.int32)",
                    DType::F16 | DType::BF16 if self.range.is_some() => ".to(torch.float32)",
                    _ => "",
                };
                (format!("{read}{cast}"), Tight::Atom)
            }
        }
    }

    /// An index of a dimension with `extent` elements, clamped if it can be outside. Torch itself wraps `-extent..0`.
    fn index(&self, id: NodeId, extent: usize) -> String {
        let (Some(range), Ok(n)) = (self.range, i64::try_from(extent)) else { return self.any(id) };
        if let Some(Value::Int(at)) = self.literal(id) {
            return clamp_index(at, extent).to_string();
        }
        match range(id) {
            (lo, hi) if lo >= -n && hi < n => self.any(id),
            (0.., _) => format!("{}.clamp(max={})", self.atom(id), n - 1),
            _ => format!("{}.clamp({}, {})", self.atom(id), -n, n - 1),
        }
    }

    fn unary(&self, op: UnaryOp, a: NodeId) -> (String, Tight) {
        match op.row().python {
            UnaryText::Sign(sign) => (format!("{sign}{}", self.text(a, Tight::Sign)), Tight::Sign),
            UnaryText::Function(name) => (format!("torch.{name}({})", self.any(a)), Tight::Atom),
            UnaryText::Method(name) => (format!("{}.{name}()", self.atom(a)), Tight::Atom),
            UnaryText::Cast => self.cast(op, a),
        }
    }

    fn cast(&self, op: UnaryOp, a: NodeId) -> (String, Tight) {
        use UnaryOp::*;
        let cast = |to: &str| (format!("{}.to(torch.{to})", self.atom(a)), Tight::Atom);
        match op {
            ToFloat => cast("float32"),
            ToDouble => match self.literal(a) {
                // next to a float64 a number is also float64
                Some(number) => literal(number),
                None => cast("float64"),
            },
            ToInt if self.graph.ty(a) == Ty::Bool => cast("int32"),
            ToInt => cast("int64"),
            ToInt32 => cast("int32"),
            ToBool => (format!("{} != 0", self.text(a, Tight::Or)), Tight::Compare),
            As(DType::I64 | DType::F32) => (self.any(a), self.tightness(a)),
            As(DType::I32) => cast("int32"),
            As(dtype) if self.range.is_none() => cast(dtype.torch_name()),
            As(dtype) if dtype.is_float() => cast(&format!("{dtype}).to(torch.float32")),
            As(dtype) => cast(&format!("{dtype}).to(torch.int32")),
            op => unreachable!("{op:?} is no cast"),
        }
    }

    fn binary(&self, op: BinaryOp, a: NodeId, b: NodeId) -> (String, Tight) {
        if let Some((sign, tight)) = infix(op) {
            if let Some(readable) = self.power_of_two(op, a, b) {
                return readable;
            }
            let (left, right) = match op {
                // comparisons do not chain, and ** groups to the right
                BinaryOp::Pow => (Tight::Atom, Tight::Sign),
                _ if op.is_comparison() => (Tight::Or, Tight::Or),
                _ => (tight, next(tight)),
            };
            let (a, b) = self.promoted(op, a, b);
            if let Some((sign, positive)) = self.sum_of_negative(op, b) {
                return (format!("{} {sign} {positive}", self.text(a, left)), tight);
            }
            let b = self.text(b, right);
            return (format!("{} {sign} {b}", self.text(a, left)), tight);
        }
        let (x, y) = (self.literal(a).is_some(), self.literal(b).is_some());
        let text = match op.row().python {
            BinaryText::Clamp(side) => format!("{}.clamp({side}={})", self.atom(a), self.any(b)),
            BinaryText::Bound(side, _) if y && !x => format!("{}.clamp({side}={})", self.atom(a), self.any(b)),
            BinaryText::Bound(side, _) if x && !y => format!("{}.clamp({side}={})", self.atom(b), self.any(a)),
            BinaryText::Bound(_, name) => format!("torch.{name}({}, {})", self.any(a), self.any(b)),
            BinaryText::TruncDiv => format!("torch.div({}, {}, rounding_mode=\"trunc\")", self.any(a), self.any(b)),
            BinaryText::Function(name, _) if x && !y => {
                format!("torch.{name}(torch.full_like({1}, {0}), {1})", self.any(a), self.any(b))
            }
            BinaryText::Function(name, false) if y && !x => {
                format!("torch.{name}({0}, torch.full_like({0}, {1}))", self.any(a), self.any(b))
            }
            BinaryText::Function(name, _) => format!("torch.{name}({}, {})", self.any(a), self.any(b)),
            BinaryText::Infix(..) => unreachable!("{op:?} is written between its operands"),
        };
        (text, Tight::Atom)
    }

    /// `x + -3` as `x - 3`.
    fn sum_of_negative(&self, op: BinaryOp, b: NodeId) -> Option<(&'static str, String)> {
        let sign = match op {
            BinaryOp::Add => "-",
            BinaryOp::Sub => "+",
            _ => return None,
        };
        let positive = match self.literal(b)? {
            Value::Int(x) if x < 0 => Value::Int(x.checked_neg()?),
            Value::Float(x) if x < 0.0 => Value::Float(-x),
            _ => return None,
        };
        Some((sign, literal(positive).0))
    }

    /// The operands without an int cast that torch does implicitly because the other operand is a float.
    fn promoted(&self, op: BinaryOp, a: NodeId, b: NodeId) -> (NodeId, NodeId) {
        use BinaryOp::*;
        if !matches!(op, Add | Sub | Mul | Div | Lt | Le | Gt | Ge) {
            return (a, b);
        }
        let cast = |id: NodeId| match self.graph.node(id).op {
            Op::Unary(UnaryOp::ToFloat, x) if self.graph.ty(x) == Ty::Int && (self.locals)(id).is_none() => Some(x),
            _ => None,
        };
        match (cast(a), cast(b)) {
            (Some(x), None) if self.literal(x).is_none() => (x, b),
            (None, Some(y)) if self.literal(y).is_none() => (a, y),
            (Some(x), Some(y)) if op == Div && self.literal(x).is_none() && self.literal(y).is_none() => (x, y),
            _ => (a, b),
        }
    }

    /// `x >> 5` as `x // 32`, `x & 31` as `x % 32`: what simplification made of them, readable again.
    fn power_of_two(&self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<(String, Tight)> {
        let Value::Int(n) = self.literal(b)? else { return None };
        let (sign, n) = match op {
            BinaryOp::Shr if (0..=62).contains(&n) => ("//", 1i64 << n),
            BinaryOp::And if n > 0 && n < i64::MAX && (n + 1).count_ones() == 1 => ("%", n + 1),
            _ => return None,
        };
        Some((format!("{} {sign} {n}", self.text(a, Tight::Product)), Tight::Product))
    }

    /// How tightly the text of a node binds.
    fn tightness(&self, id: NodeId) -> Tight {
        match (self.locals)(id) {
            Some(_) => Tight::Atom,
            None => self.plain(&self.graph.node(id).op).1,
        }
    }

    fn any(&self, id: NodeId) -> String {
        self.text(id, Tight::Any)
    }

    fn atom(&self, id: NodeId) -> String {
        self.text(id, Tight::Atom)
    }

    /// The number that a node is, in whichever precision.
    fn literal(&self, id: NodeId) -> Option<Value> {
        match &self.graph.node(id).op {
            Op::Unary(UnaryOp::ToDouble, a) => Value::of_literal(&self.graph.node(*a).op),
            op => Value::of_literal(op),
        }
    }
}

pub(super) fn next(tight: Tight) -> Tight {
    use Tight::*;
    match tight {
        Any => Compare,
        Compare => Or,
        Or => Xor,
        Xor => And,
        And => Shift,
        Shift => Sum,
        Sum => Product,
        Product => Sign,
        Sign => Power,
        Power | Atom => Atom,
    }
}

fn literal(value: Value) -> (String, Tight) {
    match value {
        Value::Float(x) if !x.is_finite() => (format!("float(\"{value}\")"), Tight::Atom),
        Value::Float(x) if x.is_sign_negative() => (value.to_string(), Tight::Sign),
        Value::Int(x) if x < 0 => (value.to_string(), Tight::Sign),
        // `3.to(...)` would not parse
        _ => (value.to_string(), if value.ty() == Ty::Bool { Tight::Atom } else { Tight::Power }),
    }
}

/// The sign between the operands; None for an operation written as a function.
pub(super) fn infix(op: BinaryOp) -> Option<(&'static str, Tight)> {
    match op.row().python {
        BinaryText::Infix(sign, tight) => Some((sign, tight)),
        BinaryText::Function(..) | BinaryText::Bound(..) | BinaryText::Clamp(_) | BinaryText::TruncDiv => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::graph::Input;
    use crate::ir::print::expression::*;

    fn graph() -> (Graph, NodeId, NodeId) {
        let mut g = Graph::new();
        let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
        (g, q, k)
    }

    #[test]
    fn parentheses_follow_python() {
        use BinaryOp::*;
        let (mut g, q, k) = graph();
        let width = g.int(40);
        let distance = g.binary(Sub, q, k);
        let (near, causal) = (g.binary(Le, distance, width), g.binary(Ge, q, k));
        let root = g.binary(And, near, causal);
        assert_eq!(expression(&g, root), "(q_idx - kv_idx <= 40) & (q_idx >= kv_idx)");
        let back = g.binary(Sub, q, distance);
        let negative = g.unary(UnaryOp::Neg, back);
        let times = g.binary(Mul, negative, distance);
        assert_eq!(expression(&g, times), "-(q_idx - (q_idx - kv_idx)) * (q_idx - kv_idx)");
    }

    #[test]
    fn shifts_by_constants_read_as_divisions() {
        let (mut g, q, k) = graph();
        let (five, mask) = (g.int(5), g.int(31));
        let (block, offset) = (g.binary(BinaryOp::Shr, q, five), g.binary(BinaryOp::And, k, mask));
        let root = g.binary(BinaryOp::Eq, block, offset);
        assert_eq!(expression(&g, root), "q_idx // 32 == kv_idx % 32");
    }

    #[test]
    fn a_shared_tower_is_shortened() {
        let (mut g, q, k) = graph();
        let mut x = g.binary(BinaryOp::Add, q, k);
        for _ in 0..60 {
            x = g.binary(BinaryOp::Mul, x, x);
        }
        let text = expression(&g, x);
        assert!(text.contains("...") && text.len() < 4000, "{} bytes", text.len());
    }
}
