//! Warnings about a mod at given sizes: reads outside captured tensors, ints that exceed 32 bits, much work, rows
//! without keys.
//!
//! Invariant: a warning names a cell where the problem occurs, or a range that contains every value; impossible
//! problems are not reported. Must not know documents or problems.

use super::block_mask::{BlockMask, Stats};
use super::interval::{Cells, Program, Value as Interval};
use crate::base::{Diagnostic, Lengths};
use crate::ir::bounds::{ANY, Range, range_of, tensor_range};
use crate::ir::cell::{Cell, Uniforms, values};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, NodeId, Op, Ty};
use crate::ir::schedule::{self, Level};
use std::sync::Arc;

/// Number of reported warnings of one kind; the others have the same cause.
const MOST: usize = 3;

/// Cells that are tried for a read outside.
const TRIED: usize = 200;

/// The sizes that a mod runs at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Batch entries.
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    /// Tokens.
    pub lengths: Lengths,
}

/// Reads that can leave their tensor, and ints that can leave 32 bits.
pub fn lint(of: &Mod, sizes: Sizes) -> Vec<Diagnostic> {
    let mut reported = reads(of, sizes);
    // the cells of a mask are found on the host, in 64 bits
    if of.kind == ModKind::Score {
        reported.extend(overflow(of, sizes));
    }
    reported.extend(zero_division(of, sizes));
    reported.extend(costly(of, sizes));
    for diagnostic in &mut reported {
        diagnostic.sources = of.sources.clone();
    }
    reported
}

/// Operations for each cell from which on a mask is slow in every backend.
const COSTLY: usize = 500;

/// A mod that computes very much for every cell.
fn costly(of: &Mod, sizes: Sizes) -> Option<Diagnostic> {
    let schedule = schedule::Schedule::new(&of.graph, &[of.root]);
    let work = schedule.work(&of.graph, Level::Cell) + schedule.work(&of.graph, Level::Score);
    if work < COSTLY {
        return None;
    }
    let (q_len, kv_len) = (sizes.lengths.q_len, sizes.lengths.kv_len);
    let message = format!("this computes {work} operations for each of {q_len} x {kv_len} cells");
    let reported = Diagnostic::warning("costly", message)
        .hint("compute a table in the factory and read it, `table[q_idx, kv_idx]`: such a mod makes block masks and kernels slow");
    Some(match of.graph.node(of.root).span {
        Some(span) => reported.at(span, ""),
        None => reported,
    })
}

/// Rows without any kept cell give zeros: PyTorch's users meet them as NaN elsewhere.
pub fn empty_rows(mask: &BlockMask, stats: &Stats, of: &Mod, sizes: Sizes) -> Option<Diagnostic> {
    let rows = (sizes.lengths.q_len * sizes.batch.min(mask.shape().batch) * sizes.heads.min(mask.shape().heads)) as u64;
    if stats.empty_rows == 0 {
        return None;
    }
    let mut reported = if stats.kept_cells == 0 {
        Diagnostic::warning("keeps-nothing", "at these lengths this mask keeps no cell at all")
            .hint("check the condition and the lengths: the output will be all zeros")
    } else {
        let message = format!("{} of {rows} rows keep no key{}", stats.empty_rows, first_empty(of, sizes));
        Diagnostic::warning("empty-rows", message)
            .hint("their output is 0 and their lse -inf (NaN in a plain softmax); let each query keep its own key: `| (q_idx == kv_idx)`")
    };
    if let Some(span) = of.graph.node(of.root).span {
        reported = reported.at(span, "");
    }
    reported.sources = of.sources.clone();
    Some(reported)
}

/// Where the first such row is, if it is soon found.
fn first_empty(of: &Mod, sizes: Sizes) -> String {
    const CELLS: usize = 1 << 24;
    let (q_len, kv_len) = (sizes.lengths.q_len, sizes.lengths.kv_len);
    let program = crate::ir::tiles::Program::new(of);
    let mut row = vec![0; kv_len];
    for q in 0..q_len.min((CELLS / kv_len).max(1)) {
        program.mask_tile(0, 0, q..q + 1, 0..kv_len, &mut row);
        if row.iter().all(|kept| *kept == 0) {
            return format!(", the first at q_idx {q}");
        }
    }
    String::new()
}

fn reads(of: &Mod, sizes: Sizes) -> Vec<Diagnostic> {
    let graph = Arc::new(of.graph.clone());
    let last = |n: usize| (0, n as i64 - 1);
    let cells = Cells {
        b: last(sizes.batch),
        h: last(sizes.heads),
        q: last(sizes.lengths.q_len),
        kv: last(sizes.lengths.kv_len),
    };
    let mut reported: Vec<Diagnostic> = Vec::new();
    for id in schedule::needed(&graph, &[of.root]) {
        let Op::Load(capture, index) = &graph.node(id).op else { continue };
        let captured = graph.capture(*capture);
        for (dim, (at, extent)) in index.iter().zip(captured.tensor.shape()).enumerate() {
            let program = Program::of_graph(Arc::clone(&graph), *at);
            let Interval::Int(range) = program.evaluate(&cells, &mut program.scratch()) else { continue };
            let n = *extent as i64;
            if reported.len() >= MOST || (range.lo >= -n && range.hi < n) {
                continue;
            }
            let Some((cell, value)) = witness(of, *at, n, sizes) else { continue };
            let shape = captured.tensor.shape();
            let place = if shape.len() > 1 { format!("dimension {dim} of ") } else { String::new() };
            let message = format!(
                "this index is outside {place}`{}` {shape:?}: it is {value} at b {}, h {}, q_idx {}, kv_idx {}, and in {}..={} over all cells",
                captured.name, cell.b, cell.h, cell.q_idx, cell.kv_idx, range.lo, range.hi
            );
            let long = range.hi.max(n - 1).saturating_add(1);
            let hint = if range.lo < -n {
                // a longer table alone would move what a negative index wraps to
                let offset = range.lo.saturating_neg();
                format!(
                    "Maskloom reads the nearest element, PyTorch crashes or reads undefined memory: add {offset} to the index \
                     and make it {} long (negative indices count from the end), or clamp the index",
                    range.hi.saturating_add(offset).saturating_add(1)
                )
            } else {
                format!(
                    "Maskloom reads the nearest element, PyTorch crashes or reads undefined memory: make it {long} long, \
                     or clamp the index"
                )
            };
            let warning = Diagnostic::warning("index-out-of-range", message).hint(hint);
            // an input has no place in the text: its reader has one
            let own = graph.node(*at).span.filter(|_| !matches!(graph.node(*at).op, Op::Input(_)));
            reported.push(match own.or(graph.node(id).span) {
                Some(span) => warning.at(span, ""),
                None => warning,
            });
        }
    }
    reported
}

/// A read of a dimension of one entry by an index of the mod's own, which only its first value fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Lone {
    /// The index of a read.
    pub by: Input,
    reported: Diagnostic,
}

impl Lone {
    /// The warning at these sizes; None if the index has only one value.
    pub fn reported(&self, sizes: Sizes) -> Option<Diagnostic> {
        let values = match self.by {
            Input::B => sizes.batch,
            Input::H => sizes.heads,
            Input::QIdx => sizes.lengths.q_len,
            Input::KvIdx => sizes.lengths.kv_len,
            Input::Score => 1,
        };
        (values > 1).then(|| self.reported.clone())
    }
}

/// Such reads of a mod as traced: the simplified mod reads the one element for any index.
pub fn lone(of: &Mod) -> Vec<Lone> {
    let mut out: Vec<Lone> = Vec::new();
    for id in schedule::needed(&of.graph, &[of.root]) {
        let Op::Load(capture, index) = &of.graph.node(id).op else { continue };
        let captured = of.graph.capture(*capture);
        for (dim, (at, extent)) in index.iter().zip(captured.tensor.shape()).enumerate() {
            let Op::Input(by) = of.graph.node(*at).op else { continue };
            if *extent != 1 || out.len() >= MOST {
                continue;
            }
            let message = format!(
                "dimension {dim} of `{}` {:?} has one element, and {} reads more: it is not broadcast",
                captured.name,
                captured.tensor.shape(),
                by.name()
            );
            let warning = Diagnostic::warning("index-out-of-range", message).hint(
                "Maskloom reads this element, PyTorch crashes or reads undefined memory: index it with 0, or expand the tensor",
            );
            let mut reported = match of.graph.node(id).span {
                Some(span) => warning.at(span, ""),
                None => warning,
            };
            reported.sources = of.sources.clone();
            out.push(Lone { by, reported });
        }
    }
    out
}

/// A cell with an index outside `-n..n`.
fn witness(of: &Mod, index: NodeId, n: i64, sizes: Sizes) -> Option<(Cell, i64)> {
    let mut tried = cells_tried(sizes).map(|cell| (cell, value_at(of, index, &cell)));
    tried.find(|(_, value)| *value < -n || *value >= n)
}

/// Cells at which a fault is looked for: corners first, then cells all over.
fn cells_tried(sizes: Sizes) -> impl Iterator<Item = Cell> {
    let ends = [sizes.batch, sizes.heads, sizes.lengths.q_len, sizes.lengths.kv_len].map(|n| n as i64 - 1);
    (0..TRIED as u64).map(move |tried| {
        let pick = |dim: usize| match tried {
            0..16 => (tried as i64 >> dim & 1) * ends[dim],
            // multiples of a large odd number are spread evenly
            _ => ((tried * (2 * dim as u64 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (ends[dim] as u64 + 1)) as i64,
        };
        Cell { b: pick(0), h: pick(1), q_idx: pick(2), kv_idx: pick(3), score: 0.0 }
    })
}

fn value_at(of: &Mod, node: NodeId, cell: &Cell) -> i64 {
    values(&of.graph, node, cell, Uniforms::default())[node.0 as usize].as_int()
}

/// The first division of ints by a value that is zero in some cell.
fn zero_division(of: &Mod, sizes: Sizes) -> Option<Diagnostic> {
    use BinaryOp::{FloorDiv, Fmod, Mod, TruncDiv};
    let graph = Arc::new(of.graph.clone());
    let divisors = schedule::needed(&graph, &[of.root]).into_iter().filter_map(|id| match graph.node(id).op {
        Op::Binary(FloorDiv | TruncDiv | Mod | Fmod, _, by) if graph.ty(by) == Ty::Int => Some((id, by)),
        _ => None,
    });
    for (id, by) in divisors.filter(|(_, by)| !matches!(graph.node(*by).op, Op::Int(x) if x != 0)) {
        let Some(cell) = cells_tried(sizes).find(|cell| value_at(of, by, cell) == 0) else { continue };
        let message = format!(
            "this divides by zero at b {}, h {}, q_idx {}, kv_idx {}: PyTorch raises ZeroDivisionError",
            cell.b, cell.h, cell.q_idx, cell.kv_idx
        );
        let reported = Diagnostic::warning("zero-division", message)
            .hint("the result is 0 here; make the divisor at least 1: `.clamp(min=1)`");
        return Some(match graph.node(id).span {
            Some(span) => reported.at(span, ""),
            None => reported,
        });
    }
    None
}

/// The first int that can leave 32 bits.
fn overflow(of: &Mod, sizes: Sizes) -> Option<Diagnostic> {
    let graph = &of.graph;
    let loads: Vec<Range> = graph.captures().iter().map(|c| tensor_range(&c.tensor)).collect();
    let mut ranges: Vec<Range> = vec![(0, 0); graph.nodes().len()];
    for id in schedule::needed(graph, &[of.root]) {
        let node = graph.node(id);
        if node.ty != Ty::Int {
            continue;
        }
        let range = range_at(graph, &node.op, &ranges, sizes, &loads);
        if range == ANY || (matches!(node.op, Op::Int(_)) && !fits(range)) {
            // the range is unknown, or the constant itself is reported during tracing
            return None;
        }
        if !fits(range) {
            let message = format!(
                "this can exceed 32 bits, the precision of kernels: its values are in {}..={}",
                range.0, range.1
            );
            let warning = Diagnostic::warning("int-overflow", message)
                .hint("divide or take the remainder before multiplying, or compute in float: `.to(torch.float32)`");
            return Some(match node.span {
                Some(span) => warning.at(span, ""),
                None => warning,
            });
        }
        ranges[id.0 as usize] = range;
    }
    None
}

fn fits(range: Range) -> bool {
    range.0 >= i128::from(i32::MIN) && range.1 <= i128::from(i32::MAX)
}

fn range_at(graph: &Graph, op: &Op, ranges: &[Range], sizes: Sizes, loads: &[Range]) -> Range {
    let last = |n: usize| (0, n as i128 - 1);
    match op {
        Op::Input(Input::B) => last(sizes.batch),
        Op::Input(Input::H) => last(sizes.heads),
        Op::Input(Input::QIdx) => last(sizes.lengths.q_len),
        Op::Input(Input::KvIdx) => last(sizes.lengths.kv_len),
        op => range_of(graph, op, ranges, sizes.lengths.q_len.max(sizes.lengths.kv_len), loads),
    }
}
