//! Rectangles, bands and distance curves as graphs.
//!
//! Invariant: the graph equals the content's definition cell for cell, with only comparisons and one small table. Must
//! not know layers or how masks combine.

use super::model::{MaskContent, Painted, Stroke};
use crate::base::tensor::Data;
use crate::base::{BlockSize, Diagnostic, HostTensor};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, NodeId, Op, UnaryOp};
use smallvec::smallvec;

/// Longest span of distances for which a curve becomes a table.
const MAX_TABLE: i64 = 1 << 20;
/// Most points of a longer curve, which becomes arithmetic.
const MAX_POINTS: usize = 64;

/// A mask mod without source text.
pub(crate) fn mask(graph: Graph, root: NodeId) -> Mod {
    Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
}

/// All of the conditions; true for none.
pub(crate) fn all(graph: &mut Graph, conditions: &[NodeId]) -> NodeId {
    match conditions.split_first() {
        None => graph.bool(true),
        Some((first, rest)) => rest.iter().fold(*first, |a, b| graph.binary(BinaryOp::And, a, *b)),
    }
}

/// Conditions for `lo <= index < hi`, leaving out the side that `0..len` fulfils anyway.
pub(crate) fn within(graph: &mut Graph, index: NodeId, lo: usize, hi: usize, len: usize) -> Vec<NodeId> {
    let mut out = Vec::new();
    if lo > 0 {
        let bound = graph.int(lo as i64);
        out.push(graph.binary(BinaryOp::Ge, index, bound));
    }
    if hi < len {
        let bound = graph.int(hi as i64);
        out.push(graph.binary(BinaryOp::Lt, index, bound));
    }
    out
}

/// Cells with q_idx in `q` and kv_idx in `kv`.
pub(crate) fn rectangle(q: [usize; 2], kv: [usize; 2]) -> Mod {
    let mut graph = Graph::new();
    if q[0] >= q[1] || kv[0] >= kv[1] {
        let nothing = graph.bool(false);
        return mask(graph, nothing);
    }
    let (q_idx, kv_idx) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
    let mut conditions = within(&mut graph, q_idx, q[0], q[1], usize::MAX);
    conditions.extend(within(&mut graph, kv_idx, kv[0], kv[1], usize::MAX));
    let root = all(&mut graph, &conditions);
    mask(graph, root)
}

/// Cells with `lo <= q_idx - kv_idx <= hi`.
pub(crate) fn band(lo: Option<i64>, hi: Option<i64>) -> Mod {
    let mut graph = Graph::new();
    let distance = distance(&mut graph);
    let mut conditions = Vec::new();
    for (bound, op) in [(lo, BinaryOp::Ge), (hi, BinaryOp::Le)] {
        if let Some(bound) = bound {
            let bound = graph.int(bound);
            conditions.push(graph.binary(op, distance, bound));
        }
    }
    let root = all(&mut graph, &conditions);
    mask(graph, root)
}

fn distance(graph: &mut Graph) -> NodeId {
    let (q_idx, kv_idx) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
    graph.binary(BinaryOp::Sub, q_idx, kv_idx)
}

/// `score + f(q_idx - kv_idx)` with f piecewise linear through `points`, constant beyond the ends. Over up to 2^20
/// distances f is a table of f32, so that every backend adds the very same numbers.
pub(crate) fn curve(points: &[(f64, f64)]) -> Result<Mod, Diagnostic> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Err(Diagnostic::error("empty-curve", "a distance curve has no points").hint("draw one, or remove it"));
    };
    let finite = points.iter().all(|p| p.0.is_finite() && p.1.is_finite() && p.0.abs() <= (1u64 << 31) as f64);
    if !finite || points.windows(2).any(|w| w[0].0 >= w[1].0) {
        let message = "the points of a distance curve must be finite, within 2^31 tokens, and in ascending order";
        return Err(Diagnostic::error("curve-points", message).hint("move the points apart"));
    }
    let (lo, hi) = (first.0.floor() as i64, last.0.ceil() as i64);
    let mut graph = Graph::new();
    let bias = if hi - lo < MAX_TABLE {
        curve_table(&mut graph, points, lo, hi)?
    } else if points.len() <= MAX_POINTS {
        curve_arithmetic(&mut graph, points)
    } else {
        let message = format!("a distance curve over {} tokens has {} points", hi - lo, points.len());
        return Err(Diagnostic::error("curve-too-long", message)
            .hint(format!("keep {MAX_POINTS} points, or span fewer than {MAX_TABLE} tokens")));
    };
    let score = graph.input(Input::Score);
    let root = graph.binary(BinaryOp::Add, score, bias);
    Ok(Mod { kind: ModKind::Score, graph, root, sources: Vec::new() })
}

fn curve_table(graph: &mut Graph, points: &[(f64, f64)], lo: i64, hi: i64) -> Result<NodeId, Diagnostic> {
    let values: Vec<f32> = (lo..=hi).map(|d| interpolate(points, d as f64) as f32).collect();
    let table = graph.add_capture("curve", HostTensor::new([values.len()], Data::F32(values))?);
    let distance = distance(graph);
    let (lo, hi) = (graph.int(lo), graph.int(hi));
    let clamped = graph.binary(BinaryOp::Max, distance, lo);
    let clamped = graph.binary(BinaryOp::Min, clamped, hi);
    let index = graph.binary(BinaryOp::Sub, clamped, lo);
    Ok(graph.add(Op::Load(table, smallvec![index]), None))
}

/// `y0 + sum of slope_i * clamp(d - x_i, 0, x_{i+1} - x_i)`.
fn curve_arithmetic(graph: &mut Graph, points: &[(f64, f64)]) -> NodeId {
    let distance = distance(graph);
    let distance = graph.unary(UnaryOp::ToFloat, distance);
    let mut bias = graph.float(points[0].1);
    let zero = graph.float(0.0);
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let (from, width, slope) = (graph.float(x0), graph.float(x1 - x0), graph.float((y1 - y0) / (x1 - x0)));
        let into = graph.binary(BinaryOp::Sub, distance, from);
        let into = graph.binary(BinaryOp::Max, into, zero);
        let into = graph.binary(BinaryOp::Min, into, width);
        let rise = graph.binary(BinaryOp::Mul, into, slope);
        bias = graph.binary(BinaryOp::Add, bias, rise);
    }
    bias
}

/// The curve at distance `d`.
pub fn interpolate(points: &[(f64, f64)], d: f64) -> f64 {
    let after = points.partition_point(|p| p.0 <= d);
    if after == 0 {
        return points.first().map_or(0.0, |p| p.1);
    }
    let (x0, y0) = points[after - 1];
    match points.get(after) {
        None => y0,
        Some((x1, y1)) => y0 + (y1 - y0) * (d - x0) / (x1 - x0),
    }
}

impl MaskContent {
    /// The same with rows and columns swapped; None if it is not a shape, or would not fit into `lengths` (q_len,
    /// kv_len).
    pub fn mirrored(&self, [q_len, kv_len]: [usize; 2]) -> Option<MaskContent> {
        Some(match self {
            MaskContent::Rectangle { q, kv } if kv[1] <= q_len && q[1] <= kv_len => {
                MaskContent::Rectangle { q: *kv, kv: *q }
            }
            MaskContent::Band { lo, hi } => MaskContent::Band { lo: hi.map(|n| -n), hi: lo.map(|n| -n) },
            MaskContent::Painted(painted) if q_len == kv_len => {
                let rects = |stroke: &Stroke| stroke.rects.iter().map(|[a, b, c, d]| [*c, *d, *a, *b]).collect();
                let stroke = |s: &Stroke| Stroke { paint: s.paint, rects: rects(s) };
                MaskContent::Painted(Painted {
                    cell: BlockSize { q: painted.cell.kv, kv: painted.cell.q },
                    lengths: [painted.lengths[1], painted.lengths[0]],
                    strokes: painted.strokes.iter().map(stroke).collect(),
                })
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::testing::{keeps, score_of};

    #[test]
    fn rectangles_and_bands_are_their_definitions() {
        let rect = rectangle([2, 5], [0, 3]);
        let below = band(None, Some(2));
        let both = band(Some(-1), Some(1));
        for q in 0..8i64 {
            for k in 0..8i64 {
                assert_eq!(keeps(&rect, q, k), (2..5).contains(&q) && k < 3);
                assert_eq!(keeps(&below, q, k), q - k <= 2);
                assert_eq!(keeps(&both, q, k), (q - k).abs() <= 1);
                assert!(keeps(&band(None, None), q, k));
                assert!(!keeps(&rectangle([3, 3], [0, 9]), q, k));
            }
        }
    }

    #[test]
    fn curves_interpolate_and_stay_constant_beyond_their_ends() {
        let points = [(-2.5, 1.0), (0.0, 0.0), (4.0, -2.0)];
        let near = curve(&points).unwrap();
        let far = curve(&[(-2.5, 1.0), (0.0, 0.0), (4.0, -2.0), (1e7, -2.0)]).unwrap();
        for (q, k) in [(0, 9), (0, 2), (0, 1), (3, 3), (4, 3), (6, 3), (7, 3), (90, 3)] {
            let wanted = 0.5 + interpolate(&points, (q - k) as f64);
            assert!((score_of(&near, 0.5, q, k) - wanted).abs() < 1e-6, "{q} {k}");
            assert!((score_of(&far, 0.5, q, k) - wanted).abs() < 1e-6, "{q} {k}");
        }
        assert_eq!(score_of(&near, 0.0, 0, 99), 1.0);
        assert!(near.graph.captures().len() == 1 && far.graph.captures().is_empty());
        assert!(curve(&[]).is_err() && curve(&[(1.0, 0.0), (1.0, 2.0)]).is_err() && curve(&[(f64::NAN, 0.0)]).is_err());
        let long: Vec<_> = (0..100).map(|n| (f64::from(n) * 1e6, 0.0)).collect();
        assert_eq!(curve(&long).unwrap_err().code, "curve-too-long");
    }

    #[test]
    fn mirrored_shapes_keep_the_mirrored_cells_and_mirror_back() {
        let stroke = |paint, rects| Stroke { paint, rects };
        let painted = Painted {
            cell: BlockSize { q: 4, kv: 2 },
            lengths: [32, 32],
            strokes: vec![stroke(true, vec![[0, 3, 4, 9]]), stroke(false, vec![[1, 2, 5, 6]])],
        };
        for content in [
            MaskContent::Rectangle { q: [3, 9], kv: [10, 30] },
            MaskContent::Band { lo: Some(-4), hi: None },
            MaskContent::Painted(painted),
        ] {
            let mirrored = content.mirrored([32, 32]).expect("fits");
            assert_eq!(mirrored.mirrored([32, 32]).as_ref(), Some(&content));
            let made = |content: &MaskContent| match content {
                MaskContent::Rectangle { q, kv } => rectangle(*q, *kv),
                MaskContent::Band { lo, hi } => band(*lo, *hi),
                MaskContent::Painted(p) => {
                    let lengths = crate::base::Lengths::new(32, 32).unwrap();
                    document::painted::painted_mask(p, lengths).unwrap()
                }
                _ => unreachable!(),
            };
            let (one, other) = (made(&content), made(&mirrored));
            for q in 0..32 {
                for kv in 0..32 {
                    use crate::document::testing::keeps;
                    assert_eq!(keeps(&one, q, kv), keeps(&other, kv, q), "{content:?} {q} {kv}");
                }
            }
        }
        assert_eq!(MaskContent::Rectangle { q: [0, 9], kv: [10, 30] }.mirrored([16, 32]), None, "no room");
    }
}
