//! Whether a mask is the same on every processor: no cell may depend on the last bit of a function that differs between
//! processors.
//!
//! Invariant: `Open` names a cell that is kept with some last bits and dropped with others; `Settled` is returned only
//! after every cell was checked. Must not know how the other masks were made.

use super::block_mask::{BlockMask, MaskShape};
use super::change::Change;
use super::lint::Sizes;
use crate::base::{BlockSize, Control, Diagnostic, Lengths};
use crate::ir::cell::{Cell, eval};
use crate::ir::graph::Mod;
use std::sync::Arc;

/// Cells that are looked at, over batch entries and heads; more are looked at in part.
const MOST: usize = 1 << 24;

/// The result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// No cell differs.
    Yes,
    /// This cell (b, h, q, kv) differs.
    Open([usize; 4]),
    /// No cell of the part that was looked at differs.
    InPart,
}

/// The diagnostic that replaces the tracer's note on last bits: none if no cell depends on them, an error if one does.
pub fn reported(note: &Diagnostic, mask: &Mod, others: &[Arc<Mod>], sizes: Sizes) -> Option<Diagnostic> {
    match settled(mask, others, sizes) {
        Settled::Yes => None,
        Settled::InPart => Some(note.clone()),
        Settled::Open([b, h, q, kv]) => {
            let function = note.message.split('`').nth(1).unwrap_or("a function");
            let message = format!(
                "whether the cell b {b}, h {h}, q {q}, kv {kv} is kept depends on the last bit of `{function}`, which differs between processors in PyTorch"
            );
            let error = Diagnostic::error(note.code.clone(), message).hint(
                "compare with a margin, as in `x > y + 1e-5`, or compute the table in PyTorch and pass it as a captured tensor",
            );
            Some(Diagnostic { labels: note.labels.clone(), sources: note.sources.clone(), ..error })
        }
    }
}

/// Looks for a cell in which one of the others differs from the mask.
pub fn settled(mask: &Mod, others: &[Arc<Mod>], sizes: Sizes) -> Settled {
    let (looked, whole) = part(mask, sizes);
    let found = others.iter().find_map(|other| differs(mask, other, looked));
    match found {
        Some(cell) => Settled::Open(cell),
        // of none nothing is known: the text takes too long to be traced again
        None if whole && !others.is_empty() => Settled::Yes,
        None => Settled::InPart,
    }
}

/// The extent that is looked at, and whether it is all.
fn part(mask: &Mod, sizes: Sizes) -> (MaskShape, bool) {
    let mut shape = MaskShape::of(Some(mask), (sizes.batch, sizes.heads), sizes.lengths);
    let all = shape;
    while shape.batch * shape.heads * shape.lengths.q_len > MOST / shape.lengths.kv_len.max(1) {
        let Lengths { q_len, kv_len } = shape.lengths;
        match (shape.batch, shape.heads) {
            (2.., _) => shape.batch = shape.batch.div_ceil(2),
            (1, 33..) => shape.heads = shape.heads.div_ceil(2),
            _ if q_len >= kv_len => shape.lengths.q_len = q_len.div_ceil(2),
            _ => shape.lengths.kv_len = kv_len.div_ceil(2),
        }
    }
    (shape, shape == all)
}

/// The first cell in which two masks differ.
fn differs(mask: &Mod, other: &Mod, shape: MaskShape) -> Option<[usize; 4]> {
    let change = Change::between(Some(mask), Some(other)).as_mask()?;
    let size = BlockSize { q: 64, kv: 64 };
    let blocks = BlockMask::build(Some(&change), shape, size, &Control::new()).ok()?;
    let (rows, _) = blocks.grid();
    for (b, h) in (0..shape.batch).flat_map(|b| (0..shape.heads).map(move |h| (b, h))) {
        for row in 0..rows {
            let Some(run) = blocks.runs(b, h, row).next() else { continue };
            let until = |from: usize, all: usize| from..(from + 64).min(all);
            for q in until(row * 64, shape.lengths.q_len) {
                for kv in until(run.start * 64, shape.lengths.kv_len) {
                    let cell = Cell { b: b as i64, h: h as i64, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 };
                    if eval(&change, &cell).as_bool() {
                        return Some([b, h, q, kv]);
                    }
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::graph::{BinaryOp, Graph, Input, ModKind, Op};

    /// `q - kv < limit`, but at one cell of one head.
    fn window(limit: i64, odd: Option<(i64, i64, i64)>) -> Mod {
        let mut graph = Graph::new();
        let (h, q, k) = (graph.input(Input::H), graph.input(Input::QIdx), graph.input(Input::KvIdx));
        let distance = graph.binary(BinaryOp::Sub, q, k);
        let limit = graph.int(limit);
        let mut root = graph.binary(BinaryOp::Lt, distance, limit);
        if let Some(at) = odd {
            let at = [at.0, at.1, at.2].map(|x| graph.int(x));
            let same = [(h, at[0]), (q, at[1]), (k, at[2])].map(|(x, at)| graph.binary(BinaryOp::Eq, x, at));
            let both = graph.binary(BinaryOp::And, same[0], same[1]);
            let all = graph.binary(BinaryOp::And, both, same[2]);
            root = graph.add(Op::Binary(BinaryOp::Xor, root, all), None);
        }
        Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
    }

    #[test]
    fn one_cell_that_differs_is_found() {
        let sizes = |n| Sizes { batch: 2, heads: 3, lengths: Lengths::new(n, n).unwrap() };
        let others = |odd| vec![Arc::new(window(9, None)), Arc::new(window(9, odd))];
        assert_eq!(settled(&window(9, None), &others(None), sizes(700)), Settled::Yes);
        assert_eq!(settled(&window(9, Some((9, 0, 0))), &others(None), sizes(700)), Settled::Yes);
        let odd = Some((2, 600, 13));
        assert_eq!(settled(&window(9, odd), &others(None), sizes(700)), Settled::Open([0, 2, 600, 13]));
        assert_eq!(settled(&window(9, None), &[], sizes(700)), Settled::InPart);
        assert_eq!(settled(&window(9, None), &others(None), sizes(40_000)), Settled::InPart);
    }

    #[test]
    fn a_cell_in_the_last_block_of_ragged_lengths_is_found() {
        let sizes = Sizes { batch: 1, heads: 1, lengths: Lengths::new(131, 67).unwrap() };
        for (q, kv) in [(0, 0), (130, 66), (130, 0), (63, 64), (64, 63)] {
            let found = settled(&window(1000, Some((0, q, kv))), &[Arc::new(window(1000, None))], sizes);
            assert_eq!(found, Settled::Open([0, 0, q as usize, kv as usize]));
        }
    }

    /// 2^24 cells are looked at whole; of more batch entries, heads, queries and keys are halved, the most numerous first.
    #[test]
    fn what_is_looked_at_of_a_large_mask_has_at_most_so_many_cells() {
        // reads all four
        let mask = {
            let mut graph = Graph::new();
            let [b, h, q, k] = [Input::B, Input::H, Input::QIdx, Input::KvIdx].map(|input| graph.input(input));
            let (place, token) = (graph.binary(BinaryOp::Add, b, h), graph.binary(BinaryOp::Add, q, k));
            let root = graph.binary(BinaryOp::Lt, place, token);
            Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
        };
        let of = |batch, heads, q_len, kv_len| {
            let (shape, whole) = part(&mask, Sizes { batch, heads, lengths: Lengths::new(q_len, kv_len).unwrap() });
            ([shape.batch, shape.heads, shape.lengths.q_len, shape.lengths.kv_len], whole)
        };
        assert_eq!(of(1, 1, 4096, 4096), ([1, 1, 4096, 4096], true));
        assert_eq!(of(2, 2, 2048, 2048), ([2, 2, 2048, 2048], true));
        assert_eq!(of(1, 1, 4097, 4096), ([1, 1, 2049, 4096], false));
        assert_eq!(of(1, 1, 4096, 4097), ([1, 1, 4096, 2049], false));
        assert_eq!(of(1, 1, 8192, 8192), ([1, 1, 4096, 4096], false));
        // 7, 4, 2 and then 1 batch entry
        assert_eq!(of(7, 4, 2048, 2048), ([1, 4, 2048, 2048], false));
        assert_eq!(of(1, 64, 1024, 1024), ([1, 32, 512, 1024], false));
        assert_eq!(of(1, 33, 1024, 1024), ([1, 17, 512, 1024], false));
    }

    #[test]
    fn the_note_on_last_bits_goes_stays_or_becomes_an_error() {
        let sizes = |n| Sizes { batch: 1, heads: 3, lengths: Lengths::new(n, n).unwrap() };
        let mut note = Diagnostic::note("last-bit", "the mask depends on the last bit of `sin`, maybe")
            .at(crate::base::Span { start: 2, end: 5, ..Default::default() }, "here");
        note.sources = vec![crate::base::Source::new("a.py", "sin(x) > 0")];
        let others = [Arc::new(window(9, None))];
        assert_eq!(reported(&note, &window(9, None), &others, sizes(200)), None);
        assert_eq!(reported(&note, &window(9, None), &others, sizes(5000)), Some(note.clone()));
        let error = reported(&note, &window(9, Some((2, 60, 13))), &others, sizes(200)).expect("an error");
        assert_eq!((error.severity, &*error.code), (crate::base::Severity::Error, "last-bit"));
        assert!(error.message.contains("the cell b 0, h 2, q 60, kv 13 is kept depends on the last bit of `sin`"));
        assert_eq!((error.labels, error.sources), (note.labels, note.sources));
    }
}
