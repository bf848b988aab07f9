//! All ranges of keys that each row of one batch entry and head keeps.
//!
//! Invariant: a row's ranges ascend and do not touch; only cells of partial blocks are evaluated. Must not know what reads them.

use super::too_many;
use crate::analysis::block_mask::{BlockKind, BlockMask};
use crate::base::{Control, Diagnostic};
use crate::ir::tiles::Program;
use rayon::prelude::*;
use std::ops::Range;

/// Ranges by rows, one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spans {
    /// Where each row's ranges begin; one more at the end.
    offsets: Vec<usize>,
    ranges: Vec<Range<u32>>,
}

impl Spans {
    /// Of rows whose ranges are given in order.
    pub fn of_rows<'a>(rows: impl Iterator<Item = &'a [Range<u32>]>) -> Spans {
        let (mut offsets, mut ranges) = (vec![0], Vec::new());
        for row in rows {
            ranges.extend_from_slice(row);
            offsets.push(ranges.len());
        }
        Spans { offsets, ranges }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A row's ranges, ascending.
    pub fn row(&self, at: usize) -> &[Range<u32>] {
        &self.ranges[self.offsets[at]..self.offsets[at + 1]]
    }

    /// All rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = &[Range<u32>]> {
        (0..self.len()).map(|at| self.row(at))
    }

    /// The most ranges that a row has.
    pub fn longest(&self) -> usize {
        self.rows().map(<[_]>::len).max().unwrap_or(0)
    }

    /// The same cells by columns: the rows that keep each of `width` columns. Errors: a column has more than `most` ranges.
    pub fn transposed(&self, width: usize, most: usize) -> Result<Spans, Diagnostic> {
        let mut columns: Vec<Vec<Range<u32>>> = vec![Vec::new(); width];
        let mut before: &[Range<u32>] = &[];
        for at in 0..=self.len() {
            let row = if at < self.len() { self.row(at) } else { &[] };
            for column in changed(before, row).into_iter().flatten() {
                let own = &mut columns[column as usize];
                let full = own.len() == most;
                match own.last_mut() {
                    // an open range ends here
                    Some(last) if last.end == u32::MAX => last.end = at as u32,
                    _ if full => return Err(too_many(most + 1, most, "a key's rows")),
                    _ => own.push(at as u32..u32::MAX),
                }
            }
            before = row;
        }
        Ok(Spans::of_rows(columns.iter().map(Vec::as_slice)))
    }
}

/// The columns that one of two rows keeps and the other does not, as ranges.
fn changed(a: &[Range<u32>], b: &[Range<u32>]) -> Vec<Range<u32>> {
    let mut edges: Vec<u32> = a.iter().chain(b).flat_map(|r| [r.start, r.end]).collect();
    edges.sort_unstable();
    // an edge of both changes nothing there
    let mut left: Vec<u32> = Vec::with_capacity(edges.len());
    for edge in edges {
        if left.last() == Some(&edge) {
            left.pop();
        } else {
            left.push(edge);
        }
    }
    left.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect()
}

/// The ranges of keys of every row of a batch entry and head. Errors: a row has more than `most`, or it was cancelled.
pub(super) fn spans(
    blocks: &BlockMask,
    (b, h): (usize, usize),
    most: usize,
    control: &Control,
) -> Result<Spans, Diagnostic> {
    let program = blocks.mask_mod().map(|mask| Program::new(mask));
    let of = |row: usize| -> Result<Vec<Vec<Range<u32>>>, Diagnostic> {
        if control.is_cancelled() {
            return Err(Diagnostic::error("cancelled", "cancelled"));
        }
        let rows = of_block_row(blocks, program.as_ref(), (b, h), row);
        match rows.iter().map(Vec::len).max().unwrap_or(0) {
            longest if longest > most => Err(too_many(longest, most, "a row")),
            _ => Ok(rows),
        }
    };
    let found: Vec<Vec<Vec<Range<u32>>>> = (0..blocks.grid().0).into_par_iter().map(of).collect::<Result<_, _>>()?;
    Ok(Spans::of_rows(found.iter().flatten().map(Vec::as_slice)))
}

/// The rows of a row of blocks.
fn of_block_row(
    blocks: &BlockMask,
    program: Option<&Program>,
    (b, h): (usize, usize),
    row: usize,
) -> Vec<Vec<Range<u32>>> {
    let (size, lengths) = (blocks.block_size(), blocks.shape().lengths);
    let q = row * size.q..((row + 1) * size.q).min(lengths.q_len);
    let mut rows: Vec<Vec<Range<u32>>> = vec![Vec::new(); q.len()];
    let mut cells = Vec::new();
    for run in blocks.runs(b, h, row) {
        let kv = run.start * size.kv..(run.end * size.kv).min(lengths.kv_len);
        match (run.kind, program) {
            (BlockKind::Partial, Some(program)) => {
                cells.resize(q.len() * kv.len(), 0);
                program.mask_tile(b, h, q.clone(), kv.clone(), &mut cells);
                for (own, kept) in rows.iter_mut().zip(cells.chunks(kv.len())) {
                    add_cells(own, kv.start as u32, kept);
                }
            }
            _ => rows.iter_mut().for_each(|own| add(own, kv.start as u32..kv.end as u32)),
        }
    }
    rows
}

/// Adds the kept ones of cells that begin at a key.
fn add_cells(row: &mut Vec<Range<u32>>, first: u32, kept: &[u8]) {
    let mut at = 0;
    while let Some(start) = kept[at..].iter().position(|k| *k != 0).map(|n| at + n) {
        let end = kept[start..].iter().position(|k| *k == 0).map_or(kept.len(), |n| start + n);
        add(row, first + start as u32..first + end as u32);
        at = end;
    }
}

/// Adds a range behind the others, or lengthens the last one.
fn add(row: &mut Vec<Range<u32>>, range: Range<u32>) {
    match row.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => row.push(range),
    }
}
