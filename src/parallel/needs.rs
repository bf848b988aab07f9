//! The key blocks that each rank needs of each other.
//!
//! Invariant: a rank needs a block if one of its query blocks lists it, for any batch entry or head. Must not know
//! bytes.

use crate::rows::MaskRows;
use crate::split::Split;

/// `[to][from]`: key blocks that travel, ascending.
pub type Transfers = Vec<Vec<Vec<u32>>>;

/// For each rank the key blocks that its queries list.
fn needed(rows: &MaskRows, split: &Split) -> Vec<Vec<bool>> {
    let cols = split.kv_rank.len();
    let mut steps = vec![vec![0i32; cols + 1]; split.ranks];
    for group in &rows.groups {
        for (row, rank) in split.q_rank.iter().enumerate() {
            for run in group.row(row) {
                steps[*rank as usize][run.start] += 1;
                steps[*rank as usize][run.end] -= 1;
            }
        }
    }
    let count = |steps: &Vec<i32>| {
        let mut now = 0;
        let sum = |step: &i32| {
            now += step;
            now > 0
        };
        steps[..cols].iter().map(sum).collect()
    };
    steps.iter().map(count).collect()
}

/// What travels if each rank receives only what it needs.
pub fn transfers(rows: &MaskRows, split: &Split) -> Transfers {
    let needed = needed(rows, split);
    gather(split, |to, block| needed[to][block])
}

/// What travels if each rank receives everything.
pub fn all_gather(split: &Split) -> Transfers {
    gather(split, |_, _| true)
}

fn gather(split: &Split, needs: impl Fn(usize, usize) -> bool) -> Transfers {
    let mut out = vec![vec![Vec::new(); split.ranks]; split.ranks];
    for (to, lists) in out.iter_mut().enumerate() {
        for (block, from) in split.kv_rank.iter().enumerate() {
            if *from as usize != to && needs(to, block) {
                lists[*from as usize].push(block as u32);
            }
        }
    }
    out
}

/// Blocks in all lists.
pub fn blocks(transfers: &Transfers) -> usize {
    transfers.iter().flatten().map(Vec::len).sum()
}

/// Ranks of key blocks that are not tied to query blocks: near those who need them, equal numbers each.
pub(crate) fn keepers(needed_by: &[Vec<f64>], sizes: &[usize]) -> Vec<u16> {
    let cols = needed_by.first().map_or(0, Vec::len);
    let mut left = sizes.to_vec();
    let mut out = vec![0u16; cols];
    let users = |col: usize| needed_by.iter().filter(|rank| rank[col] > 0.0).count();
    let mut order: Vec<usize> = (0..cols).collect();
    // those with few users have no other place
    order.sort_by_key(|col| (users(*col), *col));
    for col in order {
        let open = (0..sizes.len()).filter(|rank| left[*rank] > 0);
        let best = open.reduce(|a, b| if needed_by[b][col] > needed_by[a][col] { b } else { a }).unwrap_or(0);
        out[col] = best as u16;
        left[best] = left[best].saturating_sub(1);
    }
    out
}
