//! Heads under one budget, each with its own candidate: windows, stripes, boxes and block lists fitted head by head,
//! and chosen so that all heads together reach the target with the fewest blocks.
//!
//! Invariant: no other choice of the same candidates on the convex hull of lost mass against blocks is better (a
//! Lagrangian sweep, as in HASTE); heads share candidates if only few masks may differ. Must not know how single forms
//! are found.

use super::blocks::anywhere;
use super::budget::forced;
use super::form::Form;
use super::heads::medoids;
use super::window::Windows;
use super::{Candidate, Kind, Material, Protect, Reason, Target, Wanted, columns, grid, radial};
use crate::base::{Control, Diagnostic};
use crate::quality::live::LiveHead;

/// Masses at which candidates are fitted.
const LEVELS: [f64; 7] = [0.5, 0.7, 0.85, 0.92, 0.96, 0.98, 0.995];

/// A candidate of a group.
struct Choice {
    form: Form,
    /// Mass summed over its heads.
    mass: f64,
    /// Visited blocks, summed over its heads, over all blocks of one head.
    cost: f64,
}

/// One proposal; none for a single head.
pub(super) fn propose(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    let count = material.heads.len();
    if count < 2 || wanted.most_masks < 2 {
        return Ok(Vec::new());
    }
    let groups = groups(material, wanted);
    let tables: Vec<Vec<Choice>> =
        groups.iter().map(|of| options(&material.only(of), wanted, control)).collect::<Result<_, _>>()?;
    let level = match wanted.target {
        Target::Mass(mass) => mass * count as f64,
        Target::Blocks(share) => share * count as f64,
    };
    let chosen = sweep(&tables, wanted.target, level);
    let known = material.numbers();
    let numbers = |of: &[usize]| of.iter().map(|at| known[*at]).collect::<Vec<_>>();
    let mut made: Vec<(Vec<usize>, Form)> = Vec::new();
    for ((of, table), at) in groups.iter().zip(&tables).zip(&chosen) {
        let form = &table[*at].form;
        match made.iter_mut().find(|(_, other)| other == form) {
            Some((heads, _)) => heads.extend(numbers(of)),
            None => made.push((numbers(of), form.clone())),
        }
    }
    let unseen: Vec<usize> = (0..material.head_count()).filter(|h| !known.contains(h)).collect();
    if material.causal && !unseen.is_empty() {
        // heads that were not captured keep what the model keeps, not later keys too
        let form = Form::Window { back: material.lengths().q_len - 1, ahead: 0, sinks: 0, causal: true };
        match made.iter_mut().find(|(_, other)| *other == form) {
            Some((heads, _)) => heads.extend(unseen),
            None => made.push((unseen, form)),
        }
    }
    made.iter_mut().for_each(|(heads, _)| heads.sort_unstable());
    let why = match groups.len() == count {
        true => Reason::BudgetOfHeads(count),
        false => Reason::BudgetOfGroups(groups.len()),
    };
    Ok(vec![material.judge(Kind::Budget, why, Form::PerHead(made), control)?])
}

/// Heads by their places: each alone where so many masks may differ, else like heads together.
fn groups(material: &Material, wanted: &Wanted) -> Vec<Vec<usize>> {
    let count = material.heads.len();
    if wanted.most_masks >= count {
        return (0..count).map(|h| vec![h]).collect();
    }
    let must = forced(material, wanted);
    let refs: Vec<&LiveHead> = material.heads.iter().collect();
    let around = medoids(&anywhere(&refs, wanted.target, &must), wanted.most_masks);
    let mut names = around.clone();
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| (0..count).filter(|h| around[*h] == *name).collect()).collect()
}

/// Candidates of some heads: structured ones at several masses, block lists, and everything.
fn options(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Choice>, Diagnostic> {
    let mut found: Vec<Candidate> = Vec::new();
    let causal = material.causal;
    let must = forced(material, wanted);
    let windows = Windows::new(material, wanted, true, control)?;
    for level in LEVELS.into_iter().chain(match wanted.target {
        Target::Mass(mass) => Some(mass),
        Target::Blocks(_) => None,
    }) {
        let own = Wanted { target: Target::Mass(level), ..*wanted };
        found.push(windows.best(own.target, control)?);
        found.extend(columns::propose(material, &own, control)?);
        found.extend(grid::propose(material, &own, control)?);
        found.extend(radial::propose(material, &own, control)?);
        let refs: Vec<&LiveHead> = material.heads.iter().collect();
        if let [one] = &refs[..] {
            let heads = anywhere(&[one], own.target, &must);
            let form = Form::Blocks { size: material.block(), heads, causal };
            found.push(material.judge(Kind::List, Reason::Part, form, control)?);
        } else {
            let form = Form::Blocks {
                size: material.block(),
                heads: vec![super::blocks::shared(material, own.target, &must)],
                causal,
            };
            found.push(material.judge(Kind::List, Reason::Part, form, control)?);
        }
    }
    let (back, ahead) = (material.lengths().q_len - 1, if causal { 0 } else { material.lengths().kv_len - 1 });
    let whole = Form::Window { back, ahead, sinks: 0, causal };
    found.push(material.judge(Kind::Everything, Reason::Part, whole, control)?);
    let heads = material.heads.len() as f64;
    // every candidate keeps the protected cells; forms that cannot are used only without protection
    let keeps =
        |c: &Candidate| wanted.protect == Protect::NONE || !matches!(c.form, Form::Window { sinks: 0, back: 0, .. });
    Ok(found
        .into_iter()
        .filter(keeps)
        .map(|c| Choice { mass: c.mass * heads, cost: c.density * heads, form: c.form })
        .collect())
}

/// For each group the number of its candidate: the least cost at which all masses sum to the level, or the most mass within it.
fn sweep(tables: &[Vec<Choice>], target: Target, level: f64) -> Vec<usize> {
    let pick = |price: f64| -> Vec<usize> {
        let worth = |o: &Choice| o.mass - price * o.cost;
        let best = |of: &Vec<Choice>| {
            (0..of.len())
                .max_by(|a, b| {
                    let by_cost = of[*b].cost.total_cmp(&of[*a].cost);
                    worth(&of[*a]).total_cmp(&worth(&of[*b])).then(by_cost)
                })
                .unwrap_or(0)
        };
        tables.iter().map(best).collect()
    };
    let sum = |chosen: &[usize], of: fn(&Choice) -> f64| -> f64 {
        tables.iter().zip(chosen).map(|(table, at)| of(&table[*at])).sum()
    };
    let fits = |chosen: &[usize]| match target {
        Target::Mass(_) => sum(chosen, |o| o.mass) >= level - 1e-6,
        Target::Blocks(_) => sum(chosen, |o| o.cost) <= level + 1e-9,
    };
    // a higher price buys fewer blocks
    let (mut low, mut high) = (0.0f64, 1e6f64);
    let mut best = pick(if matches!(target, Target::Mass(_)) { low } else { high });
    for _ in 0..80 {
        let price = if low == 0.0 { high / 64.0 } else { (low * high).sqrt() };
        let chosen = pick(price.max(1e-9));
        let fitting = fits(&chosen);
        if fitting {
            best = chosen;
        }
        match (target, fitting) {
            (Target::Mass(_), true) | (Target::Blocks(_), false) => low = price.max(1e-9),
            _ => high = price,
        }
        if high < 2e-9 {
            break;
        }
    }
    refine(tables, target, level, best)
}

/// Single exchanges that help and still fit, until none does: the choices off the hull.
fn refine(tables: &[Vec<Choice>], target: Target, level: f64, mut chosen: Vec<usize>) -> Vec<usize> {
    for _ in 0..4 * tables.len() {
        let mass: f64 = tables.iter().zip(&chosen).map(|(t, at)| t[*at].mass).sum();
        let cost: f64 = tables.iter().zip(&chosen).map(|(t, at)| t[*at].cost).sum();
        let mut best: Option<(f64, usize, usize)> = None;
        for (g, table) in tables.iter().enumerate() {
            let now = &table[chosen[g]];
            for (at, other) in table.iter().enumerate() {
                let (mass, cost) = (mass - now.mass + other.mass, cost - now.cost + other.cost);
                let gain = match target {
                    Target::Mass(_) if mass >= level - 1e-6 => now.cost - other.cost,
                    Target::Blocks(_) if cost <= level + 1e-9 => other.mass - now.mass,
                    _ => continue,
                };
                if gain > 1e-9 && best.is_none_or(|(most, ..)| gain > most) {
                    best = Some((gain, g, at));
                }
            }
        }
        let Some((_, g, at)) = best else { break };
        chosen[g] = at;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(of: &[(f64, f64)]) -> Vec<Choice> {
        let form = Form::Window { back: 0, ahead: 0, sinks: 0, causal: false };
        of.iter().map(|(mass, cost)| Choice { form: form.clone(), mass: *mass, cost: *cost }).collect()
    }

    /// Mass and cost of a choice.
    fn sums(tables: &[Vec<Choice>], chosen: &[usize]) -> (f64, f64) {
        let of = |(mass, cost): (f64, f64), (table, at): (&Vec<Choice>, &usize)| {
            (mass + table[*at].mass, cost + table[*at].cost)
        };
        tables.iter().zip(chosen).fold((0.0, 0.0), of)
    }

    /// Every choice of one candidate a group.
    fn all(tables: &[Vec<Choice>]) -> Vec<Vec<usize>> {
        tables.iter().fold(vec![Vec::new()], |chosen, table| {
            chosen.iter().flat_map(|c| (0..table.len()).map(move |at| [&c[..], &[at]].concat())).collect()
        })
    }

    #[test]
    fn no_other_choice_is_better() {
        // each block more is worth less than the one before
        let tables = [
            table(&[(0.0, 0.0), (0.5, 0.1), (0.8, 0.25), (1.0, 0.6)]),
            table(&[(1.0, 1.0), (0.7, 0.3), (0.9, 0.55), (0.0, 0.0)]),
            table(&[(0.2, 0.02), (0.6, 0.12), (1.0, 0.9)]),
        ];
        let every: Vec<(f64, f64)> = all(&tables).iter().map(|chosen| sums(&tables, chosen)).collect();
        assert_eq!(every.len(), 4 * 4 * 3);
        // on the hull of all sums
        for level in [0.2, 0.7, 1.1, 1.8, 2.1, 2.3, 2.5, 2.9, 3.0] {
            let (mass, cost) = sums(&tables, &sweep(&tables, Target::Mass(level / 3.0), level));
            let least = every.iter().filter(|c| c.0 >= level - 1e-6).map(|c| c.1).fold(f64::INFINITY, f64::min);
            assert!(mass >= level - 1e-6 && (cost - least).abs() < 1e-9, "mass {level}: {cost}, not {least}");
        }
        for level in [0.02, 0.12, 0.22, 0.52, 0.67, 0.92, 1.27, 2.05, 2.5] {
            let (mass, cost) = sums(&tables, &sweep(&tables, Target::Blocks(level / 3.0), level));
            let most = every.iter().filter(|c| c.1 <= level + 1e-9).map(|c| c.0).fold(0.0, f64::max);
            assert!(cost <= level + 1e-9 && (mass - most).abs() < 1e-9, "blocks {level}: {mass}, not {most}");
        }
    }

    #[test]
    fn choices_between_the_corners_are_found_by_exchanges() {
        // no price picks the middle of three in a line or below it
        let tables = [table(&[(0.0, 0.0), (0.45, 0.5), (1.0, 1.0)]), table(&[(1.0, 1.0)])];
        assert_eq!(sweep(&tables, Target::Mass(0.7), 1.4), [1, 0]);
        assert_eq!(sweep(&tables, Target::Mass(0.725), 1.45), [1, 0]);
        assert_eq!(sweep(&tables, Target::Mass(0.73), 1.46), [2, 0]);
        assert_eq!(sweep(&tables, Target::Mass(0.5), 1.0), [0, 0]);
        assert_eq!(sweep(&tables, Target::Blocks(0.75), 1.5), [1, 0]);
        assert_eq!(sweep(&tables, Target::Blocks(0.74), 1.48), [0, 0]);
        assert_eq!(sweep(&tables, Target::Blocks(1.0), 2.0), [2, 0]);
        // several exchanges, one after the other, the one with the most gain first
        let tables = [table(&[(0.5, 0.5), (0.5, 0.4)]), table(&[(0.5, 0.5), (0.5, 0.2), (0.5, 0.3)])];
        assert_eq!(refine(&tables, Target::Mass(0.5), 1.0, vec![0, 0]), [1, 1]);
        let tables = [table(&[(0.5, 0.5), (0.6, 0.9)]), table(&[(0.5, 0.5), (0.9, 0.8), (0.7, 0.8)])];
        assert_eq!(refine(&tables, Target::Blocks(0.65), 1.3, vec![0, 0]), [0, 1]);
    }
}
