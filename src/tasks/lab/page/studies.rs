//! Long computations on a capture: proposals, their times, other calls, routers, orders of tokens, the atlas.
//!
//! Invariant: a result names its call. Must not know widgets, nor where the answer goes.

use crate::base::{BlockSize, Control, Diagnostic};
use crate::problem::Problem;
use crate::quality::capture::{Call, Capture};
use crate::quality::live::LiveHead;
use crate::quality::profile::profile;
use crate::quality::routers::Routed;
use crate::quality::suggest::order::{Gain, gains};
use crate::quality::suggest::{self, Candidate, Form, Material, Protect, Target, Wanted};
use crate::tasks::lab::{self, AtlasHead, Mask, OfCall};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The target of proposals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reach {
    /// Mean mass kept.
    Mass(f64),
    /// Share of the blocks.
    Blocks(f64),
    /// Relative L1 error of the output.
    Error(f64),
    /// Milliseconds of flex on this CPU.
    Time(f64),
}

/// A wish for proposals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Wish {
    pub reach: Reach,
    pub protect: Protect,
    pub most_masks: usize,
}

/// The requested study.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Study {
    Proposals(Wish),
    Times(Arc<Vec<Candidate>>),
    /// The document's mask and the candidates, on every call of these lengths.
    Others(Problem, Arc<Vec<Candidate>>),
    Routers(Target),
    Orders,
    Atlas,
}

/// A question.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct Question {
    pub number: u64,
    pub capture: Arc<Capture>,
    /// Key of the call.
    pub call: String,
    pub entry: usize,
    /// The call's heads; none for the atlas.
    pub heads: Arc<Vec<LiveHead>>,
    pub study: Study,
}

/// The result of a study.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Outcome {
    Proposals(Arc<Vec<Candidate>>),
    /// For each candidate, then without a mask.
    Times(Vec<f64>),
    /// The document's mask first, then the candidates.
    Others(Vec<OfCall>),
    /// Means, and those that can be applied as layers.
    Routers(Vec<Routed>, Vec<Candidate>),
    Orders(Vec<Gain>),
    Atlas(Vec<AtlasHead>),
}

/// An answer.
#[allow(missing_docs)]
pub struct Answer {
    pub number: u64,
    /// Key of the call that it is of.
    pub call: String,
    pub result: Result<Outcome, Diagnostic>,
}

/// The thread's cache: the profiles of a call's heads.
#[derive(Default)]
pub struct Keeper {
    known: Option<(Arc<Vec<LiveHead>>, Arc<Material>)>,
}

impl Keeper {
    /// Answers; None if it was stopped.
    pub fn answer(&mut self, question: &Question, control: &Control) -> Option<Answer> {
        let result = self.look(question, control);
        match &result {
            Err(why) if why.code == "cancelled" => None,
            _ => Some(Answer { number: question.number, call: question.call.clone(), result }),
        }
    }

    fn look(&mut self, question: &Question, control: &Control) -> Result<Outcome, Diagnostic> {
        let capture = &question.capture;
        let call = capture.find(Some(&question.call), None, None)?;
        Ok(match &question.study {
            Study::Proposals(wish) => {
                let material = self.material(question, call, control)?;
                Outcome::Proposals(Arc::new(propose(capture, &material, wish, control)?))
            }
            Study::Times(candidates) => {
                let forms: Vec<&Form> = candidates.iter().map(|c| &c.form).collect();
                Outcome::Times(lab::times(&*self.material(question, call, control)?, &forms, control)?)
            }
            Study::Others(problem, candidates) => {
                Outcome::Others(others(question, call, problem, candidates, control)?)
            }
            Study::Routers(target) => {
                let material = self.material(question, call, control)?;
                let (routed, layers) = lab::router_layers(&material, *target, capture.grid(), control)?;
                Outcome::Routers(routed, layers)
            }
            Study::Orders => {
                let head = &question.heads[0];
                let grid = capture.grid().ok_or_else(|| {
                    Diagnostic::error("capture-axes", "the capture has no axes: its tokens have one order")
                        .hint("capture with axes")
                })?;
                Outcome::Orders(gains(head.scorer.head(), grid, head.masses.block, 0.95, control)?)
            }
            Study::Atlas => {
                let calls: Vec<&Call> = capture.calls().iter().collect();
                let block = capture.block_size().unwrap_or(BlockSize::square(64));
                Outcome::Atlas(lab::atlas(capture, &calls, question.entry, block, 6, control)?)
            }
        })
    }

    fn material(&mut self, question: &Question, call: &Call, control: &Control) -> Result<Arc<Material>, Diagnostic> {
        if let Some((_, known)) = self.known.as_ref().filter(|(heads, _)| Arc::ptr_eq(heads, &question.heads)) {
            return Ok(known.clone());
        }
        let grid = fitting(&question.capture, call);
        let of = |h: &LiveHead| profile(&h.scorer, &h.masses, grid, control);
        let profiles = question.heads.iter().map(of).collect::<Result<_, _>>()?;
        let made = Material::new(question.heads.clone(), profiles)?;
        let made = Arc::new(Material { model_heads: call.info.heads, ..made });
        self.known = Some((question.heads.clone(), made.clone()));
        Ok(made)
    }
}

fn fitting(capture: &Capture, call: &Call) -> Option<crate::quality::profile::Grid> {
    capture.grid().filter(|g| g.tokens().end <= call.info.q_len.min(call.info.kv_len))
}

fn propose(
    capture: &Capture,
    material: &Material,
    wish: &Wish,
    control: &Control,
) -> Result<Vec<Candidate>, Diagnostic> {
    let lengths = material.lengths();
    let grid = capture.grid().filter(|g| g.tokens().end <= lengths.q_len.min(lengths.kv_len));
    let target = match wish.reach {
        Reach::Mass(mass) => Target::Mass(mass),
        Reach::Blocks(share) => Target::Blocks(share),
        Reach::Error(_) | Reach::Time(_) => Target::Mass(0.95),
    };
    let wanted = Wanted { target, protect: wish.protect, grid, most_masks: wish.most_masks };
    match wish.reach {
        Reach::Error(error) => lab::suggest_for_error(material, &wanted, error, control),
        Reach::Time(ms) => lab::suggest_for_time(material, &wanted, ms, control).map(|(_, found)| found),
        _ => suggest::suggest(material, &wanted, control),
    }
}

fn others(
    question: &Question,
    call: &Call,
    problem: &Problem,
    candidates: &[Candidate],
    control: &Control,
) -> Result<Vec<OfCall>, Diagnostic> {
    let mut masks =
        vec![Mask { of: problem.mask.clone(), per_head: problem.mask_per_head(), score: problem.score.clone() }];
    for candidate in candidates {
        masks.push(Mask::of_form(&candidate.form, problem.lengths())?);
    }
    lab::on_all(&question.capture, call, question.entry, &masks, problem.block_size, control)
}
