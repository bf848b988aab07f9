//! Orders of a grid's tokens, and the number of blocks that a head needs under each.
//!
//! Invariant: an order is a permutation: the same cells, other blocks. Tokens outside the grid keep their places. Must
//! not know masks.

use crate::base::{BlockSize, Control, Diagnostic};
use crate::quality::head::Head;
use crate::quality::masses::masses;
use crate::quality::profile::Grid;
use serde::{Deserialize, Serialize};

/// How the grid's tokens follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Frame by frame, row by row: as they are.
    Raster,
    /// Column by column of all frames: for temporal heads of SVG (arXiv:2502.01776).
    PlaceMajor,
    /// Tile by tile, raster inside (STA arXiv:2502.04507, VSA arXiv:2505.13389).
    Tiles([usize; 3]),
    /// By interleaved bits of the three places.
    Morton,
    /// Along a Hilbert curve of three dimensions (DFSAttn, arXiv:2605.23445).
    Hilbert,
}

impl Order {
    /// Those that are compared.
    pub const ALL: [Order; 6] = [
        Order::Raster,
        Order::PlaceMajor,
        Order::Tiles([4, 4, 4]),
        Order::Tiles([1, 8, 16]),
        Order::Morton,
        Order::Hilbert,
    ];

    /// `tiles 4x4x4`.
    pub fn name(self) -> String {
        match self {
            Order::Raster => "raster".into(),
            Order::PlaceMajor => "place by place".into(),
            Order::Tiles([t, h, w]) => format!("tiles {t}x{h}x{w}"),
            Order::Morton => "Morton".into(),
            Order::Hilbert => "Hilbert".into(),
        }
    }

    /// The permutation over `tokens` tokens: place n holds token `order[n]`.
    pub fn permutation(self, grid: Grid, tokens: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..tokens).collect();
        let inside = grid.tokens().start.min(tokens)..grid.tokens().end.min(tokens);
        order[inside].sort_by_key(|token| self.key(grid.place(*token), grid.extents));
        order
    }

    fn key(self, at: [usize; 3], extents: [usize; 3]) -> [u64; 4] {
        let [t, h, w] = at.map(|n| n as u64);
        match self {
            Order::Raster => [t, h, w, 0],
            Order::PlaceMajor => [h, w, t, 0],
            Order::Tiles(tile) => {
                let [tt, th, tw] = tile.map(|n| n as u64);
                let rest = ((t % tt) * th + h % th) * tw + w % tw;
                [t / tt, h / th, w / tw, rest]
            }
            Order::Morton => [interleaved(at), 0, 0, 0],
            Order::Hilbert => {
                let bits = extents.iter().max().map_or(1, |n| usize::BITS - (n - 1).leading_zeros()).max(1);
                [hilbert(at.map(|n| n as u64), bits), 0, 0, 0]
            }
        }
    }
}

/// Bits of three numbers, interleaved.
fn interleaved(at: [usize; 3]) -> u64 {
    (0..21).map(|bit| (0..3).map(|n| ((at[n] as u64 >> bit) & 1) << (3 * bit + 2 - n)).sum::<u64>()).sum()
}

/// Distance along a Hilbert curve of three dimensions (Skilling, "Programming the Hilbert curve", 2004).
fn hilbert(mut x: [u64; 3], bits: u32) -> u64 {
    let mut q = 1u64 << (bits - 1);
    while q > 1 {
        let p = q - 1;
        for i in 0..3 {
            if x[i] & q != 0 {
                x[0] ^= p;
            } else {
                let t = (x[0] ^ x[i]) & p;
                x[0] ^= t;
                x[i] ^= t;
            }
        }
        q >>= 1;
    }
    x[1] ^= x[0];
    x[2] ^= x[1];
    let mut t = 0;
    q = 1 << (bits - 1);
    while q > 1 {
        if x[2] & q != 0 {
            t ^= q - 1;
        }
        q >>= 1;
    }
    let x = x.map(|n| n ^ t);
    (0..bits).rev().fold(0, |code, bit| x.iter().fold(code, |code, n| code << 1 | (n >> bit) & 1))
}

/// The benefit of an order for a head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The order.
    pub order: Order,
    /// Share of the blocks that hold the wanted mass, in each row the fewest.
    #[serde(with = "crate::base::float")]
    pub density: f64,
}

/// Blocks that a head needs for `mass` of each row of blocks, under each order. Errors: `cancelled`, tokens that cannot be reordered.
pub fn gains(head: &Head, grid: Grid, block: BlockSize, mass: f64, control: &Control) -> Result<Vec<Gain>, Diagnostic> {
    let mut found = Vec::new();
    for order in Order::ALL {
        let moved = head.reordered(&order.permutation(grid, head.lengths().q_len))?;
        let of = masses(&moved, block, false, control)?;
        let (rows, columns) = of.grid();
        let need = |i: usize| {
            let mut row = of.row(i).to_vec();
            row.sort_unstable_by(|a, b| b.total_cmp(a));
            let mut sum = 0.0;
            row.iter()
                .position(|m| {
                    sum += f64::from(*m);
                    sum >= mass - 1e-6
                })
                .map_or(columns, |at| at + 1)
        };
        let needed: usize = (0..rows).map(need).sum();
        found.push(Gain { order, density: needed as f64 / (rows * columns) as f64 });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_a_permutation_that_leaves_other_tokens_alone() {
        let grid = Grid { extents: [3, 8, 6], start: 5 };
        for order in Order::ALL {
            let found = order.permutation(grid, 160);
            let mut sorted = found.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..160), "{}", order.name());
            assert!((0..5).chain(149..160).all(|n| found[n] == n), "{}", order.name());
        }
        assert!(Order::Raster.permutation(grid, 160).into_iter().eq(0..160));
    }

    #[test]
    fn a_tile_holds_its_tokens_in_their_order() {
        let grid = Grid { extents: [4, 4, 4], start: 0 };
        let order = Order::Tiles([2, 2, 2]).permutation(grid, 64);
        assert_eq!(order[..8], [0, 1, 4, 5, 16, 17, 20, 21]);
        assert_eq!(order[8..16], [2, 3, 6, 7, 18, 19, 22, 23]);
    }

    #[test]
    fn a_hilbert_curve_goes_from_neighbour_to_neighbour() {
        let grid = Grid { extents: [8, 8, 8], start: 0 };
        let order = Order::Hilbert.permutation(grid, 512);
        for pair in order.windows(2) {
            let (a, b) = (grid.place(pair[0]), grid.place(pair[1]));
            let apart: usize = a.iter().zip(b).map(|(a, b)| a.abs_diff(b)).sum();
            assert_eq!(apart, 1, "{a:?} {b:?}");
        }
    }
}
