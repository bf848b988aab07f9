//! Requirements of tests: a missing one is reported as skipped, or is a failure if it was promised. Also the cases that they take.
//!
//! Invariant: if `MASKLOOM_NEEDS` (`torch,gym,cxx,nvrtc`) names a requirement, a test that lacks it fails; otherwise
//! the test prints `skipped`. For tests only. Must not know where requirements are found.

/// Says that a test is skipped because `what` (`torch`, `gym`, `cxx` or `nvrtc`) is not there.
///
/// # Panics
/// If `MASKLOOM_NEEDS` names it: the variable states that it is installed, so its absence is a failure.
#[doc(hidden)]
pub fn missing(what: &str, why: &str) {
    let promised = std::env::var("MASKLOOM_NEEDS").unwrap_or_default();
    assert!(!is_promised(&promised, what), "MASKLOOM_NEEDS promises {what}, and a test did not find it: {why}");
    println!("skipped: {why}");
}

/// Whether tests take all of their cases.
#[doc(hidden)]
pub fn all_cases() -> bool {
    std::env::var_os("MASKLOOM_ALL_CASES").is_some_and(|value| !value.is_empty())
}

/// Whether a test takes its case `at` if a case costs seconds: every second one, or with `MASKLOOM_ALL_CASES` each. The test's output
/// tells which are left out.
#[doc(hidden)]
pub fn is_taken(at: usize) -> bool {
    is_one_of(2, at)
}

/// The same of every `count`-th case, for cases that are much alike: kernels that are compiled and not run.
#[doc(hidden)]
pub fn is_one_of(count: usize, at: usize) -> bool {
    let taken = at.is_multiple_of(count) || all_cases();
    if !taken {
        println!("case {at} is left out; all with MASKLOOM_ALL_CASES=1");
    }
    taken
}

/// The cases that are taken.
#[doc(hidden)]
pub fn taken<T>(cases: impl IntoIterator<Item = T>) -> Vec<T> {
    one_of(2, cases)
}

/// Every `count`-th of these cases.
#[doc(hidden)]
pub fn one_of<T>(count: usize, cases: impl IntoIterator<Item = T>) -> Vec<T> {
    cases.into_iter().enumerate().filter(|(at, _)| is_one_of(count, *at)).map(|(_, case)| case).collect()
}

fn is_promised(promised: &str, what: &str) -> bool {
    promised.split(',').any(|name| name.trim() == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_promised() {
        assert!(is_promised("torch, gym", "gym"));
        assert!(!is_promised("torch,gym", "cxx"));
        assert!(!is_promised("", "torch"));
    }
}
