//! What commands say in Chinese, Spanish and Hindi: no line of them is an English sentence.
//!
//! Invariant: what scripts read stays English. Must not know the texts.

use super::{Bench, Ran};
use maskloom_testing::needs;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const LANGUAGES: [&str; 3] = ["zh_CN.UTF-8", "es_ES.UTF-8", "hi_IN.UTF-8"];

fn speaking(bench: &Bench, language: &str, args: &[&str]) -> Ran {
    Bench::ran(bench.command(args).env_remove("LC_ALL").env("LANG", language)).ok()
}

/// What is the same in every language: PyTorch's own messages, commands, and what a document says of itself with its source.
const QUOTED: [&str; 6] = [
    " -m pip install ",
    "maskloom doctor --",
    "(arXiv:",
    "Flash Attention does not support non-null attn_mask.",
    "Input buffers require gradients (not supported by flash attention)",
    "NYI: Flex Flash Attention bwd doesn't support captured grads yet.",
];

/// Whether a line has three words in a row, as sentences have and code has not.
fn is_prose(line: &str) -> bool {
    let is_word = |word: &&str| {
        let word = word.trim_end_matches([',', ':', ';', '.', ')']).trim_start_matches('(');
        word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase())
    };
    let words: Vec<bool> = line.split(' ').map(|word| is_word(&word)).collect();
    words.windows(3).any(|three| three == [true; 3])
}

/// Lines of a text in English that stand in the other as they are.
fn left_over<'a>(english: &'a str, other: &str) -> Vec<&'a str> {
    let there: Vec<&str> = other.lines().map(str::trim).collect();
    let is_own = |line: &&str| is_prose(line) && !QUOTED.iter().any(|quoted| line.contains(quoted));
    english.lines().map(str::trim).filter(|line| is_own(line) && there.contains(line)).collect()
}

const TEXT: &str = "import torch
from torch.nn.attention.flex_attention import create_block_mask
table = torch.randn(9, 9)
def window(b, h, q_idx, kv_idx):
    return q_idx - kv_idx < 64
def bias(score, b, h, q_idx, kv_idx):
    return score + table[q_idx % 9, kv_idx % 9]
def never(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (h < 0)
block_mask = create_block_mask(window, 2, 4, 512, 256, BLOCK_SIZE=64)
";

const CONFIGS: [(&str, &str); 4] = [
    (
        "flux.json",
        r#"{"model_family": "flux", "attention_mechanism": "diffusers", "train_batch_size": 4, "resolution": 512}"#,
    ),
    ("none.json", r#"{"model_family": "no_such_family"}"#),
    (
        "gemma.json",
        r#"{"model_type": "gemma3", "num_attention_heads": 8, "hidden_size": 512, "sliding_window": 1024, "sliding_window_pattern": 6, "cp_size": 2}"#,
    ),
    ("t5.json", r#"{"model_type": "t5", "num_attention_heads": 8, "hidden_size": 512}"#),
];

/// Designs, a file, functions of a file, a document of shapes.
const DESIGNS: [&str; 14] = [
    "causal",
    "alibi",
    "sliding_window",
    "packed_documents",
    "natten_2d",
    "gemma2_softcap_window",
    "flux_text_padding",
    "block_diffusion",
    "graphormer",
    "sdxl_cross",
    "text.py",
    "text.py:never",
    "factory.py",
    "band.json",
];

/// Files that the calls read.
fn furnished() -> Bench {
    let bench = Bench::new();
    bench.write("text.py", TEXT);
    bench.write(
        "factory.py",
        "def make(width: int = 3):\n    def inner(b, h, q, k):\n        return q - k < width\n    return inner\n",
    );
    CONFIGS.iter().for_each(|(name, text)| bench.write(name, text));
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/captures/lm.safetensors");
    std::fs::copy(sample, bench.path("lm.safetensors")).expect("the sample");
    bench.run(&["run", "band.json", "--rounds", "1", "--save-run", "run.json"]).ok();
    bench
}

/// Calls of every command that prints for people.
const CALLS: [&str; 36] = [
    "check causal --at 0,0,5,3",
    "check causal --at 0,0,3,5",
    "compare causal sliding_window",
    "compare causal causal",
    "compare alibi gemma2_softcap_window --seq 512",
    "advise --design wan_full",
    "advise --design gemma3_local",
    // the list of presets has documents' names, which are theirs in every language
    "presets --patterns",
    "presets wan_natten_3d",
    "presets show causal",
    "presets show svg_heads",
    "presets show band.json",
    "kernels list",
    "kernels clear",
    "target list",
    "jobs --here",
    "blocks causal",
    "blocks packed_documents",
    "blocks band.json",
    "run band.json --rounds 1 --pass both",
    "run band.json --rounds 1 --max-scores --backend flex",
    "report run.json",
    "doctor",
    "tour causal --tokens 64",
    "conform --random 1 --device cpu",
    "sweep band.json --lengths 64,128 --backend flex --rounds 1",
    "parallel causal --ranks 2",
    "parallel causal sliding_window --ranks 4 --layers 1,5 --seq 4096 --heads 8 --kv-heads 8 --head-dim 64",
    "quality causal lm.safetensors --seq 512 --heads 4 --kv-heads 4 --all",
    "suggest lm.safetensors",
    "suggest lm.safetensors --routers --others",
    "atlas lm.safetensors",
    "export causal --to out --preview",
    "import causal --to made.json --force",
    "share causal --out made.html",
    "recorder --sample --to made --force",
];

/// Commands without a call, and why.
const UNCALLED: [(&str, &str); 10] = [
    ("watch", "prints what `check` prints, until it is ended"),
    ("render", "prints the path of a picture"),
    ("bench", "is for developers"),
    ("attach", "prints what `run` prints, of a job"),
    ("cancel", "needs a job that runs"),
    ("verdict", "has a call for each design"),
    ("schema", "prints JSON alone"),
    ("licences", "prints the packages' own texts"),
    ("completions", "prints code"),
    ("man", "prints what the help has, which is English"),
];

#[test]
fn every_command_has_a_call_or_a_reason() {
    let first = |call: &&str| call.split(' ').next().unwrap_or_default().to_string();
    let mut known: Vec<String> =
        CALLS.iter().map(first).chain(UNCALLED.iter().map(|(name, _)| (*name).into())).collect();
    known.sort();
    known.dedup();
    let mut all = super::commands();
    all.sort();
    assert_eq!(known, all, "left: CALLS and UNCALLED; right: the program's help");
}

fn calls() -> Vec<Vec<&'static str>> {
    let mut calls: Vec<Vec<&str>> = CALLS.iter().map(|line| line.split(' ').collect()).collect();
    for of in DESIGNS {
        calls.extend([vec!["check", of], vec!["verdict", of], vec!["verdict", of, "--arch", "sm_90a"]]);
    }
    calls.extend(CONFIGS.iter().map(|(name, _)| vec!["advise", name]));
    calls
}

/// What `work` finds for each of some calls, on as many threads as there are cores.
fn found<T: Sync>(calls: &[T], work: impl Fn(usize, &T) -> Vec<String> + Sync) -> Vec<String> {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let one = || {
        while let Some((n, call)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, calls.get(n)?))) {
            let own = work(n, call);
            all.lock().expect("no thread panicked").extend(own);
        }
    };
    std::thread::scope(|scope| {
        (0..std::thread::available_parallelism().map_or(1, NonZero::get)).for_each(|_| drop(scope.spawn(one)));
    });
    all.into_inner().expect("no thread panicked")
}

/// Whether a text has as many lines in another language. A way out that lacks its figures has the English one below, and what a preset
/// is stands above its own English words.
fn as_many(call: &[&str], english: &str, other: &str) -> bool {
    let (own, others) = (english.lines().count(), other.lines().count());
    own == others || others > own && (english.contains("  help: ") || call[0] == "presets")
}

/// Each call speaks one language beside English, in turn, because all go the same way; with all cases each speaks every one.
#[test]
fn no_line_of_a_report_is_an_english_sentence() {
    let bench = furnished();
    let left = found(&calls(), |n, call| {
        let english = bench.run(call).ok();
        assert!(!english.out.is_empty(), "{call:?}");
        let one = |(at, language): (usize, &&str)| {
            if at != n % LANGUAGES.len() && !needs::all_cases() {
                return Vec::new();
            }
            let other = speaking(&bench, language, call);
            assert!(as_many(call, &english.out, &other.out), "{}", other.out);
            let lines = left_over(&english.out, &other.out);
            lines.into_iter().map(|line| format!("{language} {call:?}: {line}")).collect()
        };
        LANGUAGES.iter().enumerate().flat_map(one).collect()
    });
    assert!(left.is_empty(), "{} lines are English in another language:\n{}", left.len(), left.join("\n"));
}

#[test]
fn what_scripts_read_is_the_same_in_every_language() {
    let bench = furnished();
    for call in [
        &["check", "text.py", "--json"][..],
        &["advise", "gemma.json", "--json"],
        &["compare", "causal", "alibi", "--seq", "64", "--json"],
        &["presets", "causal", "--json"],
        &["suggest", "lm.safetensors", "--json"],
    ] {
        assert_eq!(bench.run(call).out, speaking(&bench, "zh_CN.UTF-8", call).out, "{call:?}");
    }
}

#[test]
fn sentences_are_told_from_code() {
    assert!(is_prose("over 9 tokens: keeps all of it") && is_prose("the masks keep the same cells"));
    for code in ["mask_mod of q_idx, kv_idx: q_idx >= kv_idx", "causal 12.3 ms", "|  ##  |", "Causal: ok"] {
        assert!(!is_prose(code), "{code}");
    }
    assert_eq!(left_over("a\n  keeps half of it\n", "x\nkeeps half of it"), ["keeps half of it"]);
}
