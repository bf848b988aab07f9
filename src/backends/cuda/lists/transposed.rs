//! The lists of a backward launch: for every key tile the query tiles that keep some of its cells, the kept cells of
//! partial tiles, and the order in which blocks take them.
//!
//! Invariant: the transposed lists visit the same tiles as the forward lists; a key tile that reaches beyond kv_len is
//! never full. Plain data, tested without a device. Must not know launches.

use super::bitmap::{Bitmaps, List};
use super::packed::transposed;
use super::plan::Plan;
use super::words::Item;
use crate::base::{BlockSize, Lengths};
use crate::ir::graph::Mod;

/// Top bit of a run's end: every cell is kept.
const FULL: u32 = 1 << 31;

/// Lists as `backward.cuh` reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transposed {
    pub runs: Vec<[u32; 2]>,
    /// Where each row (list, key tile) starts in `runs`; one more at the end.
    pub row_start: Vec<u32>,
    pub order_start: Vec<u32>,
    /// For every tile of the lists: the number of key tiles that add to its query tile before.
    pub order: Vec<u32>,
    /// Each unit.
    pub items: Vec<Item>,
    pub kv_tiles: usize,
    /// Distinct batch entries and heads.
    pub batch: usize,
    pub heads: usize,
    q_tiles: usize,
    extent: Extent,
    /// Whether the heads of a group walk a tile before the next tile.
    together: bool,
    /// Query tiles of every row in the order in which they are walked, and whether each is full.
    rows: Vec<Vec<(u32, bool)>>,
}

/// The launch's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub batch: usize,
    pub kv_heads: usize,
    pub group: usize,
    /// Kv heads that share a section of the launch.
    pub section: usize,
    /// Whether parts of dq are added in one order.
    pub deterministic: bool,
}

/// A query tile that an item walks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Visit {
    /// Of the item's group.
    pub head: u32,
    /// Its place in the row.
    pub at: u32,
    /// The query tile.
    pub tile: u32,
    /// Key tiles that add to it before.
    pub turn: u32,
}

impl Transposed {
    /// From the forward lists at the same tile size.
    pub(crate) fn of(plan: &Plan, kv_len: usize, tile_kv: usize, extent: Extent) -> Transposed {
        let kv_tiles = kv_len.div_ceil(tile_kv);
        let whole = kv_len / tile_kv;
        let mut rows = vec![Vec::new(); plan.batch * plan.heads * kv_tiles];
        for row in 0..plan.rows() {
            let (list, q_tile) = (row / plan.q_tiles, (row % plan.q_tiles) as u32);
            for (start, end, full) in plan.runs_of(row) {
                for tile in start as usize..(end as usize).min(kv_tiles) {
                    rows[list * kv_tiles + tile].push((q_tile, full && tile < whole));
                }
            }
        }
        if extent.deterministic {
            rows.iter_mut().for_each(|row| row.reverse());
        }
        let mut made = Transposed { kv_tiles, batch: plan.batch, heads: plan.heads, rows, ..Transposed::default() };
        (made.q_tiles, made.extent) = (plan.q_tiles, extent);
        made.together = extent.deterministic && made.heads_can_be_together();
        made.write_runs(extent.deterministic);
        made.write_order(plan.q_tiles);
        made.write_items();
        made
    }

    fn write_runs(&mut self, single: bool) {
        for row in &self.rows {
            self.row_start.push(self.runs.len() as u32);
            let first = self.runs.len();
            for (tile, full) in row {
                let mark = if *full { FULL } else { 0 };
                match self.runs[first..].last_mut() {
                    Some([_, end]) if !single && *end == tile | mark => *end += 1,
                    _ => self.runs.push([*tile, (tile + 1) | mark]),
                }
            }
        }
        self.row_start.push(self.runs.len() as u32);
        if self.runs.is_empty() {
            self.runs.push([0, 0]); // never read; device buffers are not empty
        }
    }

    /// Items of a head are taken by ascending key tile if the order matters.
    fn write_order(&mut self, q_tiles: usize) {
        for list in self.rows.chunks(self.kv_tiles.max(1)) {
            let mut added = vec![0u32; q_tiles];
            for row in list {
                self.order_start.push(self.order.len() as u32);
                for (tile, _) in row {
                    self.order.push(added[*tile as usize]);
                    added[*tile as usize] += 1;
                }
            }
        }
        if self.order.is_empty() {
            self.order.push(0);
        }
    }

    fn write_items(&mut self) {
        self.items = match self.extent.deterministic {
            true => self.items_in_order(self.section()),
            false => self.by_weight(),
        };
    }

    /// Items in sections of so many heads, in each by ascending key tile.
    pub(crate) fn items_in_order(&self, section: usize) -> Vec<Item> {
        let Extent { batch, kv_heads, group, .. } = self.extent;
        let heads: Vec<(usize, usize)> = (0..batch).flat_map(|b| (0..kv_heads).map(move |h| (b, h))).collect();
        let item = |b: usize, kv_head: usize, tile: usize| {
            let own = kv_head * group..(kv_head + 1) * group;
            let count: usize = own.map(|h| self.rows[self.list(b, h) * self.kv_tiles + tile].len()).sum();
            let [batch, kv_head, tile, count] = [b, kv_head, tile, count].map(|word| word as u32);
            Item { batch, kv_head, tile, count }
        };
        let of_section = |section: &[(usize, usize)]| -> Vec<Item> {
            (0..self.kv_tiles).flat_map(|tile| section.iter().map(move |(b, h)| item(*b, *h, tile))).collect()
        };
        heads.chunks(section.max(1)).flat_map(of_section).collect()
    }

    /// Heads of a section as the launch wants it.
    pub(crate) fn section(&self) -> usize {
        self.extent.section.max(1)
    }

    /// Kv heads of all batch entries, each of which has items.
    pub(crate) fn items_heads(&self) -> usize {
        self.extent.batch * self.extent.kv_heads
    }

    /// Whether the heads of a group have one list, so that they can walk each tile together.
    pub(crate) fn heads_can_be_together(&self) -> bool {
        self.extent.group > 1 && self.heads == 1
    }

    /// Whether they do.
    pub(crate) fn together(&self) -> bool {
        self.together
    }

    /// Takes so many kv heads at once, whose groups walk tiles together or not.
    pub(crate) fn arrange(&mut self, section: usize, together: bool) {
        self.items = self.items_in_order(section);
        self.together = together;
    }

    /// Query tiles of all heads and batch entries.
    pub(crate) fn lines(&self) -> usize {
        self.extent.batch * self.extent.kv_heads * self.extent.group * self.q_tiles
    }

    /// The numbers of the query tiles that an item walks in order, of all heads and batch entries.
    pub(crate) fn walked(&self, item: &Item, together: bool) -> impl Iterator<Item = usize> {
        let (item, group) = (*item, self.extent.group);
        let together = if together { group } else { 1 };
        (0..group / together).flat_map(move |n| {
            let first = self.number(&item, n * together) * self.q_tiles;
            let row = &self.rows[self.row(&item, n * together)];
            row.iter().flat_map(move |(q, _)| (0..together).map(move |h| first + h * self.q_tiles + *q as usize))
        })
    }

    /// Items in sections of the launch, in each the heaviest first.
    pub(crate) fn by_weight(&self) -> Vec<Item> {
        let mut items = self.items_in_order(self.section());
        let of_section = self.section() * self.kv_tiles.max(1);
        items.chunks_mut(of_section).for_each(|items| items.sort_by_key(|item| std::cmp::Reverse(item.count)));
        items
    }

    /// Of each head of an item's group the query tiles that are among `count` behind the first `skip` of the item; a head without any has none.
    pub(crate) fn of_heads(&self, item: &Item, skip: usize, count: usize) -> Vec<Vec<Visit>> {
        let mut from = 0;
        let of_head = |head: usize| {
            let row = &self.rows[self.row(item, head)];
            let own = skip.clamp(from, from + row.len()) - from..(skip + count).clamp(from, from + row.len()) - from;
            from += row.len();
            own.map(|at| Visit { head: head as u32, at: at as u32, tile: row[at].0, turn: 0 }).collect()
        };
        (0..self.extent.group).map(of_head).collect()
    }

    /// The number of a visit's query tile of all heads and batch entries.
    pub(crate) fn line(&self, item: &Item, visit: &Visit) -> usize {
        self.number(item, visit.head as usize) * self.q_tiles + visit.tile as usize
    }

    /// The number of a head of an item's group, of all heads of all batch entries.
    fn number(&self, item: &Item, head: usize) -> usize {
        (item.batch as usize * self.extent.kv_heads + item.kv_head as usize) * self.extent.group + head
    }

    /// The row of an item's key tile for one head of its group.
    fn row(&self, item: &Item, head: usize) -> usize {
        let [b, kv_head, tile] = item.place().map(|i| i as usize);
        self.list(b, kv_head * self.extent.group + head) * self.kv_tiles + tile
    }

    /// Its number if each head of each batch entry has rows of its own.
    pub(crate) fn row_of_head(&self, item: &Item, head: usize) -> usize {
        self.number(item, head) * self.kv_tiles + item.tile as usize
    }

    /// How many those rows are.
    pub(crate) fn rows_of_heads(&self) -> usize {
        self.extent.batch * self.extent.kv_heads * self.extent.group * self.kv_tiles
    }

    /// The lists in which each head of each batch entry has rows of its own, visited as `rows` says, and the bits that go with them.
    pub(crate) fn visited(&self, bits: &Bitmaps, rows: &[Vec<Visit>]) -> (Transposed, Bitmaps) {
        let Extent { batch, kv_heads, group, .. } = self.extent;
        let heads = kv_heads * group;
        let mut made = Transposed { kv_tiles: self.kv_tiles, batch, heads, ..Transposed::default() };
        (made.q_tiles, made.extent) = (self.q_tiles, self.extent);
        let mut ids = Bitmaps { words: bits.words.clone(), ..Bitmaps::default() };
        for (number, visits) in rows.iter().enumerate() {
            let (head, tile) = (number / self.kv_tiles, number % self.kv_tiles);
            let old = self.list(head / heads, head % heads) * self.kv_tiles + tile;
            let row = &self.rows[old];
            // of each query tile how many partial ones stand before it
            let before = row.iter().scan(0, |n, (_, full)| Some(std::mem::replace(n, *n + usize::from(!full))));
            let before: Vec<usize> = before.collect();
            made.order_start.push(made.order.len() as u32);
            ids.start.push(ids.ids.len() as u32);
            for visit in visits {
                made.order.push(visit.turn);
                if !row[visit.at as usize].1 && !bits.start.is_empty() {
                    ids.ids.push(bits.ids[bits.start[old] as usize + before[visit.at as usize]]);
                }
            }
            made.rows.push(visits.iter().map(|visit| row[visit.at as usize]).collect());
        }
        made.write_runs(true);
        // device buffers are not empty
        [&mut made.order, &mut ids.ids].into_iter().filter(|list| list.is_empty()).for_each(|list| list.push(0));
        (made, ids)
    }

    /// Words of each list, repeated for each head of each batch entry.
    pub(crate) fn of_all_heads(&self, words: &[u32]) -> Vec<u32> {
        let each = words.len() / (self.batch * self.heads).max(1);
        let heads = self.extent.kv_heads * self.extent.group;
        let lists = (0..self.extent.batch * heads).map(|head| self.list(head / heads, head % heads));
        lists.flat_map(|list| &words[list * each..(list + 1) * each]).copied().collect()
    }

    fn list(&self, b: usize, h: usize) -> usize {
        (if self.batch == 1 { 0 } else { b }) * self.heads + if self.heads == 1 { 0 } else { h }
    }

    /// Partial tiles of all lists.
    pub(crate) fn partial_total(&self) -> usize {
        self.rows.iter().flatten().filter(|(_, full)| !full).count()
    }

    /// The bits of the partial tiles, as the threads of a backward kernel hold their cells. None: the end of the keys is all that
    /// partial tiles leave out.
    pub(crate) fn bits(&self, mask: Option<&Mod>, lengths: Lengths, tile_q: usize, tile_kv: usize) -> Bitmaps {
        let size = BlockSize { q: tile_q, kv: tile_kv };
        let partial = |row: &[(u32, bool)]| row.iter().filter(|(_, full)| !full).map(|(q, _)| *q).collect::<Vec<u32>>();
        let of_list = |(list, rows): (usize, &[Vec<(u32, bool)>])| List {
            place: (list / self.heads, list % self.heads),
            rows: (0..).zip(rows).map(|(kv, row)| partial(row).into_iter().map(|q| (q, kv)).collect()).collect(),
        };
        let lists: Vec<List> = self.rows.chunks(self.kv_tiles.max(1)).enumerate().map(of_list).collect();
        Bitmaps::of_lists(mask, lengths, size, &lists, |cells| transposed(cells, tile_q, tile_kv))
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::block_mask::{BlockMask, MaskShape};
    use crate::backends::cuda::lists::by_arrival;
    use crate::backends::cuda::lists::in_order::Launch;
    use crate::backends::cuda::lists::packed::place;
    use crate::backends::cuda::lists::transposed::*;
    use crate::base::Control;
    use crate::ir::cell::{self, Cell};
    use crate::ir::random;

    fn made(mask: &Mod, tile_q: usize, tile_kv: usize, deterministic: bool) -> (Transposed, Lengths) {
        let lengths = Lengths::new(300, 270).expect("lengths");
        let shape = MaskShape { batch: 2, heads: 4, lengths };
        let size = BlockSize { q: tile_q, kv: tile_kv };
        let plan = Plan::of_mask(&BlockMask::build(Some(mask), shape, size, &Control::new()).expect("a block mask"));
        let extent = Extent { batch: 2, kv_heads: 2, group: 2, section: 2, deterministic };
        (Transposed::of(&plan, 270, tile_kv, extent), lengths)
    }

    #[test]
    fn each_cell_is_kept_once_and_only_where_the_mask_keeps_it() {
        for (seed, tile_q, tile_kv) in [(0, 64, 128), (1, 128, 128), (2, 64, 64), (3, 32, 32), (4, 64, 128)] {
            let mask = random::mask(seed, &random::Options { batch: 2, heads: 4, ..random::Options::new(300, 270) });
            for deterministic in [false, true] {
                let (lists, lengths) = made(&mask, tile_q, tile_kv, deterministic);
                let bits = lists.bits(Some(&mask), lengths, tile_q, tile_kv);
                check(&lists, &bits, &mask, tile_q, tile_kv);
                if deterministic {
                    let launch = Launch { blocks: 5, cached: usize::MAX, tile_kv };
                    let made = by_arrival::arranged(&lists, &bits, launch, f64::INFINITY).expect("a few tiles");
                    assert_eq!((made.lists.batch, made.lists.heads), (2, 4));
                    check(&made.lists, &made.bits, &mask, tile_q, tile_kv);
                }
            }
        }
    }

    fn check(lists: &Transposed, bits: &Bitmaps, mask: &Mod, tile_q: usize, tile_kv: usize) {
        let size = 2 * tile_kv * if tile_q == 128 { 2 } else { 1 };
        for row in 0..lists.rows.len() {
            let (list, kv_tile) = (row / lists.kv_tiles, row % lists.kv_tiles);
            let mut state = vec![None; 300usize.div_ceil(tile_q)];
            let mut partial = bits.start[row] as usize;
            for [start, end] in &lists.runs[lists.row_start[row] as usize..lists.row_start[row + 1] as usize] {
                for tile in *start..end & !FULL {
                    let bitmap = (end & FULL == 0).then(|| {
                        partial += 1;
                        bits.ids[partial - 1] as usize * size
                    });
                    assert_eq!(state[tile as usize].replace(bitmap), None, "a tile is visited once");
                }
            }
            for (q, c) in (0..300).flat_map(|q| (0..tile_kv).map(move |c| (q, c))) {
                let kv = kv_tile * tile_kv + c;
                let [b, h, q_idx, kv_idx] = [list / 4, list % 4, q, kv].map(|x| x as i64);
                let wanted = kv < 270 && cell::eval(mask, &Cell { b, h, q_idx, kv_idx, score: 0.0 }).as_bool();
                let kept = match state[q / tile_q] {
                    None => false,
                    Some(None) => true,
                    Some(Some(first)) => {
                        let (word, bit) = place(tile_q, q % tile_q, c);
                        bits.words[first + word] >> bit & 1 == 1
                    }
                };
                assert_eq!(kept, wanted, "{b} {h} {q} {kv}");
            }
        }
    }

    #[test]
    fn in_order_every_part_waits_only_for_items_drawn_before() {
        let mask = random::mask(7, &random::Options { batch: 2, heads: 4, ..random::Options::new(300, 270) });
        let (lists, _) = made(&mask, 64, 64, true);
        assert_eq!(lists.items.len(), 2 * 2 * lists.kv_tiles);
        let mut added = std::collections::HashMap::new();
        for Item { batch: b, kv_head, tile, count } in &lists.items {
            let mut walked = 0;
            for h in kv_head * 2..kv_head * 2 + 2 {
                let row = lists.list(*b as usize, h as usize) * lists.kv_tiles + *tile as usize;
                for (n, (q_tile, _)) in lists.rows[row].iter().enumerate() {
                    let before = added.entry((*b, h, *q_tile)).or_insert(0);
                    assert_eq!(lists.order[lists.order_start[row] as usize + n], *before);
                    *before += 1;
                    walked += 1;
                }
                assert!(lists.rows[row].is_sorted_by(|a, b| a.0 > b.0), "from the last to the first");
            }
            assert_eq!(walked, *count);
        }
    }
}
