//! The kept cells of partial tiles, as bits in the order in which a warpgroup's threads hold their scores.
//!
//! Invariant: equal tiles share one bitmap; a cell outside the lengths is never kept. Only the launch then depends on
//! the mask: any mask runs the same compiled kernel. Plain data, tested without a device. Must not know launches.

use super::packed::{WORDS, packed};
use super::plan::Plan;
use crate::analysis::repeats::{self, tokens};
use crate::analysis::spread;
use crate::backends::cuda::variant::spec::MaskKind;
use crate::base::{BlockSize, Lengths};
use crate::ir::graph::Mod;
use crate::ir::tiles::Program;
use std::collections::HashMap;

/// Partial tiles up to which bitmaps are made of a mask whose rows keep a range of keys each: 32 MB of them at most, and a fraction of a
/// second of evaluation. Ranges take its place beyond.
pub(crate) const FEW_TILES: usize = 16_384;

/// Partial tiles up to which bitmaps are made of any other mask: 512 MB of them if no two are equal. The formula takes their place beyond,
/// and a kernel with the formula takes 1.4 to 3 times as long.
pub(crate) const MOST_TILES: usize = 1 << 18;

/// The limits of the product: of few tiles, and of most.
pub(crate) const LIMITS: [usize; 2] = [FEW_TILES, MOST_TILES];

/// The form in which a mask with that many partial tiles goes in; `keeps_ranges` is asked where it matters.
pub(crate) fn form(partial: u64, [few, most]: [usize; 2], keeps_ranges: impl FnOnce() -> bool) -> MaskKind {
    if partial <= few as u64 {
        MaskKind::Bitmap
    } else if keeps_ranges() {
        MaskKind::Interval
    } else if partial <= most as u64 {
        MaskKind::Bitmap
    } else {
        MaskKind::Formula
    }
}

/// Bitmaps as `flex_sm90.cu` reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bitmaps {
    /// Where each row's partial tiles begin in `ids`.
    pub start: Vec<u32>,
    /// The bitmap of every partial tile, in the order of the lists.
    pub ids: Vec<u32>,
    /// `[n][tile_q][4]`: the distinct bitmaps.
    pub words: Vec<u32>,
}

impl Bitmaps {
    /// Evaluates the partial tiles of `plan`, which was made of `mask` at `tile_q` x `tile_kv` (at most 128 wide).
    pub(crate) fn build(mask: &Mod, lengths: Lengths, plan: &Plan, tile_q: usize, tile_kv: usize) -> Bitmaps {
        let size = BlockSize { q: tile_q, kv: tile_kv };
        let of_row = |row: usize| plan.partial_tiles(row).map(move |kv| ((row % plan.q_tiles) as u32, kv)).collect();
        let of_list = |first: usize| {
            let (b, h, _) = plan.place(first);
            List { place: (b, h), rows: (first..first + plan.q_tiles).map(of_row).collect() }
        };
        let lists: Vec<List> = (0..plan.rows()).step_by(plan.q_tiles).map(of_list).collect();
        Self::of_lists(Some(mask), lengths, size, &lists, |cells| packed(cells, tile_kv))
    }

    /// Evaluates tiles and packs the cells of each, `[q][kv]` bytes of 0 or 1. Without a mask all cells inside the lengths are kept. Tiles
    /// that are known to equal another are not evaluated.
    pub(super) fn of_lists(
        mask: Option<&Mod>,
        lengths: Lengths,
        size: BlockSize,
        lists: &[List],
        pack: impl Fn(&[u8]) -> Vec<u32> + Sync,
    ) -> Bitmaps {
        let tiles: Vec<Vec<(u32, u32)>> = lists.iter().map(|list| list.rows.concat()).collect();
        let of_list = |(): &mut (), at: usize| -> Vec<u32> {
            match mask {
                Some(mask) => repeats::firsts(mask, lists[at].place, lengths, size, &tiles[at]),
                None => (0..tiles[at].len() as u32).collect(),
            }
        };
        let firsts: Vec<Vec<u32>> = spread::in_order(lists.len(), || (), of_list);
        let places = evaluated(&firsts);
        let program = mask.map(Program::new);
        let words_of = |cells: &mut Vec<u8>, place: usize| {
            let (list, at) = places[place];
            cells.fill(0);
            fill(program.as_ref(), lists[list].place, lengths, size, tiles[list][at], cells);
            pack(cells)
        };
        let words: Vec<Vec<u32>> = spread::in_order(places.len(), || vec![0u8; size.q * size.kv], words_of);
        let mut of_tile: Vec<Vec<&[u32]>> = tiles.iter().map(|tiles| vec![&[][..]; tiles.len()]).collect();
        for ((list, at), words) in places.iter().zip(&words) {
            of_tile[*list][*at] = words;
        }
        let mut joined = Joined::default();
        for ((list, firsts), of_tile) in lists.iter().zip(&firsts).zip(&of_tile) {
            let mut firsts = firsts.iter();
            list.rows
                .iter()
                .for_each(|row| joined.row(firsts.by_ref().take(row.len()).map(|at| of_tile[*at as usize])));
        }
        joined.finish()
    }

    /// From the words of every row's partial tiles, equal ones once.
    pub(crate) fn join(rows: &[Vec<Vec<u32>>]) -> Bitmaps {
        let mut joined = Joined::default();
        rows.iter().for_each(|row| joined.row(row.iter().map(Vec::as_slice)));
        joined.finish()
    }

    /// `bitmap_start`, `bitmap_ids` and `bitmaps` of the kernels' parameters. None is empty.
    pub(crate) fn arrays(&self) -> [&[u32]; 3] {
        [&self.start, &self.ids, &self.words]
    }

    /// The same in the order of the copies of `flex_sm90.cu`: both words of a thread next to each other, thread by
    /// thread of each warpgroup's 64 rows, with the swizzle of 128-byte lines undone, which the copy applies again.
    /// Rows are whole warpgroups.
    pub(crate) fn swizzled(self) -> Bitmaps {
        let mut words = vec![0; self.words.len()];
        for (index, word) in self.words.iter().enumerate() {
            let (row, column) = (index / WORDS, index % WORDS);
            let thread = row / 16 % 4 * 32 + row % 8 * 4 + column;
            let place = thread ^ (thread / 16 * 2);
            words[row / 64 * 64 * WORDS + 2 * place + row / 8 % 2] = *word;
        }
        Bitmaps { words, ..self }
    }
}

/// Partial tiles of a batch entry and head.
pub(super) struct List {
    /// Batch entry and head.
    pub place: (usize, usize),
    /// Of each row of the list the tiles: query tile and key tile.
    pub rows: Vec<Vec<(u32, u32)>>,
}

/// List and number of the tiles that are the first of those that equal them.
fn evaluated(firsts: &[Vec<u32>]) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for (list, firsts) in firsts.iter().enumerate() {
        let own = firsts.iter().enumerate().filter(|(at, first)| *at == **first as usize);
        places.extend(own.map(|(at, _)| (list, at)));
    }
    places
}

/// Sets the kept cells of a tile, as far as it is inside the lengths.
fn fill(
    program: Option<&Program>,
    (b, h): (usize, usize),
    lengths: Lengths,
    size: BlockSize,
    (q_tile, kv_tile): (u32, u32),
    cells: &mut [u8],
) {
    let (q, kv) = (tokens(q_tile, size.q, lengths.q_len), tokens(kv_tile, size.kv, lengths.kv_len));
    match program {
        Some(program) => program.mask_rows(b, h, q, kv, cells, size.kv),
        None => (0..q.len()).for_each(|r| cells[r * size.kv..][..kv.len()].fill(1)),
    }
}

/// Bitmaps so far.
#[derive(Default)]
struct Joined<'a> {
    out: Bitmaps,
    /// By their words.
    known: HashMap<&'a [u32], u32>,
    /// By where their words are: tiles that were not evaluated have those of another.
    places: HashMap<*const u32, u32>,
}

impl<'a> Joined<'a> {
    /// A row with the words of its partial tiles.
    fn row(&mut self, tiles: impl Iterator<Item = &'a [u32]>) {
        self.out.start.push(self.out.ids.len() as u32);
        for tile in tiles {
            let id = *self.places.entry(tile.as_ptr()).or_insert_with(|| {
                let next = self.known.len() as u32;
                *self.known.entry(tile).or_insert_with(|| {
                    self.out.words.extend(tile);
                    next
                })
            });
            self.out.ids.push(id);
        }
    }

    fn finish(mut self) -> Bitmaps {
        // device buffers are not empty
        if self.out.ids.is_empty() {
            self.out.ids.push(0);
            self.out.words.resize(64 * WORDS, 0);
        }
        self.out
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::block_mask::{BlockMask, MaskShape};
    use crate::backends::cuda::choose::tests::causal;
    use crate::backends::cuda::lists::bitmap::*;
    use crate::base::Control;
    use crate::ir::cell::{self, Cell};
    use crate::ir::random;

    /// Every partial tile's bits against the interpreter, cell by cell; the number of distinct bitmaps.
    fn check(mask: &Mod, q_len: usize, kv_len: usize, tile_q: usize, tile_kv: usize) -> usize {
        let lengths = Lengths::new(q_len, kv_len).unwrap();
        let shape = MaskShape { batch: 2, heads: 2, lengths };
        let blocks =
            BlockMask::build(Some(mask), shape, BlockSize { q: tile_q, kv: tile_kv }, &Control::new()).unwrap();
        let plan = Plan::of_mask(&blocks);
        let bitmaps = Bitmaps::build(mask, lengths, &plan, tile_q, tile_kv);
        for row in 0..plan.rows() {
            let (b, h, tile) = plan.place(row);
            for (n, kv_tile) in plan.partial_tiles(row).enumerate() {
                let id = bitmaps.ids[bitmaps.start[row] as usize + n] as usize;
                for (r, c) in (0..tile_q).flat_map(|r| (0..tile_kv).map(move |c| (r, c))) {
                    let (q, kv) = (tile * tile_q + r, kv_tile as usize * tile_kv + c);
                    let inside = q < q_len && kv < kv_len;
                    let [b, h, q_idx, kv_idx] = [b, h, q, kv].map(|x| x as i64);
                    let cell = Cell { b, h, q_idx, kv_idx, score: 0.0 };
                    let wanted = inside && cell::eval(mask, &cell).as_bool();
                    let word = bitmaps.words[(id * tile_q + r) * WORDS + (c / 2) % 4];
                    assert_eq!(word >> (2 * (c / 8) + c % 2) & 1 == 1, wanted, "b {b} h {h} q {q} kv {kv}");
                }
            }
        }
        bitmaps.words.len() / (tile_q * WORDS)
    }

    #[test]
    fn bits_are_the_masks_cells() {
        for seed in 0..12 {
            let mask = random::mask(seed, &random::Options::new(150, 130));
            check(&mask, 150, 130, 128, 128);
            check(&mask, 150, 130, 64, 80);
        }
    }

    #[test]
    fn a_swizzled_copy_puts_both_words_of_a_thread_beside_each_other() {
        let words: Vec<u32> = (0..2 * 128 * WORDS as u32).collect();
        let swizzled = Bitmaps { words: words.clone(), ..Bitmaps::default() }.swizzled().words;
        for (tile, group) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let first = (tile * 128 + group * 64) * WORDS;
            // as in the copy: the number of the line of 128 bytes decides the place of 16 bytes
            let copied: Vec<u32> = (0..64 * WORDS).map(|at| swizzled[first + (at ^ (at / 32 % 8 * 4))]).collect();
            for (thread, pair) in copied.as_chunks::<2>().0.iter().enumerate() {
                let row = thread / 32 * 16 + thread % 32 / 4;
                let word = |row: usize| words[first + row * WORDS + thread % 4];
                assert_eq!(*pair, [word(row), word(row + 8)], "thread {thread}");
            }
        }
    }

    #[test]
    fn equal_tiles_share_a_bitmap() {
        assert_eq!(check(&causal(), 512, 512, 128, 128), 1);
    }
}
