//! `maskloom bench canvas`: the time of the pictures that make up the canvas's tiles. The window itself measures its
//! frames.
//!
//! Invariant: every picture is drawn again each time. Must not know the window.

use super::{Args, examples_at, measure, row};
use crate::analysis::raster::{Effort, Raster, Region};
use crate::base::Control;
use crate::cli::out::Failure;
use serde_json::{Value, json};
use std::sync::Arc;

/// The rows.
pub(super) fn rows(args: &Args) -> Result<Vec<Value>, Failure> {
    let mut rows = Vec::new();
    for (lengths, name, mask) in examples_at(args, &[8_192, 1 << 20])? {
        let raster = Raster::new(Arc::new(mask));
        let n = lengths.q_len;
        let middle = n / 2;
        for (view, range) in [("whole", 0..n), ("zoomed", middle..(middle + 2048).min(n))] {
            let (h, w) = (range.len().min(512), range.len().min(512));
            let region = Region { b: 0, h: 0, q: range.clone(), kv: range, height: h, width: w };
            let draw = || raster.picture(&region, Effort::FULL, &Control::new());
            let exact = draw().exact;
            let timing = measure(args.budget, draw);
            rows.push(row(
                name,
                &timing,
                json!({ "work": "picture", "tokens": n, "view": view, "pixels": [h, w], "exact": exact }),
            ));
        }
    }
    Ok(rows)
}
