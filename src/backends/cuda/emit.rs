//! From a lifted graph to CUDA C++: `mask_mod` and `score_mod` as device functions between `#line` marks that point into
//! the user's text, and the struct through which they get uniforms and captured tensors.
//!
//! Invariant: total. Whatever graph verifies gives text that compiles, with int32 and f32 arithmetic and every read of a
//! captured tensor inside its bounds. Must not know kernels, devices or values: two mods that differ only in lifted
//! literals or captured values give the same text.

use super::emit_ops;
use super::layout::ModsLayout;
use crate::base::{Source, Span};
use crate::language::graph::{BinaryOp, Graph, NodeId, Op, Ty};
use crate::language::schedule::{Level, Schedule};
use std::fmt::Write;

/// Above this many operations a mod becomes a called function, so that unrolling it does not multiply compile time.
const INLINE_LIMIT: usize = 320;

/// What is to be emitted: one lifted graph and its results.
#[derive(Clone, Copy, Debug)]
pub struct Template<'a> {
    /// The lifted graph.
    pub graph: &'a Graph,
    /// Result of the mask mod, Bool.
    pub mask: Option<NodeId>,
    /// Result of the score mod, Float.
    pub score: Option<NodeId>,
    /// How many ints the uniform buffer holds.
    pub ints: usize,
    /// How many floats.
    pub floats: usize,
    /// Texts that the spans point into.
    pub sources: &'a [Source],
}

/// Emitted text and the layout of its struct `Mods`.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// `struct Mods` and the device functions.
    pub text: String,
    /// How the host fills `Mods`.
    pub layout: ModsLayout,
}

/// The name by which `#line` marks call a source; [`source_of_file`] is its inverse.
pub fn file_of_source(source: usize) -> String {
    format!("mod_source_{source}")
}

/// Which source a file named in a compiler message is.
pub fn source_of_file(file: &str) -> Option<usize> {
    file.strip_prefix("mod_source_")?.parse().ok()
}

/// Emits the mods of a template.
pub fn emit(template: &Template) -> Emitted {
    let layout = ModsLayout::new(template.graph, template.ints, template.floats);
    let mut text = layout.declaration();
    for (at, source) in template.sources.iter().enumerate() {
        let name: String = source.name.chars().filter(|c| !c.is_control() && *c != '\\').collect();
        let _ = writeln!(text, "// {} is {name}", file_of_source(at));
    }
    if let Some(root) = template.mask {
        function(&mut text, template, root, Kind::Mask);
    }
    if let Some(root) = template.score {
        function(&mut text, template, root, Kind::Score);
    }
    Emitted { text, layout }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Mask,
    Score,
}

fn function(text: &mut String, template: &Template, root: NodeId, kind: Kind) {
    let schedule = Schedule::new(template.graph, &[root]);
    let needed: Vec<(Level, NodeId)> =
        Level::ALL.into_iter().flat_map(|level| schedule.at(level).iter().map(move |id| (level, *id))).collect();
    let inlining = if needed.len() > INLINE_LIMIT { "__noinline__" } else { "__forceinline__" };
    let head = match kind {
        Kind::Mask => "bool mask_mod(const Mods &m, ",
        Kind::Score => "float score_mod(const Mods &m, float score, ",
    };
    let _ = writeln!(text, "#line 1 \"mods\"\n__device__ {inlining} {head}int b, int h, int q_idx, int kv_idx) {{");
    let mut marks = Marks { sources: template.sources, last: None };
    let mut last = None;
    for (level, id) in needed {
        let node = template.graph.node(id);
        if is_atom(&node.op) {
            continue;
        }
        if last.replace(level) != Some(level) {
            let _ = writeln!(text, "    // {}", often(level));
        }
        marks.mark(text, node.span);
        let value = expression(template.graph, id, kind == Kind::Score);
        let _ = writeln!(text, "    const {} v{} = {value};", type_name(node.ty), id.0);
    }
    let _ = writeln!(text, "    return {};\n}}", operand(template.graph, root));
}

/// What changes a level's values. Each level stands before those that need it, so that the compiler moves it out of the
/// loops over what it does not depend on.
fn often(level: Level) -> &'static str {
    match level {
        Level::Uniform => "the same everywhere",
        Level::BatchHead => "once a batch entry and head",
        Level::Query => "once a row: q_idx",
        Level::KeyValue => "once a column: kv_idx",
        Level::Cell => "once a cell",
        Level::Score => "with each score",
    }
}

/// Emits a `#line` mark whenever the line of the user's text changes.
struct Marks<'a> {
    sources: &'a [Source],
    last: Option<(u32, usize)>,
}

impl Marks<'_> {
    fn mark(&mut self, text: &mut String, span: Option<Span>) {
        let Some(span) = span else { return };
        let Some(source) = self.sources.get(span.source.0 as usize) else { return };
        let place = (span.source.0, source.line_column(span.start).0);
        if self.last != Some(place) {
            self.last = Some(place);
            let _ = writeln!(text, "#line {} \"{}\"", place.1, file_of_source(place.0 as usize));
        }
    }
}

fn type_name(ty: Ty) -> &'static str {
    match ty {
        Ty::Bool => "bool",
        Ty::Int => "int",
        Ty::Float => "float",
    }
}

/// Whether a node is written where it is used instead of getting a name.
fn is_atom(op: &Op) -> bool {
    op.operands().is_empty() && !matches!(op, Op::Load(..))
}

/// How a node is written as an operand.
fn operand(graph: &Graph, id: NodeId) -> String {
    let node = graph.node(id);
    if is_atom(&node.op) { emit_ops::atom(&node.op) } else { format!("v{}", id.0) }
}

fn expression(graph: &Graph, id: NodeId, fast: bool) -> String {
    let text = |id: &NodeId| operand(graph, *id);
    match &graph.node(id).op {
        Op::Unary(op, a) => emit_ops::unary(*op, graph.ty(*a), &text(a), fast),
        // the reciprocal of a constant is taken once, outside the loop over scores
        Op::Binary(BinaryOp::Div, a, b) if fast && is_constant(graph, *b) => {
            format!("{} * reciprocal_fast({})", text(a), text(b))
        }
        Op::Binary(op, a, b) => {
            let literal = if let Op::Int(value) = graph.node(*b).op { Some(value) } else { None };
            emit_ops::binary(*op, graph.ty(*a), &text(a), &text(b), literal, fast)
        }
        Op::Where(c, a, b) => format!("{} ? {} : {}", text(c), text(a), text(b)),
        Op::Load(capture, index) => load(capture.0, index.iter().map(text)),
        atom => emit_ops::atom(atom),
    }
}

/// A literal or a uniform.
fn is_constant(graph: &Graph, id: NodeId) -> bool {
    matches!(graph.node(id).op, Op::Float(_) | Op::UniformFloat(_))
}

/// A bounded read: each index wraps once and clamps, then row-major.
fn load(capture: u32, index: impl Iterator<Item = String>) -> String {
    let mut offset = String::new();
    for (axis, index) in index.enumerate() {
        let wrapped = format!("wrap({index}, m.d{capture}_{axis})");
        offset = if axis == 0 { wrapped } else { format!("({offset}) * m.d{capture}_{axis} + {wrapped}") };
    }
    if offset.is_empty() {
        offset.push('0');
    }
    format!("load(m.c{capture} + ({offset}))")
}
