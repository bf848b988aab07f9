//! English phrases of the engine in another language: steps of the history, what the worker does, ratios and why a backend is faster,
//! verdicts, advice, proposals, the page of a shared design.
//!
//! Invariant: a phrase that is unknown here stays English, and English phrases stay as they are. Must not know who shows them.

use crate::problem::verdict::Versus;
use crate::words::{Language, Piece, Words};
use std::sync::OnceLock;

/// Titles of steps.
static STEPS: Table = Table::new(&[
    "step-rename",
    "step-about",
    "step-axes",
    "step-settings",
    "step-remove",
    "step-move",
    "step-name",
    "step-enable",
    "step-disable",
    "step-combine",
    "step-heads",
    "step-layer",
    "step-code",
    "step-paint",
    "step-erase",
    "step-nothing",
    "step-open",
    "step-add",
    "step-change",
]);
/// What the worker does.
static WORK: Table = Table::new(&[
    "work-backends",
    "work-inputs",
    "work-blocks",
    "work-mods",
    "work-reference",
    "work-rounding",
    "work-warming",
    "work-gradients",
    "work-python",
    "work-round",
    "work-preparing",
    "work-compiling",
    "work-done",
    "race-refused",
]);
/// Why one backend is faster than another, by how much, and who ran.
static REASONS: Table = Table::new(&[
    "why-short",
    "why-skips-dense",
    "why-skips-scores",
    "why-skips-plain",
    "why-computes",
    "why-skips",
    "why-both-skip",
    "why-both-masked",
    "why-both-dense",
    "why-dense-skips",
    "why-scores",
    "why-dense-scores",
    "why-other-scores",
    "why-same",
    "why-nothing-masked",
    "why-other-dense",
    "why-dense",
    "why-launch",
    "ratio-none",
    "ratio-of",
    "ratio-alike",
    "ratio-alike-of",
    "ratio-doubts",
    "doubt-overlap",
    "doubt-spread",
    "doubt-busy",
    "doubt-host",
    "doubt-unraced",
    "ran-ours-cpu",
    "ran-ours",
    "ran-ours-short",
    "ran-maskless",
    "ran-dense",
    "clock-graph",
    "clock-profiler",
    "memory-held",
]);
/// What backends and libraries say of a design.
static VERDICTS: Table = Table::new(&[
    "takes-lists-bits",
    "takes-lists",
    "takes-lists-scores",
    "takes-scores",
    "takes-scores-mask",
    "takes-plain",
    "takes-full-causal",
    "takes-full",
    "takes-no-mask",
    "takes-dense-mask",
    "takes-dense-bool",
    "takes-dense-bias",
    "takes-every-block",
    "takes-bias-gradient",
    "takes-atomic",
    "takes-window",
    "takes-soft-cap",
    "takes-documents",
    "takes-neighbourhood",
    "takes-block-mask-alone",
    "takes-block-mask",
    "takes-no-mask-of",
    "takes-ranges",
    "takes-bounds",
    "takes-bound-causal",
    "takes-bounds-causal",
    "takes-slice",
    "takes-slices",
    "takes-no-valid-choices",
    "refuses-cuda-only",
    "refuses-cuda-only-of",
    "refuses-gqa",
    "refuses-score-mod-sdpa",
    "refuses-no-gradient",
    "refuses-cpu-gradients",
    "refuses-cpu-backward",
    "refuses-flash-scores",
    "refuses-alignment",
    "refuses-masks",
    "refuses-documents",
    "refuses-alibi-documents",
    "refuses-alibi-last",
    "refuses-alibi-sides",
    "refuses-single",
    "refuses-score-mod",
    "refuses-head-dims",
    "refuses-one-grid",
    "refuses-one-window",
    "refuses-edges",
    "refuses-neighbourhood-line",
    "refuses-neighbourhood",
    "refuses-dispatcher",
    "refuses-shared-memory",
    "refuses-slices",
    "refuses-bounds",
    "refuses-flash-2-mask",
    "refuses-flash-2-score",
    "refuses-sdpa-score",
    "refuses-backward",
    "refuses-capability",
    "refuses-cards",
    "refuses-cudnn-scores",
    "refuses-memory",
    "refuses-memory-scores",
    "refuses-forward-tiles",
]);
/// Advice on a setting.
static ADVICE: Table = Table::new(&[
    "advice-none",
    "advice-measure",
    "advice-others",
    "advice-open",
    "advice-weights",
    "advice-must",
    "advice-training",
    "advice-forward-only",
    "advice-plain-both",
    "advice-designed-both",
    "advice-plain",
    "advice-wrong-gradients",
    "advice-not-timed",
    "advice-no-backward",
    "advice-no-backward-why",
    "advice-own-forward",
    "advice-fused",
    "advice-needs",
    "advice-scores",
    "advice-scores-all",
    "advice-differs",
    "advice-attended",
    "advice-export",
    "advice-untrained",
    "advice-formats",
    "advice-no-effect",
    "advice-only",
    "advice-within",
    "advice-present",
    "advice-present-ahead",
    "advice-fastest",
    "advice-fastest-ahead",
    "advice-race-design",
    "advice-designed",
    "advice-designed-own",
    "advice-by-torch",
    "advice-by-torch-times",
    "advice-by-ours",
    "advice-by-ours-times",
    "advice-no-value",
    "origin-measured",
    "origin-recorded",
    "origin-not-here",
    "origin-copy",
]);
/// What a trainer's setting does, a sentence each.
static MEANINGS: Table = Table::new(&[
    "means-sdpa",
    "means-cudnn",
    "means-math",
    "means-one-kernel",
    "means-flash",
    "means-masks-refused",
    "means-masks-padding",
    "means-masks-kept",
    "means-masks-unknown",
    "means-flex",
    "means-kohaku",
    "means-quantised",
    "means-metal",
    "means-xformers",
    "means-unknown",
    "means-no-effect",
    "means-reads",
    "means-steers",
    "means-unets",
    "means-unknown-family",
    "means-replaces",
    "means-both",
    "means-training",
    "means-validation",
    "means-perhaps",
    "means-ignores",
    "means-warns",
    "means-release",
    "means-unset-of",
    "means-unset",
    "means-flash-package",
    "means-not-own",
]);
/// Proposed masks.
static PROPOSALS: Table = Table::new(&[
    "form-window-sinks",
    "form-columns-diagonals",
    "form-keys-distances",
    "form-box",
    "form-tiles",
    "form-radial",
    "form-groups",
    "form-budget",
    "form-top-p",
    "form-top-k",
    "form-top-either",
    "form-global",
    "form-one-list",
    "form-one-list-why",
    "form-global-why",
    "form-top-either-why",
    "form-top-k-why",
    "form-top-p-why",
    "form-budget-each",
    "form-budget-groups",
    "form-columns-why",
    "form-box-why",
    "form-groups-why",
    "form-keys-why",
    "form-radial-why",
    "form-tiles-why",
    "form-last",
    "form-last-first",
    "form-last-firsts",
    "form-around",
    "form-around-first",
    "form-around-firsts",
    "form-is-window",
    "form-is-around",
    "form-is-stripes",
    "form-is-tiles",
    "form-is-radial",
    "form-is-beside-both",
    "form-is-beside-text",
    "form-is-beside-frame",
    "form-is-list",
    "form-is-lists",
]);
/// The page of a shared design.
static PAGE: Table = Table::new(&[
    "shared-mask",
    "shared-aria",
    "shared-hint",
    "shared-code",
    "shared-provenance",
    "shared-nothing",
    "shared-kept",
    "shared-share",
    "shared-to",
    "shared-picture",
    "shared-made-by",
    "shared-at",
    "shared-method",
    "shared-method-words",
    "shared-design-name",
    "shared-design-words",
    "shared-tokens",
    "shared-query-axis",
    "shared-key-axis",
    "shared-batch",
    "shared-heads",
    "shared-heads-of",
    "shared-heads-kv",
    "shared-format",
    "shared-cells",
    "shared-sparsity",
    "shared-sparsity-at",
    "shared-full",
    "shared-partial",
    "shared-empty",
    "shared-backend",
    "shared-ran",
    "shared-median",
    "shared-spread",
    "shared-versus",
    "shared-memory",
    "shared-error",
    "shared-allowed",
    "shared-kernel",
    "shared-forward-only",
    "shared-errors",
    "shared-backward",
    "shared-backward-ms",
    "shared-both-ms",
    "shared-worst",
    "shared-its-error",
    "shared-refused",
    "shared-failed",
    "shared-wrong",
    "shared-baseline",
    "shared-before",
    "shared-after",
    "shared-measured",
    "shared-recorded",
    "ran-ours-cpu",
    "ran-ours",
    "ran-maskless",
    "ran-dense",
    "memory-held",
    "origin-reference",
    "origin-cell",
    "origin-one",
    "origin-exact",
    "origin-sampled",
]);
/// Ways over several GPUs.
static GPUS: Table = Table::new(&[
    "path-kept",
    "path-refused",
    "path-lost",
    "path-gathers",
    "path-ring-plain",
    "path-ring-causal",
    "path-no-mask",
    "path-torchtitan",
    "path-keys-round",
    "path-causal-refused",
    "path-first-rank",
    "path-documents",
    "path-ringmaster",
    "path-ringmaster-refuses",
    "rival-contiguous",
    "rival-head-tail",
    "rival-ptrr",
    "rival-ptrr-first",
    "rival-heap",
    "rival-ulysses",
]);
/// Lists, which stand in holes alone.
static LISTS: Table = Table::new(&["list-comma", "list-two"]);

/// Texts that phrases are found by.
struct Table {
    ids: &'static [&'static str],
    read: OnceLock<Vec<Template>>,
}

/// An English text in pieces.
struct Template {
    id: &'static str,
    pieces: Vec<Piece<'static>>,
    /// Letters that are not figures: the longest text that fits a phrase says most of it.
    fixed: usize,
}

impl Table {
    const fn new(ids: &'static [&'static str]) -> Table {
        Table { ids, read: OnceLock::new() }
    }

    fn templates(&self) -> &[Template] {
        self.read.get_or_init(|| self.ids.iter().filter_map(|id| template(id)).collect())
    }

    /// The text that says most of a phrase, and what stands in its holes.
    fn find<'a>(&self, phrase: &'a str) -> Option<(&Template, Vec<(&'static str, &'a str)>)> {
        let fits = |one: &'_ Template| holes(&one.pieces, phrase);
        let all = self.templates().iter().filter_map(|one| Some((one, fits(one)?)));
        all.max_by_key(|(one, _)| one.fixed)
    }
}

fn template(id: &'static str) -> Option<Template> {
    let pieces = Words::of(Language::English).pieces(id)?;
    let length = |piece: &Piece<'_>| if let Piece::Text(text) = piece { text.len() } else { 0 };
    Some(Template { id, fixed: pieces.iter().map(length).sum(), pieces })
}

/// The title of a step.
pub fn step(said: &'static Words, title: &str) -> String {
    told(&[&STEPS], said, title)
}

/// What the worker does.
pub fn work(said: &'static Words, what: &str) -> String {
    told(&[&WORK], said, what)
}

/// Why a backend is faster, who ran, what makes a figure doubtful.
pub fn reason(said: &'static Words, why: &str) -> String {
    told(&[&REASONS], said, why)
}

/// What a backend or a library says of a design.
pub fn verdict(said: &'static Words, words: &str) -> String {
    told(&[&VERDICTS], said, words)
}

/// A line of advice.
pub fn advice(said: &'static Words, line: &str) -> String {
    told(&[&ADVICE], said, line)
}

/// What a trainer's setting does today, sentence by sentence.
pub fn meaning(said: &'static Words, text: &str) -> String {
    let sentences = text.split_inclusive(". ").map(|sentence| told(&[&MEANINGS], said, sentence.trim_end()));
    let between = if said.language() == Language::Chinese { "" } else { " " };
    sentences.collect::<Vec<_>>().join(between)
}

/// The name of a proposal, its reason or its numbers.
pub fn proposal(said: &'static Words, words: &str) -> String {
    told(&[&PROPOSALS], said, words)
}

/// A label or a value of a shared design's page.
pub fn page(said: &'static Words, words: &str) -> String {
    told(&[&PAGE, &REASONS], said, words)
}

/// What a way over several GPUs does.
pub fn over_gpus(said: &'static Words, words: &str) -> String {
    told(&[&GPUS], said, words)
}

/// [`Versus::words`], or with a baseline's name [`Versus::words_of`].
pub fn versus(said: &'static Words, of: &Versus, base: Option<&str>) -> String {
    if said.language() == Language::English {
        return base.map_or_else(|| of.words(), |base| of.words_of(base));
    }
    let bare = Versus { doubts: Vec::new(), host: None, ..of.clone() };
    let words = bare.words();
    let words = match (words.split_once('x'), base.map(|base| reason(said, base))) {
        // the rival's name may have commas of its own
        (Some((ratio, rest)), Some(base)) => {
            let id = if rest.is_empty() { "ratio-of" } else { "ratio-alike-of" };
            said.with(id, &[("ratio", ratio.into()), ("base", base.into())])
        }
        _ => reason(said, &words),
    };
    let doubts = of.doubts.iter().chain(&of.host).map(|doubt| reason(said, doubt));
    let join = |all: String, one: String| said.with("list-comma", &[("one", all.into()), ("other", one.into())]);
    match doubts.reduce(join) {
        Some(doubts) => said.with("ratio-doubts", &[("words", words.into()), ("doubts", doubts.into())]),
        None => words,
    }
}

/// A phrase in a language, its holes too.
fn told(tables: &[&Table], said: &'static Words, phrase: &str) -> String {
    if said.language() == Language::English {
        return phrase.into();
    }
    let Some((found, holes)) = tables.iter().find_map(|table| table.find(phrase)) else { return phrase.into() };
    let inner: Vec<&Table> = tables.iter().copied().chain([&LISTS]).collect();
    let holes = holes.into_iter().map(|(name, hole)| (name, told(&inner, said, hole)));
    let holes: Vec<(&str, String)> = holes.collect();
    let figures: Vec<_> = holes.iter().map(|(name, hole)| (*name, hole.as_str().into())).collect();
    said.with(found.id, &figures)
}

/// What stands in the holes of a text, if a phrase is that text.
fn holes<'a>(pieces: &[Piece<'static>], phrase: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
    let (mut left, mut open, mut found) = (phrase, None, Vec::new());
    for (at, piece) in pieces.iter().enumerate() {
        let text = match piece {
            Piece::Figure(name) => {
                open = Some(*name);
                continue;
            }
            Piece::Text(text) => *text,
        };
        left = match open.take() {
            None => left.strip_prefix(text)?,
            Some(name) => {
                let last = at + 1 == pieces.len();
                let end = if last { left.len().checked_sub(text.len())? } else { left.find(text)? };
                found.push((name, left.get(..end)?));
                left.get(end..)?.strip_prefix(text)?
            }
        };
    }
    match open {
        Some(name) => found.push((name, left)),
        None if left.is_empty() => {}
        None => return None,
    }
    found.iter().all(|(_, hole)| !hole.is_empty()).then_some(found)
}

#[cfg(test)]
#[path = "phrases_tests.rs"]
mod tests;
