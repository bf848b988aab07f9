//! The mask lab: block masses compared with the forward pass without a mask, and the time of the measures after a
//! stroke.
//!
//! Invariant: a ratio compares two medians of one run, taken in turns. Must not know the window.

use super::{Args, row};
use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::analysis::examples;
use crate::backends::{cpu, inputs, stats};
use crate::base::{BackendName, BlockSize, Control, DType, Diagnostic, Lengths};
use crate::ir::passes::compose;
use crate::problem::{Problem, ProblemSpec};
use crate::quality::head::Head;
use crate::quality::live::{Live, LiveHead};
use crate::quality::masses::{masses, of_scorer, row_bytes};
use crate::quality::scores::Scorer;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// Rounds of each row.
const ROUNDS: usize = 7;

/// All rows.
pub(super) fn rows(args: &Args) -> Result<Vec<Value>, Diagnostic> {
    let mut rows = Vec::new();
    if "masses".contains(args.only.as_str()) {
        rows.push(block_masses()?);
    }
    if "stroke".contains(args.only.as_str()) {
        for tokens in if args.lengths.is_empty() { &[4096, 32_768][..] } else { &args.lengths } {
            rows.push(stroke(*tokens)?);
        }
    }
    Ok(rows)
}

fn heads(count: usize, tokens: usize) -> Result<(Problem, Vec<Head>), Diagnostic> {
    let spec = ProblemSpec { dtype: DType::F32, ..ProblemSpec::plain(1, (count, count), (tokens, tokens), 64) };
    let problem = Problem::new(spec).map_err(|mut why| why.remove(0))?;
    let made = inputs::random(&problem, 7);
    let of = |tensor: &crate::base::HostTensor, h: usize| {
        tensor.to_f32_vec()[h * tokens * 64..(h + 1) * tokens * 64].to_vec()
    };
    let one = |h: usize| {
        let mut head = Head::new((tokens, tokens), 64, of(&made.q, h), of(&made.k, h), None)?;
        head.place = (0, h);
        Ok(head)
    };
    let heads = (0..count).map(one).collect::<Result<_, Diagnostic>>()?;
    Ok((problem, heads))
}

/// Block masses of 8 heads x 4096 x 64, packing included, next to flex without a mask at the same extents.
fn block_masses() -> Result<Value, Diagnostic> {
    let (problem, heads) = heads(8, 4096)?;
    let Some(mut flex) = cpu::backend(BackendName::Flex) else {
        return Err(Diagnostic::error("no-backend", "flex is missing on the cpu"));
    };
    let mut forward = flex.prepare(&problem, &inputs::random(&problem, 7))?;
    forward.time(1)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for head in &heads {
            std::hint::black_box(masses(head, BlockSize::DEFAULT, false, &Control::new())?);
        }
        ours.push(start.elapsed().as_secs_f64() * 1e3);
        theirs.extend(forward.time(1)?.passes_ms);
    }
    let (ours, theirs) = (stats::timing(ours).unwrap_or_default(), stats::timing(theirs).unwrap_or_default());
    let parameters =
        json!({ "tokens": 4096, "heads": 8, "flex_ms": theirs.median_ms, "ratio": ours.median_ms / theirs.median_ms });
    Ok(row("block masses", &ours, parameters))
}

/// The measures of 16 heads after a rectangle of 3 x 3 blocks is painted into a causal window, and after it is removed.
fn stroke(tokens: usize) -> Result<Value, Diagnostic> {
    let (_, heads) = heads(16, tokens)?;
    let (lengths, block, control) = (Lengths::new(tokens, tokens)?, BlockSize::DEFAULT, Control::new());
    let keep_rows = row_bytes(lengths, block, heads.len()) <= crate::tasks::lab::ROW_MEMORY;
    let mut made = Vec::new();
    for head in heads {
        let scorer = Scorer::new(&head);
        let found = of_scorer(&scorer, block, keep_rows, &control)?;
        made.push(LiveHead::new(scorer, found));
    }
    let bytes: usize = made.iter().map(|h| h.masses.bytes() + h.scorer.bytes()).sum();
    let window = examples::sliding_window(tokens as i64 / 8);
    let painted = |from: i64| {
        let mut b = examples::Builder::new();
        let (q, k) = (b.q, b.k);
        let (low, far) = (b.int(from), b.int(from / 4));
        let (q_from, k_from) = (b.ge(q, low), b.ge(k, far));
        let (q_to, k_to) = (b.below(q, from + 300), b.below(k, from / 4 + 300));
        let (rows, columns) = (b.and(q_from, q_to), b.and(k_from, k_to));
        let inside = b.and(rows, columns);
        compose::or_masks(&[&window, &b.mask(inside)])
    };
    let first = BlockMask::build(Some(&window), MaskShape::broadcast(lengths), block, &control)?;
    let mut live = Live::new(Arc::new(made), first, &control)?;
    let mut samples = Vec::new();
    for n in 0..2 * ROUNDS {
        let mask = if n % 2 == 0 { painted(tokens as i64 / 2 + 37 * n as i64) } else { window.clone() };
        let start = Instant::now();
        let (blocks, change) = live.blocks().rebuild(Some(&mask), &control)?;
        live.edit(blocks, &change, &control)?;
        std::hint::black_box(live.line());
        samples.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let timing = stats::timing(samples).unwrap_or_default();
    let parameters = json!({ "tokens": tokens, "heads": 16, "memory_MiB": bytes as f64 / f64::from(1 << 20), "row masses kept": keep_rows });
    Ok(row("line after a stroke", &timing, parameters))
}
