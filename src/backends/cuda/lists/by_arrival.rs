//! The order in which parts of dq are added if it is that of their arrival in a model of the launch. Each block visits the query tiles of an
//! item in such an order that it finds none to which another block is adding.
//!
//! Invariant: a key tile's addition, and the sums of a part of an item, wait only for what comes earlier in the model, and each block has the
//! units that it has there. A launch therefore never stops if all its blocks run at once: the earliest addition that is not done waits for
//! nothing, and its block has done what it does before. Blocks must not take for themselves: a block takes its next item before it is done with
//! the one before, and would keep it from a block that is free. Plain data, tested without a device. Must not know masks or kernels.

use super::bitmap::Bitmaps;
use super::in_order::{ADDITION, FOLLOWED, Followed, Launch, TILE, cuts, missed};
use super::parts::{ITEM, PART, Parts, can_be_cut, whole};
use super::transposed::{Transposed, Visit};
use super::words::{Item, Part};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Time that a block leaves between the addition before and its own, if it finds such a query tile: launches do not keep the model's times.
const SLACK: u64 = TILE;

/// The lists of a launch in which every head has rows of its own.
pub(crate) struct Arrival {
    pub lists: Transposed,
    pub bits: Bitmaps,
    /// Block b has units b, b + blocks, b + 2 blocks and so on.
    pub parts: Parts,
}

/// The arrangement of a launch by arrival, if the model expects it to take less than `most`. None also: too many query tiles to
/// follow.
pub(crate) fn arranged(lists: &Transposed, bits: &Bitmaps, launch: Launch, most: f64) -> Option<Arrival> {
    let items = lists.by_weight();
    let steps: usize = items.iter().map(|item| item.count as usize).sum();
    if steps == 0 || steps > FOLLOWED {
        return None;
    }
    let time = |made: &Parts| Model::new(lists, made, launch).run().followed.time(launch);
    let tried: Vec<(f64, Parts)> =
        units(&items, launch.blocks).into_par_iter().map(|made| (time(&made), made)).collect();
    let (_, mut parts) = tried.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).filter(|(time, _)| *time < most)?;
    let found = Model::new(lists, &parts, launch).run();
    for (part, index) in parts.parts.iter_mut().zip(&found.index) {
        part.index = *index;
    }
    let (lists, bits) = lists.visited(bits, &found.rows(lists, &parts));
    Some(Arrival { lists, bits, parts: by_block(&parts, &found.blocks) })
}

/// The units with the n-th of each block beside each other. A block that has fewer than others gets [`Item::NONE`] behind them.
fn by_block(parts: &Parts, blocks: &[usize]) -> Parts {
    let mut of_block = vec![Vec::new(); blocks.iter().max().map_or(0, |most| most + 1)];
    (0..blocks.len()).for_each(|unit| of_block[blocks[unit]].push(unit));
    let rounds = of_block.iter().map(Vec::len).max().unwrap_or(0);
    let nth = |n: usize| of_block.iter().map(move |units| units.get(n));
    let unit =
        |unit: Option<&usize>| unit.map_or((Item::NONE, Part::WHOLE), |unit| (parts.items[*unit], parts.parts[*unit]));
    let (items, parts_of): (Vec<_>, Vec<_>) = (0..rounds).flat_map(nth).map(unit).unzip();
    Parts { items, parts: parts_of, slots: parts.slots }
}

/// The units that are tried: items as they are, and some of them cut.
fn units(items: &[Item], blocks: usize) -> Vec<Parts> {
    let mut made = vec![whole(items)];
    if can_be_cut(items, blocks) {
        made.extend(cuts(items, blocks, false));
    }
    made
}

/// What the model found.
struct Found {
    followed: Followed,
    /// Of each unit the query tiles in the order in which it visits them.
    visits: Vec<Vec<Visit>>,
    /// Of each unit, how many parts of its item end before.
    index: Vec<u32>,
    /// Of each unit, whose it is.
    blocks: Vec<usize>,
}

impl Found {
    /// Of each row (batch entry, head, key tile) the query tiles in the order in which its parts visit them.
    fn rows(&self, lists: &Transposed, parts: &Parts) -> Vec<Vec<Visit>> {
        let mut units: Vec<usize> = (0..parts.items.len()).collect();
        units.sort_by_key(|unit| parts.parts[*unit].first);
        let mut rows = vec![Vec::new(); lists.rows_of_heads()];
        for unit in units {
            for visit in &self.visits[unit] {
                rows[lists.row_of_head(&parts.items[unit], visit.head as usize)].push(*visit);
            }
        }
        rows
    }
}

/// A block of the model.
#[derive(Clone, Default)]
struct Block {
    /// The unit that it walks.
    unit: Option<usize>,
    /// What is left of it: of each head the query tiles, the last head first.
    left: Vec<Vec<Visit>>,
    /// Where in the head's query tiles it goes on.
    at: usize,
    /// When its last addition has ended.
    ended: u64,
}

/// A launch as it is followed. The times are those of [`super::in_order`].
struct Model<'a> {
    lists: &'a Transposed,
    made: &'a Parts,
    launch: Launch,
    blocks: Vec<Block>,
    taken: usize,
    /// Of each query tile of each head, when the last addition to it ends, and their number.
    added: Vec<(u64, u32)>,
    /// The same of the parts of an item.
    joined: Vec<(u64, u32)>,
    seen: Vec<(u32, u32)>,
    found: Found,
}

impl<'a> Model<'a> {
    fn new(lists: &'a Transposed, made: &'a Parts, launch: Launch) -> Model<'a> {
        let units = made.items.len();
        let followed = Followed { end: 0, on_average: None, steps: 0, missed: 0 };
        Model {
            lists,
            made,
            launch,
            blocks: vec![Block::default(); launch.blocks],
            taken: 0,
            added: vec![(0, 0); lists.lines()],
            joined: vec![(0, 0); made.slots],
            seen: Vec::new(),
            found: Found { followed, visits: vec![Vec::new(); units], index: vec![0; units], blocks: vec![0; units] },
        }
    }

    fn run(mut self) -> Found {
        let mut free: BinaryHeap<Reverse<(u64, usize)>> = (0..self.launch.blocks).map(|b| Reverse((0, b))).collect();
        while let Some(Reverse((now, block))) = free.pop() {
            if let Some(then) = self.step(now, block) {
                free.push(Reverse((then, block)));
            }
        }
        let ended = self.blocks.iter().map(|block| block.ended).max().unwrap_or(0);
        self.found.followed.end = self.found.followed.end.max(ended);
        self.found.followed.missed = missed(self.seen, self.lists.lines(), self.launch.cached);
        self.found
    }

    /// What a block does next, and when it is done. None: nothing is left.
    fn step(&mut self, now: u64, block: usize) -> Option<u64> {
        while self.blocks[block].left.last().is_some_and(Vec::is_empty) {
            self.blocks[block].left.pop();
            self.blocks[block].at = 0;
        }
        if !self.blocks[block].left.is_empty() {
            return Some(self.visit(now, block));
        }
        if let Some(unit) = self.blocks[block].unit.take() {
            return Some(self.end_unit(now, unit));
        }
        self.found.followed.end = self.found.followed.end.max(now);
        let unit = Some(self.taken).filter(|unit| *unit < self.made.items.len())?;
        self.taken += 1;
        self.found.blocks[unit] = block;
        let (part, item) = (self.made.parts[unit], &self.made.items[unit]);
        let mut left = self.lists.of_heads(item, part.first as usize, item.count as usize);
        left.reverse();
        self.blocks[block] = Block { unit: Some(unit), left, at: 0, ended: self.blocks[block].ended };
        Some(now + ITEM as u64 * TILE)
    }

    /// A block multiplies a tile, and adds its part of dq when the additions before have ended.
    fn visit(&mut self, now: u64, block: usize) -> u64 {
        let own = &mut self.blocks[block];
        let unit = own.unit.expect("it walks an item");
        let item = &self.made.items[unit];
        let left = own.left.last_mut().expect("query tiles are left");
        let ready = (now + TILE).max(own.ended);
        let wait = |visit: &Visit| (self.added[self.lists.line(item, visit)].0 + SLACK).saturating_sub(ready);
        let from_here = || (own.at..left.len()).chain(0..own.at.min(left.len()));
        let free = from_here().find(|at| wait(&left[*at]) == 0);
        let at = free.or_else(|| from_here().min_by_key(|at| wait(&left[*at]))).expect("query tiles are left");
        own.at = at;
        let mut visit = left.remove(at);
        let line = self.lists.line(item, &visit);
        let (ended, turn) = &mut self.added[line];
        (visit.turn, own.ended) = (*turn, ready.max(*ended) + ADDITION);
        (*ended, *turn) = (own.ended, *turn + 1);
        if self.launch.cached < self.lists.lines() {
            self.seen.push((now as u32, line as u32));
        }
        self.found.visits[unit].push(visit);
        self.found.followed.steps += 1;
        ready
    }

    /// The sums of a part are added after those of the parts that came to their ends before.
    fn end_unit(&mut self, now: u64, unit: usize) -> u64 {
        let Part { slot, parts, .. } = self.made.parts[unit];
        if parts < 2 {
            return now;
        }
        let (ended, before) = &mut self.joined[slot as usize];
        self.found.index[unit] = *before;
        (*ended, *before) = (now.max(*ended) + PART as u64 * TILE, *before + 1);
        *ended
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::lists::by_arrival::*;
    use crate::backends::cuda::lists::in_order::tests::{heads, lists, mask};
    use crate::backends::cuda::lists::in_order::{arrange, shared, time};
    use crate::backends::cuda::lists::parts::tests::check;
    use crate::backends::cuda::lists::transposed::Extent;
    use crate::base::HostTensor;
    use crate::base::rng::Rng;
    use crate::base::tensor::Data;
    use crate::ir::random;
    use crate::ir::text::parse;

    fn launch(blocks: usize) -> Launch {
        Launch { blocks, cached: 1 << 20, tile_kv: 128 }
    }

    fn arrival(lists: &Transposed, blocks: usize) -> Arrival {
        arranged(lists, &Bitmaps::default(), launch(blocks), f64::INFINITY).expect("few query tiles")
    }

    /// Without those that are none.
    fn without_blanks(parts: &Parts) -> Parts {
        let is_one = |(item, _): &(&Item, &Part)| item.is_unit();
        let (items, of) = parts.items.iter().zip(&parts.parts).filter(is_one).unzip();
        Parts { items, parts: of, slots: parts.slots }
    }

    /// Of each unit the query tiles of all heads in order, and how many key tiles add to each before.
    fn walks(made: &Arrival) -> Vec<Vec<(usize, u32)>> {
        let of_draw = |(item, part): (&Item, &Part)| {
            if !item.is_unit() {
                return Vec::new();
            }
            let first = made.lists.row_of_head(item, 0);
            let heads = made.lists.of_heads(item, 0, usize::MAX / 2).len();
            let rows = (0..heads).map(|head| first + head * made.lists.kv_tiles);
            let turns: Vec<u32> = rows
                .flat_map(|row| {
                    let start = made.lists.order_start[row] as usize;
                    let count = (made.lists.row_start[row + 1] - made.lists.row_start[row]) as usize;
                    made.lists.order[start..start + count].to_vec()
                })
                .collect();
            let all: Vec<(usize, u32)> = made.lists.walked(item, false).zip(turns).collect();
            all[part.first as usize..(part.first + item.count) as usize].to_vec()
        };
        made.parts.items.iter().zip(&made.parts.parts).map(of_draw).collect()
    }

    /// Whether the blocks come to the end of all units, whichever of them goes on next.
    fn ends(made: &Arrival, blocks: usize, random: &mut Rng) -> bool {
        let walks = walks(made);
        let mut added = vec![0u32; made.lists.lines()];
        let mut joined = vec![0u32; made.parts.slots];
        // of each block its unit and its place in it
        let mut at: Vec<(usize, usize)> = (0..blocks.min(walks.len())).map(|block| (block, 0)).collect();
        let is_unit = |unit: usize| unit < walks.len() && made.parts.items[unit].is_unit();
        loop {
            let from = random.below(at.len());
            let next = (0..at.len()).map(|n| (from + n) % at.len()).find(|block| {
                let (unit, step) = at[*block];
                is_unit(unit)
                    && match walks[unit].get(step) {
                        Some((line, turn)) => added[*line] == *turn,
                        None => {
                            let Part { slot, parts, index, .. } = made.parts.parts[unit];
                            parts < 2 || joined[slot as usize] == index
                        }
                    }
            });
            let Some(block) = next else { break };
            let (unit, step) = at[block];
            if let Some((line, _)) = walks[unit].get(step) {
                added[*line] += 1;
                at[block].1 += 1;
                continue;
            }
            let Part { slot, parts, .. } = made.parts.parts[unit];
            if parts > 1 {
                joined[slot as usize] += 1;
            }
            at[block] = (unit + blocks, 0);
        }
        at.iter().all(|(unit, _)| !is_unit(*unit))
    }

    #[test]
    fn random_launches_end_whichever_block_goes_first() {
        let (mut random, mut cuts, mut stops) = (Rng::new(8), 0, 0);
        for seed in 0..80 {
            let of = random::Options { batch: 2, heads: 4, ..random::Options::new(280, 280) };
            let made = lists(&random::mask(seed, &of), 280, Extent { batch: 2, ..heads(2, 2) });
            let blocks = 2 + random.below(40);
            let Some(found) = arranged(&made, &Bitmaps::default(), launch(blocks), f64::INFINITY) else { continue };
            check(&made.items, &without_blanks(&found.parts));
            cuts += usize::from(found.parts.slots > 0);
            (0..4).for_each(|_| assert!(ends(&found, blocks, &mut random), "seed {seed}, {blocks} blocks"));
            // the check can fail: one block alone cannot follow an order that many make
            stops += usize::from(!ends(&found, 1, &mut random));
            let mut turns: Vec<(usize, u32)> = walks(&found).concat();
            turns.sort_unstable();
            let count = turns.len();
            turns.dedup();
            assert_eq!(turns.len(), count, "an addition has a turn of its own");
        }
        assert!(cuts > 10 && stops > 10, "{cuts} cut, {stops} stop with one block");
    }

    #[test]
    fn blocks_start_at_different_query_tiles() {
        // all of a head's key tiles at once: in the order of units each would be an addition behind the one before
        let made = lists(&mask("(ge q_idx 0)"), 512, heads(4, 1));
        let (found, units) = (arrival(&made, 132), time(&made, None, launch(132)));
        let starts: std::collections::HashSet<usize> =
            walks(&found).iter().filter_map(|walk| Some(walk.first()?.0)).collect();
        assert!(starts.len() > 64, "{} starts", starts.len());
        let own = Model::new(&made, &without_blanks(&found.parts), launch(132)).run().followed.time(launch(132));
        assert!(own * 1.4 < units, "{units} -> {own}");
    }

    #[test]
    fn rows_that_differ_do_not_wait_for_each_other() {
        // a third of the blocks, in no pattern
        let mut random = Rng::new(4);
        let kept = (0..64 * 64).map(|_| random.below(10) as i64).collect();
        let kept = HostTensor::new([64, 64], Data::I64(kept)).expect("a tensor");
        let text = "(lt (load kept (floor_div q_idx 16) (floor_div kv_idx 16)) 3)";
        let mut made = lists(&parse(text, &[("kept", kept)]).expect("a mask"), 1024, heads(8, 1));
        arrange(&mut made, launch(132));
        let parts = shared(&made, 132);
        let units = time(&made, parts.as_ref(), launch(132));
        let found = arrival(&made, 132);
        let own = Model::new(&made, &without_blanks(&found.parts), launch(132)).run().followed.time(launch(132));
        assert!(own < units, "{units} -> {own}");
    }

    #[test]
    fn a_long_launch_is_not_followed() {
        let made = lists(&mask("(ge q_idx 0)"), 16 * 64, heads(80, 1));
        assert!(made.items.iter().map(|item| item.count as usize).sum::<usize>() > FOLLOWED);
        assert!(arranged(&made, &Bitmaps::default(), launch(132), f64::INFINITY).is_none());
    }
}
