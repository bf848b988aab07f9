//! The thread of the Quality page: it holds the open capture, and answers the newest question about it.
//!
//! Invariant: an answer says what it is of: the file, the call, the document's revision. An edited mask costs what it changed. Must
//! not know widgets.

use crate::base::{Control, Diagnostic};
use crate::problem::Problem;
use crate::quality::attend::Kept;
use crate::quality::capture::{Call, Capture};
use crate::quality::live::{LineHead, Live, LiveHead};
use crate::quality::loss;
use crate::quality::measure::{Judge, OutputError};
use crate::quality::profile::profile;
use crate::quality::scores::Scorer;
use crate::quality::suggest::{self, Candidate, Material, Protect, Target, Wanted};
use crate::service::lab;
use std::path::PathBuf;
use std::sync::Arc;

/// Parts of the strip beside the picture.
const STRIP: usize = 256;
/// Largest side of a thumbnail, in values.
const THUMB: usize = 24;

/// All that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    pub path: PathBuf,
    /// A call by its key; None: the first.
    pub call: Option<String>,
    /// The document, with its revision.
    pub problem: Option<(u64, Problem)>,
    /// The head shown, by its place among those that have q and k; None: the one that loses most.
    pub head: Option<usize>,
    /// Whether the output's error of that head is wanted too.
    pub error: bool,
    /// Proposals at this mass, and the number of the wish.
    pub mass: Option<(u64, f64)>,
}

/// What came of it.
pub(super) struct Answer {
    pub question: Question,
    pub result: Result<Seen, Diagnostic>,
}

/// What is seen of a capture.
pub(super) struct Seen {
    pub file: Arc<FileWords>,
    pub call: String,
    /// Under the document's mask; the error says why it cannot be.
    pub line: Result<Line, Diagnostic>,
    /// Proposals, with the number of their wish.
    pub found: Option<(u64, Result<Vec<Candidate>, Diagnostic>)>,
}

/// What the file says.
pub(super) struct FileWords {
    pub name: String,
    /// Key and title of each call.
    pub calls: Vec<(String, String)>,
    pub warnings: Vec<Diagnostic>,
}

/// The heads of a layer under a mask.
#[derive(Clone)]
pub(super) struct Line {
    /// Number and measures of each head.
    pub heads: Vec<(usize, LineHead)>,
    /// Small pictures of their block masses: values and columns.
    pub thumbs: Arc<Vec<(Vec<f32>, usize)>>,
    /// The head that is shown, by its place.
    pub shown: usize,
    /// Its lost mass by block, and the columns.
    pub lost: Arc<[f32]>,
    pub columns: usize,
    /// Smallest mass kept in each stretch of rows.
    pub strip: Vec<f32>,
    /// Keys that its worst row misses.
    pub missed: Vec<(usize, f32)>,
    /// Where it was asked for and v is there.
    pub error: Option<OutputError>,
    pub lengths: [usize; 2],
    pub troubles: Option<String>,
}

/// What the thread keeps between questions.
#[derive(Default)]
pub(super) struct Keeper {
    file: Option<(PathBuf, Arc<Capture>, Arc<FileWords>)>,
    layer: Option<Layer>,
    found: Option<(u64, Result<Vec<Candidate>, Diagnostic>)>,
}

struct Layer {
    call: String,
    /// The problem that the heads' masses are of, as far as they depend on it.
    problem: Problem,
    numbers: Vec<usize>,
    heads: Arc<Vec<LiveHead>>,
    thumbs: Arc<Vec<(Vec<f32>, usize)>>,
    live: Live,
}

impl Keeper {
    /// Answers; None where it was stopped.
    pub(super) fn answer(&mut self, question: Question, control: &Control) -> Option<Answer> {
        let result = self.see(&question, control);
        match &result {
            Err(why) if why.code == "cancelled" => None,
            _ => Some(Answer { question, result }),
        }
    }

    fn see(&mut self, question: &Question, control: &Control) -> Result<Seen, Diagnostic> {
        if self.file.as_ref().is_none_or(|(path, ..)| *path != question.path) {
            (self.file, self.layer, self.found) = (None, None, None);
            let capture = lab::open(&question.path)?;
            let calls = capture.calls().iter().map(|c| (c.key.clone(), c.title(&capture))).collect();
            let words = FileWords { name: capture.name(), calls, warnings: capture.warnings() };
            self.file = Some((question.path.clone(), Arc::new(capture), Arc::new(words)));
        }
        let (_, capture, words) = self.file.clone().expect("opened above");
        let call = capture.find(question.call.as_deref(), None, None)?;
        let line = self.line(&capture, call, question, control);
        if let Err(why) = &line
            && why.code == "cancelled"
        {
            return Err(why.clone());
        }
        if let (Some((number, mass)), Some(layer)) = (question.mass, &self.layer)
            && self.found.as_ref().is_none_or(|(known, _)| *known != number)
            && line.is_ok()
        {
            self.found = Some((number, propose(&capture, layer, mass, control)));
        }
        let found = self.found.clone();
        Ok(Seen { file: words, call: call.key.clone(), line, found })
    }

    fn line(
        &mut self,
        capture: &Capture,
        call: &Call,
        question: &Question,
        control: &Control,
    ) -> Result<Line, Diagnostic> {
        let Some((_, problem)) = &question.problem else {
            return Err(Diagnostic::note("no-problem", "the document has errors: its mask cannot be judged"));
        };
        let kept = lab::blocks(problem, capture, call, control)?;
        let same = |layer: &Layer| {
            let a = &layer.problem;
            layer.call == call.key && a.block_size == problem.block_size && a.score == problem.score
        };
        if !self.layer.as_ref().is_some_and(same) {
            self.layer = None;
            self.layer = Some(Layer::new(capture, call, problem, kept, control)?);
        } else if let Some(layer) = &mut self.layer {
            layer.follow(kept, control)?;
        }
        let layer = self.layer.as_ref().expect("made above");
        layer.line(question, control)
    }
}

impl Layer {
    fn new(
        capture: &Capture,
        call: &Call,
        problem: &Problem,
        kept: Kept,
        control: &Control,
    ) -> Result<Layer, Diagnostic> {
        let numbers = call.info.full_heads();
        if numbers.is_empty() {
            let message = format!("{} has statistics only: no head has q and k", call.key);
            return Err(Diagnostic::error("capture-head", message).hint("capture with q, k and v of some heads"));
        }
        let made = lab::live_heads(capture, call, 0, &numbers, problem.block_size, problem.score.as_ref(), control)?;
        let thumbs = made.iter().map(|h| thumb(&h.masses.blocks, h.masses.grid())).collect();
        let heads = Arc::new(made);
        let live = Live::new(heads.clone(), kept.blocks, control);
        Ok(Layer { call: call.key.clone(), problem: problem.clone(), numbers, heads, thumbs: Arc::new(thumbs), live })
    }

    /// Goes over to another mask, at the cost of what differs where the extents are the same.
    fn follow(&mut self, kept: Kept, control: &Control) -> Result<(), Diagnostic> {
        if self.live.blocks().shape() != kept.blocks.shape() {
            self.live = Live::new(self.heads.clone(), kept.blocks, control);
            return Ok(());
        }
        let (blocks, change) = self.live.blocks().rebuild(kept.blocks.mask_mod().map(|m| &**m), control)?;
        if !change.is_nowhere() {
            self.live.edit(blocks, &change, control);
        }
        Ok(())
    }

    fn line(&self, question: &Question, control: &Control) -> Result<Line, Diagnostic> {
        let heads: Vec<(usize, LineHead)> = self.numbers.iter().copied().zip(self.live.line()).collect();
        let worst =
            (0..heads.len()).min_by(|a, b| heads[*a].1.mass.mean.total_cmp(&heads[*b].1.mass.mean)).unwrap_or(0);
        let shown = question.head.filter(|h| *h < heads.len()).unwrap_or(worst);
        let head = &self.heads[shown];
        let kept = Kept::new(self.live.blocks().clone());
        let lost = loss::by_block(&head.scorer, &head.masses, &kept, control)?;
        let rows = self.live.rows(shown);
        let missed = loss::missed(&head.scorer, &head.masses, &kept, heads[shown].1.mass.worst_row, 6);
        let mut error = None;
        if question.error && head.scorer.head().v().is_some() {
            let judge = Judge::new(Scorer::new(head.scorer.head()), head.masses.clone(), control)?;
            error = judge.judge(&kept, control)?.measures.error;
        }
        let lengths = head.masses.lengths;
        Ok(Line {
            heads,
            thumbs: self.thumbs.clone(),
            shown,
            lost: lost.into(),
            columns: head.masses.grid().1,
            strip: loss::strip(&rows, STRIP),
            missed,
            error,
            lengths: [lengths.q_len, lengths.kv_len],
            troubles: head.masses.troubles(),
        })
    }
}

fn propose(capture: &Capture, layer: &Layer, mass: f64, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    let lengths = layer.heads[0].masses.lengths;
    let grid = capture.grid().filter(|g| g.tokens().end <= lengths.q_len.min(lengths.kv_len));
    let profiles =
        layer.heads.iter().map(|h| profile(&h.scorer, &h.masses, grid, control)).collect::<Result<_, _>>()?;
    let material = Material::new(layer.heads.clone(), profiles)?;
    let wanted = Wanted { target: Target::Mass(mass), protect: Protect::default(), grid, most_masks: 4 };
    suggest::suggest(&material, &wanted, control)
}

/// Block masses made small: each value the largest under it.
fn thumb(values: &[f32], (rows, columns): (usize, usize)) -> (Vec<f32>, usize) {
    let (high, wide) = (rows.min(THUMB), columns.min(THUMB));
    let span =
        |at: usize, parts: usize, count: usize| at * count / parts..((at + 1) * count).div_ceil(parts).min(count);
    let cell = |at: usize| {
        let of = span(at / wide, high, rows).flat_map(|r| span(at % wide, wide, columns).map(move |c| r * columns + c));
        of.map(|n| values[n]).fold(0.0, f32::max)
    };
    ((0..high * wide).map(cell).collect(), wide)
}
