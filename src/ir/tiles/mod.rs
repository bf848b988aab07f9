//! A mod evaluated over tiles of cells: hoisted by dependency, then vector loops over the columns of each row.
//!
//! Invariant: every cell equals the value of [`super::cell`] (values that follow from the score up to rounding, if
//! scores are f32). Ints run in 32-bit lanes only if their ranges prove that nothing is lost. Must not know the use of
//! the tiles.

mod dense;
mod kernels;
mod lower;
mod run;
#[cfg(test)]
mod tests;

pub use self::dense::{dense_mask, dense_mask_into};

use self::lower::{Class, Code};
use self::run::{Rows, Run, Scratch, Table, Tile};
use super::graph::{Mod, ModKind};
use super::ops::lanes::IntLane;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

/// A mod ready to be evaluated over tiles; cheap to clone, shared between threads.
#[derive(Clone, Debug)]
pub struct Program {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    mod_: Mod,
    /// Code whose scores are f32; masks have none.
    single: Code,
    /// The same with f64, for the reference.
    double: OnceLock<Code>,
    /// Sequences up to this long run in 32-bit lanes. To find it every captured int is read, which a mask whose blocks bounds decide never needs.
    narrow_to: OnceLock<usize>,
    narrow: OnceLock<Engine<i32>>,
    wide: OnceLock<Engine<i64>>,
}

impl Program {
    /// Compiles a mod. A lifted mod's uniforms read as zero: compile the mod that it was lifted from.
    pub fn new(mod_: &Mod) -> Program {
        let inner = Inner {
            mod_: Mod { sources: Vec::new(), ..mod_.clone() },
            single: Code::new(mod_, Class::Single),
            double: OnceLock::new(),
            narrow_to: OnceLock::new(),
            narrow: OnceLock::new(),
            wide: OnceLock::new(),
        };
        Program { inner: Arc::new(inner) }
    }

    /// Mask or score.
    pub fn kind(&self) -> ModKind {
        self.inner.mod_.kind
    }

    /// The mask over `q` x `kv`, row-major, 0 or 1 a cell. Panics when `out` is not that long, or for a score mod.
    pub fn mask_tile(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, out: &mut [u8]) {
        assert_eq!(out.len(), q.len() * kv.len(), "one byte a cell");
        let stride = kv.len();
        self.mask_rows(b, h, q, kv, out, stride);
    }

    /// The same with rows `stride` bytes apart. Panics when a row does not fit.
    pub fn mask_rows(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, out: &mut [u8], stride: usize) {
        assert_eq!(self.inner.mod_.kind, ModKind::Mask, "a score mod is no mask");
        self.inner.run(&self.inner.single, Tile { b, h, q, kv }, Rows::Mask { out, stride });
    }

    /// The score mod over `q` x `kv`, row-major, in place. Panics when `scores` is not that long, or for a mask mod.
    pub fn score_tile(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, scores: &mut [f32]) {
        self.check_scores(&q, &kv, scores.len());
        let stride = kv.len();
        self.inner.run(&self.inner.single, Tile { b, h, q, kv }, Rows::Single { scores, stride });
    }

    /// The same in f64, for the reference.
    pub fn score_tile_f64(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, scores: &mut [f64]) {
        self.check_scores(&q, &kv, scores.len());
        let stride = kv.len();
        let code = self.inner.double.get_or_init(|| Code::new(&self.inner.mod_, Class::Double));
        self.inner.run(code, Tile { b, h, q, kv }, Rows::Double { scores, stride });
    }

    fn check_scores(&self, q: &Range<usize>, kv: &Range<usize>, len: usize) {
        assert_eq!(self.inner.mod_.kind, ModKind::Score, "a mask mod gives no scores");
        assert_eq!(len, q.len() * kv.len(), "one score a cell");
    }
}

impl Inner {
    fn run(&self, code: &Code, tile: Tile, rows: Rows<'_>) {
        if self.is_narrow(&tile) {
            self.engine(&self.narrow).run(code, tile, rows);
        } else {
            self.engine(&self.wide).run(code, tile, rows);
        }
    }

    fn is_narrow(&self, tile: &Tile) -> bool {
        let of = &self.mod_;
        let most = *self.narrow_to.get_or_init(|| ir::bounds::longest_narrow(&of.graph, of.root).unwrap_or(0));
        tile.q.end <= most && tile.kv.end <= most && tile.b < ir::bounds::MOST_HEADS && tile.h < ir::bounds::MOST_HEADS
    }

    fn engine<'a, I: IntLane>(&self, slot: &'a OnceLock<Engine<I>>) -> &'a Engine<I> {
        slot.get_or_init(|| Engine { tables: run::tables(&self.mod_.graph), pool: Mutex::new(Vec::new()) })
    }
}

/// Captured tensors as lanes of one width, and scratch memory that waits for its next use.
#[derive(Debug)]
struct Engine<I> {
    tables: Vec<(Vec<usize>, Table<I>)>,
    pool: Mutex<Vec<Scratch<I>>>,
}

impl<I: IntLane> Engine<I> {
    fn run(&self, code: &Code, tile: Tile, rows: Rows<'_>) {
        if tile.q.is_empty() || tile.kv.is_empty() {
            return;
        }
        let waiting = |pool: &mut Vec<Scratch<I>>| pool.pop();
        let mut scratch = self.pool.lock().map_or(None, |mut pool| waiting(&mut pool)).unwrap_or_default();
        Run { code, tables: &self.tables, scratch: &mut scratch, tile }.all(rows);
        if let Ok(mut pool) = self.pool.lock() {
            pool.push(scratch);
        }
    }
}
