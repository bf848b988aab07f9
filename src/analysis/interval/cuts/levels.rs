//! Values of all blocks along kv, joined in pairs on rising levels.
//!
//! Invariant: after `finish`, the `n`th value of a level is the join of blocks `n << level` to `(n + 1) << level`. Must
//! not know the values' meaning.

/// Level 0 is the blocks.
#[derive(Debug)]
pub(super) struct Levels<T> {
    levels: Vec<Vec<T>>,
}

impl<T: Copy> Levels<T> {
    /// Room for blocks.
    pub(super) fn new(blocks: usize) -> Self {
        Self { levels: vec![Vec::with_capacity(blocks)] }
    }

    /// The next block.
    pub(super) fn push(&mut self, value: T) {
        self.levels[0].push(value);
    }

    /// Joins the pushed values.
    pub(super) fn finish(&mut self, join: impl Fn(T, T) -> T) {
        while self.levels[self.levels.len() - 1].len() > 1 {
            let below = &self.levels[self.levels.len() - 1];
            let up = below.chunks(2).map(|two| two[1..].iter().fold(two[0], |a, b| join(a, *b))).collect();
            self.levels.push(up);
        }
    }

    /// All blocks.
    pub(super) fn blocks(&self) -> &[T] {
        &self.levels[0]
    }

    /// The join of the `n`th `2^level` blocks.
    pub(super) fn at(&self, level: usize, n: usize) -> T {
        self.levels[level][n]
    }
}
