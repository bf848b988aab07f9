//! The measures of a mask on a head: mass kept, ceiling and regret, output error, cost efficiency; and their spread over heads.
//!
//! Invariant: each formula is documented at its field with its source. Rows without a valid full attention are excluded
//! from every mean. Must not know how sweeps work.

use super::attend::{Attended, Kept, attend};
use super::masses::Masses;
use super::scores::Scorer;
use crate::base::{Control, Diagnostic};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How much of the attention's mass a mask keeps, over judged rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MassKept {
    /// Mean over rows of `m = exp(lse masked - lse full)`: the sum of the full attention's probabilities over the kept keys
    /// ("attention recall", MInference arXiv:2407.02490).
    #[serde(deserialize_with = "crate::base::float::deserialize")]
    pub mean: f64,
    /// 5th percentile over rows, nearest rank.
    #[serde(deserialize_with = "crate::base::float::deserialize")]
    pub p5: f64,
    /// Smallest row.
    #[serde(deserialize_with = "crate::base::float::deserialize")]
    pub min: f64,
    /// Its q_idx.
    pub worst_row: usize,
    /// Rows that are judged.
    pub rows: usize,
    /// Judged rows of which the mask keeps no key: their mass is 0 and their output too.
    pub empty_rows: usize,
    /// The first of them.
    pub first_empty: Option<usize>,
}

/// How far an output is from that of full attention. Norms and sums run over all judged rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputError {
    /// `sum |o - o'| / sum |o|` (SpargeAttn, arXiv:2502.18137: 0.06 to 0.08 pass there).
    #[serde(deserialize_with = "crate::base::float::deserialize")]
    pub relative_l1: f64,
    /// `sqrt(mean (o - o')^2)` (SpargeAttn: 0.07 and less pass).
    #[serde(deserialize_with = "crate::base::float::deserialize")]
    pub rmse: f64,
    /// `sum o o' / (norm o * norm o')` over the flattened head (SpargeAttn: 0.98 and more pass).
    #[serde(deserialize_with = "crate::base::float::deserialize")]
    pub cosine: f64,
    /// 99th percentile over rows of `norm2(o - o') / norm2(o)`, nearest rank.
    #[serde(deserialize_with = "crate::base::float::deserialize")]
    pub row_p99: f64,
    /// `sum |o - m o'| / sum |o|`: what the dropped values would have added (SpargeAttention2, arXiv:2602.13515, splits so).
    #[serde(deserialize_with = "crate::base::float::deserialize")]
    pub dropped: f64,
    /// `sum |(1 - m) o'| / sum |o|`: what sharing their mass among the kept ones adds.
    #[serde(deserialize_with = "crate::base::float::deserialize")]
    pub renormalised: f64,
}

/// The loss of a mask on a head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeadCost {
    /// Blocks that a kernel visits.
    pub blocks: usize,
    /// Blocks of the grid.
    pub all_blocks: usize,
    /// Kept cells over cells of the visited blocks: 1 if no block is partial.
    #[serde(deserialize_with = "crate::base::float::deserialize")]
    pub efficiency: f64,
}

impl HeadCost {
    /// Visited blocks over all.
    pub fn density(&self) -> f64 {
        self.blocks as f64 / self.all_blocks.max(1) as f64
    }
}

/// All measures of a mask on a head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measures {
    /// Mass kept.
    pub mass: MassKept,
    /// Mean over rows of the largest mass that as many blocks could keep: `mean_I sum of the k_I largest B(I, J)`, `k_I` the blocks
    /// that the mask visits in the row of blocks I ("perfect recall" of FastVideo's probe).
    pub ceiling: f64,
    /// The same if the blocks of the whole head may be placed anywhere.
    pub ceiling_anywhere: f64,
    /// `ceiling - mass.mean`.
    pub regret: f64,
    /// Against full attention; None without v.
    pub error: Option<OutputError>,
    /// Blocks and cells.
    pub cost: HeadCost,
}

/// A head, what full attention gives there, and its masses: everything that masks are judged by.
pub struct Judge {
    /// The packed head.
    pub scorer: Arc<Scorer>,
    /// Block masses.
    pub masses: Arc<Masses>,
    /// Output of full attention, `[q_len][dim_v]`; empty without v.
    pub full: Vec<f32>,
}

/// A judged mask: its measures and the mass of each row.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The measures.
    pub measures: Measures,
    /// Mass kept of each row; NaN if the row is not measured.
    pub rows: Vec<f32>,
}

impl Judge {
    /// Sweeps once for the masses and, with v, once for the output. Errors: `cancelled`.
    pub fn new(
        scorer: impl Into<Arc<Scorer>>,
        masses: impl Into<Arc<Masses>>,
        control: &Control,
    ) -> Result<Judge, Diagnostic> {
        let (scorer, masses) = (scorer.into(), masses.into());
        let values = scorer.head().v().is_some();
        let full = if values { attend(&scorer, None, true, control)?.out } else { Vec::new() };
        Ok(Judge { scorer, masses, full })
    }

    /// Judges a mask. Errors: `cancelled`.
    pub fn judge(&self, kept: &Kept, control: &Control) -> Result<Judged, Diagnostic> {
        Ok(self.of(kept, &attend(&self.scorer, Some(kept), !self.full.is_empty(), control)?))
    }

    /// The measures of a mask under which a sweep, here or on a device, gave `found`.
    pub fn of(&self, kept: &Kept, found: &Attended) -> Judged {
        let rows: Vec<f32> = row_masses(&self.masses.lse, &found.lse);
        let cost = cost(kept, self.scorer.head().place, found);
        let mass = MassKept::of(&rows);
        let (ceiling, ceiling_anywhere) = ceilings(&self.masses, kept, self.scorer.head().place);
        let error = (!self.full.is_empty()).then(|| self.error(&rows, &found.out));
        // without a measured row there is no ceiling either
        let [ceiling, ceiling_anywhere] =
            [ceiling, ceiling_anywhere].map(|x| if mass.rows == 0 { f64::NAN } else { x });
        let regret = ceiling - mass.mean;
        Judged { measures: Measures { mass, ceiling, ceiling_anywhere, regret, error, cost }, rows }
    }

    fn error(&self, rows: &[f32], out: &[f32]) -> OutputError {
        error(&self.full, out, rows, self.scorer.head(), &self.masses.lse)
    }
}

/// `exp(lse masked - lse full)` of each row; NaN where full attention is not finite.
pub fn row_masses(full: &[f64], masked: &[f64]) -> Vec<f32> {
    let mass = |(full, masked): (&f64, &f64)| {
        if full.is_finite() { (masked - full).exp().min(1.0) as f32 } else { f32::NAN }
    };
    full.iter().zip(masked).map(mass).collect()
}

impl MassKept {
    /// Over rows; NaN rows are not measured.
    pub fn of(rows: &[f32]) -> MassKept {
        let mut judged: Vec<f32> = rows.iter().copied().filter(|m| !m.is_nan()).collect();
        let count = judged.len();
        if count == 0 {
            return MassKept { mean: f64::NAN, p5: f64::NAN, min: f64::NAN, ..MassKept::default() };
        }
        let sum: f64 = judged.iter().map(|m| f64::from(*m)).sum();
        let empty = |m: &f32| *m == 0.0;
        let empty_rows = judged.iter().filter(|m| empty(m)).count();
        let lower = |best: (usize, f32), (q, m): (usize, &f32)| if *m < best.1 { (q, *m) } else { best };
        let (worst_row, min) = rows.iter().enumerate().fold((0, f32::INFINITY), lower);
        let at = rank(count, 0.05);
        let (_, p5, _) = judged.select_nth_unstable_by(at, f32::total_cmp);
        MassKept {
            mean: sum / count as f64,
            p5: f64::from(*p5),
            min: f64::from(min),
            worst_row,
            rows: count,
            empty_rows,
            first_empty: rows.iter().position(empty),
        }
    }
}

/// Place of a percentile among `count` sorted values, nearest rank.
pub(crate) fn rank(count: usize, share: f64) -> usize {
    ((share * count as f64).ceil() as usize).clamp(1, count) - 1
}

fn cost(kept: &Kept, (b, h): (usize, usize), found: &Attended) -> HeadCost {
    let (rows, columns) = kept.blocks.grid();
    let blocks = (0..rows).flat_map(|i| kept.blocks.runs(b, h, i)).map(|r| r.end - r.start).sum();
    let efficiency =
        if found.executed_cells == 0 { 1.0 } else { found.kept_cells as f64 / found.executed_cells as f64 };
    HeadCost { blocks, all_blocks: rows * columns, efficiency }
}

/// The best masses at the same numbers of blocks: row by row, and with the head's blocks anywhere.
pub fn ceilings(masses: &Masses, kept: &Kept, (b, h): (usize, usize)) -> (f64, f64) {
    let (rows, _) = masses.grid();
    let counts: Vec<usize> = (0..rows).map(|i| kept.blocks.runs(b, h, i).map(|r| r.end - r.start).sum()).collect();
    let judged: Vec<usize> = (0..rows).map(|i| masses.judged(i)).collect();
    let total = judged.iter().sum::<usize>().max(1) as f64;
    let mut all = Vec::new();
    let mut by_row = 0.0;
    for i in 0..rows {
        let mut row = masses.row(i).to_vec();
        row.sort_unstable_by(|a, b| b.total_cmp(a));
        by_row += judged[i] as f64 * row[..counts[i]].iter().map(|x| f64::from(*x)).sum::<f64>();
        all.extend(row.iter().map(|x| judged[i] as f64 * f64::from(*x)));
    }
    let budget: usize = counts.iter().sum();
    if budget < all.len() && budget > 0 {
        all.select_nth_unstable_by(budget - 1, |a, b| b.total_cmp(a));
    }
    let anywhere: f64 = all[..budget].iter().sum();
    ((by_row / total).min(1.0), (anywhere / total).min(1.0))
}

/// Output error over the judged rows.
fn error(full: &[f32], out: &[f32], rows: &[f32], head: &super::head::Head, lse: &[f64]) -> OutputError {
    let dim = head.dim_v();
    let [mut difference, mut whole, mut squares, mut dropped, mut renormalised] = [0.0f64; 5];
    let [mut dot, mut norm_full, mut norm_out] = [0.0f64; 3];
    let (mut shares, mut values) = (Vec::new(), 0usize);
    for (q, (o, p)) in full.chunks_exact(dim).zip(out.chunks_exact(dim)).enumerate() {
        if rows[q].is_nan() {
            continue;
        }
        // with a sink the unnormalised kept part relates to the full denominator through both
        let m = match head.sink {
            None => f64::from(rows[q]),
            Some(sink) => {
                let share = |lse: f64| 1.0 / (1.0 + (f64::from(sink) - lse).exp());
                let masked = lse[q] + f64::from(rows[q]).ln();
                if rows[q] == 0.0 { 0.0 } else { f64::from(rows[q]) * share(lse[q]) / share(masked) }
            }
        };
        let (mut row_difference, mut row_norm) = (0.0f64, 0.0f64);
        for (o, p) in o.iter().zip(p).map(|(o, p)| (f64::from(*o), f64::from(*p))) {
            difference += (o - p).abs();
            whole += o.abs();
            row_difference += (o - p) * (o - p);
            row_norm += o * o;
            norm_out += p * p;
            dot += o * p;
            dropped += (o - m * p).abs();
            renormalised += ((1.0 - m) * p).abs();
        }
        squares += row_difference;
        norm_full += row_norm;
        values += dim;
        shares.push(if row_difference == 0.0 { 0.0 } else { (row_difference / row_norm).sqrt() as f32 });
    }
    if shares.is_empty() {
        let nan = f64::NAN;
        return OutputError { relative_l1: nan, rmse: nan, cosine: nan, row_p99: nan, dropped: nan, renormalised: nan };
    }
    let ratio = |a: f64, b: f64| if a == 0.0 { 0.0 } else { a / b };
    let at = rank(shares.len(), 0.99);
    let row_p99 = f64::from(*shares.select_nth_unstable_by(at, f32::total_cmp).1);
    let cosine = if norm_full == 0.0 && norm_out == 0.0 { 1.0 } else { ratio(dot, norm_full.sqrt() * norm_out.sqrt()) };
    OutputError {
        relative_l1: ratio(difference, whole),
        rmse: (squares / values.max(1) as f64).sqrt(),
        cosine,
        row_p99,
        dropped: ratio(dropped, whole),
        renormalised: ratio(renormalised, whole),
    }
}

/// The unmeasurable values of a head, in words; None if all can be measured.
pub fn troubles(head: &super::head::Head, masses: &Masses) -> Option<String> {
    let mut words: Vec<String> = masses.troubles().into_iter().collect();
    let dim = head.dim_v().max(1);
    if let Some(at) = head.v().and_then(|v| v.iter().position(|x| !x.is_finite())) {
        words.push(format!("v is NaN or infinite at kv_idx {}: the output error is unknown", at / dim));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

/// Bounds of the mean mass if a capture has block masses only: full blocks count completely, partial ones between
/// nothing and all. Rounded outwards: the exact mass lies between them.
pub fn bounds(masses: &Masses, kept: &Kept, place: (usize, usize)) -> (f64, f64) {
    use crate::analysis::block_mask::BlockKind;
    let (rows, _) = masses.grid();
    let (up, down) = (masses.rounding, 1.0 / masses.rounding);
    // what fully, partly and not visited blocks hold at least and at most
    let (mut full, mut visited, mut whole, mut total) = (0.0, 0.0, 0.0, 0.0);
    for i in 0..rows {
        let weight = masses.judged(i) as f64;
        total += weight;
        whole += weight * masses.row(i).iter().map(|x| f64::from(*x)).sum::<f64>();
        for run in kept.blocks.runs(place.0, place.1, i) {
            let mass: f64 = masses.row(i)[run.start..run.end].iter().map(|x| f64::from(*x)).sum();
            visited += weight * mass;
            // a block beyond the lengths is partial by name and full by cells only if the mask keeps its cells
            full += if run.kind == BlockKind::Full { weight * mass } else { 0.0 };
        }
    }
    let total = total.max(1.0);
    let (full, partial, skipped) = (full / total, (visited - full) / total, (whole - visited) / total);
    if up == 1.0 {
        return (full, full + partial);
    }
    // a row's masses sum to 1: what is kept is known from both sides
    let low = (full * down).max(1.0 - (partial + skipped) * up).max(0.0);
    let high = (1.0 - skipped * down).min((full + partial) * up).clamp(low, 1.0);
    (low, high)
}

/// Mean, smallest and largest of a measure over captures: how far a mask fitted on one holds on others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Spread {
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    pub count: usize,
}

impl Spread {
    /// For finite values; all NaN if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let found: Vec<f64> = values.into_iter().filter(|x| x.is_finite()).collect();
        if found.is_empty() {
            return Spread { mean: f64::NAN, min: f64::NAN, max: f64::NAN, count: 0 };
        }
        Spread {
            mean: found.iter().sum::<f64>() / found.len() as f64,
            min: found.iter().copied().fold(f64::INFINITY, f64::min),
            max: found.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            count: found.len(),
        }
    }
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
