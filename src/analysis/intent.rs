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

/// Rows of a plane that are evaluated.
const ROWS: usize = 17;
/// Planes, batch entries times heads, that are evaluated of a mask in which they differ.
const PLANES: usize = 64;
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
        let rows = rows(of, sizes);
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

/// So many numbers below `all`, the first and the last among them.
fn spread(count: usize, all: usize) -> Vec<usize> {
    let mut picked: Vec<usize> = (0..count).map(|n| n * (all - 1) / (count.max(2) - 1)).collect();
    picked.dedup();
    picked
}

fn rows(of: &Mod, sizes: Sizes) -> Vec<Row> {
    let (q_len, kv_len) = (sizes.lengths.q_len, sizes.lengths.kv_len);
    let program = Program::new(of);
    let mut kept = vec![0; kv_len];
    let count = ROWS.min(CELLS / kv_len.max(1)).min(q_len).max(1);
    let depends = of.depends();
    // what is said of all queries is said of all heads
    let extent = |input, n: usize| if depends.on(input) { n.max(1) } else { 1 };
    let (batch, heads) = (extent(Input::B, sizes.batch), extent(Input::H, sizes.heads));
    let planes = PLANES.min(CELLS / (count * kv_len).max(1)).clamp(1, batch * heads);
    let (planes, picked) = (spread(planes, batch * heads), spread(count, q_len));
    let places = planes.into_iter().flat_map(|plane| picked.iter().map(move |q| (plane, *q)));
    places
        .map(|(plane, q)| {
            kept.fill(0);
            program.mask_tile(plane / heads, plane % heads, q..q + 1, 0..kv_len, &mut kept);
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
    let last = rows.last()?.q;
    let sees = rows.iter().filter(|r| r.q == last).map(|r| r.before + usize::from(r.own));
    let (least, most) = (sees.clone().min()?, sees.max()?);
    let sees = if least == most { format!("{most}") } else { format!("at most {most}") };
    let offset = kv_len - q_len;
    let message = format!(
        "no query sees a key behind its own number: the last of {q_len} queries, number {last}, sees {sees} of {kv_len} keys"
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
        let reported = of_table(&captured.name, shape);
        return Some(match graph.node(id).span {
            Some(span) => reported.at(span, ""),
            None => reported,
        });
    }
    None
}

/// The note on a table [.., queries, keys] of this shape.
fn of_table(name: &str, shape: &[usize]) -> Diagnostic {
    let others: usize = shape[..shape.len() - 2].iter().product::<usize>().max(1);
    let wraps = ((f64::from(i32::MAX) / others as f64).sqrt().floor() as usize) + 1;
    let elements = shape.iter().map(|n| *n as u64).product::<u64>();
    let hint = "keep the table as bits or block lists (BlockMask.from_kv_blocks, Maskloom's export), or read a flat table with an \
                int64 offset";
    if elements > i32::MAX as u64 {
        let message = format!(
            "`{name}` {shape:?} has {elements} elements: compiled FlexAttention indexes it in 32 bits, which wrap from {wraps} x {wraps} \
             tokens on, and computes with another mask without a word"
        );
        return Diagnostic::warning("table-beyond-32-bits", message).hint(hint);
    }
    let message = format!(
        "`{name}` {shape:?} is a dense table of queries by keys; from {wraps} x {wraps} tokens on its index leaves 32 bits in compiled \
         FlexAttention"
    );
    Diagnostic::note("dense-table", message).hint(hint)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::block_mask::{BlockMask, MaskShape};
    use crate::analysis::examples::{self, Builder};
    use crate::base::tensor::Data;
    use crate::base::{BlockSize, Control, HostTensor, Lengths};
    use crate::ir::graph::{ModKind, NodeId};

    fn notes(of: &Mod, q_len: usize, kv_len: usize) -> Vec<Diagnostic> {
        let lengths = Lengths::new(q_len, kv_len).expect("lengths");
        let shape = MaskShape::broadcast(lengths);
        let blocks = BlockMask::build(Some(of), shape, BlockSize::square(4), &Control::new()).expect("blocks");
        intent(of, Sizes { batch: 1, heads: 1, lengths }, &blocks.stats())
    }

    /// The codes of the notes.
    fn codes(of: &Mod, q_len: usize, kv_len: usize) -> Vec<String> {
        notes(of, q_len, kv_len).into_iter().map(|note| note.code.into_owned()).collect()
    }

    /// A mask of q_idx, kv_idx and their distance.
    fn made(build: impl Fn(&mut Builder, NodeId, NodeId, NodeId) -> NodeId) -> Mod {
        let mut g = Builder::new();
        let (q, kv, distance) = (g.q, g.k, g.distance());
        let root = build(&mut g, q, kv, distance);
        g.mask(root)
    }

    #[test]
    fn sides_that_were_exchanged_are_asked_about() {
        let own = made(|g, q, kv, _| g.ge(kv, q));
        let found = notes(&own, 9, 9);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].message, "queries keep only their own and later keys: no query sees a key before it");
        let later = made(|g, q, kv, _| g.gt(kv, q));
        assert_eq!(notes(&later, 9, 9)[0].message, "queries keep only later keys: no query sees a key before it");
        // some queries see themselves, some do not
        let some = made(|g, q, kv, _| {
            let (odd, later, same) = (g.rem_by(q, 2), g.gt(kv, q), g.eq(q, kv));
            let even = g.at_most(odd, 0);
            let own = g.and(even, same);
            g.or(own, later)
        });
        assert_eq!(notes(&some, 9, 9)[0].message, "queries keep only later keys: no query sees a key before it");
        // of five tokens on there is enough to tell
        assert_eq!((codes(&own, 4, 4), codes(&own, 5, 5)), (vec![], vec!["future-only".to_string()]));
        // more keys than queries are another question
        assert_eq!(codes(&own, 9, 12), [""; 0]);
        assert_eq!(codes(&examples::causal(), 9, 9), [""; 0]);
        // a query that sees itself alone sees nothing later
        assert_eq!(codes(&made(|g, q, kv, _| g.eq(q, kv)), 9, 9), [""; 0]);
        // one early key
        let first = made(|g, q, kv, _| {
            let (later, first) = (g.ge(kv, q), g.at_most(kv, 0));
            g.or(later, first)
        });
        assert!(!codes(&first, 9, 9).contains(&"future-only".to_string()));
    }

    /// What is true of the first head alone is not said of all queries.
    #[test]
    fn all_heads_and_batch_entries_are_looked_at() {
        let of = |build: &dyn Fn(&mut Builder, NodeId, NodeId) -> NodeId, heads: usize, lengths: (usize, usize)| {
            let mut g = Builder::new();
            let (h, distance) = (g.graph.input(Input::H), g.distance());
            let root = build(&mut g, h, distance);
            let own = g.mask(root);
            let lengths = Lengths::new(lengths.0, lengths.1).expect("lengths");
            let shape = MaskShape { heads, ..MaskShape::broadcast(lengths) };
            let blocks = BlockMask::build(Some(&own), shape, BlockSize::square(4), &Control::new()).expect("blocks");
            intent(&own, Sizes { batch: 1, heads, lengths }, &blocks.stats())
        };
        // head 0 keeps later keys alone, the others one key before the query for each further head
        let windows = |g: &mut Builder, h: NodeId, distance: NodeId| g.le(distance, h);
        let said = |heads: usize| of(&windows, heads, (9, 9))[0].code.to_string();
        assert_eq!((said(1), said(2)), ("future-only".into(), "future-visible".into()));
        // the last head of very many
        let last = |g: &mut Builder, h: NodeId, distance: NodeId| {
            let (few, own) = (g.below(h, 999), g.at_most(distance, 0));
            let many = g.not(few);
            g.or(own, many)
        };
        assert_eq!(of(&last, 1000, (9, 9)).iter().filter(|note| note.code == "future-only").count(), 0);
        let causal = |g: &mut Builder, h: NodeId, distance: NodeId| {
            let (own, least) = (g.causal(), g.ge(distance, h));
            g.and(own, least)
        };
        let found = of(&causal, 3, (8, 20));
        assert!(found[0].message.contains("sees at most 8 of 20 keys"), "{}", found[0].message);
    }

    #[test]
    fn a_window_that_forgets_later_keys_is_asked_about() {
        // q - kv < 3: all later keys; rows 1 to 7 of 9 see 7, 6, .. 1 of them
        let open = made(|g, _, _, distance| g.below(distance, 3));
        let found = notes(&open, 9, 9);
        assert_eq!((found.len(), &*found[0].code), (1, "future-visible"));
        assert!(found[0].message.contains("(4 keys in the mean row)"), "{}", found[0].message);
        let both = made(|g, _, _, distance| {
            let distance = g.abs(distance);
            g.below(distance, 3)
        });
        assert_eq!((codes(&both, 9, 9), codes(&examples::sliding_window(3), 9, 9)), (vec![], vec![]));
        // nothing is dropped in the rows that are looked at but the last one's, which has no later keys
        let last = made(|g, q, kv, _| {
            let (before, first) = (g.below(q, 8), g.at_most(kv, 3));
            g.or(before, first)
        });
        assert_eq!(codes(&last, 9, 9), [""; 0]);
        // one row without one of its later keys
        let hole = made(|g, q, kv, distance| {
            let (open, q, kv) = (g.below(distance, 3), g.at_most(q, 0), g.below(kv, 8));
            let first = g.not(q);
            let kept = g.or(first, kv);
            g.and(open, kept)
        });
        assert_eq!(codes(&hole, 9, 9), ["future-visible"], "the first row has keys on one side alone");
    }

    #[test]
    fn a_cache_longer_than_the_queries_is_asked_about() {
        let found = notes(&examples::causal(), 8, 20);
        assert_eq!((found.len(), &*found[0].code), (1, "longer-keys"));
        assert!(
            found[0].message.contains("the last of 8 queries, number 7, sees 8 of 20 keys"),
            "{}",
            found[0].message
        );
        assert!(found[0].hint.as_deref().is_some_and(|hint| hint.contains("`q_idx + 12 >= kv_idx`")));
        // the last of more rows than are looked at, with a window
        let window = notes(&examples::sliding_window(5), 200, 301);
        assert!(window[0].message.contains("number 199, sees 6 of 301 keys"), "{}", window[0].message);
        assert!(window[0].hint.as_deref().is_some_and(|hint| hint.contains("`q_idx + 101 >= kv_idx`")));
        // keys before the query alone
        let before = made(|g, q, kv, _| g.gt(q, kv));
        assert!(notes(&before, 8, 20)[0].message.contains("sees 7 of 20 keys"));
        assert_eq!(codes(&made(|g, q, kv, _| g.eq(q, kv)), 8, 20), ["longer-keys"]);
        let offset = made(|g, q, kv, _| {
            let twelve = g.int(12);
            let q = g.add(q, twelve);
            g.ge(q, kv)
        });
        assert_eq!((codes(&offset, 8, 20), codes(&examples::causal(), 20, 8)), (vec![], vec![]));
        // a mask that keeps nothing is not causal
        let far = made(|g, _, _, distance| {
            let least = g.int(100);
            g.ge(distance, least)
        });
        assert_eq!(codes(&far, 8, 20), [""; 0]);
    }

    #[test]
    fn masks_of_one_index_are_not_compared_with_the_diagonal() {
        let keys = made(|g, _, kv, _| g.at_most(kv, 5));
        let queries = made(|g, q, _, _| g.at_most(q, 5));
        // the last key is behind every query but its own
        let last = made(|g, _, kv, _| {
            let last = g.int(8);
            g.ge(kv, last)
        });
        for (q_len, kv_len) in [(9, 9), (9, 20)] {
            for of in [&keys, &queries, &last] {
                assert_eq!(codes(of, q_len, kv_len), [""; 0]);
            }
        }
    }

    #[test]
    fn blocks_that_save_nothing_are_told() {
        let sizes = |n| Sizes { batch: 1, heads: 1, lengths: Lengths::new(n, n).expect("lengths") };
        let stats = Stats { partial: 2, density: 0.375, ..Stats::default() };
        let found = no_whole_block(&stats, sizes(512)).expect("a note");
        assert!(found.message.contains("although 62.5% of the cells are dropped"), "{}", found.message);
        assert!(no_whole_block(&stats, sizes(511)).is_none(), "few keys");
        assert!(no_whole_block(&Stats { density: 0.98, ..stats.clone() }, sizes(512)).is_some());
        let others = [
            Stats { full: 1, ..stats.clone() },
            Stats { empty: 1, ..stats.clone() },
            Stats { partial: 1, ..stats.clone() },
            Stats { density: 0.99, ..stats.clone() },
        ];
        assert!(others.iter().all(|stats| no_whole_block(stats, sizes(512)).is_none()));
        let whole = Stats { full: 3, density: 1.0, ..Stats::default() };
        assert_eq!(keeps_all(&whole).map(|note| note.code.into_owned()).as_deref(), Some("keeps-all"));
        let others = [Stats { partial: 1, ..whole.clone() }, Stats { empty: 1, ..whole }, Stats::default()];
        assert!(others.iter().all(|stats| keeps_all(stats).is_none()));
        // every other key is dropped; all are kept
        let even = made(|g, _, kv, _| {
            let odd = g.rem_by(kv, 2);
            g.at_most(odd, 0)
        });
        assert_eq!((codes(&even, 512, 512), codes(&even, 256, 256)), (vec!["no-whole-block".to_string()], vec![]));
        let all = made(|g, _, kv, _| g.below(kv, 1000));
        assert_eq!(codes(&all, 16, 16), ["keeps-all"]);
    }

    /// A mask that reads a table of bools at these indices.
    fn table(shape: &[usize], at: &[Input]) -> Mod {
        let mut g = Builder::new();
        let kept = (0..shape.iter().product()).map(|n: usize| u8::from(n % 5 != 2)).collect();
        let table = g.graph.add_capture("kept", HostTensor::new(shape, Data::Bool(kept)).expect("a tensor"));
        let at: Vec<NodeId> = at.iter().map(|input| g.graph.input(*input)).collect();
        let root = g.load(table, &at);
        g.mask(root)
    }

    #[test]
    fn a_dense_table_is_told_with_the_length_at_which_its_index_wraps() {
        use Input::{H, KvIdx, QIdx};
        let dense = |of: &Mod| notes(of, 8, 6).into_iter().find(|note| note.code.contains("table"));
        let found = dense(&table(&[8, 6], &[QIdx, KvIdx])).expect("a note");
        assert_eq!(&*found.code, "dense-table");
        assert!(found.message.starts_with("`kept` [8, 6] is a dense table"), "{}", found.message);
        assert!(dense(&table(&[2, 8, 6], &[H, QIdx, KvIdx])).is_some());
        // of other lengths, or not read by query and key
        for other in [
            table(&[6, 8], &[QIdx, KvIdx]),
            table(&[8, 5], &[QIdx, KvIdx]),
            table(&[8, 6], &[QIdx, H]),
            table(&[8, 6], &[H, KvIdx]),
            table(&[6], &[KvIdx]),
            examples::causal(),
        ] {
            assert!(dense(&other).is_none());
        }
        // the least n for which so many tables of n x n have more elements than 32 bits count
        let most = i32::MAX as u64;
        for (others, n) in [(1u64, 46_341u64), (4, 23_171), (12, 13_378)] {
            assert!(others * n * n > most && others * (n - 1) * (n - 1) <= most);
            let shape = if others == 1 { vec![8, 6] } else { vec![others as usize, 8, 6] };
            assert!(of_table("t", &shape).message.contains(&format!("from {n} x {n} tokens on")));
        }
        let beyond = of_table("t", &[2, 32_768, 32_768]);
        assert_eq!((&*beyond.code, beyond.severity), ("table-beyond-32-bits", crate::base::Severity::Warning));
        assert!(beyond.message.contains("has 2147483648 elements"), "{}", beyond.message);
        assert!(beyond.message.contains("wrap from 32768 x 32768 tokens"), "{}", beyond.message);
        assert_eq!(&*of_table("t", &[1, i32::MAX as usize]).code, "dense-table", "the last that 32 bits count");
    }

    #[test]
    fn what_was_asked_of_create_block_mask_is_compared_with_what_the_mod_reads() {
        let on = |inputs: &[Input]| {
            let mut graph = crate::ir::graph::Graph::new();
            let ids: Vec<NodeId> = inputs.iter().map(|input| graph.input(*input)).collect();
            let all = ids[1..].iter().fold(ids[0], |sum, id| graph.binary(crate::ir::graph::BinaryOp::Add, sum, *id));
            let three = graph.int(3);
            let root = graph.binary(crate::ir::graph::BinaryOp::Le, all, three);
            Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }.depends()
        };
        let told = |inputs: &[Input], batch, heads| {
            let reported = asked(on(inputs), batch, heads);
            reported.into_iter().map(|d| format!("{}: {}", d.code, d.message)).collect::<Vec<_>>()
        };
        use Input::{B, H, QIdx};
        let found = told(&[QIdx, H], Extent::One, Extent::One);
        assert_eq!(found, ["broadcast-reads: the mask is made with H=None or 1, but its mod reads `h`"]);
        let found = told(&[QIdx, B], Extent::One, Extent::Many(7));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], "broadcast-reads: the mask is made with B=None or 1, but its mod reads `b`");
        assert!(found[1].starts_with("broadcast-possible: the mask is made with H=7"), "{found:?}");
        assert!(found[1].ends_with("all 7 lists are equal"), "{found:?}");
        assert_eq!(told(&[QIdx, B, H], Extent::Many(2), Extent::Many(7)), [""; 0]);
        assert_eq!(told(&[QIdx], Extent::One, Extent::Unknown), [""; 0]);
        assert_eq!(told(&[QIdx, B], Extent::Unknown, Extent::Unknown), [""; 0]);
    }

    #[test]
    fn notes_stand_where_the_mask_does() {
        use crate::base::Span;
        let mut g = Builder::new();
        let (q, kv) = (g.q, g.k);
        let op = Op::Binary(crate::ir::graph::BinaryOp::Ge, kv, q);
        let span = Span { start: 3, end: 9, ..Span::default() };
        let root = g.graph.add(op, Some(span));
        let found = notes(&g.mask(root), 9, 9);
        assert_eq!(found[0].labels.iter().map(|label| label.span).collect::<Vec<_>>(), [span]);
    }
}
