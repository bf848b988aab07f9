//! Why one backend is faster than another, as a fact.
//!
//! Invariant: read from what both kernels say they did, never from the ratio; nothing is said where they do not say it, nor beside a ratio
//! that it does not explain. Must not know how it is shown.

use crate::base::BackendName;
use crate::problem::facts::{KernelFacts, MaskRead};
use crate::problem::result::{BackendReport, Outcome};
use crate::problem::verdict::{Baseline, Versus};

/// Why one backend is faster than another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Why {
    /// What the kernels do.
    pub cause: Cause,
    /// Whether one is so short that launching counts.
    pub waits: bool,
}

impl Why {
    /// Whether it explains this ratio: what makes a kernel faster is no reason for a slower one, nor for one that is as fast.
    pub fn explains(&self, versus: &Versus) -> bool {
        self.cause.is_faster().is_none_or(|faster| versus.shown && (versus.ratio > 1.0) == faster)
    }
}

/// The share of computed tiles from which on nothing is skipped.
const ALL: f64 = 0.99;

impl Cause {
    /// Whether it makes the first of the two faster, or slower. None: it says what both do.
    fn is_faster(self) -> Option<bool> {
        match self {
            Cause::SkipsDense(_) | Cause::SkipsScores(_) | Cause::SkipsPlain(_) => Some(true),
            Cause::OtherScores | Cause::OtherDense | Cause::DenseAgainstScores => Some(true),
            Cause::DenseAgainstSkips | Cause::Scores | Cause::Dense => Some(false),
            Cause::BothSkip | Cause::BothSkipMasked | Cause::BothDense | Cause::Same | Cause::NothingMasked => None,
        }
    }
}

/// What two kernels do, the first of them first; with the share of tiles that it computes, if that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    /// It skips empty blocks, the other reads a dense mask.
    SkipsDense(Option<f64>),
    /// It skips empty blocks, the other writes every score.
    SkipsScores(Option<f64>),
    /// It skips empty blocks, the other computes all.
    SkipsPlain(Option<f64>),
    /// Both skip empty blocks.
    BothSkip,
    /// Both skip what is masked.
    BothSkipMasked,
    /// Both read a dense mask.
    BothDense,
    /// It reads a dense mask, the other skips empty blocks.
    DenseAgainstSkips,
    /// It writes every score.
    Scores,
    /// It reads a dense mask, the other writes every score.
    DenseAgainstScores,
    /// The other writes every score.
    OtherScores,
    /// The same arithmetic.
    Same,
    /// There is no mask.
    NothingMasked,
    /// The other reads a dense mask.
    OtherDense,
    /// It reads a dense mask.
    Dense,
}

/// The reason for the difference between a backend and its baseline.
pub fn between_runs(of: &BackendReport, base: &Baseline<'_>) -> Option<Why> {
    let Outcome::Done { kernel, timings, .. } = &of.outcome else { return None };
    if of.backend == base.backend {
        return None;
    }
    let waits = timings.forward().and_then(|t| t.launch_bound()).is_some() || base.timing.launch_bound().is_some();
    let cause = between((of.backend, &kernel.facts), (base.backend, &base.kernel.facts))?;
    Some(Why { cause, waits })
}

/// How a kernel treats a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Blocks without kept cells are never computed.
    Skips,
    /// The mask is read as a tensor of one value a cell.
    Dense,
    /// Every score goes through memory.
    Scores,
    /// Half of the square by an own rule.
    Causal,
    /// There is no mask.
    Plain,
}

fn way(backend: BackendName, facts: &KernelFacts) -> Way {
    match (backend, facts.mask) {
        (BackendName::Eager | BackendName::TorchEager, _) => Way::Scores,
        (_, MaskRead::Dense) => Way::Dense,
        (_, MaskRead::Blocks) => Way::Skips,
        (_, MaskRead::Causal) => Way::Causal,
        (_, MaskRead::Nothing) => Way::Plain,
    }
}

/// A backend with what it says of its kernel.
type Ran<'a> = (BackendName, &'a KernelFacts);

fn between(own: Ran<'_>, base: Ran<'_>) -> Option<Cause> {
    let tiles = own.1.tiles;
    if way(own.0, own.1) == Way::Skips && way(base.0, base.1) != Way::Skips && tiles.is_some_and(|share| share > ALL) {
        return None;
    }
    Some(match (way(own.0, own.1), way(base.0, base.1)) {
        (Way::Skips, Way::Dense) => Cause::SkipsDense(tiles),
        (Way::Skips, Way::Scores) => Cause::SkipsScores(tiles),
        (Way::Skips, Way::Plain) => Cause::SkipsPlain(tiles),
        (Way::Skips, Way::Skips) => Cause::BothSkip,
        (Way::Skips, Way::Causal) | (Way::Causal, Way::Skips) => Cause::BothSkipMasked,
        (Way::Dense, Way::Dense) => Cause::BothDense,
        (Way::Dense, Way::Skips) => Cause::DenseAgainstSkips,
        (Way::Scores, _) => Cause::Scores,
        (Way::Dense, Way::Scores) => Cause::DenseAgainstScores,
        (_, Way::Scores) => Cause::OtherScores,
        (Way::Plain, Way::Plain) | (Way::Causal, Way::Causal) => Cause::Same,
        (Way::Plain, Way::Skips) => Cause::NothingMasked,
        (_, Way::Dense) => Cause::OtherDense,
        (Way::Dense, _) => Cause::Dense,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::facts::KernelReport;
    use crate::tasks::recorded::embedded;

    #[test]
    fn every_recorded_ratio_of_flex_has_its_reason() {
        for run in embedded().iter().flat_map(|c| c.runs.values()) {
            let Some(base) = run.report.baseline() else { continue };
            for of in
                run.report.backends.iter().filter(|of| of.backend != base.backend && of.outcome.forward().is_some())
            {
                let computes_all =
                    matches!(&of.outcome, Outcome::Done { kernel, .. } if kernel.facts.tiles > Some(ALL));
                assert!(between_runs(of, &base).is_some() || computes_all, "{} against {}", of.backend, base.kernel);
            }
            assert!(
                run.report.backends.iter().all(|of| of.backend != base.backend || between_runs(of, &base).is_none())
            );
        }
    }

    #[test]
    fn a_reason_is_not_said_beside_a_ratio_that_it_does_not_explain() {
        let versus = |ratio, shown| Versus { ratio, shown, spread: 0.0, doubts: Vec::new(), host: None };
        let why = |cause| Why { cause, waits: false };
        let skips = why(Cause::SkipsDense(Some(0.2)));
        assert!(skips.explains(&versus(3.0, true)));
        assert!(!skips.explains(&versus(0.56, true)) && !skips.explains(&versus(1.2, false)));
        let scores = why(Cause::Scores);
        assert!(scores.explains(&versus(0.56, true)) && !scores.explains(&versus(1.03, false)));
        assert!(
            why(Cause::BothSkip).explains(&versus(0.9, true)) && why(Cause::BothSkip).explains(&versus(1.0, false))
        );
        let all =
            KernelReport::from("flex_sm90 128x128 d128 bf16 mask:bitmap sm_90a, block-sparse, 100.0% of tiles").facts;
        let dense =
            KernelReport::from("flex_sm90 128x128 mask:dense Maskloom's fused kernel, dense mask, no tile skipped")
                .facts;
        assert_eq!(between((BackendName::Flex, &all), (BackendName::Sdpa, &dense)), None);
    }

    #[test]
    fn reasons_are_read_from_the_kernels() {
        let of = |words: &str| KernelReport::from(words).facts;
        let flex = of("flex_sm90 128x128 d128 bf16 mask:bitmap sm_90a, block-sparse, 11.7% of tiles");
        let dense = of("flex_sm90 128x128 mask:dense Maskloom's fused kernel, dense mask, no tile skipped");
        let said = between((BackendName::Flex, &flex), (BackendName::Sdpa, &dense)).expect("a reason");
        assert!(matches!(said, Cause::SkipsDense(Some(share)) if (share - 0.117).abs() < 1e-9), "{said:?}");
        let triton = of("torch 2.11.0+cu130 flex, Triton");
        let both = between((BackendName::Flex, &flex), (BackendName::TorchFlex, &triton)).expect("a reason");
        assert_eq!(both, Cause::BothSkip);
    }
}
