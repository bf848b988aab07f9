//! A mod for people: the steps of one cell, its text in PyTorch's language, a picture of its cells.
//!
//! Invariant: steps and values are the interpreter's, shares of a picture are exact where they say so. Must not know how
//! they are shown.

use super::design::Tensors;
use super::guard::computed;
use super::mask::Mask;
use crate::analysis::raster::{Effort, Raster, Region};
use crate::base::provenance::Looked;
use crate::base::{BlockSize, Control, Diagnostic, Lengths, Provenance};
use crate::document::page::{self, Page, Tongue, shade};
use crate::ir::cell::Cell;
use crate::ir::graph::{Mod, ModKind};
use crate::ir::print::{self, Names};
use crate::ir::steps::steps;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Most pixels of a picture.
const PIXELS: usize = 1 << 24;

/// (text, value, distance below the result, whether it is a read outside its tensor) of each sub-expression.
type Steps = Vec<(String, String, usize, bool)>;

/// The sub-expressions of (b, h, q_idx, kv_idx) in evaluation order, the result last. The text is that of the graph.
#[pyfunction]
pub(super) fn explain(py: Python<'_>, mask: &Mask, cell: (i64, i64, i64, i64), score: f64) -> PyResult<Steps> {
    computed(py, || {
        let of = &mask.of;
        // a recording's own text has single operations
        let plain = Mod { kind: of.kind, graph: of.graph.clone(), root: of.root, sources: Vec::new() };
        let cell = Cell { b: cell.0, h: cell.1, q_idx: cell.2, kv_idx: cell.3, score };
        let found = steps(&plain, &cell);
        Ok(found.into_iter().map(|step| (step.text.clone(), step.shown(), step.depth, step.clamped)).collect())
    })
}

/// The mod as PyTorch code, and the tensors that it reads as globals.
#[pyfunction]
pub(super) fn printed(py: Python<'_>, mask: &Mask) -> PyResult<(String, Tensors)> {
    computed(py, || {
        let mut names = Names::reserving(&["torch", "math", "mask_mod", "score_mod"]);
        let name = match mask.of.kind {
            ModKind::Mask => "mask_mod",
            ModKind::Score => "score_mod",
        };
        let text = print::function(name, &mask.of, &mut names, &print::any_range);
        Ok((text, Tensors { of: names.tensors }))
    })
}

/// Kept shares of pixels over rows and columns of tokens, row by row: 0 nothing, 255 everything, 1 to 254 a part; and
/// whether all are exact.
#[pyfunction]
pub(super) fn picture<'py>(
    py: Python<'py>,
    mask: &Mask,
    place: (usize, usize),
    rows: (usize, usize),
    cols: (usize, usize),
    size: (usize, usize),
) -> PyResult<(Bound<'py, PyBytes>, bool)> {
    let (pixels, exact) = computed(py, || {
        let empty = rows.0 >= rows.1 || cols.0 >= cols.1 || size.0 == 0 || size.1 == 0;
        if empty || size.0.saturating_mul(size.1) > PIXELS {
            let said = format!("a picture of {} x {} pixels over these rows and columns", size.0, size.1);
            return Err(Diagnostic::error("picture-size", said)
                .hint(format!("rows and columns are FROM, TO; at most {PIXELS} pixels")));
        }
        let region =
            Region { b: place.0, h: place.1, q: rows.0..rows.1, kv: cols.0..cols.1, height: size.0, width: size.1 };
        let drawn = Raster::new(mask.of.clone()).picture(&region, Effort::FULL, &Control::new());
        Ok((drawn.pixels.iter().map(|share| shade(*share)).collect::<Vec<u8>>(), drawn.exact))
    })?;
    Ok((PyBytes::new(py, &pixels), exact))
}

/// The page of `share`: the template filled. `pairs`: numbers, then versions and time; `data`: a JSON object. With lengths and extents the page
/// holds a document of these mods, which the program opens.
#[pyfunction]
#[pyo3(signature = (title, picture, shares, pairs, code, data, mask, score, lengths, extents, blocks))]
pub(super) fn shared_page(
    py: Python<'_>,
    title: &str,
    picture: &[u8],
    shares: &[u8],
    pairs: (Pairs, Pairs),
    code: &str,
    data: &str,
    mask: Option<&Mask>,
    score: Option<&Mask>,
    lengths: (usize, usize),
    extents: (usize, usize),
    blocks: (usize, usize),
) -> PyResult<String> {
    computed(py, || {
        let data = serde_json::from_str(data).map_err(|e| Diagnostic::error("page-data", e.to_string()))?;
        let printed = page::printed(mask.map(|m| &*m.of), score.map(|m| &*m.of));
        let design = page::of_mods(
            title,
            printed,
            Lengths::new(lengths.0, lengths.1)?,
            [extents.0, extents.1],
            BlockSize { q: blocks.0, kv: blocks.1 },
        );
        let (numbers, made) = pairs;
        let (design, from) = (Some(design), shown(&data));
        let (about, sections, tongue) = ("", "", Tongue::ENGLISH);
        let page = Page { title, about, picture, shares, numbers, sections, code, from, made, data, design, tongue };
        Ok(page.text())
    })
}

/// Where the picture's numbers come from: the cells that its data name.
fn shown(data: &serde_json::Value) -> Provenance {
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0) as usize;
    let span = |name: &str| number(&data[name][1]).saturating_sub(number(&data[name][0]));
    let [b, h, height, width] = ["b", "h", "height", "width"].map(|name| number(&data[name]));
    let looked = Looked::of(data["exact"] == true);
    Provenance::design([b, h], [span("rows"), span("cols")], [height, width], looked)
}

/// Names and values.
type Pairs = Vec<(String, String)>;
