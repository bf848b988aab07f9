//! A mask in the forms that other libraries take: ranges of keys a row, ranges of queries a key, slices.
//!
//! Invariant: each form keeps exactly the cells of the mask, or it is refused in words with what would be needed. All are made of the
//! block lists, never of a dense matrix. Must not know the libraries' calls.

mod columns;
mod row_ends;
mod slices;
mod spans;
#[cfg(test)]
mod tests;

pub use columns::{ColumnBounds, column_bounds};
pub use row_ends::{RowEnds, row_ends};
pub use slices::{Slice, SliceKind, slices};
pub use spans::{Spans, spans};

use crate::base::Diagnostic;
use crate::base::words::grouped;

/// A row or column has more ranges than the form may have.
fn too_many(found: usize, most: usize, of: &str) -> Diagnostic {
    let message =
        format!("{of} has {} ranges, and at most {} are written", grouped(found as u128), grouped(most as u128));
    Diagnostic::error("too-many-ranges", message)
}
