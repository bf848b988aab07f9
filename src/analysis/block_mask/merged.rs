//! Block lists as a kernel walks them: full and partial blocks of a row in one ascending list.
//!
//! Invariant: entries of a row ascend by kv block; the top bit says that mask_mod need not be evaluated there.

use super::BlockMask;

/// Marks an entry of [`MergedLists`] as a full block.
pub const FULL_BIT: u32 = 1 << 31;

/// Flat lists of all rows of all stored groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedLists {
    /// Stored batch entries and heads; a kernel takes b and h modulo these.
    pub groups: (usize, usize),
    /// Rows of blocks in a group.
    pub rows: usize,
    /// Where each row starts in `entries`, for row (b * heads + h) * rows + q_block; one more at the end.
    pub row_offsets: Vec<u32>,
    /// kv block indices, with [`FULL_BIT`] on full blocks.
    pub entries: Vec<u32>,
}

impl MergedLists {
    /// Entries of one row.
    pub fn row(&self, b: usize, h: usize, q_block: usize) -> &[u32] {
        let at = ((b % self.groups.0) * self.groups.1 + h % self.groups.1) * self.rows + q_block;
        &self.entries[self.row_offsets[at] as usize..self.row_offsets[at + 1] as usize]
    }
}

/// Expands the runs into one list a row.
pub fn merged_lists(mask: &BlockMask) -> MergedLists {
    let groups = &mask.inner.groups;
    let blocks = |g: &std::sync::Arc<super::Rows>| g.runs.iter().map(|r| (r.end() - r.start) as usize).sum::<usize>();
    let mut entries = Vec::with_capacity(groups.iter().map(blocks).sum());
    let rows = mask.grid().0;
    let mut row_offsets = Vec::with_capacity(groups.len() * rows + 1);
    row_offsets.push(0);
    for group in groups {
        for row in 0..rows {
            for run in group.row(row) {
                let bit = if run.full() { FULL_BIT } else { 0 };
                entries.extend((run.start..run.end()).map(|kv| kv | bit));
            }
            row_offsets.push(entries.len() as u32);
        }
    }
    MergedLists { groups: mask.distinct(), rows, row_offsets, entries }
}
