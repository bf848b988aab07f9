//! Why one backend is faster than another, in one line.
//!
//! Invariant: read from what both kernels say they did, never from the ratio; nothing is said where they do not say it. Must not know how it
//! is shown.

use crate::base::BackendName;
use crate::problem::facts::{KernelFacts, MaskRead};
use crate::problem::result::{BackendReport, Outcome};
use crate::problem::verdict::Baseline;

/// The reason for the difference between a backend and its baseline.
pub fn line(of: &BackendReport, base: &Baseline<'_>) -> Option<String> {
    let Outcome::Done { kernel, timings, .. } = &of.outcome else { return None };
    if of.backend == base.backend {
        return None;
    }
    let waits = timings.forward().and_then(|t| t.launch_bound()).is_some() || base.timing.launch_bound().is_some();
    let mut words = between((of.backend, &kernel.facts), (base.backend, &base.kernel.facts))?;
    if waits {
        words.push_str("; so short that launching counts");
    }
    Some(words)
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

fn between(own: Ran<'_>, base: Ran<'_>) -> Option<String> {
    let computed = |share: f64| format!("computes {:.1}% of the tiles", share * 100.0);
    let share = own.1.tiles.map_or("skips empty blocks".into(), computed);
    Some(match (way(own.0, own.1), way(base.0, base.1)) {
        (Way::Skips, Way::Dense) => format!("it {share}; the other reads the mask as a dense tensor and skips nothing"),
        (Way::Skips, Way::Scores) => format!("it {share}; the other writes every score to memory"),
        (Way::Skips, Way::Plain) => format!("it {share}; the other computes all of them"),
        (Way::Skips, Way::Skips) => "both skip empty blocks: the difference is the kernel's own".into(),
        (Way::Skips, Way::Causal) => "both skip what is masked: the difference is the kernel's own".into(),
        (Way::Dense, Way::Dense) => "both read the mask as a dense tensor: the difference is the kernel's own".into(),
        (Way::Dense, Way::Skips) => {
            "it reads the mask as a dense tensor and skips nothing; the other skips empty blocks".into()
        }
        (Way::Scores, _) => "it writes every score to memory and reads it again".into(),
        (Way::Dense, Way::Scores) => {
            "it reads a dense mask, but writes no scores; the other writes every score to memory".into()
        }
        (_, Way::Scores) => "the other writes every score to memory and reads it again".into(),
        (Way::Plain, Way::Plain) | (Way::Causal, Way::Causal) => {
            "the same arithmetic: the difference is the kernel's own".into()
        }
        (Way::Causal, Way::Skips) => "both skip what is masked: the difference is the kernel's own".into(),
        (Way::Plain, Way::Skips) => "nothing is masked: the difference is the kernel's own".into(),
        (_, Way::Dense) => "the other reads the mask as a dense tensor and skips nothing".into(),
        (Way::Dense, _) => "it reads the mask as a dense tensor and skips nothing".into(),
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
                assert!(line(of, &base).is_some(), "{} against {}", of.backend, base.kernel);
            }
            assert!(run.report.backends.iter().all(|of| of.backend != base.backend || line(of, &base).is_none()));
        }
    }

    #[test]
    fn reasons_are_read_from_the_kernels() {
        let of = |words: &str| KernelReport::from(words).facts;
        let flex = of("flex_sm90 128x128 d128 bf16 mask:bitmap sm_90a, block-sparse, 11.7% of tiles");
        let dense = of("flex_sm90 128x128 mask:dense Maskloom's fused kernel, dense mask, no tile skipped");
        let said = between((BackendName::Flex, &flex), (BackendName::Sdpa, &dense)).expect("a reason");
        assert_eq!(
            said,
            "it computes 11.7% of the tiles; the other reads the mask as a dense tensor and skips nothing"
        );
        let triton = of("torch 2.11.0+cu130 flex, Triton");
        let both = between((BackendName::Flex, &flex), (BackendName::TorchFlex, &triton)).expect("a reason");
        assert!(both.starts_with("both skip"), "{both}");
    }
}
