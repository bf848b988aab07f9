//! Columns as bounds of the queries that a key is hidden from: those from one row to another, below and above.
//!
//! Invariant: the bounds hide exactly the cells that the mask drops. A causal form also hides queries before the key. Must not know who
//! reads them.

use super::{Lowered, Spans};
use crate::base::tensor::Data;
use crate::base::{Diagnostic, HostTensor};
use std::ops::Range;

/// Two hidden ranges leave at most three kept ones.
const KEPT: usize = 3;

/// The bounds of all columns.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnBounds {
    /// int32 `[batch, heads, kv_len, 1, 2 or 4]`. Causal: where the hidden rows below begin, and end if there are two. Otherwise where
    /// those below begin and those above end, or begin and end of both.
    pub bounds: HostTensor,
    /// Whether queries before the key are hidden, too.
    pub causal: bool,
}

impl ColumnBounds {
    /// Bounds of a column.
    pub fn count(&self) -> usize {
        self.bounds.shape()[3]
    }
}

/// Which bounds are written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Form {
    causal: bool,
    count: usize,
}

/// From the smallest.
const FORMS: [Form; 4] = [
    Form { causal: true, count: 1 },
    Form { causal: true, count: 2 },
    Form { causal: false, count: 2 },
    Form { causal: false, count: 4 },
];

impl Lowered {
    /// The bounds of all columns, as few as they need. Errors: a key is kept by more ranges of rows than bounds can say.
    pub fn column_bounds(&self) -> Result<ColumnBounds, Diagnostic> {
        let (shape, lengths) = (self.shape, self.shape.lengths);
        let columns = |rows: &Spans| rows.transposed(lengths.kv_len, KEPT).map_err(|_| unfit());
        let found: Vec<Spans> = self.spans.iter().map(columns).collect::<Result<_, _>>()?;
        let square = lengths.q_len == lengths.kv_len;
        for form in FORMS.into_iter().filter(|form| square || !form.causal) {
            let Some(values) = written(&found, form, lengths.q_len as u32) else { continue };
            let bounds = HostTensor::new([shape.batch, shape.heads, lengths.kv_len, form.count], Data::I32(values))?;
            return Ok(ColumnBounds { bounds, causal: form.causal });
        }
        Err(unfit())
    }
}

fn unfit() -> Diagnostic {
    let message = "a key is hidden from more than two ranges of queries, and column bounds say one below and one above";
    Diagnostic::error("no-column-bounds", message)
}

/// The bounds in a form. None: a column does not have it.
fn written(columns: &[Spans], form: Form, rows: u32) -> Option<Vec<i32>> {
    let mut out = Vec::new();
    for (at, kept) in columns.iter().flat_map(|all| all.rows().enumerate()) {
        let key = if form.causal { at as u32 } else { 0 };
        let hidden = hidden(kept, key..rows)?;
        let bounds: [u32; 4] = match (form.causal, form.count, hidden.as_slice()) {
            (_, _, []) if form.causal || form.count == 2 => [rows, if form.causal { rows } else { 0 }, 0, 0],
            (true, 1, [below]) if below.end == rows => [below.start, 0, 0, 0],
            (true, 2, [below]) => [below.start, below.end, 0, 0],
            // everything: those below are all
            (false, 2, [all]) if *all == (0..rows) => [0, 0, 0, 0],
            (false, 2, [below]) if below.end == rows => [below.start, 0, 0, 0],
            (false, 2, [above]) if above.start == 0 => [rows, above.end, 0, 0],
            (false, 2, [above, below]) if above.start == 0 && below.end == rows => [below.start, above.end, 0, 0],
            (false, 4, []) => [rows, rows, 0, 0],
            (false, 4, [one]) => [one.start, one.end, 0, 0],
            (false, 4, [above, below]) => [below.start, below.end, above.start, above.end],
            _ => return None,
        };
        out.extend(bounds[..form.count].iter().map(|n| *n as i32));
    }
    Some(out)
}

/// The ranges of `all` outside of those that are kept. None: something is kept outside of `all`.
fn hidden(kept: &[Range<u32>], all: Range<u32>) -> Option<Vec<Range<u32>>> {
    let (mut out, mut at) = (Vec::new(), all.start);
    for range in kept {
        if range.start < at {
            return None;
        }
        out.push(at..range.start);
        at = range.end;
    }
    out.push(at..all.end);
    out.retain(|r| r.start < r.end);
    Some(out)
}
