//! How long a design would take on known cards, before anything runs: from recorded runs of designs like it.
//!
//! Invariant: an estimate says that it is one, of which card, and from what. A run that is named counts as its own nearest. Must not know how
//! it is shown.

use crate::base::provenance::Basis;
use crate::base::{BackendName, Provenance};
use crate::document::library;
use crate::problem::ProblemSpec;
use crate::problem::result::RunReport;
use crate::problem::roofs::{Roof, least_bytes};
use crate::tasks::recorded::{Collection, embedded};
use std::sync::OnceLock;

/// Milliseconds that a launch takes whatever it computes.
const FLOOR: f64 = 0.004;
/// Runs that an estimate is made of.
const NEAR: usize = 3;
/// Distance below which work is the same.
const SAME: f64 = 1e-9;
/// Cards without recorded runs whose times are scaled by their data sheets.
const OTHERS: [&str; 5] =
    ["NVIDIA A100-SXM4-80GB", "NVIDIA H100 PCIe", "NVIDIA L40S", "NVIDIA GeForce RTX 5090", "NVIDIA GeForce RTX 4090"];

/// What decides how long a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// FLOP of the computed blocks.
    pub computed: f64,
    /// FLOP of the kept cells.
    pub kept: f64,
    /// Channels of a head.
    pub head_dim: f64,
    /// Whether scores are changed.
    pub scored: bool,
}

impl Work {
    /// That of a problem whose mask keeps and computes these shares of its cells.
    pub fn of(p: &ProblemSpec, density: f64, computed: f64) -> Work {
        let cells = (p.batch * p.heads) as f64 * p.q_len as f64 * p.kv_len as f64;
        let dense = 2.0 * cells * (p.head_dim + p.head_dim_v) as f64;
        let scored = p.score.is_some();
        Work { computed: dense * computed, kept: dense * density, head_dim: p.head_dim as f64, scored }
    }

    /// 0 for the same work; grows with what sets two kernels apart.
    fn distance(&self, other: &Work) -> f64 {
        let apart = |a: f64, b: f64| (a.max(1e-9) / b.max(1e-9)).ln().abs();
        let waste = |of: &Work| of.kept / of.computed.max(1e-9);
        apart(self.computed, other.computed)
            + apart(self.head_dim, other.head_dim)
            + 0.5 * apart(waste(self), waste(other))
            + if self.scored == other.scored { 0.0 } else { 0.7 }
    }
}

/// A run of our kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// What it computed.
    pub work: Work,
    /// Its median.
    pub ms: f64,
}

impl Known {
    /// A race's. None: our kernel was not timed.
    pub fn of(problem: &ProblemSpec, report: &RunReport) -> Option<Known> {
        let work = Work::of(problem, report.work.density, report.work.computed);
        Some(Known { work, ms: report.median_ms(BackendName::Flex)? })
    }
}

/// An estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Of our kernel's forward pass.
    pub ms: f64,
    /// The card's name.
    pub card: String,
    /// Recorded runs of that card, or the nearest card's scaled by data sheets.
    pub basis: Basis,
}

impl Estimate {
    /// Where it comes from.
    pub fn provenance(&self) -> Provenance {
        Provenance::estimated(&*self.card, self.basis.clone())
    }
}

/// The runs of one card, by the cards' names.
fn recorded() -> &'static [(String, Vec<Known>)] {
    static ALL: OnceLock<Vec<(String, Vec<Known>)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let of = |name: &String, report: &RunReport| {
            let document = library::preset(name)?.document().ok()?;
            let s = &document.settings;
            let (density, computed) = (report.work.density, report.work.computed);
            let dense = report.work.flop / density.max(1e-12);
            let scored = document.scores.iter().any(|score| score.enabled);
            let work = Work { computed: dense * computed, kept: report.work.flop, head_dim: s.head_dim as f64, scored };
            Some(Known { work, ms: report.median_ms(BackendName::Flex)? })
        };
        let card = |collection: &Collection| {
            let name = collection.runs.values().next()?.report.device_name.clone();
            Some((name, collection.runs.iter().filter_map(|(n, run)| of(n, &run.report)).collect()))
        };
        embedded().iter().filter_map(card).collect()
    })
}

/// The time of work, from the runs that are most like it. None: there are none.
pub fn from_runs(work: &Work, runs: &[Known]) -> Option<f64> {
    let mut near: Vec<(f64, &Known)> = runs.iter().map(|run| (work.distance(&run.work), run)).collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    // a run of this very work is what it takes
    let same = near.iter().take_while(|(far, _)| *far < SAME).count();
    near.truncate(if same > 0 { same } else { NEAR });
    let rate = |run: &Known| ((run.ms - FLOOR).max(1e-4) / run.work.computed.max(1.0)).ln();
    let weight: f64 = near.iter().map(|(far, _)| (-4.0 * far).exp().max(1e-12)).sum();
    let mean: f64 = near.iter().map(|(far, run)| rate(run) * (-4.0 * far).exp().max(1e-12)).sum();
    (!near.is_empty() && work.computed > 0.0).then(|| (mean / weight).exp() * work.computed + FLOOR)
}

/// Estimates on every known card: those with recorded runs first. Empty for formats that no card was recorded with. Runs of the first
/// card are the newest; another card's may be of older kernels, and the first card's scaled by data sheets count where they are faster.
pub fn on_cards(p: &ProblemSpec, density: f64, computed: f64) -> Vec<Estimate> {
    let work = Work::of(p, density, computed);
    if p.dtype.size() != 2 || work.computed <= 0.0 {
        return Vec::new();
    }
    let own = |(card, runs): &(String, Vec<Known>)| {
        Some(Estimate { ms: from_runs(&work, runs)?, card: card.clone(), basis: Basis::Runs })
    };
    let mut out: Vec<Estimate> = recorded().iter().filter_map(own).collect();
    let intensity = work.computed / least_bytes(p).max(1.0);
    let roof = |card: &str| Roof::of(card, p.dtype).map(|roof| roof.at(intensity));
    if let Some((first, at)) = out.first().and_then(|first| Some((first.ms, roof(&first.card)?))) {
        let scaled = |card: &str| {
            let ms = (first - FLOOR) * at / roof(card)? + FLOOR;
            Some(Estimate { ms, card: card.into(), basis: Basis::Sheets })
        };
        for older in &mut out[1..] {
            if let Some(newer) = scaled(&older.card).filter(|newer| newer.ms < older.ms) {
                *older = newer;
            }
        }
        out.extend(OTHERS.iter().filter_map(|card| scaled(card)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_run_left_out_is_estimated_from_the_others() {
        for (card, runs) in recorded() {
            let mut off: Vec<f64> = Vec::new();
            for at in 0..runs.len() {
                let mut others = runs.clone();
                let one = others.remove(at);
                let ms = from_runs(&one.work, &others).expect("others");
                off.push((ms / one.ms).ln().abs().exp());
                // with it, it is its own nearest
                let with = from_runs(&one.work, runs).expect("itself");
                assert!((with / one.ms).ln().abs() <= (ms / one.ms).ln().abs() + 1e-9, "{card} {one:?}: {with}");
            }
            off.sort_by(f64::total_cmp);
            let at = |share: f64| off[(share * off.len() as f64) as usize];
            assert!(
                off.len() > 60 && at(0.5) < 1.15 && at(0.8) < 1.6,
                "{card}: half within {}, 80% within {}",
                at(0.5),
                at(0.8)
            );
        }
    }

    /// The recorded runs of a card may be of older kernels: it must not seem slower than a card that its data sheet leads.
    #[test]
    fn no_card_seems_slower_than_one_that_its_data_sheet_leads() {
        let mut seen = 0;
        for (_, runs) in recorded() {
            for Known { work, .. } in runs {
                let mut p = ProblemSpec::plain(1, (32, 32), (8192, 8192), work.head_dim as usize);
                p.dtype = crate::base::DType::BF16;
                let computed = work.computed / (4.0 * 32.0 * 8192.0 * 8192.0 * work.head_dim);
                let all = on_cards(&p, computed * work.kept / work.computed.max(1.0), computed);
                let intensity = work.computed / least_bytes(&p).max(1.0);
                let roof = |one: &Estimate| Roof::of(&one.card, p.dtype).map(|roof| roof.at(intensity));
                // the first card's are its own, whatever it was
                let others = &all[1..];
                for (fast, slow) in others.iter().flat_map(|fast| others.iter().map(move |slow| (fast, slow))) {
                    if roof(fast) > roof(slow) {
                        assert!(fast.ms <= slow.ms, "{fast:?} {slow:?}");
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen > 500, "{seen} pairs of cards");
    }

    #[test]
    fn more_work_takes_longer_and_slower_cards_too() {
        let p = ProblemSpec::plain(1, (32, 32), (8192, 8192), 128);
        let ms = |computed: f64| on_cards(&p, computed * 0.9, computed);
        let (less, more) = (ms(0.06), ms(0.5));
        assert!(less[0].basis == Basis::Runs && less[0].ms < more[0].ms, "{less:?} {more:?}");
        let on = |part: &str| more.iter().find(|e| e.card.contains(part)).expect("known").ms;
        assert!(on("4090") > on("A100") && on("A100") > on("H200"), "{more:?}");
        assert!(on_cards(&p, 0.0, 0.0).is_empty(), "nothing is computed");
        let f32 = ProblemSpec { dtype: crate::base::DType::F32, ..p };
        assert!(on_cards(&f32, 0.5, 0.5).is_empty());
    }
}
