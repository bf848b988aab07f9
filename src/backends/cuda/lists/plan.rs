//! The launch's lists of a mask: runs of kv tiles for every row of query tiles, and the order of the rows.
//!
//! Invariant: rows ascend, runs are not empty; the order is a permutation of the query tiles of each list, heaviest
//! first. Plain data, so that it is tested without a device. Must not know kernels or memory.

use crate::analysis::block_mask::{BlockKind, BlockMask};

/// Top bit of a run's end: every cell is kept.
const FULL: u32 = 1 << 31;

/// Lists as `schedule.cuh` reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Runs, two words each: first tile, one past the last with the full bit.
    pub runs: Vec<[u32; 2]>,
    /// Where each row starts in `runs`; one more at the end.
    pub row_start: Vec<u32>,
    /// Query tiles by falling work, list after list.
    pub tile_order: Vec<u32>,
    /// Query tiles of a list.
    pub q_tiles: usize,
    /// Distinct batch entries, 1 where all are the same.
    pub batch: usize,
    /// Distinct heads, likewise.
    pub heads: usize,
}

impl Plan {
    /// The lists of a block mask built at the kernel's own tile.
    pub(crate) fn of_mask(mask: &BlockMask) -> Plan {
        let shape = mask.shape();
        let mut plan = Plan::empty(mask.grid().0, shape.batch, shape.heads);
        for (b, h) in (0..shape.batch).flat_map(|b| (0..shape.heads).map(move |h| (b, h))) {
            for row in 0..plan.q_tiles {
                let runs = mask.runs(b, h, row);
                plan.push_row(runs.map(|r| (r.start as u32, r.end as u32, r.kind == BlockKind::Full)));
            }
        }
        plan.finish()
    }

    /// Every tile of every row, as partial tiles: a dense mask.
    pub(crate) fn dense(q_tiles: usize, kv_tiles: usize, batch: usize, heads: usize) -> Plan {
        let mut plan = Plan::empty(q_tiles, batch, heads);
        (0..q_tiles * batch * heads).for_each(|_| plan.push_row([(0, kv_tiles as u32, false)].into_iter()));
        plan.finish()
    }

    /// No mask: full tiles, except the last if it reaches beyond `kv_len`.
    pub(crate) fn unmasked(q_tiles: usize, kv_len: usize, tile_kv: usize) -> Plan {
        let mut plan = Plan::empty(q_tiles, 1, 1);
        let (whole, all) = ((kv_len / tile_kv) as u32, kv_len.div_ceil(tile_kv) as u32);
        (0..q_tiles).for_each(|_| plan.push_row([(0, whole, true), (whole, all, false)].into_iter()));
        plan.finish()
    }

    /// `q_idx >= kv_idx`.
    pub(crate) fn causal(q_tiles: usize, tile_q: usize, kv_len: usize, tile_kv: usize) -> Plan {
        let mut plan = Plan::empty(q_tiles, 1, 1);
        for tile in 0..q_tiles {
            let (first, past) = (tile * tile_q, (tile + 1) * tile_q);
            let full = (first + 1).min(kv_len) / tile_kv;
            let reached = past.min(kv_len).div_ceil(tile_kv);
            plan.push_row([(0, full as u32, true), (full as u32, reached as u32, false)].into_iter());
        }
        plan.finish()
    }

    /// No rows yet; [`Plan::push_row`] adds them.
    pub(crate) fn empty(q_tiles: usize, batch: usize, heads: usize) -> Plan {
        Plan { row_start: vec![0], q_tiles, batch, heads, ..Plan::default() }
    }

    /// Adds a row: its runs as (first tile, one past the last, whether every cell is kept), ascending.
    pub(crate) fn push_row(&mut self, runs: impl Iterator<Item = (u32, u32, bool)>) {
        let packed = |(start, end, full)| [start, end | if full { FULL } else { 0 }];
        self.runs.extend(runs.filter(|(start, end, _)| start < end).map(packed));
        self.row_start.push(self.runs.len() as u32);
    }

    /// Adds the order of the rows.
    pub(crate) fn finish(mut self) -> Plan {
        for list in 0..self.batch * self.heads {
            let first = list * self.q_tiles;
            let mut order: Vec<u32> = (0..self.q_tiles as u32).collect();
            // stable: equal rows keep their order, so that neighbours share keys in the cache
            order.sort_by_key(|tile| std::cmp::Reverse(self.work(first + *tile as usize)));
            self.tile_order.extend(order);
        }
        if self.runs.is_empty() {
            self.runs.push([0, 0]); // never read; device buffers are not empty
        }
        self
    }

    /// A row's runs: first tile, one past the last, whether every cell is kept.
    pub(crate) fn runs_of(&self, row: usize) -> impl Iterator<Item = (u32, u32, bool)> + '_ {
        let runs = &self.runs[self.row_start[row] as usize..self.row_start[row + 1] as usize];
        runs.iter().map(|[start, end]| (*start, end & !FULL, end & FULL != 0))
    }

    /// Kv tiles of a row.
    pub(crate) fn work(&self, row: usize) -> u64 {
        self.runs_of(row).map(|(start, end, _)| u64::from(end - start)).sum()
    }

    /// Rows of query tiles over all lists.
    pub(crate) fn rows(&self) -> usize {
        self.row_start.len() - 1
    }

    /// The list of a batch entry and a head.
    pub(crate) fn list(&self, b: usize, h: usize) -> usize {
        (if self.batch == 1 { 0 } else { b }) * self.heads + if self.heads == 1 { 0 } else { h }
    }

    /// Kv tiles of every row.
    pub(crate) fn kv_num_tiles(&self) -> Vec<u32> {
        (0..self.rows()).map(|row| self.work(row) as u32).collect()
    }

    /// Batch entry, head and query tile of a row.
    pub(crate) fn place(&self, row: usize) -> (usize, usize, usize) {
        let list = row / self.q_tiles;
        (list / self.heads, list % self.heads, row % self.q_tiles)
    }

    /// Kv tiles of a row that keep some of their cells, ascending.
    pub(crate) fn partial_tiles(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        self.runs_of(row).filter(|(.., full)| !full).flat_map(|(start, end, _)| start..end)
    }

    /// Partial tiles of all lists.
    pub(crate) fn partial_total(&self) -> u64 {
        let partial = self.runs.iter().filter(|[_, end]| end & FULL == 0);
        partial.map(|[start, end]| u64::from(end - start)).sum()
    }

    /// Kv tiles computed over one pass of all lists.
    pub(crate) fn total_work(&self) -> u64 {
        (0..self.rows()).map(|row| self.work(row)).sum()
    }

    /// Share of so many kv tiles that is computed, 0..=1.
    pub(crate) fn share(&self, all: usize) -> f64 {
        self.total_work() as f64 / all.max(1) as f64
    }
}

/// Possible numbers of neighbouring heads per section of a launch, the preferred one first: as many as fill half of the
/// L2 cache with keys and values, and of the numbers down to half of it the one with the fullest last section. Each
/// section starts with its heaviest tiles, and those of a few last heads may run on while other multiprocessors are
/// idle.
pub(crate) fn sections(l2_bytes: usize, kv_head_bytes: usize, group: usize, pairs: usize) -> Vec<usize> {
    let most = (l2_bytes / 2 / kv_head_bytes.max(1)).max(1);
    let kv_heads = pairs.div_ceil(group).max(1);
    if most >= kv_heads {
        return vec![pairs.max(1)];
    }
    let emptiness = |section: &usize| (section - 1 - (kv_heads - 1) % section) as f64 / *section as f64;
    let fullest = (most.div_ceil(2)..=most).rev().min_by(|a, b| emptiness(a).total_cmp(&emptiness(b))).unwrap_or(most);
    let mut all = vec![most * group, fullest * group];
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::lists::plan::*;

    fn kept(plan: &Plan, row: usize) -> Vec<(u32, bool)> {
        plan.runs_of(row).flat_map(|(start, end, full)| (start..end).map(move |tile| (tile, full))).collect()
    }

    #[test]
    fn causal_runs_agree_with_brute_force() {
        for (q_len, kv_len, tile_q, tile_kv) in
            [(300, 300, 128, 64), (1, 77, 64, 64), (200, 1000, 128, 32), (700, 65, 128, 64)]
        {
            let q_tiles = usize::div_ceil(q_len, tile_q);
            let plan = Plan::causal(q_tiles, tile_q, kv_len, tile_kv);
            for row in 0..q_tiles {
                let wanted: Vec<_> = (0..kv_len.div_ceil(tile_kv))
                    .filter_map(|t| {
                        let keep = |q: usize, k: usize| k < kv_len && q >= k;
                        let cells: Vec<bool> = (row * tile_q..(row + 1) * tile_q)
                            .flat_map(|q| (t * tile_kv..(t + 1) * tile_kv).map(move |k| keep(q, k)))
                            .collect();
                        cells.iter().any(|c| *c).then(|| (t as u32, cells.iter().all(|c| *c)))
                    })
                    .collect();
                assert_eq!(kept(&plan, row), wanted, "{q_len}x{kv_len} row {row}");
            }
        }
    }

    #[test]
    fn heavy_rows_come_first_and_nothing_is_lost() {
        let plan = Plan::causal(5, 128, 640, 64);
        assert_eq!(plan.tile_order, [4, 3, 2, 1, 0]);
        let plan = Plan::unmasked(3, 130, 64);
        assert_eq!(plan.tile_order, [0, 1, 2]);
        assert_eq!(kept(&plan, 1), [(0, true), (1, true), (2, false)]);
        assert_eq!(plan.total_work(), 9);
        assert_eq!((plan.kv_num_tiles(), Plan::causal(3, 128, 300, 64).kv_num_tiles()), (vec![3; 3], vec![2, 4, 5]));
        assert_eq!(kept(&Plan::dense(1, 2, 1, 1), 0), [(0, false), (1, false)]);
    }

    #[test]
    fn sections_hold_whole_groups() {
        assert_eq!(sections(50 << 20, 4 << 20, 1, 64), [6, 4]);
        assert_eq!(sections(50 << 20, 4 << 20, 4, 64), [24, 16]);
        // 8 heads of which 7 fit: 4 and 4 or 7 and 1; 13 of which 6 fit: 5, 5, 3 or 6, 6, 1
        assert_eq!(sections(60 << 20, 4 << 20, 1, 8), [7, 4]);
        assert_eq!(sections(50 << 20, 4 << 20, 1, 13), [6, 5]);
        assert_eq!(sections(50 << 20, 4 << 20, 1, 12), [6]);
        assert_eq!(sections(50 << 20, 1 << 30, 4, 64), [4]);
        assert_eq!(sections(50 << 20, 1, 1, 8), [8]);
    }
}
