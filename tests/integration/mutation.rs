//! Damaged texts: for any damage to a pattern's source, tracing ends in time with a mod or with messages, and every mod
//! that still traces becomes CUDA text (compiled now and then, if NVRTC is found).
//!
//! Seeded, so that a failure is reproducible; it prints the failing text.

use maskloom::analysis::block_mask::{BlockMask, MaskShape};
use maskloom::analysis::lint::{self, Sizes};
use maskloom::analysis::raster::{Raster, Region};
use maskloom::backends::cuda::{self, Compiled, Compiler, Form, Nvrtc};
use maskloom::base::rng::Rng;
use maskloom::base::{BackendName, BlockSize, Control, Diagnostic, Lengths, Source};
use maskloom::ir::graph::Mod;
use maskloom::ir::graph::ModKind;
use maskloom::ir::print;
use maskloom::problem::{Problem, ProblemSpec};
use maskloom::python::{TraceRequest, trace};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The inserted texts: loops, growth, overflow, nonsense.
const SNIPPETS: &[&str] = &[
    "while True: pass",
    "x = [0] * 10**9",
    "torch.zeros(10**6, 10**6)",
    "lambda: (yield)",
    "9223372036854775807",
    "-9223372036854775808",
    "10**30",
    "1e400",
    "float('nan')",
    "(",
    ")",
    "[",
    "]",
    ":",
    "\n",
    "\n    ",
    "'",
    "\"\"\"",
    "q_idx",
    "kv_idx",
    "b",
    "h",
    "0",
    "None",
    "not ",
    " and ",
    " ** ",
    " // 0",
    " % 0",
    " << 99",
    " @ ",
    ".sum()",
    "[::-1]",
    "[q_idx]",
    "[10**18]",
    "*args",
    "del h",
    "return",
    "raise",
    "assert False",
    "import torch",
    "def f(): return f()\nf()\n",
    "for i in range(10**12): pass",
    "é🦀",
    "\u{0}",
    "{**{}}",
    "f'{q_idx}'",
    "torch.arange(5)[torch.tensor([7])]",
    "torch.randn(20)",
    "global q",
    "try:\n",
    "class C: pass",
];

/// One damage: characters removed, doubled, moved or replaced, lines swapped, a piece of another text spliced in.
fn mutate(text: &str, other: &str, rng: &mut Rng) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = rng.below(chars.len() + 1);
    let length = 1 + rng.below(12).pow(2) / 6;
    let end = (at + length).min(chars.len());
    match rng.below(8) {
        0 => drop(chars.drain(at..end)),
        1 => {
            let piece: Vec<char> = chars[at..end].to_vec();
            let to = rng.below(chars.len() + 1);
            chars.splice(to..to, piece);
        }
        2 | 3 => {
            let snippet = SNIPPETS[rng.below(SNIPPETS.len())];
            chars.splice(at..at, snippet.chars());
        }
        4 => {
            let snippet = SNIPPETS[rng.below(SNIPPETS.len())];
            chars.splice(at..end, snippet.chars());
        }
        5 => {
            let donor: Vec<char> = other.chars().collect();
            let from = rng.below(donor.len() + 1);
            let to = (from + rng.below(200)).min(donor.len());
            chars.splice(at..at, donor[from..to].iter().copied());
        }
        6 => {
            let mut lines: Vec<&str> = text.lines().collect();
            let (a, b) = (rng.below(lines.len()), rng.below(lines.len()));
            if !lines.is_empty() {
                lines.swap(a, b);
            }
            return lines.join("\n");
        }
        _ => {
            for c in &mut chars[at..end] {
                if c.is_ascii_digit() {
                    *c = char::from(b'0' + rng.below(10) as u8);
                } else if c.is_ascii_punctuation() {
                    *c = ['+', '-', '*', '/', '%', '&', '|', '<', '>', '=', '.', ',', '~', '^'][rng.below(14)];
                }
            }
        }
    }
    chars.into_iter().collect()
}

fn patterns() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/patterns");
    let mut out: Vec<(String, String)> = std::fs::read_dir(folder)
        .expect("the pattern library")
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let stem = path.file_stem()?.to_string_lossy().to_string();
            (path.extension()? == "py").then_some((stem, std::fs::read_to_string(&path).ok()?))
        })
        .collect();
    out.sort();
    out
}

/// Traces the text as both kinds; panics when one hangs. Steps and bytes bound a trace, not the clock.
fn check(name: &str, text: &str, nvrtc: Option<&Nvrtc>) -> bool {
    let mut made = false;
    for kind in [ModKind::Mask, ModKind::Score] {
        let started = Instant::now();
        let traced = trace(&TraceRequest::new(Source::new(name, text), "", kind));
        let seconds = started.elapsed().as_secs_f64();
        assert!(seconds < limit(), "{name} took {seconds:.2} s:\n{text}");
        assert!(
            traced.result.is_some() || !traced.diagnostics.is_empty(),
            "{name}: neither a mod nor a message:\n{text}"
        );
        if let Some(result) = &traced.result {
            assert!(result.graph.verify().is_ok(), "{name}: the graph is malformed:\n{text}");
            emitted(name, text, result, nvrtc);
            made = true;
        }
    }
    made
}

/// Accepts any CUDA text; compiles it if possible.
struct Looks<'a>(Option<&'a Nvrtc>);

impl Compiler for Looks<'_> {
    fn version(&self) -> String {
        "looks".into()
    }

    fn compile(&self, source: &str, arch: &str, form: Form) -> Result<Compiled, Diagnostic> {
        let count = |c: char| source.chars().filter(|x| *x == c).count();
        // parentheses also occur in comments
        assert_eq!(count('{'), count('}'), "braces do not match");
        match self.0 {
            Some(nvrtc) => nvrtc.compile(source, arch, form),
            None => Ok(Compiled { cubin: vec![0; 64], log: String::new(), ms: 0.0 }),
        }
    }
}

/// The rest of the way: warnings at sizes, a validated problem, kernel text.
fn emitted(name: &str, text: &str, result: &Mod, nvrtc: Option<&Nvrtc>) {
    let lengths = Lengths::new(200, 136).expect("good lengths");
    lint::lint(result, Sizes { batch: 2, heads: 4, lengths });
    let mut spec = ProblemSpec::plain(2, (4, 2), (200, 136), 64);
    match result.kind {
        ModKind::Mask => spec.mask = Some(Arc::new(result.clone())),
        ModKind::Score => spec.score = Some(Arc::new(result.clone())),
    }
    let Ok(problem) = Problem::new(spec) else { return };
    // the eager kernel holds the mask as a formula
    let compiled = cuda::compile(&problem, BackendName::Eager, "sm_80", &Looks(nvrtc));
    assert!(compiled.is_ok(), "{name}: what traces does not compile:\n{text}\n{:?}", compiled.err());
}

/// Largest seconds of a trace; unoptimised builds on busy machines get more than users' builds.
fn limit() -> f64 {
    if cfg!(debug_assertions) { 60.0 } else { 10.0 }
}

#[test]
fn damaged_patterns_never_break_the_tracer() {
    let patterns = patterns();
    assert!(patterns.len() > 20);
    let rounds = std::env::var("MASKLOOM_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(1500);
    let seed = std::env::var("MASKLOOM_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut rng = Rng::new(seed);
    let mut made = 0;
    let nvrtc = Nvrtc::get().ok();
    if nvrtc.is_none() {
        println!("without NVRTC: CUDA text is only looked at");
    }
    for round in 0..rounds {
        let (name, text) = &patterns[rng.below(patterns.len())];
        let (_, other) = &patterns[rng.below(patterns.len())];
        let mut text = text.clone();
        for _ in 0..1 + rng.below(3) {
            text = mutate(&text, other, &mut rng);
        }
        // compiling takes a second: few are
        let compiler = nvrtc.filter(|_| round % 100 == 0);
        made += usize::from(check(&format!("{name}-{round}.py"), &text, compiler));
    }
    assert!(made > rounds / 20, "only {made} of {rounds} damaged texts still made a mod");
}

/// Masks whose operations follow one from another, `n` times.
fn chains(n: usize) -> [(&'static str, String); 6] {
    let mask = |setup: &str, step: &str| {
        format!(
            "import torch\nt = torch.arange(64) * 37 % 64\ndef mod(b, h, q, k):\n    {setup}\n    for i in range({n}):\n        \
             {step}\n    return x > 0\n"
        )
    };
    [
        ("products", mask("x = q", "x = x * k % (1000 + i)")),
        ("sums", mask("x, y = q, k", "x, y = x + y, (x - y) * 2")),
        ("floats", mask("x = q.float()", "x = x * k + i")),
        ("choices", mask("x = q", "x = torch.where((x ^ k) % 7 > 3, x * 3 + i, k - x) % 999")),
        ("tables", mask("x = q", "x = t[(x + k + i) % 64]")),
        ("unions", mask("x = q == k", "x = x | (q * 3 - k == i * 7)")),
    ]
}

/// No part of the way recurses once for each operation: these end on the small stack of a worker thread.
#[test]
fn long_chains_are_refused_or_end_on_a_small_stack() {
    for (name, text) in chains(5000) {
        let traced = trace(&TraceRequest::new(Source::new(name, text.as_str()), "", ModKind::Mask));
        let why = traced.diagnostics.iter().find(|d| d.is_error()).map(|d| d.code.to_string());
        let limit = ["chain-too-long", "graph-too-large", "too-slow", "too-many-steps"];
        assert!(why.as_deref().is_some_and(|why| limit.contains(&why)), "{name}: {why:?}");
    }
    let small = std::thread::Builder::new().stack_size(2 << 20);
    let walked = small.spawn(|| {
        for (name, text) in chains(380) {
            let traced = trace(&TraceRequest::new(Source::new(name, text.as_str()), "", ModKind::Mask));
            let mask = Arc::new(traced.result.unwrap_or_else(|| panic!("{name}: {:?}", traced.diagnostics)));
            let lengths = Lengths::new(40, 56).expect("good lengths");
            let shape = MaskShape::broadcast(lengths);
            let blocks = BlockMask::build(Some(&mask), shape, BlockSize::square(16), &Control::new());
            assert!(blocks.expect("not stopped").stats().kept_cells > 0, "{name}");
            Raster::new(mask.clone()).tile(&Region::whole([0, 0], lengths, [8, 8]), &Control::new());
            assert!(!print::expression(&mask.graph, mask.root).is_empty());
            emitted(name, &text, &mask, None);
        }
    });
    walked.expect("a thread").join().expect("no panic");
}
