//! The kept cells of partial tiles, as bits in the order in which a warpgroup's threads hold their scores.
//!
//! Invariant: equal tiles share one bitmap; a cell outside the lengths is never kept. Only the launch then depends on
//! the mask: any mask runs the same compiled kernel. Plain data, tested without a device. Must not know launches.

use super::packed::{WORDS, packed};
use super::plan::Plan;
use crate::backends::cuda::variant::spec::MaskKind;
use crate::base::Lengths;
use crate::ir::graph::Mod;
use crate::ir::tiles::Program;
use rayon::prelude::*;
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
        assert!(tile_kv <= 128, "a word holds 32 columns");
        let program = Program::new(mask);
        let tiles: Vec<Vec<Vec<u32>>> = (0..plan.rows())
            .into_par_iter()
            .map_init(
                || vec![0u8; tile_q * tile_kv],
                |cells, row| {
                    let (b, h, tile) = plan.place(row);
                    let q = tile * tile_q..((tile + 1) * tile_q).min(lengths.q_len);
                    let evaluate = |kv_tile: u32| {
                        let first = kv_tile as usize * tile_kv;
                        cells.fill(0);
                        program.mask_rows(
                            b,
                            h,
                            q.clone(),
                            first..(first + tile_kv).min(lengths.kv_len),
                            cells,
                            tile_kv,
                        );
                        packed(cells, tile_kv)
                    };
                    plan.partial_tiles(row).map(evaluate).collect()
                },
            )
            .collect();
        Self::join(tiles)
    }

    /// From the words of every row's partial tiles, equal ones once.
    pub(crate) fn join(rows: Vec<Vec<Vec<u32>>>) -> Bitmaps {
        let mut out = Bitmaps::default();
        let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
        for row in rows {
            out.start.push(out.ids.len() as u32);
            for tile in row {
                let next = known.len() as u32;
                out.ids.push(*known.entry(tile).or_insert_with_key(|tile| {
                    out.words.extend(tile);
                    next
                }));
            }
        }
        // device buffers are not empty
        if out.ids.is_empty() {
            out.ids.push(0);
            out.words.resize(64 * WORDS, 0);
        }
        out
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

#[cfg(test)]
mod tests {
    use crate::analysis::block_mask::{BlockMask, MaskShape};
    use crate::backends::cuda::choose::tests::causal;
    use crate::backends::cuda::lists::bitmap::*;
    use crate::base::{BlockSize, Control};
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
