//! Kept cells as a document: painted if a few rectangles suffice, otherwise a table that the mask reads.
//!
//! Invariant: every cell keeps its value. Must not know files.

use crate::base::tensor::Data;
use crate::base::{BlockSize, Diagnostic, HostTensor};
use crate::document::model::*;
use std::collections::{BTreeMap, HashMap};

/// Most cells: a document holds the table as text.
pub(super) const MOST: usize = 1 << 28;
/// Most rectangles of a painted layer; more are no longer edited by hand.
const MOST_RECTANGLES: usize = 512;

/// Cells of `cell` tokens over lengths, [batch, heads, rows, cols], each 0 or 1.
pub(super) struct Cells {
    pub batch: usize,
    pub heads: usize,
    pub q_len: usize,
    pub kv_len: usize,
    pub cell: BlockSize,
    pub kept: Vec<u8>,
    /// Cells that represent partly kept blocks.
    pub partial: usize,
    /// Whether the size of blocks was not said.
    pub guessed: bool,
}

impl Cells {
    /// A dense mask of 2, 3 ([heads, q, kv]) or 4 dimensions. Errors: other shapes, too large.
    pub(super) fn dense(what: &str, shape: &[usize], kept: Vec<u8>) -> Result<Cells, Diagnostic> {
        let (batch, heads, q_len, kv_len) = match *shape {
            [q, kv] => (1, 1, q, kv),
            [h, q, kv] => (1, h, q, kv),
            [b, h, q, kv] => (b, h, q, kv),
            _ => (0, 0, 0, 0),
        };
        if batch * heads * q_len * kv_len == 0 {
            let message = format!("{what} has the shape {shape:?}, which is not a mask");
            return Err(Diagnostic::error("import-shape", message)
                .hint("a mask is [q_len, kv_len], [heads, q_len, kv_len] or [batch, heads, q_len, kv_len]"));
        }
        Ok(Cells { batch, heads, q_len, kv_len, cell: BlockSize { q: 1, kv: 1 }, kept, partial: 0, guessed: false })
    }

    fn grid(&self) -> (usize, usize) {
        (self.q_len.div_ceil(self.cell.q), self.kv_len.div_ceil(self.cell.kv))
    }

    /// A document with one layer. Errors: more cells than a document holds.
    pub(super) fn into_document(self, name: &str) -> Result<Document, Diagnostic> {
        if self.kept.len() > MOST {
            let message = format!("{} cells exceed the limit of a document ({MOST})", self.kept.len());
            return Err(Diagnostic::error("import-too-large", message)
                .hint("write the mask as a formula, or export block lists instead of cells"));
        }
        let axes =
            Axes { q: Axis::tokens(self.q_len), kv: (self.kv_len != self.q_len).then(|| Axis::tokens(self.kv_len)) };
        let heads = if self.heads == 1 { 8 } else { self.heads };
        let settings = Settings {
            batch: self.batch,
            block_size: if self.cell.q > 1 { self.cell } else { BlockSize::DEFAULT },
            ..Settings::new(heads, 64)
        };
        let content = self.content()?;
        let layer = Layer { id: 1, name: name.into(), enabled: true, combine: Combine::And, heads: None, content };
        Ok(Document { layers: vec![layer], ..Document::new(name, axes, settings) })
    }

    fn content(&self) -> Result<MaskContent, Diagnostic> {
        if self.batch * self.heads == 1
            && let Some(rects) = self.rectangles()
        {
            let strokes = vec![Stroke { paint: true, rects }];
            return Ok(MaskContent::Painted(Painted { cell: self.cell, lengths: [self.q_len, self.kv_len], strokes }));
        }
        let (rows, cols) = self.grid();
        let (mut shape, mut index) = (Vec::new(), Vec::new());
        for (name, extent) in [("b", self.batch), ("h", self.heads)] {
            if extent > 1 {
                shape.push(extent);
                index.push(name.to_string());
            }
        }
        for (name, extent, cell) in [("q_idx", rows, self.cell.q), ("kv_idx", cols, self.cell.kv)] {
            shape.push(extent);
            index.push(if cell == 1 { name.to_string() } else { format!("{name} // {cell}") });
        }
        let source = format!(
            "def imported(b, h, q_idx, kv_idx):\n    \"\"\"Cells of a file, as they were.\"\"\"\n    return kept[{}]\n",
            index.join(", ")
        );
        let tensors = BTreeMap::from([("kept".to_string(), HostTensor::new(shape, Data::Bool(self.kept.clone()))?)]);
        Ok(MaskContent::Text(TextCode { source, entry: "imported".into(), tensors, ..TextCode::default() }))
    }

    /// Rectangles [q0, q1, kv0, kv1] of the kept cells; None if too many are needed.
    fn rectangles(&self) -> Option<Vec<[u32; 4]>> {
        let cols = self.grid().1;
        let mut done = Vec::new();
        // runs that reach down to the row above: columns to first row
        let mut open: HashMap<(u32, u32), u32> = HashMap::new();
        for (row, kept) in self.kept.chunks(cols).enumerate() {
            let row = row as u32;
            let mut now = HashMap::new();
            for (from, to) in runs(kept) {
                now.insert((from, to), open.remove(&(from, to)).unwrap_or(row));
            }
            done.extend(open.drain().map(|((from, to), first)| [first, row, from, to]));
            open = now;
            if done.len() + open.len() > MOST_RECTANGLES {
                return None;
            }
        }
        let rows = self.grid().0 as u32;
        done.extend(open.drain().map(|((from, to), first)| [first, rows, from, to]));
        done.sort_unstable();
        Some(done)
    }
}

/// Runs of kept cells, [from, to).
fn runs(kept: &[u8]) -> impl Iterator<Item = (u32, u32)> + '_ {
    let starts = (0..kept.len()).filter(|at| kept[*at] != 0 && (*at == 0 || kept[at - 1] == 0));
    starts.map(|at| (at as u32, (at + kept[at..].iter().take_while(|k| **k != 0).count()) as u32))
}
