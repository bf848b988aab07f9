//! Why one backend is faster than another, in one line.
//!
//! Invariant: read from what both kernels say they did, never from the ratio; nothing is said where they do not say it. Must not know how it
//! is shown.

use crate::problem::result::{BackendReport, Outcome};
use crate::problem::verdict::Baseline;

/// The reason for the difference between a backend and its baseline.
pub fn line(of: &BackendReport, base: &Baseline<'_>) -> Option<String> {
    let Outcome::Done { kernel, timings, .. } = &of.outcome else { return None };
    if of.backend == base.backend {
        return None;
    }
    let waits = timings.forward().and_then(|t| t.launch_bound()).is_some() || base.timing.launch_bound().is_some();
    let mut words = between(kernel, base.kernel)?;
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

fn way(kernel: &str) -> Option<Way> {
    let says = |words: &str| kernel.contains(words);
    Some(match () {
        () if says("materialised") || says("eager") => Way::Scores,
        () if says("dense mask") || says("dense bias") || says("mask:dense") => Way::Dense,
        () if says("block-sparse") || (says("torch") && says(" flex")) => Way::Skips,
        () if says("causal") => Way::Causal,
        () if says("no mask") || says("mask:none") || says("SDPA") => Way::Plain,
        () => return None,
    })
}

/// `50.8%` of `block-sparse, 50.8% of tiles`.
fn computed(kernel: &str) -> Option<&str> {
    let (before, _) = kernel.split_once(" of tiles")?;
    before.rsplit([' ', ',']).next().filter(|share| share.ends_with('%'))
}

fn between(own: &str, base: &str) -> Option<String> {
    let share =
        computed(own).map(|share| format!("computes {share} of the tiles")).unwrap_or("skips empty blocks".into());
    Some(match (way(own)?, way(base)?) {
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
        let flex = "flex_sm90 128x128 d128 bf16 mask:bitmap sm_90a, block-sparse, 11.7% of tiles";
        let dense = "flex_sm90 128x128 mask:dense Maskloom's fused kernel, dense mask, no tile skipped";
        let said = between(flex, dense).expect("a reason");
        assert_eq!(
            said,
            "it computes 11.7% of the tiles; the other reads the mask as a dense tensor and skips nothing"
        );
        assert!(between(flex, "torch 2.11.0+cu130 flex, Triton").expect("a reason").starts_with("both skip"));
        assert!(between("something new", dense).is_none());
    }
}
