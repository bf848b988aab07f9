//! Requirements of tests: a missing one is a skip that is listed and counted, or a failure if it was promised. Also the cases
//! that tests take.
//!
//! Invariant: if `MASKLOOM_NEEDS` names a requirement, a test that lacks it fails; otherwise the test says `skipped` and the
//! skip is listed in a file of this run, which the test target `skips` counts at the end. For tests only. Must not know where
//! requirements are found.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Names of requirements: PyTorch, attention-gym, diffusers with transformers and what trains them, the Python package of
/// this tree, a C++ compiler, NVRTC, cuDNN, a server of ssh, a GPU. `.ci/run` promises all but the last.
#[doc(hidden)]
pub const NEEDS: [&str; 9] = ["torch", "gym", "models", "package", "cxx", "nvrtc", "cudnn", "sshd", "gpu"];

/// Says that a test is skipped because `what`, one of [`NEEDS`], is not there, and lists it.
///
/// # Panics
/// If `MASKLOOM_NEEDS` names it: the variable states that it is installed, so its absence is a failure. If nothing can promise
/// `what`, or what the variable names.
#[doc(hidden)]
pub fn missing(what: &str, why: &str) {
    skip(1, &this_test(), what, why);
}

/// The same for a harness that skips all of its tests.
///
/// # Panics
/// As [`missing`].
#[doc(hidden)]
pub fn missing_for(tests: usize, what: &str, why: &str) {
    skip(tests, &binary(), what, why);
}

fn skip(tests: usize, test: &str, what: &str, why: &str) {
    let promised = std::env::var("MASKLOOM_NEEDS").unwrap_or_default();
    assert!(NEEDS.contains(&what), "no run can promise {what}: it is none of {NEEDS:?}");
    let unknown = names(&promised).find(|name| !NEEDS.contains(name));
    assert_eq!(unknown, None, "MASKLOOM_NEEDS promises what is none of {NEEDS:?}");
    assert!(!is_promised(&promised, what), "MASKLOOM_NEEDS promises {what}, and a test did not find it: {why}");
    println!("skipped: {why}");
    let skip = Skip { need: what, tests, test, why };
    if let Err(error) = listed().and_then(|file| skip.append(&file)) {
        println!("the skip is not counted: {error}");
    }
}

/// The running test with its binary: libtest names a thread after its test. `main` is a test that runs alone.
fn this_test() -> String {
    let thread = std::thread::current();
    match thread.name() {
        None | Some("main") => "main".to_string(),
        Some(test) => format!("{} {test}", binary()),
    }
}

/// A harness that starts twice in a run skips its tests once.
fn binary() -> String {
    std::env::current_exe().unwrap_or_default().file_stem().unwrap_or_default().display().to_string()
}

/// A skip as it is listed: one line.
#[derive(Debug, PartialEq, Eq)]
struct Skip<'a> {
    need: &'a str,
    tests: usize,
    test: &'a str,
    why: &'a str,
}

impl<'a> Skip<'a> {
    fn append(&self, file: &Path) -> std::io::Result<()> {
        let why = self.why.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = format!("{}\t{}\t{}\t{why}\n", self.need, self.tests, self.test);
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
        // one write: tests of several processes append to the file
        std::fs::OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
    }

    fn of_line(line: &'a str) -> Option<Self> {
        let mut parts = line.splitn(4, '\t');
        let (need, tests, test) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        Some(Self { need, tests, test, why: parts.next()? })
    }
}

/// The file in which the skips of this run are listed: `MASKLOOM_SKIPS`, else one beside the test binaries that belongs to
/// the process which starts them (cargo), so that no other run's skips are in it.
fn listed() -> std::io::Result<PathBuf> {
    if let Some(file) = named() {
        return Ok(file);
    }
    // target/debug/deps/tests-0123: target/debug/skips
    let binary = std::env::current_exe()?;
    let folder = binary.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    Ok(folder.join("skips").join(run()))
}

fn named() -> Option<PathBuf> {
    std::env::var_os("MASKLOOM_SKIPS").filter(|file| !file.is_empty()).map(PathBuf::from)
}

/// The process that started this one, told apart from an earlier one with the same number.
#[cfg(unix)]
fn run() -> String {
    let parent = std::os::unix::process::parent_id();
    let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
    // the 22nd field, counted behind the name in brackets, is when it began
    let began = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)).unwrap_or("0");
    format!("{parent}-{began}")
}

#[cfg(not(unix))]
fn run() -> String {
    "run".to_string()
}

/// Takes the list of this run's skips and says in words how many tests were skipped, and why. A list that the variable names
/// stays for its reader.
///
/// # Errors
/// If the list cannot be read.
#[doc(hidden)]
pub fn skips() -> std::io::Result<String> {
    let file = listed()?;
    let text = match std::fs::read_to_string(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text?,
    };
    if let (None, Some(folder)) = (named(), file.parent().filter(|folder| folder.exists())) {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            // runs that ended before they were counted left theirs
            let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
            if entry.path() == file || age.as_secs() > 24 * 3600 {
                std::fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(counted(&text))
}

/// The words for a list of skips: each need and reason with its number of tests, the most frequent first.
fn counted(text: &str) -> String {
    let mut seen = std::collections::BTreeSet::new();
    let mut reasons: Vec<((&str, &str), usize)> = Vec::new();
    for skip in text.lines().filter_map(Skip::of_line) {
        // a test that looks in vain several times is one
        if skip.test != "main" && !seen.insert(skip.test) {
            continue;
        }
        match reasons.iter_mut().find(|(reason, _)| *reason == (skip.need, skip.why)) {
            Some((_, tests)) => *tests += skip.tests,
            None => reasons.push(((skip.need, skip.why), skip.tests)),
        }
    }
    if reasons.is_empty() {
        return "0 skipped\n".to_string();
    }
    reasons.sort_by_key(|(_, tests)| std::cmp::Reverse(*tests));
    let mut words = format!("{} skipped:\n", reasons.iter().map(|(_, tests)| tests).sum::<usize>());
    for ((need, why), tests) in reasons {
        let _ = writeln!(words, "  {tests} {need}: {why}");
    }
    words
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

fn names(promised: &str) -> impl Iterator<Item = &str> {
    promised.split(',').map(str::trim).filter(|name| !name.is_empty())
}

fn is_promised(promised: &str, what: &str) -> bool {
    names(promised).any(|name| name == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_promised() {
        assert!(is_promised("torch, gym,", "gym"));
        assert!(!is_promised("torch,gym", "cxx"));
        assert!(!is_promised("", "torch"));
    }

    #[test]
    fn skips_are_counted_once_a_test_with_their_reasons() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("below/list");
        assert_eq!(counted(""), "0 skipped\n");
        let skip = |need, tests, test, why| Skip { need, tests, test, why }.append(&file).expect("written");
        skip("torch", 1, "a::b", "no Python\nwith torch");
        skip("cxx", 1, "c::d", "no C++ compiler");
        skip("cxx", 1, "c::d", "no C++ compiler");
        skip("cxx", 1, "c::e", "no C++ compiler");
        skip("gpu", 26, "main", "no GPU");
        let text = std::fs::read_to_string(&file).expect("written");
        assert_eq!(
            counted(&text),
            "29 skipped:\n  26 gpu: no GPU\n  2 cxx: no C++ compiler\n  1 torch: no Python with torch\n"
        );
    }

    #[test]
    fn a_list_belongs_to_the_process_that_starts_the_tests() {
        let run = run();
        assert!(
            cfg!(not(target_os = "linux")) || run.split('-').all(|n| n.parse::<u64>().is_ok_and(|n| n > 0)),
            "{run}"
        );
    }

    #[test]
    #[should_panic(expected = "no run can promise modles")]
    fn what_nothing_can_promise_is_no_need() {
        missing("modles", "a slip");
    }
}
