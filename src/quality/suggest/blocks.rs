//! Lists of the blocks that hold most mass: top-p row by row, the fewest blocks anywhere, and the same for all heads together.
//!
//! Invariant: a list taken by mass reaches the ceiling of its number of blocks, to rounding. Must not know other forms.

use super::budget::{forced, ranked};
use super::columns::mean_blocks;
use super::form::{BlockSet, Form};
use super::{Candidate, Material, Target, Wanted};
use crate::base::{Control, Diagnostic};
use crate::quality::live::LiveHead;

/// Three proposals: per row and head (top-p), anywhere and per head (global), anywhere and one list for all heads.
pub(super) fn propose(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    let must = forced(material, wanted);
    let form = |heads: Vec<BlockSet>| Form::Blocks { size: material.block(), heads, causal: material.causal };
    let mut found = Vec::new();
    if let Target::Mass(p) = wanted.target {
        let sets = material.heads.iter().map(|head| top_p(head, p, 0, &must)).collect();
        let why =
            format!("in each row of blocks the fewest blocks that hold {:.0}% of its mass, head by head", 100.0 * p);
        found.push(material.judge("block top-p", why, form(by_number(material, sets)), control)?);
    }
    let refs: Vec<&LiveHead> = material.heads.iter().collect();
    let sets = anywhere(&refs, wanted.target, &must);
    let why = "the blocks with most mass of all heads and rows: heads and rows that need fewer leave theirs to others";
    found.push(material.judge("global top blocks", why.into(), form(by_number(material, sets)), control)?);
    let one = shared(material, wanted.target, &must);
    let why = "the blocks with most mass over all heads, one list for all of them";
    found.push(material.judge("one block list", why.into(), form(vec![one]), control)?);
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
pub fn top_p(head: &LiveHead, p: f64, least: usize, must: &[u8]) -> BlockSet {
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

/// The largest blocks of all heads together: the greedy choice, best for a mass that adds up.
pub(super) fn anywhere(heads: &[&LiveHead], target: Target, must: &[u8]) -> Vec<BlockSet> {
    let mut sets = vec![must.to_vec(); heads.len()];
    let judged: f64 = heads.iter().flat_map(|h| (0..h.masses.grid().0).map(|i| h.masses.judged(i) as f64)).sum();
    let mut count = sets.len() * must.iter().filter(|k| **k == 1).count();
    let all = (must.len() * heads.len()) as f64;
    let ranked = ranked(heads);
    let mut mass: f64 = ranked.iter().filter(|b| must[b.at] == 1).map(|b| b.mass).sum();
    for block in ranked.iter().filter(|b| must[b.at] == 0) {
        let enough = match target {
            Target::Mass(p) => mass >= (p - 1e-7) * judged,
            Target::Blocks(share) => (count + 1) as f64 > share * all + 1e-9,
        };
        if enough {
            break;
        }
        sets[block.head][block.at] = 1;
        mass += block.mass;
        count += 1;
    }
    sets
}

/// One list from the mean over heads.
fn shared(material: &Material, target: Target, must: &[u8]) -> BlockSet {
    let mass = mean_blocks(material);
    let mut order: Vec<usize> = (0..mass.len()).filter(|at| must[*at] == 0 && mass[*at] > 0.0).collect();
    order.sort_unstable_by(|a, b| mass[*b].total_cmp(&mass[*a]));
    let mut set = must.to_vec();
    let mut kept: f64 = (0..mass.len()).filter(|at| must[*at] == 1).map(|at| mass[at]).sum();
    let mut count = must.iter().filter(|k| **k == 1).count();
    for at in order {
        let enough = match target {
            Target::Mass(p) => kept >= p - 1e-7,
            Target::Blocks(share) => (count + 1) as f64 > share * mass.len() as f64 + 1e-9,
        };
        if enough {
            break;
        }
        set[at] = 1;
        kept += mass[at];
        count += 1;
    }
    set
}
