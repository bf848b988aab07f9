//! `maskloom bench blocks`: how long a block mask takes from its traced graph.
//!
//! Invariant: full and partial lists are both made inside the time. Must not know how they are found.

use super::{Args, examples_at, measure, row};
use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::base::{BlockSize, Control};
use crate::cli::out::Failure;
use serde_json::{Value, json};

/// The rows.
pub(super) fn rows(args: &Args) -> Result<Vec<Value>, Failure> {
    let mut rows = Vec::new();
    for (lengths, name, mask) in examples_at(args, &[16_384, 131_072])? {
        let build =
            || BlockMask::build(Some(&mask), MaskShape::broadcast(lengths), BlockSize::DEFAULT, &Control::new());
        let found = build()?;
        let timing = measure(args.budget, build);
        let (full, partial) = listed(&found);
        rows.push(row(name, &timing, json!({ "tokens": lengths.q_len, "block_size": 128, "full": full, "partial": partial, "memory_bytes": found.memory() })));
    }
    Ok(rows)
}

fn listed(mask: &BlockMask) -> (usize, usize) {
    use crate::analysis::block_mask::BlockKind;
    let runs = (0..mask.grid().0).flat_map(|row| mask.runs(0, 0, row).collect::<Vec<_>>());
    runs.fold((0, 0), |(full, partial), run| match run.kind {
        BlockKind::Full => (full + run.end - run.start, partial),
        BlockKind::Partial => (full, partial + run.end - run.start),
    })
}
