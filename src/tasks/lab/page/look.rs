//! The measures of a mask on an open capture: holds the capture, and answers requests about the mask on it.
//!
//! Invariant: a result names its file, call and document revision. An edited mask costs only its changed part. Must not
//! know widgets, nor where the answer goes.

use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::analysis::raster::Region;
use crate::base::{BlockSize, Control, Diagnostic};
use crate::problem::Problem;
use crate::quality::attend::Kept;
use crate::quality::capture::{Call, Capture};
use crate::quality::live::{LineHead, Live, LiveHead};
use crate::quality::loss::{self, Shows};
use crate::quality::masses::Masses;
use crate::quality::measure::{Judge, OutputError, bounds, troubles};
use crate::quality::profile::{Profile, profile};
use crate::tasks::lab;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// Largest side of a thumbnail, in values.
const THUMB: usize = 24;

/// A matrix of masses.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// Rows, at least one.
    pub rows: usize,
    /// Columns, at least one.
    pub cols: usize,
    /// Row by row.
    pub values: Arc<[f32]>,
    /// Query tokens that the rows cover evenly, half-open.
    pub q: [usize; 2],
    /// Key tokens that the columns cover evenly, half-open.
    pub kv: [usize; 2],
    /// The name of the numbers.
    pub quantity: String,
}

/// Cells that the canvas shows: rows and columns in tokens, height and width in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Cells {
    pub q: [usize; 2],
    pub kv: [usize; 2],
    pub height: usize,
    pub width: usize,
}

/// All that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The file.
    pub path: PathBuf,
    /// A call by its key; None: the first.
    pub call: Option<String>,
    /// Batch entry.
    pub entry: usize,
    /// The document, with its revision.
    pub problem: Option<(u64, Problem)>,
    /// The shown head, by its position among those with q and k; None: the one with the largest loss.
    pub head: Option<usize>,
    /// The row whose missed keys are shown; None: the worst.
    pub row: Option<usize>,
    /// The kind of picture.
    pub shows: Shows,
    /// A picture by cell.
    pub cells: Option<Cells>,
    /// Whether the output's error and the character of that head are wanted too.
    pub more: bool,
}

/// The result.
pub struct Answer {
    /// To this question.
    pub question: Question,
    /// What is there. Errors: the file cannot be read, the call is not there.
    pub result: Result<Seen, Diagnostic>,
}

/// The data of a capture.
pub struct Seen {
    /// The file's description.
    pub file: Arc<FileWords>,
    /// The file; one of another machine has no elements here.
    pub capture: Arc<Capture>,
    /// Key of the call.
    pub call: String,
    /// Batch entry.
    pub entry: usize,
    /// Under the document's mask; the error is the reason why it is missing.
    pub line: Result<Line, Diagnostic>,
    /// Bounds of the mass of each head, if there are statistics alone.
    pub bounds: Vec<(usize, f64, f64)>,
}

/// The file's metadata.
pub struct FileWords {
    /// Its name.
    pub name: String,
    /// Key and title of each call.
    pub calls: Vec<(String, String)>,
    /// What is missing in it.
    pub warnings: Vec<Diagnostic>,
}

impl FileWords {
    /// Of an open file.
    pub fn of(capture: &Capture) -> FileWords {
        let calls = capture.calls().iter().map(|c| (c.key.clone(), c.title(capture))).collect();
        FileWords { name: capture.name(), calls, warnings: capture.warnings() }
    }
}

/// The heads of a layer under a mask.
#[derive(Clone)]
pub struct Line {
    /// Number and measures of each head.
    pub heads: Vec<(usize, LineHead)>,
    /// Small pictures of their block masses: values and columns.
    pub thumbs: Arc<Vec<(Vec<f32>, usize)>>,
    /// The heads themselves; none where they stay on another machine.
    pub live: Arc<Vec<LiveHead>>,
    /// Whether the shown head has v.
    pub has_v: bool,
    /// Heads of which block masses alone are known.
    pub rest: Vec<Bounded>,
    /// The head that is shown, by its place.
    pub shown: usize,
    /// Its picture by block, and by cell if requested.
    pub blocks: Arc<Heat>,
    /// That picture.
    pub cells: Option<Arc<Heat>>,
    /// Mass kept of each of its rows.
    pub rows: Arc<[f32]>,
    /// The row that is looked at, and the keys that it misses.
    pub row: usize,
    /// Those keys, with their masses.
    pub missed: Vec<(usize, f32)>,
    /// If requested and v exists.
    pub error: Option<OutputError>,
    /// Kept cells over cells of the visited blocks, if requested.
    pub efficiency: Option<f64>,
    /// If requested.
    pub character: Option<Character>,
    /// Of queries and keys.
    pub lengths: [usize; 2],
    /// What cannot be measured.
    pub troubles: Option<String>,
}

/// A head without q and k in the file: bounds of the mass that the mask keeps.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Bounded {
    pub number: usize,
    pub low: f64,
    pub high: f64,
    /// Values and columns.
    pub thumb: (Vec<f32>, usize),
}

/// The character of the head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Character {
    /// Median over rows of exp(entropy), in keys, and the mean as a share of all keys.
    #[serde(with = "crate::base::float")]
    pub keys: f64,
    /// Of all keys.
    #[serde(with = "crate::base::float")]
    pub share: f64,
    /// Mass on the first four keys.
    #[serde(with = "crate::base::float")]
    pub sinks: f64,
    /// Mass on the tokens before the grid.
    pub prefix: Option<f64>,
    /// Mean distance, in tokens.
    #[serde(with = "crate::base::float")]
    pub distance: f64,
}

/// The thread's state between requests.
#[derive(Default)]
pub struct Keeper {
    file: Option<(PathBuf, Arc<Capture>, Arc<FileWords>)>,
    layer: Option<Layer>,
}

struct Layer {
    call: String,
    entry: usize,
    /// The problem that the heads' masses are of, as far as they depend on it.
    problem: Problem,
    numbers: Vec<usize>,
    heads: Arc<Vec<LiveHead>>,
    thumbs: Arc<Vec<(Vec<f32>, usize)>>,
    live: Live,
    /// How many heads were left out for want of memory.
    left: usize,
    /// Heads with block masses alone, and small pictures of them.
    rest: Vec<(usize, Masses, (Vec<f32>, usize))>,
    /// Characters of the heads that were looked at, by place.
    characters: Vec<Option<Character>>,
}

impl Keeper {
    /// The heads of the layer that was looked at last, if it is this one.
    pub(super) fn heads(&self, path: &std::path::Path, call: &str, entry: usize) -> Option<Arc<Vec<LiveHead>>> {
        let same = self.file.as_ref().is_some_and(|(known, ..)| known == path);
        let layer = self.layer.as_ref().filter(|layer| same && layer.call == call && layer.entry == entry)?;
        Some(layer.heads.clone())
    }

    /// The open file.
    pub(super) fn open(&mut self, path: &std::path::Path) -> Result<Arc<Capture>, Diagnostic> {
        if self.file.as_ref().is_none_or(|(known, ..)| known != path) {
            (self.file, self.layer) = (None, None);
            let capture = Arc::new(lab::open(path)?);
            self.file = Some((path.to_path_buf(), capture.clone(), Arc::new(FileWords::of(&capture))));
        }
        Ok(self.file.as_ref().expect("opened above").1.clone())
    }

    /// Answers; None if it was stopped.
    pub fn answer(&mut self, question: Question, control: &Control) -> Option<Answer> {
        let result = self.see(&question, control);
        match &result {
            Err(why) if why.code == "cancelled" => None,
            _ => Some(Answer { question, result }),
        }
    }

    fn see(&mut self, question: &Question, control: &Control) -> Result<Seen, Diagnostic> {
        self.open(&question.path)?;
        let (_, capture, words) = self.file.clone().expect("opened above");
        let call = capture.find(question.call.as_deref(), None, None)?;
        let entry = question.entry.min(capture.batch(call).saturating_sub(1));
        let line = self.line(&capture, call, entry, question, control);
        if let Err(why) = &line
            && why.code == "cancelled"
        {
            return Err(why.clone());
        }
        let bounds =
            if call.info.full_heads().is_empty() { limits(&capture, call, entry, question) } else { Vec::new() };
        Ok(Seen { file: words, call: call.key.clone(), entry, line, bounds, capture: capture.clone() })
    }

    fn line(
        &mut self,
        capture: &Capture,
        call: &Call,
        entry: usize,
        question: &Question,
        control: &Control,
    ) -> Result<Line, Diagnostic> {
        let Some((_, problem)) = &question.problem else {
            return Err(Diagnostic::note("no-problem", "the document has errors: its mask cannot be measured"));
        };
        let shape = lab::extent(problem, capture, call)?;
        let same = |layer: &Layer| {
            let a = &layer.problem;
            layer.call == call.key
                && layer.entry == entry
                && a.block_size == problem.block_size
                && a.score == problem.score
        };
        if !self.layer.as_ref().is_some_and(same) {
            self.layer = None;
            let kept = lab::blocks(problem, capture, call, control)?;
            self.layer = Some(Layer::new(capture, call, entry, problem, kept, control)?);
        } else if let Some(mut layer) = self.layer.take() {
            // what stops on the way has measures of neither mask and is not put back
            layer.follow(problem, shape, control)?;
            self.layer = Some(layer);
        }
        let layer = self.layer.as_mut().expect("made above");
        layer.line(capture, question, control)
    }
}

/// Bounds of the mass from block masses alone; None if they have other blocks.
fn limits(capture: &Capture, call: &Call, entry: usize, question: &Question) -> Vec<(usize, f64, f64)> {
    let Some((_, problem)) = &question.problem else { return Vec::new() };
    let Ok(kept) = lab::blocks(problem, capture, call, &Control::new()) else { return Vec::new() };
    let of = |head: usize| {
        let known = capture.statistics(call, entry, head).ok()??;
        let (low, high) = bounds(&known.masses, &kept, (entry, head));
        (known.masses.block == kept.blocks.block_size()).then_some((head, low, high))
    };
    (0..call.info.heads).filter_map(of).collect()
}

impl Layer {
    fn new(
        capture: &Capture,
        call: &Call,
        entry: usize,
        problem: &Problem,
        kept: Kept,
        control: &Control,
    ) -> Result<Layer, Diagnostic> {
        let mut numbers = call.info.full_heads();
        let left = numbers.split_off(lab::most_heads(call).min(numbers.len()));
        if numbers.is_empty() {
            let message = format!("{} has statistics only: no head has q and k", call.key);
            return Err(Diagnostic::error("capture-head", message).hint("capture with q, k and v of some heads"));
        }
        let (size, score) = (problem.block_size, problem.score.as_ref());
        let made = lab::live_heads(capture, call, entry, &numbers, size, score, control)?;
        let thumbs = made.iter().map(|h| thumb(&h.masses.blocks, h.masses.grid())).collect();
        let heads = Arc::new(made);
        let live = Live::new(heads.clone(), kept.blocks, control)?;
        let (characters, thumbs) = (vec![None; heads.len()], Arc::new(thumbs));
        let (rest, left) = (rest(capture, call, entry, size), left.len());
        Ok(Layer {
            call: call.key.clone(),
            entry,
            problem: problem.clone(),
            numbers,
            heads,
            thumbs,
            live,
            left,
            rest,
            characters,
        })
    }

    /// Switches to another mask, at the cost of the difference if the extents are equal.
    fn follow(&mut self, problem: &Problem, shape: MaskShape, control: &Control) -> Result<(), Diagnostic> {
        let mask = problem.mask.as_deref();
        let same_extent = self.live.blocks().shape() == shape;
        if same_extent && self.live.blocks().mask_mod().map(|known| &**known) == mask {
            return Ok(());
        }
        if !same_extent {
            let blocks = BlockMask::build(mask, shape, problem.block_size, control)?;
            self.live = Live::new(self.heads.clone(), blocks, control)?;
            return Ok(());
        }
        let (blocks, change) = self.live.blocks().rebuild(mask, control)?;
        if shape == problem.mask_shape() {
            problem.plans().keep(problem.block_size, blocks.clone());
        }
        if !change.is_nowhere() {
            self.live.edit(blocks, &change, control)?;
        }
        Ok(())
    }

    fn line(&mut self, capture: &Capture, question: &Question, control: &Control) -> Result<Line, Diagnostic> {
        let heads: Vec<(usize, LineHead)> = self.numbers.iter().copied().zip(self.live.line()).collect();
        let worst =
            (0..heads.len()).min_by(|a, b| heads[*a].1.mass.mean.total_cmp(&heads[*b].1.mass.mean)).unwrap_or(0);
        let shown = question.head.filter(|h| *h < heads.len()).unwrap_or(worst);
        let head = self.heads[shown].clone();
        let kept = Kept::new(self.live.blocks().clone());
        let lengths = head.masses.lengths;
        let row = question.row.filter(|row| *row < lengths.q_len).unwrap_or(heads[shown].1.mass.worst_row);
        let missed = loss::missed(&head.scorer, &head.masses, &kept, row, 6);
        let blocks = match question.shows {
            Shows::Lost => loss::by_block(&head.scorer, &head.masses, &kept, control)?,
            Shows::All => head.masses.blocks.clone(),
        };
        let cells = question.cells.map(|of| cells((&head, &kept), of, question.shows, control)).transpose()?;
        let (mut error, mut efficiency, mut character) = (None, None, self.characters[shown].clone());
        if question.more {
            let judge = Judge::new(head.scorer.clone(), head.masses.clone(), control)?;
            let measures = judge.judge(&kept, control)?.measures;
            (error, efficiency) = (measures.error, Some(measures.cost.efficiency));
            if character.is_none() {
                let of = profile(&head.scorer, &head.masses, None, control)?;
                character = Some(Character::of(&of, capture));
                self.characters[shown] = character.clone();
            }
        }
        let rest = self.bounded(&kept);
        Ok(Line {
            heads,
            rest,
            thumbs: self.thumbs.clone(),
            live: self.heads.clone(),
            has_v: head.scorer.head().v().is_some(),
            shown,
            blocks: by_block(&head, blocks, question.shows),
            cells,
            rows: self.live.rows(shown).into(),
            row,
            missed,
            error,
            efficiency,
            character,
            lengths: [lengths.q_len, lengths.kv_len],
            troubles: self.troubles(&head),
        })
    }
}

impl Layer {
    /// The unmeasurable and the skipped heads.
    fn troubles(&self, head: &LiveHead) -> Option<String> {
        let count = self.heads.len();
        let left =
            (self.left > 0).then(|| format!("the first {count} heads are in memory; {} more would not fit", self.left));
        let words: Vec<String> = left.into_iter().chain(troubles(head.scorer.head(), &head.masses)).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    fn bounded(&self, kept: &Kept) -> Vec<Bounded> {
        let of = |(number, masses, thumb): &(usize, Masses, (Vec<f32>, usize))| {
            let (low, high) = bounds(masses, kept, (self.entry, *number));
            Bounded { number: *number, low, high, thumb: thumb.clone() }
        };
        self.rest.iter().map(of).collect()
    }
}

/// Heads that have no q and k, with their block masses; none where those are of other blocks.
fn rest(capture: &Capture, call: &Call, entry: usize, size: BlockSize) -> Vec<(usize, Masses, (Vec<f32>, usize))> {
    if capture.block_size() != Some(size) {
        return Vec::new();
    }
    let of = |head: usize| {
        let masses = capture.statistics(call, entry, head).ok()??.masses;
        let thumb = thumb(&masses.blocks, masses.grid());
        Some((head, masses, thumb))
    };
    (0..call.info.heads).filter(|head| !call.info.has_head(*head)).filter_map(of).collect()
}

impl Character {
    fn of(profile: &Profile, capture: &Capture) -> Character {
        Character {
            keys: profile.median_keys(),
            share: profile.effective_share(),
            sinks: profile.prefix(4),
            prefix: capture.grid().map(|g| g.start).filter(|n| *n > 0).map(|n| profile.prefix(n)),
            distance: profile.mean_distance(),
        }
    }
}

/// A picture by block; the last blocks may reach beyond the tokens.
fn by_block(head: &LiveHead, values: Vec<f32>, shows: Shows) -> Arc<Heat> {
    let (rows, cols) = head.masses.grid();
    let number = head.scorer.head().place.1;
    let quantity = match shows {
        Shows::Lost => format!("lost mass of a block of head {number}, mean over its rows"),
        Shows::All => format!("mass of a block of head {number}, mean over its rows"),
    };
    Arc::new(Heat {
        rows,
        cols,
        values: values.into(),
        q: [0, rows * head.masses.block.q],
        kv: [0, cols * head.masses.block.kv],
        quantity,
    })
}

fn cells(
    (head, kept): (&LiveHead, &Kept),
    of: Cells,
    shows: Shows,
    control: &Control,
) -> Result<Arc<Heat>, Diagnostic> {
    let (q, kv) = (of.q[0]..of.q[1], of.kv[0]..of.kv[1]);
    let region = Region { b: 0, h: 0, q, kv, height: of.height, width: of.width };
    let values = loss::by_cell(&head.scorer, &head.masses, kept, &region, shows, control)?;
    let number = head.scorer.head().place.1;
    let one = of.q[1] - of.q[0] == of.height && of.kv[1] - of.kv[0] == of.width;
    Ok(Arc::new(Heat {
        rows: of.height,
        cols: of.width,
        values: values.into(),
        q: of.q,
        kv: of.kv,
        quantity: match (shows, one) {
            (Shows::Lost, true) => format!("lost probability of head {number}"),
            (Shows::Lost, false) => format!("lost probability of head {number} per pixel"),
            (Shows::All, true) => format!("probability of head {number}"),
            (Shows::All, false) => format!("probability of head {number} per pixel"),
        },
    }))
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
