//! Heads under one budget, each with its own candidate: windows, stripes, boxes and block lists fitted head by head,
//! and chosen so that all heads together reach the target with the fewest blocks.
//!
//! Invariant: no other choice of the same candidates on the convex hull of lost mass against blocks is better (a
//! Lagrangian sweep, as in HASTE), and no other candidate of a single group; heads share candidates if only few masks may differ. Must not know how single forms
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
    let mut chosen: Vec<usize> = tables.iter().map(|table| cheapest(table)).collect();
    let mut steps: Vec<(f64, usize, usize)> = Vec::new();
    for (group, table) in tables.iter().enumerate() {
        steps.extend(hull(table, chosen[group]).into_iter().map(|(worth, to)| (worth, group, to)));
    }
    // as a falling price buys them; the sort is stable, so that a group's steps stay in their order
    steps.sort_by(|a, b| b.0.total_cmp(&a.0));
    let sum = |of: fn(&Choice) -> f64| tables.iter().zip(&chosen).map(|(table, at)| of(&table[*at])).sum();
    let (mut mass, mut cost): (f64, f64) = (sum(|o| o.mass), sum(|o| o.cost));
    for (_, group, to) in steps {
        let (now, next) = (&tables[group][chosen[group]], &tables[group][to]);
        let with = (mass - now.mass + next.mass, cost - now.cost + next.cost);
        let enough = match target {
            Target::Mass(_) => mass >= level - 1e-6,
            Target::Blocks(_) => with.1 > level + 1e-9,
        };
        if enough {
            break;
        }
        (mass, cost) = with;
        chosen[group] = to;
    }
    refine(tables, target, level, chosen)
}

/// The candidate of the least cost, of these the one with the most mass.
fn cheapest(table: &[Choice]) -> usize {
    let better = |a: &usize, b: &usize| {
        table[*b].cost.total_cmp(&table[*a].cost).then(table[*a].mass.total_cmp(&table[*b].mass))
    };
    (0..table.len()).max_by(better).unwrap_or(0)
}

/// The corners of the convex hull from a candidate of the least cost on: the mass that each adds for its cost, which falls from
/// corner to corner, and its number.
fn hull(table: &[Choice], from: usize) -> Vec<(f64, usize)> {
    let (mut at, mut corners) = (from, Vec::new());
    let worth = |at: usize, to: usize| (table[to].mass - table[at].mass) / (table[to].cost - table[at].cost);
    loop {
        let more = (0..table.len()).filter(|to| table[*to].mass > table[at].mass);
        let better = |a: &usize, b: &usize| {
            worth(at, *a).total_cmp(&worth(at, *b)).then(table[*b].cost.total_cmp(&table[*a].cost))
        };
        let Some(next) = more.max_by(better) else { return corners };
        corners.push((worth(at, next), next));
        at = next;
    }
}

/// Single exchanges that help and still fit, until none does: the choices off the hull.
fn refine(tables: &[Vec<Choice>], target: Target, level: f64, mut chosen: Vec<usize>) -> Vec<usize> {
    loop {
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
                // less is rounding, which could go on for ever
                if gain > 1e-9 && best.is_none_or(|(most, ..)| gain > most) {
                    best = Some((gain, g, at));
                }
            }
        }
        let Some((_, g, at)) = best else { return chosen };
        chosen[g] = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::head::{Head, Own};
    use crate::quality::suggest::tests::{material, planted};
    use crate::quality::testing::head;

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

    #[test]
    fn heads_stand_alone_where_there_may_be_as_many_masks() {
        let made = material((0..2).map(|_| planted(32, |q, kv| q == kv)).collect(), 8, None);
        let of = |most_masks: usize| {
            let protect = Protect::NONE;
            groups(&made, &Wanted { target: Target::Mass(0.9), protect, grid: None, most_masks })
        };
        assert_eq!((of(1), of(2), of(3)), (vec![vec![0, 1]], vec![vec![0], vec![1]], vec![vec![0], vec![1]]));
    }

    /// Tables of random candidates, some of them equal.
    fn random(seed: u64) -> Vec<Vec<Choice>> {
        let mut rng = crate::ir::random::Rng::new(seed);
        let mut number = |below: usize| rng.below(below) as f64;
        (0..3).map(|_| table(&(0..6).map(|_| (number(40) / 40.0, number(60) / 60.0)).collect::<Vec<_>>())).collect()
    }

    /// The choices on the hull before exchanges: what they keep no other choice keeps at less cost, and they are the first of the
    /// hull that reach the level, or the last within it.
    #[test]
    fn choices_on_the_hull_are_the_best_at_their_mass_and_cost() {
        for seed in 0..60 {
            let tables = random(seed);
            let every: Vec<(f64, f64)> = all(&tables).iter().map(|chosen| sums(&tables, chosen)).collect();
            // the sums of all prices: a price's choice has the most mass less its price times the cost
            let mut corners: Vec<(f64, f64)> = Vec::new();
            for table in &tables {
                let from = cheapest(table);
                let least = table.iter().map(|c| c.cost).fold(f64::INFINITY, f64::min);
                let most = table.iter().filter(|c| c.cost == least).map(|c| c.mass).fold(0.0, f64::max);
                assert_eq!((table[from].cost, table[from].mass), (least, most));
                let (mut at, mut last) = (from, f64::INFINITY);
                for (worth, to) in hull(table, from) {
                    assert!(worth <= last && worth > 0.0, "{seed}: {worth} after {last}");
                    // no candidate lies above the edge
                    let above = |c: &Choice| c.mass - table[at].mass > worth * (c.cost - table[at].cost) + 1e-12;
                    assert!(!table.iter().any(above), "{seed}: from {at} to {to}");
                    corners.push((worth, table[to].cost - table[at].cost));
                    (at, last) = (to, worth);
                }
                let most = table.iter().map(|c| c.mass).fold(0.0, f64::max);
                let cost = table.iter().filter(|c| c.mass == most).map(|c| c.cost).fold(f64::INFINITY, f64::min);
                assert_eq!((table[at].mass, table[at].cost), (most, cost), "{seed}: the hull ends at the most mass");
            }
            for level in (1..30).map(|n| f64::from(n) / 10.0) {
                let (mass, cost) = sums(&tables, &sweep(&tables, Target::Mass(level / 3.0), level));
                let reaching = every.iter().filter(|c| c.0 >= level - 1e-6);
                match reaching.map(|c| c.1).min_by(f64::total_cmp) {
                    // within the worst step of the hull: an exchange of several at once may be better
                    Some(least) => {
                        let gap = corners.iter().map(|c| c.1).fold(0.0, f64::max);
                        assert!(mass >= level - 1e-6 && cost <= least + gap + 1e-9, "{seed} {level}: {cost} {least}");
                    }
                    // what cannot be reached is come as near as possible
                    None => assert_eq!(mass, every.iter().map(|c| c.0).fold(0.0, f64::max), "{seed} {level}"),
                }
                let (_, cost) = sums(&tables, &sweep(&tables, Target::Blocks(level / 3.0), level));
                let least = every.iter().map(|c| c.1).fold(f64::INFINITY, f64::min);
                assert!(cost <= level + 1e-9 || cost == least, "{seed} {level}: {cost}");
            }
        }
    }

    /// No other candidate of one group alone would be better, and no choice of the hull is.
    #[test]
    fn no_single_exchange_is_better_and_no_corner_of_the_hull() {
        for seed in 0..60 {
            let tables = random(seed);
            let every = all(&tables);
            // what some price chooses: the best choice of each group at it
            let on_hull = |price: f64| -> (f64, f64) {
                let best = |table: &Vec<Choice>| {
                    let worth = |c: &&Choice| c.mass - price * c.cost;
                    let best = table.iter().max_by(|a, b| worth(a).total_cmp(&worth(b))).expect("a choice");
                    (best.mass, best.cost)
                };
                tables.iter().map(best).fold((0.0, 0.0), |(mass, cost), (m, c)| (mass + m, cost + c))
            };
            let priced: Vec<(f64, f64)> = (0..400).map(|n| on_hull(0.003 * 1.03f64.powi(n))).collect();
            for level in (1..30).map(|n| f64::from(n) / 10.0) {
                for target in [Target::Mass(level / 3.0), Target::Blocks(level / 3.0)] {
                    let chosen = sweep(&tables, target, level);
                    let found = sums(&tables, &chosen);
                    let fits = |(mass, cost): (f64, f64)| match target {
                        Target::Mass(_) => mass >= level - 1e-6,
                        Target::Blocks(_) => cost <= level + 1e-9,
                    };
                    let better = |other: (f64, f64)| {
                        fits(other)
                            && match target {
                                Target::Mass(_) => other.1 < found.1 - 1e-8,
                                Target::Blocks(_) => other.0 > found.0 + 1e-8,
                            }
                    };
                    if !every.iter().any(|choice| fits(sums(&tables, choice))) {
                        continue;
                    }
                    assert!(fits(found), "{seed} {target:?}");
                    let near = |c: &&Vec<usize>| c.iter().zip(&chosen).filter(|(a, b)| a != b).count() <= 1;
                    let single = every.iter().filter(near).find(|c| better(sums(&tables, c)));
                    assert_eq!(single, None, "{seed} {target:?}: {chosen:?}");
                    assert!(!priced.iter().any(|corner| better(*corner)), "{seed} {target:?}: {chosen:?} {found:?}");
                }
            }
        }
    }

    /// Exchanges go on as long as one helps, however many groups there are.
    #[test]
    fn exchanges_go_on_until_none_helps() {
        for groups in [1, 2, 5, 9] {
            let steps: Vec<(f64, f64)> = (0..20).map(|n| (0.5, 1.0 - f64::from(n) / 40.0)).collect();
            let tables: Vec<Vec<Choice>> = (0..groups).map(|_| table(&steps)).collect();
            let found = refine(&tables, Target::Mass(0.5), 0.5 * groups as f64, vec![0; groups]);
            assert_eq!(found, vec![19; groups]);
        }
        // a candidate that is worse in itself never comes back
        let tables = [table(&[(0.5, 0.5), (0.5, 0.5 + 1e-12), (0.5, 0.5 - 1e-12)])];
        assert_eq!(refine(&tables, Target::Mass(0.5), 0.5, vec![0]), [0]);
    }

    /// Of candidates that are equal in both the last one: a list of blocks after the windows.
    #[test]
    fn of_equal_candidates_the_last_is_chosen() {
        let tables = [table(&[(0.2, 0.1), (0.2, 0.1), (0.9, 0.5), (0.9, 0.5)])];
        assert_eq!((cheapest(&tables[0]), hull(&tables[0], 1)), (1, vec![((0.9 - 0.2) / (0.5 - 0.1), 3)]));
        assert_eq!(sweep(&tables, Target::Mass(0.1), 0.1), [1]);
        assert_eq!(sweep(&tables, Target::Blocks(0.6), 0.6), [3]);
    }

    fn wanted(target: Target, protect: Protect) -> Wanted {
        Wanted { target, protect, grid: None, most_masks: 4 }
    }

    fn tables(made: &Material, wanted: &Wanted) -> Vec<Vec<Choice>> {
        groups(made, wanted)
            .iter()
            .map(|of| options(&made.only(of), wanted, &Control::new()).expect("options"))
            .collect()
    }

    /// The candidates of a group have the masses and the blocks of its heads; with protection none is a window that leaves the
    /// diagonal and the first keys out.
    #[test]
    fn candidates_have_the_mass_and_the_blocks_of_their_heads() {
        let heads = || (0..2).map(|seed| head(seed + 1, 40, 40, 6, 2.0)).collect();
        let made = material(heads(), 8, None);
        let bare = |c: &Choice| matches!(c.form, Form::Window { sinks: 0, back: 0, .. });
        let ahead = |q: usize, kv: usize| q == kv || kv == q + 1;
        let bared = material(vec![planted(40, ahead), planted(40, ahead)], 8, None);
        let diagonal = Protect { diagonal: true, ..Protect::NONE };
        for target in [Target::Mass(0.77), Target::Blocks(0.3)] {
            let found = options(&made, &wanted(target, Protect::NONE), &Control::new()).expect("options");
            // windows, columns and lists at each level, and everything; the target's mass is one more level
            let levels = LEVELS.len() + usize::from(matches!(target, Target::Mass(_)));
            assert_eq!(found.len(), 3 * levels + 1);
            for choice in &found {
                let judged =
                    made.judge(Kind::List, Reason::Part, choice.form.clone(), &Control::new()).expect("judged");
                assert_eq!((choice.mass, choice.cost), (2.0 * judged.mass, 2.0 * judged.density));
            }
            let whole = Form::Window { back: 39, ahead: 39, sinks: 0, causal: false };
            assert_eq!(found.last().map(|c| &c.form), Some(&whole));
            let of = |protect| options(&bared, &wanted(target, protect), &Control::new()).expect("options");
            assert!(of(Protect::NONE).iter().any(bare) && !of(diagonal).iter().any(bare));
            // one that leaves neither out stays
            let back = |q: usize, kv: usize| q == kv || q == kv + 1;
            let kept = material(vec![planted(40, back), planted(40, back)], 8, None);
            let kept = options(&kept, &wanted(target, diagonal), &Control::new()).expect("options");
            assert!(kept.iter().any(|c| matches!(c.form, Form::Window { .. }) && c.cost < 1.0));
        }
        // each head alone has its own
        let alone = tables(&made, &wanted(Target::Mass(0.77), Protect::NONE));
        assert_eq!(alone.len(), 2);
        for (of, table) in alone.iter().enumerate() {
            let one = made.only(&[of]);
            let judged =
                |c: &Choice| one.judge(Kind::List, Reason::Part, c.form.clone(), &Control::new()).expect("judged");
            assert!(table.iter().all(|c| (c.mass, c.cost) == (judged(c).mass, judged(c).density)));
        }
    }

    /// Of all ways to give each of three heads one of its candidates none has fewer blocks, or more mass under a budget.
    #[test]
    fn no_other_candidates_of_heads_are_better_together() {
        let made = material((0..3).map(|n| head(n + 1, 40, 40, 6, 1.0 + n as f32)).collect(), 8, None);
        for tenths in 2..10 {
            let level = f64::from(tenths) / 10.0;
            for target in [Target::Mass(level), Target::Blocks(level)] {
                let wanted = wanted(target, Protect::NONE);
                let found = propose(&made, &wanted, &Control::new()).expect("proposed").remove(0);
                let tables = tables(&made, &wanted);
                let every = all(&tables).into_iter().map(|chosen| sums(&tables, &chosen));
                let every: Vec<(f64, f64)> = every.map(|(mass, cost)| (mass / 3.0, cost / 3.0)).collect();
                assert_eq!(found.why, Reason::BudgetOfHeads(3));
                // exchanges of two heads at once are not looked for: they are worth less than the longest edge of a hull
                let longest = |of: fn(&Choice) -> f64| -> f64 {
                    let edges = tables.iter().flat_map(|table| {
                        let from = cheapest(table);
                        let corners: Vec<usize> =
                            std::iter::once(from).chain(hull(table, from).into_iter().map(|(_, to)| to)).collect();
                        corners.windows(2).map(|edge| of(&table[edge[1]]) - of(&table[edge[0]])).collect::<Vec<_>>()
                    });
                    edges.fold(0.0, f64::max) / 3.0 + 1e-9
                };
                match target {
                    Target::Mass(mass) => {
                        let least =
                            every.iter().filter(|c| c.0 >= mass - 1e-6).map(|c| c.1).fold(f64::INFINITY, f64::min);
                        assert!(
                            found.mass >= mass - 1e-6 && found.density <= least + longest(|c| c.cost),
                            "{level}: {found:?} {least}"
                        );
                    }
                    Target::Blocks(share) => {
                        let within = every.iter().filter(|c| c.1 <= share + 1e-9).map(|c| c.0);
                        let Some(most) = within.max_by(f64::total_cmp) else { continue };
                        assert!(
                            found.density <= share + 1e-9 && found.mass >= most - longest(|c| c.mass),
                            "{level}: {found:?} {most}"
                        );
                    }
                }
            }
        }
    }

    /// Heads that were not captured share the group of the heads that keep everything.
    #[test]
    fn unseen_heads_join_those_that_keep_all_the_model_keeps() {
        let causal = |head: Head| Head { own: Own::Causal, ..head };
        let heads = vec![causal(head(1, 32, 32, 4, 0.1)), causal(planted(32, |q, kv| q / 8 == kv / 8))];
        let made = Material { model_heads: 4, ..material(heads, 8, None) };
        let found = propose(&made, &wanted(Target::Mass(1.0), Protect::NONE), &Control::new()).expect("proposed");
        let Form::PerHead(groups) = &found[0].form else { panic!("{found:?}") };
        let whole = Form::Window { back: 31, ahead: 0, sinks: 0, causal: true };
        let of = |form: &Form| groups.iter().find(|(_, other)| other == form).map(|(heads, _)| heads.clone());
        assert!(groups.len() == 2 && of(&whole).is_some_and(|heads| heads == [0, 2, 3]), "{groups:?}");
        // a model without a causal mask keeps everything there anyway
        let heads = vec![head(1, 32, 32, 4, 0.1), planted(32, |q, kv| q / 8 == kv / 8)];
        let made = Material { model_heads: 4, ..material(heads, 8, None) };
        let found = propose(&made, &wanted(Target::Mass(1.0), Protect::NONE), &Control::new()).expect("proposed");
        let Form::PerHead(groups) = &found[0].form else { panic!("{found:?}") };
        assert_eq!(groups.iter().flat_map(|(heads, _)| heads.clone()).collect::<Vec<_>>(), [0, 1]);
    }
}
