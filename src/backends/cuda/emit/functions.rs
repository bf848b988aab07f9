//! Emits CUDA C++ from a lifted graph: `mask_mod` and `score_mod` as device functions between `#line` marks into the
//! user's text, the values computed once per head, row or column, and the struct with uniforms and captured tensors.
//!
//! Invariant: total. Every graph that verifies gives text that compiles, with int32 arithmetic (or int64: [`emit_wide`]) and every read of
//! a captured tensor inside its bounds; values that decide over a cell are rounded operation by operation. Must not know
//! kernels, devices or values: two mods that differ only in lifted literals or captured values give the same text.

use super::fold::{self, Product};
use super::hoist::{self, Held, Holder};
use super::layout::{Ints, ModsLayout};
use super::mods::{LiftedGradient, Template};
use super::ops::{self, Precision};
use crate::backends::cuda::variant::spec::{HEAVY, LIGHT};
use crate::base::{DType, Source, Span};
use crate::ir::graph::{BinaryOp, Graph, NodeId, Op, Ty, UnaryOp};
use crate::ir::schedule::{Level, Schedule, needed, post_order};
use std::collections::HashMap;
use std::fmt::Write;

/// Parameters of a function of a cell.
pub(super) const VALUES: &str = "const HeadValues head, const RowValues row, const ColumnValues column";
pub(super) const CELL: &str = "int b, int h, int q_idx, int kv_idx";

/// How far the number of a uniform moves from one read of a family to the next.
pub(super) type Strides = HashMap<NodeId, u32>;

/// Above this cost a function is called instead, for one group of columns at a time.
const CALLED: u32 = 320;
/// Groups of columns of a light mod: all.
const ALL_GROUPS: usize = 64;

/// Emitted text and the layout of its struct `Mods`.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// `struct Mods` and the device functions.
    pub text: String,
    /// How the host fills `Mods`.
    pub layout: ModsLayout,
}

/// The name by which `#line` marks call a source; [`source_of_file`] is its inverse.
pub(crate) fn file_of_source(source: usize) -> String {
    format!("mod_source_{source}")
}

/// Which source a file named in a compiler message is.
pub(crate) fn source_of_file(file: &str) -> Option<usize> {
    file.strip_prefix("mod_source_")?.parse().ok()
}

/// Emits the mods of a template.
pub(crate) fn emit(template: &Template) -> Emitted {
    emit_as(template, Ints::Narrow)
}

/// Emits a mask of a template whose ints have 64 bits, captured ones included, and what it is in boxes of cells (`spans.rs`). Its literal ints
/// fit in 32.
pub(crate) fn emit_wide(template: &Template) -> Emitted {
    emit_as(template, Ints::Wide)
}

fn emit_as(template: &Template, ints: Ints) -> Emitted {
    let (gradients, in_bins) = template.gradient.map_or((0, false), |g| (g.captures.len(), g.in_bins));
    let layout = ModsLayout::new(template.graph, template.ints, template.floats).with_gradients(gradients, in_bins);
    let mut text = layout.declaration(ints);
    for (at, source) in template.sources.iter().enumerate() {
        let name: String = source.name.chars().filter(|c| !c.is_control() && *c != '\\').collect();
        let _ = writeln!(text, "// {} is {name}", file_of_source(at));
    }
    Emitter::new(template, ints).emit(&mut text);
    Emitted { text, layout }
}

/// How a holder's struct, its maker and its values are called.
fn names(holder: Holder) -> (&'static str, &'static str, &'static str) {
    match holder {
        Holder::Head => ("HeadValues", "head_values", "head"),
        Holder::Row => ("RowValues", "row_values", "row"),
        Holder::Column => ("ColumnValues", "column_values", "column"),
    }
}

pub(super) struct Emitter<'a> {
    pub(super) template: &'a Template<'a>,
    ints: Ints,
    schedule: Schedule,
    held: Held,
    /// Nodes that decide over a cell or cause a jump, and are therefore computed exactly.
    exact: Vec<bool>,
}

/// One function to emit.
pub(super) struct Function<'a> {
    pub(super) head: &'a str,
    pub(super) roots: &'a [NodeId],
    /// The holder of its values.
    pub(super) given: &'a [Holder],
    /// Special-function instructions may replace library functions.
    pub(super) accuracy: Accuracy,
    /// Of a family of reads: the parameter `i` says which of them is computed.
    pub(super) strides: Option<&'a Strides>,
}

/// Whether special-function instructions may replace library functions.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Accuracy {
    /// Nowhere.
    Exact,
    /// But in what decides over a cell.
    ExactInMask,
    /// Everywhere: a score is computed.
    Fast,
}

impl<'a> Emitter<'a> {
    fn new(template: &'a Template<'a>, ints: Ints) -> Self {
        let graph = template.graph;
        let mods = [template.mask, template.score].into_iter().flatten();
        let gradient: Vec<NodeId> = template.gradient.map_or(Vec::new(), LiftedGradient::roots);
        let roots: Vec<NodeId> = mods.chain(gradient.iter().copied()).collect();
        let schedule = Schedule::new(graph, &roots);
        let held = Held::new(graph, &schedule, &roots);
        let jumping: Vec<NodeId> = template.score.into_iter().chain(gradient).collect();
        let exact = exact(graph, template.mask, &jumping);
        Self { template, ints, schedule, held, exact }
    }

    fn emit(&self, text: &mut String) {
        let weigh = |root: Option<NodeId>| root.map_or(0, |id| hoist::weight(self.template.graph, id));
        let (mask, score) = (weigh(self.template.mask), weigh(self.template.score));
        let _ = writeln!(
            text,
            "constexpr int MASK_PASS = {}, SCORE_PASS = {};\nconstexpr bool LIGHT_SCORE = {};",
            pass(mask),
            pass(score),
            score <= LIGHT
        );
        for holder in Holder::ALL {
            self.holder(text, holder);
        }
        let values = "const HeadValues head, const RowValues row, const ColumnValues column";
        let int = self.ints.name();
        let cell = format!("{int} b, {int} h, {int} q_idx, {int} kv_idx");
        let mods = [
            (self.template.mask, format!("bool mask_mod(const Mods &m, {values}, {cell})"), Accuracy::Exact),
            (
                self.template.score,
                format!("float score_mod(const Mods &m, int way, float raw, float scale, {values}, {cell})"),
                Accuracy::Fast,
            ),
        ];
        for (root, head, accuracy) in mods {
            let Some(root) = root else { continue };
            let function = Function { head: &head, roots: &[root], given: &Holder::ALL, accuracy, strides: None };
            let result = self.operand(root, &function);
            self.function(text, &function, &result);
        }
        if let (Some(mask), Ints::Wide) = (self.template.mask, self.ints) {
            self.spans(text, mask);
        }
        if let Some(gradient) = self.template.gradient {
            self.gradient(text, gradient);
        }
    }

    /// The struct of a holder's values and the function that makes them.
    fn holder(&self, text: &mut String, holder: Holder) {
        let (class, maker, _) = names(holder);
        let roots = self.held.of(holder);
        let _ = writeln!(text, "#line 1 \"mods\"\n// computed {}\nstruct {class} {{", often(holder));
        for id in &roots {
            let _ = writeln!(text, "    {} v{};", self.type_name(self.template.graph.ty(*id)), id.0);
        }
        text.push_str("};\n");
        let names: Vec<String> = roots.iter().map(|id| format!("v{}", id.0)).collect();
        let int = self.ints.name();
        let (parameters, given): (_, &[Holder]) = match holder {
            Holder::Head => (format!("{int} b, {int} h"), &[]),
            Holder::Row => (format!("const HeadValues head, {int} b, {int} h, {int} q_idx"), &[Holder::Head]),
            Holder::Column => (format!("const HeadValues head, {int} b, {int} h, {int} kv_idx"), &[Holder::Head]),
        };
        let head = format!("{class} {maker}(const Mods &m, {parameters})");
        // values computed once per row may be exact
        let accuracy = if holder == Holder::Column { Accuracy::ExactInMask } else { Accuracy::Exact };
        let function = Function { head: &head, roots: &roots, given, accuracy, strides: None };
        self.function(text, &function, &format!("{class}{{{}}}", names.join(", ")));
    }

    pub(super) fn function(&self, text: &mut String, function: &Function, result: &str) {
        let graph = self.template.graph;
        let mut needed = self.needed(function);
        let cost = needed.iter().fold(0u32, |sum, id| sum.saturating_add(hoist::own_cost(graph, &graph.node(*id).op)));
        let inlining = if cost > CALLED { "__noinline__" } else { "__forceinline__" };
        if cost > CALLED {
            // each value right before its first user: a long mod's values are more than there are registers
            let order = post_order(graph, function.roots);
            needed = order.into_iter().filter(|id| needed.contains(id)).collect();
        }
        let _ = writeln!(text, "#line 1 \"mods\"\n__device__ {inlining} {} {{", function.head);
        if function.accuracy == Accuracy::Fast {
            text.push_str("    const float score = raw * scale;\n");
        }
        let mut marks = Marks { sources: self.template.sources, last: None };
        for id in needed {
            let node = graph.node(id);
            marks.mark(text, node.span);
            let value = self.expression(id, function);
            let _ = writeln!(text, "    const {} v{} = {value};", self.type_name(node.ty), id.0);
        }
        let _ = writeln!(text, "    return {result};\n}}");
    }

    /// The nodes that a function computes itself, in the schedule's order.
    fn needed(&self, function: &Function) -> Vec<NodeId> {
        let graph = self.template.graph;
        let mut needed = vec![false; graph.nodes().len()];
        let mut stack: Vec<NodeId> = function.roots.to_vec();
        while let Some(id) = stack.pop() {
            if !needed[id.0 as usize] && !self.is_given(id, function.given) {
                needed[id.0 as usize] = true;
                stack.extend(graph.node(id).op.operands());
            }
        }
        let in_order = Level::ALL.into_iter().flat_map(|level| self.schedule.at(level));
        in_order.filter(|id| needed[id.0 as usize] && !is_atom(&graph.node(**id).op)).copied().collect()
    }

    /// Values that are computed once a head, row or column.
    pub(super) fn held_by(&self, holder: Holder) -> Vec<NodeId> {
        self.held.of(holder)
    }

    fn is_given(&self, id: NodeId, given: &[Holder]) -> bool {
        self.held.holder(id).is_some_and(|holder| given.contains(&holder))
    }

    /// How a node is written as an operand.
    pub(super) fn operand(&self, id: NodeId, function: &Function) -> String {
        let written = self.written(id, function);
        let of_head = self.held.holder(id) == Some(Holder::Head) && self.is_given(id, function.given);
        // a product of two cells' common distance would be kept instead of fused into the addition that follows
        let fresh = of_head && function.accuracy == Accuracy::Fast && self.template.graph.ty(id) == Ty::Float;
        if fresh { format!("fresh({written})") } else { written }
    }

    /// The same, as a value that the compiler may share between cells.
    fn written(&self, id: NodeId, function: &Function) -> String {
        let node = self.template.graph.node(id);
        match self.held.holder(id).filter(|holder| function.given.contains(holder)) {
            Some(holder) => format!("{}.v{}", names(holder).2, id.0),
            None if is_atom(&node.op) => {
                let text = atom(&node.op, function.strides.and_then(|s| s.get(&id)).copied());
                let narrow = matches!(node.op, Op::Int(_) | Op::UniformInt(_));
                if narrow && self.ints == Ints::Wide { format!("i64({text})") } else { text }
            }
            None => format!("v{}", id.0),
        }
    }

    /// A product with constants as one multiplication, and the functions of such a product that take the constants too.
    fn folded(&self, id: NodeId, function: &Function) -> Option<String> {
        let graph = self.template.graph;
        let base = |product: &Product| {
            if product.raw { "raw".to_string() } else { self.operand(product.base, function) }
        };
        let factor = |product: &Product| {
            let factor = |(id, inverse): &(NodeId, bool)| {
                // shared: the product of the factors is to be computed ahead
                let text = self.written(*id, function);
                if *inverse { format!("reciprocal_fast({text})") } else { text }
            };
            let scale = product.raw.then(|| "scale".to_string());
            scale.into_iter().chain(product.factors.iter().map(factor)).collect::<Vec<_>>().join(" * ")
        };
        let product = |id| fold::product(graph, &self.schedule, id);
        let tanh = |id: NodeId, times: &str| {
            let Op::Unary(UnaryOp::Tanh, a) = graph.node(id).op else { return None };
            let inside = product(a);
            let (base, factor) =
                inside.map_or_else(|| (self.operand(a, function), "1.0f".into()), |p| (base(&p), factor(&p)));
            Some(format!("fast_tanh(way, {base}, {factor}, {times})"))
        };
        match graph.node(id).op {
            Op::Unary(UnaryOp::Tanh, _) => tanh(id, "1.0f"),
            Op::Unary(UnaryOp::Exp, a) => {
                product(a).map(|p| format!("exp2_fast({} * ({} * 1.4426950408889634f))", base(&p), factor(&p)))
            }
            _ => product(id).map(|p| {
                let times = factor(&p);
                tanh(p.base, &times).unwrap_or_else(|| format!("{} * ({times})", base(&p)))
            }),
        }
    }

    fn expression(&self, id: NodeId, function: &Function) -> String {
        let graph = self.template.graph;
        let text = |id: &NodeId| self.operand(*id, function);
        let exact = self.exact[id.0 as usize];
        let how = match function.accuracy {
            _ if exact => Precision::Exact,
            Accuracy::Exact => Precision::Library,
            Accuracy::ExactInMask | Accuracy::Fast => Precision::Fast,
        };
        let fast = how == Precision::Fast;
        let op = &graph.node(id).op;
        if function.accuracy == Accuracy::Fast
            && !exact
            && let Some(folded) = self.folded(id, function)
        {
            return folded;
        }
        match op {
            Op::Unary(UnaryOp::ToDouble, a) if let Op::Float(bits) = graph.node(*a).op => {
                ops::double(f64::from_bits(bits))
            }
            Op::Unary(UnaryOp::As(DType::I32), a) if self.ints == Ints::Wide => format!("i64(int({}))", text(a)),
            Op::Unary(op, a) => ops::unary(*op, graph.ty(*a), &text(a), how),
            // the reciprocal of a constant is taken once, outside the loop over scores
            Op::Binary(BinaryOp::Div, a, b) if fast && graph.ty(*a) == Ty::Float && is_constant(graph, *b) => {
                format!("{} * reciprocal_fast({})", text(a), text(b))
            }
            Op::Binary(op, a, b) => {
                let literal = if let Op::Int(value) = graph.node(*b).op { Some(value) } else { None };
                ops::binary(*op, graph.ty(*a), &text(a), &text(b), literal, how)
            }
            Op::Where(c, a, b) => format!("{} ? {} : {}", text(c), text(a), text(b)),
            Op::Load(capture, index) => {
                format!("load(m.c{0} + ({1}))", capture.0, self.offset(capture.0, index, function))
            }
            atom => ops::atom(atom),
        }
    }

    fn type_name(&self, ty: Ty) -> &'static str {
        match ty {
            Ty::Bool => "bool",
            Ty::Int => self.ints.name(),
            Ty::Float => "float",
            Ty::Double => "double",
        }
    }

    /// Where a read lies in its tensor: each index wraps once and clamps, then row-major.
    pub(super) fn offset(&self, capture: u32, index: &[NodeId], function: &Function) -> String {
        let mut offset = String::new();
        for (axis, id) in index.iter().enumerate() {
            // an instruction instead of five in every column of every tile; the backward kernels would keep values in other registers, and spill
            let never_negative =
                matches!(self.template.graph.node(*id).op, Op::Input(_)) && self.template.gradient.is_none();
            let bound = if never_negative { "inside" } else { "wrap" };
            let bounded = format!("{bound}({}, m.d{capture}_{axis})", self.operand(*id, function));
            offset = if axis == 0 { bounded } else { format!("({offset}) * m.d{capture}_{axis} + {bounded}") };
        }
        if offset.is_empty() {
            offset.push('0');
        }
        offset
    }
}

/// The nodes that decide whether a cell is kept, which element is read, or between which two values a score jumps.
/// Nodes that follow from the score are excluded, because the score differs between devices.
fn exact(graph: &Graph, mask: Option<NodeId>, scores: &[NodeId]) -> Vec<bool> {
    use BinaryOp::{FloorDiv, Fmod, Mod};
    use UnaryOp::{Ceil, Floor, Round, Trunc};
    let mut roots: Vec<NodeId> = mask.into_iter().collect();
    for id in needed(graph, scores) {
        let jumps = match graph.node(id).op {
            Op::Unary(Floor | Ceil | Round | Trunc | UnaryOp::As(_), _) => true,
            Op::Binary(FloorDiv | Mod | Fmod, ..) => true,
            _ => !graph.ty(id).is_float(),
        };
        if jumps {
            roots.push(id);
        }
    }
    let mut exact = vec![false; graph.nodes().len()];
    for id in needed(graph, &roots) {
        exact[id.0 as usize] = !graph.follows_score(id);
    }
    exact
}

/// The number of groups of columns for which the kernel contains the text of a mod of this weight.
fn pass(weight: u32) -> usize {
    match weight {
        weight if weight <= HEAVY => ALL_GROUPS,
        weight if weight <= CALLED => 4,
        _ => 1,
    }
}

/// How often a holder's values are computed.
fn often(holder: Holder) -> &'static str {
    match holder {
        Holder::Head => "once a batch entry and head",
        Holder::Row => "once a row: q_idx",
        Holder::Column => "once a column: kv_idx",
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

/// Whether a node is written at its use instead of getting a name.
fn is_atom(op: &Op) -> bool {
    op.operands().is_empty() && !matches!(op, Op::Load(..))
}

/// The same as text; a uniform of a family of reads at its stride.
fn atom(op: &Op, stride: Option<u32>) -> String {
    let text = ops::atom(op);
    match stride {
        Some(stride @ 1..) => text.replace(']', &format!(" + {stride} * i]")),
        _ => text,
    }
}

/// A literal or a uniform.
fn is_constant(graph: &Graph, id: NodeId) -> bool {
    matches!(graph.node(id).op, Op::Float(_) | Op::UniformFloat(_))
}
