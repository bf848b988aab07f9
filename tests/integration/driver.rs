//! Faults of a GPU, with a stand-in for NVIDIA's driver (`tests/stand_in/cuda.c`): each is a row or a message within seconds, and the
//! next run is fine.
//!
//! Invariant: the kernels are really compiled and really cached; only the card is not there, so that outputs are told as wrong. Must
//! not need a GPU.

use crate::cli::{Bench, Ran};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A folder with the driver, the document and the kernels' cache.
struct Card {
    bench: Bench,
}

impl Card {
    /// None: no C compiler or no NVRTC here.
    fn new() -> Option<Card> {
        let bench = Bench::new();
        let source = format!("{}/tests/stand_in/cuda.c", env!("CARGO_MANIFEST_DIR"));
        let library = bench.path("libcuda.so");
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(&library)
            .arg(source)
            .status();
        if !made.is_ok_and(|status| status.success()) {
            maskloom_testing::needs::missing("cxx", "no C compiler: the stand-in for the driver cannot be built");
            return None;
        }
        let card = Card { bench };
        let first = card.run(&[], "sdpa");
        if first.out.contains("nvrtc-missing") {
            maskloom_testing::needs::missing("nvrtc", "no NVRTC: set MASKLOOM_NVRTC");
            return None;
        }
        Some(card)
    }

    fn command(&self, fault: &[(&str, &str)], args: &[&str]) -> Command {
        let mut command = self.bench.command(args);
        command.env("LD_LIBRARY_PATH", self.bench.path("")).envs(fault.iter().copied());
        command
    }

    /// A race on the card.
    fn run(&self, fault: &[(&str, &str)], backends: &str) -> Ran {
        let args = ["run", "plain.json", "--device", "cuda", "--backend", backends, "--rounds", "1", "--json"];
        Bench::ran(&mut self.command(fault, &args))
    }

    fn kernels(&self) -> Vec<PathBuf> {
        let folder = self.bench.path("cache/kernels");
        let all = std::fs::read_dir(folder).expect("a cache").flatten().map(|entry| entry.path());
        let mut all: Vec<PathBuf> = all.filter(|path| path.extension().is_some_and(|e| e == "mlk")).collect();
        all.sort();
        all
    }
}

/// What each backend came to: `wrong`, or the code of its failure.
fn outcomes(ran: &Ran) -> Vec<(String, String)> {
    let report: Value = ran.json();
    let rows = report["backends"].as_array().unwrap_or_else(|| panic!("{}", ran.out));
    let outcome = |row: &Value| {
        let text = row.to_string();
        let code = row.pointer("/outcome/why/code").or_else(|| row.pointer("/why/code")).and_then(Value::as_str);
        (row["backend"].as_str().unwrap_or_default().to_string(), code.map_or_else(|| reported(&text), String::from))
    };
    rows.iter().map(outcome).collect()
}

fn reported(row: &str) -> String {
    if row.contains("gpu-") { row.to_string() } else { "ran".into() }
}

#[test]
fn a_fault_of_the_card_is_a_row_and_the_next_run_is_fine() {
    let Some(card) = Card::new() else { return };
    let fine = [("sdpa".to_string(), "ran".to_string()), ("flex".to_string(), "ran".to_string())];
    assert_eq!(outcomes(&card.run(&[], "sdpa,flex")), fine);
    let before = std::fs::read(card.bench.path("plain.json")).expect("a document");
    for (fault, first, second) in [
        ("illegal:2", "gpu-context-lost", "gpu-context-lost"),
        ("lost:1", "gpu-context-lost", "gpu-context-lost"),
        ("memory:4", "gpu-out-of-memory", "ran"),
    ] {
        let began = Instant::now();
        let ran = card.run(&[("STAND_IN_FAULT", fault)], "sdpa,flex");
        assert!(began.elapsed() < Duration::from_secs(20), "{fault}: {:?}", began.elapsed());
        let rows: Vec<String> = outcomes(&ran).into_iter().map(|(_, outcome)| outcome).collect();
        assert_eq!(rows, [first, second], "{fault}: {}{}", ran.out, ran.err);
        assert_eq!(ran.code, 1, "{fault}");
        assert_eq!(outcomes(&card.run(&[], "sdpa,flex")), fine, "after {fault}");
    }
    assert_eq!(std::fs::read(card.bench.path("plain.json")).expect("a document"), before);
}

/// A lost context ends with its worker: the next point of a sweep has a new one.
#[test]
fn a_sweep_goes_on_after_a_lost_card() {
    let Some(card) = Card::new() else { return };
    card.bench.write("once", "");
    let once = card.bench.path("once");
    let fault = [("STAND_IN_FAULT", "illegal:2"), ("STAND_IN_ONCE", once.to_str().expect("a path"))];
    let args =
        ["sweep", "plain.json", "--lengths", "128,256", "--device", "cuda", "--backend", "sdpa", "--rounds", "1"];
    let ran = Bench::ran(&mut card.command(&fault, &args));
    assert!(!once.exists() && ran.code == 1, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("at seq 128 sdpa failed: ") && ran.err.contains("outside its allocations"), "{}", ran.err);
    assert!(ran.err.contains("at seq 256 sdpa was wrong"), "{}", ran.err);
}

/// A kernel on disk that was cut off or changed is compiled again, and two processes may build one kernel.
#[test]
fn damaged_kernels_are_built_again_and_two_processes_build_one() {
    let Some(card) = Card::new() else { return };
    let kernels = card.kernels();
    let [kernel] = &kernels[..] else { panic!("one kernel: {kernels:?}") };
    let whole = std::fs::read(kernel).expect("a kernel");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    for damaged in [&whole[..whole.len() / 2], &changed, b"", b"no kernel"] {
        std::fs::write(kernel, damaged).expect("written");
        assert_eq!(outcomes(&card.run(&[], "sdpa")), [("sdpa".to_string(), "ran".to_string())]);
        let again = std::fs::read(kernel).expect("a kernel");
        assert!(again.len() > whole.len() / 2 && again != damaged, "built again");
    }
    std::fs::remove_file(kernel).expect("removed");
    let args = ["run", "plain.json", "--device", "cuda", "--backend", "sdpa", "--rounds", "1", "--json"];
    let start = || {
        let mut command = card.command(&[], &args);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        command.spawn().expect("it starts")
    };
    for started in [start(), start()] {
        let out = started.wait_with_output().expect("it ends");
        let ran = Ran { code: 0, out: String::from_utf8_lossy(&out.stdout).into_owned(), err: String::new() };
        assert_eq!(outcomes(&ran), [("sdpa".to_string(), "ran".to_string())]);
    }
    assert_eq!(card.kernels(), kernels, "one entry, and no file that was being written");
}
