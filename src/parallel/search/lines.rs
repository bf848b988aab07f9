//! Orders of the rows: pieces that need little of each other, in several sequences.
//!
//! Invariant: every line holds every row once. Must not know ranks.

use super::work::Work;
use crate::base::rng::Rng;

/// Where every place is crossed by more than this share of all keys, pieces in another order need them as well.
const MOST_SHARED: f64 = 0.05;

/// Pieces of the sequence between which few keys are needed.
pub(crate) fn pieces(work: &Work) -> Vec<(usize, usize)> {
    let n = work.rows;
    if !work.coupled || n < 2 {
        return vec![(0, n)];
    }
    let cut = cuts(work);
    let least = cut[1..n].iter().copied().fold(f64::INFINITY, f64::min);
    let layers: f64 = work.kinds.iter().map(|kind| kind.layers).sum();
    if least > MOST_SHARED * layers * work.cols as f64 {
        return vec![(0, n)];
    }
    let limit = least + 1.5 * layers;
    let (mut out, mut start) = (Vec::new(), 0);
    for at in 1..n {
        let valley = cut[at] <= limit
            && cut[at] <= cut[at - 1].max(if at == 1 { f64::INFINITY } else { 0.0 })
            && (at + 1 >= n || cut[at] <= cut[at + 1]);
        if valley {
            out.push((start, at));
            start = at;
        }
    }
    out.push((start, n));
    out
}

/// For every place between rows the keys needed across it.
fn cuts(work: &Work) -> Vec<f64> {
    let n = work.rows;
    let mut steps = vec![0.0; n + 2];
    for kind in &work.kinds {
        let (mut first, mut last) = (vec![u32::MAX; n], vec![0u32; n]);
        for row in 0..n {
            for (from, to) in kind.needs(row) {
                for col in *from as usize..*to as usize {
                    first[col] = first[col].min(row as u32);
                    last[col] = last[col].max(row as u32);
                }
            }
        }
        for col in (0..n).filter(|col| first[*col] != u32::MAX) {
            // needed by a later row: across every place up to it; by an earlier one likewise
            if last[col] as usize > col {
                steps[col + 1] += kind.layers;
                steps[last[col] as usize + 1] -= kind.layers;
            }
            if (first[col] as usize) < col {
                steps[first[col] as usize + 1] += kind.layers;
                steps[col + 1] -= kind.layers;
            }
        }
    }
    let mut now = 0.0;
    steps
        .iter()
        .map(|step| {
            now += step;
            now
        })
        .take(n + 1)
        .collect()
}

/// Lines to try: the natural one first.
pub(crate) fn lines(work: &Work, shuffles: usize) -> Vec<Vec<u32>> {
    let pieces = pieces(work);
    let natural: Vec<u32> = (0..work.rows as u32).collect();
    let mut out = vec![natural];
    if pieces.len() < 3 {
        return out;
    }
    let shares = work.shares();
    let work_of = |piece: &(usize, usize)| -> f64 {
        let of =
            |m: usize| work.kinds[m].weight[piece.0..piece.1].iter().sum::<f64>() / work.kinds[m].total.max(1e-300);
        (0..shares.len()).map(|m| shares[m] * of(m)).sum()
    };
    let line =
        |order: &[usize]| -> Vec<u32> { order.iter().flat_map(|n| pieces[*n].0 as u32..pieces[*n].1 as u32).collect() };
    let mut by_work: Vec<usize> = (0..pieces.len()).collect();
    let works: Vec<f64> = pieces.iter().map(work_of).collect();
    by_work.sort_by(|a, b| works[*b].total_cmp(&works[*a]).then(a.cmp(b)));
    out.push(line(&by_work));
    let (mut front, mut back) = (Vec::new(), Vec::new());
    by_work.iter().enumerate().for_each(|(at, n)| if at % 2 == 0 { front.push(*n) } else { back.push(*n) });
    back.reverse();
    front.extend(back);
    out.push(line(&front));
    // the heaviest beside the lightest: its last rows leave room for many light ones
    let rising = |first: usize| -> Vec<usize> {
        let heavy = by_work[..first].iter();
        heavy.chain(by_work[first..].iter().rev()).copied().collect()
    };
    out.push(line(&rising(1)));
    out.push(line(&rising(2)));
    let mut rng = Rng::new(0x5eed);
    for _ in 0..shuffles {
        let mut order: Vec<usize> = (0..pieces.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, rng.below(at + 1));
        }
        out.push(line(&order));
    }
    out
}
