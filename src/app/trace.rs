//! FlashAttention along one row of query blocks, tile by tile: the visited and the skipped kv tiles, the running
//! maximum, sum and output of one query, and the memory reads, compared with unfused attention.
//!
//! Invariant: the tiles are the open mask's own; the interpreter evaluates mask_mod and score_mod. Only the products of
//! q and k are random: each is drawn from a normal distribution by a seed. Must not know the window.

use crate::analysis::block_mask::{BlockKind, BlockMask};
use crate::base::{BlockSize, Lengths};
use crate::ir::cell::{Cell, eval};
use crate::ir::graph::Mod;

/// Keys beyond which the numbers of a query are not worked out, so that a frame stays short.
const MOST: usize = 32_768;

/// A tile that is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub kv_block: usize,
    pub kind: BlockKind,
}

/// The register values after a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Running {
    /// Largest score so far.
    pub m: f64,
    /// Sum of exp(score - m).
    pub l: f64,
    /// The output's first component, not yet divided by l.
    pub o: f64,
    /// Keys of the tile that the query may attend to.
    pub kept: usize,
}

/// The whole way of one row of query blocks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trace {
    pub q_block: usize,
    pub q_idx: usize,
    /// Computed tiles, in the order in which they are stepped.
    pub tiles: Vec<Tile>,
    /// kv tiles there are.
    pub all: usize,
    /// After each tile; None if there are too many keys.
    pub running: Option<Vec<Running>>,
    /// Bytes of K and V in a tile.
    pub tile_bytes: usize,
    /// Bytes that the same rows read and write with all scores written out.
    pub eager_bytes: usize,
}

/// The inputs of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub blocks: &'a BlockMask,
    pub mask: Option<&'a Mod>,
    pub score: Option<&'a Mod>,
    pub lengths: Lengths,
    pub b: usize,
    pub h: usize,
    pub q_idx: usize,
    /// head_dim of K and of V.
    pub dims: [usize; 2],
    pub bytes: usize,
}

/// Works it out.
pub(crate) fn trace(of: &Question<'_>) -> Trace {
    let size = of.blocks.block_size();
    let q_block = of.q_idx / size.q;
    let runs = of.blocks.runs(of.b, of.h, q_block);
    let tiles: Vec<Tile> =
        runs.flat_map(|run| (run.start..run.end).map(move |kv_block| Tile { kv_block, kind: run.kind })).collect();
    let running = (tiles.len() * size.kv <= MOST).then(|| running(of, &tiles, size));
    let key_bytes = (of.dims[0] + of.dims[1]) * of.bytes;
    let rows = size.q.min(of.lengths.q_len - q_block * size.q);
    // float32 scores are written, read for the softmax, written as probabilities and read again
    let eager_bytes = of.lengths.kv_len * key_bytes + rows * of.lengths.kv_len * 4 * 4;
    Trace {
        q_block,
        q_idx: of.q_idx,
        all: of.lengths.kv_len.div_ceil(size.kv),
        tiles,
        running,
        tile_bytes: size.kv * key_bytes,
        eager_bytes,
    }
}

fn running(of: &Question<'_>, tiles: &[Tile], size: BlockSize) -> Vec<Running> {
    let (mut m, mut l, mut o) = (f64::NEG_INFINITY, 0.0, 0.0);
    let one = |tile: &Tile| {
        let keys = tile.kv_block * size.kv..((tile.kv_block + 1) * size.kv).min(of.lengths.kv_len);
        let scores: Vec<(usize, f64)> = keys.filter_map(|kv_idx| Some((kv_idx, score(of, kv_idx)?))).collect();
        let top = scores.iter().fold(m, |top, (_, s)| top.max(*s));
        if top > f64::NEG_INFINITY {
            let shrink = (m - top).exp();
            (l, o) = (l * shrink, o * shrink);
            for (kv_idx, s) in &scores {
                let p = (s - top).exp();
                (l, o) = (l + p, o + p * normal(*kv_idx as u64, 2));
            }
            m = top;
        }
        Running { m, l, o, kept: scores.len() }
    };
    tiles.iter().map(one).collect()
}

/// The score of one key after the mods; None if the mask drops it.
fn score(of: &Question<'_>, kv_idx: usize) -> Option<f64> {
    let plain = normal((of.q_idx as u64) << 32 | kv_idx as u64, 1);
    let cell = Cell { b: of.b as i64, h: of.h as i64, q_idx: of.q_idx as i64, kv_idx: kv_idx as i64, score: plain };
    if !of.mask.is_none_or(|m| eval(m, &cell).as_bool()) {
        return None;
    }
    Some(of.score.map_or(plain, |s| eval(s, &cell).as_float()))
}

/// A number from about a normal distribution, always the same for a place.
fn normal(place: u64, stream: u64) -> f64 {
    let mut word = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03);
    let mut sum = 0.0;
    for _ in 0..6 {
        word ^= word >> 30;
        word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word ^= word >> 27;
        sum += (word >> 11) as f64 / (1u64 << 53) as f64;
    }
    // six uniforms have a variance of a half
    (sum - 3.0) * std::f64::consts::SQRT_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::block_mask::MaskShape;
    use crate::analysis::examples;
    use crate::base::Control;

    fn question<'a>(blocks: &'a BlockMask, mask: &'a Mod, q_idx: usize) -> Question<'a> {
        let lengths = Lengths::new(256, 256).unwrap();
        Question { blocks, mask: Some(mask), score: None, lengths, b: 0, h: 0, q_idx, dims: [64, 64], bytes: 2 }
    }

    #[test]
    fn the_way_ends_at_the_softmax_of_the_whole_row() {
        let window = examples::sliding_window(40);
        let lengths = Lengths::new(256, 256).unwrap();
        let shape = MaskShape::broadcast(lengths);
        let blocks = BlockMask::build(Some(&window), shape, BlockSize::square(32), &Control::new()).unwrap();
        let of = question(&blocks, &window, 150);
        let trace = trace(&of);
        let wanted: Vec<_> = (0..8).filter(|n| blocks.kind(0, 0, 4, *n).is_some()).collect();
        assert_eq!(trace.tiles.iter().map(|t| t.kv_block).collect::<Vec<_>>(), wanted);
        assert!(trace.tiles.len() < trace.all && trace.all == 8);
        let all: Vec<(usize, f64)> = (0..256).filter_map(|kv| Some((kv, score(&of, kv)?))).collect();
        let m = all.iter().fold(f64::NEG_INFINITY, |m, s| m.max(s.1));
        let l: f64 = all.iter().map(|s| (s.1 - m).exp()).sum();
        let o: f64 = all.iter().map(|s| (s.1 - m).exp() * normal(s.0 as u64, 2)).sum();
        let last = *trace.running.as_ref().unwrap().last().unwrap();
        assert!((last.m - m).abs() < 1e-12 && (last.l / l - 1.0).abs() < 1e-12 && (last.o - o).abs() < 1e-9);
        assert_eq!(trace.running.unwrap().iter().map(|r| r.kept).sum::<usize>(), all.len());
        assert_eq!((trace.tile_bytes, trace.eager_bytes), (32 * 128 * 2, 256 * 128 * 2 + 32 * 256 * 16));
    }

    #[test]
    fn what_is_drawn_is_about_normal() {
        let drawn: Vec<f64> = (0..4000).map(|n| normal(n, 1)).collect();
        let mean = drawn.iter().sum::<f64>() / 4000.0;
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4000.0;
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.08, "{mean} {variance}");
    }
}
