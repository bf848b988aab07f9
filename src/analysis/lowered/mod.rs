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

pub use columns::ColumnBounds;
pub use row_ends::RowEnds;
pub use slices::{Slice, SliceKind};
pub use spans::Spans;

use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::base::words::grouped;
use crate::base::{Control, Diagnostic};

/// A mask as ranges of keys, of which the forms are made.
#[derive(Clone, Debug)]
pub struct Lowered {
    shape: MaskShape,
    /// By batch entry, then head.
    spans: Vec<Spans>,
}

impl Lowered {
    /// The ranges of all rows. Errors: a row has more than `most`, it was cancelled.
    pub fn new(blocks: &BlockMask, most: usize, control: &Control) -> Result<Lowered, Diagnostic> {
        let shape = blocks.shape();
        let pairs = (0..shape.batch).flat_map(|b| (0..shape.heads).map(move |h| (b, h)));
        let spans = pairs.map(|at| spans::spans(blocks, at, most, control)).collect::<Result<_, _>>()?;
        Ok(Lowered { shape, spans })
    }

    /// Batch entries and heads that differ, and lengths.
    pub fn shape(&self) -> MaskShape {
        self.shape
    }

    /// The ranges of a batch entry and head.
    pub fn spans(&self, b: usize, h: usize) -> &Spans {
        &self.spans[b % self.shape.batch * self.shape.heads + h % self.shape.heads]
    }
}

/// A row or column has more ranges than the form may have.
fn too_many(found: usize, most: usize, of: &str) -> Diagnostic {
    let message =
        format!("{of} has {} ranges, and at most {} are written", grouped(found as u128), grouped(most as u128));
    Diagnostic::error("too-many-ranges", message)
}
