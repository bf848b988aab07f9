//! Small documents for tests.
//!
//! Invariant: [`document`] contains every kind of content that edits distinguish. Only compiled for tests.

use super::model::*;
use crate::base::{BackendName, BlockSize};
use crate::ir::cell::{Cell, eval};
use crate::ir::graph::Mod;
use std::collections::BTreeMap;

/// Of 2 heads and blocks of 4 x 4.
pub fn settings() -> Settings {
    Settings {
        kv_heads: 1,
        block_size: BlockSize::square(4),
        backends: vec![BackendName::Flex, BackendName::Sdpa],
        ..Settings::new(2, 64)
    }
}

/// Without layers.
pub fn empty(axes: &str) -> Document {
    Document::new("test", Axes::same(Axis::parse(axes).expect("axis")), settings())
}

/// A mask layer that keeps what all layers keep.
pub fn layer(id: u64, content: MaskContent) -> Layer {
    Layer { id, name: format!("layer {id}"), enabled: true, combine: Combine::And, heads: None, content }
}

/// A score mod.
pub fn score(id: u64, content: ScoreContent) -> ScoreLayer {
    ScoreLayer { id, name: format!("score {id}"), enabled: true, content }
}

/// A pattern of the library with arguments.
pub fn pattern(name: &str, args: &[(&str, ArgValue)]) -> CodeRef {
    let args: BTreeMap<_, _> = args.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    CodeRef { name: name.into(), args }
}

/// A pattern (1), a painted layer with a stroke (2) and a score mod (3).
pub fn document() -> Document {
    let mut document = empty("tokens 32");
    let stroke = Stroke { paint: true, rects: vec![[0, 2, 0, 2], [3, 4, 1, 2]] };
    let painted = Painted { cell: BlockSize::square(4), lengths: [32, 32], strokes: vec![stroke] };
    document.layers.push(layer(1, MaskContent::Pattern(pattern("sliding_window", &[("window", ArgValue::Int(8))]))));
    document.layers.push(layer(2, MaskContent::Painted(painted)));
    let cap = pattern("soft_cap", &[("cap", ArgValue::Float(50.0))]);
    document.scores.push(score(3, ScoreContent::Pattern(cap)));
    document
}

fn cell(q: i64, kv: i64, score: f64) -> Cell {
    Cell { b: 0, h: 0, q_idx: q, kv_idx: kv, score }
}

/// Whether a mask keeps a cell of batch 0, head 0.
pub fn keeps(mask: &Mod, q: i64, kv: i64) -> bool {
    eval(mask, &cell(q, kv, 0.0)).as_bool()
}

/// A score mod's result for a score at a cell of batch 0, head 0.
pub fn score_of(given: &Mod, score: f64, q: i64, kv: i64) -> f64 {
    eval(given, &cell(q, kv, score)).as_float()
}
