//! What a problem's counts, times and errors mean, each as a fact.
//!
//! Invariant: no backend runs. Must not know how anything is computed.

use crate::base::{BlockSize, DType, Device};
use crate::problem::result::{
    ErrorStats, GradientError, GradientOutcome, OutputError, OutputName, Timed, Timing, spread_words,
};
use crate::problem::{Problem, ProblemSpec, random};

fn spec() -> ProblemSpec {
    ProblemSpec::plain(2, (12, 4), (100, 200), 64)
}

#[test]
fn query_heads_share_a_kv_head_evenly() {
    assert_eq!(Problem::new(spec()).expect("valid").group(), 3);
}

#[test]
fn another_output_changes_nothing_else() {
    let problem = Problem::new(spec()).expect("valid");
    let asked = problem.with_max_scores(true);
    assert!(asked.spec().max_scores && asked != problem);
    assert_eq!(asked.spec(), &ProblemSpec { max_scores: true, ..spec() });
    assert_eq!(asked.without_aux(), problem);
}

#[test]
fn counts_beyond_their_limits_are_refused_by_name() {
    let refused = |spec: ProblemSpec| Problem::new(spec).expect_err("refused").remove(0);
    for (name, spec) in [
        ("batch", ProblemSpec { batch: 0, ..spec() }),
        ("batch", ProblemSpec { batch: (1 << 16) + 1, ..spec() }),
        ("heads", ProblemSpec { heads: 1 << 13, ..spec() }),
        ("kv_heads", ProblemSpec { kv_heads: 0, ..spec() }),
        ("head_dim_v", ProblemSpec { head_dim_v: 0, ..spec() }),
        ("block_size_kv", ProblemSpec { block_size: BlockSize { q: 128, kv: 0 }, ..spec() }),
    ] {
        let why = refused(spec);
        assert!(why.code == "count-out-of-range" && why.message.starts_with(&format!("{name} is ")), "{why}");
    }
    assert!(Problem::new(ProblemSpec { batch: 1 << 16, ..spec() }).is_ok());
    assert_eq!(refused(ProblemSpec { dtype: DType::I32, ..spec() }).code, "dtype");
}

#[test]
fn random_problems_have_scales_of_every_kind() {
    let all = || (0..300).map(|seed| random::problem(seed, Device::Cpu));
    // steep: scores of a deviation of 4, 12 or 40 and no score mod
    let steep =
        |s: &ProblemSpec| s.score.is_none() && s.scale.is_some_and(|scale| scale * (s.head_dim as f64).sqrt() > 3.99);
    assert!(all().filter(steep).count() > 20);
    assert!(all().filter(|s| s.scale.is_none()).count() > 100);
    assert!(all().any(|s| s.scale.is_some_and(|scale| scale < 0.32) && s.score.is_some()));
}

#[test]
fn the_first_output_speaks_for_the_run() {
    let row = OutputError { from: "a rule".into(), ..OutputError::plain(OutputName::Out, 1e-3, 2e-3) };
    let other = OutputError { from: "another".into(), ..OutputError::plain(OutputName::Lse, 3e-3, 5e-3) };
    let of = |outputs| ErrorStats { outputs, rows_checked: 1, rows_total: 1, nan_rows: 0, worst: None };
    let error = of(vec![row, other]);
    assert_eq!((error.max_abs(), error.allowed(), error.allowed_from()), (1e-3, 2e-3, "a rule"));
    assert_eq!((of(vec![]).allowed(), of(vec![]).allowed_from()), (0.0, ""));
}

#[test]
fn times_keep_what_was_measured() {
    let timed = Timed::from(vec![1.0, 2.0]);
    assert_eq!((timed.passes_ms, timed.calls_ms, timed.clock), (vec![1.0, 2.0], vec![], None));
    let once = Timing::once(7.0);
    assert_eq!((once.samples_ms, once.median_ms, once.spread), (vec![7.0], 7.0, 0.0));
    assert_eq!([0, 1].map(|samples| spread_words(samples, 0.25)), ["-", "-"], "one sample has no spread");
    assert_eq!([2, 3].map(|samples| spread_words(samples, 0.25)), [spread_words(9, 0.25), spread_words(9, 0.25)]);
}

fn gradient(max_abs: f64, allowed: f64) -> GradientError {
    GradientError { name: "dq".into(), max_abs, allowed, ..GradientError::default() }
}

#[test]
fn the_worst_gradient_is_the_one_nearest_its_own_limit() {
    let all = [gradient(0.9, 1.0), gradient(3.0, 4.0)];
    assert_eq!(GradientError::worst(&all), Some(&all[0]));
    let broken = GradientError { fault: Some("NaN".into()), ..gradient(0.0, 1.0) };
    let all = [gradient(9.0, 10.0), broken];
    assert_eq!(GradientError::worst(&all), Some(&all[1]));
    assert_eq!(GradientError::worst(&[]), None);
}

#[test]
fn of_two_parts_the_worse_one_is_told_with_the_sizes_of_both() {
    let one = GradientError { largest: 2.0, widest: 0.1, ..gradient(0.9, 1.0) };
    let other = GradientError { largest: 5.0, widest: 0.7, ..gradient(3.0, 4.0) };
    let wanted = GradientError { largest: 5.0, widest: 0.7, ..gradient(0.9, 1.0) };
    assert_eq!(one.clone().worse(other.clone()), wanted);
    assert_eq!(other.worse(one), wanted);
}

#[test]
fn a_fixed_order_has_its_price() {
    let done = |timing, unordered| GradientOutcome::Done {
        kernel: "k".into(),
        errors: Vec::new(),
        timing,
        unordered,
        memory_bytes: None,
    };
    let (slow, fast) = (Some(Timing::once(3.0)), Some(Timing::once(2.0)));
    assert_eq!(done(slow.clone(), fast.clone()).order_price(), Some((2.0, 50.0)));
    assert_eq!((done(slow, None).order_price(), done(None, fast).order_price()), (None, None));
}
