//! Every function, method, operator and statement on large arguments, again and again until a limit stops it: the limits of a
//! text hold its time and its memory whatever it calls.
//!
//! Invariant: what is tried comes from the library's own sources and tables, so that a new function is tried too. Must not know
//! what the functions compute.

use crate::python::library;
use crate::python::machine::Context;
use crate::python::trace::tests::*;
use crate::python::value::{Args, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Processor seconds that a text may take, in a build without optimisation.
const SECONDS: f64 = 10.0;
/// Bytes that it may hold.
const BYTES: u64 = 2 << 30;

/// What a case takes at most, as a part of what a text may take: a whole one for each of thousands takes a day.
fn part() -> u64 {
    std::env::var("MASKLOOM_COSTS_PART").ok().and_then(|part| part.parse().ok()).unwrap_or(10)
}

fn limits(part: u64) -> Limits {
    let whole = Limits::default();
    Limits {
        steps: whole.steps / part,
        tensor_bytes: whole.tensor_bytes / part,
        container_bytes: whole.container_bytes / part,
        ..whole
    }
}

/// What is called with what: sections of items.
const KINDS: &str = include_str!("costs.txt");

/// The items of a section. `-` stands for none.
fn kinds(section: &str) -> impl Iterator<Item = String> {
    let (_, from) = KINDS.split_once(&format!("== {section}\n")).expect("a section");
    let own = from.split("\n== ").next().unwrap_or_default().lines();
    own.flat_map(|line| line.split(" ;; ")).map(|item| if item == "-" { "" } else { item }.replace("\\n", "\n"))
}

const HEAD: &str = "import torch, math, itertools, functools, operator, numpy, re, json, collections, random, copy, statistics, heapq, \
    bisect, einops, dataclasses, types, enum, os, os.path, argparse, string\nimport torch.nn as nn, torch.nn.functional as F\n\
    from torch.nn.attention.flex_attention import *\nrandom.seed(0)\ntorch.manual_seed(0)\n";

/// The names in the library's sources and tables.
fn names() -> BTreeSet<String> {
    fn add(folder: &Path, out: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                add(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source");
                let is_name = |part: &&str| {
                    part.len() < 40
                        && part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                        && part.chars().all(|c| c.is_ascii_alphanumeric() || "._".contains(c))
                };
                out.extend(text.split('"').filter(is_name).map(String::from));
            }
        }
    }
    let mut out = BTreeSet::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    ["library", "symbolic", "tensors", "machine"].iter().for_each(|folder| add(&root.join(folder), &mut out));
    out.extend(library::host::names());
    out.extend(library::tensor_methods::names().into_iter().map(String::from));
    out.extend(library::python::names().iter().map(|name| name.to_string()));
    out.extend(crate::python::prelude::names().map(String::from));
    out
}

/// A text that computes a line in this way, of N elements in a container and W in a tensor.
fn text(line: &str, n: u64, w: u64, way: &str) -> String {
    let p = (w as f64).sqrt() as u64;
    let word = |text: &str, of: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == of);
    let bound = |made: &str| {
        let name = |l: &str| {
            l.strip_prefix("def ")
                .map_or(l.split_once(" = ").map(|(name, _)| name.into()), |d| d.split('(').next().map(String::from))
        };
        made.lines().filter_map(name).any(|name: String| word(line, name.trim()))
    };
    let values: String = kinds("values").filter(|made| bound(made)).map(|made| made + "\n").collect();
    let place = way.lines().find(|l| l.contains("LINE")).unwrap_or_default();
    let line = line.replace('\n', &format!("\n{}", " ".repeat(place.len() - place.trim_start().len())));
    let repeated = way.replace("LINE", &line);
    format!("{HEAD}N, W, P, X, K = {n}, {w}, {p}, None, []\n{values}{repeated}\nm = lambda b, h, q, k: q >= k\n")
}

/// How a line is repeated.
const LOOPS: [(&str, &str); 3] = [
    ("dropped", "def spin():\n    for _ in range(10 ** 12):\n        LINE\nspin()"),
    ("kept", "def spin():\n    for _ in range(10 ** 12):\n        K.append(LINE)\nspin()"),
    (
        "caught",
        "def spin():\n    for _ in range(10 ** 12):\n        try:\n            LINE\n        except Exception as e:\n            X = e\nspin()",
    ),
];

/// What [`fault`] says of a line that panics.
const PANICS: &str = "a panic: Python stops";

/// Whether a line runs once: None, or the fault in short.
fn fault(line: &str) -> Option<String> {
    let small = Limits { steps: 100_000, tensor_bytes: 1 << 20, container_bytes: 1 << 20, ..Limits::default() };
    let text = text(line, 6, 9, "if True:\n        LINE");
    let traced = std::panic::catch_unwind(|| trace(&TraceRequest { limits: small, ..request(&text, ModKind::Mask) }));
    let Ok(traced) = traced else { return Some(PANICS.into()) };
    traced.diagnostics.iter().find(|d| d.is_error() || d.code == "skipped").map(|d| format!("{} {}", d.code, d.message))
}

/// Names that the library calls: functions with their module, methods by receiver.
fn known() -> (BTreeSet<String>, Vec<(String, String)>) {
    let mut none = |_: &str| None;
    let names = names();
    let unknown = |result: Result<Value, Fault>| matches!(result, Err(fault) if matches!(&*fault.diagnostic.code, "unknown-function" | "unknown-attribute" | "unknown-name"));
    let mut functions = BTreeSet::new();
    for name in &names {
        for module in kinds("modules") {
            let dotted = format!("{module}{name}");
            let mut cx = Context::new(&library::LIBRARY, limits(1000), &mut none);
            if !unknown(library::call(&dotted, Args::default(), &mut cx)) {
                functions.insert(dotted);
            }
        }
    }
    let mut methods = Vec::new();
    for receiver in kinds("receivers") {
        let mut cx = Context::new(&library::LIBRARY, Limits::default(), &mut none);
        let made = text(&receiver, 6, 9, "RECEIVER = LINE");
        let scope = cx.run_source(Source::new("mod.py", made), "mod", Vec::new()).expect("it runs");
        let value = scope.own("RECEIVER").unwrap_or_else(|| panic!("{receiver} is made"));
        for name in names.iter().filter(|name| !name.contains('.')) {
            if !unknown(library::method(&value, &name.as_str().into(), Args::default(), &mut cx)) {
                methods.push((receiver.clone(), name.to_string()));
            }
        }
    }
    (functions, methods)
}

fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn held(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Runs a text: processor seconds, bytes, how it ended.
fn cost(text: &str, limits: Limits) -> (f64, u64, String) {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let (before, began) = (held("VmRSS:"), processor());
    let traced = trace(&TraceRequest { limits, ..request(text, ModKind::Mask) });
    let ended = traced.diagnostics.iter().find(|d| d.is_error() || d.code == "skipped");
    let ended = ended.map_or("none".to_string(), |d| format!("{} {:.60}", d.code, d.message));
    (processor() - began, held("VmHWM:").saturating_sub(before), ended)
}

fn variable(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

fn line_cost(line: &str, way: &str, part: u64, less: u64) -> (f64, u64, String) {
    let limits = limits(part);
    let (n, w) = (limits.container_bytes / 512 / less, limits.tensor_bytes / 128 / less);
    cost(&text(line, n, w, way), limits)
}

/// The first calls with arguments that succeed, and those that raise what Python raises.
fn calls(begin: &str, arguments: &str, most: usize, lines: &mut Vec<String>, raising: &mut Vec<String>) -> bool {
    let (mut found, mut said) = (0, BTreeMap::new());
    let all: Vec<String> = kinds(arguments).map(|args| format!("{begin}({args})")).collect();
    for line in all.iter().rev() {
        match fault(line) {
            None => {
                found += 1;
                lines.push(line.clone());
            }
            Some(why) => drop(said.entry(why).or_insert_with(|| line.clone())),
        }
        if found == most {
            break;
        }
    }
    raising.extend(said.into_iter().filter(|(why, _)| why.contains("Python stops")).map(|(_, line)| line).take(2));
    found > 0
}

/// The cases from MASKLOOM_COSTS_FROM on, each MASKLOOM_COSTS_EVERY-th: so several processes share them.
fn taken<T>(cases: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let from = variable("MASKLOOM_COSTS_FROM").unwrap_or(0);
    cases.skip(from).step_by(variable("MASKLOOM_COSTS_EVERY").unwrap_or(1).max(1))
}

/// Says what a case costs, and whether it passes the limits.
fn judge(name: &str, cost: impl FnOnce() -> (f64, u64, String), part: u64, over: &mut Vec<String>) {
    let watched = watch(name.to_string());
    let (took, held, ended) = cost();
    drop(watched);
    let is_over = took > SECONDS / part as f64 || held > BYTES / part;
    let said = format!("{took:.2} s {} MB {name}: {ended}", held >> 20);
    println!("{} {said}", if is_over { "OVER" } else { "ok" });
    if is_over {
        over.push(said);
    }
}

#[test]
#[ignore = "an hour: each week"]
fn no_call_passes_the_limits() {
    let part = part();
    let only = std::env::var("MASKLOOM_COSTS").unwrap_or_default();
    let most = variable("MASKLOOM_COSTS_MOST").unwrap_or(4);
    let wanted = |line: &str| only.is_empty() || only.split('|').any(|o| line.contains(o));
    let (mut lines, mut raising): (Vec<String>, Vec<String>) = (kinds("syntax").collect(), Vec::new());
    let broken: Vec<_> = lines.iter().filter_map(|line| Some((line.clone(), fault(line)?))).collect();
    assert!(broken.is_empty(), "syntax that does not run: {broken:#?}");
    let began = Instant::now();
    let (functions, methods) = known();
    println!("{} functions, {} methods, {:?}", functions.len(), methods.len(), began.elapsed());
    let mut unreached = Vec::new();
    for function in functions.iter().filter(|f| wanted(f)) {
        if !calls(function, "called", most, &mut lines, &mut raising) {
            unreached.push(function.clone());
        }
    }
    for (receiver, name) in methods.iter().filter(|(r, n)| wanted(&format!("{r}.{n}"))) {
        if !calls(&format!("({receiver}).{name}"), "asked", most, &mut lines, &mut raising) {
            unreached.push(format!("({receiver}).{name}"));
        }
    }
    println!(
        "{} lines, {} raise, {:?}; {} unreached: {unreached:?}",
        lines.len(),
        raising.len(),
        began.elapsed(),
        unreached.len()
    );
    let panics: Vec<&String> = raising.iter().filter(|line| fault(line).is_some_and(|why| why == PANICS)).collect();
    assert!(panics.is_empty(), "these panic: {panics:#?}");
    let ways = variable("MASKLOOM_COSTS_WAYS").unwrap_or(5);
    let mut cases: Vec<(String, usize, u64)> = Vec::new();
    for line in lines.iter().filter(|l| wanted(l)) {
        let kept = !line.contains('\n') && fault(&format!("X = {line}")).is_none();
        let all = [(0, 1, true), (0, 64, true), (1, 1, kept), (1, 64, kept)];
        cases.extend(all.into_iter().take(ways).filter(|a| a.2).map(|(way, less, _)| (line.clone(), way, less)));
    }
    if ways == 5 {
        cases.extend(raising.iter().filter(|l| wanted(l)).map(|line| (line.clone(), 2, 1)));
    }
    println!("{} cases", cases.len());
    let mut over = Vec::new();
    for (at, (line, way, less)) in taken(cases.iter().enumerate()) {
        let (name, way) = LOOPS[*way];
        judge(&format!("{at} {name} /{less} {line:?}"), || line_cost(line, way, part, *less), part, &mut over);
    }
    assert!(over.is_empty(), "{} of {} cases:\n{}", over.len(), cases.len(), over.join("\n"));
}

/// Ends the process if a case has no end.
fn watch(case: String) -> Sender<()> {
    let (done, wait) = channel::<()>();
    let seconds = variable("MASKLOOM_COSTS_PATIENCE").unwrap_or(100) as u64;
    std::thread::spawn(move || {
        if wait.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout) {
            println!("HANGS {case}");
            std::process::exit(99);
        }
    });
    done
}

/// Texts of a megabyte of one line, at the module, in the mod, and loops in the mod.
fn long_texts() -> Vec<(String, String)> {
    let most = Limits::default().source_bytes - 10_000;
    let times = |line: &str, indent: &str| {
        let line = format!("{indent}{}\n", line.replace('\n', &format!("\n{indent}")));
        line.repeat(most / line.len())
    };
    let head = "import torch, math\n";
    let last = "def m(b, h, q, k):\n    return q >= k\n";
    let mut texts = Vec::new();
    for line in kinds("long") {
        texts.push((format!("long {line:?}"), format!("{head}{}{last}", times(&line, ""))));
        let inside = format!("{head}def m(b, h, q, k):\n{}    return q >= k\n", times(&line, "    "));
        texts.push((format!("long inside {line:?}"), inside));
    }
    let values: String = kinds("values")
        .filter(|v| ["L = ", "T = ", "t = ", "M = "].iter().any(|n| v.starts_with(n)))
        .map(|v| v + "\n")
        .collect();
    let head = format!("{HEAD}N, W, P = 1000, 10000, 100\n{values}def m(b, h, q, k):\n");
    for line in kinds("inside") {
        texts.push((format!("mod {line:?}"), format!("{head}{}    return q >= k\n", times(&line, "    "))));
        let looped = format!(
            "{head}    for _ in range(10 ** 12):\n        {}\n    return q >= k\n",
            line.replace('\n', "\n        ")
        );
        texts.push((format!("mod loop {line:?}"), looped));
    }
    texts
}

#[test]
#[ignore = "an hour: each week"]
fn no_long_text_passes_the_limits() {
    let (mut over, only) = (Vec::new(), std::env::var("MASKLOOM_COSTS").unwrap_or_default());
    let texts = long_texts();
    for (at, (name, text)) in taken(texts.iter().enumerate()).filter(|(_, (name, _))| name.contains(&only)) {
        judge(&format!("{at} {name}"), || cost(text, Limits::default()), 1, &mut over);
    }
    assert!(over.is_empty(), "{} of {} texts:\n{}", over.len(), texts.len(), over.join("\n"));
}
