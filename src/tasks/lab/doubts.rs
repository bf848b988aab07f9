//! Differences between a document's and a capture's model that do not prevent a measurement.
//!
//! Invariant: every warning names both sides. Different lengths are refused, not warned about.

use crate::base::Diagnostic;
use crate::document::model::{Axis, Document};
use crate::quality::capture::{Call, Capture};

/// The differences between a document and a call, in words.
pub fn doubts(document: &Document, capture: &Capture, call: &Call) -> Vec<Diagnostic> {
    let warn = |message: String, hint: &str| Diagnostic::warning("capture-model", message).hint(hint);
    let (i, settings) = (&call.info, &document.settings);
    let mut reported = Vec::new();
    let here = [settings.heads, settings.kv_heads, settings.head_dim];
    let there = [i.heads, i.kv_heads, i.head_dim];
    if here != there {
        let words = |[heads, kv_heads, dim]: [usize; 3]| format!("{heads} heads, {kv_heads} kv heads of {dim}");
        let message = format!("the document has {}, {} has {}", words(here), call.key, words(there));
        reported.push(warn(
            message,
            "masses use the capture's heads; set the document's heads and head_dim to race the same model",
        ));
    }
    let used = i.scale.unwrap_or(1.0 / (i.head_dim as f64).sqrt());
    if let Some(scale) = settings.scale.filter(|scale| (scale / used - 1.0).abs() > 1e-6) {
        let message = format!("the document scales scores by {scale}, {} by {used}", call.key);
        reported.push(warn(message, "masses use the capture's scale"));
    }
    if let Some(grid) = capture.grid().filter(|g| g.tokens().end <= i.q_len.min(i.kv_len))
        && let Some((start, found)) = first_grid(&document.axes.q)
        && (start != grid.start || found != grid.extents)
    {
        let words = |start: usize, [t, h, w]: [usize; 3]| format!("{t} x {h} x {w} tokens from token {start}");
        let message = format!(
            "the document's grid is {}, that of {} {}",
            words(start, found),
            capture.name(),
            words(grid.start, grid.extents)
        );
        reported.push(warn(
            message,
            "a mask by frames, rows and columns would then keep other tokens; set the axes to the capture's",
        ));
    }
    if i.score_mod {
        reported.push(warn(
            format!("a score mod of the model changed the scores of {}; it is not in the file", call.key),
            "add this score mod to the document; otherwise masses are those of the plain scores",
        ));
    }
    reported
}

/// The first segment of two or three extents, with its first token.
fn first_grid(axis: &Axis) -> Option<(usize, [usize; 3])> {
    let mut start = 0;
    for segment in &axis.segments {
        match segment.grid[..] {
            [t, h, w] => return Some((start, [t, h, w])),
            [h, w] => return Some((start, [1, h, w])),
            _ => start += segment.grid.iter().product::<usize>(),
        }
    }
    None
}
