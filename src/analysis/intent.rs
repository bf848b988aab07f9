//! What a mask computes where its author probably meant something else: keys after the query, an axis of keys that is longer,
//! no whole block, a dense table beyond 32 bits.
//!
//! Invariant: a note states what the cells are, found by evaluating whole rows; what was meant is a question. Must not know
//! documents or text.

use super::block_mask::Stats;
use super::lint::Sizes;
use crate::base::Diagnostic;
use crate::ir::graph::{Depends, Input, Mod, Op};
use crate::ir::schedule;
use crate::ir::tiles::Program;

/// Rows that are evaluated.
const ROWS: usize = 17;
/// Cells that are evaluated at most.
const CELLS: usize = 1 << 24;
/// Keys from which on a note about blocks is worth reading.
const BLOCKS_FROM: usize = 512;

/// A row's kept keys: before its own position, at it, behind it.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    q: usize,
    before: usize,
    own: bool,
    behind: usize,
}

/// Notes about a whole mask at given sizes. `stats` are those of its block mask.
pub fn intent(of: &Mod, sizes: Sizes, stats: &Stats) -> Vec<Diagnostic> {
    let (q_len, kv_len) = (sizes.lengths.q_len, sizes.lengths.kv_len);
    let mut reported: Vec<Diagnostic> = Vec::new();
    reported.extend(dense_table(of, sizes));
    let depends = of.depends();
    if depends.on(Input::QIdx) && depends.on(Input::KvIdx) {
        let rows = rows(of, q_len, kv_len);
        reported.extend(longer_keys(&rows, q_len, kv_len));
        if q_len == kv_len && q_len > 4 {
            reported.extend(future(&rows, q_len));
        }
    }
    reported.extend(no_whole_block(stats, sizes));
    reported.extend(keeps_all(stats));
    for diagnostic in &mut reported {
        if diagnostic.labels.is_empty()
            && let Some(span) = of.graph.node(of.root).span
        {
            *diagnostic = diagnostic.clone().at(span, "");
        }
        diagnostic.sources = of.sources.clone();
    }
    reported
}

fn rows(of: &Mod, q_len: usize, kv_len: usize) -> Vec<Row> {
    let program = Program::new(of);
    let mut kept = vec![0; kv_len];
    let count = ROWS.min(CELLS / kv_len.max(1)).min(q_len).max(1);
    let mut picked: Vec<usize> = (0..count).map(|n| n * (q_len - 1) / (count.max(2) - 1)).collect();
    picked.dedup();
    picked
        .into_iter()
        .map(|q| {
            kept.fill(0);
            program.mask_tile(0, 0, q..q + 1, 0..kv_len, &mut kept);
            let keys = |range: std::ops::Range<usize>| kept[range].iter().filter(|k| **k != 0).count();
            let at = q.min(kv_len);
            let own = q < kv_len && kept[q] != 0;
            Row { q, before: keys(0..at), own, behind: keys((q + 1).min(kv_len)..kv_len) }
        })
        .collect()
}

/// Later keys where earlier ones are dropped.
fn future(rows: &[Row], q_len: usize) -> Option<Diagnostic> {
    // the first and last rows have keys on one side alone
    let inner: Vec<&Row> = rows.iter().filter(|r| r.q > 0 && r.q + 1 < q_len).collect();
    if inner.is_empty() {
        return None;
    }
    let all_behind = inner.iter().all(|r| r.behind == q_len - 1 - r.q);
    let none_before = inner.iter().all(|r| r.before == 0);
    if none_before && inner.iter().any(|r| r.behind > 0) {
        let own = if inner.iter().all(|r| r.own) { "their own and later keys" } else { "later keys" };
        let message = format!("queries keep only {own}: no query sees a key before it");
        return Some(Diagnostic::note("future-only", message).hint(
            "if it was meant to be causal, exchange the sides: `q_idx >= kv_idx`, with an offset `q_idx + offset >= kv_idx`",
        ));
    }
    let some_dropped = inner.iter().any(|r| r.before < r.q);
    (all_behind && some_dropped).then(|| {
        let share = inner.iter().map(|r| r.behind).sum::<usize>() / inner.len().max(1);
        let message = format!("every key after the query is visible ({share} keys in the mean row), while earlier keys are dropped");
        Diagnostic::note("future-visible", message).hint(
            "a window on both sides is `(q_idx - kv_idx).abs() <= n`; a causal window is `(q_idx >= kv_idx) & (q_idx - kv_idx < n)`",
        )
    })
}

/// Causal from the top left, where the keys are more than the queries: a cache, or a chunk of a prompt.
fn longer_keys(rows: &[Row], q_len: usize, kv_len: usize) -> Option<Diagnostic> {
    let causal = rows.iter().all(|r| r.behind == 0) && rows.iter().any(|r| r.own || r.before > 0);
    if kv_len <= q_len || !causal {
        return None;
    }
    let last = rows.last()?;
    let sees = last.before + usize::from(last.own);
    let offset = kv_len - q_len;
    let message = format!(
        "no query sees a key behind its own number: the last of {q_len} queries, number {}, sees {sees} of {kv_len} keys",
        last.q
    );
    Some(Diagnostic::note("longer-keys", message).hint(format!(
        "queries are numbered from 0; if they are the newest of the keys (a cache, a chunk of a prompt), add the offset: \
         `q_idx + {offset} >= kv_idx`. Keys of a cache beyond the position must be masked too: they take part in the softmax"
    )))
}

/// Blocks that are all partial save nothing.
fn no_whole_block(stats: &Stats, sizes: Sizes) -> Option<Diagnostic> {
    let dense = stats.full == 0 && stats.empty == 0 && stats.partial > 1;
    if !dense || sizes.lengths.kv_len < BLOCKS_FROM || stats.density > 0.98 {
        return None;
    }
    let message = format!(
        "every block is partial: block sparsity is 0%, although {:.1}% of the cells are dropped",
        100.0 * (1.0 - stats.density)
    );
    Some(Diagnostic::note("no-whole-block", message).hint(
        "such a mask is slower than dense attention: sort or compact the keys so that kept ones are neighbours (keys and values \
         in the order of the table), or choose a smaller BLOCK_SIZE",
    ))
}

/// A mask that drops nothing.
fn keeps_all(stats: &Stats) -> Option<Diagnostic> {
    (stats.partial == 0 && stats.empty == 0 && stats.full > 0).then(|| {
        Diagnostic::note("keeps-all", "at these lengths this mask drops no cell").hint(
            "dense attention without a mask computes the same, faster. PyTorch's FLASH backend before 2.15 takes a mask_mod that is \
             always true for no mask, and then ignores hand-made block lists",
        )
    })
}

/// A table of query by key: its size, and the length from which a kernel's 32-bit index wraps.
fn dense_table(of: &Mod, sizes: Sizes) -> Option<Diagnostic> {
    let graph = &of.graph;
    let depends = graph.depends();
    for id in schedule::needed(graph, &[of.root]) {
        let Op::Load(capture, index) = &graph.node(id).op else { continue };
        let on = |input: Input| index.iter().any(|at| depends[at.0 as usize].on(input));
        if index.len() < 2 || !on(Input::QIdx) || !on(Input::KvIdx) {
            continue;
        }
        let captured = graph.capture(*capture);
        let shape = captured.tensor.shape();
        let whole = shape.len() >= 2 && shape.iter().rev().take(2).eq([&sizes.lengths.kv_len, &sizes.lengths.q_len]);
        if !whole {
            // a table of blocks or of distances grows more slowly
            continue;
        }
        let others: usize = shape[..shape.len() - 2].iter().product::<usize>().max(1);
        let wraps = ((f64::from(i32::MAX) / others as f64).sqrt().floor() as usize) + 1;
        let (q_len, kv_len) = (sizes.lengths.q_len, sizes.lengths.kv_len);
        let elements = shape.iter().map(|n| *n as u64).product::<u64>();
        let beyond = elements > i32::MAX as u64 || others as u64 * q_len as u64 * kv_len as u64 > i32::MAX as u64;
        let place = |reported: Diagnostic| match graph.node(id).span {
            Some(span) => reported.at(span, ""),
            None => reported,
        };
        let hint = "keep the table as bits or block lists (BlockMask.from_kv_blocks, Maskloom's export), or read a flat table with an \
                    int64 offset";
        if beyond {
            let message = format!(
                "`{}` {shape:?} has {elements} elements: compiled FlexAttention indexes it in 32 bits, which wrap from {wraps} x {wraps} \
                 tokens on, and computes with another mask without a word",
                captured.name
            );
            return Some(place(Diagnostic::warning("table-beyond-32-bits", message).hint(hint)));
        }
        let message = format!(
            "`{}` {shape:?} is a dense table of queries by keys; from {wraps} x {wraps} tokens on its index leaves 32 bits in compiled \
             FlexAttention",
            captured.name
        );
        return Some(place(Diagnostic::note("dense-table", message).hint(hint)));
    }
    None
}

/// What a text's own create_block_mask was asked for, against what its mask reads.
pub fn asked(depends: Depends, batch: Extent, heads: Extent) -> Vec<Diagnostic> {
    let mut reported = Vec::new();
    for (name, input, extent) in [("B", Input::B, batch), ("H", Input::H, heads)] {
        let low = name.to_lowercase();
        match (extent, depends.on(input)) {
            (Extent::One, true) => {
                let message = format!("the mask is made with {name}=None or 1, but its mod reads `{low}`");
                reported.push(Diagnostic::warning("broadcast-reads", message).hint(format!(
                    "the blocks are those of {low} 0 for every entry, and a compiled kernel that reads a tensor of one entry at `{low}` \
                     leaves it without a message: pass {name}, the number of entries"
                )));
            }
            (Extent::Many(n), false) => {
                let message = format!(
                    "the mask is made with {name}={n}, but its mod does not read `{low}`: all {n} lists are equal"
                );
                reported.push(
                    Diagnostic::note("broadcast-possible", message)
                        .hint(format!("pass {name}=None: 1/{n} of the time and of the memory, and the same mask")),
                );
            }
            _ => {}
        }
    }
    reported
}

/// An extent of create_block_mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// None or 1.
    One,
    /// More than one.
    Many(usize),
    /// Not known.
    #[default]
    Unknown,
}
