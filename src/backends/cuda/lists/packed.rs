//! Cells of a tile as bits in the order in which threads hold scores.
//!
//! Invariant: a bit is set where its cell is 1; a new mask packs thousands of tiles before its first launch, so that no cell is looked at
//! alone. Must not know masks, lists or launches.

/// Words of a row of a forward tile: word t holds the columns `8j + 2t + e`, at bit `2j + e`.
pub(super) const WORDS: usize = 4;

/// Threads t that share a row, or a column, of eight cells: two cells each.
const PAIRS: usize = 4;

/// Eight bytes of 0 or 1 as eight bits, the first one lowest.
fn bits(bytes: [u8; 8]) -> u32 {
    // byte m goes to bit 56 + m; no two products meet at one bit
    (u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

/// Rows of bytes of 0 or 1, `tile_kv` each, as words for a forward kernel.
pub(super) fn packed(cells: &[u8], tile_kv: usize) -> Vec<u32> {
    assert!(tile_kv.is_multiple_of(8) && tile_kv <= 128, "a word holds 32 columns of whole groups");
    let mut words = vec![0u32; cells.len() / tile_kv * WORDS];
    for (row, words) in cells.chunks_exact(tile_kv).zip(words.chunks_exact_mut(WORDS)) {
        // eight groups are one number: its byte j is group j
        let mut halves = [0u64; 2];
        for (j, group) in row.as_chunks::<8>().0.iter().enumerate() {
            halves[j / 8] |= u64::from(bits(*group)) << (8 * (j % 8));
        }
        for (t, word) in words.iter_mut().enumerate() {
            *word = pairs(halves[0] >> (2 * t)) | pairs(halves[1] >> (2 * t)) << 16;
        }
    }
    words
}

/// The lowest two bits of each byte, one pair after the other.
fn pairs(number: u64) -> u32 {
    let mut x = number & 0x0303_0303_0303_0303;
    x = (x | x >> 6) & 0x000f_000f_000f_000f;
    x = (x | x >> 12) & 0x0000_00ff_0000_00ff;
    (x | x >> 24) as u32 & 0xffff
}

/// Where the bit of a query and a key of a backward tile is: its word and its place in it. Thread `32 w + 4 i + t` holds keys `16 w + i`
/// and 8 more, and queries `8 j + 2 t + e`.
#[cfg(test)]
pub(super) fn place(tile_q: usize, query: usize, key: usize) -> (usize, usize) {
    let (w, i, r) = (key / 16, key % 8, key / 8 % 2);
    let (j, t, e) = (query / 8, query / 2 % PAIRS, query % 2);
    let thread = 32 * w + 4 * i + t;
    match tile_q {
        128 => (2 * thread + r, 2 * j + e),
        _ => (thread, r * tile_q / 4 + 2 * j + e),
    }
}

/// Rows of bytes of 0 or 1, a query's `tile_kv` each, as words for a backward kernel, whose threads hold keys and pairs of queries.
pub(super) fn transposed(cells: &[u8], tile_q: usize, tile_kv: usize) -> Vec<u32> {
    assert!(tile_q.is_multiple_of(8) && tile_q <= 128 && tile_kv.is_multiple_of(16), "threads hold whole groups");
    let own = tile_q / PAIRS;
    let wide = tile_q == 128;
    let mut words = vec![0u32; 2 * tile_kv * if wide { 2 } else { 1 }];
    for t in 0..PAIRS {
        for first in (0..tile_kv).step_by(32) {
            let keys = (tile_kv - first).min(32);
            let mut square = [0u32; 32];
            for (n, line) in square[..own].iter_mut().enumerate() {
                let query = n / 2 * 8 + 2 * t + n % 2;
                let groups = &cells[query * tile_kv + first..][..keys];
                for (g, group) in groups.as_chunks::<8>().0.iter().enumerate() {
                    *line |= bits(*group) << (8 * g);
                }
            }
            turn(&mut square);
            for (key, line) in (first..).zip(&square[..keys]) {
                let (thread, r) = (32 * (key / 16) + 4 * (key % 8) + t, key / 8 % 2);
                if wide {
                    words[2 * thread + r] = *line;
                } else {
                    words[thread] |= line << (r * own);
                }
            }
        }
    }
    words
}

/// Swaps rows and columns of 32 x 32 bits: bit c of row r becomes bit r of row c. Quarters are swapped, then those of each quarter, and so on.
fn turn(square: &mut [u32; 32]) {
    let (mut step, mut low) = (16, 0x0000_ffffu32);
    while step != 0 {
        for r in (0..32).filter(|r| r & step == 0) {
            let swapped = (square[r] >> step ^ square[r + step]) & low;
            square[r] ^= swapped << step;
            square[r + step] ^= swapped;
        }
        step /= 2;
        low ^= low << step;
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::lists::packed::*;
    use crate::base::rng::Rng;

    /// Cells of which about one in `of` is kept.
    fn cells(random: &mut Rng, count: usize, of: usize) -> Vec<u8> {
        (0..count).map(|_| u8::from(random.below(of) == 0)).collect()
    }

    #[test]
    fn each_cell_of_a_forward_tile_has_its_bit() {
        let mut random = Rng::new(3);
        for (tile_kv, of) in [(8, 2), (16, 5), (40, 2), (64, 1), (80, 3), (128, 2), (128, 90)] {
            let cells = cells(&mut random, 128 * tile_kv, of);
            let words = packed(&cells, tile_kv);
            for (at, cell) in cells.iter().enumerate() {
                let (row, c) = (at / tile_kv, at % tile_kv);
                let bit = words[row * WORDS + c / 2 % 4] >> (2 * (c / 8) + c % 2) & 1;
                assert_eq!(bit, u32::from(*cell), "row {row} column {c} of {tile_kv}");
            }
        }
    }

    #[test]
    fn each_cell_of_a_backward_tile_has_its_bit_and_no_other_is_set() {
        let mut random = Rng::new(4);
        let tiles = [(32, 32, 2), (64, 16, 3), (64, 48, 2), (64, 64, 1), (64, 128, 7), (128, 64, 2), (128, 128, 90)];
        for (tile_q, tile_kv, of) in tiles {
            let cells = cells(&mut random, tile_q * tile_kv, of);
            let words = transposed(&cells, tile_q, tile_kv);
            for (at, cell) in cells.iter().enumerate() {
                let (word, bit) = place(tile_q, at / tile_kv, at % tile_kv);
                assert_eq!(words[word] >> bit & 1, u32::from(*cell), "cell {at} of {tile_q} x {tile_kv}");
            }
            let kept: u32 = cells.iter().map(|cell| u32::from(*cell)).sum();
            assert_eq!(words.iter().map(|word| word.count_ones()).sum::<u32>(), kept);
        }
    }
}
