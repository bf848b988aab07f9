//! Single keys and distances: stripes of blocks reduced to the tokens that keep the mass.
//!
//! Invariant: every visited block is also visited by the stripes of blocks. Must not know other forms.

use super::columns::{self, ranges};
use super::form::Form;
use super::{Candidate, Kind, Material, Reason, Target, Wanted};
use crate::base::{Control, Diagnostic};
use crate::quality::scores::{ROWS, RowScratch, STEP, Scorer};
use rayon::prelude::*;

/// Largest number of ranges for which a list of keys and distances is more useful than its blocks.
const MOST_RANGES: usize = 24;

/// One proposal where few keys and distances hold the mass; none otherwise.
pub(super) fn propose(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    let Target::Mass(target) = wanted.target else { return Ok(Vec::new()) };
    let Some(stripes) = columns::propose(material, wanted, control)?.pop() else { return Ok(Vec::new()) };
    let (places, inner) = match stripes.form {
        Form::Beside { places, form } => (Some(places), *form),
        form => (None, form),
    };
    let Form::Stripes { block, columns, diagonals, causal } = inner else { return Ok(Vec::new()) };
    let mut lines = Lines::new(material, block as i64, &columns, &diagonals);
    let (keys, distances) = lines.alone(material, control, |q, kv| places.is_some_and(|p| p.keeps(q, kv)));
    let zero = material.lengths().kv_len - 1;
    let mut order: Vec<(f64, bool, usize)> = Vec::new();
    order.extend((0..keys.len()).filter(|at| lines.keys[*at]).map(|at| (keys[at], true, at)));
    order.extend((0..distances.len()).filter(|at| lines.distances[*at]).map(|at| (distances[at], false, at)));
    order.retain(
        |(_, key, at)| {
            if *key { !(wanted.protect.sinks && *at == 0) } else { !(wanted.protect.diagonal && *at == zero) }
        },
    );
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let whole = (lines.keys.clone(), lines.distances.clone());
    // what two lines share is lost only where both go: the fewer go, the surer
    for share in [1.0, 0.5, 0.1] {
        let mut left = share * (stripes.mass - target).max(1e-6);
        (lines.keys, lines.distances) = whole.clone();
        for (alone, key, at) in &order {
            left -= alone;
            if left < 0.0 {
                break;
            }
            if *key { lines.keys[*at] = false } else { lines.distances[*at] = false }
        }
        let numbers =
            |of: &[bool], first: i64| ranges((0..of.len()).filter(|at| of[*at]).map(|at| at as i64 + first).collect());
        let (columns, diagonals) = (numbers(&lines.keys, 0), numbers(&lines.distances, -(zero as i64)));
        if columns.len() + diagonals.len() > MOST_RANGES {
            continue;
        }
        let count = |of: &[bool]| of.iter().filter(|x| **x).count();
        let why = Reason::Keys { keys: count(&lines.keys), distances: count(&lines.distances) };
        let form = Form::beside(places, Form::Stripes { block: 1, columns, diagonals, causal });
        let found = material.judge(Kind::KeysDistances, why, form, control)?;
        if found.mass >= target - 1e-6 {
            return Ok(vec![found]);
        }
    }
    Ok(Vec::new())
}

/// Keys, and distances `q_idx - kv_idx` at `d + kv_len - 1`.
struct Lines {
    keys: Vec<bool>,
    distances: Vec<bool>,
}

impl Lines {
    /// Those inside columns and diagonals of blocks.
    fn new(material: &Material, block: i64, columns: &[[i64; 2]], diagonals: &[[i64; 2]]) -> Lines {
        let (q_len, kv_len) = (material.lengths().q_len as i64, material.lengths().kv_len as i64);
        let inside = |of: &[[i64; 2]], x: i64| of.iter().any(|[from, to]| (*from..*to).contains(&x));
        let distance = |d: i64| {
            // its cells are on this diagonal of blocks and the next
            let low = d.div_euclid(block);
            inside(diagonals, low) && (d.rem_euclid(block) == 0 || inside(diagonals, low + 1))
        };
        Lines {
            keys: (0..kv_len).map(|kv| inside(columns, kv / block)).collect(),
            distances: (1 - kv_len..q_len).map(distance).collect(),
        }
    }

    /// Mean mass of each key and each distance alone, without the cells that `beside` keeps.
    fn alone(
        &self,
        material: &Material,
        control: &Control,
        beside: impl Fn(usize, usize) -> bool + Sync,
    ) -> (Vec<f64>, Vec<f64>) {
        let kv_len = material.lengths().kv_len;
        let (mut keys, mut distances) = (vec![0.0; self.keys.len()], vec![0.0; self.distances.len()]);
        for head in material.heads.iter() {
            let judged = head.masses.lse.iter().filter(|x| x.is_finite()).count().max(1);
            let weight = 1.0 / (judged * material.heads.len()) as f64;
            let sums = || (vec![0.0f64; keys.len()], vec![0.0f64; distances.len()]);
            let rows = |mut sums: (Vec<f64>, Vec<f64>), (at, lse): (usize, &[f64])| {
                let (mut query, mut running) = (Vec::new(), RowScratch::default());
                let rows = at * ROWS..at * ROWS + lse.len();
                let mut tile = vec![0.0; lse.len() * STEP];
                for from in (0..if control.is_cancelled() { 0 } else { kv_len }).step_by(STEP) {
                    let (from, columns) = Scorer::columns(&(from..(from + STEP).min(kv_len)));
                    let cells = &mut tile[..lse.len() * columns];
                    head.scorer.tile(&rows, from, columns, &mut query, cells);
                    head.scorer.probabilities(lse, columns, cells, &mut running);
                    for (q, p) in rows.clone().zip(cells.chunks_exact(columns)) {
                        for (kv, p) in (from..kv_len).zip(p) {
                            let at = q + kv_len - 1 - kv;
                            match (self.keys[kv], self.distances[at]) {
                                (true, false) if !beside(q, kv) => sums.0[kv] += f64::from(*p),
                                (false, true) if !beside(q, kv) => sums.1[at] += f64::from(*p),
                                _ => {}
                            }
                        }
                    }
                }
                sums
            };
            let add = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(to, x)| *to += x);
            let found = head.masses.lse.par_chunks(ROWS).enumerate().fold(sums, rows).reduce(sums, |mut a, b| {
                add(&mut a.0, &b.0);
                add(&mut a.1, &b.1);
                a
            });
            keys.iter_mut().zip(&found.0).for_each(|(to, x)| *to += weight * x);
            distances.iter_mut().zip(&found.1).for_each(|(to, x)| *to += weight * x);
        }
        (keys, distances)
    }
}
