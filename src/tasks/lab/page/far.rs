//! Questions about a capture on another machine, and the desk of its worker that answers them.
//!
//! Invariant: the capture stays: its header, measures and pictures travel, no element of its tensors. An answer becomes what the same
//! question gives here. Must not know who carries messages.

use super::look::{Answer, Bounded, Cells, Character, FileWords, Heat, Keeper, Line, Question, Seen};
use super::numbers::{Incoming, Outgoing, Part};
use super::studies::{self, Outcome, Study, Wish};
use crate::base::{BlockSize, Control, DType, Diagnostic};
use crate::problem::{Problem, ProblemSpec};
use crate::quality::capture::{Capture, Header};
use crate::quality::live::LineHead;
use crate::quality::loss::Shows;
use crate::quality::measure::OutputError;
use crate::quality::routers::Routed;
use crate::quality::suggest::order::Gain;
use crate::quality::suggest::{Candidate, Target};
use crate::tasks::lab::{self, AtlasHead, CaptureFile, OfCall};
use crate::worker::serve;
use crate::worker::transport::Payload;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A question as it travels.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "of")]
enum Ask {
    Look(Box<AskLook>),
    Study(Box<AskStudy>),
    /// The tensors of a file that is no capture.
    Tensors {
        #[serde(with = "crate::base::kept_path")]
        path: PathBuf,
    },
    /// What a capture says of itself.
    Header {
        #[serde(with = "crate::base::kept_path")]
        path: PathBuf,
    },
    /// The atlas of one call.
    Call {
        #[serde(with = "crate::base::kept_path")]
        path: PathBuf,
        call: String,
        entry: usize,
        block: BlockSize,
    },
}

#[derive(Serialize, Deserialize)]
struct AskLook {
    #[serde(with = "crate::base::kept_path")]
    path: PathBuf,
    /// Whether the client lacks the file's header.
    header: bool,
    call: Option<String>,
    entry: usize,
    problem: Option<(u64, ProblemSpec)>,
    head: Option<usize>,
    row: Option<usize>,
    shows: Shows,
    cells: Option<Cells>,
    more: bool,
}

#[derive(Serialize, Deserialize)]
struct AskStudy {
    number: u64,
    #[serde(with = "crate::base::kept_path")]
    path: PathBuf,
    call: String,
    entry: usize,
    /// The document, whose block size the call's heads have.
    problem: Option<ProblemSpec>,
    study: FarStudy,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FarStudy {
    Proposals(Wish),
    Times(Vec<Candidate>),
    Others(Box<ProblemSpec>, Vec<Candidate>),
    Routers(Target),
    Orders,
    Atlas,
}

/// An answer as it travels, its numbers beside it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "of")]
enum Reported {
    Look(Box<ToldLook>),
    Study { number: u64, call: String, result: Result<FarOutcome, Diagnostic> },
    Tensors { names: Vec<(String, DType, Vec<usize>)> },
    Header { header: Box<Header> },
    Call { heads: Vec<AtlasHead> },
}

#[derive(Serialize, Deserialize)]
struct ToldLook {
    header: Option<Header>,
    call: String,
    entry: usize,
    line: Result<ToldLine, Diagnostic>,
    bounds: Vec<ToldBounds>,
}

#[derive(Serialize, Deserialize)]
struct ToldBounds {
    head: usize,
    #[serde(with = "crate::base::float")]
    low: f64,
    #[serde(with = "crate::base::float")]
    high: f64,
    thumb: Option<(Part, usize)>,
}

#[derive(Serialize, Deserialize)]
struct ToldHeat {
    rows: usize,
    cols: usize,
    values: Part,
    q: [usize; 2],
    kv: [usize; 2],
    quantity: String,
}

#[derive(Serialize, Deserialize)]
struct ToldLine {
    heads: Vec<(usize, LineHead)>,
    thumbs: Vec<(Part, usize)>,
    has_v: bool,
    rest: Vec<ToldBounds>,
    shown: usize,
    blocks: ToldHeat,
    cells: Option<ToldHeat>,
    rows: Part,
    row: usize,
    missed: Vec<(usize, f32)>,
    error: Option<OutputError>,
    efficiency: Option<f64>,
    character: Option<Character>,
    lengths: [usize; 2],
    troubles: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FarOutcome {
    Proposals(Vec<Candidate>),
    Times(#[serde(with = "crate::base::float::list")] Vec<f64>),
    Others(Vec<OfCall>),
    Routers(Vec<Routed>, Vec<Candidate>),
    Orders(Vec<Gain>),
    Atlas(Vec<AtlasHead>),
}

/// What came of a question.
pub enum Heard {
    /// Measures of the mask.
    Look(Box<Answer>),
    /// A study.
    Study(studies::Answer),
    /// Names, types and shapes of a file's tensors.
    Tensors(Vec<(String, DType, Vec<usize>)>),
    /// What a capture says of itself.
    Header(Box<Header>),
    /// Heads of one call, not grouped.
    Call(Vec<AtlasHead>),
}

/// A question for the header of a capture.
pub fn ask_header(path: &Path) -> Value {
    value(&Ask::Header { path: path.to_path_buf() })
}

/// A question for the heads of one call. `block` is for calls without statistics.
pub fn ask_call(path: &Path, call: &str, entry: usize, block: BlockSize) -> Value {
    value(&Ask::Call { path: path.to_path_buf(), call: call.into(), entry, block })
}

/// What an answer says that is not about a mask. Errors: another one.
pub fn plain_answer(reported: Value) -> Result<Heard, Diagnostic> {
    match serde_json::from_value(reported).map_err(|e| broken(&e.to_string()))? {
        Reported::Tensors { names } => Ok(Heard::Tensors(names)),
        Reported::Header { header } => Ok(Heard::Header(header)),
        Reported::Call { heads } => Ok(Heard::Call(heads)),
        Reported::Study { .. } | Reported::Look(_) => Err(broken("it is about a mask")),
    }
}

/// The client's side: which file's header it has.
#[derive(Default)]
pub struct Client {
    known: Option<(PathBuf, Arc<Capture>, Arc<FileWords>)>,
}

impl Client {
    /// A question about the mask on a capture, to be sent.
    pub fn look(&self, question: &Question) -> Value {
        let spec = |(revision, problem): &(u64, Problem)| (*revision, problem.spec().clone());
        value(&Ask::Look(Box::new(AskLook {
            path: question.path.clone(),
            header: self.known.as_ref().is_none_or(|(path, ..)| *path != question.path),
            call: question.call.clone(),
            entry: question.entry,
            problem: question.problem.as_ref().map(spec),
            head: question.head,
            row: question.row,
            shows: question.shows,
            cells: question.cells,
            more: question.more,
        })))
    }

    /// A study of a call, to be sent.
    pub fn study(path: &Path, problem: Option<&Problem>, question: &studies::Question) -> Value {
        let study = match &question.study {
            Study::Proposals(wish) => FarStudy::Proposals(*wish),
            Study::Times(candidates) => FarStudy::Times(candidates.to_vec()),
            Study::Others(problem, candidates) => {
                FarStudy::Others(Box::new(problem.spec().clone()), candidates.to_vec())
            }
            Study::Routers(target) => FarStudy::Routers(*target),
            Study::Orders => FarStudy::Orders,
            Study::Atlas => FarStudy::Atlas,
        };
        value(&Ask::Study(Box::new(AskStudy {
            number: question.number,
            path: path.to_path_buf(),
            call: question.call.clone(),
            entry: question.entry,
            problem: problem.map(|problem| problem.spec().clone()),
            study,
        })))
    }

    /// The tensors of a file that is no capture, to be sent.
    pub fn tensors(path: &Path) -> Value {
        value(&Ask::Tensors { path: path.to_path_buf() })
    }

    /// The worker has another state, or is another one.
    pub fn forget(&mut self) {
        self.known = None;
    }

    /// What an answer says. `question`: the newest one about the mask. Errors: an answer of another kind.
    pub fn heard(&mut self, reported: Value, payloads: &[Payload], question: &Question) -> Result<Heard, Diagnostic> {
        let reported: Reported = serde_json::from_value(reported).map_err(|e| broken(&e.to_string()))?;
        match reported {
            Reported::Tensors { names } => Ok(Heard::Tensors(names)),
            Reported::Header { header } => Ok(Heard::Header(header)),
            Reported::Call { heads } => Ok(Heard::Call(heads)),
            Reported::Study { number, call, result } => {
                Ok(Heard::Study(studies::Answer { number, call, result: result.map(FarOutcome::outcome) }))
            }
            Reported::Look(reported) => {
                let seen = self.seen(*reported, &Incoming::of(payloads)?, &question.path)?;
                Ok(Heard::Look(Box::new(Answer { question: question.clone(), result: Ok(seen) })))
            }
        }
    }

    fn seen(&mut self, reported: ToldLook, numbers: &Incoming, path: &Path) -> Result<Seen, Diagnostic> {
        if let Some(header) = reported.header {
            let capture = Arc::new(Capture::open(Box::new(header))?);
            let words = Arc::new(FileWords::of(&capture));
            self.known = Some((path.to_path_buf(), capture, words));
        }
        let known = self.known.as_ref().filter(|(known, ..)| known == path);
        let (_, capture, file) = known.cloned().ok_or_else(|| broken("the file's header is missing"))?;
        let line = match reported.line {
            Ok(line) => Ok(line.line(numbers)?),
            Err(why) => Err(why),
        };
        let bounds = reported.bounds.into_iter().map(|of| (of.head, of.low, of.high)).collect();
        Ok(Seen { file, capture, call: reported.call, entry: reported.entry, line, bounds })
    }
}

fn broken(why: &str) -> Diagnostic {
    Diagnostic::error("protocol-answer", format!("the answer about a capture cannot be read: {why}"))
        .hint("both sides must be the same version of Maskloom")
}

fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

impl ToldHeat {
    fn of(heat: &Heat, numbers: &mut Outgoing) -> ToldHeat {
        let (values, quantity) = (numbers.add(&heat.values), heat.quantity.clone());
        ToldHeat { rows: heat.rows, cols: heat.cols, values, q: heat.q, kv: heat.kv, quantity }
    }

    fn heat(self, numbers: &Incoming) -> Result<Arc<Heat>, Diagnostic> {
        let values: Arc<[f32]> = numbers.part(self.values)?.into();
        if self.rows == 0 || self.cols == 0 || self.rows.checked_mul(self.cols) != Some(values.len()) {
            return Err(broken("a picture has another size than it says"));
        }
        let (q, kv, quantity) = (self.q, self.kv, self.quantity);
        Ok(Arc::new(Heat { rows: self.rows, cols: self.cols, values, q, kv, quantity }))
    }
}

impl ToldLine {
    fn of(line: &Line, numbers: &mut Outgoing) -> ToldLine {
        let thumbs = line.thumbs.iter().map(|(values, columns)| (numbers.add(values), *columns)).collect();
        let rest = |of: &Bounded| ToldBounds {
            head: of.number,
            low: of.low,
            high: of.high,
            thumb: Some((numbers.add(&of.thumb.0), of.thumb.1)),
        };
        let rest = line.rest.iter().map(rest).collect();
        ToldLine {
            heads: line.heads.clone(),
            thumbs,
            has_v: line.has_v,
            rest,
            shown: line.shown,
            blocks: ToldHeat::of(&line.blocks, numbers),
            cells: line.cells.as_ref().map(|cells| ToldHeat::of(cells, numbers)),
            rows: numbers.add(&line.rows),
            row: line.row,
            missed: line.missed.clone(),
            error: line.error.clone(),
            efficiency: line.efficiency,
            character: line.character.clone(),
            lengths: line.lengths,
            troubles: line.troubles.clone(),
        }
    }

    fn line(self, numbers: &Incoming) -> Result<Line, Diagnostic> {
        if self.heads.is_empty() || self.shown >= self.heads.len() || self.thumbs.len() != self.heads.len() {
            return Err(broken("it has no heads"));
        }
        let thumb = |(part, columns): (Part, usize)| Ok((numbers.part(part)?.to_vec(), columns));
        let rest = |of: ToldBounds| {
            let thumb = of.thumb.map_or_else(|| Ok((Vec::new(), 1)), thumb)?;
            Ok(Bounded { number: of.head, low: of.low, high: of.high, thumb })
        };
        Ok(Line {
            thumbs: Arc::new(self.thumbs.into_iter().map(thumb).collect::<Result<_, Diagnostic>>()?),
            rest: self.rest.into_iter().map(rest).collect::<Result<_, Diagnostic>>()?,
            blocks: self.blocks.heat(numbers)?,
            cells: self.cells.map(|cells| cells.heat(numbers)).transpose()?,
            rows: numbers.part(self.rows)?.into(),
            heads: self.heads,
            live: Arc::default(),
            has_v: self.has_v,
            shown: self.shown,
            row: self.row,
            missed: self.missed,
            error: self.error,
            efficiency: self.efficiency,
            character: self.character,
            lengths: self.lengths,
            troubles: self.troubles,
        })
    }
}

impl FarOutcome {
    fn of(outcome: Outcome) -> FarOutcome {
        match outcome {
            Outcome::Proposals(found) => FarOutcome::Proposals(found.to_vec()),
            Outcome::Times(found) => FarOutcome::Times(found),
            Outcome::Others(found) => FarOutcome::Others(found),
            Outcome::Routers(routed, layers) => FarOutcome::Routers(routed, layers),
            Outcome::Orders(found) => FarOutcome::Orders(found),
            Outcome::Atlas(found) => FarOutcome::Atlas(found),
        }
    }

    fn outcome(self) -> Outcome {
        match self {
            FarOutcome::Proposals(found) => Outcome::Proposals(Arc::new(found)),
            FarOutcome::Times(found) => Outcome::Times(found),
            FarOutcome::Others(found) => Outcome::Others(found),
            FarOutcome::Routers(routed, layers) => Outcome::Routers(routed, layers),
            FarOutcome::Orders(found) => Outcome::Orders(found),
            FarOutcome::Atlas(found) => Outcome::Atlas(found),
        }
    }
}

/// The desk of a worker: it has the capture.
#[derive(Default)]
pub struct Desk {
    looks: Keeper,
    studies: studies::Keeper,
}

impl serve::Desk for Desk {
    fn answer(&mut self, ask: Value, control: &Control) -> Result<(Value, Vec<Payload>), Vec<Diagnostic>> {
        let ask: Ask = serde_json::from_value(ask)
            .map_err(|e| vec![Diagnostic::error("protocol-header", format!("a question cannot be read: {e}"))])?;
        let mut numbers = Outgoing::default();
        let reported = match ask {
            Ask::Look(ask) => self.look(*ask, &mut numbers, control)?,
            Ask::Study(ask) => self.study(*ask, control)?,
            Ask::Tensors { path } => Reported::Tensors { names: tensors(&path).map_err(|why| vec![why])? },
            Ask::Header { path } => {
                Reported::Header { header: Box::new(self.looks.open(&path).map_err(|why| vec![why])?.header()) }
            }
            Ask::Call { path, call, entry, block } => {
                let capture = self.looks.open(&path).map_err(|why| vec![why])?;
                let of = capture.find(Some(&call), None, None).map_err(|why| vec![why])?;
                let heads = lab::atlas(&capture, &[of], entry, block, 1, control).map_err(|why| vec![why])?;
                Reported::Call { heads }
            }
        };
        Ok((value(&reported), numbers.payloads()))
    }
}

impl Desk {
    fn look(&mut self, ask: AskLook, numbers: &mut Outgoing, control: &Control) -> Result<Reported, Vec<Diagnostic>> {
        let problem = ask.problem.map(|(revision, spec)| Ok((revision, Problem::new(spec)?))).transpose();
        let question = Question {
            path: ask.path,
            call: ask.call,
            entry: ask.entry,
            problem: problem.map_err(|why: Vec<Diagnostic>| why)?,
            head: ask.head,
            row: ask.row,
            shows: ask.shows,
            cells: ask.cells,
            more: ask.more,
        };
        let answer = self.looks.answer(question, control).ok_or_else(|| vec![stopped()])?;
        let seen = answer.result.map_err(|why| vec![why])?;
        let bounds =
            |(head, low, high): &(usize, f64, f64)| ToldBounds { head: *head, low: *low, high: *high, thumb: None };
        Ok(Reported::Look(Box::new(ToldLook {
            header: ask.header.then(|| seen.capture.header()),
            call: seen.call,
            entry: seen.entry,
            line: seen.line.as_ref().map(|line| ToldLine::of(line, numbers)).map_err(Clone::clone),
            bounds: seen.bounds.iter().map(bounds).collect(),
        })))
    }

    fn study(&mut self, ask: AskStudy, control: &Control) -> Result<Reported, Vec<Diagnostic>> {
        let capture = self.looks.open(&ask.path).map_err(|why| vec![why])?;
        let study = match ask.study {
            FarStudy::Proposals(wish) => Study::Proposals(wish),
            FarStudy::Times(candidates) => Study::Times(Arc::new(candidates)),
            FarStudy::Others(spec, candidates) => Study::Others(Problem::new(*spec)?, Arc::new(candidates)),
            FarStudy::Routers(target) => Study::Routers(target),
            FarStudy::Orders => Study::Orders,
            FarStudy::Atlas => Study::Atlas,
        };
        let known = self.looks.heads(&ask.path, &ask.call, ask.entry);
        let heads = match (known, matches!(study, Study::Atlas), ask.problem) {
            (Some(heads), ..) => heads,
            (None, true, _) | (None, _, None) => Arc::default(),
            // a worker that was started anew reads the layer again
            (None, false, Some(spec)) => {
                let (problem, shows) = (Some((0, Problem::new(spec)?)), Shows::default());
                let (call, entry) = (Some(ask.call.clone()), ask.entry);
                let again = Question {
                    path: ask.path.clone(),
                    call,
                    entry,
                    problem,
                    head: None,
                    row: None,
                    shows,
                    cells: None,
                    more: false,
                };
                let answer = self.looks.answer(again, control).ok_or_else(|| vec![stopped()])?;
                answer.result.and_then(|seen| seen.line).map_err(|why| vec![why])?.live
            }
        };
        let question =
            studies::Question { number: ask.number, capture, call: ask.call, entry: ask.entry, heads, study };
        let answer = self.studies.answer(&question, control).ok_or_else(|| vec![stopped()])?;
        Ok(Reported::Study { number: answer.number, call: answer.call, result: answer.result.map(FarOutcome::of) })
    }
}

fn tensors(path: &Path) -> Result<Vec<(String, DType, Vec<usize>)>, Diagnostic> {
    use crate::quality::capture::Tensors;
    let file = CaptureFile::open(path)?;
    let about = |name: String| file.about(&name).map(|(dtype, shape)| (name, dtype, shape));
    let mut found: Vec<_> = file.names().into_iter().filter_map(about).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

fn stopped() -> Diagnostic {
    Diagnostic::error("cancelled", "a newer question has come")
}
