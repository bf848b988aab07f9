//! Painted cells as a graph.
//!
//! Invariant: the last stroke over a cell decides it, unpainted cells are masked; memory is bounded for any canvas. A
//! few rectangles become comparisons, a small grid one table, a large grid with few distinct rows and columns a table
//! over their classes; larger grids are refused in words. Must not know layers.

use super::model::{Painted, Stroke};
use super::shapes::{all, mask, within};
use crate::base::tensor::Data;
use crate::base::{Diagnostic, HostTensor, Lengths};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, NodeId, Op};
use smallvec::smallvec;

/// Up to this many rectangles are compared one by one: exact for interval analysis at any size.
const MAX_RECTANGLES: usize = 16;
/// Largest table, in cells.
const MAX_TABLE: usize = 1 << 22;
/// Most rows plus columns of painted cells that classes are listed for.
const MAX_CLASSES: usize = 1 << 23;

/// The painted cells reduced to the rows and columns at which anything changes.
struct Picture {
    /// Rising; first 0, last the number of rows of cells.
    q_cuts: Vec<usize>,
    kv_cuts: Vec<usize>,
    /// Row-major over the intervals between cuts.
    kept: Vec<bool>,
}

/// The mask of painted cells on a canvas of these lengths.
pub(crate) fn painted_mask(painted: &Painted, lengths: Lengths) -> Result<Mod, Diagnostic> {
    let (rows, cols) = painted.cell.grid(lengths);
    let picture = Picture::of(&painted.strokes, rows, cols)?;
    let rectangles = picture.rectangles();
    if rectangles.len() <= MAX_RECTANGLES {
        return Ok(compared(&rectangles, painted, lengths));
    }
    let fits = |n: usize, limit| n <= limit;
    if rows.checked_mul(cols).is_some_and(|n| fits(n, MAX_TABLE)) {
        return tabled(&picture, painted, [rows, cols]);
    }
    if fits(rows + cols, MAX_CLASSES) {
        return classed(&picture, painted);
    }
    Err(too_fine(&format!("{rows} x {cols} cells with {} separate rectangles", rectangles.len())))
}

fn too_fine(what: &str) -> Diagnostic {
    Diagnostic::error("painted-too-fine", format!("the painted layer has {what}, too many for a table"))
        .hint("paint with larger cells, or with fewer, larger rectangles")
}

impl Picture {
    fn of(strokes: &[Stroke], rows: usize, cols: usize) -> Result<Picture, Diagnostic> {
        let rects: Vec<(bool, [usize; 4])> = strokes
            .iter()
            .flat_map(|s| s.rects.iter().map(|r| (s.paint, clip(*r, rows, cols))))
            .filter(|(_, r)| r[0] < r[1] && r[2] < r[3])
            .collect();
        let q_cuts = cuts(rows, rects.iter().flat_map(|(_, r)| [r[0], r[1]]));
        let kv_cuts = cuts(cols, rects.iter().flat_map(|(_, r)| [r[2], r[3]]));
        let (height, width) = (q_cuts.len() - 1, kv_cuts.len() - 1);
        if height.saturating_mul(width) > MAX_TABLE {
            return Err(too_fine(&format!("{height} different rows and {width} different columns")));
        }
        let mut picture = Picture { kept: vec![false; height * width], q_cuts, kv_cuts };
        picture.fill(&rects, width);
        Ok(picture)
    }

    /// Newest rectangle first, so that every cell is written once: `free[c]` leads to the next cell not yet decided.
    fn fill(&mut self, rects: &[(bool, [usize; 4])], width: usize) {
        let height = self.q_cuts.len() - 1;
        let stride = width + 1;
        let mut free: Vec<u32> = (0..height * stride).map(|at| (at % stride) as u32).collect();
        for (paint, [q0, q1, kv0, kv1]) in rects.iter().rev() {
            let (from, to) = (at(&self.kv_cuts, *kv0), at(&self.kv_cuts, *kv1));
            for row in at(&self.q_cuts, *q0)..at(&self.q_cuts, *q1) {
                let free = &mut free[row * stride..(row + 1) * stride];
                let mut col = next(free, from);
                while col < to {
                    self.kept[row * width + col] = *paint;
                    free[col] = col as u32 + 1;
                    col = next(free, col);
                }
            }
        }
    }

    /// Disjoint rectangles of cells, [q0, q1, kv0, kv1], found row by row and grown downwards.
    fn rectangles(&self) -> Vec<[usize; 4]> {
        let width = self.kv_cuts.len() - 1;
        let mut done: Vec<[usize; 4]> = Vec::new();
        let mut open: Vec<[usize; 4]> = Vec::new();
        for (row, kept) in self.kept.chunks(width.max(1)).enumerate() {
            let (q0, q1) = (self.q_cuts[row], self.q_cuts[row + 1]);
            let mut now = Vec::new();
            for (from, to) in runs(kept) {
                let (kv0, kv1) = (self.kv_cuts[from], self.kv_cuts[to]);
                match open.iter().position(|r| r[2] == kv0 && r[3] == kv1) {
                    Some(same) => now.push([open.swap_remove(same)[0], q1, kv0, kv1]),
                    None => now.push([q0, q1, kv0, kv1]),
                }
            }
            done.append(&mut open);
            open = now;
        }
        done.append(&mut open);
        done.sort_unstable();
        done
    }
}

fn clip(rect: [u32; 4], rows: usize, cols: usize) -> [usize; 4] {
    let [q0, q1, kv0, kv1] = rect.map(|v| v as usize);
    [q0.min(rows), q1.min(rows), kv0.min(cols), kv1.min(cols)]
}

fn cuts(end: usize, inner: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut cuts: Vec<usize> = inner.chain([0, end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Index of a value that is one of the cuts.
fn at(cuts: &[usize], value: usize) -> usize {
    cuts.partition_point(|c| *c < value)
}

/// First undecided cell from `col` on, shortening the way for the next search.
fn next(free: &mut [u32], col: usize) -> usize {
    let mut end = col;
    while free[end] as usize != end {
        end = free[end] as usize;
    }
    let mut step = col;
    while free[step] as usize != end && step != end {
        let then = free[step] as usize;
        free[step] = end as u32;
        step = then;
    }
    end
}

/// Half-open runs of true.
fn runs(row: &[bool]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut start = None;
    for (col, kept) in row.iter().chain([&false]).enumerate() {
        match (start, kept) {
            (None, true) => start = Some(col),
            (Some(from), false) => {
                out.push((from, col));
                start = None;
            }
            _ => {}
        }
    }
    out
}

fn compared(rectangles: &[[usize; 4]], painted: &Painted, lengths: Lengths) -> Mod {
    let mut graph = Graph::new();
    let (q_idx, kv_idx) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
    let cell = painted.cell;
    let parts: Vec<NodeId> = rectangles
        .iter()
        .map(|[q0, q1, kv0, kv1]| {
            let mut conditions = within(&mut graph, q_idx, q0 * cell.q, q1 * cell.q, lengths.q_len);
            conditions.extend(within(&mut graph, kv_idx, kv0 * cell.kv, kv1 * cell.kv, lengths.kv_len));
            all(&mut graph, &conditions)
        })
        .collect();
    let root = match parts.split_first() {
        None => graph.bool(false),
        Some((first, rest)) => rest.iter().fold(*first, |a, b| graph.binary(BinaryOp::Or, a, *b)),
    };
    mask(graph, root)
}

/// `index // cell`, or the index itself.
fn cell_index(graph: &mut Graph, input: Input, cell: usize) -> NodeId {
    let index = graph.input(input);
    if cell == 1 {
        return index;
    }
    let cell = graph.int(cell as i64);
    graph.binary(BinaryOp::FloorDiv, index, cell)
}

fn tabled(picture: &Picture, painted: &Painted, [rows, cols]: [usize; 2]) -> Result<Mod, Diagnostic> {
    let width = picture.kv_cuts.len() - 1;
    let mut cells = Vec::with_capacity(rows * cols);
    for row in 0..picture.q_cuts.len() - 1 {
        let start = cells.len();
        for col in 0..width {
            let count = picture.kv_cuts[col + 1] - picture.kv_cuts[col];
            cells.resize(cells.len() + count, u8::from(picture.kept[row * width + col]));
        }
        for _ in picture.q_cuts[row] + 1..picture.q_cuts[row + 1] {
            cells.extend_from_within(start..start + cols);
        }
    }
    let mut graph = Graph::new();
    let table = graph.add_capture("painted", HostTensor::new([rows, cols], Data::Bool(cells))?);
    let q = cell_index(&mut graph, Input::QIdx, painted.cell.q);
    let kv = cell_index(&mut graph, Input::KvIdx, painted.cell.kv);
    let root = graph.add(Op::Load(table, smallvec![q, kv]), None);
    Ok(mask(graph, root))
}

/// `classes[row_class[q // cell], column_class[kv // cell]]`.
fn classed(picture: &Picture, painted: &Painted) -> Result<Mod, Diagnostic> {
    let shape = [picture.q_cuts.len() - 1, picture.kv_cuts.len() - 1];
    let kept = picture.kept.iter().map(|k| u8::from(*k)).collect();
    let mut graph = Graph::new();
    let classes = graph.add_capture("painted", HostTensor::new(shape, Data::Bool(kept))?);
    let mut class = |name: &str, cuts: &[usize], input, cell| {
        let of = |(n, w): (usize, &[usize])| std::iter::repeat_n(n as i32, w[1] - w[0]);
        let values: Vec<i32> = cuts.windows(2).enumerate().flat_map(of).collect();
        let capture = graph.add_capture(name, HostTensor::vector(Data::I32(values)));
        let index = cell_index(&mut graph, input, cell);
        graph.add(Op::Load(capture, smallvec![index]), None)
    };
    let q = class("painted_rows", &picture.q_cuts, Input::QIdx, painted.cell.q);
    let kv = class("painted_columns", &picture.kv_cuts, Input::KvIdx, painted.cell.kv);
    let root = graph.add(Op::Load(classes, smallvec![q, kv]), None);
    Ok(mask(graph, root))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::BlockSize;
    use crate::document::testing::keeps;
    use proptest::prelude::*;

    fn oracle(painted: &Painted, q: usize, kv: usize) -> bool {
        let (row, col) = ((q / painted.cell.q) as u32, (kv / painted.cell.kv) as u32);
        let over = |r: &[u32; 4]| (r[0]..r[1]).contains(&row) && (r[2]..r[3]).contains(&col);
        painted.strokes.iter().rev().find(|s| s.rects.iter().any(over)).is_some_and(|s| s.paint)
    }

    fn strokes() -> impl Strategy<Value = Vec<Stroke>> {
        let rect = (0u32..14, 0u32..5, 0u32..14, 0u32..5).prop_map(|(q, h, k, w)| [q, q + h, k, k + w]);
        let stroke = (any::<bool>(), prop::collection::vec(rect, 0..6));
        prop::collection::vec(stroke.prop_map(|(paint, rects)| Stroke { paint, rects }), 0..10)
    }

    proptest! {
        #![proptest_config(maskloom_testing::cases::kept_beside())]

        #[test]
        fn the_last_stroke_decides(strokes in strokes(), cell in (1usize..4, 1usize..4), len in (1usize..33, 1usize..33)) {
            let painted = Painted { cell: BlockSize { q: cell.0, kv: cell.1 }, lengths: [len.0, len.1], strokes };
            let lengths = Lengths::new(len.0, len.1).unwrap();
            let (rows, cols) = painted.cell.grid(lengths);
            let picture = Picture::of(&painted.strokes, rows, cols).unwrap();
            let every = [
                painted_mask(&painted, lengths).unwrap(),
                compared(&picture.rectangles(), &painted, lengths),
                tabled(&picture, &painted, [rows, cols]).unwrap(),
                classed(&picture, &painted).unwrap(),
            ];
            for given in &every {
                given.graph.verify().unwrap();
                for q in 0..len.0 {
                    for kv in 0..len.1 {
                        prop_assert_eq!(keeps(given, q as i64, kv as i64), oracle(&painted, q, kv), "{} {}", q, kv);
                    }
                }
            }
        }
    }

    #[test]
    fn a_million_tokens_stay_small() {
        let lengths = Lengths::new(1 << 20, 1 << 20).unwrap();
        let mut painted = Painted { cell: BlockSize::square(1), lengths: [1 << 20; 2], strokes: Vec::new() };
        let stroke = |rects| Stroke { paint: true, rects };
        painted.strokes.push(stroke(vec![[0, 1 << 20, 0, 4], [5, 900_000, 7, 900_000]]));
        let few = painted_mask(&painted, lengths).unwrap();
        assert!(few.graph.captures().is_empty());
        assert!(keeps(&few, 899_999, 899_999) && !keeps(&few, 900_000, 899_999) && keeps(&few, 900_000, 3));
        painted.strokes.push(stroke((0..200).map(|n| [n * 5000, n * 5000 + 9, n * 4000, n * 4000 + 9]).collect()));
        let many = painted_mask(&painted, lengths).unwrap();
        let bytes: usize = many.graph.captures().iter().map(|c| c.tensor.numel() * c.tensor.dtype().size()).sum();
        assert!(bytes < 16 << 20, "{bytes}");
        painted.strokes.push(stroke((0..3000).map(|n| [n * 7, n * 7 + 1, n * 11, n * 11 + 1]).collect()));
        assert_eq!(painted_mask(&painted, lengths).unwrap_err().code, "painted-too-fine");
    }

    #[test]
    fn many_overlapping_strokes_end() {
        let rects = |n: u32| (0..50).map(|i| [i, 1000, n % 900, n % 900 + 100]).collect();
        let strokes = (0..400).map(|n| Stroke { paint: n % 2 == 0, rects: rects(n * 7) }).collect();
        let painted = Painted { cell: BlockSize::square(8), lengths: [8192; 2], strokes };
        // `bench language` measures its time
        painted_mask(&painted, Lengths::new(8192, 8192).unwrap()).unwrap();
    }
}
