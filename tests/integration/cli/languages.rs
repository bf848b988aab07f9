//! What check, compare, verdict and advise say in Chinese, Spanish and Hindi: no line of them is an English sentence.
//!
//! Invariant: what scripts read stays English. Must not know the texts.

use super::{Bench, Ran};

const LANGUAGES: [&str; 3] = ["zh_CN.UTF-8", "es_ES.UTF-8", "hi_IN.UTF-8"];

fn speaking(bench: &Bench, language: &str, args: &[&str]) -> Ran {
    Bench::ran(bench.command(args).env_remove("LC_ALL").env("LANG", language)).ok()
}

/// PyTorch's own messages, which are the same in every language.
const QUOTED: [&str; 3] = [
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

#[test]
fn no_line_of_a_report_is_an_english_sentence() {
    let bench = Bench::new();
    bench.write("text.py", TEXT);
    bench.write(
        "factory.py",
        "def make(width: int = 3):\n    def inner(b, h, q, k):\n        return q - k < width\n    return inner\n",
    );
    CONFIGS.iter().for_each(|(name, text)| bench.write(name, text));
    let mut calls: Vec<Vec<&str>> = Vec::new();
    for of in [
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
    ] {
        calls.extend([vec!["check", of], vec!["verdict", of], vec!["verdict", of, "--arch", "sm_90a"]]);
    }
    calls.extend([vec!["check", "causal", "--at", "0,0,5,3"], vec!["check", "causal", "--at", "0,0,3,5"]]);
    calls.extend([vec!["compare", "causal", "sliding_window"], vec!["compare", "causal", "causal"]]);
    calls.extend([vec!["compare", "alibi", "gemma2_softcap_window", "--seq", "512"]]);
    calls.extend(CONFIGS.iter().map(|(name, _)| vec!["advise", name]));
    calls.extend(["wan_full", "gemma3_local"].map(|design| vec!["advise", "--design", design]));
    let mut left = Vec::new();
    for call in &calls {
        let english = bench.run(call).ok();
        assert!(!english.out.is_empty(), "{call:?}");
        for language in LANGUAGES {
            let other = speaking(&bench, language, call);
            left.extend(left_over(&english.out, &other.out).iter().map(|line| format!("{language} {call:?}: {line}")));
            assert_eq!(english.out.lines().count(), other.out.lines().count(), "{}", other.out);
        }
    }
    assert!(left.is_empty(), "{} lines are English in another language:\n{}", left.len(), left.join("\n"));
    // what scripts read is the same in every language
    for call in [
        &["check", "text.py", "--json"][..],
        &["advise", "gemma.json", "--json"],
        &["compare", "causal", "alibi", "--seq", "64", "--json"],
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
