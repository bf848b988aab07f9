//! Rows of `bench language`: work that must not grow with the square of its input, at sizes that would show it.
//!
//! Invariant: a row's input is far larger than usual texts. Must not judge a time: the reader compares two versions.

use super::{Args, measure, row};
use crate::base::{BackendName, BlockSize};
use crate::document::compile::{BuiltIn, Compiler};
use crate::document::model::*;
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind};
use crate::ir::passes::simplify::simplify;
use crate::trainers::config::{ConfigRequest, config};
use serde_json::{Value, json};

/// The rows, and whether all of the work was done.
pub(super) fn rows(args: &Args) -> (Vec<Value>, bool) {
    let (chain, painted, text) = (chain(4000), overlapping(400), settings(150_000));
    let existing = Some(("config.json", text.as_bytes()));
    let merge = || config(&ConfigRequest { backend: Some(BackendName::Flex), existing, ..ConfigRequest::default() });
    let compile = || Compiler::default().compile(&painted, &BuiltIn);
    let right = merge().is_ok() && !compile().has_errors();
    let budget = args.budget / 5;
    let rows = vec![
        row("chain of 4000 terms", &measure(budget, || simplify(&chain)), json!({ "step": "simplify" })),
        row("400 overlapping strokes", &measure(budget, compile), json!({ "step": "compile" })),
        row("config of 150,000 keys", &measure(budget, merge), json!({ "step": "merge" })),
    ];
    (rows, right)
}

/// `q >= kv`, joined with `terms` comparisons by alternating `&` and `|`.
fn chain(terms: i64) -> Mod {
    let mut graph = Graph::new();
    let (q, kv) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
    let mut root = graph.binary(BinaryOp::Ge, q, kv);
    for n in 0..terms {
        let by = graph.int(n);
        let part = graph.binary(BinaryOp::Ne, q, by);
        root = graph.binary(if n % 5 == 0 { BinaryOp::Or } else { BinaryOp::And }, root, part);
    }
    Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
}

/// A painted layer whose strokes all cross each other.
fn overlapping(strokes: u32) -> Document {
    let rects = |n: u32| (0..50).map(|i| [i, 1000, n % 900, n % 900 + 100]).collect();
    let strokes = (0..strokes).map(|n| Stroke { paint: n % 2 == 0, rects: rects(n * 7) }).collect();
    let painted = Painted { cell: BlockSize::square(8), lengths: [8192; 2], strokes };
    let layer = Layer {
        id: 1,
        name: "Painted".into(),
        enabled: true,
        combine: Combine::And,
        heads: None,
        content: MaskContent::Painted(painted),
    };
    let axes = Axes { q: Axis::tokens(8192), kv: None };
    Document { layers: vec![layer], ..Document::new("strokes", axes, Settings::new(1, 64)) }
}

/// A trainer's settings with many other keys.
fn settings(keys: usize) -> String {
    let mut text = String::from("{\n");
    for n in 0..keys {
        text.push_str(&format!("  \"key_{n}\": {{\"value\": [1e-4, \"text with \\\"quotes\\\"\", null, {n}]}},\n"));
    }
    text + "  \"attention_mechanism\": \"diffusers\"\n}\n"
}
