//! Rows of `maskloom bench blocks` about editing: one of five layers changes, and the blocks and cells follow.
//!
//! Invariant: a row times the window's work after an edit, from the changed document to its counted blocks, next to the
//! same from scratch; both results must agree. Must not know how edits are followed.

use super::{Args, measure_after, row};
use crate::analysis::block_mask::{BlockMask, MaskShape, Stats};
use crate::analysis::examples::{self, Rng};
use crate::base::{BlockSize, Control, Diagnostic, Lengths};
use crate::cli::out::Failure;
use crate::document::compile::{BuiltIn, Compiler};
use crate::document::library;
use crate::document::model::{ArgValue, Axes, Axis, CodeRef, Combine, Document, Layer, MaskContent, Painted, Stroke};
use crate::ir::graph::Mod;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const NAME: &str = "five layers";
/// The limit in milliseconds for statistics after a stroke, and its length.
const STROKE_BAR: (f64, usize) = (50.0, 131_072);

/// The edited thing.
#[derive(Clone, Copy, PartialEq)]
enum Edit {
    /// The window of the sliding window.
    Slider,
    /// One more stroke of the brush.
    Stroke,
}

/// The rows, at each length that is a power of two of at least 1,024.
pub(super) fn rows(args: &Args, usual: &[usize]) -> Result<Vec<Value>, Failure> {
    let lengths = if args.lengths.is_empty() { usual } else { &args.lengths };
    let fits = |n: &&usize| n.is_power_of_two() && **n >= 1024 && NAME.contains(args.only.as_str());
    let mut rows = Vec::new();
    for n in lengths.iter().filter(fits) {
        for edit in [Edit::Slider, Edit::Stroke] {
            rows.push(measured(args, *n, edit)?);
        }
    }
    Ok(rows)
}

fn measured(args: &Args, tokens: usize, edit: Edit) -> Result<Value, Failure> {
    let lengths = Lengths::new(tokens, tokens)?;
    let mut compiler = Compiler::default();
    let mut document = document(tokens)?;
    let mut last = from_scratch(compiled(&mut compiler, &document)?.as_deref(), lengths)?.0;
    let (mut step, mut failed) = (0, None);
    let mut follow = |document: &Document| -> Result<Stats, Diagnostic> {
        let mask = compiled(&mut compiler, document)?;
        let (found, change) = last.rebuild(mask.as_deref(), &Control::new())?;
        let stats = found.stats_after(&last, &change, &Control::new()).unwrap_or_default();
        last = found;
        Ok(stats)
    };
    let timing = {
        let edited = || {
            step += 1;
            apply(&mut document, edit, step, tokens);
            document.clone()
        };
        measure_after(args.budget, edited, |document| failed = follow(&document).err())
    };
    if let Some(why) = failed {
        return Err(why.into());
    }
    let stats = follow(&document)?;
    let mut anew = Compiler::default();
    let mask = compiled(&mut anew, &document)?;
    let scratch = measure_after(args.budget, || (), |()| from_scratch(mask.as_deref(), lengths).is_ok());
    let right = from_scratch(mask.as_deref(), lengths)?.1 == stats;
    let (work, bar) = match edit {
        Edit::Slider => ("a slider of one layer, blocks and cells", None),
        Edit::Stroke => ("a stroke, blocks and cells", Some(STROKE_BAR.0).filter(|_| tokens <= STROKE_BAR.1)),
    };
    let holds = bar.map(|bar| right && timing.median_ms <= bar);
    let parameters = json!({
        "tokens": tokens, "block_size": 128, "work": work, "full": stats.full, "partial": stats.partial,
        "kept_cells": stats.kept_cells as u64, "stored_bytes": last.memory(), "peak_mib": Value::Null, "bar_ms": bar,
        "holds": holds, "times_torch_h200": Value::Null, "from_scratch_ms": scratch.median_ms, "right": right,
    });
    Ok(row(NAME, &timing, parameters))
}

fn compiled(compiler: &mut Compiler, document: &Document) -> Result<Option<Arc<Mod>>, Diagnostic> {
    let compiled = compiler.compile(document, &BuiltIn);
    let error = compiled.all_diagnostics().find(|d| d.is_error()).cloned();
    error.map_or(Ok(compiled.mask), Err)
}

fn from_scratch(mask: Option<&Mod>, lengths: Lengths) -> Result<(BlockMask, Stats), Diagnostic> {
    let found = BlockMask::build(mask, MaskShape::broadcast(lengths), BlockSize::DEFAULT, &Control::new())?;
    let stats = found.stats();
    Ok((found, stats))
}

/// Packed documents, an image's neighbourhoods, a dilated and a sliding window, and a painted layer that removes cells.
fn document(tokens: usize) -> Result<Document, Diagnostic> {
    let (height, width) = (1 << (tokens.ilog2() / 2), tokens >> (tokens.ilog2() / 2));
    let lengths = examples::document_lengths(tokens, 1000, &mut Rng::new(7));
    let lengths = ArgValue::List(lengths.into_iter().map(|n| ArgValue::Int(n as i64)).collect());
    let pattern = |name: &str, args: &[(&str, ArgValue)]| {
        let args: BTreeMap<String, ArgValue> =
            args.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        MaskContent::Pattern(CodeRef { name: name.into(), args })
    };
    let painted = Painted { cell: BlockSize::DEFAULT, lengths: [tokens; 2], strokes: Vec::new() };
    let layers = [
        (Combine::And, pattern("packed_documents", &[("lengths", lengths)])),
        (Combine::Or, pattern("natten_2d", &[])),
        (Combine::Or, pattern("dilated_window", &[])),
        (Combine::Or, pattern("sliding_window", &[])),
        (Combine::AndNot, MaskContent::Painted(painted)),
    ];
    let layers = layers.into_iter().zip(1..).map(|((combine, content), id)| {
        let name = format!("layer {id}");
        Layer { id, name, enabled: true, combine, heads: None, content }
    });
    let mut document = library::presets()[0].document().map_err(|mut why| why.remove(0))?;
    document.axes = Axes { q: Axis::parse(&format!("image {height}x{width}"))?, kv: None };
    document.layers = layers.collect();
    document.scores.clear();
    let mut rng = Rng::new(8);
    (0..20).for_each(|_| stroke(&mut document, &mut rng, tokens));
    Ok(document)
}

fn apply(document: &mut Document, edit: Edit, step: usize, tokens: usize) {
    match edit {
        Edit::Slider => {
            if let MaskContent::Pattern(window) = &mut document.layers[3].content {
                window.args.insert("window".into(), ArgValue::Int(1024 + 8 * (step % 64) as i64));
            }
        }
        Edit::Stroke => stroke(document, &mut Rng::new(step as u64), tokens),
    }
}

/// A stroke of the brush near the diagonal: some blocks below each other.
fn stroke(document: &mut Document, rng: &mut Rng, tokens: usize) {
    let blocks = tokens / 128;
    let at = rng.below(blocks - 8);
    let rects = (0..4).map(|n| [at + n, at + n + 4, at.saturating_sub(2) + n, at + n + 2].map(|v| v as u32)).collect();
    if let MaskContent::Painted(painted) = &mut document.layers[4].content {
        painted.strokes.push(Stroke { paint: true, rects });
    }
}
