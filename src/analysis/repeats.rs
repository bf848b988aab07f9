//! Partial tiles of a mask that hold the same cells, found from its comparisons: the tiles of a diagonal, or those at which one document
//! begins.
//!
//! Invariant: tiles that are called equal hold equal cells; others may be equal, too. No cell is evaluated. Must not know kernels.

use super::interval::{Cells, Cuts, Program};
use crate::base::{BlockSize, Lengths};
use crate::ir::graph::Mod;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;

/// Tiles below which to look for equal ones takes longer than to evaluate all.
const FEW: usize = 8;

/// Tokens of a tile, as far as they are inside the length.
pub fn tokens(tile: u32, size: usize, length: usize) -> Range<usize> {
    let first = tile as usize * size;
    first..(first + size).min(length)
}

/// For each tile (query tile, key tile) of a batch entry and head the number of the first one that is known to hold the same cells, which may
/// be its own. Tiles may come in any order, and reach beyond the lengths.
pub fn firsts(mask: &Mod, (b, h): (usize, usize), lengths: Lengths, size: BlockSize, tiles: &[(u32, u32)]) -> Vec<u32> {
    let mut firsts: Vec<u32> = (0..tiles.len() as u32).collect();
    if tiles.len() < FEW {
        return firsts;
    }
    let program = Program::new(mask);
    let whole = Cells::new(b, h, 0..lengths.q_len, 0..lengths.kv_len);
    let ends = |range: Range<usize>| (range.start as i64, range.end as i64 - 1);
    let columns = lengths.kv_len.div_ceil(size.kv) as u32;
    let kv: Vec<(i64, i64)> = (0..columns).map(|tile| ends(tokens(tile, size.kv, lengths.kv_len))).collect();
    let Some(cuts) = Cuts::new(&program, &whole, &kv) else { return firsts };
    let mut rows = cuts.rows(&program);
    // a row is entered once
    let mut order: Vec<usize> = (0..tiles.len()).collect();
    order.sort_by_key(|at| tiles[*at].0);
    let (mut entered, mut known) = (None, HashMap::<SmallVec<[i64; 8]>, u32>::new());
    for at in order {
        let (q_tile, kv_tile) = tiles[at];
        if entered != Some(q_tile) {
            rows.enter(&whole, ends(tokens(q_tile, size.q, lengths.q_len)));
            entered = Some(q_tile);
        }
        if let Some(key) = rows.key(kv_tile as usize, kv[kv_tile as usize]) {
            firsts[at] = *known.entry(key).or_insert(at as u32);
        }
    }
    firsts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::HostTensor;
    use crate::base::tensor::Data;
    use crate::ir::cell::{self, Cell};
    use crate::ir::random;
    use crate::ir::text::parse;

    /// Every tile of a mask against the one that is said to equal it, cell by cell; how many need to be looked at.
    fn check(mask: &Mod, (q_len, kv_len): (usize, usize), size: BlockSize, backwards: bool) -> (usize, usize) {
        let lengths = Lengths::new(q_len, kv_len).expect("lengths");
        let (rows, columns) = (q_len.div_ceil(size.q) as u32, kv_len.div_ceil(size.kv) as u32);
        let mut tiles: Vec<(u32, u32)> = (0..rows).flat_map(|q| (0..columns).map(move |kv| (q, kv))).collect();
        if backwards {
            tiles.sort_by_key(|(q, kv)| (*kv, rows - q));
        }
        let cells = |(q_tile, kv_tile): (u32, u32)| -> Vec<Option<bool>> {
            let (first_q, first_kv) = (q_tile as usize * size.q, kv_tile as usize * size.kv);
            let of = |q: usize, kv: usize| {
                let cell = Cell { b: 1, h: 2, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 };
                (q < q_len && kv < kv_len).then(|| cell::eval(mask, &cell).as_bool())
            };
            (0..size.q).flat_map(|q| (0..size.kv).map(move |kv| of(first_q + q, first_kv + kv))).collect()
        };
        let firsts = firsts(mask, (1, 2), lengths, size, &tiles);
        for (tile, first) in tiles.iter().zip(&firsts) {
            assert_eq!(cells(*tile), cells(tiles[*first as usize]), "{tile:?} and {:?}", tiles[*first as usize]);
        }
        (firsts.iter().enumerate().filter(|(at, first)| *at as u32 == **first).count(), tiles.len())
    }

    const SIZE: BlockSize = BlockSize { q: 16, kv: 8 };

    fn documents(ids: Vec<i64>) -> Mod {
        let docs = HostTensor::vector(Data::I64(ids));
        parse("(and (ge q_idx kv_idx) (eq (load docs q_idx) (load docs kv_idx)))", &[("docs", docs)]).expect("a mask")
    }

    #[test]
    fn tiles_of_random_masks_equal_those_they_are_said_to() {
        for seed in 0..60 {
            let portable = seed % 2 == 0;
            let options = random::Options { batch: 2, heads: 4, portable, ..random::Options::new(75, 70) };
            check(&random::mask(seed, &options), (75, 70), SIZE, seed % 3 == 0);
        }
    }

    #[test]
    fn few_tiles_of_usual_masks_are_looked_at() {
        let text = |text: &str| parse(text, &[]).expect("a mask");
        let (lengths, square) = ((256, 256), BlockSize { q: 16, kv: 16 });
        // each offset of two tiles is one; and full and empty ones
        assert_eq!(check(&text("(ge q_idx kv_idx)"), lengths, square, false), (3, 256));
        let ids = (0..256).map(|token| token / 100).collect();
        let (looked, all) = check(&documents(ids), lengths, square, true);
        // empty, full, diagonal; two tiles at which both tokens change, what is left and right of these, above and below
        assert!(looked <= 12, "{looked} of {all}");
    }

    #[test]
    fn numbers_at_the_ends_of_their_type_are_not_taken_for_equal() {
        let mut ids = vec![i64::MAX; 40];
        ids.extend([i64::MIN; 40]);
        ids.extend((0..40).map(|n| i64::MAX - n / 8));
        check(&documents(ids.clone()), (120, 120), SIZE, false);
        let far = HostTensor::vector(Data::I64(ids));
        let mask = parse("(lt (sub (load far q_idx) kv_idx) (load far kv_idx))", &[("far", far)]).expect("a mask");
        check(&mask, (120, 120), SIZE, false);
    }
}
