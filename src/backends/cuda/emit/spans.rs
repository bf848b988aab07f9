//! What a mask is in a whole box of cells: the emitted function `mask_span`, in ints of 64 bits, and the structs of its rows' and columns' spans.
//!
//! Invariant: a span holds every value that the emitted mask's node has in the box (`wide.cuh`); where no rule is known it holds all. Must not
//! know kernels.

use super::functions::{Accuracy, Emitter, Function};
use super::hoist::Holder;
use crate::base::DType;
use crate::ir::graph::{BinaryOp, Input, NodeId, Op, Ty, UnaryOp};
use crate::ir::schedule::post_order;
use std::fmt::Write;

/// Where an operand without a name is written.
const INSIDE: Function = Function { head: "", roots: &[], given: &[], accuracy: Accuracy::Exact, strides: None };

/// Types that have spans.
fn spans(ty: Ty) -> bool {
    matches!(ty, Ty::Bool | Ty::Int)
}

impl Emitter<'_> {
    /// Appends the structs and `mask_span`.
    pub(super) fn spans(&self, text: &mut String, mask: NodeId) {
        for (holder, class, name, values) in
            [(Holder::Row, "RowSpans", "row", "RowValues"), (Holder::Column, "ColumnSpans", "column", "ColumnValues")]
        {
            self.span_struct(text, holder, (class, name, values));
        }
        let _ = writeln!(
            text,
            "__device__ __forceinline__ Span mask_span(const Mods &m, const HeadValues head, const RowSpans row, const ColumnSpans column, \
             i64 b, i64 h, Span q_idx, Span kv_idx) {{"
        );
        let graph = self.template.graph;
        for id in post_order(graph, &[mask]) {
            let node = graph.node(id);
            if spans(node.ty) && self.span_holder(id).is_none() && !self.is_span_atom(id) {
                let _ = writeln!(text, "    const Span s{} = {};", id.0, self.span(id));
            }
        }
        let _ = writeln!(text, "    return {};\n}}", self.span_operand(mask));
    }

    /// A holder's spans, how they are read, and how a line's values are written.
    fn span_struct(&self, text: &mut String, holder: Holder, (class, name, values): (&str, &str, &str)) {
        let graph = self.template.graph;
        let own: Vec<u32> = self.held_by(holder).into_iter().filter(|id| spans(graph.ty(*id))).map(|id| id.0).collect();
        let fields: String = own.iter().map(|id| format!(" Span v{id};")).collect();
        let read: Vec<String> =
            (0..own.len()).map(|at| format!("{{from[{}], from[{}]}}", 2 * at, 2 * at + 1)).collect();
        let puts: String = own.iter().enumerate().map(|(at, id)| format!(" to[{at}] = from.v{id};")).collect();
        let _ = writeln!(
            text,
            "#line 1 \"spans\"\nconstexpr int {}_SPANS = {};\nstruct {class} {{{fields} }};\n\
             __device__ __forceinline__ {class} {name}_spans(const i64 *from) {{ return {{{}}}; }}\n\
             __device__ __forceinline__ void put_{name}(const {values} &from, i64 *to) {{{puts} }}",
            name.to_uppercase(),
            own.len(),
            read.join(", ")
        );
    }

    fn span_holder(&self, id: NodeId) -> Option<Holder> {
        Holder::ALL.into_iter().find(|holder| self.held_by(*holder).contains(&id))
    }

    fn is_span_atom(&self, id: NodeId) -> bool {
        let op = &self.template.graph.node(id).op;
        op.operands().is_empty() && !matches!(op, Op::Load(..))
    }

    /// How a node's span is written as an operand.
    fn span_operand(&self, id: NodeId) -> String {
        let node = self.template.graph.node(id);
        match (self.span_holder(id), &node.op) {
            (Some(Holder::Head), _) => format!("span_of(head.v{})", id.0),
            (Some(Holder::Row), _) => format!("row.v{}", id.0),
            (Some(Holder::Column), _) => format!("column.v{}", id.0),
            (None, Op::Input(input @ (Input::QIdx | Input::KvIdx))) => input.name().to_string(),
            (None, _) if self.is_span_atom(id) => format!("span_of({})", self.operand(id, &INSIDE)),
            (None, _) => format!("s{}", id.0),
        }
    }

    fn span(&self, id: NodeId) -> String {
        let graph = self.template.graph;
        let ty = graph.ty(id);
        let all = if ty == Ty::Bool { "maybe()" } else { "anything()" };
        let op = &graph.node(id).op;
        let reads_spans = op.operands().into_iter().all(|operand| spans(graph.ty(operand)));
        let found = if reads_spans { self.span_of(op, ty) } else { None };
        found.unwrap_or_else(|| all.to_string())
    }

    /// The rule of an operation on ints and bools; None: there is none.
    fn span_of(&self, op: &Op, ty: Ty) -> Option<String> {
        let of = |id: &NodeId| self.span_operand(*id);
        let graph = self.template.graph;
        Some(match op {
            Op::Unary(op, a) => match (op, graph.ty(*a)) {
                (UnaryOp::Not, Ty::Bool) => format!("span_not({})", of(a)),
                (UnaryOp::Not, _) => format!("span_inverted({})", of(a)),
                (UnaryOp::Neg, _) => format!("span_neg({})", of(a)),
                (UnaryOp::Abs, _) => format!("span_abs({})", of(a)),
                (UnaryOp::ToBool, _) => format!("span_bool({})", of(a)),
                (UnaryOp::ToInt, Ty::Bool) | (UnaryOp::Stop, _) | (UnaryOp::As(DType::I64), _) => of(a),
                (UnaryOp::As(dtype), _) => {
                    let (lo, hi) = range(*dtype)?;
                    format!("span_inside({}, {lo}, {hi})", of(a))
                }
                _ => return None,
            },
            Op::Binary(op, a, b) => {
                let (name, turned) = rule(*op, ty)?;
                let (a, b) = if turned { (b, a) } else { (a, b) };
                let text = format!("{name}({}, {})", of(a), of(b));
                if *op == BinaryOp::Ne { format!("span_not({text})") } else { text }
            }
            Op::Where(c, a, b) => format!("span_where({}, {}, {})", of(c), of(a), of(b)),
            Op::Load(capture, index) => {
                let one: Vec<String> = index.iter().map(|id| format!("is_one({})", of(id))).collect();
                let mut offset = String::from("0");
                for (axis, id) in index.iter().enumerate() {
                    let dim = format!("m.d{}_{axis}", capture.0);
                    offset = format!("({offset}) * {dim} + wrap(({}).lo, {dim})", of(id));
                }
                let all = if ty == Ty::Bool { "maybe()" } else { "anything()" };
                let ones = if one.is_empty() { "true".to_string() } else { one.join(" && ") };
                format!("{ones} ? span_of(load(m.c{} + ({offset}))) : {all}", capture.0)
            }
            _ => return None,
        })
    }
}

/// The function of an operation, and whether its operands change places.
fn rule(op: BinaryOp, ty: Ty) -> Option<(&'static str, bool)> {
    let bools = ty == Ty::Bool;
    Some(match op {
        BinaryOp::Add => ("span_add", false),
        BinaryOp::Sub => ("span_sub", false),
        BinaryOp::Mul => ("span_mul", false),
        BinaryOp::FloorDiv => ("span_floor_div", false),
        BinaryOp::Mod => ("span_floor_mod", false),
        BinaryOp::Min => ("span_min", false),
        BinaryOp::Max => ("span_max", false),
        BinaryOp::And if bools => ("span_and", false),
        BinaryOp::Or if bools => ("span_or", false),
        BinaryOp::Xor if bools => ("span_xor", false),
        BinaryOp::Eq | BinaryOp::Ne => ("span_eq", false),
        BinaryOp::Lt => ("span_lt", false),
        BinaryOp::Le => ("span_le", false),
        BinaryOp::Gt => ("span_lt", true),
        BinaryOp::Ge => ("span_le", true),
        _ => return None,
    })
}

/// Values of a dtype.
fn range(dtype: DType) -> Option<(i64, i64)> {
    match dtype {
        DType::U8 => Some((0, 255)),
        DType::I8 => Some((-128, 127)),
        DType::I16 => Some((-32_768, 32_767)),
        DType::I32 => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        _ => None,
    }
}
