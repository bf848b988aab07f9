//! Data compiled from the document off the window's thread: mods, controls, the validated problem, counted blocks.
//!
//! Invariant: a function of the document and its files alone; a panic of the compiler is a diagnostic and never ends
//! the window. Must not know how results are shown.

use super::background::{Latest, Wake};
use super::hints::in_window;
use super::mishaps::{guarded, our_mistake};
use crate::analysis::block_mask::{BlockMask, MaskShape, Stats};
use crate::backends::learning;
use crate::base::diagnostic::Severity;
use crate::base::{BlockSize, Control as Cancel, Diagnostic, Lengths};
use crate::document::compile::{Compiled, Compiler};
use crate::document::controls::{Control, controls};
use crate::document::from_document;
use crate::document::model::Document;
use crate::document::pasted::{OwnSizes, own_sizes};
use crate::ir::graph::Mod;
use crate::problem::{MaskPlans, Problem};
use crate::tasks::environment::Files;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The input of a compilation.
pub(super) struct Question {
    pub revision: u64,
    /// Counts the documents that were open.
    pub number: u64,
    pub document: Document,
    /// The document's folder.
    pub base: Option<PathBuf>,
    /// Raised when linked files are to be read again.
    pub files: u64,
}

/// Help of a factory and its parameters as controls.
pub(crate) type Controls = Result<(String, Vec<Control>), Diagnostic>;

/// The tensors of a score mod that get a gradient, with their shapes, or the reason why it has none.
pub(crate) type Learns = Result<Vec<(String, Vec<usize>)>, String>;

/// A compiled document.
#[derive(Debug)]
pub(crate) struct Built {
    pub revision: u64,
    /// Counts the documents that were open.
    pub number: u64,
    /// As it was when it was compiled.
    pub document: Document,
    pub compiled: Compiled,
    pub lengths: Option<Lengths>,
    /// By layer id, for layers with code.
    pub controls: BTreeMap<u64, Controls>,
    /// By the id of a score mod.
    pub learns: BTreeMap<u64, Learns>,
    pub problem: Result<Problem, Vec<Diagnostic>>,
    /// Files that were read.
    pub watched: Vec<PathBuf>,
    /// Sizes that a layer's code is made for, where they are not the document's.
    pub own_sizes: Option<OwnSizes>,
}

impl Built {
    /// Mask and score mod are the very same as another's.
    pub(crate) fn same_picture(&self, other: &Built) -> bool {
        let same = |a: &Option<Arc<Mod>>, b: &Option<Arc<Mod>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        same(&self.compiled.mask, &other.compiled.mask)
            && same(&self.compiled.score, &other.compiled.score)
            && self.lengths == other.lengths
    }

    /// Everything there is to say: of the document, its layers, and the problem.
    pub(crate) fn diagnostics(&self) -> Vec<(Option<u64>, &Diagnostic)> {
        let mut out: Vec<_> = self.compiled.diagnostics.iter().map(|d| (None, d)).collect();
        for layer in &self.compiled.layers {
            out.extend(layer.diagnostics.iter().map(|d| (Some(layer.id), d)));
        }
        if let Err(why) = &self.problem {
            let reported = |d: &&Diagnostic| !out.iter().any(|(_, o)| o == d);
            let more: Vec<_> = why.iter().filter(reported).map(|d| (None, d)).collect();
            out.extend(more);
        }
        out
    }

    /// Errors, and errors and warnings together.
    pub(crate) fn problems(&self) -> (usize, usize) {
        let all = self.diagnostics();
        let count = |least: Severity| all.iter().filter(|(_, d)| d.severity >= least).count();
        (count(Severity::Error), count(Severity::Warning))
    }

    /// Names of layers and score mods with errors, and whether each still has its last valid state.
    pub(crate) fn broken(&self) -> (Vec<String>, bool) {
        let broken = self.compiled.layers.iter().filter(|l| l.diagnostics.iter().any(Diagnostic::is_error));
        let (mut names, mut standing) = (Vec::new(), true);
        for layer in broken {
            standing &= layer.result.is_some();
            let name = self.document.layer(layer.id).map(|l| &l.name);
            names.extend(name.or_else(|| self.document.score(layer.id).map(|s| &s.name)).cloned());
        }
        if self.compiled.diagnostics.iter().any(Diagnostic::is_error) {
            standing = false;
            names.push("the axes".into());
        }
        (names, standing)
    }

    /// The messages of one layer.
    pub(crate) fn layer(&self, id: u64) -> &[Diagnostic] {
        self.compiled.layers.iter().find(|l| l.id == id).map_or(&[], |l| &l.diagnostics)
    }
}

/// The thread that compiles.
pub(super) fn compile_thread(wake: Wake) -> Latest<Question, Built> {
    let mut state = CompileState::default();
    Latest::new("compile", false, wake, move |question, _| Some(state.answer(question)))
}

/// Compiles a document once, on the caller's thread.
pub(super) fn build(document: Document, base: Option<PathBuf>) -> Built {
    CompileState::default().answer(Question { revision: 0, number: 0, document, base, files: 0 })
}

#[derive(Default)]
struct CompileState {
    compiler: Compiler,
    files: Files,
    base: Option<PathBuf>,
    read: u64,
    number: u64,
}

impl CompileState {
    fn answer(&mut self, question: Question) -> Built {
        if self.base != question.base {
            self.base = question.base.clone();
            self.files = Files::new(question.base.clone(), Vec::new());
        }
        if self.read != question.files {
            self.read = question.files;
            self.files.forget();
        }
        if self.number != question.number {
            self.number = question.number;
            self.compiler.forget();
        }
        let document = question.document;
        let compiled = catch_unwind(AssertUnwindSafe(|| self.compiler.compile(&document, &self.files)));
        let mut compiled = compiled.unwrap_or_else(|panic| {
            self.compiler = Compiler::default();
            Compiled { diagnostics: vec![our_mistake("compiling the document", &*panic)], ..Compiled::default() }
        });
        let ids = document.layers.iter().map(|l| l.id).chain(document.scores.iter().map(|s| s.id));
        let of = |id: u64| guarded("reading parameters", || controls(&document, id, &self.files)).ok();
        let controls = ids.filter_map(|id| Some((id, of(id)?.map_err(in_window)))).collect();
        let problem = from_document(&document, &compiled);
        let problem = problem.map_err(|why| why.into_iter().map(in_window).collect());
        for reported in compiled.layers.iter_mut().map(|l| &mut l.diagnostics).chain([&mut compiled.diagnostics]) {
            *reported = std::mem::take(reported).into_iter().map(in_window).collect();
        }
        let learns = guarded("looking for tensors with gradients", || learns(&document, &compiled)).unwrap_or_default();
        let lengths = document.axes.lengths().ok();
        let watched = self.files.watched();
        let (revision, number) = (question.revision, question.number);
        let own_sizes = own_sizes(&document, &compiled);
        Built { revision, number, lengths, controls, learns, problem, watched, own_sizes, compiled, document }
    }
}

/// Which tensors learn, of each score mod that has compiled.
fn learns(document: &Document, compiled: &Compiled) -> BTreeMap<u64, Learns> {
    let made = compiled.layers.iter().filter(|l| document.score(l.id).is_some());
    let shapes = |of: &Mod| match learning(of) {
        Ok(found) => Ok(found.into_iter().map(|(name, tensor)| (name, tensor.shape().to_vec())).collect()),
        Err(why) => Err(why.message),
    };
    made.filter_map(|l| Some((l.id, shapes(l.result.as_deref()?)))).collect()
}

/// A mask to be counted.
pub(super) struct CountQuestion {
    pub picture: u64,
    pub mask: Option<Arc<Mod>>,
    pub lengths: Lengths,
    pub batch: usize,
    pub heads: usize,
    pub block_size: BlockSize,
    /// Where runs and exports of the same problem find the blocks.
    pub plans: Option<MaskPlans>,
    /// Whether the cells are being counted: the blocks are then known, and progress starts again.
    pub at_cells: Arc<AtomicBool>,
}

/// Its blocks and cells.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub picture: u64,
    pub block_size: BlockSize,
    pub result: Result<Stats, Diagnostic>,
    /// The blocks themselves, if they could be counted.
    pub blocks: Option<BlockMask>,
}

/// The thread that counts; a newer mask stops the previous count. After an edit only its region is counted again.
pub(super) fn count_thread(wake: Wake) -> Latest<CountQuestion, Counted> {
    let mut last = None;
    Latest::new("count", true, wake, move |question: CountQuestion, cancel: &Cancel| {
        let counted = catch_unwind(AssertUnwindSafe(|| count(&question, &mut last, cancel)));
        let result = counted.unwrap_or_else(|panic| Err(our_mistake("counting blocks", &*panic)));
        let blocks = last.clone().filter(|_| result.is_ok());
        let (picture, block_size) = (question.picture, question.block_size);
        (!cancel.is_cancelled()).then_some(Counted { picture, block_size, result, blocks })
    })
}

fn count(question: &CountQuestion, last: &mut Option<BlockMask>, cancel: &Cancel) -> Result<Stats, Diagnostic> {
    let (mask, size) = (question.mask.as_deref(), question.block_size);
    let shape = MaskShape::of(mask, (question.batch, question.heads), question.lengths);
    let (found, stats) = match last.as_ref().filter(|m| m.shape() == shape && m.block_size() == size) {
        Some(before) => {
            let (found, change) = before.rebuild(mask, cancel)?;
            question.at_cells.store(true, Ordering::Relaxed);
            let stats = found.stats_after(before, &change, cancel);
            (found, stats)
        }
        None => {
            let found = BlockMask::build(mask, shape, size, cancel)?;
            question.at_cells.store(true, Ordering::Relaxed);
            let stats = found.stats_with(cancel);
            (found, stats)
        }
    };
    let stats = stats.ok_or_else(|| Diagnostic::error("cancelled", "counting was cancelled"))?;
    if let Some(plans) = &question.plans {
        plans.keep(size, found.clone());
    }
    *last = Some(found);
    Ok(stats)
}
