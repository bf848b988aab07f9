//! Which of a card's limits a timed kernel comes near to.
//!
//! Invariant: arithmetic and bytes are the least that the kernel's own account of the mask allows, the roofs are data sheets, the
//! time is measured; where neither is near, that is said. Must not know how it is shown.

use crate::base::{BackendName, words};
use crate::problem::ProblemSpec;
use crate::problem::facts::{KernelFacts, MaskRead};
use crate::problem::result::{Outcome, RunReport};
use crate::problem::roofs::{Roof, least_bytes};

/// Share of a measured time from which on a limit explains it.
const NEAR: f64 = 0.5;

/// What a kernel does at least, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Least {
    /// FLOP of the cells that it computes.
    pub flop: f64,
    /// Bytes that it moves.
    pub bytes: f64,
    /// FLOP of the cells that the mask keeps.
    pub kept: f64,
    /// Seconds, measured.
    pub seconds: f64,
    /// Whether launching takes longer than the GPU.
    pub launches: bool,
}

/// What a time is explained by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The card's products.
    Arithmetic,
    /// The card's memory.
    Memory,
    /// The calls, not the GPU.
    Launching,
    /// The kernel itself.
    Neither,
}

impl Least {
    /// Of one backend of a run; None: it was not timed, or was wrong.
    pub fn of(problem: &ProblemSpec, report: &RunReport, backend: BackendName) -> Option<Least> {
        let found = report.backends.iter().find(|one| one.backend == backend)?;
        let Outcome::Done { kernel, .. } = &found.outcome else { return None };
        let timing = found.outcome.right()?;
        let cells = (problem.batch * problem.heads) as f64 * problem.q_len as f64 * problem.kv_len as f64;
        let dense = 2.0 * cells * (problem.head_dim + problem.head_dim_v) as f64;
        let share = computed(backend, &kernel.facts, report.work.computed);
        let square = problem.q_len as f64 * problem.kv_len as f64;
        let more = match (backend, kernel.facts.mask) {
            // scores and probabilities are each written and read
            (BackendName::Eager | BackendName::TorchEager, _) => 4.0 * cells * problem.dtype.size() as f64,
            // a byte a cell at least, of one mask
            (_, MaskRead::Dense) => square,
            _ => 0.0,
        };
        let seconds = timing.median_ms * 1e-3;
        let launches = timing.launch_bound().is_some();
        let least = Least {
            flop: dense * share,
            bytes: least_bytes(problem) + more,
            kept: report.work.flop,
            seconds,
            launches,
        };
        (seconds > 0.0 && least.flop > 0.0).then_some(least)
    }

    /// FLOP for each byte, FLOP a second: its place under a roof.
    pub fn place(&self) -> [f64; 2] {
        [self.flop / self.bytes.max(1.0), self.flop / self.seconds]
    }

    /// The shares of its time that the card's arithmetic and memory take at least.
    pub fn shares(&self, roof: &Roof) -> [f64; 2] {
        [self.flop / roof.flop / self.seconds, self.bytes / roof.bytes / self.seconds]
    }

    /// What explains the time.
    pub fn limit(&self, roof: &Roof) -> Limit {
        match self.shares(roof) {
            _ if self.launches => Limit::Launching,
            [arithmetic, memory] if arithmetic.max(memory) < NEAR => Limit::Neither,
            [arithmetic, memory] if arithmetic >= memory => Limit::Arithmetic,
            _ => Limit::Memory,
        }
    }

    /// What limits it, in a sentence or two.
    pub fn words(&self, roof: &Roof) -> String {
        let percent = |share: f64| format!("{:.0}%", share * 100.0);
        let [arithmetic, memory] = self.shares(roof).map(percent);
        let (flop, bytes) = (words::big(self.flop), words::bytes(self.bytes as u64));
        let first = match self.limit(roof) {
            Limit::Launching => "Launching limits it: the calls take longer than the GPU's work.".to_string(),
            Limit::Arithmetic => {
                format!("Arithmetic limits it: {flop}FLOP take this card {arithmetic} of the time at least.")
            }
            Limit::Memory => format!("Memory limits it: {bytes} take this card {memory} of the time at least."),
            Limit::Neither => format!(
                "Neither limit is near: {flop}FLOP take this card {arithmetic} of the time at least, {bytes} {memory}. \
                 The rest is the kernel's own: softmax, waiting, cells that it looks at."
            ),
        };
        match self.kept / self.flop {
            kept if kept < 0.9 => format!("{first} Of the computed cells the mask keeps {}.", percent(kept)),
            _ => first,
        }
    }
}

/// The share of all cells that a kernel computes by its own account.
fn computed(backend: BackendName, facts: &KernelFacts, blocks: f64) -> f64 {
    match (backend, facts.mask) {
        (BackendName::Eager | BackendName::TorchEager, _) => 1.0,
        (_, MaskRead::Blocks) => facts.tiles.unwrap_or(blocks),
        (_, MaskRead::Causal) => 0.5,
        (_, MaskRead::Dense | MaskRead::Nothing) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::{from_document, library};
    use crate::tasks::recorded;

    const ROOF: Roof = Roof { flop: 1e12, bytes: 1e9 };

    fn least(flop: f64, bytes: f64, seconds: f64) -> Least {
        Least { flop, bytes, kept: flop, seconds, launches: false }
    }

    #[test]
    fn the_limit_is_what_takes_most_of_the_time_and_none_where_little_is_explained() {
        for (of, limit, words) in [
            (least(8e11, 1e8, 1.0), Limit::Arithmetic, "take this card 80% of the time"),
            (least(1e11, 7e8, 1.0), Limit::Memory, "take this card 70% of the time"),
            (least(3e11, 2e8, 1.0), Limit::Neither, "Neither limit is near"),
            (Least { launches: true, ..least(8e11, 1e8, 1.0) }, Limit::Launching, "the calls take longer"),
            (Least { kept: 2e11, ..least(8e11, 1e8, 1.0) }, Limit::Arithmetic, "the mask keeps 25%"),
        ] {
            assert_eq!(of.limit(&ROOF), limit);
            assert!(of.words(&ROOF).contains(words), "{}", of.words(&ROOF));
        }
        assert_eq!(least(8e11, 1e8, 2.0).place(), [8000.0, 4e11]);
    }

    #[test]
    fn no_recorded_run_is_faster_than_its_card_allows() {
        let mut seen = [0; 4];
        for preset in library::presets() {
            let document = preset.document().expect("loads");
            let Ok(problem) = from_document(&document, &compile(&document, &BuiltIn)) else { continue };
            for run in recorded::of(&document) {
                let Some(roof) = Roof::of(&run.report.device_name, problem.dtype) else { continue };
                for one in &run.report.backends {
                    let Some(least) = Least::of(problem.spec(), &run.report, one.backend) else { continue };
                    let shares = least.shares(&roof);
                    let reported = format!("{} {} on {}: {shares:?}", preset.name, one.backend, run.report.device_name);
                    assert!(shares.iter().all(|share| *share < 1.0), "{reported}");
                    seen[least.limit(&roof) as usize] += 1;
                }
            }
        }
        assert!(seen[0] > 0 && seen[3] > 0, "{seen:?}");
    }
}
