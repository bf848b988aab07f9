//! A smaller copy of a document that a CPU races in seconds instead of minutes.
//!
//! Invariant: the copy compiles and is a valid problem with the same layers, head group and formats, and keeps the same
//! share of cells as the original to a fifth, both counted exactly; if no copy does, the reason is returned. Must not
//! know how it is run or shown.

use crate::base::{Control, Device, Diagnostic};
use crate::document::compile::{Compiled, Environment, compile};
use crate::document::from_document;
use crate::document::model::Document;
use crate::document::scaling::{self, Groups};
use crate::problem::{Problem, ProblemSpec};
use crate::words::Words;
use std::time::Duration;

/// FLOP of one dense pass that a CPU is trusted with.
const LIGHT: f64 = 3e10;
/// Tokens that a smaller copy aims at first; twice and four times as many after that.
const TOKENS: usize = 1024;
/// Heads of a smaller copy, or one group if that has more.
pub const HEADS: usize = 4;
/// The largest difference between a copy's and the original's kept share.
pub const TOLERANCE: f64 = 0.2;
/// A copy that is so near is not searched beyond.
const NEAR: f64 = 0.05;
/// Copies of one length whose cells are counted, at most.
const COUNTED: usize = 16;
/// The assumed speed of a processor's thread without a measurement, in FLOP per second.
const RATE: f64 = 2e10;

/// Whether a dense pass would keep a CPU busy for long.
pub fn is_heavy(problem: &ProblemSpec) -> bool {
    dense_flop(problem) > LIGHT
}

/// FLOP of one dense pass.
pub fn dense_flop(problem: &ProblemSpec) -> f64 {
    let cells = problem.batch as f64 * problem.heads as f64 * problem.q_len as f64 * problem.kv_len as f64;
    2.0 * cells * (problem.head_dim + problem.head_dim_v) as f64
}

/// The purpose of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Tokens of the longer side that are tried, in this order.
    pub tokens: [usize; 3],
    /// Whether it must be light enough for a CPU.
    pub light: bool,
}

impl Wish {
    /// The work that a CPU races in seconds.
    pub fn quick() -> Wish {
        Wish { tokens: [TOKENS, 2 * TOKENS, 4 * TOKENS], light: true }
    }

    /// At most `tokens`, or up to `patience` times as many where nothing so short is the same mask.
    pub fn up_to(tokens: usize, patience: usize, light: bool) -> Wish {
        Wish { tokens: [tokens, tokens * patience.clamp(1, 2), tokens * patience], light }
    }
}

/// A smaller document that is the same mask.
#[derive(Clone, Debug)]
pub struct Copy {
    /// The raced document.
    pub document: Document,
    /// The same, compiled.
    pub compiled: Compiled,
    /// The same, validated.
    pub problem: Problem,
    /// Kept cells over all, over batch and heads: the copy's.
    pub kept: f64,
    /// The whole's.
    pub kept_of: f64,
}

/// A smaller copy. `of`: the compiled document. `kept_of`: the share that it keeps, if known. Errors: it has errors, no
/// smaller copy is the same mask, or it was cancelled.
pub fn copy(
    document: &Document,
    of: &Compiled,
    kept_of: Option<f64>,
    env: &dyn Environment,
    wish: Wish,
    control: &Control,
) -> Result<Copy, Diagnostic> {
    let whole = from_document(document, of).map_err(first)?;
    let kept_of = match kept_of {
        Some(known) => known,
        None => kept(&whole, control)?,
    };
    let mut search = Search { env, wish, control, kept_of, best: None, nearest: None };
    for tokens in wish.tokens {
        for groups in groups(document, &whole) {
            search.among(scaling::copies(document, env, tokens, groups))?;
        }
        if let Some(best) = search.best.take() {
            return Ok(best);
        }
    }
    Err(none(&search, &whole))
}

/// The share of cells that a problem keeps, over batch and heads, counted.
pub fn kept(problem: &Problem, control: &Control) -> Result<f64, Diagnostic> {
    let stats = problem.block_mask(problem.block_size, control)?.stats_with(control);
    Ok(stats.ok_or_else(|| Diagnostic::error("cancelled", "counting was cancelled"))?.density)
}

/// Batch entries and heads to try: few if the mask does not read them, otherwise all of them last.
fn groups(document: &Document, whole: &Problem) -> Vec<Groups> {
    let settings = &document.settings;
    let (all, mut few) = (Groups::of(settings), Groups::fewer(settings, HEADS));
    if whole.mask_per_batch() {
        few.batch = all.batch;
    }
    let mut tried = vec![few];
    if whole.mask_per_head() {
        tried.push(Groups { batch: few.batch, ..all });
    }
    tried.dedup();
    tried
}

struct Search<'a> {
    env: &'a dyn Environment,
    wish: Wish,
    control: &'a Control,
    kept_of: f64,
    best: Option<Copy>,
    /// The share nearest to the whole's, of copies that were something else.
    nearest: Option<f64>,
}

impl Search<'_> {
    fn among(&mut self, copies: Vec<Document>) -> Result<(), Diagnostic> {
        let mut counted = 0;
        for document in copies {
            if self.best.as_ref().is_some_and(|b| self.off(b.kept) <= NEAR) || counted == COUNTED {
                break;
            }
            let compiled = compile(&document, self.env);
            let Ok(problem) = from_document(&document, &compiled) else { continue };
            if self.wish.light && is_heavy(problem.spec()) {
                continue;
            }
            counted += 1;
            let kept = kept(&problem, self.control)?;
            self.judge(Copy { document, compiled, problem, kept, kept_of: self.kept_of });
        }
        Ok(())
    }

    fn judge(&mut self, copy: Copy) {
        let (off, kept) = (self.off(copy.kept), copy.kept);
        if off <= TOLERANCE {
            if self.best.as_ref().is_none_or(|b| off < self.off(b.kept)) {
                self.best = Some(copy);
            }
        } else if self.nearest.is_none_or(|n| off < self.off(n)) {
            self.nearest = Some(kept);
        }
    }

    /// The difference of a share from the original's, relative to it.
    fn off(&self, kept: f64) -> f64 {
        if kept == self.kept_of { 0.0 } else { (kept - self.kept_of).abs() / self.kept_of.max(f64::MIN_POSITIVE) }
    }
}

fn none(search: &Search<'_>, whole: &Problem) -> Diagnostic {
    let percent = |share: f64| format!("{:.3}%", 100.0 * share);
    let message = match search.nearest {
        Some(nearest) => format!(
            "no smaller copy is the same mask: the nearest keeps {} of its cells, the original {}",
            percent(nearest),
            percent(search.kept_of)
        ),
        None => "no smaller copy compiles: the code or the lengths fix the number of tokens".to_string(),
    };
    Diagnostic::error("no-smaller-copy", message)
        .hint(format!("race the whole design, {}; or shorten its axes by hand", words(whole.spec())))
}

fn first(why: Vec<Diagnostic>) -> Diagnostic {
    why.into_iter().next().unwrap_or_else(|| Diagnostic::error("problem", "the document is not a valid problem"))
}

/// `1024 x 1024 tokens, 4 heads`.
pub fn words(problem: &ProblemSpec) -> String {
    let batch = if problem.batch > 1 { format!("{} batch entries, ", problem.batch) } else { String::new() };
    format!("{batch}{} x {} tokens, {} heads", problem.q_len, problem.kv_len, problem.heads)
}

/// The same in a language.
pub fn told(said: &'static Words, batch: usize, [q, kv]: [usize; 2], heads: usize) -> String {
    let figures = [("q", q), ("kv", kv), ("heads", heads), ("batch", batch)];
    let id = if batch > 1 { "sizes-batch" } else { "sizes-one" };
    said.with(id, &figures.map(|(name, n)| (name, n.to_string().into())))
}

/// The same of a document.
pub fn sizes(document: &Document) -> String {
    let (axes, settings) = (&document.axes, &document.settings);
    let batch = if settings.batch > 1 { format!("{} batch entries, ", settings.batch) } else { String::new() };
    format!("{batch}{} x {} tokens, {} heads", axes.q.len(), axes.kv().len(), settings.heads)
}

/// The approximate time of a race on a CPU with this number of threads: `backends` make `passes` dense passes each. An
/// estimate at 20 GFLOP/s per thread, which the caller states.
pub fn estimate(
    problem: &ProblemSpec,
    device: Device,
    backends: usize,
    passes: u32,
    threads: usize,
) -> Option<Duration> {
    if device != Device::Cpu {
        return None;
    }
    let flop = dense_flop(problem) * backends as f64 * f64::from(passes);
    Some(Duration::from_secs_f64((flop / (RATE * threads.max(1) as f64)).min(1e15)))
}

/// `40 s`, `3 min`, `2 h`, `4 days`, `more than ten years`.
pub fn about(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 100.0 => format!("{:.0} s", s.max(1.0)),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s if s < 3.2e8 => format!("{:.0} days", s / 86_400.0),
        _ => "more than ten years".into(),
    }
}

#[cfg(test)]
#[path = "smaller_tests.rs"]
mod tests;
