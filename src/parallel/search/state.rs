//! An assignment of rows to ranks with its loads and its needed keys, kept up to date over moves.
//!
//! Invariant: `remote`, `load` and `size` are those of `owner`; `delta` is what `shift` would change. Must not know how
//! moves are chosen.

use super::work::Work;

/// No rank: the owner of columns that are not tied to rows.
const NOBODY: u16 = u16::MAX;

/// Of one rank, for each kind and up to each column: the columns that it does not keep and that one of its rows needs
/// alone, and those that none needs. A row's move is then weighed by the ends of its spans.
pub(super) struct Sums(Vec<Vec<(u32, u32)>>);

/// An assignment.
#[derive(Clone, Debug)]
pub(crate) struct State<'a> {
    pub work: &'a Work,
    pub ranks: usize,
    /// The rank of each row.
    pub owner: Vec<u16>,
    /// Rows of each rank.
    pub size: Vec<usize>,
    /// For each kind the load of each rank.
    pub load: Vec<Vec<f64>>,
    /// For each kind and rank: how many of its rows need each column.
    count: Vec<Vec<Vec<u16>>>,
    /// For each kind the columns that some rank needs and does not own.
    pub remote: Vec<i64>,
    /// The rank of each column.
    keeper: Vec<u16>,
}

impl<'a> State<'a> {
    /// The state of an assignment.
    pub(super) fn new(work: &'a Work, ranks: usize, owner: Vec<u16>) -> Self {
        let keeper = if work.coupled { owner.clone() } else { vec![NOBODY; work.cols] };
        let kinds = work.kinds.len();
        let mut state = Self {
            work,
            ranks,
            size: vec![0; ranks],
            load: vec![vec![0.0; ranks]; kinds],
            count: vec![vec![vec![0; work.cols]; ranks]; kinds],
            remote: vec![0; kinds],
            keeper,
            owner,
        };
        state.recount();
        state
    }

    fn recount(&mut self) {
        for row in 0..self.work.rows {
            self.size[self.owner[row] as usize] += 1;
        }
        for (m, kind) in self.work.kinds.iter().enumerate() {
            let mut steps = vec![vec![0i32; self.work.cols + 1]; self.ranks];
            for row in 0..self.work.rows {
                let rank = self.owner[row] as usize;
                self.load[m][rank] += kind.weight[row];
                for (from, to) in kind.needs(row) {
                    steps[rank][*from as usize] += 1;
                    steps[rank][*to as usize] -= 1;
                }
            }
            for (rank, steps) in steps.iter().enumerate() {
                let mut now = 0;
                for (col, step) in steps[..self.work.cols].iter().enumerate() {
                    now += step;
                    self.count[m][rank][col] = now as u16;
                    self.remote[m] += i64::from(now > 0 && self.keeper[col] != rank as u16);
                }
            }
        }
    }

    /// What the moves of a rank's rows are weighed by, until its counts change.
    pub(super) fn sums(&self, rank: usize) -> Sums {
        let of = |counts: &[Vec<u16>]| {
            let mut sums = Vec::with_capacity(self.work.cols + 1);
            let (mut single, mut missing) = (0, 0);
            sums.push((0, 0));
            for (count, keeper) in counts[rank].iter().zip(&self.keeper) {
                let others = *keeper != rank as u16;
                single += u32::from((*count == 1) & others);
                missing += u32::from((*count == 0) & others);
                sums.push((single, missing));
            }
            sums
        };
        Sums(self.count.iter().map(|counts| of(counts)).collect())
    }

    /// How the weighted number of remote columns changes if a row moves to a rank. `of`: of its rank and of that one.
    pub(super) fn delta(&self, row: usize, to: usize, of: (&Sums, &Sums)) -> f64 {
        let from = self.owner[row] as usize;
        let mut change = 0.0;
        for (m, kind) in self.work.kinds.iter().enumerate() {
            let (left, joined) = (self.count[m][from].get(row), self.count[m][to].get(row));
            let (ours, theirs) = (&of.0.0[m], &of.1.0[m]);
            let (mut net, mut own) = (0, false);
            for (start, end) in kind.needs(row) {
                let (start, end) = (*start as usize, *end as usize);
                own |= (start..end).contains(&row);
                net += i64::from(theirs[end].1 - theirs[start].1) - i64::from(ours[end].0 - ours[start].0);
            }
            if let (true, Some(left), Some(joined)) = (self.work.coupled, left, joined) {
                // the row's own column moves with it
                net -= i64::from(own && *joined == 0);
                net += i64::from(*left > u16::from(own));
                net -= i64::from(*joined > 0);
            }
            change += kind.layers * net as f64;
        }
        change
    }

    /// Moves a row to a rank.
    pub(super) fn shift(&mut self, row: usize, to: usize) {
        let from = self.owner[row] as usize;
        let (a, b) = (from as u16, to as u16);
        for (m, kind) in self.work.kinds.iter().enumerate() {
            self.load[m][from] -= kind.weight[row];
            self.load[m][to] += kind.weight[row];
            let mut net = 0i64;
            for (start, end) in kind.needs(row) {
                let (start, end) = (*start as usize, *end as usize);
                for (count, keeper) in self.count[m][from][start..end].iter_mut().zip(&self.keeper[start..end]) {
                    *count -= 1;
                    net -= i64::from((*count == 0) & (*keeper != a));
                }
            }
            if self.work.coupled {
                net += i64::from(self.count[m][from][row] > 0);
                net -= i64::from(self.count[m][to][row] > 0);
            }
            for (start, end) in kind.needs(row) {
                let (start, end) = (*start as usize, *end as usize);
                let columns = self.count[m][to][start..end].iter_mut().zip(&self.keeper[start..end]);
                for (at, (count, keeper)) in columns.enumerate() {
                    let kept = (*keeper == b) | (self.work.coupled & (start + at == row));
                    net += i64::from((*count == 0) & !kept);
                    *count += 1;
                }
            }
            self.remote[m] += net;
        }
        if self.work.coupled {
            self.keeper[row] = b;
        }
        self.owner[row] = b;
        self.size[from] -= 1;
        self.size[to] += 1;
    }

    /// Remote columns over all layers, as a share of the all-gather.
    pub(super) fn share(&self) -> f64 {
        let layers = self.work.kinds.iter().map(|kind| kind.layers);
        // without owners, each column that anybody needs is kept by one who needs it
        let kept = if self.work.coupled { 0 } else { self.work.cols as i64 };
        let remote: f64 = layers.zip(&self.remote).map(|(layers, remote)| layers * (remote - kept).max(0) as f64).sum();
        remote / self.work.all_gather(self.ranks).max(1.0)
    }

    /// The slowest rank against the mean, each kind by its share of the time.
    pub(super) fn imbalance(&self) -> f64 {
        let mut sum = 0.0;
        for ((kind, share), load) in self.work.kinds.iter().zip(self.work.shares()).zip(&self.load) {
            let mean = kind.total / self.ranks as f64;
            let most = load.iter().fold(0.0f64, |a, b| a.max(*b));
            sum += if mean > 0.0 { share * most / mean } else { share };
        }
        if sum > 0.0 { sum } else { 1.0 }
    }
}
