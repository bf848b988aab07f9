//! From a compiled document to a validated problem.
//!
//! Invariant: a document with an error in any enabled layer gives no problem: a run must not silently skip a layer.
//! Must not know backends.

use crate::base::Diagnostic;
use crate::document::compile::Compiled;
use crate::document::model::Document;
use crate::ir::passes::approximate::approximate;
use crate::problem::{Problem, ProblemSpec};
use std::sync::Arc;

/// The document's problem. Errors: those of its layers, and every broken rule.
pub fn from_document(document: &Document, compiled: &Compiled) -> Result<Problem, Vec<Diagnostic>> {
    let errors: Vec<_> = compiled.all_diagnostics().filter(|d| d.is_error()).cloned().collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let lengths = document.axes.lengths().map_err(|why| vec![why])?;
    let (settings, score) = (&document.settings, compiled.score.clone());
    Problem::new(ProblemSpec {
        batch: settings.batch,
        heads: settings.heads,
        kv_heads: settings.kv_heads,
        q_len: lengths.q_len,
        kv_len: lengths.kv_len,
        head_dim: settings.head_dim,
        head_dim_v: settings.head_dim_v.unwrap_or(settings.head_dim),
        dtype: settings.dtype,
        layout: settings.layout,
        scale: settings.scale,
        block_size: settings.block_size,
        mask: compiled.mask.clone(),
        score: if settings.fast_math { score.map(|s| Arc::new(approximate(&s))) } else { score },
        max_scores: false,
    })
}

#[cfg(test)]
mod tests {
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::model::{Axes, Axis, MaskContent, TextCode};
    use crate::document::testing::{empty, layer};
    use crate::document::to_problem::*;

    #[test]
    fn settings_and_axes_become_a_problem() {
        let mut doc = empty("tokens 33");
        doc.axes = Axes { q: Axis::tokens(33), kv: Some(Axis::tokens(77)) };
        doc.layers.push(layer(1, MaskContent::Band { lo: Some(0), hi: None }));
        let problem = from_document(&doc, &compile(&doc, &BuiltIn)).unwrap();
        assert_eq!((problem.q_len, problem.kv_len, problem.heads, problem.head_dim_v), (33, 77, 2, 64));
        assert!(problem.mask.is_some() && problem.score.is_none());
    }

    #[test]
    fn a_broken_layer_stops_the_run() {
        let mut doc = empty("tokens 33");
        doc.layers.push(layer(1, MaskContent::Band { lo: Some(0), hi: None }));
        let code = TextCode { source: "def broken(".into(), ..TextCode::default() };
        doc.layers.push(layer(2, MaskContent::Text(code)));
        assert!(!from_document(&doc, &compile(&doc, &BuiltIn)).unwrap_err().is_empty());
        doc.layers[1].enabled = false;
        from_document(&doc, &compile(&doc, &BuiltIn)).unwrap();
        doc.settings.kv_heads = 3;
        assert_eq!(from_document(&doc, &compile(&doc, &BuiltIn)).unwrap_err()[0].code, "gqa-heads");
    }
}
