//! `maskloom bench language`: how long the way from text to graph takes.
//!
//! Invariant: nothing is kept between runs. Must not know masks' blocks or pictures.

use super::{Args, measure, row};
use crate::base::Source;
use crate::document::compile::{BuiltIn, Compiler};
use crate::document::library;
use crate::language::outline::outline;
use serde_json::{Value, json};

/// The rows.
pub(super) fn rows(args: &Args) -> Vec<Value> {
    let mut rows = Vec::new();
    for pattern in library::patterns().filter(|p| p.name.contains(args.only.as_str())) {
        let source: Source = pattern.source();
        let timing = measure(args.budget / 10, || outline(&source));
        rows.push(row(pattern.name, &timing, json!({ "step": "outline", "bytes": pattern.text.len() })));
    }
    for preset in library::presets().iter().filter(|p| p.name.contains(args.only.as_str())) {
        let Ok(document) = preset.document() else { continue };
        let compile = || Compiler::default().compile(&document, &BuiltIn);
        let compiled = compile();
        let nodes =
            [&compiled.mask, &compiled.score].into_iter().flatten().map(|m| m.graph.nodes().len()).sum::<usize>();
        let timing = measure(args.budget / 10, compile);
        rows.push(row(
            preset.name,
            &timing,
            json!({ "step": "compile", "nodes": nodes, "errors": compiled.has_errors() }),
        ));
    }
    rows
}
