//! How property tests run.
//!
//! Invariant: a case that failed once is stored next to the test's source and runs first from then on. Only compiled
//! into tests.

use proptest::prelude::ProptestConfig;
use proptest::test_runner::FileFailurePersistence::WithSource;

/// The configuration of every property test: `x_tests.rs` keeps its cases in `x_tests.proptest-regressions`.
pub fn kept_beside() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: Some(Box::new(WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    }
}
