//! A mod evaluated over tiles of cells: hoisted by dependency, then vector loops over the columns of each row.
//!
//! Invariant: every cell equals what [`super::interpret`] gives there (scores in f32 to rounding). Ints run in 32-bit
//! lanes only where their ranges prove that nothing is lost. Must not know what the tiles are for.

pub(crate) mod bounds;
mod dense;
mod kernels;
mod lower;
mod run;
#[cfg(test)]
mod tests;

pub use dense::{dense_mask, dense_mask_into};

use super::graph::{Graph, Mod, ModKind};
use super::interpret::lanes::{FloatLane, IntLane};
use lower::Code;
use run::{Rows, Run, Scratch, Table, Tile};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

/// A mod ready to be evaluated over tiles; cheap to clone, shared between threads.
#[derive(Clone, Debug)]
pub struct Program {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    kind: ModKind,
    graph: Graph,
    code: Code,
    /// Sequences up to this long run in 32-bit lanes.
    narrow: usize,
    // masks and the reference compute floats in f64, backends in f32
    narrow_f64: OnceLock<Engine<i32, f64>>,
    narrow_f32: OnceLock<Engine<i32, f32>>,
    wide_f64: OnceLock<Engine<i64, f64>>,
    wide_f32: OnceLock<Engine<i64, f32>>,
}

impl Program {
    /// Compiles a mod. A lifted mod's uniforms read as zero: compile the mod that it was lifted from.
    pub fn new(mod_: &Mod) -> Program {
        let inner = Inner {
            kind: mod_.kind,
            graph: mod_.graph.clone(),
            code: Code::new(mod_),
            narrow: bounds::longest_narrow(&mod_.graph, mod_.root).unwrap_or(0),
            narrow_f64: OnceLock::new(),
            narrow_f32: OnceLock::new(),
            wide_f64: OnceLock::new(),
            wide_f32: OnceLock::new(),
        };
        Program { inner: Arc::new(inner) }
    }

    /// Mask or score.
    pub fn kind(&self) -> ModKind {
        self.inner.kind
    }

    /// The mask over `q` x `kv`, row-major, 0 or 1 a cell. Panics when `out` is not that long, or for a score mod.
    pub fn mask_tile(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, out: &mut [u8]) {
        assert_eq!(out.len(), q.len() * kv.len(), "one byte a cell");
        let stride = kv.len();
        self.mask_rows(b, h, q, kv, out, stride);
    }

    /// The same with rows `stride` bytes apart. Panics when a row does not fit.
    pub fn mask_rows(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, out: &mut [u8], stride: usize) {
        assert_eq!(self.inner.kind, ModKind::Mask, "a score mod is no mask");
        let tile = Tile { b, h, q, kv };
        let inner = &*self.inner;
        if inner.is_narrow(&tile) {
            inner.engine(&inner.narrow_f64).run(&inner.code, tile, Rows::Mask { out, stride });
        } else {
            inner.engine(&inner.wide_f64).run(&inner.code, tile, Rows::Mask { out, stride });
        }
    }

    /// The score mod over `q` x `kv`, row-major, in place. Panics when `scores` is not that long, or for a mask mod.
    pub fn score_tile(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, scores: &mut [f32]) {
        self.check_scores(&q, &kv, scores.len());
        let (inner, stride, tile) = (&*self.inner, kv.len(), Tile { b, h, q, kv });
        if inner.is_narrow(&tile) {
            inner.engine(&inner.narrow_f32).run(&inner.code, tile, Rows::Score { scores, stride });
        } else {
            inner.engine(&inner.wide_f32).run(&inner.code, tile, Rows::Score { scores, stride });
        }
    }

    /// The same in f64, for the reference.
    pub fn score_tile_f64(&self, b: usize, h: usize, q: Range<usize>, kv: Range<usize>, scores: &mut [f64]) {
        self.check_scores(&q, &kv, scores.len());
        let (inner, stride, tile) = (&*self.inner, kv.len(), Tile { b, h, q, kv });
        if inner.is_narrow(&tile) {
            inner.engine(&inner.narrow_f64).run(&inner.code, tile, Rows::Score { scores, stride });
        } else {
            inner.engine(&inner.wide_f64).run(&inner.code, tile, Rows::Score { scores, stride });
        }
    }

    fn check_scores(&self, q: &Range<usize>, kv: &Range<usize>, len: usize) {
        assert_eq!(self.inner.kind, ModKind::Score, "a mask mod gives no scores");
        assert_eq!(len, q.len() * kv.len(), "one score a cell");
    }
}

impl Inner {
    fn is_narrow(&self, tile: &Tile) -> bool {
        let most = self.narrow;
        tile.q.end <= most && tile.kv.end <= most && tile.b < bounds::MOST_HEADS && tile.h < bounds::MOST_HEADS
    }

    fn engine<'a, I: IntLane, F: FloatLane>(&self, slot: &'a OnceLock<Engine<I, F>>) -> &'a Engine<I, F> {
        slot.get_or_init(|| Engine { tables: run::tables(&self.graph), pool: Mutex::new(Vec::new()) })
    }
}

/// Captured tensors as lanes of one width, and scratch memory that waits for its next use.
#[derive(Debug)]
struct Engine<I, F> {
    tables: Vec<(Vec<usize>, Table<I, F>)>,
    pool: Mutex<Vec<Scratch<I, F>>>,
}

impl<I: IntLane, F: FloatLane> Engine<I, F> {
    fn run(&self, code: &Code, tile: Tile, rows: Rows<'_, F>) {
        if tile.q.is_empty() || tile.kv.is_empty() {
            return;
        }
        let waiting = |pool: &mut Vec<Scratch<I, F>>| pool.pop();
        let mut scratch = self.pool.lock().map_or(None, |mut pool| waiting(&mut pool)).unwrap_or_default();
        Run { code, tables: &self.tables, scratch: &mut scratch, tile }.all(rows);
        if let Ok(mut pool) = self.pool.lock() {
            pool.push(scratch);
        }
    }
}
