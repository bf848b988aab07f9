//! The range of keys of each row, for masks whose rows keep one range: a kernel computes the bits of any number of
//! partial tiles from it.
//!
//! Invariant: exact; a row past the lengths keeps nothing; equal tiles of queries share their ranges. Plain data, tested without
//! a device. Must not know launches.

use super::plan::Plan;
use crate::analysis::ranges::row_ranges;
use crate::base::Lengths;
use crate::ir::graph::Mod;
use std::collections::HashMap;

/// Words of a row: its first key, and the one past its last.
const WORDS: usize = 2;

/// Ranges as the kernels read them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    /// The tile of ranges of every row of the block lists.
    pub start: Vec<u32>,
    /// `[n][tile_q][2]`: the distinct tiles, in keys.
    pub words: Vec<u32>,
}

impl Ranges {
    /// For the rows of `plan`, made from `mask` at this number of queries per tile. None if a row keeps more than one
    /// range.
    pub(crate) fn build(mask: &Mod, lengths: Lengths, plan: &Plan, tile_q: usize) -> Option<Ranges> {
        let mut out = Ranges::default();
        let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
        for list in (0..plan.rows()).step_by(plan.q_tiles) {
            let (b, h, _) = plan.place(list);
            let rows = row_ranges(mask, b, h, lengths)?;
            for tile in rows.chunks(tile_q) {
                let mut words: Vec<u32> = tile.iter().flat_map(|keys| [keys.start, keys.end]).collect();
                words.resize(tile_q * WORDS, 0);
                let next = known.len() as u32;
                out.start.push(*known.entry(words).or_insert_with_key(|words| {
                    out.words.extend(words);
                    next
                }));
            }
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::block_mask::{BlockMask, MaskShape};
    use crate::backends::cuda::choose::tests::{causal, window};
    use crate::backends::cuda::lists::ranges::*;
    use crate::base::{BlockSize, Control};
    use crate::ir::cell::{self, Cell};

    #[test]
    fn ranges_are_the_masks_cells() {
        for mask in [causal(), window()] {
            let lengths = Lengths::new(300, 260).unwrap();
            let shape = MaskShape { batch: 2, heads: 1, lengths };
            let size = BlockSize { q: 128, kv: 128 };
            let plan = Plan::of_mask(&BlockMask::build(Some(&mask), shape, size, &Control::new()).unwrap());
            let ranges = Ranges::build(&mask, lengths, &plan, 128).expect("one range a row");
            // both batch entries share their tiles
            assert_eq!((ranges.start.len(), ranges.words.len()), (6, 3 * 128 * WORDS));
            for (row, q) in (0..plan.rows()).flat_map(|row| (0..128).map(move |q| (row, q))) {
                let (b, h, tile) = plan.place(row);
                let at = (ranges.start[row] as usize * 128 + q) * WORDS;
                for kv in 0..260 {
                    let [b, h, q_idx, kv_idx] = [b, h, tile * 128 + q, kv].map(|x| x as i64);
                    let cell = Cell { b, h, q_idx, kv_idx, score: 0.0 };
                    let wanted = q_idx < 300 && cell::eval(&mask, &cell).as_bool();
                    assert_eq!((ranges.words[at]..ranges.words[at + 1]).contains(&(kv as u32)), wanted);
                }
            }
        }
    }
}
