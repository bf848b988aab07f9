//! Items of a backward launch that several blocks share, so that all blocks are busy until the end.
//!
//! Invariant: the parts of an item walk each of its query tiles once; an item is cut only if the launch then takes fewer steps by
//! the model below. Plain data, tested without a device. Must not know masks or kernels.

use super::words::{Item, Part};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What an item takes besides its query tiles, in the time of a query tile: its keys and values are copied and its sums written
/// while no product runs.
pub(super) const ITEM: usize = 2;
/// What a part takes besides: its sums are added in global memory, and the last part reads those of all.
pub(super) const PART: usize = 4;
/// Query tiles of the smallest part.
pub(super) const LEAST: usize = 2;
/// Items a block above which the last round is too small a share of the time.
const MOST_ROUNDS: usize = 64;
/// Share of the time that cutting must save, in percent.
const GAIN: usize = 1;

/// Units of a launch, with what each is of its item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Each unit.
    pub items: Vec<Item>,
    /// What each unit is of its item.
    pub parts: Vec<Part>,
    /// Items that were cut.
    pub slots: usize,
}

impl Parts {
    /// What each unit takes.
    fn costs(&self) -> impl Iterator<Item = usize> {
        let join = |part: &Part| if part.parts > 1 { PART } else { 0 };
        self.items.iter().zip(&self.parts).map(move |(item, part)| cost(item) + join(part))
    }
}

/// The items of a launch of so many blocks, each of which takes its next item when it has finished one. None: as they are.
pub(crate) fn shared(items: &[Item], blocks: usize) -> Option<Parts> {
    if !can_be_cut(items, blocks) {
        return None;
    }
    let (late, even) = late(items, blocks);
    let longest = ends(&whole(items), blocks).1;
    let pays = |time: usize| time * 100 <= longest * (100 - GAIN);
    // no cut ends before all blocks are equally busy
    if !pays(even) {
        return None;
    }
    let pieces = (1..=8).map(|n| even.div_ceil(n)).chain((1..=6).map(|n| LEAST << n));
    let mut best: Option<(usize, Parts)> = None;
    for piece in pieces.filter(|piece| *piece >= LEAST) {
        let made = cut(items, &late, piece, false);
        let least = best.as_ref().map_or(usize::MAX, |(time, _)| *time);
        if made.costs().sum::<usize>() / blocks >= least {
            continue;
        }
        let (_, time) = ends(&made, blocks);
        if time < least {
            best = Some((time, made));
        }
    }
    best.filter(|(time, made)| pays(*time) && made.slots > 0).map(|(_, made)| made)
}

/// Whether cutting items can save time: some blocks would wait for others, and the last round is no small share of all.
pub(super) fn can_be_cut(items: &[Item], blocks: usize) -> bool {
    blocks >= 2 && !items.is_empty() && items.len() <= MOST_ROUNDS * blocks
}

/// Items that are long enough for two parts.
pub(super) fn long(items: &[Item]) -> Vec<usize> {
    (0..items.len()).filter(|i| items[*i].count as usize >= 2 * LEAST).collect()
}

pub(super) fn whole(items: &[Item]) -> Parts {
    Parts { items: items.to_vec(), parts: vec![Part::WHOLE; items.len()], slots: 0 }
}

/// Items that can be cut and end later than if all blocks were busy until the end, and when that would be.
pub(super) fn late(items: &[Item], blocks: usize) -> (Vec<usize>, usize) {
    let (ends, _) = ends(&whole(items), blocks);
    let even = ends.len().max(items.iter().map(cost).sum::<usize>()) / blocks;
    (long(items).into_iter().filter(|i| ends[*i] > even).collect(), even)
}

fn cost(item: &Item) -> usize {
    item.count as usize + ITEM
}

/// The end of every unit, and of the last.
fn ends(made: &Parts, blocks: usize) -> (Vec<usize>, usize) {
    let mut free: BinaryHeap<Reverse<usize>> = (0..blocks).map(|_| Reverse(0)).collect();
    let mut ends = Vec::with_capacity(made.items.len());
    for cost in made.costs() {
        let Some(mut first) = free.peek_mut() else { break };
        first.0 += cost;
        ends.push(first.0);
    }
    let last = ends.iter().copied().max().unwrap_or(0);
    (ends, last)
}

/// The items with those at `late` cut into parts of at most `piece` query tiles, which are taken after the others, the largest first, unless
/// they are taken in the items' order.
pub(super) fn cut(items: &[Item], late: &[usize], piece: usize, in_order: bool) -> Parts {
    let (mut units, mut behind, mut slots) = (Vec::new(), Vec::new(), 0);
    let mut waits = late.iter().copied().peekable();
    for (at, item) in items.iter().enumerate() {
        let is_late = waits.next_if_eq(&at).is_some();
        let count = item.count as usize;
        let parts = if is_late { count.div_ceil(piece) } else { 1 };
        if parts == 1 {
            units.push((*item, Part::WHOLE));
            continue;
        }
        for part in 0..parts {
            let (first, past) = (count * part / parts, count * (part + 1) / parts);
            let own = Item { count: (past - first) as u32, ..*item };
            let to = if in_order { &mut units } else { &mut behind };
            to.push((own, Part { first: first as u32, slot: slots, parts: parts as u32, index: part as u32 }));
        }
        slots += 1;
    }
    let is_sorted = !in_order && units.is_sorted_by(|a, b| a.0.count >= b.0.count);
    if is_sorted {
        units.extend(behind);
        units.sort_by_key(|(item, _)| Reverse(item.count));
    } else {
        behind.sort_by_key(|(item, _)| Reverse(item.count));
        units.extend(behind);
    }
    let (items, parts) = units.into_iter().unzip();
    Parts { items, parts, slots: slots as usize }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::backends::cuda::lists::parts::*;
    use crate::base::rng::Rng;
    use std::collections::HashMap;

    fn items(counts: impl IntoIterator<Item = u32>) -> Vec<Item> {
        let item = |(tile, count)| Item { batch: 0, kv_head: 0, tile: tile as u32, count };
        counts.into_iter().enumerate().map(item).collect()
    }

    /// Each query tile of each item is walked once, and parts of an item share a slot of their own.
    pub(in crate::backends::cuda::lists) fn check(items: &[Item], made: &Parts) {
        // of each item whether a query tile was walked, and the slot, number and indices of its parts
        type Walked = (Vec<bool>, Vec<[u32; 3]>);
        let mut walked: HashMap<[u32; 3], Walked> = HashMap::new();
        for (item, Part { first, slot, parts, index }) in made.items.iter().zip(&made.parts) {
            let whole = items.iter().find(|i| i.place() == item.place()).expect("an item").count;
            let (seen, of) = walked.entry(item.place()).or_insert((vec![false; whole as usize], Vec::new()));
            (*first..first + item.count).for_each(|step| assert!(!std::mem::replace(&mut seen[step as usize], true)));
            of.push([*slot, *parts, *index]);
        }
        assert_eq!(walked.len(), items.len());
        let mut slots = vec![false; made.slots];
        for (seen, of) in walked.values() {
            let mut indices: Vec<u32> = of.iter().map(|part| part[2]).collect();
            indices.sort_unstable();
            assert!(seen.iter().all(|step| *step) && indices.iter().copied().eq(0..of.len() as u32), "{indices:?}");
            assert!(of.iter().all(|part| part[..2] == of[0][..2] && part[1] as usize == of.len()));
            if of.len() > 1 {
                assert!(!std::mem::replace(&mut slots[of[0][0] as usize], true), "an item's own slot");
            }
        }
        assert!(slots.iter().all(|slot| *slot));
    }

    #[test]
    fn the_last_round_is_shared_by_all_blocks() {
        let all = items(vec![128; 4096]);
        let made = shared(&all, 132).expect("31.03 rounds are cut");
        check(&all, &made);
        let (before, after) = (32 * 130, ends(&made, 132).1);
        assert!(after * 100 < before * 98, "{before} -> {after} steps");
        assert_eq!(shared(&items(vec![128; 132 * 3]), 132), None, "three whole rounds");
        assert_eq!(shared(&items(vec![128; 132 * 65]), 132), None, "many rounds");
        assert_eq!(shared(&items([0, 0, 0]), 2), None, "nothing is kept");
    }

    #[test]
    fn random_items_are_walked_once() {
        let mut random = Rng::new(5);
        let mut cuts = 0;
        for _ in 0..200 {
            let (blocks, most) = (2 + random.below(18), 1 + random.below(199));
            let mut counts: Vec<u32> = (0..1 + random.below(59)).map(|_| random.below(most) as u32).collect();
            if random.chance(50) {
                counts.sort_by_key(|count| Reverse(*count));
            }
            let all = items(counts);
            if let Some(made) = shared(&all, blocks) {
                check(&all, &made);
                cuts += 1;
            }
        }
        assert!(cuts > 50, "{cuts} of 200 were cut");
    }
}
