//! `doctor --explain TEXT`: the meaning of a message of PyTorch, diffusers, flash-attn, CUDA or Maskloom, and a fix.
//!
//! Invariant: an entry matches if the words of one of its patterns are in the text; unknown text gets near entries, marked as
//! guesses, or none if none is near. Must not know the machine.

use super::matching::{Text, plain, synonyms, without_folders, words};
pub use super::messages::{Entry, checked};
use super::{flex, installs, libraries, messages, models, own, reports, training};
use crate::base::nearest::one_slip;
use crate::words::Words;
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

/// The result of an explanation.
#[derive(Clone, Debug)]
pub enum Explanation {
    /// These entries match, the one that says most about the text first; or they are codes of Maskloom's own messages.
    Known(Vec<&'static Entry>),
    /// None matches; these share the most words, nearest first. May be empty.
    Nearest(Vec<&'static Entry>),
}

/// Every message that is known.
fn all() -> impl Iterator<Item = &'static Entry> {
    [
        messages::MESSAGES,
        training::MESSAGES,
        reports::MESSAGES,
        libraries::MESSAGES,
        installs::MESSAGES,
        flex::MESSAGES,
        models::MESSAGES,
    ]
    .into_iter()
    .flatten()
}

/// Looks a text up. The folders of its paths count only where nothing else is known.
pub fn explain(text: &str) -> Explanation {
    let bare = without_folders(text);
    let whole = Some(text).filter(|text| *text != bare);
    let exact = |said: &str| matching(text, &Text::new(said));
    let mended = |said: &str| matching(text, &Text::mended(said, slip));
    let looks: [&dyn Fn() -> Vec<&'static Entry>; 5] = [
        &|| exact(&bare),
        &|| own::messages(text),
        &|| whole.map(exact).unwrap_or_default(),
        &|| mended(&bare),
        &|| whole.map(mended).unwrap_or_default(),
    ];
    if let Some(known) = looks.iter().map(|look| look()).find(|known| !known.is_empty()) {
        return Explanation::Known(known);
    }
    let asked = telling(&bare);
    let mut scored: Vec<(f64, &Entry)> = all().map(|e| (likeness(&asked, e), e)).collect();
    scored.retain(|(score, _)| *score > LIKE);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    Explanation::Nearest(scored.into_iter().take(3).map(|(_, e)| e).collect())
}

/// Entries of which a pattern is in the text, the one that says most about it first.
fn matching(text: &str, read: &Text) -> Vec<&'static Entry> {
    let code = plain(text);
    let matched = |e: &&Entry| e.patterns.iter().filter(|p| read.has(p)).map(|p| weight(p)).reduce(f64::max);
    let mut known: Vec<(f64, &Entry)> = all()
        .filter_map(|e| if names(&code, e.code) { Some((f64::MAX, e)) } else { matched(&e).map(|weight| (weight, e)) })
        .collect();
    known.sort_by(|a, b| b.0.total_cmp(&a.0));
    known.into_iter().map(|(_, e)| e).collect()
}

/// The word of a pattern that a typing error made this one of. Short words are too much alike.
fn slip(word: &str) -> Option<String> {
    static KNOWN: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let spoken = all().flat_map(|e| e.patterns).flat_map(|pattern| words(pattern));
        spoken.chain(synonyms().map(str::to_string)).collect()
    });
    let letters = word.len() >= 5 && word.chars().all(|c| c.is_ascii_alphabetic()) && !KNOWN.contains(word);
    letters.then(|| one_slip(word, KNOWN.iter().map(String::as_str)).map(str::to_string)).flatten()
}

/// A code alone, or as diagnostics write it: `error[nvrtc-missing]`.
fn names(text: &str, code: &str) -> bool {
    text == code || text.contains(&format!("[{code}]"))
}

/// Words that tell messages apart, each once.
fn telling(text: &str) -> Vec<String> {
    let mut words: Vec<String> =
        words(text).into_iter().filter(|w| w.len() > 2 && !COMMON.contains(&w.as_str())).collect();
    words.sort();
    words.dedup();
    words
}

/// Words that say nothing about which message it is.
const COMMON: [&str; 18] = [
    "modul",
    "nam",
    "the",
    "and",
    "not",
    "for",
    "with",
    "was",
    "are",
    "error",
    "torch",
    "you",
    "but",
    "this",
    "that",
    "runtimeerror",
    "valueerror",
    "file",
];

/// Below this an entry is no help: it leads astray.
const LIKE: f64 = 0.2;

/// How much a word tells: 1 if one entry has it.
fn rarity(word: &String) -> f64 {
    static SPREAD: LazyLock<HashMap<String, f64>> = LazyLock::new(|| {
        let mut counts: HashMap<String, f64> = HashMap::new();
        all().flat_map(own).for_each(|word| *counts.entry(word).or_default() += 1.0);
        counts
    });
    1.0 / SPREAD.get(word).copied().unwrap_or(1.0).sqrt()
}

/// How much a pattern tells.
fn weight(pattern: &str) -> f64 {
    telling(pattern).iter().map(rarity).sum()
}

/// The share of the asked words that an entry's patterns have, each by its rarity.
fn likeness(asked: &[String], entry: &Entry) -> f64 {
    let has = own(entry);
    let shared: Vec<f64> = asked.iter().filter(|w| has.contains(w)).map(rarity).collect();
    if shared.len() < 2 {
        return 0.0;
    }
    let largest: f64 = asked.iter().take(12).map(rarity).sum();
    shared.iter().sum::<f64>() / largest
}

/// The words of an entry's patterns and code.
fn own(entry: &Entry) -> Vec<String> {
    telling(&format!("{} {}", entry.patterns.join(" "), entry.code))
}

/// The explanation as text for the terminal. Codes, versions and what was checked stay English.
pub fn render(text: &str, words: &'static Words) -> String {
    let labels = ["explain-means", "explain-do", "explain-as-of", "explain-here"].map(|id| words.text(id));
    let wide = labels.iter().map(|label| columns(label)).max().unwrap_or_default();
    let [means, does, as_of, here] = labels.map(|label| format!("  {label}{} ", " ".repeat(wide - columns(label))));
    let one = |e: &Entry| {
        let (cause, fix) = if own::is_own(e) {
            (words.reported(e.code, words.text("explain-own")), words.text("explain-own-do"))
        } else {
            let (cause, fix) = words.explanation(e.code).unwrap_or((e.cause, e.fix));
            (cause.to_string(), fix)
        };
        format!("{}\n{means}{cause}\n{does}{fix}\n{as_of}{}\n", e.code, checked(e))
    };
    match explain(text) {
        Explanation::Known(entries) => {
            let codes: Vec<&str> = entries.iter().map(|e| e.code).collect();
            let list = entries.into_iter().map(one).collect::<Vec<_>>().join("\n");
            let divided = codes.contains(&"reshape-lost-heads").then(|| quotient(text, words)).flatten();
            list + &divided.map(|line| format!("{here}{line}\n")).unwrap_or_default()
        }
        Explanation::Nearest(entries) if entries.is_empty() => {
            format!("{}\n{does}{}\n", words.text("explain-unknown"), words.text("explain-unknown-do"))
        }
        Explanation::Nearest(entries) => {
            let list = entries.into_iter().map(one).collect::<Vec<_>>().join("\n");
            format!("{}\n\n{list}", words.text("explain-similar"))
        }
    }
}

/// Columns of a terminal that a text takes: letters of Chinese are two wide, signs of Devanagari stand on others.
fn columns(text: &str) -> usize {
    let wide = |c: char| match u32::from(c) {
        0x2e80..=0x9fff | 0xff00..=0xff60 => 2,
        0x900..=0x903 | 0x93a..=0x93c | 0x941..=0x948 | 0x94d => 0,
        _ => 1,
    };
    text.chars().map(wide).sum()
}

/// How often a refused shape goes into the tensor: `151947264 / (2 x 24731 x 128) = 24`. The number is the first behind
/// `size`, `elements` or `numel` outside of the shape, or the first large one.
fn quotient(text: &str, words: &Words) -> Option<String> {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty()).filter_map(|n| n.parse().ok()).collect()
    };
    let (before, rest) = text.split_once(['[', '('])?;
    let (shape, behind) = rest.split_once([']', ')'])?;
    let sizes: Vec<u64> = shape.split(',').map(|n| n.trim().parse().ok()).collect::<Option<_>>()?;
    let product = sizes.iter().try_fold(1u64, |a, b| a.checked_mul(*b)).filter(|n| *n > 0)?;
    let spread = text.contains("shape") || text.contains("reshape") || text.contains("view");
    let outside = numbers(behind).into_iter().chain(numbers(before));
    let all = outside.filter(|_| spread && sizes.len() > 1).find(|n| *n > product.min(1000))?;
    let list: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let sum = format!("{all} / ({})", list.join(" x "));
    let (id, factor) = if all.is_multiple_of(product) {
        ("explain-lost", (all / product).to_string())
    } else {
        ("explain-uneven", format!("{:.3}", all as f64 / product as f64))
    };
    Some(words.with(id, &[("sum", sum.into()), ("factor", factor.into())]))
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "printed_tests.rs"]
mod printed_tests;

#[cfg(test)]
#[path = "spoken_tests.rs"]
mod spoken_tests;
