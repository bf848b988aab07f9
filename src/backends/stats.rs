//! Statistics of samples: the median and spread of timings, and the work of a mask.
//!
//! Invariant: pure arithmetic. Must not measure anything.

use crate::analysis::block_mask::Stats;
use crate::problem::Problem;
use crate::problem::result::{Calls, Timed, Timing, WorkStats};
pub use crate::problem::verdict::quantile;

/// Median and interquartile spread of samples in milliseconds; None without samples.
pub fn timing(samples_ms: Vec<f64>) -> Option<Timing> {
    if samples_ms.is_empty() {
        return None;
    }
    let mut sorted = samples_ms.clone();
    sorted.sort_by(f64::total_cmp);
    let median_ms = quantile(&sorted, 0.5);
    let iqr = quantile(&sorted, 0.75) - quantile(&sorted, 0.25);
    Some(Timing { samples_ms, median_ms, spread: if median_ms > 0.0 { iqr / median_ms } else { 0.0 }, calls: None })
}

/// The same with the calls beside them; None without samples.
pub fn timing_of(timed: Timed) -> Option<Timing> {
    let calls = timing(timed.calls_ms).zip(timed.clock);
    let calls = calls.map(|(calls, clock)| Calls { median_ms: calls.median_ms, clock });
    Some(Timing { calls, ..timing(timed.passes_ms)? })
}

/// The sizes of a mask's blocks in a problem.
pub fn work(problem: &Problem, found: &Stats) -> WorkStats {
    let s = problem.spec();
    let cells = s.batch as f64 * s.heads as f64 * s.q_len as f64 * s.kv_len as f64;
    WorkStats {
        density: found.density,
        computed: found.computed,
        sparsity: found.sparsity,
        padded_sparsity: Some(found.padded_sparsity()),
        flop: 2.0 * found.density * cells * (s.head_dim + s.head_dim_v) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_spread_are_of_the_sorted_samples() {
        let t = timing(vec![5.0, 1.0, 2.0, 4.0, 3.0]).expect("samples");
        assert_eq!((t.median_ms, t.spread), (3.0, 2.0 / 3.0));
        assert_eq!(t.samples_ms, [5.0, 1.0, 2.0, 4.0, 3.0]);
        assert_eq!(timing(vec![1.0, 2.0]).expect("samples").median_ms, 1.5);
        assert!(timing(vec![]).is_none());
    }

    #[test]
    fn flop_counts_both_products_of_kept_cells() {
        let p = backends::testing::problem(2, 4, 2, 10, 20, 16);
        let half = Stats { density: 0.5, ..Stats::default() };
        assert_eq!(work(&p, &half).flop, 2.0 * 0.5 * (2 * 4 * 10 * 20) as f64 * 32.0);
    }
}
