//! Heads under one budget with few distinct masks: heads with mass in the same blocks share a list.
//!
//! Invariant: every head's list contains the protected blocks; a group has one list. Must not know other forms.

use super::blocks::{anywhere, by_number};
use super::budget::forced;
use super::form::{BlockSet, Form};
use super::{Candidate, Kind, Material, Reason, Target, Wanted};
use crate::base::{Control, Diagnostic};
use crate::quality::live::LiveHead;

/// One proposal: at most `most_masks` lists, each for a group of like heads. None for a single head or a single mask.
pub(super) fn propose(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    let heads: Vec<&LiveHead> = material.heads.iter().collect();
    if heads.len() < 3 || wanted.most_masks < 2 || wanted.most_masks >= heads.len() {
        return Ok(Vec::new());
    }
    let must = forced(material, wanted);
    let own = anywhere(&heads, wanted.target, &must);
    let groups = medoids(&own, wanted.most_masks);
    // a group's list is chosen on its heads' mean, at a level that is raised until the target holds for all heads together
    let (mut low, mut high) = (0.0f64, 1.0f64);
    let mut best = None;
    for _ in 0..8 {
        let level = match wanted.target {
            Target::Mass(_) if best.is_none() => 1.0,
            Target::Mass(_) => 0.5 * (low + high),
            Target::Blocks(_) => 0.0,
        };
        let sets = grouped(&heads, &groups, wanted.target, level, &must);
        let form = Form::Blocks { size: material.block(), heads: by_number(material, sets), causal: material.causal };
        let why = Reason::HeadGroups { lists: count(&groups), heads: heads.len() };
        let found = material.judge(Kind::HeadGroups, why, form, control)?;
        let Target::Mass(mass) = wanted.target else { return Ok(vec![found]) };
        if found.mass >= mass - 1e-6 {
            high = level;
            best = Some(found);
        } else if best.is_none() {
            return Ok(vec![found]);
        } else {
            low = level;
        }
    }
    Ok(best.into_iter().collect())
}

fn count(groups: &[usize]) -> usize {
    let mut seen = groups.to_vec();
    seen.sort_unstable();
    seen.dedup();
    seen.len()
}

/// Each head gets its group's list: the blocks with most summed mass of the group.
fn grouped(heads: &[&LiveHead], groups: &[usize], target: Target, level: f64, must: &[u8]) -> Vec<BlockSet> {
    let mut sets = vec![must.to_vec(); heads.len()];
    let mut names = groups.to_vec();
    names.sort_unstable();
    names.dedup();
    for group in names {
        let members: Vec<usize> = (0..heads.len()).filter(|h| groups[*h] == group).collect();
        let (rows, columns) = heads[0].masses.grid();
        let mut mass = vec![0.0; rows * columns];
        for h in &members {
            for (at, m) in heads[*h].masses.blocks.iter().enumerate() {
                mass[at] += f64::from(*m) * heads[*h].masses.judged(at / columns) as f64;
            }
        }
        let total: f64 = mass.iter().sum();
        let mut order: Vec<usize> = (0..mass.len()).filter(|at| must[*at] == 0 && mass[*at] > 0.0).collect();
        order.sort_unstable_by(|a, b| mass[*b].total_cmp(&mass[*a]));
        let mut kept: f64 = (0..mass.len()).filter(|at| must[*at] == 1).map(|at| mass[at]).sum();
        let mut set = must.to_vec();
        let before = must.iter().filter(|k| **k == 1).count();
        for (count, at) in (before..).zip(order) {
            let enough = match target {
                Target::Mass(_) => kept >= level * total,
                Target::Blocks(share) => (count + 1) as f64 > share * mass.len() as f64,
            };
            if enough {
                break;
            }
            set[at] = 1;
            kept += mass[at];
        }
        members.iter().for_each(|h| sets[*h] = set.clone());
    }
    sets
}

/// 1 - Jaccard index of two lists.
fn distance(a: &[u8], b: &[u8]) -> f64 {
    let both = a.iter().zip(b).filter(|(a, b)| **a == 1 && **b == 1).count();
    let any = a.iter().zip(b).filter(|(a, b)| **a == 1 || **b == 1).count();
    1.0 - both as f64 / any.max(1) as f64
}

/// Groups of at most `most` lists around one of them each (k-medoids): the number of its medoid for each list.
pub fn medoids(sets: &[BlockSet], most: usize) -> Vec<usize> {
    let n = sets.len();
    let apart: Vec<f64> = (0..n * n).map(|at| distance(&sets[at / n], &sets[at % n])).collect();
    let nearest = |medoids: &[usize], h: usize| {
        medoids.iter().copied().min_by(|a, b| apart[h * n + a].total_cmp(&apart[h * n + b])).unwrap_or(0)
    };
    let cost = |medoids: &[usize]| (0..n).map(|h| apart[h * n + nearest(medoids, h)]).sum::<f64>();
    let mut chosen: Vec<usize> = Vec::new();
    while chosen.len() < most.min(n) {
        let with = |h: usize| [chosen.as_slice(), &[h]].concat();
        let Some(next) =
            (0..n).filter(|h| !chosen.contains(h)).min_by(|a, b| cost(&with(*a)).total_cmp(&cost(&with(*b))))
        else {
            break;
        };
        if !chosen.is_empty() && cost(&with(next)) >= cost(&chosen) {
            break;
        }
        chosen.push(next);
    }
    // swaps that help, until none does
    let mut moved = true;
    while moved {
        moved = false;
        for at in 0..chosen.len() {
            for h in 0..n {
                let mut other = chosen.clone();
                other[at] = h;
                if !chosen.contains(&h) && cost(&other) < cost(&chosen) - 1e-12 {
                    chosen = other;
                    moved = true;
                }
            }
        }
    }
    (0..n).map(|h| nearest(&chosen, h)).collect()
}

/// How many different lists a form has.
pub fn distinct(form: &Form) -> usize {
    match form {
        Form::Blocks { heads, .. } => {
            let mut all: Vec<&BlockSet> = heads.iter().collect();
            all.sort_unstable();
            all.dedup();
            all.len()
        }
        Form::PerHead(groups) => groups.len(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::head::{Head, Own};
    use crate::quality::suggest::Protect;
    use crate::quality::suggest::tests::material;
    use crate::quality::testing::head;

    /// Lists of blocks from the bits of numbers.
    fn sets(of: &[u32]) -> Vec<BlockSet> {
        of.iter().map(|bits| (0..8).map(|at| (bits >> at & 1) as u8).collect()).collect()
    }

    fn jaccard(a: u32, b: u32) -> f64 {
        if a | b == 0 { 1.0 } else { 1.0 - f64::from((a & b).count_ones()) / f64::from((a | b).count_ones()) }
    }

    #[test]
    fn the_groups_of_lists_are_the_closest_of_all() {
        let lists = [0b1111_0000, 0b0000_1111, 0b1110_0000, 0b0000_1110, 0b1111_1000, 0b0011_1100, 0b0001_1111];
        for most in 1..=lists.len() {
            let found = medoids(&sets(&lists), most);
            let cost = |around: &[usize]| -> f64 {
                let nearest = |of: &u32| around.iter().map(|m| jaccard(*of, lists[*m])).fold(f64::INFINITY, f64::min);
                lists.iter().map(nearest).sum()
            };
            let least = (1u32..1 << lists.len())
                .filter(|chosen| chosen.count_ones() as usize <= most)
                .map(|chosen| cost(&(0..lists.len()).filter(|at| chosen >> at & 1 == 1).collect::<Vec<_>>()))
                .fold(f64::INFINITY, f64::min);
            let own: f64 = found.iter().zip(&lists).map(|(m, of)| jaccard(*of, lists[*m])).sum();
            assert!(count(&found) <= most && (own - least).abs() < 1e-9, "{most}: {found:?} {own} {least}");
        }
        // equal lists need no second group
        assert_eq!(medoids(&sets(&[5, 5, 5]), 3), [0, 0, 0]);
        assert_eq!(medoids(&sets(&[5, 6, 5, 6]), 2), [0, 1, 0, 1]);
    }

    #[test]
    fn different_lists_of_a_form_are_counted() {
        let blocks =
            |of: &[u32]| Form::Blocks { size: crate::base::BlockSize::square(16), heads: sets(of), causal: false };
        let window = Form::Window { back: 3, ahead: 0, sinks: 0, causal: true };
        assert_eq!((distinct(&blocks(&[1, 2, 1, 3])), distinct(&blocks(&[1]))), (3, 1));
        assert_eq!(distinct(&Form::PerHead(vec![(vec![0, 2], window.clone()), (vec![1], blocks(&[1]))])), 2);
        assert_eq!(distinct(&window), 1);
    }

    /// A group's list at a level, and under a budget: of all lists with the protected blocks the shortest that holds the share of the
    /// group's mass, or the one with the most mass.
    #[test]
    fn no_other_list_of_a_group_is_better() {
        let made = material((0..3).map(|seed| head(seed + 1, 24, 20, 6, 2.0)).collect(), 8, None);
        let heads: Vec<&LiveHead> = made.heads.iter().collect();
        let cells = 9;
        for must in [[0u8; 9], [1, 0, 0, 0, 1, 0, 0, 0, 1]] {
            for groups in [[0, 0, 0], [0, 1, 0], [2, 1, 2]] {
                for twentieths in 0..=20 {
                    let level = f64::from(twentieths) / 20.0;
                    for target in [Target::Mass(0.5), Target::Blocks(level)] {
                        let found = grouped(&heads, &groups, target, level, &must);
                        for (h, set) in found.iter().enumerate() {
                            let members: Vec<usize> = (0..3).filter(|other| groups[*other] == groups[h]).collect();
                            let mass = |at: usize| -> f64 {
                                members.iter().map(|h| 8.0 * f64::from(heads[*h].masses.blocks[at])).sum()
                            };
                            let of = |set: u32| (0..cells).filter(|at| set >> at & 1 == 1).map(mass).sum::<f64>();
                            let protected: u32 = (0..cells).map(|at| u32::from(must[at]) << at).sum();
                            let own: u32 = (0..cells).map(|at| u32::from(set[at]) << at).sum();
                            assert_eq!(own & protected, protected);
                            let all = (0u32..1 << cells).filter(|set| set & protected == protected);
                            match target {
                                Target::Mass(_) => {
                                    let total = of((1 << cells) - 1);
                                    // rounding decides only at the share itself
                                    let least = |share: f64| {
                                        let with = all.clone().filter(|set| of(*set) >= share * total);
                                        with.map(u32::count_ones).min()
                                    };
                                    let count = Some(own.count_ones());
                                    let full = Some(cells as u32);
                                    let most = least(level + 1e-9).or(full);
                                    assert!(least(level - 1e-9) <= count && count <= most, "{level}: {set:?}");
                                }
                                Target::Blocks(share) => {
                                    let room = (share * cells as f64).max(f64::from(protected.count_ones()));
                                    let within = all.filter(|set| f64::from(set.count_ones()) <= room);
                                    let most = within.map(of).fold(0.0, f64::max);
                                    assert!(f64::from(own.count_ones()) <= room, "{share}: {set:?}");
                                    assert!((of(own) - most).abs() < 1e-9, "{share}: {set:?} {most}");
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_without_mass_are_left_out_under_any_budget() {
        let keep: Vec<u8> = (0..24 * 24).map(|at| u8::from(at / 24 / 8 == at % 24 / 8)).collect();
        let made = material(vec![Head { own: Own::Keep(keep.into()), ..head(1, 24, 24, 6, 1.0) }], 8, None);
        let heads: Vec<&LiveHead> = made.heads.iter().collect();
        let found = grouped(&heads, &[0], Target::Blocks(1.0), 0.0, &[0; 9]);
        assert_eq!(found, [vec![1, 0, 0, 0, 1, 0, 0, 0, 1]]);
    }

    /// The level of the groups' lists is the lowest of 128 at which all heads together reach the target.
    #[test]
    fn groups_keep_no_more_than_the_target_needs() {
        let made = material((0..4).map(|seed| head(seed + 1, 64, 64, 6, 2.0)).collect(), 4, None);
        let must = vec![0; 256];
        let heads: Vec<&LiveHead> = made.heads.iter().collect();
        for mass in [0.3, 0.62, 0.9] {
            let wanted = Wanted { target: Target::Mass(mass), protect: Protect::NONE, grid: None, most_masks: 2 };
            let found = propose(&made, &wanted, &Control::new()).expect("proposed").remove(0);
            let groups = medoids(&anywhere(&heads, wanted.target, &must), 2);
            let at = |level: f64| {
                let sets = grouped(&heads, &groups, wanted.target, level, &must);
                let form = Form::Blocks { size: made.block(), heads: by_number(&made, sets), causal: false };
                made.judge(Kind::HeadGroups, Reason::Part, form, &Control::new()).expect("judged")
            };
            let all: Vec<Candidate> = (0..=128).map(|n| at(f64::from(n) / 128.0)).collect();
            let lowest = all.iter().find(|c| c.mass >= mass - 1e-6).expect("the highest keeps all");
            assert_eq!((found.form, found.mass), (lowest.form.clone(), lowest.mass), "{mass}");
        }
    }

    /// What no level reaches is proposed as it is: here a protected list that is all there is.
    #[test]
    fn groups_that_cannot_reach_the_target_keep_all_blocks_with_mass() {
        let made = material((0..3).map(|seed| head(seed + 1, 32, 32, 6, 2.0)).collect(), 8, None);
        let wanted = Wanted { target: Target::Mass(1.1), protect: Protect::NONE, grid: None, most_masks: 2 };
        let found = propose(&made, &wanted, &Control::new()).expect("proposed").remove(0);
        assert!((found.mass - 1.0).abs() < 1e-6 && found.density == 1.0, "{found:?}");
    }
}
