//! Lists of the blocks with the most mass: top-p row by row, the fewest blocks anywhere, and one list for all heads.
//!
//! Invariant: a list chosen by mass reaches the ceiling of its number of blocks, up to rounding. Must not know other
//! forms.

use super::budget::{forced, ranked};
use super::columns::mean_blocks;
use super::form::{BlockSet, Form};
use super::{Candidate, Kind, Material, Reason, Target, Wanted};
use crate::base::{Control, Diagnostic};
use crate::quality::live::LiveHead;

/// Three proposals: per row and head (top-p), anywhere and per head (global), anywhere and one list for all heads.
pub(super) fn propose(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    let must = forced(material, wanted);
    let form = |heads: Vec<BlockSet>| Form::Blocks { size: material.block(), heads, causal: material.causal };
    let mut found = Vec::new();
    if let Target::Mass(p) = wanted.target {
        let sets = material.heads.iter().map(|head| top_p(head, p, 0, &must)).collect();
        found.push(material.judge(Kind::TopP, Reason::TopP(p), form(by_number(material, sets)), control)?);
    }
    let (k, sets) = top_k(material, wanted.target, &must);
    found.push(material.judge(Kind::TopK, Reason::TopK(k), form(by_number(material, sets)), control)?);
    if let Target::Mass(p) = wanted.target {
        let (k, share, sets) = both(material, p, &must);
        let why = Reason::TopEither(k, share);
        found.push(material.judge(Kind::TopEither, why, form(by_number(material, sets)), control)?);
    }
    let refs: Vec<&LiveHead> = material.heads.iter().collect();
    let sets = anywhere(&refs, wanted.target, &must);
    found.push(material.judge(Kind::Global, Reason::Global, form(by_number(material, sets)), control)?);
    let one = shared(material, wanted.target, &must);
    found.push(material.judge(Kind::OneList, Reason::OneList, form(vec![one]), control)?);
    Ok(found)
}

/// Lists by query head number; a head that is not there keeps everything.
pub(super) fn by_number(material: &Material, sets: Vec<BlockSet>) -> Vec<BlockSet> {
    let cells = sets.first().map_or(0, Vec::len);
    let mut all = vec![vec![1; cells]; material.head_count()];
    for (head, set) in material.heads.iter().zip(sets) {
        all[head.scorer.head().place.1] = set;
    }
    all
}

/// Row by row: what must be, and the largest blocks until `p` of the row's mass and at least `least` blocks are there.
pub(super) fn top_p(head: &LiveHead, p: f64, least: usize, must: &[u8]) -> BlockSet {
    let (rows, columns) = head.masses.grid();
    let mut set = must.to_vec();
    for i in 0..rows {
        let row = head.masses.row(i);
        let kept = &mut set[i * columns..(i + 1) * columns];
        let mut order: Vec<usize> = (0..columns).collect();
        order.sort_unstable_by(|a, b| row[*b].total_cmp(&row[*a]));
        let total: f64 = row.iter().map(|m| f64::from(*m)).sum();
        let mut sum: f64 = kept.iter().zip(row).filter(|(k, _)| **k == 1).map(|(_, m)| f64::from(*m)).sum();
        let mut count = kept.iter().filter(|k| **k == 1).count();
        for j in order {
            if (sum >= p * total - 1e-7 && count >= least) || row[j] == 0.0 {
                break;
            }
            if kept[j] == 0 {
                kept[j] = 1;
                sum += f64::from(row[j]);
                count += 1;
            }
        }
    }
    set
}

/// The share of the blocks that the largest need for a mass, anywhere in all heads.
pub(super) fn least_density(material: &Material, mass: f64) -> f64 {
    let (rows, columns) = material.block().grid(material.lengths());
    let refs: Vec<&LiveHead> = material.heads.iter().collect();
    let sets = anywhere(&refs, Target::Mass(mass), &vec![0; rows * columns]);
    let count = sets.iter().flatten().filter(|b| **b == 1).count();
    count as f64 / (rows * columns * refs.len()) as f64
}

/// Mean over heads and rows of the mass that lists keep.
fn kept(material: &Material, sets: &[BlockSet]) -> f64 {
    let of = |(head, set): (&LiveHead, &BlockSet)| {
        let (rows, columns) = head.masses.grid();
        let (mut sum, mut total) = (0.0, 0.0);
        for i in 0..rows {
            let weight = head.masses.judged(i) as f64;
            total += weight;
            let row = head.masses.row(i).iter().zip(&set[i * columns..(i + 1) * columns]);
            sum += weight * row.filter(|(_, k)| **k == 1).map(|(m, _)| f64::from(*m)).sum::<f64>();
        }
        sum / total.max(1.0)
    };
    material.heads.iter().zip(sets).map(of).sum::<f64>() / material.heads.len() as f64
}

/// The same number of blocks in every row: the smallest that keeps the mass, or the largest within the budget.
fn top_k(material: &Material, target: Target, must: &[u8]) -> (usize, Vec<BlockSet>) {
    let columns = material.block().grid(material.lengths()).1;
    let sets = |k: usize| -> Vec<BlockSet> { material.heads.iter().map(|head| top_p(head, 0.0, k, must)).collect() };
    let fits = |k: usize| match target {
        Target::Mass(p) => kept(material, &sets(k)) >= p - 1e-7,
        Target::Blocks(share) => {
            let sets = sets(k + 1);
            let count = sets.iter().flatten().filter(|b| **b == 1).count();
            count as f64 > share * (must.len() * sets.len()) as f64
        }
    };
    let (mut low, mut high) = (1, columns);
    while low < high {
        let middle = usize::midpoint(low, high);
        if fits(middle) { high = middle } else { low = middle + 1 }
    }
    (low, sets(low))
}

/// Top-k and top-p together (SpargeAttention2, arXiv:2602.13515): as many blocks in every row as a quarter of the rows need by top-p,
/// and a share of the mass as small as the target then allows.
fn both(material: &Material, p: f64, must: &[u8]) -> (usize, f64, Vec<BlockSet>) {
    let columns = material.block().grid(material.lengths()).1;
    let sets = |k: usize, p: f64| -> Vec<BlockSet> { material.heads.iter().map(|h| top_p(h, p, k, must)).collect() };
    let alone = sets(0, p);
    let mut counts: Vec<usize> =
        alone.iter().flat_map(|set| set.chunks(columns).map(|row| row.iter().filter(|b| **b == 1).count())).collect();
    counts.sort_unstable();
    let k = counts[counts.len() / 4].max(1);
    let (mut low, mut high) = (0.0, p);
    for _ in 0..10 {
        let middle = 0.5 * (low + high);
        if kept(material, &sets(k, middle)) >= p - 1e-7 { high = middle } else { low = middle }
    }
    (k, high, sets(k, high))
}

/// The largest blocks of all heads together: the greedy choice, best for a mass that adds up.
pub(super) fn anywhere(heads: &[&LiveHead], target: Target, must: &[u8]) -> Vec<BlockSet> {
    let mut sets = vec![must.to_vec(); heads.len()];
    let judged: f64 = heads.iter().flat_map(|h| (0..h.masses.grid().0).map(|i| h.masses.judged(i) as f64)).sum();
    let before = sets.len() * must.iter().filter(|k| **k == 1).count();
    let all = (must.len() * heads.len()) as f64;
    let ranked = ranked(heads);
    let mut mass: f64 = ranked.iter().filter(|b| must[b.at] == 1).map(|b| b.mass).sum();
    for (count, block) in (before..).zip(ranked.iter().filter(|b| must[b.at] == 0)) {
        let enough = match target {
            Target::Mass(p) => mass >= (p - 1e-7) * judged,
            Target::Blocks(share) => (count + 1) as f64 > share * all + 1e-9,
        };
        if enough {
            break;
        }
        sets[block.head][block.at] = 1;
        mass += block.mass;
    }
    sets
}

/// One list from the mean over heads.
pub(super) fn shared(material: &Material, target: Target, must: &[u8]) -> BlockSet {
    let mass = mean_blocks(material);
    let mut order: Vec<usize> = (0..mass.len()).filter(|at| must[*at] == 0 && mass[*at] > 0.0).collect();
    order.sort_unstable_by(|a, b| mass[*b].total_cmp(&mass[*a]));
    let mut set = must.to_vec();
    let mut kept: f64 = (0..mass.len()).filter(|at| must[*at] == 1).map(|at| mass[at]).sum();
    let before = must.iter().filter(|k| **k == 1).count();
    for (count, at) in (before..).zip(order) {
        let enough = match target {
            Target::Mass(p) => kept >= p - 1e-7,
            Target::Blocks(share) => (count + 1) as f64 > share * mass.len() as f64 + 1e-9,
        };
        if enough {
            break;
        }
        set[at] = 1;
        kept += mass[at];
    }
    set
}
