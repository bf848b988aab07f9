//! The order in which a backward launch takes its items if parts of dq are added in one order: how many heads are in progress at
//! once, whether the heads of a group walk a tile together, and which items several blocks share.
//!
//! Invariant: a key tile's additions wait for those of key tiles taken before it alone, and so does a part of an item. Plain data, tested
//! without a device. Must not know masks or kernels.

use super::parts::{ITEM, LEAST, PART, Parts, can_be_cut, cut, late, long, whole};
use super::transposed::Transposed;
use super::words::Item;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a query tile takes. Times are in tenths of it.
pub(super) const TILE: u64 = 10;
/// From the addition of a part of dq until the next key tile can add its own.
pub(super) const ADDITION: u64 = 8;
/// Query tiles that a trial of an arrangement follows: about 10 ms of a core. What comes after them is as they are.
pub(super) const FOLLOWED: usize = 300_000;
/// Query tiles that all trials of cuts follow together.
const CUTS_FOLLOWED: usize = 4 << 20;
/// An arrangement is as good as the best if it takes at most this share of its time.
const AS_GOOD: f64 = 1.05;
/// Share of the time that cutting must save, in percent.
const GAIN: u64 = 5;
/// Time of a query tile whose q, d_o and sums of dq all come from memory, with tiles of 128 keys: 96 KB for 64 queries at width 128, 132
/// times in 3.5 us at 3.6 TB/s, while the products take 2.1 us (H200, 2026-11-26). It is the same at other widths.
const FROM_MEMORY: f64 = 1.65;

/// What the order depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    /// Blocks that run at a time.
    pub blocks: usize,
    /// Query tiles of one head whose q, d_o and sums of dq the L2 cache holds.
    pub cached: usize,
    /// Keys of a tile.
    pub tile_kv: usize,
}

/// Arranges the units for the shortest time by the model below. Heads in progress at once keep blocks from waiting for each other, and
/// fewer of them share the cache.
pub(crate) fn arrange(lists: &mut Transposed, launch: Launch) {
    let (first, heads) = (lists.section(), lists.items_heads());
    let sections = (0..).map(|n| first << n).take_while(|section| *section < heads).chain([heads]);
    let ways = if lists.heads_can_be_together() { vec![true, false] } else { vec![false] };
    let tried: Vec<(usize, bool)> = sections.flat_map(|s| ways.iter().map(move |together| (s, *together))).collect();
    let time = |(section, together): &(usize, bool)| {
        let items = lists.items_in_order(*section);
        let time = |made: Parts| follow(lists, &made, launch, *together, FOLLOWED).time(launch);
        // a few cuts say whether `shared` will shorten it
        let (_, even) = late(&items, launch.blocks);
        let pieces =
            [even / 2, even / 8].into_iter().filter(|piece| *piece >= LEAST && can_be_cut(&items, launch.blocks));
        let cut = pieces.map(|piece| time(cut(&items, &long(&items), piece, true)));
        cut.fold(time(whole(&items)), f64::min)
    };
    let times: Vec<f64> = tried.par_iter().map(time).collect();
    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
    if let Some(at) = times.iter().position(|time| *time <= best * AS_GOOD) {
        lists.arrange(tried[at].0, tried[at].1);
    }
}

/// The units of so many blocks if some share an item. None: each item is one unit.
pub(crate) fn shared(lists: &Transposed, blocks: usize) -> Option<Parts> {
    let items = &lists.items;
    if !can_be_cut(items, blocks) {
        return None;
    }
    let made = cuts(items, blocks, true);
    // the cache does not enter: all cuts walk the same tiles
    let launch = Launch { blocks, cached: usize::MAX, tile_kv: 128 };
    let end = |made: &Parts| follow(lists, made, launch, lists.together(), usize::MAX).end;
    let (time, best) =
        made.into_par_iter().map(|made| (end(&made), made)).min_by_key(|(time, made)| (*time, made.slots))?;
    (time * 100 <= end(&whole(items)) * (100 - GAIN)).then_some(best)
}

/// The units that are tried where several blocks share an item, as many as are followed, in the items' order or behind the others.
pub(super) fn cuts(items: &[Item], blocks: usize, in_order: bool) -> Vec<Parts> {
    let ((late, even), long) = (late(items, blocks), long(items));
    let steps: usize = items.iter().map(|item| item.count as usize).sum();
    let pieces = (0..4).map(|n| even >> n).chain((2..=7).rev().map(|n| 1 << n)).filter(|piece| *piece >= LEAST);
    let ways = pieces.flat_map(|piece| [(&late, piece), (&long, piece)]).take(CUTS_FOLLOWED / steps.max(1));
    ways.map(|(which, piece)| cut(items, which, piece, in_order)).filter(|made| made.slots > 0).collect()
}

/// The time of these units by the model; `None` for each item as it is.
pub(crate) fn time(lists: &Transposed, made: Option<&Parts>, launch: Launch) -> f64 {
    let time = |made: &Parts| follow(lists, made, launch, lists.together(), FOLLOWED).time(launch);
    made.map_or_else(|| time(&whole(&lists.items)), time)
}

/// What a launch comes to.
pub(super) struct Followed {
    /// When the last addition ends.
    pub end: u64,
    /// When the blocks end, on average, if not all units were followed.
    pub on_average: Option<f64>,
    pub steps: usize,
    /// Query tiles that come from memory.
    pub missed: usize,
}

impl Followed {
    /// Over the time of products alone: blocks wait for each other, or for memory.
    pub(super) fn time(&self, launch: Launch) -> f64 {
        let ideal = self.steps.max(1) as f64 / launch.blocks as f64;
        let waits = self.on_average.unwrap_or(self.end as f64) / TILE as f64 / ideal;
        let memory = self.missed as f64 / self.steps.max(1) as f64 * FROM_MEMORY * 128.0 / launch.tile_kv as f64;
        (waits.powi(3) + memory.powi(3)).cbrt()
    }
}

/// Follows the launch in a model: a block takes its next item when it has finished one, a part of dq is added when the key tile before has added its
/// own, and a block has one addition on its way.
fn follow(lists: &Transposed, made: &Parts, launch: Launch, together: bool, most: usize) -> Followed {
    let mut free: BinaryHeap<Reverse<(u64, usize)>> = (0..launch.blocks).map(|block| Reverse((0, block))).collect();
    let (mut added, mut joined) = (vec![0; lists.lines()], vec![0; made.slots]);
    // when a block's last addition has ended
    let mut ended = vec![0; launch.blocks];
    let (mut steps, mut all, mut seen) = (0, true, Vec::new());
    for (item, part) in made.items.iter().zip(&made.parts) {
        if steps >= most {
            all = false;
            break;
        }
        steps += item.count as usize;
        let Some(Reverse((from, block))) = free.pop() else { break };
        let mut now = from + ITEM as u64 * TILE;
        for line in lists.walked(item, together).skip(part.first as usize).take(item.count as usize) {
            if launch.cached < lists.lines() {
                seen.push((now as u32, line as u32));
            }
            now = (now + TILE).max(ended[block]);
            added[line] = now.max(added[line]) + ADDITION;
            ended[block] = added[line];
        }
        if part.parts > 1 {
            now = now.max(joined[part.slot as usize]) + PART as u64 * TILE;
            joined[part.slot as usize] = now;
        }
        free.push(Reverse((now, block)));
    }
    let end = ended.into_iter().chain(free.iter().map(|Reverse((now, _))| *now)).max().unwrap_or(0);
    let sum: u64 = free.iter().map(|Reverse((now, _))| now).sum();
    let on_average = (!all).then(|| sum as f64 / launch.blocks.max(1) as f64);
    Followed { end, on_average, steps, missed: missed(seen, lists.lines(), launch.cached) }
}

/// Of the tiles read at these times, those that a cache of so many has lost since they were read last, or has not had.
pub(super) fn missed(mut seen: Vec<(u32, u32)>, lines: usize, cached: usize) -> usize {
    seen.sort_unstable();
    let mut read: Vec<Option<usize>> = vec![None; lines];
    let mut missed = 0;
    for (_, line) in seen {
        let read = &mut read[line as usize];
        if read.is_none_or(|at| missed - at >= cached) {
            missed += 1;
        }
        *read = Some(missed);
    }
    missed
}

#[cfg(test)]
pub(super) mod tests {
    use crate::analysis::block_mask::{BlockMask, MaskShape};
    use crate::backends::cuda::lists::in_order::*;
    use crate::backends::cuda::lists::parts::tests::check;
    use crate::backends::cuda::lists::plan::Plan;
    use crate::backends::cuda::lists::transposed::Extent;
    use crate::base::rng::Rng;
    use crate::base::{BlockSize, Control, Lengths};
    use crate::ir::graph::Mod;
    use crate::ir::random;
    use crate::ir::text::parse;

    pub(in crate::backends::cuda::lists) fn mask(text: &str) -> Mod {
        parse(text, &[]).expect("a mask")
    }

    /// The lists of a mask over tokens, at tiles of 16.
    pub(in crate::backends::cuda::lists) fn lists(mask: &Mod, tokens: usize, extent: Extent) -> Transposed {
        let lengths = Lengths::new(tokens, tokens).expect("lengths");
        let heads = extent.kv_heads * extent.group;
        let shape = MaskShape { batch: extent.batch, heads, lengths };
        let mask = BlockMask::build(Some(mask), shape, BlockSize { q: 16, kv: 16 }, &Control::new()).expect("lists");
        Transposed::of(&Plan::of_mask(&mask), lengths.kv_len, 16, extent)
    }

    pub(in crate::backends::cuda::lists) fn heads(kv_heads: usize, group: usize) -> Extent {
        Extent { batch: 1, kv_heads, group, section: 1, deterministic: true }
    }

    #[test]
    fn random_items_are_walked_once_and_in_order() {
        let (mut random, mut cuts) = (Rng::new(6), 0);
        for seed in 0..60 {
            let of = random::Options { batch: 2, heads: 4, ..random::Options::new(280, 280) };
            let mut made = lists(&random::mask(seed, &of), 280, Extent { batch: 2, ..heads(2, 2) });
            let blocks = 2 + random.below(40);
            arrange(&mut made, Launch { blocks, cached: 1 + random.below(60), tile_kv: 16 });
            let Some(parts) = shared(&made, blocks) else { continue };
            check(&made.items, &parts);
            cuts += 1;
            // a part waits for those before it, and a tile's additions for key tiles before its own
            let place = |item: &Item| made.items.iter().position(|i| i.place() == item.place());
            let places = parts.items.iter().zip(&parts.parts).map(|(item, part)| (place(item), part.first, part.index));
            assert!(places.is_sorted(), "{:?}", parts.parts);
            let mut last = std::collections::HashMap::new();
            for item in &made.items {
                let before = last.insert((item.batch, item.kv_head), item.tile);
                assert!(before.is_none_or(|before| before < item.tile), "a head's key tiles ascend");
            }
        }
        assert!(cuts > 10, "{cuts} of 60 were cut");
    }

    #[test]
    fn a_key_tile_that_all_queries_see_is_shared() {
        let mut made = lists(&mask("(or (lt kv_idx 16) (le (abs (sub q_idx kv_idx)) 16))"), 1600, heads(4, 2));
        let launch = Launch { blocks: 132, cached: 1 << 20, tile_kv: 128 };
        arrange(&mut made, launch);
        let parts = shared(&made, 132).expect("it is cut");
        let end = |parts: &Parts| follow(&made, parts, launch, made.together(), usize::MAX).end;
        let (before, after) = (end(&whole(&made.items)), end(&parts));
        assert!(after * 2 < before, "{before} -> {after}");
    }

    #[test]
    fn rows_that_differ_go_together_and_alike_ones_apart_where_the_cache_is_small() {
        let launch = |cached| Launch { blocks: 132, cached, tile_kv: 128 };
        let time = |lists: &Transposed, together, cached| {
            follow(lists, &whole(&lists.items), launch(cached), together, FOLLOWED).time(launch(cached))
        };
        // a short row would wait at each head for the long ones
        let causal = lists(&mask("(ge q_idx kv_idx)"), 2048, heads(8, 4));
        let (together, apart) = (time(&causal, true, 500), time(&causal, false, 500));
        assert!(together * 1.2 < apart, "{together} and {apart}");
        // the cache holds the tiles of a head, not those of its group
        let window = mask("(and (ge q_idx kv_idx) (le (sub q_idx kv_idx) 256))");
        let window = lists(&window, 2048, heads(8, 4));
        let (together, apart) = (time(&window, true, 300), time(&window, false, 300));
        assert!(apart * 1.2 < together, "{together} and {apart}");
    }

    #[test]
    fn a_cache_loses_what_was_read_long_ago() {
        let seen = |lines: &[u32]| lines.iter().enumerate().map(|(at, line)| (at as u32, *line)).collect::<Vec<_>>();
        assert_eq!(missed(seen(&[0, 1, 0, 1]), 2, 2), 2);
        assert_eq!(missed(seen(&[0, 1, 2, 0, 1, 2]), 3, 2), 6);
        assert_eq!(missed(seen(&[0, 1, 0, 2, 3, 0]), 4, 2), 5);
    }
}
