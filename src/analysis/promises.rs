//! What a block mask promises to kernels that walk its lists as PyTorch's FlexAttention does: partial blocks first, then full ones.
//!
//! Invariant: a promise holds for every batch entry, head and row, or is not made. Must not know how kernels are told.

use super::block_mask::{BlockKind, BlockMask};
use crate::ir::tiles::Program;
use rayon::prelude::*;

/// Keys of the smallest tile that a kernel reads at a time.
const TILE: usize = 16;

/// The promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// Each row keeps a key of the first tile that is read for it, whatever its size: its largest score is finite from there on.
    pub rows_safe: bool,
    /// The partial blocks of each row and of each column lie side by side, and the full ones too.
    pub contiguous: bool,
}

/// The promises of a mask's blocks.
pub fn promises(blocks: &BlockMask) -> Promises {
    Promises { rows_safe: rows_safe(blocks), contiguous: contiguous(blocks) }
}

/// Batch entries and heads that differ.
fn pairs(blocks: &BlockMask) -> impl Iterator<Item = (usize, usize)> {
    let (batch, heads) = blocks.distinct();
    (0..batch).flat_map(move |b| (0..heads).map(move |h| (b, h)))
}

fn contiguous(blocks: &BlockMask) -> bool {
    let columns = blocks.transposed();
    let (rows, cols) = blocks.grid();
    // runs of one kind never touch
    let once = |kinds: &mut dyn Iterator<Item = BlockKind>| {
        let mut seen = [0; 2];
        kinds.for_each(|kind| seen[usize::from(kind == BlockKind::Full)] += 1);
        seen.iter().all(|n| *n <= 1)
    };
    pairs(blocks).all(|(b, h)| {
        (0..rows).all(|row| once(&mut blocks.runs(b, h, row).map(|run| run.kind)))
            && (0..cols).all(|col| once(&mut columns.runs(b, h, col).map(|run| run.kind)))
    })
}

fn rows_safe(blocks: &BlockMask) -> bool {
    let program = blocks.mask_mod().map(|mask| Program::new(mask));
    let rows = blocks.grid().0;
    pairs(blocks).all(|(b, h)| (0..rows).into_par_iter().all(|row| is_safe(blocks, program.as_ref(), (b, h), row)))
}

/// Whether each row of a row of blocks keeps a key of the first tile.
fn is_safe(blocks: &BlockMask, program: Option<&Program>, (b, h): (usize, usize), row: usize) -> bool {
    let first = |kind| blocks.runs(b, h, row).find(|run| run.kind == kind).map(|run| run.start);
    let Some(start) = first(BlockKind::Partial) else { return first(BlockKind::Full).is_some() };
    let Some(program) = program else { return true };
    let (size, lengths) = (blocks.block_size(), blocks.shape().lengths);
    let q = row * size.q..((row + 1) * size.q).min(lengths.q_len);
    let kv = start * size.kv..(start * size.kv + TILE.min(size.kv)).min(lengths.kv_len);
    let mut cells = vec![0; q.len() * kv.len()];
    let width = kv.len();
    program.mask_tile(b, h, q, kv, &mut cells);
    cells.chunks(width).all(|row| row.contains(&1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::block_mask::MaskShape;
    use crate::analysis::examples::{self, Builder};
    use crate::base::{BlockSize, Control, Lengths};
    use crate::ir::cell::{self, Cell};
    use crate::ir::graph::Mod;
    use crate::ir::random;

    const SIZE: BlockSize = BlockSize { q: 32, kv: 32 };

    fn blocks(mask: &Mod, lengths: Lengths) -> BlockMask {
        BlockMask::build(Some(mask), MaskShape::broadcast(lengths), SIZE, &Control::new()).unwrap()
    }

    fn of(mask: &Mod, q_len: usize, kv_len: usize) -> Promises {
        promises(&blocks(mask, Lengths::new(q_len, kv_len).unwrap()))
    }

    #[test]
    fn known_masks_promise_what_they_keep() {
        assert_eq!(of(&examples::causal(), 96, 96), Promises { rows_safe: true, contiguous: true });
        // the last row of blocks is cut, so that its blocks count as partial: the first column has two with full ones between
        assert_eq!(of(&examples::causal(), 100, 100), Promises { rows_safe: true, contiguous: false });
        // the left edge of a window is a partial block that its last rows keep nothing of, and another one is on the diagonal
        assert_eq!(of(&examples::sliding_window(80), 200, 200), Promises::default());
        // seen from the prefix's columns, the first rows' blocks are full, too
        assert!(of(&examples::prefix_lm(32), 200, 200).rows_safe);
        // a row's first key lies behind the first tile of its block
        let mut late = Builder::new();
        let root = late.k;
        let root = late.rem_by(root, 32);
        let root = late.below(root, 20);
        let root = late.not(root);
        assert!(!of(&late.mask(root), 64, 64).rows_safe);
        // the first row keeps nothing
        let mut empty = Builder::new();
        let distance = empty.distance();
        let root = empty.below(distance, 1);
        let root = empty.not(root);
        assert!(!of(&empty.mask(root), 64, 64).rows_safe);
    }

    /// By the interpreter, with the blocks that a kernel would visit.
    fn safe_by_cells(mask: &Mod, n: usize) -> bool {
        let kept = |q: usize, k: usize| {
            let at = Cell { b: 0, h: 0, q_idx: q as i64, kv_idx: k as i64, score: 0.0 };
            q < n && k < n && cell::eval(mask, &at).as_bool()
        };
        let kept_of =
            |row: usize, col: usize| (0..32 * 32).filter(|at| kept(row * 32 + at / 32, col * 32 + at % 32)).count();
        let grid = n.div_ceil(32);
        (0..n).all(|q| {
            let row = q / 32;
            let partial = (0..grid).find(|col| (1..1024).contains(&kept_of(row, *col)));
            let first = partial.or_else(|| (0..grid).find(|col| kept_of(row, *col) == 1024));
            first.is_some_and(|col| (0..TILE).any(|k| kept(q, col * 32 + k)))
        })
    }

    #[test]
    fn promises_of_random_masks_hold_by_their_cells() {
        let mut safe = 0;
        for seed in 0..200 {
            let mask = random::mask(seed, &random::Options::new(80, 80));
            let found = of(&mask, 80, 80).rows_safe;
            assert_eq!(found, safe_by_cells(&mask, 80), "seed {seed}");
            safe += usize::from(found);
        }
        assert!((5..195).contains(&safe), "{safe} of 200 are safe");
    }
}
