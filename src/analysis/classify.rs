//! Whether a mask keeps all, none or some cells of a box, by intervals alone and exactly.
//!
//! Invariant: `Empty` and `Full` are always right. `classify` may return `Mixed` for a box that is not mixed;
//! `Exact::resolve` never does. Must not know how blocks are stored.

use super::interval::{Cells, Key, KeyMap, Program, Scratch};
use crate::ir::graph::Mod;
use crate::ir::tiles;
use std::sync::Arc;

/// The kept part of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing.
    Empty,
    /// Everything.
    Full,
    /// Some, or (from intervals alone) unknown.
    Mixed,
}

/// A mask ready to be asked about boxes and cells; shared between threads.
#[derive(Debug)]
pub struct Mask {
    program: Program,
    cells: tiles::Program,
    source: Arc<Mod>,
}

impl Mask {
    /// Compiles a mask_mod.
    pub fn new(source: Arc<Mod>) -> Self {
        Self { program: Program::new(&source), cells: tiles::Program::new(&source), source }
    }

    /// The mod it was made from.
    pub fn source(&self) -> &Arc<Mod> {
        &self.source
    }

    /// The graph over boxes.
    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// Fresh scratch for `classify`.
    pub fn scratch(&self) -> Scratch {
        self.program.scratch()
    }

    /// The result of intervals for a box.
    pub fn classify(&self, cells: &Cells, scratch: &mut Scratch) -> Verdict {
        let truth = self.program.truth(cells, scratch);
        match truth.value() {
            Some(true) => Verdict::Full,
            Some(false) => Verdict::Empty,
            None => Verdict::Mixed,
        }
    }

    /// The cells of a box as 0 and 1, row by row.
    pub fn tile(&self, cells: &Cells, out: &mut [u8]) {
        let range = |(lo, hi): (i64, i64)| lo as usize..hi as usize + 1;
        self.cells.mask_tile(cells.b.0 as usize, cells.h.0 as usize, range(cells.q), range(cells.kv), out);
    }
}

/// Halves the longer side, or both if they are equal; the parts come row by row.
pub fn split(cells: &Cells) -> smallvec::SmallVec<[Cells; 4]> {
    let (rows, cols) = (cells.q.1 - cells.q.0 + 1, cells.kv.1 - cells.kv.0 + 1);
    let halves = |(lo, hi): (i64, i64), n: i64, cut: bool| -> smallvec::SmallVec<[(i64, i64); 2]> {
        if cut && n > 1 {
            let middle = lo + (n as u64).next_power_of_two() as i64 / 2;
            smallvec::smallvec![(lo, middle - 1), (middle, hi)]
        } else {
            smallvec::smallvec![(lo, hi)]
        }
    };
    let mut out = smallvec::SmallVec::new();
    for q in halves(cells.q, rows, 2 * rows > cols) {
        for kv in halves(cells.kv, cols, 2 * cols > rows) {
            out.push(Cells { q, kv, ..*cells });
        }
    }
    out
}

/// Cells of a box that are evaluated one by one rather than split further.
const TILE: u64 = 1024;
/// Remembered remains, at most.
const MEMO: usize = 1 << 14;

/// Which cells of one box are kept, summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Kept cells.
    pub kept: u64,
    /// One bit a row: whether it keeps a cell.
    pub rows: Vec<u64>,
}

/// Exact answers about boxes, with a memory of remains already seen; one a thread.
pub struct Exact<'a> {
    mask: &'a Mask,
    scratch: Scratch,
    kinds: KeyMap<Verdict>,
    counts: KeyMap<Arc<Count>>,
    tile: Vec<u8>,
    stack: Vec<Cells>,
}

impl<'a> Exact<'a> {
    /// A solver for this mask.
    pub fn new(mask: &'a Mask) -> Self {
        Self {
            mask,
            scratch: mask.scratch(),
            kinds: KeyMap::default(),
            counts: KeyMap::default(),
            tile: Vec::new(),
            stack: Vec::new(),
        }
    }

    /// The result of intervals.
    pub fn classify(&mut self, cells: &Cells) -> Verdict {
        self.mask.classify(cells, &mut self.scratch)
    }

    /// The exact kind: `Mixed` only if the box contains both kept and dropped cells.
    pub fn resolve(&mut self, cells: &Cells) -> Verdict {
        match self.classify(cells) {
            Verdict::Mixed => self.resolve_mixed(cells),
            decided => decided,
        }
    }

    /// The same right after `classify` of this box has said `Mixed`.
    pub fn resolve_mixed(&mut self, cells: &Cells) -> Verdict {
        // most mixed boxes show both at their corners, which is quicker than remembering them
        let Some(corner) = self.corners(cells) else { return Verdict::Mixed };
        self.classify(cells);
        let key = self.mask.program.residual(cells, &mut self.scratch);
        if let Some(known) = key.as_ref().and_then(|k| self.kinds.get(k)) {
            return *known;
        }
        let found = self.search(cells, corner);
        if let Some(key) = key.filter(|_| self.kinds.len() < MEMO) {
            self.kinds.insert(key, found);
        }
        found
    }

    /// The verdict that all four corners share, if they do; otherwise the box is mixed.
    fn corners(&mut self, cells: &Cells) -> Option<Verdict> {
        let mut corner = |q: i64, kv: i64| match self.classify(&Cells { q: (q, q), kv: (kv, kv), ..*cells }) {
            // intervals of a single cell decide, but for floats on the edge
            Verdict::Mixed => self.cells(&Cells { q: (q, q), kv: (kv, kv), ..*cells })[0] != 0,
            decided => decided == Verdict::Full,
        };
        let (q, kv) = (cells.q, cells.kv);
        let first = corner(q.0, kv.0);
        let same = corner(q.1, kv.0) == first && corner(q.1, kv.1) == first && corner(q.0, kv.1) == first;
        same.then_some(if first { Verdict::Full } else { Verdict::Empty })
    }

    /// Looks for a kept and a dropped cell, one of which a corner has shown, in ever smaller boxes.
    fn search(&mut self, cells: &Cells, corner: Verdict) -> Verdict {
        let mut seen = (corner == Verdict::Empty, corner == Verdict::Full);
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        stack.push(*cells);
        while let Some(part) = stack.pop() {
            if seen == (true, true) {
                break;
            }
            if !self.note(&part, &mut seen) {
                stack.extend(split(&part));
            }
        }
        self.stack = stack;
        match seen {
            (true, true) => Verdict::Mixed,
            (false, true) => Verdict::Full,
            _ => Verdict::Empty,
        }
    }

    /// Adds a box's cells to (dropped seen, kept seen); false if the box must be split.
    fn note(&mut self, cells: &Cells, seen: &mut (bool, bool)) -> bool {
        match self.classify(cells) {
            Verdict::Empty => seen.0 = true,
            Verdict::Full => seen.1 = true,
            Verdict::Mixed if cells.area() <= TILE => {
                let kept = self.fill_tile(cells);
                seen.0 |= kept < cells.area();
                seen.1 |= kept > 0;
            }
            Verdict::Mixed => return false,
        }
        true
    }

    fn fill_tile(&mut self, cells: &Cells) -> u64 {
        self.cells(cells).iter().map(|c| u64::from(*c)).sum()
    }

    /// The cells of a box as 0 and 1, row by row.
    pub fn cells(&mut self, cells: &Cells) -> &[u8] {
        self.tile.resize(cells.area() as usize, 0);
        self.mask.tile(cells, &mut self.tile);
        &self.tile
    }

    /// The residual of the mask over the box of the last `classify`; equal residuals are equal cells.
    pub fn residual(&mut self, cells: &Cells) -> Option<Key> {
        self.mask.program.residual(cells, &mut self.scratch)
    }

    /// How many cells of a box are kept, and in which rows.
    pub fn count(&mut self, cells: &Cells) -> Arc<Count> {
        let verdict = self.classify(cells);
        let key = match verdict {
            Verdict::Mixed => self.mask.program.residual(cells, &mut self.scratch),
            _ => None,
        };
        if let Some(known) = key.as_ref().and_then(|k| self.counts.get(k)) {
            return known.clone();
        }
        let rows = (cells.q.1 - cells.q.0 + 1) as usize;
        let mut count = Count { kept: 0, rows: vec![0; rows.div_ceil(64)] };
        self.add_count(cells, cells.q.0, &mut count);
        let count = Arc::new(count);
        if let Some(key) = key.filter(|_| self.counts.len() < MEMO) {
            self.counts.insert(key, count.clone());
        }
        count
    }

    fn add_count(&mut self, cells: &Cells, origin: i64, count: &mut Count) {
        match self.classify(cells) {
            Verdict::Empty => {}
            Verdict::Full => {
                count.kept += cells.area();
                (cells.q.0..=cells.q.1).for_each(|q| set_row(count, q - origin));
            }
            Verdict::Mixed if cells.area() <= TILE => {
                count.kept += self.fill_tile(cells);
                let width = (cells.kv.1 - cells.kv.0 + 1) as usize;
                for (row, line) in self.tile.chunks(width).enumerate() {
                    if line.iter().any(|c| *c != 0) {
                        set_row(count, cells.q.0 - origin + row as i64);
                    }
                }
            }
            Verdict::Mixed => split(cells).iter().for_each(|part| self.add_count(part, origin, count)),
        }
    }
}

fn set_row(count: &mut Count, row: i64) {
    count.rows[row as usize / 64] |= 1 << (row % 64);
}
