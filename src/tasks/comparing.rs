//! The cells in which two masks differ, counted by region.
//!
//! Invariant: every cell of both masks is evaluated, in every batch entry and head that one of them reads. Must not know how
//! it is shown.

use crate::base::{Control, Diagnostic};
use crate::ir::graph::{Input, Mod};
use crate::ir::tiles::Program;
use serde::Serialize;
use std::ops::Range;

/// Cells that are evaluated at most.
pub const MOST: u128 = 1 << 34;

/// The difference of two masks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Batch entries and heads that were compared: more than one if a mask reads them.
    pub planes: [usize; 2],
    /// Cells of a plane, times the planes.
    pub cells: u64,
    /// Cells that the first mask keeps, and the second.
    pub kept: [u64; 2],
    /// Cells that the first alone keeps, and the second.
    pub alone: [u64; 2],
    /// The regions in which they differ, most first.
    pub regions: Vec<RegionCount>,
    /// The first cells that differ: b, h, q_idx, kv_idx, and whether the first mask keeps it.
    pub first: Vec<([usize; 4], bool)>,
}

/// How often the masks differ in one region.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegionCount {
    /// Queries: the name of a segment, or a range.
    pub queries: String,
    /// Keys.
    pub keys: String,
    /// Cells that the first alone keeps, and the second.
    pub alone: [u64; 2],
}

/// A named part of an axis.
pub type Part = (String, Range<usize>);

/// Parts of an axis: its segments, or quarters if it has one.
pub fn parts(axis: &crate::document::model::Axis) -> Vec<Part> {
    let mut from = 0;
    let segments: Vec<Part> = axis
        .segments
        .iter()
        .map(|segment| {
            let part = (segment.name.clone(), from..from + segment.len());
            from = part.1.end;
            part
        })
        .collect();
    if segments.len() > 1 {
        return segments;
    }
    let len = axis.len();
    let cuts: Vec<usize> = (0..=4).map(|n| n * len / 4).collect();
    let quarter = |w: &[usize]| (format!("{}..{}", w[0], w[1]), w[0]..w[1]);
    cuts.windows(2).filter(|w| w[0] < w[1]).map(quarter).collect()
}

/// Compares two masks over the same lengths; None keeps every cell. The first `named` differing cells are named. Errors: `cancelled`, more than [`MOST`] cells.
pub fn difference(
    masks: [Option<&Mod>; 2],
    [batch, heads]: [usize; 2],
    [queries, keys]: [&[Part]; 2],
    named: usize,
    control: &Control,
) -> Result<Difference, Diagnostic> {
    let length = |parts: &[Part]| parts.last().map_or(0, |p| p.1.end);
    let (q_len, kv_len) = (length(queries), length(keys));
    let reads = |input| masks.iter().flatten().any(|m| m.depends().on(input));
    let planes = [if reads(Input::B) { batch } else { 1 }, if reads(Input::H) { heads } else { 1 }];
    let cells = q_len as u128 * kv_len as u128 * (planes[0] * planes[1]) as u128;
    if cells > MOST {
        let message = format!("{cells} cells are too many to compare one by one");
        return Err(Diagnostic::error("compare-size", message)
            .hint("compare at a shorter length (--seq), where the same rules apply"));
    }
    let programs = masks.map(|m| m.map(Program::new));
    let mut counts = vec![[0u64; 2]; queries.len() * keys.len()];
    let mut found =
        Difference { planes, cells: cells as u64, kept: [0; 2], alone: [0; 2], regions: Vec::new(), first: Vec::new() };
    let mut rows = [vec![1u8; kv_len], vec![1u8; kv_len]];
    for (b, h) in (0..planes[0]).flat_map(|b| (0..planes[1]).map(move |h| (b, h))) {
        for (at, (_, part)) in queries.iter().enumerate() {
            for q in part.clone() {
                if control.is_cancelled() {
                    return Err(Diagnostic::error("cancelled", "the comparison was cancelled"));
                }
                control.set_progress(q as f64 / q_len as f64);
                for (program, row) in programs.iter().zip(&mut rows) {
                    if let Some(program) = program {
                        row.fill(0);
                        program.mask_tile(b, h, q..q + 1, 0..kv_len, row);
                    }
                }
                for (row, kept) in rows.iter().zip(&mut found.kept) {
                    *kept += row.iter().filter(|k| **k != 0).count() as u64;
                }
                if rows[0] == rows[1] {
                    continue;
                }
                for (to, (_, columns)) in keys.iter().enumerate() {
                    for kv in columns.clone().filter(|kv| rows[0][*kv] != rows[1][*kv]) {
                        let second = usize::from(rows[0][kv] == 0);
                        counts[at * keys.len() + to][second] += 1;
                        if found.first.len() < named {
                            found.first.push(([b, h, q, kv], second == 0));
                        }
                    }
                }
            }
        }
    }
    for (at, alone) in counts.into_iter().enumerate().filter(|(_, c)| c.iter().sum::<u64>() > 0) {
        let name = |parts: &[Part], at: usize| parts[at].0.clone();
        found.alone = [found.alone[0] + alone[0], found.alone[1] + alone[1]];
        found.regions.push(RegionCount {
            queries: name(queries, at / keys.len()),
            keys: name(keys, at % keys.len()),
            alone,
        });
    }
    found.regions.sort_by_key(|r| std::cmp::Reverse(r.alone.iter().sum::<u64>()));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::model::{Axis, Segment};
    use crate::ir::text::parse;

    fn check(a: &str, b: &str, axis: &Axis) -> Difference {
        let [a, b] = [a, b].map(|text| parse(text, &[]).expect("a mask"));
        let parts = parts(axis);
        difference([Some(&a), Some(&b)], [2, 3], [&parts, &parts], 5, &Control::new()).expect("compared")
    }

    /// `(causal & window) | image` against `causal | image`, counted by a loop.
    #[test]
    fn differences_are_counted_by_region_and_the_first_are_named() {
        let image = "(and (ge q_idx 12) (ge kv_idx 12))";
        let near = format!("(or (and (ge q_idx kv_idx) (lt (sub q_idx kv_idx) 4)) {image})");
        let far = format!("(or (ge q_idx kv_idx) {image})");
        let axis = Axis { segments: vec![Segment::new("text", vec![12]), Segment::new("image", vec![2, 2])] };
        let found = check(&near, &far, &axis);
        let mut want = [0u64; 2];
        for q in 0..16i64 {
            for k in 0..16i64 {
                let both = q >= 12 && k >= 12;
                if !both && q >= k && q - k >= 4 {
                    want[usize::from(q >= 12)] += 1;
                }
            }
        }
        assert_eq!((found.alone, found.planes, found.cells), ([0, want.iter().sum()], [1, 1], 256));
        let region = |q: &str, k: &str, n| RegionCount { queries: q.into(), keys: k.into(), alone: [0, n] };
        let mut regions = vec![region("text", "text", want[0]), region("image", "text", want[1])];
        regions.sort_by_key(|r| std::cmp::Reverse(r.alone[1]));
        assert_eq!(found.regions, regions);
        assert_eq!(found.first[0], ([0, 0, 4, 0], false));
        assert_eq!(check(&far, &far, &axis).regions, []);
    }

    #[test]
    fn heads_and_batch_entries_that_a_mask_reads_are_compared() {
        let axis = Axis::tokens(8);
        let found = check("(ge q_idx kv_idx)", "(and (ge q_idx kv_idx) (ge h 1))", &axis);
        assert_eq!((found.planes, found.alone), ([1, 3], [36, 0]));
        let each = check("(ge q_idx b)", "(ge q_idx 0)", &axis);
        assert_eq!((each.planes, each.alone), ([2, 1], [0, 8]));
    }
}
